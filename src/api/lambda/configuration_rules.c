/*
 * What the service model says about the members that CreateFunction and UpdateFunctionConfiguration share: their
 * shapes, and what each must satisfy (ValidationException, all violations at once).
 */
#include "api/lambda/configuration.h"
#include "api/lambda/rules.h"
#include "api/lambda/runtimes.h"
#include "api/lambda/tags.h"
#include "aws/shapes.h"

const struct input_member configuration_vpc_members[] = {
    {.name = "SubnetIds", .kind = INPUT_LIST, .element = INPUT_STRING},
    {.name = "SecurityGroupIds", .kind = INPUT_LIST, .element = INPUT_STRING},
    {.name = "Ipv6AllowedForDualStack", .kind = INPUT_BOOLEAN},
    {0},
};
const struct input_member configuration_dead_letter_members[] = {{.name = "TargetArn", .kind = INPUT_STRING}, {0}};
const struct input_member configuration_environment_members[] = {
    {.name = "Variables", .kind = INPUT_MAP, .element = INPUT_STRING},
    {0},
};
const struct input_member configuration_tracing_members[] = {{.name = "Mode", .kind = INPUT_STRING}, {0}};
const struct input_member configuration_file_system_members[] = {
    {.name = "Arn", .kind = INPUT_STRING},
    {.name = "LocalMountPath", .kind = INPUT_STRING},
    {0},
};
const struct input_member configuration_image_members[] = {
    {.name = "EntryPoint", .kind = INPUT_LIST, .element = INPUT_STRING},
    {.name = "Command", .kind = INPUT_LIST, .element = INPUT_STRING},
    {.name = "WorkingDirectory", .kind = INPUT_STRING},
    {0},
};
const struct input_member configuration_storage_members[] = {{.name = "Size", .kind = INPUT_INTEGER}, {0}};
const struct input_member configuration_snap_start_members[] = {{.name = "ApplyOn", .kind = INPUT_STRING}, {0}};
const struct input_member configuration_logging_members[] = {
    {.name = "LogFormat", .kind = INPUT_STRING},
    {.name = "ApplicationLogLevel", .kind = INPUT_STRING},
    {.name = "SystemLogLevel", .kind = INPUT_STRING},
    {.name = "LogGroup", .kind = INPUT_STRING},
    {0},
};
static const struct input_member managed_instances_members[] = {
    {.name = "CapacityProviderArn", .kind = INPUT_STRING},
    {.name = "PerExecutionEnvironmentMaxConcurrency", .kind = INPUT_INTEGER},
    {.name = "ExecutionEnvironmentMemoryGiBPerVCpu", .kind = INPUT_DOUBLE},
    {0},
};
const struct input_member configuration_capacity_members[] = {
    {.name = "LambdaManagedInstancesCapacityProviderConfig",
     .kind = INPUT_STRUCTURE,
     .members = managed_instances_members},
    {0},
};
const struct input_member configuration_durable_members[] = {
    {.name = "KMSKeyArn", .kind = INPUT_STRING},
    {.name = "RetentionPeriodInDays", .kind = INPUT_INTEGER},
    {.name = "ExecutionTimeout", .kind = INPUT_INTEGER},
    {0},
};
const struct input_member configuration_tenancy_members[] = {
    {.name = "TenantIsolationMode", .kind = INPUT_STRING},
    {0},
};

/* --- required members --- */

#define MANAGED_INSTANCES      "CapacityProviderConfig.LambdaManagedInstancesCapacityProviderConfig"
#define MANAGED_INSTANCES_PATH "capacityProviderConfig.lambdaManagedInstancesCapacityProviderConfig"

