/* Functions: create, read, list, configure, delete. */
#include "api/lambda/code_signing.h"
#include "api/lambda/configuration.h"
#include "api/lambda/download.h"
#include "api/lambda/function_layers.h"
#include "api/lambda/handlers.h"
#include "api/lambda/package.h"
#include "api/lambda/runtime_management.h"
#include "api/lambda/update.h"
#include "aws/shapes.h"

/* --- CreateFunction --- */

static const struct input_member create_members[] = {
    CONFIGURATION_MEMBERS,
    {.name = "FunctionName", .kind = INPUT_STRING},
    {.name = "Code", .kind = INPUT_STRUCTURE, .members = package_members},
    {.name = "Publish", .kind = INPUT_BOOLEAN},
    {.name = "PublishTo", .kind = INPUT_STRING},
    {.name = "PackageType", .kind = INPUT_STRING},
    {.name = "Tags", .kind = INPUT_MAP, .element = INPUT_STRING},
    {.name = "CodeSigningConfigArn", .kind = INPUT_STRING},
    {.name = "Architectures", .kind = INPUT_LIST, .element = INPUT_STRING},
    {.name = "TenancyConfig", .kind = INPUT_STRUCTURE, .members = configuration_tenancy_members},
    {0},
};

static int refuse_existing(struct call *call)
{
    return aws_error_set(&call->error, AWS_ERROR_RESOURCE_CONFLICT, "Function already exist: %.*s",
                         SPAN_ARG(call->function_name));
}

static void validate_creation(struct call *call)
{
    static const struct validation_constraint name = {
        .minimum = 1, .maximum = LAMBDA_FUNCTION_NAME_MAXIMUM, .pattern = LAMBDA_FUNCTION_NAME_PATTERN};
    const json_t *input = call->input;

    validate_present(&call->validation, input_has(input, "Role"), "role");
    validate_present(&call->validation, input_has(input, "Code"), "code");
    configuration_validate(call);
    package_validate(call, json_object_get(input, "Code"), "code.");
    if (validate_present(&call->validation, input_has(input, "FunctionName"), "functionName"))
        validate_string(&call->validation, input_string(input, "FunctionName"), "functionName", &name);
}

/* The name's own length is checked behind the model's limits, and under another class (recorded). */
static int check_name_length(struct call *call)
{
    struct validation validation = VALIDATION_INIT;
    int r;

    validate_length(&validation, call->function_name, "functionName", 1, LAMBDA_BARE_NAME_MAXIMUM);
    r = validation_finish(&validation, AWS_ERROR_INVALID_PARAMETER_VALUE, &call->error);
    validation_deinit(&validation);
    return r;
}

static int check_creation(struct call *call)
{
    int r;

    validate_creation(call);
    r = call_finish_validation(call);
    if (r == 0)
        r = call_take_body_name(call, input_string(call->input, "FunctionName"));
    if (r == 0)
        r = check_name_length(call);
    if (r == 0)
        r = configuration_check(call);
    if (r == 0 && !(input_has(call->input, "Runtime") && input_has(call->input, "Handler")))
        r = aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                          "Runtime and Handler are mandatory parameters for functions created with deployment "
                          "packages.");
    if (r == 0)
        r = package_check(call, json_object_get(call->input, "Code"), true);
    if (r == 0 && call_find_function(call))
        r = refuse_existing(call);
    return r;
}

/* With the check once more: the configuration may have changed since. */
static int attach_code_signing(struct call *call, struct catalog_change *change)
{
    const char *arn = json_string_value(json_object_get(call->input, "CodeSigningConfigArn"));
    int r = arn ? code_signing_check_exists(call, span_from(arn)) : 0;

    if (r == 0)
        r = code_signing_check_deployment(call, arn);
    return r || !arn ? r : code_signing_attach(change, call->version->function, span_from(arn));
}

