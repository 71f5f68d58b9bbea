/* UpdateFunctionCode. */
#include "api/lambda/code_signing.h"
#include "api/lambda/configuration.h"
#include "api/lambda/function_layers.h"
#include "api/lambda/handlers.h"
#include "api/lambda/package.h"
#include "api/lambda/update.h"

static const struct input_member members[] = {
    PACKAGE_MEMBERS,
    {.name = "Architectures", .kind = INPUT_LIST, .element = INPUT_STRING},
    {.name = "Publish", .kind = INPUT_BOOLEAN},
    {.name = "PublishTo", .kind = INPUT_STRING},
    {.name = "DryRun", .kind = INPUT_BOOLEAN},
    {.name = "RevisionId", .kind = INPUT_STRING},
    {0},
};

/* The conditions that hold when the code arrives as well as when its turn in the lane comes. */
static int check_function(struct call *call, const struct catalog_function *function)
{
    int r;

    if (!function)
        return call_not_found(call, SPAN_NONE);
    r = update_check_revision(call, input_string(call->input, "RevisionId"), function->latest->config->revision_id);
    if (r == 0)
        r = code_signing_check_deployment(call, code_signing_arn_of(function));
    return r ? r : update_check_settled(call, function);
}

static int build(struct call *call, struct catalog_change *change)
{
    const struct catalog_scope *scope = catalog_change_scope(change);
    struct catalog_function *function = table_get(&scope->functions, call->function_name);
    struct catalog_configuration configuration;
    bool publish = input_boolean(call->input, "Publish");
    int r = check_function(call, function);

    if (r == 0)
        r = update_check_storage(call, scope, publish ? 2 : 1, function->latest->config->code_bytes);
    if (r)
        return r;
    call->version = function->latest;
    call->document = configuration_update_code(call, function->latest->config->document);
    if (!call->document)
        return -ENOMEM;
    r = function_layers_check_size(call, call->document);
    if (r || input_boolean(call->input, "DryRun"))
        return r;
    configuration = update_configuration(call);
    r = catalog_change_update_latest(change, function, &configuration);
    if (r == 0 && publish)
        r = catalog_change_publish(change, function, NULL, &call->version);
    return r;
}

/* A published version answers with its own ARN, and as Pending without an update's status (recorded). */
static void answer(struct call *call)
{
    bool dry_run = input_boolean(call->input, "DryRun");
    struct span qualifier = call->version->is_latest ? SPAN_NONE : span_from(call->version->number);
    json_t *document = configuration_render(call->version, qualifier, CONFIGURATION_FULL);

    if (!dry_run)
        update_begin(call);
    if (document && dry_run && (json_object_update(document, call->document) < 0 || configuration_hide(document) < 0)) {
        json_decref(document);
        document = NULL;
    }
    call_respond(call, 200, document);
}

static void on_unpacked(struct call *call)
{
    call_submit(call, build, answer);
}

static int check(struct call *call)
{
    int r;

    configuration_validate(call);
    package_validate(call, call->input, "");
    r = call_check_names(call, FUNCTION_NAME_PLAIN, CALL_UNQUALIFIED);
    if (r == 0)
        r = check_function(call, call_find_function(call));
    if (r == 0)
        r = configuration_check(call);
    return r ? r : package_check(call, call->input, false);
}

static void on_parsed(struct call *call)
{
    int r = check(call);

    if (r)
        call_end(call, r, "checking the code's source");
    else
        package_obtain(call, call->input, on_unpacked);
}

void lambda_update_function_code(struct operation *operation)
{
    struct call *call = call_new(operation);

    if (call)
        input_read_body(call, members, "", on_parsed);
}
