#include "api/lambda/counted.h"

static int32_t bounded(uint64_t value)
{
    return (int32_t)MIN(value, (uint64_t)COUNTING_MAXIMUM);
}

void counted_describe(const struct operation_services *services, const struct catalog_function *function,
                      struct counting_account *ret_account, struct counting_function *ret_function)
{
    counting_account_init(ret_account, (int32_t)services->concurrency, (int32_t)services->unreserved_minimum,
                          (int32_t)services->concurrency);
    ret_account->reserved_total = bounded(function->scope->reserved_total);
    ret_account->provisioned_total = bounded(function->scope->provisioned_total);
    counting_function_init(ret_function, ret_account);
    ret_function->has_reserved = function->has_reserved;
    ret_function->reserved = (int32_t)function->reserved;
    ret_function->provisioned_total = bounded(function->provisioned_total);
}
