#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/counting.h"

#include <string.h>

#define START_NS (1000 * NS_PER_S)

struct fixture {
    struct counting_account account;
    struct counting_function f, g;
    struct counting_slice slice; /* of f */
    struct counting_receipt receipts[20000];
    size_t taken;
    struct counting_throttle throttle;
    struct counting_grant grant;
};

static struct fixture *new_fixture(int32_t concurrency)
{
    struct fixture *x = calloc(1, sizeof(*x));

    assert_non_null(x);
    counting_account_init(&x->account, concurrency, 100, 1000);
    counting_function_init(&x->f, &x->account);
    counting_function_init(&x->g, &x->account);
    counting_slice_init(&x->slice, &x->f);
    return x;
}

/* Admits one, and keeps its receipt. False: throttled, see x->throttle. */
static bool admit(struct fixture *x, struct counting_function *function, struct counting_slice *slice, int64_t now_ns)
{
    if (counting_check(function, slice, true, now_ns, &x->grant, &x->throttle) == COUNTING_THROTTLED)
        return false;
    counting_take(&x->receipts[x->taken++], &x->grant, now_ns);
    return true;
}

/* How many of `count` pass. */
static int admit_many(struct fixture *x, struct counting_function *function, struct counting_slice *slice, int count,
                      int64_t now_ns)
{
    int admitted = 0;

    while (count--)
        admitted += admit(x, function, slice, now_ns);
    return admitted;
}

static void release_all(struct fixture *x)
{
    while (x->taken)
        counting_release(&x->receipts[--x->taken]);
}

/* Admits and ends at once; how many of `count` pass. */
static int pass_many(struct fixture *x, struct counting_function *function, struct counting_slice *slice, int count,
                     int64_t now_ns)
{
    int admitted = 0;

    while (count--) {
        if (!admit(x, function, slice, now_ns))
            continue;
        admitted++;
        counting_release(&x->receipts[--x->taken]);
    }
    return admitted;
}

static void set_reserved(struct counting_function *function, int32_t count)
{
    int32_t number;

    assert_int_equal(counting_set_reserved(function, count, &number), COUNTING_OK);
}

static void assert_throttle(const struct fixture *x, enum counting_kind kind, const char *reason, int limit, int used)
{
    assert_string_equal(counting_kind_name(x->throttle.kind), counting_kind_name(kind));
    assert_string_equal(counting_reason_name(x->throttle.reason), reason);
    assert_int_equal(x->throttle.limit, limit);
    assert_int_equal(x->throttle.used, used);
}

#define CONCURRENCY          "ConcurrentInvocationLimitExceeded"
#define RESERVED_CONCURRENCY "ReservedFunctionConcurrentInvocationLimitExceeded"
#define RATE                 "FunctionInvocationRateLimitExceeded"
#define RESERVED_RATE        "ReservedFunctionInvocationRateLimitExceeded"

/* ---- concurrency ---- */

static void test_account_limit_is_never_exceeded(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(1000);

    (void)state;
    assert_int_equal(admit_many(x, &x->f, NULL, 600, START_NS), 600);
    assert_int_equal(admit_many(x, &x->g, NULL, 600, START_NS), 400);
    assert_throttle(x, COUNTING_KIND_UNRESERVED, CONCURRENCY, 1000, 1000);
    counting_release(&x->receipts[--x->taken]);
    assert_true(admit(x, &x->f, NULL, START_NS));
    assert_false(admit(x, &x->f, NULL, START_NS));
}

static void test_reserved_zero_throttles_always(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(1000);

    (void)state;
    set_reserved(&x->f, 0);
    assert_false(admit(x, &x->f, NULL, START_NS));
    assert_throttle(x, COUNTING_KIND_RESERVED, RESERVED_CONCURRENCY, 0, 0);
    assert_true(admit(x, &x->g, NULL, START_NS));
}

static void test_reserved_zero_throttles_provisioned_too(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(1000);

    (void)state;
    counting_resize_slice(&x->slice, 5);
    set_reserved(&x->f, 0);
    assert_false(admit(x, &x->f, &x->slice, START_NS));
    assert_string_equal(counting_reason_name(x->throttle.reason), RESERVED_CONCURRENCY);
}

