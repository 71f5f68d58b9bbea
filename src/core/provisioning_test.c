/* Provisioned concurrency: allocation, pace, failures, moves, and who may run on it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/test_world.h"

/* A function with versions 1 and 2 and the alias "live" on 1, in a world that runs by itself: Init takes 100 ms. */
struct shop {
    struct world world;
    struct core_function *function;
    struct core_version *latest, *one, *two;
    struct core_alias *live;
};

static void open_shop(struct shop *shop, const struct core_limits *limits)
{
    world_init(&shop->world, limits);
    shop->world.automatic = true;
    shop->world.init_ns = 100 * NS_PER_MS;
    shop->latest = world_add_function(&shop->world, "shop");
    shop->function = core_version_function(shop->latest);
    shop->one = world_add_version(shop->function, "1");
    shop->two = world_add_version(shop->function, "2");
    shop->live = world_add_alias(shop->function, "live", shop->one);
}

static int put(struct shop *shop, struct core_version *version, struct core_alias *alias, int32_t count)
{
    struct core_qualifier qualifier = {version, alias};
    int32_t number;
    int r = core_provisioned_put(shop->world.account, &qualifier, count, shop->world.now_ns, &number);

    core_validate(shop->world.account);
    return r;
}

static struct core_provisioned *of(struct core_version *version, struct core_alias *alias)
{
    return core_provisioned_find(&(struct core_qualifier){version, alias});
}

static void run_for(struct shop *shop, int64_t duration_ns)
{
    world_run_until(&shop->world, shop->world.now_ns + duration_ns);
}

/* Puts and waits until it is READY. */
static void provision(struct shop *shop, struct core_version *version, struct core_alias *alias, int32_t count)
{
    struct core_provisioned_state state;

    assert_int_equal(put(shop, version, alias, count), 0);
    run_for(shop, 2 * NS_PER_S);
    core_provisioned_get(of(version, alias), &state);
    assert_int_equal(state.status, CORE_PROVISIONED_READY);
}

static void assert_state(struct core_provisioned *provisioned, enum core_provisioned_status status, int requested,
                         int allocated, int available)
{
    struct core_provisioned_state state;

    core_provisioned_get(provisioned, &state);
    assert_int_equal(state.status, status);
    assert_int_equal(state.requested, requested);
    assert_int_equal(state.allocated, allocated);
    assert_int_equal(state.available, available);
}

static struct core_version_counts counts(const struct core_version *version)
{
    struct core_version_counts result;

    core_version_count(version, &result);
    return result;
}

static void route(struct shop *shop, struct core_version *first, struct core_version *second, double weight)
{
    struct routing routing = {first, second, weight};

    assert_int_equal(core_alias_set_routing(shop->live, &routing, shop->world.now_ns), 0);
    core_validate(shop->world.account);
}

/* ---- refusals ---- */

static void test_refused_put_changes_nothing(void **state)
{
    struct shop shop;
    int32_t number = 0;

    (void)state;
    open_shop(&shop, NULL);
    assert_int_equal(put(&shop, shop.one, NULL, 1001), COUNTING_OVER_POOL);
    assert_int_equal(put(&shop, shop.one, NULL, 950), COUNTING_BELOW_MINIMUM);
    assert_null(of(shop.one, NULL));
    assert_int_equal(core_function_set_reserved(shop.function, 2, &number), COUNTING_OK);
    assert_int_equal(put(&shop, shop.one, NULL, 2), COUNTING_OK);
    assert_int_equal(put(&shop, shop.two, NULL, 1), COUNTING_OVER_RESERVED);
    assert_int_equal(put(&shop, shop.one, NULL, 3), COUNTING_OVER_RESERVED);
    assert_state(of(shop.one, NULL), CORE_PROVISIONED_IN_PROGRESS, 2, 0, 0);
    assert_int_equal(core_function_set_reserved(shop.function, 1, &number), COUNTING_BELOW_PROVISIONED);
    assert_int_equal(number, 2);
    world_deinit(&shop.world);
}

