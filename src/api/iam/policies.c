/* Managed policies of the account, with up to five versions each. */
#include "api/iam/handlers.h"
#include "api/iam/iam_call.h"

#include <stdio.h>

enum { DESCRIPTION_MAX = 1000, DOCUMENT_MAX = 131072, POLICY_QUOTA = 6144, VERSIONS_MAX = 5, VERSION_BYTES = 32 };

/* --- answers --- */

/* How many roles it is attached to. */
static size_t count_attachments(const struct catalog_scope *scope, const json_t *policy)
{
    const char *arn = json_string_value(json_object_get(policy, "Arn"));
    size_t count = 0;

    TABLE_FOREACH (item, &scope->records[CATALOG_ROLE]) {
        const struct catalog_record *role = item->value;
        count += json_object_get(json_object_get(role->document, "attached"), arn) != NULL;
    }
    return count;
}

/* Policy; lists leave the description and the tags out. `scope` NULL: it is attached to nothing. */
static json_t *render(const struct catalog_scope *scope, const json_t *policy, bool whole)
{
    const json_t *tags = json_object_get(policy, "Tags");

    return json_pack("{s:O, s:O, s:O, s:O, s:O, s:I, s:i, s:b, s:O*, s:O, s:O, s:o*}", "PolicyName",
                     json_object_get(policy, "PolicyName"), "PolicyId", json_object_get(policy, "PolicyId"), "Arn",
                     json_object_get(policy, "Arn"), "Path", json_object_get(policy, "Path"), "DefaultVersionId",
                     json_object_get(policy, "default"), "AttachmentCount",
                     (json_int_t)(scope ? count_attachments(scope, policy) : 0), "PermissionsBoundaryUsageCount", 0,
                     "IsAttachable", 1, "Description", whole ? json_object_get(policy, "Description") : NULL,
                     "CreateDate", json_object_get(policy, "CreateDate"), "UpdateDate",
                     json_object_get(policy, "UpdateDate"), "Tags",
                     whole && json_object_size(tags) ? iam_render_tags(tags) : NULL);
}

/* PolicyVersion; only GetPolicyVersion shows the document. */
static json_t *render_version(const json_t *policy, const char *id, bool with_document)
{
    const json_t *version = json_object_get(json_object_get(policy, "versions"), id);
    const char *newest = json_string_value(json_object_get(policy, "default"));

    return json_pack("{s:o*, s:s, s:b, s:O}", "Document",
                     with_document ? iam_encode_document(json_object_get(version, "document")) : NULL, "VersionId", id,
                     "IsDefaultVersion", newest && !strcmp(newest, id), "CreateDate",
                     json_object_get(version, "created"));
}

/* --- versions --- */

/* Adds the document as the policy's next version, whose id goes to `id`. */
static int add_version(json_t *policy, struct span document, char id[VERSION_BYTES])
{
    json_int_t next = json_integer_value(json_object_get(policy, "next"));
    char created[IAM_TIME_BYTES];
    json_t *version = json_pack("{s:o, s:s}", "document", iam_json(document), "created", iam_time(created));

    snprintf(id, VERSION_BYTES, "v%" JSON_INTEGER_FORMAT, next);
    if (json_object_set_new(json_object_get(policy, "versions"), id, version) < 0 ||
        json_object_set_new(policy, "next", json_integer(next + 1)) < 0 ||
        json_object_set_new(policy, "UpdateDate", json_string(iam_time(created))) < 0)
        return -ENOMEM;
    return 0;
}

/* --- CreatePolicy --- */

static json_t *make_policy(struct iam_call *call, json_t *tags)
{
    struct span path = iam_string(call, "Path");
    char created[IAM_TIME_BYTES];
    char version[VERSION_BYTES];
    char id[IAM_ID_BYTES];
    json_t *policy;

    if (!path.data)
        path = SPAN("/");
    policy = json_pack("{s:o, s:s, s:s, s:o, s:s, s:o*, s:O, s:s, s:i, s:{}}", "PolicyName", iam_json(call->name),
                       "PolicyId", iam_id("ANPA", id), "Arn", iam_arn(call, "policy", path, call->name), "Path",
                       iam_json(path), "CreateDate", iam_time(created), "Description",
                       iam_json(iam_string(call, "Description")), "Tags", tags, "default", "v1", "next", 1, "versions");
    if (policy && add_version(policy, iam_string(call, "PolicyDocument"), version) < 0) {
        json_decref(policy);
        return NULL;
    }
    return policy;
}

