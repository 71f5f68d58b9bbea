/*
 * URL configurations of functions and aliases: a record {"id", "auth", "cors"?, "mode"?, "created", "modified"}. A URL
 * stays when its alias goes (recorded); it goes with its function. Texts and their order are recorded, as is that
 * InvokeMode is shown by Create and Update only when it was ever given, and by Get and List always.
 */
#include "api/lambda/attached.h"
#include "api/lambda/function_url.h"
#include "api/lambda/handlers.h"
#include "api/lambda/input.h"
#include "api/lambda/names.h"
#include "api/lambda/rules.h"
#include "aws/shapes.h"
#include "base/clock.h"

enum { MAX_AGE_MAX = 86400 };

static const struct input_member cors_members[] = {
    {.name = "AllowCredentials", .kind = INPUT_BOOLEAN},
    {.name = "AllowHeaders", .kind = INPUT_LIST, .element = INPUT_STRING},
    {.name = "AllowMethods", .kind = INPUT_LIST, .element = INPUT_STRING},
    {.name = "AllowOrigins", .kind = INPUT_LIST, .element = INPUT_STRING},
    {.name = "ExposeHeaders", .kind = INPUT_LIST, .element = INPUT_STRING},
    {.name = "MaxAge", .kind = INPUT_INTEGER},
    {0},
};

static const struct input_member members[] = {
    {.name = "AuthType", .kind = INPUT_STRING},
    {.name = "Cors", .kind = INPUT_STRUCTURE, .members = cors_members},
    {.name = "InvokeMode", .kind = INPUT_STRING},
    {0},
};

/* --- answers --- */

/* $LATEST's URL is shown as the function's. */
static const char *shown_arn(struct call *call, struct span qualifier)
{
    return call_function_arn(call, span_equal(qualifier, SPAN("$LATEST")) ? SPAN_NONE : qualifier);
}

/* What all answers have. NULL when out of memory. */
static json_t *render(struct call *call, const struct attached *url)
{
    const json_t *document = url->document;
    const char *id = json_string_value(json_object_get(document, "id"));

    return json_pack("{s:s, s:s, s:O, s:O, s:O*, s:O*}", "FunctionUrl", function_url_address(call->operation, id),
                     "FunctionArn", shown_arn(call, url->qualifier), "AuthType", json_object_get(document, "auth"),
                     "CreationTime", json_object_get(document, "created"), "Cors", json_object_get(document, "cors"),
                     "InvokeMode", json_object_get(document, "mode"));
}

static int add_modified(json_t *answer, const json_t *document)
{
    return json_object_set(answer, "LastModifiedTime", json_object_get(document, "modified"));
}

/* As Get and List show it. */
static json_t *render_whole(struct call *call, const struct attached *url)
{
    json_t *answer = render(call, url);
    int r = answer ? add_modified(answer, url->document) : -1;

    if (r == 0 && !input_has(answer, "InvokeMode"))
        r = json_object_set_new(answer, "InvokeMode", json_string("BUFFERED"));
    if (r == 0)
        return answer;
    json_decref(answer);
    return NULL;
}

/* --- names and refusals --- */

static int check_names(struct call *call)
{
    static const struct validation_constraint constraint = {
        .minimum = 1, .maximum = LAMBDA_QUALIFIER_MAXIMUM, .pattern = LAMBDA_FUNCTION_URL_QUALIFIER_PATTERN};
    struct span parameter = SPAN_NONE;
    int r;

    if (operation_query(call->operation, SPAN("Qualifier"), &parameter))
        validate_string(&call->validation, parameter, "qualifier", &constraint);
    r = call_check_names(call, FUNCTION_NAME_URL, CALL_QUALIFIER_PART);
    return r ? r : names_join_qualifiers(call->qualifier, parameter, &call->qualifier, &call->error);
}

static int refuse_function(struct call *call)
{
    return aws_error_set(&call->error, AWS_ERROR_RESOURCE_NOT_FOUND, "Function does not exist");
}

static int refuse_missing(struct call *call)
{
    return aws_error_set(&call->error, AWS_ERROR_RESOURCE_NOT_FOUND, "The resource you requested does not exist.");
}

/* The function, and the alias when one is named, as they are when the lane is free. 0 or a refusal. */
static int find_target(struct call *call, struct catalog_change *change, const struct catalog_function **ret_function)
{
    *ret_function = table_get(&catalog_change_scope(change)->functions, call->function_name);
    return call_find_target(call, *ret_function) ? refuse_function(call) : 0;
}

/* --- what Create and Update are given --- */

static const struct list_rule cors_lists[] = {
    {"Cors", "AllowHeaders", "cors.allowHeaders", 0, 100, {0, 1024, ".*", NULL}},
    {"Cors", "AllowMethods", "cors.allowMethods", 0, 6, {0, 6, ".*", NULL}},
    {"Cors", "AllowOrigins", "cors.allowOrigins", 0, 100, {1, 253, ".*", NULL}},
    {"Cors", "ExposeHeaders", "cors.exposeHeaders", 0, 100, {0, 1024, ".*", NULL}},
};

static void validate_cors(struct call *call)
{
    const json_t *cors = json_object_get(call->input, "Cors");

    rules_validate_lists(call, cors_lists, ARRAY_SIZE(cors_lists));
    if (input_has(cors, "MaxAge"))
        validate_range(&call->validation, input_integer(cors, "MaxAge", 0), "cors.maxAge", 0, MAX_AGE_MAX);
}

