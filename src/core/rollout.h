/*
 * Traffic shifting: how much of an alias's requests the new version gets, at what time. A plan and the time of its
 * start say everything; the caller moves the alias to the weight. Plain values, no clock.
 *
 *     all at once   0 ─> 1
 *     canary        0 ─> fraction ── interval ──> 1
 *     linear        0 ─> fraction ── interval ──> 2 x fraction ── interval ──> ... 1
 *
 * The first shift is made at the start. SHIFTING ends as DONE (the new version has everything) or, when the caller says
 * so (an alarm, a failed hook, a person), as ROLLED_BACK with weight 0.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum rollout_kind { ROLLOUT_ALL_AT_ONCE, ROLLOUT_CANARY, ROLLOUT_LINEAR };

struct rollout_plan {
    enum rollout_kind kind;
    double fraction;     /* 0.01 to 0.99: of the first shift, or of each; unused when all at once */
    int64_t interval_ns; /* above 0 */
};

enum rollout_status { ROLLOUT_SHIFTING, ROLLOUT_DONE, ROLLOUT_ROLLED_BACK };

struct rollout {
    struct rollout_plan plan;
    enum rollout_status status;
    int64_t started_ns;
    double weight; /* of the new version, now */
};

bool rollout_plan_is_valid(const struct rollout_plan *plan);
/* Starts a valid plan: `weight` is that of the first shift. */
void rollout_start(struct rollout *rollout, const struct rollout_plan *plan, int64_t now_ns);
/* When rollout_advance will shift next: INT64_MAX when it is over. */
int64_t rollout_next_deadline(const struct rollout *rollout);
/* Brings `weight` and `status` up to date. True: the weight changed. */
bool rollout_advance(struct rollout *rollout, int64_t now_ns);
/* Everything back to the old version. False: it is over already, nothing changed. */
bool rollout_roll_back(struct rollout *rollout);