static void test_failing_init_is_tried_six_more_times(void **state)
{
    struct shop shop;
    struct core_provisioned_state result;

    (void)state;
    open_shop(&shop, NULL);
    shop.world.automatic = false;
    put(&shop, shop.one, NULL, 1);
    for (int i = 0; i < 7; i++) {
        world_pass(&shop.world, NS_PER_S);
        assert_int_equal(shop.world.starts, i + 1);
        assert_state(of(shop.one, NULL), CORE_PROVISIONED_IN_PROGRESS, 1, 0, 0);
        core_environment_ready(shop.world.started[i], false, shop.world.now_ns);
        world_gone(&shop.world, shop.world.stopped[i]);
    }
    core_provisioned_get(of(shop.one, NULL), &result);
    assert_int_equal(result.status, CORE_PROVISIONED_FAILED);
    assert_true(result.failed_by_init);
    assert_int_equal(result.requested, 1);
    assert_int_equal(shop.world.changes, 1);
    assert_int_equal(core_next_deadline(shop.world.account), INT64_MAX);
    assert_int_equal(core_account_unreserved(shop.world.account), 999); /* still set aside */
    world_deinit(&shop.world);
}

static void test_only_failures_in_a_row_count(void **state)
{
    struct core_environment *good;
    struct shop shop;

    (void)state;
    open_shop(&shop, NULL);
    shop.world.automatic = false;
    put(&shop, shop.one, NULL, 2);
    world_pass(&shop.world, 0);
    good = world_last_started(&shop.world);
    for (int failures = 1; failures <= 12; failures++) {
        world_pass(&shop.world, NS_PER_S); /* one beside `good` */
        core_environment_ready(world_last_started(&shop.world), false, shop.world.now_ns);
        core_validate(shop.world.account);
        if (failures == 6)
            world_ready(&shop.world, good);
    }
    assert_state(of(shop.one, NULL), CORE_PROVISIONED_IN_PROGRESS, 2, 1, 0);
    world_pass(&shop.world, NS_PER_S);
    core_environment_ready(world_last_started(&shop.world), false, shop.world.now_ns);
    core_validate(shop.world.account);
    assert_state(of(shop.one, NULL), CORE_PROVISIONED_FAILED, 2, 0, 0);
    world_deinit(&shop.world);
}

static void test_put_after_failure_begins_anew(void **state)
{
    struct core_limits limits = core_limits_default();
    struct shop shop;

    (void)state;
    limits.provisioning_retries = 0;
    open_shop(&shop, &limits);
    shop.world.automatic = false;
    put(&shop, shop.one, NULL, 2);
    world_pass(&shop.world, NS_PER_S);
    core_environment_ready(shop.world.started[0], false, shop.world.now_ns);
    core_validate(shop.world.account);
    assert_state(of(shop.one, NULL), CORE_PROVISIONED_FAILED, 2, 0, 0);
    world_gone(&shop.world, shop.world.started[0]);
    put(&shop, shop.one, NULL, 1);
    world_pass(&shop.world, NS_PER_S);
    world_ready(&shop.world, world_last_started(&shop.world));
    assert_state(of(shop.one, NULL), CORE_PROVISIONED_READY, 1, 1, 1);
    world_deinit(&shop.world);
}

static void test_full_machine_is_tried_again_and_is_no_failure(void **state)
{
    struct shop shop;

    (void)state;
    open_shop(&shop, NULL);
    shop.world.refuse_starts = true;
    put(&shop, shop.one, NULL, 1);
    run_for(&shop, 20 * NS_PER_S);
    assert_state(of(shop.one, NULL), CORE_PROVISIONED_IN_PROGRESS, 1, 0, 0);
    shop.world.refuse_starts = false;
    run_for(&shop, 2 * NS_PER_S);
    assert_state(of(shop.one, NULL), CORE_PROVISIONED_READY, 1, 1, 1);
    world_deinit(&shop.world);
}

