#include "base/log.h"

#include "base/buffer.h"
#include "base/clock.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

static const char *const level_names[] = {"debug", "info", "warning", "error"};

/*
 * The text as it goes between quotes in JSON: quotes, backslashes and control characters escaped. The text format only
 * escapes the last, so that no name from outside can forge a line or steer a terminal. Cut where the room ends.
 */
static void escape(char *out, size_t room, const char *text, bool quotes)
{
    size_t length = 0;

    for (; *text && length + 7 < room; text++) {
        unsigned char c = (unsigned char)*text;
        if (quotes && (c == '"' || c == '\\'))
            out[length++] = '\\', out[length++] = (char)c;
        else if (c == '\n')
            out[length++] = '\\', out[length++] = 'n';
        else if (c < 0x20)
            length += (size_t)snprintf(out + length, room - length, "\\u%04x", c);
        else
            out[length++] = (char)c;
    }
    out[length] = '\0';
}

void log_event(const struct log *log, enum log_level level, const char *format, ...)
{
    char text[4096];
    char escaped[sizeof(text)];
    char line[sizeof(text) + 128];
    char when[CLOCK_ISO_BYTES];
    va_list args;
    int length;

    if (!log || level < log->minimum)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    clock_format_iso(clock_wall_ns(), when);
    escape(escaped, sizeof(escaped), text, log->format == LOG_FORMAT_JSON);
    if (log->format == LOG_FORMAT_JSON)
        length = snprintf(line, sizeof(line), "{\"time\":\"%s\",\"level\":\"%s\",\"message\":\"%s\"}\n", when,
                          level_names[level], escaped);
    else
        length = snprintf(line, sizeof(line), "%s %s %s\n", when, level_names[level], escaped);
    if (length > 0) {
        ssize_t written = write(log->fd, line, MIN((size_t)length, sizeof(line) - 1));
        (void)written; /* nowhere left to complain */
    }
}
