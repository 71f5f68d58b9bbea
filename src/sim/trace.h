/*
 * Trace files: one request a line, `seconds,function,duration_ms`, in order of time; an optional first line with these
 * names, blank lines and lines that begin with # are passed over. Read line by line: a trace may be larger than memory.
 */
#pragma once

#include "base/fault.h"
#include "base/span.h"

#include <stdio.h>

struct trace {
    FILE *file;
    char *line;
    size_t capacity;
    int number; /* of the line */
    int64_t last_ns;
};

struct trace_entry {
    int64_t at_ns;
    struct span function; /* borrowed until the next call */
    int64_t duration_ns;  /* -1: none given, as long as the version takes */
};

/* -errno with a sentence. */
int trace_open(struct trace *trace, const char *path, struct fault *fault) MUST_USE;
void trace_close(struct trace *trace);
/* 1: an entry; 0: the end; -EINVAL: "line N: what is wrong". */
int trace_next(struct trace *trace, struct trace_entry *ret_entry, struct fault *fault) MUST_USE;
