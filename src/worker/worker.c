/*
 * The worker as a whole: spreads the launcher's events over the environments, keeps the one timer behind all limits,
 * and looks for the host's interpreters when the first managed runtime is started.
 *
 * Turn of the loop: libuv polls; the launcher's descriptor, the Runtime API's sockets and the output pipes call in; the
 * timer expires limits. The timer is armed for the earliest limit and is never moved back: when that one has been
 * stopped meanwhile it fires for nothing, a few times a second under load and never when all is idle.
 */
#include "worker/environment.h"
#include "worker/environment_extensions.h"
#include "worker/log_sweep.h"
#include "worker/telemetry.h"

#include <stdio.h>

enum {
    FREEZE_GRACE_MS = 100,
    STREAM_BYTES = 200 * 1024 * 1024,
    INIT_LIMIT_MS = 10000,
    PROVISIONED_INIT_LIMIT_MS = 130000,
    SHUTDOWN_LIMIT_MS = 2000,
    SETTLE_MS = 5,    /* from the death of a runtime to the verdict: its last request may lie in a socket */
    FAREWELL_MS = 50, /* from a posted Init error or a torn answer to the verdict, when the runtime does not exit */
    RETRY_MS = 5,     /* the launcher's socket was full */
    SCRATCH_BYTES = 64 * 1024,
};

/* --- time --------------------------------------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer);

static void arm(struct worker *worker, int64_t at_ns, int64_t now_ns)
{
    int64_t wait_ns = MAX(at_ns - now_ns, 0);

    if (at_ns >= worker->armed_ns)
        return;
    worker->armed_ns = at_ns;
    uv_timer_start(&worker->handles->timer, on_timer, (uint64_t)((wait_ns + NS_PER_MS - 1) / NS_PER_MS), 0);
}

static void on_timer(uv_timer_t *timer)
{
    struct worker *worker = timer->data;
    int64_t now_ns = clock_monotonic_ns();

    worker->armed_ns = LIMIT_NEVER;
    limit_set_expire(&worker->limits, now_ns);
    arm(worker, limit_set_next(&worker->limits), now_ns);
}

void worker_start_limit(struct worker *worker, struct limit_queue *queue, struct limit *limit, int64_t now_ns)
{
    limit_start(queue, limit, now_ns);
    arm(worker, limit->at_ns, now_ns);
}

/* --- the host's interpreters -------------------------------------------------------------------------------------- */

struct probe_job {
    uv_work_t work;
    struct worker *worker; /* NULL: gone meanwhile */
    struct runtime_host host;
};

static void on_probe(uv_work_t *work)
{
    runtime_probe_host("", &CONTAINER_OF(work, struct probe_job, work)->host);
}

static void on_probe_done(uv_work_t *work, int status)
{
    struct probe_job *job = CONTAINER_OF(work, struct probe_job, work);
    struct worker *worker = job->worker;

    (void)status; /* never cancelled */
    if (worker) {
        worker->probe = NULL;
        worker->host = job->host;
        LIST_FOREACH (link, &worker->probing) {
            list_remove(link);
            environment_on_probed(CONTAINER_OF(link, struct environment, probe_link));
        }
    }
    free(job);
}

static int start_probe(struct worker *worker)
{
    struct probe_job *job = calloc(1, sizeof(*job));
    int r;

    if (!job)
        return -ENOMEM;
    job->worker = worker;
    r = uv_queue_work(worker->config.loop, &job->work, on_probe, on_probe_done);
    if (r < 0) {
        free(job);
        return r;
    }
    worker->probe = job;
    return 0;
}

/* What was found once is kept; what was not is looked for again, since it may have been installed meanwhile. */
const struct runtime_host *worker_runtime_host(struct worker *worker, struct environment *environment)
{
    enum runtime_family family = runtime_family_of(environment->spec.runtime);
    bool known = family == RUNTIME_PYTHON ? worker->host.python.count > 0
                 : family == RUNTIME_NODE ? worker->host.node.count > 0
                                          : true;

    if (known || (!worker->probe && start_probe(worker) < 0))
        return &worker->host;
    list_push_back(&worker->probing, &environment->probe_link);
    return NULL;
}

/* --- the launcher's events ---------------------------------------------------------------------------------------- */

static struct environment *find(struct worker *worker, uint64_t id)
{
    return table_get(&worker->by_id, span_of((const char *)&id, sizeof(id)));
}

static void on_created(uint64_t id, struct sandbox_created *created, void *context)
{
    struct environment *environment = find(context, id);

    if (environment)
        environment_on_created(environment, created);
    cleanup_close(&created->api_fd); /* what has not been taken */
    cleanup_close(&created->output_fd);
    cleanup_close(&created->freeze_fd);
    cleanup_close(&created->memory_peak_fd);
}

