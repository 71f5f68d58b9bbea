/*
 * Event-invoke configurations: how often and how long an asynchronous event is tried again, and where its outcome goes.
 * A record {"modified_ms", "retries"?, "age_s"?, "on_success"?, "on_failure"?} for each qualifier; $LATEST's does not
 * apply to others. Texts and their order are recorded.
 */
#include "api/lambda/attached.h"
#include "api/lambda/handlers.h"
#include "api/lambda/input.h"
#include "aws/shapes.h"
#include "base/clock.h"

enum { RETRIES_MAX = 2, AGE_S_MIN = 60, AGE_S_MAX = 21600 };

static const struct input_member destination_members[] = {{.name = "Destination", .kind = INPUT_STRING}, {0}};

static const struct input_member destination_config_members[] = {
    {.name = "OnSuccess", .kind = INPUT_STRUCTURE, .members = destination_members},
    {.name = "OnFailure", .kind = INPUT_STRUCTURE, .members = destination_members},
    {0},
};

static const struct input_member members[] = {
    {.name = "MaximumRetryAttempts", .kind = INPUT_INTEGER},
    {.name = "MaximumEventAgeInSeconds", .kind = INPUT_INTEGER},
    {.name = "DestinationConfig", .kind = INPUT_STRUCTURE, .members = destination_config_members},
    {0},
};

/* --- answers --- */

static json_t *render_destination(const json_t *config, const char *member)
{
    json_t *destination = json_object_get(config, member);

    return destination ? json_pack("{s:O}", "Destination", destination) : json_object();
}

/* FunctionEventInvokeConfig; the function itself is shown as its $LATEST. NULL when out of memory. */
static json_t *render(struct call *call, const struct attached *attached)
{
    const json_t *config = attached->document;
    struct span qualifier = attached->qualifier.length ? attached->qualifier : SPAN("$LATEST");
    json_int_t modified_ms = json_integer_value(json_object_get(config, "modified_ms"));

    return json_pack("{s:f, s:s, s:O*, s:O*, s:{s:o, s:o}}", "LastModified", (double)modified_ms / 1000.0,
                     "FunctionArn", call_function_arn(call, qualifier), "MaximumRetryAttempts",
                     json_object_get(config, "retries"), "MaximumEventAgeInSeconds", json_object_get(config, "age_s"),
                     "DestinationConfig", "OnSuccess", render_destination(config, "on_success"), "OnFailure",
                     render_destination(config, "on_failure"));
}

static void respond_config(struct call *call, const json_t *config)
{
    const struct attached attached = {call->qualifier, config};

    call_respond(call, 200, render(call, &attached));
}

/* --- refusals --- */

static int refuse_function(struct call *call)
{
    return aws_error_set(&call->error, AWS_ERROR_RESOURCE_NOT_FOUND, "The function doesn't exist.");
}

static int refuse_missing(struct call *call)
{
    struct span qualifier = call->qualifier.length ? call->qualifier : SPAN("$LATEST");

    return aws_error_set(&call->error, AWS_ERROR_RESOURCE_NOT_FOUND,
                         "The function %s doesn't have an EventInvokeConfig", call_function_arn(call, qualifier));
}

/* --- destinations --- */

static json_t *input_destination_config(const struct call *call)
{
    return json_object_get(call->input, "DestinationConfig");
}

/* An empty one counts as none. */
static struct span input_destination(const struct call *call, const char *member)
{
    return input_string(json_object_get(input_destination_config(call), member), "Destination");
}

static void validate_destination(struct call *call, const char *member, const char *shown)
{
    static const struct validation_constraint constraint = {.maximum = LAMBDA_DESTINATION_ARN_MAXIMUM,
                                                            .pattern = LAMBDA_DESTINATION_ARN_PATTERN};
    struct span destination = input_destination(call, member);

    if (destination.data)
        validate_string(&call->validation, destination, shown, &constraint);
}

