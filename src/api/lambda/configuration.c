#include "api/lambda/configuration.h"

#include "api/lambda/tags.h"
#include "aws/shapes.h"
#include "base/clock.h"
#include "base/encode.h"

#include <openssl/sha.h>

enum {
    TIMEOUT_DEFAULT = 3,
    TIMEOUT_MAXIMUM = 900,
    MEMORY_MINIMUM = 128,
    MEMORY_MAXIMUM = 10240,
    STORAGE_MINIMUM = 512,
    STORAGE_MAXIMUM = 10240,
    ENVIRONMENT_BYTES = 4096,
    LAYERS_MAXIMUM = 5,
};

#if defined(__aarch64__)
#define HOST_ARCHITECTURE "arm64"
#else
#define HOST_ARCHITECTURE "x86_64"
#endif

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

/* --- what the model says --- */

static const char *const architectures[] = {"x86_64", "arm64", NULL};
static const char *const package_types[] = {"Zip", "Image", NULL};
static const char *const tracing_modes[] = {"Active", "PassThrough", NULL};
static const char *const snap_start_values[] = {"PublishedVersions", "None", NULL};
static const char *const log_formats[] = {"JSON", "Text", NULL};
static const char *const application_log_levels[] = {"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", NULL};
static const char *const system_log_levels[] = {"DEBUG", "INFO", "WARN", NULL};

/* A string member, by its path in the input and as the service spells it. */
struct string_rule {
    const char *parent; /* NULL: the body itself */
    const char *member;
    const char *path;
    struct validation_constraint constraint;
};

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
};

static void validate_strings(struct call *call)
{
    for (size_t i = 0; i < ARRAY_SIZE(string_rules); i++) {
        const struct string_rule *rule = &string_rules[i];
        const json_t *parent = rule->parent ? json_object_get(call->input, rule->parent) : call->input;
        if (input_has(parent, rule->member))
            validate_string(&call->validation, input_string(parent, rule->member), rule->path, &rule->constraint);
    }
}

static void validate_numbers(struct call *call)
{
    const json_t *storage = json_object_get(call->input, "EphemeralStorage");

    if (input_has(call->input, "Timeout"))
        validate_range(&call->validation, input_integer(call->input, "Timeout", 0), "timeout", 1, TIMEOUT_MAXIMUM);
    if (input_has(call->input, "MemorySize"))
        validate_range(&call->validation, input_integer(call->input, "MemorySize", 0), "memorySize", MEMORY_MINIMUM,
                       MEMORY_MAXIMUM);
    if (!storage)
        return;
    if (validate_present(&call->validation, input_has(storage, "Size"), "ephemeralStorage.size"))
        validate_range(&call->validation, input_integer(storage, "Size", 0), "ephemeralStorage.size", STORAGE_MINIMUM,
                       STORAGE_MAXIMUM);
}

struct list_rule {
    const char *parent;
    const char *member;
    const char *path;
    size_t minimum;
    size_t maximum;
    struct validation_constraint constraint;
};

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
    {NULL, "Architectures", "architectures", 1, 1, {.values = architectures}},
};

static void validate_lists(struct call *call)
{
    for (size_t i = 0; i < ARRAY_SIZE(list_rules); i++) {
        const struct list_rule *rule = &list_rules[i];
        const json_t *parent = rule->parent ? json_object_get(call->input, rule->parent) : call->input;
        const json_t *list = json_object_get(parent, rule->member);
        if (list)
            input_validate_list(call, list, rule->path, rule->minimum, rule->maximum, &rule->constraint);
    }
}

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
    validate_strings(call);
    validate_numbers(call);
    validate_lists(call);
    validate_maps(call);
}

/* --- what the service checks next --- */

static int refuse(struct call *call, const char *sentence)
{
    return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE, "%s", sentence);
}

/* In the order in which the service lists them (recorded in January 2026); newer ones of the model stand behind it. */
#define RUNTIMES_LISTED                                                                                             \
    "nodejs20.x, python3.14, provided.al2023, python3.12, python3.13, nodejs24.x, nodejs22.x, java25, python3.10, " \
    "python3.11, java21, ruby3.3, ruby3.4, ruby3.2, python3.8, python3.9, java17, nodejs16.x, dotnet10, dotnet8, "  \
    "java11, dotnet6, nodejs18.x, provided.al2, java8.al2"
