/*
 * Capacity planning: the smallest PC and RC with which a scenario's traffic gets what it needs, found by simulating it
 * again and again, with the service's own rule of thumb beside it.
 *
 * For every function that has traffic: PC of each version or alias that is called, such that at most the given part of
 * the requests meets a cold start; then, with that PC, RC such that at most that part is throttled. Each is the
 * smallest of its kind with the ones before: one less does not suffice. Meanwhile the account limit, the scaling rate
 * and the other functions do not stand in the way: in the end everything runs together, at the account limit that it
 * takes. What the scenario says of RC, PC, scaling and the account limit is left aside.
 *
 * The rule: requests per second of the busiest minute x mean duration in seconds; for PC, 10% more. It knows neither
 * bursts nor that a unit of concurrency is good for 10 requests a second only, so functions of less than 100 ms need
 * more than it says.
 */
#pragma once

#include "sim/scenario.h"

struct plan_options {
    uint64_t seed;
    double fraction; /* 0 to 1: of the requests that are to be warm, and not throttled */
};

struct plan_qualifier {
    struct scenario_qualifier qualifier;
    /* The smallest PC; -1: it can have none, being $LATEST or a version that a called alias points to, whose PC serves
     * both. */
    int32_t provisioned;
    double rule; /* rps x seconds, without the 10% */
};

struct plan_function {
    int function;
    int32_t reserved; /* the smallest RC */
    double rule;
    struct plan_qualifier *qualifiers;
    size_t qualifier_count;

    /* Of the whole plan at work. */
    int64_t invocations, cold_starts, throttled, errors;
    int64_t paced; /* of the throttled: by the scaling rate, which no RC prevents */
};

struct plan {
    const struct scenario *scenario; /* borrowed */
    struct plan_function *functions; /* those with traffic */
    size_t function_count;
    int64_t needed; /* sum of the RC and the unreserved minimum: what the account limit must be at least */
    int simulations;
};

/* -EINVAL when the scenario has no traffic, or another -errno; with a sentence. */
int plan_make(const struct scenario *scenario, const struct plan_options *options, struct plan **ret_plan,
              struct fault *fault) MUST_USE;
struct plan *plan_free(struct plan *plan);
void plan_cleanup(struct plan **plan);
