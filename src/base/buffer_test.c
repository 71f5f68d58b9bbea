#include "base/buffer.h"

#include "base/failing_alloc.h"
#include "base/test.h"

static void test_empty_buffer_is_valid_everywhere(void **state)
{
    struct buffer buffer = BUFFER_INIT;
    (void)state;

    assert_int_equal(buffer_span(&buffer).length, 0);
    assert_int_equal(buffer_append(&buffer, NULL, 0), 0);
    assert_int_equal(buffer_append_span(&buffer, SPAN_NONE), 0);
    buffer_consume(&buffer, 5);
    assert_null(buffer.data);
    buffer_deinit(&buffer);
    buffer_deinit(&buffer);
}

static void test_appended_bytes_stand_in_order(void **state)
{
    CLEANUP(buffer_deinit) struct buffer buffer = BUFFER_INIT;
    (void)state;

    assert_int_equal(buffer_append(&buffer, "ab\0", 3), 0);
    assert_int_equal(buffer_append_span(&buffer, SPAN("cd")), 0);
    assert_int_equal(buffer_append_char(&buffer, 'e'), 0);
    assert_int_equal(buffer_printf(&buffer, "-%05d", 42), 0);
    assert_int_equal(buffer.length, 12);
    assert_memory_equal(buffer.data, "ab\0cde-00042", 12);
}

static void test_growth_is_geometric(void **state)
{
    CLEANUP(buffer_deinit) struct buffer buffer = BUFFER_INIT;
    size_t grown = 0;
    (void)state;

    for (int i = 0; i < 100000; i++) {
        size_t before = buffer.capacity;
        assert_int_equal(buffer_append_char(&buffer, 'x'), 0);
        grown += buffer.capacity != before;
    }
    assert_int_equal(buffer.length, 100000);
    assert_true(grown < 40);
}

static void test_reserved_room_is_not_content(void **state)
{
    CLEANUP(buffer_deinit) struct buffer buffer = BUFFER_INIT;
    (void)state;

    assert_int_equal(buffer_reserve(&buffer, 100), 0);
    assert_int_equal(buffer.length, 0);
    assert_true(buffer.capacity >= 100);
}

static void test_reserve_past_the_address_space_is_refused(void **state)
{
    CLEANUP(buffer_deinit) struct buffer buffer = BUFFER_INIT;
    (void)state;

    assert_int_equal(buffer_append(&buffer, "ab", 2), 0);
    assert_int_equal(buffer_reserve(&buffer, SIZE_MAX), -ENOMEM);
    assert_int_equal(buffer.length, 2);
}

static void test_terminator_is_not_counted(void **state)
{
    CLEANUP(buffer_deinit) struct buffer buffer = BUFFER_INIT;
    (void)state;

    assert_string_equal(buffer_terminate(&buffer), "");
    assert_int_equal(buffer_append_span(&buffer, SPAN("abc")), 0);
    assert_string_equal(buffer_terminate(&buffer), "abc");
    assert_int_equal(buffer.length, 3);
}

static void test_consume_drops_from_the_front(void **state)
{
    CLEANUP(buffer_deinit) struct buffer buffer = BUFFER_INIT;
    (void)state;

    assert_int_equal(buffer_append_span(&buffer, SPAN("abcdef")), 0);
    buffer_consume(&buffer, 2);
    assert_true(span_equal(buffer_span(&buffer), SPAN("cdef")));
    buffer_consume(&buffer, 99);
    assert_int_equal(buffer.length, 0);
}

static void test_take_leaves_an_empty_buffer_behind(void **state)
{
    struct buffer buffer = BUFFER_INIT;
    (void)state;

    assert_int_equal(buffer_append_span(&buffer, SPAN("abc")), 0);
    CLEANUP(buffer_deinit) struct buffer taken = buffer_take(&buffer);
    assert_null(buffer.data);
    assert_int_equal(buffer.capacity, 0);
    assert_true(span_equal(buffer_span(&taken), SPAN("abc")));
}

static void test_without_memory_the_content_stays(void **state)
{
    CLEANUP(buffer_deinit) struct buffer buffer = BUFFER_INIT;
    struct buffer empty = BUFFER_INIT;
    char large[4096] = {0};
    (void)state;

    assert_int_equal(buffer_append_span(&buffer, SPAN("abc")), 0);
    failing_alloc_after(0);
    assert_int_equal(buffer_append(&buffer, large, sizeof(large)), -ENOMEM);
    assert_int_equal(buffer_printf(&buffer, "%4096d", 1), -ENOMEM);
    assert_null(buffer_terminate(&empty));
    assert_int_equal(failing_alloc_stop(), 3);
    assert_true(span_equal(buffer_span(&buffer), SPAN("abc")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty_buffer_is_valid_everywhere),
        cmocka_unit_test(test_appended_bytes_stand_in_order),
        cmocka_unit_test(test_growth_is_geometric),
        cmocka_unit_test(test_reserved_room_is_not_content),
        cmocka_unit_test(test_reserve_past_the_address_space_is_refused),
        cmocka_unit_test(test_terminator_is_not_counted),
        cmocka_unit_test(test_consume_drops_from_the_front),
        cmocka_unit_test(test_take_leaves_an_empty_buffer_behind),
        cmocka_unit_test(test_without_memory_the_content_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
