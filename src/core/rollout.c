#include "core/rollout.h"

#include "base/macros.h"

#include <assert.h>

bool rollout_plan_is_valid(const struct rollout_plan *plan)
{
    if (plan->kind == ROLLOUT_ALL_AT_ONCE)
        return true;
    return plan->fraction >= 0.01 && plan->fraction <= 0.99 && plan->interval_ns > 0;
}

/* Shifts are counted from the start, so that being late changes nothing but the moment. */
static double weight_after(const struct rollout_plan *plan, int64_t elapsed_ns)
{
    int64_t intervals;
    double weight;

    if (plan->kind == ROLLOUT_ALL_AT_ONCE)
        return 1;
    intervals = elapsed_ns / plan->interval_ns;
    if (plan->kind == ROLLOUT_CANARY)
        return intervals ? 1 : plan->fraction;
    weight = (double)(intervals + 1) * plan->fraction;
    return weight > 1 - 1e-9 ? 1 : weight;
}

void rollout_start(struct rollout *rollout, const struct rollout_plan *plan, int64_t now_ns)
{
    assert(rollout_plan_is_valid(plan));
    *rollout = (struct rollout){.plan = *plan, .started_ns = now_ns};
    rollout_advance(rollout, now_ns);
}

int64_t rollout_next_deadline(const struct rollout *rollout)
{
    /* The weight tells how many intervals have been seen: 1 for the canary, weight / fraction for the linear plan. */
    int64_t seen = 1;

    if (rollout->status != ROLLOUT_SHIFTING)
        return INT64_MAX;
    if (rollout->plan.kind == ROLLOUT_LINEAR)
        seen = (int64_t)(rollout->weight / rollout->plan.fraction + 0.5);
    return rollout->started_ns + seen * rollout->plan.interval_ns;
}

bool rollout_advance(struct rollout *rollout, int64_t now_ns)
{
    double weight;

    if (rollout->status != ROLLOUT_SHIFTING)
        return false;
    weight = weight_after(&rollout->plan, now_ns - rollout->started_ns);
    if (weight >= 1)
        rollout->status = ROLLOUT_DONE;
    if (weight == rollout->weight)
        return false;
    rollout->weight = weight;
    return true;
}

bool rollout_roll_back(struct rollout *rollout)
{
    if (rollout->status != ROLLOUT_SHIFTING)
        return false;
    rollout->status = ROLLOUT_ROLLED_BACK;
    rollout->weight = 0;
    return true;
}
