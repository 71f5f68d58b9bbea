#include "api/lambda/update.h"

#include "base/clock.h"

int update_check_storage(struct call *call, const struct catalog_scope *scope, uint64_t count, uint64_t freed)
{
    uint64_t used = scope->code_bytes - freed + count * call->package.zip_bytes;

    if (used <= call->operation->services->code_bytes_limit)
        return 0;
    return aws_error_set(&call->error, AWS_ERROR_CODE_STORAGE_EXCEEDED, "Code storage limit exceeded.");
}

void update_begin(const struct call *call)
{
    struct catalog_function *function = call->version->function;

    function->update_until_ns = clock_monotonic_ns() + call->operation->services->unseen_update_ns;
    function->update_is_creation = function->latest->update == CATALOG_UPDATE_NONE;
}

void update_show(const struct call *call)
{
    struct catalog_function *function = call->version->function;

    if (call->version->is_latest && !catalog_is_settling(function))
        function->update_until_ns = 0;
}

int update_check_settled(struct call *call, const struct catalog_function *function)
{
    if (!catalog_is_settling(function) && clock_monotonic_ns() >= function->update_until_ns)
        return 0;
    if (function->update_is_creation || function->latest->state == CATALOG_PENDING)
        return aws_error_set(&call->error, AWS_ERROR_RESOURCE_CONFLICT,
                             "The operation cannot be performed at this time. The function is currently in the "
                             "following state: Pending");
    return aws_error_set(&call->error, AWS_ERROR_RESOURCE_CONFLICT,
                         "The operation cannot be performed at this time. An update is in progress for resource: %s",
                         function->arn);
}

int update_check_revision(struct call *call, struct span revision_id, const char *current)
{
    if (!revision_id.data || span_equal(revision_id, span_from(current)))
        return 0;
    return aws_error_set(
        &call->error, AWS_ERROR_PRECONDITION_FAILED,
        "The Revision Id provided does not match the latest Revision Id. Call the GetFunction/GetAlias "
        "API to retrieve the latest Revision Id");
}

struct catalog_configuration update_configuration(const struct call *call)
{
    return (struct catalog_configuration){
        .document = call->document,
        .code_sha256 = span_from(call->package.sha256),
        .code_bytes = call->package.zip_bytes,
    };
}
