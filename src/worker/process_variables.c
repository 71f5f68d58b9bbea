#include "worker/process_variables.h"

#include <stdio.h>

/* The reserved names of the Lambda guide ("Defined runtime environment variables"). */
static const char *const reserved_names[] = {
    "_HANDLER",
    "_X_AMZN_TRACE_ID",
    "AWS_ACCESS_KEY",
    "AWS_ACCESS_KEY_ID",
    "AWS_DEFAULT_REGION",
    "AWS_EXECUTION_ENV",
    "AWS_LAMBDA_FUNCTION_MEMORY_SIZE",
    "AWS_LAMBDA_FUNCTION_NAME",
    "AWS_LAMBDA_FUNCTION_VERSION",
    "AWS_LAMBDA_INITIALIZATION_TYPE",
    "AWS_LAMBDA_LOG_GROUP_NAME",
    "AWS_LAMBDA_LOG_STREAM_NAME",
    "AWS_LAMBDA_RUNTIME_API",
    "AWS_REGION",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "LAMBDA_RUNTIME_DIR",
    "LAMBDA_TASK_ROOT",
    "_LAMBDA_TELEMETRY_LOG_FD",
};

enum { SERVICE_VARIABLES_MAX = 40 };

struct builder {
    struct arena *arena;
    const char **variables;
    size_t count;
    bool out_of_memory;
};

static void add(struct builder *builder, const char *name, const char *value)
{
    char *text = arena_printf(builder->arena, "%s=%s", name, value ? value : "");

    if (!text)
        builder->out_of_memory = true;
    else
        builder->variables[builder->count++] = text;
}

static bool has_name(const char *variable, struct span name)
{
    return strncmp(variable, name.data, name.length) == 0 && variable[name.length] == '=';
}

/* Adds it in the place of an earlier one of the same name. */
static void replace(struct builder *builder, const char *name, const char *value)
{
    for (size_t i = 0; i < builder->count; i++) {
        if (has_name(builder->variables[i], span_from(name))) {
            builder->variables[i] = builder->variables[--builder->count];
            break;
        }
    }
    add(builder, name, value);
}

static bool is_family(const struct environment_spec *spec, struct span family)
{
    return span_starts_with(span_from(spec->runtime), family);
}

static void add_reserved(struct builder *builder, const struct environment_spec *spec, const char *log_stream)
{
    char memory[16];

    snprintf(memory, sizeof(memory), "%u", spec->memory_mib);
    add(builder, "_HANDLER", spec->handler);
    add(builder, "AWS_REGION", spec->region);
    add(builder, "AWS_DEFAULT_REGION", spec->region);
    add(builder, "AWS_LAMBDA_FUNCTION_NAME", spec->function_name);
    add(builder, "AWS_LAMBDA_FUNCTION_MEMORY_SIZE", memory);
    add(builder, "AWS_LAMBDA_FUNCTION_VERSION", spec->version);
    add(builder, "AWS_LAMBDA_INITIALIZATION_TYPE", environment_origin_name(spec->origin));
    add(builder, "AWS_LAMBDA_LOG_GROUP_NAME", spec->log_group);
    add(builder, "AWS_LAMBDA_LOG_STREAM_NAME", log_stream);
    add(builder, "AWS_ACCESS_KEY_ID", spec->access_key ? spec->access_key : "test");
    add(builder, "AWS_SECRET_ACCESS_KEY", spec->secret_key ? spec->secret_key : "test");
    if (spec->session_token || !spec->access_key)
        add(builder, "AWS_SESSION_TOKEN", spec->session_token ? spec->session_token : "test");
    add(builder, "LAMBDA_TASK_ROOT", "/var/task");
    add(builder, "LAMBDA_RUNTIME_DIR", "/var/runtime");
}

/* What only managed runtimes have. Their bootstraps take the descriptor (log_frame.h) away before the function begins.
 */
static void add_managed(struct builder *builder, const struct environment_spec *spec)
{
    char execution[128];

    snprintf(execution, sizeof(execution), "AWS_Lambda_%s", spec->runtime);
    add(builder, "AWS_EXECUTION_ENV", execution);
    add(builder, "PWD", "/var/task");
    add(builder, "SHLVL", "0");
    add(builder, "_LAMBDA_TELEMETRY_LOG_FD", "1");
}

static void add_node_path(struct builder *builder, const struct environment_spec *spec)
{
    struct span version = span_slice(span_from(spec->runtime), sizeof("nodejs") - 1, strlen(spec->runtime));
    char path[256];

    if (span_ends_with(version, SPAN(".x")))
        version.length -= 2;
    snprintf(path, sizeof(path),
             "/opt/nodejs/node%.*s/node_modules:/opt/nodejs/node_modules:/var/runtime/node_modules:/var/runtime:"
             "/var/task",
             SPAN_ARG(version));
    add(builder, "NODE_PATH", path);
}

/* The folders of managed runtimes and provided.al2023; there is nothing in them here, the interpreters are the host's.
 */
