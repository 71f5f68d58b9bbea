/*
 * Provisioned concurrency of versions and aliases. What is wanted is stored here; what has become of it is core's to
 * say, through the services. Texts and their order are recorded.
 */
#include "api/lambda/counted.h"
#include "api/lambda/handlers.h"
#include "api/lambda/input.h"
#include "api/lambda/names.h"
#include "aws/shapes.h"
#include "base/clock.h"
#include "core/core.h"

#include <stdlib.h>

enum { LIST_ITEMS_MAX = 50 };

static const char latest_is_unpublished[] =
    "Provisioned Concurrency Configs cannot be applied to unpublished function versions.";
static const char latest_has_none[] = "The function resource provided must be an alias or a published version.";

static const struct input_member members[] = {{.name = "ProvisionedConcurrentExecutions", .kind = INPUT_INTEGER}, {0}};

/* --- answers --- */

static const char *const status_names[] = {
    [CORE_PROVISIONED_IN_PROGRESS] = "IN_PROGRESS",
    [CORE_PROVISIONED_READY] = "READY",
    [CORE_PROVISIONED_FAILED] = "FAILED",
};

/* With FunctionArn in front for a list (NULL: without). NULL when out of memory. */
static json_t *render(const struct operation_services *services, const struct catalog_target *target, const char *arn)
{
    const struct catalog_provisioned *provisioned = catalog_target_provisioned(target);
    struct core_provisioned_state state = {.status = CORE_PROVISIONED_IN_PROGRESS};

    if (services->read_provisioned)
        services->read_provisioned(target, &state, services->provisioned_context);
    return json_pack(
        "{s:s*, s:I, s:i, s:i, s:s, s:s*, s:s}", "FunctionArn", arn, "RequestedProvisionedConcurrentExecutions",
        (json_int_t)provisioned->requested, "AvailableProvisionedConcurrentExecutions", (int)state.available,
        "AllocatedProvisionedConcurrentExecutions", (int)state.allocated, "Status", status_names[state.status],
        "StatusReason", state.failed_by_init ? "FUNCTION_ERROR_INIT_FAILURE" : NULL, "LastModified",
        provisioned->last_modified);
}

static struct catalog_target target_of(const struct call *call)
{
    return (struct catalog_target){call->version, call->alias};
}

static void respond_state(struct call *call, int status)
{
    const struct catalog_target target = target_of(call);

    call_respond(call, status, render(call->operation->services, &target, NULL));
}

/* --- names --- */

static int refuse(struct call *call, enum aws_error_class error_class, const char *sentence)
{
    return aws_error_set(&call->error, error_class, "%s", sentence);
}

/* The names of path and query; `latest` is what $LATEST is refused with. 0 or a refusal. */
static int check_names(struct call *call, const char *latest)
{
    static const struct validation_constraint constraint = {
        .minimum = 1, .maximum = LAMBDA_QUALIFIER_MAXIMUM, .pattern = LAMBDA_PROVISIONED_QUALIFIER_PATTERN};
    struct span parameter = SPAN_NONE;
    bool given = operation_query(call->operation, SPAN("Qualifier"), &parameter);
    int r;

    if (validate_present(&call->validation, given, "qualifier"))
        validate_string(&call->validation, parameter, "qualifier", &constraint);
    r = call_check_names(call, FUNCTION_NAME_PLAIN, CALL_QUALIFIER_PART);
    if (r == 0)
        r = names_join_qualifiers(call->qualifier, parameter, &call->qualifier, &call->error);
    if (r == 0 && span_equal(call->qualifier, SPAN("$LATEST")))
        r = refuse(call, AWS_ERROR_INVALID_PARAMETER_VALUE, latest);
    return r;
}

/* The function as it is when the lane is free. */
static int find_target_in(struct call *call, struct catalog_change *change)
{
    return call_find_target(call, table_get(&catalog_change_scope(change)->functions, call->function_name));
}

/* --- PutProvisionedConcurrencyConfig --- */

static bool points_at(const struct catalog_alias *alias, const struct catalog_version *version)
{
    return alias->version == version || alias->additional == version;
}

