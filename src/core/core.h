/*
 * The core: every decision of one account in one Region (admission, assignment, placement, provisioned concurrency),
 * and nothing else. No I/O, no clock, no threads, no logging. The daemon drives it with real processes and the
 * simulator with events in a heap; the same sequence of calls always gives the same verdicts.
 *
 * Rules for callers
 * - One thread. Every call that may decide something takes `now_ns`, on one monotonic scale, never decreasing.
 * - What is to be done comes through the effects. An effect runs inside the call that caused it and must not call back
 *   into this account; what it starts reports later, on a turn of its own.
 * - Requests are the caller's memory (struct core_request); functions, versions, aliases and environments are core's.
 *   `owner` pointers are the caller's and are never looked into. A removed function, version or alias is gone for the
 *   caller at once: the handle must not be used again, and core_version_owner and the like answer NULL from then on
 *   for what still runs of it.
 * - core_next_deadline says when core_advance wants to be called next.
 *
 * A request's way:
 *
 *     core_invoke ─┬─ SERVED ────────────────────────────────┬─> core_response_done(request)   unit released
 *                  ├─ WAITING ─┬─ effect serve(request, env) ┘   core_environment_free(env)    environment reusable
 *                  │           ├─ effect fail(request, ...)      the request is done; answer 500
 *                  │           └─ effect refuse(request, ...)    the request is done; answer 429
 *                  ├─ THROTTLED (nothing happened; answer 429)
 *                  └─ MACHINE_FULL (nothing happened; answer 500)
 *
 * An environment's way: effect start_environment(env) -> core_environment_ready(env) or core_environment_failed(env) ->
 * ... -> effect stop_environment(env) (or it dies by itself) -> core_environment_gone(env), after which the pointer is
 * dead. Exactly one of _failed and _gone ends every environment whose start_environment returned 0.
 */
#pragma once

#include "core/assignment.h"
#include "core/counting.h"
#include "core/placement.h"
#include "core/routing.h"

#include "base/span.h"

struct core_account;
struct core_function;
struct core_version;
struct core_alias;

/* Why an admitted request could not be run. */
enum core_failure {
    CORE_FAILURE_MACHINE_FULL, /* no environment could be made for it */
    CORE_FAILURE_REMOVED,      /* its version was removed while it waited */
};

/* What core wants done. All but `trace` and `provisioned_changed` must be set. */
struct core_effects {
    /*
     * Make this environment (env->version, env->origin, env->lease.worker say what and where). -errno: it cannot be
     * made now; the environment does not exist then. Set env->owner here.
     */
    int (*start_environment)(struct core_environment *environment, void *context);
    /* End it; it is STARTING, HELD, IDLE or has just come free, never busy. core_environment_gone follows. */
    void (*stop_environment)(struct core_environment *environment, void *context);
    /* A request that was WAITING has its environment: give it the event. */
    void (*serve)(struct core_request *request, struct core_environment *environment, void *context);
    /*
     * A request that was WAITING is throttled after all: the environment it waited for did not come free within
     * finishing_grace_ns and the scaling rate allows no new one. It is DONE; answer 429.
     */
    void (*refuse)(struct core_request *request, const struct counting_throttle *throttle, void *context);
    /* A request that was WAITING cannot be run. It is DONE; answer 500. */
    void (*fail)(struct core_request *request, enum core_failure why, void *context);
    /* The status of a PC configuration became READY or FAILED. May be NULL. */
    void (*provisioned_changed)(struct core_provisioned *provisioned, void *context);
    /* Every change of state, after the fact; also a new one that is STARTING (old == new). May be NULL. */
    void (*trace)(const struct core_environment *environment, enum core_environment_state old, void *context);
};

