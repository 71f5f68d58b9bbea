#include "sim/trace.h"

#include "base/clock.h"

#include <math.h>
#include <stdbool.h>

#define LONGEST_S 1e9

int trace_open(struct trace *trace, const char *path, struct fault *fault)
{
    *trace = (struct trace){.file = fopen(path, "re")};
    if (!trace->file)
        return fault_set(fault, errno, "cannot open the trace '%s': %s", path, strerror(errno));
    return 0;
}

void trace_close(struct trace *trace)
{
    if (trace->file)
        fclose(trace->file);
    free(trace->line);
    *trace = (struct trace){0};
}

/* A decimal number, all of the field; the line is NUL-terminated behind it. */
static bool parse_number(struct span field, double maximum, double *ret_number)
{
    char text[40], *end;

    field = span_trim(field);
    if (!field.length || field.length >= sizeof(text))
        return false;
    memcpy(text, field.data, field.length);
    text[field.length] = '\0';
    *ret_number = strtod(text, &end);
    return end == text + field.length && *ret_number >= 0 && *ret_number <= maximum;
}

static bool is_passed_over(struct trace *trace, struct span line)
{
    if (!line.length || line.data[0] == '#')
        return true;
    return trace->number == 1 && span_starts_with(line, SPAN("seconds"));
}

static int parse_line(struct trace *trace, struct span line, struct trace_entry *ret_entry, struct fault *fault)
{
    struct span rest = line, seconds_text = span_cut(&rest, ','), function = span_cut(&rest, ',');
    double seconds, duration_ms;

    if (!parse_number(seconds_text, LONGEST_S, &seconds))
        return fault_set(fault, 0, "line %d: '%.*s' is not a time in seconds", trace->number, SPAN_ARG(seconds_text));
    ret_entry->at_ns = (int64_t)llround(seconds * (double)NS_PER_S);
    if (ret_entry->at_ns < trace->last_ns)
        return fault_set(fault, 0, "line %d: is earlier than the line before; the file must be in order of time",
                         trace->number);
    trace->last_ns = ret_entry->at_ns;
    ret_entry->function = span_trim(function);
    ret_entry->duration_ns = -1;
    if (!rest.data || !span_trim(rest).length)
        return 1;
    if (!parse_number(rest, LONGEST_S * 1000, &duration_ms))
        return fault_set(fault, 0, "line %d: '%.*s' is not a duration in milliseconds", trace->number, SPAN_ARG(rest));
    ret_entry->duration_ns = (int64_t)llround(duration_ms * (double)NS_PER_MS);
    return 1;
}

int trace_next(struct trace *trace, struct trace_entry *ret_entry, struct fault *fault)
{
    for (;;) {
        ssize_t length = getline(&trace->line, &trace->capacity, trace->file);
        struct span line;
        if (length < 0)
            return ferror(trace->file) ? fault_set(fault, EIO, "cannot be read") : 0;
        trace->number++;
        line = span_of(trace->line, (size_t)length);
        while (line.length && strchr("\r\n", line.data[line.length - 1]))
            line.length--;
        line = span_trim(line);
        if (!is_passed_over(trace, line))
            return parse_line(trace, line, ret_entry, fault);
    }
}
