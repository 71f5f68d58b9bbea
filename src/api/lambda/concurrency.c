/* Reserved concurrency. Whether a reservation is acceptable is core's decision, on the catalog's figures. */
#include "api/lambda/counted.h"
#include "api/lambda/handlers.h"
#include "api/lambda/input.h"

static const struct input_member members[] = {{.name = "ReservedConcurrentExecutions", .kind = INPUT_INTEGER}, {0}};

static int check_reservation(struct call *call, const struct catalog_function *function, int32_t count)
{
    struct counting_account account;
    struct counting_function counted;
    int32_t number;
    int r;

    counted_describe(call->operation->services, function, &account, &counted);
    switch (counting_check_reserved(&counted, MIN(count, COUNTING_MAXIMUM), &number)) {
    case COUNTING_OK:
        return 0;
    case COUNTING_BELOW_PROVISIONED:
        r = aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                          " ReservedConcurrentExecutions  %d should not be lower than function's total provisioned "
                          "concurrency [%d].",
                          count, number);
        call->error.type = NULL; /* recorded so */
        return r;
    default:
        return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                             "Specified ReservedConcurrentExecutions for function decreases account's "
                             "UnreservedConcurrentExecution below its minimum value of [%d].",
                             number);
    }
}

static int build_put(struct call *call, struct catalog_change *change)
{
    struct catalog_function *function = table_get(&catalog_change_scope(change)->functions, call->function_name);
    int32_t count = (int32_t)input_integer(call->input, "ReservedConcurrentExecutions", 0);
    int r;

    if (!function)
        return call_not_found(call, SPAN("$LATEST"));
    r = check_reservation(call, function, count);
    return r ? r : catalog_change_set_reserved(change, function, true, (unsigned)count);
}

static void answer_put(struct call *call)
{
    call_respond(call, 200,
                 json_pack("{s:O}", "ReservedConcurrentExecutions",
                           json_object_get(call->input, "ReservedConcurrentExecutions")));
}

static void on_put_parsed(struct call *call)
{
    bool present = input_has(call->input, "ReservedConcurrentExecutions");
    int64_t count = input_integer(call->input, "ReservedConcurrentExecutions", 0);
    int r;

    if (validate_present(&call->validation, present, "reservedConcurrentExecutions"))
        validate_range(&call->validation, count, "reservedConcurrentExecutions", 0, INT32_MAX);
    r = call_check_names(call, FUNCTION_NAME_PLAIN, CALL_UNQUALIFIED);
    if (r == 0 && !call_find_function(call))
        r = call_not_found(call, SPAN("$LATEST"));
    if (r)
        call_end(call, r, "checking the reservation");
    else
        call_submit(call, build_put, answer_put);
}

void lambda_put_function_concurrency(struct operation *operation)
{
    struct call *call = call_new(operation);

    if (call)
        input_read_body(call, members, NULL, on_put_parsed);
}

/* For a request without a body. NULL: it has been answered. */
static struct call *open_call(struct operation *operation, const struct catalog_function **ret_function)
{
    struct call *call = call_new(operation);
    int r;

    if (!call)
        return NULL;
    r = call_check_names(call, FUNCTION_NAME_PLAIN, CALL_UNQUALIFIED);
    *ret_function = r == 0 ? call_find_function(call) : NULL;
    if (r == 0 && !*ret_function)
        r = call_not_found(call, SPAN_NONE);
    if (r == 0)
        return call;
    call_end(call, r, "finding the function");
    return NULL;
}

void lambda_get_function_concurrency(struct operation *operation)
{
    const struct catalog_function *function;
    struct call *call = open_call(operation, &function);

    if (!call)
        return;
    if (function->has_reserved)
        call_respond(call, 200, json_pack("{s:i}", "ReservedConcurrentExecutions", (int)function->reserved));
    else
        call_respond(call, 200, json_object());
}

static int build_delete(struct call *call, struct catalog_change *change)
{
    struct catalog_function *function = table_get(&catalog_change_scope(change)->functions, call->function_name);

    if (!function)
        return call_not_found(call, SPAN_NONE);
    return function->has_reserved ? catalog_change_set_reserved(change, function, false, 0) : 0;
}

void lambda_delete_function_concurrency(struct operation *operation)
{
    const struct catalog_function *function;
    struct call *call = open_call(operation, &function);

    if (call)
        call_submit(call, build_delete, call_respond_empty);
}
