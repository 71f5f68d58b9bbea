#include "api/lambda/names.h"

#include "api/lambda/call.h"
#include "aws/policy.h"

#include <stdio.h>

static int deny(const struct catalog_subject *subject, const struct name_caller *caller, struct aws_error *error)
{
    struct span partition = arn_partition_of_region(subject->region);

    return aws_error_set(error, AWS_ERROR_ACCESS_DENIED,
                         "User: arn:%.*s:iam::%.*s:root is not authorized to perform: lambda:%s on resource: "
                         "arn:%.*s:lambda:%.*s:%.*s:function:%.*s%s%.*s because no resource-based policy allows the "
                         "lambda:%s action",
                         SPAN_ARG(partition), SPAN_ARG(caller->account), caller->action, SPAN_ARG(partition),
                         SPAN_ARG(subject->region), SPAN_ARG(subject->account), SPAN_ARG(subject->function_name),
                         subject->qualifier.length ? ":" : "", SPAN_ARG(subject->qualifier), caller->action);
}

/*
 * What a resource policy can permit at all: the list of the developer guide ("Granting Lambda function access to other
 * accounts").
 */
static bool is_open_to_others(const char *action)
{
    static const char *const actions[] = {
        "CreateAlias",
        "DeleteAlias",
        "DeleteFunction",
        "DeleteFunctionConcurrency",
        "GetAlias",
        "GetFunction",
        "GetFunctionConfiguration",
        "GetPolicy",
        "InvokeFunction",
        "ListAliases",
        "ListTags",
        "ListVersionsByFunction",
        "PublishVersion",
        "PutFunctionConcurrency",
        "TagResource",
        "UntagResource",
        "UpdateAlias",
        "UpdateFunctionCode",
    };

    for (size_t i = 0; i < ARRAY_SIZE(actions); i++)
        if (!strcmp(action, actions[i]))
            return true;
    return false;
}

static int check_account(const struct function_name *name, struct span qualifier, const struct name_caller *caller,
                         struct aws_error *error)
{
    const struct policy_caller principal = {.account = caller->account};
    const struct catalog_subject subject = {name->account, caller->region, name->name,
                                            name->qualifier.length ? name->qualifier : qualifier};
    char action[128];

    if (!caller->action)
        return aws_error_set(error, AWS_ERROR_ACCESS_DENIED, "%s", "");
    snprintf(action, sizeof(action), "lambda:%s", caller->action);
    if (is_open_to_others(caller->action) && catalog_permits(caller->catalog, &subject, action, &principal))
        return 0;
    return deny(&subject, caller, error);
}

int names_check_place(const struct function_name *name, struct span qualifier, const struct name_caller *caller,
                      struct aws_error *error)
{
    if (name->region.length && !span_equal(name->region, caller->region))
        return aws_error_set(error, AWS_ERROR_RESOURCE_NOT_FOUND,
                             "Functions from '%.*s' are not reachable in this region ('%.*s')", SPAN_ARG(name->region),
                             SPAN_ARG(caller->region));
    if (!name->account.length || span_equal(name->account, caller->account))
        return 0;
    return check_account(name, qualifier, caller, error);
}

int names_join_qualifiers(struct span part, struct span parameter, struct span *ret_qualifier, struct aws_error *error)
{
    if (part.length && parameter.length && !span_equal(part, parameter))
        return aws_error_set(error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                             "The derived qualifier from the function name does not match the specified qualifier.");
    *ret_qualifier = part.length ? part : parameter;
    return 0;
}

/* --- the control plane's calls --- */

int call_finish_validation(struct call *call)
{
    int r = validation_finish(&call->validation, AWS_ERROR_VALIDATION, &call->error);

    if (r || !call->bad_marker.data)
        return r;
    return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE, "Invalid Marker: %.*s",
                         SPAN_ARG(call->bad_marker));
}

static int refuse_qualified(struct call *call)
{
    return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                         "This operation is permitted on Lambda functions only. Aliases and versions do not support "
                         "this operation. Please specify either a function name or an unqualified function ARN.");
}

static int take_name(struct call *call, const struct function_name *name, const char *action, struct span parameter,
                     enum call_qualifier qualifier)
{
    const struct operation *operation = call->operation;
    const struct name_caller caller = {call->catalog, operation->account, operation->region, action};
    int r = names_check_place(name, parameter, &caller, &call->error);

    if (r == 0 && qualifier == CALL_UNQUALIFIED && name->qualifier.length)
        r = refuse_qualified(call);
    if (r == 0)
        r = names_join_qualifiers(name->qualifier, parameter, &call->qualifier, &call->error);
    if (r == 0)
        call->function_name = name->name;
    if (r == 0 && name->account.length)
        call->account = name->account;
    return r;
}

int call_take_body_name(struct call *call, struct span text)
{
    struct function_name name;

    /* The pattern has been checked; the parser accepts exactly what it matches. */
    if (function_name_parse(text, FUNCTION_NAME_PLAIN, &name) != 0)
        return aws_error_set(&call->error, AWS_ERROR_VALIDATION, "The function name '%.*s' is not valid.",
                             SPAN_ARG(text));
    return take_name(call, &name, NULL, SPAN_NONE, CALL_UNQUALIFIED); /* a denial without a text: recorded */
}

int call_check_names(struct call *call, enum function_name_form form, enum call_qualifier qualifier)
{
    struct operation *operation = call->operation;
    struct span text = operation_parameter(operation, SPAN("FunctionName"));
    struct span parameter = SPAN_NONE;
    struct function_name name = {0};
    int r;

    if (qualifier == CALL_QUALIFIER && operation_query(operation, SPAN("Qualifier"), &parameter))
        validate_qualifier(&call->validation, parameter, "qualifier");
    validate_function_name(&call->validation, text, form, "functionName", &name);
    r = call_finish_validation(call);
    return r ? r : take_name(call, &name, operation->route->name, parameter, qualifier);
}
