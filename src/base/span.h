/*
 * A borrowed run of bytes: not NUL-terminated, not owned. Valid as long as whatever it points into.
 * The empty span may have a NULL pointer.
 */
#pragma once

#include "base/macros.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct span {
    const char *data;
    size_t length;
};

#define SPAN(literal) ((struct span){("" literal), sizeof(literal) - 1})
#define SPAN_NONE     ((struct span){NULL, 0})
/* For printf("%.*s", SPAN_ARG(s)). */
#define SPAN_ARG(s) (int)(s).length, (s).data ? (s).data : ""

static inline struct span span_of(const char *data, size_t length)
{
    return (struct span){data, length};
}

/* NULL gives the empty span. */
static inline struct span span_from(const char *text)
{
    return (struct span){text, text ? strlen(text) : 0};
}

static inline bool span_equal(struct span a, struct span b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}

static inline struct span span_slice(struct span s, size_t from, size_t to)
{
    /* Adding even 0 to NULL is undefined. */
    return (struct span){from ? s.data + from : s.data, to - from};
}

/* ASCII case only. */
bool span_equal_nocase(struct span a, struct span b);
/* Bytewise order, shorter first on a tie: <0, 0, >0. */
int span_compare(struct span a, struct span b);
bool span_starts_with(struct span s, struct span prefix);
bool span_ends_with(struct span s, struct span suffix);
/* Without the ASCII blanks and tabs at both ends. */
struct span span_trim(struct span s);
/* Position of the first `c`, or -1. */
ptrdiff_t span_find(struct span s, char c);
/* Position of the first occurrence of `needle`, or -1. */
ptrdiff_t span_find_span(struct span s, struct span needle);
/*
 * Cuts the part before the first `separator` off `*rest` and returns it; `*rest` becomes what follows it. Without a
 * separator the whole is returned and `*rest` becomes SPAN_NONE (data NULL), which is how loops end.
 */
struct span span_cut(struct span *rest, char separator);
/* Decimal digits only, no sign, no blanks. -EINVAL for anything else, -ERANGE past `maximum`. */
int span_to_u64(struct span s, uint64_t maximum, uint64_t *ret_value) MUST_USE;
/* A NUL-terminated malloc'ed copy, NULL when out of memory. */
char *span_dup(struct span s) MUST_USE;
/* Bytes of the well-formed UTF-8 sequence that a non-empty span begins with, 0 when it begins with none. */
size_t span_utf8_length(struct span s);
/* True when the bytes are well-formed UTF-8 (no surrogates, no overlong forms, nothing past U+10FFFF). */
bool span_is_utf8(struct span s);