/* All may be changed at any time with core_account_set_limits; core_limits_default gives the service's figures. */
struct core_limits {
    int32_t concurrency;           /* 1000 */
    int32_t unreserved_minimum;    /* 100 */
    int32_t scaling_rate;          /* new environments per 10 s and function: 1000 */
    int32_t provisioning_rate;     /* PC environments per minute and function: 6000 */
    int32_t provisioning_retries;  /* a failed Init of PC is tried again this often: 6 */
    int64_t provisioning_delay_ns; /* between the request for PC and its first start: 0 */
    int64_t idle_timeout_ns;       /* idle on-demand environments are reclaimed after: 600 s */
    int64_t finishing_grace_ns;    /* a request waits this long for a finishing environment: 10 ms */
    enum assignment_mode mode;     /* ASSIGNMENT_SHARED */
};

struct core_limits core_limits_default(void);

/* `placement` and `effects` are borrowed for the life of the account; `placement` may be shared by accounts. */
int core_account_new(const struct core_limits *limits, struct placement *placement, const struct core_effects *effects,
                     void *context, struct core_account **ret_account) MUST_USE;
/* Frees everything at once without any effect: environments and requests still there are forgotten. NULL is allowed. */
struct core_account *core_account_free(struct core_account *account);
const struct core_limits *core_account_limits(const struct core_account *account);
/* -EINVAL (nothing changed) when a number is negative or above COUNTING_MAXIMUM. Requests in flight are not touched. */
int core_account_set_limits(struct core_account *account, const struct core_limits *limits) MUST_USE;
/* limit - sum of RC - sum of PC of functions without RC: UnreservedConcurrentExecutions of GetAccountSettings. */
int64_t core_account_unreserved(const struct core_account *account);

/* ---- what exists: kept in step with the catalog by the caller ---- */

/* -EEXIST, -ENOMEM. The name is copied. */
int core_function_add(struct core_account *account, struct span name, void *owner,
                      struct core_function **ret_function) MUST_USE;
/* With its versions, aliases, RC and PC. Running requests finish; waiting ones fail with CORE_FAILURE_REMOVED; RC and
 * PC are back at once. The name can be added again right away. */
void core_function_remove(struct core_function *function, int64_t now_ns);
/* NULL when there is none. */
struct core_function *core_function_find(const struct core_account *account, struct span name);

/* `name` is "$LATEST" or the number in digits; `memory_mib` is what one environment takes on a worker (0: nothing).
 * -EEXIST, -ENOMEM. */
int core_version_add(struct core_function *function, struct span name, int64_t memory_mib, void *owner,
                     struct core_version **ret_version) MUST_USE;
/* As core_function_remove, for one version. Aliases must not point at it any more. Its PC is deleted. */
void core_version_remove(struct core_version *version, int64_t now_ns);
struct core_version *core_version_find(const struct core_function *function, struct span name);
/* For environments made from now on. */
void core_version_set_memory(struct core_version *version, int64_t memory_mib);
/*
 * The code or configuration of $LATEST changed: nothing new runs on the environments that exist. Idle ones stop, busy
 * ones after their invoke, starting ones at once; for requests that wait for one of these, new ones are started without
 * asking the scaling rate again.
 */
void core_version_retire_environments(struct core_version *version, int64_t now_ns);

/* Both versions of the routing must be of this function. -EEXIST, -EINVAL (routing_is_valid), -ENOMEM. */
int core_alias_add(struct core_function *function, struct span name, const struct routing *routing, void *owner,
                   struct core_alias **ret_alias) MUST_USE;
/* From the next request on; PC of the alias follows, new environments before old ones go. -EINVAL. */
int core_alias_set_routing(struct core_alias *alias, const struct routing *routing, int64_t now_ns) MUST_USE;
/* Its PC is deleted. */
void core_alias_remove(struct core_alias *alias, int64_t now_ns);
struct core_alias *core_alias_find(const struct core_function *function, struct span name);
const struct routing *core_alias_routing(const struct core_alias *alias);

