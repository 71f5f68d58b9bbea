/*
 * Memory that is freed all at once: what belongs to one request. Zero-initialised it is empty and valid.
 * Allocations are aligned for any type and stay where they are until arena_deinit.
 */
#pragma once

#include "base/span.h"

struct arena_block;

struct arena {
    struct arena_block *blocks;
};

/* Uninitialised bytes, NULL when out of memory. A size of 0 gives a valid pointer. */
void *arena_alloc(struct arena *arena, size_t size) MUST_USE;
/* Zeroed bytes. */
void *arena_zalloc(struct arena *arena, size_t size) MUST_USE;
/* A NUL-terminated copy (the NUL is past the span's end). */
char *arena_dup(struct arena *arena, struct span span) MUST_USE;
char *arena_printf(struct arena *arena, const char *format, ...) PRINTF_LIKE(2, 3) MUST_USE;
void arena_deinit(struct arena *arena);
