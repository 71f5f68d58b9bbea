/*
 * Bodies of every operation that has one, through the whole dispatcher: the first byte picks the operation, the rest is
 * the body. Whatever comes must be answered once, and a 5xx would be our own mistake.
 */
#include "api/testing.h"

static const struct {
    const char *method;
    const char *target;
} operations[] = {
    {"POST", "/2015-03-31/functions"},
    {"PUT", "/2015-03-31/functions/f/configuration"},
    {"PUT", "/2015-03-31/functions/f/code"},
    {"POST", "/2015-03-31/functions/f/versions"},
    {"POST", "/2015-03-31/functions/f/aliases"},
    {"PUT", "/2015-03-31/functions/f/aliases/live"},
    {"PUT", "/2017-10-31/functions/f/concurrency"},
    {"POST", "/2015-03-31/functions/f/policy"},
    {"PUT", "/2019-09-25/functions/f/event-invoke-config"},
    {"POST", "/2019-09-25/functions/f/event-invoke-config"},
    {"POST", "/2021-10-31/functions/f/url"},
    {"PUT", "/2021-10-31/functions/f/url"},
    {"PUT", "/2021-07-20/functions/f/runtime-management-config"},
    {"PUT", "/2024-08-31/functions/f/recursion-config"},
    {"PUT", "/2025-11-30/functions/f/function-scaling-config?Qualifier=1"},
    {"POST", "/2015-03-31/event-source-mappings"},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct api_world world;
    static bool open;
    struct api_call call;

    if (size == 0)
        return 0;
    if (!open) {
        api_open(&world);
        api_create_function(&world, "f");
        open = true;
    }
    api_start(&world, operations[data[0] % ARRAY_SIZE(operations)].method,
              operations[data[0] % ARRAY_SIZE(operations)].target, span_of((const char *)data + 1, size - 1), &call);
    api_wait(&world, &call);
    if (call.answer.status >= 500)
        abort();
    api_answer_deinit(&call.answer);
    return 0;
}
