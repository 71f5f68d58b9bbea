/*
 * Inside of the worker: one execution environment. `worker.h` is the public face; this is what worker.c, environment*.c
 * and runtime_api.c share.
 *
 *                     created              GET next                 invoke
 *   CREATING ----------------> INIT ----------------------> IDLE <---------> BUSY
 *      |                       |  ^                          |     GET next    |
 *      |              fails or |  | an invocation            | runtime died    | timeout, runtime died
 *      |              too slow |  | waits or comes           |                 |
 *      |                       v  |                          v                 v
 *      |        STALE <------ RESETTING <------------------------------------ + (memory gone, /tmp kept)
 *      |          | reset        |
 *      v          v  done        v
 *   SHUTDOWN (from any state: retired or killed) ----> gone
 *
 * In STALE there is a sandbox without a runtime; the next invocation begins with Init, on its own time. In BUSY the
 * caller may have its answer already: the invocation ends when the runtime asks for the next event.
 *
 * Verdicts that depend on the order of two sources (the launcher says that the runtime has died; its last request may
 * still lie in a socket) are recorded as `failure` and concluded a moment later, by the settle limit.
 *
 * With extensions (environment_extensions.h) Init and BUSY end when these have asked for their next event too, and
 * RESETTING and SHUTDOWN begin with a Shutdown phase.
 *
 * Callbacks to the owner are made from the loop only (HTTP requests, launcher events, limits), and after each of them
 * the environment may have been retired or killed, which shows as state SHUTDOWN; it is freed in on_sandbox_gone only.
 */
#pragma once

#include "base/arena.h"
#include "base/list.h"
#include "base/random.h"
#include "base/table.h"
#include "worker/function_log.h"
#include "worker/invocation_error.h"
#include "worker/limit.h"
#include "worker/log_level.h"
#include "worker/platform_event.h"
#include "worker/platform_line.h"
#include "worker/runtime_choice.h"
#include "worker/worker.h"

#include <uv.h>

enum environment_state {
    ENVIRONMENT_CREATING,
    ENVIRONMENT_INIT,
    ENVIRONMENT_IDLE,
    ENVIRONMENT_BUSY,
    ENVIRONMENT_RESETTING,
    ENVIRONMENT_STALE,
    ENVIRONMENT_SHUTDOWN,
};

/* What is wanted of the launcher and could not be sent yet, as bits. */
enum environment_request {
    REQUEST_CREATE = 1,
    REQUEST_RUN_EXTENSIONS = 2,
    REQUEST_RUN = 4,
    REQUEST_LIMIT_CPU = 8,
    REQUEST_TERMINATE_RUNTIME = 16,
    REQUEST_KILL_RUNTIME = 32,
    REQUEST_RESET = 64,
    REQUEST_KILL = 128, /* in the order in which they are sent */
};

/* When a failure is concluded. */
enum failure_verdict {
    FAILURE_STANDS,  /* now */
    FAILURE_SETTLES, /* in a moment: the culprit's last request may still lie in a socket */
    FAILURE_LINGERS, /* when the culprit has exited, which it is about to, or a little later */
};

/* Why an Init or an invocation failed. */
struct failure {
    bool set;
    enum platform_status status;
    char type[160];                         /* for the caller */
    const char *report_type;                /* for REPORT where it differs, else NULL */
    char message[INVOCATION_MESSAGE_BYTES]; /* without "RequestId: ID Error: " */
    struct buffer posted;                   /* the runtime's own error, which goes to the caller as it is */
    bool by_extension;
};

/* LoggingConfig. */
struct logging {
    bool json;
    enum log_line_level system; /* events of the service below it are not written; in JSON only */
};

struct environment {
    struct list_link link; /* in worker.environments */
    struct worker *worker;
    uint64_t id;
    const struct environment_events *events;
    void *context;
    enum environment_state state;

    struct arena arena;           /* everything copied from the spec */
    struct environment_spec spec; /* variables left out: they are in process_variables */
    const char *const *process_variables;
    struct logging logging;
    const char *instance_id; /* "2026/01/02/NAME[7]0123456789abcdef0123456789abcdef" */
    struct function_log_stream *log;

    /* the sandbox */
    bool boosted;               /* the CPU limit waits for the end of Init */
    struct fault sandbox_fault; /* empty text: none */
    bool creation_refused;      /* the launcher will never have heard of it */
    pid_t init_pid;             /* or 0, as in struct sandbox_created */
    bool check_peer;            /* only connections of `uid`, and of the processes below `init_pid` */
    uid_t uid;
    struct http_listener *listener;
    int api_fd; /* of the listener's socket, for renewing it */
    int output_fd;
    uv_poll_t *output_poll;
    bool output_paused;
    int freeze_fd;
    bool frozen;
    int memory_fd;
    unsigned memory_used_mib;
    int64_t memory_read_ns;
    unsigned wanted; /* enum environment_request */

