/*
 * Compiler attributes and scope cleanup.
 *
 * Locals that own something are declared with CLEANUP(destructor); they leave their scope by a visible TAKE_PTR or
 * TAKE_FD, after which the local is inert.
 */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define MUST_USE                               __attribute__((warn_unused_result))
#define PRINTF_LIKE(format_index, first_index) __attribute__((format(printf, format_index, first_index)))
#define CLEANUP(function)                      __attribute__((cleanup(function)))
#define ARRAY_SIZE(array)                      (sizeof(array) / sizeof((array)[0]))
#define CONTAINER_OF(pointer, type, member)    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))
#define MIN(a, b)                              ((a) < (b) ? (a) : (b))
#define MAX(a, b)                              ((a) > (b) ? (a) : (b))

/* Yields the pointer and leaves NULL behind, so that a CLEANUP local no longer frees it. */
#define TAKE_PTR(pointer)                       \
    __extension__({                             \
        __typeof__(pointer) taken_ = (pointer); \
        (pointer) = NULL;                       \
        taken_;                                 \
    })

/* Yields the descriptor and leaves -1 behind. */
#define TAKE_FD(fd)        \
    __extension__({        \
        int taken_ = (fd); \
        (fd) = -1;         \
        taken_;            \
    })

/* For CLEANUP(cleanup_free) on any pointer local. */
static inline void cleanup_free(void *pointer)
{
    free(*(void **)pointer);
}

/* For CLEANUP(cleanup_close) on a descriptor local that starts at -1. Keeps errno. */
static inline void cleanup_close(int *fd)
{
    if (*fd >= 0) {
        int saved = errno;
        close(*fd);
        errno = saved;
        *fd = -1;
    }
}
