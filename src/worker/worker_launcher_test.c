/* What needs a hand on the launcher (on processes only): freezing, a full socket, failing sandboxes, its loss. */
#include "worker/testing.h"

#include "worker/environment.h" /* its listener only shows inside */
#include "worker/testing/launcher_fake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
/* cmocka.h needs setjmp.h, stdarg.h, stddef.h and stdint.h */
#include <cmocka.h>

static void test_idle_environment_is_frozen_after_the_grace_and_thawed_before_the_event(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};

    start_ready(fixture, &subject, (struct options){0});
    assert_int_equal(launcher_fake_frozen(fixture->launcher, 1), 0);
    for (int i = 0; i < 40; i++) { /* busier than the grace: never frozen */
        expect_echo(fixture, &subject, "sleep 5", "slept");
        run_for(fixture, 10);
        assert_int_equal(launcher_fake_frozen(fixture->launcher, 1), 0);
    }
    run_for(fixture, FREEZE_MS + 100);
    assert_int_equal(launcher_fake_frozen(fixture->launcher, 1), '1');
    expect_echo(fixture, &subject, "hello", "hello");
    assert_int_equal(launcher_fake_frozen(fixture->launcher, 1), '0');
    run_for(fixture, FREEZE_MS + 100);
    assert_int_equal(launcher_fake_frozen(fixture->launcher, 1), '1');
    retire(fixture, &subject);
}

static void on_turn(uv_prepare_t *turns)
{
    ++*(int *)turns->data;
}

static void test_idle_environments_do_not_wake_the_loop(void **state)
{
    struct fixture *fixture = *state;
    struct subject subjects[5] = {0};
    uv_prepare_t turns;
    int count = 0;

    for (size_t i = 0; i < ARRAY_SIZE(subjects); i++) {
        start_ready(fixture, &subjects[i], (struct options){0});
        expect_echo(fixture, &subjects[i], "hello", "hello");
    }
    run_for(fixture, FREEZE_MS + 500); /* frozen, logs written */
    uv_prepare_init(&fixture->loop, &turns);
    turns.data = &count;
    uv_prepare_start(&turns, on_turn);
    run_for(fixture, 500);
    uv_close((uv_handle_t *)&turns, NULL);
    uv_run(&fixture->loop, UV_RUN_NOWAIT);
    assert_in_range(count, 1, 3); /* those of run_for itself */
    for (size_t i = 0; i < ARRAY_SIZE(subjects); i++)
        retire(fixture, &subjects[i]);
}

static void test_full_launcher_socket_only_delays(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;

    start(fixture, &subject, (struct options){0});
    launcher_fake_refuse(fixture->launcher, 2);
    RUN_UNTIL(fixture, subject.ready);
    launcher_fake_refuse(fixture->launcher, 5); /* limit_cpu is given up for the reset */
    run_call(fixture, &subject, &call, "exit 1");
    assert_error(&call, "Runtime.ExitError", "Runtime exited with error: exit status 1");
    call_deinit(&call);
    expect_echo(fixture, &subject, "hello", "hello");
    launcher_fake_refuse(fixture->launcher, 3);
    retire(fixture, &subject);
}

static void test_start_waits_for_a_busy_launcher(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};

    launcher_fake_refuse(fixture->launcher, 4);
    start(fixture, &subject, (struct options){0});
    RUN_UNTIL(fixture, subject.ready);
    expect_echo(fixture, &subject, "hello", "hello");
    retire(fixture, &subject);
}

static void test_extensions_wait_for_a_busy_launcher(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};

    ADD_EXTENSIONS(fixture, "a", "b");
    launcher_fake_refuse(fixture->launcher, 3);
    start_ready(fixture, &subject, (struct options){0});
    assert_true(subject.ready_ok);
    expect_echo(fixture, &subject, "hello", "hello");
    launcher_fake_refuse(fixture->launcher, 2);
    retire(fixture, &subject);
}

static void test_environment_retired_before_the_launcher_took_it_ends(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};

    launcher_fake_refuse(fixture->launcher, 4);
    start(fixture, &subject, (struct options){0});
    retire(fixture, &subject);
}

