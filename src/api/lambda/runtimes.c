#include "api/lambda/runtimes.h"

const char *const runtime_architectures[] = {"x86_64", "arm64", NULL};

bool runtime_list_has(struct span list, struct span name)
{
    while (list.data) {
        if (span_equal(span_trim(span_cut(&list, ',')), name))
            return true;
    }
    return false;
}

bool runtime_is_known(struct span name)
{
    return runtime_list_has(SPAN(RUNTIMES_LISTED), name) || runtime_list_has(SPAN(RUNTIMES_NEWER), name) ||
           runtime_list_has(SPAN(RUNTIMES_DEPRECATED), name);
}