static int check_settings(struct call *call, bool creates)
{
    static const char *const auth_types[] = {"NONE", "AWS_IAM", NULL};
    static const char *const modes[] = {"BUFFERED", "RESPONSE_STREAM", NULL};

    if (creates)
        validate_present(&call->validation, input_has(call->input, "AuthType"), "authType");
    if (input_has(call->input, "AuthType"))
        validate_enum(&call->validation, input_string(call->input, "AuthType"), "authType", auth_types);
    validate_cors(call);
    if (input_has(call->input, "InvokeMode"))
        validate_enum(&call->validation, input_string(call->input, "InvokeMode"), "invokeMode", modes);
    return check_names(call);
}

/* A new URL was made when it was first modified. */
static int set_times(json_t *document)
{
    char now[CLOCK_ISO_BYTES];
    json_t *time = json_string(clock_format_iso_micro(clock_wall_ns(), now));
    int r = json_object_set(document, "modified", time);

    if (r == 0 && !input_has(document, "created"))
        r = json_object_set(document, "created", time);
    json_decref(time);
    return r;
}

/* What the request names, on top of what is in call->document. An empty Cors is none. */
static int take_settings(struct call *call)
{
    json_t *auth = json_object_get(call->input, "AuthType");
    json_t *cors = json_object_get(call->input, "Cors");
    json_t *mode = json_object_get(call->input, "InvokeMode");
    json_t *document = call->document;
    int r = set_times(document);

    if (r == 0 && auth)
        r = json_object_set(document, "auth", auth);
    if (r == 0 && mode)
        r = json_object_set(document, "mode", mode);
    if (r == 0 && json_object_size(cors))
        r = json_object_set(document, "cors", cors);
    else if (cors)
        json_object_del(document, "cors");
    return r < 0 ? -ENOMEM : 0;
}

/* Takes call->document. */
static int put_url(struct call *call, struct catalog_change *change, const struct catalog_function *function)
{
    int r = call->document ? take_settings(call) : -ENOMEM;

    return r ? r : catalog_change_put_attached(change, function, CATALOG_FUNCTION_URL, call->qualifier, call->document);
}

/* --- CreateFunctionUrlConfig --- */

static json_t *make_url(void)
{
    char id[FUNCTION_URL_ID_BYTES];

    function_url_make_id(id);
    return json_pack("{s:s}", "id", id);
}

static int build_creation(struct call *call, struct catalog_change *change)
{
    const struct catalog_function *function;
    int r = find_target(call, change, &function);

    if (r)
        return r;
    if (catalog_find_attached(function, CATALOG_FUNCTION_URL, call->qualifier))
        return aws_error_set(&call->error, AWS_ERROR_RESOURCE_CONFLICT,
                             "Failed to create function url config for [functionArn = %s]. Error message:  "
                             "FunctionUrlConfig exists for this Lambda function",
                             call_function_arn(call, call->qualifier));
    call->document = make_url();
    return put_url(call, change, function);
}

static void answer_creation(struct call *call)
{
    const struct attached url = {call->qualifier, call->document};

    call_respond(call, 201, render(call, &url));
}

static void on_creation_parsed(struct call *call)
{
    int r = check_settings(call, true);

    if (r)
        call_end(call, r, "checking the URL");
    else
        call_submit(call, build_creation, answer_creation);
}

void lambda_create_function_url_config(struct operation *operation)
{
    struct call *call = call_new(operation);

    if (call)
        input_read_body(call, members, NULL, on_creation_parsed);
}

/* --- UpdateFunctionUrlConfig --- */

static int build_update(struct call *call, struct catalog_change *change)
{
    const struct catalog_function *function;
    const json_t *current;
    int r = find_target(call, change, &function);

    if (r)
        return r;
    current = catalog_find_attached(function, CATALOG_FUNCTION_URL, call->qualifier);
    if (!current)
        return refuse_missing(call);
    call->document = json_copy((json_t *)current);
    return put_url(call, change, function);
}

static void answer_update(struct call *call)
{
    const struct attached url = {call->qualifier, call->document};
    json_t *answer = render(call, &url);

    if (answer && add_modified(answer, call->document) < 0) {
        json_decref(answer);
        answer = NULL;
    }
    call_respond(call, 200, answer);
}

static void on_update_parsed(struct call *call)
{
    int r = check_settings(call, false);

    if (r)
        call_end(call, r, "checking the URL");
    else
        call_submit(call, build_update, answer_update);
}

void lambda_update_function_url_config(struct operation *operation)
{
    struct call *call = call_new(operation);

    if (call)
        input_read_body(call, members, NULL, on_update_parsed);
}

/* --- GetFunctionUrlConfig --- */

void lambda_get_function_url_config(struct operation *operation)
{
    struct call *call = call_new(operation);
    struct attached url = {0};
    int r;

    if (!call)
        return;
    r = check_names(call);
    if (r == 0)
        url = (struct attached){call->qualifier, attached_find(call, CATALOG_FUNCTION_URL)};
    if (r == 0 && !url.document)
        r = refuse_missing(call);
    if (r)
        call_end(call, r, "finding the URL");
    else
        call_respond(call, 200, render_whole(call, &url));
}

/* --- DeleteFunctionUrlConfig --- */

static int build_deletion(struct call *call, struct catalog_change *change)
{
    return attached_delete(call, change, CATALOG_FUNCTION_URL, refuse_missing);
}

void lambda_delete_function_url_config(struct operation *operation)
{
    struct call *call = call_new(operation);
    int r;

    if (!call)
        return;
    r = check_names(call);
    if (r)
        call_end(call, r, "checking the names");
    else
        call_submit(call, build_deletion, call_respond_empty);
}

/* --- ListFunctionUrlConfigs --- */

void lambda_list_function_url_configs(struct operation *operation)
{
    static const struct attached_list list = {CATALOG_FUNCTION_URL, FUNCTION_NAME_URL, "FunctionUrlConfigs",
                                              refuse_function, render_whole};

    attached_list(operation, &list);
}
