/*
 * The state machine drawn in environment.h. Read it in this order: states, the launcher's requests, Init, the
 * invocation, its failures, the end.
 */
#include "worker/environment.h"

#include "worker/environment_extensions.h"
#include "worker/telemetry.h"

#include <assert.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

#define FROM(state) (1u << (state))

/* The states each state may be entered from. */
static const unsigned predecessors[] = {
    [ENVIRONMENT_CREATING] = 0,
    [ENVIRONMENT_INIT] = FROM(ENVIRONMENT_CREATING) | FROM(ENVIRONMENT_STALE),
    [ENVIRONMENT_IDLE] = FROM(ENVIRONMENT_INIT) | FROM(ENVIRONMENT_BUSY),
    [ENVIRONMENT_BUSY] = FROM(ENVIRONMENT_IDLE) | FROM(ENVIRONMENT_INIT),
    [ENVIRONMENT_RESETTING] = FROM(ENVIRONMENT_INIT) | FROM(ENVIRONMENT_IDLE) | FROM(ENVIRONMENT_BUSY),
    [ENVIRONMENT_STALE] = FROM(ENVIRONMENT_RESETTING),
    [ENVIRONMENT_SHUTDOWN] = ~FROM(ENVIRONMENT_SHUTDOWN),
};

static const struct platform_outcome success = {PLATFORM_SUCCESS, NULL};

static const char *const state_names[] = {
    [ENVIRONMENT_CREATING] = "CREATING", [ENVIRONMENT_INIT] = "INIT",           [ENVIRONMENT_IDLE] = "IDLE",
    [ENVIRONMENT_BUSY] = "BUSY",         [ENVIRONMENT_RESETTING] = "RESETTING", [ENVIRONMENT_STALE] = "STALE",
    [ENVIRONMENT_SHUTDOWN] = "SHUTDOWN",
};

static void set_state(struct environment *environment, enum environment_state state)
{
    const struct log *log = environment->worker->config.log;

    assert(predecessors[state] & FROM(environment->state));
    (void)predecessors; /* without asserts */
    if (log && log->minimum <= LOG_DEBUG)
        log_event(log, LOG_DEBUG, "environment %llu of %s: %s -> %s", (unsigned long long)environment->id,
                  environment->spec.function_name, state_names[environment->state], state_names[state]);
    environment->state = state;
}

/* --- what is asked of the launcher -------------------------------------------------------------------------------- */

static void fail_later(struct environment *environment)
{
    worker_start_limit(environment->worker, environment->worker->settles, &environment->settle, clock_monotonic_ns());
}

static void PRINTF_LIKE(4, 5) record_failure(struct environment *environment, enum platform_status status,
                                             const char *type, const char *format, ...)
{
    struct failure *failure = &environment->failure;
    va_list args;

    if (failure->set)
        return; /* the first cause counts */
    failure->set = true;
    failure->status = status;
    failure->report_type = NULL;
    snprintf(failure->type, sizeof(failure->type), "%s", type);
    va_start(args, format);
    vsnprintf(failure->message, sizeof(failure->message), format, args);
    va_end(args);
}

static struct platform_outcome failure_outcome(const struct failure *failure)
{
    return (struct platform_outcome){failure->status, failure->report_type ? failure->report_type : failure->type};
}

static void clear_failure(struct environment *environment)
{
    buffer_deinit(&environment->failure.posted);
    environment->failure = (struct failure){0};
    limit_stop(&environment->settle);
}

static int send_create(struct environment *environment)
{
    const struct environment_spec *spec = &environment->spec;
    const char *folder = runtime_family_folder(runtime_family_of(spec->runtime));
    struct sandbox_spec sandbox = {.id = environment->id,
                                   .task_dir = spec->task_dir,
                                   .memory_mib = spec->memory_mib,
                                   .tmp_mib = spec->tmp_mib,
                                   .cpu_boost = true};
    char runtime_dir[4096];

    for (size_t i = 0; i < SANDBOX_LAYERS_MAX; i++)
        sandbox.layer_dirs[i] = spec->layer_dirs[i];
    if (folder) {
        if (snprintf(runtime_dir, sizeof(runtime_dir), "%s/%s", environment->worker->runtimes_dir, folder) >=
            (int)sizeof(runtime_dir))
            return -ENAMETOOLONG;
        sandbox.runtime_dir = runtime_dir;
    }
    return launcher_create(environment->worker->config.launcher, &sandbox);
}

