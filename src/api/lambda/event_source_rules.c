/* The bodies of event source mappings: their shape, and what the service model says about each member. */
#include "api/lambda/event_source.h"
#include "api/lambda/rules.h"
#include "api/lambda/tags.h"
#include "aws/shapes.h"

#include <stdio.h>

/* --- shapes --- */

static const struct input_member filter_members[] = {{.name = "Pattern", .kind = INPUT_STRING}, {0}};
static const struct input_member filter_criteria_members[] = {
    {.name = "Filters", .kind = INPUT_LIST, .element = INPUT_STRUCTURE, .members = filter_members},
    {0},
};
static const struct input_member metrics_members[] = {
    {.name = "Metrics", .kind = INPUT_LIST, .element = INPUT_STRING},
    {0},
};
static const struct input_member logging_members[] = {{.name = "SystemLogLevel", .kind = INPUT_STRING}, {0}};
static const struct input_member scaling_members[] = {{.name = "MaximumConcurrency", .kind = INPUT_INTEGER}, {0}};
static const struct input_member destination_members[] = {{.name = "Destination", .kind = INPUT_STRING}, {0}};
static const struct input_member destination_config_members[] = {
    {.name = "OnSuccess", .kind = INPUT_STRUCTURE, .members = destination_members},
    {.name = "OnFailure", .kind = INPUT_STRUCTURE, .members = destination_members},
    {0},
};
static const struct input_member access_members[] = {
    {.name = "Type", .kind = INPUT_STRING},
    {.name = "URI", .kind = INPUT_STRING},
    {0},
};
static const struct input_member self_managed_members[] = {
    {.name = "Endpoints", .kind = INPUT_MAP, .element = INPUT_LIST}, /* of strings */
    {0},
};
static const struct input_member schema_validation_members[] = {{.name = "Attribute", .kind = INPUT_STRING}, {0}};
static const struct input_member schema_registry_members[] = {
    {.name = "SchemaRegistryURI", .kind = INPUT_STRING},
    {.name = "EventRecordFormat", .kind = INPUT_STRING},
    {.name = "AccessConfigs", .kind = INPUT_LIST, .element = INPUT_STRUCTURE, .members = access_members},
    {.name = "SchemaValidationConfigs",
     .kind = INPUT_LIST,
     .element = INPUT_STRUCTURE,
     .members = schema_validation_members},
    {0},
};
static const struct input_member kafka_members[] = {
    {.name = "ConsumerGroupId", .kind = INPUT_STRING},
    {.name = "SchemaRegistryConfig", .kind = INPUT_STRUCTURE, .members = schema_registry_members},
    {0},
};
static const struct input_member document_db_members[] = {
    {.name = "DatabaseName", .kind = INPUT_STRING},
    {.name = "CollectionName", .kind = INPUT_STRING},
    {.name = "FullDocument", .kind = INPUT_STRING},
    {0},
};
static const struct input_member poller_members[] = {
    {.name = "MinimumPollers", .kind = INPUT_INTEGER},
    {.name = "MaximumPollers", .kind = INPUT_INTEGER},
    {.name = "PollerGroupName", .kind = INPUT_STRING},
    {0},
};

#define COMMON_MEMBERS                                                                                      \
    {.name = "FunctionName", .kind = INPUT_STRING}, {.name = "Enabled", .kind = INPUT_BOOLEAN},             \
        {.name = "BatchSize", .kind = INPUT_INTEGER},                                                       \
        {.name = "FilterCriteria", .kind = INPUT_STRUCTURE, .members = filter_criteria_members},            \
        {.name = "KMSKeyArn", .kind = INPUT_STRING},                                                        \
        {.name = "MetricsConfig", .kind = INPUT_STRUCTURE, .members = metrics_members},                     \
        {.name = "LoggingConfig", .kind = INPUT_STRUCTURE, .members = logging_members},                     \
        {.name = "ScalingConfig", .kind = INPUT_STRUCTURE, .members = scaling_members},                     \
        {.name = "MaximumBatchingWindowInSeconds", .kind = INPUT_INTEGER},                                  \
        {.name = "ParallelizationFactor", .kind = INPUT_INTEGER},                                           \
        {.name = "DestinationConfig", .kind = INPUT_STRUCTURE, .members = destination_config_members},      \
        {.name = "MaximumRecordAgeInSeconds", .kind = INPUT_INTEGER},                                       \
        {.name = "BisectBatchOnFunctionError", .kind = INPUT_BOOLEAN},                                      \
        {.name = "MaximumRetryAttempts", .kind = INPUT_INTEGER},                                            \
        {.name = "TumblingWindowInSeconds", .kind = INPUT_INTEGER},                                         \
        {.name = "SourceAccessConfigurations",                                                              \
         .kind = INPUT_LIST,                                                                                \
         .element = INPUT_STRUCTURE,                                                                        \
         .members = access_members},                                                                        \
        {.name = "FunctionResponseTypes", .kind = INPUT_LIST, .element = INPUT_STRING},                     \
        {.name = "AmazonManagedKafkaEventSourceConfig", .kind = INPUT_STRUCTURE, .members = kafka_members}, \
        {.name = "SelfManagedKafkaEventSourceConfig", .kind = INPUT_STRUCTURE, .members = kafka_members},   \
        {.name = "DocumentDBEventSourceConfig", .kind = INPUT_STRUCTURE, .members = document_db_members},   \
    {                                                                                                       \
        .name = "ProvisionedPollerConfig", .kind = INPUT_STRUCTURE, .members = poller_members               \
    }

