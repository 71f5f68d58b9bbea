/*
 * Forms of the query protocol through the whole dispatcher: the first byte picks IAM or STS, the rest is the body.
 * Whatever comes must be answered once, and of the 5xx only that for an action that is not there is right.
 */
#include "api/testing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct api_world world;
    static bool open;
    struct api_call call;

    if (size == 0)
        return 0;
    if (!open) {
        api_open(&world);
        open = true;
    }
    world.service = service_find(data[0] % 4 ? SPAN("iam") : SPAN("sts"));
    api_start(&world, "POST", "/", span_of((const char *)data + 1, size - 1), &call);
    api_wait(&world, &call);
    if (call.answer.status >= 500 && call.answer.status != 501)
        abort();
    api_answer_deinit(&call.answer);
    return 0;
}
