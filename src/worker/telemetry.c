#include "worker/telemetry.h"

#include "base/clock.h"
#include "base/encode.h"
#include "worker/environment.h"
#include "worker/environment_extensions.h"
#include "worker/telemetry_subscriber.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

enum { BACKLOG_BYTES = 256 * 1024, ALL_APIS = TELEMETRY_APIS | LOGS_API };

struct subscription {
    char id[UUID_BYTES]; /* of the extension */
    struct telemetry_subscriber *subscriber;
    uint32_t tag; /* of the socket it waits for; 0: none */
};

struct telemetry {
    struct environment *environment;
    struct subscription list[EXTENSIONS_MAX];
    size_t count;
    struct buffer backlog; /* struct kept, bytes, ... */
    bool init_ended;
    bool runtime_done;
    int64_t event_ns, answer_ns; /* of the invocation; 0: not yet */
    size_t produced_bytes;
};

/* An event in the backlog; its bytes follow. */
struct kept {
    unsigned type, apis;
    size_t length;
};

/* --- the object --------------------------------------------------------------------------------------------------- */

static int ensure(struct environment *environment)
{
    if (environment->telemetry)
        return 0;
    environment->telemetry = calloc(1, sizeof(*environment->telemetry));
    if (!environment->telemetry)
        return -ENOMEM;
    environment->telemetry->environment = environment;
    return 0;
}

void telemetry_forget(struct environment *environment)
{
    struct telemetry *telemetry = TAKE_PTR(environment->telemetry);

    if (!telemetry)
        return;
    for (size_t i = 0; i < telemetry->count; i++)
        telemetry_subscriber_free(telemetry->list[i].subscriber);
    buffer_deinit(&telemetry->backlog);
    free(telemetry);
}

void telemetry_end_init(struct environment *environment)
{
    struct telemetry *telemetry = environment->telemetry;

    if (!telemetry)
        return;
    telemetry->init_ended = true;
    buffer_deinit(&telemetry->backlog);
    if (!telemetry->count)
        telemetry_forget(environment);
}

/* --- events ------------------------------------------------------------------------------------------------------- */

static void keep(struct telemetry *telemetry, enum telemetry_type type, unsigned apis, struct span event)
{
    struct kept kept = {.type = type, .apis = apis, .length = event.length};
    struct buffer *backlog = &telemetry->backlog;

    if (telemetry->init_ended || backlog->length + event.length > BACKLOG_BYTES ||
        buffer_reserve(backlog, sizeof(kept) + event.length) < 0)
        return;
    memcpy(backlog->data + backlog->length, &kept, sizeof(kept));
    memcpy(backlog->data + backlog->length + sizeof(kept), event.data, event.length);
    backlog->length += sizeof(kept) + event.length;
}

static bool wants(const struct subscription *subscription, enum telemetry_type type, unsigned apis)
{
    const struct telemetry_settings *settings = telemetry_subscriber_settings(subscription->subscriber);

    return (settings->types & type) && (settings->api & apis);
}

/* {"time":T,"type":TYPE,"record":RECORD} */
static int wrap(struct buffer *event, const char *type, int64_t wall_ns, const struct buffer *record)
{
    char when[CLOCK_ISO_BYTES];
    int r = buffer_printf(event, "{\"time\":\"%s\",\"type\":\"%s\",\"record\":", clock_format_iso(wall_ns, when), type);

    if (r == 0)
        r = buffer_append_span(event, buffer_span(record));
    return r < 0 ? r : buffer_append_char(event, '}');
}

static void emit_event(struct telemetry *telemetry, enum telemetry_type type, unsigned apis, struct span event)
{
    for (size_t i = 0; i < telemetry->count; i++)
        if (wants(&telemetry->list[i], type, apis))
            telemetry_subscriber_add(telemetry->list[i].subscriber, event);
    keep(telemetry, type, apis, event);
}

