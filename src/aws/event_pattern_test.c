#include "aws/event_pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void check_all(const char *const *patterns, int expected)
{
    for (size_t i = 0; patterns[i]; i++)
        if (event_pattern_check(span_from(patterns[i])) != expected)
            fail_msg("%s is %s", patterns[i], expected ? "accepted" : "refused");
}

static void test_recorded_patterns_are_accepted(void **state)
{
    static const char *const patterns[] = {
        "{\"body\": {\"my-key\": [\"my-value-one\", \"my-value-two\"]}}",
        "{\"body\": {\"my-key\": [{\"exists\": true}]}}",
        "{\"body\": {\"my-number\": [{\"numeric\": [\"<\", 100]}]}}",
        "{\"body\": {\"my-number\": [{\"numeric\": [\">=\", 100, \"<\", 200]}]}}",
        "{\"dynamodb\": {\"NewImage\": {\"n\": {\"N\": [{\"numeric\": [\">\", 100]}, {\"anything-but\": \"101\"}]}}}}",
        "{\"dynamodb\": {\"NewImage\": {\"prefix\": {\"S\": [{\"prefix\": \"us-1\"}]}}}}",
        "{\"eventName\": [\"INSERT\"], \"eventSource\": [\"aws:dynamodb\"]}",
        NULL,
    };

    (void)state;
    check_all(patterns, 0);
}

static void test_recorded_mistakes_are_refused(void **state)
{
    static const char *const patterns[] = {
        "null",
        "simple string",
        "[{\"eventName\": [\"INSERT\"=123}]",
        "{\"eventSource\": \"aws:sqs\"}",
        "{\"eventSource\": []}",
        NULL,
    };

    (void)state;
    check_all(patterns, EVENT_PATTERN_INVALID);
}

static void test_rules_of_the_guide_are_accepted(void **state)
{
    static const char *const patterns[] = {
        "{\"UserID\": [null]}",
        "{\"LastName\": [\"\"]}",
        "{\"Name\": [{\"equals-ignore-case\": \"alice\"}]}",
        "{\"$or\": [{\"Location\": [\"New York\"]}, {\"Day\": [\"Monday\"]}]}",
        "{\"Weather\": [{\"anything-but\": [\"Raining\", \"Snowing\"]}]}",
        "{\"Weather\": [{\"anything-but\": {\"prefix\": \"Rain\"}}]}",
        "{\"Price\": [{\"numeric\": [\"=\", 100]}]}",
        "{\"Region\": [{\"prefix\": {\"equals-ignore-case\": \"US-\"}}]}",
        "{\"FileName\": [{\"suffix\": \".png\"}]}",
        "{\"a\": [1, 1.5, true, false, null, \"x\"]}",
        "{\"$or\": [\"a field of that name\"]}",
        NULL,
    };

    (void)state;
    check_all(patterns, 0);
}

static void test_what_the_rules_do_not_know_is_refused(void **state)
{
    static const char *const patterns[] = {
        "",
        "{}",
        "[]",
        "{\"a\": {}}",
        "{\"a\": 1}",
        "{\"a\": null}",
        "{\"a\": [[1]]}",
        "{\"a\": [{}]}",
        "{\"a\": [{\"unknown\": 1}]}",
        "{\"a\": [{\"exists\": true, \"prefix\": \"x\"}]}",
        "{\"a\": [{\"exists\": \"true\"}]}",
        "{\"a\": [{\"prefix\": 1}]}",
        "{\"a\": [{\"prefix\": {\"suffix\": \"x\"}}]}",
        "{\"a\": [{\"numeric\": []}]}",
        "{\"a\": [{\"numeric\": [\"<\"]}]}",
        "{\"a\": [{\"numeric\": [\"<\", \"1\"]}]}",
        "{\"a\": [{\"numeric\": [\"!\", 1]}]}",
        "{\"a\": [{\"numeric\": [\"<\", 1, \">\", 2]}]}",
        "{\"a\": [{\"numeric\": [\">\", 1, \"<\"]}]}",
        "{\"a\": [{\"anything-but\": []}]}",
        "{\"a\": [{\"anything-but\": [\"x\", 1]}]}",
        "{\"a\": [{\"anything-but\": null}]}",
        "{\"$or\": [{\"a\": [1]}]}",
        "{\"$or\": []}",
        "{\"a\": [1]} x",
        NULL,
    };

    (void)state;
    check_all(patterns, EVENT_PATTERN_INVALID);
}

static void test_depth_is_bounded(void **state)
{
    char text[4096] = "";
    size_t length = 0;

    (void)state;
    for (size_t i = 0; i < 500; i++)
        length += (size_t)snprintf(text + length, sizeof(text) - length, "{\"a\":");
    length += (size_t)snprintf(text + length, sizeof(text) - length, "[1]");
    for (size_t i = 0; i < 500; i++)
        length += (size_t)snprintf(text + length, sizeof(text) - length, "}");
    assert_int_equal(event_pattern_check(span_of(text, length)), EVENT_PATTERN_INVALID);
}

static void test_nul_is_no_white_space(void **state)
{
    (void)state;
    assert_int_equal(event_pattern_check(SPAN("{\"a\": [0\0, 1]}")), EVENT_PATTERN_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded_patterns_are_accepted),
        cmocka_unit_test(test_recorded_mistakes_are_refused),
        cmocka_unit_test(test_rules_of_the_guide_are_accepted),
        cmocka_unit_test(test_what_the_rules_do_not_know_is_refused),
        cmocka_unit_test(test_depth_is_bounded),
        cmocka_unit_test(test_nul_is_no_white_space),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
