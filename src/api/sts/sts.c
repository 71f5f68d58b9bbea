#include "api/sts/sts.h"

/* An access key is its account's root here: there are no users (the same ARN as in Lambda's denials). */
static void get_caller_identity(struct operation *operation)
{
    json_t *result = json_pack("{s:s%, s:s%, s:s%}", "Arn", operation->caller_arn.data, operation->caller_arn.length,
                               "UserId", operation->account.data, operation->account.length, "Account",
                               operation->account.data, operation->account.length);

    operation_respond_result(operation, result, !result);
}

static const struct operation_route routes[] = {
    {.name = "GetCallerIdentity", .handler = get_caller_identity},
};

const struct operation_route *sts_routes(size_t *ret_count)
{
    *ret_count = ARRAY_SIZE(routes);
    return routes;
}