static int send_run(struct environment *environment)
{
    const struct sandbox_process process = {
        .argv = environment->choice.argv, .envp = environment->process_variables, .cwd = "/var/task"};
    char text[INVOCATION_MESSAGE_BYTES];
    int r = launcher_run(environment->worker->config.launcher, environment->id, environment->run, &process);

    if (r == -EAGAIN || r == 0)
        return r;
    record_failure(environment, PLATFORM_ERROR, "Runtime.InvalidEntrypoint", "%s",
                   invocation_error_exec(environment->choice.path, -r, text));
    fail_later(environment);
    return 0;
}

static int send_request(struct environment *environment, enum environment_request request)
{
    struct launcher *launcher = environment->worker->config.launcher;

    switch (request) {
    case REQUEST_CREATE:
        return send_create(environment);
    case REQUEST_RUN_EXTENSIONS:
        return extensions_send_runs(environment);
    case REQUEST_RUN:
        return send_run(environment);
    case REQUEST_LIMIT_CPU:
        return launcher_limit_cpu(launcher, environment->id);
    case REQUEST_TERMINATE_RUNTIME:
        return launcher_signal(launcher, environment->id, environment->run, SIGTERM);
    case REQUEST_KILL_RUNTIME:
        return launcher_signal(launcher, environment->id, environment->run, SIGKILL);
    case REQUEST_RESET:
        return launcher_reset(launcher, environment->id);
    case REQUEST_KILL:
        return launcher_kill(launcher, environment->id);
    }
    return -EINVAL;
}

static void send_later(struct environment *environment)
{
    worker_start_limit(environment->worker, environment->worker->retries, &environment->retry, clock_monotonic_ns());
}

/* Errors other than a full socket mean that the launcher is lost, which it says itself (on_lost), except for a
 * creation, which may ask for too much. */
static void send_wanted(struct environment *environment)
{
    for (unsigned request = REQUEST_CREATE; request <= REQUEST_KILL; request <<= 1) {
        int r;

        if (!(environment->wanted & request))
            continue;
        r = send_request(environment, request);
        if (r == -EAGAIN) {
            send_later(environment);
            return;
        }
        if (r < 0 && request == REQUEST_CREATE) {
            fault_set(&environment->sandbox_fault, -r, "the sandbox could not be asked for: %s", strerror(-r));
            environment->wanted = 0;
            environment->creation_refused = true;
            send_later(environment); /* to end it from the loop */
            return;
        }
        environment->wanted &= ~request;
    }
}

void environment_ask(struct environment *environment, enum environment_request request)
{
    if (request == REQUEST_RESET || request == REQUEST_KILL)
        environment->wanted &= REQUEST_CREATE; /* a run not yet sent is not wanted any more */
    environment->wanted |= request;
    send_wanted(environment);
}

void environment_on_retry(struct limit *limit)
{
    struct environment *environment = CONTAINER_OF(limit, struct environment, retry);

    if (environment->creation_refused)
        environment_on_sandbox_gone(environment, &environment->sandbox_fault);
    else
        send_wanted(environment);
}

static void stop_limits(struct environment *environment)
{
    limit_stop(&environment->limit);
    limit_stop(&environment->grace);
    limit_stop(&environment->settle);
}

/* What extensions are told of the end; NULL where there is no time for a Shutdown phase. */
#define AT_ONCE  NULL
#define SPINDOWN "spindown"

static const char *failure_reason(const struct environment *environment)
{
    return environment->failure.status == PLATFORM_TIMEOUT ? "timeout" : "failure";
}

