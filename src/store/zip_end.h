/*
 * The end of a zip in memory, which says where its list of entries is. What libarchive leaves out: it looks for the end
 * in the last 16 KB, where a comment may be 64 KB long, and it reads the whole list before the first entry can be
 * refused. Pure; internal to store.
 */
#pragma once

#include "base/span.h"

#include <stdint.h>

/* The zip without the comment behind its end; the whole span when there is no end. */
struct span zip_without_comment(struct span zip);
/* How many entries the central directory lists, whatever number the end claims; 0 when it cannot be found. */
uint64_t zip_count_entries(struct span zip);
