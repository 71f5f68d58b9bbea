/*
 * Function names and qualifiers as callers give them. Order, recorded: what the patterns and lengths say comes first
 * (one ValidationException for all of it), then the Region, then the account, then whether name and parameter agree.
 */
#include "api/lambda/call.h"
#include "aws/shapes.h"

static const struct validation_constraint plain_name = {
    .minimum = 1,
    .maximum = LAMBDA_FUNCTION_NAME_MAXIMUM,
    .pattern = LAMBDA_FUNCTION_NAME_PATTERN,
};

static const struct validation_constraint namespaced_name = {
    .minimum = 1,
    .maximum = LAMBDA_NAMESPACED_FUNCTION_NAME_MAXIMUM,
    .pattern = LAMBDA_NAMESPACED_FUNCTION_NAME_PATTERN,
};

static const struct validation_constraint any_qualifier = {
    .minimum = 1,
    .maximum = LAMBDA_QUALIFIER_MAXIMUM,
    .pattern = LAMBDA_QUALIFIER_PATTERN,
};

void call_validate_names(struct call *call, enum function_name_form form, enum call_qualifier qualifier)
{
    struct span value;

    if (qualifier == CALL_QUALIFIER && operation_query(call->operation, SPAN("Qualifier"), &value))
        validate_string(&call->validation, value, "qualifier", &any_qualifier);
    validate_string(&call->validation, operation_parameter(call->operation, SPAN("FunctionName")), "functionName",
                    form == FUNCTION_NAME_NAMESPACED ? &namespaced_name : &plain_name);
}

int call_finish_validation(struct call *call)
{
    return validation_finish(&call->validation, AWS_ERROR_VALIDATION, &call->error);
}

/* Somebody else's function, or one of another Region. */
static int check_place(struct call *call, const struct function_name *name)
{
    const struct operation *operation = call->operation;

    if (name->region.length && !span_equal(name->region, operation->region))
        return aws_error_set(&call->error, AWS_ERROR_RESOURCE_NOT_FOUND,
                             "Functions from '%.*s' are not reachable in this region ('%.*s')", SPAN_ARG(name->region),
                             SPAN_ARG(operation->region));
    if (name->account.length && !span_equal(name->account, operation->account))
        return aws_error_set(&call->error, AWS_ERROR_ACCESS_DENIED, "%s", "");
    return 0;
}

static int refuse_qualified(struct call *call)
{
    return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                         "This operation is permitted on Lambda functions only. Aliases and versions do not support "
                         "this operation. Please specify either a function name or an unqualified function ARN.");
}

static int take_qualifier(struct call *call, struct span part, enum call_qualifier qualifier)
{
    struct span parameter = SPAN_NONE;

    if (qualifier == CALL_UNQUALIFIED && part.length)
        return refuse_qualified(call);
    if (qualifier == CALL_QUALIFIER)
        operation_query(call->operation, SPAN("Qualifier"), &parameter);
    if (part.length && parameter.length && !span_equal(part, parameter))
        return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                             "The derived qualifier from the function name does not match the specified qualifier.");
    call->qualifier = part.length ? part : parameter;
    return 0;
}

static int take_name(struct call *call, struct span text, enum function_name_form form, enum call_qualifier qualifier)
{
    struct function_name name;
    int r;

    /* The pattern has been checked; the parser accepts exactly what it matches. */
    if (function_name_parse(text, form, &name) != 0)
        return aws_error_set(&call->error, AWS_ERROR_VALIDATION, "The function name '%.*s' is not valid.",
                             SPAN_ARG(text));
    r = check_place(call, &name);
    if (r == 0)
        r = take_qualifier(call, name.qualifier, qualifier);
    if (r == 0)
        call->function_name = name.name;
    return r;
}

int call_take_names(struct call *call, enum function_name_form form, enum call_qualifier qualifier)
{
    return take_name(call, operation_parameter(call->operation, SPAN("FunctionName")), form, qualifier);
}

int call_take_body_name(struct call *call, struct span name)
{
    return take_name(call, name, FUNCTION_NAME_PLAIN, CALL_UNQUALIFIED);
}

int call_check_names(struct call *call, enum function_name_form form, enum call_qualifier qualifier)
{
    int r;

    call_validate_names(call, form, qualifier);
    r = call_finish_validation(call);
    return r ? r : call_take_names(call, form, qualifier);
}