void *core_function_owner(const struct core_function *function);
void *core_version_owner(const struct core_version *version);
void *core_alias_owner(const struct core_alias *alias);
struct core_account *core_function_account(const struct core_function *function);
struct core_function *core_version_function(const struct core_version *version);
struct core_function *core_alias_function(const struct core_alias *alias);
/* Borrowed until the object is removed and nothing of it runs any more. */
struct span core_function_name(const struct core_function *function);
struct span core_version_name(const struct core_version *version);
struct span core_alias_name(const struct core_alias *alias);

/* ---- invokes ---- */

enum core_outcome {
    CORE_SERVED,       /* request->environment is BUSY with it: give it the event */
    CORE_WAITING,      /* admitted; serve, fail or refuse follows */
    CORE_THROTTLED,    /* 429; ret_throttle says why. The request stays NEW */
    CORE_MACHINE_FULL, /* 500; the request stays NEW */
};

void core_request_init(struct core_request *request, void *owner);

/* What the caller named: a version, or an alias. One of the two. */
struct core_qualifier {
    struct core_version *version;
    struct core_alias *alias;
};

/*
 * Admits and assigns. `random` (64 random bits) decides a weighted alias. ret_throttle is set when THROTTLED. Does not
 * call serve, fail or refuse for this or any other request; may call start_environment. -ENOMEM: nothing happened.
 */
int core_invoke(struct core_account *account, const struct core_qualifier *qualifier, struct core_request *request,
                int64_t now_ns, uint64_t random, struct counting_throttle *ret_throttle) MUST_USE;

/*
 * The request's answer is there (response, error, crash or timeout): its unit is released, its environment is
 * FINISHING. The request is DONE and the caller's again; its `version` may be freed together with the environment, so
 * read what you need of it before the environment is gone.
 */
void core_response_done(struct core_request *request, int64_t now_ns);

/* ---- environments ---- */

/*
 * Init has ended. `ok` false (the function's Init failed) matters to PC only: an on-demand environment serves all the
 * same, its next invoke tries Init again. Ignored when the environment was told to stop meanwhile.
 */
void core_environment_ready(struct core_environment *environment, bool ok, int64_t now_ns);
/* Has asked for its next event (or was reset): may serve again. Must be FINISHING. */
void core_environment_free(struct core_environment *environment, int64_t now_ns);
/*
 * It is of no use any more, though it is not gone yet (its runtime died while it was idle): it stops as soon as it runs
 * nothing (effect stop_environment), and what waited for it or was provisioned with it is made anew.
 */
void core_environment_retire(struct core_environment *environment, int64_t now_ns);
/*
 * Ended, for whatever reason; the pointer is dead. Requests that waited for it get a replacement without being asked
 * again; PC is replaced. A request it was still running is DONE (the caller has answered or will).
 */
void core_environment_gone(struct core_environment *environment, int64_t now_ns);
/*
 * Could not be made: the machine, not the function, is at fault. As _gone, but there is no replacement: the request
 * that has waited longest without any environment coming for it fails with CORE_FAILURE_MACHINE_FULL. PC is tried
 * again a second later.
 */
void core_environment_failed(struct core_environment *environment, int64_t now_ns);

/* ---- time ---- */

/* When core_advance has something to do next: INT64_MAX when never. O(1) but for the functions that are provisioning.
 */
int64_t core_next_deadline(const struct core_account *account);
/* Does what is due by `now_ns`: reclaims idle environments, ends the wait for finishing ones, provisions. Being late or
 * early is harmless. */
void core_advance(struct core_account *account, int64_t now_ns);

/* ---- reserved concurrency ---- */

/* See counting_set_reserved for the outcomes and their numbers. */
enum counting_change core_function_check_reserved(const struct core_function *function, int32_t count,
                                                  int32_t *ret_number) MUST_USE;
enum counting_change core_function_set_reserved(struct core_function *function, int32_t count,
                                                int32_t *ret_number) MUST_USE;
void core_function_clear_reserved(struct core_function *function);
/* False when the function has none. */
bool core_function_reserved(const struct core_function *function, int32_t *ret_count);

