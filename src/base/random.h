/*
 * Random bytes from the kernel, identifiers made of them, and a small seeded generator for code that must be
 * replayable (core, sim, tests): there the generator is passed in, never global.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { UUID_BYTES = 37 };

/* From getrandom; cannot fail once the kernel's pool is up. Aborts if the kernel refuses. */
void random_bytes(void *data, size_t length);
/* A version 4 UUID in lower case, NUL-terminated. Returns `text`. */
const char *random_uuid(char text[UUID_BYTES]);
/*
 * Random bytes drawn from the kernel in larger portions, for identifiers on hot paths (one system call for 64 of them).
 * Zero-initialised it is empty and valid. Not for secrets: what it will hand out next lies in memory.
 */
struct random_pool {
    unsigned char bytes[1024];
    size_t left;
};

/* As random_uuid, from the pool. */
const char *random_pool_uuid(struct random_pool *pool, char text[UUID_BYTES]);
/* `length` lower-case hex digits and a NUL (length + 1 bytes). Returns `text`. */
const char *random_hex(char *text, size_t length);

/* xoshiro256** seeded by splitmix64: same seed, same sequence, on every machine. */
struct prng {
    uint64_t state[4];
};

void prng_init(struct prng *prng, uint64_t seed);
uint64_t prng_next(struct prng *prng);
/* Uniform in [0, 1) with 53 bits. */
double prng_uniform(struct prng *prng);
/* Uniform in [0, bound), without bias; bound > 0. */
uint64_t prng_below(struct prng *prng, uint64_t bound);
