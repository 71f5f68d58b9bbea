#include "worker/testing.h"

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
/* cmocka.h needs setjmp.h, stdarg.h, stddef.h and stdint.h */
#include <cmocka.h>

enum { WATCHDOG_MS = 120000, INIT_LIMIT_MS = 400 };

/* --- the fixture -------------------------------------------------------------------------------------------------- */

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

int setup(void **state)
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

int teardown(void **state)
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

static void on_nap_over(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
}

void run_for(struct fixture *fixture, unsigned ms)
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

void call_init(struct call *call, const char *command)
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

void call_begin(struct call *call, struct subject *subject)
{
    call->subject = subject;
    environment_invoke(subject->environment, &call->invocation);
}

void call_deinit(struct call *call)
{
    buffer_deinit(&call->payload);
    buffer_deinit(&call->invocation.log_tail);
}

void run_call(struct fixture *fixture, struct subject *subject, struct call *call, const char *command)
{
    call_init(call, command);
    call_begin(call, subject);
    RUN_UNTIL(fixture, call->ends);
    assert_int_equal(call->responses, 1);
    assert_int_equal(call->ends, 1);
}

void assert_payload(const struct call *call, const char *expected)
{
    if (call->payload.length != strlen(expected) || memcmp(call->payload.data, expected, call->payload.length) != 0)
        fail_msg("payload is %.*s, not %s", (int)MIN(call->payload.length, (size_t)2000),
                 call->payload.data ? call->payload.data : "", expected);
}

void assert_error(const struct call *call, const char *type, const char *message)
{
    char expected[1024];

    snprintf(expected, sizeof(expected), "{\"errorType\":\"%s\",\"errorMessage\":\"RequestId: %s Error: %s\"}", type,
             call->request_id, message);
    assert_payload(call, expected);
    assert_true(call->function_error);
}

void expect_echo(struct fixture *fixture, struct subject *subject, const char *command, const char *answer)
{
    struct call call;

    run_call(fixture, subject, &call, command);
    assert_payload(&call, answer);
    assert_false(call.function_error);
    call_deinit(&call);
}

void start(struct fixture *fixture, struct subject *subject, struct options options)
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

void start_ready(struct fixture *fixture, struct subject *subject, struct options options)
{
    start(fixture, subject, options);
    RUN_UNTIL(fixture, subject->ready || subject->gone);
    if (subject->gone)
        fail_msg("the environment could not be made: %s", subject->fault.text);
    assert_int_equal(subject->ready, 1);
}

void retire(struct fixture *fixture, struct subject *subject)
{
    environment_retire(subject->environment);
    RUN_UNTIL(fixture, subject->gone);
    assert_false(subject->has_fault);
}

/* --- extensions --------------------------------------------------------------------------------------------------- */

void add_extensions(struct fixture *fixture, const char *const *names)
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

/* --- the log ------------------------------------------------------------------------------------------------------ */

struct buffer read_log(struct fixture *fixture)
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

void assert_follows(const char **at, const char *needle)
{
    const char *found = strstr(*at, needle);

    if (!found)
        fail_msg("no '%s' in: %s", needle, *at);
    *at = found + strlen(needle);
}

void assert_in(const struct buffer *log, const char *needle)
{
    const char *at = log->data;

    assert_follows(&at, needle);
}

void assert_not_in(const struct buffer *log, const char *needle)
{
    if (strstr(log->data, needle))
        fail_msg("'%s' in: %s", needle, log->data);
}

/* --- running ------------------------------------------------------------------------------------------------------ */

bool tests_can_run(void)
{
#ifdef WORKER_TEST_REAL
    if (geteuid() != 0) {
        printf("1..0 # SKIP real sandboxes need root here\n");
        return false;
    }
#endif
    if (getenv("TEST_FILTER"))
        cmocka_set_test_filter(getenv("TEST_FILTER"));
    return true;
}
