/*
 * Counts per share are kept as environments come and go, so that a step costs nothing but the starts it makes; only a
 * change of the shares counts anew. Whatever stops environments does it through let_go() first: an environment that is
 * retiring is in no configuration any more, so `held` is always what will stay.
 */
#include "core/provisioning.h"

#include "core/state.h"

#include <assert.h>

#define MACHINE_RETRY_NS NS_PER_S

static struct core_environment *environment_of_hold(struct list_link *link)
{
    return CONTAINER_OF(link, struct core_environment, hold_link);
}

static struct core_provisioned *provisioned_of_work(struct list_link *link)
{
    return CONTAINER_OF(link, struct core_provisioned, work_link);
}

/* ---- shares ---- */

static struct provisioning_share *share_of(struct core_provisioned *provisioned, const struct core_version *version)
{
    for (int i = 0; i < PROVISIONING_SHARES; i++) {
        if (provisioned->shares[i].version == version)
            return &provisioned->shares[i];
    }
    return NULL;
}

/* Adds one environment (sign 1) to the counts, or takes it out (-1). */
static void count(struct core_provisioned *provisioned, const struct core_environment *environment, int32_t sign)
{
    struct provisioning_share *share = share_of(provisioned, environment->version);

    if (!share) {
        provisioned->strays += sign;
        return;
    }
    share->held += sign;
    if (environment->state != CORE_ENVIRONMENT_STARTING)
        share->initialised += sign;
}

/* The versions the qualifier means now, and how much of the target each is due. False: as it was. */
static bool divide(struct core_provisioned *provisioned)
{
    struct routing routing = {.version = provisioned->version};
    struct provisioning_share *shares = provisioned->shares;
    int32_t second;

    if (provisioned->alias)
        routing = provisioned->alias->routing;
    second = routing_second_share(&routing, provisioned->target);
    if (shares[0].version == routing.version && shares[1].version == routing.second &&
        shares[0].wanted == provisioned->target - second && shares[1].wanted == second)
        return false;
    shares[0] = (struct provisioning_share){.version = routing.version, .wanted = provisioned->target - second};
    shares[1] = (struct provisioning_share){.version = routing.second, .wanted = second};
    provisioned->strays = 0;
    LIST_FOREACH (link, &provisioned->environments)
        count(provisioned, environment_of_hold(link), 1);
    return true;
}

/* A share that has too few environments, starting ones counted; NULL: none. */
static struct provisioning_share *lacking(struct core_provisioned *provisioned)
{
    for (int i = 0; i < PROVISIONING_SHARES; i++) {
        struct provisioning_share *share = &provisioned->shares[i];
        if (share->version && share->held < share->wanted)
            return share;
    }
    return NULL;
}

static bool is_complete(const struct core_provisioned *provisioned)
{
    for (int i = 0; i < PROVISIONING_SHARES; i++) {
        if (provisioned->shares[i].initialised < provisioned->shares[i].wanted)
            return false;
    }
    return true;
}

/* ---- work ---- */

static void tell_changed(struct core_provisioned *provisioned)
{
    struct core_account *account = provisioned->function->account;

    if (account->effects->provisioned_changed)
        account->effects->provisioned_changed(provisioned, account->context);
}

/* There is something to do, not before `due_ns`. */
static void schedule(struct core_provisioned *provisioned, int64_t due_ns)
{
    struct core_function *function = provisioned->function;

    provisioned->not_before_ns = due_ns;
    function->next_provision_ns = MAX(function->next_provision_ns, due_ns);
    if (!list_is_linked(&provisioned->work_link))
        list_push_back(&function->account->provisioning, &provisioned->work_link);
}

static void let_go(struct core_environment *environment)
{
    count(environment->provided, environment, -1);
    list_remove(&environment->hold_link);
    environment->provided = NULL;
}

static void release_environment(struct core_environment *environment, int64_t now_ns)
{
    struct core_version *version = environment->version;

    let_go(environment);
    core_retire(environment);
    core_cover(version, false, now_ns);
}

static void release_all(struct core_provisioned *provisioned, int64_t now_ns)
{
    LIST_FOREACH (link, &provisioned->environments)
        release_environment(environment_of_hold(link), now_ns);
}

/* What is above the share goes, in the order in which it is missed least. */
static void trim_share(struct core_provisioned *provisioned, struct provisioning_share *share, int64_t now_ns)
{
    static const enum core_environment_state order[] = {CORE_ENVIRONMENT_STARTING, CORE_ENVIRONMENT_HELD,
                                                        CORE_ENVIRONMENT_IDLE, CORE_ENVIRONMENT_FINISHING,
                                                        CORE_ENVIRONMENT_BUSY};

    for (size_t i = 0; i < ARRAY_SIZE(order) && share->held > share->wanted; i++) {
        LIST_FOREACH (link, &provisioned->environments) {
            struct core_environment *environment = environment_of_hold(link);
            if (environment->version == share->version && environment->state == order[i] && share->held > share->wanted)
                release_environment(environment, now_ns);
        }
    }
}