static void test_reservation_caps_its_function_and_sets_capacity_aside(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(1000);

    (void)state;
    set_reserved(&x->f, 400);
    assert_int_equal(admit_many(x, &x->g, NULL, 1000, START_NS), 600);
    assert_throttle(x, COUNTING_KIND_UNRESERVED, CONCURRENCY, 600, 600);
    assert_int_equal(admit_many(x, &x->f, NULL, 1000, START_NS), 400);
    assert_throttle(x, COUNTING_KIND_RESERVED, RESERVED_CONCURRENCY, 400, 400);
    assert_int_equal(x->account.in_flight, 1000);
}

static void test_provisioned_units_spill_into_the_pool(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(1000);

    (void)state;
    counting_resize_slice(&x->slice, 400);
    assert_int_equal(admit_many(x, &x->f, &x->slice, 400, START_NS), 400);
    assert_false(x->grant.spilled);
    assert_int_equal(x->account.unreserved_in_flight, 0);
    assert_int_equal(admit_many(x, &x->f, &x->slice, 601, START_NS), 600);
    assert_true(x->grant.spilled);
    assert_throttle(x, COUNTING_KIND_UNRESERVED, CONCURRENCY, 600, 600);
}

static void test_provisioned_is_out_of_reach_for_others(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(1000);

    (void)state;
    counting_resize_slice(&x->slice, 400);
    assert_int_equal(admit_many(x, &x->g, NULL, 1000, START_NS), 600);
    assert_int_equal(admit_many(x, &x->f, NULL, 1, START_NS), 0); /* of f, but not on its slice */
    assert_int_equal(admit_many(x, &x->f, &x->slice, 1000, START_NS), 400);
}

static void test_provisioned_spills_into_the_rest_of_the_reservation(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(1000);

    (void)state;
    set_reserved(&x->f, 400);
    counting_resize_slice(&x->slice, 200);
    assert_int_equal(counting_unreserved(&x->account), 600); /* PC lies inside RC */
    assert_int_equal(admit_many(x, &x->f, &x->slice, 1000, START_NS), 400);
    assert_throttle(x, COUNTING_KIND_RESERVED, RESERVED_CONCURRENCY, 400, 400);
}

static void test_reservation_equal_to_provisioned_leaves_nothing_for_latest(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(1000);

    (void)state;
    set_reserved(&x->f, 1);
    assert_true(admit(x, &x->f, NULL, START_NS));
    release_all(x);
    counting_resize_slice(&x->slice, 1);
    assert_false(admit(x, &x->f, NULL, START_NS + NS_PER_S));
    assert_throttle(x, COUNTING_KIND_RESERVED, RESERVED_CONCURRENCY, 1, 1);
    assert_true(admit(x, &x->f, &x->slice, START_NS + NS_PER_S));
}

static void test_claimed_counts_provisioned_of_reserved_functions_once(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(1000);
    struct counting_function other;
    struct counting_slice other_slice;

    (void)state;
    counting_function_init(&other, &x->account);
    counting_slice_init(&other_slice, &other);
    set_reserved(&x->f, 600);
    counting_resize_slice(&x->slice, 40);
    counting_resize_slice(&other_slice, 200);
    admit_many(x, &x->g, NULL, 100, START_NS);
    assert_int_equal(counting_claimed(&x->account), 900);
    assert_int_equal(counting_unreserved(&x->account), 200);
}

/* ---- releases and changes in flight ---- */

static void test_release_empties_every_counter(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(1000);

    (void)state;
    set_reserved(&x->g, 50);
    counting_resize_slice(&x->slice, 3);
    admit_many(x, &x->f, &x->slice, 10, START_NS);
    admit_many(x, &x->f, NULL, 10, START_NS);
    admit_many(x, &x->g, NULL, 10, START_NS);
    release_all(x);
    assert_int_equal(x->account.in_flight, 0);
    assert_int_equal(x->account.unreserved_in_flight, 0);
    assert_int_equal(x->f.in_flight + x->f.on_demand + x->g.in_flight + x->g.on_demand + x->slice.used, 0);
    assert_false(counting_holds(&x->receipts[0]));
}

