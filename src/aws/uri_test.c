#include "aws/uri.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct arena));
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    arena_deinit(*state);
    free(*state);
    return 0;
}

static void assert_span(struct span actual, struct span expected)
{
    if (!span_equal(actual, expected))
        fail_msg("'%.*s', not '%.*s'", SPAN_ARG(actual), SPAN_ARG(expected));
}

static void test_broken_percent_encoding_is_refused(void **state)
{
    static const char *const bad[] = {"%", "a%", "%4", "%4g", "%g4", "%%41", "ab%2"};
    struct span decoded;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_int_equal(uri_decode(*state, span_from(bad[i]), &decoded), -EINVAL);
}

static void test_every_byte_can_be_decoded(void **state)
{
    struct span decoded;

    assert_int_equal(uri_decode(*state, SPAN("a%00%fF%3a+%41"), &decoded), 0);
    assert_span(decoded, SPAN("a\0\xff:+A"));
    assert_int_equal(uri_decode(*state, SPAN(""), &decoded), 0);
    assert_int_equal(decoded.length, 0);
}

static void test_plain_text_is_not_copied(void **state)
{
    struct span text = SPAN("my-function");
    struct span decoded;

    assert_int_equal(uri_decode(*state, text, &decoded), 0);
    assert_ptr_equal(decoded.data, text.data);
}

static void test_encoding_keeps_unreserved_bytes_only(void **state)
{
    struct buffer CLEANUP(buffer_deinit) buffer = BUFFER_INIT;

    (void)state;
    assert_int_equal(uri_encode(SPAN("AZaz09-._~/ :+\xc3\xa9*"), false, &buffer), 0);
    assert_span(buffer_span(&buffer), SPAN("AZaz09-._~%2F%20%3A%2B%C3%A9%2A"));
    buffer.length = 0;
    assert_int_equal(uri_encode(SPAN("a/b c"), true, &buffer), 0);
    assert_span(buffer_span(&buffer), SPAN("a/b%20c"));
    assert_int_equal(uri_encode(SPAN(""), true, &buffer), 0);
    assert_span(buffer_span(&buffer), SPAN("a/b%20c"));
}

static void test_query_with_broken_encoding_is_refused(void **state)
{
    struct uri_query query;

    assert_int_equal(uri_query_parse(*state, SPAN("a=1&b=%x"), &query), -EINVAL);
    assert_int_equal(uri_query_parse(*state, SPAN("%=1"), &query), -EINVAL);
}

static void test_query_keeps_order_and_repetition(void **state)
{
    struct uri_query query;
    struct span value;

    assert_int_equal(uri_query_parse(*state, SPAN("tagKeys=b+c&&tagKeys=%61&flag&empty=&=x&q=1=2"), &query), 0);
    assert_int_equal(query.count, 6);
    assert_span(query.parameters[0].name, SPAN("tagKeys"));
    assert_span(query.parameters[0].value, SPAN("b c"));
    assert_span(query.parameters[1].value, SPAN("a"));
    assert_null(query.parameters[2].value.data);
    assert_non_null(query.parameters[3].value.data);
    assert_int_equal(query.parameters[3].value.length, 0);
    assert_span(query.parameters[4].name, SPAN(""));
    assert_span(query.parameters[5].value, SPAN("1=2"));
    assert_true(uri_query_get(&query, SPAN("tagKeys"), &value));
    assert_span(value, SPAN("b c"));
    assert_true(uri_query_get(&query, SPAN("flag"), NULL));
    assert_false(uri_query_get(&query, SPAN("Flag"), NULL));
}

static void test_empty_query_has_no_parameters(void **state)
{
    struct uri_query query;

    assert_int_equal(uri_query_parse(*state, SPAN_NONE, &query), 0);
    assert_int_equal(query.count, 0);
    assert_int_equal(uri_query_parse(*state, SPAN("&&"), &query), 0);
    assert_int_equal(query.count, 0);
}

static void test_path_with_too_many_segments_is_refused(void **state)
{
    struct uri_path path;

    assert_int_equal(uri_path_split(*state, SPAN("/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16"), &path), 0);
    assert_int_equal(path.count, URI_SEGMENTS);
    assert_int_equal(uri_path_split(*state, SPAN("/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17"), &path), -E2BIG);
    assert_int_equal(uri_path_split(*state, SPAN("/a/%"), &path), -EINVAL);
}

static void test_path_is_split_before_it_is_decoded(void **state)
{
    struct uri_path path;

    assert_int_equal(uri_path_split(*state, SPAN("/2017-03-31/tags/arn%3Aaws%3Alambda%2Fx"), &path), 0);
    assert_int_equal(path.count, 3);
    assert_span(path.segments[2], SPAN("arn:aws:lambda/x"));
    assert_false(path.trailing_slash);
}

static void test_slashes_at_the_ends_make_no_segments(void **state)
{
    struct uri_path path;

    assert_int_equal(uri_path_split(*state, SPAN("/a//b/"), &path), 0);
    assert_int_equal(path.count, 3);
    assert_span(path.segments[1], SPAN(""));
    assert_true(path.trailing_slash);
    assert_int_equal(uri_path_split(*state, SPAN("/"), &path), 0);
    assert_int_equal(path.count, 0);
    assert_int_equal(uri_path_split(*state, SPAN(""), &path), 0);
    assert_int_equal(path.count, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_broken_percent_encoding_is_refused),
        CASE(test_every_byte_can_be_decoded),
        CASE(test_plain_text_is_not_copied),
        CASE(test_encoding_keeps_unreserved_bytes_only),
        CASE(test_query_with_broken_encoding_is_refused),
        CASE(test_query_keeps_order_and_repetition),
        CASE(test_empty_query_has_no_parameters),
        CASE(test_path_with_too_many_segments_is_refused),
        CASE(test_path_is_split_before_it_is_decoded),
        CASE(test_slashes_at_the_ends_make_no_segments),
    };

    return cmocka_run_group_tests_name("uri", tests, NULL, NULL);
}
