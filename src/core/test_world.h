/*
 * A small world for the tests of core: an account on one worker without limits, a virtual clock, and effects that are
 * recorded. With `automatic` set it also plays the machine: Init takes init_ns, an invoke as long as its request says,
 * an environment is free finishing_ns after its answer and gone stopping_ns after it was told to stop. core_validate
 * runs after every step.
 */
#pragma once

#include "core/core.h"

enum { WORLD_LOG = 64 };

struct world_request {
    struct core_request core; /* first: effects cast */
    int64_t duration_ns;
    int outcome; /* of core_invoke; CORE_SERVED once a waiting one is served */
    struct counting_throttle throttle;
    int64_t arrived_ns;
    int64_t served_ns;
    int environment; /* number of the environment that served it, from 0 in order of their starts; -1: none */
};

struct world_event;

struct world {
    struct placement *placement;
    struct placement_worker *worker;
    struct core_account *account;
    int64_t now_ns;
    uint64_t random;    /* the draw of the next invoke */
    bool refuse_starts; /* the machine is full */
    bool automatic;
    bool validate; /* after every step; true at first */
    int64_t init_ns, finishing_ns, stopping_ns;

    int starts, stops, serves, refusals, failures, changes;
    struct core_environment *started[WORLD_LOG]; /* the latest at starts - 1, modulo */
    struct core_environment *stopped[WORLD_LOG];
    struct core_request *served[WORLD_LOG];
    struct core_request *refused[WORLD_LOG];
    struct core_request *failed[WORLD_LOG];
    struct counting_throttle throttle; /* of the last refusal */
    enum core_failure failure;         /* the last */

    struct world_event *events; /* heap by time, then by order of addition */
    size_t event_count, event_capacity;
    uint64_t event_sequence;
};

/* Aborts when something cannot be set up. NULL limits: the defaults. */
void world_init(struct world *world, const struct core_limits *limits);
/* Ends the world whatever is still running in it. */
void world_deinit(struct world *world);

/* A function with the version "$LATEST"; and with more versions. */
struct core_version *world_add_function(struct world *world, const char *name);
struct core_version *world_add_version(struct core_function *function, const char *name);
struct core_alias *world_add_alias(struct core_function *function, const char *name, struct core_version *version);

/* Invokes at now_ns and validates. The request must be zeroed or done. Returns the outcome. */
int world_invoke(struct world *world, struct core_version *version, struct world_request *request);
int world_invoke_alias(struct world *world, struct core_alias *alias, struct world_request *request);

/* The last one recorded, NULL when none. */
struct core_environment *world_last_started(const struct world *world);
struct core_environment *world_last_stopped(const struct world *world);

/* One step each, then core_validate. */
void world_ready(struct world *world, struct core_environment *environment);
void world_respond(struct world *world, struct world_request *request);
void world_free(struct world *world, struct core_environment *environment);
void world_gone(struct world *world, struct core_environment *environment);
/* Respond and free. */
void world_finish(struct world *world, struct world_request *request);
/* Moves the clock and calls core_advance once. */
void world_pass(struct world *world, int64_t duration_ns);

/* Invokes on `version` and sees it through to a free environment again, now. */
void world_warm(struct world *world, struct core_version *version, int count);

/* `automatic`: lets everything happen that is due by then, in order, deadlines of core included. At one instant what
 * the machine does comes before what was added by world_at. */
void world_run_until(struct world *world, int64_t now_ns);
/* `automatic`: an invoke at a later time. */
void world_at(struct world *world, int64_t when_ns, struct core_version *version, struct core_alias *alias,
              struct world_request *request);