void environment_on_closed(struct environment *environment)
{
    if (environment->state == ENVIRONMENT_SHUTDOWN) {
        environment_ask(environment, REQUEST_KILL);
        return;
    }
    environment->runtime_alive = false;
    environment->frozen = false; /* the launcher thaws first */
    environment_ask(environment, REQUEST_RESET);
}

static void begin_shutdown(struct environment *environment, const char *reason)
{
    bool closing = extensions_are_closing(environment);

    if (environment->state != ENVIRONMENT_SHUTDOWN) {
        stop_limits(environment);
        list_remove(&environment->probe_link);
        set_state(environment, ENVIRONMENT_SHUTDOWN);
    } else if (!closing) {
        return;
    }
    if (reason && (closing || extensions_close(environment, reason)))
        return; /* one that a reset had begun goes on */
    extensions_stop_closing(environment);
    environment_on_closed(environment);
}

static void begin_reset(struct environment *environment, const char *reason)
{
    stop_limits(environment);
    set_state(environment, ENVIRONMENT_RESETTING);
    if (!extensions_close(environment, reason))
        environment_on_closed(environment);
}

static void tell_ready(struct environment *environment, bool ok)
{
    if (environment->told_ready)
        return;
    environment->told_ready = true;
    environment->events->on_ready(environment, ok, environment->context);
}

/* --- Init --------------------------------------------------------------------------------------------------------- */

/* Chooses the program and has it started; what is wrong with it shows when the failure is concluded. */
static void start_runtime(struct environment *environment, const struct runtime_host *host)
{
    const struct environment_spec *spec = &environment->spec;
    struct runtime_bootstraps bootstraps = runtime_find_bootstraps(spec->task_dir, spec->layer_dirs);
    bool first = environment->run == 0;
    int r = runtime_choose(spec->runtime, host, bootstraps, environment->wrapper, &environment->choice);

    if (first)
        environment_log_init_start(environment);
    environment->run = ++environment->last_run;
    if (r == RUNTIME_CHOICE_NONE) {
        record_failure(environment, PLATFORM_ERROR, "Runtime.InvalidEntrypoint", "%s", environment->choice.error);
        fail_later(environment);
        return;
    }
    if (!extensions_launch(environment))
        environment_run_runtime(environment);
}

void environment_run_runtime(struct environment *environment)
{
    environment->runtime_alive = true;
    environment_ask(environment, REQUEST_RUN);
}

/* Init's time runs from when there is a sandbox and a program in it. */
static void start_init_clock(struct environment *environment)
{
    int64_t now_ns = clock_monotonic_ns();

    environment->init_start_ns = now_ns;
    if (!environment->invocation)
        worker_start_limit(environment->worker, environment->inits, &environment->limit, now_ns);
}

static void begin_init(struct environment *environment)
{
    const struct runtime_host *host;

    clear_failure(environment);
    host = worker_runtime_host(environment->worker, environment);
    if (host)
        start_runtime(environment, host);
}

void environment_on_probed(struct environment *environment)
{
    start_runtime(environment, &environment->worker->host);
    if (environment->state == ENVIRONMENT_INIT)
        start_init_clock(environment);
}

static void conclude(struct environment *environment);

static void fault_sandbox(struct environment *environment, int error)
{
    fault_set(&environment->sandbox_fault, error, "the sandbox could not be set up: %s", strerror(error));
    begin_shutdown(environment, AT_ONCE);
}

void environment_on_created(struct environment *environment, struct sandbox_created *created)
{
    int r;

    if (environment->state == ENVIRONMENT_SHUTDOWN)
        return; /* retired meanwhile; the caller closes the descriptors */
    environment->uid = created->uid;
    environment->init_pid = created->init_pid;
    environment->check_peer = strncmp(created->api_address, "127.", 4) == 0;
    r = environment_io_start(environment, created);
    if (r == 0)
        r = runtime_api_listen(environment, created->api_fd);
    if (r < 0) {
        fault_sandbox(environment, -r);
        return;
    }
    (void)TAKE_FD(created->api_fd);
    set_state(environment, ENVIRONMENT_INIT);
    if (!list_is_linked(&environment->probe_link))
        start_init_clock(environment);
    if (environment->failure.set)
        conclude(environment);
}

