#include "aws/shapes.h"
#include "aws/validate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* Ends the validation and compares the message; NULL: nothing was violated. */
static void assert_message(struct validation *validation, enum aws_error_class error_class, const char *expected)
{
    struct aws_error error = {0};
    int r = validation_finish(validation, error_class, &error);

    if (!expected) {
        assert_int_equal(r, 0);
        return;
    }
    assert_int_equal(r, error_class);
    assert_int_equal(error.status, 400);
    assert_string_equal(buffer_terminate(&error.message), expected);
    assert_int_equal(validation->count, 0);
    aws_error_deinit(&error);
}

#define AT_FUNCTION " at 'functionName' failed to satisfy constraint: "
#define PATTERN     "Member must satisfy regular expression pattern: "
#define NAMESPACED                                                                                         \
    "(arn:(aws[a-zA-Z-]*)?:lambda:)?((eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\\d{1}:)?(\\d{12}:)?" \
    "(function:)?([a-zA-Z0-9-_\\.]+)(:(\\$LATEST(\\.PUBLISHED)?|[a-zA-Z0-9-_]+))?"
#define PLAIN                                                                                              \
    "(arn:(aws[a-zA-Z-]*)?:lambda:)?((eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\\d{1}:)?(\\d{12}:)?" \
    "(function:)?([a-zA-Z0-9-_]+)(:(\\$LATEST|[a-zA-Z0-9-_]+))?"
#define A65  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define A64  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define A129 A64 A65
#define A170 A64 A64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

/* As GetFunction, DeleteFunction and Invoke check: the qualifier first (recorded order). */
static struct validation check_get(const char *name, const char *qualifier)
{
    struct validation validation = VALIDATION_INIT;
    struct function_name parsed;

    if (qualifier)
        validate_qualifier(&validation, span_from(qualifier), "qualifier");
    validate_function_name(&validation, span_from(name), FUNCTION_NAME_NAMESPACED, "functionName", &parsed);
    return validation;
}

static struct validation check_create(const char *name)
{
    struct validation validation = VALIDATION_INIT;
    struct function_name parsed;

    validate_function_name(&validation, span_from(name), FUNCTION_NAME_PLAIN, "functionName", &parsed);
    return validation;
}

/* --- recorded: test_function_name_and_qualifier_validation, November 2025 ---------------------------------------- */

static void test_recorded_bad_names_quote_their_pattern(void **state)
{
    static const char *const names[] = {"my-function!",
                                        "*",
                                        "invalid-account:function:my-function",
                                        "arn:aws:lambda:invalid-region:111111111111:function:my-function",
                                        "arn:aws:ec2:us-east-1:111111111111:instance:i-1234567890abcdef0",
                                        "arn:aws:lambda:us-east-1:111111111111:function:my-function:1:2",
                                        "function:my-function:$LATEST:extra",
                                        "arn:aws:lambda::111111111111:function:my-function",
                                        "arn:aws:lambda:us-east-1::function:my-function",
                                        "arn:aws:lambda:us-east-1:111111111111:function:my-function:$LATES"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct validation get = check_get(names[i], NULL), create = check_create(names[i]);
        char expected[1024];
        snprintf(expected, sizeof(expected), "1 validation error detected: Value '%s'" AT_FUNCTION PATTERN NAMESPACED,
                 names[i]);
        assert_message(&get, AWS_ERROR_VALIDATION, expected);
        snprintf(expected, sizeof(expected), "1 validation error detected: Value '%s'" AT_FUNCTION PATTERN PLAIN,
                 names[i]);
        assert_message(&create, AWS_ERROR_VALIDATION, expected);
    }
}

static void test_recorded_bad_qualifier(void **state)
{
    struct validation validation = check_get("my-function", "invalid!");

    (void)state;
    assert_message(&validation, AWS_ERROR_VALIDATION,
                   "1 validation error detected: Value 'invalid!' at 'qualifier' failed to satisfy constraint: " PATTERN
                   "\\$(LATEST(\\.PUBLISHED)?)|[a-zA-Z0-9-_$]+");
    validation = check_create("my-function:invalid!");
    assert_message(&validation, AWS_ERROR_VALIDATION,
                   "1 validation error detected: Value 'my-function:invalid!'" AT_FUNCTION PATTERN PLAIN);
}

