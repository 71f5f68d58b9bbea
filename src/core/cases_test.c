/* The worked cases of the concurrency model, under a virtual clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/test_world.h"

static struct core_limits with_concurrency(int32_t concurrency)
{
    struct core_limits limits = core_limits_default();

    limits.concurrency = concurrency;
    return limits;
}

static struct world_request *requests_new(size_t count, int64_t duration_ns)
{
    struct world_request *requests = calloc(count, sizeof(*requests));

    assert_non_null(requests);
    for (size_t i = 0; i < count; i++)
        requests[i].duration_ns = duration_ns;
    return requests;
}

/* How many have this outcome. */
static int count_outcome(const struct world_request *requests, size_t count, int outcome)
{
    int found = 0;

    for (size_t i = 0; i < count; i++)
        found += requests[i].outcome == outcome;
    return found;
}

static int count_throttled(const struct world_request *requests, size_t count, enum counting_reason reason)
{
    int found = 0;

    for (size_t i = 0; i < count; i++)
        found += requests[i].outcome == CORE_THROTTLED && requests[i].throttle.reason == reason;
    return found;
}

/* Invokes all of them at this moment. */
static void burst(struct world *world, struct core_version *version, struct world_request *requests, size_t count)
{
    for (size_t i = 0; i < count; i++)
        world_invoke(world, version, &requests[i]);
}

static void reserve(struct core_version *version, int32_t count)
{
    int32_t number;

    assert_int_equal(core_function_set_reserved(core_version_function(version), count, &number), COUNTING_OK);
}

static struct core_version *published(struct world *world, const char *name)
{
    return world_add_version(core_version_function(world_add_function(world, name)), "1");
}

static void provision(struct world *world, struct core_version *version, int32_t count)
{
    struct core_qualifier qualifier = {.version = version};
    int32_t number;

    assert_int_equal(core_provisioned_put(world->account, &qualifier, count, world->now_ns, &number), 0);
    world_run_until(world, world->now_ns + 60 * NS_PER_S);
}

static void test_case_1_ten_requests_on_six_environments(void **state)
{
    /* Init 1 s, 4 s each: A is free at 5, B at 6, C at 7, D at 8, E at 9. */
    static const int64_t arrival_ms[10] = {0, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 7500, 8000};
    static const int environment[10] = {0, 1, 2, 3, 4, 0, 1, 2, 5, 3};
    struct core_limits limits = core_limits_default();
    struct world_request requests[10] = {0};
    struct core_version *version;
    struct world world;
    int64_t start_ns;

    (void)state;
    limits.mode = ASSIGNMENT_STRICT; /* request 9 waits for F although D comes free first */
    world_init(&world, &limits);
    world.automatic = true;
    world.init_ns = NS_PER_S;
    start_ns = world.now_ns;
    version = world_add_function(&world, "f");
    for (int i = 0; i < 10; i++) {
        requests[i].duration_ns = 4 * NS_PER_S;
        world_at(&world, start_ns + arrival_ms[i] * NS_PER_MS, version, NULL, &requests[i]);
    }
    world_run_until(&world, start_ns + 60 * NS_PER_S);
    for (int i = 0; i < 10; i++)
        assert_int_equal(requests[i].environment, environment[i]);
    assert_int_equal(world.starts, 6);
    world_deinit(&world);
}

static void test_case_2_reservations_throttle_beside_unused_capacity(void **state)
{
    struct world_request *orange = requests_new(401, NS_PER_S), *rest = requests_new(201, NS_PER_S);
    struct core_version *blue_function, *orange_function, *other;
    struct world world;

    (void)state;
    world_init(&world, NULL);
    world.validate = false;
    blue_function = world_add_function(&world, "blue");
    orange_function = world_add_function(&world, "orange");
    other = world_add_function(&world, "other");
    reserve(blue_function, 400);
    reserve(orange_function, 400);
    burst(&world, orange_function, orange, 401);
    assert_int_equal(count_outcome(orange, 400, CORE_WAITING), 400);
    assert_int_equal(orange[400].outcome, CORE_THROTTLED);
    assert_int_equal(orange[400].throttle.reason, COUNTING_REASON_RESERVED_CONCURRENCY);
    assert_int_equal(orange[400].throttle.limit, 400);
    burst(&world, other, rest, 201);
    assert_int_equal(count_outcome(rest, 200, CORE_WAITING), 200);
    assert_int_equal(rest[200].throttle.reason, COUNTING_REASON_CONCURRENCY);
    assert_int_equal(rest[200].throttle.limit, 200);
    core_validate(world.account);
    world_deinit(&world);
    free(orange);
    free(rest);
}

