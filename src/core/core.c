/*
 * Puts counting, assignment and placement together. A call first decides, with nothing taken; then it takes what it
 * needs (room on a worker, a token of the scaling rate, a unit) in an order in which whatever can fail comes first;
 * then it tells. So a refusal has nothing to undo.
 *
 * After anything that may leave a waiting request without an environment coming for it, core_cover makes up for it:
 * this is the only place where environments are started for requests other than the one being invoked.
 */
#include "core/core.h"

#include "core/provisioning.h"
#include "core/state.h"

#include <assert.h>
#include <string.h>

struct core_limits core_limits_default(void)
{
    return (struct core_limits){
        .concurrency = 1000,
        .unreserved_minimum = 100,
        .scaling_rate = 1000,
        .provisioning_rate = 6000,
        .provisioning_retries = 6,
        .idle_timeout_ns = 600 * NS_PER_S,
        .finishing_grace_ns = 10 * NS_PER_MS,
        .mode = ASSIGNMENT_SHARED,
    };
}

/* ---- the account ---- */

static bool limits_are_valid(const struct core_limits *limits)
{
    const int32_t counts[] = {limits->concurrency, limits->unreserved_minimum, limits->scaling_rate,
                              limits->provisioning_rate, limits->provisioning_retries};

    for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
        if (counts[i] < 0 || counts[i] > COUNTING_MAXIMUM)
            return false;
    }
    return limits->provisioning_rate > 0 && limits->provisioning_delay_ns >= 0 && limits->idle_timeout_ns >= 0 &&
           limits->finishing_grace_ns >= 0;
}

/* Maxima of what is claimed and unreserved, after anything that may have raised them. */
static inline void note_claims(struct core_account *account)
{
    struct core_account_metrics *metrics = &account->metrics;

    metrics->unreserved_max = MAX(metrics->unreserved_max, account->counting.unreserved_in_flight);
    metrics->claimed_max = MAX(metrics->claimed_max, counting_claimed(&account->counting));
}

void core_note_claims(struct core_account *account)
{
    note_claims(account);
}

static void apply_limits(struct core_account *account, const struct core_limits *limits)
{
    account->limits = *limits;
    account->assignment.mode = limits->mode;
    account->assignment.finishing_grace_ns = limits->finishing_grace_ns;
    counting_account_set(&account->counting, limits->concurrency, limits->unreserved_minimum, limits->scaling_rate);
}

int core_account_new(const struct core_limits *limits, struct placement *placement, const struct core_effects *effects,
                     void *context, struct core_account **ret_account)
{
    struct core_account *account;

    if (!limits_are_valid(limits))
        return -EINVAL;
    account = calloc(1, sizeof(*account));
    if (!account)
        return -ENOMEM;
    account->effects = effects;
    account->context = context;
    account->placement = placement;
    list_init(&account->functions);
    list_init(&account->provisioning);
    counting_account_init(&account->counting, 0, 0, 0);
    assignment_account_init(&account->assignment);
    apply_limits(account, limits);
    *ret_account = account;
    return 0;
}

struct core_account *core_account_free(struct core_account *account)
{
    if (!account)
        return NULL;
    core_objects_deinit(account);
    assignment_account_deinit(&account->assignment);
    free(account);
    return NULL;
}

const struct core_limits *core_account_limits(const struct core_account *account)
{
    return &account->limits;
}

int core_account_set_limits(struct core_account *account, const struct core_limits *limits)
{
    if (!limits_are_valid(limits))
        return -EINVAL;
    apply_limits(account, limits);
    return 0;
}

int64_t core_account_unreserved(const struct core_account *account)
{
    return counting_unreserved(&account->counting);
}

/* ---- starting and stopping ---- */

void core_trace(const struct core_environment *environment, enum core_environment_state old)
{
    const struct core_account *account = environment->version->function->account;

    if (account->effects->trace)
        account->effects->trace(environment, old, account->context);
}

static void tell_stop(struct core_environment *environment, enum core_environment_state old)
{
    struct core_account *account = environment->version->function->account;

    core_trace(environment, old);
    account->effects->stop_environment(environment, account->context);
}

void core_retire(struct core_environment *environment)
{
    enum core_environment_state old = environment->state;

    if (assignment_retire(&environment->version->assignment, environment))
        tell_stop(environment, old);
}

/* Idle on-demand environments give way to new ones, the longest unused first. Their room is lent on while they stop:
 * an idle environment in its Shutdown phase uses little of it, and a request should not wait for that. */
