/*
 * Every change to an environment goes leave() - change the fields - enter(): which list it belongs to and which counter
 * it weighs on are computed from its fields in these two places only, so lists, counters and state cannot disagree.
 * BUSY environments are in no list but that of all, which saves touching memory on the warm path.
 * Two lists are kept by hand because their order is a matter of time: the account's `grace` (order of claims) in
 * claim() and unclaim(), and `idle` (order of last use) in enter(), which an environment passes once per idle period.
 */
#include "core/assignment.h"

#include <assert.h>

static struct core_environment *environment_of(struct list_link *link)
{
    return link ? CONTAINER_OF(link, struct core_environment, open_link) : NULL;
}

static struct core_request *request_of(struct list_link *link)
{
    return link ? CONTAINER_OF(link, struct core_request, wait_link) : NULL;
}

const char *core_environment_state_name(enum core_environment_state state)
{
    static const char *const names[CORE_ENVIRONMENT_STATES] = {"STARTING", "HELD",      "IDLE",
                                                               "BUSY",     "FINISHING", "STOPPING"};

    return names[state];
}

void assignment_account_init(struct assignment_account *account)
{
    *account = (struct assignment_account){0};
    list_init(&account->grace);
}

void assignment_account_deinit(struct assignment_account *account)
{
    indexed_list_deinit(&account->idle);
}

void assignment_version_init(struct assignment_version *version, struct assignment_account *account)
{
    *version = (struct assignment_version){.account = account};
    for (int i = 0; i < ASSIGNMENT_LISTS; i++)
        list_init(&version->open[i]);
    list_init(&version->waiting);
    list_init(&version->tied);
    list_init(&version->environments);
}

/* ---- where an environment belongs ---- */

static enum assignment_list list_for(const struct core_environment *environment)
{
    bool provisioned = environment->origin == CORE_PROVISIONED;

    switch (environment->state) {
    case CORE_ENVIRONMENT_IDLE:
        return provisioned ? ASSIGNMENT_LIST_IDLE_PROVISIONED : ASSIGNMENT_LIST_IDLE;
    case CORE_ENVIRONMENT_FINISHING:
        if (environment->claimed || environment->closed || environment->retiring)
            return ASSIGNMENT_NO_LIST;
        return provisioned ? ASSIGNMENT_LIST_FINISHING_PROVISIONED : ASSIGNMENT_LIST_FINISHING;
    default:
        return ASSIGNMENT_NO_LIST;
    }
}

/* Adds `sign` to the counter that a coming environment weighs on, if any. */
static void weigh(struct assignment_version *version, const struct core_environment *environment, int32_t sign)
{
    if (environment->tied_to)
        return;
    if (environment->state == CORE_ENVIRONMENT_STARTING && environment->origin == CORE_ON_DEMAND)
        version->starting_count += sign;
    else if (environment->claimed)
        version->claimed_count += sign;
}

static void leave(struct assignment_version *version, struct core_environment *environment)
{
    weigh(version, environment, -1);
    if (list_for(environment) != ASSIGNMENT_NO_LIST)
        list_remove(&environment->open_link);
    if (environment->state == CORE_ENVIRONMENT_IDLE && environment->origin == CORE_ON_DEMAND)
        indexed_list_remove(&version->account->idle, environment->idle_place);
}

static void enter(struct assignment_version *version, struct core_environment *environment)
{
    enum assignment_list list = list_for(environment);

    weigh(version, environment, 1);
    switch (list) {
    case ASSIGNMENT_LIST_IDLE:
        indexed_list_push_back(&version->account->idle, environment->idle_place);
        /* fall through */
    case ASSIGNMENT_LIST_IDLE_PROVISIONED:
        list_push_front(&version->open[list], &environment->open_link);
        break;
    case ASSIGNMENT_LIST_FINISHING:
    case ASSIGNMENT_LIST_FINISHING_PROVISIONED:
        list_push_back(&version->open[list], &environment->open_link);
        break;
    default:
        break;
    }
}

/* Moves to another state; `from` is a set of bits (1 << state) of the states it may come from. */
static void set_state(struct assignment_version *version, struct core_environment *environment, unsigned from,
                      enum core_environment_state to)
{
    assert(from & (1u << environment->state));
    (void)from;
    leave(version, environment);
    environment->state = to;
    enter(version, environment);
}