static void test_start_that_the_machine_fails_is_tried_again_after_a_second(void **state)
{
    struct shop shop;

    (void)state;
    open_shop(&shop, NULL);
    shop.world.automatic = false;
    put(&shop, shop.one, NULL, 1);
    for (int i = 0; i < 10; i++) {
        world_pass(&shop.world, i ? NS_PER_S : 0);
        assert_int_equal(shop.world.starts, i + 1);
        core_environment_failed(world_last_started(&shop.world), shop.world.now_ns);
        core_validate(shop.world.account);
        assert_int_equal(core_next_deadline(shop.world.account), shop.world.now_ns + NS_PER_S);
    }
    assert_state(of(shop.one, NULL), CORE_PROVISIONED_IN_PROGRESS, 1, 0, 0);
    assert_int_equal(shop.world.failures, 0);
    world_deinit(&shop.world);
}

/* ---- allocation ---- */

static void test_nothing_serves_until_all_is_allocated(void **state)
{
    struct world_request during = {.duration_ns = NS_PER_MS}, after = {.duration_ns = NS_PER_MS};
    struct shop shop;

    (void)state;
    open_shop(&shop, NULL);
    put(&shop, shop.one, NULL, 10); /* starts at 0, 10, ... 90 ms, each ready 100 ms later */
    assert_state(of(shop.one, NULL), CORE_PROVISIONED_IN_PROGRESS, 10, 0, 0);
    run_for(&shop, 150 * NS_PER_MS);
    assert_state(of(shop.one, NULL), CORE_PROVISIONED_IN_PROGRESS, 10, 6, 0);
    assert_int_equal(world_invoke(&shop.world, shop.one, &during), CORE_WAITING);
    assert_int_equal(world_last_started(&shop.world)->origin, CORE_ON_DEMAND);
    run_for(&shop, 39 * NS_PER_MS);
    assert_state(of(shop.one, NULL), CORE_PROVISIONED_IN_PROGRESS, 10, 9, 0);
    run_for(&shop, NS_PER_MS);
    assert_state(of(shop.one, NULL), CORE_PROVISIONED_READY, 10, 10, 10);
    assert_int_equal(world_invoke(&shop.world, shop.one, &after), CORE_SERVED);
    assert_int_equal(after.core.environment->origin, CORE_PROVISIONED);
    assert_false(after.core.cold);
    world_deinit(&shop.world);
}

static void test_pace_is_six_thousand_a_minute(void **state)
{
    struct shop shop;

    (void)state;
    open_shop(&shop, NULL);
    put(&shop, shop.one, NULL, 400);
    run_for(&shop, NS_PER_S - 1);
    assert_int_equal(shop.world.starts, 100);
    run_for(&shop, 3 * NS_PER_S);
    assert_int_equal(shop.world.starts, 400);
    world_deinit(&shop.world);
}

static void test_pace_is_shared_by_the_function_and_not_by_the_account(void **state)
{
    struct core_version *other;
    struct shop shop;

    (void)state;
    open_shop(&shop, NULL);
    other = world_add_version(core_version_function(world_add_function(&shop.world, "other")), "1");
    put(&shop, shop.one, NULL, 100);
    put(&shop, shop.two, NULL, 100);
    put(&shop, other, NULL, 100);
    run_for(&shop, 500 * NS_PER_MS - 1);
    assert_int_equal(shop.world.starts, 50 + 50);
    world_deinit(&shop.world);
}

static void test_pace_is_not_saved_up(void **state)
{
    struct shop shop;

    (void)state;
    open_shop(&shop, NULL);
    provision(&shop, shop.one, NULL, 1);
    run_for(&shop, 3600 * NS_PER_S);
    put(&shop, shop.one, NULL, 100);
    run_for(&shop, 100 * NS_PER_MS - 1);
    assert_int_equal(shop.world.starts, 1 + 10);
    world_deinit(&shop.world);
}

static void test_allocation_starts_after_the_delay(void **state)
{
    struct core_limits limits = core_limits_default();
    struct shop shop;

    (void)state;
    limits.provisioning_delay_ns = 60 * NS_PER_S;
    open_shop(&shop, &limits);
    put(&shop, shop.one, NULL, 1);
    run_for(&shop, 60 * NS_PER_S - 1);
    assert_int_equal(shop.world.starts, 0);
    run_for(&shop, 1);
    assert_int_equal(shop.world.starts, 1);
    world_deinit(&shop.world);
}

