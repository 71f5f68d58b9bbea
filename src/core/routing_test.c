#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/routing.h"

#include "base/random.h"

static struct core_version *const FIRST = (struct core_version *)0x10;
static struct core_version *const SECOND = (struct core_version *)0x20;

static void test_refuses_weights_that_mean_nothing(void **state)
{
    (void)state;
    assert_false(routing_is_valid(&(struct routing){.second = SECOND}));
    assert_false(routing_is_valid(&(struct routing){FIRST, FIRST, 0.1}));
    assert_false(routing_is_valid(&(struct routing){FIRST, SECOND, -0.1}));
    assert_false(routing_is_valid(&(struct routing){FIRST, SECOND, 1.1}));
    assert_true(routing_is_valid(&(struct routing){FIRST, SECOND, 1}));
    assert_true(routing_is_valid(&(struct routing){FIRST, NULL, 0}));
}

static void test_one_version_takes_every_draw(void **state)
{
    struct routing routing = {.version = FIRST};

    (void)state;
    assert_ptr_equal(routing_choose(&routing, 0), FIRST);
    assert_ptr_equal(routing_choose(&routing, UINT64_MAX), FIRST);
}

static void test_weight_zero_never_and_weight_one_always(void **state)
{
    struct routing never = {FIRST, SECOND, 0}, always = {FIRST, SECOND, 1};

    (void)state;
    assert_ptr_equal(routing_choose(&never, 0), FIRST);
    assert_ptr_equal(routing_choose(&always, UINT64_MAX), SECOND);
    assert_ptr_equal(routing_choose(&always, 0), SECOND);
}

static void test_draws_follow_the_weight(void **state)
{
    struct routing routing = {FIRST, SECOND, 0.1};
    struct prng prng;
    int second = 0;

    (void)state;
    prng_init(&prng, 1);
    for (int i = 0; i < 100000; i++)
        second += routing_choose(&routing, prng_next(&prng)) == SECOND;
    assert_in_range(second, 9700, 10300);
}

static void test_provisioned_is_divided_by_weight(void **state)
{
    (void)state;
    assert_int_equal(routing_second_share(&(struct routing){FIRST, SECOND, 0.1}, 50), 5);
    assert_int_equal(routing_second_share(&(struct routing){FIRST, SECOND, 0.5}, 3), 2);
    assert_int_equal(routing_second_share(&(struct routing){FIRST, NULL, 0}, 50), 0);
    assert_int_equal(routing_second_share(&(struct routing){FIRST, SECOND, 1}, 50), 50);
    assert_int_equal(routing_second_share(&(struct routing){FIRST, SECOND, 0}, 50), 0);
}

static void test_both_versions_get_one_when_there_are_two(void **state)
{
    (void)state;
    assert_int_equal(routing_second_share(&(struct routing){FIRST, SECOND, 0.01}, 2), 1);
    assert_int_equal(routing_second_share(&(struct routing){FIRST, SECOND, 0.99}, 2), 1);
    assert_int_equal(routing_second_share(&(struct routing){FIRST, SECOND, 0.1}, 1), 0);
    assert_int_equal(routing_second_share(&(struct routing){FIRST, SECOND, 0.9}, 1), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refuses_weights_that_mean_nothing),
        cmocka_unit_test(test_one_version_takes_every_draw),
        cmocka_unit_test(test_weight_zero_never_and_weight_one_always),
        cmocka_unit_test(test_draws_follow_the_weight),
        cmocka_unit_test(test_provisioned_is_divided_by_weight),
        cmocka_unit_test(test_both_versions_get_one_when_there_are_two),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