static void test_reservation_lowered_below_in_flight_drains_first(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(1000);

    (void)state;
    set_reserved(&x->f, 50);
    admit_many(x, &x->f, NULL, 50, START_NS);
    set_reserved(&x->f, 20);
    assert_false(admit(x, &x->f, NULL, START_NS));
    assert_throttle(x, COUNTING_KIND_RESERVED, RESERVED_CONCURRENCY, 20, 50);
    while (x->taken > 20) {
        assert_false(admit(x, &x->f, NULL, START_NS));
        counting_release(&x->receipts[--x->taken]);
    }
    assert_false(admit(x, &x->f, NULL, START_NS));
    counting_release(&x->receipts[--x->taken]);
    assert_true(admit(x, &x->f, NULL, START_NS));
}

static void test_reservation_removed_in_flight_moves_units_to_the_pool(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(1000);

    (void)state;
    set_reserved(&x->f, 50);
    admit_many(x, &x->f, NULL, 50, START_NS);
    assert_int_equal(x->account.unreserved_in_flight, 0);
    counting_clear_reserved(&x->f);
    assert_int_equal(x->account.unreserved_in_flight, 50);
    assert_int_equal(admit_many(x, &x->g, NULL, 1000, START_NS), 950);
    release_all(x);
    assert_int_equal(x->account.unreserved_in_flight, 0);
}

static void test_reservation_set_in_flight_takes_units_along(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(1000);

    (void)state;
    admit_many(x, &x->f, NULL, 30, START_NS);
    set_reserved(&x->f, 40);
    assert_int_equal(x->account.unreserved_in_flight, 0);
    assert_int_equal(admit_many(x, &x->f, NULL, 20, START_NS), 10);
    release_all(x);
    assert_int_equal(x->f.on_demand, 0);
}

static void test_account_limit_holds_while_a_new_reservation_waits_for_its_units(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(1000);

    (void)state;
    admit_many(x, &x->g, NULL, 900, START_NS);
    set_reserved(&x->f, 500); /* leaves 500 unreserved, 900 are in flight there */
    assert_int_equal(admit_many(x, &x->f, NULL, 500, START_NS), 100);
    assert_throttle(x, COUNTING_KIND_ACCOUNT, CONCURRENCY, 1000, 1000);
    assert_false(admit(x, &x->g, NULL, START_NS));
    assert_throttle(x, COUNTING_KIND_UNRESERVED, CONCURRENCY, 500, 900);
}

static void test_provisioned_lowered_in_flight_counts_the_excess_as_spilled(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(1000);

    (void)state;
    counting_resize_slice(&x->slice, 100);
    admit_many(x, &x->f, &x->slice, 100, START_NS);
    counting_resize_slice(&x->slice, 30);
    assert_int_equal(x->account.unreserved_in_flight, 70);
    assert_int_equal(counting_claimed(&x->account), 100);
    counting_resize_slice(&x->slice, 80);
    assert_int_equal(x->account.unreserved_in_flight, 20);
    counting_resize_slice(&x->slice, 0);
    assert_int_equal(x->f.on_demand, 100);
    release_all(x);
    assert_int_equal(x->f.on_demand, 0);
    assert_int_equal(x->account.unreserved_in_flight, 0);
}

static void test_provisioned_put_inside_a_full_reservation_never_exceeds_it(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(1000);

    (void)state;
    set_reserved(&x->f, 10);
    admit_many(x, &x->f, NULL, 10, START_NS);
    counting_resize_slice(&x->slice, 5);
    assert_false(admit(x, &x->f, &x->slice, START_NS));
    assert_throttle(x, COUNTING_KIND_RESERVED, RESERVED_CONCURRENCY, 10, 15);
    counting_release(&x->receipts[--x->taken]);
    assert_true(admit(x, &x->f, &x->slice, START_NS));
    assert_ptr_equal(x->grant.slice, &x->slice);
    assert_int_equal(x->f.in_flight, 10);
}

static void test_limit_lowered_below_in_flight_drains_first(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(1000);

    (void)state;
    admit_many(x, &x->f, NULL, 500, START_NS);
    counting_account_set(&x->account, 400, 100, 1000);
    assert_false(admit(x, &x->f, NULL, START_NS));
    assert_throttle(x, COUNTING_KIND_UNRESERVED, CONCURRENCY, 400, 500);
}

