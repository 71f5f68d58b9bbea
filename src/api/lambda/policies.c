/*
 * Resource policies of functions, versions and aliases: AddPermission, GetPolicy, RemovePermission. A policy is a
 * record
 * {"revision", "statements": [...]}, the statements in the form in which the service shows them. It goes with its last
 * statement. What a policy permits is for aws/policy.h to say.
 *
 * The RevisionId is the policy's own (recorded in 2025: publishing changes the function's and not this one). Where
 * there is no policy yet, the function's or the alias' own RevisionId is the one to give (recorded).
 */
#include "api/lambda/handlers.h"
#include "api/lambda/input.h"
#include "api/lambda/principal.h"
#include "api/lambda/rules.h"
#include "api/lambda/statements.h"
#include "aws/shapes.h"
#include "base/random.h"

static const struct input_member members[] = {
    {.name = "StatementId", .kind = INPUT_STRING},
    {.name = "Action", .kind = INPUT_STRING},
    {.name = "Principal", .kind = INPUT_STRING},
    {.name = "SourceArn", .kind = INPUT_STRING},
    {.name = "FunctionUrlAuthType", .kind = INPUT_STRING},
    {.name = "InvokedViaFunctionUrl", .kind = INPUT_BOOLEAN},
    {.name = "SourceAccount", .kind = INPUT_STRING},
    {.name = "EventSourceToken", .kind = INPUT_STRING},
    {.name = "RevisionId", .kind = INPUT_STRING},
    {.name = "PrincipalOrgID", .kind = INPUT_STRING},
    {0},
};

static const char *const auth_types[] = {"NONE", "AWS_IAM", NULL};

/* The strings of AddPermission: as the model states them, in its order. */
static const struct string_rule strings[] = {
    {NULL, "StatementId", "statementId", {1, LAMBDA_STATEMENT_ID_MAXIMUM, LAMBDA_STATEMENT_ID_PATTERN, NULL}, true},
    {NULL, "Action", "action", {0, LAMBDA_ACTION_MAXIMUM, LAMBDA_ACTION_PATTERN, NULL}, true},
    {NULL, "Principal", "principal", {0, LAMBDA_PRINCIPAL_MAXIMUM, LAMBDA_PRINCIPAL_PATTERN, NULL}, true},
    {NULL, "SourceArn", "sourceArn", {0, LAMBDA_ARN_MAXIMUM, LAMBDA_ARN_PATTERN, NULL}},
    {NULL, "FunctionUrlAuthType", "functionUrlAuthType", {0, 0, NULL, auth_types}},
    {NULL, "SourceAccount", "sourceAccount", {0, LAMBDA_SOURCE_ACCOUNT_MAXIMUM, LAMBDA_SOURCE_ACCOUNT_PATTERN, NULL}},
    {NULL,
     "EventSourceToken",
     "eventSourceToken",
     {0, LAMBDA_EVENT_SOURCE_TOKEN_MAXIMUM, LAMBDA_EVENT_SOURCE_TOKEN_PATTERN, NULL}},
    {NULL,
     "PrincipalOrgID",
     "principalOrgID",
     {LAMBDA_PRINCIPAL_ORG_ID_MINIMUM, LAMBDA_PRINCIPAL_ORG_ID_MAXIMUM, LAMBDA_PRINCIPAL_ORG_ID_PATTERN, NULL}},
};

/* --- the policy of a call's function and qualifier --- */

/* NULL when there is none. $LATEST by its name never has one: the function's own policy is for the name without. */
static const json_t *find_policy(const struct call *call, const struct catalog_function *function)
{
    if (!function || span_equal(call->qualifier, SPAN("$LATEST")))
        return NULL;
    return catalog_find_attached(function, CATALOG_POLICY, call->qualifier);
}

static json_t *statements_of(const json_t *policy)
{
    return json_object_get(policy, "statements");
}

static const char *revision_of(const json_t *policy)
{
    return json_string_value(json_object_get(policy, "revision"));
}

static int check_revision(struct call *call, const json_t *policy, struct span given)
{
    const char *current = call->alias ? call->alias->revision_id : call->version->config->revision_id;

    if (policy)
        current = revision_of(policy);
    if (!given.data || span_equal(given, span_from(current)))
        return 0;
    return aws_error_set(&call->error, AWS_ERROR_PRECONDITION_FAILED,
                         "The Revision Id provided does not match the latest Revision Id. Call the GetPolicy API to "
                         "retrieve the latest Revision Id");
}