/* ---- provisioned concurrency (provisioning.h tells how) ---- */

enum core_provisioned_status { CORE_PROVISIONED_IN_PROGRESS, CORE_PROVISIONED_READY, CORE_PROVISIONED_FAILED };

struct core_provisioned_state {
    enum core_provisioned_status status;
    int32_t requested;
    int32_t allocated;   /* initialised, whether they serve already or not */
    int32_t available;   /* initialised and serving */
    bool failed_by_init; /* FAILED: StatusReason FUNCTION_ERROR_INIT_FAILURE */
};

/*
 * Sets PC of a version or alias. `count` >= 1; $LATEST and conflicts between an alias and its version are the caller's
 * checks. OK: IN_PROGRESS from now on with the units set aside; core_next_deadline changes. Putting again replaces the
 * target. Other outcomes (see counting_check_provisioned) or -ENOMEM: nothing changed.
 */
int core_provisioned_put(struct core_account *account, const struct core_qualifier *qualifier, int32_t count,
                         int64_t now_ns, int32_t *ret_number) MUST_USE;
/* No configuration: nothing happens. Environments that run a request stop after it. */
void core_provisioned_delete(struct core_account *account, const struct core_qualifier *qualifier, int64_t now_ns);
/* NULL: the qualifier has no configuration of its own. Borrowed until it is deleted. */
struct core_provisioned *core_provisioned_find(const struct core_qualifier *qualifier);
void core_provisioned_get(const struct core_provisioned *provisioned, struct core_provisioned_state *ret_state);
/* The qualifier it belongs to. */
struct core_qualifier core_provisioned_qualifier(const struct core_provisioned *provisioned);
/* Sum over a function, for checks and messages. */
int32_t core_function_provisioned_total(const struct core_function *function);

/* ---- figures, readable at any time ---- */

struct core_account_metrics {
    int64_t invocations;
    int64_t throttles[COUNTING_KINDS];
    int64_t machine_full;
    int32_t concurrency; /* ConcurrentExecutions: units in flight */
    int32_t concurrency_max;
    int32_t unreserved; /* UnreservedConcurrentExecutions: in flight of functions without RC */
    int32_t unreserved_max;
    int64_t claimed; /* ClaimedAccountConcurrency */
    int64_t claimed_max;
    int32_t environments; /* all that are not gone yet */
};

struct core_function_metrics {
    int64_t throttles[COUNTING_KINDS];
    int64_t machine_full;
    int64_t invocations; /* requests that got an environment */
    int64_t cold_starts; /* invocations whose environment had served nothing before and is on demand */
    int32_t concurrency;
    int32_t concurrency_max;
};

struct core_provisioned_metrics {
    int64_t provisioned_invocations; /* ProvisionedConcurrencyInvocations */
    int64_t spillover_invocations;   /* ProvisionedConcurrencySpilloverInvocations */
    int32_t executions;              /* ProvisionedConcurrentExecutions: on provisioned environments now */
    int32_t executions_max;
};

/* Sums count from the creation of the object. Maxima are since the last call with `restart_maxima`, which sets them to
 * the present values. */
void core_account_read_metrics(struct core_account *account, bool restart_maxima, struct core_account_metrics *ret);
void core_function_read_metrics(struct core_function *function, bool restart_maxima, struct core_function_metrics *ret);
void core_provisioned_read_metrics(struct core_provisioned *provisioned, bool restart_maxima,
                                   struct core_provisioned_metrics *ret);

struct core_version_counts {
    int32_t environments[CORE_ENVIRONMENT_STATES];
    int32_t idle_provisioned; /* of the IDLE ones */
    int32_t waiting;          /* requests */
};

/* O(environments of the version). */
void core_version_count(const struct core_version *version, struct core_version_counts *ret_counts);

/* Checks every invariant and aborts with a message on the first that does not hold. Slow; for tests and debug runs. */
void core_validate(const struct core_account *account);