#define RUNTIMES_NEWER "ruby4.0, nodejs26.x, python3.15, java8.al2023, java11.al2023, java17.al2023"
#define RUNTIMES_DEPRECATED                                                                                     \
    "nodejs, nodejs4.3, nodejs6.10, nodejs8.10, nodejs10.x, nodejs12.x, nodejs14.x, java8, python2.7, "         \
    "python3.6, python3.7, dotnetcore1.0, dotnetcore2.0, dotnetcore2.1, dotnetcore3.1, nodejs4.3-edge, go1.x, " \
    "ruby2.5, ruby2.7, provided"

static bool is_listed(struct span list, struct span name)
{
    while (list.data) {
        if (span_equal(span_trim(span_cut(&list, ',')), name))
            return true;
    }
    return false;
}

static int check_runtime(struct call *call)
{
    struct span runtime = input_string(call->input, "Runtime");

    if (!runtime.data || is_listed(SPAN(RUNTIMES_LISTED), runtime) || is_listed(SPAN(RUNTIMES_NEWER), runtime))
        return 0;
    if (is_listed(SPAN(RUNTIMES_DEPRECATED), runtime))
        return aws_error_set(
            &call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
            "The runtime parameter of %.*s is no longer supported for creating or updating AWS Lambda "
            "functions. We recommend you use a supported runtime while creating or updating functions.",
            SPAN_ARG(runtime));
    return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                         "Value %.*s at 'runtime' failed to satisfy constraint: Member must satisfy enum value set: "
                         "[" RUNTIMES_LISTED "] or be a valid ARN",
                         SPAN_ARG(runtime));
}

/* The variables that the runtime environment sets itself ("Reserved environment variables" of the developer guide). */
static bool is_reserved_variable(const char *name)
{
    static const char reserved[] =
        "AWS_ACCESS_KEY, AWS_ACCESS_KEY_ID, AWS_DEFAULT_REGION, AWS_EXECUTION_ENV, AWS_LAMBDA_FUNCTION_MEMORY_SIZE, "
        "AWS_LAMBDA_FUNCTION_NAME, AWS_LAMBDA_FUNCTION_VERSION, AWS_LAMBDA_INITIALIZATION_TYPE, "
        "AWS_LAMBDA_LOG_GROUP_NAME, AWS_LAMBDA_LOG_STREAM_NAME, AWS_LAMBDA_RUNTIME_API, AWS_REGION, "
        "AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, LAMBDA_RUNTIME_DIR, LAMBDA_TASK_ROOT";

    return is_listed(span_of(reserved, sizeof(reserved) - 1), span_from(name));
}

static int append_chunk(const char *data, size_t length, void *context)
{
    return buffer_append(context, data, length);
}

static int check_reserved_variables(struct call *call, json_t *variables)
{
    struct buffer names = BUFFER_INIT;
    const char *name;
    json_t *value;
    int r = 0;

    json_object_foreach(variables, name, value) if (r == 0 && is_reserved_variable(name)) r =
        buffer_printf(&names, "%s%s", names.length ? ", " : "", name);
    if (r == 0 && names.length)
        r = aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                          "Lambda was unable to configure your environment variables because the environment variables "
                          "you have provided contains reserved keys that are currently not supported for modification. "
                          "Reserved keys used in this request: %.*s",
                          SPAN_ARG(buffer_span(&names)));
    buffer_deinit(&names);
    return r;
}

/* The limit is on the JSON of all variables, which the refusal echoes (recorded). */
static int check_environment(struct call *call)
{
    json_t *variables = json_object_get(json_object_get(call->input, "Environment"), "Variables");
    struct buffer text = BUFFER_INIT;
    int r;

    if (!variables)
        return 0;
    r = json_dump_callback(variables, append_chunk, &text, JSON_COMPACT) < 0 ? -ENOMEM : 0;
    if (r == 0 && text.length > ENVIRONMENT_BYTES)
        r = aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                          "Lambda was unable to configure your environment variables because the environment variables "
                          "you have provided exceeded the 4KB limit. String measured: %.*s",
                          SPAN_ARG(buffer_span(&text)));
    buffer_deinit(&text);
    return r ? r : check_reserved_variables(call, variables);
}

/* "arn:...:layer:NAME" of "arn:...:layer:NAME:VERSION". */
static struct span layer_without_version(struct span arn)
{
    size_t end = arn.length;

    while (end > 0 && arn.data[end - 1] != ':')
        end--;
    return span_slice(arn, 0, end ? end - 1 : 0);
}

