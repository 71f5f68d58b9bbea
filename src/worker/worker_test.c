/*
 * The worker on a real loop with the real HTTP server and a runtime that behaves well and badly (testing/). Built
 * twice: with the fake launcher (plain child processes, no privileges), and with the real one as WORKER_TEST_REAL,
 * which needs root.
 *
 * Every invocation is checked for exactly one on_response, then exactly one on_end.
 */
#include "worker/worker.h"

#include "base/random.h"
#include "worker/environment.h" /* tests wait for states that only show inside */
#include "worker/environment_extensions.h"
#include "worker/log_record.h"
#include "worker/testing/launcher_fake.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
/* cmocka.h needs setjmp.h, stdarg.h, stddef.h and stdint.h */
#include <cmocka.h>

enum { WATCHDOG_MS = 120000, INIT_LIMIT_MS = 400, FREEZE_MS = 300, SHUTDOWN_MS = 600 };

struct fixture {
    uv_loop_t loop;
    uv_timer_t watchdog;
    struct http_server *server;
    struct launcher *launcher;
    struct worker *worker;
    char root[64];
    char task_dir[128];
    char layer_dir[128]; /* empty: none */
    bool lost;
};

struct subject {
    struct environment *environment; /* NULL when gone */
    int ready, gone, idle_exits;
    bool ready_ok;
    bool retire_in_idle_exit;
    struct fault fault;
    bool has_fault;
    struct call *invoke_when_ready;
};

struct call {
    struct invocation invocation;
    struct subject *subject;
    char request_id[UUID_BYTES];
    char event[256];
    int responses, ends;
    bool function_error;
    struct buffer payload;
    int64_t duration_ns;
    struct call *invoke_in_end; /* given to the same environment from inside on_end */
    bool kill_in_response, retire_in_response;
};

static void on_watchdog(uv_timer_t *timer)
{
    (void)timer;
    fprintf(stderr, "the test hangs\n");
    abort();
}

static void on_lost(void *context)
{
    ((struct fixture *)context)->lost = true;
}

/* --- fixture ------------------------------------------------------------------------------------------------------ */

static void copy_program(const char *from, const char *to)
{
    char command[PATH_MAX * 4];

    snprintf(command, sizeof(command), "cp '%s' '%s' && chmod 755 '%s'", from, to, to);
    assert_int_equal(system(command), 0);
}

static void make_task(struct fixture *fixture)
{
    char path[PATH_MAX];

    assert_non_null(getenv("TEST_BOOTSTRAP"));
    snprintf(fixture->task_dir, sizeof(fixture->task_dir), "%s/task", fixture->root);
    assert_int_equal(mkdir(fixture->task_dir, 0755), 0);
    snprintf(path, sizeof(path), "%s/bootstrap", fixture->task_dir);
    copy_program(getenv("TEST_BOOTSTRAP"), path);
}

static struct launcher *start_launcher(struct fixture *fixture)
{
#ifdef WORKER_TEST_REAL
    char instance[32]; /* a name of its own: runs side by side must not clear each other's cgroups away */
    const struct launcher_config config = {.network = SANDBOX_NETWORK_NONE,
                                           .instance = instance,
                                           .data_dir = fixture->root,
                                           .slots = 2,
                                           .first_uid = 400000 + (uid_t)getpid() % 1000 * 100};
    struct launcher *launcher;
    struct fault fault = {0};

