#include "api/lambda/configuration.h"
#include "api/lambda/code_signing.h"
#include "api/lambda/configuration_parts.h"
#include "api/lambda/function_layers.h"
#include "api/lambda/runtime_management.h"
#include "api/lambda/runtimes.h"
#include "api/lambda/tags.h"
#include "base/clock.h"
#include "base/encode.h"

#include <openssl/sha.h>

enum {
    TIMEOUT_DEFAULT = 3,
    ENVIRONMENT_BYTES = 4096,
};

#if defined(__aarch64__)
#define HOST_ARCHITECTURE "arm64"
#else
#define HOST_ARCHITECTURE "x86_64"
#endif

/* --- what the service checks next --- */

static int refuse(struct call *call, const char *sentence)
{
    return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE, "%s", sentence);
}

static int check_runtime(struct call *call)
{
    struct span runtime = input_string(call->input, "Runtime");

    if (!runtime.data || runtime_list_has(SPAN(RUNTIMES_LISTED), runtime) ||
        runtime_list_has(SPAN(RUNTIMES_NEWER), runtime))
        return 0;
    if (runtime_list_has(SPAN(RUNTIMES_DEPRECATED), runtime))
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

/* A member of the input, else what the function has. */
static struct span settled_string(const struct call *call, const char *parent, const char *member)
{
    const json_t *given = parent ? json_object_get(call->input, parent) : call->input;
    const json_t *current = configuration_current(call);

    if (input_has(given, member))
        return input_string(given, member);
    return input_string(parent ? json_object_get(current, parent) : current, member);
}

/* Java from 11, Python from 3.12 and .NET from 8 (developer guide, "Improving startup performance with SnapStart"). */
#define RUNTIMES_WITHOUT_SNAPSHOTS \
    "java8, java8.al2, java8.al2023, python3.8, python3.9, python3.10, python3.11, dotnet6"

/* The text is of public reports. */
static int check_snap_start(struct call *call)
{
    struct span runtime = settled_string(call, NULL, "Runtime");
    bool has_family = span_starts_with(runtime, SPAN("java")) || span_starts_with(runtime, SPAN("python")) ||
                      span_starts_with(runtime, SPAN("dotnet"));

    if (!span_equal(settled_string(call, "SnapStart", "ApplyOn"), SPAN("PublishedVersions")))
        return 0;
    if (!runtime.data || (has_family && !runtime_list_has(SPAN(RUNTIMES_WITHOUT_SNAPSHOTS), runtime)))
        return 0;
    return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                         "%.*s is not supported for SnapStart enabled functions.", SPAN_ARG(runtime));
}

/* The variables that the runtime environment sets itself ("Reserved environment variables" of the developer guide). */
static bool is_reserved_variable(const char *name)
{
    static const char reserved[] =
        "AWS_ACCESS_KEY, AWS_ACCESS_KEY_ID, AWS_DEFAULT_REGION, AWS_EXECUTION_ENV, AWS_LAMBDA_FUNCTION_MEMORY_SIZE, "
        "AWS_LAMBDA_FUNCTION_NAME, AWS_LAMBDA_FUNCTION_VERSION, AWS_LAMBDA_INITIALIZATION_TYPE, "
        "AWS_LAMBDA_LOG_GROUP_NAME, AWS_LAMBDA_LOG_STREAM_NAME, AWS_LAMBDA_RUNTIME_API, AWS_REGION, "
        "AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, LAMBDA_RUNTIME_DIR, LAMBDA_TASK_ROOT";

    return runtime_list_has(span_of(reserved, sizeof(reserved) - 1), span_from(name));
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

/* What would change how a function runs, and is not there. Better refused than silently without effect. */
static int check_unsupported(struct call *call)
{
    static const char *const kinds[] = {"TenancyConfig", "CapacityProviderConfig", "DurableConfig", "PublishTo"};
    const json_t *input = call->input;
    const json_t *image = json_object_get(input, "ImageConfig");

    if (span_equal(input_string(input, "PackageType"), SPAN("Image")))
        return refuse(call, "Kiln does not run container images; use a deployment package of type Zip.");
    if (is_filled(json_object_get(image, "EntryPoint")) || is_filled(json_object_get(image, "Command")) ||
        is_filled(json_object_get(image, "WorkingDirectory")))
        return refuse(call, "ImageConfig is not supported for functions created with deployment packages.");
    if (is_filled(json_object_get(input, "FileSystemConfigs")))
        return refuse(call, "Kiln does not mount file systems; FileSystemConfigs is not supported.");
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (input_has(input, kinds[i]))
            return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE, "Kiln does not support %s.",
                                 kinds[i]);
    return 0;
}

/* What a new function or its layers may not be is refused before anything is unpacked; code.c asks for itself. */
static int check_code_signing(struct call *call)
{
    const struct catalog_function *function = call_find_function(call);
    const char *arn = json_string_value(json_object_get(call->input, "CodeSigningConfigArn"));
    int r = arn ? code_signing_check_exists(call, span_from(arn)) : 0;

    if (r || (!arn && json_array_size(json_object_get(call->input, "Layers")) == 0))
        return r;
    return code_signing_check_deployment(call, arn || !function ? arn : code_signing_arn_of(function));
}

