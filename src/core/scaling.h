/*
 * Application Auto Scaling of provisioned concurrency, as decisions: what capacity should it be now? Target tracking
 * looks at one point a minute through two alarms; scheduled actions move the bounds. The caller measures, keeps the
 * time, and puts the capacity. Plain values, no clock.
 *
 * The high alarm goes off when 3 points in a row are above the target, the low one when `low_points` are below 90% of
 * it. Capacity is then set in proportion, so that the latest point would have been at the target, rounded up so as not
 * to overshoot on the way in. A minute without data (an idle function has no utilisation) is no point: when there is
 * none at all, the alarms are INSUFFICIENT_DATA and nothing changes.
 */
#pragma once

#include "base/macros.h"

#include <stdbool.h>
#include <stdint.h>

enum scaling_alarm_state { SCALING_INSUFFICIENT_DATA, SCALING_OK, SCALING_ALARM };

enum { SCALING_POINTS = 15, SCALING_SPARE_POINTS = 2 };

/*
 * An alarm over one-minute points, missing data treated as missing. It looks at two points more than it needs, so that
 * a missing one is made up for by an older one; where there are fewer than it needs, those that are there decide, but
 * it does not go off before the oldest of them is as old as the whole evaluation (a lone first point is no alarm).
 */
struct scaling_alarm {
    bool above; /* breaches above the threshold; else below */
    double threshold;
    int points; /* 1 to SCALING_POINTS, all of which must breach */
    enum scaling_alarm_state state;
    struct {
        bool present;
        double value;
    } history[SCALING_POINTS + SCALING_SPARE_POINTS]; /* newest first */
};

void scaling_alarm_init(struct scaling_alarm *alarm, bool above, double threshold, int points);
/* One more minute; `value` counts if `present`. Returns the new state. */
enum scaling_alarm_state scaling_alarm_add(struct scaling_alarm *alarm, bool present, double value);
/* "OK" and so on, as CloudWatch writes them. */
const char *scaling_alarm_state_name(enum scaling_alarm_state state);

struct scaling_bounds {
    int32_t minimum, maximum;
};

/* The nearest capacity within the bounds. */
int32_t scaling_clamp(const struct scaling_bounds *bounds, int32_t capacity);

struct scaling_policy {
    double target;               /* utilisation, 0.1 to 0.9 */
    int64_t out_cooldown_ns;     /* after a change upwards no further one for so long */
    int64_t in_cooldown_ns;      /* after any change none downwards for so long */
    bool out_only;               /* DisableScaleIn */
    int high_points, low_points; /* 3 and 15 */
};

struct scaling_tracking {
    struct scaling_policy policy;
    struct scaling_alarm high, low;
    int64_t out_until_ns, in_until_ns; /* cooldowns end */
};

/* The service's figures for the numbers of points, no cooldown. */
struct scaling_policy scaling_policy_default(double target);
void scaling_tracking_init(struct scaling_tracking *tracking, const struct scaling_policy *policy);
/*
 * One minute has passed with this utilisation (if `present`) at this capacity. Returns the capacity to have from now
 * on, within the bounds; the same as `capacity` when nothing is to change.
 */
int32_t scaling_track(struct scaling_tracking *tracking, const struct scaling_bounds *bounds, bool present,
                      double utilisation, int32_t capacity, int64_t now_ns);
