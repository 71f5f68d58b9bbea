#include "base/test.h"

#include "base/zone.h"

#include "base/buffer.h"

static void append_big(struct buffer *buffer, int64_t value, size_t bytes)
{
    for (size_t i = bytes; i--;)
        assert_int_equal(buffer_append_char(buffer, i < 8 ? (char)(value >> (8 * i)) : 0), 0);
}

static void append_header(struct buffer *buffer, int64_t times, int64_t types)
{
    assert_int_equal(buffer_append(buffer, "TZif2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20), 0);
    append_big(buffer, 0, 12);
    append_big(buffer, times, 4);
    append_big(buffer, types, 4);
    append_big(buffer, 4, 4);
}

/* A version 2 file whose table says +1 h, from `transition_s` on +2 h, and whose rule is `rule`. */
static struct zone made(int64_t transition_s, const char *rule)
{
    struct buffer buffer CLEANUP(buffer_deinit) = BUFFER_INIT;
    struct zone zone;

    append_header(&buffer, 0, 1);
    append_big(&buffer, 0, 10);
    append_header(&buffer, 1, 2);
    append_big(&buffer, transition_s, 8);
    append_big(&buffer, 1, 1);
    append_big(&buffer, 3600, 4);
    append_big(&buffer, 0, 2);
    append_big(&buffer, 7200, 4);
    append_big(&buffer, 0, 2);
    append_big(&buffer, 0, 4);
    assert_int_equal(buffer_printf(&buffer, "\n%s\n", rule), 0);
    assert_int_equal(zone_parse(buffer_span(&buffer), &zone), 0);
    for (size_t length = 0; length < buffer.length - strlen(rule) - 2; length++) {
        struct zone cut;
        assert_int_equal(zone_parse(span_of(buffer.data, length), &cut), -EINVAL);
    }
    return zone;
}

static void test_the_table_holds_until_its_end_and_the_rule_after(void **state)
{
    struct zone zone = made(1000, "<+05>-5");

    (void)state;
    assert_int_equal(zone_offset(999, &zone), 3600);
    assert_int_equal(zone_offset(1000, &zone), 5 * 3600);
    zone = made(1000, "");
    assert_int_equal(zone_offset(1000, &zone), 7200);
}

static void test_clocks_change_on_the_last_sunday(void **state)
{
    struct zone zone = made(-5, "CET-1CEST,M3.5.0,M10.5.0/3");

    (void)state;
    /* 29 March and 25 October 2026, 01:00 UTC */
    assert_int_equal(zone_offset(1774745999, &zone), 3600);
    assert_int_equal(zone_offset(1774746000, &zone), 7200);
    assert_int_equal(zone_offset(1792889999, &zone), 7200);
    assert_int_equal(zone_offset(1792890000, &zone), 3600);
    assert_int_equal(zone_offset(1798761600, &zone), 3600); /* 1 January 2027 */
}

static void test_summer_in_the_south_spans_the_turn_of_the_year(void **state)
{
    struct zone zone = made(-5, "AEST-10AEDT,M10.1.0,M4.1.0/3");

    (void)state;
    assert_int_equal(zone_offset(1767225600, &zone), 11 * 3600); /* 1 January 2026 */
    assert_int_equal(zone_offset(1782864000, &zone), 10 * 3600); /* 1 July 2026 */
    assert_int_equal(zone_offset(1798761600, &zone), 11 * 3600); /* 1 January 2027 */
}

static void test_west_is_negative(void **state)
{
    struct zone zone = made(-5, "EST5EDT,M3.2.0,M11.1.0");

    (void)state;
    assert_int_equal(zone_offset(1767225600, &zone), -5 * 3600);
    assert_int_equal(zone_offset(1782864000, &zone), -4 * 3600);
}

static void test_what_is_no_name_is_refused(void **state)
{
    struct zone zone;
    struct fault fault = {0};

    (void)state;
    assert_int_equal(zone_load(SPAN("../../etc/passwd"), &zone, &fault), -EINVAL);
    assert_int_equal(zone_load(SPAN("/etc/passwd"), &zone, &fault), -EINVAL);
    assert_int_equal(zone_load(SPAN(""), &zone, &fault), -EINVAL);
    assert_int_equal(zone_load(SPAN("Atlantis/Poseidonis"), &zone, &fault), -ENOENT);
    assert_string_equal(fault.text, "there is no time zone 'Atlantis/Poseidonis' in /usr/share/zoneinfo");
    assert_int_equal(zone_load(SPAN("UTC"), &zone, &fault), 0);
    assert_int_equal(zone_offset(1767225600, &zone), 0);
}

static void test_what_is_no_zone_file_is_refused(void **state)
{
    struct zone zone;

    (void)state;
    assert_int_equal(zone_parse(SPAN_NONE, &zone), -EINVAL);
    assert_int_equal(zone_parse(SPAN("TZif"), &zone), -EINVAL);
    assert_int_equal(zone_parse(SPAN("root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1:daemon:/usr"), &zone), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_table_holds_until_its_end_and_the_rule_after),
        cmocka_unit_test(test_clocks_change_on_the_last_sunday),
        cmocka_unit_test(test_summer_in_the_south_spans_the_turn_of_the_year),
        cmocka_unit_test(test_west_is_negative),
        cmocka_unit_test(test_what_is_no_name_is_refused),
        cmocka_unit_test(test_what_is_no_zone_file_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
