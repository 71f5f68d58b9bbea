/* The parsers written by hand against the patterns of the service model that they stand for. */
#include "aws/arn.h"
#include "aws/pattern.h"
#include "aws/shapes.h"

#include <assert.h>

static void check_name(struct span text, enum function_name_form form, const char *pattern)
{
    struct function_name name;
    int r = function_name_parse(text, form, &name);

    assert((r == 0) == pattern_matches(pattern, text));
    assert(r != 0 || name.name.length > 0);
    assert(r != 0 || qualifier_kind_of(name.name) != QUALIFIER_NONE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = span_of((const char *)data, size);
    enum qualifier_kind kind;
    struct arn arn;

    if (size > 300)
        return 0;
    check_name(text, FUNCTION_NAME_PLAIN, LAMBDA_FUNCTION_NAME_PATTERN);
    check_name(text, FUNCTION_NAME_NAMESPACED, LAMBDA_NAMESPACED_FUNCTION_NAME_PATTERN);
    check_name(text, FUNCTION_NAME_UNQUALIFIED, LAMBDA_UNQUALIFIED_FUNCTION_NAME_PATTERN);
    check_name(text, FUNCTION_NAME_URL, LAMBDA_FUNCTION_URL_FUNCTION_NAME_PATTERN);
    assert(arn_is_region(text) == pattern_matches(LAMBDA_REGION_PATTERN, text));
    assert(arn_is_account_id(text) == pattern_matches("\\d{12}", text));
    kind = qualifier_kind_of(text);
    assert((kind == QUALIFIER_ALIAS) == (size <= LAMBDA_ALIAS_MAXIMUM && pattern_matches(LAMBDA_ALIAS_PATTERN, text)));
    assert((kind == QUALIFIER_LATEST || kind == QUALIFIER_VERSION) == pattern_matches(LAMBDA_VERSION_PATTERN, text));
    if (arn_parse(text, &arn) == 0)
        assert(pattern_matches("arn:[^:]+:[^:]+:[^:]*:[^:]*:(.|\\s)+", text));
    return 0;
}
