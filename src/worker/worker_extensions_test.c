/* Extensions, external and internal: registration, events, failures, the Shutdown phase. */
#include "worker/testing.h"

#include "worker/environment.h" /* tests wait for states that only show inside */
#include "worker/environment_extensions.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
/* cmocka.h needs setjmp.h, stdarg.h, stddef.h and stdint.h */
#include <cmocka.h>

static void test_external_extension_hears_of_everything(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;
    CLEANUP(buffer_deinit) struct buffer log = BUFFER_INIT;
    char line[256];
    const char *at;

    ADD_EXTENSIONS(fixture, "agent-variables");
    start_ready(fixture, &subject, (struct options){0});
    assert_true(subject.ready_ok);
    run_call(fixture, &subject, &call, "hello");
    assert_payload(&call, "hello");
    snprintf(line, sizeof(line),
             ",\"requestId\":\"%s\",\"invokedFunctionArn\":\"%s\",\"tracing\":{\"type\":\"X-Amzn-Trace-Id\",\"value\":"
             "\"Root=1-",
             call.request_id, call.invocation.invoked_arn);
    call_deinit(&call);
    expect_echo(fixture, &subject, "again", "again");
    retire(fixture, &subject);
    log = read_log(fixture);
    at = log.data;
    assert_follows(&at, "INIT_START");
    assert_follows(&at,
                   "EXTENSION\tName: agent-variables\tState: Ready\tEvents: [INVOKE, SHUTDOWN]\nSTART RequestId: ");
    assert_in(&log, "agent-variables: {\"functionName\":\"shop\",\"functionVersion\":\"$LATEST\",\"handler\":"
                    "\"index.handler\",\"accountId\":\"000000000000\"}\n");
    at = log.data;
    assert_follows(&at, "agent-variables: {\"eventType\":\"INVOKE\",\"deadlineMs\":1");
    assert_follows(&at, line);
    assert_follows(&at, "agent-variables: {\"eventType\":\"INVOKE\"");
    assert_follows(&at, "agent-variables: {\"eventType\":\"SHUTDOWN\",\"deadlineMs\":1");
    assert_follows(&at, "\"shutdownReason\":\"spindown\"}\n");
    assert_in(&log, "agent-variables: AWS_LAMBDA_FUNCTION_NAME=shop\n");
    assert_in(&log, "agent-variables: TZ=Europe/Vienna\n");
    assert_not_in(&log, "agent-variables: _HANDLER=");
    assert_not_in(&log, "agent-variables: AWS_LAMBDA_LOG_");
    assert_not_in(&log, "agent-variables: LAMBDA_");
}

static void test_environment_is_free_when_slow_extensions_are_done(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;
    CLEANUP(buffer_deinit) struct buffer log = BUFFER_INIT;
    const char *at;

    ADD_EXTENSIONS(fixture, "quick", "slow");
    start_ready(fixture, &subject, (struct options){0});
    call_init(&call, "hello");
    call_begin(&call, &subject);
    RUN_UNTIL(fixture, call.responses);
    assert_int_equal(call.ends, 0);
    assert_int_equal(subject.environment->state, ENVIRONMENT_BUSY);
    RUN_UNTIL(fixture, call.ends);
    call_deinit(&call);
    retire(fixture, &subject);
    log = read_log(fixture);
    at = log.data;
    assert_follows(&at, "\tDuration: ");
    assert_true(atof(at) >= 300);
}

/* The first Init fails; so does the one within the invocation, whose caller is told. */
static struct buffer expect_failing_init(struct fixture *fixture, const char *type, const char *message)
{
    struct subject subject = {0};
    struct call call;
    struct buffer log;
    char line[128];

