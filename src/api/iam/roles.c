/* Roles, as much of one as tools look at. */
#include "api/iam/handlers.h"
#include "api/iam/iam_call.h"

enum {
    DESCRIPTION_MAX = 1000,
    DOCUMENT_MAX = 131072,
    TRUST_QUOTA = 2048, /* characters of a trust policy */
    SESSION_MIN_S = 3600,
    SESSION_MAX_S = 43200,
};

/* --- answers --- */

enum view { VIEW_WHOLE, VIEW_LISTED };

static json_t *render_boundary(const json_t *role)
{
    json_t *arn = json_object_get(role, "PermissionsBoundary");

    return arn ? json_pack("{s:s, s:O}", "PermissionsBoundaryType", "Policy", "PermissionsBoundaryArn", arn) : NULL;
}

/* Role. Lists leave some of it out, as the API reference of ListRoles says. NULL when out of memory. */
static json_t *render(const json_t *role, enum view view)
{
    const json_t *tags = json_object_get(role, "Tags");
    bool whole = view == VIEW_WHOLE;

    return json_pack(
        "{s:O, s:O, s:O, s:O, s:O, s:o, s:O*, s:O, s:o*, s:o*, s:o*}", "Path", json_object_get(role, "Path"),
        "RoleName", json_object_get(role, "RoleName"), "RoleId", json_object_get(role, "RoleId"), "Arn",
        json_object_get(role, "Arn"), "CreateDate", json_object_get(role, "CreateDate"), "AssumeRolePolicyDocument",
        iam_encode_document(json_object_get(role, "AssumeRolePolicyDocument")), "Description",
        json_object_get(role, "Description"), "MaxSessionDuration", json_object_get(role, "MaxSessionDuration"),
        "PermissionsBoundary", whole ? render_boundary(role) : NULL, "Tags",
        whole && json_object_size(tags) ? iam_render_tags(tags) : NULL, "RoleLastUsed", whole ? json_object() : NULL);
}

static json_t *wrap(const json_t *role)
{
    return json_pack("{s:o}", "Role", render(role, VIEW_WHOLE));
}

/* --- CreateRole --- */

static json_t *make_role(struct iam_call *call, json_t *tags)
{
    struct span path = iam_string(call, "Path");
    char created[IAM_TIME_BYTES];
    char id[IAM_ID_BYTES];

    if (!path.data)
        path = SPAN("/");
    return json_pack(
        "{s:o, s:s, s:s, s:o, s:s, s:o, s:o*, s:I, s:o*, s:O, s:{}, s:{}}", "RoleName", iam_json(call->name), "RoleId",
        iam_id("AROA", id), "Arn", iam_arn(call, "role", path, call->name), "Path", iam_json(path), "CreateDate",
        iam_time(created), "AssumeRolePolicyDocument", iam_json(iam_string(call, "AssumeRolePolicyDocument")),
        "Description", iam_json(iam_string(call, "Description")), "MaxSessionDuration",
        (json_int_t)iam_read_integer(call, "MaxSessionDuration", SESSION_MIN_S, SESSION_MAX_S, SESSION_MIN_S),
        "PermissionsBoundary", iam_json(iam_string(call, "PermissionsBoundary")), "Tags", tags, "inline", "attached");
}

static void read_new_role(struct iam_call *call)
{
    iam_read_role(call);
    iam_read_string(call, "AssumeRolePolicyDocument", true, 1, DOCUMENT_MAX);
    iam_read_string(call, "Path", false, 1, 512);
    iam_read_string(call, "Description", false, 0, DESCRIPTION_MAX);
    iam_read_string(call, "PermissionsBoundary", false, 20, 2048);
    iam_read_integer(call, "MaxSessionDuration", SESSION_MIN_S, SESSION_MAX_S, SESSION_MIN_S);
}

void iam_create_role(struct operation *operation)
{
    static const struct iam_creation creation = {
        "RoleName", "AssumeRolePolicyDocument", TRUST_QUOTA, "ACLSizePerRole", read_new_role, make_role, wrap};

    iam_create(operation, &creation);
}

/* --- GetRole, ListRoles --- */

/* The role that the request names. 0, a refusal, -ENOMEM. */
static int find_role(struct iam_call *call, const json_t **ret_role)
{
    int r;

    iam_read_role(call);
    r = iam_finish_validation(call);
    if (r)
        return r;
    *ret_role = iam_find(call);
    return *ret_role ? 0 : iam_refuse_missing(call);
}

void iam_get_role(struct operation *operation)
{
    struct iam_call *call = iam_call_new(operation);
    const json_t *role;
    int r;

    if (!call)
        return;
    r = find_role(call, &role);
    if (r)
        iam_end(call, r, "finding the role");
    else
        iam_respond(call, wrap(role));
}

static bool has_path(const json_t *role, struct span prefix)
{
    return span_starts_with(span_from(json_string_value(json_object_get(role, "Path"))), prefix);
}