    snprintf(instance, sizeof(instance), "worker-test-%d", (int)getpid());
    if (launcher_start(&config, &launcher, &fault) < 0) {
        fprintf(stderr, "the launcher does not start: %s\n", fault.text);
        return NULL;
    }
    return launcher;
#else
    (void)fixture;
    return launcher_fake_new();
#endif
}

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    static const struct log quiet = {.fd = 2, .minimum = LOG_ERROR};
    const struct http_server_config http = {.loop = &fixture->loop};
    struct worker_config config = {
        .log = &quiet, .init_limit_ms = INIT_LIMIT_MS, .freeze_grace_ms = FREEZE_MS, .on_lost = on_lost};
    struct fault fault = {0};

    umask(022);
    strcpy(fixture->root, "/tmp/kiln-worker-XXXXXX");
    assert_non_null(mkdtemp(fixture->root));
    chmod(fixture->root, 0755);
    make_task(fixture);
    fixture->launcher = start_launcher(fixture); /* before there are threads */
    assert_non_null(fixture->launcher);
    assert_int_equal(uv_loop_init(&fixture->loop), 0);
    uv_timer_init(&fixture->loop, &fixture->watchdog);
    uv_timer_start(&fixture->watchdog, on_watchdog, WATCHDOG_MS, 0);
    assert_int_equal(http_server_new(&http, &fixture->server), 0);
    config.loop = &fixture->loop;
    config.launcher = fixture->launcher;
    config.server = fixture->server;
    config.data_dir = fixture->root;
    config.runtimes_dir = getenv("TEST_RUNTIMES") ? getenv("TEST_RUNTIMES") : fixture->root;
    config.provisioned_init_limit_ms = 1500;
    config.shutdown_limit_ms = SHUTDOWN_MS;
    config.context = fixture;
    assert_int_equal(worker_new(&config, &fixture->worker, &fault), 0);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    char command[PATH_MAX];

    fixture->worker = worker_free(fixture->worker);
    fixture->server = http_server_free(fixture->server);
    uv_close((uv_handle_t *)&fixture->watchdog, NULL);
    uv_run(&fixture->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
    launcher_free(fixture->launcher);
    snprintf(command, sizeof(command), "rm -rf '%s'", fixture->root);
    assert_int_equal(system(command), 0);
    free(fixture);
    return 0;
}

/* Turns the loop until the condition holds; the watchdog ends what never does. */
#define RUN_UNTIL(fixture, condition)          \
    while (!(condition)) {                     \
        uv_run(&(fixture)->loop, UV_RUN_ONCE); \
    }

static void on_nap_over(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
}

static void run_for(struct fixture *fixture, unsigned ms)
{
    uv_timer_t timer;
    bool over = false;

    uv_update_time(&fixture->loop);
    uv_timer_init(&fixture->loop, &timer);
    timer.data = &over;
    uv_timer_start(&timer, on_nap_over, ms, 0);
    RUN_UNTIL(fixture, over);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&fixture->loop, UV_RUN_NOWAIT);
}

/* --- environments and invocations --------------------------------------------------------------------------------- */

static void call_begin(struct call *call, struct subject *subject);

static void on_ready(struct environment *environment, bool ok, void *context)
{
    struct subject *subject = context;

    assert_ptr_equal(environment, subject->environment);
    subject->ready++;
    subject->ready_ok = ok;
    if (subject->invoke_when_ready)
        call_begin(subject->invoke_when_ready, subject);
}

static void on_gone(struct environment *environment, const struct fault *fault, void *context)
{
    struct subject *subject = context;

    assert_ptr_equal(environment, subject->environment);
    subject->environment = NULL;
    subject->gone++;
    subject->has_fault = fault != NULL;
    if (fault)
        subject->fault = *fault;
}

static void on_idle_exit(struct environment *environment, void *context)
{
    struct subject *subject = context;

    subject->idle_exits++;
    if (subject->retire_in_idle_exit)
        environment_retire(environment);
}

static const struct environment_events environment_events = {
    .on_ready = on_ready,
    .on_gone = on_gone,
    .on_idle_exit = on_idle_exit,
};

static void on_response(struct invocation *invocation, struct invocation_result *result)
{
    struct call *call = invocation->context;

    assert_int_equal(call->ends, 0);
    call->responses++;
    call->function_error = result->function_error;
    call->duration_ns = result->duration_ns;
    buffer_deinit(&call->payload);
    call->payload = buffer_take(&result->payload);
    if (call->kill_in_response)
        environment_kill(call->subject->environment);
    if (call->retire_in_response)
        environment_retire(call->subject->environment);
}

static void on_end(struct invocation *invocation)
{
    struct call *call = invocation->context;

    assert_int_equal(call->responses, 1);
    call->ends++;
    if (call->invoke_in_end)
        call_begin(call->invoke_in_end, call->subject);
}

static const struct invocation_events invocation_events = {.on_response = on_response, .on_end = on_end};

static void call_init(struct call *call, const char *command)
{
    *call = (struct call){0};
    snprintf(call->event, sizeof(call->event), "\"%s\"", command);
    random_uuid(call->request_id);
    call->invocation.events = &invocation_events;
    call->invocation.context = call;
    memcpy(call->invocation.request_id, call->request_id, sizeof(call->request_id));
    call->invocation.event = span_from(call->event);
    call->invocation.invoked_arn = "arn:aws:lambda:us-east-1:000000000000:function:shop";
}

static void call_begin(struct call *call, struct subject *subject)
{
    call->subject = subject;
    environment_invoke(subject->environment, &call->invocation);
}

