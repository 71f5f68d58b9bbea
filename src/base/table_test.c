#include "base/table.h"

#include "base/failing_alloc.h"
#include "base/random.h"
#include "base/test.h"

#include <stdio.h>

struct named {
    char name[16];
    int value;
};

static struct span key_of(const struct named *item)
{
    return span_from(item->name);
}

static void fill(struct table *table, struct named *items, int count)
{
    for (int i = 0; i < count; i++) {
        snprintf(items[i].name, sizeof(items[i].name), "key-%d", i);
        items[i].value = i;
        assert_int_equal(table_add(table, key_of(&items[i]), &items[i]), 0);
    }
}

static void test_empty_table_has_nothing(void **state)
{
    struct table table = {0};
    (void)state;

    assert_null(table_get(&table, SPAN("a")));
    assert_null(table_remove(&table, SPAN("a")));
    TABLE_FOREACH (entry, &table)
        fail();
    table_deinit(&table);
    table_deinit(&table);
}

static void test_thousand_keys_are_found_and_walked_in_order(void **state)
{
    CLEANUP(table_deinit) struct table table = {0};
    static struct named items[1000];
    int next = 0;
    (void)state;

    fill(&table, items, 1000);
    assert_int_equal(table.count, 1000);
    for (int i = 0; i < 1000; i++)
        assert_ptr_equal(table_get(&table, key_of(&items[i])), &items[i]);
    assert_null(table_get(&table, SPAN("key-1000")));
    TABLE_FOREACH (entry, &table)
        assert_ptr_equal(entry->value, &items[next++]);
    assert_int_equal(next, 1000);
}

static void test_key_is_taken_once(void **state)
{
    CLEANUP(table_deinit) struct table table = {0};
    int a;
    int b;
    (void)state;

    assert_int_equal(table_add(&table, SPAN("k"), &a), 0);
    assert_int_equal(table_add(&table, SPAN("k"), &b), -EEXIST);
    assert_ptr_equal(table_get(&table, SPAN("k")), &a);
    assert_int_equal(table.count, 1);
}

static void test_set_replaces_in_place_and_hands_the_old_value_back(void **state)
{
    CLEANUP(table_deinit) struct table table = {0};
    int values[3];
    void *old = &old;
    (void)state;

    assert_int_equal(table_set(&table, SPAN("a"), &values[0], &old), 0);
    assert_null(old);
    assert_int_equal(table_set(&table, SPAN("b"), &values[1], NULL), 0);
    assert_int_equal(table_set(&table, SPAN("a"), &values[2], &old), 0);
    assert_ptr_equal(old, &values[0]);
    assert_int_equal(table.count, 2);
    assert_true(span_equal(table.entries[0].key, SPAN("a")));
    assert_ptr_equal(table.entries[0].value, &values[2]);
}

static void test_empty_key_and_keys_with_nul_are_keys(void **state)
{
    CLEANUP(table_deinit) struct table table = {0};
    int a;
    int b;
    int c;
    (void)state;

    assert_int_equal(table_add(&table, SPAN_NONE, &a), 0);
    assert_int_equal(table_add(&table, SPAN("x\0y"), &b), 0);
    assert_int_equal(table_add(&table, SPAN("x"), &c), 0);
    assert_ptr_equal(table_get(&table, SPAN("")), &a);
    assert_ptr_equal(table_get(&table, SPAN("x\0y")), &b);
    assert_ptr_equal(table_remove(&table, SPAN_NONE), &a);
    assert_null(table_get(&table, SPAN_NONE));
}

static void test_removed_key_is_gone_and_can_come_back_at_the_end(void **state)
{
    CLEANUP(table_deinit) struct table table = {0};
    static struct named items[3];
    int order[3];
    int at = 0;
    (void)state;

    fill(&table, items, 3);
    assert_ptr_equal(table_remove(&table, key_of(&items[0])), &items[0]);
    assert_null(table_remove(&table, key_of(&items[0])));
    assert_int_equal(table.count, 2);
    assert_int_equal(table_add(&table, key_of(&items[0]), &items[0]), 0);
    TABLE_FOREACH (entry, &table)
        order[at++] = ((struct named *)entry->value)->value;
    assert_int_equal(at, 3);
    assert_memory_equal(order, ((const int[]){1, 2, 0}), sizeof(order));
}