static void read_new_policy(struct iam_call *call)
{
    call->kind = CATALOG_MANAGED_POLICY;
    call->name = iam_read_string(call, "PolicyName", true, 1, 128);
    call->key = iam_key(call, call->name);
    iam_read_string(call, "PolicyDocument", true, 1, DOCUMENT_MAX);
    iam_read_string(call, "Path", false, 1, 512);
    iam_read_string(call, "Description", false, 0, DESCRIPTION_MAX);
}

static json_t *wrap_new_policy(const json_t *policy)
{
    return json_pack("{s:o}", "Policy", render(NULL, policy, true));
}

void iam_create_policy(struct operation *operation)
{
    static const struct iam_creation creation = {"PolicyName",    "PolicyDocument", POLICY_QUOTA,   "PolicySize",
                                                 read_new_policy, make_policy,      wrap_new_policy};

    iam_create(operation, &creation);
}

/* --- looking --- */

/* The policy that the request names, after what else was read. 0, a refusal, -ENOMEM. */
static int find_policy(struct iam_call *call, const json_t **ret_policy)
{
    int r;

    iam_read_policy(call);
    r = iam_finish_validation(call);
    if (r)
        return r;
    *ret_policy = iam_find(call);
    return *ret_policy ? 0 : iam_refuse_missing(call);
}

static const struct catalog_scope *scope_of(const struct iam_call *call)
{
    return catalog_find_scope(call->catalog, call->operation->account, CATALOG_GLOBAL);
}

void iam_get_policy(struct operation *operation)
{
    struct iam_call *call = iam_call_new(operation);
    const json_t *policy;
    int r;

    if (!call)
        return;
    r = find_policy(call, &policy);
    if (r)
        iam_end(call, r, "finding the policy");
    else
        iam_respond(call, json_pack("{s:o}", "Policy", render(scope_of(call), policy, true)));
}

/* Of AWS there are none to list. */
static json_t *list_policies(const struct iam_call *call, bool only_attached, struct span prefix)
{
    const struct catalog_scope *scope = scope_of(call);
    json_t *policies = json_array();

    if (!scope || span_equal(iam_string(call, "Scope"), SPAN("AWS")))
        return policies;
    TABLE_FOREACH (item, &scope->records[CATALOG_MANAGED_POLICY]) {
        const json_t *policy = ((const struct catalog_record *)item->value)->document;
        const char *path = json_string_value(json_object_get(policy, "Path"));
        if (span_starts_with(span_from(path), prefix) && (!only_attached || count_attachments(scope, policy)))
            iam_append(&policies, render(scope, policy, false));
    }
    return policies;
}

void iam_list_policies(struct operation *operation)
{
    static const char *const scopes[] = {"All", "AWS", "Local", NULL};
    struct iam_call *call = iam_call_new(operation);
    struct span prefix;

    if (!call)
        return;
    prefix = iam_read_string(call, "PathPrefix", false, 1, 512);
    if (iam_string(call, "Scope").data)
        validate_enum(&call->validation, iam_string(call, "Scope"), "scope", scopes);
    iam_respond_page(call, "Policies", list_policies(call, iam_read_boolean(call, "OnlyAttached"), prefix),
                     "PolicyName");
}

static int refuse_missing_version(struct iam_call *call)
{
    return iam_refuse(call, 404, "NoSuchEntity", "Policy %.*s version %.*s does not exist or is not attachable.",
                      SPAN_ARG(call->name), SPAN_ARG(iam_string(call, "VersionId")));
}

static const json_t *find_version(const struct iam_call *call, const json_t *policy)
{
    struct span id = iam_string(call, "VersionId");

    return json_object_getn(json_object_get(policy, "versions"), id.data ? id.data : "", id.length);
}

void iam_get_policy_version(struct operation *operation)
{
    struct iam_call *call = iam_call_new(operation);
    const json_t *policy;
    const char *id;
    int r;

    if (!call)
        return;
    iam_read_string(call, "VersionId", true, 1, VERSION_BYTES);
    r = find_policy(call, &policy);
    if (r == 0 && !find_version(call, policy))
        r = refuse_missing_version(call);
    id = r == 0 ? arena_dup(&operation->arena, iam_string(call, "VersionId")) : NULL;
    if (r == 0 && !id)
        r = -ENOMEM;
    if (r)
        iam_end(call, r, "finding the version");
    else
        iam_respond(call, json_pack("{s:o}", "PolicyVersion", render_version(policy, id, true)));
}

