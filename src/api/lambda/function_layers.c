#include "api/lambda/function_layers.h"

#include "api/lambda/layers.h"

static int refuse(struct call *call, const char *sentence)
{
    return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE, "%s", sentence);
}

/* "arn:...:layer:NAME" of "arn:...:layer:NAME:VERSION". */
static struct span without_version(struct span arn)
{
    size_t end = arn.length;

    while (end > 0 && arn.data[end - 1] != ':')
        end--;
    return span_slice(arn, 0, end ? end - 1 : 0);
}

static int check_repetition(struct call *call, const json_t *layers, size_t index)
{
    struct span arn = span_from(json_string_value(json_array_get(layers, index)));

    for (size_t i = 0; i < index; i++) {
        struct span other = span_from(json_string_value(json_array_get(layers, i)));
        if (span_equal(without_version(other), without_version(arn)))
            return aws_error_set(
                &call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                "Two different versions of the same layer are not allowed to be referenced in the same "
                "function. %.*s and %.*s are versions of the same layer.",
                SPAN_ARG(other), SPAN_ARG(arn));
    }
    return 0;
}

static int check_region(struct call *call, const json_t *layer)
{
    struct arn parts;

    if (arn_parse(span_from(json_string_value(layer)), &parts) != 0 || parts.region.length == 0 ||
        span_equal(parts.region, call->operation->region))
        return 0;
    return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                         "Layers are not in the same region as the function. Layers are expected to be in region %.*s.",
                         SPAN_ARG(call->operation->region));
}

/* Holds the version's package and adds it to call->layers. */
static int hold(struct call *call, json_t *arn, const json_t *document)
{
    json_t *package = json_object_get(document, "Package");
    json_t *item = json_pack("{s:O, s:O, s:O, s:O}", "Arn", arn, "CodeSize", json_object_get(document, "CodeSize"),
                             "Package", package, "UnpackedSize", json_object_get(document, "UnpackedSize"));
    int r = item ? code_retain(call->operation->services->code, json_string_value(package)) : -ENOMEM;

    if (r < 0)
        json_decref(item);
    else if (json_array_append_new(call->layers, item) < 0) {
        code_release(call->operation->services->code, json_string_value(package));
        r = -ENOMEM;
    }
    return r;
}

static int take_layer(struct call *call, json_t *arn)
{
    struct span text = span_from(json_string_value(arn));
    struct layer_name name = {0};
    const json_t *document = NULL;
    int r = 0;

    if (layer_parse_arn(text, &name)) {
        document = layer_find(call, &name);
        r = layer_check_access(call, &name, document);
    }
    if (r == 0 && !document)
        r = aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE, "Layer version %.*s does not exist.",
                          SPAN_ARG(text));
    return r ? r : hold(call, arn, document);
}

int function_layers_check(struct call *call)
{
    json_t *layers = json_object_get(call->input, "Layers");
    size_t count = json_array_size(layers);
    int r = 0;

    if (!layers)
        return 0;
    if (count > CATALOG_LAYERS_MAX)
        return refuse(call, "Cannot reference more than 5 layers.");
    call->layers = json_array();
    if (!call->layers)
        return -ENOMEM;
    for (size_t i = 0; r == 0 && i < count; i++) {
        r = check_repetition(call, layers, i);
        if (r == 0)
            r = check_region(call, json_array_get(layers, i));
    }
    for (size_t i = 0; r == 0 && i < count; i++)
        r = take_layer(call, json_array_get(layers, i));
    return r;
}

int function_layers_check_size(struct call *call, const json_t *document)
{
    const json_t *layers = json_object_get(document, "Layers");
    uint64_t total = (uint64_t)input_integer(document, "UnpackedSize", 0);

    for (size_t i = 0; i < json_array_size(layers); i++)
        total += (uint64_t)input_integer(json_array_get(layers, i), "UnpackedSize", 0);
    if (total <= CODE_UNPACKED_BYTES || json_array_size(layers) == 0)
        return 0;
    return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                         "Function code combined with layers exceeds the maximum allowed size of %d bytes. The actual "
                         "size is %llu bytes.",
                         CODE_UNPACKED_BYTES, (unsigned long long)total);
}

void function_layers_release(struct call *call)
{
    for (size_t i = 0; i < json_array_size(call->layers); i++)
        code_release(call->operation->services->code,
                     json_string_value(json_object_get(json_array_get(call->layers, i), "Package")));
    json_decref(call->layers);
    call->layers = NULL;
}

/* --- documents --- */

int function_layers_put(const struct call *call, json_t *document)
{
    if (!call->layers)
        return 0;
    if (json_array_size(call->layers) == 0) {
        json_object_del(document, "Layers");
        return 0;
    }
    return json_object_set(document, "Layers", call->layers) < 0 ? -ENOMEM : 0;
}

int function_layers_hide(json_t *answer)
{
    const json_t *layers = json_object_get(answer, "Layers");
    json_t *shown;

    json_object_del(answer, "UnpackedSize");
    if (!layers)
        return 0;
    shown = json_array();
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const json_t *layer = json_array_get(layers, i);
        if (json_array_append_new(shown, json_pack("{s:O, s:O}", "Arn", json_object_get(layer, "Arn"), "CodeSize",
                                                   json_object_get(layer, "CodeSize"))) < 0) {
            json_decref(shown);
            return -ENOMEM;
        }
    }
    return json_object_set_new(answer, "Layers", shown) < 0 ? -ENOMEM : 0;
}