/* "OnSuccess(destination=ARN)" or "null", as the service's own text shows them. */
static const char *describe_destination(const struct call *call, const char *member)
{
    struct arena *arena = &call->operation->arena;
    struct span destination = input_destination(call, member);
    const char *text;

    if (!input_has(input_destination_config(call), member))
        return "null";
    text = destination.data ? arena_printf(arena, "%s(destination=%.*s)", member, SPAN_ARG(destination))
                            : arena_printf(arena, "%s(destination=null)", member);
    return text ? text : "";
}

static int refuse_config(struct call *call)
{
    return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                         "The provided destination config DestinationConfig(onSuccess=%s, onFailure=%s) is invalid.",
                         describe_destination(call, "OnSuccess"), describe_destination(call, "OnFailure"));
}

/* A function of this Region that is there and is not the one that is configured. */
static int check_function_destination(struct call *call, struct span destination)
{
    const struct operation *operation = call->operation;
    const struct catalog_function *function = NULL;
    struct function_name name;
    struct catalog_target target;

    if (function_name_parse(destination, FUNCTION_NAME_PLAIN, &name) == 0 && span_equal(name.region, operation->region))
        function = catalog_find_function(call->catalog, name.account, name.region, name.name);
    if (!function || !catalog_resolve(function, name.qualifier, &target))
        return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE, "The destination ARN %.*s is invalid.",
                             SPAN_ARG(destination));
    if (function == call->version->function)
        return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                             "You can't specify the function as a destination for itself.");
    return 0;
}

/* Queues, topics, event buses and functions; buckets for failures alone (developer guide, "invocation-async-retain-
 * records"). */
static int check_destination(struct call *call, const char *member, bool takes_buckets)
{
    struct span destination = input_destination(call, member);
    struct arn arn;

    if (destination.length == 0)
        return 0;
    if (arn_parse(destination, &arn) != 0)
        return refuse_config(call);
    if (span_equal(arn.service, SPAN("lambda")))
        return check_function_destination(call, destination);
    if (span_equal(arn.service, SPAN("sqs")) || span_equal(arn.service, SPAN("sns")) ||
        span_equal(arn.service, SPAN("events")) || (takes_buckets && span_equal(arn.service, SPAN("s3"))))
        return 0;
    return refuse_config(call);
}

/* --- PutFunctionEventInvokeConfig, UpdateFunctionEventInvokeConfig --- */

/* Sets the member, or removes it when the value is not there. */
static int set_member(json_t *config, const char *member, json_t *value)
{
    if (value)
        return json_object_set(config, member, value) < 0 ? -ENOMEM : 0;
    json_object_del(config, member);
    return 0;
}

static int set_destination(struct call *call, json_t *config, const char *member, const char *input_member)
{
    json_t *value = json_object_get(json_object_get(input_destination_config(call), input_member), "Destination");

    return set_member(config, member, json_string_length(value) ? value : NULL);
}

/* What the request names, on top of what is in call->document. */
static int take_settings(struct call *call)
{
    json_t *retries = json_object_get(call->input, "MaximumRetryAttempts");
    json_t *age = json_object_get(call->input, "MaximumEventAgeInSeconds");
    json_t *config = call->document;
    int r = json_object_set_new(config, "modified_ms", json_integer(clock_wall_ns() / NS_PER_MS)) < 0 ? -ENOMEM : 0;

    if (r == 0 && retries)
        r = set_member(config, "retries", retries);
    if (r == 0 && age)
        r = set_member(config, "age_s", age);
    if (r == 0 && input_destination_config(call))
        r = set_destination(call, config, "on_success", "OnSuccess");
    if (r == 0 && input_destination_config(call))
        r = set_destination(call, config, "on_failure", "OnFailure");
    return r;
}

/* The function and the qualifier must be there, and the destinations good. */
static int check_target(struct call *call, const struct catalog_function *function)
{
    int r = call_find_target(call, function);

    if (r > 0)
        return refuse_function(call);
    if (r == 0)
        r = check_destination(call, "OnSuccess", false);
    return r ? r : check_destination(call, "OnFailure", true);
}