/* Stores the statements (borrowed) with a new RevisionId; none at all is no policy. */
static int put_statements(struct call *call, struct catalog_change *change, json_t *statements)
{
    const struct catalog_function *function = call->version->function;
    char revision[UUID_BYTES];
    json_t *policy;
    int r;

    if (json_array_size(statements) == 0)
        return catalog_change_delete_attached(change, function, CATALOG_POLICY, call->qualifier);
    policy = json_pack("{s:s, s:O}", "revision", random_uuid(revision), "statements", statements);
    if (!policy)
        return -ENOMEM;
    r = catalog_change_put_attached(change, function, CATALOG_POLICY, call->qualifier, policy);
    json_decref(policy);
    return r;
}

/* --- AddPermission --- */

/* Values are texts, truth too. */
static int add_test(json_t *condition, const char *operator, const char * key, json_t *value)
{
    json_t *tests = json_object_get(condition, operator);

    if (!tests && json_object_set_new(condition, operator, json_object()) < 0)
        return -ENOMEM;
    tests = json_object_get(condition, operator);
    value = json_is_boolean(value) ? json_string(json_is_true(value) ? "true" : "false") : json_incref(value);
    return json_object_set_new(tests, key, value) < 0 ? -ENOMEM : 0;
}

/* {"StringEquals": {...}, "Bool": {...}, "ArnLike": {...}}, each part only with something in it; NULL through
 * ret_condition when there is none. */
static int make_condition(const json_t *input, json_t **ret_condition)
{
    static const struct {
        const char *member;
        const char *operator;
        const char *key;
    } parts[] = {
        {"SourceAccount", "StringEquals", "AWS:SourceAccount"},
        {"PrincipalOrgID", "StringEquals", "aws:PrincipalOrgID"},
        {"EventSourceToken", "StringEquals", "lambda:EventSourceToken"},
        {"FunctionUrlAuthType", "StringEquals", "lambda:FunctionUrlAuthType"},
        {"InvokedViaFunctionUrl", "Bool", "lambda:InvokedViaFunctionUrl"},
        {"SourceArn", "ArnLike", "AWS:SourceArn"},
    };
    json_t *condition = json_object();

    for (size_t i = 0; condition && i < ARRAY_SIZE(parts); i++) {
        json_t *value = json_object_get(input, parts[i].member);
        if (value && add_test(condition, parts[i].operator, parts[i].key, value) < 0) {
            json_decref(condition);
            return -ENOMEM;
        }
    }
    if (!condition)
        return -ENOMEM;
    *ret_condition = json_object_size(condition) ? condition : NULL;
    if (!*ret_condition)
        json_decref(condition);
    return 0;
}

/* The statement of the request, into call->document. */
static int make_statement(struct call *call)
{
    const struct operation *operation = call->operation;
    json_t *principal = principal_make(input_string(call->input, "Principal"), operation->region);
    json_t *condition = NULL;

    if (!principal || make_condition(call->input, &condition) < 0) {
        json_decref(principal);
        return -ENOMEM;
    }
    call->document =
        json_pack("{s:O, s:s, s:o, s:O, s:s, s:o*}", "Sid", json_object_get(call->input, "StatementId"), "Effect",
                  "Allow", "Principal", principal, "Action", json_object_get(call->input, "Action"), "Resource",
                  call_function_arn(call, call->qualifier), "Condition", condition);
    return call->document ? 0 : -ENOMEM;
}

static int refuse(struct call *call, const char *sentence)
{
    return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE, "%s", sentence);
}

static int check_permission(struct call *call)
{
    int r;

    if (span_equal(call->qualifier, SPAN("$LATEST")))
        return refuse(call, "We currently do not support adding policies for $LATEST.");
    r = principal_check(input_string(call->input, "Principal"), &call->error);
    if (r)
        return r;
    if (input_has(call->input, "FunctionUrlAuthType") &&
        !span_equal(input_string(call->input, "Action"), SPAN("lambda:InvokeFunctionUrl")))
        return refuse(call, "FunctionUrlAuthType is only supported for lambda:InvokeFunctionUrl action");
    return 0;
}

static int add_statement(struct call *call, struct catalog_change *change, const json_t *policy)
{
    json_t *statements = policy ? json_copy(statements_of(policy)) : json_array();
    int r = make_statement(call);

    if (r == 0 && json_array_append(statements, call->document) < 0)
        r = -ENOMEM;
    if (r == 0)
        r = statements_check_size(call, statements);
    if (r == 0)
        r = put_statements(call, change, statements);
    json_decref(statements);
    return r;
}

