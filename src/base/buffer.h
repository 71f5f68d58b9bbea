/*
 * A growable run of bytes with one owner. Zero-initialised (or BUFFER_INIT) it is empty and valid; buffer_deinit makes
 * it empty again. `data` may be NULL while `length` is 0; it is not NUL-terminated unless buffer_terminate was called.
 * Appending functions return 0 or -ENOMEM, and leave the buffer as it was on failure.
 */
#pragma once

#include "base/span.h"

#include <stdarg.h>

struct buffer {
    char *data;
    size_t length;
    size_t capacity;
};

#define BUFFER_INIT ((struct buffer){NULL, 0, 0})

void buffer_deinit(struct buffer *buffer);
/* Room for `extra` more bytes past `length`; grows by at least half. */
int buffer_reserve(struct buffer *buffer, size_t extra) MUST_USE;
int buffer_append(struct buffer *buffer, const void *data, size_t length) MUST_USE;
int buffer_append_span(struct buffer *buffer, struct span span) MUST_USE;
int buffer_append_char(struct buffer *buffer, char c) MUST_USE;
int buffer_printf(struct buffer *buffer, const char *format, ...) PRINTF_LIKE(2, 3) MUST_USE;
int buffer_vprintf(struct buffer *buffer, const char *format, va_list args) MUST_USE;
/* Puts a NUL behind the content without counting it, and returns the text; NULL when out of memory. */
const char *buffer_terminate(struct buffer *buffer) MUST_USE;
/* Drops the first `count` bytes. */
void buffer_consume(struct buffer *buffer, size_t count);
/* Moves the content out; the source is empty after. The caller owns the result. */
struct buffer buffer_take(struct buffer *buffer);

static inline struct span buffer_span(const struct buffer *buffer)
{
    return span_of(buffer->data, buffer->length);
}
