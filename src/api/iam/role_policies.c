/* Policies within a role ("inline"), and those attached to it. */
#include "api/iam/handlers.h"
#include "api/iam/iam_call.h"
#include "aws/arn.h"

enum { DOCUMENT_MAX = 131072, INLINE_QUOTA = 10240, ATTACHED_MAX = 10 };

/* The role that the request names. 0, a refusal, -ENOMEM. */
static int find_role(struct iam_call *call, const json_t **ret_role)
{
    int r = iam_finish_validation(call);

    if (r)
        return r;
    *ret_role = iam_find(call);
    return *ret_role ? 0 : iam_refuse_missing(call);
}

/* --- inline policies --- */

static int refuse_missing_inline(struct iam_call *call)
{
    return iam_refuse(call, 404, "NoSuchEntity", "The role policy with name %.*s cannot be found.",
                      SPAN_ARG(iam_string(call, "PolicyName")));
}

static int edit_put_inline(struct iam_call *call, json_t *role)
{
    struct span name = iam_string(call, "PolicyName");
    json_t *policies = json_object_get(role, "inline");

    return json_object_setn_new(policies, name.data, name.length, iam_json(iam_string(call, "PolicyDocument"))) < 0
               ? -ENOMEM
               : 0;
}

void iam_put_role_policy(struct operation *operation)
{
    struct iam_call *call = iam_call_new(operation);
    struct span name;
    struct span document;
    int r;

    if (!call)
        return;
    iam_read_role(call);
    name = iam_read_string(call, "PolicyName", true, 1, 128);
    document = iam_read_string(call, "PolicyDocument", true, 1, DOCUMENT_MAX);
    r = iam_finish_validation(call);
    if (r == 0)
        r = iam_check_name(call, name, "PolicyName");
    if (r == 0)
        r = iam_check_document(call, document, INLINE_QUOTA, "PolicySize");
    if (r)
        iam_end(call, r, "checking the policy");
    else
        iam_submit_edit(call, edit_put_inline);
}

void iam_get_role_policy(struct operation *operation)
{
    struct iam_call *call = iam_call_new(operation);
    const json_t *document = NULL;
    const json_t *role;
    struct span name;
    int r;

    if (!call)
        return;
    iam_read_role(call);
    name = iam_read_string(call, "PolicyName", true, 1, 128);
    r = find_role(call, &role);
    if (r == 0)
        document = json_object_getn(json_object_get(role, "inline"), name.data, name.length);
    if (r == 0 && !document)
        r = refuse_missing_inline(call);
    if (r)
        iam_end(call, r, "finding the policy");
    else
        iam_respond(call, json_pack("{s:O, s:o, s:o}", "RoleName", json_object_get(role, "RoleName"), "PolicyName",
                                    iam_json(name), "PolicyDocument", iam_encode_document(document)));
}

void iam_list_role_policies(struct operation *operation)
{
    struct iam_call *call = iam_call_new(operation);
    const json_t *role;
    const char *name;
    json_t *document;
    json_t *names;
    int r;

    if (!call)
        return;
    iam_read_role(call);
    iam_read_page(call);
    r = find_role(call, &role);
    if (r) {
        iam_end(call, r, "finding the role");
        return;
    }
    names = json_array();
    json_object_foreach(json_object_get(role, "inline"), name, document) iam_append(&names, json_string(name));
    iam_respond_page(call, "PolicyNames", names, NULL);
}

static int edit_delete_inline(struct iam_call *call, json_t *role)
{
    struct span name = iam_string(call, "PolicyName");

    return json_object_deln(json_object_get(role, "inline"), name.data, name.length) < 0 ? refuse_missing_inline(call)
                                                                                         : 0;
}

void iam_delete_role_policy(struct operation *operation)
{
    struct iam_call *call = iam_call_new(operation);
    int r;

    if (!call)
        return;
    iam_read_role(call);
    iam_read_string(call, "PolicyName", true, 1, 128);
    r = iam_finish_validation(call);
    if (r)
        iam_end(call, r, "checking the policy");
    else
        iam_submit_edit(call, edit_delete_inline);
}