const struct input_member event_source_update_members[] = {COMMON_MEMBERS, {0}};

const struct input_member event_source_create_members[] = {
    COMMON_MEMBERS,
    {.name = "EventSourceArn", .kind = INPUT_STRING},
    {.name = "StartingPosition", .kind = INPUT_STRING},
    {.name = "StartingPositionTimestamp", .kind = INPUT_DOUBLE},
    {.name = "Tags", .kind = INPUT_MAP, .element = INPUT_STRING},
    {.name = "Topics", .kind = INPUT_LIST, .element = INPUT_STRING},
    {.name = "Queues", .kind = INPUT_LIST, .element = INPUT_STRING},
    {.name = "SelfManagedEventSource", .kind = INPUT_STRUCTURE, .members = self_managed_members},
    {0},
};

/* --- constraints --- */

/* Order as recorded; of the others as the model has it. */
static const char *const positions[] = {"LATEST", "AT_TIMESTAMP", "TRIM_HORIZON", NULL};
static const char *const log_levels[] = {"DEBUG", "INFO", "WARN", NULL};
static const char *const full_documents[] = {"UpdateLookup", "Default", NULL};
static const char *const record_formats[] = {"JSON", "SOURCE", NULL};
static const char *const metrics[] = {"EventCount", "ErrorCount", "KafkaMetrics", NULL};
static const char *const response_types[] = {"ReportBatchItemFailures", NULL};
static const char *const access_types[] = {
    "BASIC_AUTH",
    "VPC_SUBNET",
    "VPC_SECURITY_GROUP",
    "SASL_SCRAM_512_AUTH",
    "SASL_SCRAM_256_AUTH",
    "VIRTUAL_HOST",
    "CLIENT_CERTIFICATE_TLS_AUTH",
    "SERVER_ROOT_CA_CERTIFICATE",
    NULL,
};
static const char *const registry_access_types[] = {
    "BASIC_AUTH",
    "CLIENT_CERTIFICATE_TLS_AUTH",
    "SERVER_ROOT_CA_CERTIFICATE",
    NULL,
};
static const char *const registry_attributes[] = {"KEY", "VALUE", NULL};

enum { EVENT_SOURCE_ACCESS_MAX = 23 };

#define ARN_CONSTRAINT .maximum = 10000, .pattern = LAMBDA_ARN_PATTERN
#define URI_CONSTRAINT .minimum = 1, .maximum = LAMBDA_ACCESS_URI_MAXIMUM, .pattern = LAMBDA_ACCESS_URI_PATTERN

static const struct string_rule string_rules[] = {
    {NULL, "EventSourceArn", "eventSourceArn", {ARN_CONSTRAINT}},
    {NULL, "KMSKeyArn", "kMSKeyArn", {.maximum = 10000, .pattern = LAMBDA_KMS_KEY_ARN_PATTERN}},
    {"LoggingConfig", "SystemLogLevel", "loggingConfig.systemLogLevel", {.values = log_levels}},
    {NULL, "StartingPosition", "startingPosition", {.values = positions}},
    {"DestinationConfig.OnSuccess",
     "Destination",
     "destinationConfig.onSuccess.destination",
     {.maximum = LAMBDA_DESTINATION_ARN_MAXIMUM, .pattern = LAMBDA_DESTINATION_ARN_PATTERN}},
    {"DestinationConfig.OnFailure",
     "Destination",
     "destinationConfig.onFailure.destination",
     {.maximum = LAMBDA_DESTINATION_ARN_MAXIMUM, .pattern = LAMBDA_DESTINATION_ARN_PATTERN}},
    {"AmazonManagedKafkaEventSourceConfig",
     "ConsumerGroupId",
     "amazonManagedKafkaEventSourceConfig.consumerGroupId",
     {URI_CONSTRAINT}},
    {"SelfManagedKafkaEventSourceConfig",
     "ConsumerGroupId",
     "selfManagedKafkaEventSourceConfig.consumerGroupId",
     {URI_CONSTRAINT}},
    {"DocumentDBEventSourceConfig",
     "DatabaseName",
     "documentDBEventSourceConfig.databaseName",
     {.minimum = 1, .maximum = 63, .pattern = LAMBDA_DATABASE_NAME_PATTERN}},
    {"DocumentDBEventSourceConfig",
     "CollectionName",
     "documentDBEventSourceConfig.collectionName",
     {.minimum = 1, .maximum = 57, .pattern = LAMBDA_COLLECTION_NAME_PATTERN}},
    {"DocumentDBEventSourceConfig",
     "FullDocument",
     "documentDBEventSourceConfig.fullDocument",
     {.values = full_documents}},
    {"ProvisionedPollerConfig",
     "PollerGroupName",
     "provisionedPollerConfig.pollerGroupName",
     {.maximum = 128, .pattern = LAMBDA_POLLER_GROUP_PATTERN}},
};