static int build_addition(struct call *call, struct catalog_change *change)
{
    struct catalog_function *function = table_get(&catalog_change_scope(change)->functions, call->function_name);
    const json_t *policy = find_policy(call, function);
    int r = call_find_target(call, function);

    if (r == 0)
        r = check_revision(call, policy, input_string(call->input, "RevisionId"));
    if (r == 0)
        r = statements_check_id(call, statements_of(policy), input_string(call->input, "StatementId"));
    return r ? r : add_statement(call, change, policy);
}

static void answer_addition(struct call *call)
{
    char *text = json_dumps(call->document, JSON_COMPACT);
    json_t *answer = text ? json_pack("{s:s}", "Statement", text) : NULL;

    free(text);
    call_respond(call, 201, answer);
}

static void on_addition_parsed(struct call *call)
{
    int r;

    rules_validate_strings(call, strings, ARRAY_SIZE(strings));
    r = call_check_names(call, FUNCTION_NAME_NAMESPACED, CALL_QUALIFIER);
    if (r == 0)
        r = check_permission(call);
    if (r)
        call_end(call, r, "checking the permission");
    else
        call_submit(call, build_addition, answer_addition);
}

void lambda_add_permission(struct operation *operation)
{
    struct call *call = call_new(operation);

    if (call)
        input_read_body(call, members, NULL, on_addition_parsed);
}

/* --- GetPolicy --- */

static void respond_policy(struct call *call, const json_t *policy)
{
    char *text = statements_write(statements_of(policy));
    json_t *answer = text ? json_pack("{s:s, s:s}", "Policy", text, "RevisionId", revision_of(policy)) : NULL;

    free(text);
    call_respond(call, 200, answer);
}

void lambda_get_policy(struct operation *operation)
{
    struct call *call = call_new(operation);
    const json_t *policy = NULL;
    int r;

    if (!call)
        return;
    r = call_check_names(call, FUNCTION_NAME_NAMESPACED, CALL_QUALIFIER);
    if (r == 0)
        policy = find_policy(call, call_find_function(call));
    if (r == 0 && !policy)
        r = aws_error_set(&call->error, AWS_ERROR_RESOURCE_NOT_FOUND, "The resource you requested does not exist.");
    if (r)
        call_end(call, r, "finding the policy");
    else
        respond_policy(call, policy);
}

/* --- RemovePermission --- */

/* What has no such function or version has no policy either, in words of its own (recorded); aliases are looked for. */
static int find_removal_target(struct call *call, const struct catalog_function *function)
{
    int r = call_find_target(call, function);

    if (r <= 0 || qualifier_kind_of(call->qualifier) == QUALIFIER_ALIAS)
        return r;
    return aws_error_set(&call->error, AWS_ERROR_RESOURCE_NOT_FOUND, "No policy found for: %s",
                         call_function_arn(call, call->qualifier));
}

static int build_removal(struct call *call, struct catalog_change *change)
{
    struct catalog_function *function = table_get(&catalog_change_scope(change)->functions, call->function_name);
    struct span id = operation_parameter(call->operation, SPAN("StatementId"));
    struct span revision = SPAN_NONE;
    const json_t *policy = find_policy(call, function);
    json_t *statements;
    int r = find_removal_target(call, function);
    int at = statements_find(statements_of(policy), id);

    if (r)
        return r;
    if (!policy)
        return aws_error_set(&call->error, AWS_ERROR_RESOURCE_NOT_FOUND,
                             "No policy is associated with the given resource.");
    operation_query(call->operation, SPAN("RevisionId"), &revision);
    r = check_revision(call, policy, revision);
    if (r)
        return r;
    if (at < 0)
        return aws_error_set(&call->error, AWS_ERROR_RESOURCE_NOT_FOUND,
                             "Statement %.*s is not found in resource policy.", SPAN_ARG(id));
    statements = json_copy(statements_of(policy));
    r = statements && json_array_remove(statements, (size_t)at) == 0 ? put_statements(call, change, statements)
                                                                     : -ENOMEM;
    json_decref(statements);
    return r;
}

void lambda_remove_permission(struct operation *operation)
{
    static const struct validation_constraint statement_id = {
        .minimum = 1, .maximum = LAMBDA_STATEMENT_ID_MAXIMUM, .pattern = LAMBDA_NAMESPACED_STATEMENT_ID_PATTERN};
    struct call *call = call_new(operation);
    int r;

    if (!call)
        return;
    validate_string(&call->validation, operation_parameter(operation, SPAN("StatementId")), "statementId",
                    &statement_id);
    r = call_check_names(call, FUNCTION_NAME_NAMESPACED, CALL_QUALIFIER);
    if (r)
        call_end(call, r, "checking the names");
    else
        call_submit(call, build_removal, call_respond_empty);
}
