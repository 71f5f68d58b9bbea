/*
 * The worker: one execution environment's life, from CREATING to gone, around one sandbox. It speaks the Runtime API to
 * the runtime inside, writes the function's log, freezes and thaws, enforces the timeouts, and tells its owner what
 * happened. It decides nothing about admission or assignment: the owner (frontend, on behalf of core) says which
 * environment serves what.
 *
 *   CREATING -> INIT -> IDLE <-> BUSY -> ... -> SHUTDOWN -> gone
 *
 * Everything happens on the loop's thread; callbacks come from the loop, never from inside a call into this module.
 *
 * Init failures do not end an environment: as on AWS, Init is tried again within the next invoke (whose caller then
 * gets the error). So every environment that has called on_ready can be given an invocation; what must happen first
 * (reset, second Init, thaw) is this module's business and counts against the invocation's timeout. An environment made
 * as provisioned is the exception: it ends after a failed invocation, for its owner to make another.
 */
#pragma once

#include "base/buffer.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "http/server.h"
#include "sandbox/launcher.h"

struct worker;
struct environment;

enum environment_origin { ENVIRONMENT_ON_DEMAND, ENVIRONMENT_PROVISIONED };

/* "on-demand" or "provisioned-concurrency", as AWS_LAMBDA_INITIALIZATION_TYPE and events have it. */
const char *environment_origin_name(enum environment_origin origin);

struct environment_variable {
    const char *name;
    const char *value;
};

/* What an environment is made from: one published or unpublished version as it is now. Borrowed for the time of
 * worker_start_environment only; everything needed later is copied. */
struct environment_spec {
    const char *account; /* 12 digits */
    const char *region;
    const char *function_name;
    const char *version; /* "$LATEST" or digits */
    const char *runtime; /* "python3.12", "nodejs20.x", "provided.al2023", ... */
    const char *handler;
    unsigned memory_mib;
    unsigned timeout_s;
    unsigned tmp_mib;
    const char *task_dir;                         /* host path of the unpacked code */
    const char *layer_dirs[SANDBOX_LAYERS_MAX];   /* NULL ends the list */
    const struct environment_variable *variables; /* the function's own */
    size_t variable_count;
    const char *log_group;             /* "/aws/lambda/NAME" unless configured */
    const char *log_format;            /* "JSON"; anything else, NULL too: text */
    const char *application_log_level; /* with JSON: output of a lower level is not kept; NULL: INFO */
    const char *system_log_level;      /* with JSON: the same for the service's own lines; NULL: INFO */
    const char *runtime_version_arn;   /* for the INIT_START line; NULL: left out */
    const char *access_key;            /* credentials that the function sees; NULL: "test" for all three */
    const char *secret_key;
    const char *session_token; /* NULL: none */
    const char *endpoint_url;  /* AWS_ENDPOINT_URL; NULL: none */
    enum environment_origin origin;
};

enum { INVOCATION_ERROR_TYPE_BYTES = 128 };

/* What an invocation came to. */
struct invocation_result {
    struct buffer payload; /* response or error JSON; owned by the receiver of on_response (take it or free it) */
    bool function_error;   /* X-Amz-Function-Error: Unhandled */
    char error_type[INVOCATION_ERROR_TYPE_BYTES]; /* as the trailers of a streamed answer say, else empty */
    int64_t duration_ns;
};

struct invocation;

struct invocation_events {
    /*
     * The answer for the caller: as soon as the runtime has posted it, or when the invocation ended otherwise (timeout,
     * exit of the runtime, init error). Exactly once per invocation. The log tail is complete only in on_end.
     */
    void (*on_response)(struct invocation *invocation, struct invocation_result *result);
    /*
     * The environment is free (the runtime has asked for its next event) or has been torn down for reset. Exactly once,
     * after on_response. The invocation is the owner's again when this is called.
     */
    void (*on_end)(struct invocation *invocation);
    /*
     * For invocations that stream (else they may be NULL): the runtime answers in pieces; perhaps never, when it posts
     * one whole answer. on_response follows with an empty payload, or with an error JSON when it went wrong on the way.
     * on_piece returns false to be given no more before environment_resume_stream, except what has come already.
     */
    void (*on_stream)(struct invocation *invocation);
    bool (*on_piece)(struct invocation *invocation, struct span piece);
};

