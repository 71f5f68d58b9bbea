#include "worker/platform_event.h"

#include "base/clock.h"
#include "base/encode.h"

#include <stdio.h>

/* An event being put together. The first failure sticks, so that callers ask once, at the end. */
struct event {
    struct buffer *buffer;
    size_t start; /* where the buffer stood */
    bool first;   /* the next member is its object's first */
    bool failed;
};

static void put(struct event *event, struct span text)
{
    event->failed = event->failed || buffer_append_span(event->buffer, text) < 0;
}

static void put_key(struct event *event, const char *key)
{
    put(event, event->first ? SPAN("\"") : SPAN(",\""));
    put(event, span_from(key));
    put(event, SPAN("\":"));
    event->first = false;
}

static void put_string(struct event *event, const char *key, const char *value)
{
    if (!value)
        return;
    put_key(event, key);
    event->failed = event->failed || json_encode_string(span_from(value), event->buffer) < 0;
}

static void put_count(struct event *event, const char *key, uint64_t value)
{
    put_key(event, key);
    event->failed = event->failed || buffer_printf(event->buffer, "%llu", (unsigned long long)value) < 0;
}

/* Milliseconds down to microseconds, without needless zeros: 1233.96, 5000.0 */
static void put_ms(struct event *event, const char *key, int64_t ns)
{
    uint64_t us = ((uint64_t)MAX(ns, 0) + 500) / 1000;
    char text[32];
    int length =
        snprintf(text, sizeof(text), "%llu.%03llu", (unsigned long long)(us / 1000), (unsigned long long)(us % 1000));

    while (text[length - 1] == '0' && text[length - 2] != '.')
        length--;
    put_key(event, key);
    put(event, span_of(text, (size_t)length));
}

static void open_object(struct event *event, const char *key)
{
    put_key(event, key);
    put(event, SPAN("{"));
    event->first = true;
}

static void close_object(struct event *event)
{
    put(event, SPAN("}"));
    event->first = false;
}

static struct event begin(struct buffer *buffer, int64_t wall_ns, const char *type)
{
    struct event event = {.buffer = buffer, .start = buffer->length, .first = true};
    char when[CLOCK_ISO_BYTES];

    put(&event, SPAN("{"));
    put_string(&event, "time", clock_format_iso(wall_ns, when));
    put_string(&event, "type", type);
    open_object(&event, "record");
    return event;
}

static int finish(struct event *event)
{
    close_object(event);
    put(event, SPAN("}"));
    if (event->failed)
        event->buffer->length = event->start;
    return event->failed ? -ENOMEM : 0;
}

static void put_outcome(struct event *event, struct platform_outcome outcome)
{
    static const char *const names[] = {
        [PLATFORM_SUCCESS] = "success", [PLATFORM_TIMEOUT] = "timeout", [PLATFORM_ERROR] = "error"};

    put_string(event, "status", names[outcome.status]);
    if (outcome.status == PLATFORM_ERROR)
        put_string(event, "errorType", outcome.error_type);
}

int platform_event_init_start(struct buffer *buffer, int64_t wall_ns, const struct platform_source *source,
                              const char *phase)
{
    struct event event = begin(buffer, wall_ns, "platform.initStart");
    char version[PLATFORM_RUNTIME_BYTES];

    put_string(&event, "initializationType", source->initialization_type);
    put_string(&event, "phase", phase);
    put_string(&event, "runtimeVersion", platform_runtime_version(version, source->runtime));
    put_string(&event, "runtimeVersionArn", source->runtime_version_arn);
    put_string(&event, "functionName", source->function_name);
    put_string(&event, "functionVersion", source->function_version);
    put_string(&event, "instanceId", source->instance_id);
    put_count(&event, "instanceMaxMemory", (uint64_t)source->memory_mib << 20);
    return finish(&event);
}

int platform_event_init_runtime_done(struct buffer *buffer, int64_t wall_ns, const struct platform_source *source,
                                     const char *phase, struct platform_outcome outcome)
{
    struct event event = begin(buffer, wall_ns, "platform.initRuntimeDone");

    put_string(&event, "initializationType", source->initialization_type);
    put_string(&event, "phase", phase);
    put_outcome(&event, outcome);
    return finish(&event);
}

int platform_event_init_report(struct buffer *buffer, int64_t wall_ns, const struct platform_source *source,
                               const char *phase, struct platform_outcome outcome, int64_t duration_ns)
{
    struct event event = begin(buffer, wall_ns, "platform.initReport");

    put_string(&event, "initializationType", source->initialization_type);
    put_string(&event, "phase", phase);
    put_outcome(&event, outcome);
    open_object(&event, "metrics");
    put_ms(&event, "durationMs", duration_ns);
    close_object(&event);
    return finish(&event);
}

int platform_event_extension(struct buffer *buffer, int64_t wall_ns, const char *name, const char *state,
                             unsigned events, const char *error_type)
{
    static const char *const lists[] = {"[]", "[\"INVOKE\"]", "[\"SHUTDOWN\"]", "[\"INVOKE\",\"SHUTDOWN\"]"};
    struct event event = begin(buffer, wall_ns, "platform.extension");

    put_string(&event, "name", name);
    put_string(&event, "state", state);
    put_key(&event, "events");
    put(&event, span_from(lists[events & 3]));
    put_string(&event, "errorType", error_type[0] ? error_type : NULL);
    return finish(&event);
}

int platform_event_start(struct buffer *buffer, int64_t wall_ns, const struct platform_source *source,
                         const char *request_id, const char *arn)
{
    struct event event = begin(buffer, wall_ns, "platform.start");

    put_string(&event, "requestId", request_id);
    put_string(&event, "functionArn", arn);
    put_string(&event, "version", source->function_version);
    return finish(&event);
}

int platform_event_runtime_done(struct buffer *buffer, int64_t wall_ns, const char *request_id,
                                struct platform_outcome outcome, int64_t duration_ns, uint64_t produced_bytes)
{
    struct event event = begin(buffer, wall_ns, "platform.runtimeDone");

    put_string(&event, "requestId", request_id);
    put_outcome(&event, outcome);
    open_object(&event, "metrics");
    put_ms(&event, "durationMs", duration_ns);
    put_count(&event, "producedBytes", produced_bytes);
    close_object(&event);
    return finish(&event);
}

int platform_event_report(struct buffer *buffer, int64_t wall_ns, const struct platform_report *report)
{
    struct event event = begin(buffer, wall_ns, "platform.report");

    put_string(&event, "requestId", report->request_id);
    open_object(&event, "metrics");
    put_ms(&event, "durationMs", report->duration_ns);
    put_count(&event, "billedDurationMs", platform_billed_ms(report->duration_ns, report->init_ns));
    put_count(&event, "memorySizeMB", report->memory_mib);
    put_count(&event, "maxMemoryUsedMB", report->memory_used_mib);
    if (report->init_ns >= 0)
        put_ms(&event, "initDurationMs", report->init_ns);
    close_object(&event);
    put_outcome(&event, (struct platform_outcome){report->status, report->error_type});
    return finish(&event);
}

int platform_event_logs_dropped(struct buffer *buffer, int64_t wall_ns, uint64_t records, uint64_t bytes,
                                const char *reason)
{
    struct event event = begin(buffer, wall_ns, "platform.logsDropped");

    put_string(&event, "reason", reason);
    put_count(&event, "droppedRecords", records);
    put_count(&event, "droppedBytes", bytes);
    return finish(&event);
}
