#include "worker/extension.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
/* cmocka.h needs setjmp.h, stdarg.h, stddef.h and stdint.h */
#include <cmocka.h>

static int add_internal(struct extension_set *set, const char *name, unsigned events)
{
    struct extension *extension;

    return extension_set_register(set, span_from(name), events, &extension);
}

static void test_external_ones_register_once_under_their_name(void **state)
{
    struct extension_set set = {.count = 0};
    struct extension *extension;

    (void)state;
    assert_int_equal(extension_set_add_external(&set, "agent", 7), 0);
    assert_false(extension_set_all_registered(&set));
    assert_int_equal(extension_set_registered(&set), 0);
    assert_int_equal(extension_set_register(&set, SPAN("agent"), EXTENSION_SHUTDOWN, &extension), 0);
    assert_true(extension->external);
    assert_int_equal(strlen(extension->id), UUID_BYTES - 1);
    assert_true(extension_set_all_registered(&set));
    assert_ptr_equal(extension_set_find(&set, span_from(extension->id)), extension);
    assert_ptr_equal(extension_set_find_run(&set, 7), extension);
    assert_int_equal(extension_set_register(&set, SPAN("agent"), 0, &extension), EXTENSION_REFUSED_STATE);
    assert_int_equal(set.count, 1);
    extension_set_clear(&set);
}

static void test_quota_counts_both_kinds(void **state)
{
    struct extension_set set = {.count = 0};
    char name[16];

    (void)state;
    assert_int_equal(extension_set_add_external(&set, "outside", 1), 0);
    for (int i = 1; i < EXTENSIONS_MAX; i++) {
        snprintf(name, sizeof(name), "e%d", i);
        assert_int_equal(add_internal(&set, name, 0), 0);
    }
    assert_int_equal(add_internal(&set, "one-more", 0), EXTENSION_REFUSED_TOO_MANY);
    assert_int_equal(extension_set_registered(&set), EXTENSIONS_MAX - 1);
    extension_set_clear(&set);
}

static void test_an_eleventh_external_one_can_be_named_but_no_twelfth(void **state)
{
    struct extension_set set = {.count = 0};

    (void)state;
    for (uint32_t i = 0; i <= EXTENSIONS_MAX; i++)
        assert_int_equal(extension_set_add_external(&set, "x", i), 0);
    assert_int_equal(extension_set_add_external(&set, "x", 99), -E2BIG);
    extension_set_clear(&set);
}

static void test_registration_ends(void **state)
{
    struct extension_set set = {.count = 0};

    (void)state;
    assert_int_equal(add_internal(&set, "early", EXTENSION_INVOKE), 0);
    assert_int_equal(add_internal(&set, "early", EXTENSION_INVOKE), EXTENSION_REFUSED_NAME);
    set.closed = true;
    assert_int_equal(add_internal(&set, "late", 0), EXTENSION_REFUSED_CLOSED);
    extension_set_clear(&set);
}

static void test_all_must_be_ready_and_none_running(void **state)
{
    struct extension_set set = {.count = 0};

    (void)state;
    assert_true(extension_set_all_ready(&set));
    assert_int_equal(add_internal(&set, "a", 0), 0);
    assert_int_equal(add_internal(&set, "b", EXTENSION_INVOKE), 0);
    set.list[0].state = EXTENSION_READY;
    assert_false(extension_set_all_ready(&set));
    set.list[1].state = EXTENSION_READY;
    assert_true(extension_set_all_ready(&set));
    assert_false(extension_set_is_running(&set));
    set.list[1].state = EXTENSION_RUNNING;
    assert_true(extension_set_is_running(&set));
    set.list[1].state = EXTENSION_EXIT_ERROR; /* not done: it is about to fail */
    assert_true(extension_set_is_running(&set));
    extension_set_clear(&set);
}

static void test_shutdown_waits_for_living_subscribers_alone(void **state)
{
    struct extension_set set = {.count = 0};
    struct extension *extension;

    (void)state;
    assert_int_equal(extension_set_add_external(&set, "deaf", 1), 0);
    assert_int_equal(extension_set_add_external(&set, "listener", 2), 0);
    assert_int_equal(extension_set_register(&set, SPAN("deaf"), EXTENSION_INVOKE, &extension), 0);
    assert_false(extension_set_awaits_shutdown(&set));
    assert_int_equal(extension_set_register(&set, SPAN("listener"), EXTENSION_SHUTDOWN, &extension), 0);
    assert_true(extension_set_awaits_shutdown(&set));
    extension->alive = false;
    assert_false(extension_set_awaits_shutdown(&set));
    extension_set_clear(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_external_ones_register_once_under_their_name),
        cmocka_unit_test(test_quota_counts_both_kinds),
        cmocka_unit_test(test_an_eleventh_external_one_can_be_named_but_no_twelfth),
        cmocka_unit_test(test_registration_ends),
        cmocka_unit_test(test_all_must_be_ready_and_none_running),
        cmocka_unit_test(test_shutdown_waits_for_living_subscribers_alone),
    };

    return cmocka_run_group_tests_name("extension", tests, NULL, NULL);
}