static json_t *list_roles(const struct iam_call *call, struct span prefix)
{
    const struct catalog_scope *scope = catalog_find_scope(call->catalog, call->operation->account, CATALOG_GLOBAL);
    json_t *roles = json_array();

    if (!scope)
        return roles;
    TABLE_FOREACH (item, &scope->records[CATALOG_ROLE]) {
        const json_t *role = ((const struct catalog_record *)item->value)->document;
        if (has_path(role, prefix))
            iam_append(&roles, render(role, VIEW_LISTED));
    }
    return roles;
}

void iam_list_roles(struct operation *operation)
{
    struct iam_call *call = iam_call_new(operation);
    struct span prefix;

    if (!call)
        return;
    prefix = iam_read_string(call, "PathPrefix", false, 1, 512);
    iam_respond_page(call, "Roles", list_roles(call, prefix), "RoleName");
}

/* --- changes --- */

static int set_text(json_t *role, const char *member, struct span text)
{
    return text.data && json_object_set_new(role, member, iam_json(text)) < 0 ? -ENOMEM : 0;
}

static int edit_role(struct iam_call *call, json_t *role)
{
    int r = set_text(role, "Description", iam_string(call, "Description"));

    if (r == 0 && iam_string(call, "MaxSessionDuration").data &&
        json_object_set_new(role, "MaxSessionDuration",
                            json_integer((json_int_t)iam_read_integer(call, "MaxSessionDuration", SESSION_MIN_S,
                                                                      SESSION_MAX_S, SESSION_MIN_S))) < 0)
        r = -ENOMEM;
    return r;
}

/* Its answer has an empty result. */
void iam_update_role(struct operation *operation)
{
    struct iam_call *call = iam_call_new(operation);
    int r;

    if (!call)
        return;
    iam_read_role(call);
    iam_read_string(call, "Description", false, 0, DESCRIPTION_MAX);
    iam_read_integer(call, "MaxSessionDuration", SESSION_MIN_S, SESSION_MAX_S, SESSION_MIN_S);
    r = iam_finish_validation(call);
    call->result = json_object();
    if (r == 0 && !call->result)
        r = -ENOMEM;
    if (r)
        iam_end(call, r, "checking the role");
    else
        iam_submit_edit(call, edit_role);
}

static int edit_description(struct iam_call *call, json_t *role)
{
    int r = set_text(role, "Description", iam_string(call, "Description"));

    if (r == 0)
        call->result = wrap(role);
    return r == 0 && call->result ? 0 : -ENOMEM;
}

void iam_update_role_description(struct operation *operation)
{
    struct iam_call *call = iam_call_new(operation);
    int r;

    if (!call)
        return;
    iam_read_role(call);
    iam_read_string(call, "Description", true, 0, DESCRIPTION_MAX);
    r = iam_finish_validation(call);
    if (r)
        iam_end(call, r, "checking the role");
    else
        iam_submit_edit(call, edit_description);
}

static int edit_trust(struct iam_call *call, json_t *role)
{
    return set_text(role, "AssumeRolePolicyDocument", iam_string(call, "PolicyDocument"));
}

void iam_update_assume_role_policy(struct operation *operation)
{
    struct iam_call *call = iam_call_new(operation);
    struct span document;
    int r;

    if (!call)
        return;
    iam_read_role(call);
    document = iam_read_string(call, "PolicyDocument", true, 1, DOCUMENT_MAX);
    r = iam_finish_validation(call);
    if (r == 0)
        r = iam_check_document(call, document, TRUST_QUOTA, "ACLSizePerRole");
    if (r)
        iam_end(call, r, "checking the policy");
    else
        iam_submit_edit(call, edit_trust);
}

/* --- DeleteRole --- */

static int build_deletion(struct iam_call *call, struct catalog_change *change)
{
    const json_t *role = catalog_find_record(catalog_change_scope(change), call->kind, call->key);

    if (!role)
        return iam_refuse_missing(call);
    if (json_object_size(json_object_get(role, "attached")))
        return iam_refuse(call, 409, "DeleteConflict", "Cannot delete entity, must detach all policies first.");
    if (json_object_size(json_object_get(role, "inline")))
        return iam_refuse(call, 409, "DeleteConflict", "Cannot delete entity, must delete policies first.");
    return catalog_change_delete_record(change, call->kind, call->key);
}

void iam_delete_role(struct operation *operation)
{
    struct iam_call *call = iam_call_new(operation);
    int r;

    if (!call)
        return;
    iam_read_role(call);
    r = iam_finish_validation(call);
    if (r)
        iam_end(call, r, "checking the role");
    else
        iam_submit(call, build_deletion);
}

/* --- ListInstanceProfilesForRole: there are none, which Terraform asks before it deletes a role --- */

void iam_list_instance_profiles_for_role(struct operation *operation)
{
    struct iam_call *call = iam_call_new(operation);
    const json_t *role;
    int r;

    if (!call)
        return;
    iam_read_page(call);
    r = find_role(call, &role);
    if (r)
        iam_end(call, r, "finding the role");
    else
        iam_respond_page(call, "InstanceProfiles", json_array(), "InstanceProfileName");
}
