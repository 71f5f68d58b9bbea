/*
 * The log files on disk, for the writer: appending to a stream's file, rotating it, and sweeping away what is too old.
 * Blocks: for the thread pool.
 *
 * A stream's newest records are in STREAM.log. When they would make it larger than `file_bytes` it becomes
 * STREAM.N.log, N counting up from 1, and a new one is begun; the stream's order is that of N, then STREAM.log. With
 * `stream_bytes` the oldest of them go when all together would be larger.
 */
#pragma once

#include "base/span.h"

struct log_file_limits {
    uint64_t file_bytes;   /* 0: 64 MiB */
    uint64_t stream_bytes; /* 0: no limit */
};

/* Appends `bytes` to DIRECTORY/PATH, whose last four characters are ".log", making folders as needed. All or nothing: a
 * full disk does not leave half a record behind. `ret_removed` gets the bytes of older files that had to go. 0 or
 * -errno. */
int log_file_append(const char *directory, const char *path, struct span bytes, const struct log_file_limits *limits,
                    uint64_t *ret_removed) MUST_USE;

/* Removes the files that were last written before `before_wall_ns`, and folders that this leaves empty. Returns how
 * many files, or -errno where the directory cannot be read. */
int log_files_sweep(const char *directory, int64_t before_wall_ns) MUST_USE;
