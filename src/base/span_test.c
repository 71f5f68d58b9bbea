#include "base/span.h"

#include "base/failing_alloc.h"
#include "base/test.h"

static void assert_span(struct span span, const char *expected)
{
    assert_int_equal(span.length, strlen(expected));
    if (span.length)
        assert_memory_equal(span.data, expected, span.length);
}

static void test_empty_spans_are_equal_whatever_their_pointer(void **state)
{
    (void)state;
    assert_true(span_equal(SPAN_NONE, SPAN("")));
    assert_true(span_equal_nocase(SPAN_NONE, SPAN("")));
    assert_int_equal(span_compare(SPAN_NONE, SPAN("")), 0);
    assert_int_equal(span_from(NULL).length, 0);
}

static void test_equality_is_bytewise_and_nocase_is_ascii_only(void **state)
{
    (void)state;
    assert_true(span_equal(SPAN("a\0b"), SPAN("a\0b")));
    assert_false(span_equal(SPAN("a\0b"), SPAN("a\0c")));
    assert_false(span_equal(SPAN("Host"), SPAN("host")));
    assert_true(span_equal_nocase(SPAN("X-Amz-Date"), SPAN("x-aMZ-dATE")));
    assert_false(span_equal_nocase(SPAN("["), SPAN("{"))); /* 0x20 apart like letters, but none */
    assert_false(span_equal_nocase(SPAN("\xc4"), SPAN("\xe4")));
}

static void test_compare_orders_bytes_unsigned_and_shorter_first(void **state)
{
    (void)state;
    assert_true(span_compare(SPAN("a"), SPAN("b")) < 0);
    assert_true(span_compare(SPAN("\xff"), SPAN("a")) > 0);
    assert_true(span_compare(SPAN("a"), SPAN("ab")) < 0);
    assert_true(span_compare(SPAN("ab"), SPAN("a")) > 0);
}

static void test_prefix_and_suffix_never_look_past_the_end(void **state)
{
    (void)state;
    assert_true(span_starts_with(SPAN("function:x"), SPAN("function:")));
    assert_false(span_starts_with(SPAN("func"), SPAN("function:")));
    assert_true(span_ends_with(SPAN("a.zip"), SPAN(".zip")));
    assert_false(span_ends_with(SPAN("zip"), SPAN(".zip")));
    assert_true(span_starts_with(SPAN_NONE, SPAN_NONE));
    assert_true(span_ends_with(SPAN_NONE, SPAN_NONE));
}

static void test_trim_takes_blanks_and_tabs_at_both_ends_only(void **state)
{
    (void)state;
    assert_span(span_trim(SPAN(" \t a b\t ")), "a b");
    assert_span(span_trim(SPAN(" \t ")), "");
    assert_span(span_trim(SPAN("\na\n")), "\na\n");
    assert_span(span_trim(SPAN_NONE), "");
}

static void test_find_gives_the_first_position_or_minus_one(void **state)
{
    (void)state;
    assert_int_equal(span_find(SPAN("a:b:c"), ':'), 1);
    assert_int_equal(span_find(SPAN("abc"), ':'), -1);
    assert_int_equal(span_find(SPAN_NONE, ':'), -1);
    assert_int_equal(span_find_span(SPAN("aab"), SPAN("ab")), 1);
    assert_int_equal(span_find_span(SPAN("a"), SPAN("ab")), -1);
    assert_int_equal(span_find_span(SPAN("abc"), SPAN_NONE), 0);
    assert_int_equal(span_find_span(SPAN_NONE, SPAN("a")), -1);
}

static void test_cut_yields_every_part_and_ends_with_null(void **state)
{
    struct span rest = SPAN("a::b");
    (void)state;

    assert_span(span_cut(&rest, ':'), "a");
    assert_span(span_cut(&rest, ':'), "");
    assert_non_null(rest.data);
    assert_span(span_cut(&rest, ':'), "b");
    assert_null(rest.data);
    assert_span(span_cut(&rest, ':'), "");
}

static void test_cut_tells_a_final_separator_from_none(void **state)
{
    struct span rest = SPAN("a:");
    (void)state;

    assert_span(span_cut(&rest, ':'), "a");
    assert_non_null(rest.data);
    assert_int_equal(rest.length, 0);
    assert_span(span_cut(&rest, ':'), "");
    assert_null(rest.data);
}

