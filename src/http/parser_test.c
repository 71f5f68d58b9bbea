#include "http/parser.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { LIMIT = 64 * 1024 };

#define HOST "Host: kiln\r\n"

/* Parses `text` in pieces of `piece` bytes; *ret_consumed counts over all of them. */
static int parse_in_pieces(struct parser *parser, struct span text, size_t piece, size_t limit, size_t *ret_consumed)
{
    int r = PARSER_MORE;

    *ret_consumed = 0;
    while (r == PARSER_MORE && *ret_consumed < text.length) {
        size_t length = MIN(piece, text.length - *ret_consumed);
        size_t consumed = 0;
        r = parser_execute(parser, text.data + *ret_consumed, length, limit, &consumed);
        assert_true(consumed <= length);
        *ret_consumed += consumed;
    }
    return r;
}

/* The status the head is refused with, whole and byte by byte; 0 when it is accepted. */
static int refusal_of(struct span text)
{
    int statuses[2];

    for (size_t i = 0; i < 2; i++) {
        struct parser parser;
        size_t consumed;
        parser_init(&parser);
        int r = parse_in_pieces(&parser, text, i ? 1 : text.length, LIMIT, &consumed);
        statuses[i] = r == PARSER_REFUSED ? parser.refusal : r == PARSER_DONE ? 0 : -1;
        parser_deinit(&parser);
    }
    assert_int_equal(statuses[0], statuses[1]);
    return statuses[0];
}

#define assert_refused(status, text) assert_int_equal(refusal_of(SPAN(text)), status)
#define assert_span(span, text)      assert_true(span_equal(span, SPAN(text)))

