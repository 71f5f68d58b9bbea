/*
 * What is to be simulated, read from JSON and checked: limits, functions, traffic, changes on the way.
 * docs/simulator.md describes the members. A scenario is read once and never changes; any number of simulations may run
 * on it.
 *
 * Things refer to each other by index. Strings and arrays are the scenario's.
 */
#pragma once

#include "core/core.h"
#include "core/rollout.h"
#include "core/scaling.h"
#include "core/schedule.h"
#include "sim/distribution.h"

#include "base/arena.h"
#include "base/fault.h"

/* A version or alias of a function. */
struct scenario_qualifier {
    int function;
    int version; /* -1: an alias */
    int alias;   /* -1: a version */
};

struct scenario_version {
    const char *name; /* "$LATEST" or digits */
    struct distribution duration, init, shutdown;
    int64_t memory_mib;
};

/* Where an alias points: version indexes; second -1: none. */
struct scenario_routing {
    int version, second;
    double second_weight;
};

struct scenario_alias {
    const char *name;
    struct scenario_routing routing;
};

struct scenario_provisioned {
    struct scenario_qualifier qualifier;
    int32_t count;
    bool cold; /* asked for at 0 s; else READY by then */
};

struct scenario_action {
    struct schedule schedule;
    struct schedule_zone zone;
    int32_t minimum, maximum; /* -1: stays */
    int64_t start_s, end_s;   /* seconds since 1970 */
};

struct scenario_scaling {
    struct scenario_qualifier qualifier;
    struct scaling_bounds bounds;
    bool tracks;
    bool by_maximum; /* the statistic of the minute; else the average */
    struct scaling_policy policy;
    struct scenario_action *actions;
    size_t action_count;
};

struct scenario_function {
    const char *name;
    int32_t reserved; /* -1: none */
    struct scenario_version *versions;
    size_t version_count;
    struct scenario_alias *aliases;
    size_t alias_count;
    struct scenario_provisioned *provisioned;
    size_t provisioned_count;
    struct scenario_scaling *scaling;
    size_t scaling_count;
};

enum scenario_traffic_kind { TRAFFIC_CONSTANT, TRAFFIC_POISSON, TRAFFIC_CALLERS, TRAFFIC_TIMES, TRAFFIC_TRACE };

struct scenario_traffic {
    enum scenario_traffic_kind kind;
    struct scenario_qualifier qualifier;
    int64_t from_ns, to_ns;  /* CONSTANT, POISSON, CALLERS */
    double rps;              /* CONSTANT, POISSON */
    int64_t callers;         /* CALLERS: each sends its next request when it has its answer */
    const int64_t *times_ns; /* TIMES: sorted */
    size_t time_count;
    const char *path;      /* TRACE: of the file */
    const char *requested; /* TRACE: name of a version or alias that every function in it has; NULL: $LATEST */
};

enum scenario_event_kind {
    EVENT_RESERVED,
    EVENT_PROVISIONED,
    EVENT_ROUTING,
    EVENT_DURATION,
    EVENT_ROLLOUT,
    EVENT_ROLL_BACK,
    EVENT_KILL_WORKER,
    EVENT_ACCOUNT,
};

/* One change; `what` says which members hold. */
struct scenario_event {
    int64_t at_ns;
    enum scenario_event_kind what;
    struct scenario_qualifier qualifier; /* PROVISIONED, ROUTING, ROLLOUT, ROLL_BACK; DURATION; RESERVED: function */
    int32_t count;                       /* RESERVED (-1: none), PROVISIONED (0: none), ACCOUNT */
    struct scenario_routing routing;     /* ROUTING; ROLLOUT: version is the new one */
    bool has_duration, has_init;         /* DURATION */
    struct distribution duration, init;
    struct rollout_plan plan; /* ROLLOUT */
    int worker;               /* KILL_WORKER: index */
};

struct scenario_worker {
    const char *name;
    unsigned zone;
    int64_t memory_mib, environments; /* 0: no limit */
};

struct scenario_retry {
    int attempts;            /* altogether; 1: no retry */
    int64_t base_ns, cap_ns; /* before the n-th retry, n from 0: min(cap, base x 2^n), times a random part */
    bool jitter;             /* a random part from 0 to 1; else all of it */
};

struct scenario {
    const char *description; /* NULL: none */
    struct core_limits limits;
    struct scenario_function *functions;
    size_t function_count;
    struct scenario_traffic *traffic;
    size_t traffic_count;
    struct scenario_event *events;
    size_t event_count;
    struct scenario_worker *workers;
    size_t worker_count;
    struct scenario_retry retry;
    int64_t duration_ns;
    int64_t start_s; /* 0 s of the simulation, seconds since 1970 */
    uint64_t seed;

    struct arena arena;
};

/* `directory` is where trace files are looked for unless their path is absolute. -EINVAL with "LINE:COLUMN: MEMBER:
 * what is wrong", or another -errno. */
int scenario_parse(struct span text, const char *directory, struct scenario **ret_scenario,
                   struct fault *fault) MUST_USE;
/* Reads the file; faults begin with its path. */
int scenario_load(const char *path, struct scenario **ret_scenario, struct fault *fault) MUST_USE;
struct scenario *scenario_free(struct scenario *scenario);
void scenario_cleanup(struct scenario **scenario);

/* -1: there is none of this name. */
int scenario_find_function(const struct scenario *scenario, struct span name);
int scenario_find_version(const struct scenario_function *function, const char *name);
int scenario_find_alias(const struct scenario_function *function, const char *name);
/* A version or alias by its name (NULL: $LATEST). False: the function has none of this name. */
bool scenario_find_qualifier(const struct scenario *scenario, int function, const char *name,
                             struct scenario_qualifier *ret_qualifier);
/* The name of the version or alias. */
const char *scenario_qualifier_name(const struct scenario *scenario, const struct scenario_qualifier *qualifier);
