/*
 * Provisioned concurrency on its way into core, and what core says about it. Which environments are made, when and how
 * many is core's business alone.
 */
#include "base/clock.h"
#include "frontend/realm.h"

static struct realm *realm_of(const struct catalog_target *target)
{
    return target->version->function->scope->attachment;
}

static const char *qualifier_name(const struct catalog_target *target)
{
    return target->alias ? target->alias->name : target->version->number;
}

/*
 * For what core refuses though it was accepted once: under a larger --concurrency, or with reserved concurrency set to
 * 0 afterwards. It stays in force.
 */
static int force(struct core_account *account, struct core_function *function, const struct core_qualifier *qualifier,
                 int32_t count)
{
    const struct core_limits limits = realm_lift_limits(account);
    int32_t reserved = 0;
    bool has_reserved = core_function_reserved(function, &reserved);
    int32_t number;
    int r;

    core_function_clear_reserved(function);
    r = core_provisioned_put(account, qualifier, count, clock_monotonic_ns(), &number);
    if (has_reserved)
        (void)!core_function_set_reserved(function, reserved, &number);
    realm_restore_limits(account, &limits);
    return r;
}

void provisioned_follow(struct frontend *frontend, const struct catalog_target *target)
{
    const struct catalog_function *function = target->version->function;
    const struct core_qualifier qualifier = realm_qualifier(target);
    struct realm *realm = realm_of(target);
    int32_t count = (int32_t)catalog_target_provisioned(target)->requested;
    int32_t number;
    int r = -ENOMEM;

    if (qualifier.version || qualifier.alias) {
        r = core_provisioned_put(realm->core, &qualifier, count, clock_monotonic_ns(), &number);
        if (r > 0)
            r = force(realm->core, function->attachment, &qualifier, count);
        realm_arm(realm);
    }
    if (r != 0)
        log_event(frontend->config.log, LOG_ERROR, "provisioned concurrency of %s:%s cannot be made until restart: %s",
                  function->name, qualifier_name(target), strerror(ENOMEM));
}

void provisioned_forget(const struct catalog_target *target)
{
    const struct core_qualifier qualifier = realm_qualifier(target);

    if (qualifier.version || qualifier.alias)
        core_provisioned_delete(realm_of(target)->core, &qualifier, clock_monotonic_ns());
}

void provisioned_changed(struct core_provisioned *provisioned, void *context)
{
    const struct realm *realm = context;
    const struct log *log = realm->frontend->config.log;
    const struct core_qualifier qualifier = core_provisioned_qualifier(provisioned);
    struct core_function *function =
        qualifier.alias ? core_alias_function(qualifier.alias) : core_version_function(qualifier.version);
    struct span name = core_function_name(function);
    struct span qualified = qualifier.alias ? core_alias_name(qualifier.alias) : core_version_name(qualifier.version);
    struct core_provisioned_state state;

    core_provisioned_get(provisioned, &state);
    if (state.status == CORE_PROVISIONED_READY)
        log_event(log, LOG_INFO, "provisioned concurrency of %.*s:%.*s: READY, %d environments", SPAN_ARG(name),
                  SPAN_ARG(qualified), (int)state.available);
    else
        log_event(log, LOG_WARNING,
                  "provisioned concurrency of %.*s:%.*s: FAILED, the function's Init fails; its log says why",
                  SPAN_ARG(name), SPAN_ARG(qualified));
}

void frontend_read_provisioned(const struct catalog_target *target, struct core_provisioned_state *ret_state,
                               void *frontend)
{
    const struct core_qualifier qualifier = realm_qualifier(target);
    const struct core_provisioned *provisioned = NULL;

    (void)frontend;
    if (qualifier.version || qualifier.alias)
        provisioned = core_provisioned_find(&qualifier);
    *ret_state = (struct core_provisioned_state){
        .status = CORE_PROVISIONED_IN_PROGRESS,
        .requested = (int32_t)catalog_target_provisioned(target)->requested,
    };
    if (provisioned)
        core_provisioned_get(provisioned, ret_state);
}
