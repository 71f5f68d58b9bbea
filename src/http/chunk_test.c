#include "http/chunk.h"

#include "base/buffer.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Decodes in pieces of `piece` bytes. Returns the last result; *ret_rest is what was not consumed. */
static enum chunk_result decode(struct span text, size_t piece, struct buffer *body, size_t *ret_rest)
{
    struct chunk_decoder decoder = {0};
    enum chunk_result result = CHUNK_MORE;

    while (result == CHUNK_MORE && text.length) {
        struct span data;
        size_t consumed;
        result = chunk_decode(&decoder, span_of(text.data, MIN(piece, text.length)), &data, &consumed);
        assert_true(result != CHUNK_MORE || consumed > 0);
        assert_int_equal(buffer_append_span(body, data), 0);
        text = span_slice(text, consumed, text.length);
    }
    *ret_rest = text.length;
    return result;
}

static void assert_body(struct span text, struct span expected, size_t rest)
{
    for (size_t piece = 1; piece <= text.length; piece++) {
        CLEANUP(buffer_deinit) struct buffer body = BUFFER_INIT;
        size_t left;
        assert_int_equal(decode(text, piece, &body, &left), CHUNK_DONE);
        assert_true(span_equal(buffer_span(&body), expected));
        assert_int_equal(left, rest);
    }
}

static void assert_bad(struct span text)
{
    for (size_t piece = 1; piece <= text.length; piece++) {
        CLEANUP(buffer_deinit) struct buffer body = BUFFER_INIT;
        size_t left;
        assert_int_equal(decode(text, piece, &body, &left), CHUNK_BAD);
    }
}

static void test_bad_sizes_are_refused(void **state)
{
    (void)state;
    assert_bad(SPAN("\r\n"));
    assert_bad(SPAN("g\r\n"));
    assert_bad(SPAN("-1\r\n"));
    assert_bad(SPAN("+1\r\n"));
    assert_bad(SPAN("0x1\r\n"));
    assert_bad(SPAN(" 1\r\n"));
    assert_bad(SPAN("1 \r\n"));
    assert_bad(SPAN("1\t\r\n"));
    assert_bad(SPAN("1\n"));
    assert_bad(SPAN("1\r\r\n"));
    assert_bad(SPAN(";a\r\n"));
    assert_bad(SPAN("1000000000000000\r\n"));
    assert_bad(SPAN("0000000000000001\r\n"));
}

static void test_bad_framing_is_refused(void **state)
{
    (void)state;
    assert_bad(SPAN("1\r\nab\r\n"));
    assert_bad(SPAN("1\r\na\n"));
    assert_bad(SPAN("1;x\ny\r\na\r\n"));
    assert_bad(SPAN("1;\0\r\n"));
    assert_bad(SPAN("0\r\nX: a\nb\r\n\r\n"));
    assert_bad(SPAN("0\r\n folded\r\n\r\n"));
    assert_bad(SPAN("0\r\n\ra"));
}

static void test_framing_without_data_is_bounded(void **state)
{
    CLEANUP(buffer_deinit) struct buffer text = BUFFER_INIT;
    CLEANUP(buffer_deinit) struct buffer body = BUFFER_INIT;
    size_t rest;

    (void)state;
    assert_int_equal(buffer_append_span(&text, SPAN("0\r\n")), 0);
    for (size_t i = 0; i < 200000; i++)
        assert_int_equal(buffer_append_span(&text, SPAN("X: y\r\n")), 0);
    assert_int_equal(decode(buffer_span(&text), 4096, &body, &rest), CHUNK_BAD);
}

static void test_chunks_are_joined(void **state)
{
    (void)state;
    assert_body(SPAN("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"), SPAN("hello world"), 0);
    assert_body(SPAN("00b\r\nhello world\r\n000\r\n\r\nGET /"), SPAN("hello world"), 5);
    assert_body(SPAN("A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n"), SPAN("01234567890123456789"), 0);
    assert_body(SPAN("0\r\n\r\n"), SPAN(""), 0);
}

static void test_extensions_and_trailers_are_dropped(void **state)
{
    (void)state;
    assert_body(SPAN("2;a=b;c=\"d e\"\r\nhi\r\n0;last\r\nX-Sum: 1\r\nY: 2\r\n\r\n"), SPAN("hi"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_sizes_are_refused),
        cmocka_unit_test(test_bad_framing_is_refused),
        cmocka_unit_test(test_framing_without_data_is_bounded),
        cmocka_unit_test(test_chunks_are_joined),
        cmocka_unit_test(test_extensions_and_trailers_are_dropped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
