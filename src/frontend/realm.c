/*
 * The catalog tells of every change when it is durable; core follows at once. A failure here can only be lack of
 * memory: it is logged, the object keeps no attachment, and invokes of it answer 500 until the next start.
 */
#include "frontend/realm.h"

#include "base/clock.h"

#include <limits.h>

static const struct core_effects effects = {
    .start_environment = environments_start,
    .stop_environment = environments_stop,
    .serve = invoke_serve,
    .refuse = invoke_refuse,
    .fail = invoke_fail,
    .provisioned_changed = provisioned_changed,
};

static int realm_new(struct frontend *frontend, const struct catalog_scope *scope, struct realm **ret_realm)
{
    struct core_limits limits = core_limits_default();
    struct realm *realm = calloc(1, sizeof(*realm));
    int r;

    if (!realm)
        return -ENOMEM;
    limits.concurrency = (int32_t)frontend->config.concurrency;
    limits.unreserved_minimum = (int32_t)frontend->config.unreserved_minimum;
    limits.scaling_rate = (int32_t)frontend->config.scaling_rate;
    limits.provisioning_rate = (int32_t)frontend->config.provisioning_rate;
    /* A runtime that has used its share of CPU comes back for its next event up to a CFS period (100 ms) later. */
    limits.finishing_grace_ns = 120 * NS_PER_MS;
    limits.idle_timeout_ns = frontend->config.idle_timeout_s * NS_PER_S;
    realm->frontend = frontend;
    realm->scope = scope;
    r = core_account_new(&limits, frontend->placement, &effects, realm, &realm->core);
    if (r < 0) {
        free(realm);
        return r;
    }
    list_push_back(&frontend->realms, &realm->link);
    *ret_realm = realm;
    return 0;
}

struct realm *realm_free(struct realm *realm)
{
    if (realm) {
        core_account_free(realm->core);
        list_remove(&realm->link);
        free(realm);
    }
    return NULL;
}

struct core_qualifier realm_qualifier(const struct catalog_target *target)
{
    return (struct core_qualifier){
        .version = target->alias ? NULL : target->version->attachment,
        .alias = target->alias ? target->alias->attachment : NULL,
    };
}

static void complain(struct frontend *frontend, int error, const char *what, const char *name)
{
    log_event(frontend->config.log, LOG_ERROR, "%s %s cannot be invoked until restart: %s", what, name,
              strerror(-error));
}

static struct realm *ensure_realm(struct frontend *frontend, struct catalog_scope *scope)
{
    struct realm *realm = scope->attachment;

    if (!realm && realm_new(frontend, scope, &realm) == 0)
        scope->attachment = realm;
    return scope->attachment;
}

static void on_function_created(struct catalog_function *function, void *context)
{
    struct frontend *frontend = context;
    struct realm *realm = ensure_realm(frontend, function->scope);
    struct core_function *core = NULL;
    int r = realm ? core_function_add(realm->core, span_from(function->name), function, &core) : -ENOMEM;

    if (r < 0)
        complain(frontend, r, "function", function->name);
    function->attachment = core;
}

static void on_function_deleted(struct catalog_function *function, void *context)
{
    (void)context;
    if (function->attachment)
        core_function_remove(function->attachment, clock_monotonic_ns());
    function->attachment = NULL;
}

/* Core's handle for a version; made here when it is not there yet, as an alias may point to a version that has not
 * settled. NULL when there is no memory for it. */
static struct core_version *ensure_version(struct frontend *frontend, struct catalog_version *version)
{
    struct core_version *core = NULL;
    int r;

    if (version->attachment || !version->function->attachment)
        return version->attachment;
    r = core_version_add(version->function->attachment, span_from(version->number), version->config->memory_mib,
                         version, &core);
    if (r < 0)
        complain(frontend, r, "a version of function", version->function->name);
    version->attachment = core;
    return core;
}

static void on_latest_changed(struct catalog_version *latest, struct catalog_version_config *old, void *context)
{
    struct core_version *core = ensure_version(context, latest);

    (void)old;
    if (!core)
        return;
    core_version_set_memory(core, latest->active->memory_mib);
    core_version_retire_environments(core, clock_monotonic_ns());
}

static void on_version_published(struct catalog_version *version, void *context)
{
    ensure_version(context, version);
}

static void on_version_deleted(struct catalog_version *version, void *context)
{
    (void)context;
    if (version->attachment)
        core_version_remove(version->attachment, clock_monotonic_ns());
    version->attachment = NULL;
}

