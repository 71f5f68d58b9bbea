#include "http/response.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void assert_head(const struct response_plan *plan, const struct http_header *headers, size_t count,
                        struct span expected)
{
    CLEANUP(buffer_deinit) struct buffer out = BUFFER_INIT;

    assert_int_equal(response_append_head(&out, plan, headers, count), 0);
    assert_int_equal(out.length, expected.length);
    assert_memory_equal(out.data, expected.data, expected.length);
}

static void test_values_cannot_end_their_line(void **state)
{
    const struct response_plan plan = {.status = 200, .content_length = -1, .keep_alive = true, .minor_version = 1};
    const struct http_header headers[] = {
        {SPAN("X-A"), SPAN("1\r\nX-Evil: 2")}, {SPAN("X-B"), SPAN("a\0b\tc\x7f")}, {SPAN("X-C"), SPAN_NONE}};

    (void)state;
    assert_head(&plan, headers, 3, SPAN("HTTP/1.1 200 OK\r\nX-A: 1  X-Evil: 2\r\nX-B: a b\tc \r\nX-C: \r\n\r\n"));
}

static void test_fields_with_bad_names_are_dropped(void **state)
{
    const struct response_plan plan = {.status = 200, .content_length = -1, .keep_alive = true, .minor_version = 1};
    const struct http_header headers[] = {
        {SPAN("X A"), SPAN("1")}, {SPAN(""), SPAN("1")}, {SPAN("X\r\nB"), SPAN("1")}, {SPAN("X:"), SPAN("1")}};

    (void)state;
    assert_head(&plan, headers, 4, SPAN("HTTP/1.1 200 OK\r\n\r\n"));
}

static void test_framing_fields_are_ours_alone(void **state)
{
    const struct response_plan plan = {
        .status = 200, .framing = RESPONSE_LENGTH, .content_length = 7, .keep_alive = true, .minor_version = 1};
    const struct http_header headers[] = {{SPAN("content-length"), SPAN("99")},
                                          {SPAN("Transfer-Encoding"), SPAN("chunked")},
                                          {SPAN("connection"), SPAN("keep-alive")},
                                          {SPAN("Content-Type"), SPAN("text/plain")}};

    (void)state;
    assert_head(&plan, headers, 4, SPAN("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 7\r\n\r\n"));
}

static void test_connection_field_when_due(void **state)
{
    struct response_plan plan = {.status = 599, .framing = RESPONSE_CHUNKED, .content_length = -1, .minor_version = 1};

    (void)state;
    assert_head(&plan, NULL, 0,
                SPAN("HTTP/1.1 599 Unknown\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"));
    plan = (struct response_plan){
        .status = 204, .framing = RESPONSE_NO_BODY, .content_length = -1, .keep_alive = true, .date = "D"};
    assert_head(&plan, NULL, 0, SPAN("HTTP/1.1 204 No Content\r\nDate: D\r\nConnection: keep-alive\r\n\r\n"));
}

static void test_wishes_are_read(void **state)
{
    const struct http_header headers[] = {
        {SPAN("Connection"), SPAN("x, close")}, {SPAN("Date"), SPAN("then")}, {SPAN("Content-Length"), SPAN("12")}};
    struct response_wishes wishes = response_inspect(headers, 3);

    (void)state;
    assert_true(wishes.close);
    assert_true(wishes.has_date);
    assert_int_equal(wishes.content_length, 12);
    wishes = response_inspect(NULL, 0);
    assert_false(wishes.close);
    assert_false(wishes.has_date);
    assert_int_equal(wishes.content_length, -1);
}

static void test_chunk_framing(void **state)
{
    CLEANUP(buffer_deinit) struct buffer out = BUFFER_INIT;
    const struct http_header trailer = {SPAN("X-Sum"), SPAN("1")};

    (void)state;
    assert_int_equal(response_append_chunk_size(&out, 0xabcd), 0);
    assert_int_equal(response_append_last_chunk(&out, &trailer, 1), 0);
    assert_true(span_equal(buffer_span(&out), SPAN("abcd\r\n0\r\nX-Sum: 1\r\n\r\n")));
}

static void test_reasons(void **state)
{
    (void)state;
    assert_true(span_equal(response_reason(413), SPAN("Content Too Large")));
    assert_true(span_equal(response_reason(799), SPAN("Unknown")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_cannot_end_their_line),
        cmocka_unit_test(test_fields_with_bad_names_are_dropped),
        cmocka_unit_test(test_framing_fields_are_ours_alone),
        cmocka_unit_test(test_connection_field_when_due),
        cmocka_unit_test(test_wishes_are_read),
        cmocka_unit_test(test_chunk_framing),
        cmocka_unit_test(test_reasons),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
