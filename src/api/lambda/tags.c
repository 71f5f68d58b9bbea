/*
 * TagResource, UntagResource and ListTags. What an ARN names is found through a table of kinds; a kind that Kiln has
 * none of answers as the service does for one that does not exist. Changing a function's tags gives $LATEST a new
 * RevisionId (recorded).
 */
#include "api/lambda/tags.h"

#include "api/lambda/handlers.h"
#include "api/lambda/names.h"
#include "aws/shapes.h"
#include "aws/uri.h"

enum { TAGS_MAXIMUM = 50 };

static const struct validation_constraint key_constraint = {
    .minimum = 1, .maximum = LAMBDA_TAG_KEY_MAXIMUM, .pattern = LAMBDA_TAG_PATTERN};
static const struct validation_constraint value_constraint = {.maximum = LAMBDA_TAG_VALUE_MAXIMUM,
                                                              .pattern = LAMBDA_TAG_PATTERN};

/* --- the rules of tags --- */

void tags_validate(struct call *call)
{
    json_t *tags = json_object_get(call->input, "Tags");

    if (tags)
        input_validate_map(call, tags, "tags", &key_constraint, &value_constraint);
}

static int refuse_unstorable(struct call *call)
{
    return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                         "An error occurred and the request cannot be processed.");
}

static bool is_reserved(const char *key)
{
    return strlen(key) >= 4 && span_equal_nocase(span_of(key, 4), SPAN("aws:"));
}

static int check_count(struct call *call, size_t count)
{
    if (count <= TAGS_MAXIMUM)
        return 0;
    return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE, "Number of tags exceeds resource tag limit.");
}

int tags_check(struct call *call, const json_t *tags)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)tags, key, value)
    {
        if (is_reserved(key))
            return refuse_unstorable(call);
    }
    return check_count(call, json_object_size(tags));
}

/* --- what has tags --- */

/* How a kind of resource is found and changed by its name: the ARN's rest behind the prefix. */
struct tagged_kind {
    struct span prefix;    /* of the ARN's resource */
    const char *not_found; /* what the service calls it when it is not there */
    /* NULL: there are none. False: no such resource. Its tags may come out as NULL. */
    bool (*find)(const struct catalog_scope *scope, struct span name, const json_t **ret_tags);
    int (*set)(struct catalog_change *change, struct span name, json_t *tags);
};

static bool find_function(const struct catalog_scope *scope, struct span name, const json_t **ret_tags)
{
    const struct catalog_function *function = table_get(&scope->functions, name);

    if (function)
        *ret_tags = function->tags;
    return function;
}

static int set_function(struct catalog_change *change, struct span name, json_t *tags)
{
    struct catalog_function *function = table_get(&catalog_change_scope(change)->functions, name);
    int r = catalog_change_set_tags(change, function, tags);

    return r < 0 ? r : catalog_change_renew_latest(change, function);
}

/* Records keep theirs in a member Tags of the document. */
static bool find_record(const struct catalog_scope *scope, enum catalog_record_kind kind, struct span name,
                        const json_t **ret_tags)
{
    const json_t *document = catalog_find_record(scope, kind, name);

    *ret_tags = json_object_get(document, "Tags");
    return document;
}

static int set_record(struct catalog_change *change, enum catalog_record_kind kind, struct span name, json_t *tags)
{
    const struct catalog_scope *scope = catalog_change_scope(change);
    json_t *document = json_copy((json_t *)catalog_find_record(scope, kind, name));
    int r = -ENOMEM;

    if (document && json_object_set(document, "Tags", tags) == 0)
        r = catalog_change_put_record(change, kind, name, document);
    json_decref(document);
    return r;
}

static bool find_mapping(const struct catalog_scope *scope, struct span name, const json_t **ret_tags)
{
    return find_record(scope, CATALOG_EVENT_SOURCE_MAPPING, name, ret_tags);
}

static int set_mapping(struct catalog_change *change, struct span name, json_t *tags)
{
    return set_record(change, CATALOG_EVENT_SOURCE_MAPPING, name, tags);
}

static bool find_code_signing(const struct catalog_scope *scope, struct span name, const json_t **ret_tags)
{
    return find_record(scope, CATALOG_CODE_SIGNING_CONFIG, name, ret_tags);
}

static int set_code_signing(struct catalog_change *change, struct span name, json_t *tags)
{
    return set_record(change, CATALOG_CODE_SIGNING_CONFIG, name, tags);
}