static void test_last_put_wins(void **state)
{
    struct shop shop;

    (void)state;
    open_shop(&shop, NULL);
    put(&shop, shop.one, NULL, 5);
    put(&shop, shop.one, NULL, 2);
    run_for(&shop, 15 * NS_PER_MS);
    put(&shop, shop.one, NULL, 4);
    run_for(&shop, NS_PER_S);
    assert_state(of(shop.one, NULL), CORE_PROVISIONED_READY, 4, 4, 4);
    assert_int_equal(shop.world.starts, 4);
    world_deinit(&shop.world);
}

static void test_raising_keeps_what_serves(void **state)
{
    struct world_request request = {.duration_ns = NS_PER_MS};
    struct shop shop;

    (void)state;
    open_shop(&shop, NULL);
    provision(&shop, shop.one, NULL, 5);
    put(&shop, shop.one, NULL, 10);
    run_for(&shop, 120 * NS_PER_MS);
    assert_state(of(shop.one, NULL), CORE_PROVISIONED_IN_PROGRESS, 10, 8, 5);
    assert_int_equal(world_invoke(&shop.world, shop.one, &request), CORE_SERVED);
    run_for(&shop, NS_PER_S);
    assert_state(of(shop.one, NULL), CORE_PROVISIONED_READY, 10, 10, 10);
    world_deinit(&shop.world);
}

static void test_lowering_stops_idle_ones_and_spares_busy_ones(void **state)
{
    struct world_request running[2] = {{.duration_ns = NS_PER_S}, {.duration_ns = NS_PER_S}};
    struct shop shop;

    (void)state;
    open_shop(&shop, NULL);
    shop.world.stopping_ns = 10 * NS_PER_MS;
    provision(&shop, shop.one, NULL, 5);
    world_invoke(&shop.world, shop.one, &running[0]);
    world_invoke(&shop.world, shop.one, &running[1]);
    put(&shop, shop.one, NULL, 1);
    run_for(&shop, 100 * NS_PER_MS);
    assert_state(of(shop.one, NULL), CORE_PROVISIONED_READY, 1, 1, 1);
    assert_int_equal(counts(shop.one).environments[CORE_ENVIRONMENT_BUSY], 2);
    assert_int_equal(counts(shop.one).environments[CORE_ENVIRONMENT_IDLE], 0);
    run_for(&shop, NS_PER_S);
    assert_int_equal(counts(shop.one).environments[CORE_ENVIRONMENT_IDLE], 1);
    assert_int_equal(shop.world.stops, 4);
    world_deinit(&shop.world);
}

static void test_dead_environment_is_replaced_and_status_stays_ready(void **state)
{
    struct shop shop;

    (void)state;
    open_shop(&shop, NULL);
    provision(&shop, shop.one, NULL, 3);
    world_gone(&shop.world, shop.world.started[1]);
    assert_state(of(shop.one, NULL), CORE_PROVISIONED_READY, 3, 2, 2);
    run_for(&shop, 100 * NS_PER_MS);
    assert_state(of(shop.one, NULL), CORE_PROVISIONED_READY, 3, 3, 3);
    assert_int_equal(counts(shop.one).idle_provisioned, 3);
    world_deinit(&shop.world);
}

static void test_retired_environment_stops_and_is_replaced(void **state)
{
    struct shop shop;

    (void)state;
    open_shop(&shop, NULL);
    provision(&shop, shop.one, NULL, 3);
    core_environment_retire(shop.world.started[1], shop.world.now_ns);
    core_validate(shop.world.account);
    assert_int_equal(shop.world.stops, 1);
    assert_ptr_equal(world_last_stopped(&shop.world), shop.world.started[1]);
    assert_state(of(shop.one, NULL), CORE_PROVISIONED_READY, 3, 2, 2);
    assert_int_equal(counts(shop.one).idle_provisioned, 2);
    run_for(&shop, 200 * NS_PER_MS);
    assert_state(of(shop.one, NULL), CORE_PROVISIONED_READY, 3, 3, 3);
    assert_int_equal(shop.world.starts, 4);
    world_deinit(&shop.world);
}