static void test_case_3_provisioned_without_reservation_spills_to_the_account_limit(void **state)
{
    struct world_request *requests = requests_new(1001, 60 * NS_PER_S);
    struct core_version *orange;
    struct world world;

    (void)state;
    world_init(&world, NULL);
    world.automatic = true;
    world.validate = false;
    world.init_ns = 600 * NS_PER_MS;
    orange = published(&world, "orange");
    provision(&world, orange, 400);
    burst(&world, orange, requests, 1001);
    assert_int_equal(count_outcome(requests, 400, CORE_SERVED), 400);
    assert_int_equal(count_outcome(requests + 400, 600, CORE_WAITING), 600);
    assert_int_equal(requests[1000].outcome, CORE_THROTTLED);
    assert_int_equal(requests[1000].throttle.reason, COUNTING_REASON_CONCURRENCY);
    world_run_until(&world, world.now_ns + NS_PER_S);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(requests[i].core.environment->origin, i < 400 ? CORE_PROVISIONED : CORE_ON_DEMAND);
        assert_int_equal(requests[i].core.cold, i >= 400);
    }
    core_validate(world.account);
    world_deinit(&world);
    free(requests);
}

static void test_case_4_provisioned_inside_a_reservation_stops_at_it(void **state)
{
    struct world_request *requests = requests_new(401, 60 * NS_PER_S);
    struct core_account_metrics metrics;
    struct core_version *orange;
    struct world world;

    (void)state;
    world_init(&world, NULL);
    world.automatic = true;
    world.validate = false;
    orange = published(&world, "orange");
    reserve(orange, 400);
    provision(&world, orange, 200);
    burst(&world, orange, requests, 401);
    assert_int_equal(count_outcome(requests, 200, CORE_SERVED), 200);
    assert_int_equal(count_outcome(requests + 200, 200, CORE_WAITING), 200);
    assert_int_equal(requests[400].outcome, CORE_THROTTLED);
    assert_int_equal(requests[400].throttle.reason, COUNTING_REASON_RESERVED_CONCURRENCY);
    core_account_read_metrics(world.account, false, &metrics);
    assert_int_equal(metrics.concurrency, 400);
    assert_int_equal(metrics.claimed, 400);
    world_deinit(&world);
    free(requests);
}

static void test_case_5_short_requests_meet_the_rate_before_the_concurrency(void **state)
{
    enum { RATE = 20000, SECONDS = 3, COUNT = RATE * SECONDS };
    struct world_request *requests = requests_new(COUNT, 50 * NS_PER_MS);
    struct core_version *version;
    struct world world;
    int64_t start_ns;

    (void)state;
    world_init(&world, NULL);
    world.automatic = true;
    world.validate = false;
    start_ns = world.now_ns;
    version = world_add_function(&world, "f");
    for (int i = 0; i < COUNT; i++)
        world_at(&world, start_ns + i * (NS_PER_S / RATE), version, NULL, &requests[i]);
    world_run_until(&world, start_ns + (SECONDS + 1) * NS_PER_S);
    for (int second = 0; second < SECONDS; second++) {
        struct world_request *part = requests + second * RATE;
        assert_int_equal(count_outcome(part, RATE, CORE_SERVED), 10000);
        assert_int_equal(count_throttled(part, RATE, COUNTING_REASON_RATE), 10000);
    }
    core_validate(world.account);
    world_deinit(&world);
    free(requests);
}

static void test_case_6_utilisation_and_executions_of_provisioned(void **state)
{
    struct world_request busy[60] = {0}, slow[3] = {0};
    struct core_provisioned_metrics metrics;
    struct core_provisioned *provisioned;
    struct core_version *version;
    struct world world;
    int64_t start_ns;

    (void)state;
    world_init(&world, NULL);
    world.automatic = true;
    version = published(&world, "f");
    provision(&world, version, 100);
    provisioned = core_provisioned_find(&(struct core_qualifier){.version = version});
    for (int i = 0; i < 60; i++) {
        busy[i].duration_ns = NS_PER_S;
        world_invoke(&world, version, &busy[i]);
    }
    core_provisioned_read_metrics(provisioned, true, &metrics);
    assert_int_equal(metrics.executions_max, 60); /* of 100: ProvisionedConcurrencyUtilization 0.6 */
    world_run_until(&world, world.now_ns + 60 * NS_PER_S);
    core_provisioned_read_metrics(provisioned, true, &metrics);

    /* One request a minute of two minutes each; the third minute is looked at. */
    start_ns = world.now_ns;
    for (int i = 0; i < 3; i++) {
        slow[i].duration_ns = 120 * NS_PER_S - 1;
        world_at(&world, start_ns + i * 60 * NS_PER_S, version, NULL, &slow[i]);
    }
    world_run_until(&world, start_ns + 120 * NS_PER_S - 1);
    core_provisioned_read_metrics(provisioned, true, &metrics);
    int64_t before = metrics.provisioned_invocations;
    world_run_until(&world, start_ns + 180 * NS_PER_S - 1);
    core_provisioned_read_metrics(provisioned, false, &metrics);
    assert_int_equal(metrics.executions_max, 2);
    assert_int_equal(metrics.provisioned_invocations - before, 1);
    world_deinit(&world);
}

