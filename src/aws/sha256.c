#include "aws/sha256.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

enum { BLOCK_BYTES = 64 };

int sha256_init(struct sha256 *sha256)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();

    if (!context)
        return -ENOMEM;
    if (EVP_DigestInit_ex(context, EVP_sha256(), NULL) != 1) {
        EVP_MD_CTX_free(context);
        return -ENOMEM;
    }
    sha256->context = context;
    return 0;
}

void sha256_deinit(struct sha256 *sha256)
{
    EVP_MD_CTX_free(sha256->context);
    sha256->context = NULL;
}

int sha256_digest(struct sha256 *sha256, const struct span *parts, size_t count, unsigned char hash[SHA256_BYTES])
{
    EVP_MD_CTX *context = sha256->context;

    /* Without a type the context keeps its algorithm and its memory. */
    if (EVP_DigestInit_ex(context, NULL, NULL) != 1)
        return -EIO;
    for (size_t i = 0; i < count; i++)
        if (parts[i].length && EVP_DigestUpdate(context, parts[i].data, parts[i].length) != 1)
            return -EIO;
    return EVP_DigestFinal_ex(context, hash, NULL) == 1 ? 0 : -EIO;
}

int sha256_hex(struct sha256 *sha256, const struct span *parts, size_t count, char hex[SHA256_HEX_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char hash[SHA256_BYTES];
    int r = sha256_digest(sha256, parts, count, hash);

    if (r < 0)
        return r;
    for (size_t i = 0; i < SHA256_BYTES; i++) {
        hex[2 * i] = digits[hash[i] >> 4];
        hex[2 * i + 1] = digits[hash[i] & 15];
    }
    hex[SHA256_HEX_BYTES - 1] = '\0';
    return 0;
}

int sha256_hmac(struct sha256 *sha256, struct span key, struct span message, unsigned char hash[SHA256_BYTES])
{
    unsigned char block[BLOCK_BYTES] = {0};
    unsigned char inner[SHA256_BYTES];
    int r = 0;

    if (key.length > BLOCK_BYTES)
        r = sha256_digest(sha256, &key, 1, block);
    else if (key.length)
        memcpy(block, key.data, key.length);
    for (size_t i = 0; i < BLOCK_BYTES; i++)
        block[i] ^= 0x36;
    if (r == 0)
        r = sha256_digest(sha256, (struct span[]){{(char *)block, BLOCK_BYTES}, message}, 2, inner);
    for (size_t i = 0; i < BLOCK_BYTES; i++)
        block[i] ^= 0x36 ^ 0x5c;
    if (r == 0)
        r = sha256_digest(sha256, (struct span[]){{(char *)block, BLOCK_BYTES}, {(char *)inner, SHA256_BYTES}}, 2,
                          hash);
    OPENSSL_cleanse(block, sizeof(block));
    OPENSSL_cleanse(inner, sizeof(inner));
    return r;
}