/* One that has been built in the worker's buffer; `r` says how that went. Out of memory it is left out. */
static void emit_built(struct telemetry *telemetry, unsigned apis, int r)
{
    struct buffer *event = &telemetry->environment->worker->event;

    if (r == 0)
        emit_event(telemetry, TELEMETRY_PLATFORM, apis, buffer_span(event));
    event->length = 0;
}

static void emit(struct telemetry *telemetry, enum telemetry_type type, unsigned apis, const char *name,
                 const struct buffer *record)
{
    CLEANUP(buffer_deinit) struct buffer event = BUFFER_INIT;

    if (wrap(&event, name, clock_wall_ns(), record) == 0)
        emit_event(telemetry, type, apis, buffer_span(&event));
}

/* A record under construction; out of memory is sticky and leaves it out. */
struct record {
    struct buffer buffer;
    bool failed;
};

static void record_deinit(struct record *record)
{
    buffer_deinit(&record->buffer);
}

#define RECORD(name) CLEANUP(record_deinit) struct record name = {.failed = false}

static void PRINTF_LIKE(2, 3) put(struct record *record, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    record->failed = record->failed || buffer_vprintf(&record->buffer, format, args) < 0;
    va_end(args);
}

/* `before` up to the colon, then the text as a JSON string. */
static void put_string(struct record *record, const char *before, struct span text)
{
    put(record, "%s", before);
    record->failed = record->failed || json_encode_string(text, &record->buffer) < 0;
}

static void send_record(struct telemetry *telemetry, unsigned apis, const char *name, const struct record *record)
{
    if (!record->failed)
        emit(telemetry, TELEMETRY_PLATFORM, apis, name, &record->buffer);
}

static double ms(int64_t ns)
{
    return (double)MAX(ns, 0) / NS_PER_MS;
}

/* The status of the Telemetry API, where the service's own failures are told apart. */
static const char *status_name(struct platform_outcome outcome)
{
    switch (outcome.status) {
    case PLATFORM_SUCCESS:
        return "success";
    case PLATFORM_TIMEOUT:
        return "timeout";
    case PLATFORM_ERROR:
        break;
    }
    return outcome.error_type && strncmp(outcome.error_type, "Sandbox.", 8) == 0 ? "failure" : "error";
}

static void put_status(struct record *record, struct platform_outcome outcome)
{
    put_string(record, ",\"status\":", span_from(status_name(outcome)));
    if (outcome.status == PLATFORM_ERROR && outcome.error_type)
        put_string(record, ",\"errorType\":", span_from(outcome.error_type));
}

/* --- Init --------------------------------------------------------------------------------------------------------- */

static int make_init_start(const struct environment *environment, struct buffer *event)
{
    const struct platform_source source = environment_source(environment);
    int64_t started_ns = environment->init_start_ns ? clock_monotonic_ns() - environment->init_start_ns : 0;

    return platform_event_init_start(event, clock_wall_ns() - started_ns, &source, environment_phase(environment));
}

void telemetry_init_runtime_done(struct environment *environment, struct platform_outcome outcome)
{
    const struct platform_source source = environment_source(environment);

    /* An extension may be about to subscribe still. */
    if (!environment->telemetry && (!environment->extensions || ensure(environment) < 0))
        return;
    if (environment->telemetry->runtime_done)
        return;
    environment->telemetry->runtime_done = true;
    emit_built(environment->telemetry, TELEMETRY_APIS,
               platform_event_init_runtime_done(&environment->worker->event, clock_wall_ns(), &source,
                                                environment_phase(environment), outcome));
}

void telemetry_init_report(struct environment *environment, int64_t init_ns, struct platform_outcome outcome)
{
    const struct platform_source source = environment_source(environment);

    if (environment->telemetry)
        emit_built(environment->telemetry, TELEMETRY_APIS,
                   platform_event_init_report(&environment->worker->event, clock_wall_ns(), &source,
                                              environment_phase(environment), outcome, init_ns));
}

