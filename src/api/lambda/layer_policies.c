/*
 * AddLayerVersionPermission, GetLayerVersionPolicy, RemoveLayerVersionPermission. The policy is a member of the
 * version's document: {"RevisionId", "Former"?, "Statements": [...]}; it goes with its last statement.
 */
#include "api/lambda/handlers.h"
#include "api/lambda/layers.h"
#include "api/lambda/principal.h"
#include "api/lambda/rules.h"
#include "api/lambda/statements.h"
#include "aws/shapes.h"
#include "base/random.h"

static const struct input_member members[] = {
    {.name = "StatementId", .kind = INPUT_STRING},
    {.name = "Action", .kind = INPUT_STRING},
    {.name = "Principal", .kind = INPUT_STRING},
    {.name = "OrganizationId", .kind = INPUT_STRING},
    {0},
};

static const struct string_rule strings[] = {
    {NULL, "StatementId", "statementId", {1, LAMBDA_STATEMENT_ID_MAXIMUM, LAMBDA_STATEMENT_ID_PATTERN, NULL}, true},
    {NULL,
     "Action",
     "action",
     {0, LAMBDA_LAYER_PERMISSION_ACTION_MAXIMUM, LAMBDA_LAYER_PERMISSION_ACTION_PATTERN, NULL},
     true},
    {NULL, "Principal", "principal", {0, LAMBDA_LAYER_PRINCIPAL_MAXIMUM, LAMBDA_LAYER_PRINCIPAL_PATTERN, NULL}, true},
    {NULL,
     "OrganizationId",
     "organizationId",
     {0, LAMBDA_ORGANIZATION_ID_MAXIMUM, LAMBDA_ORGANIZATION_ID_PATTERN, NULL}},
};

/* What a call is about: call->detail. */
struct permission {
    struct layer_name layer;
    struct span statement_id;
};

static struct call *permission_call_new(struct operation *operation)
{
    struct call *call = call_new(operation);

    if (!call)
        return NULL;
    call->detail = arena_zalloc(&operation->arena, sizeof(struct permission));
    if (call->detail)
        return call;
    call_end(call, -ENOMEM, "starting the operation");
    return NULL;
}

/* The version in `scope` and its policy (may come out as NULL), or the refusal. */
static int find_policy(struct call *call, const struct catalog_scope *scope, const json_t **ret_document,
                       const json_t **ret_policy)
{
    const struct permission *permission = call->detail;

    *ret_document = layer_find_in(scope, permission->layer.name, permission->layer.version);
    *ret_policy = json_object_get(*ret_document, "Policy");
    return *ret_document ? 0
                         : aws_error_set(&call->error, AWS_ERROR_RESOURCE_NOT_FOUND, "Layer version %s does not exist.",
                                         layer_arn(call, &permission->layer));
}

static json_t *statements_of(const json_t *policy)
{
    return json_object_get(policy, "Statements");
}

static int refuse_revision(struct call *call)
{
    return aws_error_set(&call->error, AWS_ERROR_PRECONDITION_FAILED,
                         "The Revision Id provided does not match the latest Revision Id. Call the GetLayerPolicy API "
                         "to retrieve the latest Revision Id");
}

static bool is_revision(const json_t *policy, const char *member, struct span given)
{
    return span_equal(input_string(policy, member), given);
}

/* Sets the document's policy to the statements under a new RevisionId. */
static int set_policy(json_t *document, json_t *statements)
{
    const json_t *former = json_object_get(json_object_get(document, "Policy"), "RevisionId");
    char revision[UUID_BYTES];
    json_t *policy;

    if (json_array_size(statements) == 0)
        return json_object_del(document, "Policy");
    policy =
        json_pack("{s:s, s:O*, s:O}", "RevisionId", random_uuid(revision), "Former", former, "Statements", statements);
    return policy && json_object_set_new(document, "Policy", policy) == 0 ? 0 : -ENOMEM;
}

/* Stores the version with these statements. */
static int put_statements(struct call *call, struct catalog_change *change, const json_t *current, json_t *statements)
{
    const struct permission *permission = call->detail;
    json_t *document = json_copy((json_t *)current);
    struct span record;
    int r = document ? layer_record_name(call, permission->layer.name, permission->layer.version, &record) : -ENOMEM;

    if (r == 0)
        r = set_policy(document, statements);
    if (r == 0)
        r = catalog_change_put_record(change, CATALOG_LAYER_VERSION, record, document);
    json_decref(document);
    return r;
}

/* --- AddLayerVersionPermission --- */

static json_t *make_statement(struct call *call)
{
    const struct permission *permission = call->detail;
    struct span organization = input_string(call->input, "OrganizationId");
    json_t *principal = principal_make(input_string(call->input, "Principal"), call->operation->region);
    json_t *statement =
        principal ? json_pack("{s:s%, s:s, s:o, s:O, s:s}", "Sid", permission->statement_id.data,
                              permission->statement_id.length, "Effect", "Allow", "Principal", principal, "Action",
                              json_object_get(call->input, "Action"), "Resource", layer_arn(call, &permission->layer))
                  : NULL;

    if (statement && organization.length &&
        json_object_set_new(statement, "Condition",
                            json_pack("{s:{s:s%}}", "StringEquals", "aws:PrincipalOrgID", organization.data,
                                      organization.length)) < 0) {
        json_decref(statement);
        return NULL;
    }
    return statement;
}

static int check_addition(struct call *call, const json_t *policy)
{
    const struct permission *permission = call->detail;
    struct span revision;
    int r = statements_check_id(call, statements_of(policy), permission->statement_id);

    if (r)
        return r;
    if (operation_query(call->operation, SPAN("RevisionId"), &revision) && !is_revision(policy, "RevisionId", revision))
        return refuse_revision(call);
    return 0;
}