static int put_config(struct call *call, struct catalog_change *change, bool merges)
{
    struct catalog_function *function = table_get(&catalog_change_scope(change)->functions, call->function_name);
    const json_t *current = NULL;
    int r = check_target(call, function);

    if (r)
        return r;
    if (merges) {
        current = catalog_find_attached(function, CATALOG_EVENT_INVOKE_CONFIG, call->qualifier);
        if (!current)
            return refuse_missing(call);
    }
    call->document = current ? json_copy((json_t *)current) : json_object();
    r = call->document ? take_settings(call) : -ENOMEM;
    return r ? r
             : catalog_change_put_attached(change, function, CATALOG_EVENT_INVOKE_CONFIG, call->qualifier,
                                           call->document);
}

static int build_put(struct call *call, struct catalog_change *change)
{
    return put_config(call, change, false);
}

static int build_update(struct call *call, struct catalog_change *change)
{
    return put_config(call, change, true);
}

static void answer_put(struct call *call)
{
    respond_config(call, call->document);
}

static int check_settings(struct call *call)
{
    int r;

    if (input_has(call->input, "MaximumRetryAttempts"))
        validate_range(&call->validation, input_integer(call->input, "MaximumRetryAttempts", 0), "maximumRetryAttempts",
                       0, RETRIES_MAX);
    if (input_has(call->input, "MaximumEventAgeInSeconds"))
        validate_range(&call->validation, input_integer(call->input, "MaximumEventAgeInSeconds", 0),
                       "maximumEventAgeInSeconds", AGE_S_MIN, AGE_S_MAX);
    validate_destination(call, "OnSuccess", "destinationConfig.onSuccess.destination");
    validate_destination(call, "OnFailure", "destinationConfig.onFailure.destination");
    r = call_check_names(call, FUNCTION_NAME_NAMESPACED, CALL_QUALIFIER);
    if (r == 0 && json_object_size(call->input) == 0)
        r = aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                          "You must specify at least one of error handling or destination setting.");
    return r;
}

static void submit_settings(struct call *call, int (*build)(struct call *call, struct catalog_change *change))
{
    int r = check_settings(call);

    if (r)
        call_end(call, r, "checking the configuration");
    else
        call_submit(call, build, answer_put);
}

static void on_put_parsed(struct call *call)
{
    submit_settings(call, build_put);
}

static void on_update_parsed(struct call *call)
{
    submit_settings(call, build_update);
}

void lambda_put_function_event_invoke_config(struct operation *operation)
{
    struct call *call = call_new(operation);

    if (call)
        input_read_body(call, members, NULL, on_put_parsed);
}

void lambda_update_function_event_invoke_config(struct operation *operation)
{
    struct call *call = call_new(operation);

    if (call)
        input_read_body(call, members, NULL, on_update_parsed);
}

/* --- GetFunctionEventInvokeConfig --- */

void lambda_get_function_event_invoke_config(struct operation *operation)
{
    struct call *call = call_new(operation);
    const json_t *config;
    int r;

    if (!call)
        return;
    r = call_check_names(call, FUNCTION_NAME_NAMESPACED, CALL_QUALIFIER);
    config = r == 0 ? attached_find(call, CATALOG_EVENT_INVOKE_CONFIG) : NULL;
    if (r == 0 && !config)
        r = refuse_missing(call);
    if (r)
        call_end(call, r, "finding the configuration");
    else
        respond_config(call, config);
}

/* --- DeleteFunctionEventInvokeConfig --- */

static int build_deletion(struct call *call, struct catalog_change *change)
{
    return attached_delete(call, change, CATALOG_EVENT_INVOKE_CONFIG, refuse_missing);
}

void lambda_delete_function_event_invoke_config(struct operation *operation)
{
    struct call *call = call_new(operation);
    int r;

    if (!call)
        return;
    r = call_check_names(call, FUNCTION_NAME_NAMESPACED, CALL_QUALIFIER);
    if (r)
        call_end(call, r, "checking the names");
    else
        call_submit(call, build_deletion, call_respond_empty);
}

/* --- ListFunctionEventInvokeConfigs --- */

void lambda_list_function_event_invoke_configs(struct operation *operation)
{
    static const struct attached_list list = {CATALOG_EVENT_INVOKE_CONFIG, FUNCTION_NAME_NAMESPACED,
                                              "FunctionEventInvokeConfigs", refuse_function, render};

    attached_list(operation, &list);
}
