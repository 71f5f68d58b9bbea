/*
 * Accepts exactly what jansson accepts, but for these: jansson refuses lone surrogates among \u escapes (the grammar
 * and the service's parser do not), numbers past a double's range and NUL in names (both are JSON), and nesting past
 * 2048 instead of 1000.
 */
#include "aws/json_check.h"

#include <assert.h>

#include <jansson.h>

static bool has_surrogate_escape(struct span text)
{
    for (size_t i = 0; i + 3 < text.length; i++)
        if (text.data[i] == '\\' && text.data[i + 1] == 'u' && (text.data[i + 2] | 32) == 'd')
            return true;
    return false;
}

/* Is this a text that the two may judge differently? */
static bool may_differ(struct span text, const json_error_t *error)
{
    enum json_error_code code = json_error_code(error);

    return code == json_error_numeric_overflow || code == json_error_null_byte_in_key ||
           code == json_error_stack_overflow || has_surrogate_escape(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = span_of((const char *)data, size);
    struct json_fault fault = {0};
    int r = json_check(text, &fault);
    json_error_t error;
    json_t *json;

    assert(json_check(text, NULL) == r);
    if (r != 0) {
        assert(fault.offset <= size && fault.line >= 1 && fault.message[0]);
        assert(memchr(fault.message, '\0', sizeof(fault.message)));
    }
    if (memchr(data, '\0', size)) {
        assert(r != 0);
        return 0;
    }
    if (strstr(fault.message, "nesting depth"))
        return 0;
    json = json_loadb((const char *)data, size, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &error);
    if (json || !may_differ(text, &error))
        assert((r == 0) == (json != NULL));
    json_decref(json);
    return 0;
}