static void on_alias_set(struct catalog_alias *alias, void *context)
{
    struct frontend *frontend = context;
    const struct routing routing = {
        .version = ensure_version(frontend, alias->version),
        .second = alias->additional ? ensure_version(frontend, alias->additional) : NULL,
        .second_weight = alias->additional ? alias->additional_weight : 0,
    };
    struct core_alias *core = alias->attachment;
    int r;

    if (!routing.version || (alias->additional && !routing.second))
        r = -ENOMEM;
    else if (core)
        r = core_alias_set_routing(core, &routing, clock_monotonic_ns());
    else
        r = core_alias_add(alias->function->attachment, span_from(alias->name), &routing, alias, &core);
    if (r < 0)
        complain(frontend, r, "alias", alias->name);
    alias->attachment = core;
    if (core)
        realm_arm(alias->function->scope->attachment); /* its provisioned concurrency follows */
}

static void on_alias_deleted(struct catalog_alias *alias, void *context)
{
    (void)context;
    if (alias->attachment)
        core_alias_remove(alias->attachment, clock_monotonic_ns());
    alias->attachment = NULL;
}

struct core_limits realm_lift_limits(struct core_account *account)
{
    const struct core_limits limits = *core_account_limits(account);
    struct core_limits wide = limits;

    wide.concurrency = COUNTING_MAXIMUM;
    wide.unreserved_minimum = 0;
    (void)!core_account_set_limits(account, &wide);
    return limits;
}

void realm_restore_limits(struct core_account *account, const struct core_limits *limits)
{
    (void)!core_account_set_limits(account, limits);
}

/* For what was accepted under an earlier, larger --concurrency: it stays in force, as limits that are lowered on AWS
 * leave reservations alone. */
static void force_reserved(struct core_function *function, int32_t count)
{
    struct core_account *account = core_function_account(function);
    const struct core_limits limits = realm_lift_limits(account);
    int32_t number;

    (void)!core_function_set_reserved(function, count, &number);
    realm_restore_limits(account, &limits);
}

static void on_reserved_set(struct catalog_function *function, void *context)
{
    struct frontend *frontend = context;
    struct core_function *core = function->attachment;
    int32_t number;

    if (!core)
        return;
    if (!function->has_reserved) {
        core_function_clear_reserved(core);
        return;
    }
    if (core_function_set_reserved(core, (int32_t)function->reserved, &number) == COUNTING_OK)
        return;
    log_event(frontend->config.log, LOG_WARNING,
              "function %s: reserved concurrency %u no longer fits --concurrency %u; it stays in force", function->name,
              function->reserved, frontend->config.concurrency);
    force_reserved(core, (int32_t)function->reserved);
}

static void on_provisioned_set(const struct catalog_target *target, void *context)
{
    if (!target->alias)
        ensure_version(context, target->version); /* it may not have settled */
    provisioned_follow(context, target);
}

static void on_provisioned_deleted(const struct catalog_target *target, void *context)
{
    (void)context;
    provisioned_forget(target);
}

void realm_observe(struct frontend *frontend)
{
    frontend->observer = (struct catalog_observer){
        .on_function_created = on_function_created,
        .on_function_deleted = on_function_deleted,
        .on_latest_changed = on_latest_changed,
        .on_version_published = on_version_published,
        .on_version_deleted = on_version_deleted,
        .on_alias_set = on_alias_set,
        .on_alias_deleted = on_alias_deleted,
        .on_reserved_set = on_reserved_set,
        .on_provisioned_set = on_provisioned_set,
        .on_provisioned_deleted = on_provisioned_deleted,
        .context = frontend,
    };
}

/* --- core's time ---------------------------------------------------------------------------------------------------
 */

static void on_deadline(uv_timer_t *timer);

static void arm(struct frontend *frontend, int64_t deadline_ns, int64_t now_ns)
{
    int64_t wait_ns = MAX(deadline_ns - now_ns, INT64_C(0));

    frontend->armed_ns = deadline_ns;
    uv_update_time(frontend->config.loop);
    uv_timer_start(&frontend->deadline, on_deadline, (uint64_t)((wait_ns + NS_PER_MS - 1) / NS_PER_MS), 0);
}

static void on_deadline(uv_timer_t *timer)
{
    struct frontend *frontend = timer->data;
    int64_t earliest = INT64_MAX;
    int64_t now = clock_monotonic_ns();

    frontend->armed_ns = INT64_MAX;
    if (frontend->retired)
        return; /* everything ends: nothing is to be made any more */
    LIST_FOREACH (link, &frontend->realms) {
        struct realm *realm = CONTAINER_OF(link, struct realm, link);
        int64_t deadline;
        core_advance(realm->core, now);
        deadline = core_next_deadline(realm->core);
        earliest = MIN(earliest, deadline);
    }
    if (earliest != INT64_MAX)
        arm(frontend, earliest, now);
}

void realm_arm(struct realm *realm)
{
    int64_t deadline = core_next_deadline(realm->core);

    if (deadline < realm->frontend->armed_ns)
        arm(realm->frontend, deadline, clock_monotonic_ns());
}
