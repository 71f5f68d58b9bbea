/*
 * The placement service: on which worker is a new environment made? It knows the workers, their zones and their room,
 * and is shared by all accounts of a machine (or, later, of a fleet). It spreads each version over the zones first,
 * then takes the least loaded worker of the zone. It only counts: making the environment is the worker's business.
 */
#pragma once

#include "base/list.h"
#include "base/macros.h"

#include <stdbool.h>
#include <stdint.h>

enum { PLACEMENT_ZONES = 8 };

struct placement;

struct placement_worker_config {
    unsigned zone;        /* 0 to PLACEMENT_ZONES - 1 */
    int64_t memory_mib;   /* 0: no limit by memory */
    int64_t environments; /* 0: no limit by number */
    const char *name;     /* borrowed for as long as the worker is there; may be NULL */
};

/* Read-only to users. */
struct placement_worker {
    struct placement_worker_config config;
    int64_t used_memory_mib;
    int64_t used_environments;
    bool closed; /* takes nothing new */
    struct list_link link;
};

/* How the environments of one version are spread; embedded by the version, zero-initialised. */
struct placement_spread {
    int32_t zones[PLACEMENT_ZONES];
};

/* Room taken on a worker; embedded by the environment, zero-initialised. */
struct placement_lease {
    struct placement_worker *worker; /* NULL: none */
    int64_t memory_mib;
};

int placement_new(struct placement **ret_placement) MUST_USE;
/* No lease may be out. NULL is allowed. */
struct placement *placement_free(struct placement *placement);
/* -ENOMEM, or -EINVAL for a zone that does not exist. */
int placement_add_worker(struct placement *placement, const struct placement_worker_config *config,
                         struct placement_worker **ret_worker) MUST_USE;

/* Nothing new is placed on it from now on: it is being drained, or dead. What is there stays counted. */
void placement_close_worker(struct placement_worker *worker);

enum placement_outcome { PLACEMENT_PLACED, PLACEMENT_FULL };

/* Takes room for one environment. FULL: no worker has it, nothing changed. O(workers). */
enum placement_outcome placement_acquire(struct placement *placement, struct placement_spread *spread,
                                         int64_t memory_mib, struct placement_lease *lease) MUST_USE;
/* Gives the room back and empties the lease; an empty one is left alone. */
void placement_release(struct placement_spread *spread, struct placement_lease *lease);
