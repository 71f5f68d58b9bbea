/* Any bytes are judged without harm; what is a pattern is JSON. */
#include "aws/event_pattern.h"
#include "aws/json_check.h"

#include <assert.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = span_of((const char *)data, size);

    if (event_pattern_check(text) == 0)
        assert(json_check(text, NULL) == 0);
    return 0;
}
