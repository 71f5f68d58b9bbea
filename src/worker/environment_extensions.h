/*
 * The part that extensions have in an environment's life (internal to the worker): external ones are started before the
 * runtime, Init ends when all have asked for their next event, INVOKE goes to those that want it and the environment is
 * free when they are done, and before the processes are killed there is a Shutdown phase:
 *
 *   NONE -> RUNTIME (SIGTERM to the runtime, SIGKILL when its share is over)
 *        -> EXTENSIONS (SHUTDOWN to the external ones that want it, until they exit or the time is over) -> NONE
 *
 * It lasts 2,000 ms with external extensions, of which the runtime has at most 300; 500 with internal ones alone; and
 * there is none without any. (Lambda guide, "Using the Lambda Extensions API", Shutdown phase.)
 *
 * An environment without extensions has none of this: environment->extensions is NULL.
 */
#pragma once

#include "worker/extension.h"
#include "worker/limit.h"

struct environment;
struct extension_output;
struct http_request;
struct sandbox_exit;
struct environment_spec;

enum closing_phase { CLOSING_NONE, CLOSING_RUNTIME, CLOSING_EXTENSIONS };

struct environment_extensions {
    struct environment *environment;
    struct extension_set set;
    struct extension_output *output; /* of the external ones; NULL: there was none */
    const char *const *variables;    /* of their processes */
    enum closing_phase closing;
    const char *closing_reason;
    int64_t closing_deadline_wall_ms;
    struct limit closing_limit; /* the whole phase */
    struct limit runtime_limit; /* the runtime's share of it */
};

/* Makes environment->extensions if it is not there. -ENOMEM. */
int extensions_ensure(struct environment *environment) MUST_USE;
/* Frees it, without callbacks. */
void extensions_destroy(struct environment *environment);
/* Every process is dead and every connection cut: nobody has registered. */
void extensions_forget(struct environment *environment);

/* Asks for the external ones to be started. False: there are none, the runtime can start. True: environment_run_runtime
 * follows when they have registered, or Init fails. */
bool extensions_launch(struct environment *environment);
/* For the launcher: sends what has not been sent. -EAGAIN: to be called again. */
int extensions_send_runs(struct environment *environment) MUST_USE;
/* A process has ended. False: it was no extension. */
bool extensions_on_exit(struct environment *environment, uint32_t run, int exec_errno, const struct sandbox_exit *exit);

/* The runtime has asked for its first event: nobody can register any more. True when all are ready. */
bool extensions_end_registration(struct environment *environment);
/* Whether one works on the invocation still. */
bool extensions_are_running(const struct environment *environment);
/* INVOKE to those that want it. */
void extensions_send_invoke(struct environment *environment, struct span trace_id);
/* Tells the log and telemetry how each fared in Init. */
void extensions_log(struct environment *environment);

/* Begins the Shutdown phase; environment_on_closed follows. False when there is nothing to wait for. */
bool extensions_close(struct environment *environment, const char *reason);
/* Ends a Shutdown phase at once, without environment_on_closed. */
void extensions_stop_closing(struct environment *environment);
bool extensions_are_closing(const struct environment *environment);
/* The runtime has ended in a Shutdown phase. */
void extensions_on_runtime_exit(struct environment *environment);
void extensions_on_closing_limit(struct limit *limit);
void extensions_on_runtime_limit(struct limit *limit);

/* --- what the extensions say, for extensions_api.c ---------------------------------------------------------------- */

/* An external one has registered. */
void extensions_on_registered(struct environment *environment);
/* GET event/next. False: the wrong moment. True: the request is kept until there is an event. */
bool extensions_take_next(struct environment *environment, struct extension *extension, struct http_request *request);
/* The connection of the kept request is gone. False: it is no extension's. */
bool extensions_on_next_lost(struct environment *environment, const struct http_request *request);
/* POST init/error or exit/error: `state` says which. False: the wrong moment. */
bool extensions_take_error(struct environment *environment, struct extension *extension, enum extension_state state,
                           struct span error_type);