static void test_busy_environment_that_is_retired_stops_after_its_request(void **state)
{
    struct world_request request = {0};
    struct shop shop;

    (void)state;
    open_shop(&shop, NULL);
    shop.world.automatic = false;
    assert_int_equal(world_invoke(&shop.world, shop.one, &request), CORE_WAITING);
    world_ready(&shop.world, world_last_started(&shop.world));
    core_environment_retire(world_last_started(&shop.world), shop.world.now_ns);
    core_validate(shop.world.account);
    assert_int_equal(shop.world.stops, 0);
    world_finish(&shop.world, &request);
    assert_int_equal(shop.world.stops, 1);
    world_deinit(&shop.world);
}

static void test_provisioned_environments_are_never_reclaimed(void **state)
{
    struct shop shop;

    (void)state;
    open_shop(&shop, NULL);
    provision(&shop, shop.one, NULL, 3);
    assert_int_equal(core_next_deadline(shop.world.account), INT64_MAX);
    run_for(&shop, 100000 * NS_PER_S);
    assert_int_equal(shop.world.stops, 0);
    world_deinit(&shop.world);
}

static void test_delete_gives_everything_back(void **state)
{
    struct world_request running = {.duration_ns = NS_PER_S};
    struct core_account_metrics metrics;
    struct shop shop;

    (void)state;
    open_shop(&shop, NULL);
    provision(&shop, shop.one, NULL, 3);
    world_invoke(&shop.world, shop.one, &running);
    core_provisioned_delete(shop.world.account, &(struct core_qualifier){.version = shop.one}, shop.world.now_ns);
    core_validate(shop.world.account);
    assert_null(of(shop.one, NULL));
    assert_int_equal(core_account_unreserved(shop.world.account), 1000);
    assert_int_equal(shop.world.stops, 2);
    core_account_read_metrics(shop.world.account, false, &metrics);
    assert_int_equal(metrics.unreserved, 1); /* the one that runs is on the pool now */
    run_for(&shop, NS_PER_S);
    assert_int_equal(shop.world.stops, 3);
    core_provisioned_delete(shop.world.account, &(struct core_qualifier){.version = shop.one}, shop.world.now_ns);
    world_deinit(&shop.world);
}

static void test_removed_alias_gives_its_provisioned_back(void **state)
{
    struct shop shop;

    (void)state;
    open_shop(&shop, NULL);
    provision(&shop, NULL, shop.live, 3);
    core_alias_remove(shop.live, shop.world.now_ns);
    core_validate(shop.world.account);
    assert_int_equal(core_account_unreserved(shop.world.account), 1000);
    assert_int_equal(put(&shop, shop.one, NULL, 1), 0);
    world_deinit(&shop.world);
}

static void test_function_removed_during_allocation_leaves_nothing(void **state)
{
    struct core_account_metrics metrics;
    struct shop shop;

    (void)state;
    open_shop(&shop, NULL);
    put(&shop, NULL, shop.live, 5);
    put(&shop, shop.two, NULL, 5);
    run_for(&shop, 110 * NS_PER_MS);
    core_function_remove(shop.function, shop.world.now_ns);
    core_validate(shop.world.account);
    run_for(&shop, NS_PER_S);
    core_account_read_metrics(shop.world.account, false, &metrics);
    assert_int_equal(metrics.environments, 0);
    assert_int_equal(core_account_unreserved(shop.world.account), 1000);
    assert_int_equal(core_next_deadline(shop.world.account), INT64_MAX);
    world_deinit(&shop.world);
}

/* ---- aliases ---- */

