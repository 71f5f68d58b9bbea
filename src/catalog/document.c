#include "catalog/document.h"

#include "aws/json_error.h"
#include "base/list.h"

#include <inttypes.h>

enum { NUMBER_DIGITS = 20 };

static const char *const state_names[] = {[CATALOG_PENDING] = "Pending", [CATALOG_ACTIVE] = "Active"};
static const char *const update_names[] = {
    [CATALOG_UPDATE_NONE] = "None",
    [CATALOG_UPDATE_IN_PROGRESS] = "InProgress",
    [CATALOG_UPDATE_SUCCESSFUL] = "Successful",
};

int document_function_key(const struct catalog_function *function, struct buffer *key)
{
    return buffer_printf(key, "%s/%s/%s", function->scope->account, function->scope->region, function->name);
}

int document_version_key(const struct catalog_function *function, const char *number, struct buffer *key)
{
    int padding = number[0] == '$' ? 0 : NUMBER_DIGITS - (int)strlen(number);

    return buffer_printf(key, "%s/%s/%s/%.*s%s", function->scope->account, function->scope->region, function->name,
                         MAX(padding, 0), "00000000000000000000", number);
}

int document_alias_key(const struct catalog_function *function, const char *name, struct buffer *key)
{
    return buffer_printf(key, "%s/%s/%s/%s", function->scope->account, function->scope->region, function->name, name);
}

int document_parse_key(struct span key, bool has_last, struct document_key *ret_key)
{
    struct document_key parts = {0};

    parts.account = span_cut(&key, '/');
    parts.region = span_cut(&key, '/');
    parts.function = span_cut(&key, '/');
    if (parts.function.length == 0 || (key.data != NULL) != has_last)
        return -EPROTO;
    parts.last = key;
    if (has_last && parts.last.length == NUMBER_DIGITS && parts.last.data[0] == '0') {
        while (parts.last.length > 1 && parts.last.data[0] == '0')
            parts.last = span_slice(parts.last, 1, parts.last.length);
    }
    *ret_key = parts;
    return 0;
}

static int append_chunk(const char *data, size_t length, void *context)
{
    return buffer_append(context, data, length);
}

/* Takes the document; NULL says that it could not be made. */
static int write_document(json_t *document, struct buffer *bytes)
{
    int r;

    if (!document)
        return -ENOMEM;
    r = json_dump_callback(document, append_chunk, bytes, JSON_COMPACT);
    json_decref(document);
    return r < 0 ? -ENOMEM : 0;
}

int document_write_function(const struct function_facts *facts, struct buffer *bytes)
{
    json_t *reserved = facts->has_reserved ? json_integer(facts->reserved) : NULL;

    if (facts->has_reserved && !reserved)
        return -ENOMEM;
    return write_document(json_pack("{s:i, s:I, s:o*, s:O}", "format", CATALOG_FORMAT, "next_version",
                                    (json_int_t)facts->next_version, "reserved", reserved, "tags", facts->tags),
                          bytes);
}

/* NULL through ret_member when there is none. */
static int make_provisioned(const struct catalog_provisioned *provisioned, json_t **ret_member)
{
    *ret_member = NULL;
    if (!provisioned->requested)
        return 0;
    *ret_member = json_pack("{s:I, s:s}", "requested", (json_int_t)provisioned->requested, "modified",
                            provisioned->last_modified);
    return *ret_member ? 0 : -ENOMEM;
}

int document_write_version(const struct document_version *version, struct buffer *bytes)
{
    json_t *provisioned;
    int r = make_provisioned(&version->provisioned, &provisioned);

    if (r < 0)
        return r;
    return write_document(json_pack("{s:i, s:s, s:s, s:s, s:s%, s:I, s:s*, s:o*, s:O}", "format", CATALOG_FORMAT,
                                    "state", state_names[version->state], "update", update_names[version->update],
                                    "revision", version->revision_id, "code", version->code_sha256.data,
                                    version->code_sha256.length, "code_bytes", (json_int_t)version->code_bytes,
                                    "source_description", version->source_description, "provisioned", provisioned,
                                    "configuration", version->configuration),
                          bytes);
}

int document_write_alias(const struct document_alias *alias, struct buffer *bytes)
{
    json_t *weight = alias->additional ? json_real(alias->weight) : NULL;
    json_t *provisioned;

    if (alias->additional && !weight)
        return -ENOMEM;
    if (make_provisioned(&alias->provisioned, &provisioned) < 0) {
        json_decref(weight);
        return -ENOMEM;
    }
    return write_document(json_pack("{s:i, s:s, s:s, s:s, s:s*, s:o*, s:o*}", "format", CATALOG_FORMAT, "version",
                                    alias->version, "description", alias->description, "revision", alias->revision_id,
                                    "additional", alias->additional, "weight", weight, "provisioned", provisioned),
                          bytes);
}