/* ---- request rate ---- */

static void test_ten_times_the_account_limit_per_second(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(10);

    (void)state;
    assert_int_equal(pass_many(x, &x->f, NULL, 80, START_NS), 80);
    assert_int_equal(pass_many(x, &x->g, NULL, 80, START_NS), 20); /* both functions share it */
    assert_throttle(x, COUNTING_KIND_RATE, RATE, 100, 100);
}

static void test_ten_times_the_reservation_per_second(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(1000);

    (void)state;
    set_reserved(&x->f, 1);
    assert_int_equal(pass_many(x, &x->f, NULL, 30, START_NS), 10);
    assert_throttle(x, COUNTING_KIND_RESERVED_RATE, RESERVED_RATE, 10, 10);
    assert_int_equal(x->account.window.total, 0);
    assert_int_equal(pass_many(x, &x->g, NULL, 5, START_NS), 5);
}

static void test_ten_times_provisioned_then_spill(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(1000);

    (void)state;
    counting_resize_slice(&x->slice, 10);
    assert_int_equal(pass_many(x, &x->f, &x->slice, 100, START_NS), 100);
    assert_false(x->grant.spilled);
    assert_true(admit(x, &x->f, &x->slice, START_NS));
    assert_true(x->grant.spilled);
    assert_true(x->grant.spilled_by_rate);
    assert_null(x->grant.slice);
    assert_int_equal(x->account.unreserved_in_flight, 1);
    assert_int_equal(x->account.window.total, 101);
}

static void test_spill_by_concurrency_is_not_a_matter_of_rate(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(1000);

    (void)state;
    counting_resize_slice(&x->slice, 10);
    admit_many(x, &x->f, &x->slice, 11, START_NS);
    assert_true(x->grant.spilled);
    assert_false(x->grant.spilled_by_rate);
}

static void test_provisioned_requests_count_against_the_reservation_rate(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(1000);

    (void)state;
    set_reserved(&x->f, 2);
    counting_resize_slice(&x->slice, 1);
    assert_int_equal(pass_many(x, &x->f, &x->slice, 50, START_NS), 20);
    assert_throttle(x, COUNTING_KIND_RESERVED_RATE, RESERVED_RATE, 20, 20);
}

static void test_concurrency_is_named_before_rate(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(1000);

    (void)state;
    set_reserved(&x->f, 1);
    pass_many(x, &x->f, NULL, 9, START_NS);
    assert_true(admit(x, &x->f, NULL, START_NS));
    assert_false(admit(x, &x->f, NULL, START_NS)); /* over both */
    assert_throttle(x, COUNTING_KIND_RESERVED, RESERVED_CONCURRENCY, 1, 1);
}

static void test_throttled_requests_take_no_place_in_the_window(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(1000);

    (void)state;
    set_reserved(&x->f, 1);
    pass_many(x, &x->f, NULL, 1000, START_NS);
    assert_int_equal(pass_many(x, &x->f, NULL, 1000, START_NS + NS_PER_S), 10);
}

static void test_no_allowance_is_saved_up(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(1000);

    (void)state;
    set_reserved(&x->f, 1);
    assert_int_equal(pass_many(x, &x->f, NULL, 1000, START_NS + 3600 * NS_PER_S), 10);
    assert_int_equal(pass_many(x, &x->f, NULL, 1000, START_NS + 3600 * NS_PER_S + 500 * NS_PER_MS), 0);
}

static void test_the_second_slides_in_tenths(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(1000);

    (void)state;
    set_reserved(&x->f, 1);
    assert_int_equal(pass_many(x, &x->f, NULL, 4, START_NS), 4);
    assert_int_equal(pass_many(x, &x->f, NULL, 9, START_NS + 950 * NS_PER_MS), 6);
    assert_int_equal(pass_many(x, &x->f, NULL, 9, START_NS + 999 * NS_PER_MS), 0);
    assert_int_equal(pass_many(x, &x->f, NULL, 9, START_NS + 1000 * NS_PER_MS), 4); /* the first slot has gone */
    assert_int_equal(pass_many(x, &x->f, NULL, 9, START_NS + 1899 * NS_PER_MS), 0);
    assert_int_equal(pass_many(x, &x->f, NULL, 9, START_NS + 1900 * NS_PER_MS), 6);
}