static void call_deinit(struct call *call)
{
    buffer_deinit(&call->payload);
    buffer_deinit(&call->invocation.log_tail);
}

/* Invokes and waits for the end. */
static void run_call(struct fixture *fixture, struct subject *subject, struct call *call, const char *command)
{
    call_init(call, command);
    call_begin(call, subject);
    RUN_UNTIL(fixture, call->ends);
    assert_int_equal(call->responses, 1);
    assert_int_equal(call->ends, 1);
}

static void assert_payload(const struct call *call, const char *expected)
{
    if (call->payload.length != strlen(expected) || memcmp(call->payload.data, expected, call->payload.length) != 0)
        fail_msg("payload is %.*s, not %s", (int)MIN(call->payload.length, (size_t)2000),
                 call->payload.data ? call->payload.data : "", expected);
}

/* "{"errorType":T,"errorMessage":"RequestId: ID Error: M"}" */
static void assert_error(const struct call *call, const char *type, const char *message)
{
    char expected[1024];

    snprintf(expected, sizeof(expected), "{\"errorType\":\"%s\",\"errorMessage\":\"RequestId: %s Error: %s\"}", type,
             call->request_id, message);
    assert_payload(call, expected);
    assert_true(call->function_error);
}

static void expect_echo(struct fixture *fixture, struct subject *subject, const char *command, const char *answer)
{
    struct call call;

    run_call(fixture, subject, &call, command);
    assert_payload(&call, answer);
    assert_false(call.function_error);
    call_deinit(&call);
}

struct options {
    const char *init;
    unsigned timeout_s;
    unsigned memory_mib;
    const char *runtime;
    const char *handler;
    const char *task_dir;
    enum environment_origin origin;
    const char *log_format;
};

static void start(struct fixture *fixture, struct subject *subject, struct options options)
{
    const struct environment_variable variables[] = {{"INIT", options.init ? options.init : ""},
                                                     {"TZ", "Europe/Vienna"}};
    const struct environment_spec spec = {
        .account = "000000000000",
        .region = "us-east-1",
        .function_name = "shop",
        .version = "$LATEST",
        .runtime = options.runtime ? options.runtime : "provided.al2023",
        .handler = options.handler ? options.handler : "index.handler",
        .memory_mib = options.memory_mib ? options.memory_mib : 128,
        .timeout_s = options.timeout_s ? options.timeout_s : 10,
        .tmp_mib = 512,
        .task_dir = options.task_dir ? options.task_dir : fixture->task_dir,
        .layer_dirs = {fixture->layer_dir[0] ? fixture->layer_dir : NULL},
        .variables = variables,
        .variable_count = ARRAY_SIZE(variables),
        .log_group = "/aws/lambda/shop",
        .origin = options.origin,
        .log_format = options.log_format,
    };

    *subject = (struct subject){.invoke_when_ready = subject->invoke_when_ready,
                                .retire_in_idle_exit = subject->retire_in_idle_exit};
    assert_int_equal(
        worker_start_environment(fixture->worker, &spec, &environment_events, subject, &subject->environment), 0);
}

static void start_ready(struct fixture *fixture, struct subject *subject, struct options options)
{
    start(fixture, subject, options);
    RUN_UNTIL(fixture, subject->ready || subject->gone);
    if (subject->gone)
        fail_msg("the environment could not be made: %s", subject->fault.text);
    assert_int_equal(subject->ready, 1);
}

static void retire(struct fixture *fixture, struct subject *subject)
{
    environment_retire(subject->environment);
    RUN_UNTIL(fixture, subject->gone);
    assert_false(subject->has_fault);
}

/* --- the log ------------------------------------------------------------------------------------------------------ */

/* All messages of the newest stream, after everything has been written. */
static struct buffer read_log(struct fixture *fixture)
{
    CLEANUP(buffer_deinit) struct buffer file = BUFFER_INIT;
    struct buffer text = BUFFER_INIT;
    struct log_record record;
    struct span rest;
    char folder[PATH_MAX];
    char path[PATH_MAX * 2];
    DIR *directory;
    struct dirent *entry;

