/* The end of environments and of the worker, in any state. */
#include "worker/testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs setjmp.h, stdarg.h, stddef.h and stdint.h */
#include <cmocka.h>

static void test_retire_while_busy_lets_the_invocation_finish(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;

    start_ready(fixture, &subject, (struct options){0});
    call_init(&call, "sleep 200");
    call_begin(&call, &subject);
    environment_retire(subject.environment);
    RUN_UNTIL(fixture, subject.gone);
    assert_int_equal(call.responses, 1);
    assert_int_equal(call.ends, 1);
    assert_payload(&call, "slept");
    assert_false(subject.has_fault);
    call_deinit(&call);
}

static void test_retire_while_failing_ends_once(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;

    start_ready(fixture, &subject, (struct options){0});
    call_init(&call, "exit 1");
    call_begin(&call, &subject);
    environment_retire(subject.environment);
    RUN_UNTIL(fixture, subject.gone);
    assert_error(&call, "Runtime.ExitError", "Runtime exited with error: exit status 1");
    assert_int_equal(call.ends, 1);
    assert_false(subject.has_fault);
    call_deinit(&call);
}

static void test_kill_while_busy_ends_with_an_error(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;

    start_ready(fixture, &subject, (struct options){0});
    call_init(&call, "sleep 60000");
    call_begin(&call, &subject);
    run_for(fixture, 50);
    environment_kill(subject.environment);
    assert_int_equal(call.responses, 0); /* never from inside a call */
    RUN_UNTIL(fixture, subject.gone);
    assert_int_equal(call.ends, 1);
    assert_error(&call, "Sandbox.Failure", "The sandbox was ended");
    call_deinit(&call);
}

static void test_kill_and_retire_from_inside_on_response(void **state)
{
    struct fixture *fixture = *state;

    for (int i = 0; i < 4; i++) {
        struct subject subject = {0};
        struct call call;

        start_ready(fixture, &subject, (struct options){0});
        call_init(&call, "hello");
        call.kill_in_response = i & 1;
        call.retire_in_response = !(i & 1);
        call.invocation.wants_log_tail = i & 2;
        call_begin(&call, &subject);
        RUN_UNTIL(fixture, subject.gone);
        assert_int_equal(call.responses, 1);
        assert_int_equal(call.ends, 1);
        assert_payload(&call, "hello");
        call_deinit(&call);
    }
}

static void test_retire_and_kill_at_once_after_the_start(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0}, other = {0}, third = {0};

    start(fixture, &subject, (struct options){0});
    environment_retire(subject.environment);
    start(fixture, &other, (struct options){.init = "hang"});
    environment_kill(other.environment);
    environment_kill(other.environment);
    start(fixture, &third, (struct options){.init = "hang"});
    run_for(fixture, 100);
    environment_retire(third.environment);
    RUN_UNTIL(fixture, subject.gone && other.gone && third.gone);
    assert_int_equal(subject.gone + other.gone + third.gone, 3);
    assert_int_equal(subject.ready + other.ready + third.ready, 0);
    assert_int_equal(worker_environment_count(fixture->worker), 0);
}

static void test_worker_may_end_in_any_state(void **state)
{
    struct fixture *fixture = *state;
    struct subject busy = {0}, idle = {0}, creating = {0}, failing = {0};
    struct call call;

    start_ready(fixture, &busy, (struct options){0});
    start_ready(fixture, &idle, (struct options){0});
    start_ready(fixture, &failing, (struct options){.init = "exit 1"});
    start(fixture, &creating, (struct options){0});
    call_init(&call, "sleep 60000");
    call_begin(&call, &busy);
    run_for(fixture, 20);
    fixture->worker = worker_free(fixture->worker);
    run_for(fixture, 50);
    assert_int_equal(call.responses, 0);
    assert_int_equal(busy.gone + idle.gone + creating.gone + failing.gone, 0);
    call_deinit(&call);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_retire_while_busy_lets_the_invocation_finish), CASE(test_retire_while_failing_ends_once),
        CASE(test_kill_while_busy_ends_with_an_error),           CASE(test_kill_and_retire_from_inside_on_response),
        CASE(test_retire_and_kill_at_once_after_the_start),      CASE(test_worker_may_end_in_any_state),
    };

    return RUN_CASES(tests);
}
