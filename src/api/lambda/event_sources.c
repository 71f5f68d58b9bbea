/*
 * Create, Get, Update, Delete and ListEventSourceMappings. A mapping is made, changed and deleted in one change of the
 * catalog, so that the states in between (Creating, Updating, Enabling, Disabling, Deleting) are what the answer to the
 * change says, and the next look at the mapping shows where that led. A function's deletion leaves its mappings
 * (recorded).
 *
 * Nothing polls a source yet: a mapping is kept, its LastProcessingResult stays "No records processed", and the log
 * says so when it is made.
 */
#include "api/lambda/event_source.h"
#include "api/lambda/handlers.h"
#include "api/lambda/names.h"
#include "api/lambda/tags.h"
#include "aws/shapes.h"
#include "base/clock.h"
#include "base/random.h"

/* What an operation on one mapping knows beside its call. */
struct mapping_call {
    struct call *call;
    struct span uuid;
    const char *state; /* for the answer */
};

static struct mapping_call *mapping_call_new(struct operation *operation)
{
    struct call *call = call_new(operation);
    struct mapping_call *mapping = call ? arena_zalloc(&operation->arena, sizeof(*mapping)) : NULL;

    if (!call)
        return NULL;
    if (!mapping) {
        call_end(call, -ENOMEM, "starting the operation");
        return NULL;
    }
    mapping->call = call;
    mapping->uuid = operation_parameter(operation, SPAN("UUID"));
    call->detail = mapping;
    return mapping;
}

/* --- answers --- */

static const char *settled_state(const json_t *record)
{
    return json_is_true(json_object_get(record, "enabled")) ? "Enabled" : "Disabled";
}

static json_t *make_arn(struct operation *operation, struct span uuid)
{
    const char *resource = arena_printf(&operation->arena, "event-source-mapping:%.*s", SPAN_ARG(uuid));
    const char *arn =
        arn_build(&operation->arena, "lambda", operation->region, operation->account, span_from(resource));

    return resource && arn ? json_string(arn) : NULL;
}

/* EventSourceMappingConfiguration. NULL when out of memory. */
static json_t *render(struct operation *operation, struct span uuid, const json_t *record, const char *state)
{
    const json_t *configuration = json_object_get(record, "configuration");
    const struct event_source *source = event_source_of(configuration);
    json_int_t modified_ms = json_integer_value(json_object_get(record, "modified_ms"));
    json_t *answer = json_pack("{s:s%, s:o, s:f, s:s, s:s, s:s*}", "UUID", uuid.data, uuid.length,
                               "EventSourceMappingArn", make_arn(operation, uuid), "LastModified",
                               (double)modified_ms / 1000.0, "State", state, "StateTransitionReason",
                               event_source_reason(source), "LastProcessingResult", event_source_result(source));

    if (answer && json_object_update(answer, (json_t *)configuration) < 0) {
        json_decref(answer);
        return NULL;
    }
    return answer;
}

static void answer_changed(struct call *call)
{
    const struct mapping_call *mapping = call->detail;

    call_respond(call, 202, render(call->operation, mapping->uuid, call->document, mapping->state));
}

/* --- finding --- */

static int refuse_missing(struct call *call)
{
    return aws_error_set(&call->error, AWS_ERROR_RESOURCE_NOT_FOUND, "The resource you requested does not exist.");
}

/* The record through ret_record. `scope` may be NULL. 0 or a refusal. */
static int find_record(struct mapping_call *mapping, const struct catalog_scope *scope, const json_t **ret_record)
{
    *ret_record = catalog_find_record(scope, CATALOG_EVENT_SOURCE_MAPPING, mapping->uuid);
    return *ret_record ? 0 : refuse_missing(mapping->call);
}

static int find_now(struct mapping_call *mapping, const json_t **ret_record)
{
    const struct operation *operation = mapping->call->operation;

    return find_record(mapping, catalog_find_scope(mapping->call->catalog, operation->account, operation->region),
                       ret_record);
}

static void validate_uuid(struct mapping_call *mapping)
{
    validate_length(&mapping->call->validation, mapping->uuid, "uUID", LAMBDA_UUID_LENGTH, LAMBDA_UUID_LENGTH);
}

/* --- the function that a body names --- */

static void validate_function(struct call *call, struct function_name *ret_name)
{
    struct span text = input_string(call->input, "FunctionName");

    if (input_has(call->input, "FunctionName"))
        validate_function_name(&call->validation, text, FUNCTION_NAME_NAMESPACED, "functionName", ret_name);
}

/* Into call->function_name and qualifier. 0 or a refusal. */
static int take_function(struct call *call, const struct function_name *name)
{
    const struct operation *operation = call->operation;
    const struct name_caller caller = {call->catalog, operation->account, operation->region, operation->route->name};

    call->function_name = name->name;
    call->qualifier = name->qualifier;
    return names_check_place(name, SPAN_NONE, &caller, &call->error);
}

