#include "worker/platform_event.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#define TIME_NS (INT64_C(1767225600123) * NS_PER_MS)
#define TIME    "{\"time\":\"2026-01-01T00:00:00.123Z\",\"type\":"

static const struct platform_source source = {
    .initialization_type = "on-demand",
    .runtime = "nodejs22.x",
    .runtime_version_arn = "arn:aws:lambda:eu-central-1::runtime:77",
    .function_name = "shop",
    .function_version = "$LATEST",
    .instance_id = "2026/01/01/shop[$LATEST]22be",
    .memory_mib = 256,
};

static const struct platform_outcome success = {PLATFORM_SUCCESS, NULL};

static void assert_event(int r, struct buffer *buffer, const char *expected)
{
    assert_int_equal(r, 0);
    assert_non_null(buffer_terminate(buffer));
    assert_string_equal(buffer->data, expected);
    buffer_deinit(buffer);
}

static void test_init_start_names_instance_and_runtime(void **state)
{
    CLEANUP(buffer_deinit) struct buffer buffer = BUFFER_INIT;

    (void)state;
    assert_event(platform_event_init_start(&buffer, TIME_NS, &source, "init"), &buffer,
                 TIME "\"platform.initStart\",\"record\":{\"initializationType\":\"on-demand\",\"phase\":\"init\","
                      "\"runtimeVersion\":\"nodejs:22.v1\","
                      "\"runtimeVersionArn\":\"arn:aws:lambda:eu-central-1::runtime:77\",\"functionName\":\"shop\","
                      "\"functionVersion\":\"$LATEST\",\"instanceId\":\"2026/01/01/shop[$LATEST]22be\","
                      "\"instanceMaxMemory\":268435456}}");
}

static void test_end_of_init_says_how_and_how_long(void **state)
{
    CLEANUP(buffer_deinit) struct buffer buffer = BUFFER_INIT;
    const struct platform_outcome failure = {PLATFORM_ERROR, "Runtime.ExitError"};

    (void)state;
    assert_event(platform_event_init_runtime_done(&buffer, TIME_NS, &source, "init", failure), &buffer,
                 TIME "\"platform.initRuntimeDone\",\"record\":{\"initializationType\":\"on-demand\","
                      "\"phase\":\"init\",\"status\":\"error\",\"errorType\":\"Runtime.ExitError\"}}");
    assert_event(platform_event_init_report(&buffer, TIME_NS, &source, "init", success, 463512000), &buffer,
                 TIME "\"platform.initReport\",\"record\":{\"initializationType\":\"on-demand\",\"phase\":\"init\","
                      "\"status\":\"success\",\"metrics\":{\"durationMs\":463.512}}}");
}

static void test_start_and_end_of_an_invocation(void **state)
{
    CLEANUP(buffer_deinit) struct buffer buffer = BUFFER_INIT;
    const struct platform_outcome timeout = {PLATFORM_TIMEOUT, NULL};

    (void)state;
    assert_event(platform_event_start(&buffer, TIME_NS, &source, "id-1", "arn:f"), &buffer,
                 TIME "\"platform.start\",\"record\":{\"requestId\":\"id-1\",\"functionArn\":\"arn:f\","
                      "\"version\":\"$LATEST\"}}");
    assert_event(platform_event_runtime_done(&buffer, TIME_NS, "id-1", timeout, 5001182000, 0), &buffer,
                 TIME "\"platform.runtimeDone\",\"record\":{\"requestId\":\"id-1\",\"status\":\"timeout\","
                      "\"metrics\":{\"durationMs\":5001.182,\"producedBytes\":0}}}");
}

static void test_report_cold_and_warm(void **state)
{
    CLEANUP(buffer_deinit) struct buffer buffer = BUFFER_INIT;
    struct platform_report report = {.request_id = "id-1",
                                     .duration_ns = 1233960000,
                                     .init_ns = 463512000,
                                     .memory_mib = 256,
                                     .memory_used_mib = 123};

    (void)state;
    assert_event(platform_event_report(&buffer, TIME_NS, &report), &buffer,
                 TIME "\"platform.report\",\"record\":{\"requestId\":\"id-1\",\"metrics\":{\"durationMs\":1233.96,"
                      "\"billedDurationMs\":1698,\"memorySizeMB\":256,\"maxMemoryUsedMB\":123,"
                      "\"initDurationMs\":463.512},\"status\":\"success\"}}");
    report.duration_ns = 5 * NS_PER_S;
    report.init_ns = -1;
    report.status = PLATFORM_TIMEOUT;
    assert_event(platform_event_report(&buffer, TIME_NS, &report), &buffer,
                 TIME "\"platform.report\",\"record\":{\"requestId\":\"id-1\",\"metrics\":{\"durationMs\":5000.0,"
                      "\"billedDurationMs\":5000,\"memorySizeMB\":256,\"maxMemoryUsedMB\":123},"
                      "\"status\":\"timeout\"}}");
}

static void test_extensions_with_their_events(void **state)
{
    CLEANUP(buffer_deinit) struct buffer buffer = BUFFER_INIT;

    (void)state;
    assert_event(platform_event_extension(&buffer, TIME_NS, "tracer", "Ready", 3, ""), &buffer,
                 TIME "\"platform.extension\",\"record\":{\"name\":\"tracer\",\"state\":\"Ready\","
                      "\"events\":[\"INVOKE\",\"SHUTDOWN\"]}}");
    assert_event(platform_event_extension(&buffer, TIME_NS, "x", "LaunchError", 0, "Extension.LaunchError"), &buffer,
                 TIME "\"platform.extension\",\"record\":{\"name\":\"x\",\"state\":\"LaunchError\",\"events\":[],"
                      "\"errorType\":\"Extension.LaunchError\"}}");
}

static void test_dropped_logs_are_counted(void **state)
{
    CLEANUP(buffer_deinit) struct buffer buffer = BUFFER_INIT;

    (void)state;
    assert_event(platform_event_logs_dropped(&buffer, TIME_NS, 3, 4096, "disk \"full\""), &buffer,
                 TIME "\"platform.logsDropped\",\"record\":{\"reason\":\"disk \\\"full\\\"\",\"droppedRecords\":3,"
                      "\"droppedBytes\":4096}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_init_start_names_instance_and_runtime),
        cmocka_unit_test(test_end_of_init_says_how_and_how_long),
        cmocka_unit_test(test_start_and_end_of_an_invocation),
        cmocka_unit_test(test_report_cold_and_warm),
        cmocka_unit_test(test_extensions_with_their_events),
        cmocka_unit_test(test_dropped_logs_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