/* Where their structure is there. */
static void validate_required(struct call *call)
{
    static const struct {
        const char *parent;
        const char *member;
        const char *path;
    } rules[] = {
        {"EphemeralStorage", "Size", "ephemeralStorage.size"},
        {"CapacityProviderConfig", "LambdaManagedInstancesCapacityProviderConfig", MANAGED_INSTANCES_PATH},
        {MANAGED_INSTANCES, "CapacityProviderArn", MANAGED_INSTANCES_PATH ".capacityProviderArn"},
        {"TenancyConfig", "TenantIsolationMode", "tenancyConfig.tenantIsolationMode"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
        const json_t *parent = input_find(call->input, rules[i].parent);
        if (parent)
            validate_present(&call->validation, input_has(parent, rules[i].member), rules[i].path);
    }
}

/* --- strings --- */

static const char *const package_types[] = {"Zip", "Image", NULL};
static const char *const tracing_modes[] = {"Active", "PassThrough", NULL};
static const char *const snap_start_values[] = {"PublishedVersions", "None", NULL};
static const char *const log_formats[] = {"JSON", "Text", NULL};
static const char *const application_log_levels[] = {"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", NULL};
static const char *const published_targets[] = {"LATEST_PUBLISHED", NULL};
static const char *const isolation_modes[] = {"PER_TENANT", NULL};
static const char *const system_log_levels[] = {"DEBUG", "INFO", "WARN", NULL};

static const struct string_rule string_rules[] = {
    {NULL, "Role", "role", {.maximum = 10000, .pattern = LAMBDA_ROLE_ARN_PATTERN}},
    {NULL, "Handler", "handler", {.maximum = LAMBDA_HANDLER_MAXIMUM, .pattern = LAMBDA_HANDLER_PATTERN}},
    {NULL, "Description", "description", {.maximum = LAMBDA_DESCRIPTION_MAXIMUM}},
    {NULL, "PackageType", "packageType", {.values = package_types}},
    {"DeadLetterConfig",
     "TargetArn",
     "deadLetterConfig.targetArn",
     {.maximum = 10000, .pattern = LAMBDA_RESOURCE_ARN_PATTERN}},
    {NULL, "KMSKeyArn", "kMSKeyArn", {.maximum = 10000, .pattern = LAMBDA_KMS_KEY_ARN_PATTERN}},
    {"TracingConfig", "Mode", "tracingConfig.mode", {.values = tracing_modes}},
    {NULL,
     "CodeSigningConfigArn",
     "codeSigningConfigArn",
     {.maximum = LAMBDA_CODE_SIGNING_ARN_MAXIMUM, .pattern = LAMBDA_CODE_SIGNING_ARN_PATTERN}},
    {"SnapStart", "ApplyOn", "snapStart.applyOn", {.values = snap_start_values}},
    {"LoggingConfig", "LogFormat", "loggingConfig.logFormat", {.values = log_formats}},
    {"LoggingConfig", "ApplicationLogLevel", "loggingConfig.applicationLogLevel", {.values = application_log_levels}},
    {"LoggingConfig", "SystemLogLevel", "loggingConfig.systemLogLevel", {.values = system_log_levels}},
    {"LoggingConfig",
     "LogGroup",
     "loggingConfig.logGroup",
     {.minimum = 1, .maximum = LAMBDA_LOG_GROUP_MAXIMUM, .pattern = LAMBDA_LOG_GROUP_PATTERN}},
    {"ImageConfig", "WorkingDirectory", "imageConfig.workingDirectory", {.maximum = 1000}},
    {NULL, "PublishTo", "publishTo", {.values = published_targets}},
    {"TenancyConfig", "TenantIsolationMode", "tenancyConfig.tenantIsolationMode", {.values = isolation_modes}},
    {MANAGED_INSTANCES,
     "CapacityProviderArn",
     MANAGED_INSTANCES_PATH ".capacityProviderArn",
     {.minimum = 1, .maximum = LAMBDA_CAPACITY_PROVIDER_ARN_MAXIMUM, .pattern = LAMBDA_CAPACITY_PROVIDER_ARN_PATTERN}},
    {"DurableConfig",
     "KMSKeyArn",
     "durableConfig.kMSKeyArn",
     {.maximum = 10000, .pattern = LAMBDA_KMS_KEY_ARN_PATTERN}},
};

/* --- numbers --- */

/* ExecutionEnvironmentMemoryGiBPerVCpu (2 to 8) is not in the list: what it belongs to is refused anyway. */
static const struct number_rule number_rules[] = {
    {NULL, "Timeout", "timeout", 1, 900},
    {NULL, "MemorySize", "memorySize", CONFIGURATION_MEMORY_MINIMUM, 10240},
    {"EphemeralStorage", "Size", "ephemeralStorage.size", CONFIGURATION_STORAGE_MINIMUM, 10240},
    {MANAGED_INSTANCES, "PerExecutionEnvironmentMaxConcurrency",
     MANAGED_INSTANCES_PATH ".perExecutionEnvironmentMaxConcurrency", 1, 1600},
    {"DurableConfig", "RetentionPeriodInDays", "durableConfig.retentionPeriodInDays", 1, 90},
    {"DurableConfig", "ExecutionTimeout", "durableConfig.executionTimeout", 1, 31622400},
};

/* --- lists --- */

static const struct list_rule list_rules[] = {
    {"VpcConfig", "SubnetIds", "vpcConfig.subnetIds", 0, 16, {.maximum = 1024, .pattern = LAMBDA_SUBNET_ID_PATTERN}},
    {"VpcConfig",
     "SecurityGroupIds",
     "vpcConfig.securityGroupIds",
     0,
     5,
     {.maximum = 1024, .pattern = LAMBDA_SECURITY_GROUP_ID_PATTERN}},
    {NULL,
     "Layers",
     "layers",
     0,
     0,
     {.minimum = 1, .maximum = LAMBDA_LAYER_VERSION_ARN_MAXIMUM, .pattern = LAMBDA_LAYER_VERSION_ARN_PATTERN}},
    {NULL, "Architectures", "architectures", 1, 1, {.values = runtime_architectures}},
    {"ImageConfig", "EntryPoint", "imageConfig.entryPoint", 0, 1500, {0}},
    {"ImageConfig", "Command", "imageConfig.command", 0, 1500, {0}},
};

static void validate_file_system(struct call *call, const json_t *system, size_t number)
{
    static const struct {
        const char *member;
        const char *path;
        struct validation_constraint constraint;
    } rules[] = {
        {"Arn", "arn", {.maximum = LAMBDA_FILE_SYSTEM_ARN_MAXIMUM, .pattern = LAMBDA_FILE_SYSTEM_ARN_PATTERN}},
        {"LocalMountPath",
         "localMountPath",
         {.maximum = LAMBDA_LOCAL_MOUNT_PATH_MAXIMUM, .pattern = LAMBDA_LOCAL_MOUNT_PATH_PATTERN}},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
        char path[64];
        snprintf(path, sizeof(path), "fileSystemConfigs.%zu.member.%s", number, rules[i].path);
        if (validate_present(&call->validation, input_has(system, rules[i].member), path))
            validate_string(&call->validation, input_string(system, rules[i].member), path, &rules[i].constraint);
    }
}

/* Not more than one; a list of structures is not quoted member by member. */
static void validate_file_systems(struct call *call)
{
    const json_t *list = json_object_get(call->input, "FileSystemConfigs");
    const json_t *system;
    size_t i;

    if (json_array_size(list) > 1)
        validation_add(
            &call->validation,
            "Value at 'fileSystemConfigs' failed to satisfy constraint: Member must have length less than or "
            "equal to 1");
    json_array_foreach(list, i, system) validate_file_system(call, system, i + 1);
}

/* --- maps --- */

static void validate_maps(struct call *call)
{
    static const struct validation_constraint variable_name = {.pattern = LAMBDA_ENVIRONMENT_NAME_PATTERN};
    json_t *variables = json_object_get(json_object_get(call->input, "Environment"), "Variables");

    if (variables)
        input_validate_map(call, variables, "environment.variables", &variable_name, NULL);
    tags_validate(call);
}

void configuration_validate(struct call *call)
{
    validate_required(call);
    rules_validate_strings(call, string_rules, ARRAY_SIZE(string_rules));
    rules_validate_numbers(call, number_rules, ARRAY_SIZE(number_rules));
    rules_validate_lists(call, list_rules, ARRAY_SIZE(list_rules));
    validate_file_systems(call);
    validate_maps(call);
}