static int check_function(struct call *call, const struct catalog_scope *scope)
{
    const struct catalog_function *function = table_get(&scope->functions, call->function_name);
    struct catalog_target target;

    if (function && catalog_resolve(function, call->qualifier, &target))
        return 0;
    return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE, "Function does not exist");
}

static int set_function(struct call *call, json_t *configuration)
{
    json_t *arn = json_string(call_function_arn(call, call->qualifier));

    return json_object_set_new(configuration, "FunctionArn", arn) < 0 ? -ENOMEM : 0;
}

/* --- the record of a change --- */

/* Takes the configuration and keeps the record in call->document; `tags` may be NULL. */
static int put_record(struct mapping_call *mapping, struct catalog_change *change, json_t *configuration, bool enabled,
                      const json_t *tags)
{
    struct call *call = mapping->call;

    call->document = json_pack("{s:o, s:b, s:I, s:O*}", "configuration", configuration, "enabled", enabled,
                               "modified_ms", (json_int_t)(clock_wall_ns() / NS_PER_MS), "Tags", tags);
    if (!call->document)
        return -ENOMEM;
    return catalog_change_put_record(change, CATALOG_EVENT_SOURCE_MAPPING, mapping->uuid, call->document);
}

/* --- CreateEventSourceMapping --- */

static bool wants_enabled(const struct call *call, bool otherwise)
{
    return input_has(call->input, "Enabled") ? input_boolean(call->input, "Enabled") : otherwise;
}

static int build_creation(struct call *call, struct catalog_change *change)
{
    struct mapping_call *mapping = call->detail;
    const struct catalog_scope *scope = catalog_change_scope(change);
    bool enabled = wants_enabled(call, true);
    json_t *configuration;
    int r = event_source_configure(call, NULL, mapping->uuid.data, &configuration);

    if (r)
        return r;
    r = check_function(call, scope);
    if (r == 0)
        r = set_function(call, configuration);
    if (r == 0)
        r = event_source_check_unique(call, scope, mapping->uuid, configuration);
    if (r) {
        json_decref(configuration);
        return r;
    }
    mapping->state = enabled ? "Creating" : "Disabled";
    return put_record(mapping, change, configuration, enabled, json_object_get(call->input, "Tags"));
}

static void answer_creation(struct call *call)
{
    const struct mapping_call *mapping = call->detail;

    log_event(call->operation->services->log, LOG_WARNING,
              "event source mapping %.*s of function %.*s is kept, but its source is not polled yet",
              SPAN_ARG(mapping->uuid), SPAN_ARG(call->function_name));
    answer_changed(call);
}

static void on_creation_parsed(struct call *call)
{
    struct function_name name = {0};
    int r;

    validate_present(&call->validation, input_has(call->input, "FunctionName"), "functionName");
    validate_function(call, &name);
    event_source_validate(call);
    r = call_finish_validation(call);
    if (r == 0)
        r = take_function(call, &name);
    if (r == 0)
        r = tags_check(call, json_object_get(call->input, "Tags"));
    if (r)
        call_end(call, r, "checking the mapping");
    else
        call_submit(call, build_creation, answer_creation);
}

void lambda_create_event_source_mapping(struct operation *operation)
{
    struct mapping_call *mapping = mapping_call_new(operation);
    char uuid[UUID_BYTES];
    const char *copy;

    if (!mapping)
        return;
    copy = arena_dup(&operation->arena, span_from(random_uuid(uuid)));
    mapping->uuid = span_from(copy);
    if (copy)
        input_read_body(mapping->call, event_source_create_members, NULL, on_creation_parsed);
    else
        call_end(mapping->call, -ENOMEM, "starting the operation");
}

/* --- GetEventSourceMapping --- */

/* The mapping that the path names. NULL: it has been answered. */
static struct mapping_call *open_mapping(struct operation *operation, const json_t **ret_record)
{
    struct mapping_call *mapping = mapping_call_new(operation);
    int r;

    if (!mapping)
        return NULL;
    validate_uuid(mapping);
    r = call_finish_validation(mapping->call);
    if (r == 0)
        r = find_now(mapping, ret_record);
    if (r == 0)
        return mapping;
    call_end(mapping->call, r, "finding the mapping");
    return NULL;
}

void lambda_get_event_source_mapping(struct operation *operation)
{
    const json_t *record;
    struct mapping_call *mapping = open_mapping(operation, &record);

    if (mapping)
        call_respond(mapping->call, 200, render(operation, mapping->uuid, record, settled_state(record)));
}

/* --- UpdateEventSourceMapping --- */

static const char *update_state(bool was_enabled, bool enabled)
{
    if (was_enabled == enabled)
        return "Updating";
    return enabled ? "Enabling" : "Disabling";
}

/* Another function for the mapping, if the input names one. */
static int move_to_function(struct call *call, const struct catalog_scope *scope, json_t *configuration)
{
    int r;

    if (!call->function_name.length)
        return 0;
    r = check_function(call, scope);
    return r ? r : set_function(call, configuration);
}

