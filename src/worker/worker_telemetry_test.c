/* The Telemetry API and the Logs API, as subscribers hear them. */
#include "worker/testing.h"

#include "worker/environment.h" /* tests wait for states that only show inside */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
/* cmocka.h needs setjmp.h, stdarg.h, stddef.h and stdint.h */
#include <cmocka.h>

/* A cold invocation, a warm one, one that times out; what the extension of this name got of it. */
static struct buffer telemetry_of(struct fixture *fixture, const char *name, char ids[3][UUID_BYTES])
{
    struct subject subject = {0};
    struct call call;
    static const char *const commands[] = {"print one", "print two", "sleep 5000"};

    ADD_EXTENSIONS(fixture, name);
    start_ready(fixture, &subject, (struct options){.timeout_s = 1});
    assert_true(subject.ready_ok);
    for (size_t i = 0; i < 3; i++) {
        run_call(fixture, &subject, &call, commands[i]);
        memcpy(ids[i], call.request_id, UUID_BYTES);
        call_deinit(&call);
    }
    RUN_UNTIL(fixture, subject.environment->state == ENVIRONMENT_STALE);
    retire(fixture, &subject);
    return read_log(fixture);
}

static void assert_follows_id(const char **at, const char *type, const char *before, const char *id)
{
    char text[256];

    snprintf(text, sizeof(text), "\"type\":\"%s\",\"record\":{%s\"requestId\":\"%s\"", type, before, id);
    assert_follows(at, text);
}

static void test_telemetry_tells_of_everything_in_order(void **state)
{
    CLEANUP(buffer_deinit) struct buffer log = BUFFER_INIT;
    char ids[3][UUID_BYTES];
    const char *at;

    log = telemetry_of(*state, "telemetry", ids);
    assert_in(&log, "\nTELEMETRY\tName: telemetry\tState: Subscribed\tTypes: [Platform, Function]\n");
    assert_in(&log, "telemetry: \"OK\"\n");
    at = log.data;
    assert_follows(&at, "got: [{\"time\":\"20");
    assert_follows(
        &at, "\"type\":\"platform.initStart\",\"record\":{\"initializationType\":\"on-demand\",\"phase\":\"init\","
             "\"runtimeVersion\":\"provided:al2023.v1\",\"functionName\":\"shop\",\"functionVersion\":"
             "\"$LATEST\",\"instanceId\":\"");
    assert_follows(&at, "\",\"instanceMaxMemory\":134217728}}");
    assert_in(&log, "\"type\":\"platform.telemetrySubscription\",\"record\":{\"name\":\"telemetry\",\"state\":"
                    "\"Subscribed\",\"types\":[\"platform\",\"function\"]}}");
    assert_follows(&at,
                   "\"type\":\"platform.initRuntimeDone\",\"record\":{\"initializationType\":\"on-demand\",\"phase\":"
                   "\"init\",\"status\":\"success\"}}");
    assert_follows(&at,
                   "\"type\":\"platform.extension\",\"record\":{\"name\":\"telemetry\",\"state\":\"Ready\",\"events\":"
                   "[\"INVOKE\",\"SHUTDOWN\"]}}");
    assert_follows(
        &at, "\"type\":\"platform.initReport\",\"record\":{\"initializationType\":\"on-demand\",\"phase\":\"init\","
             "\"status\":\"success\",\"metrics\":{\"durationMs\":");
    for (size_t i = 0; i < 2; i++) {
        assert_follows_id(&at, "platform.start", "", ids[i]);
        assert_follows(&at, ",\"version\":\"$LATEST\"}}");
        assert_follows(&at,
                       i ? "\"type\":\"function\",\"record\":\"two\"}" : "\"type\":\"function\",\"record\":\"one\"}");
        assert_follows_id(&at, "platform.runtimeDone", "", ids[i]);
        assert_follows(&at, ",\"status\":\"success\",\"metrics\":{\"durationMs\":");
        assert_follows(&at, ",\"producedBytes\":7},\"spans\":[{\"name\":\"responseLatency\",\"start\":\"20");
        assert_follows(&at, "{\"name\":\"responseDuration\"");
        assert_follows(&at, "{\"name\":\"runtimeOverhead\"");
        assert_follows_id(&at, "platform.report", "", ids[i]);
        assert_follows(&at, ",\"metrics\":{\"durationMs\":");
        assert_follows(&at, ",\"memorySizeMB\":128,\"maxMemoryUsedMB\":");
        assert_follows(&at, i ? "},\"status\":\"success\"}}" : ",\"initDurationMs\":");
    }
    assert_follows_id(&at, "platform.start", "", ids[2]);
    assert_follows_id(&at, "platform.runtimeDone", "", ids[2]);
    assert_follows(&at, ",\"status\":\"timeout\",");
    assert_follows_id(&at, "platform.report", "", ids[2]);
    assert_follows(&at, "},\"status\":\"timeout\"}}");
    assert_not_in(&log, "platform.end\"");
    assert_not_in(&log, "platform.fault\"");
    assert_not_in(&log, "\"type\":\"extension\"");
}