static int build_addition(struct call *call, struct catalog_change *change)
{
    const json_t *document;
    const json_t *policy;
    json_t *statements;
    int r = find_policy(call, catalog_change_scope(change), &document, &policy);

    if (r == 0)
        r = check_addition(call, policy);
    if (r)
        return r;
    call->document = make_statement(call);
    statements = policy ? json_copy(statements_of(policy)) : json_array();
    if (!call->document || json_array_append(statements, call->document) < 0)
        r = -ENOMEM;
    if (r == 0)
        r = statements_check_size(call, statements);
    if (r == 0)
        r = put_statements(call, change, document, statements);
    json_decref(statements);
    return r;
}

/* The version's policy as it is now; NULL when it is gone again. */
static const json_t *policy_now(struct call *call)
{
    const struct permission *permission = call->detail;

    return json_object_get(layer_find(call, &permission->layer), "Policy");
}

static void answer_addition(struct call *call)
{
    char *text = json_dumps(call->document, JSON_COMPACT);
    json_t *answer = text ? json_pack("{s:s, s:O*}", "Statement", text, "RevisionId",
                                      json_object_get(policy_now(call), "RevisionId"))
                          : NULL;

    free(text);
    call_respond(call, 201, answer);
}

static void on_addition_parsed(struct call *call)
{
    struct permission *permission = call->detail;
    int r;

    rules_validate_strings(call, strings, ARRAY_SIZE(strings));
    permission->statement_id = input_string(call->input, "StatementId");
    r = layer_take_name(call, true, &permission->layer);
    if (r == 0)
        r = layer_check_owner(call, &permission->layer);
    if (r)
        call_end(call, r, "checking the permission");
    else
        call_submit(call, build_addition, answer_addition);
}

void lambda_add_layer_version_permission(struct operation *operation)
{
    struct call *call = permission_call_new(operation);

    if (call)
        input_read_body(call, members, NULL, on_addition_parsed);
}

/* --- GetLayerVersionPolicy --- */

static void respond_policy(struct call *call, const json_t *policy)
{
    char *text = statements_write(statements_of(policy));
    json_t *answer =
        text ? json_pack("{s:s, s:O}", "Policy", text, "RevisionId", json_object_get(policy, "RevisionId")) : NULL;

    free(text);
    call_respond(call, 200, answer);
}

void lambda_get_layer_version_policy(struct operation *operation)
{
    struct call *call = permission_call_new(operation);
    struct permission *permission;
    const json_t *document;
    const json_t *policy = NULL;
    int r;

    if (!call)
        return;
    permission = call->detail;
    r = layer_take_name(call, true, &permission->layer);
    if (r == 0)
        r = layer_check_owner(call, &permission->layer);
    if (r == 0)
        r = find_policy(call, catalog_find_scope(call->catalog, operation->account, operation->region), &document,
                        &policy);
    if (r == 0 && !policy)
        r = aws_error_set(&call->error, AWS_ERROR_RESOURCE_NOT_FOUND,
                          "No policy is associated with the given resource.");
    if (r)
        call_end(call, r, "finding the policy");
    else
        respond_policy(call, policy);
}

/* --- RemoveLayerVersionPermission --- */

static int check_removal(struct call *call, const json_t *policy)
{
    const struct permission *permission = call->detail;
    struct span revision;

    if (!policy)
        return aws_error_set(&call->error, AWS_ERROR_RESOURCE_NOT_FOUND,
                             "No policy is associated with the given resource.");
    /* The RevisionId before the latest is taken too (recorded). */
    if (operation_query(call->operation, SPAN("RevisionId"), &revision) &&
        !is_revision(policy, "RevisionId", revision) && !is_revision(policy, "Former", revision))
        return refuse_revision(call);
    if (statements_find(statements_of(policy), permission->statement_id) < 0)
        return aws_error_set(&call->error, AWS_ERROR_RESOURCE_NOT_FOUND,
                             "Statement %.*s is not found in resource policy.", SPAN_ARG(permission->statement_id));
    return 0;
}

static int build_removal(struct call *call, struct catalog_change *change)
{
    const struct permission *permission = call->detail;
    const json_t *document;
    const json_t *policy;
    json_t *statements;
    int r = find_policy(call, catalog_change_scope(change), &document, &policy);

    if (r == 0)
        r = check_removal(call, policy);
    if (r)
        return r;
    statements = json_copy(statements_of(policy));
    r = statements
            ? json_array_remove(statements, (size_t)statements_find(statements_of(policy), permission->statement_id))
            : -ENOMEM;
    if (r == 0)
        r = put_statements(call, change, document, statements);
    json_decref(statements);
    return r;
}

void lambda_remove_layer_version_permission(struct operation *operation)
{
    static const struct validation_constraint constraint = {1, LAMBDA_STATEMENT_ID_MAXIMUM, LAMBDA_STATEMENT_ID_PATTERN,
                                                            NULL};
    struct call *call = permission_call_new(operation);
    struct permission *permission;
    int r;

    if (!call)
        return;
    permission = call->detail;
    permission->statement_id = operation_parameter(operation, SPAN("StatementId"));
    validate_string(&call->validation, permission->statement_id, "statementId", &constraint);
    r = layer_take_name(call, true, &permission->layer);
    if (r == 0)
        r = layer_check_owner(call, &permission->layer);
    if (r)
        call_end(call, r, "finding the layer");
    else
        call_submit(call, build_removal, call_respond_empty);
}
