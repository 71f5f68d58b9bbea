#include "base/failing_alloc.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

static unsigned left = UINT_MAX; /* UINT_MAX: no limit */
static unsigned refused;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *pointer, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *pointer, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

static bool refuses(void)
{
    if (left == UINT_MAX)
        return false;
    if (left) {
        left--;
        return false;
    }
    refused++;
    return true;
}

void *__wrap_malloc(size_t size)
{
    return refuses() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return refuses() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *pointer, size_t size)
{
    return refuses() ? NULL : __real_realloc(pointer, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return refuses() ? NULL : __real_aligned_alloc(alignment, size);
}

void failing_alloc_after(unsigned successes)
{
    left = successes;
    refused = 0;
}

unsigned failing_alloc_stop(void)
{
    left = UINT_MAX;
    return refused;
}
