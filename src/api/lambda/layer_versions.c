/* PublishLayerVersion, GetLayerVersion, GetLayerVersionByArn, DeleteLayerVersion. */
#include "api/lambda/download.h"
#include "api/lambda/handlers.h"
#include "api/lambda/layers.h"
#include "api/lambda/package.h"
#include "api/lambda/runtimes.h"
#include "api/lambda/update.h"
#include "aws/shapes.h"
#include "base/clock.h"

enum { RUNTIMES_MAXIMUM = 15, ARCHITECTURES_MAXIMUM = 2 };

/* The layer that a call is about: call->detail. */
static struct layer_name *layer_of(struct call *call)
{
    return call->detail;
}

static struct call *layer_call_new(struct operation *operation)
{
    struct call *call = call_new(operation);

    if (!call)
        return NULL;
    call->detail = arena_zalloc(&operation->arena, sizeof(struct layer_name));
    if (call->detail)
        return call;
    call_end(call, -ENOMEM, "starting the operation");
    return NULL;
}

/* --- answers --- */

static json_t *render_content(struct call *call, const json_t *document)
{
    const char *location = download_url(call->operation, json_string_value(json_object_get(document, "Package")));

    return location
               ? json_pack("{s:s, s:O, s:O}", "Location", location, "CodeSha256",
                           json_object_get(document, "CodeSha256"), "CodeSize", json_object_get(document, "CodeSize"))
               : NULL;
}

static void respond_version(struct call *call, int status, const json_t *document)
{
    struct layer_name layer = *layer_of(call);
    json_t *answer = layer_render(call, &layer, document);

    layer.version = 0;
    if (answer && (json_object_set_new(answer, "Content", render_content(call, document)) < 0 ||
                   json_object_set_new(answer, "LayerArn", json_string(layer_arn(call, &layer))) < 0)) {
        json_decref(answer);
        answer = NULL;
    }
    call_respond(call, status, answer);
}

/* --- PublishLayerVersion --- */

static const struct input_member publish_members[] = {
    {.name = "Description", .kind = INPUT_STRING},
    {.name = "Content", .kind = INPUT_STRUCTURE, .members = package_members},
    {.name = "CompatibleArchitectures", .kind = INPUT_LIST, .element = INPUT_STRING},
    {.name = "CompatibleRuntimes", .kind = INPUT_LIST, .element = INPUT_STRING},
    {.name = "LicenseInfo", .kind = INPUT_STRING},
    {0},
};

static bool are_known_runtimes(const struct span *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!runtime_is_known(values[i]))
            return false;
    return true;
}

/* "[a, b]" in the arena; a null is "null". */
static const char *join(struct call *call, const struct span *values, size_t count)
{
    const char *text = "";

    for (size_t i = 0; text && i < count; i++)
        text = arena_printf(&call->operation->arena, "%s%s%.*s", text, i ? ", " : "",
                            SPAN_ARG(values[i].data ? values[i] : SPAN("null")));
    return text ? text : "";
}

/* The refusal names the runtimes that functions may have today, though layers may be for any (public reports). */
static void validate_runtimes(struct call *call)
{
    const json_t *list = json_object_get(call->input, "CompatibleRuntimes");
    size_t count = json_array_size(list);
    struct span *values = list ? input_strings(call, list) : NULL;

    if (!values)
        return;
    validate_list(&call->validation, values, count, "compatibleRuntimes", 0, RUNTIMES_MAXIMUM, NULL);
    if (!are_known_runtimes(values, count))
        validation_add(&call->validation,
                       "Value '[%s]' at 'compatibleRuntimes' failed to satisfy constraint: Member must satisfy enum "
                       "value set: [" RUNTIMES_LISTED "]",
                       join(call, values, count));
}

static void validate_architectures(struct call *call)
{
    static const struct validation_constraint constraint = {.values = runtime_architectures};
    const json_t *list = json_object_get(call->input, "CompatibleArchitectures");
    struct span *values = list ? input_strings(call, list) : NULL;

    if (values)
        validate_list(&call->validation, values, json_array_size(list), "compatibleArchitectures", 0,
                      ARCHITECTURES_MAXIMUM, &constraint);
}

static void validate_publication(struct call *call)
{
    const json_t *input = call->input;

    if (validate_present(&call->validation, input_has(input, "Content"), "content"))
        package_validate(call, json_object_get(input, "Content"), "content.");
    if (input_has(input, "Description"))
        validate_length(&call->validation, input_string(input, "Description"), "description", 0,
                        LAMBDA_DESCRIPTION_MAXIMUM);
    if (input_has(input, "LicenseInfo"))
        validate_length(&call->validation, input_string(input, "LicenseInfo"), "licenseInfo", 0,
                        LAMBDA_LICENSE_INFO_MAXIMUM);
    validate_runtimes(call);
    validate_architectures(call);
}