static int64_t end_init(struct environment *environment)
{
    int64_t now_ns = clock_monotonic_ns();

    return environment->init_start_ns ? now_ns - environment->init_start_ns : 0;
}

static void become_idle(struct environment *environment)
{
    set_state(environment, ENVIRONMENT_IDLE);
    worker_start_limit(environment->worker, environment->worker->graces, &environment->grace, clock_monotonic_ns());
}

static void deliver_event(struct environment *environment);

/* The runtime has asked for its first event, and so have the extensions. */
static void finish_init(struct environment *environment)
{
    int64_t init_ns = end_init(environment);

    extensions_log(environment);
    if (environment->invocation) /* else environment_log_init_end tells */
        telemetry_init_report(environment, init_ns, success);
    if (environment->boosted)
        environment_ask(environment, REQUEST_LIMIT_CPU);
    environment->boosted = false;
    if (environment->invocation) {
        telemetry_end_init(environment);
        set_state(environment, ENVIRONMENT_BUSY);
        deliver_event(environment);
        return;
    }
    limit_stop(&environment->limit);
    environment_io_drain(environment);
    environment_log_init_end(environment, init_ns, success);
    telemetry_end_init(environment);
    if (environment->spec.origin != ENVIRONMENT_PROVISIONED)
        environment->init_ns = init_ns;
    become_idle(environment);
    tell_ready(environment, true);
}

static void fail_invocation(struct environment *environment);

static void fail_init(struct environment *environment)
{
    environment_io_drain(environment);
    telemetry_init_runtime_done(environment, failure_outcome(&environment->failure));
    extensions_log(environment);
    environment_log_init_end(environment, end_init(environment), failure_outcome(&environment->failure));
    telemetry_end_init(environment);
    if (environment->invocation) {
        fail_invocation(environment);
        return;
    }
    begin_reset(environment, failure_reason(environment));
    tell_ready(environment, false);
}

void environment_on_init_limit(struct limit *limit)
{
    struct environment *environment = CONTAINER_OF(limit, struct environment, limit);

    record_failure(environment, PLATFORM_TIMEOUT, "Sandbox.Timedout", "Init timed out");
    fail_init(environment);
}

/* --- the invocation ----------------------------------------------------------------------------------------------- */

static void deliver_event(struct environment *environment)
{
    int64_t now_ns = clock_monotonic_ns();
    int64_t left_ns;

    if (!environment->begin_ns) {
        environment->begin_ns = now_ns;
        worker_start_limit(environment->worker, environment->timeouts, &environment->limit, now_ns);
    }
    left_ns = environment->limit.at_ns - now_ns;
    environment_log_start(environment);
    environment->event_given = true;
    environment->deadline_wall_ms = (clock_wall_ns() + left_ns) / NS_PER_MS;
    if (runtime_api_send_event(environment) < 0) {
        record_failure(environment, PLATFORM_ERROR, "Sandbox.Failure", "Out of memory");
        fail_later(environment);
    }
}

void environment_invoke(struct environment *environment, struct invocation *invocation)
{
    assert(!environment->invocation && environment->told_ready && !environment->retiring);
    environment->invocation = invocation;
    environment->event_given = environment->answered = environment->ended = false;
    environment->begin_ns = 0;
    environment->produced_bytes = 0;
    if (invocation->wants_log_tail)
        function_log_set_tail(environment->log, &invocation->log_tail);
    limit_stop(&environment->grace);
    if (environment->state == ENVIRONMENT_IDLE) {
        environment_io_thaw(environment);
        set_state(environment, ENVIRONMENT_BUSY);
        if (environment->next) {
            deliver_event(environment);
            return;
        }
    }
    if (environment->state == ENVIRONMENT_SHUTDOWN)
        return; /* killed meanwhile: on_gone ends it */
    /* What comes before the event is part of the invocation's time: reset, Init, a runtime late to reconnect. */
    environment->begin_ns = clock_monotonic_ns();
    worker_start_limit(environment->worker, environment->timeouts, &environment->limit, environment->begin_ns);
    if (environment->state == ENVIRONMENT_STALE) {
        set_state(environment, ENVIRONMENT_INIT);
        environment->init_start_ns = environment->begin_ns;
        begin_init(environment);
    }
}