/* A version is provisioned by itself or through aliases, not both. */
static int check_conflicts(struct call *call)
{
    const struct catalog_alias *alias = call->alias;

    if (alias) {
        if (alias->version->is_latest)
            return refuse(call, AWS_ERROR_INVALID_PARAMETER_VALUE, latest_is_unpublished);
        if (alias->version->provisioned.requested || (alias->additional && alias->additional->provisioned.requested))
            return refuse(call, AWS_ERROR_RESOURCE_CONFLICT,
                          "Alias can't be used for Provisioned Concurrency configuration on an already Provisioned "
                          "version");
        if (alias->additional && call->operation->services->strict_aws)
            return refuse(call, AWS_ERROR_INVALID_PARAMETER_VALUE,
                          "Alias with weights can not be used with Provisioned Concurrency");
        return 0;
    }
    TABLE_FOREACH (item, &call->version->function->aliases) {
        alias = item->value;
        if (alias->provisioned.requested && points_at(alias, call->version))
            return refuse(call, AWS_ERROR_RESOURCE_CONFLICT, "Version is pointed by a Provisioned Concurrency alias");
    }
    return 0;
}

static int check_count(struct call *call, int32_t count)
{
    const struct catalog_target target = target_of(call);
    struct counting_account account;
    struct counting_function counted;
    struct counting_slice slice;
    int32_t number;

    counted_describe(call->operation->services, call->version->function, &account, &counted);
    counting_slice_init(&slice, &counted);
    slice.size = (int32_t)catalog_target_provisioned(&target)->requested;
    switch (counting_check_provisioned(&counted, &slice, count, &number)) {
    case COUNTING_OK:
        return 0;
    case COUNTING_OVER_RESERVED:
        return refuse(
            call, AWS_ERROR_INVALID_PARAMETER_VALUE,
            "Requested Provisioned Concurrency should not be greater than the reservedConcurrentExecution for "
            "function");
    case COUNTING_OVER_POOL:
        return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                             "Specified ConcurrentExecutions for function is greater than account's unreserved "
                             "concurrency [%d].",
                             number);
    default:
        return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                             "Specified ConcurrentExecutions for function decreases account's "
                             "UnreservedConcurrentExecution below its minimum value of [%d].",
                             number);
    }
}

static int build_put(struct call *call, struct catalog_change *change)
{
    int32_t count = (int32_t)input_integer(call->input, "ProvisionedConcurrentExecutions", 0);
    struct catalog_provisioned provisioned = {.requested = (unsigned)count};
    struct catalog_target target;
    int r = find_target_in(call, change);

    if (r == 0)
        r = check_conflicts(call);
    if (r == 0)
        r = check_count(call, count);
    if (r)
        return r;
    clock_format_lambda_seconds(clock_wall_ns(), provisioned.last_modified);
    target = target_of(call);
    return catalog_change_set_provisioned(change, &target, &provisioned);
}

static void answer_put(struct call *call)
{
    respond_state(call, 202);
}

static void on_put_parsed(struct call *call)
{
    bool present = input_has(call->input, "ProvisionedConcurrentExecutions");
    int64_t count = input_integer(call->input, "ProvisionedConcurrentExecutions", 0);
    int r;

    if (validate_present(&call->validation, present, "provisionedConcurrentExecutions"))
        validate_range(&call->validation, count, "provisionedConcurrentExecutions", 1, INT32_MAX);
    r = check_names(call, latest_is_unpublished);
    if (r)
        call_end(call, r, "checking the names");
    else
        call_submit(call, build_put, answer_put);
}

void lambda_put_provisioned_concurrency_config(struct operation *operation)
{
    struct call *call = call_new(operation);

    if (call)
        input_read_body(call, members, NULL, on_put_parsed);
}

/* --- GetProvisionedConcurrencyConfig --- */

