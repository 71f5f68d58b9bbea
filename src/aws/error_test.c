#include "aws/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void assert_body(int (*write)(const struct aws_error *, struct buffer *), const struct aws_error *error,
                        const char *expected)
{
    struct buffer CLEANUP(buffer_deinit) body = BUFFER_INIT;

    assert_int_equal(write(error, &body), 0);
    assert_string_equal(buffer_terminate(&body), expected);
}

static void test_no_error_needs_no_cleaning(void **state)
{
    struct aws_error error = {0};

    (void)state;
    assert_int_equal(error.error_class, AWS_ERROR_NONE);
    aws_error_deinit(&error);
    assert_int_equal(aws_error_set(NULL, AWS_ERROR_SERVICE, "nobody reads this"), AWS_ERROR_SERVICE);
}

/* The four bodies as recorded: key of the message, order, Type or none. */
static void test_bodies_are_those_recorded(void **state)
{
    struct aws_error error = {0};

    (void)state;
    assert_int_equal(aws_error_set(&error, AWS_ERROR_RESOURCE_NOT_FOUND, "Function not found: %s", "arn:x"),
                     AWS_ERROR_RESOURCE_NOT_FOUND);
    assert_int_equal(error.status, 404);
    assert_body(aws_error_write_rest_json, &error, "{\"Type\":\"User\",\"Message\":\"Function not found: arn:x\"}");
    aws_error_set(&error, AWS_ERROR_INVALID_PARAMETER_VALUE, "Could not unzip");
    assert_body(aws_error_write_rest_json, &error, "{\"Type\":\"User\",\"message\":\"Could not unzip\"}");
    aws_error_set(&error, AWS_ERROR_VALIDATION, "1 validation error detected");
    assert_body(aws_error_write_rest_json, &error, "{\"message\":\"1 validation error detected\"}");
    aws_error_set(&error, AWS_ERROR_TOO_MANY_REQUESTS, "Rate Exceeded.");
    aws_error_add_member(&error, "Reason", "ReservedFunctionConcurrentInvocationLimitExceeded");
    assert_int_equal(error.status, 429);
    assert_body(
        aws_error_write_rest_json, &error,
        "{\"Reason\":\"ReservedFunctionConcurrentInvocationLimitExceeded\",\"Type\":\"User\",\"message\":\"Rate "
        "Exceeded.\"}");
    aws_error_deinit(&error);
}

static void test_setting_again_forgets_the_members(void **state)
{
    struct aws_error error = {0};

    (void)state;
    aws_error_set(&error, AWS_ERROR_TOO_MANY_REQUESTS, "a");
    aws_error_add_member(&error, "Reason", "x");
    error.retry_after_s = 1;
    aws_error_set(&error, AWS_ERROR_SERVICE, "b");
    assert_int_equal(error.retry_after_s, 0);
    assert_body(aws_error_write_rest_json, &error, "{\"Type\":\"Service\",\"Message\":\"b\"}");
    aws_error_deinit(&error);
}

static void test_members_past_the_limit_are_dropped(void **state)
{
    struct aws_error error = {0};

    (void)state;
    aws_error_set(&error, AWS_ERROR_VALIDATION, "m");
    for (int i = 0; i < AWS_ERROR_MEMBERS + 1; i++)
        aws_error_add_member(&error, "k", "v");
    assert_int_equal(error.member_count, AWS_ERROR_MEMBERS);
    aws_error_deinit(&error);
}

static void test_messages_are_escaped(void **state)
{
    struct aws_error error = {0};

    (void)state;
    aws_error_set(&error, AWS_ERROR_VALIDATION, "%s", "\"q\" \\ \n \x01 \xff \xc3\xa9");
    assert_body(aws_error_write_rest_json, &error,
                "{\"message\":\"\\\"q\\\" \\\\ \\n \\u0001 \xef\xbf\xbd \xc3\xa9\"}");
    aws_error_deinit(&error);
}

static void test_every_class_has_a_name_and_a_status(void **state)
{
    (void)state;
    for (int i = AWS_ERROR_NONE + 1; i < AWS_ERROR_CUSTOM; i++) {
        struct aws_error error = {0};
        const char *code = aws_error_code((enum aws_error_class)i);
        assert_non_null(code);
        assert_int_equal(aws_error_class_of(span_from(code)), i);
        aws_error_set(&error, (enum aws_error_class)i, "x");
        assert_true(error.status >= 400 && error.status <= 502);
        assert_non_null(error.message_key);
        if (error.type)
            assert_string_equal(error.type, error.status >= 500 ? "Service" : "User");
        aws_error_deinit(&error);
    }
    assert_int_equal(aws_error_class_of(SPAN("NoSuchException")), AWS_ERROR_NONE);
    assert_null(aws_error_code(AWS_ERROR_CUSTOM));
    assert_null(aws_error_code(AWS_ERROR_NONE));
}

static void test_json_protocol_names_the_type_in_the_body(void **state)
{
    struct aws_error error = {0};

    (void)state;
    assert_int_equal(aws_error_set_custom(&error, 400, "ObjectNotFoundException", NULL, "No %s", "target"),
                     AWS_ERROR_CUSTOM);
    assert_body(aws_error_write_json, &error, "{\"__type\":\"ObjectNotFoundException\",\"message\":\"No target\"}");
    assert_body(aws_error_write_rest_json, &error, "{\"message\":\"No target\"}");
    aws_error_deinit(&error);
}

static void test_query_protocol_escapes_xml(void **state)
{
    struct buffer CLEANUP(buffer_deinit) body = BUFFER_INIT;
    struct aws_error error = {0};

    (void)state;
    aws_error_set_custom(&error, 400, "ValidationError", NULL, "a<b>&\x01\xff\xc3\xa9");
    assert_int_equal(
        aws_error_write_query(&error, "http://monitoring.amazonaws.com/doc/2010-08-01/", SPAN("id"), &body), 0);
    assert_string_equal(buffer_terminate(&body),
                        "<ErrorResponse xmlns=\"http://monitoring.amazonaws.com/doc/2010-08-01/\">\n  <Error>\n    "
                        "<Type>Sender</Type>\n    <Code>ValidationError</Code>\n    "
                        "<Message>a&lt;b&gt;&amp;??\xc3\xa9</Message>\n  </Error>\n  "
                        "<RequestId>id</RequestId>\n</ErrorResponse>\n");
    aws_error_deinit(&error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_error_needs_no_cleaning),
        cmocka_unit_test(test_bodies_are_those_recorded),
        cmocka_unit_test(test_setting_again_forgets_the_members),
        cmocka_unit_test(test_members_past_the_limit_are_dropped),
        cmocka_unit_test(test_messages_are_escaped),
        cmocka_unit_test(test_every_class_has_a_name_and_a_status),
        cmocka_unit_test(test_json_protocol_names_the_type_in_the_body),
        cmocka_unit_test(test_query_protocol_escapes_xml),
    };

    return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