static int place(struct core_account *account, struct core_version *version, struct core_environment *environment)
{
    while (placement_acquire(account->placement, &version->spread, version->memory_mib, &environment->lease) ==
           PLACEMENT_FULL) {
        struct core_environment *victim = assignment_longest_idle(&account->assignment);
        if (!victim)
            return CORE_MACHINE_FULL;
        core_retire(victim);
        placement_release(&victim->version->spread, &victim->lease);
    }
    return 0;
}

int core_start(struct core_version *version, struct core_provisioned *provided,
               struct core_environment **ret_environment)
{
    struct core_account *account = version->function->account;
    struct core_environment *environment = core_object_new(sizeof(*environment));
    int r;

    if (!environment)
        return -ENOMEM;
    environment->version = version;
    environment->origin = provided ? CORE_PROVISIONED : CORE_ON_DEMAND;
    environment->provided = provided;
    list_link_init(&environment->hold_link);
    r = assignment_reserve(&account->assignment, environment);
    if (r < 0) {
        free(environment);
        return r;
    }
    r = place(account, version, environment);
    if (r == 0 && account->effects->start_environment(environment, account->context) < 0)
        r = CORE_MACHINE_FULL;
    if (r != 0) {
        placement_release(&version->spread, &environment->lease);
        assignment_release(&account->assignment, environment);
        free(environment);
        return r;
    }
    assignment_add(&version->assignment, environment);
    account->environment_count++;
    core_trace(environment, environment->state);
    *ret_environment = environment;
    return 0;
}

/* ---- requests ---- */

void core_request_init(struct core_request *request, void *owner)
{
    *request = (struct core_request){.owner = owner};
    list_link_init(&request->wait_link);
}

static void count_throttle(struct core_function *function, const struct counting_throttle *throttle)
{
    function->metrics.throttles[throttle->kind]++;
    function->account->metrics.throttles[throttle->kind]++;
}

static void count_machine_full(struct core_function *function)
{
    function->metrics.machine_full++;
    function->account->metrics.machine_full++;
}

/* Gives back everything that the request holds. */
static void end_request(struct core_request *request)
{
    struct core_provisioned *provisioned = request->provisioned;

    counting_release(&request->receipt);
    request->state = CORE_REQUEST_DONE;
    request->environment = NULL;
    if (!provisioned)
        return;
    request->provisioned = NULL;
    if (request->on_provisioned)
        provisioned->metrics.executions--;
    provisioned->request_count--;
    provisioning_put(provisioned);
}

/* Fails a waiting request. Its memory is the caller's again, hence not touched after the effect. */
static void fail_request(struct core_version *version, struct core_request *request, enum core_failure why)
{
    struct core_account *account = version->function->account;

    assignment_dequeue(&version->assignment, request);
    end_request(request);
    if (why == CORE_FAILURE_MACHINE_FULL)
        count_machine_full(version->function);
    account->effects->fail(request, why, account->context);
}

static void refuse_request(struct core_version *version, struct core_request *request,
                           const struct counting_throttle *throttle)
{
    struct core_account *account = version->function->account;

    assignment_dequeue(&version->assignment, request);
    end_request(request);
    count_throttle(version->function, throttle);
    account->effects->refuse(request, throttle, account->context);
}

void core_fail_waiting(struct core_version *version, enum core_failure why)
{
    LIST_FOREACH (link, &version->assignment.waiting)
        fail_request(version, core_request_of_wait(link), why);
    LIST_FOREACH (link, &version->assignment.tied)
        fail_request(version, core_request_of_wait(link), why);
}

/* The environment is IDLE, free or ready, the request is not queued (any more). */
static void run_request(struct core_request *request, struct core_environment *environment)
{
    struct core_version *version = environment->version;
    struct core_provisioned *provisioned = request->provisioned;
    enum core_environment_state old = environment->state;

    assignment_lease(&version->assignment, environment, request);
    request->state = CORE_REQUEST_RUNNING;
    request->environment = environment;
    request->cold = !environment->served && environment->origin == CORE_ON_DEMAND;
    environment->served = true;
    version->function->metrics.invocations++;
    version->function->metrics.cold_starts += request->cold;
    version->function->account->metrics.invocations++;
    if (provisioned && environment->origin == CORE_PROVISIONED) {
        request->on_provisioned = true;
        provisioned->metrics.provisioned_invocations++;
        provisioned->metrics.executions++;
        provisioned->metrics.executions_max = MAX(provisioned->metrics.executions_max, provisioned->metrics.executions);
    } else if (provisioned) {
        provisioned->metrics.spillover_invocations++;
    }
    core_trace(environment, old);
}