    fixture->worker = worker_free(fixture->worker); /* flushes */
    snprintf(folder, sizeof(folder), "%s/logs/~aws~lambda~shop", fixture->root);
    directory = opendir(folder);
    assert_non_null(directory);
    while ((entry = readdir(directory))) {
        CLEANUP(cleanup_close) int fd = -1;
        ssize_t n;

        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        do {
            assert_int_equal(buffer_reserve(&file, 65536), 0);
            n = read(fd, file.data + file.length, 65536);
            file.length += n > 0 ? (size_t)n : 0;
        } while (n > 0);
    }
    closedir(directory);
    rest = buffer_span(&file);
    while (log_record_parse(&rest, &record) == 0) {
        assert_int_equal(buffer_append_span(&text, record.message), 0);
        if (!span_ends_with(record.message, SPAN("\n")))
            assert_int_equal(buffer_append_char(&text, '\n'), 0);
    }
    assert_int_equal(rest.length, 0);
    assert_non_null(buffer_terminate(&text));
    return text;
}

/* Finds `needle` after `*at` and moves past it. */
static void assert_follows(const char **at, const char *needle)
{
    const char *found = strstr(*at, needle);

    if (!found)
        fail_msg("no '%s' in: %s", needle, *at);
    *at = found + strlen(needle);
}

/* --- tests: the good ways ------------------------------------------------------------------------------------------
 */

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