static void give_result(struct environment *environment, struct invocation_result *result)
{
    environment->invocation->events->on_response(environment->invocation, result);
}

static void give_held_result(struct environment *environment)
{
    struct invocation_result result = environment->held;

    if (!environment->holds_result)
        return;
    environment->holds_result = false;
    environment->held = (struct invocation_result){0};
    give_result(environment, &result);
}

static void answer_with(struct environment *environment, struct invocation_result result)
{
    environment->torn_answer = environment->streaming = false;
    result.duration_ns = environment->begin_ns ? clock_monotonic_ns() - environment->begin_ns : 0;
    environment->produced_bytes = result.payload.length;
    environment->answered = true;
    telemetry_answered(environment, result.payload.length);
    if (environment->invocation->wants_log_tail && !environment->ended) {
        environment->held = result;
        environment->holds_result = true;
        return;
    }
    give_result(environment, &result);
}

static void answer(struct environment *environment, struct buffer *payload, bool function_error)
{
    answer_with(environment,
                (struct invocation_result){.payload = buffer_take(payload), .function_error = function_error});
}

/* The environment is done with the invocation; the owner may give the next one at once. */
static void release_invocation(struct environment *environment)
{
    struct invocation *invocation = TAKE_PTR(environment->invocation);

    invocation->events->on_end(invocation);
    if (environment->retiring)
        begin_shutdown(environment, SPINDOWN);
}

/* The runtime has asked for the next event after its answer, and the extensions are done too. */
static void finish_invocation(struct environment *environment)
{
    limit_stop(&environment->limit);
    environment_io_drain(environment);
    environment_log_end(environment, success);
    environment->ended = true;
    give_held_result(environment);
    if (environment->state == ENVIRONMENT_BUSY)
        become_idle(environment);
    if (environment->state != ENVIRONMENT_SHUTDOWN)
        release_invocation(environment);
}

/* The payload for the caller: what the runtime posted, or the service's own form. */
static struct buffer failure_payload(struct environment *environment)
{
    struct failure *failure = &environment->failure;
    struct buffer payload = BUFFER_INIT;
    char message[INVOCATION_MESSAGE_BYTES + 64];

    if (failure->posted.length)
        return buffer_take(&failure->posted);
    snprintf(message, sizeof(message), "RequestId: %s Error: %s", environment->invocation->request_id,
             failure->message);
    if (invocation_error_json(failure->type, message, &payload) < 0)
        buffer_deinit(&payload); /* no memory for more than "it failed" */
    return payload;
}

/* Ends log and caller's part of an invocation that went wrong (`failure` says how). on_end is not called yet. */
static void end_failed_invocation(struct environment *environment)
{
    struct buffer payload = failure_payload(environment);

    limit_stop(&environment->limit);
    environment_io_drain(environment);
    if (!environment->begin_ns)
        environment->begin_ns = clock_monotonic_ns();
    if (!environment->event_given)
        environment_log_start(environment);
    environment_log_failure(environment);
    telemetry_runtime_done(environment, failure_outcome(&environment->failure));
    environment_log_end(environment, failure_outcome(&environment->failure));
    environment->ended = true;
    if (environment->answered) {
        buffer_deinit(&payload);
        give_held_result(environment);
    } else {
        answer(environment, &payload, true);
    }
}

static void fail_invocation(struct environment *environment)
{
    end_failed_invocation(environment);
    if (environment->state == ENVIRONMENT_RESETTING || environment->state == ENVIRONMENT_SHUTDOWN)
        return; /* the end of that releases the invocation */
    if (environment->retiring || environment->spec.origin == ENVIRONMENT_PROVISIONED)
        /* a provisioned one never initialises within an invocation: it is replaced */
        begin_shutdown(environment, failure_reason(environment));
    else
        begin_reset(environment, failure_reason(environment));
}

