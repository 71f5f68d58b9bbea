/* CreateCodeSigningConfig, UpdateCodeSigningConfig, GetCodeSigningConfig, DeleteCodeSigningConfig,
 * ListCodeSigningConfigs. */
#include "api/lambda/code_signing.h"

#include "api/lambda/handlers.h"
#include "api/lambda/tags.h"
#include "aws/shapes.h"
#include "base/clock.h"
#include "base/random.h"

enum { PUBLISHERS_MAXIMUM = 20, ID_DIGITS = 17 };

#define RESOURCE "code-signing-config:"

static const struct input_member publishers_members[] = {
    {.name = "SigningProfileVersionArns", .kind = INPUT_LIST, .element = INPUT_STRING},
    {0},
};
static const struct input_member policies_members[] = {{.name = "UntrustedArtifactOnDeployment", .kind = INPUT_STRING},
                                                       {0}};
static const struct input_member create_members[] = {
    {.name = "Description", .kind = INPUT_STRING},
    {.name = "AllowedPublishers", .kind = INPUT_STRUCTURE, .members = publishers_members},
    {.name = "CodeSigningPolicies", .kind = INPUT_STRUCTURE, .members = policies_members},
    {.name = "Tags", .kind = INPUT_MAP, .element = INPUT_STRING},
    {0},
};
static const struct input_member update_members[] = {
    {.name = "Description", .kind = INPUT_STRING},
    {.name = "AllowedPublishers", .kind = INPUT_STRUCTURE, .members = publishers_members},
    {.name = "CodeSigningPolicies", .kind = INPUT_STRUCTURE, .members = policies_members},
    {0},
};

/* --- finding --- */

/* The id of an ARN of the call's account and Region; empty for another. */
static struct span id_of(const struct call *call, struct span text)
{
    struct arn arn;

    if (arn_parse(text, &arn) != 0 || !span_equal(arn.account, call->account) ||
        !span_equal(arn.region, call->operation->region) || !span_starts_with(arn.resource, SPAN(RESOURCE)))
        return SPAN_NONE;
    return span_slice(arn.resource, sizeof(RESOURCE) - 1, arn.resource.length);
}

static const struct catalog_scope *scope_of(const struct call *call)
{
    return catalog_find_scope(call->catalog, call->account, call->operation->region);
}

const json_t *code_signing_find(const struct call *call, struct span arn)
{
    return catalog_find_record(scope_of(call), CATALOG_CODE_SIGNING_CONFIG, id_of(call, arn));
}

void code_signing_validate_arn(struct call *call, struct span arn)
{
    static const struct validation_constraint constraint = {.maximum = LAMBDA_CODE_SIGNING_ARN_MAXIMUM,
                                                            .pattern = LAMBDA_CODE_SIGNING_ARN_PATTERN};

    validate_string(&call->validation, arn, "codeSigningConfigArn", &constraint);
}

static struct span path_arn(const struct call *call)
{
    return operation_parameter(call->operation, SPAN("CodeSigningConfigArn"));
}

/* Validates the path's ARN with whatever the validation holds already. */
static int check_path(struct call *call)
{
    code_signing_validate_arn(call, path_arn(call));
    return call_finish_validation(call);
}

int code_signing_refuse_missing(struct call *call, struct span arn)
{
    int r = aws_error_set(&call->error, AWS_ERROR_RESOURCE_NOT_FOUND,
                          "The Lambda code signing configuration %.*s can not be found.", SPAN_ARG(arn));

    call->error.type = NULL;
    return r;
}

/* --- answers --- */

/* NULL when out of memory; the caller owns it. */
static json_t *render(struct call *call, struct span id, const json_t *document)
{
    static const char *const members[] = {"AllowedPublishers", "CodeSigningPolicies", "Description", "LastModified"};
    const struct operation *operation = call->operation;
    const char *resource = arena_printf(&call->operation->arena, RESOURCE "%.*s", SPAN_ARG(id));
    const char *arn = resource ? arn_build(&call->operation->arena, "lambda", operation->region, operation->account,
                                           span_from(resource))
                               : NULL;
    json_t *shown =
        arn ? json_pack("{s:s%, s:s}", "CodeSigningConfigId", id.data, id.length, "CodeSigningConfigArn", arn) : NULL;

    for (size_t i = 0; shown && i < ARRAY_SIZE(members); i++) {
        if (json_object_set(shown, members[i], json_object_get(document, members[i])) < 0) {
            json_decref(shown);
            return NULL;
        }
    }
    return shown;
}

