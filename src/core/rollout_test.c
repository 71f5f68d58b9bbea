#include "base/test.h"

#include "core/rollout.h"

#include "base/clock.h"

#define MINUTE_NS (60 * NS_PER_S)

static void test_a_canary_waits_one_interval_and_takes_everything(void **state)
{
    struct rollout_plan plan = {ROLLOUT_CANARY, 0.1, 10 * MINUTE_NS};
    struct rollout rollout;

    (void)state;
    rollout_start(&rollout, &plan, 5);
    assert_true(rollout.weight == 0.1);
    assert_int_equal(rollout_next_deadline(&rollout), 5 + 10 * MINUTE_NS);
    assert_false(rollout_advance(&rollout, 4 + 10 * MINUTE_NS));
    assert_int_equal(rollout.status, ROLLOUT_SHIFTING);
    assert_true(rollout_advance(&rollout, 5 + 10 * MINUTE_NS));
    assert_true(rollout.weight == 1);
    assert_int_equal(rollout.status, ROLLOUT_DONE);
    assert_int_equal(rollout_next_deadline(&rollout), INT64_MAX);
}

static void test_linear_shifts_by_equal_parts_until_all(void **state)
{
    struct rollout_plan plan = {ROLLOUT_LINEAR, 0.1, MINUTE_NS};
    struct rollout rollout;

    (void)state;
    rollout_start(&rollout, &plan, 0);
    for (int shift = 1; shift < 10; shift++) {
        assert_true(rollout.weight > shift * 0.1 - 1e-9 && rollout.weight < shift * 0.1 + 1e-9);
        assert_int_equal(rollout.status, ROLLOUT_SHIFTING);
        assert_int_equal(rollout_next_deadline(&rollout), shift * MINUTE_NS);
        assert_false(rollout_advance(&rollout, shift * MINUTE_NS - 1));
        assert_true(rollout_advance(&rollout, shift * MINUTE_NS));
    }
    assert_true(rollout.weight == 1);
    assert_int_equal(rollout.status, ROLLOUT_DONE);
}

static void test_a_part_that_does_not_divide_one_ends_with_a_smaller_shift(void **state)
{
    struct rollout_plan plan = {ROLLOUT_LINEAR, 0.3, MINUTE_NS};
    struct rollout rollout;

    (void)state;
    rollout_start(&rollout, &plan, 0);
    rollout_advance(&rollout, 2 * MINUTE_NS);
    assert_true(rollout.weight > 0.89 && rollout.weight < 0.91);
    rollout_advance(&rollout, 3 * MINUTE_NS);
    assert_true(rollout.weight == 1);
}

static void test_being_late_shifts_by_all_that_is_due(void **state)
{
    struct rollout_plan plan = {ROLLOUT_LINEAR, 0.25, MINUTE_NS};
    struct rollout rollout;

    (void)state;
    rollout_start(&rollout, &plan, 0);
    assert_true(rollout_advance(&rollout, 2 * MINUTE_NS + 7));
    assert_true(rollout.weight == 0.75);
    assert_int_equal(rollout_next_deadline(&rollout), 3 * MINUTE_NS);
}

static void test_all_at_once_is_over_at_its_start(void **state)
{
    struct rollout_plan plan = {.kind = ROLLOUT_ALL_AT_ONCE};
    struct rollout rollout;

    (void)state;
    rollout_start(&rollout, &plan, 0);
    assert_true(rollout.weight == 1);
    assert_int_equal(rollout.status, ROLLOUT_DONE);
    assert_false(rollout_roll_back(&rollout));
    assert_true(rollout.weight == 1);
}

static void test_rolling_back_returns_everything_and_ends_it(void **state)
{
    struct rollout_plan plan = {ROLLOUT_LINEAR, 0.2, MINUTE_NS};
    struct rollout rollout;

    (void)state;
    rollout_start(&rollout, &plan, 0);
    rollout_advance(&rollout, MINUTE_NS);
    assert_true(rollout_roll_back(&rollout));
    assert_true(rollout.weight == 0);
    assert_int_equal(rollout.status, ROLLOUT_ROLLED_BACK);
    assert_int_equal(rollout_next_deadline(&rollout), INT64_MAX);
    assert_false(rollout_advance(&rollout, 10 * MINUTE_NS));
    assert_false(rollout_roll_back(&rollout));
}

static void test_plans_out_of_bounds_are_not_valid(void **state)
{
    (void)state;
    assert_false(rollout_plan_is_valid(&(struct rollout_plan){ROLLOUT_CANARY, 0, MINUTE_NS}));
    assert_false(rollout_plan_is_valid(&(struct rollout_plan){ROLLOUT_CANARY, 1, MINUTE_NS}));
    assert_false(rollout_plan_is_valid(&(struct rollout_plan){ROLLOUT_LINEAR, 0.1, 0}));
    assert_true(rollout_plan_is_valid(&(struct rollout_plan){ROLLOUT_LINEAR, 0.99, 1}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_canary_waits_one_interval_and_takes_everything),
        cmocka_unit_test(test_linear_shifts_by_equal_parts_until_all),
        cmocka_unit_test(test_a_part_that_does_not_divide_one_ends_with_a_smaller_shift),
        cmocka_unit_test(test_being_late_shifts_by_all_that_is_due),
        cmocka_unit_test(test_all_at_once_is_over_at_its_start),
        cmocka_unit_test(test_rolling_back_returns_everything_and_ends_it),
        cmocka_unit_test(test_plans_out_of_bounds_are_not_valid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
