/* What is read off at every step of time. Core keeps the maxima since the last reading. */
#include "sim/engine.h"

static void read_provisioned(struct engine *engine, struct engine_function *function, struct report_point *point)
{
    (void)engine;
    point->provisioned_max = point->provisioned_ready = point->provisioned_size = 0;
    for (size_t i = 0; i < function->provisioned_count; i++) {
        struct engine_provisioned *provisioned = &function->provisioned[i];
        struct core_provisioned_metrics metrics;
        struct core_provisioned_state state;
        int32_t ready;
        if (!provisioned->core) {
            provisioned->ready_before = 0;
            continue;
        }
        core_provisioned_read_metrics(provisioned->core, true, &metrics);
        core_provisioned_get(provisioned->core, &state);
        point->provisioned_max += metrics.executions_max;
        point->provisioned_ready += state.available;
        point->provisioned_size += state.requested;
        /* What served at any time of the step counts: PC may have been lowered within it. */
        ready = MAX(state.available, provisioned->ready_before);
        if (ready && metrics.executions_max)
            point->utilisation_max = MAX(point->utilisation_max, metrics.executions_max / (double)ready);
        provisioned->ready_before = state.available;
    }
}

static int32_t count_environments(const struct engine_function *function, size_t version_count)
{
    int32_t sum = 0;

    for (size_t i = 0; i < version_count; i++) {
        struct core_version_counts counts;
        core_version_count(function->versions[i].core, &counts);
        for (size_t state = 0; state < CORE_ENVIRONMENT_STATES; state++)
            sum += counts.environments[state];
    }
    return sum;
}

static void read_function(struct engine *engine, size_t index)
{
    struct engine_function *function = &engine->functions[index];
    struct core_function_metrics metrics;

    core_function_read_metrics(function->core, true, &metrics);
    function->point->concurrency_max = metrics.concurrency_max;
    function->point->reserved = function->reserved;
    function->point->environments = count_environments(function, engine->scenario->functions[index].version_count);
    read_provisioned(engine, function, function->point);
}

static void read_account(struct engine *engine)
{
    struct report_account_point *point = engine->account_point;
    struct core_account_metrics metrics;

    core_account_read_metrics(engine->account, true, &metrics);
    point->concurrency_max = metrics.concurrency_max;
    point->unreserved_max = metrics.unreserved_max;
    point->claimed_max = metrics.claimed_max;
    point->environments = metrics.environments;
    point->limit = core_account_limits(engine->account)->concurrency;
}

void engine_step(struct engine *engine)
{
    int64_t at_ns = engine->now_ns - engine->origin_ns;

    for (size_t i = 0; i < engine->scenario->function_count; i++)
        read_function(engine, i);
    read_account(engine);
    if (at_ns % (60 * NS_PER_S) == 0)
        engine_track(engine);
    if (engine->now_ns >= engine->end_ns) {
        engine->running = false;
        return;
    }
    engine->point++;
    engine->account_point++;
    for (size_t i = 0; i < engine->scenario->function_count; i++)
        engine->functions[i].point++;
    engine_add(engine, MIN(engine->now_ns + engine->report->step_ns, engine->end_ns), PHASE_FIGURES, ENGINE_STEP, NULL);
}

void engine_total(struct engine *engine)
{
    struct report *report = engine->report;

    for (size_t i = 0; i < engine->scenario->function_count; i++) {
        for (size_t k = 0; k < report->point_count; k++)
            report_point_merge(&report->functions[i].total, &report->functions[i].points[k]);
    }
    for (size_t k = 0; k < report->point_count; k++) {
        const struct report_account_point *point = &report->account_points[k];
        report->account.concurrency_max = MAX(report->account.concurrency_max, point->concurrency_max);
        report->account.unreserved_max = MAX(report->account.unreserved_max, point->unreserved_max);
        report->account.claimed_max = MAX(report->account.claimed_max, point->claimed_max);
        report->account.environments = MAX(report->account.environments, point->environments);
        report->account.limit = point->limit;
    }
}
