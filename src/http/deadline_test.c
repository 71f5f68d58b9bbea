#include "http/deadline.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void prepare(struct deadlines *deadlines)
{
    deadlines_init(deadlines);
    deadlines->durations_ms[DEADLINE_IDLE] = 100;
    deadlines->durations_ms[DEADLINE_BODY] = 10;
}

static void test_none_is_due_when_none_is_set(void **state)
{
    struct deadlines deadlines;

    (void)state;
    prepare(&deadlines);
    assert_null(deadlines_pop_due(&deadlines, UINT64_MAX));
    assert_int_equal(deadlines_next_ms(&deadlines), UINT64_MAX);
}

static void test_earliest_of_all_kinds_comes_first(void **state)
{
    struct deadlines deadlines;
    struct deadline idle;
    struct deadline body;

    (void)state;
    prepare(&deadlines);
    deadline_init(&idle);
    deadline_init(&body);
    deadline_set(&deadlines, &idle, DEADLINE_IDLE, 0);
    deadline_set(&deadlines, &body, DEADLINE_BODY, 50);
    assert_int_equal(deadlines_next_ms(&deadlines), 60);
    assert_null(deadlines_pop_due(&deadlines, 59));
    assert_ptr_equal(deadlines_pop_due(&deadlines, 200), &body);
    assert_ptr_equal(deadlines_pop_due(&deadlines, 200), &idle);
    assert_int_equal(idle.kind, DEADLINE_IDLE);
    assert_null(deadlines_pop_due(&deadlines, 200));
}

static void test_setting_again_postpones(void **state)
{
    struct deadlines deadlines;
    struct deadline first;
    struct deadline second;

    (void)state;
    prepare(&deadlines);
    deadline_init(&first);
    deadline_init(&second);
    deadline_set(&deadlines, &first, DEADLINE_BODY, 0);
    deadline_set(&deadlines, &second, DEADLINE_BODY, 1);
    deadline_set(&deadlines, &first, DEADLINE_BODY, 5);
    assert_ptr_equal(deadlines_pop_due(&deadlines, 11), &second);
    assert_null(deadlines_pop_due(&deadlines, 14));
    assert_ptr_equal(deadlines_pop_due(&deadlines, 15), &first);
}

static void test_cleared_and_unlimited_never_come(void **state)
{
    struct deadlines deadlines;
    struct deadline deadline;

    (void)state;
    prepare(&deadlines);
    deadline_init(&deadline);
    deadline_set(&deadlines, &deadline, DEADLINE_BODY, 0);
    deadline_clear(&deadline);
    assert_null(deadlines_pop_due(&deadlines, UINT64_MAX));
    deadline_set(&deadlines, &deadline, DEADLINE_WRITE, 0); /* its duration is 0 */
    assert_null(deadlines_pop_due(&deadlines, UINT64_MAX));
    assert_int_equal(deadlines_next_ms(&deadlines), UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_none_is_due_when_none_is_set),
        cmocka_unit_test(test_earliest_of_all_kinds_comes_first),
        cmocka_unit_test(test_setting_again_postpones),
        cmocka_unit_test(test_cleared_and_unlimited_never_come),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