    start_ready(fixture, &subject, (struct options){0});
    assert_false(subject.ready_ok);
    run_call(fixture, &subject, &call, "hello");
    assert_error(&call, type, message);
    call_deinit(&call);
    retire(fixture, &subject);
    log = read_log(fixture);
    snprintf(line, sizeof(line), "\tPhase: init\tStatus: error\tError Type: %s\n", type);
    assert_in(&log, line);
    snprintf(line, sizeof(line), "\tPhase: invoke\tStatus: error\tError Type: %s\n", type);
    assert_in(&log, line);
    return log;
}

static void test_extension_that_dies_unregistered_fails_init(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(buffer_deinit) struct buffer log = BUFFER_INIT;

    ADD_EXTENSIONS(fixture, "agent", "crash");
    log = expect_failing_init(fixture, "Extension.Crash", "exit status 3");
    assert_in(&log, "EXTENSION\tName: crash\tState: Started\tEvents: []\n");
}

static void test_extension_that_leaves_after_registration_fails_init(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(buffer_deinit) struct buffer log = BUFFER_INIT;

    ADD_EXTENSIONS(fixture, "leave-invoke");
    log = expect_failing_init(fixture, "Extension.Crash", "exit code 0");
    assert_in(&log, "EXTENSION\tName: leave-invoke\tState: Registered\tEvents: [INVOKE]\n");
}

static void test_posted_init_error_of_an_extension_is_named(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(buffer_deinit) struct buffer log = BUFFER_INIT;

    ADD_EXTENSIONS(fixture, "initerror-silent");
    log = expect_failing_init(fixture, "Extension.InitError", "exit status 1");
    assert_in(&log, "EXTENSION\tName: initerror-silent\tState: InitError\tEvents: []\tError Type: Extension.Mine\n");
}

static void test_extension_that_cannot_be_executed_fails_init(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(buffer_deinit) struct buffer log = BUFFER_INIT;
    char path[PATH_MAX];

    ADD_EXTENSIONS(fixture, "plain");
    snprintf(path, sizeof(path), "%s/extensions/plain", fixture->layer_dir);
    assert_int_equal(chmod(path, 0644), 0);
    log = expect_failing_init(fixture, "Extension.LaunchError", "fork/exec /opt/extensions/plain: permission denied");
    assert_in(&log, "EXTENSION\tName: plain\tState: LaunchError\tEvents: []\tError Type: PermissionDenied\n");
}

static void test_eleventh_external_extension_fails_init(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(buffer_deinit) struct buffer log = BUFFER_INIT;

    ADD_EXTENSIONS(fixture, "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k");
    log = expect_failing_init(fixture, "Extension.LaunchError", "ErrTooManyExtensions");
    assert_in(&log, "EXTENSION\tName: k\tState: LaunchError\tEvents: []\tError Type: TooManyExtensions\n");
}

static void test_ten_extensions_are_allowed(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};

    ADD_EXTENSIONS(fixture, "a", "b", "c", "d", "e", "f", "g", "h", "i", "silent");
    start_ready(fixture, &subject, (struct options){0});
    assert_true(subject.ready_ok);
    expect_echo(fixture, &subject, "hello", "hello");
    expect_echo(fixture, &subject, "again", "again");
    retire(fixture, &subject);
}

static void test_extension_that_never_registers_times_out(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    CLEANUP(buffer_deinit) struct buffer log = BUFFER_INIT;

    ADD_EXTENSIONS(fixture, "hang");
    start_ready(fixture, &subject, (struct options){0});
    assert_false(subject.ready_ok);
    retire(fixture, &subject);
    log = read_log(fixture);
    assert_in(&log, "\tPhase: init\tStatus: timeout\n");
}

