#include "base/list.h"

#include "base/test.h"

struct item {
    int value;
    struct list_link link;
};

static void assert_values(const struct list *list, const int *values, size_t count)
{
    size_t at = 0;

    LIST_FOREACH (link, list) {
        assert_true(at < count);
        assert_int_equal(CONTAINER_OF(link, struct item, link)->value, values[at++]);
    }
    assert_int_equal(at, count);
}

static void test_new_list_is_empty(void **state)
{
    struct list list;
    (void)state;

    list_init(&list);
    assert_true(list_is_empty(&list));
    assert_null(list_first(&list));
    assert_null(list_last(&list));
}

static void test_order_is_that_of_the_pushes(void **state)
{
    struct list list;
    struct item items[4] = {{.value = 0}, {.value = 1}, {.value = 2}, {.value = 3}};
    (void)state;

    list_init(&list);
    list_push_back(&list, &items[1].link);
    list_push_back(&list, &items[2].link);
    list_push_front(&list, &items[0].link);
    list_insert_after(&items[2].link, &items[3].link);
    assert_values(&list, (const int[]){0, 1, 2, 3}, 4);
    assert_ptr_equal(list_first(&list), &items[0].link);
    assert_ptr_equal(list_last(&list), &items[3].link);
}

static void test_remove_is_idempotent(void **state)
{
    struct list list;
    struct item items[3] = {{.value = 0}, {.value = 1}, {.value = 2}};
    (void)state;

    list_init(&list);
    for (size_t i = 0; i < 3; i++)
        list_push_back(&list, &items[i].link);
    list_remove(&items[1].link);
    list_remove(&items[1].link);
    assert_false(list_is_linked(&items[1].link));
    assert_true(list_is_linked(&items[0].link));
    assert_values(&list, (const int[]){0, 2}, 2);
}

static void test_unlinked_link_can_be_removed(void **state)
{
    struct list_link link;
    (void)state;

    list_link_init(&link);
    assert_false(list_is_linked(&link));
    list_remove(&link);
    assert_false(list_is_linked(&link));
}

static void test_iteration_survives_removing_and_freeing_the_current_item(void **state)
{
    struct list list;
    int seen = 0;
    (void)state;

    list_init(&list);
    for (int i = 0; i < 5; i++) {
        struct item *item = calloc(1, sizeof(*item));
        assert_non_null(item);
        item->value = i;
        list_push_back(&list, &item->link);
    }
    LIST_FOREACH (link, &list) {
        struct item *item = CONTAINER_OF(link, struct item, link);
        assert_int_equal(item->value, seen++);
        list_remove(link);
        free(item);
    }
    assert_int_equal(seen, 5);
    assert_true(list_is_empty(&list));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new_list_is_empty),
        cmocka_unit_test(test_order_is_that_of_the_pushes),
        cmocka_unit_test(test_remove_is_idempotent),
        cmocka_unit_test(test_unlinked_link_can_be_removed),
        cmocka_unit_test(test_iteration_survives_removing_and_freeing_the_current_item),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