static int check_layer(struct call *call, const json_t *layers, size_t index)
{
    struct span arn = span_from(json_string_value(json_array_get(layers, index)));
    struct arn parts;

    for (size_t i = 0; i < index; i++) {
        struct span other = span_from(json_string_value(json_array_get(layers, i)));
        if (span_equal(layer_without_version(other), layer_without_version(arn)))
            return aws_error_set(
                &call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                "Two different versions of the same layer are not allowed to be referenced in the same "
                "function. %.*s and %.*s are versions of the same layer.",
                SPAN_ARG(other), SPAN_ARG(arn));
    }
    if (arn_parse(arn, &parts) == 0 && parts.region.length && !span_equal(parts.region, call->operation->region))
        return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                             "Layers are not in the same region as the function. Layers are expected to be in region "
                             "%.*s.",
                             SPAN_ARG(call->operation->region));
    return 0;
}

/* No layer can have been published yet, so that none exists: the recorded answers for such layers are the truth. */
static int check_layers(struct call *call)
{
    const json_t *layers = json_object_get(call->input, "Layers");
    int r = 0;

    if (json_array_size(layers) == 0)
        return 0;
    if (json_array_size(layers) > LAYERS_MAXIMUM)
        return refuse(call, "Cannot reference more than 5 layers.");
    for (size_t i = 0; r == 0 && i < json_array_size(layers); i++)
        r = check_layer(call, layers, i);
    return r ? r
             : aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE, "Layer version %s does not exist.",
                             json_string_value(json_array_get(layers, 0)));
}

static bool is_filled(const json_t *value)
{
    return json_array_size(value) || json_object_size(value) || json_string_length(value);
}

static int check_architecture(struct call *call)
{
    const char *architecture = json_string_value(json_array_get(json_object_get(call->input, "Architectures"), 0));

    if (!architecture || !strcmp(architecture, HOST_ARCHITECTURE))
        return 0;
    return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                         "This Kiln runs on %s and cannot run functions for %s.", HOST_ARCHITECTURE, architecture);
}

static int check_logging(struct call *call)
{
    const json_t *logging = json_object_get(call->input, "LoggingConfig");

    if (span_equal(input_string(logging, "LogFormat"), SPAN("JSON")))
        return refuse(call, "Kiln does not write function logs in the JSON format yet.");
    if (input_has(logging, "ApplicationLogLevel") || input_has(logging, "SystemLogLevel"))
        return refuse(call, "Log levels need the JSON log format, which Kiln does not support yet.");
    return 0;
}

/* What would change how a function runs, and is not there. Better refused than silently without effect. */
static int check_unsupported(struct call *call)
{
    const json_t *input = call->input;
    const json_t *vpc = json_object_get(input, "VpcConfig");
    const json_t *image = json_object_get(input, "ImageConfig");

    if (span_equal(input_string(input, "PackageType"), SPAN("Image")))
        return refuse(call, "Kiln does not run container images; use a deployment package of type Zip.");
    if (is_filled(json_object_get(image, "EntryPoint")) || is_filled(json_object_get(image, "Command")) ||
        is_filled(json_object_get(image, "WorkingDirectory")))
        return refuse(call, "ImageConfig is not supported for functions created with deployment packages.");
    if (is_filled(json_object_get(vpc, "SubnetIds")) || is_filled(json_object_get(vpc, "SecurityGroupIds")))
        return refuse(call, "Kiln has no VPCs; a VpcConfig with subnets or security groups is not supported.");
    if (input_string(json_object_get(input, "DeadLetterConfig"), "TargetArn").length)
        return refuse(call, "Kiln does not support dead-letter targets yet.");
    if (input_string(input, "KMSKeyArn").length)
        return refuse(call, "Kiln has no KMS; it cannot encrypt environment variables with a customer's key.");
    if (span_equal(input_string(json_object_get(input, "TracingConfig"), "Mode"), SPAN("Active")))
        return refuse(call, "Kiln does not send traces; TracingConfig supports the mode PassThrough only.");
    if (is_filled(json_object_get(input, "FileSystemConfigs")))
        return refuse(call, "Kiln does not mount file systems; FileSystemConfigs is not supported.");
    if (input_has(input, "TenancyConfig") || input_has(input, "CapacityProviderConfig") ||
        input_has(input, "DurableConfig") || input_has(input, "PublishTo"))
        return refuse(call,
                      "Kiln does not support TenancyConfig, CapacityProviderConfig, DurableConfig and PublishTo.");
    return 0;
}

