#include "core/placement.h"

#include <assert.h>

struct placement {
    struct list workers; /* in order of their addition */
};

static struct placement_worker *worker_of(struct list_link *link)
{
    return CONTAINER_OF(link, struct placement_worker, link);
}

int placement_new(struct placement **ret_placement)
{
    struct placement *placement = malloc(sizeof(*placement));

    if (!placement)
        return -ENOMEM;
    list_init(&placement->workers);
    *ret_placement = placement;
    return 0;
}

struct placement *placement_free(struct placement *placement)
{
    if (!placement)
        return NULL;
    LIST_FOREACH (link, &placement->workers) {
        struct placement_worker *worker = worker_of(link);
        assert(worker->used_environments == 0);
        list_remove(link);
        free(worker);
    }
    free(placement);
    return NULL;
}

int placement_add_worker(struct placement *placement, const struct placement_worker_config *config,
                         struct placement_worker **ret_worker)
{
    struct placement_worker *worker;

    if (config->zone >= PLACEMENT_ZONES)
        return -EINVAL;
    worker = calloc(1, sizeof(*worker));
    if (!worker)
        return -ENOMEM;
    worker->config = *config;
    list_push_back(&placement->workers, &worker->link);
    *ret_worker = worker;
    return 0;
}

void placement_close_worker(struct placement_worker *worker)
{
    worker->closed = true;
}

static bool worker_has_room(const struct placement_worker *worker, int64_t memory_mib)
{
    const struct placement_worker_config *config = &worker->config;

    if (worker->closed)
        return false;
    if (config->environments && worker->used_environments >= config->environments)
        return false;
    return !config->memory_mib || worker->used_memory_mib + memory_mib <= config->memory_mib;
}

/* How full, in parts of one: by memory or by number, whichever is nearer its limit. Without limits, 0. */
static double worker_load(const struct placement_worker *worker)
{
    const struct placement_worker_config *config = &worker->config;
    double memory = config->memory_mib ? (double)worker->used_memory_mib / (double)config->memory_mib : 0;
    double number = config->environments ? (double)worker->used_environments / (double)config->environments : 0;

    return MAX(memory, number);
}

/* The version's spread over the zones first, then load, then the number of environments; the earlier worker on a tie,
 * so that the same calls give the same places. */
static bool worker_is_better(const struct placement_worker *a, const struct placement_worker *b,
                             const struct placement_spread *spread)
{
    int32_t in_a = spread->zones[a->config.zone], in_b = spread->zones[b->config.zone];
    double load_a, load_b;

    if (in_a != in_b)
        return in_a < in_b;
    load_a = worker_load(a);
    load_b = worker_load(b);
    if (load_a != load_b)
        return load_a < load_b;
    return a->used_environments < b->used_environments;
}

enum placement_outcome placement_acquire(struct placement *placement, struct placement_spread *spread,
                                         int64_t memory_mib, struct placement_lease *lease)
{
    struct placement_worker *best = NULL;

    assert(!lease->worker);
    LIST_FOREACH (link, &placement->workers) {
        struct placement_worker *worker = worker_of(link);
        if (worker_has_room(worker, memory_mib) && (!best || worker_is_better(worker, best, spread)))
            best = worker;
    }
    if (!best)
        return PLACEMENT_FULL;
    best->used_environments++;
    best->used_memory_mib += memory_mib;
    spread->zones[best->config.zone]++;
    *lease = (struct placement_lease){best, memory_mib};
    return PLACEMENT_PLACED;
}

void placement_release(struct placement_spread *spread, struct placement_lease *lease)
{
    struct placement_worker *worker = lease->worker;

    if (!worker)
        return;
    assert(worker->used_environments > 0 && worker->used_memory_mib >= lease->memory_mib);
    worker->used_environments--;
    worker->used_memory_mib -= lease->memory_mib;
    spread->zones[worker->config.zone]--;
    *lease = (struct placement_lease){0};
}
