/* Init that fails, is slow, or has no program to run; and the one that is done again within an invocation. */
#include "worker/testing.h"

#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
/* cmocka.h needs setjmp.h, stdarg.h, stddef.h and stdint.h */
#include <cmocka.h>

static void test_posted_init_error_goes_to_the_next_caller(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;
    CLEANUP(buffer_deinit) struct buffer log = BUFFER_INIT;
    const char *at;

    start_ready(fixture, &subject, (struct options){.init = "error"});
    assert_false(subject.ready_ok);
    for (int i = 0; i < 2; i++) {
        run_call(fixture, &subject, &call, "hello");
        assert_payload(&call, "{\"errorMessage\":\"init no\",\"errorType\":\"Mine\",\"requestId\":\"\"}");
        assert_true(call.function_error);
        call_deinit(&call);
    }
    retire(fixture, &subject);
    log = read_log(fixture);
    at = log.data;
    assert_follows(&at, "\tPhase: init\tStatus: error\tError Type: Runtime.ImportModuleError\n");
    assert_follows(&at, "\tPhase: invoke\tStatus: error\tError Type: Runtime.ImportModuleError\nSTART RequestId: ");
    assert_follows(&at, "\tStatus: error\tError Type: Runtime.ImportModuleError\n");
}

static void test_exit_in_init_goes_to_the_next_caller(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;

    start_ready(fixture, &subject, (struct options){.init = "exit 5"});
    assert_false(subject.ready_ok);
    run_call(fixture, &subject, &call, "hello");
    assert_error(&call, "Runtime.ExitError", "Runtime exited with error: exit status 5");
    call_deinit(&call);
    retire(fixture, &subject);
}

static void test_second_init_may_succeed_within_the_invocation(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;
    char init[128];

    snprintf(init, sizeof(init), "once /tmp/once-%s", fixture->root + strlen("/tmp/"));
    start_ready(fixture, &subject, (struct options){.init = init});
    assert_false(subject.ready_ok);
    call_init(&call, "count");
    call.invocation.wants_log_tail = true;
    call_begin(&call, &subject);
    RUN_UNTIL(fixture, call.ends);
    assert_payload(&call, "1");
    assert_non_null(buffer_terminate(&call.invocation.log_tail));
    assert_null(strstr(call.invocation.log_tail.data, "Init Duration"));
    call_deinit(&call);
    expect_echo(fixture, &subject, "count", "2");
    retire(fixture, &subject);
    unlink(init + strlen("once "));
}

static void test_slow_init_is_cut_and_done_again_under_the_functions_timeout(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;
    CLEANUP(buffer_deinit) struct buffer log = BUFFER_INIT;
    const char *at;

    start_ready(fixture, &subject, (struct options){.init = "sleep 700", .timeout_s = 3});
    assert_false(subject.ready_ok);
    run_call(fixture, &subject, &call, "hello");
    assert_payload(&call, "hello");
    assert_true(call.duration_ns >= 700 * NS_PER_MS);
    call_deinit(&call);
    retire(fixture, &subject);
    log = read_log(fixture);
    at = log.data;
    assert_follows(&at, "INIT_REPORT Init Duration: 4");
    assert_follows(&at, "\tPhase: init\tStatus: timeout\n");
}

static void test_init_that_never_ends_times_out_for_the_caller(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;

    start_ready(fixture, &subject, (struct options){.init = "hang", .timeout_s = 1});
    assert_false(subject.ready_ok);
    for (int i = 0; i < 2; i++) {
        run_call(fixture, &subject, &call, "hello");
        assert_error(&call, "Sandbox.Timedout", "Task timed out after 1.00 seconds");
        call_deinit(&call);
    }
    retire(fixture, &subject);
}

static void test_missing_bootstrap_is_an_invalid_entrypoint(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;
    char empty[PATH_MAX];

    snprintf(empty, sizeof(empty), "%s/empty", fixture->root);
    assert_int_equal(mkdir(empty, 0755), 0);
    start_ready(fixture, &subject, (struct options){.task_dir = empty});
    assert_false(subject.ready_ok);
    run_call(fixture, &subject, &call, "hello");
    assert_error(&call, "Runtime.InvalidEntrypoint",
                 "Couldn't find valid bootstrap(s): [/var/task/bootstrap /opt/bootstrap]");
    call_deinit(&call);
    retire(fixture, &subject);
}