static void test_recorded_qualifier_too_long(void **state)
{
    struct validation validation = check_get("my-function", A129);

    (void)state;
    assert_message(&validation, AWS_ERROR_VALIDATION,
                   "1 validation error detected: Value '" A129
                   "' at 'qualifier' failed to satisfy constraint: Member must have length less than or equal to 128");
    validation = check_get("my-function", A64 A64);
    assert_message(&validation, AWS_ERROR_VALIDATION, NULL);
    validation = check_create("my-function:" A129);
    assert_message(&validation, AWS_ERROR_VALIDATION,
                   "1 validation error detected: Value 'my-function:" A129 "'" AT_FUNCTION
                   "Member must have length less than or equal to 140");
}

static void test_recorded_good_forms_pass(void **state)
{
    static const char *const names[] = {A65, "arn:aws:lambda:us-east-1:111111111111:function",
                                        "arn:aws:lambda:us-east-1:111111111111:function:my-function:$LATEST"};
    struct validation validation;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        validation = check_get(names[i], "$latest");
        assert_message(&validation, AWS_ERROR_VALIDATION, NULL);
    }
    validation = check_create(A65);
    assert_message(&validation, AWS_ERROR_VALIDATION, NULL);
    validation = check_create("arn:aws:lambda:us-east-1:111111111111:function:my-function:$latest");
    assert_message(&validation, AWS_ERROR_VALIDATION,
                   "1 validation error detected: Value "
                   "'arn:aws:lambda:us-east-1:111111111111:function:my-function:$latest'" AT_FUNCTION PATTERN PLAIN);
}

/* The name alone is measured after the ARN has been read, and under another class. */
static void test_recorded_bare_name_too_long(void **state)
{
    struct validation validation = VALIDATION_INIT;

    (void)state;
    validate_length(&validation, SPAN(A65), "functionName", 1, LAMBDA_BARE_NAME_MAXIMUM);
    assert_message(&validation, AWS_ERROR_INVALID_PARAMETER_VALUE,
                   "1 validation error detected: Value '" A65 "'" AT_FUNCTION
                   "Member must have length less than or equal to 64");
}

static void test_recorded_two_errors_keep_their_order(void **state)
{
#define LONG_ARN "arn:aws:lambda:invalid-region:111111111111:function:my-function-" A170
    struct validation validation = check_get(LONG_ARN, A129);

    (void)state;
    assert_message(&validation, AWS_ERROR_VALIDATION,
                   "2 validation errors detected: Value '" A129
                   "' at 'qualifier' failed to satisfy constraint: Member must have length less than or equal to 128; "
                   "Value '" LONG_ARN "'" AT_FUNCTION PATTERN NAMESPACED);
    validation = check_create(LONG_ARN ":" A129);
    assert_message(&validation, AWS_ERROR_VALIDATION,
                   "2 validation errors detected: Value '" LONG_ARN ":" A129 "'" AT_FUNCTION
                   "Member must have length less than or equal to 140; Value '" LONG_ARN ":" A129
                   "'" AT_FUNCTION PATTERN PLAIN);
}

/* --- recorded elsewhere ------------------------------------------------------------------------------------------ */

static void test_recorded_lists_quote_every_constraint_of_their_members(void **state)
{
    static const char *const architectures[] = {"x86_64", "arm64", NULL};
    const struct validation_constraint each = {.values = architectures};
    const struct validation_constraint layer = {1, LAMBDA_LAYER_VERSION_ARN_MAXIMUM, LAMBDA_LAYER_VERSION_ARN_PATTERN,
                                                NULL};
    const struct span wrong[] = {SPAN("X86_64")}, two[] = {SPAN("x86_64"), SPAN("arm64")};
    const struct span layers[] = {SPAN("arn:aws:lambda:us-east-1:111111111111:layer:l")};
    struct validation validation = VALIDATION_INIT;

    (void)state;
    assert_false(validate_list(&validation, wrong, 1, "architectures", 1, 1, &each));
    assert_message(
        &validation, AWS_ERROR_VALIDATION,
        "1 validation error detected: Value '[X86_64]' at 'architectures' failed to satisfy constraint: "
        "Member must satisfy constraint: [Member must satisfy enum value set: [x86_64, arm64], Member must not "
        "be null]");
    assert_false(validate_list(&validation, two, 2, "architectures", 1, 1, &each));
    assert_message(
        &validation, AWS_ERROR_VALIDATION,
        "1 validation error detected: Value '[x86_64, arm64]' at 'architectures' failed to satisfy constraint: "
        "Member must have length less than or equal to 1");
    assert_false(validate_list(&validation, layers, 1, "layers", 0, 0, &layer));
    assert_message(
        &validation, AWS_ERROR_VALIDATION,
        "1 validation error detected: Value '[arn:aws:lambda:us-east-1:111111111111:layer:l]' at 'layers' "
        "failed to satisfy constraint: Member must satisfy constraint: [Member must have length less than or "
        "equal to 2048, Member must have length greater than or equal to 1, " PATTERN
        "(arn:(aws[a-zA-Z-]*)?:lambda:(eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\\d{1}:\\d{12}:layer:"
        "[a-zA-Z0-9-_]+:[0-9]+)|(arn:[a-zA-Z0-9-]+:lambda:::awslayer:[a-zA-Z0-9-_]+), Member must not be "
        "null]");
    assert_true(validate_list(&validation, two, 1, "architectures", 1, 1, &each));
    assert_message(&validation, AWS_ERROR_VALIDATION, NULL);
}