void environment_on_limit(struct limit *limit)
{
    struct environment *environment = CONTAINER_OF(limit, struct environment, limit);
    char text[INVOCATION_MESSAGE_BYTES];

    clear_failure(environment); /* too late for any other cause */
    record_failure(environment, PLATFORM_TIMEOUT, "Sandbox.Timedout", "%s",
                   invocation_error_timeout(environment->spec.timeout_s, text));
    if (environment->state == ENVIRONMENT_INIT)
        fail_init(environment);
    else
        fail_invocation(environment);
}

/* --- what the runtime says ---------------------------------------------------------------------------------------- */

bool environment_expects_answer(const struct environment *environment, struct span request_id)
{
    return environment->state == ENVIRONMENT_BUSY && environment->event_given && !environment->answered &&
           span_equal(request_id, span_of(environment->invocation->request_id, UUID_BYTES - 1));
}

bool environment_take_next(struct environment *environment, struct http_request *request)
{
    if (environment->next || environment->failure.set)
        return false;
    switch (environment->state) {
    case ENVIRONMENT_INIT:
        environment->next = request;
        telemetry_init_runtime_done(environment, success);
        if (extensions_end_registration(environment))
            finish_init(environment);
        return true;
    case ENVIRONMENT_IDLE: /* its earlier connection was lost */
        environment->next = request;
        return true;
    case ENVIRONMENT_BUSY:
        if (environment->event_given && !environment->answered)
            return false;
        environment->next = request;
        if (!environment->event_given) {
            deliver_event(environment);
            return true;
        }
        if (environment->telemetry)
            environment_io_drain(environment); /* its lines come before the end of it */
        telemetry_runtime_done(environment, success);
        if (!extensions_are_running(environment))
            finish_invocation(environment);
        return true;
    default:
        return false;
    }
}

void environment_on_extension_ready(struct environment *environment)
{
    if (!environment->next || environment->failure.set)
        return; /* the runtime is not ready */
    if (environment->state == ENVIRONMENT_INIT && extensions_end_registration(environment))
        finish_init(environment);
    else if (environment->state == ENVIRONMENT_BUSY && environment->answered && !extensions_are_running(environment))
        finish_invocation(environment);
}

/* While frozen it is the death of the runtime that cuts the connection (SIGKILL reaches frozen processes), and init,
 * frozen too, can only tell of it when thawed. */
void environment_on_next_lost(struct environment *environment)
{
    environment->next = NULL;
    environment_on_idle_lost(environment);
}

void environment_on_idle_lost(struct environment *environment)
{
    if (environment->state != ENVIRONMENT_IDLE)
        return;
    environment_io_thaw(environment);
    worker_start_limit(environment->worker, environment->worker->graces, &environment->grace, clock_monotonic_ns());
}

bool environment_take_init_error(struct environment *environment, struct span type, struct buffer *posted)
{
    char text[160];

    if (environment->state != ENVIRONMENT_INIT || environment->failure.set)
        return false;
    snprintf(text, sizeof(text), "%.*s", SPAN_ARG(type));
    record_failure(environment, PLATFORM_ERROR, text, "Init failed");
    environment->failure.posted = buffer_take(posted);
    /* The runtime may still write its last lines, and exits by itself. */
    worker_start_limit(environment->worker, environment->worker->farewells, &environment->settle, clock_monotonic_ns());
    return true;
}

void environment_take_answer(struct environment *environment, struct buffer *payload, bool function_error)
{
    answer(environment, payload, function_error);
}

void environment_take_streamed_end(struct environment *environment, struct span type, struct buffer *error)
{
    struct invocation_result result = {.payload = buffer_take(error), .function_error = type.length > 0};

    snprintf(result.error_type, sizeof(result.error_type), "%.*s", SPAN_ARG(type));
    answer_with(environment, result);
}

