/* The handlers that the routing table names, one file a resource; see operation.h for how they are run. */
#pragma once

#include "api/operation.h"

void lambda_create_function(struct operation *operation);
void lambda_get_function(struct operation *operation);
void lambda_get_function_configuration(struct operation *operation);
void lambda_list_functions(struct operation *operation);
void lambda_delete_function(struct operation *operation);
void lambda_update_function_configuration(struct operation *operation);

void lambda_update_function_code(struct operation *operation);
/* GET /_kiln/code/{Sha256}: the page behind Code.Location. */
void lambda_download_code(struct operation *operation);

void lambda_publish_version(struct operation *operation);
void lambda_list_versions_by_function(struct operation *operation);

void lambda_create_alias(struct operation *operation);
void lambda_get_alias(struct operation *operation);
void lambda_update_alias(struct operation *operation);
void lambda_list_aliases(struct operation *operation);
void lambda_delete_alias(struct operation *operation);

void lambda_put_function_concurrency(struct operation *operation);
void lambda_get_function_concurrency(struct operation *operation);
void lambda_delete_function_concurrency(struct operation *operation);

void lambda_put_provisioned_concurrency_config(struct operation *operation);
void lambda_get_provisioned_concurrency_config(struct operation *operation);
void lambda_list_provisioned_concurrency_configs(struct operation *operation);
void lambda_delete_provisioned_concurrency_config(struct operation *operation);

void lambda_add_permission(struct operation *operation);
void lambda_get_policy(struct operation *operation);
void lambda_remove_permission(struct operation *operation);

void lambda_put_function_event_invoke_config(struct operation *operation);
void lambda_update_function_event_invoke_config(struct operation *operation);
void lambda_get_function_event_invoke_config(struct operation *operation);
void lambda_delete_function_event_invoke_config(struct operation *operation);
void lambda_list_function_event_invoke_configs(struct operation *operation);

void lambda_create_function_url_config(struct operation *operation);
void lambda_update_function_url_config(struct operation *operation);
void lambda_get_function_url_config(struct operation *operation);
void lambda_delete_function_url_config(struct operation *operation);
void lambda_list_function_url_configs(struct operation *operation);
void lambda_publish_layer_version(struct operation *operation);
void lambda_get_layer_version(struct operation *operation);
void lambda_get_layer_version_by_arn(struct operation *operation);
void lambda_delete_layer_version(struct operation *operation);
void lambda_list_layers(struct operation *operation);
void lambda_list_layer_versions(struct operation *operation);
void lambda_add_layer_version_permission(struct operation *operation);
void lambda_get_layer_version_policy(struct operation *operation);
void lambda_remove_layer_version_permission(struct operation *operation);

void lambda_create_code_signing_config(struct operation *operation);
void lambda_get_code_signing_config(struct operation *operation);
void lambda_update_code_signing_config(struct operation *operation);
void lambda_delete_code_signing_config(struct operation *operation);
void lambda_list_code_signing_configs(struct operation *operation);
void lambda_put_function_code_signing_config(struct operation *operation);
void lambda_get_function_code_signing_config(struct operation *operation);
void lambda_delete_function_code_signing_config(struct operation *operation);
void lambda_list_functions_by_code_signing_config(struct operation *operation);

void lambda_tag_resource(struct operation *operation);
void lambda_untag_resource(struct operation *operation);
void lambda_list_tags(struct operation *operation);

void lambda_put_function_recursion_config(struct operation *operation);
void lambda_get_function_recursion_config(struct operation *operation);
void lambda_put_runtime_management_config(struct operation *operation);
void lambda_get_runtime_management_config(struct operation *operation);
void lambda_put_function_scaling_config(struct operation *operation);
void lambda_get_function_scaling_config(struct operation *operation);

void lambda_create_event_source_mapping(struct operation *operation);
void lambda_get_event_source_mapping(struct operation *operation);
void lambda_update_event_source_mapping(struct operation *operation);
void lambda_delete_event_source_mapping(struct operation *operation);
void lambda_list_event_source_mappings(struct operation *operation);

void lambda_get_account_settings(struct operation *operation);
