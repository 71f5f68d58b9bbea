/*
 * The PC manager: how many initialised environments each version holds, at what pace, after which change.
 *
 * A configuration belongs to a version or an alias; its environments belong to versions. Its target is divided into
 * shares: one version, or two by the weights of the alias (50 at 10% -> 45 and 5). From then on one rule covers every
 * change (put, raise, lower, move of the alias, new weights, death of an environment):
 *
 *   1. start what a share lacks, at the function's pace;
 *   2. a new environment that is initialised is HELD while the allocation is IN_PROGRESS;
 *   3. when every share has all of its environments initialised, the HELD ones serve, the status is READY, and only
 *      then what is too much (a lowered target, versions the alias has left) is let go: idle ones stop, busy ones after
 *      their invoke.
 *
 *                put, other routing                 all initialised
 *     (none) ──────────────────────> IN_PROGRESS ─────────────────────> READY ─┐ put, other routing
 *                                      ^  │ Init failed more than                │
 *                                      │  │ provisioning_retries times           │
 *                                      │  v    in a row                          │
 *                                      └─ FAILED <── (a replacement, likewise) ──┤
 *                                      └─────────────────────────────────────────┘
 *
 * READY stays READY while an environment that died is replaced; the replacement serves as soon as it is initialised.
 * FAILED holds no environments and does nothing until the next put; its units stay set aside, and requests run on
 * demand, as they do while IN_PROGRESS. Environments that already serve go on serving while more are allocated.
 *
 * A failing Init is tried again at the pace; a machine without room after a second, and that never counts as failure.
 */
#pragma once

#include "core/core.h"

enum { PROVISIONING_SHARES = 2 };

/* What one version holds of a configuration. */
struct provisioning_share {
    struct core_version *version;
    int32_t wanted;
    int32_t held;        /* environments, starting ones included */
    int32_t initialised; /* of these, past Init */
};

struct core_provisioned {
    struct counting_slice slice; /* the units; requests on the qualifier draw on it from the put on */
    struct core_function *function;
    struct core_version *version; /* it belongs to this version, */
    struct core_alias *alias;     /* or to this alias; both NULL once deleted */
    enum core_provisioned_status status;
    bool failed_by_init;
    int32_t target;
    int32_t failures; /* of Init, in a row */
    int64_t not_before_ns;
    struct provisioning_share shares[PROVISIONING_SHARES]; /* version NULL: none */
    int32_t strays;                                        /* environments of versions that have no share */
    struct list environments;                              /* by hold_link */
    int32_t request_count;                                 /* requests invoked under it and not done */
    struct core_provisioned_metrics metrics;
    struct list_link link;      /* in the function */
    struct list_link work_link; /* in the account's list of those with something to do */
};

/* What the rest of core tells the manager. */

/* Frees it if it was deleted and no request refers to it. */
void provisioning_put(struct core_provisioned *provisioned);
/* The alias points elsewhere or has other weights. */
void provisioning_on_routing(struct core_provisioned *provisioned, int64_t now_ns);
void provisioning_delete(struct core_provisioned *provisioned, int64_t now_ns);
/* A STARTING environment of `provided` has ended its Init; puts it where it belongs or stops it. */
void provisioning_on_ready(struct core_environment *environment, bool ok, int64_t now_ns);
/* A provisioned environment is gone. `machine`: it could not be made, which is no fault of the function. */
void provisioning_on_gone(struct core_environment *environment, bool machine, int64_t now_ns);
/* Takes an environment out of its configuration because it will be retired; it is replaced. */
void provisioning_let_go(struct core_environment *environment, int64_t now_ns);
/* INT64_MAX: nothing to do. */
int64_t provisioning_next_deadline(const struct core_account *account);
void provisioning_advance(struct core_account *account, int64_t now_ns);