    /* the runtime */
    struct list_link probe_link; /* waits for the host's interpreters */
    const char *wrapper;         /* the function's AWS_LAMBDA_EXEC_WRAPPER, or NULL */
    struct runtime_choice choice;
    uint32_t run;      /* of the runtime */
    uint32_t last_run; /* of any process */
    bool runtime_alive;
    bool told_ready;
    int64_t init_start_ns;       /* 0: not begun */
    int64_t init_ns;             /* for the first REPORT of an on-demand environment; -1 */
    struct http_request *next;   /* GET next, waiting for an event */
    struct http_request *upload; /* POST of the invocation's answer, body not complete */
    bool streaming;              /* upload is an answer whose pieces go to the owner */
    bool torn_answer;            /* a body broke off and the settle limit runs */
    struct failure failure;
    struct environment_extensions *extensions; /* NULL: none */
    struct telemetry *telemetry;               /* NULL: nobody has subscribed */

    /* the invocation */
    struct invocation *invocation;
    bool event_given;
    bool answered; /* the runtime, or the service for it, has answered */
    bool ended;    /* REPORT is written; only the reset is still due */
    bool retiring;
    struct invocation_result held; /* answered, waiting for the log tail */
    bool holds_result;
    int64_t begin_ns; /* the event was given, or Init within the invocation began */
    int64_t deadline_wall_ms;
    char trace_id[96];       /* for a caller that sent none */
    uint64_t produced_bytes; /* of the runtime's response */

    struct limit limit;           /* Init or invocation */
    struct limit grace;           /* idle: freeze then */
    struct limit settle;          /* failure: conclude then */
    struct limit retry;           /* wanted: send again then */
    struct limit_queue *timeouts; /* of this function's timeout */
    struct limit_queue *inits;
};

/* Handles end on later turns of the loop, so they are apart from the worker. */
struct worker_handles {
    uv_timer_t timer;
    uv_poll_t poll;
    unsigned open;
};

struct log_sweep;
struct probe_job;

struct worker {
    struct worker_config config; /* its strings are not used after worker_new */
    char *runtimes_dir;
    struct worker_handles *handles;
    struct function_log *logs;
    struct log_sweep *sweep; /* NULL: logs are kept for ever */
    struct list environments;
    size_t count;
    struct table by_id;
    uint64_t last_id;

    struct limit_set limits;
    struct limit_queue *graces;
    struct limit_queue *settles;
    struct limit_queue *farewells; /* like settles, longer: the runtime is likely to exit by itself */
    struct limit_queue *retries;
    struct limit_queue *shutdowns; /* the Shutdown phase, with external extensions and without; the runtime's share */
    struct limit_queue *internal_shutdowns;
    struct limit_queue *runtime_shutdowns;
    int64_t armed_ns; /* when the timer fires, LIMIT_NEVER when it is not set */

    struct runtime_host host;
    struct probe_job *probe;
    struct list probing; /* environments that wait for it */

    struct prng prng;    /* trace ids */
    char *scratch;       /* where output is read into */
    struct buffer event; /* where events are put together */
};

/* --- worker.c ----------------------------------------------------------------------------------------------------- */

/* Starts a limit and sees to it that the timer fires in time. */
void worker_start_limit(struct worker *worker, struct limit_queue *queue, struct limit *limit, int64_t now_ns);
/* NULL when the runtime needs an interpreter that has not been looked for yet: environment_on_probed follows. */
const struct runtime_host *worker_runtime_host(struct worker *worker, struct environment *environment);

/* --- environment_object.c ----------------------------------------------------------------------------------------- */

int environment_new(struct worker *worker, const struct environment_spec *spec, const struct environment_events *events,
                    void *context, struct environment **ret_environment) MUST_USE;
/* Without callbacks: at the end of the worker. */
void environment_destroy(struct environment *environment);

/* --- environment.c: what happens to an environment ---------------------------------------------------------------- */

/* Asks for the sandbox and the runtime. -errno: nothing has been asked for. */
int environment_begin(struct environment *environment) MUST_USE;
void environment_on_created(struct environment *environment, struct sandbox_created *created);
void environment_on_process_exit(struct environment *environment, uint32_t run, int exec_errno,
                                 const struct sandbox_exit *exit);
void environment_on_reset(struct environment *environment);
/* Every process is gone. Ends what is under way, tells the owner and frees the environment. */
void environment_on_sandbox_gone(struct environment *environment, const struct fault *fault);
void environment_on_probed(struct environment *environment);