void environment_refuse_answer(struct environment *environment, const char *type, const char *message)
{
    struct buffer payload = BUFFER_INIT;

    /* Recorded in this order of members, and without the request id. */
    if (runtime_api_error_json(type, message, &payload) < 0)
        buffer_deinit(&payload);
    answer(environment, &payload, true);
}

void environment_on_torn_answer(struct environment *environment)
{
    if (environment->state != ENVIRONMENT_BUSY || environment->answered)
        return;
    environment->torn_answer = true;
    if (!environment->failure.set) /* it may be dying, which would be the better answer */
        worker_start_limit(environment->worker, environment->worker->farewells, &environment->settle,
                           clock_monotonic_ns());
}

/* --- failures concluded ------------------------------------------------------------------------------------------- */

/* As the shell ends that starts a wrapper on the service (recorded: 127 where there is no such file). */
static void record_wrapper_failure(struct environment *environment, int exec_errno)
{
    char text[INVOCATION_MESSAGE_BYTES];

    snprintf(text, sizeof(text), "%s: %s\n", environment->choice.wrapper, strerror(exec_errno));
    environment_log_line(environment, span_from(text));
    record_failure(environment, PLATFORM_ERROR, "Runtime.ExitError", "%s",
                   invocation_error_exit(exec_errno == ENOENT ? 127 : 126, 0, text));
}

static void record_exit(struct environment *environment, int exec_errno, const struct sandbox_exit *exit)
{
    char text[INVOCATION_MESSAGE_BYTES];

    if (exec_errno && environment->choice.wrapper) {
        record_wrapper_failure(environment, exec_errno);
        return;
    }
    if (exec_errno) {
        record_failure(environment, PLATFORM_ERROR, "Runtime.InvalidEntrypoint", "%s",
                       invocation_error_exec(environment->choice.path, exec_errno, text));
        return;
    }
    if (environment->failure.by_extension && exit->out_of_memory)
        clear_failure(environment); /* all were killed for their memory, in whatever order */
    if (environment->failure.set)
        return;
    record_failure(environment, PLATFORM_ERROR, "Runtime.ExitError", "%s",
                   invocation_error_exit(exit->status, exit->signal, text));
    /* Callers are told of the signal; the report names the cause (as the service does since 2025). */
    environment->failure.report_type = exit->out_of_memory && exit->signal ? "Runtime.OutOfMemory" : NULL;
}

void environment_fail(struct environment *environment, enum failure_verdict verdict, const char *type,
                      const char *message)
{
    if (environment->failure.by_extension)
        clear_failure(environment);
    if (!environment->failure.set) {
        record_failure(environment, PLATFORM_ERROR, type, "%s", message);
        environment->failure.by_extension = true;
    }
    if (verdict == FAILURE_STANDS)
        conclude(environment);
    else if (verdict == FAILURE_SETTLES)
        fail_later(environment);
    else
        worker_start_limit(environment->worker, environment->worker->farewells, &environment->settle,
                           clock_monotonic_ns());
}

void environment_on_idle_death(struct environment *environment)
{
    if (environment->events->on_idle_exit)
        environment->events->on_idle_exit(environment, environment->context);
    if (environment->state == ENVIRONMENT_IDLE)
        begin_reset(environment, "failure");
}

/* The runtime died while idle, and the invocation came before the news: it begins with Init, as after the news. */
static void init_again(struct environment *environment)
{
    begin_reset(environment, "failure");
    worker_start_limit(environment->worker, environment->timeouts, &environment->limit, clock_monotonic_ns());
}

void environment_on_process_exit(struct environment *environment, uint32_t run, int exec_errno,
                                 const struct sandbox_exit *exit)
{
    if (extensions_on_exit(environment, run, exec_errno, exit))
        return;
    if (run != environment->run || !environment->runtime_alive)
        return;
    environment->runtime_alive = false;
    if (environment->state == ENVIRONMENT_BUSY && !environment->event_given && !environment->failure.set) {
        init_again(environment);
        return;
    }
    switch (environment->state) {
    case ENVIRONMENT_INIT:
    case ENVIRONMENT_BUSY:
        record_exit(environment, exec_errno, exit);
        if (exec_errno || environment->failure.posted.length)
            conclude(environment); /* nothing more can be under way from it */
        else
            fail_later(environment);
        return;
    case ENVIRONMENT_IDLE: /* nobody waits: the next invocation begins with Init */
        environment_on_idle_death(environment);
        return;
    default:
        extensions_on_runtime_exit(environment);
        return;
    }
}