void iam_list_policy_versions(struct operation *operation)
{
    struct iam_call *call = iam_call_new(operation);
    const json_t *policy;
    json_t *versions;
    json_t *version;
    const char *id;
    int r;

    if (!call)
        return;
    iam_read_page(call);
    r = find_policy(call, &policy);
    if (r) {
        iam_end(call, r, "finding the policy");
        return;
    }
    versions = json_array();
    json_object_foreach(json_object_get(policy, "versions"), id, version)
        iam_append(&versions, render_version(policy, id, false));
    iam_respond_page(call, "Versions", versions, "VersionId");
}

/* --- changing --- */

static int edit_add_version(struct iam_call *call, json_t *policy)
{
    char id[VERSION_BYTES];
    int r;

    if (json_object_size(json_object_get(policy, "versions")) >= VERSIONS_MAX)
        return iam_refuse(
            call, 409, "LimitExceeded",
            "A managed policy can have up to %d versions. Before you create a new version, you must delete "
            "an existing version.",
            VERSIONS_MAX);
    r = add_version(policy, iam_string(call, "PolicyDocument"), id);
    if (r == 0 && iam_read_boolean(call, "SetAsDefault") && json_object_set_new(policy, "default", json_string(id)) < 0)
        r = -ENOMEM;
    if (r < 0)
        return r;
    call->result = json_pack("{s:o}", "PolicyVersion", render_version(policy, id, false));
    return call->result ? 0 : -ENOMEM;
}

void iam_create_policy_version(struct operation *operation)
{
    struct iam_call *call = iam_call_new(operation);
    struct span document;
    int r;

    if (!call)
        return;
    iam_read_policy(call);
    document = iam_read_string(call, "PolicyDocument", true, 1, DOCUMENT_MAX);
    r = iam_finish_validation(call);
    if (r == 0)
        r = iam_check_document(call, document, POLICY_QUOTA, "PolicySize");
    if (r)
        iam_end(call, r, "checking the policy");
    else
        iam_submit_edit(call, edit_add_version);
}

static void start_version_edit(struct operation *operation, int (*edit)(struct iam_call *call, json_t *policy))
{
    struct iam_call *call = iam_call_new(operation);
    int r;

    if (!call)
        return;
    iam_read_policy(call);
    iam_read_string(call, "VersionId", true, 1, VERSION_BYTES);
    r = iam_finish_validation(call);
    if (r)
        iam_end(call, r, "checking the version");
    else
        iam_submit_edit(call, edit);
}

static int edit_set_default(struct iam_call *call, json_t *policy)
{
    if (!find_version(call, policy))
        return refuse_missing_version(call);
    return json_object_set_new(policy, "default", iam_json(iam_string(call, "VersionId"))) < 0 ? -ENOMEM : 0;
}

void iam_set_default_policy_version(struct operation *operation)
{
    start_version_edit(operation, edit_set_default);
}

static int edit_delete_version(struct iam_call *call, json_t *policy)
{
    struct span id = iam_string(call, "VersionId");

    if (!find_version(call, policy))
        return refuse_missing_version(call);
    if (span_equal(id, span_from(json_string_value(json_object_get(policy, "default")))))
        return iam_refuse(call, 409, "DeleteConflict", "Cannot delete the default version of a policy.");
    return json_object_deln(json_object_get(policy, "versions"), id.data, id.length) < 0 ? -ENOMEM : 0;
}

void iam_delete_policy_version(struct operation *operation)
{
    start_version_edit(operation, edit_delete_version);
}

static int build_deletion(struct iam_call *call, struct catalog_change *change)
{
    const struct catalog_scope *scope = catalog_change_scope(change);
    const json_t *policy = catalog_find_record(scope, call->kind, call->key);

    if (!policy)
        return iam_refuse_missing(call);
    if (count_attachments(scope, policy))
        return iam_refuse(call, 409, "DeleteConflict", "Cannot delete a policy attached to entities.");
    if (json_object_size(json_object_get(policy, "versions")) > 1)
        return iam_refuse(
            call, 409, "DeleteConflict",
            "This policy has more than one version. Before you delete a policy, you must delete the policy's "
            "versions. The default version is deleted with the policy.");
    return catalog_change_delete_record(change, call->kind, call->key);
}

void iam_delete_policy(struct operation *operation)
{
    struct iam_call *call = iam_call_new(operation);
    int r;

    if (!call)
        return;
    iam_read_policy(call);
    r = iam_finish_validation(call);
    if (r)
        iam_end(call, r, "checking the policy");
    else
        iam_submit(call, build_deletion);
}
