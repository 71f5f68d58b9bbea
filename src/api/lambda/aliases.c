/* Aliases: a name for one version, or for two with a weight for the second. */
#include "api/lambda/handlers.h"
#include "api/lambda/input.h"
#include "api/lambda/update.h"
#include "aws/shapes.h"

static const struct input_member routing_members[] = {
    {.name = "AdditionalVersionWeights", .kind = INPUT_MAP, .element = INPUT_DOUBLE},
    {0},
};

static const struct input_member members[] = {
    {.name = "Name", .kind = INPUT_STRING}, /* of CreateAlias */
    {.name = "FunctionVersion", .kind = INPUT_STRING},
    {.name = "Description", .kind = INPUT_STRING},
    {.name = "RoutingConfig", .kind = INPUT_STRUCTURE, .members = routing_members},
    {.name = "RevisionId", .kind = INPUT_STRING}, /* of UpdateAlias */
    {0},
};

static const struct validation_constraint alias_name = {
    .minimum = 1, .maximum = LAMBDA_ALIAS_MAXIMUM, .pattern = LAMBDA_ALIAS_PATTERN};
static const struct validation_constraint version_number = {
    .minimum = 1, .maximum = LAMBDA_VERSION_MAXIMUM, .pattern = LAMBDA_VERSION_WITH_LATEST_PUBLISHED_PATTERN};

/* --- answers --- */

/* AliasConfiguration, NULL when out of memory. */
static json_t *render_alias(const struct catalog_alias *alias)
{
    json_t *routing = NULL;

    if (alias->additional) {
        routing =
            json_pack("{s:{s:f}}", "AdditionalVersionWeights", alias->additional->number, alias->additional_weight);
        if (!routing)
            return NULL;
    }
    return json_pack("{s:o, s:s, s:s, s:s, s:s, s:o*}", "AliasArn",
                     json_sprintf("%s:%s", alias->function->arn, alias->name), "Name", alias->name, "FunctionVersion",
                     alias->version->number, "Description", alias->description, "RevisionId", alias->revision_id,
                     "RoutingConfig", routing);
}

static void respond_alias(struct call *call, int status)
{
    call_respond(call, status, render_alias(call->alias));
}

/* --- names --- */

static struct span path_name(const struct call *call)
{
    return operation_parameter(call->operation, SPAN("Name"));
}

/* Validates the names of the path. 0 or a refusal. */
static int check_path(struct call *call)
{
    validate_string(&call->validation, path_name(call), "name", &alias_name);
    return call_check_names(call, FUNCTION_NAME_PLAIN, CALL_UNQUALIFIED);
}

static int refuse_missing(struct call *call, const char *words, struct span name)
{
    return aws_error_set(&call->error, AWS_ERROR_RESOURCE_NOT_FOUND, "%s: %s", words, call_function_arn(call, name));
}

/* --- routing --- */

static json_t *input_weights(const struct call *call)
{
    return json_object_get(json_object_get(call->input, "RoutingConfig"), "AdditionalVersionWeights");
}

/* As Java writes a double: 0.5, 1.0; "null". */
static const char *weight_text(struct call *call, const json_t *weight)
{
    double value = json_number_value(weight);
    const char *text =
        arena_printf(&call->operation->arena, "%g%s", value, value == (double)(int64_t)value ? ".0" : "");

    return json_is_number(weight) ? text : "null";
}

static bool is_weight(const json_t *weight)
{
    return json_is_number(weight) && json_number_value(weight) >= 0.0 && json_number_value(weight) <= 1.0;
}

/* Every entry is quoted, whichever is wrong. */
static void validate_weights(struct call *call, json_t *weights)
{
    static const struct validation_constraint number = {
        .minimum = 1, .maximum = LAMBDA_VERSION_MAXIMUM, .pattern = LAMBDA_ADDITIONAL_VERSION_PATTERN};
    static const char path[] = "routingConfig.additionalVersionWeights";
    struct arena *arena = &call->operation->arena;
    struct span *versions = arena_alloc(arena, (json_object_size(weights) + 1) * sizeof(*versions));
    struct span *texts = arena_alloc(arena, (json_object_size(weights) + 1) * sizeof(*texts));
    const char *quoted = "";
    bool fits = true;
    const char *version;
    json_t *weight;
    size_t count = 0;

    if (!versions || !texts) {
        call->validation.error = -ENOMEM;
        return;
    }
    json_object_foreach(weights, version, weight)
    {
        versions[count] = span_from(version);
        texts[count] = span_from(weight_text(call, weight));
        quoted = arena_printf(arena, "%s%s%s=%.*s", quoted, count ? ", " : "", version, SPAN_ARG(texts[count]));
        fits = fits && is_weight(weight);
        count++;
    }
    if (!quoted)
        call->validation.error = -ENOMEM;
    validate_map(&call->validation, versions, texts, count, path, &number, NULL);
    if (!fits)
        validation_add(
            &call->validation,
            "Value '{%s}' at '%s' failed to satisfy constraint: Map value must satisfy constraint: [Member must "
            "have value less than or equal to 1.0, Member must have value greater than or equal to 0.0, Member "
            "must not be null]",
            quoted, path);
}

