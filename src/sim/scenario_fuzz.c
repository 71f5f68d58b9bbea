/* libFuzzer: every input is a scenario; what is accepted and small is simulated and planned as well. */
#include "sim/output.h"
#include "sim/plan.h"
#include "sim/simulation.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { REQUESTS = 2000, PLANNED_REQUESTS = 60, SOME = 200 };

/* A few thousand requests at most: a run must end before libFuzzer takes it for hung. */
static bool is_small(const struct scenario *scenario, double most)
{
    double requests = 0, seconds = (double)scenario->duration_ns / (double)NS_PER_S;
    int64_t provisioned = 0, actions = 0;

    for (size_t i = 0; i < scenario->traffic_count; i++) {
        const struct scenario_traffic *traffic = &scenario->traffic[i];
        if (traffic->kind == TRAFFIC_CALLERS) /* a caller whose requests take no time never ends */
            return false;
        requests += traffic->rps * seconds + (double)traffic->time_count;
    }
    for (size_t i = 0; i < scenario->function_count; i++) {
        const struct scenario_function *function = &scenario->functions[i];
        for (size_t k = 0; k < function->provisioned_count; k++)
            provisioned += function->provisioned[k].count;
        for (size_t k = 0; k < function->scaling_count; k++)
            actions += (int64_t)function->scaling[k].action_count + function->scaling[k].tracks;
    }
    for (size_t i = 0; i < scenario->event_count; i++)
        provisioned += scenario->events[i].what == EVENT_PROVISIONED ? scenario->events[i].count : 0;
    return requests < most && provisioned < SOME && seconds < SOME && !actions &&
           scenario->limits.provisioning_rate > 0 && scenario->retry.attempts < 10;
}

static void run(const struct scenario *scenario)
{
    struct simulation_options options = {.seed = scenario->seed};
    struct report *report CLEANUP(report_cleanup) = NULL;
    struct output output = {.scenario = scenario, .format = OUTPUT_JSON};
    struct fault fault = {0};

    if (simulation_run(scenario, &options, &report, &fault) < 0)
        return;
    output.file = fopen("/dev/null", "we");
    if (!output.file)
        return;
    if (output_report(&output, report) < 0)
        abort();
    fclose(output.file);
}

static void make_plan(const struct scenario *scenario)
{
    struct plan_options options = {.seed = scenario->seed, .fraction = scenario->seed % 2 ? 1 : 0.9};
    struct plan *plan CLEANUP(plan_cleanup) = NULL;
    struct fault fault = {0};

    if (plan_make(scenario, &options, &plan, &fault) < 0 && !fault.text[0])
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct scenario *scenario CLEANUP(scenario_cleanup) = NULL;
    struct fault fault = {0};

    /* A folder that does not exist: traces are not opened. */
    if (scenario_parse(span_of((const char *)data, size), "/nonexistent", &scenario, &fault) < 0) {
        if (!fault.text[0])
            abort();
        return 0;
    }
    if (is_small(scenario, REQUESTS))
        run(scenario);
    if (is_small(scenario, PLANNED_REQUESTS)) /* which are simulated some thirty times */
        make_plan(scenario);
    return 0;
}
