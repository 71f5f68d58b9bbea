#include "base/test.h"

#include "base/failing_alloc.h"
#include "base/indexed_list.h"

#include <stdint.h>
#include <stdlib.h>

/* Reserves places for members that are the numbers 1 to `count`, in places[1] to places[count]. */
static void reserve(struct indexed_list *list, uint32_t *places, uintptr_t count)
{
    for (uintptr_t i = 1; i <= count; i++)
        assert_int_equal(indexed_list_reserve(list, (void *)i, &places[i]), 0);
}

static void assert_order(const struct indexed_list *list, const uintptr_t *expected)
{
    uint32_t place = indexed_list_first(list);

    for (; *expected; expected++, place = indexed_list_next(list, place)) {
        assert_int_not_equal(place, 0);
        assert_int_equal((uintptr_t)list->members[place], *expected);
    }
    assert_int_equal(place, 0);
}

static void test_a_zeroed_list_is_empty(void **state)
{
    struct indexed_list list = {0};

    (void)state;
    assert_int_equal(indexed_list_first(&list), 0);
    indexed_list_deinit(&list);
}

static void test_order_is_that_of_the_pushes(void **state)
{
    struct indexed_list list = {0};
    uint32_t places[6];

    (void)state;
    reserve(&list, places, 5);
    assert_int_equal(indexed_list_first(&list), 0);
    for (int i = 5; i >= 1; i--)
        indexed_list_push_back(&list, places[i]);
    assert_order(&list, (const uintptr_t[]){5, 4, 3, 2, 1, 0});
    indexed_list_remove(&list, places[3]);
    assert_false(indexed_list_has(&list, places[3]));
    assert_true(indexed_list_has(&list, places[5]));
    indexed_list_remove(&list, places[5]);
    indexed_list_remove(&list, places[1]);
    assert_order(&list, (const uintptr_t[]){4, 2, 0});
    indexed_list_push_back(&list, places[5]);
    assert_order(&list, (const uintptr_t[]){4, 2, 5, 0});
    indexed_list_deinit(&list);
}

static void test_released_places_are_used_again(void **state)
{
    struct indexed_list list = {0};
    uint32_t places[64], again, capacity;

    (void)state;
    reserve(&list, places, 63);
    capacity = list.capacity;
    for (int i = 1; i <= 63; i++)
        indexed_list_push_back(&list, places[i]);
    indexed_list_release(&list, places[1]); /* while it is in the list */
    assert_int_equal((uintptr_t)list.members[indexed_list_first(&list)], 2);
    assert_int_equal(indexed_list_reserve(&list, (void *)UINTPTR_MAX, &again), 0);
    assert_int_equal(again, places[1]);
    assert_false(indexed_list_has(&list, again));
    assert_int_equal(list.capacity, capacity);
    indexed_list_deinit(&list);
}

static void test_growing_keeps_the_order(void **state)
{
    enum { COUNT = 1000 };
    struct indexed_list list = {0};
    uint32_t place;

    (void)state;
    for (uintptr_t i = 1; i <= COUNT; i++) {
        assert_int_equal(indexed_list_reserve(&list, (void *)i, &place), 0);
        indexed_list_push_back(&list, place);
    }
    place = indexed_list_first(&list);
    for (uintptr_t i = 1; i <= COUNT; i++, place = indexed_list_next(&list, place))
        assert_int_equal((uintptr_t)list.members[place], i);
    assert_int_equal(place, 0);
    indexed_list_deinit(&list);
}

static void test_without_memory_nothing_changes(void **state)
{
    struct indexed_list list = {0};
    uint32_t places[64], place;

    (void)state;
    for (unsigned successes = 0; successes < 2; successes++) {
        failing_alloc_after(successes);
        assert_int_equal(indexed_list_reserve(&list, (void *)1, &place), -ENOMEM);
        assert_true(failing_alloc_stop() > 0);
        assert_int_equal(indexed_list_first(&list), 0);
    }
    reserve(&list, places, 63);
    indexed_list_push_back(&list, places[1]);
    for (unsigned successes = 0; successes < 2; successes++) {
        failing_alloc_after(successes);
        assert_int_equal(indexed_list_reserve(&list, (void *)1, &place), -ENOMEM);
        assert_true(failing_alloc_stop() > 0);
        assert_order(&list, (const uintptr_t[]){1, 0});
    }
    assert_int_equal(indexed_list_reserve(&list, (void *)1, &place), 0);
    indexed_list_deinit(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_zeroed_list_is_empty),         cmocka_unit_test(test_order_is_that_of_the_pushes),
        cmocka_unit_test(test_released_places_are_used_again), cmocka_unit_test(test_growing_keeps_the_order),
        cmocka_unit_test(test_without_memory_nothing_changes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