static void write_bootstrap(struct fixture *fixture, const char *content, mode_t mode)
{
    char path[PATH_MAX];
    CLEANUP(cleanup_close) int fd = -1;

    snprintf(path, sizeof(path), "%s/bootstrap", fixture->task_dir);
    unlink(path);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(write(fd, content, strlen(content)), (ssize_t)strlen(content));
    assert_int_equal(fchmod(fd, mode), 0);
}

static void test_unusable_bootstrap_is_an_invalid_entrypoint(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;

    write_bootstrap(fixture, "#!/bin/sh\n", 0644);
    start_ready(fixture, &subject, (struct options){0});
    run_call(fixture, &subject, &call, "hello");
    assert_error(&call, "Runtime.InvalidEntrypoint", "fork/exec /var/task/bootstrap: permission denied");
    call_deinit(&call);
    write_bootstrap(fixture,
                    "\x7f"
                    "ELF rubbish",
                    0755);
    run_call(fixture, &subject, &call, "hello");
    assert_error(&call, "Runtime.InvalidEntrypoint", "fork/exec /var/task/bootstrap: exec format error");
    call_deinit(&call);
    retire(fixture, &subject);
}

static void test_shell_bootstrap_with_a_connection_for_each_request(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};

    if (access("/usr/bin/curl", X_OK) < 0) {
        fprintf(stderr, "there is no curl for the shell bootstrap\n");
        skip();
    }
    write_bootstrap(fixture,
                    "#!/bin/sh\n"
                    "root=http://$AWS_LAMBDA_RUNTIME_API/2018-06-01/runtime/invocation\n"
                    "headers=$(mktemp)\n"
                    "while :; do\n"
                    "  event=$(curl -sS -D $headers $root/next) || exit 1\n"
                    "  id=$(sed -n 's/^lambda-runtime-aws-request-id: *\\([^ \r]*\\).*/\\1/Ip' $headers)\n"
                    "  curl -sS -o /dev/null $root/$id/response -d \"shell got $event\" || exit 2\n"
                    "done\n",
                    0755);
    start(fixture, &subject, (struct options){.memory_mib = 1769});
    RUN_UNTIL(fixture, subject.ready);
    for (int i = 0; i < 5; i++)
        expect_echo(fixture, &subject, "it", "shell got \"it\"");
    retire(fixture, &subject);
}

static void test_unsupported_runtime_says_so(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;

    start_ready(fixture, &subject, (struct options){.runtime = "java21"});
    assert_false(subject.ready_ok);
    run_call(fixture, &subject, &call, "hello");
    assert_error(&call, "Runtime.InvalidEntrypoint",
                 "Couldn't find a runtime for java21: Kiln runs provided, python and nodejs functions");
    call_deinit(&call);
    retire(fixture, &subject);
}

static void test_invocation_may_be_given_from_inside_on_ready(void **state)
{
    static const char *const inits[] = {"", "exit 4"};
    struct fixture *fixture = *state;
    struct call call;

    for (size_t i = 0; i < ARRAY_SIZE(inits); i++) {
        struct subject subject = {.invoke_when_ready = &call};

        call_init(&call, "hello");
        start(fixture, &subject, (struct options){.init = inits[i]});
        RUN_UNTIL(fixture, call.ends);
        if (i == 0)
            assert_payload(&call, "hello");
        else
            assert_error(&call, "Runtime.ExitError", "Runtime exited with error: exit status 4");
        call_deinit(&call);
        retire(fixture, &subject);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_posted_init_error_goes_to_the_next_caller),
        CASE(test_exit_in_init_goes_to_the_next_caller),
        CASE(test_second_init_may_succeed_within_the_invocation),
        CASE(test_slow_init_is_cut_and_done_again_under_the_functions_timeout),
        CASE(test_init_that_never_ends_times_out_for_the_caller),
        CASE(test_missing_bootstrap_is_an_invalid_entrypoint),
        CASE(test_unusable_bootstrap_is_an_invalid_entrypoint),
        CASE(test_shell_bootstrap_with_a_connection_for_each_request),
        CASE(test_unsupported_runtime_says_so),
        CASE(test_invocation_may_be_given_from_inside_on_ready),
    };

    return RUN_CASES(tests);
}
