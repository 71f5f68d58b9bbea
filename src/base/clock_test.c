#include "base/clock.h"

#include "base/test.h"

/* 2026-01-02T03:04:05.678 UTC */
static const int64_t instant_ns = INT64_C(1767323045) * NS_PER_S + 678 * NS_PER_MS + 999999;

static void test_monotonic_clock_never_goes_back(void **state)
{
    int64_t last = clock_monotonic_ns();
    (void)state;

    for (int i = 0; i < 1000; i++) {
        int64_t now = clock_monotonic_ns();
        assert_true(now >= last);
        last = now;
    }
}

static void test_wall_clock_is_of_this_century(void **state)
{
    (void)state;
    assert_true(clock_wall_ns() > INT64_C(1700000000) * NS_PER_S);
    assert_true(clock_wall_ns() < INT64_C(4102444800) * NS_PER_S);
}

static void test_forms_cut_the_fraction_to_milliseconds(void **state)
{
    char text[CLOCK_ISO_BYTES];
    (void)state;

    assert_string_equal(clock_format_lambda(instant_ns, text), "2026-01-02T03:04:05.678+0000");
    assert_string_equal(clock_format_lambda_seconds(instant_ns, text), "2026-01-02T03:04:05+0000");
    assert_string_equal(clock_format_iso(instant_ns, text), "2026-01-02T03:04:05.678Z");
    assert_string_equal(clock_format_iso_micro(instant_ns, text), "2026-01-02T03:04:05.678999Z");
    assert_string_equal(clock_format_amz(instant_ns, text), "20260102T030405Z");
    assert_string_equal(clock_format_iso(0, text), "1970-01-01T00:00:00.000Z");
    assert_string_equal(clock_format_iso(INT64_C(9214646399) * NS_PER_S, text), "2261-12-31T23:59:59.000Z");
}

static void test_parsing_reverses_formatting(void **state)
{
    char text[CLOCK_ISO_BYTES];
    int64_t parsed;
    (void)state;

    for (int64_t seconds = 0; seconds < INT64_C(4102444800); seconds += INT64_C(86399) * 97) {
        clock_format_amz(seconds * NS_PER_S, text);
        assert_int_equal(clock_parse_amz(span_from(text), &parsed), 0);
        assert_true(parsed == seconds * NS_PER_S);
    }
}

static void test_leap_day_exists_in_leap_years_only(void **state)
{
    int64_t parsed;
    (void)state;

    assert_int_equal(clock_parse_amz(SPAN("20240229T000000Z"), &parsed), 0);
    assert_int_equal(clock_parse_amz(SPAN("20250229T000000Z"), &parsed), -EINVAL);
    assert_int_equal(clock_parse_amz(SPAN("21000229T000000Z"), &parsed), -EINVAL);
}

static void test_last_representable_year_is_2261(void **state)
{
    int64_t parsed = 7;
    (void)state;

    assert_int_equal(clock_parse_amz(SPAN("22620101T000000Z"), &parsed), -EINVAL);
    assert_int_equal(clock_parse_amz(SPAN("99991231T235959Z"), &parsed), -EINVAL);
    assert_true(parsed == 7);
    assert_int_equal(clock_parse_amz(SPAN("22611231T235959Z"), &parsed), 0);
    assert_true(parsed == INT64_C(9214646399) * NS_PER_S);
}

static void test_anything_but_the_exact_form_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "20260102T030405",
        "20260102T030405Z ",
        "20260102 030405Z",
        "20260102T030405z",
        "2026-01-02T03:04",
        "20260002T030405Z",
        "20261302T030405Z",
        "20260100T030405Z",
        "20260132T030405Z",
        "20260431T030405Z",
        "20260102T240000Z",
        "20260102T036005Z",
        "20260102T030460Z",
        "19691231T235959Z",
        "+0260102T030405Z",
        "20260102T03040xZ",
    };
    int64_t parsed = 7;
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_int_equal(clock_parse_amz(span_from(bad[i]), &parsed), -EINVAL);
    assert_int_equal(parsed, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_monotonic_clock_never_goes_back),
        cmocka_unit_test(test_wall_clock_is_of_this_century),
        cmocka_unit_test(test_forms_cut_the_fraction_to_milliseconds),
        cmocka_unit_test(test_parsing_reverses_formatting),
        cmocka_unit_test(test_leap_day_exists_in_leap_years_only),
        cmocka_unit_test(test_last_representable_year_is_2261),
        cmocka_unit_test(test_anything_but_the_exact_form_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
