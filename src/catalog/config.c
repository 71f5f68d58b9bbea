/*
 * A configuration is one allocation's worth of strings in an arena beside a reference to the JSON document they mostly
 * point into: the document is never altered, so both can be shared for as long as somebody counts.
 */
#include "base/arena.h"
#include "base/buffer.h"
#include "catalog/internal.h"
#include "store/code.h"

struct config_entry {
    struct catalog_version_config config;
    struct arena arena;
    struct code_store *code;                /* NULL: forgotten */
    const char *layers[CATALOG_LAYERS_MAX]; /* packages that are held; in the document */
    size_t layer_count;
};

static struct config_entry *entry_of(struct catalog_version_config *config)
{
    return CONTAINER_OF(config, struct config_entry, config);
}

static struct config_entry *config_entry_free(struct config_entry *entry)
{
    if (!entry)
        return NULL;
    if (entry->code && entry->config.code_sha256[0])
        code_release(entry->code, entry->config.code_sha256);
    for (size_t i = 0; entry->code && i < entry->layer_count; i++)
        code_release(entry->code, entry->layers[i]);
    json_decref((json_t *)entry->config.document);
    arena_deinit(&entry->arena);
    free(entry);
    return NULL;
}

static void cleanup_config_entry(struct config_entry **entry)
{
    config_entry_free(*entry);
}

struct catalog_version_config *catalog_version_config_ref(struct catalog_version_config *config)
{
    config->references++;
    return config;
}

struct catalog_version_config *catalog_version_config_unref(struct catalog_version_config *config)
{
    if (config && --config->references == 0)
        config_entry_free(entry_of(config));
    return NULL;
}

void version_config_forget(struct catalog_version_config *config)
{
    if (!config)
        return;
    entry_of(config)->code = NULL;
    catalog_version_config_unref(config);
}

static int read_unsigned(const json_t *object, const char *member, unsigned *ret_value)
{
    const json_t *value = json_object_get(object, member);

    if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > INT32_MAX)
        return -EINVAL;
    *ret_value = (unsigned)json_integer_value(value);
    return 0;
}

static int read_variables(struct config_entry *entry)
{
    json_t *map = json_object_get(json_object_get(entry->config.document, "Environment"), "Variables");
    struct catalog_variable *variables;
    const char *name;
    json_t *value;
    size_t count = 0;

    if (json_object_size(map) == 0)
        return 0;
    variables = arena_zalloc(&entry->arena, json_object_size(map) * sizeof(*variables));
    if (!variables)
        return -ENOMEM;
    json_object_foreach(map, name, value)
    {
        if (!json_is_string(value))
            return -EINVAL;
        variables[count++] = (struct catalog_variable){name, json_string_value(value)};
    }
    entry->config.variables = variables;
    entry->config.variable_count = count;
    return 0;
}

static void read_logging(struct catalog_version_config *config)
{
    const json_t *logging = json_object_get(config->document, "LoggingConfig");

    config->log_group = json_string_value(json_object_get(logging, "LogGroup"));
    config->log_format = json_string_value(json_object_get(logging, "LogFormat"));
    config->application_log_level = json_string_value(json_object_get(logging, "ApplicationLogLevel"));
    config->system_log_level = json_string_value(json_object_get(logging, "SystemLogLevel"));
}

static int read_document(struct config_entry *entry)
{
    struct catalog_version_config *config = &entry->config;
    const json_t *document = config->document;
    int r;

    config->runtime = json_string_value(json_object_get(document, "Runtime"));
    config->handler = json_string_value(json_object_get(document, "Handler"));
    config->runtime_version_arn =
        json_string_value(json_object_get(json_object_get(document, "RuntimeVersionConfig"), "RuntimeVersionArn"));
    read_logging(config);
    if (!config->handler)
        config->handler = "";
    if (!config->runtime || !config->log_group)
        return -EINVAL;
    r = read_unsigned(document, "MemorySize", &config->memory_mib);
    if (r == 0)
        r = read_unsigned(document, "Timeout", &config->timeout_s);
    if (r == 0)
        r = read_unsigned(json_object_get(document, "EphemeralStorage"), "Size", &config->tmp_mib);
    return r < 0 ? r : read_variables(entry);
}