enum {
    FROM_STARTING = 1 << CORE_ENVIRONMENT_STARTING,
    FROM_HELD = 1 << CORE_ENVIRONMENT_HELD,
    FROM_IDLE = 1 << CORE_ENVIRONMENT_IDLE,
    FROM_BUSY = 1 << CORE_ENVIRONMENT_BUSY,
    FROM_FINISHING = 1 << CORE_ENVIRONMENT_FINISHING,
};

/* ---- claims and ties ---- */

static void tie(struct assignment_version *version, struct core_request *request, struct core_environment *environment)
{
    assert(request->tied && !request->claim && !environment->tied_to);
    leave(version, environment);
    environment->tied_to = request;
    request->claim = environment;
    enter(version, environment);
}

/* The request becomes an orphan unless the caller serves or dequeues it next; the environment counts for all. */
static void untie(struct assignment_version *version, struct core_environment *environment)
{
    if (!environment->tied_to)
        return;
    leave(version, environment);
    environment->tied_to->claim = NULL;
    environment->tied_to = NULL;
    enter(version, environment);
    version->orphan_count++;
}

static void claim(struct assignment_version *version, struct core_environment *environment, int64_t now_ns)
{
    assert(environment->state == CORE_ENVIRONMENT_FINISHING && !environment->claimed && !environment->retiring);
    leave(version, environment);
    environment->claimed = true;
    environment->claimed_since_ns = now_ns;
    list_push_back(&version->account->grace, &environment->grace_link);
    enter(version, environment);
}

/* Whoever waited for it is an orphan or uncovered then. */
static void unclaim(struct assignment_version *version, struct core_environment *environment)
{
    untie(version, environment);
    if (!environment->claimed)
        return;
    leave(version, environment);
    environment->claimed = false;
    list_remove(&environment->grace_link);
    enter(version, environment);
}

void assignment_expire_claim(struct assignment_version *version, struct core_environment *environment)
{
    unclaim(version, environment);
    leave(version, environment);
    environment->closed = true;
    enter(version, environment);
}

/* ---- environments ---- */

int assignment_reserve(struct assignment_account *account, struct core_environment *environment)
{
    if (environment->origin == CORE_PROVISIONED)
        return 0;
    return indexed_list_reserve(&account->idle, environment, &environment->idle_place);
}

void assignment_release(struct assignment_account *account, struct core_environment *environment)
{
    if (environment->origin == CORE_ON_DEMAND)
        indexed_list_release(&account->idle, environment->idle_place);
}

struct core_environment *assignment_longest_idle(const struct assignment_account *account)
{
    uint32_t place = indexed_list_first(&account->idle);

    return place ? account->idle.members[place] : NULL;
}

void assignment_add(struct assignment_version *version, struct core_environment *environment)
{
    assert(environment->state == CORE_ENVIRONMENT_STARTING && !environment->tied_to);
    list_link_init(&environment->open_link);
    list_link_init(&environment->grace_link);
    list_push_back(&version->environments, &environment->link);
    version->environment_count++;
    enter(version, environment);
}

void assignment_remove(struct assignment_version *version, struct core_environment *environment)
{
    unclaim(version, environment);
    leave(version, environment);
    list_remove(&environment->link);
    version->environment_count--;
}

void assignment_lease(struct assignment_version *version, struct core_environment *environment,
                      struct core_request *request)
{
    assert(!environment->claimed && !environment->tied_to && !environment->retiring);
    set_state(version, environment, FROM_IDLE | FROM_FINISHING | FROM_STARTING | FROM_HELD, CORE_ENVIRONMENT_BUSY);
    environment->request = request;
}

void assignment_finish(struct assignment_version *version, struct core_environment *environment)
{
    environment->request = NULL;
    environment->closed = false;
    set_state(version, environment, FROM_BUSY, CORE_ENVIRONMENT_FINISHING);
}

void assignment_idle(struct assignment_version *version, struct core_environment *environment, int64_t now_ns)
{
    assert(!environment->claimed && !environment->tied_to && !environment->retiring);
    environment->idle_since_ns = now_ns;
    set_state(version, environment, FROM_STARTING | FROM_HELD | FROM_FINISHING, CORE_ENVIRONMENT_IDLE);
}

void assignment_hold(struct assignment_version *version, struct core_environment *environment)
{
    set_state(version, environment, FROM_STARTING, CORE_ENVIRONMENT_HELD);
}