static int build_update(struct call *call, struct catalog_change *change)
{
    struct mapping_call *mapping = call->detail;
    const struct catalog_scope *scope = catalog_change_scope(change);
    json_t *configuration;
    const json_t *record;
    bool was_enabled;
    bool enabled;
    int r = find_record(mapping, scope, &record);

    if (r == 0)
        r = event_source_configure(call, json_object_get(record, "configuration"), mapping->uuid.data, &configuration);
    if (r)
        return r;
    r = move_to_function(call, scope, configuration);
    if (r == 0)
        r = event_source_check_unique(call, scope, mapping->uuid, configuration);
    if (r) {
        json_decref(configuration);
        return r;
    }
    was_enabled = json_is_true(json_object_get(record, "enabled"));
    enabled = wants_enabled(call, was_enabled);
    mapping->state = update_state(was_enabled, enabled);
    return put_record(mapping, change, configuration, enabled, json_object_get(record, "Tags"));
}

static void on_update_parsed(struct call *call)
{
    struct mapping_call *mapping = call->detail;
    struct function_name name = {0};
    const json_t *record;
    int r;

    validate_uuid(mapping);
    validate_function(call, &name);
    event_source_validate(call);
    r = call_finish_validation(call);
    if (r == 0)
        r = find_now(mapping, &record);
    if (r == 0)
        r = take_function(call, &name);
    if (r)
        call_end(call, r, "checking the update");
    else
        call_submit(call, build_update, answer_changed);
}

void lambda_update_event_source_mapping(struct operation *operation)
{
    struct mapping_call *mapping = mapping_call_new(operation);

    if (mapping)
        input_read_body(mapping->call, event_source_update_members, NULL, on_update_parsed);
}

/* --- DeleteEventSourceMapping --- */

static int build_deletion(struct call *call, struct catalog_change *change)
{
    struct mapping_call *mapping = call->detail;
    const json_t *record;
    int r = find_record(mapping, catalog_change_scope(change), &record);

    if (r)
        return r;
    mapping->state = "Deleting";
    call->document = json_incref((json_t *)record);
    return catalog_change_delete_record(change, CATALOG_EVENT_SOURCE_MAPPING, mapping->uuid);
}

void lambda_delete_event_source_mapping(struct operation *operation)
{
    const json_t *record;
    struct mapping_call *mapping = open_mapping(operation, &record);

    if (mapping)
        call_submit(mapping->call, build_deletion, answer_changed);
}

/* --- ListEventSourceMappings --- */

enum { LIST_ITEMS = 100 };

struct filter {
    struct span source_arn;   /* empty: any */
    struct span function_arn; /* likewise; with the qualifier that was asked for */
};

static int read_filter(struct call *call, struct filter *ret_filter)
{
    static const struct validation_constraint arn = {.maximum = 10000, .pattern = LAMBDA_ARN_PATTERN};
    struct function_name name = {0};
    struct span function;
    bool by_function = operation_query(call->operation, SPAN("FunctionName"), &function);
    int r;

    *ret_filter = (struct filter){0};
    if (operation_query(call->operation, SPAN("EventSourceArn"), &ret_filter->source_arn))
        validate_string(&call->validation, ret_filter->source_arn, "eventSourceArn", &arn);
    if (by_function)
        validate_function_name(&call->validation, function, FUNCTION_NAME_NAMESPACED, "functionName", &name);
    r = call_finish_validation(call);
    if (r == 0 && by_function)
        r = take_function(call, &name);
    if (r == 0 && by_function)
        ret_filter->function_arn = span_from(call_function_arn(call, call->qualifier));
    return r;
}

static bool is_wanted(const struct filter *filter, const json_t *record)
{
    const json_t *configuration = json_object_get(record, "configuration");

    return (!filter->source_arn.length ||
            span_equal(filter->source_arn, input_string(configuration, "EventSourceArn"))) &&
           (!filter->function_arn.length ||
            span_equal(filter->function_arn, input_string(configuration, "FunctionArn")));
}

/* `context` is the filter. */
static int render_listed(struct call *call, struct span uuid, const void *value, const void *context, json_t **ret_row)
{
    const json_t *document = ((const struct catalog_record *)value)->document;

    if (!is_wanted(context, document))
        return 0;
    *ret_row = render(call->operation, uuid, document, settled_state(document));
    return *ret_row ? 0 : -ENOMEM;
}

void lambda_list_event_source_mappings(struct operation *operation)
{
    struct call *call = call_new(operation);
    struct filter filter;
    const struct catalog_scope *scope;
    struct page page;
    int r;

    if (!call)
        return;
    r = page_read_of(call, LIST_ITEMS, &page);
    if (r == 0)
        r = read_filter(call, &filter);
    if (r) {
        call_end(call, r, "checking the list");
        return;
    }
    scope = catalog_find_scope(call->catalog, operation->account, operation->region);
    page_respond_list(call, &page,
                      &(struct page_list){"EventSourceMappings",
                                          scope ? &scope->records[CATALOG_EVENT_SOURCE_MAPPING] : NULL, render_listed,
                                          &filter});
}
