/* The handlers that the table of actions names; see operation.h for how they are run. */
#pragma once

#include "api/operation.h"

void iam_create_role(struct operation *operation);
void iam_get_role(struct operation *operation);
void iam_list_roles(struct operation *operation);
void iam_update_role(struct operation *operation);
void iam_update_role_description(struct operation *operation);
void iam_update_assume_role_policy(struct operation *operation);
void iam_delete_role(struct operation *operation);
void iam_list_instance_profiles_for_role(struct operation *operation);

void iam_put_role_policy(struct operation *operation);
void iam_get_role_policy(struct operation *operation);
void iam_list_role_policies(struct operation *operation);
void iam_delete_role_policy(struct operation *operation);
void iam_attach_role_policy(struct operation *operation);
void iam_detach_role_policy(struct operation *operation);
void iam_list_attached_role_policies(struct operation *operation);

void iam_create_policy(struct operation *operation);
void iam_get_policy(struct operation *operation);
void iam_list_policies(struct operation *operation);
void iam_delete_policy(struct operation *operation);
void iam_create_policy_version(struct operation *operation);
void iam_get_policy_version(struct operation *operation);
void iam_list_policy_versions(struct operation *operation);
void iam_set_default_policy_version(struct operation *operation);
void iam_delete_policy_version(struct operation *operation);

void iam_tag_role(struct operation *operation);
void iam_untag_role(struct operation *operation);
void iam_list_role_tags(struct operation *operation);
void iam_tag_policy(struct operation *operation);
void iam_untag_policy(struct operation *operation);
void iam_list_policy_tags(struct operation *operation);
