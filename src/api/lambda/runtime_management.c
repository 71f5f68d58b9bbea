/*
 * When a version's runtime is updated: a record {"update_on", "arn"?} where that is not the default, Auto. The ARN that
 * Manual pins is shown in the version's RuntimeVersionConfig; which interpreter runs is the host's matter.
 */
#include "api/lambda/runtime_management.h"

#include "api/lambda/attached.h"
#include "api/lambda/handlers.h"
#include "api/lambda/input.h"
#include "aws/shapes.h"

static const struct input_member members[] = {
    {.name = "UpdateRuntimeOn", .kind = INPUT_STRING},
    {.name = "RuntimeVersionArn", .kind = INPUT_STRING},
    {0},
};

const char *runtime_management_pinned_arn(const struct catalog_version *version)
{
    const json_t *config =
        catalog_find_attached(version->function, CATALOG_RUNTIME_MANAGEMENT_CONFIG, span_from(version->number));

    return json_string_value(json_object_get(config, "arn"));
}

int runtime_management_check_update(struct call *call, const struct catalog_function *function)
{
    const json_t *runtime = json_object_get(call->input, "Runtime");

    if (!runtime || json_equal(runtime, json_object_get(function->latest->config->document, "Runtime")) ||
        !runtime_management_pinned_arn(function->latest))
        return 0;
    return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                         "Cannot change runtime identifier when runtime management configuration is set to 'Manual'. "
                         "Change the runtime management configuration to 'Auto' or 'FunctionUpdate', then retry.");
}

/* `config` may be NULL. The ARN is as it was asked for (developer guide, "Configuring Lambda runtime management
 * settings"). */
static void respond(struct call *call, const json_t *config)
{
    json_t *arn = json_object_get(config, "arn");
    const char *update_on = config ? json_string_value(json_object_get(config, "update_on")) : "Auto";

    call_respond(call, 200,
                 json_pack("{s:s, s:s, s:O?}", "UpdateRuntimeOn", update_on, "FunctionArn",
                           call_function_arn(call, call->qualifier), "RuntimeVersionArn", arn));
}

/* Names of functions and versions; aliases are refused whether they are there or not. */
static int check_names(struct call *call)
{
    int r = call_check_names(call, FUNCTION_NAME_NAMESPACED, CALL_QUALIFIER);

    if (r == 0 && qualifier_kind_of(call->qualifier) == QUALIFIER_ALIAS)
        r = aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                          "The provided function name %s is invalid. Aliases are not allowed.",
                          call_function_arn(call, call->qualifier));
    return r;
}

/* --- PutRuntimeManagementConfig --- */

static bool is_manual(const struct call *call)
{
    return span_equal(input_string(call->input, "UpdateRuntimeOn"), SPAN("Manual"));
}

static int build_put(struct call *call, struct catalog_change *change)
{
    struct catalog_function *function = table_get(&catalog_change_scope(change)->functions, call->function_name);
    int r = call_find_target(call, function);

    if (r)
        return r;
    call->document = json_pack("{s:O, s:O*}", "update_on", json_object_get(call->input, "UpdateRuntimeOn"), "arn",
                               is_manual(call) ? json_object_get(call->input, "RuntimeVersionArn") : NULL);
    if (!call->document)
        return -ENOMEM;
    return catalog_change_put_attached(change, function, CATALOG_RUNTIME_MANAGEMENT_CONFIG, call->qualifier,
                                       call->document);
}

static void answer_put(struct call *call)
{
    respond(call, call->document);
}

static void on_put_parsed(struct call *call)
{
    static const char *const modes[] = {"Auto", "Manual", "FunctionUpdate", NULL};
    static const struct validation_constraint arn = {.minimum = LAMBDA_RUNTIME_VERSION_ARN_MINIMUM,
                                                     .maximum = LAMBDA_RUNTIME_VERSION_ARN_MAXIMUM,
                                                     .pattern = LAMBDA_RUNTIME_VERSION_ARN_PATTERN};
    int r;

    if (validate_present(&call->validation, input_has(call->input, "UpdateRuntimeOn"), "updateRuntimeOn"))
        validate_enum(&call->validation, input_string(call->input, "UpdateRuntimeOn"), "updateRuntimeOn", modes);
    if (input_has(call->input, "RuntimeVersionArn"))
        validate_string(&call->validation, input_string(call->input, "RuntimeVersionArn"), "runtimeVersionArn", &arn);
    r = check_names(call);
    if (r == 0 && is_manual(call) && !input_has(call->input, "RuntimeVersionArn"))
        r = aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                          "RuntimeVersionArn is required when UpdateRuntimeOn is Manual.");
    if (r)
        call_end(call, r, "checking the configuration");
    else
        call_submit(call, build_put, answer_put);
}

void lambda_put_runtime_management_config(struct operation *operation)
{
    struct call *call = call_new(operation);

    if (call)
        input_read_body(call, members, NULL, on_put_parsed);
}

/* --- GetRuntimeManagementConfig --- */

void lambda_get_runtime_management_config(struct operation *operation)
{
    struct call *call = call_new(operation);
    int r;

    if (!call)
        return;
    r = check_names(call);
    if (r == 0)
        r = call_find_target(call, call_find_function(call));
    if (r)
        call_end(call, r, "finding the function");
    else
        respond(call, attached_find(call, CATALOG_RUNTIME_MANAGEMENT_CONFIG));
}
