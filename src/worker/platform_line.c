/*
 * START, END and REPORT are written for every invocation, so they are put together from pieces rather than by printf,
 * which would cost more than everything else the log does on the warm path.
 */
#include "worker/platform_line.h"
#include "base/clock.h"

#include <stdio.h>

struct line {
    char *text;
    size_t length;
};

static void put(struct line *line, struct span part)
{
    size_t room = PLATFORM_LINE_BYTES - 1 - line->length; /* the newline always fits */
    size_t length = MIN(part.length, room);

    if (length)
        memcpy(line->text + line->length, part.data, length);
    line->length += length;
}

static void put_text(struct line *line, const char *text)
{
    put(line, span_from(text));
}

static void put_number(struct line *line, uint64_t value)
{
    char digits[20];
    size_t at = sizeof(digits);

    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    put(line, span_of(digits + at, sizeof(digits) - at));
}

/* Milliseconds with two decimals. */
static void put_ms(struct line *line, int64_t ns)
{
    uint64_t hundredths = ((uint64_t)MAX(ns, 0) + 5000) / 10000;
    char decimals[3] = {'.', (char)('0' + hundredths / 10 % 10), (char)('0' + hundredths % 10)};

    put_number(line, hundredths / 100);
    put(line, span_of(decimals, sizeof(decimals)));
    put(line, SPAN(" ms"));
}

static struct span finish(struct line *line)
{
    line->text[line->length++] = '\n';
    return span_of(line->text, line->length);
}

const char *platform_runtime_version(char text[PLATFORM_RUNTIME_BYTES], const char *runtime)
{
    struct span version = span_from(runtime);
    size_t family = 0;

    while (family < version.length && version.data[family] >= 'a' && version.data[family] <= 'z')
        family++;
    version = span_slice(version, family, version.length);
    if (version.length && version.data[0] == '.')
        version = span_slice(version, 1, version.length);
    if (span_ends_with(version, SPAN(".x")))
        version.length -= 2;
    snprintf(text, PLATFORM_RUNTIME_BYTES, "%.*s:%.*s.v1", (int)family, runtime, SPAN_ARG(version));
    return text;
}

struct span platform_line_init_start(char text[PLATFORM_LINE_BYTES], const char *runtime, const char *arn)
{
    struct line line = {text, 0};
    char version[PLATFORM_RUNTIME_BYTES];

    put_text(&line, "INIT_START Runtime Version: ");
    put_text(&line, platform_runtime_version(version, runtime));
    if (arn) {
        put_text(&line, "\tRuntime Version ARN: ");
        put_text(&line, arn);
    }
    return finish(&line);
}

struct span platform_line_start(char text[PLATFORM_LINE_BYTES], const char *request_id, const char *version)
{
    struct line line = {text, 0};

    put(&line, SPAN("START RequestId: "));
    put_text(&line, request_id);
    put(&line, SPAN(" Version: "));
    put_text(&line, version);
    return finish(&line);
}

struct span platform_line_end(char text[PLATFORM_LINE_BYTES], const char *request_id)
{
    struct line line = {text, 0};

    put(&line, SPAN("END RequestId: "));
    put_text(&line, request_id);
    return finish(&line);
}

static void put_status(struct line *line, enum platform_status status, const char *error_type)
{
    switch (status) {
    case PLATFORM_SUCCESS:
        break;
    case PLATFORM_TIMEOUT:
        put(line, SPAN("Status: timeout"));
        break;
    case PLATFORM_ERROR:
        put(line, SPAN("Status: error\tError Type: "));
        put_text(line, error_type);
        break;
    }
}

struct span platform_line_report(char text[PLATFORM_LINE_BYTES], const struct platform_report *report)
{
    struct line line = {text, 0};

    put(&line, SPAN("REPORT RequestId: "));
    put_text(&line, report->request_id);
    put(&line, SPAN("\tDuration: "));
    put_ms(&line, report->duration_ns);
    put(&line, SPAN("\tBilled Duration: "));
    put_number(&line, platform_billed_ms(report->duration_ns, report->init_ns));
    put(&line, SPAN(" ms\tMemory Size: "));
    put_number(&line, report->memory_mib);
    put(&line, SPAN(" MB\tMax Memory Used: "));
    put_number(&line, report->memory_used_mib);
    put(&line, SPAN(" MB\t"));
    if (report->init_ns >= 0) {
        put(&line, SPAN("Init Duration: "));
        put_ms(&line, report->init_ns);
        put(&line, SPAN("\t"));
    }
    put_status(&line, report->status, report->error_type);
    return finish(&line);
}

struct span platform_line_init_report(char text[PLATFORM_LINE_BYTES], int64_t init_ns, const char *phase,
                                      enum platform_status status, const char *error_type)
{
    struct line line = {text, 0};

    put(&line, SPAN("INIT_REPORT Init Duration: "));
    put_ms(&line, init_ns);
    put(&line, SPAN("\tPhase: "));
    put_text(&line, phase);
    put(&line, SPAN("\t"));
    if (status == PLATFORM_SUCCESS)
        put(&line, SPAN("Status: success"));
    put_status(&line, status, error_type);
    return finish(&line);
}

struct span platform_line_extension(char text[PLATFORM_LINE_BYTES], const char *name, const char *state,
                                    const char *events, const char *error_type)
{
    struct line line = {text, 0};

    put(&line, SPAN("EXTENSION\tName: "));
    put_text(&line, name);
    put(&line, SPAN("\tState: "));
    put_text(&line, state);
    put(&line, SPAN("\tEvents: ["));
    put_text(&line, events);
    put(&line, SPAN("]"));
    if (error_type[0]) {
        put(&line, SPAN("\tError Type: "));
        put_text(&line, error_type);
    }
    return finish(&line);
}

struct span platform_line_subscription(char text[PLATFORM_LINE_BYTES], const char *api, const char *name,
                                       unsigned types)
{
    static const char *const names[] = {"Platform", "Function", "Extension"};
    struct line line = {text, 0};
    const char *separator = "";

    put_text(&line, api);
    put(&line, SPAN("\tName: "));
    put_text(&line, name);
    put(&line, SPAN("\tState: Subscribed\tTypes: ["));
    for (size_t i = 0; i < 3; i++) {
        if (!(types >> i & 1))
            continue;
        put_text(&line, separator);
        put_text(&line, names[i]);
        separator = ", ";
    }
    put(&line, SPAN("]"));
    return finish(&line);
}

uint64_t platform_billed_ms(int64_t duration_ns, int64_t init_ns)
{
    int64_t billed_ns = MAX(duration_ns, 0) + MAX(init_ns, 0);

    return (uint64_t)((billed_ns + NS_PER_MS - 1) / NS_PER_MS);
}