static void test_weights_divide_provisioned(void **state)
{
    struct shop shop;

    (void)state;
    open_shop(&shop, NULL);
    provision(&shop, NULL, shop.live, 50);
    route(&shop, shop.one, shop.two, 0.1);
    assert_state(of(NULL, shop.live), CORE_PROVISIONED_IN_PROGRESS, 50, 45, 45);
    run_for(&shop, 149 * NS_PER_MS - 10 * NS_PER_MS);
    assert_int_equal(counts(shop.one).idle_provisioned, 50); /* nothing old goes before the new is there */
    assert_int_equal(counts(shop.two).idle_provisioned, 0);
    run_for(&shop, 10 * NS_PER_MS);
    assert_int_equal(counts(shop.one).idle_provisioned, 45);
    assert_int_equal(counts(shop.two).idle_provisioned, 5);
    assert_state(of(NULL, shop.live), CORE_PROVISIONED_READY, 50, 50, 50);
    route(&shop, shop.two, NULL, 0);
    run_for(&shop, NS_PER_S);
    assert_int_equal(counts(shop.one).idle_provisioned, 0);
    assert_int_equal(counts(shop.two).idle_provisioned, 50);
    assert_state(of(NULL, shop.live), CORE_PROVISIONED_READY, 50, 50, 50);
    world_deinit(&shop.world);
}

static void test_moved_alias_takes_its_provisioned_along(void **state)
{
    struct world_request old = {.duration_ns = NS_PER_MS}, fresh = {.duration_ns = NS_PER_MS};
    struct shop shop;

    (void)state;
    open_shop(&shop, NULL);
    provision(&shop, NULL, shop.live, 2);
    route(&shop, shop.two, NULL, 0);
    assert_state(of(NULL, shop.live), CORE_PROVISIONED_IN_PROGRESS, 2, 0, 0);
    assert_int_equal(world_invoke(&shop.world, shop.one, &old), CORE_SERVED);
    run_for(&shop, NS_PER_S);
    assert_state(of(NULL, shop.live), CORE_PROVISIONED_READY, 2, 2, 2);
    assert_null(of(shop.two, NULL));
    assert_int_equal(counts(shop.one).idle_provisioned, 0);
    assert_int_equal(world_invoke_alias(&shop.world, shop.live, &fresh), CORE_SERVED);
    assert_ptr_equal(fresh.core.version, shop.two);
    world_deinit(&shop.world);
}

static void test_update_that_moves_nothing_allocates_nothing(void **state)
{
    struct shop shop;

    (void)state;
    open_shop(&shop, NULL);
    provision(&shop, NULL, shop.live, 2);
    route(&shop, shop.one, NULL, 0);
    assert_state(of(NULL, shop.live), CORE_PROVISIONED_READY, 2, 2, 2);
    world_deinit(&shop.world);
}

static void test_version_behind_a_provisioned_alias_runs_provisioned(void **state)
{
    struct world_request request = {.duration_ns = NS_PER_MS};
    struct core_provisioned_metrics metrics;
    struct shop shop;

    (void)state;
    open_shop(&shop, NULL);
    provision(&shop, NULL, shop.live, 1);
    assert_int_equal(world_invoke(&shop.world, shop.one, &request), CORE_SERVED);
    assert_int_equal(request.core.environment->origin, CORE_PROVISIONED);
    core_provisioned_read_metrics(of(NULL, shop.live), false, &metrics);
    assert_int_equal(metrics.provisioned_invocations, 0); /* the alias was not invoked */
    world_deinit(&shop.world);
}

static void test_alias_of_a_provisioned_version_uses_its_units(void **state)
{
    struct world_request request = {.duration_ns = NS_PER_MS};
    struct shop shop;
    int32_t number;

    (void)state;
    open_shop(&shop, NULL);
    assert_int_equal(core_function_set_reserved(shop.function, 1, &number), COUNTING_OK);
    provision(&shop, shop.one, NULL, 1);
    assert_int_equal(world_invoke(&shop.world, shop.latest, &request), CORE_THROTTLED);
    assert_int_equal(request.throttle.reason, COUNTING_REASON_RESERVED_CONCURRENCY);
    assert_int_equal(world_invoke_alias(&shop.world, shop.live, &request), CORE_SERVED);
    world_deinit(&shop.world);
}

/* ---- spilling ---- */