int configuration_check(struct call *call)
{
    int r = check_runtime(call);

    if (r == 0)
        r = check_snap_start(call);
    if (r == 0)
        r = tags_check(call, json_object_get(call->input, "Tags"));
    if (r == 0)
        r = check_environment(call);
    if (r == 0)
        r = function_layers_check(call);
    if (r == 0)
        r = check_architecture(call);
    if (r == 0)
        r = logging_config_check(call);
    if (r == 0)
        r = vpc_config_check(call);
    if (r == 0)
        r = check_code_signing(call);
    return r ? r : check_unsupported(call);
}

/* --- documents --- */

const json_t *configuration_current(const struct call *call)
{
    const struct catalog_function *function = call_find_function(call);

    return function ? function->latest->config->document : NULL;
}

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

/* An empty text takes the member away; one that is not given leaves it. */
static void put_filled(json_t *document, const char *member, struct span value, bool *failed)
{
    if (value.length)
        put(document, member, json_stringn(value.data, value.length), failed);
    else if (value.data)
        json_object_del(document, member);
}

static void put_last_modified(json_t *document, bool *failed)
{
    char text[CLOCK_ISO_BYTES];

    put(document, "LastModified", json_string(clock_format_lambda(clock_wall_ns(), text)), failed);
}

/* SourceKMSKeyArn is shown with the code's location, not in the configuration: configuration_source_key. */
static const char source_key[] = "SourceKMSKeyArn";

static void put_package(json_t *document, const struct call *call, bool *failed)
{
    const json_t *code = json_object_get(call->input, "Code");

    put(document, "CodeSha256", json_string(call->package.sha256_base64), failed);
    put(document, "CodeSize", json_integer((json_int_t)call->package.zip_bytes), failed);
    put(document, "UnpackedSize", json_integer((json_int_t)call->package.unpacked_bytes), failed);
    json_object_del(document, source_key);
    put_filled(document, source_key, input_string(code ? code : call->input, source_key), failed);
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

static void put_logging(json_t *document, const struct call *call, bool *failed)
{
    put(document, "LoggingConfig", logging_config_make(call, json_object_get(document, "LoggingConfig")), failed);
}

static void put_vpc(json_t *document, const struct call *call, bool *failed)
{
    if (input_has(call->input, "VpcConfig"))
        put(document, "VpcConfig", vpc_config_make(call, json_object_get(document, "VpcConfig")), failed);
}

static void put_dead_letter(json_t *document, const json_t *input, bool *failed)
{
    struct span target = input_string(json_object_get(input, "DeadLetterConfig"), "TargetArn");

    if (target.length)
        put(document, "DeadLetterConfig", json_pack("{s:s%}", "TargetArn", target.data, target.length), failed);
    else if (target.data)
        json_object_del(document, "DeadLetterConfig");
}

static void put_tracing(json_t *document, const json_t *input, bool *failed)
{
    struct span mode = input_string(json_object_get(input, "TracingConfig"), "Mode");

    if (mode.length)
        put(document, "TracingConfig", json_pack("{s:s%}", "Mode", mode.data, mode.length), failed);
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
                      (json_int_t)input_integer(json_object_get(input, "EphemeralStorage"), "Size",
                                                CONFIGURATION_STORAGE_MINIMUM)),
            failed);
    put_environment(document, input, failed);
    put_snap_start(document, input, failed);
    put_vpc(document, call, failed);
    put_dead_letter(document, input, failed);
    put_tracing(document, input, failed);
    put_filled(document, "KMSKeyArn", input_string(input, "KMSKeyArn"), failed);
    put_logging(document, call, failed);
    if (function_layers_put(call, document) < 0)
        *failed = true;
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
                  TIMEOUT_DEFAULT, "MemorySize", CONFIGURATION_MEMORY_MINIMUM, "EphemeralStorage", "Size",
                  CONFIGURATION_STORAGE_MINIMUM, "TracingConfig", "Mode", "PassThrough", "SnapStart", "ApplyOn", "None",
                  "OptimizationStatus", "Off", "PackageType", "Zip", "Architectures", HOST_ARCHITECTURE);
    bool failed = false;

    if (!document)
        return NULL;
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

/* Pinned by hand, it is another than the one for the runtime's name. */
static void put_pinned_runtime(json_t *answer, const struct catalog_version *version, bool *failed)
{
    const char *arn = runtime_management_pinned_arn(version);

    if (arn && json_object_get(answer, "RuntimeVersionConfig"))
        put(answer, "RuntimeVersionConfig", json_pack("{s:s}", "RuntimeVersionArn", arn), failed);
}

int configuration_hide(json_t *answer)
{
    json_object_del(answer, source_key);
    return function_layers_hide(answer);
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
    put_pinned_runtime(answer, version, &failed);
    if (view == CONFIGURATION_LISTED)
        json_object_del(answer, "RuntimeVersionConfig");
    if (configuration_hide(answer) < 0)
        failed = true;
    return finish(answer, failed);
}

const char *configuration_source_key(const struct catalog_version *version)
{
    return json_string_value(json_object_get(version->config->document, source_key));
}