static void respond(struct call *call, int status, struct span id, const json_t *document)
{
    json_t *shown = render(call, id, document);

    call_respond(call, status, shown ? json_pack("{s:o}", "CodeSigningConfig", shown) : NULL);
}

/* --- making and changing --- */

static void validate_publishers(struct call *call)
{
    static const struct validation_constraint constraint = {.maximum = LAMBDA_ARN_MAXIMUM,
                                                            .pattern = LAMBDA_ARN_PATTERN};
    const json_t *publishers = json_object_get(call->input, "AllowedPublishers");
    const json_t *list = json_object_get(publishers, "SigningProfileVersionArns");
    struct span *values;

    if (!publishers ||
        !validate_present(&call->validation, list != NULL, "allowedPublishers.signingProfileVersionArns"))
        return;
    values = input_strings(call, list);
    if (values)
        validate_list(&call->validation, values, json_array_size(list), "allowedPublishers.signingProfileVersionArns",
                      1, PUBLISHERS_MAXIMUM, &constraint);
}

static void validate_members(struct call *call)
{
    static const char *const policies[] = {"Warn", "Enforce", NULL};
    const json_t *policy = json_object_get(call->input, "CodeSigningPolicies");

    if (input_has(call->input, "Description"))
        validate_length(&call->validation, input_string(call->input, "Description"), "description", 0,
                        LAMBDA_DESCRIPTION_MAXIMUM);
    validate_publishers(call);
    if (input_has(policy, "UntrustedArtifactOnDeployment"))
        validate_enum(&call->validation, input_string(policy, "UntrustedArtifactOnDeployment"),
                      "codeSigningPolicies.untrustedArtifactOnDeployment", policies);
    tags_validate(call);
}

/* Puts the input's members into the document. An empty CodeSigningPolicies says nothing. */
static int take_members(json_t *document, const json_t *input)
{
    static const char *const members[] = {"AllowedPublishers", "CodeSigningPolicies", "Description", "Tags"};
    char modified[CLOCK_ISO_BYTES];

    for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
        json_t *value = json_object_get(input, members[i]);
        if (value && (!json_is_object(value) || json_object_size(value)) &&
            json_object_set(document, members[i], value) < 0)
            return -ENOMEM;
    }
    return json_object_set_new(document, "LastModified", json_string(clock_format_lambda(clock_wall_ns(), modified)));
}

