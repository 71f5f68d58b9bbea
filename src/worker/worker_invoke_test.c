/* Invocations, one after the other in an environment: those that succeed, and all the ways to fail. */
#include "worker/testing.h"

#include "worker/environment.h" /* tests wait for states that only show inside */

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
/* cmocka.h needs setjmp.h, stdarg.h, stddef.h and stdint.h */
#include <cmocka.h>

/* --- the good ways ------------------------------------------------------------------------------------------------ */

static void test_environment_answers_again_and_again(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};

    start_ready(fixture, &subject, (struct options){0});
    assert_true(subject.ready_ok);
    for (int i = 0; i < 50; i++)
        expect_echo(fixture, &subject, "hello", "hello");
    expect_echo(fixture, &subject, "count", "51");
    assert_int_equal(worker_environment_count(fixture->worker), 1);
    retire(fixture, &subject);
    assert_int_equal(worker_environment_count(fixture->worker), 0);
}

static void test_response_comes_before_the_environment_is_free(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;

    start_ready(fixture, &subject, (struct options){0});
    call_init(&call, "late 300");
    call_begin(&call, &subject);
    RUN_UNTIL(fixture, call.responses);
    assert_payload(&call, "early");
    assert_int_equal(call.ends, 0);
    RUN_UNTIL(fixture, call.ends);
    call_deinit(&call);
    retire(fixture, &subject);
}

static void test_next_invocation_may_come_from_inside_on_end(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call first, second;

    start_ready(fixture, &subject, (struct options){0});
    call_init(&first, "count");
    call_init(&second, "count");
    first.invoke_in_end = &second;
    call_begin(&first, &subject);
    RUN_UNTIL(fixture, second.ends);
    assert_payload(&second, "2");
    call_deinit(&first);
    call_deinit(&second);
    retire(fixture, &subject);
}

static void test_event_comes_with_its_headers(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;
    char expected[128];
    const char *at;
    long long deadline_ms;
    int64_t now_ms;

    start_ready(fixture, &subject, (struct options){.timeout_s = 3});
    call_init(&call, "headers");
    call.invocation.client_context = SPAN("{\"custom\":{\"a\":1}}");
    call.invocation.trace_id = SPAN("Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Sampled=1");
    now_ms = clock_wall_ns() / NS_PER_MS;
    call_begin(&call, &subject);
    RUN_UNTIL(fixture, call.ends);
    assert_non_null(buffer_terminate(&call.payload));
    snprintf(expected, sizeof(expected), "Lambda-Runtime-Aws-Request-Id: %s\r\n", call.request_id);
    assert_non_null(strstr(call.payload.data, expected));
    assert_non_null(strstr(call.payload.data, "Lambda-Runtime-Invoked-Function-Arn: arn:aws:lambda:us-east-1:"
                                              "000000000000:function:shop\r\n"));
    assert_non_null(strstr(call.payload.data, "Lambda-Runtime-Trace-Id: Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;"
                                              "Sampled=1\r\n"));
    assert_non_null(strstr(call.payload.data, "Lambda-Runtime-Client-Context: {\"custom\":{\"a\":1}}\r\n"));
    at = strstr(call.payload.data, "Lambda-Runtime-Deadline-Ms: ");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "Lambda-Runtime-Deadline-Ms: %lld", &deadline_ms), 1);
    assert_in_range(deadline_ms, now_ms + 2900, now_ms + 3100);
    call_deinit(&call);
    retire(fixture, &subject);
}

static void test_trace_id_is_made_when_the_caller_has_none(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;

    start_ready(fixture, &subject, (struct options){0});
    run_call(fixture, &subject, &call, "headers");
    assert_non_null(buffer_terminate(&call.payload));
    assert_non_null(strstr(call.payload.data, "Lambda-Runtime-Trace-Id: Root=1-"));
    assert_null(strstr(call.payload.data, "Client-Context"));
    call_deinit(&call);
    retire(fixture, &subject);
}

static void test_owned_event_is_moved_out(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;
    struct buffer event = BUFFER_INIT;

    start_ready(fixture, &subject, (struct options){0});
    call_init(&call, "");
    assert_int_equal(buffer_append_span(&event, SPAN("\"moved\"")), 0);
    call.invocation.event = buffer_span(&event);
    call.invocation.event_owner = &event;
    call_begin(&call, &subject);
    assert_null(event.data);
    RUN_UNTIL(fixture, call.ends);
    assert_payload(&call, "moved");
    call_deinit(&call);
    retire(fixture, &subject);
}