static void validate_settings(struct call *call)
{
    if (input_has(call->input, "FunctionVersion"))
        validate_string(&call->validation, input_string(call->input, "FunctionVersion"), "functionVersion",
                        &version_number);
    if (input_has(call->input, "Description"))
        validate_length(&call->validation, input_string(call->input, "Description"), "description", 0,
                        LAMBDA_DESCRIPTION_MAXIMUM);
    validate_weights(call, input_weights(call));
}

static int refuse(struct call *call, const char *sentence)
{
    return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE, "%s", sentence);
}

/* The second version of the settings, from RoutingConfig; `settings->version` is known. */
static int set_routing(struct call *call, const struct catalog_function *function,
                       struct catalog_alias_settings *settings)
{
    json_t *weights = input_weights(call);
    const char *number;
    json_t *weight;

    settings->additional = NULL;
    settings->additional_weight = 0.0;
    if (json_object_size(weights) == 0)
        return 0;
    if (json_object_size(weights) > 1)
        return refuse(call, "Number of items in AdditionalVersionWeights cannot be greater than 1");
    json_object_foreach(weights, number, weight)
    {
        if (!strcmp(number, settings->version->number))
            return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                                 "Invalid function version %s. Function version %s is already included in routing "
                                 "configuration.",
                                 number, number);
        if (settings->version->is_latest)
            return refuse(call, "$LATEST is not supported for an alias pointing to more than 1 version");
        settings->additional = catalog_find_version(function, span_from(number));
        if (!settings->additional)
            return call_not_found(call, span_from(number));
        settings->additional_weight = json_number_value(weight);
    }
    return 0;
}

/* --- CreateAlias --- */

/* The settings that the body asks for, on top of those given (an existing alias' or none). */
static int take_settings(struct call *call, const struct catalog_function *function,
                         struct catalog_alias_settings *settings)
{
    struct span number = input_string(call->input, "FunctionVersion");

    if (number.data) {
        settings->version = catalog_find_version(function, number);
        if (!settings->version)
            return call_not_found(call, number);
    }
    if (input_has(call->input, "Description"))
        settings->description = json_string_value(json_object_get(call->input, "Description"));
    if (input_has(call->input, "RoutingConfig"))
        return set_routing(call, function, settings);
    /* A new first version may be the second one that is kept. */
    if (settings->additional == settings->version)
        return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                             "Invalid function version %s. Function version %s is already included in routing "
                             "configuration.",
                             settings->version->number, settings->version->number);
    if (settings->additional && settings->version->is_latest)
        return refuse(call, "$LATEST is not supported for an alias pointing to more than 1 version");
    return 0;
}

static int build_creation(struct call *call, struct catalog_change *change)
{
    struct catalog_function *function = table_get(&catalog_change_scope(change)->functions, call->function_name);
    struct span name = input_string(call->input, "Name");
    struct catalog_alias_settings settings = {.name = name.data, .description = ""};
    int r;

    if (!function)
        return call_not_found(call, input_string(call->input, "FunctionVersion"));
    r = take_settings(call, function, &settings);
    if (r)
        return r;
    if (catalog_find_alias(function, name))
        return aws_error_set(&call->error, AWS_ERROR_RESOURCE_CONFLICT, "Alias already exists: %s",
                             call_function_arn(call, name));
    return catalog_change_set_alias(change, function, &settings);
}

static void answer_creation(struct call *call)
{
    call->alias = catalog_find_alias(call_find_function(call), input_string(call->input, "Name"));
    respond_alias(call, 201);
}

static void on_creation_parsed(struct call *call)
{
    int r;

    if (validate_present(&call->validation, input_has(call->input, "Name"), "name"))
        validate_string(&call->validation, input_string(call->input, "Name"), "name", &alias_name);
    validate_present(&call->validation, input_has(call->input, "FunctionVersion"), "functionVersion");
    validate_settings(call);
    r = call_check_names(call, FUNCTION_NAME_PLAIN, CALL_UNQUALIFIED);
    if (r == 0 && !call_find_function(call))
        r = call_not_found(call, input_string(call->input, "FunctionVersion"));
    if (r)
        call_end(call, r, "checking the alias");
    else
        call_submit(call, build_creation, answer_creation);
}

