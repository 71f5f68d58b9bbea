/*
 * The inside of a simulation, shared by simulation.c (requests and environments), changes.c (what the scenario changes
 * on the way) and figures.c (what is read off at every step). Not for users.
 *
 * All times here are core's: they begin before the scenario does, and `origin_ns` is its 0 s.
 */
#pragma once

#include "sim/event_queue.h"
#include "sim/simulation.h"
#include "sim/trace.h"

enum engine_event {
    ENGINE_RESPONSE, /* struct engine_request: its duration is over */
    ENGINE_READY,    /* struct engine_environment: Init is over */
    ENGINE_GONE,     /* struct engine_environment: Shutdown is over */
    ENGINE_STEP,     /* figures */
    ENGINE_CHANGE,   /* const struct scenario_event */
    ENGINE_ACTION,   /* struct engine_action */
    ENGINE_ROLLOUT,  /* struct engine_rollout */
    ENGINE_ARRIVAL,  /* struct engine_source: its next request */
    ENGINE_AGAIN,    /* struct engine_request: the next attempt, or the next request of a caller */
};

struct engine_version {
    struct core_version *core;
    struct distribution duration, init, shutdown; /* as they are now */
    int function, index;
};

/* A qualifier that has PC at some time. */
struct engine_provisioned {
    struct scenario_qualifier qualifier;
    struct core_provisioned *core; /* NULL: none now */
    int32_t ready_before;          /* at the step before */
    int64_t samples;               /* of utilisation since the last minute */
    double utilisation_sum, utilisation_max;
};

struct engine_function {
    struct core_function *core;
    struct engine_version *versions;
    struct core_alias **aliases;
    struct scenario_routing *routings; /* of the aliases, as they are now */
    struct engine_provisioned *provisioned;
    size_t provisioned_count;
    struct report_function *report;
    struct report_point *point; /* of the present step */
    int32_t reserved;
};

struct engine_source {
    const struct scenario_traffic *traffic;
    struct core_qualifier qualifier;
    struct prng prng;
    int64_t sent;
    double next_s;      /* POISSON */
    struct trace trace; /* TRACE */
    struct trace_entry entry;
};

struct engine_request {
    struct core_request core; /* first: effects cast */
    struct engine_source *source;
    struct core_qualifier qualifier;
    struct report_point *point; /* of the invoke */
    int64_t number;
    int64_t first_ns, arrived_ns, started_ns;
    int64_t duration_ns; /* -1: as the version's */
    int function, attempt;
    int64_t environment;
    bool on_provisioned;
    bool dead; /* its environment died; only its RESPONSE is still to come */
    struct engine_request *next_free;
};

enum { ENGINE_SLAB_REQUESTS = 512 };

struct engine_slab {
    struct engine_slab *next;
    struct engine_request requests[ENGINE_SLAB_REQUESTS];
};

struct engine_environment {
    struct core_environment *core; /* NULL: gone, only its READY is still to come */
    struct engine_version *version;
    int64_t number;
    bool starting;                   /* its READY is still to come */
    struct report_environment *lane; /* NULL: too many */
    struct list_link link;
};

struct engine_scaling {
    const struct scenario_scaling *scenario;
    struct engine_provisioned *provisioned;
    struct scaling_bounds bounds;
    struct scaling_tracking tracking;
};

struct engine_action {
    const struct scenario_action *scenario;
    struct engine_scaling *scaling;
};

struct engine_rollout {
    const struct scenario_event *event;
    struct rollout rollout;
    int old_version;
    bool started;
};

struct engine {
    const struct scenario *scenario;
    const struct simulation_options *options;
    struct report *report;
    struct event_queue queue;
    struct placement *placement;
    struct placement_worker **workers;
    struct core_account *account;
    struct engine_function *functions;
    struct engine_source *sources;
    struct engine_scaling *scalings;
    size_t scaling_count;
    struct engine_action *actions;
    size_t action_count;
    struct engine_rollout *rollouts;
    size_t rollout_count;
    struct prng prng; /* routing, Init, Shutdown, jitter */
    struct list environments;
    int64_t environment_count;
    struct engine_slab *slabs;
    struct engine_request *free_requests;
    int64_t live_requests;
    int64_t request_count;
    int64_t now_ns, origin_ns, end_ns;
    size_t point; /* index of the present step */
    bool running; /* requests arrive and things change */
    struct report_account_point *account_point;
    int error;           /* -ENOMEM or another that ends the run */
    struct fault *fault; /* may be set together with it */
};

/* ---- simulation.c ---- */

void engine_add(struct engine *engine, int64_t when_ns, enum event_phase phase, enum engine_event kind,
                const void *subject);
void engine_note(struct engine *engine, const char *format, ...) PRINTF_LIKE(2, 3);
struct core_qualifier engine_qualifier(const struct engine *engine, const struct scenario_qualifier *qualifier);
/* Every environment on it dies at this moment, and nothing is placed there again. */
void engine_kill_worker(struct engine *engine, int worker);

/* ---- changes.c ---- */

/* Functions, versions, aliases, RC, and what scaling and rollouts need. -EINVAL with a sentence, -ENOMEM. */
int engine_build_functions(struct engine *engine, struct fault *fault) MUST_USE;
void engine_free_functions(struct engine *engine);
/* PC that is READY at 0 s (`cold` false) or asked for then. */
int engine_provision(struct engine *engine, bool cold, struct fault *fault) MUST_USE;
/* All PC has been allocated, or has failed to be. */
bool engine_is_provisioned(const struct engine *engine);
/* Puts the scenario's events and scheduled actions into the queue. */
void engine_schedule_changes(struct engine *engine);
void engine_change(struct engine *engine, const struct scenario_event *event);
void engine_act(struct engine *engine, struct engine_action *action);
void engine_roll(struct engine *engine, struct engine_rollout *rollout);
/* A minute is over: target tracking. */
void engine_track(struct engine *engine);
struct engine_provisioned *engine_provisioned_of(struct engine *engine, int function,
                                                 const struct core_provisioned *core);

/* ---- figures.c ---- */

/* Closes the present step and begins the next. */
void engine_step(struct engine *engine);
/* Sums over the points, when all is over. */
void engine_total(struct engine *engine);
