#include "core/scaling.h"

#include "base/clock.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define LOW_FRACTION 0.9

/* ---- alarms ---- */

void scaling_alarm_init(struct scaling_alarm *alarm, bool above, double threshold, int points)
{
    assert(points >= 1 && points <= SCALING_POINTS);
    *alarm = (struct scaling_alarm){.above = above, .threshold = threshold, .points = points};
}

static bool breaches(const struct scaling_alarm *alarm, double value)
{
    return alarm->above ? value > alarm->threshold : value < alarm->threshold;
}

static enum scaling_alarm_state evaluate(const struct scaling_alarm *alarm)
{
    int found = 0, oldest = 0;

    for (int i = 0; i < alarm->points + SCALING_SPARE_POINTS && found < alarm->points; i++) {
        if (!alarm->history[i].present)
            continue;
        if (!breaches(alarm, alarm->history[i].value))
            return SCALING_OK;
        found++;
        oldest = i;
    }
    if (!found)
        return SCALING_INSUFFICIENT_DATA;
    return oldest >= alarm->points - 1 ? SCALING_ALARM : SCALING_OK;
}

enum scaling_alarm_state scaling_alarm_add(struct scaling_alarm *alarm, bool present, double value)
{
    memmove(&alarm->history[1], &alarm->history[0], sizeof(alarm->history) - sizeof(alarm->history[0]));
    alarm->history[0].present = present;
    alarm->history[0].value = value;
    alarm->state = evaluate(alarm);
    return alarm->state;
}

const char *scaling_alarm_state_name(enum scaling_alarm_state state)
{
    static const char *const names[] = {"INSUFFICIENT_DATA", "OK", "ALARM"};

    return names[state];
}

/* ---- target tracking ---- */

int32_t scaling_clamp(const struct scaling_bounds *bounds, int32_t capacity)
{
    return MIN(MAX(capacity, bounds->minimum), bounds->maximum);
}

struct scaling_policy scaling_policy_default(double target)
{
    return (struct scaling_policy){.target = target, .high_points = 3, .low_points = SCALING_POINTS};
}

void scaling_tracking_init(struct scaling_tracking *tracking, const struct scaling_policy *policy)
{
    *tracking = (struct scaling_tracking){.policy = *policy, .out_until_ns = INT64_MIN, .in_until_ns = INT64_MIN};
    scaling_alarm_init(&tracking->high, true, policy->target, policy->high_points);
    scaling_alarm_init(&tracking->low, false, policy->target * LOW_FRACTION, policy->low_points);
}

/* The capacity at which the same use would have been at the target. */
static int32_t in_proportion(double utilisation, double target, int32_t capacity)
{
    return (int32_t)ceil(MIN(capacity * utilisation / target, (double)INT32_MAX) - 1e-9);
}

int32_t scaling_track(struct scaling_tracking *tracking, const struct scaling_bounds *bounds, bool present,
                      double utilisation, int32_t capacity, int64_t now_ns)
{
    const struct scaling_policy *policy = &tracking->policy;
    enum scaling_alarm_state high = scaling_alarm_add(&tracking->high, present, utilisation);
    enum scaling_alarm_state low = scaling_alarm_add(&tracking->low, present, utilisation);
    int32_t wanted = capacity;

    /* An alarm that stays on a made-up minute acts on nothing new. */
    if (present && high == SCALING_ALARM && now_ns >= tracking->out_until_ns)
        wanted = MAX(capacity, in_proportion(utilisation, policy->target, capacity));
    else if (present && low == SCALING_ALARM && !policy->out_only && now_ns >= tracking->in_until_ns)
        wanted = MIN(capacity, in_proportion(utilisation, policy->target, capacity));
    wanted = scaling_clamp(bounds, wanted);
    if (wanted == capacity)
        return capacity;
    if (wanted > capacity)
        tracking->out_until_ns = now_ns + policy->out_cooldown_ns;
    tracking->in_until_ns = now_ns + policy->in_cooldown_ns;
    return wanted;
}