void lambda_create_alias(struct operation *operation)
{
    struct call *call = call_new(operation);

    if (call)
        input_read_body(call, members, NULL, on_creation_parsed);
}

/* --- GetAlias --- */

/* Fills call->alias; `words` say what is missing if the alias is. */
static int find_alias(struct call *call, const char *words)
{
    struct catalog_function *function = call_find_function(call);

    call->alias = function ? catalog_find_alias(function, path_name(call)) : NULL;
    return call->alias ? 0 : refuse_missing(call, words, path_name(call));
}

void lambda_get_alias(struct operation *operation)
{
    struct call *call = call_new(operation);
    int r;

    if (!call)
        return;
    r = check_path(call);
    if (r == 0)
        r = find_alias(call, "Cannot find alias arn");
    if (r)
        call_end(call, r, "finding the alias");
    else
        respond_alias(call, 200);
}

/* --- UpdateAlias --- */

/* What an alias with provisioned concurrency cannot become. */
static int check_provisioned(struct call *call, const struct catalog_alias_settings *settings)
{
    if (settings->version->is_latest)
        return refuse(call, "Provisioned Concurrency Configs cannot be applied to unpublished function versions.");
    if (settings->additional && call->operation->services->strict_aws)
        return refuse(call, "Alias with weights can not be used with Provisioned Concurrency");
    return 0;
}

static int build_update(struct call *call, struct catalog_change *change)
{
    struct catalog_alias_settings settings;
    int r = find_alias(call, "Alias not found");

    if (r == 0)
        r = update_check_revision(call, input_string(call->input, "RevisionId"), call->alias->revision_id);
    if (r)
        return r;
    settings = (struct catalog_alias_settings){
        .name = call->alias->name,
        .description = call->alias->description,
        .version = call->alias->version,
        .additional = call->alias->additional,
        .additional_weight = call->alias->additional_weight,
    };
    r = take_settings(call, call->alias->function, &settings);
    if (r == 0 && call->alias->provisioned.requested)
        r = check_provisioned(call, &settings);
    return r ? r : catalog_change_set_alias(change, call->alias->function, &settings);
}

static void answer_update(struct call *call)
{
    respond_alias(call, 200);
}

static void on_update_parsed(struct call *call)
{
    int r;

    validate_settings(call);
    r = check_path(call);
    if (r == 0)
        r = find_alias(call, "Alias not found");
    if (r)
        call_end(call, r, "checking the alias");
    else
        call_submit(call, build_update, answer_update);
}

void lambda_update_alias(struct operation *operation)
{
    struct call *call = call_new(operation);

    if (call)
        input_read_body(call, members, NULL, on_update_parsed);
}

/* --- DeleteAlias --- */

static int build_deletion(struct call *call, struct catalog_change *change)
{
    struct catalog_function *function = table_get(&catalog_change_scope(change)->functions, call->function_name);
    struct catalog_alias *alias = function ? catalog_find_alias(function, path_name(call)) : NULL;

    if (!function)
        return call_not_found(call, SPAN_NONE);
    return alias ? catalog_change_delete_alias(change, alias) : 0; /* nothing to delete is success */
}

void lambda_delete_alias(struct operation *operation)
{
    struct call *call = call_new(operation);
    int r;

    if (!call)
        return;
    r = check_path(call);
    if (r == 0 && !call_find_function(call))
        r = call_not_found(call, SPAN_NONE);
    if (r)
        call_end(call, r, "finding the alias");
    else
        call_submit(call, build_deletion, call_respond_empty);
}

/* --- ListAliases --- */

/* `context` is the version that they must be for, empty for any. */
static int render_listed(struct call *call, struct span name, const void *value, const void *context, json_t **ret_row)
{
    const struct catalog_alias *alias = value;
    const struct span *version = context;

    (void)call;
    (void)name;
    if (version->length && !span_equal(*version, span_from(alias->version->number)))
        return 0;
    *ret_row = render_alias(alias);
    return *ret_row ? 0 : -ENOMEM;
}

void lambda_list_aliases(struct operation *operation)
{
    struct call *call = call_new(operation);
    struct span version = SPAN_NONE;
    struct page page;
    int r;

    if (!call)
        return;
    r = page_read(call, &page);
    if (r == 0 && operation_query(operation, SPAN("FunctionVersion"), &version))
        validate_string(&call->validation, version, "functionVersion", &version_number);
    if (r == 0)
        r = call_check_names(call, FUNCTION_NAME_PLAIN, CALL_UNQUALIFIED);
    if (r == 0 && !call_find_function(call))
        r = call_not_found(call, SPAN_NONE);
    if (r) {
        call_end(call, r, "finding the function");
        return;
    }
    page_respond_list(call, &page,
                      &(struct page_list){"Aliases", &call_find_function(call)->aliases, render_listed, &version});
}