static void test_numbers_are_digits_only(void **state)
{
    static const char *const bad[] = {"", "+1", "-1", " 1", "1 ", "0x1", "1.0", "1e3", "\xd9\xa1"};
    uint64_t value = 7;
    (void)state;

    assert_int_equal(span_to_u64(SPAN("0042"), 100, &value), 0);
    assert_int_equal(value, 42);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_int_equal(span_to_u64(span_from(bad[i]), UINT64_MAX, &value), -EINVAL);
    assert_int_equal(value, 42);
}

static void test_numbers_past_the_maximum_are_out_of_range(void **state)
{
    uint64_t value;
    (void)state;

    assert_int_equal(span_to_u64(SPAN("1000"), 1000, &value), 0);
    assert_int_equal(span_to_u64(SPAN("1001"), 1000, &value), -ERANGE);
    assert_int_equal(span_to_u64(SPAN("18446744073709551615"), UINT64_MAX, &value), 0);
    assert_true(value == UINT64_MAX);
    assert_int_equal(span_to_u64(SPAN("18446744073709551616"), UINT64_MAX, &value), -ERANGE);
    assert_int_equal(span_to_u64(SPAN("99999999999999999999999"), UINT64_MAX, &value), -ERANGE);
    assert_int_equal(span_to_u64(SPAN("99999999999999999999999x"), UINT64_MAX, &value), -EINVAL);
}

static void test_dup_terminates_and_survives_the_original(void **state)
{
    CLEANUP(cleanup_free) char *copy = span_dup(span_of("abcdef", 3));
    CLEANUP(cleanup_free) char *empty = span_dup(SPAN_NONE);
    (void)state;

    assert_string_equal(copy, "abc");
    assert_string_equal(empty, "");
}

static void test_dup_without_memory_is_null(void **state)
{
    (void)state;
    failing_alloc_after(0);
    char *copy = span_dup(SPAN("abc"));
    assert_int_equal(failing_alloc_stop(), 1);
    assert_null(copy);
}

static void test_utf8_accepts_every_length_and_the_borders(void **state)
{
    (void)state;
    assert_true(span_is_utf8(SPAN_NONE));
    assert_true(span_is_utf8(SPAN("a\0b")));
    assert_true(span_is_utf8(SPAN("\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf")));
    assert_true(span_is_utf8(SPAN("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf")));
}

static void test_utf8_refuses_what_is_not(void **state)
{
    static const char *const bad[] = {
        "\x80",             /* a continuation alone */
        "\xc3",             /* cut short */
        "\xe2\x82",         /* cut short */
        "\xf0\x9f\x98",     /* cut short */
        "\xc3(",            /* no continuation */
        "\xc0\xaf",         /* overlong */
        "\xe0\x80\xaf",     /* overlong */
        "\xf0\x80\x80\xaf", /* overlong */
        "\xed\xa0\x80",     /* a surrogate */
        "\xed\xbf\xbf",     /* a surrogate */
        "\xf4\x90\x80\x80", /* past U+10FFFF */
        "\xf8\x88\x80\x80\x80",
        "\xfe",
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_false(span_is_utf8(span_from(bad[i])));
    assert_false(span_is_utf8(span_of("ab\xe2\x82\xac", 4)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty_spans_are_equal_whatever_their_pointer),
        cmocka_unit_test(test_equality_is_bytewise_and_nocase_is_ascii_only),
        cmocka_unit_test(test_compare_orders_bytes_unsigned_and_shorter_first),
        cmocka_unit_test(test_prefix_and_suffix_never_look_past_the_end),
        cmocka_unit_test(test_trim_takes_blanks_and_tabs_at_both_ends_only),
        cmocka_unit_test(test_find_gives_the_first_position_or_minus_one),
        cmocka_unit_test(test_cut_yields_every_part_and_ends_with_null),
        cmocka_unit_test(test_cut_tells_a_final_separator_from_none),
        cmocka_unit_test(test_numbers_are_digits_only),
        cmocka_unit_test(test_numbers_past_the_maximum_are_out_of_range),
        cmocka_unit_test(test_dup_terminates_and_survives_the_original),
        cmocka_unit_test(test_dup_without_memory_is_null),
        cmocka_unit_test(test_utf8_accepts_every_length_and_the_borders),
        cmocka_unit_test(test_utf8_refuses_what_is_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