static const struct tagged_kind kinds[] = {
    {{"function:", 9}, "Function", find_function, set_function},
    {{"event-source-mapping:", 21}, "Event source mapping", find_mapping, set_mapping},
    {{"code-signing-config:", 20}, "Code signing config", find_code_signing, set_code_signing},
    {{"capacity-provider:", 18}, "Capacity provider", NULL, NULL},
    {{"layer:", 6}, "Layer", NULL, NULL},
};

/* A call on tags: call->detail.. */
struct tagging {
    struct call *call;
    struct span arn;
    const struct tagged_kind *kind;
    struct span name;
    json_t *tags;      /* TagResource: to be added; borrowed from the input */
    const char **keys; /* UntagResource: to be removed */
    size_t key_count;
};

static struct tagging *tagging_new(struct operation *operation)
{
    struct call *call = call_new(operation);
    struct tagging *tagging = call ? arena_zalloc(&operation->arena, sizeof(*tagging)) : NULL;

    if (!call)
        return NULL;
    if (!tagging) {
        call_end(call, -ENOMEM, "starting the operation");
        return NULL;
    }
    tagging->call = call;
    tagging->arn = operation_parameter(operation, SPAN("Resource"));
    call->detail = tagging;
    return tagging;
}

/* Ends the validation with the ARN's. */
static int validate_arn(struct tagging *tagging)
{
    static const struct validation_constraint constraint = {
        .minimum = 1, .maximum = LAMBDA_TAGGABLE_RESOURCE_MAXIMUM, .pattern = LAMBDA_TAGGABLE_RESOURCE_PATTERN};

    validate_string(&tagging->call->validation, tagging->arn, "resource", &constraint);
    return call_finish_validation(tagging->call);
}

static int take_function(struct tagging *tagging, const struct arn *arn)
{
    const struct operation *operation = tagging->call->operation;
    struct function_name name = {.region = arn->region, .account = arn->account, .name = tagging->name};
    const struct name_caller caller = {tagging->call->catalog, operation->account, operation->region,
                                       operation->route->name};

    if (span_find(tagging->name, ':') >= 0)
        return aws_error_set(&tagging->call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                             "Tags on function aliases and versions are not supported. Please specify a function ARN.");
    tagging->call->account = arn->account;
    return names_check_place(&name, SPAN_NONE, &caller, &tagging->call->error);
}

/* Fills kind and name from the ARN, whose form has been validated. */
static int take_arn(struct tagging *tagging)
{
    const struct operation *operation = tagging->call->operation;
    struct arn arn;

    if (arn_parse(tagging->arn, &arn) != 0)
        return -EINVAL;
    for (size_t i = 0; i < ARRAY_SIZE(kinds) && !tagging->kind; i++)
        if (span_starts_with(arn.resource, kinds[i].prefix))
            tagging->kind = &kinds[i];
    if (!tagging->kind)
        return -EINVAL;
    tagging->name = span_slice(arn.resource, tagging->kind->prefix.length, arn.resource.length);
    if (tagging->kind->find == find_function)
        return take_function(tagging, &arn);
    if (!span_equal(arn.region, operation->region) || !span_equal(arn.account, operation->account))
        tagging->name = SPAN_NONE; /* none that this caller has */
    return 0;
}

static int refuse_missing(struct tagging *tagging)
{
    return aws_error_set(&tagging->call->error, AWS_ERROR_RESOURCE_NOT_FOUND, "%s not found: %.*s",
                         tagging->kind->not_found, SPAN_ARG(tagging->arn));
}

/* Through ret_tags (may come out as NULL) those of what the ARN names in `scope` (may be NULL), or the refusal. */
static int find_tags(struct tagging *tagging, const struct catalog_scope *scope, const json_t **ret_tags)
{
    if (scope && tagging->kind->find && tagging->name.length && tagging->kind->find(scope, tagging->name, ret_tags))
        return 0;
    return refuse_missing(tagging);
}

static int find_now(struct tagging *tagging, const json_t **ret_tags)
{
    const struct call *call = tagging->call;

    return find_tags(tagging, catalog_find_scope(call->catalog, call->account, call->operation->region), ret_tags);
}

/* --- the change --- */