static void expect_failing_call(struct fixture *fixture, const char *name, const char *type, const char *message)
{
    struct subject subject = {0};
    struct call call;
    CLEANUP(buffer_deinit) struct buffer log = BUFFER_INIT;
    char line[128];

    ADD_EXTENSIONS(fixture, name, "witness");
    start_ready(fixture, &subject, (struct options){0});
    assert_true(subject.ready_ok);
    run_call(fixture, &subject, &call, "sleep 8000");
    assert_error(&call, type, message);
    assert_true(call.duration_ns < 8 * NS_PER_S);
    call_deinit(&call);
    RUN_UNTIL(fixture, subject.environment->state == ENVIRONMENT_STALE);
    retire(fixture, &subject);
    log = read_log(fixture);
    snprintf(line, sizeof(line), "\tStatus: error\tError Type: %s\n", type);
    assert_in(&log, line);
    assert_in(&log, "witness: {\"eventType\":\"SHUTDOWN\",\"deadlineMs\":1");
    assert_in(&log, ",\"shutdownReason\":\"failure\"}\n");
}

static void test_extension_that_dies_fails_the_invocation(void **state)
{
    expect_failing_call(*state, "dies", "Extension.Crash", "exit status 5");
}

static void test_posted_exit_error_fails_the_invocation(void **state)
{
    expect_failing_call(*state, "exiterror", "Extension.ExitError", "exit status 6");
}

static void test_extension_hears_of_a_timeout_and_starts_again(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;
    CLEANUP(buffer_deinit) struct buffer log = BUFFER_INIT;
    const char *at;

    ADD_EXTENSIONS(fixture, "agent");
    start_ready(fixture, &subject, (struct options){.timeout_s = 1});
    run_call(fixture, &subject, &call, "sleep 5000");
    assert_error(&call, "Sandbox.Timedout", "Task timed out after 1.00 seconds");
    call_deinit(&call);
    expect_echo(fixture, &subject, "count", "1");
    retire(fixture, &subject);
    log = read_log(fixture);
    at = log.data;
    assert_follows(&at, "Task timed out");
    assert_follows(&at, "\"shutdownReason\":\"timeout\"}\n");
    assert_follows(&at, "agent: {\"functionName\"");
    assert_follows(&at, "EXTENSION\tName: agent\tState: Ready");
    assert_follows(&at, "\"shutdownReason\":\"spindown\"}\n");
}

static void test_extension_that_does_not_exit_is_killed(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    int64_t start_ns;

    ADD_EXTENSIONS(fixture, "stubborn");
    start_ready(fixture, &subject, (struct options){0});
    start_ns = clock_monotonic_ns();
    retire(fixture, &subject);
    assert_true(clock_monotonic_ns() - start_ns >= SHUTDOWN_MS * NS_PER_MS);
}

static void test_kill_cuts_a_shutdown_phase_short(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};

    ADD_EXTENSIONS(fixture, "stubborn");
    start_ready(fixture, &subject, (struct options){0});
    environment_retire(subject.environment);
    assert_true(environment_is_ending(subject.environment));
    environment_kill(subject.environment);
    assert_false(limit_is_running(&subject.environment->extensions->closing_limit));
    RUN_UNTIL(fixture, subject.gone);
    assert_false(subject.has_fault);
}

static void test_internal_extension_lives_in_the_runtime(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    CLEANUP(buffer_deinit) struct buffer log = BUFFER_INIT;

    start_ready(fixture, &subject, (struct options){.init = "internal \"INVOKE\""});
    assert_true(subject.ready_ok);
    expect_echo(fixture, &subject, "hello", "hello");
    expect_echo(fixture, &subject, "again", "again");
    expect_echo(fixture, &subject, "register", "403");
    retire(fixture, &subject);
    log = read_log(fixture);
    assert_in(&log, "EXTENSION\tName: inside\tState: Ready\tEvents: [INVOKE]\n");
    assert_in(&log, "runtime: SIGTERM\n");
}

static void test_runtime_without_extensions_has_no_shutdown_phase(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};

    start_ready(fixture, &subject, (struct options){0});
    assert_null(subject.environment->extensions);
    environment_retire(subject.environment);
    assert_null(subject.environment->extensions);
    RUN_UNTIL(fixture, subject.gone);
}