static int copy_strings(struct config_entry *entry, const struct config_source *source)
{
    const struct catalog_function *function = source->function;
    struct catalog_version_config *config = &entry->config;
    struct arena *arena = &entry->arena;

    config->account = arena_dup(arena, span_from(function->scope->account));
    config->region = arena_dup(arena, span_from(function->scope->region));
    config->function_name = arena_dup(arena, span_from(function->name));
    config->function_arn = arena_dup(arena, span_from(function->arn));
    config->version = arena_dup(arena, span_from(source->version));
    config->revision_id = arena_dup(arena, span_from(source->revision_id));
    if (!config->account || !config->region || !config->function_name || !config->function_arn || !config->version ||
        !config->revision_id)
        return -ENOMEM;
    return 0;
}

static int hold_package(struct config_entry *entry, struct code_store *code, const struct config_source *source)
{
    struct catalog_version_config *config = &entry->config;
    char sha256[CATALOG_SHA256_HEX] = {0};
    struct buffer directory = BUFFER_INIT;
    int r;

    if (source->code_sha256.length != CATALOG_SHA256_HEX - 1)
        return -EINVAL;
    memcpy(sha256, source->code_sha256.data, source->code_sha256.length);
    r = code_retain(code, sha256);
    if (r < 0)
        return r;
    entry->code = code;
    memcpy(config->code_sha256, sha256, sizeof(sha256));
    config->code_bytes = source->code_bytes;
    r = code_directory(code, sha256, &directory);
    if (r == 0) {
        config->code_dir = arena_dup(&entry->arena, buffer_span(&directory));
        r = config->code_dir ? 0 : -ENOMEM;
    }
    buffer_deinit(&directory);
    return r;
}

static int add_layer_dir(struct config_entry *entry, const char *sha256, const char **ret_dir)
{
    struct buffer directory = BUFFER_INIT;
    int r = code_directory(entry->code, sha256, &directory);

    if (r == 0) {
        *ret_dir = arena_dup(&entry->arena, buffer_span(&directory));
        r = *ret_dir ? 0 : -ENOMEM;
    }
    buffer_deinit(&directory);
    return r;
}

/* Held, but for those whose package comes once more behind it: it would be covered, and cannot be mounted twice. */
static int hold_layers(struct config_entry *entry)
{
    const json_t *layers = json_object_get(entry->config.document, "Layers");
    size_t count = json_array_size(layers);
    size_t dirs = 0;
    int r = count > CATALOG_LAYERS_MAX ? -EINVAL : 0;

    for (size_t i = 0; r == 0 && i < count; i++) {
        const char *sha256 = json_string_value(json_object_get(json_array_get(layers, i), "Package"));
        bool again = false;
        for (size_t j = i + 1; sha256 && j < count; j++)
            again |= json_equal(json_object_get(json_array_get(layers, j), "Package"),
                                json_object_get(json_array_get(layers, i), "Package"));
        if (again)
            continue;
        r = sha256 ? code_retain(entry->code, sha256) : -EINVAL;
        if (r < 0)
            return r;
        entry->layers[entry->layer_count++] = sha256;
        r = add_layer_dir(entry, sha256, &entry->config.layer_dirs[dirs++]);
    }
    return r;
}

int version_config_new(struct code_store *code, const struct config_source *source,
                       struct catalog_version_config **ret_config)
{
    CLEANUP(cleanup_config_entry) struct config_entry *entry = calloc(1, sizeof(*entry));
    int r;

    if (!entry)
        return -ENOMEM;
    entry->config.references = 1;
    entry->config.document = json_incref(source->document);
    r = copy_strings(entry, source);
    if (r == 0)
        r = read_document(entry);
    if (r == 0)
        r = hold_package(entry, code, source);
    if (r == 0)
        r = hold_layers(entry);
    if (r < 0)
        return r;
    *ret_config = &TAKE_PTR(entry)->config;
    return 0;
}