static const struct number_rule number_rules[] = {
    {NULL, "BatchSize", "batchSize", 1, 10000},
    {"ScalingConfig", "MaximumConcurrency", "scalingConfig.maximumConcurrency", 2, 1000},
    {NULL, "MaximumBatchingWindowInSeconds", "maximumBatchingWindowInSeconds", 0, 300},
    {NULL, "ParallelizationFactor", "parallelizationFactor", 1, 10},
    {NULL, "MaximumRecordAgeInSeconds", "maximumRecordAgeInSeconds", -1, 604800},
    {NULL, "MaximumRetryAttempts", "maximumRetryAttempts", -1, 10000},
    {NULL, "TumblingWindowInSeconds", "tumblingWindowInSeconds", 0, 900},
    {"ProvisionedPollerConfig", "MinimumPollers", "provisionedPollerConfig.minimumPollers", 1, 200},
    {"ProvisionedPollerConfig", "MaximumPollers", "provisionedPollerConfig.maximumPollers", 1, 10000},
};

static const struct list_rule list_rules[] = {
    {"MetricsConfig", "Metrics", "metricsConfig.metrics", 0, 3, {.values = metrics}},
    {NULL, "Topics", "topics", 1, 1, {.minimum = 1, .maximum = 249, .pattern = LAMBDA_TOPIC_PATTERN}},
    {NULL, "Queues", "queues", 1, 1, {.minimum = 1, .maximum = 1000, .pattern = LAMBDA_QUEUE_PATTERN}},
    {NULL, "FunctionResponseTypes", "functionResponseTypes", 0, 1, {.values = response_types}},
};

/* --- the servers of a cluster: a map of lists --- */

enum { ENDPOINT_KINDS_MAX = 2, ENDPOINTS_MAX = 10 };

/* "{KAFKA_BOOTSTRAP_SERVERS=[a:1, b:2]}", in the arena; "" when out of memory. */
static const char *describe_endpoints(struct call *call, const json_t *endpoints)
{
    struct arena *arena = &call->operation->arena;
    const char *text = "{";
    const char *kind;
    json_t *list;

    json_object_foreach((json_t *)endpoints, kind, list)
    {
        const json_t *item;
        size_t i;
        text = arena_printf(arena, "%s%s%s=[", text ? text : "", text && text[1] ? ", " : "", kind);
        json_array_foreach(list, i, item) text =
            arena_printf(arena, "%s%s%s", text ? text : "", i ? ", " : "", json_string_value(item));
        text = arena_printf(arena, "%s]", text ? text : "");
    }
    text = arena_printf(arena, "%s}", text ? text : "");
    return text ? text : "";
}

static bool are_endpoints(struct call *call, const json_t *list)
{
    static const struct validation_constraint constraint = {
        .minimum = 1, .maximum = 300, .pattern = LAMBDA_ENDPOINT_PATTERN};
    struct validation scratch = VALIDATION_INIT;
    struct span *values = input_strings(call, list);
    bool fit = values && validate_list(&scratch, values, json_array_size(list), "", 1, ENDPOINTS_MAX, &constraint);

    validation_deinit(&scratch);
    return fit;
}

static void refuse_endpoints(struct call *call, const json_t *endpoints, const char *constraint)
{
    validation_add(&call->validation,
                   "Value '%s' at 'selfManagedEventSource.endpoints' failed to satisfy constraint: %s",
                   describe_endpoints(call, endpoints), constraint);
}

