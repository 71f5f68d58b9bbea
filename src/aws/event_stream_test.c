#include "aws/event_stream.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* The CRCs were computed with another implementation. */
static void test_a_message_is_framed_byte_for_byte(void **state)
{
    static const char expected[] = "\x00\x00\x00\x6c\x00\x00\x00\x5a\xb2\x5e\xfd\xcf"
                                   "\x0b:event-type\x07\x00\x0c"
                                   "PayloadChunk"
                                   "\x0d:content-type\x07\x00\x18"
                                   "application/octet-stream"
                                   "\x0d:message-type\x07\x00\x05"
                                   "event"
                                   "hi"
                                   "\x11\x62\xe4\x69";
    CLEANUP(buffer_deinit) struct buffer out = BUFFER_INIT;

    (void)state;
    assert_int_equal(event_stream_append(&out, SPAN("PayloadChunk"), SPAN("application/octet-stream"), SPAN("hi")), 0);
    assert_int_equal(out.length, sizeof(expected) - 1);
    assert_memory_equal(out.data, expected, sizeof(expected) - 1);
}

static void test_messages_follow_each_other_and_may_be_empty(void **state)
{
    CLEANUP(buffer_deinit) struct buffer out = BUFFER_INIT;
    size_t first;

    (void)state;
    assert_int_equal(event_stream_append(&out, SPAN("A"), SPAN("b/c"), SPAN_NONE), 0);
    first = out.length;
    assert_int_equal(event_stream_append(&out, SPAN("A"), SPAN("b/c"), SPAN_NONE), 0);
    assert_int_equal(out.length, 2 * first);
    assert_memory_equal(out.data, out.data + first, first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_message_is_framed_byte_for_byte),
        cmocka_unit_test(test_messages_follow_each_other_and_may_be_empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
