#include "worker/log_frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#define TIME "\0\0\0\0\0\0\0\0"

static void test_header_in_one_piece_and_in_sixteen(void **state)
{
    static const char bytes[] = "\xa5\x5a\x00\x13\x00\x00\x01\x02" TIME "message";
    struct span all = span_of(bytes, sizeof(bytes) - 1);
    struct log_frame frame = {0};

    (void)state;
    assert_int_equal(log_frame_take_header(&frame, &all), LOG_FRAME_MESSAGE);
    assert_int_equal(frame.left, 258);
    assert_true(span_equal(all, SPAN("message")));
    assert_int_equal(log_frame_level(&frame, all), LOG_LINE_WARN);
    frame = (struct log_frame){0};
    for (size_t i = 0; i < LOG_FRAME_HEADER_BYTES; i++) {
        struct span one = span_of(bytes + i, 1);

        assert_int_equal(log_frame_take_header(&frame, &one), i == 15 ? LOG_FRAME_MESSAGE : LOG_FRAME_MORE);
        assert_int_equal(one.length, 0);
    }
    assert_int_equal(frame.left, 258);
}

static void test_what_only_begins_like_a_frame_is_none(void **state)
{
    static const struct span cases[] = {SPAN("text"), SPAN("\xa5 not"), SPAN("\xa5\x5a\x01"), SPAN("\xa5\x5a\x00\x10"),
                                        SPAN("\xa5\x5a\x00\x22")};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct log_frame frame = {0};
        struct span rest = cases[i];

        assert_int_equal(log_frame_take_header(&frame, &rest), LOG_FRAME_NONE);
        assert_int_equal(frame.header_length + rest.length, cases[i].length);
        assert_memory_equal(frame.header, cases[i].data, frame.header_length);
    }
}

static void test_an_absurd_length_is_no_frame(void **state)
{
    static const char bytes[] = "\xa5\x5a\x00\x03\xff\xff\xff\xff" TIME;
    struct span rest = span_of(bytes, sizeof(bytes) - 1);
    struct log_frame frame = {0};

    (void)state;
    assert_int_equal(log_frame_take_header(&frame, &rest), LOG_FRAME_NONE);
    assert_int_equal(frame.header_length, LOG_FRAME_HEADER_BYTES);
    assert_int_equal(frame.left, 0);
}

static void test_without_a_level_the_message_tells(void **state)
{
    struct log_frame frame = {.header = "\xa5\x5a\x00\x02"};

    (void)state;
    assert_int_equal(log_frame_level(&frame, SPAN("{\"level\":\"ERROR\"}")), LOG_LINE_ERROR);
    assert_int_equal(log_frame_level(&frame, SPAN("plain")), LOG_LINE_INFO);
    frame.header[3] = 0x07;
    assert_int_equal(log_frame_level(&frame, SPAN("plain")), LOG_LINE_TRACE);
    frame.header[3] = 0x1b;
    assert_int_equal(log_frame_level(&frame, SPAN("plain")), LOG_LINE_FATAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header_in_one_piece_and_in_sixteen),
        cmocka_unit_test(test_what_only_begins_like_a_frame_is_none),
        cmocka_unit_test(test_an_absurd_length_is_no_frame),
        cmocka_unit_test(test_without_a_level_the_message_tells),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
