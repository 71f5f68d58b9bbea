/* Whether recursive loops of a function are stopped: a record {"loop"} where that is not the default. */
#include "api/lambda/attached.h"
#include "api/lambda/handlers.h"
#include "api/lambda/input.h"

static const struct input_member members[] = {{.name = "RecursiveLoop", .kind = INPUT_STRING}, {0}};

static int build_put(struct call *call, struct catalog_change *change)
{
    struct catalog_function *function = table_get(&catalog_change_scope(change)->functions, call->function_name);

    if (!function)
        return call_not_found(call, SPAN_NONE);
    call->document = json_pack("{s:O}", "loop", json_object_get(call->input, "RecursiveLoop"));
    if (!call->document)
        return -ENOMEM;
    return catalog_change_put_attached(change, function, CATALOG_RECURSION_CONFIG, SPAN_NONE, call->document);
}

/* `config` may be NULL. */
static void respond(struct call *call, const json_t *config)
{
    const char *loop = config ? json_string_value(json_object_get(config, "loop")) : "Terminate";

    call_respond(call, 200, json_pack("{s:s}", "RecursiveLoop", loop));
}

static void answer_put(struct call *call)
{
    respond(call, call->document);
}

static void on_put_parsed(struct call *call)
{
    static const char *const values[] = {"Terminate", "Allow", NULL}; /* in the recorded order */
    int r;

    if (validate_present(&call->validation, input_has(call->input, "RecursiveLoop"), "recursiveLoop"))
        validate_enum(&call->validation, input_string(call->input, "RecursiveLoop"), "recursiveLoop", values);
    r = call_check_names(call, FUNCTION_NAME_UNQUALIFIED, CALL_UNQUALIFIED);
    if (r)
        call_end(call, r, "checking the configuration");
    else
        call_submit(call, build_put, answer_put);
}

void lambda_put_function_recursion_config(struct operation *operation)
{
    struct call *call = call_new(operation);

    if (call)
        input_read_body(call, members, NULL, on_put_parsed);
}

void lambda_get_function_recursion_config(struct operation *operation)
{
    struct call *call = call_new(operation);
    int r;

    if (!call)
        return;
    r = call_check_names(call, FUNCTION_NAME_UNQUALIFIED, CALL_UNQUALIFIED);
    if (r == 0 && !call_find_function(call))
        r = call_not_found(call, SPAN_NONE);
    if (r)
        call_end(call, r, "finding the function");
    else
        respond(call, attached_find(call, CATALOG_RECURSION_CONFIG));
}
