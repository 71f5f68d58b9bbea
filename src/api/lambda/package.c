#include "api/lambda/package.h"

#include "aws/shapes.h"

enum { PACKAGE_ZIPPED_BYTES = 52428800 };

const struct input_member package_members[] = {PACKAGE_MEMBERS, {0}};

static const char *const storage_modes[] = {"COPY", "REFERENCE", NULL};

static const struct package_rule {
    const char *member;
    const char *path;
    struct validation_constraint constraint;
} rules[] = {
    {"S3Bucket", "s3Bucket", {LAMBDA_S3_BUCKET_MINIMUM, LAMBDA_S3_BUCKET_MAXIMUM, LAMBDA_S3_BUCKET_PATTERN, NULL}},
    {"S3Key", "s3Key", {1, LAMBDA_S3_KEY_MAXIMUM, NULL, NULL}},
    {"S3ObjectVersion", "s3ObjectVersion", {1, LAMBDA_S3_KEY_MAXIMUM, NULL, NULL}},
    {"S3ObjectStorageMode", "s3ObjectStorageMode", {.values = storage_modes}},
    {"SourceKMSKeyArn", "sourceKMSKeyArn", {0, 10000, LAMBDA_KMS_KEY_ARN_PATTERN, NULL}},
};

void package_validate(struct call *call, const json_t *location, const char *prefix)
{
    for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
        char path[64];
        if (!input_has(location, rules[i].member))
            continue;
        snprintf(path, sizeof(path), "%s%s", prefix, rules[i].path);
        validate_string(&call->validation, input_string(location, rules[i].member), path, &rules[i].constraint);
    }
}

static int refuse(struct call *call, const char *sentence)
{
    return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE, "%s", sentence);
}

int package_check(struct call *call, const json_t *location, bool creating)
{
    bool has_bucket = input_has(location, "S3Bucket");
    bool has_key = input_has(location, "S3Key");

    if (input_has(location, "ImageUri"))
        return refuse(call, creating ? "Please don't provide ImageUri when creating a function with packageType Zip."
                                     : "Please don't provide ImageUri when updating a function with packageType Zip.");
    if (call->has_zip && (has_bucket || has_key || input_has(location, "S3ObjectVersion")))
        return refuse(call, "Please do not provide other FunctionCode parameters when providing a ZipFile.");
    if (!call->has_zip && !has_bucket && !has_key)
        return refuse(call, "Please provide a source for function code.");
    if (!call->has_zip && !(has_bucket && has_key))
        return refuse(call, "Please provide both S3Bucket and S3Key for function code in S3.");
    if (span_equal(input_string(location, "S3ObjectStorageMode"), SPAN("REFERENCE")))
        return refuse(call, "Kiln keeps copies of function code; S3ObjectStorageMode supports COPY only.");
    if (call->has_zip && call->zip.length >= PACKAGE_ZIPPED_BYTES)
        return aws_error_set(&call->error, AWS_ERROR_REQUEST_ENTITY_TOO_LARGE,
                             "Zipped size must be smaller than %d bytes", PACKAGE_ZIPPED_BYTES);
    return 0;
}

static int refuse_package(struct call *call, int result, const struct fault *fault)
{
    const struct operation *operation = call->operation;

    log_event(operation->services->log, LOG_INFO, "request %.*s: code package refused: %s",
              SPAN_ARG(operation->request_id), fault->text);
    if (result == CODE_TOO_LARGE_UNZIPPED)
        return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                             "Unzipped size must be smaller than %d bytes", CODE_UNPACKED_BYTES);
    if (result == CODE_EMPTY)
        return refuse(call, "Uploaded file must be a non-empty zip");
    return refuse(call, "Could not unzip uploaded file. Please check your file, then try to upload again.");
}

static void on_unpacked(int result, const struct code_package *package, const struct fault *fault, void *context)
{
    struct call *call = context;

    if (result != 0) {
        call_end(call, result > 0 ? refuse_package(call, result, fault) : result, "unpacking the code");
        return;
    }
    call->package = *package;
    call->holds_package = true;
    call->after_package(call);
}

static void unpack(struct call *call)
{
    int r;

    if (call->zip.length == 0) {
        call_end(call, refuse(call, "Uploaded file must be a non-empty zip"), "");
        return;
    }
    r = code_unpack(call->operation->services->code, &call->zip, on_unpacked, call);
    if (r < 0)
        call_end(call, r, "unpacking the code");
}

void package_obtain(struct call *call, const json_t *location, void (*next)(struct call *call))
{
    call->after_package = next;
    if (call->has_zip)
        unpack(call);
    else
        s3_fetch_code(call, location, unpack);
}