static void test_case_7_a_step_to_five_thousand_is_paced_by_the_scaling_rate(void **state)
{
    enum { WANTED = 5000 };
    struct core_limits limits = with_concurrency(10000);
    struct world_request *requests = requests_new(WANTED, 3600 * NS_PER_S);
    struct core_version *version;
    struct world world;
    int served = 0;

    (void)state;
    world_init(&world, &limits);
    world.automatic = true;
    world.validate = false;
    version = world_add_function(&world, "f");
    for (int second = 0; second <= 40; second++) {
        for (int i = served; i < WANTED; i++)
            world_invoke(&world, version, &requests[i]);
        world_run_until(&world, world.now_ns);
        served = count_outcome(requests, WANTED, CORE_SERVED);
        assert_int_equal(served, 1000 + 100 * second);
        assert_int_equal(count_throttled(requests, WANTED, COUNTING_REASON_RATE), WANTED - served);
        world_run_until(&world, world.now_ns + NS_PER_S);
    }
    assert_int_equal(world.starts, 5000);
    core_validate(world.account);
    world_deinit(&world);
    free(requests);
}

static void test_case_8_the_shops_friday_in_flight(void **state)
{
    /* 2,000 requests/s of 150 ms: 300 in flight, no spillover; 4,500/s: 675 in flight, 275 of them spilled. */
    enum { CALM = 2000, RUSH = 4500 };
    struct core_limits limits = with_concurrency(3000);
    struct world_request *calm = requests_new(CALM, 150 * NS_PER_MS), *rush = requests_new(3 * RUSH, 150 * NS_PER_MS);
    struct core_provisioned_metrics metrics;
    struct core_function_metrics figures;
    struct core_provisioned *provisioned;
    struct core_version *version;
    struct core_alias *prod;
    struct world world;
    int64_t start_ns, invocations;
    int32_t number;

    (void)state;
    world_init(&world, &limits);
    world.automatic = true;
    world.validate = false;
    world.init_ns = 600 * NS_PER_MS;
    version = published(&world, "shop");
    prod = world_add_alias(core_version_function(version), "prod", version);
    reserve(version, 800);
    assert_int_equal(
        core_provisioned_put(world.account, &(struct core_qualifier){.alias = prod}, 400, world.now_ns, &number), 0);
    world_run_until(&world, world.now_ns + 60 * NS_PER_S);
    provisioned = core_provisioned_find(&(struct core_qualifier){.alias = prod});

    start_ns = world.now_ns;
    for (int64_t i = 0; i < CALM; i++)
        world_at(&world, start_ns + i * NS_PER_S / CALM, NULL, prod, &calm[i]);
    world_run_until(&world, start_ns + 10 * NS_PER_S);
    core_provisioned_read_metrics(provisioned, true, &metrics);
    assert_int_equal(metrics.executions_max, 300); /* of 400: utilisation 0.75 */
    assert_int_equal(metrics.spillover_invocations, 0);
    invocations = metrics.provisioned_invocations;
    assert_int_equal(invocations, CALM);

    start_ns = world.now_ns;
    for (int64_t i = 0; i < 3 * RUSH; i++)
        world_at(&world, start_ns + i * NS_PER_S / RUSH, NULL, prod, &rush[i]);
    world_run_until(&world, start_ns + 2 * NS_PER_S);
    core_function_read_metrics(core_version_function(version), true, &figures);
    world_run_until(&world, start_ns + 3 * NS_PER_S - 1);
    core_function_read_metrics(core_version_function(version), false, &figures);
    assert_int_equal(figures.concurrency_max, 675);
    core_provisioned_read_metrics(provisioned, false, &metrics);
    assert_int_equal(metrics.executions, 400);
    assert_int_equal(figures.concurrency - metrics.executions, 275);
    core_validate(world.account);
    world_deinit(&world);
    free(calm);
    free(rush);
}

static void test_case_8_the_801st_gets_the_reserved_reason(void **state)
{
    struct world_request *requests = requests_new(850, 10 * NS_PER_S);
    struct core_limits limits = with_concurrency(3000);
    struct core_version *version;
    struct world world;

    (void)state;
    world_init(&world, &limits);
    world.automatic = true;
    world.validate = false;
    version = published(&world, "shop");
    reserve(version, 800);
    provision(&world, version, 400);
    burst(&world, version, requests, 850);
    assert_int_equal(count_throttled(requests, 800, COUNTING_REASON_RESERVED_CONCURRENCY), 0);
    assert_int_equal(count_throttled(requests + 800, 50, COUNTING_REASON_RESERVED_CONCURRENCY), 50);
    world_deinit(&world);
    free(requests);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_case_1_ten_requests_on_six_environments),
        cmocka_unit_test(test_case_2_reservations_throttle_beside_unused_capacity),
        cmocka_unit_test(test_case_3_provisioned_without_reservation_spills_to_the_account_limit),
        cmocka_unit_test(test_case_4_provisioned_inside_a_reservation_stops_at_it),
        cmocka_unit_test(test_case_5_short_requests_meet_the_rate_before_the_concurrency),
        cmocka_unit_test(test_case_6_utilisation_and_executions_of_provisioned),
        cmocka_unit_test(test_case_7_a_step_to_five_thousand_is_paced_by_the_scaling_rate),
        cmocka_unit_test(test_case_8_the_shops_friday_in_flight),
        cmocka_unit_test(test_case_8_the_801st_gets_the_reserved_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