static void on_create_failed(uint64_t id, const struct fault *fault, void *context)
{
    struct environment *environment = find(context, id);

    if (environment)
        environment_on_sandbox_gone(environment, fault);
}

static void on_process_exit(uint64_t id, uint32_t run, int exec_errno, const struct sandbox_exit *exit, void *context)
{
    struct environment *environment = find(context, id);

    if (environment)
        environment_on_process_exit(environment, run, exec_errno, exit);
}

static void on_reset(uint64_t id, void *context)
{
    struct environment *environment = find(context, id);

    if (environment)
        environment_on_reset(environment);
}

static void on_socket(uint64_t id, uint32_t tag, int fd, void *context)
{
    struct environment *environment = find(context, id);

    if (environment)
        telemetry_on_socket(environment, tag, fd);
    else
        cleanup_close(&fd);
}

static void on_gone(uint64_t id, void *context)
{
    struct environment *environment = find(context, id);

    if (environment)
        environment_on_sandbox_gone(environment, NULL);
}

static void on_lost(void *context)
{
    struct worker *worker = context;
    struct fault fault;
    struct list_link *first;

    fault_set(&fault, EPIPE, "the launcher has died");
    uv_poll_stop(&worker->handles->poll);
    while ((first = list_first(&worker->environments)))
        environment_on_sandbox_gone(CONTAINER_OF(first, struct environment, link), &fault);
    if (worker->config.on_lost)
        worker->config.on_lost(worker->config.context);
}

static const struct launcher_events launcher_events = {
    .on_created = on_created,
    .on_create_failed = on_create_failed,
    .on_process_exit = on_process_exit,
    .on_reset = on_reset,
    .on_socket = on_socket,
    .on_gone = on_gone,
    .on_lost = on_lost,
};

static void on_launcher_readable(uv_poll_t *poll, int status, int events)
{
    struct worker *worker = poll->data;

    (void)status; /* an error shows in the read */
    (void)events;
    launcher_dispatch(worker->config.launcher);
}

/* --- the object --------------------------------------------------------------------------------------------------- */

static void on_handle_closed(uv_handle_t *handle)
{
    struct worker_handles *handles = handle->data;

    if (--handles->open == 0)
        free(handles);
}

static int open_handles(struct worker *worker)
{
    struct worker_handles *handles = calloc(1, sizeof(*handles));
    int r;

    if (!handles)
        return -ENOMEM;
    uv_timer_init(worker->config.loop, &handles->timer);
    handles->timer.data = worker;
    handles->open = 1;
    worker->handles = handles;
    r = uv_poll_init(worker->config.loop, &handles->poll, launcher_fd(worker->config.launcher));
    if (r < 0)
        return r;
    handles->poll.data = worker;
    handles->open = 2;
    return uv_poll_start(&handles->poll, UV_READABLE, on_launcher_readable);
}

static void close_handles(struct worker_handles *handles)
{
    bool has_poll = handles && handles->open == 2;

    if (!handles)
        return;
    handles->timer.data = handles->poll.data = handles;
    uv_close((uv_handle_t *)&handles->timer, on_handle_closed);
    if (has_poll)
        uv_close((uv_handle_t *)&handles->poll, on_handle_closed);
}

static int make_limits(struct worker *worker)
{
    const struct worker_config *config = &worker->config;
    int64_t shutdown_ns = config->shutdown_limit_ms * NS_PER_MS;

    worker->graces = limit_set_queue(&worker->limits, config->freeze_grace_ms * NS_PER_MS, environment_on_grace);
    worker->settles = limit_set_queue(&worker->limits, SETTLE_MS * NS_PER_MS, environment_on_settle);
    worker->farewells = limit_set_queue(&worker->limits, FAREWELL_MS * NS_PER_MS, environment_on_settle);
    worker->retries = limit_set_queue(&worker->limits, RETRY_MS * NS_PER_MS, environment_on_retry);
    worker->shutdowns = limit_set_queue(&worker->limits, shutdown_ns, extensions_on_closing_limit);
    worker->internal_shutdowns = limit_set_queue(&worker->limits, shutdown_ns / 4, extensions_on_closing_limit);
    worker->runtime_shutdowns = limit_set_queue(&worker->limits, shutdown_ns * 3 / 20, extensions_on_runtime_limit);
    return worker->graces && worker->settles && worker->farewells && worker->retries && worker->shutdowns &&
                   worker->internal_shutdowns && worker->runtime_shutdowns
               ? 0
               : -ENOMEM;
}

