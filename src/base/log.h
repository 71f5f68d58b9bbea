/*
 * The daemon's own log: one line an event to standard error, as text or JSON. Passed down from main; safe to call from
 * any thread (one write per line). Whoever decides what to do about a failure logs it once; inner code does not log.
 */
#pragma once

#include "base/macros.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR };
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

struct log {
    int fd;                 /* borrowed, usually 2 */
    enum log_format format; /* --log-format */
    enum log_level minimum; /* lines below it are dropped */
};

/* One event; `format` gives a sentence without a final newline. Lines past 4 KB are cut. A NULL log drops it. */
void log_event(const struct log *log, enum log_level level, const char *format, ...) PRINTF_LIKE(3, 4);
