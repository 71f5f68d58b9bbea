#include "worker/log_record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

static void assert_span(struct span span, const char *expected)
{
    assert_int_equal(span.length, strlen(expected));
    assert_memory_equal(span.data, expected, span.length);
}

static void test_records_read_back_as_written(void **state)
{
    CLEANUP(buffer_deinit) struct buffer file = BUFFER_INIT;
    struct log_record record;
    struct span rest;

    (void)state;
    assert_int_equal(log_record_append(&file, 1767225600123, SPAN("START\n")), 0);
    assert_int_equal(log_record_append(&file, 1767225600124, SPAN("no newline")), 0);
    assert_int_equal(log_record_append(&file, 1767225600125, SPAN("")), 0);
    assert_int_equal(log_record_append(&file, 1767225600126, SPAN("a\nb\n")), 0);
    assert_span(buffer_span(&file), "1767225600123 6 START\n1767225600124 10 no newline\n1767225600125 0 \n"
                                    "1767225600126 4 a\nb\n");
    rest = buffer_span(&file);
    assert_int_equal(log_record_parse(&rest, &record), 0);
    assert_int_equal(record.time_ms, 1767225600123);
    assert_span(record.message, "START\n");
    assert_int_equal(log_record_parse(&rest, &record), 0);
    assert_span(record.message, "no newline");
    assert_int_equal(log_record_parse(&rest, &record), 0);
    assert_span(record.message, "");
    assert_int_equal(log_record_parse(&rest, &record), 0);
    assert_span(record.message, "a\nb\n");
    assert_int_equal(log_record_parse(&rest, &record), LOG_RECORD_INCOMPLETE);
}

static void test_every_torn_end_is_incomplete(void **state)
{
    static const char whole[] = "1767225600123 5 hello\n";

    (void)state;
    for (size_t length = 0; length < sizeof(whole) - 1; length++) {
        struct span rest = span_of(whole, length);
        struct log_record record;

        assert_int_equal(log_record_parse(&rest, &record), LOG_RECORD_INCOMPLETE);
        assert_int_equal(rest.length, length);
    }
}

static void test_what_is_no_record_is_refused(void **state)
{
    static const char *const bad[] = {
        "x", "12x 3 abc\n", " 3 abc\n", "1 -3 abc\n", "1 3 abcd\n", "1 99999999999 a", "99999999999999999999 1 a\n"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct span rest = span_from(bad[i]);
        struct log_record record;

        assert_int_equal(log_record_parse(&rest, &record), -EINVAL);
    }
}

static void assert_name(struct span name, const char *expected)
{
    CLEANUP(buffer_deinit) struct buffer path = BUFFER_INIT;
    CLEANUP(buffer_deinit) struct buffer back = BUFFER_INIT;

    assert_int_equal(log_name_encode(name, &path), 0);
    if (expected)
        assert_span(buffer_span(&path), expected);
    assert_int_equal(log_name_decode(buffer_span(&path), &back), 0);
    assert_true(span_equal(buffer_span(&back), name));
}

static void test_names_become_one_file_name(void **state)
{
    (void)state;
    assert_name(SPAN("/aws/lambda/shop"), "~aws~lambda~shop");
    assert_name(SPAN("2026/01/02[$LATEST]0a"), "2026~01~02[$LATEST]0a");
    assert_name(SPAN("a~b%c+d e"), "a%7Eb%25c%2Bd%20e");
    assert_name(SPAN(""), "%");
}

static void test_no_name_leads_out_of_the_folder(void **state)
{
    (void)state;
    assert_name(SPAN("."), "%2E");
    assert_name(SPAN(".."), "%2E.");
    assert_name(SPAN("../../etc/passwd"), "%2E.~..~etc~passwd");
    assert_name(SPAN("a\0b"), "a%00b");
}

static void test_long_group_names_become_folders(void **state)
{
    char name[512];
    CLEANUP(buffer_deinit) struct buffer path = BUFFER_INIT;
    struct span rest;
    struct span piece;

    (void)state;
    memset(name, '.', sizeof(name));
    assert_name(span_of(name, sizeof(name)), NULL);
    memset(name, '@', sizeof(name));
    assert_name(span_of(name, sizeof(name)), NULL);
    assert_int_equal(log_name_encode(span_of(name, sizeof(name)), &path), 0);
    rest = buffer_span(&path);
    while (rest.data) {
        piece = span_cut(&rest, '/');
        assert_in_range(piece.length, 1, 240);
        assert_true(piece.data[0] != '.');
    }
}

static void test_foreign_file_names_do_not_decode(void **state)
{
    static const char *const bad[] = {"a b", "%2", "%zz", "a+b", "a+", "a/b", "%2e"};
    CLEANUP(buffer_deinit) struct buffer name = BUFFER_INIT;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_int_equal(log_name_decode(span_from(bad[i]), &name), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records_read_back_as_written),     cmocka_unit_test(test_every_torn_end_is_incomplete),
        cmocka_unit_test(test_what_is_no_record_is_refused),     cmocka_unit_test(test_names_become_one_file_name),
        cmocka_unit_test(test_no_name_leads_out_of_the_folder),  cmocka_unit_test(test_long_group_names_become_folders),
        cmocka_unit_test(test_foreign_file_names_do_not_decode),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
