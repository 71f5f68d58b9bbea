#include "worker/invocation_error.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

static void assert_text(const struct buffer *buffer, const char *expected)
{
    assert_int_equal(buffer->length, strlen(expected));
    assert_memory_equal(buffer->data, expected, buffer->length);
}

static void test_caller_error_has_the_recorded_form(void **state)
{
    CLEANUP(buffer_deinit) struct buffer buffer = BUFFER_INIT;

    (void)state;
    assert_int_equal(
        invocation_error_json("Sandbox.Timedout", "RequestId: x Error: Task timed out after 1.00 seconds", &buffer), 0);
    assert_text(&buffer, "{\"errorType\":\"Sandbox.Timedout\",\"errorMessage\":\"RequestId: x Error: Task timed out "
                         "after 1.00 seconds\"}");
}

static void test_runtime_error_names_the_message_first(void **state)
{
    CLEANUP(buffer_deinit) struct buffer buffer = BUFFER_INIT;

    (void)state;
    assert_int_equal(runtime_api_error_json("InvalidRequestID", "Invalid request ID", &buffer), 0);
    assert_text(&buffer, "{\"errorMessage\":\"Invalid request ID\",\"errorType\":\"InvalidRequestID\"}");
}

static void test_message_is_escaped(void **state)
{
    CLEANUP(buffer_deinit) struct buffer buffer = BUFFER_INIT;

    (void)state;
    assert_int_equal(invocation_error_json("T", "a\"b\\c\n", &buffer), 0);
    assert_text(&buffer, "{\"errorType\":\"T\",\"errorMessage\":\"a\\\"b\\\\c\\n\"}");
}

static void test_exit_texts(void **state)
{
    char text[INVOCATION_MESSAGE_BYTES];

    (void)state;
    assert_string_equal(invocation_error_exit(0, 0, text), "Runtime exited without providing a reason");
    assert_string_equal(invocation_error_exit(127, 0, text), "Runtime exited with error: exit status 127");
    assert_string_equal(invocation_error_exit(0, SIGKILL, text), "Runtime exited with error: signal: killed");
    assert_string_equal(invocation_error_exit(0, SIGSEGV, text),
                        "Runtime exited with error: signal: segmentation fault");
    assert_string_equal(invocation_error_exit(0, 64, text), "Runtime exited with error: signal: signal 64");
}

static void test_exec_and_timeout_texts(void **state)
{
    char text[INVOCATION_MESSAGE_BYTES];

    (void)state;
    assert_string_equal(invocation_error_exec("/var/task/bootstrap", EACCES, text),
                        "fork/exec /var/task/bootstrap: permission denied");
    assert_string_equal(invocation_error_exec("/var/task/bootstrap", ENOEXEC, text),
                        "fork/exec /var/task/bootstrap: exec format error");
    assert_string_equal(invocation_error_timeout(3, text), "Task timed out after 3.00 seconds");
}

static void test_extensions_exit_in_their_own_words(void **state)
{
    char text[INVOCATION_MESSAGE_BYTES];

    (void)state;
    assert_string_equal(invocation_error_extension_exit(0, 0, text), "exit code 0");
    assert_string_equal(invocation_error_extension_exit(2, 0, text), "exit status 2");
    assert_string_equal(invocation_error_extension_exit(0, 9, text), "signal: killed");
}

static void test_error_type_must_be_runtime_or_function(void **state)
{
    (void)state;
    assert_true(invocation_error_type_is_valid(SPAN("Runtime.ImportModuleError")));
    assert_true(invocation_error_type_is_valid(SPAN("Function.Mine")));
    assert_false(invocation_error_type_is_valid(SPAN("Runtime.")));
    assert_false(invocation_error_type_is_valid(SPAN("Sandbox.Timedout")));
    assert_false(invocation_error_type_is_valid(SPAN("Runtime.a\tb")));
    assert_false(invocation_error_type_is_valid(SPAN_NONE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_caller_error_has_the_recorded_form),
        cmocka_unit_test(test_runtime_error_names_the_message_first),
        cmocka_unit_test(test_message_is_escaped),
        cmocka_unit_test(test_exit_texts),
        cmocka_unit_test(test_exec_and_timeout_texts),
        cmocka_unit_test(test_extensions_exit_in_their_own_words),
        cmocka_unit_test(test_error_type_must_be_runtime_or_function),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