static int make_parts(struct worker *worker)
{
    const struct log_file_limits limits = {.stream_bytes = worker->config.log_stream_bytes};
    CLEANUP(cleanup_free) char *logs = NULL;
    int r;

    worker->scratch = malloc(SCRATCH_BYTES);
    worker->runtimes_dir = strdup(worker->config.runtimes_dir);
    if (!worker->scratch || !worker->runtimes_dir || asprintf(&logs, "%s/logs", worker->config.data_dir) < 0)
        return -ENOMEM;
    r = function_log_new(worker->config.loop, logs, worker->config.log, &worker->logs);
    if (r == 0)
        function_log_set_limits(worker->logs, &limits);
    if (r == 0 && worker->config.log_retention_days)
        r = log_sweep_new(worker->config.loop, logs, worker->config.log_retention_days, &worker->sweep);
    if (r == 0)
        r = make_limits(worker);
    return r == 0 ? open_handles(worker) : r;
}

static void cleanup_worker(struct worker **worker)
{
    worker_free(*worker);
}

int worker_new(const struct worker_config *config, struct worker **ret_worker, struct fault *fault)
{
    CLEANUP(cleanup_worker) struct worker *worker = calloc(1, sizeof(*worker));
    uint64_t seed;
    int r;

    if (!worker)
        return fault_set(fault, ENOMEM, "out of memory");
    worker->config = *config;
    worker->config.freeze_grace_ms = config->freeze_grace_ms ? config->freeze_grace_ms : FREEZE_GRACE_MS;
    worker->config.stream_bytes = config->stream_bytes ? config->stream_bytes : STREAM_BYTES;
    worker->config.init_limit_ms = config->init_limit_ms ? config->init_limit_ms : INIT_LIMIT_MS;
    worker->config.provisioned_init_limit_ms =
        config->provisioned_init_limit_ms ? config->provisioned_init_limit_ms : PROVISIONED_INIT_LIMIT_MS;
    worker->config.shutdown_limit_ms = config->shutdown_limit_ms ? config->shutdown_limit_ms : SHUTDOWN_LIMIT_MS;
    worker->armed_ns = LIMIT_NEVER;
    list_init(&worker->environments);
    list_init(&worker->probing);
    limit_set_init(&worker->limits);
    random_bytes(&seed, sizeof(seed));
    prng_init(&worker->prng, seed);
    r = make_parts(worker);
    if (r < 0)
        return fault_set(fault, -r, "the worker cannot be set up: %s", strerror(-r));
    launcher_set_events(config->launcher, &launcher_events, worker);
    *ret_worker = TAKE_PTR(worker);
    return 0;
}

/* What the launcher still has to say about sandboxes of a worker that is gone. */
static void late_created(uint64_t id, struct sandbox_created *created, void *context)
{
    (void)id;
    (void)context;
    cleanup_close(&created->api_fd);
    cleanup_close(&created->output_fd);
    cleanup_close(&created->freeze_fd);
    cleanup_close(&created->memory_peak_fd);
}

static void late_fault(uint64_t id, const struct fault *fault, void *context)
{
    (void)id;
    (void)fault;
    (void)context;
}

static void late_exit(uint64_t id, uint32_t run, int exec_errno, const struct sandbox_exit *exit, void *context)
{
    (void)id;
    (void)run;
    (void)exec_errno;
    (void)exit;
    (void)context;
}

static void late_id(uint64_t id, void *context)
{
    (void)id;
    (void)context;
}

static void late_socket(uint64_t id, uint32_t tag, int fd, void *context)
{
    (void)id;
    (void)tag;
    (void)context;
    cleanup_close(&fd);
}

static void late_lost(void *context)
{
    (void)context;
}

static const struct launcher_events late_events = {
    .on_created = late_created,
    .on_create_failed = late_fault,
    .on_process_exit = late_exit,
    .on_reset = late_id,
    .on_socket = late_socket,
    .on_gone = late_id,
    .on_lost = late_lost,
};

static void drop_environments(struct worker *worker)
{
    struct list_link *first;

    while ((first = list_first(&worker->environments))) {
        struct environment *environment = CONTAINER_OF(first, struct environment, link);
        int r = launcher_kill(worker->config.launcher, environment->id);

        (void)r; /* a full socket: the launcher's own end kills it */
        environment_destroy(environment);
    }
}

struct worker *worker_free(struct worker *worker)
{
    if (!worker)
        return NULL;
    drop_environments(worker);
    if (worker->handles && worker->handles->open == 2)
        launcher_set_events(worker->config.launcher, &late_events, NULL);
    if (worker->probe)
        worker->probe->worker = NULL;
    close_handles(worker->handles);
    worker->logs = function_log_free(worker->logs);
    worker->sweep = log_sweep_free(worker->sweep);
    limit_set_deinit(&worker->limits);
    table_deinit(&worker->by_id);
    free(worker->runtimes_dir);
    free(worker->scratch);
    buffer_deinit(&worker->event);
    free(worker);
    return NULL;
}

int worker_start_environment(struct worker *worker, const struct environment_spec *spec,
                             const struct environment_events *events, void *context,
                             struct environment **ret_environment)
{
    return environment_new(worker, spec, events, context, ret_environment);
}

size_t worker_environment_count(const struct worker *worker)
{
    return worker->count;
}
