#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>

enum { ARENA_BLOCK_BYTES = 4096 - 64 };

struct arena_block {
    struct arena_block *next;
    size_t used;
    size_t size;
    _Alignas(max_align_t) char data[];
};

void *arena_alloc(struct arena *arena, size_t size)
{
    size_t rounded;
    struct arena_block *block = arena->blocks;

    if (__builtin_add_overflow(size, _Alignof(max_align_t) - 1, &rounded))
        return NULL;
    rounded &= ~(_Alignof(max_align_t) - 1);
    if (!block || block->size - block->used < rounded) {
        size_t payload = MAX(rounded, (size_t)ARENA_BLOCK_BYTES);
        if (payload > SIZE_MAX - sizeof(*block))
            return NULL;
        block = malloc(sizeof(*block) + payload);
        if (!block)
            return NULL;
        block->used = 0;
        block->size = payload;
        block->next = arena->blocks;
        arena->blocks = block;
    }
    block->used += rounded;
    return block->data + block->used - rounded;
}

void *arena_zalloc(struct arena *arena, size_t size)
{
    void *memory = arena_alloc(arena, size);

    return memory ? memset(memory, 0, size) : NULL;
}

char *arena_dup(struct arena *arena, struct span span)
{
    char *copy = arena_alloc(arena, span.length + 1);

    if (!copy)
        return NULL;
    if (span.length)
        memcpy(copy, span.data, span.length);
    copy[span.length] = '\0';
    return copy;
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    va_list args;
    int length;
    char *text;

    va_start(args, format);
    length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0)
        return NULL;
    text = arena_alloc(arena, (size_t)length + 1);
    if (!text)
        return NULL;
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}

void arena_deinit(struct arena *arena)
{
    while (arena->blocks) {
        struct arena_block *next = arena->blocks->next;
        free(arena->blocks);
        arena->blocks = next;
    }
}
