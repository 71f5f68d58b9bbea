#include "worker/platform_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

static void assert_line(struct span line, const char *expected)
{
    assert_int_equal(line.length, strlen(expected));
    assert_memory_equal(line.data, expected, line.length);
}

static void test_start_and_end(void **state)
{
    char text[PLATFORM_LINE_BYTES];

    (void)state;
    assert_line(platform_line_start(text, "id-1", "$LATEST"), "START RequestId: id-1 Version: $LATEST\n");
    assert_line(platform_line_end(text, "id-1"), "END RequestId: id-1\n");
}

static void test_init_start_names_the_runtime_as_the_service_does(void **state)
{
    char text[PLATFORM_LINE_BYTES];

    (void)state;
    assert_line(platform_line_init_start(text, "python3.12", "arn:x"),
                "INIT_START Runtime Version: python:3.12.v1\tRuntime Version ARN: arn:x\n");
    assert_line(platform_line_init_start(text, "nodejs20.x", NULL), "INIT_START Runtime Version: nodejs:20.v1\n");
    assert_line(platform_line_init_start(text, "provided.al2023", NULL),
                "INIT_START Runtime Version: provided:al2023.v1\n");
}

static void test_cold_report_has_init_duration_and_bills_it(void **state)
{
    char text[PLATFORM_LINE_BYTES];
    struct platform_report report = {
        .request_id = "id-1", .duration_ns = 3010000, .init_ns = 110100000, .memory_mib = 128, .memory_used_mib = 36};

    (void)state;
    assert_line(platform_line_report(text, &report),
                "REPORT RequestId: id-1\tDuration: 3.01 ms\tBilled Duration: 114 ms\tMemory Size: 128 MB\tMax Memory "
                "Used: 36 MB\tInit Duration: 110.10 ms\t\n");
}

static void test_warm_report_has_no_init_duration(void **state)
{
    char text[PLATFORM_LINE_BYTES];
    struct platform_report report = {
        .request_id = "id-1", .duration_ns = 1234567, .init_ns = -1, .memory_mib = 1024, .memory_used_mib = 7};

    (void)state;
    assert_line(platform_line_report(text, &report), "REPORT RequestId: id-1\tDuration: 1.23 ms\tBilled Duration: 2 "
                                                     "ms\tMemory Size: 1024 MB\tMax Memory Used: 7 MB\t\n");
}

static void test_failed_reports_say_how(void **state)
{
    char text[PLATFORM_LINE_BYTES];
    struct platform_report report = {.request_id = "i",
                                     .duration_ns = 1000000000,
                                     .init_ns = -1,
                                     .memory_mib = 128,
                                     .memory_used_mib = 1,
                                     .status = PLATFORM_TIMEOUT};

    (void)state;
    assert_line(platform_line_report(text, &report),
                "REPORT RequestId: i\tDuration: 1000.00 ms\tBilled Duration: 1000 ms\tMemory Size: 128 MB\tMax Memory "
                "Used: 1 MB\tStatus: timeout\n");
    report.status = PLATFORM_ERROR;
    report.error_type = "Runtime.ExitError";
    assert_line(platform_line_report(text, &report),
                "REPORT RequestId: i\tDuration: 1000.00 ms\tBilled Duration: 1000 ms\tMemory Size: 128 MB\tMax Memory "
                "Used: 1 MB\tStatus: error\tError Type: Runtime.ExitError\n");
}

static void test_init_report(void **state)
{
    char text[PLATFORM_LINE_BYTES];

    (void)state;
    assert_line(platform_line_init_report(text, 10170000, "init", PLATFORM_ERROR, "Runtime.ExitError"),
                "INIT_REPORT Init Duration: 10.17 ms\tPhase: init\tStatus: error\tError Type: Runtime.ExitError\n");
    assert_line(platform_line_init_report(text, 10000000000, "invoke", PLATFORM_TIMEOUT, NULL),
                "INIT_REPORT Init Duration: 10000.00 ms\tPhase: invoke\tStatus: timeout\n");
    assert_line(platform_line_init_report(text, 5000000, "init", PLATFORM_SUCCESS, NULL),
                "INIT_REPORT Init Duration: 5.00 ms\tPhase: init\tStatus: success\n");
}

static void test_billed_time_rounds_up(void **state)
{
    (void)state;
    assert_int_equal(platform_billed_ms(0, -1), 0);
    assert_int_equal(platform_billed_ms(1, -1), 1);
    assert_int_equal(platform_billed_ms(1000000, -1), 1);
    assert_int_equal(platform_billed_ms(1000001, -1), 2);
    assert_int_equal(platform_billed_ms(600000, 600000), 2);
}

static void test_extension_lines_tell_state_and_cause(void **state)
{
    char text[PLATFORM_LINE_BYTES];

    (void)state;
    assert_line(platform_line_extension(text, "agent", "Ready", "INVOKE, SHUTDOWN", ""),
                "EXTENSION\tName: agent\tState: Ready\tEvents: [INVOKE, SHUTDOWN]\n");
    assert_line(platform_line_extension(text, "agent", "LaunchError", "", "PermissionDenied"),
                "EXTENSION\tName: agent\tState: LaunchError\tEvents: []\tError Type: PermissionDenied\n");
}

static void test_subscription_lines_name_the_types(void **state)
{
    char text[PLATFORM_LINE_BYTES];

    (void)state;
    assert_line(platform_line_subscription(text, "TELEMETRY", "agent", 7),
                "TELEMETRY\tName: agent\tState: Subscribed\tTypes: [Platform, Function, Extension]\n");
    assert_line(platform_line_subscription(text, "LOGS", "agent", 2),
                "LOGS\tName: agent\tState: Subscribed\tTypes: [Function]\n");
}

static void test_absurdly_long_names_are_cut_and_still_end_the_line(void **state)
{
    char text[PLATFORM_LINE_BYTES];
    char name[2000];
    struct span line;

    (void)state;
    memset(name, 'x', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    line = platform_line_start(text, name, name);
    assert_int_equal(line.length, PLATFORM_LINE_BYTES);
    assert_int_equal(line.data[line.length - 1], '\n');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_start_and_end),
        cmocka_unit_test(test_init_start_names_the_runtime_as_the_service_does),
        cmocka_unit_test(test_cold_report_has_init_duration_and_bills_it),
        cmocka_unit_test(test_warm_report_has_no_init_duration),
        cmocka_unit_test(test_failed_reports_say_how),
        cmocka_unit_test(test_init_report),
        cmocka_unit_test(test_billed_time_rounds_up),
        cmocka_unit_test(test_extension_lines_tell_state_and_cause),
        cmocka_unit_test(test_subscription_lines_name_the_types),
        cmocka_unit_test(test_absurdly_long_names_are_cut_and_still_end_the_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