static void test_asynchronous_requests_are_exempt_from_the_rate(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(1000);

    (void)state;
    set_reserved(&x->f, 1);
    pass_many(x, &x->f, NULL, 10, START_NS);
    assert_int_equal(counting_check(&x->f, NULL, false, START_NS, &x->grant, &x->throttle), COUNTING_ADMITTED);
    counting_take(&x->receipts[0], &x->grant, START_NS);
    assert_int_equal(x->f.window.total, 10);
    assert_int_equal(counting_check(&x->f, NULL, false, START_NS, &x->grant, &x->throttle), COUNTING_THROTTLED);
    assert_throttle(x, COUNTING_KIND_RESERVED, RESERVED_CONCURRENCY, 1, 1);
}

/* ---- scaling rate ---- */

static int scale(struct fixture *x, struct counting_function *function, int count, int64_t now_ns)
{
    int started = 0;

    while (count--) {
        if (counting_check_scaling(function, now_ns, &x->throttle) == COUNTING_THROTTLED)
            continue;
        counting_take_scaling(function, now_ns);
        started++;
    }
    return started;
}

static void test_thousand_environments_at_once_then_a_hundred_a_second(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(10000);

    (void)state;
    assert_int_equal(scale(x, &x->f, 5000, START_NS), 1000);
    assert_throttle(x, COUNTING_KIND_SCALING_RATE, RATE, 1000, 1000);
    for (int second = 1; second <= 20; second++)
        assert_int_equal(scale(x, &x->f, 5000, START_NS + second * NS_PER_S), 100);
}

static void test_scaling_rate_is_each_functions_own(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(10000);

    (void)state;
    assert_int_equal(scale(x, &x->f, 1001, START_NS), 1000);
    assert_int_equal(scale(x, &x->g, 1001, START_NS), 1000);
}

static void test_scaling_rate_never_saves_up_more_than_one_bucket(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(10000);

    (void)state;
    scale(x, &x->f, 1, START_NS);
    assert_int_equal(scale(x, &x->f, 5000, START_NS + 3600 * NS_PER_S), 1000);
}

static void test_scaling_rate_refills_continuously_without_rounding(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(10000);
    int started = 0;

    (void)state;
    counting_account_set(&x->account, 10000, 100, 3); /* one each 3.33... s */
    assert_int_equal(scale(x, &x->f, 5, START_NS), 3);
    for (int64_t step = 1; step <= 100000; step++)
        started += scale(x, &x->f, 1, START_NS + step * NS_PER_MS);
    assert_int_equal(started, 30);
}

static void test_scaling_throttle_of_a_reserved_function_has_the_reserved_reason(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(10000);

    (void)state;
    set_reserved(&x->f, 2000);
    scale(x, &x->f, 1001, START_NS);
    assert_throttle(x, COUNTING_KIND_SCALING_RATE, RESERVED_RATE, 1000, 1000);
}

static void test_scaling_rate_lowered_applies_at_once(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(10000);

    (void)state;
    scale(x, &x->f, 1, START_NS);
    counting_account_set(&x->account, 10000, 100, 20);
    assert_int_equal(scale(x, &x->f, 100, START_NS), 20);
}

/* ---- what may be set ---- */

static void assert_change(enum counting_change change, enum counting_change expected, const int32_t *number,
                          int32_t expected_number)
{
    assert_int_equal(change, expected);
    if (change != COUNTING_OK)
        assert_int_equal(*number, expected_number);
}

static void test_reservation_must_leave_the_unreserved_minimum(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(1000);
    int32_t number = -1;

    (void)state;
    assert_change(counting_set_reserved(&x->f, 901, &number), COUNTING_BELOW_MINIMUM, &number, 100);
    assert_false(x->f.has_reserved);
    assert_change(counting_set_reserved(&x->f, 900, &number), COUNTING_OK, &number, 0);
    assert_change(counting_set_reserved(&x->g, 1, &number), COUNTING_BELOW_MINIMUM, &number, 100);
}