static void test_second_of_two_overlapping_requests_spills(void **state)
{
    struct world_request a = {.duration_ns = NS_PER_S}, b = {.duration_ns = NS_PER_S};
    struct core_provisioned_metrics metrics;
    struct shop shop;

    (void)state;
    open_shop(&shop, NULL);
    provision(&shop, shop.one, NULL, 1);
    assert_int_equal(world_invoke(&shop.world, shop.one, &a), CORE_SERVED);
    assert_int_equal(world_invoke(&shop.world, shop.one, &b), CORE_WAITING);
    assert_true(b.core.spilled);
    run_for(&shop, 500 * NS_PER_MS);
    assert_int_equal(b.core.environment->origin, CORE_ON_DEMAND);
    core_provisioned_read_metrics(of(shop.one, NULL), true, &metrics);
    assert_int_equal(metrics.provisioned_invocations, 1);
    assert_int_equal(metrics.spillover_invocations, 1);
    assert_int_equal(metrics.executions, 1);
    run_for(&shop, NS_PER_S);
    core_provisioned_read_metrics(of(shop.one, NULL), false, &metrics);
    assert_int_equal(metrics.executions, 0);
    assert_int_equal(metrics.executions_max, 1);
    world_deinit(&shop.world);
}

static void test_over_its_rate_requests_run_on_demand_beside_idle_provisioned(void **state)
{
    struct world_request requests[12] = {0};
    struct shop shop;

    (void)state;
    open_shop(&shop, NULL);
    provision(&shop, shop.one, NULL, 1);
    for (int i = 0; i < 12; i++) {
        requests[i].duration_ns = NS_PER_MS;
        assert_int_equal(world_invoke(&shop.world, shop.one, &requests[i]), i < 10 ? CORE_SERVED : CORE_WAITING);
        run_for(&shop, 2 * NS_PER_MS);
        assert_int_equal(counts(shop.one).idle_provisioned, 1);
    }
    assert_int_equal(shop.world.starts, 3);
    run_for(&shop, NS_PER_S);
    assert_int_equal(requests[11].outcome, CORE_SERVED);
    assert_int_equal(requests[10].environment, 1);
    assert_int_equal(requests[11].environment, 1); /* free again before 2 was ready */
    world_deinit(&shop.world);
}

/* One on-demand environment is busy with `running`, one provisioned is idle, and the rate of the PC is used up. */
static struct core_environment *use_up_rate(struct shop *shop, struct world_request *running)
{
    struct core_environment *environment;

    running->duration_ns = 50 * NS_PER_MS;
    world_invoke(&shop->world, shop->one, running);
    run_for(shop, 100 * NS_PER_MS);
    environment = running->core.environment;
    shop->world.automatic = false;
    put(shop, shop->one, NULL, 1);
    world_pass(&shop->world, 0);
    world_ready(&shop->world, world_last_started(&shop->world));
    for (int i = 0; i < 10; i++) {
        struct world_request quick = {0};
        world_invoke(&shop->world, shop->one, &quick);
        world_finish(&shop->world, &quick);
    }
    return environment;
}

static void test_over_its_rate_request_still_takes_an_on_demand_environment_that_comes_free(void **state)
{
    struct world_request running = {0}, over = {0};
    struct core_environment *environment;
    struct shop shop;

    (void)state;
    open_shop(&shop, NULL);
    environment = use_up_rate(&shop, &running);
    assert_int_equal(world_invoke(&shop.world, shop.one, &over), CORE_WAITING);
    world_finish(&shop.world, &running);
    assert_ptr_equal(over.core.environment, environment);
    world_ready(&shop.world, world_last_started(&shop.world)); /* what was made for it is left over */
    assert_int_equal(world_last_started(&shop.world)->state, CORE_ENVIRONMENT_IDLE);
    world_deinit(&shop.world);
}