/* --- attached policies --- */

static struct span policy_arn(const struct iam_call *call)
{
    return iam_string(call, "PolicyArn");
}

/* One of AWS is taken at its word; one of the account must be there. */
static int check_attachable(struct iam_call *call)
{
    struct iam_call policy = {.operation = call->operation, .catalog = call->catalog};
    struct arn arn;
    bool is_policy = arn_parse(policy_arn(call), &arn) == 0 && span_equal(arn.service, SPAN("iam")) &&
                     span_starts_with(arn.resource, SPAN("policy/"));

    if (!is_policy)
        return aws_error_set(&call->error, AWS_ERROR_VALIDATION, "ARN %.*s is not valid.", SPAN_ARG(policy_arn(call)));
    if (span_equal(arn.account, SPAN("aws")))
        return 0;
    iam_read_policy(&policy);
    if (iam_find(&policy))
        return 0;
    return iam_refuse(call, 404, "NoSuchEntity", "Policy %.*s does not exist or is not attachable.",
                      SPAN_ARG(policy_arn(call)));
}

static int edit_attach(struct iam_call *call, json_t *role)
{
    json_t *attached = json_object_get(role, "attached");
    struct span arn = policy_arn(call);
    struct span name = arn;
    int r = check_attachable(call);

    if (r)
        return r;
    while (span_find(name, '/') >= 0)
        span_cut(&name, '/');
    if (json_object_setn_new(attached, arn.data, arn.length, iam_json(name)) < 0)
        return -ENOMEM;
    if (json_object_size(attached) > ATTACHED_MAX)
        return iam_refuse(call, 409, "LimitExceeded", "Cannot exceed quota for PoliciesPerRole: %d", ATTACHED_MAX);
    return 0;
}

static void start_attachment(struct operation *operation, int (*edit)(struct iam_call *call, json_t *role))
{
    struct iam_call *call = iam_call_new(operation);
    int r;

    if (!call)
        return;
    iam_read_role(call);
    iam_read_string(call, "PolicyArn", true, 20, 2048);
    r = iam_finish_validation(call);
    if (r)
        iam_end(call, r, "checking the policy");
    else
        iam_submit_edit(call, edit);
}

void iam_attach_role_policy(struct operation *operation)
{
    start_attachment(operation, edit_attach);
}

static int edit_detach(struct iam_call *call, json_t *role)
{
    struct span arn = policy_arn(call);

    if (json_object_deln(json_object_get(role, "attached"), arn.data, arn.length) == 0)
        return 0;
    return iam_refuse(call, 404, "NoSuchEntity", "Policy %.*s was not found.", SPAN_ARG(arn));
}

void iam_detach_role_policy(struct operation *operation)
{
    start_attachment(operation, edit_detach);
}

/* Whether the policy's path begins with the prefix. */
static bool has_path(const char *text, struct span prefix)
{
    struct arn arn;

    return !prefix.length ||
           (arn_parse(span_from(text), &arn) == 0 &&
            span_starts_with(span_slice(arn.resource, strlen("policy"), arn.resource.length), prefix));
}

void iam_list_attached_role_policies(struct operation *operation)
{
    struct iam_call *call = iam_call_new(operation);
    const json_t *role;
    struct span prefix;
    const char *arn;
    json_t *name;
    json_t *policies;
    int r;

    if (!call)
        return;
    iam_read_role(call);
    prefix = iam_read_string(call, "PathPrefix", false, 1, 512);
    iam_read_page(call);
    r = find_role(call, &role);
    if (r) {
        iam_end(call, r, "finding the role");
        return;
    }
    policies = json_array();
    json_object_foreach(json_object_get(role, "attached"), arn, name)
    {
        if (has_path(arn, prefix))
            iam_append(&policies, json_pack("{s:O, s:s}", "PolicyName", name, "PolicyArn", arn));
    }
    iam_respond_page(call, "AttachedPolicies", policies, "PolicyArn");
}