/* Sends it, now or when the launcher takes it. */
void environment_ask(struct environment *environment, enum environment_request request);
/* Starts the runtime, once the external extensions have registered. */
void environment_run_runtime(struct environment *environment);
/* An extension has failed in Init or in an invocation. What it says later of itself counts more than what was known. */
void environment_fail(struct environment *environment, enum failure_verdict verdict, const char *type,
                      const char *message);
/* A process without which nothing goes has died while there was nothing to do. */
void environment_on_idle_death(struct environment *environment);
/* An extension has asked for its next event, in Init or in an invocation. */
void environment_on_extension_ready(struct environment *environment);
/* The Shutdown phase is over. */
void environment_on_closed(struct environment *environment);
/* A waiting connection was cut: by the death of its process, of which a frozen init cannot tell. */
void environment_on_idle_lost(struct environment *environment);

void environment_on_limit(struct limit *limit);
void environment_on_init_limit(struct limit *limit);
void environment_on_grace(struct limit *limit);
void environment_on_settle(struct limit *limit);
void environment_on_retry(struct limit *limit);

/* --- environment.c: what the runtime says, for runtime_api.c ------------------------------------------------------ */

/* True when the invocation of this id waits for its answer. */
bool environment_expects_answer(const struct environment *environment, struct span request_id);
/* GET next. False: the wrong moment. True: the environment keeps the request until there is an event. */
bool environment_take_next(struct environment *environment, struct http_request *request);
/* The connection of the kept request is gone. */
void environment_on_next_lost(struct environment *environment);
/* POST init/error. False: the wrong moment. Takes `posted`. */
bool environment_take_init_error(struct environment *environment, struct span type, struct buffer *posted);
/* The invocation's answer, from the runtime (takes `payload`). Only when environment_expects_answer. */
void environment_take_answer(struct environment *environment, struct buffer *payload, bool function_error);
/* The end of a streamed answer; `type` is empty when it went well. Takes `error`, JSON or empty. */
void environment_take_streamed_end(struct environment *environment, struct span type, struct buffer *error);
/* The runtime's answer is not acceptable: the service answers in its place, the runtime may go on. */
void environment_refuse_answer(struct environment *environment, const char *type, const char *message);
/* The connection broke off in the middle of the answer. */
void environment_on_torn_answer(struct environment *environment);

/* --- environment_io.c --------------------------------------------------------------------------------------------- */

int environment_io_start(struct environment *environment, struct sandbox_created *created) MUST_USE;
void environment_io_stop(struct environment *environment);
/* Reads what the function has written until now, within a bound; nothing while its log is bursting. */
void environment_io_drain(struct environment *environment);
/* Reads everything that dead processes have left, so that it does not show in a later invocation. */
void environment_io_drain_dead(struct environment *environment);
void environment_io_on_room(void *context);
void environment_io_on_line(struct span line, void *context);
void environment_io_freeze(struct environment *environment);
void environment_io_thaw(struct environment *environment);
/* Largest memory use so far in MiB, read at most ten times a second; 0 where the host does not tell. */
unsigned environment_io_memory_used(struct environment *environment, int64_t now_ns);

/* --- environment_log.c -------------------------------------------------------------------------------------------- */

void environment_log_line(struct environment *environment, struct span line);
/* Of the environment, for events; borrowed from it. */
struct platform_source environment_source(const struct environment *environment);
/* "init", or "invoke" for an Init within an invocation. */
const char *environment_phase(const struct environment *environment);
void environment_log_init_start(struct environment *environment);
/* The runtime has asked for its first event, or Init has failed. */
void environment_log_init_end(struct environment *environment, int64_t init_ns, struct platform_outcome outcome);
/* `events` as in struct extension; `error_type` is "" for none. */
void environment_log_extension(struct environment *environment, const char *name, const char *state, unsigned events,
                               const char *error_type);
void environment_log_start(struct environment *environment);
/* What `failure` is, in words. */
void environment_log_failure(struct environment *environment);
/* END and REPORT, and with them the end of the tail. */
void environment_log_end(struct environment *environment, struct platform_outcome outcome);

/* --- runtime_api.c ------------------------------------------------------------------------------------------------ */

int runtime_api_listen(struct environment *environment, int fd) MUST_USE;
/* Cuts every connection and everything that lies in the socket from a dead runtime, and listens again. */
int runtime_api_renew(struct environment *environment) MUST_USE;
/* Gives the waiting GET next its event, and the extensions theirs. -ENOMEM: it still waits. */
int runtime_api_send_event(struct environment *environment) MUST_USE;
