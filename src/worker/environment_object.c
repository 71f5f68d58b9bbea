/*
 * An environment as an object: what it copies and opens at the start and lets go at the end. What happens between is in
 * environment.c.
 */
#include "worker/environment.h"

#include "worker/environment_extensions.h"
#include "worker/process_variables.h"
#include "worker/telemetry.h"

#include <stdio.h>

static const char *copy_text(struct environment *environment, const char *text, bool *ok)
{
    const char *copy = text ? arena_dup(&environment->arena, span_from(text)) : NULL;

    *ok = *ok && (copy || !text);
    return copy;
}

const char *environment_origin_name(enum environment_origin origin)
{
    return origin == ENVIRONMENT_PROVISIONED ? "provisioned-concurrency" : "on-demand";
}

/* Only what is needed after the start. */
static int copy_spec(struct environment *environment, const struct environment_spec *spec)
{
    struct environment_spec *copy = &environment->spec;
    bool ok = true;

    *copy = (struct environment_spec){
        .memory_mib = spec->memory_mib, .timeout_s = spec->timeout_s, .tmp_mib = spec->tmp_mib, .origin = spec->origin};
    copy->account = copy_text(environment, spec->account, &ok);
    copy->handler = copy_text(environment, spec->handler, &ok);
    copy->function_name = copy_text(environment, spec->function_name, &ok);
    copy->version = copy_text(environment, spec->version, &ok);
    copy->runtime = copy_text(environment, spec->runtime, &ok);
    copy->runtime_version_arn = copy_text(environment, spec->runtime_version_arn, &ok);
    copy->task_dir = copy_text(environment, spec->task_dir, &ok);
    for (size_t i = 0; i < spec->variable_count; i++)
        if (strcmp(spec->variables[i].name, "AWS_LAMBDA_EXEC_WRAPPER") == 0)
            environment->wrapper = copy_text(environment, spec->variables[i].value, &ok);
    for (size_t i = 0; i < SANDBOX_LAYERS_MAX && spec->layer_dirs[i]; i++)
        copy->layer_dirs[i] = copy_text(environment, spec->layer_dirs[i], &ok);
    return ok ? 0 : -ENOMEM;
}

static void set_logging(struct environment *environment, const struct environment_spec *spec)
{
    struct span level = span_from(spec->system_log_level ? spec->system_log_level : "");

    environment->logging.json = spec->log_format && strcmp(spec->log_format, "JSON") == 0;
    environment->logging.system = log_level_parse(level, LOG_LINE_INFO);
}

/* A group of the function's own has its streams without the name, which others may write to with it. */
static bool has_own_group(const struct environment_spec *spec)
{
    struct span group = span_from(spec->log_group);

    return span_starts_with(group, SPAN("/aws/lambda/")) &&
           span_equal(span_slice(group, strlen("/aws/lambda/"), group.length), span_from(spec->function_name));
}

/* "2026/01/02/[7]0123456789abcdef0123456789abcdef", in a shared group "2026/01/02/NAME[7]0123..." */
static const char *name_stream(struct environment *environment, const struct environment_spec *spec)
{
    char when[CLOCK_ISO_BYTES];
    char hex[33];

    clock_format_iso(clock_wall_ns(), when);
    random_hex(hex, sizeof(hex) - 1);
    environment->instance_id = arena_printf(&environment->arena, "%.4s/%.2s/%.2s/%s[%s]%s", when, when + 5, when + 8,
                                            spec->function_name, spec->version, hex);
    if (!environment->instance_id || !has_own_group(spec))
        return environment->instance_id;
    return arena_printf(&environment->arena, "%.4s/%.2s/%.2s/[%s]%s", when, when + 5, when + 8, spec->version, hex);
}