static void test_log_and_tail_have_the_recorded_lines(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;
    CLEANUP(buffer_deinit) struct buffer log = BUFFER_INIT;
    char line[128];
    const char *at;

    start_ready(fixture, &subject, (struct options){0});
    call_init(&call, "print one two");
    call.invocation.wants_log_tail = true;
    call_begin(&call, &subject);
    RUN_UNTIL(fixture, call.responses);
    assert_non_null(buffer_terminate(&call.invocation.log_tail));
    at = call.invocation.log_tail.data;
    snprintf(line, sizeof(line), "START RequestId: %s Version: $LATEST\none two\nEND RequestId: ", call.request_id);
    assert_memory_equal(at, line, strlen(line));
    assert_follows(&at, "\nREPORT RequestId: ");
    assert_follows(&at, "\tMemory Size: 128 MB\tMax Memory Used: ");
    assert_follows(&at, "\tInit Duration: ");
    RUN_UNTIL(fixture, call.ends);
    call_deinit(&call);
    run_call(fixture, &subject, &call, "print three");
    call_deinit(&call);
    retire(fixture, &subject);
    log = read_log(fixture);
    at = log.data;
    assert_memory_equal(at, "INIT_START Runtime Version: provided:al2023.v1\n", 47);
    assert_follows(&at, "\none two\nEND RequestId: ");
    assert_follows(&at, "\nREPORT RequestId: ");
    assert_follows(&at, "Init Duration: ");
    assert_follows(&at, "\nthree\nEND RequestId: ");
    assert_follows(&at, "\nREPORT RequestId: ");
    assert_null(strstr(at, "Init Duration"));
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

/* --- tests: failing invocations ------------------------------------------------------------------------------------
 */

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

/* --- tests: failing Init -------------------------------------------------------------------------------------------
 */

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

/* --- tests: output -------------------------------------------------------------------------------------------------
 */

static void test_flood_does_not_starve_others_nor_grow(void **state)
{
    struct fixture *fixture = *state;
    struct subject noisy = {0}, quiet = {0};
    struct call flood;
    int64_t begin_ns;

    start_ready(fixture, &noisy, (struct options){.timeout_s = 2});
    start_ready(fixture, &quiet, (struct options){0});
    call_init(&flood, "floodhang");
    call_begin(&flood, &noisy);
    run_for(fixture, 200);
    begin_ns = clock_monotonic_ns();
    for (int i = 0; i < 20; i++)
        expect_echo(fixture, &quiet, "hello", "hello");
    assert_in_range(clock_monotonic_ns() - begin_ns, 0, 20 * NS_PER_S);
    RUN_UNTIL(fixture, flood.ends);
    assert_error(&flood, "Sandbox.Timedout", "Task timed out after 2.00 seconds");
    call_deinit(&flood);
    /* what was left in the pipe does not show in the next invocation's tail */
    call_init(&flood, "print after");
    flood.invocation.wants_log_tail = true;
    call_begin(&flood, &noisy);
    RUN_UNTIL(fixture, flood.ends);
    assert_non_null(buffer_terminate(&flood.invocation.log_tail));
    assert_null(strstr(flood.invocation.log_tail.data, "ffff"));
    assert_non_null(strstr(flood.invocation.log_tail.data, "\nafter\nEND "));
    call_deinit(&flood);
    retire(fixture, &noisy);
    retire(fixture, &quiet);
}

static void test_much_output_is_all_in_the_log(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    CLEANUP(buffer_deinit) struct buffer log = BUFFER_INIT;
    size_t count = 0;

    start_ready(fixture, &subject, (struct options){0});
    expect_echo(fixture, &subject, "flood 3276800", "flooded");
    retire(fixture, &subject);
    log = read_log(fixture);
    for (struct span rest = buffer_span(&log); rest.data;) {
        struct span line = span_cut(&rest, '\n');

        count += line.length == 63 && strspn(line.data, "f") == 63;
    }
    assert_int_equal(count, 3276800 / 64);
}

/* --- tests: the end ------------------------------------------------------------------------------------------------
 */

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

#ifndef WORKER_TEST_REAL

/* --- tests that need a hand on the launcher -------------------------------------------------------------------------
 */

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

#else

/* --- tests that need a real sandbox ---------------------------------------------------------------------------------
 */

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

#endif

/* --- tests: extensions -------------------------------------------------------------------------------------------- */

/* A layer with the test's extension under these names. */
static void add_extensions(struct fixture *fixture, const char *const *names)
{
    char path[PATH_MAX];

    assert_non_null(getenv("TEST_EXTENSION"));
    snprintf(fixture->layer_dir, sizeof(fixture->layer_dir), "%s/layer", fixture->root);
    snprintf(path, sizeof(path), "%s/extensions", fixture->layer_dir);
    assert_true(mkdir(fixture->layer_dir, 0755) == 0 && mkdir(path, 0755) == 0);
    for (; *names; names++) {
        snprintf(path, sizeof(path), "%s/extensions/%s", fixture->layer_dir, *names);
        copy_program(getenv("TEST_EXTENSION"), path);
    }
}

#define ADD_EXTENSIONS(fixture, ...) add_extensions(fixture, (const char *const[]){__VA_ARGS__, NULL})

static void assert_in(const struct buffer *log, const char *needle)
{
    const char *at = log->data;

    assert_follows(&at, needle);
}

static void assert_not_in(const struct buffer *log, const char *needle)
{
    if (strstr(log->data, needle))
        fail_msg("'%s' in: %s", needle, log->data);
}

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

/* --- tests: telemetry --------------------------------------------------------------------------------------------- */

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

#ifndef WORKER_TEST_REAL
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
#endif

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_environment_answers_again_and_again),
        CASE(test_response_comes_before_the_environment_is_free),
        CASE(test_next_invocation_may_come_from_inside_on_end),
        CASE(test_event_comes_with_its_headers),
        CASE(test_trace_id_is_made_when_the_caller_has_none),
        CASE(test_owned_event_is_moved_out),
        CASE(test_process_sees_the_recorded_variables),
        CASE(test_log_and_tail_have_the_recorded_lines),
        CASE(test_provisioned_init_is_reported_and_has_its_own_limit),
        CASE(test_provisioned_environment_ends_with_a_failed_invocation),
        CASE(test_owner_may_retire_an_environment_whose_runtime_died_while_idle),
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
        CASE(test_flood_does_not_starve_others_nor_grow),
        CASE(test_much_output_is_all_in_the_log),
        CASE(test_retire_while_busy_lets_the_invocation_finish),
        CASE(test_retire_while_failing_ends_once),
        CASE(test_kill_while_busy_ends_with_an_error),
        CASE(test_kill_and_retire_from_inside_on_response),
        CASE(test_retire_and_kill_at_once_after_the_start),
        CASE(test_worker_may_end_in_any_state),
        CASE(test_many_environments_at_once),
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
        CASE(test_telemetry_tells_of_everything_in_order),
        CASE(test_logs_api_has_its_own_events),
        CASE(test_telemetry_by_tcp_is_one_json_a_line),
        CASE(test_refused_batches_are_sent_again),
        CASE(test_batches_given_up_are_told),
        CASE(test_lines_of_json_logs_are_records),
        CASE(test_wrong_subscriptions_are_refused),
        CASE(test_dead_subscriber_does_not_disturb),
        CASE(test_environment_without_subscription_keeps_nothing),
#ifndef WORKER_TEST_REAL
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
#else
        CASE(test_tmp_is_kept_over_a_reset),
        CASE(test_frozen_environment_thaws_for_its_event),
        CASE(test_out_of_memory_is_killed_and_named),
        CASE(test_python_function_runs_on_the_hosts_interpreter),
        CASE(test_node_function_runs_on_the_hosts_interpreter),
#endif
    };

#ifdef WORKER_TEST_REAL
    if (geteuid() != 0) {
        printf("1..0 # SKIP real sandboxes need root here\n");
        return 0;
    }
#endif
    if (getenv("TEST_FILTER"))
        cmocka_set_test_filter(getenv("TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