static void put_list(struct record *record, const char *before, const char *const *names, unsigned bits)
{
    const char *separator = "";

    put(record, "%s[", before);
    for (; *names; names++, bits >>= 1) {
        if (!(bits & 1))
            continue;
        put(record, "%s\"%s\"", separator, *names);
        separator = ",";
    }
    put(record, "]");
}

void telemetry_extension(struct environment *environment, const struct extension *extension)
{
    if (environment->telemetry)
        emit_built(environment->telemetry, ALL_APIS,
                   platform_event_extension(&environment->worker->event, clock_wall_ns(), extension->name,
                                            extension_state_name(extension->state), extension->events,
                                            extension->error_type));
}

/* --- subscriptions ------------------------------------------------------------------------------------------------ */

static int request_socket(struct telemetry_subscriber *subscriber, void *context)
{
    struct telemetry *telemetry = context;
    struct environment *environment = telemetry->environment;
    struct subscription *subscription = telemetry->list;

    while (subscription->subscriber != subscriber)
        subscription++;
    subscription->tag = ++environment->last_run; /* numbers of the environment that are used once */
    return launcher_socket(environment->worker->config.launcher, environment->id, subscription->tag);
}

static bool is_frozen(void *context)
{
    return ((struct telemetry *)context)->environment->frozen;
}

/* What has been from the start of this Init on. */
static void replay(struct telemetry *telemetry, struct subscription *subscription)
{
    CLEANUP(buffer_deinit) struct buffer event = BUFFER_INIT;
    struct span rest = buffer_span(&telemetry->backlog);
    struct kept kept;

    if (wants(subscription, TELEMETRY_PLATFORM, TELEMETRY_APIS) && make_init_start(telemetry->environment, &event) == 0)
        telemetry_subscriber_add(subscription->subscriber, buffer_span(&event));
    while (rest.length) {
        memcpy(&kept, rest.data, sizeof(kept));
        rest = span_slice(rest, sizeof(kept), rest.length);
        if (wants(subscription, kept.type, kept.apis))
            telemetry_subscriber_add(subscription->subscriber, span_slice(rest, 0, kept.length));
        rest = span_slice(rest, kept.length, rest.length);
    }
}

static void log_subscription(struct environment *environment, const struct extension *extension,
                             const struct telemetry_settings *settings, const char *type, const struct buffer *record)
{
    CLEANUP(buffer_deinit) struct buffer event = BUFFER_INIT;
    char text[PLATFORM_LINE_BYTES];

    if (!environment->logging.json)
        environment_log_line(environment,
                             platform_line_subscription(text, settings->api == LOGS_API ? "LOGS" : "TELEMETRY",
                                                        extension->name, settings->types));
    else if (environment->logging.system <= LOG_LINE_INFO && wrap(&event, type, clock_wall_ns(), record) == 0 &&
             buffer_append_char(&event, '\n') == 0)
        environment_log_line(environment, buffer_span(&event));
}

static void announce(struct telemetry *telemetry, const struct extension *extension,
                     const struct telemetry_settings *settings)
{
    static const char *const types[] = {"platform", "function", "extension", NULL};
    const char *type = settings->api == LOGS_API ? "platform.logsSubscription" : "platform.telemetrySubscription";
    RECORD(record);

    put_string(&record, "{\"name\":", span_from(extension->name));
    put_list(&record, ",\"state\":\"Subscribed\",\"types\":", types, settings->types);
    put(&record, "}");
    if (record.failed)
        return;
    log_subscription(telemetry->environment, extension, settings, type, &record.buffer);
    send_record(telemetry, settings->api == LOGS_API ? LOGS_API : TELEMETRY_APIS, type, &record);
}

static struct subscription *find(struct telemetry *telemetry, const struct extension *extension)
{
    for (size_t i = 0; i < telemetry->count; i++)
        if (strcmp(telemetry->list[i].id, extension->id) == 0)
            return &telemetry->list[i];
    return NULL;
}