static void test_process_sees_the_recorded_variables(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;

    start_ready(fixture, &subject, (struct options){.memory_mib = 256});
    run_call(fixture, &subject, &call, "environment");
    assert_non_null(buffer_terminate(&call.payload));
    assert_non_null(strstr(call.payload.data, "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=256\n"));
    assert_non_null(strstr(call.payload.data, "AWS_LAMBDA_INITIALIZATION_TYPE=on-demand\n"));
    assert_non_null(strstr(call.payload.data, "AWS_LAMBDA_RUNTIME_API="));
    assert_non_null(strstr(call.payload.data, "TZ=Europe/Vienna\n"));
    assert_non_null(strstr(call.payload.data, "[$LATEST]"));
    call_deinit(&call);
    retire(fixture, &subject);
}

static void test_provisioned_init_is_reported_and_has_its_own_limit(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;
    CLEANUP(buffer_deinit) struct buffer log = BUFFER_INIT;
    const char *at;

    /* longer than the limit on demand */
    start_ready(fixture, &subject,
                (struct options){.init = "sleep 800", .origin = ENVIRONMENT_PROVISIONED, .timeout_s = 1});
    assert_true(subject.ready_ok);
    run_call(fixture, &subject, &call, "environment");
    assert_non_null(buffer_terminate(&call.payload));
    assert_non_null(strstr(call.payload.data, "AWS_LAMBDA_INITIALIZATION_TYPE=provisioned-concurrency\n"));
    call_deinit(&call);
    retire(fixture, &subject);
    log = read_log(fixture);
    at = log.data;
    assert_follows(&at, "\tPhase: init\tStatus: success\n");
    assert_follows(&at, "\nREPORT ");
    assert_null(strstr(at, "Init Duration"));
}

static void test_provisioned_environment_ends_with_a_failed_invocation(void **state)
{
    static const struct {
        const char *command, *type, *message;
    } cases[] = {
        {"exit 3", "Runtime.ExitError", "Runtime exited with error: exit status 3"},
        {"sleep 60000", "Sandbox.Timedout", "Task timed out after 1.00 seconds"},
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct subject subject = {0};
        struct call call;

        start_ready(fixture, &subject, (struct options){.origin = ENVIRONMENT_PROVISIONED, .timeout_s = 1});
        run_call(fixture, &subject, &call, cases[i].command);
        assert_error(&call, cases[i].type, cases[i].message);
        call_deinit(&call);
        RUN_UNTIL(fixture, subject.gone);
        assert_false(subject.has_fault);
    }
}

static void test_owner_may_retire_an_environment_whose_runtime_died_while_idle(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {.retire_in_idle_exit = true};
    char init[PATH_MAX + 16];

    snprintf(init, sizeof(init), "idleexit /tmp/idle-%s", fixture->root + strlen("/tmp/"));
    start_ready(fixture, &subject, (struct options){.init = init});
    RUN_UNTIL(fixture, subject.gone);
    unlink(init + strlen("idleexit "));
    assert_int_equal(subject.idle_exits, 1);
    assert_false(subject.has_fault);
}

static void test_many_environments_at_once(void **state)
{
    enum { COUNT = 20 };
    struct fixture *fixture = *state;
    struct subject subjects[COUNT] = {0};
    struct call calls[COUNT];

    for (int i = 0; i < COUNT; i++) {
        subjects[i].invoke_when_ready = &calls[i];
        call_init(&calls[i], i % 3 == 0 ? "exit 1" : i % 3 == 1 ? "sleep 100" : "hello");
        start(fixture, &subjects[i], (struct options){0});
    }
    for (int i = 0; i < COUNT; i++)
        RUN_UNTIL(fixture, calls[i].ends);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(calls[i].responses, 1);
        assert_int_equal(calls[i].function_error, i % 3 == 0);
        call_deinit(&calls[i]);
        environment_retire(subjects[i].environment);
    }
    RUN_UNTIL(fixture, worker_environment_count(fixture->worker) == 0);
}

/* --- failing invocations ------------------------------------------------------------------------------------------ */

static void test_function_error_is_passed_on_as_posted(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;

    start_ready(fixture, &subject, (struct options){0});
    run_call(fixture, &subject, &call, "error");
    assert_payload(&call, "{\"errorMessage\":\"no\",\"errorType\":\"Mine\"}");
    assert_true(call.function_error);
    call_deinit(&call);
    expect_echo(fixture, &subject, "count", "2");
    retire(fixture, &subject);
}

static void test_exit_is_reported_and_the_next_invocation_starts_clean(void **state)
{
    static const struct {
        const char *command, *message;
    } cases[] = {
        {"exit 3", "Runtime exited with error: exit status 3"},
        {"exit 0", "Runtime exited without providing a reason"},
        {"signal 11", "Runtime exited with error: signal: segmentation fault"},
        {"signal 9", "Runtime exited with error: signal: killed"},
    };
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;

    start_ready(fixture, &subject, (struct options){0});
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        expect_echo(fixture, &subject, "count", "1");
        run_call(fixture, &subject, &call, cases[i].command);
        assert_error(&call, "Runtime.ExitError", cases[i].message);
        call_deinit(&call);
    }
    assert_int_equal(subject.ready, 1);
    retire(fixture, &subject);
}

