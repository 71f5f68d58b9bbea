#include "base/log.h"

#include "base/buffer.h"
#include "base/clock.h"

#include <stdarg.h>
#include <stdio.h>

static const char *const level_names[] = {"debug", "info", "warning", "error"};

static size_t json_escape(char *out, size_t room, const char *text)
{
    size_t length = 0;

    for (; *text && length + 7 < room; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            out[length++] = '\\', out[length++] = (char)c;
        else if (c < 0x20)
            length += (size_t)snprintf(out + length, room - length, "\\u%04x", c);
        else
            out[length++] = (char)c;
    }
    out[length] = '\0';
    return length;
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
    if (log->format == LOG_FORMAT_JSON) {
        json_escape(escaped, sizeof(escaped), text);
        length = snprintf(line, sizeof(line), "{\"time\":\"%s\",\"level\":\"%s\",\"message\":\"%s\"}\n", when,
                          level_names[level], escaped);
    } else {
        length = snprintf(line, sizeof(line), "%s %s %s\n", when, level_names[level], text);
    }
    if (length > 0) {
        ssize_t written = write(log->fd, line, MIN((size_t)length, sizeof(line) - 1));
        (void)written; /* nowhere left to complain */
    }
}