static void trim(struct core_provisioned *provisioned, int64_t now_ns)
{
    for (int i = 0; i < PROVISIONING_SHARES; i++) {
        if (provisioned->shares[i].version)
            trim_share(provisioned, &provisioned->shares[i], now_ns);
    }
    if (!provisioned->strays)
        return;
    LIST_FOREACH (link, &provisioned->environments) {
        if (!share_of(provisioned, environment_of_hold(link)->version))
            release_environment(environment_of_hold(link), now_ns);
    }
}

/* Everything wanted is initialised: it serves from now on, and the rest goes. */
static void complete(struct core_provisioned *provisioned, int64_t now_ns)
{
    bool changed = provisioned->status != CORE_PROVISIONED_READY;

    provisioned->status = CORE_PROVISIONED_READY;
    list_remove(&provisioned->work_link);
    LIST_FOREACH (link, &provisioned->environments) {
        struct core_environment *environment = environment_of_hold(link);
        if (environment->state == CORE_ENVIRONMENT_HELD && share_of(provisioned, environment->version))
            core_settle(environment, now_ns);
    }
    trim(provisioned, now_ns);
    if (changed)
        tell_changed(provisioned);
}

static void fail(struct core_provisioned *provisioned, int64_t now_ns)
{
    provisioned->status = CORE_PROVISIONED_FAILED;
    provisioned->failed_by_init = true;
    list_remove(&provisioned->work_link);
    release_all(provisioned, now_ns);
    for (int i = 0; i < PROVISIONING_SHARES; i++)
        provisioned->shares[i] = (struct provisioning_share){0};
    tell_changed(provisioned);
}

static void count_failure(struct core_provisioned *provisioned, int64_t now_ns)
{
    if (++provisioned->failures > provisioned->function->account->limits.provisioning_retries)
        fail(provisioned, now_ns);
    else
        schedule(provisioned, now_ns);
}

/* False: the machine has no room now. */
static bool start_one(struct core_provisioned *provisioned, struct provisioning_share *share)
{
    struct core_function *function = provisioned->function;
    struct core_environment *environment;

    if (core_start(share->version, provisioned, &environment) != 0)
        return false;
    list_push_back(&provisioned->environments, &environment->hold_link);
    count(provisioned, environment, 1);
    function->next_provision_ns += 60 * NS_PER_S / function->account->limits.provisioning_rate;
    return true;
}

static void step(struct core_provisioned *provisioned, int64_t now_ns)
{
    struct provisioning_share *share;

    if (now_ns < provisioned->not_before_ns)
        return;
    while ((share = lacking(provisioned)) && provisioned->function->next_provision_ns <= now_ns) {
        if (!start_one(provisioned, share)) {
            schedule(provisioned, now_ns + MACHINE_RETRY_NS);
            return;
        }
    }
    if (is_complete(provisioned))
        complete(provisioned, now_ns);
}

static int64_t work_deadline(struct core_provisioned *provisioned)
{
    if (lacking(provisioned))
        return MAX(provisioned->not_before_ns, provisioned->function->next_provision_ns);
    return is_complete(provisioned) ? provisioned->not_before_ns : INT64_MAX;
}

int64_t provisioning_next_deadline(const struct core_account *account)
{
    int64_t deadline_ns = INT64_MAX;

    LIST_FOREACH (link, &account->provisioning)
        deadline_ns = MIN(deadline_ns, work_deadline(provisioned_of_work(link)));
    return deadline_ns;
}

void provisioning_advance(struct core_account *account, int64_t now_ns)
{
    LIST_FOREACH (link, &account->provisioning)
        step(provisioned_of_work(link), now_ns);
}

/* ---- what happens to its environments ---- */

void provisioning_on_ready(struct core_environment *environment, bool ok, int64_t now_ns)
{
    struct core_provisioned *provisioned = environment->provided;
    struct provisioning_share *share = share_of(provisioned, environment->version);

    if (!ok) {
        release_environment(environment, now_ns);
        count_failure(provisioned, now_ns);
        return;
    }
    provisioned->failures = 0;
    if (share)
        share->initialised++;
    if (provisioned->status == CORE_PROVISIONED_READY) {
        core_settle(environment, now_ns);
    } else {
        assignment_hold(&environment->version->assignment, environment);
        core_trace(environment, CORE_ENVIRONMENT_STARTING);
    }
    if (is_complete(provisioned))
        complete(provisioned, now_ns);
}

void provisioning_let_go(struct core_environment *environment, int64_t now_ns)
{
    struct core_provisioned *provisioned = environment->provided;

    let_go(environment);
    if (lacking(provisioned))
        schedule(provisioned, now_ns);
}

void provisioning_on_gone(struct core_environment *environment, bool machine, int64_t now_ns)
{
    struct core_provisioned *provisioned = environment->provided;
    bool in_init = environment->state == CORE_ENVIRONMENT_STARTING;

    let_go(environment);
    if (machine)
        schedule(provisioned, now_ns + MACHINE_RETRY_NS);
    else if (in_init)
        count_failure(provisioned, now_ns);
    else if (lacking(provisioned))
        schedule(provisioned, now_ns);
}

