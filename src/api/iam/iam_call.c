#include "api/iam/iam_call.h"

#include "aws/arn.h"
#include "aws/json_error.h"
#include "aws/pattern.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/random.h"

#include <ctype.h>
#include <stdio.h>

enum { PAGE_ITEMS = 100, PAGE_ITEMS_MAX = 1000, MARKER_MAX = 320, TAGS_MAX = 50, PATH_MAXIMUM = 512 };

static void cleanup(struct operation *operation)
{
    struct iam_call *call = operation->context;

    aws_error_deinit(&call->error);
    validation_deinit(&call->validation);
    json_decref(call->entity);
    json_decref(call->result);
    catalog_unref(call->catalog);
}

struct iam_call *iam_call_new(struct operation *operation)
{
    struct iam_call *call = arena_zalloc(&operation->arena, sizeof(*call));

    if (!call) {
        operation_respond_failure(operation, -ENOMEM, "starting the operation");
        return NULL;
    }
    call->operation = operation;
    call->catalog = catalog_ref(operation->services->catalog);
    operation->context = call;
    operation->cleanup = cleanup;
    return call;
}

void iam_end(struct iam_call *call, int r, const char *what)
{
    if (r > 0)
        operation_respond_error(call->operation, &call->error);
    else
        operation_respond_failure(call->operation, r, what);
}

void iam_respond(struct iam_call *call, json_t *result)
{
    operation_respond_result(call->operation, result, !result);
}

/* --- parameters --- */

struct span iam_string(const struct iam_call *call, const char *name)
{
    return query_string(&call->operation->form, name);
}

/* "roleName" for "RoleName". */
static const char *shown_name(const char *name, char text[64])
{
    snprintf(text, 64, "%c%s", tolower((unsigned char)name[0]), name + 1);
    return text;
}

struct span iam_read_string(struct iam_call *call, const char *name, bool required, size_t minimum, size_t maximum)
{
    struct span value = iam_string(call, name);
    char shown[64];

    shown_name(name, shown);
    if (value.data)
        validate_length(&call->validation, value, shown, minimum, maximum);
    else if (required)
        validate_present(&call->validation, false, shown);
    return value;
}

int64_t iam_read_integer(struct iam_call *call, const char *name, int64_t minimum, int64_t maximum, int64_t otherwise)
{
    struct span text = iam_string(call, name);
    char shown[64];
    uint64_t value;

    if (!text.data)
        return otherwise;
    shown_name(name, shown);
    if (span_to_u64(text, INT32_MAX, &value) < 0) {
        validation_add(&call->validation,
                       "Value '%.*s' at '%s' failed to satisfy constraint: Member must be an integer", SPAN_ARG(text),
                       shown);
        return otherwise;
    }
    return validate_range(&call->validation, (int64_t)value, shown, minimum, maximum) ? (int64_t)value : otherwise;
}

bool iam_read_boolean(const struct iam_call *call, const char *name)
{
    return span_equal(iam_string(call, name), SPAN("true"));
}

void iam_read_role(struct iam_call *call)
{
    call->kind = CATALOG_ROLE;
    call->name = iam_read_string(call, "RoleName", true, 1, 64);
    call->key = iam_key(call, call->name);
}

/* The name is what follows the last '/' of the resource. */
static struct span policy_name(const struct iam_call *call, struct span text)
{
    struct arn arn;
    struct span name;

    if (arn_parse(text, &arn) != 0 || !span_equal(arn.service, SPAN("iam")) ||
        !span_equal(arn.account, call->operation->account) || !span_starts_with(arn.resource, SPAN("policy/")))
        return SPAN_NONE;
    for (name = arn.resource; span_find(name, '/') >= 0;)
        span_cut(&name, '/');
    return name;
}

void iam_read_policy(struct iam_call *call)
{
    call->kind = CATALOG_MANAGED_POLICY;
    call->name = iam_read_string(call, "PolicyArn", true, 20, 2048);
    call->key = iam_key(call, policy_name(call, call->name));
}

int iam_finish_validation(struct iam_call *call)
{
    return validation_finish(&call->validation, AWS_ERROR_VALIDATION, &call->error);
}