/* "csc-" and 17 letters and digits; in the arena. */
static const char *make_id(struct call *call)
{
    static const char digits[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    unsigned char bytes[ID_DIGITS];
    char id[sizeof("csc-") + ID_DIGITS] = "csc-";

    random_bytes(bytes, sizeof(bytes));
    for (size_t i = 0; i < ID_DIGITS; i++)
        id[sizeof("csc-") - 1 + i] = digits[bytes[i] % (sizeof(digits) - 1)];
    return arena_dup(&call->operation->arena, span_of(id, sizeof(id) - 1));
}

static int build_creation(struct call *call, struct catalog_change *change)
{
    int r;

    call->detail = (void *)make_id(call);
    call->document =
        json_pack("{s:s, s:{s:s}}", "Description", "", "CodeSigningPolicies", "UntrustedArtifactOnDeployment", "Warn");
    if (!call->detail || !call->document)
        return -ENOMEM;
    r = take_members(call->document, call->input);
    return r < 0 ? -ENOMEM
                 : catalog_change_put_record(change, CATALOG_CODE_SIGNING_CONFIG, span_from(call->detail),
                                             call->document);
}

static void answer_creation(struct call *call)
{
    respond(call, 201, span_from(call->detail), call->document);
}

static void on_creation_parsed(struct call *call)
{
    int r;

    validate_present(&call->validation, input_has(call->input, "AllowedPublishers"), "allowedPublishers");
    validate_members(call);
    r = call_finish_validation(call);
    if (r == 0)
        r = tags_check(call, json_object_get(call->input, "Tags"));
    if (r)
        call_end(call, r, "checking the code signing configuration");
    else
        call_submit(call, build_creation, answer_creation);
}

void lambda_create_code_signing_config(struct operation *operation)
{
    struct call *call = call_new(operation);

    if (call)
        input_read_body(call, create_members, NULL, on_creation_parsed);
}

static int build_update(struct call *call, struct catalog_change *change)
{
    struct span id = id_of(call, path_arn(call));
    const json_t *current = code_signing_find(call, path_arn(call));

    if (!current)
        return code_signing_refuse_missing(call, path_arn(call));
    call->document = json_copy((json_t *)current);
    if (!call->document || take_members(call->document, call->input) < 0)
        return -ENOMEM;
    return catalog_change_put_record(change, CATALOG_CODE_SIGNING_CONFIG, id, call->document);
}

static void answer_update(struct call *call)
{
    respond(call, 200, id_of(call, path_arn(call)), call->document);
}

static void on_update_parsed(struct call *call)
{
    int r;

    validate_members(call);
    r = check_path(call);
    if (r)
        call_end(call, r, "checking the code signing configuration");
    else
        call_submit(call, build_update, answer_update);
}

void lambda_update_code_signing_config(struct operation *operation)
{
    struct call *call = call_new(operation);

    if (call)
        input_read_body(call, update_members, NULL, on_update_parsed);
}

/* --- GetCodeSigningConfig, DeleteCodeSigningConfig --- */

void lambda_get_code_signing_config(struct operation *operation)
{
    struct call *call = call_new(operation);
    const json_t *document = NULL;
    int r;

    if (!call)
        return;
    r = check_path(call);
    if (r == 0)
        document = code_signing_find(call, path_arn(call));
    if (r == 0 && !document)
        r = code_signing_refuse_missing(call, path_arn(call));
    if (r)
        call_end(call, r, "finding the code signing configuration");
    else
        respond(call, 200, id_of(call, path_arn(call)), document);
}

/* How many functions have it. */
static size_t count_users(const struct catalog_scope *scope, struct span arn)
{
    size_t count = 0;

    TABLE_FOREACH (item, &scope->functions)
        count += span_equal(span_from(code_signing_arn_of(item->value)), arn);
    return count;
}

static int build_deletion(struct call *call, struct catalog_change *change)
{
    struct span arn = path_arn(call);
    size_t users;

    if (!code_signing_find(call, arn))
        return code_signing_refuse_missing(call, path_arn(call));
    users = count_users(catalog_change_scope(change), arn);
    if (users)
        return aws_error_set(&call->error, AWS_ERROR_RESOURCE_CONFLICT,
                             "The code signing configuration %.*s cannot be deleted because it is used by %zu "
                             "function(s).",
                             SPAN_ARG(arn), users);
    return catalog_change_delete_record(change, CATALOG_CODE_SIGNING_CONFIG, id_of(call, arn));
}

void lambda_delete_code_signing_config(struct operation *operation)
{
    struct call *call = call_new(operation);
    int r;

    if (!call)
        return;
    r = check_path(call);
    if (r)
        call_end(call, r, "checking the ARN");
    else
        call_submit(call, build_deletion, call_respond_empty);
}

/* --- ListCodeSigningConfigs --- */

static int render_listed(struct call *call, struct span id, const void *value, const void *context, json_t **ret_row)
{
    (void)context;
    *ret_row = render(call, id, ((const struct catalog_record *)value)->document);
    return *ret_row ? 0 : -ENOMEM;
}

void lambda_list_code_signing_configs(struct operation *operation)
{
    struct call *call = call_new(operation);
    const struct catalog_scope *scope;
    struct page page;
    int r;

    if (!call)
        return;
    r = page_read(call, &page);
    if (r == 0)
        r = call_finish_validation(call);
    if (r) {
        call_end(call, r, "checking the page");
        return;
    }
    scope = scope_of(call);
    page_respond_list(call, &page,
                      &(struct page_list){"CodeSigningConfigs",
                                          scope ? &scope->records[CATALOG_CODE_SIGNING_CONFIG] : NULL, render_listed,
                                          NULL});
}