static void take_unit(struct core_request *request, const struct counting_grant *grant, int64_t now_ns)
{
    struct core_function *function = request->version->function;
    struct core_account *account = function->account;

    counting_take(&request->receipt, grant, now_ns);
    function->metrics.concurrency_max = MAX(function->metrics.concurrency_max, function->counting.in_flight);
    account->metrics.concurrency_max = MAX(account->metrics.concurrency_max, account->counting.in_flight);
    note_claims(account);
    if (request->provisioned)
        request->provisioned->request_count++;
}

/* No environment is there or coming: the scaling rate, then the machine, then the unit. */
static int invoke_new(struct core_request *request, const struct counting_grant *grant, int64_t now_ns,
                      struct counting_throttle *ret_throttle)
{
    struct core_version *version = request->version;
    struct core_function *function = version->function;
    struct core_environment *environment;
    int r;

    if (counting_check_scaling(&function->counting, now_ns, ret_throttle) == COUNTING_THROTTLED) {
        count_throttle(function, ret_throttle);
        return CORE_THROTTLED;
    }
    r = core_start(version, NULL, &environment);
    if (r == CORE_MACHINE_FULL)
        count_machine_full(function);
    if (r != 0)
        return r;
    counting_take_scaling(&function->counting, now_ns);
    take_unit(request, grant, now_ns);
    assignment_enqueue(&version->assignment, request, NULL, now_ns);
    if (request->tied)
        assignment_tie(&version->assignment, request, environment);
    return CORE_WAITING;
}

/* With very many functions all that an invoke touches is out of the caches; fetching it at once instead of one after
 * the other takes a third off. */
static inline void prefetch(const struct core_version *version)
{
    const char *environment = (const char *)version->assignment.open[ASSIGNMENT_LIST_IDLE].head.next;

    __builtin_prefetch(&version->function->metrics.invocations, 1);
    __builtin_prefetch(environment, 1);
}

int core_invoke(struct core_account *account, const struct core_qualifier *qualifier, struct core_request *request,
                int64_t now_ns, uint64_t random, struct counting_throttle *ret_throttle)
{
    struct core_alias *alias = qualifier->alias;
    struct core_version *version = alias ? routing_choose(&alias->routing, random) : qualifier->version;
    struct core_provisioned *provisioned = alias && alias->provisioned ? alias->provisioned : version->provisioned;
    struct counting_slice *slice = provisioned ? &provisioned->slice : NULL;
    struct core_environment *environment;
    struct counting_grant grant;
    int r = CORE_WAITING;

    prefetch(version);
    assert(request->state == CORE_REQUEST_NEW && version->function->account == account);
    request->version = version;
    if (counting_check(&version->function->counting, slice, !request->asynchronous, now_ns, &grant, ret_throttle) ==
        COUNTING_THROTTLED) {
        count_throttle(version->function, ret_throttle);
        return CORE_THROTTLED;
    }
    request->provisioned = provisioned;
    request->spilled = grant.spilled;
    request->barred = grant.spilled_by_rate;
    request->tied = request->barred || account->assignment.mode == ASSIGNMENT_STRICT;
    switch (assignment_choose(&version->assignment, request, &environment)) {
    case ASSIGNMENT_IDLE:
        take_unit(request, &grant, now_ns);
        run_request(request, environment);
        return CORE_SERVED;
    case ASSIGNMENT_FINISHING:
    case ASSIGNMENT_COMING:
        take_unit(request, &grant, now_ns);
        assignment_enqueue(&version->assignment, request, environment, now_ns);
        return CORE_WAITING;
    case ASSIGNMENT_NEW:
        r = invoke_new(request, &grant, now_ns, ret_throttle);
    }
    if (r != CORE_WAITING)
        request->provisioned = NULL;
    return r;
}

void core_response_done(struct core_request *request, int64_t now_ns)
{
    struct core_environment *environment = request->environment;

    (void)now_ns;
    assert(request->state == CORE_REQUEST_RUNNING && environment->request == request);
    assignment_finish(&environment->version->assignment, environment);
    end_request(request);
    core_trace(environment, CORE_ENVIRONMENT_BUSY);
}