/* ---- configurations ---- */

static struct core_provisioned **place_of(const struct core_qualifier *qualifier)
{
    return qualifier->alias ? &qualifier->alias->provisioned : &qualifier->version->provisioned;
}

struct core_provisioned *core_provisioned_find(const struct core_qualifier *qualifier)
{
    return *place_of(qualifier);
}

static struct core_provisioned *provisioned_new(const struct core_qualifier *qualifier)
{
    struct core_function *function = qualifier->alias ? qualifier->alias->function : qualifier->version->function;
    struct core_provisioned *provisioned = calloc(1, sizeof(*provisioned));

    if (!provisioned)
        return NULL;
    counting_slice_init(&provisioned->slice, &function->counting);
    provisioned->function = function;
    provisioned->alias = qualifier->alias;
    provisioned->version = qualifier->alias ? NULL : qualifier->version;
    list_init(&provisioned->environments);
    list_link_init(&provisioned->work_link);
    list_push_back(&function->provisioned, &provisioned->link);
    *place_of(qualifier) = provisioned;
    return provisioned;
}

static void restart(struct core_provisioned *provisioned, int64_t due_ns)
{
    provisioned->status = CORE_PROVISIONED_IN_PROGRESS;
    provisioned->failures = 0;
    provisioned->failed_by_init = false;
    schedule(provisioned, due_ns);
}

int core_provisioned_put(struct core_account *account, const struct core_qualifier *qualifier, int32_t count,
                         int64_t now_ns, int32_t *ret_number)
{
    struct core_provisioned *provisioned = core_provisioned_find(qualifier);
    struct core_function *function = qualifier->alias ? qualifier->alias->function : qualifier->version->function;
    enum counting_change change =
        counting_check_provisioned(&function->counting, provisioned ? &provisioned->slice : NULL, count, ret_number);

    assert(count >= 1);
    if (change != COUNTING_OK)
        return change;
    if (!provisioned)
        provisioned = provisioned_new(qualifier);
    if (!provisioned)
        return -ENOMEM;
    provisioned->target = count;
    counting_resize_slice(&provisioned->slice, count);
    core_note_claims(account);
    divide(provisioned);
    restart(provisioned, now_ns + account->limits.provisioning_delay_ns);
    return 0;
}

void provisioning_on_routing(struct core_provisioned *provisioned, int64_t now_ns)
{
    if (divide(provisioned))
        restart(provisioned, now_ns + provisioned->function->account->limits.provisioning_delay_ns);
}

void provisioning_put(struct core_provisioned *provisioned)
{
    if (provisioned->version || provisioned->alias || provisioned->request_count)
        return;
    list_remove(&provisioned->link);
    free(provisioned);
}

void provisioning_delete(struct core_provisioned *provisioned, int64_t now_ns)
{
    struct core_qualifier qualifier = core_provisioned_qualifier(provisioned);

    *place_of(&qualifier) = NULL;
    list_remove(&provisioned->work_link);
    counting_resize_slice(&provisioned->slice, 0);
    core_note_claims(provisioned->function->account);
    release_all(provisioned, now_ns);
    provisioned->version = NULL;
    provisioned->alias = NULL;
    provisioning_put(provisioned);
}

void core_provisioned_delete(struct core_account *account, const struct core_qualifier *qualifier, int64_t now_ns)
{
    struct core_provisioned *provisioned = core_provisioned_find(qualifier);

    (void)account;
    if (provisioned)
        provisioning_delete(provisioned, now_ns);
}

struct core_qualifier core_provisioned_qualifier(const struct core_provisioned *provisioned)
{
    return (struct core_qualifier){provisioned->version, provisioned->alias};
}

void core_provisioned_get(const struct core_provisioned *provisioned, struct core_provisioned_state *ret_state)
{
    struct core_provisioned_state state = {
        .status = provisioned->status, .requested = provisioned->target, .failed_by_init = provisioned->failed_by_init};

    for (int i = 0; i < PROVISIONING_SHARES; i++) {
        const struct provisioning_share *share = &provisioned->shares[i];
        int32_t held_back = 0;
        LIST_FOREACH (link, &provisioned->environments) {
            const struct core_environment *environment = environment_of_hold(link);
            held_back += environment->version == share->version && environment->state == CORE_ENVIRONMENT_HELD;
        }
        state.allocated += MIN(share->wanted, share->initialised);
        state.available += MIN(share->wanted, share->initialised - held_back);
    }
    *ret_state = state;
}

int32_t core_function_provisioned_total(const struct core_function *function)
{
    return function->counting.provisioned_total;
}

void core_provisioned_read_metrics(struct core_provisioned *provisioned, bool restart_maxima,
                                   struct core_provisioned_metrics *ret)
{
    struct core_provisioned_metrics *metrics = &provisioned->metrics;

    *ret = *metrics;
    if (restart_maxima)
        metrics->executions_max = metrics->executions;
}