static void test_logs_api_has_its_own_events(void **state)
{
    CLEANUP(buffer_deinit) struct buffer log = BUFFER_INIT;
    char ids[3][UUID_BYTES];
    const char *at;

    log = telemetry_of(*state, "logs", ids);
    assert_in(&log, "\nLOGS\tName: logs\tState: Subscribed\tTypes: [Platform, Function]\n");
    at = log.data;
    assert_follows(&at,
                   "\"type\":\"platform.logsSubscription\",\"record\":{\"name\":\"logs\",\"state\":\"Subscribed\",");
    assert_follows(&at, "\"type\":\"platform.extension\"");
    assert_follows_id(&at, "platform.start", "", ids[0]);
    assert_follows(&at, "\"type\":\"function\",\"record\":\"one\"}");
    assert_follows_id(&at, "platform.runtimeDone", "", ids[0]);
    assert_follows(&at, ",\"status\":\"success\"}}");
    assert_follows_id(&at, "platform.end", "", ids[0]);
    assert_follows(&at, "\"type\":\"platform.report\"");
    assert_follows(&at, "\"type\":\"platform.fault\",\"record\":\"");
    assert_follows(&at, "Task timed out after 1.00 seconds\"}");
    assert_not_in(&log, "platform.init");
    assert_not_in(&log, "telemetrySubscription");
}

static void test_telemetry_by_tcp_is_one_json_a_line(void **state)
{
    CLEANUP(buffer_deinit) struct buffer log = BUFFER_INIT;
    char ids[3][UUID_BYTES];
    const char *at;

    log = telemetry_of(*state, "tcp", ids);
    at = log.data;
    assert_follows(&at, "\ngot: {\"time\":\"20");
    assert_follows(&at, "\"type\":\"platform.initStart\"");
    assert_follows(&at, "}\n");
    assert_in(&log, "\"type\":\"extension\",\"record\":\"tcp: {\\\"functionName\\\":");
    at = log.data;
    assert_follows(&at, "\"type\":\"function\",\"record\":\"one\"}\n");
    assert_follows_id(&at, "platform.report", "", ids[1]);
}

static void test_refused_batches_are_sent_again(void **state)
{
    CLEANUP(buffer_deinit) struct buffer log = BUFFER_INIT;
    char ids[3][UUID_BYTES];
    const char *at;

    log = telemetry_of(*state, "busy-telemetry", ids);
    at = log.data;
    assert_follows(&at, "\"type\":\"platform.initStart\"");
    assert_follows_id(&at, "platform.report", "", ids[0]);
}