static void add_search_paths(struct builder *builder, const struct environment_spec *spec)
{
    bool has_lang = strcmp(spec->runtime, "provided.al2") != 0;
    char text[256];

    snprintf(text, sizeof(text), "%s/usr/local/bin:/usr/bin/:/bin:/opt/bin", has_lang ? "/var/lang/bin:" : "");
    add(builder, "PATH", text);
    snprintf(text, sizeof(text), "%s/lib64:/usr/lib64:/var/runtime:/var/runtime/lib:/var/task:/var/task/lib:/opt/lib",
             has_lang ? "/var/lang/lib:" : "");
    add(builder, "LD_LIBRARY_PATH", text);
}

/* On the service Python sets it for itself where the locale of LANG is not installed, which is from 3.12 on. */
static bool has_lc_ctype(const char *runtime)
{
    unsigned minor;

    return sscanf(runtime, "python3.%u", &minor) == 1 && minor >= 12;
}

/* What the function may replace, as recorded. */
static void add_defaults(struct builder *builder, const struct environment_spec *spec)
{
    add(builder, "LANG", "en_US.UTF-8");
    add(builder, "TZ", ":UTC");
    add_search_paths(builder, spec);
    add(builder, "AWS_XRAY_CONTEXT_MISSING", "LOG_ERROR");
    add(builder, "AWS_XRAY_DAEMON_ADDRESS", "169.254.100.1:2000");
    add(builder, "_AWS_XRAY_DAEMON_ADDRESS", "169.254.100.1");
    add(builder, "_AWS_XRAY_DAEMON_PORT", "2000");
    if (spec->endpoint_url)
        add(builder, "AWS_ENDPOINT_URL", spec->endpoint_url);
    if (is_family(spec, SPAN("python")))
        add(builder, "PYTHONPATH", "/var/runtime");
    if (has_lc_ctype(spec->runtime))
        add(builder, "LC_CTYPE", "C.UTF-8");
    if (is_family(spec, SPAN("nodejs")))
        add_node_path(builder, spec);
}

/* LoggingConfig in the JSON format, above what the function says of itself. */
static void add_logging(struct builder *builder, const struct environment_spec *spec)
{
    if (!spec->log_format || strcmp(spec->log_format, "JSON") != 0)
        return;
    replace(builder, "AWS_LAMBDA_LOG_FORMAT", "JSON");
    replace(builder, "AWS_LAMBDA_LOG_LEVEL", spec->application_log_level ? spec->application_log_level : "INFO");
}

static void add_own(struct builder *builder, const struct environment_variable *own)
{
    struct span name = span_from(own->name);

    if (name.length == 0 || span_find(name, '=') >= 0 || process_variables_is_reserved(name))
        return;
    replace(builder, own->name, own->value);
}

int process_variables_build(const struct environment_spec *spec, const char *log_stream, struct arena *arena,
                            const char *const **ret_variables)
{
    struct builder builder = {.arena = arena};

    builder.variables = arena_alloc(arena, (SERVICE_VARIABLES_MAX + spec->variable_count + 1) * sizeof(char *));
    if (!builder.variables)
        return -ENOMEM;
    add_reserved(&builder, spec, log_stream);
    if (!is_family(spec, SPAN("provided")))
        add_managed(&builder, spec);
    add_defaults(&builder, spec);
    for (size_t i = 0; i < spec->variable_count; i++)
        add_own(&builder, &spec->variables[i]);
    add_logging(&builder, spec);
    builder.variables[builder.count] = NULL;
    if (builder.out_of_memory)
        return -ENOMEM;
    *ret_variables = builder.variables;
    return 0;
}

/* "Lambda extensions have access to the function's environment variables, except ..." */
static const char *const hidden_from_extensions[] = {
    "AWS_EXECUTION_ENV",          "AWS_LAMBDA_LOG_GROUP_NAME",
    "AWS_LAMBDA_LOG_STREAM_NAME", "AWS_XRAY_CONTEXT_MISSING",
    "AWS_XRAY_DAEMON_ADDRESS",    "LAMBDA_RUNTIME_DIR",
    "LAMBDA_TASK_ROOT",           "_AWS_XRAY_DAEMON_ADDRESS",
    "_AWS_XRAY_DAEMON_PORT",      "_HANDLER",
    "_LAMBDA_TELEMETRY_LOG_FD",
};

static bool is_hidden_from_extensions(const char *variable)
{
    for (size_t i = 0; i < ARRAY_SIZE(hidden_from_extensions); i++)
        if (has_name(variable, span_from(hidden_from_extensions[i])))
            return true;
    return false;
}

int process_variables_for_extensions(const char *const *variables, struct arena *arena,
                                     const char *const **ret_variables)
{
    const char **kept;
    size_t count = 0;

    while (variables[count])
        count++;
    kept = arena_alloc(arena, (count + 1) * sizeof(*kept));
    if (!kept)
        return -ENOMEM;
    count = 0;
    for (size_t i = 0; variables[i]; i++)
        if (!is_hidden_from_extensions(variables[i]))
            kept[count++] = variables[i];
    kept[count] = NULL;
    *ret_variables = kept;
    return 0;
}

bool process_variables_is_reserved(struct span name)
{
    for (size_t i = 0; i < ARRAY_SIZE(reserved_names); i++)
        if (span_equal(name, span_from(reserved_names[i])))
            return true;
    return false;
}
