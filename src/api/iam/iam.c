#include "api/iam/iam.h"

#include "api/iam/handlers.h"

static const struct operation_route routes[] = {
    {.name = "AttachRolePolicy", .handler = iam_attach_role_policy},
    {.name = "CreatePolicy", .handler = iam_create_policy},
    {.name = "CreatePolicyVersion", .handler = iam_create_policy_version},
    {.name = "CreateRole", .handler = iam_create_role},
    {.name = "DeletePolicy", .handler = iam_delete_policy},
    {.name = "DeletePolicyVersion", .handler = iam_delete_policy_version},
    {.name = "DeleteRole", .handler = iam_delete_role},
    {.name = "DeleteRolePolicy", .handler = iam_delete_role_policy},
    {.name = "DetachRolePolicy", .handler = iam_detach_role_policy},
    {.name = "GetPolicy", .handler = iam_get_policy},
    {.name = "GetPolicyVersion", .handler = iam_get_policy_version},
    {.name = "GetRole", .handler = iam_get_role},
    {.name = "GetRolePolicy", .handler = iam_get_role_policy},
    {.name = "ListAttachedRolePolicies", .handler = iam_list_attached_role_policies},
    {.name = "ListInstanceProfilesForRole", .handler = iam_list_instance_profiles_for_role},
    {.name = "ListPolicies", .handler = iam_list_policies},
    {.name = "ListPolicyTags", .handler = iam_list_policy_tags},
    {.name = "ListPolicyVersions", .handler = iam_list_policy_versions},
    {.name = "ListRolePolicies", .handler = iam_list_role_policies},
    {.name = "ListRoleTags", .handler = iam_list_role_tags},
    {.name = "ListRoles", .handler = iam_list_roles},
    {.name = "PutRolePolicy", .handler = iam_put_role_policy},
    {.name = "SetDefaultPolicyVersion", .handler = iam_set_default_policy_version},
    {.name = "TagPolicy", .handler = iam_tag_policy},
    {.name = "TagRole", .handler = iam_tag_role},
    {.name = "UntagPolicy", .handler = iam_untag_policy},
    {.name = "UntagRole", .handler = iam_untag_role},
    {.name = "UpdateAssumeRolePolicy", .handler = iam_update_assume_role_policy},
    {.name = "UpdateRole", .handler = iam_update_role},
    {.name = "UpdateRoleDescription", .handler = iam_update_role_description},
};

const struct operation_route *iam_routes(size_t *ret_count)
{
    *ret_count = ARRAY_SIZE(routes);
    return routes;
}