static void validate_endpoints(struct call *call)
{
    const json_t *endpoints = input_find(call->input, "SelfManagedEventSource.Endpoints");
    size_t count = json_object_size(endpoints);
    bool known = true;
    bool fit = true;
    const char *kind;
    json_t *list;

    json_object_foreach((json_t *)endpoints, kind, list)
    {
        known &= !strcmp(kind, "KAFKA_BOOTSTRAP_SERVERS");
        fit &= are_endpoints(call, list);
    }
    if (endpoints && count == 0)
        refuse_endpoints(call, endpoints, "Member must have length greater than or equal to 1");
    if (count > ENDPOINT_KINDS_MAX)
        refuse_endpoints(call, endpoints, "Member must have length less than or equal to 2");
    if (!known)
        refuse_endpoints(call, endpoints,
                         "Map keys must satisfy constraint: [Member must satisfy enum value set: "
                         "[KAFKA_BOOTSTRAP_SERVERS], Member must not be null]");
    if (!fit)
        refuse_endpoints(
            call, endpoints,
            "Map value must satisfy constraint: [Member must have length less than or equal to 10, Member must have "
            "length greater than or equal to 1, Member must satisfy constraint: [Member must have length less than or "
            "equal to 300, Member must have length greater than or equal to 1, Member must satisfy regular expression "
            "pattern: " LAMBDA_ENDPOINT_PATTERN ", Member must not be null], Member must not be null]");
}

/* --- lists of structures: each member by its own path --- */

static void validate_items(struct call *call, const json_t *list, const char *path, const char *member,
                           const char *shown, const struct validation_constraint *constraint)
{
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        char text[128];
        if (!input_has(item, member))
            continue;
        snprintf(text, sizeof(text), "%s.%zu.member.%s", path, i + 1, shown);
        validate_string(&call->validation, input_string(item, member), text, constraint);
    }
}

static void validate_registry(struct call *call, const char *member, const char *path)
{
    static const struct validation_constraint uri = {
        .minimum = 1, .maximum = 10000, .pattern = LAMBDA_SCHEMA_REGISTRY_URI_PATTERN};
    static const struct validation_constraint format = {.values = record_formats};
    static const struct validation_constraint type = {.values = registry_access_types};
    static const struct validation_constraint arn = {ARN_CONSTRAINT};
    static const struct validation_constraint attribute = {.values = registry_attributes};
    const json_t *registry = json_object_get(json_object_get(call->input, member), "SchemaRegistryConfig");
    char text[128];

    if (!registry)
        return;
    snprintf(text, sizeof(text), "%s.schemaRegistryConfig.schemaRegistryURI", path);
    if (input_has(registry, "SchemaRegistryURI"))
        validate_string(&call->validation, input_string(registry, "SchemaRegistryURI"), text, &uri);
    snprintf(text, sizeof(text), "%s.schemaRegistryConfig.eventRecordFormat", path);
    if (input_has(registry, "EventRecordFormat"))
        validate_string(&call->validation, input_string(registry, "EventRecordFormat"), text, &format);
    snprintf(text, sizeof(text), "%s.schemaRegistryConfig.accessConfigs", path);
    validate_items(call, json_object_get(registry, "AccessConfigs"), text, "Type", "type", &type);
    validate_items(call, json_object_get(registry, "AccessConfigs"), text, "URI", "uRI", &arn);
    snprintf(text, sizeof(text), "%s.schemaRegistryConfig.schemaValidationConfigs", path);
    validate_items(call, json_object_get(registry, "SchemaValidationConfigs"), text, "Attribute", "attribute",
                   &attribute);
}

static void validate_structures(struct call *call)
{
    static const struct validation_constraint pattern = {.maximum = LAMBDA_FILTER_PATTERN_MAXIMUM};
    static const struct validation_constraint type = {.values = access_types};
    static const struct validation_constraint uri = {URI_CONSTRAINT};
    const json_t *access = json_object_get(call->input, "SourceAccessConfigurations");

    validate_items(call, json_object_get(json_object_get(call->input, "FilterCriteria"), "Filters"),
                   "filterCriteria.filters", "Pattern", "pattern", &pattern);
    if (json_array_size(access) > EVENT_SOURCE_ACCESS_MAX)
        validation_add(&call->validation,
                       "Value at 'sourceAccessConfigurations' failed to satisfy constraint: Member must have length "
                       "less than or equal to %d",
                       EVENT_SOURCE_ACCESS_MAX);
    validate_items(call, access, "sourceAccessConfigurations", "Type", "type", &type);
    validate_items(call, access, "sourceAccessConfigurations", "URI", "uRI", &uri);
    validate_registry(call, "AmazonManagedKafkaEventSourceConfig", "amazonManagedKafkaEventSourceConfig");
    validate_registry(call, "SelfManagedKafkaEventSourceConfig", "selfManagedKafkaEventSourceConfig");
}

void event_source_validate(struct call *call)
{
    rules_validate_strings(call, string_rules, ARRAY_SIZE(string_rules));
    rules_validate_numbers(call, number_rules, ARRAY_SIZE(number_rules));
    rules_validate_lists(call, list_rules, ARRAY_SIZE(list_rules));
    validate_endpoints(call);
    validate_structures(call);
    tags_validate(call);
}
