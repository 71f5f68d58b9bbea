/*
 * Runs a scenario: a discrete-event simulation in which the decisions are core's own, the same code that serves, and
 * the machine is made of events. Time jumps from event to event; nothing sleeps, nothing is random but for the seed.
 *
 * Before 0 s everything that the scenario gives its functions is put in place, PC included, which is READY then unless
 * its "ready" is false. Requests arrive until the end; what is in flight then is followed to its answer, so that every
 * request is accounted for, but retries are not made any more and nothing else changes.
 */
#pragma once

#include "sim/report.h"

struct simulation_options {
    uint64_t seed;
    /* Every attempt when it is over, in that order. May be NULL. */
    void (*on_request)(const struct report_request *request, void *context);
    void *context;
};

/* -EINVAL when the scenario asks for RC or PC that the limits do not allow, -ENOMEM; with a sentence. */
int simulation_run(const struct scenario *scenario, const struct simulation_options *options,
                   struct report **ret_report, struct fault *fault) MUST_USE;