static void test_batches_given_up_are_told(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    CLEANUP(buffer_deinit) struct buffer log = BUFFER_INIT;
    const char *at;

    ADD_EXTENSIONS(fixture, "deaf-telemetry");
    start_ready(fixture, &subject, (struct options){0});
    expect_echo(fixture, &subject, "sleep 1200", "slept"); /* five attempts take 750 ms */
    expect_echo(fixture, &subject, "print hello", "printed");
    retire(fixture, &subject);
    log = read_log(fixture);
    assert_not_in(&log, "platform.initStart");
    at = log.data;
    assert_follows(&at,
                   "\"type\":\"platform.logsDropped\",\"record\":{\"reason\":\"Consumer seems to have fallen behind");
    assert_follows(&at, "\"droppedRecords\":");
    assert_true(atoi(at) >= 1);
    assert_follows(&at, "\"droppedBytes\":");
    assert_true(atoi(at) >= 100);
    assert_follows(&at, "\"type\":\"function\",\"record\":\"hello\"}");
}

static void test_lines_of_json_logs_are_records(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    CLEANUP(buffer_deinit) struct buffer log = BUFFER_INIT;

    ADD_EXTENSIONS(fixture, "old-tcp", "tcp");
    start_ready(fixture, &subject, (struct options){.log_format = "JSON"});
    expect_echo(fixture, &subject, "json", "printed");
    expect_echo(fixture, &subject, "print {no json", "printed");
    retire(fixture, &subject);
    log = read_log(fixture);
    assert_in(&log, "\"type\":\"function\",\"record\":{\"level\":\"ERROR\"}}\n");
    assert_in(&log, "\"type\":\"function\",\"record\":\"{\\\"level\\\":\\\"ERROR\\\"}\"}\n");
    assert_in(&log, "\"type\":\"function\",\"record\":\"{no json\"}\n");
    assert_in(&log, "\"type\":\"platform.telemetrySubscription\",\"record\":{\"name\":\"tcp\"");
}

static void test_wrong_subscriptions_are_refused(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    CLEANUP(buffer_deinit) struct buffer log = BUFFER_INIT;

    ADD_EXTENSIONS(fixture, "bad");
    start_ready(fixture, &subject, (struct options){0});
    assert_true(subject.ready_ok);
    assert_null(subject.environment->telemetry);
    retire(fixture, &subject);
    log = read_log(fixture);
    assert_in(&log, "bad: {\"errorMessage\":\"schemaVersion should be a string; destination should be provided; types "
                    "should not be empty\",\"errorType\":\"ValidationError\"}\n");
    assert_in(&log, "bad: 405 method not allowed\n");
    assert_in(&log, "\"errorType\":\"Extension.MissingExtensionIdentifier\"}\n");
}

/* A subscriber that nobody hears: events are dropped and memory stays bounded. */
static void test_dead_subscriber_does_not_disturb(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};

    ADD_EXTENSIONS(fixture, "dead-telemetry");
    start_ready(fixture, &subject, (struct options){0});
    expect_echo(fixture, &subject, "flood 8000000", "flooded");
    expect_echo(fixture, &subject, "hello", "hello");
    retire(fixture, &subject);
}

static void test_environment_without_subscription_keeps_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};

    start_ready(fixture, &subject, (struct options){0});
    expect_echo(fixture, &subject, "print hello", "printed");
    assert_null(subject.environment->telemetry);
    retire(fixture, &subject);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_telemetry_tells_of_everything_in_order),
        CASE(test_logs_api_has_its_own_events),
        CASE(test_telemetry_by_tcp_is_one_json_a_line),
        CASE(test_refused_batches_are_sent_again),
        CASE(test_batches_given_up_are_told),
        CASE(test_lines_of_json_logs_are_records),
        CASE(test_wrong_subscriptions_are_refused),
        CASE(test_dead_subscriber_does_not_disturb),
        CASE(test_environment_without_subscription_keeps_nothing),
    };

    return RUN_CASES(tests);
}
