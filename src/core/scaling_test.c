#include "base/test.h"

#include "core/scaling.h"

#include "base/clock.h"

#define MINUTE_NS (60 * NS_PER_S)

/* Feeds points written as digits (tenths of utilisation) or '-' for none; returns the last state. */
static enum scaling_alarm_state feed(struct scaling_alarm *alarm, const char *points)
{
    enum scaling_alarm_state state = alarm->state;

    for (; *points; points++)
        state = scaling_alarm_add(alarm, *points != '-', (*points - '0') / 10.0);
    return state;
}

static void test_three_points_above_make_an_alarm_and_two_do_not(void **state)
{
    struct scaling_alarm alarm;

    (void)state;
    scaling_alarm_init(&alarm, true, 0.7, 3);
    assert_int_equal(alarm.state, SCALING_INSUFFICIENT_DATA);
    assert_int_equal(feed(&alarm, "5"), SCALING_OK);
    assert_int_equal(feed(&alarm, "88"), SCALING_OK);
    assert_int_equal(feed(&alarm, "8"), SCALING_ALARM);
    assert_int_equal(feed(&alarm, "7"), SCALING_OK); /* at the threshold is not above it */
}

static void test_missing_points_are_made_up_for_by_older_ones(void **state)
{
    struct scaling_alarm alarm;

    (void)state;
    scaling_alarm_init(&alarm, true, 0.7, 3);
    assert_int_equal(feed(&alarm, "8-8-8"), SCALING_ALARM);
    scaling_alarm_init(&alarm, true, 0.7, 3);
    assert_int_equal(feed(&alarm, "5-8-8"), SCALING_OK);
    scaling_alarm_init(&alarm, true, 0.7, 3);
    assert_int_equal(feed(&alarm, "--8--"), SCALING_ALARM); /* the service's own example */
    scaling_alarm_init(&alarm, true, 0.7, 3);
    assert_int_equal(feed(&alarm, "----8"), SCALING_OK); /* too early to tell */
}

static void test_without_any_point_data_is_insufficient(void **state)
{
    struct scaling_alarm alarm;

    (void)state;
    scaling_alarm_init(&alarm, true, 0.7, 3);
    assert_int_equal(feed(&alarm, "888"), SCALING_ALARM);
    assert_int_equal(feed(&alarm, "----"), SCALING_ALARM); /* one real point is still in sight */
    assert_int_equal(feed(&alarm, "-"), SCALING_INSUFFICIENT_DATA);
    assert_string_equal(scaling_alarm_state_name(alarm.state), "INSUFFICIENT_DATA");
}

struct fixture {
    struct scaling_tracking tracking;
    struct scaling_bounds bounds;
    int32_t capacity;
    int64_t now_ns;
};

static struct fixture tracking(double target, int32_t minimum, int32_t maximum, int32_t capacity)
{
    struct scaling_policy policy = scaling_policy_default(target);
    struct fixture fixture = {.bounds = {minimum, maximum}, .capacity = capacity};

    scaling_tracking_init(&fixture.tracking, &policy);
    return fixture;
}

static int32_t minutes(struct fixture *fixture, int count, double utilisation)
{
    for (int i = 0; i < count; i++, fixture->now_ns += MINUTE_NS)
        fixture->capacity = scaling_track(&fixture->tracking, &fixture->bounds, utilisation >= 0, utilisation,
                                          fixture->capacity, fixture->now_ns);
    return fixture->capacity;
}

static void test_the_third_point_above_scales_out_in_proportion(void **state)
{
    struct fixture fixture = tracking(0.7, 1, 1000, 100);

    (void)state;
    assert_int_equal(minutes(&fixture, 2, 0.9), 100);
    assert_int_equal(minutes(&fixture, 1, 0.9), 129); /* 100 x 0.9 / 0.7 = 128.6 */
}

static void test_scaling_out_stops_at_the_maximum(void **state)
{
    struct fixture fixture = tracking(0.5, 1, 120, 100);

    (void)state;
    assert_int_equal(minutes(&fixture, 3, 1.0), 120);
    assert_int_equal(minutes(&fixture, 3, 1.0), 120);
}

static void test_scaling_in_needs_all_points_below_ninety_percent(void **state)
{
    struct fixture fixture = tracking(0.75, 1, 1000, 100);

    (void)state;
    assert_int_equal(minutes(&fixture, 30, 0.7), 100); /* below 0.75, not below 0.675 */
    assert_int_equal(minutes(&fixture, 14, 0.3), 100);
    assert_int_equal(minutes(&fixture, 1, 0.3), 40);
}

static void test_scaling_in_stops_at_the_minimum(void **state)
{
    struct fixture fixture = tracking(0.75, 60, 1000, 100);

    (void)state;
    assert_int_equal(minutes(&fixture, 15, 0.3), 60);
}

static void test_an_idle_function_keeps_its_capacity(void **state)
{
    struct fixture fixture = tracking(0.7, 1, 1000, 100);

    (void)state;
    assert_int_equal(minutes(&fixture, 60, -1), 100);
    assert_int_equal(fixture.tracking.low.state, SCALING_INSUFFICIENT_DATA);
    assert_int_equal(fixture.tracking.high.state, SCALING_INSUFFICIENT_DATA);
}

static void test_cooldowns_hold_back_further_changes(void **state)
{
    struct fixture fixture = tracking(0.5, 1, 1000, 100);

    (void)state;
    fixture.tracking.policy.out_cooldown_ns = 3 * MINUTE_NS;
    assert_int_equal(minutes(&fixture, 3, 0.6), 120);
    assert_int_equal(minutes(&fixture, 2, 0.6), 120);
    assert_int_equal(minutes(&fixture, 1, 0.6), 144);
}

static void test_out_only_never_scales_in(void **state)
{
    struct fixture fixture = tracking(0.7, 1, 1000, 100);

    (void)state;
    fixture.tracking.policy.out_only = true;
    assert_int_equal(minutes(&fixture, 60, 0.1), 100);
}

static void test_clamp_moves_to_the_nearer_bound(void **state)
{
    struct scaling_bounds bounds = {10, 20};

    (void)state;
    assert_int_equal(scaling_clamp(&bounds, 5), 10);
    assert_int_equal(scaling_clamp(&bounds, 15), 15);
    assert_int_equal(scaling_clamp(&bounds, 25), 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_three_points_above_make_an_alarm_and_two_do_not),
        cmocka_unit_test(test_missing_points_are_made_up_for_by_older_ones),
        cmocka_unit_test(test_without_any_point_data_is_insufficient),
        cmocka_unit_test(test_the_third_point_above_scales_out_in_proportion),
        cmocka_unit_test(test_scaling_out_stops_at_the_maximum),
        cmocka_unit_test(test_scaling_in_needs_all_points_below_ninety_percent),
        cmocka_unit_test(test_scaling_in_stops_at_the_minimum),
        cmocka_unit_test(test_an_idle_function_keeps_its_capacity),
        cmocka_unit_test(test_cooldowns_hold_back_further_changes),
        cmocka_unit_test(test_out_only_never_scales_in),
        cmocka_unit_test(test_clamp_moves_to_the_nearer_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
