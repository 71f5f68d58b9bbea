#include "base/clock.h"
#include "frontend/realm.h"

/* Room is what the operating system gives: one worker without limits of its own. A sandbox that cannot be made is
 * reported as "machine full" by the environment's failure. */
static int add_this_machine(struct placement *placement)
{
    const struct placement_worker_config config = {.zone = 0, .name = "local"};
    struct placement_worker *worker;

    return placement_add_worker(placement, &config, &worker);
}

static void on_stop(uv_timer_t *timer)
{
    struct frontend *frontend = timer->data;
    void (*on_stopped)(void *) = frontend->on_stopped;

    frontend->on_stopped = NULL;
    if (on_stopped)
        on_stopped(frontend->stop_context);
}

int frontend_new(const struct frontend_config *config, struct frontend **ret_frontend)
{
    struct frontend *frontend = calloc(1, sizeof(*frontend));
    uint64_t seed;
    int r;

    if (!frontend)
        return -ENOMEM;
    frontend->config = *config;
    frontend->armed_ns = INT64_MAX;
    list_init(&frontend->realms);
    list_init(&frontend->requests);
    list_init(&frontend->environment_list);
    random_bytes(&seed, sizeof(seed));
    prng_init(&frontend->prng, seed);
    r = placement_new(&frontend->placement);
    if (r == 0)
        r = add_this_machine(frontend->placement);
    if (r < 0) {
        placement_free(frontend->placement);
        free(frontend);
        return r;
    }
    uv_timer_init(config->loop, &frontend->deadline);
    uv_timer_init(config->loop, &frontend->stop);
    frontend->deadline.data = frontend->stop.data = frontend;
    frontend->open_handles = 2;
    realm_observe(frontend);
    catalog_add_observer(config->catalog, &frontend->observer);
    *ret_frontend = frontend;
    return 0;
}

static void retire_environments(struct catalog_version *version, int64_t now_ns)
{
    if (version && version->attachment)
        core_version_retire_environments(version->attachment, now_ns);
}

static void retire_everything(struct frontend *frontend)
{
    int64_t now = clock_monotonic_ns();

    LIST_FOREACH (link, &frontend->realms) {
        struct realm *realm = CONTAINER_OF(link, struct realm, link);
        TABLE_FOREACH (function_entry, &realm->scope->functions) {
            struct catalog_function *function = function_entry->value;
            retire_environments(function->latest, now);
            TABLE_FOREACH (version_entry, &function->versions)
                retire_environments(version_entry->value, now);
        }
    }
}

void frontend_check_stopped(struct frontend *frontend)
{
    if (!frontend->stopping || frontend->in_flight)
        return;
    if (!frontend->retired) {
        frontend->retired = true;
        retire_everything(frontend);
    }
    if (!frontend->environments && !uv_is_closing((uv_handle_t *)&frontend->stop))
        uv_timer_start(&frontend->stop, on_stop, 0, 0);
}

void frontend_stop(struct frontend *frontend, void (*on_stopped)(void *context), void *context)
{
    frontend->stopping = true;
    frontend->on_stopped = on_stopped;
    frontend->stop_context = context;
    frontend_check_stopped(frontend);
}

static void on_closed(uv_handle_t *handle)
{
    struct frontend *frontend = handle->data;

    if (--frontend->open_handles == 0)
        free(frontend);
}

struct frontend *frontend_free(struct frontend *frontend)
{
    if (!frontend)
        return NULL;
    frontend->stopping = false; /* nothing is to be reported any more */
    invoke_drop_all(frontend);
    environments_drop_all(frontend);
    LIST_FOREACH (link, &frontend->realms)
        realm_free(CONTAINER_OF(link, struct realm, link));
    placement_free(frontend->placement);
    uv_close((uv_handle_t *)&frontend->deadline, on_closed);
    uv_close((uv_handle_t *)&frontend->stop, on_closed);
    return NULL;
}

size_t frontend_environment_count(const struct frontend *frontend)
{
    return frontend->environments;
}

size_t frontend_in_flight(const struct frontend *frontend)
{
    return frontend->in_flight;
}

int64_t frontend_concurrency(const struct frontend *frontend)
{
    int64_t total = 0;

    LIST_FOREACH (link, &frontend->realms) {
        struct core_account_metrics metrics;
        core_account_read_metrics(CONTAINER_OF(link, struct realm, link)->core, false, &metrics);
        total += metrics.concurrency;
    }
    return total;
}
