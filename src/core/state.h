/*
 * The objects behind core.h's handles, and what the parts of core (core.c, objects.c, provisioning.c, validate.c) ask
 * of each other. Not for users.
 *
 *     core_account ─┬─ core_function ─┬─ core_version ── environments, waiting requests (assignment_version)
 *                   │                 ├─ core_alias
 *                   │                 └─ core_provisioned (PC of one version or alias, with its counting_slice)
 *                   └─ placement (borrowed)
 *
 * Lifetimes. A removed object leaves its table at once and is freed when nothing refers to it any more: a version when
 * its last environment is gone, a PC configuration when the last request that was invoked under it is done, a function
 * when it has neither.
 */
#pragma once

#include "core/core.h"

#include "base/table.h"

struct core_account {
    struct counting_account counting;
    struct assignment_account assignment;
    struct core_limits limits;
    const struct core_effects *effects;
    void *context;
    struct placement *placement;
    struct core_account_metrics metrics; /* sums and maxima; the rest is filled in when read */
    int32_t environment_count;
    struct table functions_by_name;
    struct list functions;    /* all, removed ones that still run included */
    struct list provisioning; /* PC configurations that have something to do */
};

/* The second cache line holds all that a warm invoke touches; see the assertion below. */
struct core_function {
    void *owner;
    struct core_function_metrics metrics;
    struct core_account *account;
    struct counting_function counting;
    struct list_link link;
    bool removed;
    int64_t next_provision_ns; /* pace of PC: no start before */
    struct table versions_by_name;
    struct table aliases_by_name;
    struct list versions;    /* all, as above */
    struct list provisioned; /* all, as above */
    struct span name;        /* behind the struct */
};

/* Likewise the first two. */
struct core_version {
    struct core_function *function;
    struct core_provisioned *provisioned; /* of its own, NULL: none */
    struct assignment_version assignment;
    int64_t memory_mib;
    struct placement_spread spread;
    struct list_link link;
    bool removed;
    void *owner;
    struct span name;
};

/*
 * With very many functions a decision costs what the cache misses cost, so objects start at a line and the fields of
 * the warm path are kept together. Nothing else depends on these numbers.
 */
enum { CORE_LINE_BYTES = 64 };
_Static_assert(offsetof(struct core_function, metrics.invocations) >= CORE_LINE_BYTES, "hot fields in one line");
_Static_assert(offsetof(struct core_function, counting.bucket) <= 2 * CORE_LINE_BYTES, "hot fields in one line");
_Static_assert(offsetof(struct core_version, assignment.waiting) <= 2 * CORE_LINE_BYTES, "hot fields in two lines");
_Static_assert(offsetof(struct core_environment, owner) <= CORE_LINE_BYTES, "hot fields in one line");

struct core_alias {
    struct core_function *function;
    struct core_provisioned *provisioned;
    struct routing routing;
    void *owner;
    struct span name;
};

/* ---- core.c ---- */

static inline struct core_environment *core_environment_of(struct list_link *link)
{
    return CONTAINER_OF(link, struct core_environment, link);
}

static inline struct core_request *core_request_of_wait(struct list_link *link)
{
    return CONTAINER_OF(link, struct core_request, wait_link);
}

/* Makes room, places and starts. 0, CORE_MACHINE_FULL or -ENOMEM. */
int core_start(struct core_version *version, struct core_provisioned *provided,
               struct core_environment **ret_environment) MUST_USE;
/* Stops it now, or marks it to stop when free. Follow with core_cover. */
void core_retire(struct core_environment *environment);
/* Free or ready: runs the oldest request that waits, or becomes idle. */
void core_settle(struct core_environment *environment, int64_t now_ns);
/* Starts what is missing for requests that wait and have nothing coming; `paid` asks the scaling rate. */
void core_cover(struct core_version *version, bool paid, int64_t now_ns);
/* Fails everything that waits for the version. */
void core_fail_waiting(struct core_version *version, enum core_failure why);
/* After a change of state. */
void core_trace(const struct core_environment *environment, enum core_environment_state old);
/* After a change that may have raised what is claimed. */
void core_note_claims(struct core_account *account);

/* ---- objects.c ---- */

/* Zeroed memory at the start of a cache line; NULL when there is none. For free(). */
void *core_object_new(size_t size);

/* Frees them if they are removed and nothing refers to them. */
void core_version_put(struct core_version *version);
void core_function_put(struct core_function *function);
void core_objects_deinit(struct core_account *account);
