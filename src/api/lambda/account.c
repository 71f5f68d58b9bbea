/* GetAccountSettings. */
#include "api/lambda/call.h"
#include "api/lambda/handlers.h"

enum { CODE_SIZE_ZIPPED = 52428800 };

void lambda_get_account_settings(struct operation *operation)
{
    const struct operation_services *services = operation->services;
    const struct catalog_scope *scope = catalog_find_scope(services->catalog, operation->account, operation->region);
    struct call *call = call_new(operation);
    json_int_t set_aside = scope ? (json_int_t)(scope->reserved_total + scope->provisioned_total) : 0;
    json_int_t code_bytes = scope ? (json_int_t)scope->code_bytes : 0;
    json_int_t functions = scope ? (json_int_t)scope->functions.count : 0;
    json_t *limit;
    json_t *usage;

    if (!call)
        return;
    limit = json_pack("{s:I, s:i, s:i, s:i, s:I}", "TotalCodeSize", (json_int_t)services->code_bytes_limit,
                      "CodeSizeUnzipped", (int)CODE_UNPACKED_BYTES, "CodeSizeZipped", CODE_SIZE_ZIPPED,
                      "ConcurrentExecutions", (int)services->concurrency, "UnreservedConcurrentExecutions",
                      (json_int_t)services->concurrency - set_aside);
    usage = json_pack("{s:I, s:I}", "TotalCodeSize", code_bytes, "FunctionCount", functions);
    call_respond(call, 200, json_pack("{s:o, s:o}", "AccountLimit", limit, "AccountUsage", usage));
}
