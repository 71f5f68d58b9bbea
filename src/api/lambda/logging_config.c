/* LoggingConfig. */
#include "api/lambda/configuration_parts.h"

static bool is_json_format(const json_t *logging)
{
    return span_equal(input_string(logging, "LogFormat"), SPAN("JSON"));
}

int logging_config_check(struct call *call)
{
    const json_t *given = json_object_get(call->input, "LoggingConfig");
    const json_t *current = json_object_get(configuration_current(call), "LoggingConfig");

    if (!input_has(given, "ApplicationLogLevel") && !input_has(given, "SystemLogLevel"))
        return 0;
    if (is_json_format(input_has(given, "LogFormat") ? given : current))
        return 0;
    return aws_error_set(
        &call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
        "LogLevel is not supported when LogFormat is set to \"Text\". Remove LogLevel from your request "
        "or change the LogFormat to \"Json\" and try again.");
}

static json_t *make_default(const struct call *call)
{
    return json_pack("{s:s, s:o}", "LogFormat", "Text", "LogGroup",
                     json_sprintf("/aws/lambda/%.*s", SPAN_ARG(call->function_name)));
}

/* The levels belong to the JSON format alone. */
static int settle_levels(json_t *logging)
{
    static const char *const levels[] = {"ApplicationLogLevel", "SystemLogLevel"};
    int r = 0;

    for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
        if (!is_json_format(logging))
            json_object_del(logging, levels[i]);
        else if (!input_has(logging, levels[i]))
            r |= json_object_set_new(logging, levels[i], json_string("INFO"));
    }
    return r;
}

json_t *logging_config_make(const struct call *call, const json_t *current)
{
    json_t *logging = current ? json_copy((json_t *)current) : make_default(call);
    json_t *given = json_object_get(call->input, "LoggingConfig");

    if (!logging)
        return NULL;
    if ((given && json_object_update(logging, given) < 0) || settle_levels(logging) < 0) {
        json_decref(logging);
        return NULL;
    }
    return logging;
}