/* One request on its way through an environment. Allocated by the owner, who keeps it and all it points to alive until
 * on_end. */
struct invocation {
    const struct invocation_events *events;
    void *context;
    char request_id[37];
    struct span event;          /* the payload */
    struct buffer *event_owner; /* optional: the buffer that `event` is the whole of. It is then moved out when the
                                   event is delivered (no copy); what is left of it stays the owner's */
    struct span client_context; /* decoded JSON, may be empty */
    struct span trace_id;       /* X-Amzn-Trace-Id, may be empty */
    const char *invoked_arn;    /* as the caller named it */
    bool streams;               /* the answer is taken in pieces when the runtime gives it so */
    bool wants_log_tail;        /* on_response is then held back until END and REPORT are in the tail, that is until the
                                   environment is free */
    struct buffer log_tail;     /* last 4 KB of the log of this invocation when wanted; valid in on_response */
};

struct environment_events {
    /* Init ended, well or not: an invocation can be given. `ok` false says that Init failed (and will be retried within
     * the next invoke). Once per environment. */
    void (*on_ready)(struct environment *environment, bool ok, void *context);
    /* Every process is gone; the pointer is dead when this returns. An invocation under way got on_response and on_end
     * first. `fault` is set when the machine, not the function, is at fault (could not be made, launcher refused). */
    void (*on_gone)(struct environment *environment, const struct fault *fault, void *context);
    /* The runtime has died while it had nothing to do: unless the owner retires the environment in this call, the next
     * invocation will begin with Init. May be NULL. */
    void (*on_idle_exit)(struct environment *environment, void *context);
};

struct worker_config {
    uv_loop_t *loop;
    struct launcher *launcher;          /* borrowed; the worker sets its events and polls its descriptor */
    struct http_server *server;         /* borrowed; Runtime API sockets are adopted into it */
    const struct log *log;              /* borrowed */
    const char *data_dir;               /* logs go to DIR/logs/ */
    const char *runtimes_dir;           /* where python/ and nodejs/ bootstraps are installed */
    unsigned freeze_grace_ms;           /* idle time before freezing; 0: 100 */
    unsigned init_limit_ms;             /* Init of an on-demand environment; 0: 10,000 */
    size_t stream_bytes;                /* largest answer in pieces; 0: 200 MiB */
    unsigned provisioned_init_limit_ms; /* at least this, or the function's timeout, at most 900 s; 0: 130,000 */
    unsigned shutdown_limit_ms;         /* Shutdown phase with external extensions, of which the runtime has 3/20; a
                                           quarter with internal ones alone; 0: 2,000 */
    uint64_t log_stream_bytes;          /* of log files a stream may have; 0: no limit */
    unsigned log_retention_days;        /* 0: logs are kept for ever */
    void (*on_lost)(void *context);     /* the launcher died */
    void *context;
};

int worker_new(const struct worker_config *config, struct worker **ret_worker, struct fault *fault) MUST_USE;
/* Kills every environment without Shutdown phase or callbacks and flushes the logs. The handles end on later turns of
 * the loop; the server and the launcher must still be there. Not from inside a callback. NULL is allowed. */
struct worker *worker_free(struct worker *worker);

/* Starts making an environment; on_ready or on_gone follows. `events` is borrowed for its life. -errno: nothing
 * happened. */
int worker_start_environment(struct worker *worker, const struct environment_spec *spec,
                             const struct environment_events *events, void *context,
                             struct environment **ret_environment) MUST_USE;

/* Gives an idle (or reset-pending) environment an invocation. One at a time. Cannot fail: trouble arrives as the
 * result. */
void environment_invoke(struct environment *environment, struct invocation *invocation);

/* The owner of an invocation that streams can take more. */
void environment_resume_stream(struct environment *environment);

/* Ends the environment: Shutdown phase, then kill. When BUSY it ends after the invocation under way. on_gone follows.
 */
void environment_retire(struct environment *environment);

/* Kills it now, whatever it does; an invocation under way gets an error result first. on_gone follows. */
void environment_kill(struct environment *environment);

/* True once nothing more can be given to it and on_gone is due: for on_end, which also comes when the sandbox died
 * under the invocation. */
bool environment_is_ending(const struct environment *environment);

/* Environments alive, for health and tests. */
size_t worker_environment_count(const struct worker *worker);