static void test_null_is_no_element_of_a_list_or_a_map(void **state)
{
    const struct validation_constraint keys = {.pattern = "[a-z]+"};
    const struct span list[] = {SPAN("a"), SPAN_NONE};
    const struct span names[] = {SPAN("a"), SPAN("B")}, values[] = {SPAN_NONE, SPAN("")};
    struct validation validation = VALIDATION_INIT;

    (void)state;
    assert_false(validate_list(&validation, list, 2, "words", 0, 0, NULL));
    assert_message(
        &validation, AWS_ERROR_VALIDATION,
        "1 validation error detected: Value '[a, null]' at 'words' failed to satisfy constraint: Member must "
        "satisfy constraint: [Member must not be null]");
    assert_false(validate_map(&validation, names, values, 2, "pairs", &keys, NULL));
    assert_message(
        &validation, AWS_ERROR_VALIDATION,
        "2 validation errors detected: Value '{a=null, B=}' at 'pairs' failed to satisfy constraint: Map keys "
        "must satisfy constraint: [Member must satisfy regular expression pattern: [a-z]+, Member must not be "
        "null]; Value '{a=null, B=}' at 'pairs' failed to satisfy constraint: Map value must satisfy "
        "constraint: [Member must not be null]");
    assert_true(validate_map(&validation, names, values + 1, 1, "pairs", &keys, NULL));
}

static void test_recorded_ranges_enums_and_nulls(void **state)
{
    static const char *const loops[] = {"Terminate", "Allow", NULL};
    struct validation validation = VALIDATION_INIT;

    (void)state;
    assert_false(validate_range(&validation, 0, "provisionedConcurrentExecutions", 1, INT64_MAX));
    assert_message(&validation, AWS_ERROR_VALIDATION,
                   "1 validation error detected: Value '0' at 'provisionedConcurrentExecutions' failed to satisfy "
                   "constraint: Member must have value greater than or equal to 1");
    assert_false(validate_enum(&validation, SPAN("InvalidValue"), "recursiveLoop", loops));
    assert_message(&validation, AWS_ERROR_VALIDATION,
                   "1 validation error detected: Value 'InvalidValue' at 'recursiveLoop' failed to satisfy constraint: "
                   "Member must satisfy enum value set: [Terminate, Allow]");
    assert_false(validate_present(&validation, false, "tagKeys"));
    assert_message(
        &validation, AWS_ERROR_VALIDATION,
        "1 validation error detected: Value null at 'tagKeys' failed to satisfy constraint: Member must not be "
        "null");
    assert_true(validate_present(&validation, true, "tagKeys"));
    assert_true(validate_enum(&validation, SPAN("Allow"), "recursiveLoop", loops));
    assert_message(&validation, AWS_ERROR_VALIDATION, NULL);
}

static void test_recorded_wording_of_its_own(void **state)
{
    struct validation validation = VALIDATION_INIT;

    (void)state;
    validation_add(&validation,
                   "Value %s at 'runtime' failed to satisfy constraint: Member must satisfy enum value set: "
                   "[python3.14] or be a valid ARN",
                   "PYTHON3.9");
    assert_message(
        &validation, AWS_ERROR_INVALID_PARAMETER_VALUE,
        "1 validation error detected: Value PYTHON3.9 at 'runtime' failed to satisfy constraint: Member must "
        "satisfy enum value set: [python3.14] or be a valid ARN");
}