int iam_check_name(struct iam_call *call, struct span value, const char *name)
{
    char shown[64];

    if (pattern_matches("[\\w+=,.@-]*", value))
        return 0;
    return aws_error_set(&call->error, AWS_ERROR_VALIDATION,
                         "The specified value for %s is invalid. It must contain only alphanumeric characters and/or "
                         "the following: +=,.@_-",
                         shown_name(name, shown));
}

int iam_check_path(struct iam_call *call, struct span value)
{
    if (value.length <= PATH_MAXIMUM && pattern_matches("/|/[!-~]+/", value))
        return 0;
    return aws_error_set(&call->error, AWS_ERROR_VALIDATION,
                         "The specified value for path is invalid. It must begin and end with / and contain only "
                         "alphanumeric characters and/or / characters.");
}

static size_t count_characters(struct span text)
{
    size_t count = 0;

    for (size_t i = 0; i < text.length; i++)
        count += !isspace((unsigned char)text.data[i]);
    return count;
}

int iam_check_document(struct iam_call *call, struct span document, size_t quota, const char *quota_name)
{
    json_error_t error;
    json_t *parsed = json_loadb(document.data ? document.data : "", document.length, 0, &error);
    const json_t *statement = json_object_get(parsed, "Statement");
    bool has_statement = json_is_object(statement) || json_is_array(statement);

    if (!parsed && json_error_is_memory(&error))
        return -ENOMEM;
    json_decref(parsed);
    if (!parsed)
        return iam_refuse(call, 400, "MalformedPolicyDocument", "This policy contains invalid Json");
    if (!has_statement)
        return iam_refuse(call, 400, "MalformedPolicyDocument", "Syntax errors in policy.");
    if (count_characters(document) > quota)
        return iam_refuse(call, 409, "LimitExceeded", "Cannot exceed quota for %s: %zu", quota_name, quota);
    return 0;
}

/* --- entities --- */

struct span iam_key(struct iam_call *call, struct span name)
{
    char *key = arena_dup(&call->operation->arena, name);

    for (size_t i = 0; key && i < name.length; i++)
        key[i] = (char)tolower((unsigned char)key[i]);
    return span_of(key, key ? name.length : 0);
}

static const struct catalog_scope *find_scope(const struct iam_call *call)
{
    return catalog_find_scope(call->catalog, call->operation->account, CATALOG_GLOBAL);
}

const json_t *iam_find(const struct iam_call *call)
{
    return catalog_find_record(find_scope(call), call->kind, call->key);
}

int iam_refuse(struct iam_call *call, int status, const char *code, const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return aws_error_set_custom(&call->error, status, code, "Sender", "%s", text);
}

int iam_refuse_missing(struct iam_call *call)
{
    if (call->kind == CATALOG_ROLE)
        return iam_refuse(call, 404, "NoSuchEntity", "The role with name %.*s cannot be found.", SPAN_ARG(call->name));
    return iam_refuse(call, 404, "NoSuchEntity", "Policy %.*s was not found.", SPAN_ARG(call->name));
}

static int on_build(struct catalog_mutation *mutation, struct catalog_change *change)
{
    struct iam_call *call = CONTAINER_OF(mutation, struct iam_call, mutation);

    return call->build(call, change);
}

static void on_done(struct catalog_mutation *mutation, int status)
{
    struct iam_call *call = CONTAINER_OF(mutation, struct iam_call, mutation);

    if (status)
        iam_end(call, status, "storing the change");
    else
        operation_respond_result(call->operation, TAKE_PTR(call->result), false);
}

void iam_submit(struct iam_call *call, int (*build)(struct iam_call *call, struct catalog_change *change))
{
    int r;

    call->build = build;
    call->mutation.build = on_build;
    call->mutation.on_done = on_done;
    r = catalog_submit(call->catalog, call->operation->account, CATALOG_GLOBAL, &call->mutation);
    if (r < 0)
        iam_end(call, r, "entering the lane");
}

static int build_edit(struct iam_call *call, struct catalog_change *change)
{
    const json_t *current = catalog_find_record(catalog_change_scope(change), call->kind, call->key);
    int r;

    if (!current)
        return iam_refuse_missing(call);
    call->entity = json_deep_copy((json_t *)current);
    r = call->entity ? call->edit(call, call->entity) : -ENOMEM;
    return r ? r : catalog_change_put_record(change, call->kind, call->key, call->entity);
}