static int open_log(struct environment *environment, const struct environment_spec *spec)
{
    const char *stream = name_stream(environment, spec);
    struct span level = span_from(spec->application_log_level ? spec->application_log_level : "");
    int r;

    if (!stream)
        return -ENOMEM;
    set_logging(environment, spec);
    r = function_log_stream_open(environment->worker->logs, spec->log_group, stream, environment_io_on_room,
                                 environment, &environment->log);
    if (r < 0)
        return r;
    function_log_observe(environment->log, environment_io_on_line);
    if (runtime_family_folder(runtime_family_of(spec->runtime)))
        function_log_set_framed(environment->log);
    if (environment->logging.json)
        function_log_set_json(environment->log, log_level_parse(level, LOG_LINE_INFO));
    return process_variables_build(spec, stream, &environment->arena, &environment->process_variables);
}

static int64_t init_limit_ns(const struct worker *worker, const struct environment_spec *spec)
{
    int64_t provisioned_ms;

    if (spec->origin == ENVIRONMENT_ON_DEMAND)
        return worker->config.init_limit_ms * NS_PER_MS;
    provisioned_ms = MAX((int64_t)worker->config.provisioned_init_limit_ms, spec->timeout_s * INT64_C(1000));
    return MIN(provisioned_ms, 900 * INT64_C(1000)) * NS_PER_MS;
}

static int set_limits(struct environment *environment)
{
    struct worker *worker = environment->worker;

    environment->timeouts =
        limit_set_queue(&worker->limits, environment->spec.timeout_s * NS_PER_S, environment_on_limit);
    environment->inits =
        limit_set_queue(&worker->limits, init_limit_ns(worker, &environment->spec), environment_on_init_limit);
    return environment->timeouts && environment->inits ? 0 : -ENOMEM;
}

static void init_object(struct environment *environment, struct worker *worker, const struct environment_events *events,
                        void *context)
{
    list_link_init(&environment->link);
    list_link_init(&environment->probe_link);
    environment->worker = worker;
    environment->events = events;
    environment->context = context;
    environment->state = ENVIRONMENT_CREATING;
    environment->api_fd = environment->output_fd = environment->freeze_fd = environment->memory_fd = -1;
    environment->boosted = true;
    environment->init_ns = -1;
    environment->memory_read_ns = INT64_MIN / 2;
    limit_init(&environment->limit);
    limit_init(&environment->grace);
    limit_init(&environment->settle);
    limit_init(&environment->retry);
}

static void cleanup_environment(struct environment **environment)
{
    environment_destroy(*environment);
}

int environment_new(struct worker *worker, const struct environment_spec *spec, const struct environment_events *events,
                    void *context, struct environment **ret_environment)
{
    CLEANUP(cleanup_environment) struct environment *environment = calloc(1, sizeof(*environment));
    int r;

    if (!environment)
        return -ENOMEM;
    init_object(environment, worker, events, context);
    environment->id = ++worker->last_id;
    r = copy_spec(environment, spec);
    if (r == 0)
        r = open_log(environment, spec);
    if (r == 0)
        r = set_limits(environment);
    if (r == 0)
        r = table_add(&worker->by_id, span_of((const char *)&environment->id, sizeof(environment->id)), environment);
    if (r < 0)
        return r;
    list_push_back(&worker->environments, &environment->link);
    worker->count++;
    r = environment_begin(environment);
    if (r < 0)
        return r;
    *ret_environment = TAKE_PTR(environment);
    return 0;
}

void environment_destroy(struct environment *environment)
{
    struct worker *worker;

    if (!environment)
        return;
    worker = environment->worker;
    limit_stop(&environment->limit);
    limit_stop(&environment->grace);
    limit_stop(&environment->settle);
    limit_stop(&environment->retry);
    list_remove(&environment->probe_link);
    if (list_is_linked(&environment->link)) {
        list_remove(&environment->link);
        table_remove(&worker->by_id, span_of((const char *)&environment->id, sizeof(environment->id)));
        worker->count--;
    }
    if (environment->listener)
        http_listener_close(environment->listener, true);
    cleanup_close(&environment->api_fd);
    environment_io_stop(environment);
    extensions_destroy(environment);
    telemetry_forget(environment);
    function_log_stream_close(environment->log);
    if (environment->holds_result)
        buffer_deinit(&environment->held.payload);
    buffer_deinit(&environment->failure.posted);
    arena_deinit(&environment->arena);
    free(environment);
}
