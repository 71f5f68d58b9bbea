#include "base/buffer.h"

#include <stdio.h>

void buffer_deinit(struct buffer *buffer)
{
    free(buffer->data);
    *buffer = BUFFER_INIT;
}

int buffer_reserve(struct buffer *buffer, size_t extra)
{
    size_t needed;
    size_t capacity;
    char *data;

    if (__builtin_add_overflow(buffer->length, extra, &needed))
        return -ENOMEM;
    if (needed <= buffer->capacity)
        return 0;
    capacity = MAX(needed, buffer->capacity + buffer->capacity / 2);
    data = realloc(buffer->data, capacity);
    if (!data)
        return -ENOMEM;
    buffer->data = data;
    buffer->capacity = capacity;
    return 0;
}

int buffer_append(struct buffer *buffer, const void *data, size_t length)
{
    if (!length)
        return 0;
    int r = buffer_reserve(buffer, length);
    if (r < 0)
        return r;
    memcpy(buffer->data + buffer->length, data, length);
    buffer->length += length;
    return 0;
}

int buffer_append_span(struct buffer *buffer, struct span span)
{
    return buffer_append(buffer, span.data, span.length);
}

int buffer_append_char(struct buffer *buffer, char c)
{
    return buffer_append(buffer, &c, 1);
}

int buffer_vprintf(struct buffer *buffer, const char *format, va_list args)
{
    va_list again;
    int length;
    int r;

    va_copy(again, args);
    length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0)
        return -EINVAL;
    r = buffer_reserve(buffer, (size_t)length + 1);
    if (r < 0)
        return r;
    vsnprintf(buffer->data + buffer->length, (size_t)length + 1, format, args);
    buffer->length += (size_t)length;
    return 0;
}

int buffer_printf(struct buffer *buffer, const char *format, ...)
{
    va_list args;
    int r;

    va_start(args, format);
    r = buffer_vprintf(buffer, format, args);
    va_end(args);
    return r;
}

const char *buffer_terminate(struct buffer *buffer)
{
    if (buffer_reserve(buffer, 1) < 0)
        return NULL;
    buffer->data[buffer->length] = '\0';
    return buffer->data;
}

void buffer_consume(struct buffer *buffer, size_t count)
{
    if (count >= buffer->length) {
        buffer->length = 0;
        return;
    }
    memmove(buffer->data, buffer->data + count, buffer->length - count);
    buffer->length -= count;
}

struct buffer buffer_take(struct buffer *buffer)
{
    struct buffer taken = *buffer;

    *buffer = BUFFER_INIT;
    return taken;
}
