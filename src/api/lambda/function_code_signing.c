/*
 * PutFunctionCodeSigningConfig, GetFunctionCodeSigningConfig, DeleteFunctionCodeSigningConfig,
 * ListFunctionsByCodeSigningConfig, and what a function's configuration means for deployments.
 */
#include "api/lambda/code_signing.h"
#include "api/lambda/handlers.h"

/* --- what others ask --- */

const char *code_signing_arn_of(const struct catalog_function *function)
{
    const json_t *document = catalog_find_attached(function, CATALOG_FUNCTION_CODE_SIGNING, SPAN_NONE);

    return json_string_value(json_object_get(document, "Arn"));
}

int code_signing_check_exists(struct call *call, struct span arn)
{
    if (code_signing_find(call, arn))
        return 0;
    return aws_error_set(&call->error, AWS_ERROR_CODE_SIGNING_CONFIG_NOT_FOUND,
                         "The code signing configuration cannot be found. Check that the provided configuration is not "
                         "deleted: %.*s.",
                         SPAN_ARG(arn));
}

int code_signing_check_deployment(struct call *call, const char *arn)
{
    const json_t *document = arn ? code_signing_find(call, span_from(arn)) : NULL;
    struct span policy =
        input_string(json_object_get(document, "CodeSigningPolicies"), "UntrustedArtifactOnDeployment");

    if (!span_equal(policy, SPAN("Enforce")))
        return 0;
    return aws_error_set(&call->error, AWS_ERROR_CODE_VERIFICATION_FAILED,
                         "Lambda cannot deploy the function. The function or layer might be signed using a signature "
                         "that the client is not configured to accept. Check the provided signature for %.*s.",
                         SPAN_ARG(call->function_name));
}

int code_signing_attach(struct catalog_change *change, const struct catalog_function *function, struct span arn)
{
    json_t *document = json_pack("{s:s%}", "Arn", arn.data, arn.length);
    int r = document ? catalog_change_put_attached(change, function, CATALOG_FUNCTION_CODE_SIGNING, SPAN_NONE, document)
                     : -ENOMEM;

    json_decref(document);
    return r;
}

/* --- Put, Get, Delete --- */

static const struct input_member members[] = {{.name = "CodeSigningConfigArn", .kind = INPUT_STRING}, {0}};

/* The function's name and its configuration; `arn` NULL: an empty answer (recorded). */
static void respond(struct call *call, const char *arn)
{
    call_respond(call, 200,
                 arn ? json_pack("{s:s, s:s%}", "CodeSigningConfigArn", arn, "FunctionName", call->function_name.data,
                                 call->function_name.length)
                     : json_object());
}

static int build_put(struct call *call, struct catalog_change *change)
{
    struct catalog_function *function = table_get(&catalog_change_scope(change)->functions, call->function_name);
    struct span arn = input_string(call->input, "CodeSigningConfigArn");
    int r = code_signing_check_exists(call, arn); /* before the function (recorded) */

    if (r == 0 && !function)
        r = call_not_found(call, SPAN_NONE);
    return r ? r : code_signing_attach(change, function, arn);
}

static void answer_put(struct call *call)
{
    respond(call, json_string_value(json_object_get(call->input, "CodeSigningConfigArn")));
}

static void on_put_parsed(struct call *call)
{
    struct span arn = input_string(call->input, "CodeSigningConfigArn");
    int r;

    if (validate_present(&call->validation, arn.data != NULL, "codeSigningConfigArn"))
        code_signing_validate_arn(call, arn);
    r = call_check_names(call, FUNCTION_NAME_NAMESPACED, CALL_UNQUALIFIED);
    if (r)
        call_end(call, r, "checking the names");
    else
        call_submit(call, build_put, answer_put);
}

void lambda_put_function_code_signing_config(struct operation *operation)
{
    struct call *call = call_new(operation);

    if (call)
        input_read_body(call, members, NULL, on_put_parsed);
}

void lambda_get_function_code_signing_config(struct operation *operation)
{
    struct call *call = call_new(operation);
    const struct catalog_function *function = NULL;
    int r;

    if (!call)
        return;
    r = call_check_names(call, FUNCTION_NAME_NAMESPACED, CALL_UNQUALIFIED);
    if (r == 0)
        function = call_find_function(call);
    if (r == 0 && !function)
        r = call_not_found(call, SPAN_NONE);
    if (r)
        call_end(call, r, "finding the function");
    else
        respond(call, code_signing_arn_of(function));
}

/* Nothing to delete is success (recorded). */
static int build_deletion(struct call *call, struct catalog_change *change)
{
    struct catalog_function *function = table_get(&catalog_change_scope(change)->functions, call->function_name);

    if (!function)
        return call_not_found(call, SPAN_NONE);
    return catalog_change_delete_attached(change, function, CATALOG_FUNCTION_CODE_SIGNING, SPAN_NONE);
}

void lambda_delete_function_code_signing_config(struct operation *operation)
{
    struct call *call = call_new(operation);
    int r;

    if (!call)
        return;
    r = call_check_names(call, FUNCTION_NAME_NAMESPACED, CALL_UNQUALIFIED);
    if (r)
        call_end(call, r, "checking the names");
    else
        call_submit(call, build_deletion, call_respond_empty);
}

/* --- ListFunctionsByCodeSigningConfig --- */

/* `context` is the configuration's ARN. */
static int render_listed(struct call *call, struct span name, const void *value, const void *context, json_t **ret_row)
{
    const struct catalog_function *function = value;

    (void)call;
    (void)name;
    if (!span_equal(span_from(code_signing_arn_of(function)), *(const struct span *)context))
        return 0;
    *ret_row = json_string(function->arn);
    return *ret_row ? 0 : -ENOMEM;
}

static int check_list(struct call *call, struct span arn, struct page *page)
{
    int r = page_read(call, page);

    if (r)
        return r;
    code_signing_validate_arn(call, arn);
    r = call_finish_validation(call);
    return r || code_signing_find(call, arn) ? r : code_signing_refuse_missing(call, arn);
}

void lambda_list_functions_by_code_signing_config(struct operation *operation)
{
    struct call *call = call_new(operation);
    struct span arn = operation_parameter(operation, SPAN("CodeSigningConfigArn"));
    const struct catalog_scope *scope;
    struct page page;
    int r;

    if (!call)
        return;
    r = check_list(call, arn, &page);
    if (r) {
        call_end(call, r, "finding the configuration");
        return;
    }
    scope = catalog_find_scope(call->catalog, operation->account, operation->region);
    page_respond_list(call, &page, &(struct page_list){"FunctionArns", &scope->functions, render_listed, &arn});
}