/* ---- what is missing ---- */

static void cover_orphan(struct core_version *version, struct core_request *orphan, bool paid, int64_t now_ns)
{
    struct core_function *function = version->function;
    struct counting_throttle throttle;
    struct core_environment *environment;

    if (paid && counting_check_scaling(&function->counting, now_ns, &throttle) == COUNTING_THROTTLED) {
        refuse_request(version, orphan, &throttle);
        return;
    }
    if (core_start(version, NULL, &environment) != 0) {
        fail_request(version, orphan, CORE_FAILURE_MACHINE_FULL);
        return;
    }
    if (paid)
        counting_take_scaling(&function->counting, now_ns);
    assignment_tie(&version->assignment, orphan, environment);
}

/* Refusals meet the youngest request, which would have been served last; a full machine fails the oldest, which has
 * waited long enough. */
static void cover_one(struct core_version *version, bool paid, int64_t now_ns)
{
    struct core_function *function = version->function;
    struct list *waiting = &version->assignment.waiting;
    struct counting_throttle throttle;
    struct core_environment *environment;

    if (paid && counting_check_scaling(&function->counting, now_ns, &throttle) == COUNTING_THROTTLED) {
        refuse_request(version, core_request_of_wait(list_last(waiting)), &throttle);
        return;
    }
    if (core_start(version, NULL, &environment) != 0) {
        fail_request(version, core_request_of_wait(list_first(waiting)), CORE_FAILURE_MACHINE_FULL);
        return;
    }
    if (paid)
        counting_take_scaling(&function->counting, now_ns);
}

void core_cover(struct core_version *version, bool paid, int64_t now_ns)
{
    struct core_request *orphan;

    while ((orphan = assignment_orphan(&version->assignment)))
        cover_orphan(version, orphan, paid, now_ns);
    while (assignment_uncovered(&version->assignment) > 0)
        cover_one(version, paid, now_ns);
}

/* ---- environments ---- */

void core_settle(struct core_environment *environment, int64_t now_ns)
{
    struct core_version *version = environment->version;
    struct core_account *account = version->function->account;
    enum core_environment_state old = environment->state;
    struct core_request *request = assignment_take_waiting(&version->assignment, environment);

    if (!request) {
        assignment_idle(&version->assignment, environment, now_ns);
        core_trace(environment, old);
        return;
    }
    run_request(request, environment);
    account->effects->serve(request, environment, account->context);
}

void core_environment_ready(struct core_environment *environment, bool ok, int64_t now_ns)
{
    if (environment->state != CORE_ENVIRONMENT_STARTING)
        return;
    if (environment->origin == CORE_PROVISIONED)
        provisioning_on_ready(environment, ok, now_ns);
    else
        core_settle(environment, now_ns);
}

void core_environment_free(struct core_environment *environment, int64_t now_ns)
{
    assert(environment->state == CORE_ENVIRONMENT_FINISHING);
    if (environment->retiring) {
        assignment_stop(&environment->version->assignment, environment);
        tell_stop(environment, CORE_ENVIRONMENT_FINISHING);
    } else {
        core_settle(environment, now_ns);
    }
}

static void discard(struct core_environment *environment, bool machine, int64_t now_ns)
{
    struct core_version *version = environment->version;
    struct core_account *account = version->function->account;

    if (environment->state == CORE_ENVIRONMENT_BUSY)
        core_response_done(environment->request, now_ns);
    if (environment->provided)
        provisioning_on_gone(environment, machine, now_ns);
    assignment_remove(&version->assignment, environment);
    placement_release(&version->spread, &environment->lease);
    account->environment_count--;
    assignment_release(&account->assignment, environment);
    free(environment);
}

void core_environment_gone(struct core_environment *environment, int64_t now_ns)
{
    struct core_version *version = environment->version;

    discard(environment, false, now_ns);
    core_cover(version, false, now_ns);
    core_version_put(version);
}

void core_environment_failed(struct core_environment *environment, int64_t now_ns)
{
    struct core_version *version = environment->version;
    struct core_request *orphan;

    discard(environment, true, now_ns);
    while ((orphan = assignment_orphan(&version->assignment)))
        fail_request(version, orphan, CORE_FAILURE_MACHINE_FULL);
    while (assignment_uncovered(&version->assignment) > 0)
        fail_request(version, core_request_of_wait(list_first(&version->assignment.waiting)),
                     CORE_FAILURE_MACHINE_FULL);
    core_version_put(version);
}

