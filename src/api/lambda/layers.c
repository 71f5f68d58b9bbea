#include "api/lambda/layers.h"

#include "api/lambda/runtimes.h"
#include "aws/policy.h"
#include "aws/shapes.h"

#include <inttypes.h>

/* --- names --- */

/* NAME, or the ARN of a layer or of one of its versions. */
static bool parse(struct call *call, struct span text, struct layer_name *ret_name)
{
    struct layer_name name = {.account = call->operation->account, .region = call->operation->region, .name = text};
    bool is_good = true;

    if (span_starts_with(text, SPAN("arn:")))
        is_good = layer_parse_arn(text, &name);
    *ret_name = name;
    return is_good;
}

bool layer_parse_arn(struct span text, struct layer_name *ret_name)
{
    struct layer_name name = {0};
    struct span number;
    struct arn arn;

    if (arn_parse(text, &arn) != 0 || !span_starts_with(arn.resource, SPAN("layer:")))
        return false;
    number = span_slice(arn.resource, sizeof("layer:") - 1, arn.resource.length);
    name.account = arn.account;
    name.region = arn.region;
    name.name = span_cut(&number, ':');
    /* A number past the range names no version that there can be. */
    if (number.length && span_to_u64(number, INT64_MAX, &name.version) < 0)
        name.version = INT64_MAX;
    *ret_name = name;
    return true;
}

/* Whole numbers of 64 bits, as the service's deserialiser takes them from a path; then at least 1. */
static int take_version(struct call *call, struct layer_name *name)
{
    struct span text = operation_parameter(call->operation, SPAN("VersionNumber"));
    bool is_negative = span_starts_with(text, SPAN("-"));
    struct span digits = span_slice(text, is_negative, text.length);

    if (span_to_u64(digits, INT64_MAX, &name->version) < 0)
        return aws_error_set(&call->error, AWS_ERROR_SERIALIZATION, "STRING_VALUE can not be converted to a Long");
    if (is_negative || name->version == 0)
        return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE, "Layer Version Cannot be less than 1.");
    return 0;
}

int layer_take_name(struct call *call, bool with_version, struct layer_name *ret_name)
{
    static const struct validation_constraint constraint = {
        .minimum = 1, .maximum = LAMBDA_LAYER_NAME_MAXIMUM, .pattern = LAMBDA_LAYER_NAME_PATTERN};
    struct span text = operation_parameter(call->operation, SPAN("LayerName"));
    int r;

    validate_string(&call->validation, text, "layerName", &constraint);
    r = call_finish_validation(call);
    if (r == 0 && !parse(call, text, ret_name))
        return -EINVAL; /* the pattern lets nothing else through */
    return r == 0 && with_version ? take_version(call, ret_name) : r;
}

const char *layer_arn(struct call *call, const struct layer_name *name)
{
    const char *arn = arn_build_layer(&call->operation->arena, name->region, name->account, name->name, name->version);

    return arn ? arn : "";
}

/* --- finding --- */

enum { RECORD_NAME_BYTES = 256 };

static struct span record_name(struct span name, uint64_t version, char text[RECORD_NAME_BYTES])
{
    int length = snprintf(text, RECORD_NAME_BYTES, "%.*s:%" PRIu64, SPAN_ARG(name), version);

    return length < RECORD_NAME_BYTES ? span_of(text, (size_t)length) : SPAN_NONE;
}

int layer_record_name(struct call *call, struct span name, uint64_t version, struct span *ret_name)
{
    char text[RECORD_NAME_BYTES];
    char *copy = arena_dup(&call->operation->arena, record_name(name, version, text));

    *ret_name = span_from(copy);
    return copy ? 0 : -ENOMEM;
}

const json_t *layer_find_in(const struct catalog_scope *scope, struct span name, uint64_t version)
{
    char text[RECORD_NAME_BYTES];

    return catalog_find_record(scope, CATALOG_LAYER_VERSION, record_name(name, version, text));
}

const json_t *layer_find(const struct call *call, const struct layer_name *name)
{
    return layer_find_in(catalog_find_scope(call->catalog, name->account, name->region), name->name, name->version);
}

uint64_t layer_next_version(const struct catalog_scope *scope, struct span name)
{
    const json_t *layer = catalog_find_record(scope, CATALOG_LAYER, name);

    return layer ? (uint64_t)json_integer_value(json_object_get(layer, "NextVersion")) : 1;
}

/* --- access --- */

static int deny(struct call *call, const struct layer_name *name, const char *action)
{
    return aws_error_set(&call->error, AWS_ERROR_ACCESS_DENIED,
                         "User: %.*s is not authorized to perform: lambda:%s on resource: %s because no "
                         "resource-based policy allows the lambda:%s action",
                         SPAN_ARG(call->operation->caller_arn), action, layer_arn(call, name), action);
}

int layer_check_access(struct call *call, const struct layer_name *name, const json_t *document)
{
    const json_t *statements = json_object_get(json_object_get(document, "Policy"), "Statements");
    const struct policy_caller caller = {.account = call->operation->account};

    if (span_equal(name->account, caller.account) ||
        policy_permits(statements, SPAN("lambda:GetLayerVersion"), span_from(layer_arn(call, name)), &caller))
        return 0;
    return deny(call, name, "GetLayerVersion");
}

int layer_check_owner(struct call *call, const struct layer_name *name)
{
    const struct operation *operation = call->operation;

    if (span_equal(name->account, operation->account) && span_equal(name->region, operation->region))
        return 0;
    return deny(call, name, operation->route->name);
}

/* --- showing --- */

json_t *layer_render(struct call *call, const struct layer_name *name, const json_t *document)
{
    static const char *const plain[] = {"Description", "CreatedDate", "CompatibleRuntimes", "CompatibleArchitectures",
                                        "LicenseInfo"};
    json_t *row =
        json_pack("{s:s, s:I}", "LayerVersionArn", layer_arn(call, name), "Version", (json_int_t)name->version);

    for (size_t i = 0; row && i < ARRAY_SIZE(plain); i++) {
        json_t *value = json_object_get(document, plain[i]);
        if (value && json_object_set(row, plain[i], value) < 0) {
            json_decref(row);
            return NULL;
        }
    }
    return row;
}

/* --- filters of lists --- */

void layer_validate_filters(struct call *call)
{
    struct span value;

    if (operation_query(call->operation, SPAN("CompatibleRuntime"), &value) && !runtime_is_known(value))
        validation_add(&call->validation,
                       "Value '%.*s' at 'compatibleRuntime' failed to satisfy constraint: Member must satisfy enum "
                       "value set: [" RUNTIMES_OF_LAYERS "]",
                       SPAN_ARG(value));
    if (operation_query(call->operation, SPAN("CompatibleArchitecture"), &value))
        validate_enum(&call->validation, value, "compatibleArchitecture", runtime_architectures);
}

static bool has_text(const json_t *list, struct span text)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (span_equal(span_from(json_string_value(json_array_get(list, i))), text))
            return true;
    return false;
}

bool layer_matches_filters(struct call *call, const json_t *document)
{
    struct span value;

    if (operation_query(call->operation, SPAN("CompatibleRuntime"), &value) &&
        !has_text(json_object_get(document, "CompatibleRuntimes"), value))
        return false;
    return !operation_query(call->operation, SPAN("CompatibleArchitecture"), &value) ||
           has_text(json_object_get(document, "CompatibleArchitectures"), value);
}
