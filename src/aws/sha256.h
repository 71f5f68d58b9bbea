/* SHA-256 and HMAC over lists of spans, on one reused OpenSSL context: after the first call nothing is allocated. */
#pragma once

#include "base/span.h"

enum { SHA256_BYTES = 32, SHA256_HEX_BYTES = 2 * SHA256_BYTES + 1 };

struct sha256 {
    void *context; /* EVP_MD_CTX */
};

/* 0 or -ENOMEM. Zero-initialised is safe for sha256_deinit. */
int sha256_init(struct sha256 *sha256) MUST_USE;
void sha256_deinit(struct sha256 *sha256);
/* Hash of the parts one after another. 0, or -EIO when OpenSSL refuses. */
int sha256_digest(struct sha256 *sha256, const struct span *parts, size_t count,
                  unsigned char hash[SHA256_BYTES]) MUST_USE;
/* The same as lower-case hex with a NUL. */
int sha256_hex(struct sha256 *sha256, const struct span *parts, size_t count, char hex[SHA256_HEX_BYTES]) MUST_USE;
/* HMAC (RFC 2104) of one message; keys longer than a block are hashed first. */
int sha256_hmac(struct sha256 *sha256, struct span key, struct span message, unsigned char hash[SHA256_BYTES]) MUST_USE;