static int build_creation(struct call *call, struct catalog_change *change)
{
    struct catalog_scope *scope = catalog_change_scope(change);
    struct catalog_configuration configuration = update_configuration(call);
    bool publish = input_boolean(call->input, "Publish");
    int r;

    if (table_get(&scope->functions, call->function_name))
        return refuse_existing(call);
    r = update_check_storage(call, scope, publish ? 2 : 1, 0);
    if (r == 0)
        r = function_layers_check_size(call, call->document);
    if (r == 0)
        r = catalog_change_create_function(change, call->function_name, &configuration,
                                           json_object_get(call->input, "Tags"), &call->version);
    if (r == 0)
        r = attach_code_signing(call, change);
    if (r == 0 && publish)
        r = catalog_change_publish(change, call->version->function, NULL, &call->version);
    return r;
}

/* The ARN is unqualified even when a version was published at once (recorded). */
static void answer_creation(struct call *call)
{
    update_begin(call);
    call_respond(call, 201, configuration_render(call->version, SPAN_NONE, CONFIGURATION_CREATED));
}

static void on_creation_unpacked(struct call *call)
{
    call->document = configuration_make(call);
    if (!call->document) {
        call_end(call, -ENOMEM, "making the configuration");
        return;
    }
    call_submit(call, build_creation, answer_creation);
}

static void on_creation_parsed(struct call *call)
{
    int r = check_creation(call);

    if (r)
        call_end(call, r, "checking the function");
    else
        package_obtain(call, json_object_get(call->input, "Code"), on_creation_unpacked);
}

void lambda_create_function(struct operation *operation)
{
    struct call *call = call_new(operation);

    if (call)
        input_read_body(call, create_members, "Code", on_creation_parsed);
}

/* --- GetFunction, GetFunctionConfiguration --- */

/* Fills call->version and call->alias. */
static int find_target(struct call *call)
{
    const struct catalog_function *function;
    struct catalog_target target;
    int r = call_check_names(call, FUNCTION_NAME_NAMESPACED, CALL_QUALIFIER);

    if (r)
        return r;
    function = call_find_function(call);
    if (!function || !catalog_resolve(function, call->qualifier, &target))
        return call_not_found(call, call->qualifier);
    call->version = target.version;
    call->alias = target.alias;
    return 0;
}

/* `render` gives NULL when memory runs out. */
static void get(struct operation *operation, json_t *(*render)(struct call *call))
{
    struct call *call = call_new(operation);
    json_t *answer;
    int r;

    if (!call)
        return;
    r = find_target(call);
    if (r) {
        call_end(call, r, "finding the function");
        return;
    }
    answer = render(call);
    update_show(call);
    call_respond(call, 200, answer);
}

static json_t *render_configuration(struct call *call)
{
    return configuration_render(call->version, call->qualifier, CONFIGURATION_FULL);
}

void lambda_get_function_configuration(struct operation *operation)
{
    get(operation, render_configuration);
}

static json_t *render_function(struct call *call)
{
    const struct catalog_function *function = call->version->function;
    const char *location = download_url(call->operation, call->version->config->code_sha256);
    json_t *answer;

    if (!location)
        return NULL;
    answer =
        json_pack("{s:o, s:{s:s, s:s, s:s*}}", "Configuration", render_configuration(call), "Code", "RepositoryType",
                  "S3", "Location", location, "SourceKMSKeyArn", configuration_source_key(call->version));
    if (answer && json_object_size(function->tags))
        json_object_set(answer, "Tags", (json_t *)function->tags);
    if (answer && function->has_reserved)
        json_object_set_new(answer, "Concurrency",
                            json_pack("{s:i}", "ReservedConcurrentExecutions", (int)function->reserved));
    return answer;
}

void lambda_get_function(struct operation *operation)
{
    get(operation, render_function);
}

/* --- DeleteFunction --- */

static int refuse_qualifier(struct call *call)
{
    switch (qualifier_kind_of(call->qualifier)) {
    case QUALIFIER_LATEST:
        return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                             "$LATEST version cannot be deleted without deleting the function.");
    case QUALIFIER_ALIAS:
        return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                             "Deletion of aliases is not currently supported.");
    default:
        return 0;
    }
}

