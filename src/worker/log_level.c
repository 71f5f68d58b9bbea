/*
 * A line is looked at once, without building anything: strings are skipped over, brackets counted, and only the keys of
 * the outermost object compared. Most lines are told by their first byte.
 */
#include "worker/log_level.h"

enum log_line_level log_level_parse(struct span name, enum log_line_level otherwise)
{
    static const struct {
        struct span name;
        enum log_line_level level;
    } names[] = {
        {SPAN("TRACE"), LOG_LINE_TRACE},  {SPAN("DEBUG"), LOG_LINE_DEBUG},    {SPAN("INFO"), LOG_LINE_INFO},
        {SPAN("WARN"), LOG_LINE_WARN},    {SPAN("ERROR"), LOG_LINE_ERROR},    {SPAN("FATAL"), LOG_LINE_FATAL},
        {SPAN("WARNING"), LOG_LINE_WARN}, {SPAN("CRITICAL"), LOG_LINE_FATAL},
    };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (span_equal_nocase(name, names[i].name))
            return names[i].level;
    return otherwise;
}

struct scan {
    struct span text;
    size_t at;
};

static char peek(const struct scan *scan)
{
    return scan->at < scan->text.length ? scan->text.data[scan->at] : '\0';
}

static void skip_blanks(struct scan *scan)
{
    while (scan->at < scan->text.length && strchr(" \t\r\n", scan->text.data[scan->at]))
        scan->at++;
}

/* The inside of the string that begins here, escapes as they are. */
static struct span take_string(struct scan *scan)
{
    size_t start = ++scan->at;

    while (scan->at < scan->text.length && scan->text.data[scan->at] != '"')
        scan->at += scan->text.data[scan->at] == '\\' ? 2 : 1;
    scan->at = MIN(scan->at, scan->text.length);
    return span_slice(scan->text, start, scan->at++);
}

/* The value of "level" behind its key; empty when it is no string. */
static struct span take_value(struct scan *scan)
{
    skip_blanks(scan);
    return peek(scan) == '"' ? take_string(scan) : SPAN("");
}

enum log_line_level log_level_of_line(struct span line)
{
    struct scan scan = {.text = line};
    unsigned depth = 0;

    skip_blanks(&scan);
    if (peek(&scan) != '{')
        return LOG_LINE_INFO;
    while (scan.at < line.length) {
        char c = peek(&scan);
        struct span string;

        if (c == '"') {
            string = take_string(&scan);
            skip_blanks(&scan);
            if (depth != 1 || peek(&scan) != ':')
                continue;
            scan.at++;
            if (span_equal(string, SPAN("level")))
                return log_level_parse(take_value(&scan), LOG_LINE_INFO);
            continue;
        }
        if (c == '{' || c == '[')
            depth++;
        else if ((c == '}' || c == ']') && depth-- == 1)
            break;
        scan.at++;
    }
    return LOG_LINE_INFO;
}