static void test_zero_may_be_reserved_with_the_pool_at_its_minimum(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(1000);

    (void)state;
    set_reserved(&x->f, 900);
    set_reserved(&x->g, 0);
    assert_true(x->g.has_reserved);
}

static void test_lowering_a_reservation_is_always_allowed(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(1000);

    (void)state;
    set_reserved(&x->f, 900);
    counting_account_set(&x->account, 500, 100, 1000); /* far below now */
    set_reserved(&x->f, 899);
    assert_int_equal(x->account.reserved_total, 899);
}

static void test_reservation_may_not_be_lower_than_total_provisioned(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(1000);
    int32_t number = -1;

    (void)state;
    counting_resize_slice(&x->slice, 2);
    assert_change(counting_set_reserved(&x->f, 1, &number), COUNTING_BELOW_PROVISIONED, &number, 2);
    assert_change(counting_set_reserved(&x->f, 2, &number), COUNTING_OK, &number, 0);
}

static void test_reserving_an_own_provisioned_function_counts_its_pc_once(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(1000);
    int32_t number = -1;

    (void)state;
    counting_resize_slice(&x->slice, 500);
    assert_change(counting_set_reserved(&x->f, 901, &number), COUNTING_BELOW_MINIMUM, &number, 100);
    assert_change(counting_set_reserved(&x->f, 900, &number), COUNTING_OK, &number, 0);
    assert_int_equal(counting_unreserved(&x->account), 100);
    counting_clear_reserved(&x->f);
    assert_int_equal(counting_unreserved(&x->account), 500);
}

static void test_provisioned_may_not_exceed_the_reservation(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(1000);
    struct counting_slice other;
    int32_t number = -1;

    (void)state;
    counting_slice_init(&other, &x->f);
    set_reserved(&x->f, 2);
    counting_resize_slice(&x->slice, 2);
    assert_change(counting_check_provisioned(&x->f, &x->slice, 3, &number), COUNTING_OVER_RESERVED, &number, 2);
    assert_change(counting_check_provisioned(&x->f, NULL, 1, &number), COUNTING_OVER_RESERVED, &number, 2);
    assert_change(counting_check_provisioned(&x->f, &other, 1, &number), COUNTING_OVER_RESERVED, &number, 2);
    assert_change(counting_check_provisioned(&x->f, &x->slice, 1, &number), COUNTING_OK, &number, 0);
}

static void test_provisioned_may_not_exceed_the_pool_nor_its_minimum(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(1000);
    int32_t number = -1;

    (void)state;
    assert_change(counting_check_provisioned(&x->f, NULL, 1001, &number), COUNTING_OVER_POOL, &number, 1000);
    assert_change(counting_check_provisioned(&x->f, NULL, 950, &number), COUNTING_BELOW_MINIMUM, &number, 100);
    assert_change(counting_check_provisioned(&x->f, NULL, 900, &number), COUNTING_OK, &number, 0);
    counting_resize_slice(&x->slice, 900);
    assert_change(counting_check_provisioned(&x->f, &x->slice, 901, &number), COUNTING_BELOW_MINIMUM, &number, 100);
    assert_change(counting_check_provisioned(&x->g, NULL, 101, &number), COUNTING_OVER_POOL, &number, 100);
}

static void test_lowering_provisioned_is_always_allowed(void **state)
{
    struct fixture *x CLEANUP(cleanup_free) = new_fixture(1000);
    int32_t number = -1;

    (void)state;
    counting_resize_slice(&x->slice, 900);
    counting_account_set(&x->account, 100, 100, 1000);
    assert_change(counting_check_provisioned(&x->f, &x->slice, 899, &number), COUNTING_OK, &number, 0);
}

