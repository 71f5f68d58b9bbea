/* PublishVersion. (Lists of versions are in listing.c, deletion in functions.c.) */
#include "api/lambda/configuration.h"
#include "api/lambda/handlers.h"
#include "api/lambda/update.h"
#include "aws/shapes.h"

static const struct input_member members[] = {
    {.name = "CodeSha256", .kind = INPUT_STRING},
    {.name = "Description", .kind = INPUT_STRING},
    {.name = "RevisionId", .kind = INPUT_STRING},
    {.name = "PublishTo", .kind = INPUT_STRING},
    {0},
};

static int check_code(struct call *call, const struct catalog_function *function)
{
    struct span given = input_string(call->input, "CodeSha256");
    const char *current = json_string_value(json_object_get(function->latest->config->document, "CodeSha256"));

    if (given.length == 0 || span_equal(given, span_from(current)))
        return 0;
    return aws_error_set(
        &call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
        "CodeSHA256 (%.*s) is different from current CodeSHA256 in $LATEST (%s). Please try again with "
        "the CodeSHA256 in $LATEST.",
        SPAN_ARG(given), current);
}

static int check_function(struct call *call, const struct catalog_function *function)
{
    int r;

    if (!function)
        return call_not_found(call, SPAN_NONE);
    r = update_check_revision(call, input_string(call->input, "RevisionId"), function->latest->config->revision_id);
    if (r == 0)
        r = check_code(call, function);
    return r ? r : update_check_settled(call, function);
}

static int build(struct call *call, struct catalog_change *change)
{
    const struct catalog_scope *scope = catalog_change_scope(change);
    struct catalog_function *function = table_get(&scope->functions, call->function_name);
    const char *description = json_string_value(json_object_get(call->input, "Description"));
    int r = check_function(call, function);

    if (r)
        return r;
    call->version = catalog_find_unchanged(function);
    if (call->version)
        return 0;
    call->package.zip_bytes = function->latest->config->code_bytes;
    r = update_check_storage(call, scope, 1, 0);
    return r ? r : catalog_change_publish(change, function, description, &call->version);
}

static void answer(struct call *call)
{
    call_respond(call, 201, configuration_render(call->version, span_from(call->version->number), CONFIGURATION_FULL));
}

static int check(struct call *call)
{
    static const char *const targets[] = {"LATEST_PUBLISHED", NULL};
    int r;

    if (input_has(call->input, "Description"))
        validate_length(&call->validation, input_string(call->input, "Description"), "description", 0,
                        LAMBDA_DESCRIPTION_MAXIMUM);
    if (input_has(call->input, "PublishTo"))
        validate_enum(&call->validation, input_string(call->input, "PublishTo"), "publishTo", targets);
    r = call_check_names(call, FUNCTION_NAME_PLAIN, CALL_UNQUALIFIED);
    if (r == 0 && input_has(call->input, "PublishTo"))
        r = aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE, "Kiln does not support PublishTo.");
    return r ? r : check_function(call, call_find_function(call));
}

static void on_parsed(struct call *call)
{
    int r = check(call);

    if (r)
        call_end(call, r, "checking the publication");
    else
        call_submit(call, build, answer);
}

void lambda_publish_version(struct operation *operation)
{
    struct call *call = call_new(operation);

    if (call)
        input_read_body(call, members, NULL, on_parsed);
}