void iam_submit_edit(struct iam_call *call, int (*edit)(struct iam_call *call, json_t *entity))
{
    call->edit = edit;
    iam_submit(call, build_edit);
}

/* Makes the record call->entity, which must not be there. */
static int put_new(struct iam_call *call, struct catalog_change *change)
{
    if (!call->entity || !call->key.data)
        return -ENOMEM;
    if (catalog_find_record(catalog_change_scope(change), call->kind, call->key)) {
        if (call->kind == CATALOG_ROLE)
            return iam_refuse(call, 409, "EntityAlreadyExists", "Role with name %.*s already exists.",
                              SPAN_ARG(call->name));
        return iam_refuse(call, 409, "EntityAlreadyExists",
                          "A policy called %.*s already exists. Duplicate names are not allowed.",
                          SPAN_ARG(call->name));
    }
    return catalog_change_put_record(change, call->kind, call->key, call->entity);
}

static int check_creation(struct iam_call *call, const struct iam_creation *creation, json_t *tags)
{
    struct span path = iam_string(call, "Path");
    int r;

    creation->read(call);
    r = iam_finish_validation(call);
    if (r == 0)
        r = iam_check_name(call, call->name, creation->name_member);
    if (r == 0 && path.data)
        r = iam_check_path(call, path);
    if (r == 0)
        r = iam_check_document(call, iam_string(call, creation->document_member), creation->quota,
                               creation->quota_name);
    return r ? r : iam_read_tags(call, tags);
}

void iam_create(struct operation *operation, const struct iam_creation *creation)
{
    struct iam_call *call = iam_call_new(operation);
    json_t *tags = json_object();
    int r;

    if (!call) {
        json_decref(tags);
        return;
    }
    r = tags ? check_creation(call, creation, tags) : -ENOMEM;
    if (r == 0) {
        call->entity = creation->make(call, tags);
        call->result = call->entity ? creation->wrap(call->entity) : NULL;
        r = call->result ? 0 : -ENOMEM;
    }
    json_decref(tags);
    if (r)
        iam_end(call, r, "checking the parameters");
    else
        iam_submit(call, put_new);
}

const char *iam_time(char text[IAM_TIME_BYTES])
{
    char iso[CLOCK_ISO_BYTES];

    clock_format_iso(clock_wall_ns(), iso);
    snprintf(text, IAM_TIME_BYTES, "%.19sZ", iso);
    return text;
}

const char *iam_id(const char *prefix, char text[IAM_ID_BYTES])
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    unsigned char bytes[IAM_ID_BYTES];
    size_t length = (size_t)snprintf(text, IAM_ID_BYTES, "%s", prefix);

    random_bytes(bytes, sizeof(bytes));
    for (; length < IAM_ID_BYTES - 1; length++)
        text[length] = alphabet[bytes[length] % 32];
    text[length] = '\0';
    return text;
}

const char *iam_arn(struct iam_call *call, const char *kind, struct span path, struct span name)
{
    const struct operation *operation = call->operation;
    const char *arn = arena_printf(&call->operation->arena, "arn:%.*s:iam::%.*s:%s%.*s%.*s",
                                   SPAN_ARG(arn_partition_of_region(operation->region)), SPAN_ARG(operation->account),
                                   kind, SPAN_ARG(path), SPAN_ARG(name));

    return arn ? arn : "";
}

json_t *iam_json(struct span text)
{
    return text.data ? json_stringn(text.data, text.length) : NULL;
}

void iam_append(json_t **list, json_t *item)
{
    if (!*list) {
        json_decref(item);
    } else if (json_array_append_new(*list, item) < 0) {
        json_decref(*list);
        *list = NULL;
    }
}

json_t *iam_encode_document(const json_t *document)
{
    struct buffer text = BUFFER_INIT;
    json_t *encoded = NULL;

    if (uri_encode(span_of(json_string_value(document), json_string_length(document)), false, &text) == 0)
        encoded = json_stringn(text.data ? text.data : "", text.length);
    buffer_deinit(&text);
    return encoded;
}

json_t *iam_render_tags(const json_t *tags)
{
    json_t *list = json_array();
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)tags, key, value)
        iam_append(&list, json_pack("{s:s, s:O}", "Key", key, "Value", value));
    return list;
}