static void test_doubled_framing_is_refused(void **state)
{
    (void)state;
    assert_refused(400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert_refused(400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n");
    assert_refused(400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 3\r\nContent-Length: 4\r\n\r\n");
    assert_refused(400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 3\r\nContent-Length: 3\r\n\r\n");
    assert_refused(400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 3, 3\r\n\r\n");
    assert_refused(400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n");
}

static void test_bad_content_length_is_refused(void **state)
{
    (void)state;
    assert_refused(400, "POST / HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\n");
    assert_refused(400, "POST / HTTP/1.1\r\n" HOST "Content-Length: +1\r\n\r\n");
    assert_refused(400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 0x1\r\n\r\n");
    assert_refused(400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 1 2\r\n\r\n");
    assert_refused(400, "POST / HTTP/1.1\r\n" HOST "Content-Length: \r\n\r\n");
    assert_refused(400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 9223372036854775808\r\n\r\n");
    assert_refused(400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 99999999999999999999999\r\n\r\n");
}

static void test_unknown_transfer_coding_is_refused(void **state)
{
    (void)state;
    assert_refused(501, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n");
    assert_refused(400, "POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
    assert_true(refusal_of(SPAN("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked, gzip\r\n\r\n")) >= 400);
    assert_true(refusal_of(SPAN("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n")) >= 400);
}

static void test_host_is_required_once(void **state)
{
    (void)state;
    assert_refused(400, "GET / HTTP/1.1\r\n\r\n");
    assert_refused(400, "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n");
    assert_refused(400, "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n");
    assert_refused(0, "GET / HTTP/1.0\r\n\r\n");
    assert_refused(0, "GET / HTTP/1.1\r\nHost:\r\n\r\n");
}

static void test_lenient_line_forms_are_refused(void **state)
{
    (void)state;
    assert_refused(400, "GET / HTTP/1.1\nHost: a\n\n");
    assert_refused(400, "GET / HTTP/1.1\r\nHost: a\n\r\n");
    assert_refused(400, "GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n folded\r\n\r\n");
    assert_refused(400, "GET / HTTP/1.1\r\nHost: a\r\nX:\r\n folded\r\n\r\n");
    assert_refused(400, "GET / HTTP/1.1\r\nHost: a\r\nX:\r\n \r\nY: 1\r\n\r\n");
    assert_refused(400, "GET / HTTP/1.1\r\nHost : a\r\n\r\n");
    assert_refused(400, "GET / HTTP/1.1\r\nHost: a\r\n: no name\r\n\r\n");
    assert_refused(400, "GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n");
    assert_refused(400, "GET / HTTP/1.1\r\nHost: a\r\nX\xc3\xa4: 1\r\n\r\n");
    assert_refused(400, "GET / HTTP/1.1\r\nHost: a\rX: 1\r\n\r\n");
    assert_refused(400, "GET /\r\n\r\n");
    assert_refused(400, "GET  / HTTP/1.1 \r\n" HOST "\r\n");
    assert_refused(400, "GET /a b HTTP/1.1\r\n" HOST "\r\n");
}

/* Every control byte, in every place of every line, is refused with 400 (or ends a line, for CR and LF). */
static void test_control_bytes_are_refused_everywhere(void **state)
{
    static const char sound[] = "GET /path?q=1 HTTP/1.1\r\nHost: kiln\r\nX-A: some value\r\nX-B:b\r\n\r\n";

    (void)state;
    for (size_t at = 0; at < sizeof(sound) - 3; at++) {
        for (int byte = 0; byte < 0x80; byte = byte == 0x1f ? 0x7f : byte + 1) {
            char text[sizeof(sound)];
            if (byte == '\t' || sound[at] == '\r' || sound[at] == '\n' || (at == 0 && (byte == '\r' || byte == '\n')))
                continue;
            memcpy(text, sound, sizeof(sound));
            text[at] = (char)byte;
            int status = refusal_of(span_of(text, sizeof(sound) - 1));
            if (status < 400)
                fail_msg("byte %d at %zu: %d", byte, at, status);
        }
    }
}

static void test_other_protocols_are_told_apart(void **state)
{
    (void)state;
    assert_refused(505, "GET / HTTP/2.0\r\n" HOST "\r\n");
    assert_refused(505, "GET / HTTP/1.2\r\n" HOST "\r\n");
    assert_refused(505, "GET / HTTP/3.1\r\n" HOST "\r\n");
    assert_refused(400, "GET / HTTQ/1.1\r\n" HOST "\r\n");
    assert_refused(400, "GET / HTTP/x.1\r\n" HOST "\r\n");
    assert_refused(501, "BREW / HTTP/1.1\r\n" HOST "\r\n");
    assert_refused(501, "CONNECT kiln:80 HTTP/1.1\r\n" HOST "\r\n");
    assert_refused(400, "nonsense\r\n\r\n");
    assert_refused(400, "\x16\x03\x01\x02\r\n");
}

static void test_unknown_expectation_is_refused(void **state)
{
    (void)state;
    assert_refused(417, "POST / HTTP/1.1\r\n" HOST "Expect: a-miracle\r\nContent-Length: 1\r\n\r\n");
}

static void test_head_limit_is_exact(void **state)
{
    static const char text[] = "GET / HTTP/1.1\r\n" HOST "X: 0123456789\r\n\r\n";
    const size_t length = sizeof(text) - 1;
    struct parser parser;
    size_t consumed;

    (void)state;
    parser_init(&parser);
    for (size_t piece = 1; piece <= length; piece++) {
        parser_reset(&parser);
        assert_int_equal(parse_in_pieces(&parser, span_of(text, length), piece, length, &consumed), PARSER_DONE);
        parser_reset(&parser);
        assert_int_equal(parse_in_pieces(&parser, span_of(text, length), piece, length - 1, &consumed), PARSER_REFUSED);
        assert_int_equal(parser.refusal, 431);
    }
    parser_deinit(&parser);
}

static int parse_with_fields(size_t count)
{
    CLEANUP(buffer_deinit) struct buffer text = BUFFER_INIT;
    struct parser parser;
    size_t consumed;
    int r;

    assert_int_equal(buffer_append_span(&text, SPAN("GET / HTTP/1.1\r\n" HOST)), 0);
    for (size_t i = 1; i < count; i++)
        assert_int_equal(buffer_printf(&text, "X%zu: %zu\r\n", i, i), 0);
    assert_int_equal(buffer_append_span(&text, SPAN("\r\n")), 0);
    parser_init(&parser);
    r = parse_in_pieces(&parser, buffer_span(&text), text.length, LIMIT, &consumed);
    if (r == PARSER_DONE) {
        char last[16];
        snprintf(last, sizeof(last), "%zu", count - 1);
        assert_int_equal(parser.field_count, count);
        assert_true(span_equal(parser_field_at(&parser, count - 1).value, span_from(last)));
    } else {
        r = parser.refusal;
    }
    parser_deinit(&parser);
    return r;
}

static void test_field_count_is_bounded(void **state)
{
    (void)state;
    assert_int_equal(parse_with_fields(PARSER_FIELDS_MAX), PARSER_DONE);
    assert_int_equal(parse_with_fields(PARSER_FIELDS_MAX + 1), 431);
}

static void test_fields_are_the_same_however_the_bytes_come(void **state)
{
    static const char text[] = "\r\nPOST /2015-03-31/functions?a=b?c HTTP/1.1\r\nhost:  kiln \t\r\nX-Empty:\r\n"
                               "Content-Length: 5\r\nX-Long-Name_1: \xc3\xa4 value, with blanks\r\n\r\nhelloGET";
    struct parser parser;
    size_t consumed;

    (void)state;
    parser_init(&parser);
    for (size_t piece = 1; piece < sizeof(text); piece++) {
        parser_reset(&parser);
        assert_int_equal(parse_in_pieces(&parser, span_of(text, sizeof(text) - 1), piece, LIMIT, &consumed),
                         PARSER_DONE);
        assert_int_equal(consumed, sizeof(text) - 1 - 8);
        assert_span(parser.method, "POST");
        assert_span(parser.path, "/2015-03-31/functions");
        assert_span(parser.query, "a=b?c");
        assert_int_equal(parser.content_length, 5);
        assert_int_equal(parser.minor_version, 1);
        assert_true(parser.keep_alive);
        assert_false(parser.chunked);
        assert_int_equal(parser.field_count, 4);
        assert_span(parser_field_at(&parser, 0).name, "host");
        assert_span(parser_field_at(&parser, 0).value, "kiln");
        assert_span(parser_field_at(&parser, 1).name, "X-Empty");
        assert_span(parser_field_at(&parser, 1).value, "");
        assert_non_null(parser_field_at(&parser, 1).value.data);
        assert_span(parser_field_at(&parser, 3).name, "X-Long-Name_1");
        assert_span(parser_field_at(&parser, 3).value, "\xc3\xa4 value, with blanks");
    }
    parser_deinit(&parser);
}

static void parse_sound(struct parser *parser, struct span text)
{
    size_t consumed;

    parser_reset(parser);
    assert_int_equal(parse_in_pieces(parser, text, text.length, LIMIT, &consumed), PARSER_DONE);
    assert_int_equal(consumed, text.length);
}

static void test_target_forms(void **state)
{
    struct parser parser;

    (void)state;
    parser_init(&parser);
    parse_sound(&parser, SPAN("GET http://kiln:80/a/b?c HTTP/1.1\r\n" HOST "\r\n"));
    assert_span(parser.path, "/a/b");
    assert_span(parser.query, "c");
    parse_sound(&parser, SPAN("GET http://kiln HTTP/1.1\r\n" HOST "\r\n"));
    assert_span(parser.path, "/");
    assert_span(parser.query, "");
    parse_sound(&parser, SPAN("OPTIONS * HTTP/1.1\r\n" HOST "\r\n"));
    assert_span(parser.path, "*");
    parse_sound(&parser, SPAN("GET /a%20b%3Fc? HTTP/1.1\r\n" HOST "\r\n"));
    assert_span(parser.path, "/a%20b%3Fc");
    assert_span(parser.query, "");
    parser_deinit(&parser);
}

static void test_keep_alive_follows_version_and_options(void **state)
{
    struct parser parser;

    (void)state;
    parser_init(&parser);
    parse_sound(&parser, SPAN("GET / HTTP/1.1\r\n" HOST "Connection: foo, Close\r\n\r\n"));
    assert_false(parser.keep_alive);
    parse_sound(&parser, SPAN("GET / HTTP/1.1\r\n" HOST "Connection: keep-alive\r\nConnection: close\r\n\r\n"));
    assert_false(parser.keep_alive);
    parse_sound(&parser, SPAN("GET / HTTP/1.0\r\n\r\n"));
    assert_false(parser.keep_alive);
    parse_sound(&parser, SPAN("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"));
    assert_true(parser.keep_alive);
    parser_deinit(&parser);
}

static void test_expect_and_chunked_are_seen(void **state)
{
    struct parser parser;

    (void)state;
    parser_init(&parser);
    parse_sound(&parser, SPAN("PUT / HTTP/1.1\r\n" HOST "Expect: 100-Continue\r\nTransfer-Encoding: Chunked\r\n\r\n"));
    assert_true(parser.expects_continue);
    assert_true(parser.chunked);
    assert_int_equal(parser.content_length, -1);
    parse_sound(&parser, SPAN("PUT / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n"));
    assert_false(parser.expects_continue);
    assert_int_equal(parser.content_length, 0);
    parser_deinit(&parser);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_doubled_framing_is_refused),
        cmocka_unit_test(test_bad_content_length_is_refused),
        cmocka_unit_test(test_unknown_transfer_coding_is_refused),
        cmocka_unit_test(test_host_is_required_once),
        cmocka_unit_test(test_lenient_line_forms_are_refused),
        cmocka_unit_test(test_control_bytes_are_refused_everywhere),
        cmocka_unit_test(test_other_protocols_are_told_apart),
        cmocka_unit_test(test_unknown_expectation_is_refused),
        cmocka_unit_test(test_head_limit_is_exact),
        cmocka_unit_test(test_field_count_is_bounded),
        cmocka_unit_test(test_fields_are_the_same_however_the_bytes_come),
        cmocka_unit_test(test_target_forms),
        cmocka_unit_test(test_keep_alive_follows_version_and_options),
        cmocka_unit_test(test_expect_and_chunked_are_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