bool assignment_retire(struct assignment_version *version, struct core_environment *environment)
{
    switch (environment->state) {
    case CORE_ENVIRONMENT_STOPPING:
        return false;
    case CORE_ENVIRONMENT_BUSY:
    case CORE_ENVIRONMENT_FINISHING:
        unclaim(version, environment);
        leave(version, environment);
        environment->retiring = true;
        enter(version, environment);
        return false;
    default:
        untie(version, environment);
        set_state(version, environment, FROM_STARTING | FROM_HELD | FROM_IDLE, CORE_ENVIRONMENT_STOPPING);
        return true;
    }
}

void assignment_stop(struct assignment_version *version, struct core_environment *environment)
{
    assert(environment->retiring);
    set_state(version, environment, FROM_FINISHING, CORE_ENVIRONMENT_STOPPING);
}

/* ---- requests ---- */

enum assignment_choice assignment_choose(struct assignment_version *version, const struct core_request *request,
                                         struct core_environment **ret_environment)
{
    bool may_wait = version->account->finishing_grace_ns > 0;

    for (int list = 0; list < ASSIGNMENT_LISTS; list++) {
        bool provisioned = list == ASSIGNMENT_LIST_IDLE_PROVISIONED || list == ASSIGNMENT_LIST_FINISHING_PROVISIONED;
        bool idle = list == ASSIGNMENT_LIST_IDLE_PROVISIONED || list == ASSIGNMENT_LIST_IDLE;
        if (list_is_empty(&version->open[list]) || (provisioned && request->barred) || (!idle && !may_wait))
            continue;
        *ret_environment = environment_of(list_first(&version->open[list]));
        return idle ? ASSIGNMENT_IDLE : ASSIGNMENT_FINISHING;
    }
    *ret_environment = NULL;
    if (!request->tied && version->waiting_count < version->starting_count + version->claimed_count)
        return ASSIGNMENT_COMING;
    return ASSIGNMENT_NEW;
}

void assignment_enqueue(struct assignment_version *version, struct core_request *request,
                        struct core_environment *claimed, int64_t now_ns)
{
    request->state = CORE_REQUEST_WAITING;
    request->sequence = version->account->sequence++;
    request->claim = NULL;
    if (request->tied) {
        list_push_back(&version->tied, &request->wait_link);
        version->tied_count++;
        version->orphan_count++;
    } else {
        list_push_back(&version->waiting, &request->wait_link);
        version->waiting_count++;
    }
    if (!claimed)
        return;
    claim(version, claimed, now_ns);
    if (request->tied)
        assignment_tie(version, request, claimed);
}

void assignment_tie(struct assignment_version *version, struct core_request *request,
                    struct core_environment *environment)
{
    tie(version, request, environment);
    version->orphan_count--;
}

void assignment_dequeue(struct assignment_version *version, struct core_request *request)
{
    if (request->tied) {
        if (request->claim)
            untie(version, request->claim);
        version->tied_count--;
        version->orphan_count--;
    } else {
        version->waiting_count--;
    }
    list_remove(&request->wait_link);
}

struct core_request *assignment_take_waiting(struct assignment_version *version, struct core_environment *environment)
{
    struct core_request *oldest = version->waiting_count ? request_of(list_first(&version->waiting)) : NULL;
    struct core_request *tied = version->tied_count ? request_of(list_first(&version->tied)) : NULL;
    bool may_take_tied = version->account->mode == ASSIGNMENT_SHARED && environment->origin == CORE_ON_DEMAND;

    if (environment->tied_to)
        oldest = environment->tied_to;
    else if (tied && may_take_tied && (!oldest || tied->sequence < oldest->sequence))
        oldest = tied;
    /* What the tied one leaves behind, if it was not this one, is coming for the others instead. */
    if (oldest)
        assignment_dequeue(version, oldest);
    unclaim(version, environment);
    return oldest;
}

int32_t assignment_uncovered(const struct assignment_version *version)
{
    return MAX(0, version->waiting_count - version->starting_count - version->claimed_count);
}

struct core_request *assignment_orphan(const struct assignment_version *version)
{
    if (!version->orphan_count)
        return NULL;
    LIST_FOREACH (link, &version->tied) {
        if (!request_of(link)->claim)
            return request_of(link);
    }
    return NULL;
}