static void conclude(struct environment *environment)
{
    if (environment->state == ENVIRONMENT_INIT) {
        fail_init(environment);
        return;
    }
    if (environment->state != ENVIRONMENT_BUSY)
        return;
    if (environment->upload) {
        fail_later(environment); /* the rest of an answer is still in its socket; the limit bounds this */
    } else if (environment->failure.set) {
        fail_invocation(environment);
    } else if (environment->torn_answer) {
        environment_refuse_answer(environment, "Runtime.TruncatedResponse",
                                  "The runtime's connection ended in the middle of its response");
    }
}

void environment_on_settle(struct limit *limit)
{
    conclude(CONTAINER_OF(limit, struct environment, settle));
}

void environment_on_reset(struct environment *environment)
{
    int r;

    if (environment->state != ENVIRONMENT_RESETTING)
        return;
    environment_io_drain_dead(environment);
    extensions_forget(environment);
    function_log_end_output(environment->log);
    r = runtime_api_renew(environment);
    if (r < 0) {
        fault_sandbox(environment, -r);
        return;
    }
    set_state(environment, ENVIRONMENT_STALE);
    clear_failure(environment);
    if (environment->invocation && environment->ended) {
        release_invocation(environment);
    } else if (environment->invocation) {
        set_state(environment, ENVIRONMENT_INIT);
        environment->init_start_ns = clock_monotonic_ns();
        begin_init(environment);
    } else if (environment->retiring) {
        begin_shutdown(environment, SPINDOWN);
    }
}

void environment_on_grace(struct limit *limit)
{
    environment_io_freeze(CONTAINER_OF(limit, struct environment, grace));
}

/* --- the start and the end ---------------------------------------------------------------------------------------- */

int environment_begin(struct environment *environment)
{
    int r = send_create(environment);

    if (r == -EAGAIN)
        environment_ask(environment, REQUEST_CREATE); /* many at once: the launcher takes them in its own time */
    else if (r < 0)
        return r;
    begin_init(environment); /* sent behind the creation, without waiting for it */
    return 0;
}

void environment_retire(struct environment *environment)
{
    environment->retiring = true;
    if (!environment->invocation)
        begin_shutdown(environment, SPINDOWN);
}

bool environment_is_ending(const struct environment *environment)
{
    return environment->state == ENVIRONMENT_SHUTDOWN;
}

void environment_kill(struct environment *environment)
{
    begin_shutdown(environment, AT_ONCE);
}

void environment_on_sandbox_gone(struct environment *environment, const struct fault *fault)
{
    struct fault unexpected = {0};

    if (!fault && environment->sandbox_fault.text[0])
        fault = &environment->sandbox_fault;
    if (!fault && environment->state != ENVIRONMENT_SHUTDOWN) {
        fault_set(&unexpected, ECHILD, "the sandbox ended unexpectedly");
        fault = &unexpected;
    }
    if (environment->state != ENVIRONMENT_SHUTDOWN) {
        stop_limits(environment);
        list_remove(&environment->probe_link);
        set_state(environment, ENVIRONMENT_SHUTDOWN);
    }
    environment->wanted = 0;
    limit_stop(&environment->retry);
    if (environment->invocation && !environment->ended) {
        record_failure(environment, PLATFORM_ERROR, "Sandbox.Failure", "The sandbox was ended");
        end_failed_invocation(environment);
    }
    if (environment->invocation) {
        struct invocation *invocation = TAKE_PTR(environment->invocation);

        invocation->events->on_end(invocation);
    }
    environment->events->on_gone(environment, fault, environment->context);
    environment_destroy(environment);
}
