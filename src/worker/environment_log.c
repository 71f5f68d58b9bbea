/*
 * What the service itself writes into an environment's log, in the format of the function's LoggingConfig: lines of
 * text (platform_line.h), or the events of platform_event.h at the levels that the guide gives them ("System log level
 * event mapping"). The text of a timeout or of the runtime's exit stands in text logs only: in JSON the status and the
 * errorType of the events say it.
 */
#include "worker/environment.h"

#include "worker/platform_event.h"
#include "worker/telemetry.h"

#include <stdio.h>

void environment_log_line(struct environment *environment, struct span line)
{
    function_log_line(environment->log, line, clock_wall_ns());
}

static bool shows(const struct environment *environment, enum log_line_level level)
{
    return level >= environment->logging.system;
}

/* Writes the event that has just been built in the worker's buffer. */
static void write_event(struct environment *environment, int64_t wall_ns, int r)
{
    struct buffer *event = &environment->worker->event;

    if (r == 0 && buffer_append_char(event, '\n') == 0)
        function_log_line(environment->log, buffer_span(event), wall_ns);
    event->length = 0;
}

struct platform_source environment_source(const struct environment *environment)
{
    const struct environment_spec *spec = &environment->spec;

    return (struct platform_source){
        .initialization_type = environment_origin_name(spec->origin),
        .runtime = spec->runtime,
        .runtime_version_arn = spec->runtime_version_arn,
        .function_name = spec->function_name,
        .function_version = spec->version,
        .instance_id = environment->instance_id,
        .memory_mib = spec->memory_mib,
    };
}

const char *environment_phase(const struct environment *environment)
{
    return environment->invocation ? "invoke" : "init";
}

void environment_log_init_start(struct environment *environment)
{
    const struct environment_spec *spec = &environment->spec;
    const struct platform_source source = environment_source(environment);
    int64_t wall_ns = clock_wall_ns();
    char text[PLATFORM_LINE_BYTES];

    if (!environment->logging.json)
        function_log_line(environment->log, platform_line_init_start(text, spec->runtime, spec->runtime_version_arn),
                          wall_ns);
    else if (shows(environment, LOG_LINE_INFO))
        write_event(
            environment, wall_ns,
            platform_event_init_start(&environment->worker->event, wall_ns, &source, environment_phase(environment)));
    if (environment->choice.warning[0])
        function_log_line(environment->log, span_from(environment->choice.warning), wall_ns);
}

/* Text has no more than an INIT_REPORT, and that only of a failure or a provisioned environment. */
static void log_init_end_text(struct environment *environment, int64_t init_ns, struct platform_outcome outcome)
{
    char text[PLATFORM_LINE_BYTES];

    if (outcome.status != PLATFORM_SUCCESS || environment->spec.origin == ENVIRONMENT_PROVISIONED)
        environment_log_line(environment, platform_line_init_report(text, init_ns, environment_phase(environment),
                                                                    outcome.status, outcome.error_type));
}

void environment_log_init_end(struct environment *environment, int64_t init_ns, struct platform_outcome outcome)
{
    struct buffer *event = &environment->worker->event;
    const struct platform_source source = environment_source(environment);
    bool failed = outcome.status != PLATFORM_SUCCESS;
    bool provisioned = environment->spec.origin == ENVIRONMENT_PROVISIONED;
    int64_t wall_ns = clock_wall_ns();

    telemetry_init_report(environment, init_ns, outcome);
    if (!environment->logging.json) {
        log_init_end_text(environment, init_ns, outcome);
        return;
    }
    if (shows(environment, failed ? LOG_LINE_WARN : LOG_LINE_DEBUG))
        write_event(environment, wall_ns,
                    platform_event_init_runtime_done(event, wall_ns, &source, environment_phase(environment), outcome));
    if (shows(environment, failed ? LOG_LINE_WARN : provisioned ? LOG_LINE_INFO : LOG_LINE_DEBUG))
        write_event(
            environment, wall_ns,
            platform_event_init_report(event, wall_ns, &source, environment_phase(environment), outcome, init_ns));
}