static void retire(struct core_environment *environment, int64_t now_ns)
{
    if (environment->provided)
        provisioning_let_go(environment, now_ns);
    core_retire(environment);
}

void core_environment_retire(struct core_environment *environment, int64_t now_ns)
{
    retire(environment, now_ns);
    core_cover(environment->version, false, now_ns);
}

void core_version_retire_environments(struct core_version *version, int64_t now_ns)
{
    LIST_FOREACH (link, &version->assignment.environments)
        retire(core_environment_of(link), now_ns);
    core_cover(version, false, now_ns);
}

/* ---- time ---- */

static int64_t after(int64_t since_ns, int64_t wait_ns)
{
    return wait_ns > INT64_MAX - since_ns ? INT64_MAX : since_ns + wait_ns;
}

static int64_t grace_deadline(const struct core_account *account)
{
    struct list_link *link = list_first(&account->assignment.grace);

    return link ? after(CONTAINER_OF(link, struct core_environment, grace_link)->claimed_since_ns,
                        account->limits.finishing_grace_ns)
                : INT64_MAX;
}

static int64_t idle_deadline(const struct core_account *account)
{
    const struct core_environment *longest = assignment_longest_idle(&account->assignment);

    return longest ? after(longest->idle_since_ns, account->limits.idle_timeout_ns) : INT64_MAX;
}

int64_t core_next_deadline(const struct core_account *account)
{
    return MIN(MIN(grace_deadline(account), idle_deadline(account)), provisioning_next_deadline(account));
}

void core_advance(struct core_account *account, int64_t now_ns)
{
    while (idle_deadline(account) <= now_ns)
        core_retire(assignment_longest_idle(&account->assignment));
    while (grace_deadline(account) <= now_ns) {
        struct core_environment *environment =
            CONTAINER_OF(list_first(&account->assignment.grace), struct core_environment, grace_link);
        struct core_version *version = environment->version;
        assignment_expire_claim(&version->assignment, environment);
        core_cover(version, true, now_ns);
    }
    provisioning_advance(account, now_ns);
}

/* ---- reserved concurrency ---- */

enum counting_change core_function_check_reserved(const struct core_function *function, int32_t count,
                                                  int32_t *ret_number)
{
    return counting_check_reserved(&function->counting, count, ret_number);
}

enum counting_change core_function_set_reserved(struct core_function *function, int32_t count, int32_t *ret_number)
{
    enum counting_change change = counting_set_reserved(&function->counting, count, ret_number);

    note_claims(function->account);
    return change;
}

void core_function_clear_reserved(struct core_function *function)
{
    counting_clear_reserved(&function->counting);
    note_claims(function->account);
}

bool core_function_reserved(const struct core_function *function, int32_t *ret_count)
{
    if (function->counting.has_reserved)
        *ret_count = function->counting.reserved;
    return function->counting.has_reserved;
}

/* ---- figures ---- */

void core_account_read_metrics(struct core_account *account, bool restart_maxima, struct core_account_metrics *ret)
{
    struct core_account_metrics *metrics = &account->metrics;

    metrics->concurrency = account->counting.in_flight;
    metrics->unreserved = account->counting.unreserved_in_flight;
    metrics->claimed = counting_claimed(&account->counting);
    metrics->environments = account->environment_count;
    *ret = *metrics;
    if (!restart_maxima)
        return;
    metrics->concurrency_max = metrics->concurrency;
    metrics->unreserved_max = metrics->unreserved;
    metrics->claimed_max = metrics->claimed;
}

void core_function_read_metrics(struct core_function *function, bool restart_maxima, struct core_function_metrics *ret)
{
    struct core_function_metrics *metrics = &function->metrics;

    metrics->concurrency = function->counting.in_flight;
    *ret = *metrics;
    if (restart_maxima)
        metrics->concurrency_max = metrics->concurrency;
}

void core_version_count(const struct core_version *version, struct core_version_counts *ret_counts)
{
    const struct assignment_version *assignment = &version->assignment;
    struct core_version_counts counts = {.waiting = assignment->waiting_count + assignment->tied_count};

    LIST_FOREACH (link, &assignment->environments)
        counts.environments[core_environment_of(link)->state]++;
    LIST_FOREACH (link, &assignment->open[ASSIGNMENT_LIST_IDLE_PROVISIONED])
        counts.idle_provisioned++;
    *ret_counts = counts;
}
