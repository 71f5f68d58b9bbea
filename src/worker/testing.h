/*
 * For the tests of the whole worker (worker_*_test.c): the worker on a real loop with the real HTTP server and a
 * runtime that behaves well and badly (testing/test_bootstrap.c). Built twice: with the fake launcher (plain child
 * processes, no privileges), and with the real one as WORKER_TEST_REAL, which needs root.
 *
 * What goes wrong in here fails the test that called. Every invocation is checked for exactly one on_response, then
 * exactly one on_end.
 */
#pragma once

#include "base/random.h"
#include "worker/worker.h"

enum { FREEZE_MS = 300, SHUTDOWN_MS = 600 }; /* the worker's freeze_grace_ms and shutdown_limit_ms */

struct fixture {
    uv_loop_t loop;
    uv_timer_t watchdog;
    struct http_server *server;
    struct launcher *launcher;
    struct worker *worker;
    char root[64]; /* a directory that goes with the fixture; the data directory too */
    char task_dir[128];
    char layer_dir[128]; /* empty: none */
    bool lost;
};

/* An environment and what its owner was told. */
struct subject {
    struct environment *environment; /* NULL when gone */
    int ready, gone, idle_exits;
    bool ready_ok;
    bool retire_in_idle_exit;
    struct fault fault;
    bool has_fault;
    struct call *invoke_when_ready;
};

/* An invocation and what came of it. */
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

/* --- the fixture -------------------------------------------------------------------------------------------------- */

/* For cmocka: each test has a fixture of its own, *state. A watchdog aborts a test that hangs. */
int setup(void **state);
int teardown(void **state);

/* Turns the loop until the condition holds; the watchdog ends what never does. */
#define RUN_UNTIL(fixture, condition)          \
    while (!(condition)) {                     \
        uv_run(&(fixture)->loop, UV_RUN_ONCE); \
    }

/* Turns the loop for that long. */
void run_for(struct fixture *fixture, unsigned ms);

/* --- environments and invocations --------------------------------------------------------------------------------- */

/* What differs from a provided.al2023 function of 128 MB with ten seconds, whose bootstrap is the tests' runtime. */
struct options {
    const char *init; /* what the runtime does in Init: see test_bootstrap.c */
    unsigned timeout_s;
    unsigned memory_mib;
    const char *runtime;
    const char *handler;
    const char *task_dir;
    enum environment_origin origin;
    const char *log_format;
};

/* Starts an environment of the function "shop". `subject` is set anew, but for what it does in callbacks, and must stay
 * until it is gone. */
void start(struct fixture *fixture, struct subject *subject, struct options options);
/* Waits until it is ready, too. Its Init may have failed (ready_ok); the sandbox must have been made. */
void start_ready(struct fixture *fixture, struct subject *subject, struct options options);
/* Retires and waits until it is gone, without a fault. */
void retire(struct fixture *fixture, struct subject *subject);

/* The event is `command` as a JSON string: see test_bootstrap.c. What else the invocation asks for may be set between
 * call_init and call_begin. */
void call_init(struct call *call, const char *command);
/* Invokes; `call` must stay until the end. */
void call_begin(struct call *call, struct subject *subject);
void call_deinit(struct call *call);
/* call_init, call_begin, and waits for the end. The caller ends it with call_deinit. */
void run_call(struct fixture *fixture, struct subject *subject, struct call *call, const char *command);
/* A whole invocation that succeeds with this payload. */
void expect_echo(struct fixture *fixture, struct subject *subject, const char *command, const char *answer);

void assert_payload(const struct call *call, const char *expected);
/* The call failed with {"errorType":T,"errorMessage":"RequestId: ID Error: M"}. */
void assert_error(const struct call *call, const char *type, const char *message);

/* --- extensions --------------------------------------------------------------------------------------------------- */

/* Gives the environments to come a layer with the tests' extension (testing/test_extension.c) under these names, which
 * say what it does; the list ends with NULL. Once a test. */
void add_extensions(struct fixture *fixture, const char *const *names);

#define ADD_EXTENSIONS(fixture, ...) add_extensions(fixture, (const char *const[]){__VA_ARGS__, NULL})

/* --- the log ------------------------------------------------------------------------------------------------------ */

/* All messages of the function's streams, terminated. Ends the worker, so that everything has been written. The caller
 * owns the buffer. */
struct buffer read_log(struct fixture *fixture);
/* Finds `needle` after `*at` and moves past it. */
void assert_follows(const char **at, const char *needle);
void assert_in(const struct buffer *log, const char *needle);
void assert_not_in(const struct buffer *log, const char *needle);

/* --- running ------------------------------------------------------------------------------------------------------ */

/* False, and the TAP of a skip is printed, without the privileges that sandboxes need. Heeds TEST_FILTER. */
bool tests_can_run(void);

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
/* What main returns. */
#define RUN_CASES(tests) (tests_can_run() ? cmocka_run_group_tests(tests, NULL, NULL) : 0)