static void test_creation_refused_for_good_after_a_delay_is_a_fault(void **state)
{
    static char long_path[4200];
    struct fixture *fixture = *state;

    memset(long_path, '/', sizeof(long_path) - 1);
    for (int retired = 0; retired < 2; retired++) {
        struct subject subject = {0};

        launcher_fake_refuse(fixture->launcher, 2);
        start(fixture, &subject, (struct options){.task_dir = long_path});
        if (retired)
            environment_retire(subject.environment);
        RUN_UNTIL(fixture, subject.gone);
        assert_true(subject.has_fault);
        assert_int_equal(subject.fault.error, E2BIG);
    }
}

static void test_sandbox_that_cannot_be_made_is_a_fault(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};

    launcher_fake_fail_create(fixture->launcher);
    start(fixture, &subject, (struct options){0});
    RUN_UNTIL(fixture, subject.gone);
    assert_int_equal(subject.ready, 0);
    assert_true(subject.has_fault);
    assert_int_equal(subject.fault.error, ENOSPC);
}

static void test_sandbox_that_ends_by_itself_is_a_fault_and_an_error(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;

    start_ready(fixture, &subject, (struct options){0});
    call_init(&call, "sleep 60000");
    call_begin(&call, &subject);
    run_for(fixture, 30);
    launcher_fake_end_sandbox(fixture->launcher, 1);
    RUN_UNTIL(fixture, subject.gone);
    assert_true(call.function_error);
    assert_int_equal(call.ends, 1);
    assert_true(subject.has_fault);
    call_deinit(&call);
}

/* As another user would: connects to the Runtime API and asks for the event. True when anything comes back. */
static bool stranger_is_served(const struct sockaddr_storage *address, uid_t uid)
{
    static const char request[] = "GET /2018-06-01/runtime/invocation/next HTTP/1.1\r\nHost: x\r\n\r\n";
    struct timeval patience = {.tv_sec = 1};
    char byte;
    CLEANUP(cleanup_close) int fd = -1;

    if (setuid(uid) < 0)
        return true;
    fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (connect(fd, (const struct sockaddr *)address, sizeof(struct sockaddr_in)) < 0)
        return false;
    return send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) > 0 && recv(fd, &byte, 1, 0) == 1;
}

static void test_runtime_api_serves_its_own_uid_only(void **state)
{
    static const uid_t uids[] = {65534, 0};
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct sockaddr_storage address;

    if (geteuid() != 0)
        skip();
    start_ready(fixture, &subject, (struct options){0});
    assert_int_equal(http_listener_address(subject.environment->listener, &address), 0);
    for (size_t i = 0; i < ARRAY_SIZE(uids); i++) {
        pid_t pid = fork();
        int status = 0;

        if (pid == 0)
            _exit(stranger_is_served(&address, uids[i]) ? 1 : 0);
        while (waitpid(pid, &status, WNOHANG) == 0)
            run_for(fixture, 10);
        /* our own uid gets as far as a refusal: the runtime itself is waiting already */
        assert_int_equal(WEXITSTATUS(status), uids[i] == 0);
    }
    expect_echo(fixture, &subject, "hello", "hello");
    retire(fixture, &subject);
}

static void test_lost_launcher_ends_everything(void **state)
{
    struct fixture *fixture = *state;
    struct subject busy = {0}, idle = {0};
    struct call call;

    start_ready(fixture, &busy, (struct options){0});
    start_ready(fixture, &idle, (struct options){0});
    call_init(&call, "sleep 60000");
    call_begin(&call, &busy);
    run_for(fixture, 30);
    launcher_fake_die(fixture->launcher);
    RUN_UNTIL(fixture, fixture->lost);
    assert_int_equal(call.ends, 1);
    assert_true(call.function_error);
    assert_int_equal(busy.gone + idle.gone, 2);
    assert_true(idle.has_fault);
    call_deinit(&call);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_idle_environment_is_frozen_after_the_grace_and_thawed_before_the_event),
        CASE(test_idle_environments_do_not_wake_the_loop),
        CASE(test_full_launcher_socket_only_delays),
        CASE(test_start_waits_for_a_busy_launcher),
        CASE(test_extensions_wait_for_a_busy_launcher),
        CASE(test_environment_retired_before_the_launcher_took_it_ends),
        CASE(test_creation_refused_for_good_after_a_delay_is_a_fault),
        CASE(test_sandbox_that_cannot_be_made_is_a_fault),
        CASE(test_sandbox_that_ends_by_itself_is_a_fault_and_an_error),
        CASE(test_runtime_api_serves_its_own_uid_only),
        CASE(test_lost_launcher_ends_everything),
    };

    return RUN_CASES(tests);
}