static void test_current_entry_may_be_removed_while_walking(void **state)
{
    CLEANUP(table_deinit) struct table table = {0};
    static struct named items[100];
    (void)state;

    fill(&table, items, 100);
    TABLE_FOREACH (entry, &table)
        if (((struct named *)entry->value)->value % 2)
            assert_non_null(table_remove(&table, entry->key));
    assert_int_equal(table.count, 50);
    for (int i = 0; i < 100; i++)
        assert_ptr_equal(table_get(&table, key_of(&items[i])), i % 2 ? NULL : &items[i]);
}

static void test_coming_and_going_does_not_grow_the_table(void **state)
{
    CLEANUP(table_deinit) struct table table = {0};
    struct named item = {"key", 0};
    (void)state;

    for (int i = 0; i < 100000; i++) {
        assert_int_equal(table_add(&table, key_of(&item), &item), 0);
        assert_ptr_equal(table_remove(&table, key_of(&item)), &item);
    }
    assert_int_equal(table.count, 0);
    assert_true(table.capacity <= 8);
}

/* Against the simplest thing that could be right: an array of what is in. */
static void test_random_changes_agree_with_an_array(void **state)
{
    enum { KEYS = 64 };
    CLEANUP(table_deinit) struct table table = {0};
    struct named items[KEYS];
    bool in[KEYS] = {0};
    struct prng prng;
    (void)state;

    prng_init(&prng, 1);
    for (int i = 0; i < KEYS; i++)
        snprintf(items[i].name, sizeof(items[i].name), "%d", i);
    for (int step = 0; step < 20000; step++) {
        size_t i = (size_t)prng_below(&prng, KEYS);
        size_t present = 0;
        if (prng_below(&prng, 2)) {
            assert_int_equal(table_add(&table, key_of(&items[i]), &items[i]), in[i] ? -EEXIST : 0);
            in[i] = true;
        } else {
            assert_ptr_equal(table_remove(&table, key_of(&items[i])), in[i] ? &items[i] : NULL);
            in[i] = false;
        }
        for (size_t k = 0; k < KEYS; k++)
            present += in[k];
        assert_int_equal(table.count, present);
        assert_ptr_equal(table_get(&table, key_of(&items[i])), in[i] ? &items[i] : NULL);
    }
}

static void test_without_memory_the_table_stays_as_it_was(void **state)
{
    static struct named items[9];
    (void)state;

    for (unsigned successes = 0; successes < 2; successes++) {
        CLEANUP(table_deinit) struct table table = {0};
        fill(&table, items, 8); /* the ninth needs room */
        failing_alloc_after(successes);
        int r = table_add(&table, SPAN("ninth"), &items[8]);
        int s = table_set(&table, SPAN("ninth"), &items[8], NULL);
        assert_true(failing_alloc_stop() > 0);
        assert_int_equal(r, -ENOMEM);
        assert_int_equal(s, -ENOMEM);
        assert_int_equal(table.count, 8);
        assert_ptr_equal(table_get(&table, key_of(&items[7])), &items[7]);
        assert_int_equal(table_add(&table, SPAN("ninth"), &items[8]), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty_table_has_nothing),
        cmocka_unit_test(test_thousand_keys_are_found_and_walked_in_order),
        cmocka_unit_test(test_key_is_taken_once),
        cmocka_unit_test(test_set_replaces_in_place_and_hands_the_old_value_back),
        cmocka_unit_test(test_empty_key_and_keys_with_nul_are_keys),
        cmocka_unit_test(test_removed_key_is_gone_and_can_come_back_at_the_end),
        cmocka_unit_test(test_current_entry_may_be_removed_while_walking),
        cmocka_unit_test(test_coming_and_going_does_not_grow_the_table),
        cmocka_unit_test(test_random_changes_agree_with_an_array),
        cmocka_unit_test(test_without_memory_the_table_stays_as_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
