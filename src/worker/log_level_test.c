#include "worker/log_level.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

static void test_names_in_any_case_and_pythons(void **state)
{
    (void)state;
    assert_int_equal(log_level_parse(SPAN("TRACE"), LOG_LINE_INFO), LOG_LINE_TRACE);
    assert_int_equal(log_level_parse(SPAN("debug"), LOG_LINE_INFO), LOG_LINE_DEBUG);
    assert_int_equal(log_level_parse(SPAN("WARNING"), LOG_LINE_INFO), LOG_LINE_WARN);
    assert_int_equal(log_level_parse(SPAN("Critical"), LOG_LINE_INFO), LOG_LINE_FATAL);
    assert_int_equal(log_level_parse(SPAN("loud"), LOG_LINE_ERROR), LOG_LINE_ERROR);
    assert_int_equal(log_level_parse(SPAN(""), LOG_LINE_WARN), LOG_LINE_WARN);
}

static void test_level_of_a_json_line(void **state)
{
    static const struct {
        struct span line;
        enum log_line_level level;
    } cases[] = {
        {SPAN("{\"level\": \"debug\", \"msg\": \"x\"}\n"), LOG_LINE_DEBUG},
        {SPAN("  {\"msg\":\"a \\\"level\\\": no\",\"level\":\"ERROR\"}"), LOG_LINE_ERROR},
        {SPAN("{\"inner\":{\"level\":\"TRACE\"},\"level\":\"WARN\"}"), LOG_LINE_WARN},
        {SPAN("{\"list\":[{\"level\":\"TRACE\"}],\"x\":1}"), LOG_LINE_INFO},
        {SPAN("{\"msg\":\"level\",\"x\":\"TRACE\"}"), LOG_LINE_INFO},
        {SPAN("{\"level\":\"TRACE\",\"msg\":\"cut off in the mid"), LOG_LINE_TRACE},
        {SPAN("{\"level\":50}"), LOG_LINE_INFO},
        {SPAN("{\"level\":\"silly\"}"), LOG_LINE_INFO},
        {SPAN("{\"level\""), LOG_LINE_INFO},
        {SPAN("{\"level\":\"TRACE\\"), LOG_LINE_INFO},
        {SPAN("{"), LOG_LINE_INFO},
        {SPAN("]}{\"level\":\"TRACE\"}"), LOG_LINE_INFO},
        {SPAN("{}{\"level\":\"TRACE\"}"), LOG_LINE_INFO},
        {SPAN("level: TRACE"), LOG_LINE_INFO},
        {SPAN(""), LOG_LINE_INFO},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (log_level_of_line(cases[i].line) != cases[i].level)
            fail_msg("case %zu: %.*s", i, SPAN_ARG(cases[i].line));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_in_any_case_and_pythons),
        cmocka_unit_test(test_level_of_a_json_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