static void test_timeout_is_answered_in_time_and_memory_is_gone(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;
    int64_t begin_ns;
    CLEANUP(buffer_deinit) struct buffer log = BUFFER_INIT;
    const char *at;

    start_ready(fixture, &subject, (struct options){.timeout_s = 1});
    expect_echo(fixture, &subject, "count", "1");
    begin_ns = clock_monotonic_ns();
    run_call(fixture, &subject, &call, "sleep 60000");
    assert_in_range(clock_monotonic_ns() - begin_ns, NS_PER_S, 5 * NS_PER_S);
    assert_error(&call, "Sandbox.Timedout", "Task timed out after 1.00 seconds");
    call_deinit(&call);
    expect_echo(fixture, &subject, "count", "1");
    retire(fixture, &subject);
    log = read_log(fixture);
    at = log.data;
    assert_follows(&at, " Task timed out after 1.00 seconds\n");
    assert_follows(&at, "\nREPORT ");
    assert_follows(&at, "\tStatus: timeout\n");
}

static void test_time_spent_idle_does_not_count(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};

    start_ready(fixture, &subject, (struct options){.timeout_s = 1});
    run_for(fixture, 1200);
    expect_echo(fixture, &subject, "sleep 500", "slept");
    retire(fixture, &subject);
}

static void test_answer_then_exit_is_an_answer(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;
    CLEANUP(buffer_deinit) struct buffer log = BUFFER_INIT;
    const char *at;

    start_ready(fixture, &subject, (struct options){0});
    for (int i = 0; i < 10; i++) {
        run_call(fixture, &subject, &call, "answerexit");
        assert_payload(&call, "bye");
        assert_false(call.function_error);
        call_deinit(&call);
    }
    retire(fixture, &subject);
    log = read_log(fixture);
    at = log.data;
    assert_follows(&at, "Status: error\tError Type: Runtime.ExitError\n");
}

static void test_answer_that_never_asks_for_more_times_out_quietly(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;

    start_ready(fixture, &subject, (struct options){.timeout_s = 1});
    run_call(fixture, &subject, &call, "late 60000");
    assert_payload(&call, "early");
    assert_false(call.function_error);
    call_deinit(&call);
    expect_echo(fixture, &subject, "count", "1");
    retire(fixture, &subject);
}

static void test_second_answer_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};

    start_ready(fixture, &subject, (struct options){0});
    expect_echo(fixture, &subject, "twice", "first");
    expect_echo(fixture, &subject, "last", "400");
    retire(fixture, &subject);
}

static void test_misuse_is_refused_and_harmless(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};

    start_ready(fixture, &subject, (struct options){0});
    expect_echo(fixture, &subject, "misuse", "404 405 405 400 403 403");
    expect_echo(fixture, &subject, "count", "2");
    retire(fixture, &subject);
}

#define TOO_LARGE                                                                                         \
    "{\"errorMessage\":\"Response payload size exceeded maximum allowed payload size (6291556 bytes).\"," \
    "\"errorType\":\"Function.ResponseSizeTooLarge\"}"

static void test_too_large_answer_leaves_the_environment_usable(void **state)
{
    static const char *const commands[] = {"large 6291557", "large 20000000", "chunked 7000000"};
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;

    start_ready(fixture, &subject, (struct options){0});
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        run_call(fixture, &subject, &call, commands[i]);
        assert_payload(&call, TOO_LARGE);
        assert_true(call.function_error);
        call_deinit(&call);
        expect_echo(fixture, &subject, "last", "413");
    }
    expect_echo(fixture, &subject, "count", "7"); /* the same process all the time */
    retire(fixture, &subject);
}

static void test_largest_answer_passes(void **state)
{
    static const char *const commands[] = {"large 6291556", "chunked 6291556"};
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;

    start_ready(fixture, &subject, (struct options){0});
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        run_call(fixture, &subject, &call, commands[i]);
        assert_int_equal(call.payload.length, 6291556);
        assert_false(call.function_error);
        call_deinit(&call);
    }
    retire(fixture, &subject);
}

static void test_wrong_response_mode_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;

    start_ready(fixture, &subject, (struct options){0});
    run_call(fixture, &subject, &call, "mode");
    assert_non_null(buffer_terminate(&call.payload));
    assert_non_null(strstr(call.payload.data, "Runtime.InvalidResponseModeHeader"));
    call_deinit(&call);
    expect_echo(fixture, &subject, "last", "400");
    retire(fixture, &subject);
}