static void test_wrong_calls_of_the_extensions_api_are_refused(void **state)
{
    static const char *const answers[] = {
        "0: 403 {\"errorMessage\":\"Empty extension name\",\"errorType\":\"Extension.InvalidExtensionName\"}",
        "1: 403 {\"errorMessage\":\"",
        "2: 403 {\"errorMessage\":\"the body must be a JSON object\",\"errorType\":\"InvalidRequestFormat\"}",
        "3: 403 {\"errorMessage\":\"events must be a list of strings\",\"errorType\":\"InvalidRequestFormat\"}",
        "4: 403 {\"errorMessage\":\"events must be a list of strings\",\"errorType\":\"InvalidRequestFormat\"}",
        "5: 403 {\"errorMessage\":\"NOPE: ErrorInvalidEventType\",\"errorType\":\"Extension.InvalidEventType\"}",
        "6: 403 {\"errorMessage\":\"SHUTDOWN: ShutdownEventNotSupportedForInternalExtension\",\"errorType\":"
        "\"Extension.InvalidEventType\"}",
        "7: 403 {\"errorMessage\":\"Extension with this name already registered\",\"errorType\":"
        "\"Extension.InvalidExtensionState\"}",
        "8: 405 ",
        "9: 405 ",
        "10: 404 ",
        "11: 403 {\"errorMessage\":\"Missing Lambda-Extension-Identifier header\",\"errorType\":"
        "\"Extension.MissingExtensionIdentifier\"}",
        "12: 403 {\"errorMessage\":\"Invalid Lambda-Extension-Identifier\",\"errorType\":"
        "\"Extension.InvalidExtensionIdentifier\"}",
        "13: 403 {\"errorMessage\":\"Unknown extension 00000000-0000-4000-8000-000000000000\",\"errorType\":"
        "\"Extension.UnknownExtensionIdentifier\"}",
        "14: 403 {\"errorMessage\":\"Missing Lambda-Extension-Identifier header\"",
    };
    struct fixture *fixture = *state;
    struct subject subject = {0};
    CLEANUP(buffer_deinit) struct buffer log = BUFFER_INIT;

    start_ready(fixture, &subject, (struct options){.init = "misuse"});
    assert_true(subject.ready_ok);
    expect_echo(fixture, &subject, "hello", "hello");
    retire(fixture, &subject);
    log = read_log(fixture);
    for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
        assert_in(&log, answers[i]);
}

static void test_eleventh_registration_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    CLEANUP(buffer_deinit) struct buffer log = BUFFER_INIT;

    start_ready(fixture, &subject, (struct options){.init = "many"});
    assert_false(subject.ready_ok);
    retire(fixture, &subject);
    log = read_log(fixture);
    assert_in(&log, "9: 200 {");
    assert_in(&log, "10: 403 {\"errorMessage\":\"Extension limit (10) reached\",\"errorType\":"
                    "\"Extension.TooManyExtensions\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_external_extension_hears_of_everything),
        CASE(test_environment_is_free_when_slow_extensions_are_done),
        CASE(test_extension_that_dies_unregistered_fails_init),
        CASE(test_extension_that_leaves_after_registration_fails_init),
        CASE(test_posted_init_error_of_an_extension_is_named),
        CASE(test_extension_that_cannot_be_executed_fails_init),
        CASE(test_eleventh_external_extension_fails_init),
        CASE(test_ten_extensions_are_allowed),
        CASE(test_extension_that_never_registers_times_out),
        CASE(test_extension_that_dies_fails_the_invocation),
        CASE(test_posted_exit_error_fails_the_invocation),
        CASE(test_extension_hears_of_a_timeout_and_starts_again),
        CASE(test_extension_that_does_not_exit_is_killed),
        CASE(test_kill_cuts_a_shutdown_phase_short),
        CASE(test_internal_extension_lives_in_the_runtime),
        CASE(test_runtime_without_extensions_has_no_shutdown_phase),
        CASE(test_wrong_calls_of_the_extensions_api_are_refused),
        CASE(test_eleventh_registration_is_refused),
    };

    return RUN_CASES(tests);
}
