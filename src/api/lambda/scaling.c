/*
 * Scaling configurations are for functions on capacity providers. Kiln has none of these, so that the service's answer
 * for all other functions is the true one (AccessDeniedException, seen in August 2026 in reports of its callers).
 */
#include "api/lambda/handlers.h"
#include "api/lambda/input.h"
#include "aws/shapes.h"

enum { ENVIRONMENTS_MAX = 15000 };

static const struct input_member config_members[] = {
    {.name = "MinExecutionEnvironments", .kind = INPUT_INTEGER},
    {.name = "MaxExecutionEnvironments", .kind = INPUT_INTEGER},
    {0},
};

static const struct input_member members[] = {
    {.name = "FunctionScalingConfig", .kind = INPUT_STRUCTURE, .members = config_members},
    {0},
};

static void validate_environments(struct call *call, const char *member, const char *shown)
{
    const json_t *config = json_object_get(call->input, "FunctionScalingConfig");

    if (input_has(config, member))
        validate_range(&call->validation, input_integer(config, member, 0), shown, 0, ENVIRONMENTS_MAX);
}

/* A version by its number, in the query alone. Always a refusal, or negative. */
static int check(struct call *call)
{
    static const struct validation_constraint constraint = {
        .minimum = 1, .maximum = LAMBDA_QUALIFIER_MAXIMUM, .pattern = LAMBDA_PUBLISHED_QUALIFIER_PATTERN};
    struct span qualifier = SPAN_NONE;
    int r;

    if (validate_present(&call->validation, operation_query(call->operation, SPAN("Qualifier"), &qualifier),
                         "qualifier"))
        validate_string(&call->validation, qualifier, "qualifier", &constraint);
    r = call_check_names(call, FUNCTION_NAME_UNQUALIFIED, CALL_UNQUALIFIED);
    call->qualifier = qualifier;
    if (r == 0)
        r = call_find_target(call, call_find_function(call));
    return r ? r
             : aws_error_set(&call->error, AWS_ERROR_ACCESS_DENIED,
                             "The function provided by the arn does not contain a capacity provider configuration");
}

static void on_put_parsed(struct call *call)
{
    validate_environments(call, "MinExecutionEnvironments", "functionScalingConfig.minExecutionEnvironments");
    validate_environments(call, "MaxExecutionEnvironments", "functionScalingConfig.maxExecutionEnvironments");
    call_end(call, check(call), "checking the configuration");
}

void lambda_put_function_scaling_config(struct operation *operation)
{
    struct call *call = call_new(operation);

    if (call)
        input_read_body(call, members, NULL, on_put_parsed);
}

void lambda_get_function_scaling_config(struct operation *operation)
{
    struct call *call = call_new(operation);

    if (call)
        call_end(call, check(call), "checking the names");
}