static void test_names_are_those_of_the_wire(void **state)
{
    (void)state;
    assert_string_equal(counting_reason_name(COUNTING_REASON_CONCURRENCY), CONCURRENCY);
    assert_string_equal(counting_reason_name(COUNTING_REASON_RESERVED_CONCURRENCY), RESERVED_CONCURRENCY);
    assert_string_equal(counting_reason_name(COUNTING_REASON_RATE), RATE);
    assert_string_equal(counting_reason_name(COUNTING_REASON_RESERVED_RATE), RESERVED_RATE);
    assert_string_equal(counting_kind_name(COUNTING_KIND_RESERVED), "reserved");
    assert_string_equal(counting_kind_name(COUNTING_KIND_UNRESERVED), "unreserved");
    assert_string_equal(counting_kind_name(COUNTING_KIND_ACCOUNT), "account");
    assert_string_equal(counting_kind_name(COUNTING_KIND_RATE), "rate");
    assert_string_equal(counting_kind_name(COUNTING_KIND_RESERVED_RATE), "reserved-rate");
    assert_string_equal(counting_kind_name(COUNTING_KIND_SCALING_RATE), "scaling-rate");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_account_limit_is_never_exceeded),
        cmocka_unit_test(test_reserved_zero_throttles_always),
        cmocka_unit_test(test_reserved_zero_throttles_provisioned_too),
        cmocka_unit_test(test_reservation_caps_its_function_and_sets_capacity_aside),
        cmocka_unit_test(test_provisioned_units_spill_into_the_pool),
        cmocka_unit_test(test_provisioned_is_out_of_reach_for_others),
        cmocka_unit_test(test_provisioned_spills_into_the_rest_of_the_reservation),
        cmocka_unit_test(test_reservation_equal_to_provisioned_leaves_nothing_for_latest),
        cmocka_unit_test(test_claimed_counts_provisioned_of_reserved_functions_once),
        cmocka_unit_test(test_release_empties_every_counter),
        cmocka_unit_test(test_reservation_lowered_below_in_flight_drains_first),
        cmocka_unit_test(test_reservation_removed_in_flight_moves_units_to_the_pool),
        cmocka_unit_test(test_reservation_set_in_flight_takes_units_along),
        cmocka_unit_test(test_account_limit_holds_while_a_new_reservation_waits_for_its_units),
        cmocka_unit_test(test_provisioned_lowered_in_flight_counts_the_excess_as_spilled),
        cmocka_unit_test(test_provisioned_put_inside_a_full_reservation_never_exceeds_it),
        cmocka_unit_test(test_limit_lowered_below_in_flight_drains_first),
        cmocka_unit_test(test_ten_times_the_account_limit_per_second),
        cmocka_unit_test(test_ten_times_the_reservation_per_second),
        cmocka_unit_test(test_ten_times_provisioned_then_spill),
        cmocka_unit_test(test_spill_by_concurrency_is_not_a_matter_of_rate),
        cmocka_unit_test(test_provisioned_requests_count_against_the_reservation_rate),
        cmocka_unit_test(test_concurrency_is_named_before_rate),
        cmocka_unit_test(test_throttled_requests_take_no_place_in_the_window),
        cmocka_unit_test(test_no_allowance_is_saved_up),
        cmocka_unit_test(test_the_second_slides_in_tenths),
        cmocka_unit_test(test_asynchronous_requests_are_exempt_from_the_rate),
        cmocka_unit_test(test_thousand_environments_at_once_then_a_hundred_a_second),
        cmocka_unit_test(test_scaling_rate_is_each_functions_own),
        cmocka_unit_test(test_scaling_rate_never_saves_up_more_than_one_bucket),
        cmocka_unit_test(test_scaling_rate_refills_continuously_without_rounding),
        cmocka_unit_test(test_scaling_throttle_of_a_reserved_function_has_the_reserved_reason),
        cmocka_unit_test(test_scaling_rate_lowered_applies_at_once),
        cmocka_unit_test(test_reservation_must_leave_the_unreserved_minimum),
        cmocka_unit_test(test_zero_may_be_reserved_with_the_pool_at_its_minimum),
        cmocka_unit_test(test_lowering_a_reservation_is_always_allowed),
        cmocka_unit_test(test_reservation_may_not_be_lower_than_total_provisioned),
        cmocka_unit_test(test_reserving_an_own_provisioned_function_counts_its_pc_once),
        cmocka_unit_test(test_provisioned_may_not_exceed_the_reservation),
        cmocka_unit_test(test_provisioned_may_not_exceed_the_pool_nor_its_minimum),
        cmocka_unit_test(test_lowering_provisioned_is_always_allowed),
        cmocka_unit_test(test_names_are_those_of_the_wire),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