int telemetry_subscribe(struct environment *environment, struct extension *extension,
                        const struct telemetry_settings *settings)
{
    struct telemetry_network network = {environment->worker->config.loop, request_socket, is_frozen, NULL};
    struct telemetry_subscriber *subscriber;
    struct subscription *subscription;

    if (ensure(environment) < 0)
        return -ENOMEM;
    subscription = find(environment->telemetry, extension);
    if (subscription &&
        (telemetry_subscriber_settings(subscription->subscriber)->api == LOGS_API) != (settings->api == LOGS_API))
        return 1;
    network.context = environment->telemetry;
    subscriber = telemetry_subscriber_new(settings, &network);
    if (!subscriber)
        return -ENOMEM;
    if (!subscription)
        subscription = &environment->telemetry->list[environment->telemetry->count++];
    telemetry_subscriber_free(subscription->subscriber);
    *subscription = (struct subscription){.subscriber = subscriber};
    memcpy(subscription->id, extension->id, sizeof(subscription->id));
    replay(environment->telemetry, subscription);
    announce(environment->telemetry, extension, settings);
    return 0;
}

void telemetry_on_socket(struct environment *environment, uint32_t tag, int fd)
{
    struct telemetry *telemetry = environment->telemetry;

    for (size_t i = 0; telemetry && i < telemetry->count; i++) {
        if (telemetry->list[i].tag != tag)
            continue;
        telemetry->list[i].tag = 0;
        telemetry_subscriber_on_socket(telemetry->list[i].subscriber, fd);
        return;
    }
    cleanup_close(&fd);
}

void telemetry_flush(struct environment *environment)
{
    struct telemetry *telemetry = environment->telemetry;

    for (size_t i = 0; telemetry && i < telemetry->count; i++)
        telemetry_subscriber_flush(telemetry->list[i].subscriber);
}

