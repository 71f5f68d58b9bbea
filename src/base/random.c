#include "base/random.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

void random_bytes(void *data, size_t length)
{
    char *p = data;

    while (length) {
        ssize_t got = getrandom(p, length, 0);
        if (got < 0) {
            if (errno == EINTR)
                continue;
            abort();
        }
        p += got;
        length -= (size_t)got;
    }
}

static const char hex_digits[] = "0123456789abcdef";

const char *random_hex(char *text, size_t length)
{
    for (size_t i = 0; i < length;) {
        unsigned char chunk[32];
        size_t count = length - i < 2 * sizeof(chunk) ? length - i : 2 * sizeof(chunk);
        random_bytes(chunk, (count + 1) / 2);
        for (size_t k = 0; k < count; k++)
            text[i + k] = hex_digits[k % 2 ? chunk[k / 2] & 15 : chunk[k / 2] >> 4];
        i += count;
    }
    text[length] = '\0';
    return text;
}

/* Writes the bytes as a version 4 UUID. */
static const char *format_uuid(unsigned char bytes[16], char text[UUID_BYTES])
{
    char *out = text;

    bytes[6] = (unsigned char)((bytes[6] & 0x0f) | 0x40);
    bytes[8] = (unsigned char)((bytes[8] & 0x3f) | 0x80);
    for (size_t i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *out++ = '-';
        *out++ = hex_digits[bytes[i] >> 4];
        *out++ = hex_digits[bytes[i] & 15];
    }
    *out = '\0';
    return text;
}

const char *random_uuid(char text[UUID_BYTES])
{
    unsigned char bytes[16];

    random_bytes(bytes, sizeof(bytes));
    return format_uuid(bytes, text);
}

const char *random_pool_uuid(struct random_pool *pool, char text[UUID_BYTES])
{
    if (pool->left < 16) {
        random_bytes(pool->bytes, sizeof(pool->bytes));
        pool->left = sizeof(pool->bytes);
    }
    pool->left -= 16;
    return format_uuid(pool->bytes + pool->left, text);
}

void prng_init(struct prng *prng, uint64_t seed)
{
    for (size_t i = 0; i < 4; i++) {
        uint64_t z = (seed += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        prng->state[i] = z ^ (z >> 31);
    }
}

static uint64_t rotate_left(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

uint64_t prng_next(struct prng *prng)
{
    uint64_t *s = prng->state;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

double prng_uniform(struct prng *prng)
{
    return (double)(prng_next(prng) >> 11) * 0x1.0p-53;
}

uint64_t prng_below(struct prng *prng, uint64_t bound)
{
    uint64_t threshold = -bound % bound;
    uint64_t value;

    do
        value = prng_next(prng);
    while (value < threshold);
    return value % bound;
}