static int refuse_aliased(struct call *call, const struct catalog_version *version)
{
    struct buffer names = BUFFER_INIT;
    int r = 0;

    TABLE_FOREACH (item, &version->function->aliases) {
        const struct catalog_alias *alias = item->value;
        if (r == 0 && (alias->version == version || alias->additional == version))
            r = buffer_printf(&names, "%s%s", names.length ? ", " : "", alias->name);
    }
    if (r == 0)
        r = aws_error_set(&call->error, AWS_ERROR_RESOURCE_CONFLICT,
                          "Unable to delete version because the following aliases reference it: [%.*s]",
                          SPAN_ARG(buffer_span(&names)));
    buffer_deinit(&names);
    return r;
}

static int build_deletion(struct call *call, struct catalog_change *change)
{
    struct catalog_function *function = table_get(&catalog_change_scope(change)->functions, call->function_name);
    struct catalog_version *version;

    if (!function)
        return call_not_found(call, SPAN_NONE);
    if (call->qualifier.length == 0)
        return catalog_change_delete_function(change, function);
    version = catalog_find_version(function, call->qualifier);
    if (!version)
        return 0; /* nothing to delete is success (recorded) */
    if (version->alias_references)
        return refuse_aliased(call, version);
    return catalog_change_delete_version(change, version);
}

void lambda_delete_function(struct operation *operation)
{
    struct call *call = call_new(operation);
    int r;

    if (!call)
        return;
    r = call_check_names(call, FUNCTION_NAME_NAMESPACED, CALL_QUALIFIER);
    if (r == 0)
        r = refuse_qualifier(call);
    if (r == 0 && !call_find_function(call))
        r = call_not_found(call, SPAN_NONE);
    if (r)
        call_end(call, r, "finding the function");
    else
        call_submit(call, build_deletion, call_respond_empty);
}

/* --- UpdateFunctionConfiguration --- */

static const struct input_member update_members[] = {
    CONFIGURATION_MEMBERS,
    {.name = "RevisionId", .kind = INPUT_STRING},
    {0},
};

/* What the update needs the function to be like, on arrival and in the lane. 0 or a refusal. */
static int check_update(struct call *call, const struct catalog_function *function)
{
    int r;

    if (!function)
        return call_not_found(call, SPAN_NONE);
    r = update_check_revision(call, input_string(call->input, "RevisionId"), function->latest->config->revision_id);
    if (r == 0)
        r = update_check_settled(call, function);
    return r ? r : runtime_management_check_update(call, function);
}

static int build_configuration(struct call *call, struct catalog_change *change)
{
    struct catalog_function *function = table_get(&catalog_change_scope(change)->functions, call->function_name);
    const struct catalog_version_config *current;
    struct catalog_configuration configuration;
    int r = check_update(call, function);

    if (r)
        return r;
    current = function->latest->config;
    call->document = configuration_update(call, current->document);
    if (!call->document)
        return -ENOMEM;
    r = function_layers_check_size(call, call->document);
    if (r)
        return r;
    call->version = function->latest;
    configuration = (struct catalog_configuration){
        .document = call->document,
        .code_sha256 = span_from(current->code_sha256),
        .code_bytes = current->code_bytes,
    };
    return catalog_change_update_latest(change, function, &configuration);
}

static void answer_configuration(struct call *call)
{
    update_begin(call);
    call_respond(call, 200, configuration_render(call->version, SPAN_NONE, CONFIGURATION_FULL));
}

static int check_configuration(struct call *call)
{
    int r;

    configuration_validate(call);
    r = call_check_names(call, FUNCTION_NAME_PLAIN, CALL_UNQUALIFIED);
    if (r == 0)
        r = configuration_check(call);
    return r ? r : check_update(call, call_find_function(call));
}

static void on_configuration_parsed(struct call *call)
{
    int r = check_configuration(call);

    if (r)
        call_end(call, r, "checking the configuration");
    else
        call_submit(call, build_configuration, answer_configuration);
}

void lambda_update_function_configuration(struct operation *operation)
{
    struct call *call = call_new(operation);

    if (call)
        input_read_body(call, update_members, NULL, on_configuration_parsed);
}