/* The new version's document, into call->document. */
static int make_document(struct call *call)
{
    static const char *const plain[] = {"CompatibleRuntimes", "CompatibleArchitectures", "LicenseInfo"};
    const struct code_package *package = &call->package;
    struct span description = input_string(call->input, "Description");
    char created[CLOCK_ISO_BYTES];

    call->document =
        json_pack("{s:s, s:s, s:I, s:I, s:s%, s:s}", "Package", package->sha256, "CodeSha256", package->sha256_base64,
                  "CodeSize", (json_int_t)package->zip_bytes, "UnpackedSize", (json_int_t)package->unpacked_bytes,
                  "Description", description.data ? description.data : "", description.length, "CreatedDate",
                  clock_format_lambda(clock_wall_ns(), created));
    for (size_t i = 0; call->document && i < ARRAY_SIZE(plain); i++) {
        json_t *value = json_object_get(call->input, plain[i]);
        if (value && json_object_set(call->document, plain[i], value) < 0)
            return -ENOMEM;
    }
    return call->document ? 0 : -ENOMEM;
}

static int put_layer(struct catalog_change *change, struct span name, uint64_t next_version)
{
    json_t *document = json_pack("{s:I}", "NextVersion", (json_int_t)next_version);
    int r = document ? catalog_change_put_record(change, CATALOG_LAYER, name, document) : -ENOMEM;

    json_decref(document);
    return r;
}

static int build_publication(struct call *call, struct catalog_change *change)
{
    const struct catalog_scope *scope = catalog_change_scope(change);
    struct layer_name *layer = layer_of(call);
    struct span record;
    int r = update_check_storage(call, scope, 1, 0);

    if (r)
        return r;
    layer->version = layer_next_version(scope, layer->name);
    r = layer_record_name(call, layer->name, layer->version, &record);
    if (r == 0)
        r = put_layer(change, layer->name, layer->version + 1);
    return r < 0 ? r : catalog_change_put_record(change, CATALOG_LAYER_VERSION, record, call->document);
}

static void answer_publication(struct call *call)
{
    respond_version(call, 201, call->document);
}

static void on_unpacked(struct call *call)
{
    int r = make_document(call);

    if (r < 0)
        call_end(call, r, "making the layer");
    else
        call_submit(call, build_publication, answer_publication);
}

static void on_publication_parsed(struct call *call)
{
    const json_t *content = json_object_get(call->input, "Content");
    int r;

    validate_publication(call);
    r = layer_take_name(call, false, layer_of(call));
    if (r == 0)
        r = layer_check_owner(call, layer_of(call));
    if (r == 0)
        r = package_check(call, content, true);
    if (r)
        call_end(call, r, "checking the layer");
    else
        package_obtain(call, content, on_unpacked);
}

void lambda_publish_layer_version(struct operation *operation)
{
    struct call *call = layer_call_new(operation);

    if (call)
        input_read_body(call, publish_members, "Content", on_publication_parsed);
}

/* --- GetLayerVersion, GetLayerVersionByArn --- */

static void respond_found(struct call *call)
{
    const struct layer_name *layer = layer_of(call);
    const json_t *document = layer_find(call, layer);
    int r = layer_check_access(call, layer, document);

    if (r == 0 && (!document || !span_equal(layer->region, call->operation->region)))
        r = aws_error_set(&call->error, AWS_ERROR_RESOURCE_NOT_FOUND, "The resource you requested does not exist.");
    if (r)
        call_end(call, r, "finding the layer");
    else
        respond_version(call, 200, document);
}

void lambda_get_layer_version(struct operation *operation)
{
    struct call *call = layer_call_new(operation);
    int r;

    if (!call)
        return;
    r = layer_take_name(call, true, layer_of(call));
    if (r)
        call_end(call, r, "finding the layer");
    else
        respond_found(call);
}

static int take_arn(struct call *call)
{
    static const struct validation_constraint constraint = {
        .minimum = 1, .maximum = LAMBDA_LAYER_VERSION_ARN_MAXIMUM, .pattern = LAMBDA_LAYER_VERSION_ARN_PATTERN};
    struct span arn = SPAN_NONE;
    int r;

    if (validate_present(&call->validation, operation_query(call->operation, SPAN("Arn"), &arn), "arn"))
        validate_string(&call->validation, arn, "arn", &constraint);
    r = call_finish_validation(call);
    if (r)
        return r;
    if (!layer_parse_arn(arn, layer_of(call))) /* the service's own layers: there are none here */
        return aws_error_set(&call->error, AWS_ERROR_RESOURCE_NOT_FOUND, "The resource you requested does not exist.");
    return 0;
}

void lambda_get_layer_version_by_arn(struct operation *operation)
{
    struct call *call = layer_call_new(operation);
    int r;

    if (!call)
        return;
    r = take_arn(call);
    if (r)
        call_end(call, r, "finding the layer");
    else
        respond_found(call);
}

/* --- DeleteLayerVersion --- */

/* Nothing to delete is success. */
static int build_deletion(struct call *call, struct catalog_change *change)
{
    const struct layer_name *layer = layer_of(call);
    struct span record;
    int r = layer_record_name(call, layer->name, layer->version, &record);

    if (r < 0 || !layer_find_in(catalog_change_scope(change), layer->name, layer->version))
        return r;
    return catalog_change_delete_record(change, CATALOG_LAYER_VERSION, record);
}

void lambda_delete_layer_version(struct operation *operation)
{
    struct call *call = layer_call_new(operation);
    int r;

    if (!call)
        return;
    r = layer_take_name(call, true, layer_of(call));
    if (r == 0)
        r = layer_check_owner(call, layer_of(call));
    if (r)
        call_end(call, r, "finding the layer");
    else
        call_submit(call, build_deletion, call_respond_empty);
}