/* No configuration can have been created, so that none exists. */
static int check_code_signing(struct call *call)
{
    struct span arn = input_string(call->input, "CodeSigningConfigArn");

    if (arn.length == 0)
        return 0;
    return aws_error_set(&call->error, AWS_ERROR_CODE_SIGNING_CONFIG_NOT_FOUND,
                         "The code signing configuration cannot be found. Check that the provided configuration is not "
                         "deleted: %.*s.",
                         SPAN_ARG(arn));
}

int configuration_check(struct call *call)
{
    int r = check_runtime(call);

    if (r == 0)
        r = tags_check(call, json_object_get(call->input, "Tags"));
    if (r == 0)
        r = check_environment(call);
    if (r == 0)
        r = check_layers(call);
    if (r == 0)
        r = check_architecture(call);
    if (r == 0)
        r = check_logging(call);
    if (r == 0)
        r = check_code_signing(call);
    return r ? r : check_unsupported(call);
}

/* --- documents --- */

/* Sets a member to a value that is taken; remembers failure. */
static void put(json_t *document, const char *member, json_t *value, bool *failed)
{
    if (json_object_set_new(document, member, value) < 0)
        *failed = true;
}

/* The same with the input's value, if it is there. */
static void put_input(json_t *document, const char *member, const json_t *input, bool *failed)
{
    json_t *value = json_object_get(input, member);

    if (value && json_object_set(document, member, value) < 0)
        *failed = true;
}

static void put_last_modified(json_t *document, bool *failed)
{
    char text[CLOCK_ISO_BYTES];

    put(document, "LastModified", json_string(clock_format_lambda(clock_wall_ns(), text)), failed);
}

static void put_package(json_t *document, const struct call *call, bool *failed)
{
    put(document, "CodeSha256", json_string(call->package.sha256_base64), failed);
    put(document, "CodeSize", json_integer((json_int_t)call->package.zip_bytes), failed);
}

/* Names the implementation of a runtime, as the service does; here one for each runtime's name. */
static void put_runtime_version(json_t *document, struct span region, bool *failed)
{
    const char *runtime = json_string_value(json_object_get(document, "Runtime"));
    struct span partition = arn_partition_of_region(region);
    unsigned char digest[SHA256_DIGEST_LENGTH];
    char hex[2 * SHA256_DIGEST_LENGTH + 1];

    if (!runtime)
        return;
    SHA256((const unsigned char *)runtime, strlen(runtime), digest);
    hex_encode(digest, sizeof(digest), hex);
    put(document, "RuntimeVersionConfig",
        json_pack("{s:o}", "RuntimeVersionArn",
                  json_sprintf("arn:%.*s:lambda:%.*s::runtime:%s", SPAN_ARG(partition), SPAN_ARG(region), hex)),
        failed);
}

static void put_environment(json_t *document, const json_t *input, bool *failed)
{
    const json_t *environment = json_object_get(input, "Environment");
    json_t *variables = json_object_get(environment, "Variables");

    if (environment)
        put(document, "Environment",
            json_pack("{s:o}", "Variables", variables ? json_incref(variables) : json_object()), failed);
}

static void put_snap_start(json_t *document, const json_t *input, bool *failed)
{
    struct span apply = input_string(json_object_get(input, "SnapStart"), "ApplyOn");

    if (apply.length)
        put(document, "SnapStart",
            json_pack("{s:s%, s:s}", "ApplyOn", apply.data, apply.length, "OptimizationStatus", "Off"), failed);
}

static void put_logging(json_t *document, const json_t *input, const struct call *call, bool *failed)
{
    struct span group = input_string(json_object_get(input, "LoggingConfig"), "LogGroup");
    json_t *name = group.length ? json_stringn(group.data, group.length)
                                : json_sprintf("/aws/lambda/%.*s", SPAN_ARG(call->function_name));

    put(document, "LoggingConfig", json_pack("{s:s, s:o}", "LogFormat", "Text", "LogGroup", name), failed);
}

/* Empty lists, as everything else is refused: the form that a function without a VPC has once it was said (recorded).
 */
static void put_vpc(json_t *document, const json_t *input, bool *failed)
{
    const json_t *vpc = json_object_get(input, "VpcConfig");

    if (vpc)
        put(document, "VpcConfig",
            json_pack("{s:b, s:[], s:[], s:s}", "Ipv6AllowedForDualStack",
                      input_boolean(vpc, "Ipv6AllowedForDualStack"), "SecurityGroupIds", "SubnetIds", "VpcId", ""),
            failed);
}

