/*
 * Levels of log lines, and the level that a function's line of output has for the filter of LoggingConfig: that of its
 * member "level" when it is a JSON object with one, else INFO (guide, "Log-level filtering"). Pure.
 */
#pragma once

#include "base/span.h"

enum log_line_level {
    LOG_LINE_TRACE,
    LOG_LINE_DEBUG,
    LOG_LINE_INFO,
    LOG_LINE_WARN,
    LOG_LINE_ERROR,
    LOG_LINE_FATAL,
};

/* The API's names, in any case, and those of Python's logging: WARNING, CRITICAL. Others: `otherwise`. */
enum log_line_level log_level_parse(struct span name, enum log_line_level otherwise);
/* Members of nested objects do not count. Of a line that is not whole or not JSON, what can be read counts. */
enum log_line_level log_level_of_line(struct span line);