/* A copy of `current` with what is to be added and without what is to be removed. NULL: out of memory. */
static json_t *edit_tags(const struct tagging *tagging, const json_t *current)
{
    json_t *tags = current ? json_copy((json_t *)current) : json_object();

    if (tags && tagging->tags && json_object_update(tags, tagging->tags) < 0) {
        json_decref(tags);
        return NULL;
    }
    for (size_t i = 0; tags && i < tagging->key_count; i++)
        json_object_del(tags, tagging->keys[i]);
    return tags;
}

static int build(struct call *call, struct catalog_change *change)
{
    struct tagging *tagging = call->detail;
    const json_t *current;
    int r = find_tags(tagging, catalog_change_scope(change), &current);

    if (r)
        return r;
    call->document = edit_tags(tagging, current);
    if (!call->document)
        return -ENOMEM;
    r = check_count(call, json_object_size(call->document));
    return r ? r : tagging->kind->set(change, tagging->name, call->document);
}

/* --- the operations --- */

static const struct input_member tag_members[] = {{.name = "Tags", .kind = INPUT_MAP, .element = INPUT_STRING}, {0}};

static void on_tags_parsed(struct call *call)
{
    struct tagging *tagging = call->detail;
    const json_t *current;
    int r;

    tagging->tags = json_object_get(call->input, "Tags");
    if (validate_present(&call->validation, tagging->tags != NULL, "tags"))
        tags_validate(call);
    r = validate_arn(tagging);
    if (r == 0 && json_object_size(tagging->tags) == 0)
        r = refuse_unstorable(call);
    if (r == 0)
        r = take_arn(tagging);
    if (r == 0)
        r = find_now(tagging, &current);
    if (r == 0)
        r = tags_check(call, tagging->tags);
    if (r)
        call_end(call, r, "checking the tags");
    else
        call_submit(call, build, call_respond_empty);
}

void lambda_tag_resource(struct operation *operation)
{
    struct tagging *tagging = tagging_new(operation);

    if (tagging)
        input_read_body(tagging->call, tag_members, NULL, on_tags_parsed);
}

/* All values of the query's tagKeys, validated. */
static int read_keys(struct tagging *tagging)
{
    struct validation *validation = &tagging->call->validation;
    struct arena *arena = &tagging->call->operation->arena;
    struct uri_query query;
    struct span *values;
    int r = uri_query_parse(arena, tagging->call->operation->query, &query);

    if (r == -EINVAL)
        query.count = 0;
    else if (r < 0)
        return r;
    values = arena_alloc(arena, (query.count + 1) * sizeof(*values));
    tagging->keys = arena_alloc(arena, (query.count + 1) * sizeof(*tagging->keys));
    if (!values || !tagging->keys)
        return -ENOMEM;
    for (size_t i = 0; i < query.count; i++) {
        if (!span_equal(query.parameters[i].name, SPAN("tagKeys")))
            continue;
        values[tagging->key_count] = query.parameters[i].value;
        tagging->keys[tagging->key_count] = arena_dup(arena, query.parameters[i].value);
        if (!tagging->keys[tagging->key_count++])
            return -ENOMEM;
    }
    if (validate_present(validation, tagging->key_count > 0, "tagKeys"))
        validate_list(validation, values, tagging->key_count, "tagKeys", 0, 0, &key_constraint);
    return 0;
}

static int check_untagging(struct tagging *tagging)
{
    const json_t *current;
    int r = read_keys(tagging);

    if (r == 0)
        r = validate_arn(tagging);
    if (r == 0)
        r = take_arn(tagging);
    return r ? r : find_now(tagging, &current);
}

void lambda_untag_resource(struct operation *operation)
{
    struct tagging *tagging = tagging_new(operation);
    int r;

    if (!tagging)
        return;
    r = check_untagging(tagging);
    if (r)
        call_end(tagging->call, r, "checking the tags' keys");
    else
        call_submit(tagging->call, build, call_respond_empty);
}

void lambda_list_tags(struct operation *operation)
{
    struct tagging *tagging = tagging_new(operation);
    const json_t *current;
    int r;

    if (!tagging)
        return;
    r = validate_arn(tagging);
    if (r == 0)
        r = take_arn(tagging);
    if (r == 0)
        r = find_now(tagging, &current);
    if (r)
        call_end(tagging->call, r, "finding the resource");
    else
        call_respond(tagging->call, 200,
                     json_pack("{s:o}", "Tags", current ? json_incref((json_t *)current) : json_object()));
}