static void put_members(json_t *document, const struct call *call, bool *failed)
{
    static const char *const plain[] = {"Role", "Handler", "Description", "Timeout", "MemorySize"};
    const json_t *input = call->input;

    for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
        put_input(document, plain[i], input, failed);
    if (input_has(input, "Runtime")) {
        put_input(document, "Runtime", input, failed);
        put_runtime_version(document, call->operation->region, failed);
    }
    if (input_has(input, "EphemeralStorage"))
        put(document, "EphemeralStorage",
            json_pack("{s:I}", "Size",
                      (json_int_t)input_integer(json_object_get(input, "EphemeralStorage"), "Size", STORAGE_MINIMUM)),
            failed);
    put_environment(document, input, failed);
    put_snap_start(document, input, failed);
    put_vpc(document, input, failed);
    if (input_has(input, "LoggingConfig"))
        put_logging(document, input, call, failed);
    put_last_modified(document, failed);
}

static json_t *finish(json_t *document, bool failed)
{
    if (!failed)
        return document;
    json_decref(document);
    return NULL;
}

json_t *configuration_make(const struct call *call)
{
    json_t *document =
        json_pack("{s:s, s:i, s:i, s:{s:i}, s:{s:s}, s:{s:s, s:s}, s:s, s:[s]}", "Description", "", "Timeout",
                  TIMEOUT_DEFAULT, "MemorySize", MEMORY_MINIMUM, "EphemeralStorage", "Size", STORAGE_MINIMUM,
                  "TracingConfig", "Mode", "PassThrough", "SnapStart", "ApplyOn", "None", "OptimizationStatus", "Off",
                  "PackageType", "Zip", "Architectures", HOST_ARCHITECTURE);
    bool failed = false;

    if (!document)
        return NULL;
    put_logging(document, call->input, call, &failed);
    put_members(document, call, &failed);
    put_package(document, call, &failed);
    return finish(document, failed);
}

json_t *configuration_update(const struct call *call, const json_t *current)
{
    json_t *document = json_copy((json_t *)current);
    bool failed = false;

    if (!document)
        return NULL;
    put_members(document, call, &failed);
    return finish(document, failed);
}

json_t *configuration_update_code(const struct call *call, const json_t *current)
{
    json_t *document = json_copy((json_t *)current);
    bool failed = false;

    if (!document)
        return NULL;
    put_package(document, call, &failed);
    put_input(document, "Architectures", call->input, &failed);
    put_last_modified(document, &failed);
    return finish(document, failed);
}

/* --- answers --- */

static const char being_created[] = "The function is being created.";

static void put_state(json_t *answer, const struct catalog_version *version, bool *failed)
{
    if (version->state == CATALOG_ACTIVE) {
        put(answer, "State", json_string("Active"), failed);
        return;
    }
    put(answer, "State", json_string("Pending"), failed);
    put(answer, "StateReason", json_string(being_created), failed);
    put(answer, "StateReasonCode", json_string("Creating"), failed);
}

static void put_update_status(json_t *answer, const struct catalog_version *version, bool *failed)
{
    if (version->update == CATALOG_UPDATE_SUCCESSFUL) {
        put(answer, "LastUpdateStatus", json_string("Successful"), failed);
    } else if (version->update == CATALOG_UPDATE_IN_PROGRESS) {
        put(answer, "LastUpdateStatus", json_string("InProgress"), failed);
        put(answer, "LastUpdateStatusReason", json_string(being_created), failed);
        put(answer, "LastUpdateStatusReasonCode", json_string("Creating"), failed);
    }
}

json_t *configuration_render(const struct catalog_version *version, struct span qualifier, enum configuration_view view)
{
    const struct catalog_version_config *config = version->config;
    json_t *answer = json_copy((json_t *)config->document);
    bool failed = false;

    if (!answer)
        return NULL;
    put(answer, "FunctionName", json_string(config->function_name), &failed);
    put(answer, "FunctionArn",
        json_sprintf("%s%s%.*s", config->function_arn, qualifier.length ? ":" : "", SPAN_ARG(qualifier)), &failed);
    put(answer, "Version", json_string(version->number), &failed);
    put(answer, "RevisionId", json_string(config->revision_id), &failed);
    if (view != CONFIGURATION_LISTED)
        put_state(answer, version, &failed);
    if (view == CONFIGURATION_FULL)
        put_update_status(answer, version, &failed);
    if (view == CONFIGURATION_LISTED)
        json_object_del(answer, "RuntimeVersionConfig");
    return finish(answer, failed);
}
