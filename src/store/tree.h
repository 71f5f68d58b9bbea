/*
 * Directory trees that may hold anything a hostile zip can name: everything goes from descriptor to descriptor, no link
 * is followed. The trees are ours alone while these run. Internal to store.
 */
#pragma once

#include "base/macros.h"

#include <stdbool.h>
#include <stdint.h>

/* Opens the directory `name` itself, not what a link of that name leads to. -errno. */
int tree_open(int parent_fd, const char *name, int *ret_fd) MUST_USE;

/*
 * Removes `name` and all below it, also out of directories without write permission. 0 when it is not there. `*stop`
 * (may be NULL) ends it early with -ECANCELED.
 */
int tree_remove(int parent_fd, const char *name, const _Atomic bool *stop) MUST_USE;

/* The sizes of all regular files below, summed. Directories that we may not read count as empty. */
int tree_measure(int parent_fd, const char *name, uint64_t *ret_bytes) MUST_USE;

/* Everything below `fd` (a directory), and it itself, is on disk when it returns 0. */
int tree_sync(int fd) MUST_USE;