static const char *extension_event_names(unsigned events)
{
    static const char *const names[] = {"", "INVOKE", "SHUTDOWN", "INVOKE, SHUTDOWN"};

    return names[events & 3];
}

void environment_log_extension(struct environment *environment, const char *name, const char *state, unsigned events,
                               const char *error_type)
{
    char text[PLATFORM_LINE_BYTES];
    int64_t wall_ns = clock_wall_ns();

    if (!environment->logging.json)
        function_log_line(environment->log,
                          platform_line_extension(text, name, state, extension_event_names(events), error_type),
                          wall_ns);
    else if (shows(environment, error_type[0] ? LOG_LINE_WARN : LOG_LINE_INFO))
        write_event(environment, wall_ns,
                    platform_event_extension(&environment->worker->event, wall_ns, name, state, events, error_type));
}

void environment_log_start(struct environment *environment)
{
    const struct invocation *invocation = environment->invocation;
    char text[PLATFORM_LINE_BYTES];
    int64_t wall_ns = clock_wall_ns();

    telemetry_start(environment);
    if (!environment->logging.json) {
        function_log_line(environment->log,
                          platform_line_start(text, invocation->request_id, environment->spec.version), wall_ns);
    } else if (shows(environment, LOG_LINE_INFO)) {
        const struct platform_source source = environment_source(environment);

        write_event(environment, wall_ns,
                    platform_event_start(&environment->worker->event, wall_ns, &source, invocation->request_id,
                                         invocation->invoked_arn));
    }
}

void environment_log_failure(struct environment *environment)
{
    const struct failure *failure = &environment->failure;
    const char *id = environment->invocation->request_id;
    char text[INVOCATION_MESSAGE_BYTES + 256];
    char when[CLOCK_ISO_BYTES];
    int length;

    if (failure->posted.length)
        return; /* the runtime has written what it had to say */
    if (failure->status == PLATFORM_TIMEOUT)
        length =
            snprintf(text, sizeof(text), "%s %s %s\n", clock_format_iso(clock_wall_ns(), when), id, failure->message);
    else
        length = snprintf(text, sizeof(text), "RequestId: %s Error: %s\n%s\n", id, failure->message, failure->type);
    telemetry_fault(environment, span_of(text, (size_t)length - 1));
    if (!environment->logging.json) /* else the events say it */
        environment_log_line(environment, span_of(text, (size_t)length));
}

static void log_end_events(struct environment *environment, const struct platform_report *report, int64_t wall_ns)
{
    struct buffer *event = &environment->worker->event;
    const struct platform_outcome outcome = {report->status, report->error_type};
    bool failed = report->status != PLATFORM_SUCCESS;

    if (shows(environment, failed ? LOG_LINE_WARN : LOG_LINE_DEBUG))
        write_event(environment, wall_ns,
                    platform_event_runtime_done(event, wall_ns, report->request_id, outcome, report->duration_ns,
                                                environment->produced_bytes));
    if (shows(environment, failed ? LOG_LINE_WARN : LOG_LINE_INFO))
        write_event(environment, wall_ns, platform_event_report(event, wall_ns, report));
}

void environment_log_end(struct environment *environment, struct platform_outcome outcome)
{
    char text[PLATFORM_LINE_BYTES];
    int64_t now_ns = clock_monotonic_ns();
    int64_t wall_ns = clock_wall_ns();
    struct platform_report report = {
        .request_id = environment->invocation->request_id,
        .duration_ns = now_ns - environment->begin_ns,
        .init_ns = environment->init_ns,
        .memory_mib = environment->spec.memory_mib,
        .memory_used_mib = environment_io_memory_used(environment, now_ns),
        .status = outcome.status,
        .error_type = outcome.error_type,
    };

    environment->init_ns = -1;
    telemetry_report(environment, &report);
    if (environment->logging.json) {
        log_end_events(environment, &report, wall_ns);
    } else {
        function_log_line(environment->log, platform_line_end(text, report.request_id), wall_ns);
        function_log_line(environment->log, platform_line_report(text, &report), wall_ns);
    }
    function_log_set_tail(environment->log, NULL);
}
