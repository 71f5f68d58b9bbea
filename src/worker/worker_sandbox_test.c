/* What only a real sandbox has: a /tmp of its own, freezing, a limit of memory, the interpreters of the host. */
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

static void test_tmp_is_kept_over_a_reset(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0}, other = {0};
    struct call call;

    start_ready(fixture, &subject, (struct options){0});
    expect_echo(fixture, &subject, "kept mark", "missing");
    expect_echo(fixture, &subject, "keep mark", "there");
    run_call(fixture, &subject, &call, "exit 1");
    call_deinit(&call);
    expect_echo(fixture, &subject, "kept mark", "there");
    start_ready(fixture, &other, (struct options){0});
    expect_echo(fixture, &other, "kept mark", "missing");
    retire(fixture, &subject);
    retire(fixture, &other);
}

static void test_frozen_environment_thaws_for_its_event(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};

    start_ready(fixture, &subject, (struct options){0});
    for (int i = 0; i < 3; i++) {
        run_for(fixture, FREEZE_MS + 100);
        expect_echo(fixture, &subject, "hello", "hello");
    }
    run_for(fixture, FREEZE_MS + 100);
    retire(fixture, &subject); /* a frozen one can be killed */
}

static void write_task_file(const char *folder, const char *name, const char *content)
{
    char path[PATH_MAX * 2];
    CLEANUP(cleanup_close) int fd = -1;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(write(fd, content, strlen(content)), (ssize_t)strlen(content));
}

/* One managed runtime from Init to answer, error and exit. `runtime` is of a version that no host has. */
static void check_managed(struct fixture *fixture, const char *runtime, const char *file, const char *code)
{
    struct subject subject = {0};
    struct call call;
    char folder[PATH_MAX];
    CLEANUP(buffer_deinit) struct buffer log = BUFFER_INIT;
    const char *at;

    snprintf(folder, sizeof(folder), "%s/managed", fixture->root);
    assert_int_equal(mkdir(folder, 0755), 0);
    write_task_file(folder, file, code);
    start(fixture, &subject,
          (struct options){.runtime = runtime, .task_dir = folder, .handler = "app.handler", .memory_mib = 512});
    RUN_UNTIL(fixture, subject.ready || subject.gone);
    assert_non_null(subject.environment); /* Init has little time here; within the invocation it has enough */
    expect_echo(fixture, &subject, "hello", "\"hello\"");
    expect_echo(fixture, &subject, "again", "\"again\"");
    run_call(fixture, &subject, &call, "raise");
    assert_true(call.function_error);
    assert_non_null(buffer_terminate(&call.payload));
    assert_non_null(strstr(call.payload.data, "no good"));
    call_deinit(&call);
    run_call(fixture, &subject, &call, "exit");
    assert_error(&call, "Runtime.ExitError", "Runtime exited with error: exit status 4");
    call_deinit(&call);
    expect_echo(fixture, &subject, "hello", "\"hello\"");
    retire(fixture, &subject);
    log = read_log(fixture);
    at = log.data;
    assert_follows(&at, "INIT_START Runtime Version: ");
    assert_follows(&at, "is not installed on this host; running with /usr/");
    assert_follows(&at, "printed by the handler\n");
}

static void test_python_function_runs_on_the_hosts_interpreter(void **state)
{
    check_managed(*state, "python3.99", "app.py",
                  "import os\n"
                  "def handler(event, context):\n"
                  "    print('printed by the handler')\n"
                  "    if event == 'raise':\n"
                  "        raise Exception('no good')\n"
                  "    if event == 'exit':\n"
                  "        os._exit(4)\n"
                  "    return event\n");
}

static void test_node_function_runs_on_the_hosts_interpreter(void **state)
{
    check_managed(*state, "nodejs99.x", "app.js",
                  "exports.handler = async (event) => {\n"
                  "  console.log('printed by the handler');\n"
                  "  if (event === 'raise') throw new Error('no good');\n"
                  "  if (event === 'exit') process.exit(4);\n"
                  "  return event;\n"
                  "};\n");
}

static void test_out_of_memory_is_killed_and_named(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;
    CLEANUP(buffer_deinit) struct buffer log = BUFFER_INIT;
    const char *at;

    /* 128 MB come with a fourteenth of a CPU, with which touching them takes its time. */
    start_ready(fixture, &subject, (struct options){.memory_mib = 128, .timeout_s = 100});
    run_call(fixture, &subject, &call, "memory 400");
    assert_error(&call, "Runtime.ExitError", "Runtime exited with error: signal: killed");
    call_deinit(&call);
    expect_echo(fixture, &subject, "hello", "hello");
    retire(fixture, &subject);
    log = read_log(fixture);
    at = log.data;
    assert_follows(&at, "\tStatus: error\tError Type: Runtime.OutOfMemory\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_tmp_is_kept_over_a_reset),
        CASE(test_frozen_environment_thaws_for_its_event),
        CASE(test_out_of_memory_is_killed_and_named),
        CASE(test_python_function_runs_on_the_hosts_interpreter),
        CASE(test_node_function_runs_on_the_hosts_interpreter),
    };

    return RUN_CASES(tests);
}
