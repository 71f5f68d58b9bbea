#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/placement.h"

static struct placement *new_placement(void)
{
    struct placement *placement;

    assert_int_equal(placement_new(&placement), 0);
    return placement;
}

static struct placement_worker *add(struct placement *placement, unsigned zone, int64_t memory_mib, int64_t count)
{
    struct placement_worker_config config = {.zone = zone, .memory_mib = memory_mib, .environments = count};
    struct placement_worker *worker;

    assert_int_equal(placement_add_worker(placement, &config, &worker), 0);
    return worker;
}

static void test_without_workers_everything_is_full(void **state)
{
    struct placement *placement = new_placement();
    struct placement_spread spread = {0};
    struct placement_lease lease = {0};

    (void)state;
    assert_int_equal(placement_acquire(placement, &spread, 1, &lease), PLACEMENT_FULL);
    assert_null(lease.worker);
    placement_free(placement);
}

static void test_zone_out_of_range_is_refused(void **state)
{
    struct placement *placement = new_placement();
    struct placement_worker_config config = {.zone = PLACEMENT_ZONES};
    struct placement_worker *worker;

    (void)state;
    assert_int_equal(placement_add_worker(placement, &config, &worker), -EINVAL);
    placement_free(placement);
}

static void test_memory_is_never_overfilled(void **state)
{
    struct placement *placement = new_placement();
    struct placement_worker *worker = add(placement, 0, 300, 0);
    struct placement_spread spread = {0};
    struct placement_lease a = {0}, b = {0}, c = {0};

    (void)state;
    assert_int_equal(placement_acquire(placement, &spread, 128, &a), PLACEMENT_PLACED);
    assert_int_equal(placement_acquire(placement, &spread, 172, &b), PLACEMENT_PLACED);
    assert_int_equal(placement_acquire(placement, &spread, 1, &c), PLACEMENT_FULL);
    assert_int_equal(worker->used_memory_mib, 300);
    placement_release(&spread, &a);
    assert_int_equal(placement_acquire(placement, &spread, 128, &c), PLACEMENT_PLACED);
    placement_release(&spread, &b);
    placement_release(&spread, &c);
    assert_int_equal(worker->used_memory_mib, 0);
    placement_free(placement);
}

static void test_number_of_environments_is_never_exceeded(void **state)
{
    struct placement *placement = new_placement();
    struct placement_spread spread = {0};
    struct placement_lease a = {0}, b = {0};

    (void)state;
    add(placement, 0, 0, 1);
    assert_int_equal(placement_acquire(placement, &spread, 1, &a), PLACEMENT_PLACED);
    assert_int_equal(placement_acquire(placement, &spread, 1, &b), PLACEMENT_FULL);
    placement_release(&spread, &a);
    placement_free(placement);
}

static void test_release_of_an_empty_lease_does_nothing(void **state)
{
    struct placement_spread spread = {0};
    struct placement_lease lease = {0};

    (void)state;
    placement_release(&spread, &lease);
    placement_release(&spread, &lease);
    assert_int_equal(spread.zones[0], 0);
}

static void test_versions_are_spread_over_zones(void **state)
{
    struct placement *placement = new_placement();
    struct placement_spread spread = {0};
    struct placement_lease leases[9] = {0};

    (void)state;
    add(placement, 0, 1000, 0);
    add(placement, 1, 100000, 0); /* far emptier, and still only a third */
    add(placement, 2, 1000, 0);
    for (size_t i = 0; i < ARRAY_SIZE(leases); i++)
        assert_int_equal(placement_acquire(placement, &spread, 10, &leases[i]), PLACEMENT_PLACED);
    for (unsigned zone = 0; zone < 3; zone++)
        assert_int_equal(spread.zones[zone], 3);
    for (size_t i = 0; i < ARRAY_SIZE(leases); i++)
        placement_release(&spread, &leases[i]);
    placement_free(placement);
}

static void test_a_full_zone_is_passed_over(void **state)
{
    struct placement *placement = new_placement();
    struct placement_spread spread = {0};
    struct placement_lease leases[3] = {0};

    (void)state;
    add(placement, 0, 0, 1);
    add(placement, 1, 0, 2);
    for (size_t i = 0; i < ARRAY_SIZE(leases); i++)
        assert_int_equal(placement_acquire(placement, &spread, 10, &leases[i]), PLACEMENT_PLACED);
    assert_int_equal(spread.zones[1], 2);
    for (size_t i = 0; i < ARRAY_SIZE(leases); i++)
        placement_release(&spread, &leases[i]);
    placement_free(placement);
}

static void test_the_least_loaded_worker_of_the_zone_is_taken(void **state)
{
    struct placement *placement = new_placement();
    struct placement_worker *small = add(placement, 0, 100, 0), *large = add(placement, 0, 1000, 0);
    struct placement_spread spread = {0};
    struct placement_lease leases[11] = {0};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(leases); i++)
        assert_int_equal(placement_acquire(placement, &spread, 50, &leases[i]), PLACEMENT_PLACED);
    assert_int_equal(small->used_environments, 1); /* half full after one; the large one holds ten by then */
    assert_int_equal(large->used_environments, 10);
    for (size_t i = 0; i < ARRAY_SIZE(leases); i++)
        placement_release(&spread, &leases[i]);
    placement_free(placement);
}

static void test_a_closed_worker_takes_nothing_and_gives_back_what_it_has(void **state)
{
    struct placement *placement = new_placement();
    struct placement_worker *closed = add(placement, 0, 0, 0), *open = add(placement, 0, 0, 1);
    struct placement_spread spread = {0};
    struct placement_lease a = {0}, b = {0}, c = {0};

    (void)state;
    assert_int_equal(placement_acquire(placement, &spread, 1, &a), PLACEMENT_PLACED);
    assert_ptr_equal(a.worker, closed);
    placement_close_worker(closed);
    assert_int_equal(placement_acquire(placement, &spread, 1, &b), PLACEMENT_PLACED);
    assert_ptr_equal(b.worker, open);
    assert_int_equal(placement_acquire(placement, &spread, 1, &c), PLACEMENT_FULL);
    placement_release(&spread, &a);
    placement_release(&spread, &b);
    assert_int_equal(closed->used_environments, 0);
    placement_free(placement);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_workers_everything_is_full),
        cmocka_unit_test(test_zone_out_of_range_is_refused),
        cmocka_unit_test(test_memory_is_never_overfilled),
        cmocka_unit_test(test_number_of_environments_is_never_exceeded),
        cmocka_unit_test(test_release_of_an_empty_lease_does_nothing),
        cmocka_unit_test(test_versions_are_spread_over_zones),
        cmocka_unit_test(test_a_full_zone_is_passed_over),
        cmocka_unit_test(test_the_least_loaded_worker_of_the_zone_is_taken),
        cmocka_unit_test(test_a_closed_worker_takes_nothing_and_gives_back_what_it_has),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