void lambda_get_provisioned_concurrency_config(struct operation *operation)
{
    struct call *call = call_new(operation);
    struct catalog_target target;
    int r;

    if (!call)
        return;
    r = check_names(call, latest_has_none);
    if (r == 0)
        r = call_find_target(call, call_find_function(call));
    target = target_of(call);
    if (r == 0 && !catalog_target_provisioned(&target)->requested)
        r = refuse(call, AWS_ERROR_PROVISIONED_CONCURRENCY_NOT_FOUND,
                   "No Provisioned Concurrency Config found for this function");
    if (r)
        call_end(call, r, "finding the configuration");
    else
        respond_state(call, 200);
}

/* --- DeleteProvisionedConcurrencyConfig --- */

static int build_deletion(struct call *call, struct catalog_change *change)
{
    struct catalog_target target;
    int r = find_target_in(call, change);

    if (r)
        return r;
    target = target_of(call);
    if (!catalog_target_provisioned(&target)->requested)
        return 0; /* nothing to delete is success (recorded) */
    return catalog_change_set_provisioned(change, &target, &(struct catalog_provisioned){0});
}

void lambda_delete_provisioned_concurrency_config(struct operation *operation)
{
    struct call *call = call_new(operation);
    int r;

    if (!call)
        return;
    r = check_names(call, latest_has_none);
    if (r == 0)
        r = call_find_target(call, call_find_function(call));
    if (r)
        call_end(call, r, "finding the configuration");
    else
        call_submit(call, build_deletion, call_respond_empty);
}

/* --- ListProvisionedConcurrencyConfigs --- */

struct row {
    struct span qualifier;
    struct catalog_target target;
};

static int compare_rows(const void *a, const void *b)
{
    return span_compare(((const struct row *)a)->qualifier, ((const struct row *)b)->qualifier);
}

/* The function's configurations behind `after`, by qualifier, in the arena. NULL when out of memory. */
static struct row *collect_rows(struct call *call, const struct catalog_function *function, struct span after,
                                size_t *ret_count)
{
    size_t room = function->versions.count + function->aliases.count;
    struct row *rows = arena_alloc(&call->operation->arena, room * sizeof(*rows));
    size_t count = 0;

    if (!rows)
        return NULL;
    TABLE_FOREACH (item, &function->versions) {
        struct catalog_version *version = item->value;
        if (version->provisioned.requested && span_compare(item->key, after) > 0)
            rows[count++] = (struct row){item->key, {.version = version}};
    }
    TABLE_FOREACH (item, &function->aliases) {
        struct catalog_alias *alias = item->value;
        if (alias->provisioned.requested && span_compare(item->key, after) > 0)
            rows[count++] = (struct row){item->key, {alias->version, alias}};
    }
    qsort(rows, count, sizeof(*rows), compare_rows);
    *ret_count = count;
    return rows;
}

static void respond_list(struct call *call, const struct page *page)
{
    json_t *array = json_array();
    struct span last = SPAN_NONE;
    size_t count = 0;
    const struct row *rows = collect_rows(call, call_find_function(call), page->after, &count);
    int r = array && rows ? 0 : -ENOMEM;

    for (size_t i = 0; r == 0 && i < MIN(count, page->maximum); i++) {
        const char *arn = call_function_arn(call, rows[i].qualifier);
        if (json_array_append_new(array, render(call->operation->services, &rows[i].target, arn)) < 0)
            r = -ENOMEM;
    }
    if (r == 0 && count > page->maximum)
        last = rows[page->maximum - 1].qualifier;
    page_respond(call, "ProvisionedConcurrencyConfigs", array, last, r);
}

void lambda_list_provisioned_concurrency_configs(struct operation *operation)
{
    struct call *call = call_new(operation);
    struct page page;
    int r;

    if (!call)
        return;
    r = page_read_up_to(call, LIST_ITEMS_MAX, &page);
    if (r == 0)
        r = call_check_names(call, FUNCTION_NAME_PLAIN, CALL_UNQUALIFIED);
    if (r == 0 && !call_find_function(call))
        r = call_not_found(call, SPAN_NONE);
    if (r)
        call_end(call, r, "finding the function");
    else
        respond_list(call, &page);
}