static void test_torn_answer_is_an_error_and_the_runtime_goes_on(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;

    start_ready(fixture, &subject, (struct options){0});
    run_call(fixture, &subject, &call, "torn");
    assert_payload(&call, "{\"errorMessage\":\"The runtime's connection ended in the middle of its response\","
                          "\"errorType\":\"Runtime.TruncatedResponse\"}");
    call_deinit(&call);
    expect_echo(fixture, &subject, "count", "2");
    run_call(fixture, &subject, &call, "tornexit");
    assert_error(&call, "Runtime.ExitError", "Runtime exited with error: exit status 7");
    call_deinit(&call);
    retire(fixture, &subject);
}

static void test_runtime_may_reconnect_while_idle(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};

    start_ready(fixture, &subject, (struct options){0});
    for (int i = 0; i < 5; i++)
        expect_echo(fixture, &subject, "reconnect", "ok");
    retire(fixture, &subject);
}

static void test_orphans_die_with_the_reset(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;
    CLEANUP(buffer_deinit) struct buffer log = BUFFER_INIT;
    const char *at;

    start_ready(fixture, &subject, (struct options){0});
    run_call(fixture, &subject, &call, "orphan");
    assert_error(&call, "Runtime.ExitError", "Runtime exited with error: exit status 1");
    call_deinit(&call);
    call_init(&call, "sleep 300");
    call.invocation.wants_log_tail = true;
    call_begin(&call, &subject);
    RUN_UNTIL(fixture, call.ends);
    assert_non_null(buffer_terminate(&call.invocation.log_tail));
    assert_null(strstr(call.invocation.log_tail.data, "ffff"));
    call_deinit(&call);
    retire(fixture, &subject);
    log = read_log(fixture);
    at = log.data;
    assert_follows(&at, "Runtime exited with error: exit status 1\nRuntime.ExitError\n");
    assert_follows(&at, "START RequestId: ");
    assert_null(strstr(at, "ffff"));
}

static void test_runtime_that_dies_while_idle_is_replaced(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    char init[128];

    snprintf(init, sizeof(init), "idleexit /tmp/idle-%s", fixture->root + strlen("/tmp/"));
    start_ready(fixture, &subject, (struct options){.init = init});
    RUN_UNTIL(fixture, subject.environment->state == ENVIRONMENT_STALE);
    expect_echo(fixture, &subject, "hello", "hello");
    retire(fixture, &subject);
    unlink(init + strlen("idleexit "));
}

/* The invocation comes while the news of the death is still under way: nothing of it was lost with that runtime. */
static void test_invocation_outlives_a_runtime_that_died_before_its_event(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    char init[128];
    CLEANUP(buffer_deinit) struct buffer log = BUFFER_INIT;

    snprintf(init, sizeof(init), "lost /tmp/lost-%s", fixture->root + strlen("/tmp/"));
    start_ready(fixture, &subject, (struct options){.init = init});
    RUN_UNTIL(fixture, !subject.environment->next);
    expect_echo(fixture, &subject, "hello", "hello");
    expect_echo(fixture, &subject, "again", "again");
    retire(fixture, &subject);
    log = read_log(fixture);
    assert_not_in(&log, "Runtime.ExitError");
    unlink(init + strlen("lost "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_environment_answers_again_and_again),
        CASE(test_response_comes_before_the_environment_is_free),
        CASE(test_next_invocation_may_come_from_inside_on_end),
        CASE(test_event_comes_with_its_headers),
        CASE(test_trace_id_is_made_when_the_caller_has_none),
        CASE(test_owned_event_is_moved_out),
        CASE(test_process_sees_the_recorded_variables),
        CASE(test_provisioned_init_is_reported_and_has_its_own_limit),
        CASE(test_provisioned_environment_ends_with_a_failed_invocation),
        CASE(test_owner_may_retire_an_environment_whose_runtime_died_while_idle),
        CASE(test_many_environments_at_once),
        CASE(test_function_error_is_passed_on_as_posted),
        CASE(test_exit_is_reported_and_the_next_invocation_starts_clean),
        CASE(test_timeout_is_answered_in_time_and_memory_is_gone),
        CASE(test_time_spent_idle_does_not_count),
        CASE(test_answer_then_exit_is_an_answer),
        CASE(test_answer_that_never_asks_for_more_times_out_quietly),
        CASE(test_second_answer_is_refused),
        CASE(test_misuse_is_refused_and_harmless),
        CASE(test_too_large_answer_leaves_the_environment_usable),
        CASE(test_largest_answer_passes),
        CASE(test_wrong_response_mode_is_refused),
        CASE(test_torn_answer_is_an_error_and_the_runtime_goes_on),
        CASE(test_runtime_may_reconnect_while_idle),
        CASE(test_orphans_die_with_the_reset),
        CASE(test_runtime_that_dies_while_idle_is_replaced),
        CASE(test_invocation_outlives_a_runtime_that_died_before_its_event),
    };

    return RUN_CASES(tests);
}
