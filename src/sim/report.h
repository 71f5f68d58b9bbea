/*
 * What a simulation found: totals and percentiles per function, a series of points over time, and, for short runs,
 * every request and environment. Filled in by simulation.c, read by whoever prints or draws. Its size depends on the
 * duration and the number of functions, not on the number of requests.
 */
#pragma once

#include "sim/histogram.h"
#include "sim/scenario.h"

/* Of one function within one step of time; sums are stamped with the time of the invoke, as the service's are. */
struct report_point {
    int64_t invocations;
    int64_t throttles[COUNTING_REASONS];
    int64_t errors; /* 500s: the machine was full, or the environment died */
    int64_t cold_starts;
    int64_t provisioned_invocations, spillover_invocations;
    int64_t duration_ns, duration_max_ns; /* sum and maximum, without Init and waiting; over `ended` */
    int64_t ended;
    int32_t concurrency_max;
    int32_t provisioned_max;   /* ProvisionedConcurrentExecutions: sum over the qualifiers of each one's maximum */
    int32_t provisioned_ready; /* environments of PC that serve, at the end of the step */
    int32_t provisioned_size;  /* PC that is set aside, at the end of the step */
    int32_t reserved;          /* RC at the end of the step, -1: none */
    int32_t environments;      /* all, at the end of the step */
    double utilisation_max;    /* ProvisionedConcurrencyUtilization, over the qualifiers; -1: none */
    double utilisation_sum;    /* over the provisioned_invocations */
};

struct report_account_point {
    int32_t concurrency_max, unreserved_max, environments, limit;
    int64_t claimed_max;
};

struct report_function {
    const struct scenario_function *scenario;
    struct report_point total; /* sums and maxima over all */
    double busy_ns;            /* sum over requests of the time a unit was held within the duration */
    struct histogram latency;  /* from the first attempt to the answer, of requests that were served */
    int64_t retries, gave_up;
    int64_t environments_made[2]; /* by enum core_origin */
    int64_t environments_ended;   /* through a Shutdown phase */
    int64_t environments_killed;
    int64_t *version_invocations; /* by version index: ExecutedVersion */
    struct report_point *points;
};

/* A change that happened or was refused, an alarm, a rollout: for people. */
struct report_note {
    int64_t at_ns;
    char text[160];
};

enum report_verdict { REPORT_SERVED, REPORT_THROTTLED, REPORT_ERROR };

/* One attempt of a request, when it is over. */
struct report_request {
    int64_t number; /* of the request, in order of arrival, from 0 */
    int attempt;    /* from 0 */
    int function, version;
    int64_t arrived_ns, started_ns, ended_ns; /* started: got its environment; served only */
    enum report_verdict verdict;
    struct counting_throttle throttle; /* THROTTLED */
    int64_t environment;               /* number, from 0 in order of their starts; -1: none */
    bool cold, provisioned, spilled;
};

struct report_environment {
    int64_t number;
    int function, version;
    bool provisioned;
    int64_t started_ns, ready_ns, stopped_ns, gone_ns; /* INT64_MAX: not by the end */
};

enum { REPORT_LANES = 256, REPORT_LANE_REQUESTS = 1000, REPORT_NOTES = 2000 };

struct report {
    const struct scenario *scenario; /* borrowed */
    uint64_t seed;
    int64_t requests; /* first attempts */
    int64_t step_ns;  /* a minute is a whole number of them */
    size_t point_count;
    struct report_function *functions;
    struct report_account_point *account_points;
    struct report_account_point account; /* maxima over all */

    struct report_note *notes;
    size_t note_count;

    /* Lanes: complete if there were no more than these. */
    struct report_environment *environments;
    struct report_request *requests_seen;
    size_t environment_count, request_count;
    bool too_many_environments, too_many_requests;
};

/* Zeroed, with the points of a scenario. NULL when out of memory. */
struct report *report_new(const struct scenario *scenario);
struct report *report_free(struct report *report);
void report_cleanup(struct report **report);

/* Adds sums and takes maxima; what is "at the end of the step" is the later one's. */
void report_point_merge(struct report_point *into, const struct report_point *from);
/* The points of a function from_ns (inclusive) to to_ns (exclusive), both multiples of the step, in one. */
struct report_point report_point_between(const struct report *report, int function, int64_t from_ns, int64_t to_ns);
struct report_account_point report_account_between(const struct report *report, int64_t from_ns, int64_t to_ns);
int64_t report_throttled(const struct report_point *point);
/* Minutes, the last one perhaps cut short. */
int64_t report_minutes(const struct report *report);
double report_mean_concurrency(const struct report *report, const struct report_function *function);

/* A, B, ... Z, AA, AB ...: how environments are called in tables and pictures. Returns `text`. */
enum { REPORT_LABEL_BYTES = 16 };
const char *report_label(int64_t number, char text[REPORT_LABEL_BYTES]);
const char *report_verdict_name(const struct report_request *request);