void telemetry_on_thaw(struct environment *environment)
{
    struct telemetry *telemetry = environment->telemetry;

    for (size_t i = 0; telemetry && i < telemetry->count; i++)
        telemetry_subscriber_on_thaw(telemetry->list[i].subscriber);
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

static bool is_json_object(struct span text)
{
    json_t *value;
    bool is_object;

    if (!text.length || text.data[0] != '{')
        return false;
    value = json_loadb(text.data, text.length, 0, NULL);
    is_object = json_is_object(value);
    json_decref(value);
    return is_object;
}

/* A line of a log in the JSON format is a record as it is; whatever else is a string. */
static void emit_line(struct telemetry *telemetry, enum telemetry_type type, struct span line)
{
    const char *name = type == TELEMETRY_FUNCTION ? "function" : "extension";
    CLEANUP(buffer_deinit) struct buffer record = BUFFER_INIT;
    unsigned apis = ALL_APIS;

    if (type == TELEMETRY_FUNCTION && telemetry->environment->logging.json && is_json_object(line)) {
        if (buffer_append_span(&record, line) == 0)
            emit(telemetry, type, TELEMETRY_API, name, &record);
        apis &= ~(unsigned)TELEMETRY_API;
        record.length = 0;
    }
    if (json_encode_string(line, &record) == 0)
        emit(telemetry, type, apis, name, &record);
}

void telemetry_line(struct environment *environment, enum telemetry_type type, struct span line)
{
    if (!environment->telemetry && (environment->state != ENVIRONMENT_INIT || ensure(environment) < 0))
        return;
    if (span_ends_with(line, SPAN("\n")))
        line.length--;
    emit_line(environment->telemetry, type, line);
}

/* --- invocations -------------------------------------------------------------------------------------------------- */

void telemetry_start(struct environment *environment)
{
    const struct invocation *invocation = environment->invocation;
    struct telemetry *telemetry = environment->telemetry;
    struct platform_source source;

    if (!telemetry)
        return;
    source = environment_source(environment);
    telemetry->runtime_done = false;
    telemetry->event_ns = clock_monotonic_ns();
    telemetry->answer_ns = 0;
    telemetry->produced_bytes = 0;
    emit_built(telemetry, ALL_APIS,
               platform_event_start(&environment->worker->event, clock_wall_ns(), &source, invocation->request_id,
                                    invocation->invoked_arn));
}

void telemetry_answered(struct environment *environment, size_t bytes)
{
    if (!environment->telemetry)
        return;
    environment->telemetry->answer_ns = clock_monotonic_ns();
    environment->telemetry->produced_bytes = bytes;
}

static void put_span(struct record *record, const char *name, int64_t from_ns, int64_t to_ns, int64_t now_ns)
{
    char when[CLOCK_ISO_BYTES];

    put(record, "{\"name\":\"%s\",\"start\":\"%s\",\"durationMs\":%.3f}", name,
        clock_format_iso(clock_wall_ns() - (now_ns - from_ns), when), ms(to_ns - from_ns));
}

static void put_runtime_done(struct record *record, const struct telemetry *telemetry)
{
    int64_t now_ns = clock_monotonic_ns();

    put(record, ",\"metrics\":{\"durationMs\":%.3f,\"producedBytes\":%zu}", ms(now_ns - telemetry->event_ns),
        telemetry->produced_bytes);
    if (!telemetry->answer_ns)
        return;
    put(record, ",\"spans\":[");
    put_span(record, "responseLatency", telemetry->event_ns, telemetry->answer_ns, now_ns);
    put(record, ",");
    put_span(record, "responseDuration", telemetry->answer_ns, telemetry->answer_ns, now_ns);
    put(record, ",");
    put_span(record, "runtimeOverhead", telemetry->answer_ns, now_ns, now_ns);
    put(record, "]");
}

void telemetry_runtime_done(struct environment *environment, struct platform_outcome outcome)
{
    struct telemetry *telemetry = environment->telemetry;
    RECORD(logs);
    RECORD(record);

    if (!telemetry || telemetry->runtime_done)
        return;
    telemetry->runtime_done = true;
    put(&record, "{\"requestId\":\"%s\"", environment->invocation->request_id);
    put_status(&record, outcome);
    put_runtime_done(&record, telemetry);
    put(&record, "}");
    send_record(telemetry, TELEMETRY_APIS, "platform.runtimeDone", &record);
    put(&logs, "{\"requestId\":\"%s\",\"status\":\"%s\"}", environment->invocation->request_id,
        outcome.status == PLATFORM_ERROR ? "failure" : status_name(outcome));
    send_record(telemetry, LOGS_API, "platform.runtimeDone", &logs);
}

void telemetry_fault(struct environment *environment, struct span text)
{
    RECORD(record);

    if (!environment->telemetry)
        return;
    put_string(&record, "", text);
    send_record(environment->telemetry, LOGS_API, "platform.fault", &record);
}

/* As in the Telemetry API, but without the outcome. */
static void send_logs_report(struct telemetry *telemetry, const struct platform_report *report)
{
    RECORD(record);

    put(&record,
        "{\"requestId\":\"%s\",\"metrics\":{\"durationMs\":%.3f,\"billedDurationMs\":%" PRIu64
        ",\"memorySizeMB\":%u,\"maxMemoryUsedMB\":%u",
        report->request_id, ms(report->duration_ns), platform_billed_ms(report->duration_ns, report->init_ns),
        report->memory_mib, report->memory_used_mib);
    if (report->init_ns >= 0)
        put(&record, ",\"initDurationMs\":%.3f", ms(report->init_ns));
    put(&record, "}}");
    send_record(telemetry, LOGS_API, "platform.report", &record);
}

void telemetry_report(struct environment *environment, const struct platform_report *report)
{
    struct telemetry *telemetry = environment->telemetry;
    RECORD(end);

    if (!telemetry)
        return;
    put(&end, "{\"requestId\":\"%s\"}", report->request_id);
    send_record(telemetry, LOGS_API, "platform.end", &end);
    send_logs_report(telemetry, report);
    emit_built(telemetry, TELEMETRY_APIS, platform_event_report(&environment->worker->event, clock_wall_ns(), report));
}