int iam_read_tags(struct iam_call *call, json_t *tags)
{
    const struct uri_query *form = &call->operation->form;

    for (size_t i = 1; query_has_item(form, "Tags", i); i++) {
        struct span key = query_item(form, "Tags", i, "Key");
        struct span value = query_item(form, "Tags", i, "Value");
        if (key.length < 1 || key.length > 128 || value.length > 256 || !value.data)
            return aws_error_set(
                &call->error, AWS_ERROR_VALIDATION,
                "1 validation error detected: Value at 'tags.%zu.member' failed to satisfy constraint: "
                "Member must have a key of 1 to 128 characters and a value of at most 256",
                i);
        if (json_object_setn_new(tags, key.data, key.length, json_stringn(value.data, value.length)) < 0)
            return -ENOMEM;
    }
    if (json_object_size(tags) > TAGS_MAX)
        return iam_refuse(call, 409, "LimitExceeded", "The number of tags has reached the maximum limit.");
    return 0;
}

/* --- pages --- */

static size_t read_maximum(struct iam_call *call)
{
    return (size_t)iam_read_integer(call, "MaxItems", 1, PAGE_ITEMS_MAX, PAGE_ITEMS);
}

void iam_read_page(struct iam_call *call)
{
    iam_read_string(call, "Marker", false, 1, MARKER_MAX);
    read_maximum(call);
}

static struct span item_key(const json_t *item, const char *by)
{
    const json_t *text = by ? json_object_get(item, by) : item;

    return span_of(json_string_value(text), json_string_length(text));
}

/* What comes first behind `after`; NULL for the end. Lists here are short. */
static json_t *next_item(const json_t *all, const char *by, struct span after)
{
    json_t *next = NULL;
    json_t *item;
    size_t i;

    json_array_foreach(all, i, item)
    {
        struct span key = item_key(item, by);
        if ((!after.data || span_compare(key, after) > 0) && (!next || span_compare(key, item_key(next, by)) < 0))
            next = item;
    }
    return next;
}

/* The Marker is the base64 form of the last key shown. 0, a refusal, -ENOMEM. */
static int decode_marker(struct iam_call *call, struct span *ret_after)
{
    struct span text = iam_string(call, "Marker");
    struct buffer decoded = BUFFER_INIT;
    int r = text.length ? base64_decode(text, &decoded) : 0;

    *ret_after = SPAN_NONE;
    if (r == -EINVAL)
        r = aws_error_set(&call->error, AWS_ERROR_VALIDATION, "Invalid Marker: %.*s", SPAN_ARG(text));
    if (r == 0 && decoded.length) {
        ret_after->data = arena_dup(&call->operation->arena, buffer_span(&decoded));
        ret_after->length = decoded.length;
        r = ret_after->data ? 0 : -ENOMEM;
    }
    buffer_deinit(&decoded);
    return r;
}

static json_t *encode_marker(struct span last)
{
    struct buffer text = BUFFER_INIT;
    json_t *marker = base64_encode(last, &text) == 0 ? json_stringn(text.data, text.length) : NULL;

    buffer_deinit(&text);
    return marker;
}

/* Fills {member: [], ...} from `all`. */
static int fill_page(json_t *page, const char *member, const json_t *all, const char *by, size_t maximum,
                     struct span after)
{
    json_t *items = json_object_get(page, member);
    json_t *item;

    while ((item = next_item(all, by, after)) && json_array_size(items) < maximum) {
        after = item_key(item, by);
        if (json_array_append(items, item) < 0)
            return -ENOMEM;
    }
    if (json_object_set_new(page, "IsTruncated", json_boolean(item != NULL)) < 0)
        return -ENOMEM;
    return item && json_object_set_new(page, "Marker", encode_marker(after)) < 0 ? -ENOMEM : 0;
}

void iam_respond_page(struct iam_call *call, const char *member, json_t *all, const char *by)
{
    size_t maximum = read_maximum(call);
    json_t *page = json_pack("{s:[]}", member);
    struct span after;
    int r = iam_finish_validation(call);

    if (r == 0)
        r = decode_marker(call, &after);
    if (r == 0)
        r = all && page ? fill_page(page, member, all, by, maximum, after) : -ENOMEM;
    json_decref(all);
    if (r == 0) {
        iam_respond(call, page);
        return;
    }
    json_decref(page);
    iam_end(call, r, "listing");
}
