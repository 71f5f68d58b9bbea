/*
 * core_validate: counts everything anew by walking the objects and compares it with the counters and lists that the
 * decisions go by. Written without the helpers it checks.
 */
#include "core/provisioning.h"
#include "core/state.h"

#include <stdio.h>

struct tally {
    int64_t reserved;
    int64_t provisioned; /* of functions without RC */
    int64_t unreserved_in_flight;
    int64_t in_flight;
    int64_t environments;
    int64_t idle_on_demand;
    int64_t claimed;
};

__attribute__((noreturn)) static void broken(const char *what, int line)
{
    fprintf(stderr, "core_validate: %s (line %d)\n", what, line);
    abort();
}

#define REQUIRE(condition)                \
    do {                                  \
        if (!(condition))                 \
            broken(#condition, __LINE__); \
    } while (0)

static void validate_window(const struct counting_window *window)
{
    int64_t total = 0;

    for (int i = 0; i < COUNTING_RATE_SLOTS; i++) {
        REQUIRE(window->slots[i] >= 0);
        total += window->slots[i];
    }
    REQUIRE(window->total == total);
}

/* The list it must be in, from its fields alone. */
static int list_expected(const struct core_environment *environment)
{
    bool provisioned = environment->origin == CORE_PROVISIONED;
    bool open = !environment->claimed && !environment->closed && !environment->retiring;

    if (environment->state == CORE_ENVIRONMENT_IDLE)
        return provisioned ? ASSIGNMENT_LIST_IDLE_PROVISIONED : ASSIGNMENT_LIST_IDLE;
    if (environment->state == CORE_ENVIRONMENT_FINISHING && open)
        return provisioned ? ASSIGNMENT_LIST_FINISHING_PROVISIONED : ASSIGNMENT_LIST_FINISHING;
    return ASSIGNMENT_NO_LIST;
}

static void validate_environment(const struct core_environment *environment, const struct core_version *version)
{
    bool idle = environment->state == CORE_ENVIRONMENT_IDLE && environment->origin == CORE_ON_DEMAND;
    bool leased_out = environment->state == CORE_ENVIRONMENT_STOPPING; /* its room may have been lent on */

    REQUIRE((list_expected(environment) != ASSIGNMENT_NO_LIST) == list_is_linked(&environment->open_link));
    REQUIRE(environment->state != CORE_ENVIRONMENT_HELD || environment->origin == CORE_PROVISIONED);
    REQUIRE(environment->version == version);
    REQUIRE(environment->lease.worker || leased_out);
    REQUIRE((environment->state == CORE_ENVIRONMENT_BUSY) == (environment->request != NULL));
    REQUIRE(!environment->request || environment->request->environment == environment);
    REQUIRE(!environment->request || environment->request->state == CORE_REQUEST_RUNNING);
    REQUIRE(!environment->request || counting_holds(&environment->request->receipt));
    REQUIRE(!environment->claimed ||
            (environment->state == CORE_ENVIRONMENT_FINISHING && !environment->retiring && !environment->closed));
    REQUIRE(environment->claimed == list_is_linked(&environment->grace_link));
    REQUIRE(environment->origin == CORE_PROVISIONED ||
            idle == indexed_list_has(&version->function->account->assignment.idle, environment->idle_place));
    REQUIRE(!environment->tied_to || environment->tied_to->claim == environment);
    REQUIRE(!environment->tied_to || environment->claimed || environment->state == CORE_ENVIRONMENT_STARTING);
    REQUIRE(!environment->retiring || !environment->provided);
    REQUIRE(!environment->provided || environment->origin == CORE_PROVISIONED);
    REQUIRE((environment->provided != NULL) == list_is_linked(&environment->hold_link));
    REQUIRE(environment->origin == CORE_ON_DEMAND || environment->provided || environment->retiring ||
            environment->state == CORE_ENVIRONMENT_STOPPING);
}

static void validate_waiting(const struct core_request *request, const struct core_version *version, bool tied)
{
    REQUIRE(request->state == CORE_REQUEST_WAITING);
    REQUIRE(request->version == version && !request->environment);
    REQUIRE(counting_holds(&request->receipt));
    REQUIRE(request->tied == tied);
    REQUIRE(tied ? request->claim && request->claim->tied_to == request : !request->claim);
    REQUIRE(!request->barred || request->claim->origin == CORE_ON_DEMAND);
}

static void validate_version(const struct core_version *version, struct tally *tally)
{
    const struct assignment_version *assignment = &version->assignment;
    int32_t environments = 0, open = 0, starting = 0, claimed = 0, busy = 0, waiting = 0, tied = 0;
    uint64_t sequence = 0;

    for (int i = 0; i < ASSIGNMENT_LISTS; i++) {
        LIST_FOREACH (link, &assignment->open[i]) {
            REQUIRE(list_expected(CONTAINER_OF(link, struct core_environment, open_link)) == i);
            open--;
        }
    }
    LIST_FOREACH (link, &assignment->environments) {
        const struct core_environment *environment = core_environment_of(link);
        bool coming = environment->state == CORE_ENVIRONMENT_STARTING && environment->origin == CORE_ON_DEMAND;
        validate_environment(environment, version);
        environments++;
        open += list_expected(environment) != ASSIGNMENT_NO_LIST;
        busy += environment->state == CORE_ENVIRONMENT_BUSY;
        starting += coming && !environment->tied_to;
        claimed += environment->claimed && !environment->tied_to;
        tally->claimed += environment->claimed;
        tally->idle_on_demand += list_expected(environment) == ASSIGNMENT_LIST_IDLE;
    }
    REQUIRE(open == 0);
    LIST_FOREACH (link, &assignment->waiting) {
        validate_waiting(core_request_of_wait(link), version, false);
        REQUIRE(!waiting || core_request_of_wait(link)->sequence > sequence);
        sequence = core_request_of_wait(link)->sequence;
        waiting++;
    }
    LIST_FOREACH (link, &assignment->tied) {
        validate_waiting(core_request_of_wait(link), version, true);
        REQUIRE(!tied || core_request_of_wait(link)->sequence > sequence);
        sequence = core_request_of_wait(link)->sequence;
        tied++;
    }
    REQUIRE(assignment->environment_count == environments);
    REQUIRE(assignment->starting_count == starting);
    REQUIRE(assignment->claimed_count == claimed);
    REQUIRE(assignment->waiting_count == waiting);
    REQUIRE(assignment->tied_count == tied);
    REQUIRE(assignment->orphan_count == 0);
    REQUIRE(waiting <= starting + claimed);
    REQUIRE(!version->removed || (waiting + tied == 0 && environments > 0));
    /* Nobody waits while something idle could serve. */
    REQUIRE(waiting == 0 || (list_is_empty(&assignment->open[ASSIGNMENT_LIST_IDLE]) &&
                             list_is_empty(&assignment->open[ASSIGNMENT_LIST_IDLE_PROVISIONED])));
    tally->environments += environments;
    tally->in_flight += busy + waiting + tied;
}

static void validate_share(const struct core_provisioned *provisioned, const struct provisioning_share *share)
{
    int32_t held = 0, initialised = 0;

    LIST_FOREACH (link, &provisioned->environments) {
        const struct core_environment *environment = CONTAINER_OF(link, struct core_environment, hold_link);
        REQUIRE(environment->provided == provisioned);
        held += environment->version == share->version;
        initialised += environment->version == share->version && environment->state != CORE_ENVIRONMENT_STARTING;
    }
    REQUIRE(share->held == held && share->initialised == initialised);
    REQUIRE(provisioned->status != CORE_PROVISIONED_READY || held <= share->wanted);
    REQUIRE(provisioned->status != CORE_PROVISIONED_READY || held == share->wanted ||
            list_is_linked(&provisioned->work_link));
}

static void validate_provisioned(const struct core_provisioned *provisioned)
{
    int32_t wanted = 0, held = 0, total = 0;
    bool deleted = !provisioned->version && !provisioned->alias;

    for (int i = 0; i < PROVISIONING_SHARES; i++) {
        if (!provisioned->shares[i].version)
            continue;
        if (!deleted)
            validate_share(provisioned, &provisioned->shares[i]);
        wanted += provisioned->shares[i].wanted;
        held += provisioned->shares[i].held;
    }
    LIST_FOREACH (link, &provisioned->environments)
        total++;
    REQUIRE(held + provisioned->strays == total);
    REQUIRE(deleted ? total == 0 && provisioned->request_count > 0
                    : provisioned->status == CORE_PROVISIONED_FAILED || wanted == provisioned->target);
    REQUIRE(provisioned->status != CORE_PROVISIONED_FAILED || total == 0);
    REQUIRE(provisioned->status != CORE_PROVISIONED_IN_PROGRESS || deleted || list_is_linked(&provisioned->work_link));
    REQUIRE(provisioned->slice.size == (deleted ? 0 : provisioned->target));
    REQUIRE(provisioned->metrics.executions >= 0 && provisioned->request_count >= 0);
    validate_window(&provisioned->slice.window);
}

static void validate_function(const struct core_function *function, struct tally *tally)
{
    const struct counting_function *counting = &function->counting;
    int64_t in_flight_before = tally->in_flight, sizes = 0, within = 0;

    LIST_FOREACH (link, &function->versions)
        validate_version(CONTAINER_OF(link, struct core_version, link), tally);
    LIST_FOREACH (link, &function->provisioned) {
        const struct core_provisioned *provisioned = CONTAINER_OF(link, struct core_provisioned, link);
        validate_provisioned(provisioned);
        sizes += provisioned->slice.size;
        within += MIN(provisioned->slice.used, provisioned->slice.size);
    }
    REQUIRE(counting->in_flight == tally->in_flight - in_flight_before);
    REQUIRE(counting->provisioned_total == sizes);
    REQUIRE(counting->on_demand >= 0 && counting->on_demand + within == counting->in_flight);
    validate_window(&counting->window);
    if (counting->has_reserved) {
        REQUIRE(!function->removed && counting->reserved >= 0);
        REQUIRE(counting->reserved == 0 || sizes <= counting->reserved);
        tally->reserved += counting->reserved;
    } else {
        tally->provisioned += sizes;
        tally->unreserved_in_flight += counting->on_demand;
    }
}

static void validate_time_lists(const struct core_account *account, const struct tally *tally)
{
    const struct indexed_list *order = &account->assignment.idle;
    int64_t idle = 0, claimed = 0, previous_ns = INT64_MIN;

    for (uint32_t place = indexed_list_first(order); place; place = indexed_list_next(order, place)) {
        const struct core_environment *environment = order->members[place];
        REQUIRE(environment->idle_place == place);
        REQUIRE(environment->idle_since_ns >= previous_ns);
        previous_ns = environment->idle_since_ns;
        idle++;
    }
    previous_ns = INT64_MIN;
    LIST_FOREACH (link, &account->assignment.grace) {
        const struct core_environment *environment = CONTAINER_OF(link, struct core_environment, grace_link);
        REQUIRE(environment->claimed_since_ns >= previous_ns);
        previous_ns = environment->claimed_since_ns;
        claimed++;
    }
    REQUIRE(idle == tally->idle_on_demand);
    REQUIRE(claimed == tally->claimed);
}

void core_validate(const struct core_account *account)
{
    const struct counting_account *counting = &account->counting;
    struct tally tally = {0};

    LIST_FOREACH (link, &account->functions)
        validate_function(CONTAINER_OF(link, struct core_function, link), &tally);
    REQUIRE(counting->reserved_total == tally.reserved);
    REQUIRE(counting->provisioned_total == tally.provisioned);
    REQUIRE(counting->unreserved_in_flight == tally.unreserved_in_flight);
    REQUIRE(counting->in_flight == tally.in_flight);
    REQUIRE(counting_claimed(counting) <= counting->claim_ceiling);
    REQUIRE(account->environment_count == tally.environments);
    validate_window(&counting->window);
    validate_time_lists(account, &tally);
}
