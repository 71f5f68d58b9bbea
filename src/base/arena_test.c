#include "base/arena.h"

#include "base/failing_alloc.h"
#include "base/test.h"

static void test_allocations_are_aligned_and_do_not_overlap(void **state)
{
    CLEANUP(arena_deinit) struct arena arena = {0};
    unsigned char *previous = NULL;
    (void)state;

    for (size_t size = 1; size < 300; size++) {
        unsigned char *memory = arena_alloc(&arena, size);
        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % _Alignof(max_align_t), 0);
        memset(memory, (int)(size & 0xff), size);
        if (previous)
            assert_int_equal(previous[size - 2], (size - 1) & 0xff);
        previous = memory;
    }
}

static void test_allocations_stay_where_they_are(void **state)
{
    CLEANUP(arena_deinit) struct arena arena = {0};
    char *first = arena_dup(&arena, SPAN("first"));
    (void)state;

    for (int i = 0; i < 1000; i++)
        assert_non_null(arena_alloc(&arena, 100));
    assert_string_equal(first, "first");
}

static void test_large_allocations_get_a_block_of_their_own(void **state)
{
    CLEANUP(arena_deinit) struct arena arena = {0};
    char *large = arena_alloc(&arena, 1 << 20);
    (void)state;

    assert_non_null(large);
    memset(large, 1, 1 << 20);
    assert_non_null(arena_alloc(&arena, 16));
}

static void test_zero_bytes_give_a_valid_pointer(void **state)
{
    CLEANUP(arena_deinit) struct arena arena = {0};
    (void)state;

    assert_non_null(arena_alloc(&arena, 0));
    assert_string_equal(arena_dup(&arena, SPAN_NONE), "");
}

static void test_zalloc_zeroes_reused_memory_too(void **state)
{
    CLEANUP(arena_deinit) struct arena arena = {0};
    (void)state;

    for (int i = 0; i < 100; i++) {
        unsigned char *memory = arena_zalloc(&arena, 64);
        assert_non_null(memory);
        for (size_t k = 0; k < 64; k++)
            assert_int_equal(memory[k], 0);
        memset(memory, 0xff, 64);
    }
}

static void test_printf_has_room_for_any_length(void **state)
{
    CLEANUP(arena_deinit) struct arena arena = {0};
    char *text = arena_printf(&arena, "%s:%8000d", "x", 1);
    (void)state;

    assert_non_null(text);
    assert_int_equal(strlen(text), 8002);
    assert_string_equal(arena_printf(&arena, "%s", ""), "");
}

static void test_sizes_past_the_address_space_are_refused(void **state)
{
    CLEANUP(arena_deinit) struct arena arena = {0};
    (void)state;

    assert_null(arena_alloc(&arena, SIZE_MAX));
    assert_null(arena_alloc(&arena, SIZE_MAX - 15));
}

static void test_without_memory_earlier_allocations_stay(void **state)
{
    CLEANUP(arena_deinit) struct arena arena = {0};
    char *first = arena_dup(&arena, SPAN("first"));
    (void)state;

    failing_alloc_after(0);
    char *second = arena_alloc(&arena, 10000);
    char *third = arena_printf(&arena, "%10000d", 1);
    char *fourth = arena_zalloc(&arena, 10000);
    assert_int_equal(failing_alloc_stop(), 3);
    assert_null(second);
    assert_null(third);
    assert_null(fourth);
    assert_string_equal(first, "first");
    assert_non_null(arena_alloc(&arena, 10000));
}

static void test_deinit_makes_it_empty_again(void **state)
{
    struct arena arena = {0};
    (void)state;

    assert_non_null(arena_alloc(&arena, 10));
    arena_deinit(&arena);
    assert_non_null(arena_alloc(&arena, 10));
    arena_deinit(&arena);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allocations_are_aligned_and_do_not_overlap),
        cmocka_unit_test(test_allocations_stay_where_they_are),
        cmocka_unit_test(test_large_allocations_get_a_block_of_their_own),
        cmocka_unit_test(test_zero_bytes_give_a_valid_pointer),
        cmocka_unit_test(test_zalloc_zeroes_reused_memory_too),
        cmocka_unit_test(test_printf_has_room_for_any_length),
        cmocka_unit_test(test_sizes_past_the_address_space_are_refused),
        cmocka_unit_test(test_without_memory_earlier_allocations_stay),
        cmocka_unit_test(test_deinit_makes_it_empty_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