/* --- limits ------------------------------------------------------------------------------------------------------ */

static void test_range_limits_are_inclusive(void **state)
{
    struct validation validation = VALIDATION_INIT;

    (void)state;
    assert_true(validate_range(&validation, 1, "timeout", 1, 900));
    assert_true(validate_range(&validation, 900, "timeout", 1, 900));
    assert_false(validate_range(&validation, 901, "timeout", 1, 900));
    assert_false(validate_range(&validation, INT64_MIN, "timeout", 1, 900));
    assert_message(
        &validation, AWS_ERROR_VALIDATION,
        "2 validation errors detected: Value '901' at 'timeout' failed to satisfy constraint: Member must have "
        "value less than or equal to 900; Value '-9223372036854775808' at 'timeout' failed to satisfy "
        "constraint: Member must have value greater than or equal to 1");
}

static void test_length_counts_characters(void **state)
{
    struct validation validation = VALIDATION_INIT;

    (void)state;
    assert_true(validate_length(&validation, SPAN("\xc3\xa9\xf0\x9f\x98\x80"), "description", 2, 2));
    assert_false(validate_length(&validation, SPAN("\xc3\xa9"), "description", 2, 2));
    assert_false(validate_length(&validation, SPAN("\xff\xff\xff"), "description", 0, 2));
    assert_true(validate_length(&validation, SPAN(""), "description", 0, 0));
    assert_int_equal(validation.count, 2);
    validation_deinit(&validation);
    assert_message(&validation, AWS_ERROR_VALIDATION, NULL);
}

static void test_empty_name_is_too_short_and_matches_nothing(void **state)
{
    struct validation validation = check_get("", "");

    (void)state;
    assert_int_equal(validation.count, 4);
    validation_deinit(&validation);
}

static void test_maps_name_their_keys_and_values(void **state)
{
    const struct span keys[] = {SPAN("1"), SPAN("b")}, values[] = {SPAN("x"), SPAN("y")};
    const struct validation_constraint digits = {
        .minimum = 1, .maximum = 1024, .pattern = LAMBDA_ADDITIONAL_VERSION_PATTERN};
    struct validation validation = VALIDATION_INIT;

    (void)state;
    assert_true(validate_map(&validation, keys, values, 1, "weights", &digits, NULL));
    assert_false(validate_map(&validation, keys, values, 2, "weights", &digits, NULL));
    assert_false(validate_map(&validation, keys, values, 1, "weights", NULL, &digits));
    assert_message(
        &validation, AWS_ERROR_VALIDATION,
        "2 validation errors detected: Value '{1=x, b=y}' at 'weights' failed to satisfy constraint: Map keys "
        "must satisfy constraint: [Member must have length less than or equal to 1024, Member must have length "
        "greater than or equal to 1, " PATTERN "[0-9]+, Member must not be null]; Value '{1=x}' at 'weights' "
        "failed to satisfy constraint: Map value must satisfy constraint: [Member must have length less than or "
        "equal to 1024, Member must have length greater than or equal to 1, " PATTERN
        "[0-9]+, Member must not be null]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded_bad_names_quote_their_pattern),
        cmocka_unit_test(test_recorded_bad_qualifier),
        cmocka_unit_test(test_recorded_qualifier_too_long),
        cmocka_unit_test(test_recorded_good_forms_pass),
        cmocka_unit_test(test_recorded_bare_name_too_long),
        cmocka_unit_test(test_recorded_two_errors_keep_their_order),
        cmocka_unit_test(test_recorded_lists_quote_every_constraint_of_their_members),
        cmocka_unit_test(test_null_is_no_element_of_a_list_or_a_map),
        cmocka_unit_test(test_recorded_ranges_enums_and_nulls),
        cmocka_unit_test(test_recorded_wording_of_its_own),
        cmocka_unit_test(test_range_limits_are_inclusive),
        cmocka_unit_test(test_length_counts_characters),
        cmocka_unit_test(test_empty_name_is_too_short_and_matches_nothing),
        cmocka_unit_test(test_maps_name_their_keys_and_values),
    };

    return cmocka_run_group_tests_name("validate", tests, NULL, NULL);
}
