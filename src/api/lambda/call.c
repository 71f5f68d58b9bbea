#include "api/lambda/call.h"

#include "api/lambda/function_layers.h"

static void call_cleanup(struct operation *operation)
{
    struct call *call = operation->context;

    aws_error_deinit(&call->error);
    validation_deinit(&call->validation);
    json_decref(call->input);
    json_decref(call->document);
    function_layers_release(call);
    buffer_deinit(&call->zip);
    if (call->holds_package)
        code_release(operation->services->code, call->package.sha256);
    catalog_unref(call->catalog);
}

struct call *call_new(struct operation *operation)
{
    struct call *call = arena_zalloc(&operation->arena, sizeof(*call));

    if (!call) {
        operation_respond_failure(operation, -ENOMEM, "starting the operation");
        return NULL;
    }
    call->operation = operation;
    call->account = operation->account;
    call->catalog = catalog_ref(operation->services->catalog);
    operation->context = call;
    operation->cleanup = call_cleanup;
    return call;
}

void call_refuse(struct call *call)
{
    operation_respond_error(call->operation, &call->error);
}

void call_end(struct call *call, int r, const char *what)
{
    if (r > 0)
        call_refuse(call);
    else
        operation_respond_failure(call->operation, r, what);
}

void call_respond(struct call *call, int status, json_t *document)
{
    if (document)
        operation_respond(call->operation, status, document);
    else
        call_end(call, -ENOMEM, "writing the answer");
}

void call_respond_empty(struct call *call)
{
    operation_respond(call->operation, 204, NULL);
}

struct catalog_function *call_find_function(const struct call *call)
{
    const struct operation *operation = call->operation;

    return catalog_find_function(call->catalog, call->account, operation->region, call->function_name);
}

const char *call_function_arn(struct call *call, struct span qualifier)
{
    struct operation *operation = call->operation;
    const char *arn =
        arn_build_function(&operation->arena, operation->region, call->account, call->function_name, qualifier);

    return arn ? arn : "";
}

int call_not_found(struct call *call, struct span qualifier)
{
    return aws_error_set(&call->error, AWS_ERROR_RESOURCE_NOT_FOUND, "Function not found: %s",
                         call_function_arn(call, qualifier));
}

int call_find_target(struct call *call, const struct catalog_function *function)
{
    struct catalog_target target;

    if (function && catalog_resolve(function, call->qualifier, &target)) {
        call->version = target.version;
        call->alias = target.alias;
        return 0;
    }
    if (qualifier_kind_of(call->qualifier) != QUALIFIER_ALIAS)
        return call_not_found(call, call->qualifier);
    return aws_error_set(&call->error, AWS_ERROR_RESOURCE_NOT_FOUND, "Cannot find alias arn: %s",
                         call_function_arn(call, call->qualifier));
}

static int on_build(struct catalog_mutation *mutation, struct catalog_change *change)
{
    struct call *call = CONTAINER_OF(mutation, struct call, mutation);

    return call->build(call, change);
}

static void on_done(struct catalog_mutation *mutation, int status)
{
    struct call *call = CONTAINER_OF(mutation, struct call, mutation);

    if (status == 0)
        call->answer(call);
    else
        call_end(call, status, "storing the change");
}

void call_submit(struct call *call, int (*build)(struct call *call, struct catalog_change *change),
                 void (*answer)(struct call *call))
{
    const struct operation *operation = call->operation;
    int r;

    call->build = build;
    call->answer = answer;
    call->mutation.build = on_build;
    call->mutation.on_done = on_done;
    r = catalog_submit(call->catalog, call->account, operation->region, &call->mutation);
    if (r < 0)
        call_end(call, r, "entering the lane");
}