int document_write_record(json_t *record, struct buffer *bytes)
{
    return write_document(json_pack("{s:i, s:O}", "format", CATALOG_FORMAT, "record", record), bytes);
}

int document_read_record(struct span bytes, json_t **ret_record)
{
    json_t *document;
    json_t *record;
    int r = document_parse(bytes, &document);

    if (r < 0)
        return r;
    record = json_object_get(document, "record");
    r = json_is_object(record) ? 0 : -EPROTO;
    if (r == 0)
        *ret_record = json_incref(record);
    json_decref(document);
    return r;
}

int document_parse(struct span bytes, json_t **ret_document)
{
    json_error_t error;
    json_t *document = json_loadb(bytes.data ? bytes.data : "", bytes.length, JSON_REJECT_DUPLICATES, &error);
    json_int_t format;

    if (!document)
        return json_error_is_memory(&error) ? -ENOMEM : -EPROTO;
    format = json_integer_value(json_object_get(document, "format"));
    if (format < 1 || format > CATALOG_FORMAT) {
        json_decref(document);
        return -EPROTO;
    }
    *ret_document = document;
    return 0;
}

static bool is_string_map(json_t *map)
{
    const char *key;
    json_t *value;

    if (!json_is_object(map))
        return false;
    json_object_foreach(map, key, value) if (!json_is_string(value)) return false;
    return true;
}

int document_read_function(json_t *document, struct function_facts *ret_facts)
{
    json_t *next = json_object_get(document, "next_version");
    json_t *reserved = json_object_get(document, "reserved");
    json_t *tags = json_object_get(document, "tags");

    if (json_integer_value(next) < 1 || !is_string_map(tags))
        return -EPROTO;
    if (reserved && (!json_is_integer(reserved) || json_integer_value(reserved) < 0))
        return -EPROTO;
    *ret_facts = (struct function_facts){
        .next_version = (uint64_t)json_integer_value(next),
        .has_reserved = reserved != NULL,
        .reserved = (unsigned)json_integer_value(reserved),
        .tags = json_incref(tags),
    };
    return 0;
}

/* Index of the string member in `names`, -EPROTO when it is none of them. */
static int read_name(json_t *document, const char *member, const char *const *names, size_t count)
{
    const char *value = json_string_value(json_object_get(document, member));

    for (size_t i = 0; value && i < count; i++)
        if (!strcmp(value, names[i]))
            return (int)i;
    return -EPROTO;
}

static int read_provisioned(json_t *document, struct catalog_provisioned *ret_provisioned)
{
    json_t *member = json_object_get(document, "provisioned");
    json_int_t requested = json_integer_value(json_object_get(member, "requested"));
    const char *modified = json_string_value(json_object_get(member, "modified"));

    if (!member)
        return 0;
    if (requested < 1 || requested > INT32_MAX || !modified || strlen(modified) >= CATALOG_TIME_BYTES)
        return -EPROTO;
    ret_provisioned->requested = (unsigned)requested;
    snprintf(ret_provisioned->last_modified, CATALOG_TIME_BYTES, "%s", modified);
    return 0;
}

int document_read_version(json_t *document, struct document_version *ret_version)
{
    int state = read_name(document, "state", state_names, ARRAY_SIZE(state_names));
    int update = read_name(document, "update", update_names, ARRAY_SIZE(update_names));
    json_t *code_bytes = json_object_get(document, "code_bytes");
    struct document_version version = {
        .revision_id = json_string_value(json_object_get(document, "revision")),
        .code_sha256 = span_from(json_string_value(json_object_get(document, "code"))),
        .source_description = json_string_value(json_object_get(document, "source_description")),
        .configuration = json_object_get(document, "configuration"),
    };

    if (state < 0 || update < 0 || !version.revision_id || version.code_sha256.length != CATALOG_SHA256_HEX - 1 ||
        !json_is_integer(code_bytes) || json_integer_value(code_bytes) < 0 || !json_is_object(version.configuration))
        return -EPROTO;
    version.state = (enum catalog_state)state;
    version.update = (enum catalog_update)update;
    version.code_bytes = (uint64_t)json_integer_value(code_bytes);
    if (read_provisioned(document, &version.provisioned) < 0)
        return -EPROTO;
    *ret_version = version;
    return 0;
}

int document_read_alias(json_t *document, struct document_alias *ret_alias)
{
    struct document_alias alias = {
        .version = json_string_value(json_object_get(document, "version")),
        .description = json_string_value(json_object_get(document, "description")),
        .revision_id = json_string_value(json_object_get(document, "revision")),
        .additional = json_string_value(json_object_get(document, "additional")),
        .weight = json_number_value(json_object_get(document, "weight")),
    };

    if (!alias.version || !alias.description || !alias.revision_id || !(alias.weight >= 0.0 && alias.weight <= 1.0))
        return -EPROTO;
    if (read_provisioned(document, &alias.provisioned) < 0)
        return -EPROTO;
    *ret_alias = alias;
    return 0;
}