static void test_oldest_is_served_first_whether_over_its_rate_or_not(void **state)
{
    for (int over_comes_first = 0; over_comes_first < 2; over_comes_first++) {
        struct world_request running = {0}, on_provisioned = {0}, over = {0};
        struct world_request exempt = {.core.asynchronous = true};
        struct world_request *oldest = over_comes_first ? &over : &exempt, *other = over_comes_first ? &exempt : &over;
        struct core_environment *environment;
        struct shop shop;

        (void)state;
        open_shop(&shop, NULL);
        environment = use_up_rate(&shop, &running);
        on_provisioned.core.asynchronous = true;
        assert_int_equal(world_invoke(&shop.world, shop.one, &on_provisioned), CORE_SERVED);
        assert_int_equal(world_invoke(&shop.world, shop.one, oldest), CORE_WAITING);
        assert_int_equal(world_invoke(&shop.world, shop.one, other), CORE_WAITING);
        world_finish(&shop.world, &running);
        assert_ptr_equal(oldest->core.environment, environment);
        assert_int_equal(other->core.state, CORE_REQUEST_WAITING);
        world_deinit(&shop.world);
    }
}

static void test_requests_in_flight_survive_the_deletion_of_their_configuration(void **state)
{
    struct world_request running = {.duration_ns = NS_PER_S}, waiting = {.duration_ns = NS_PER_S};
    struct shop shop;

    (void)state;
    open_shop(&shop, NULL);
    provision(&shop, shop.one, NULL, 1);
    world_invoke(&shop.world, shop.one, &running);
    world_invoke(&shop.world, shop.one, &waiting);
    core_provisioned_delete(shop.world.account, &(struct core_qualifier){.version = shop.one}, shop.world.now_ns);
    put(&shop, shop.one, NULL, 2); /* a new one beside the old */
    run_for(&shop, 5 * NS_PER_S);
    assert_int_equal(waiting.core.state, CORE_REQUEST_DONE);
    assert_state(of(shop.one, NULL), CORE_PROVISIONED_READY, 2, 2, 2);
    world_deinit(&shop.world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_put_changes_nothing),
        cmocka_unit_test(test_failing_init_is_tried_six_more_times),
        cmocka_unit_test(test_only_failures_in_a_row_count),
        cmocka_unit_test(test_put_after_failure_begins_anew),
        cmocka_unit_test(test_full_machine_is_tried_again_and_is_no_failure),
        cmocka_unit_test(test_start_that_the_machine_fails_is_tried_again_after_a_second),
        cmocka_unit_test(test_nothing_serves_until_all_is_allocated),
        cmocka_unit_test(test_pace_is_six_thousand_a_minute),
        cmocka_unit_test(test_pace_is_shared_by_the_function_and_not_by_the_account),
        cmocka_unit_test(test_pace_is_not_saved_up),
        cmocka_unit_test(test_allocation_starts_after_the_delay),
        cmocka_unit_test(test_last_put_wins),
        cmocka_unit_test(test_raising_keeps_what_serves),
        cmocka_unit_test(test_lowering_stops_idle_ones_and_spares_busy_ones),
        cmocka_unit_test(test_dead_environment_is_replaced_and_status_stays_ready),
        cmocka_unit_test(test_retired_environment_stops_and_is_replaced),
        cmocka_unit_test(test_busy_environment_that_is_retired_stops_after_its_request),
        cmocka_unit_test(test_provisioned_environments_are_never_reclaimed),
        cmocka_unit_test(test_delete_gives_everything_back),
        cmocka_unit_test(test_removed_alias_gives_its_provisioned_back),
        cmocka_unit_test(test_function_removed_during_allocation_leaves_nothing),
        cmocka_unit_test(test_weights_divide_provisioned),
        cmocka_unit_test(test_moved_alias_takes_its_provisioned_along),
        cmocka_unit_test(test_update_that_moves_nothing_allocates_nothing),
        cmocka_unit_test(test_version_behind_a_provisioned_alias_runs_provisioned),
        cmocka_unit_test(test_alias_of_a_provisioned_version_uses_its_units),
        cmocka_unit_test(test_second_of_two_overlapping_requests_spills),
        cmocka_unit_test(test_over_its_rate_requests_run_on_demand_beside_idle_provisioned),
        cmocka_unit_test(test_over_its_rate_request_still_takes_an_on_demand_environment_that_comes_free),
        cmocka_unit_test(test_oldest_is_served_first_whether_over_its_rate_or_not),
        cmocka_unit_test(test_requests_in_flight_survive_the_deletion_of_their_configuration),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
