#include "base/encode.h"

#include "base/failing_alloc.h"
#include "base/random.h"
#include "base/test.h"

/* RFC 4648, section 10. */
static const struct {
    const char *plain;
    const char *encoded;
} published[] = {{"", ""},
                 {"f", "Zg=="},
                 {"fo", "Zm8="},
                 {"foo", "Zm9v"},
                 {"foob", "Zm9vYg=="},
                 {"fooba", "Zm9vYmE="},
                 {"foobar", "Zm9vYmFy"}};

static void test_published_vectors_hold_both_ways(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(published); i++) {
        CLEANUP(buffer_deinit) struct buffer encoded = BUFFER_INIT;
        CLEANUP(buffer_deinit) struct buffer decoded = BUFFER_INIT;
        assert_int_equal(base64_encode(span_from(published[i].plain), &encoded), 0);
        assert_true(span_equal(buffer_span(&encoded), span_from(published[i].encoded)));
        assert_int_equal(base64_decode(span_from(published[i].encoded), &decoded), 0);
        assert_true(span_equal(buffer_span(&decoded), span_from(published[i].plain)));
    }
}

static void test_random_bytes_come_back_and_are_appended(void **state)
{
    char bytes[257];
    (void)state;

    for (size_t length = 0; length <= sizeof(bytes); length++) {
        CLEANUP(buffer_deinit) struct buffer encoded = BUFFER_INIT;
        CLEANUP(buffer_deinit) struct buffer decoded = BUFFER_INIT;
        random_bytes(bytes, length);
        assert_int_equal(buffer_append_span(&encoded, SPAN("xx")), 0);
        assert_int_equal(base64_encode(span_of(bytes, length), &encoded), 0);
        assert_int_equal(encoded.length, 2 + (length + 2) / 3 * 4);
        assert_int_equal(buffer_append_span(&decoded, SPAN("yyy")), 0);
        assert_int_equal(base64_decode(span_slice(buffer_span(&encoded), 2, encoded.length), &decoded), 0);
        assert_int_equal(decoded.length, 3 + length);
        assert_memory_equal(decoded.data + 3, bytes, length);
    }
}

static void test_bad_base64_is_refused_and_leaves_the_buffer(void **state)
{
    static const char *const bad[] = {"Z",     "Zg",   "Zg=",  "Zg===",  "====",     "=Zg=", "Z===",
                                      "Zm9v=", "Zm9*", "Zm 9", "Zm9v\n", "Zg==Zg==", "Zm-_", "Zm\x80v"};
    CLEANUP(buffer_deinit) struct buffer buffer = BUFFER_INIT;
    (void)state;

    assert_int_equal(buffer_append_span(&buffer, SPAN("keep")), 0);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_int_equal(base64_decode(span_from(bad[i]), &buffer), -EINVAL);
        assert_true(span_equal(buffer_span(&buffer), SPAN("keep")));
    }
}

static void test_hex_is_lower_case(void **state)
{
    char text[9];
    (void)state;

    assert_string_equal(hex_encode("\x00\x9f\xAB\xff", 4, text), "009fabff");
    assert_string_equal(hex_encode("", 0, text), "");
}

static void assert_json(struct span text, const char *expected)
{
    CLEANUP(buffer_deinit) struct buffer buffer = BUFFER_INIT;

    assert_int_equal(json_encode_string(text, &buffer), 0);
    assert_string_equal(buffer_terminate(&buffer), expected);
}

static void test_json_strings_are_escaped_where_they_must_be(void **state)
{
    (void)state;
    assert_json(SPAN(""), "\"\"");
    assert_json(SPAN_NONE, "\"\"");
    assert_json(SPAN("a\"b\\c/"), "\"a\\\"b\\\\c/\"");
    assert_json(SPAN("\n\r\t\b\f\x01\x1f\x7f"), "\"\\n\\r\\t\\b\\f\\u0001\\u001f\x7f\"");
    assert_json(SPAN("a\0b"), "\"a\\u0000b\"");
    assert_json(SPAN("gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80"), "\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80\"");
}

static void test_bytes_that_are_not_utf8_become_replacement_characters(void **state)
{
    (void)state;
    assert_json(SPAN("a\xff\xc3"), "\"a\xef\xbf\xbd\xef\xbf\xbd\"");
    assert_json(SPAN("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

static void test_without_memory_the_buffer_stays(void **state)
{
    CLEANUP(buffer_deinit) struct buffer buffer = BUFFER_INIT;
    (void)state;

    failing_alloc_after(0);
    int encoded = base64_encode(SPAN("abc"), &buffer);
    int decoded = base64_decode(SPAN("YWJj"), &buffer);
    int quoted = json_encode_string(SPAN("abc"), &buffer);
    assert_int_equal(failing_alloc_stop(), 3);
    assert_int_equal(encoded, -ENOMEM);
    assert_int_equal(decoded, -ENOMEM);
    assert_int_equal(quoted, -ENOMEM);
    assert_int_equal(buffer.length, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_vectors_hold_both_ways),
        cmocka_unit_test(test_random_bytes_come_back_and_are_appended),
        cmocka_unit_test(test_bad_base64_is_refused_and_leaves_the_buffer),
        cmocka_unit_test(test_hex_is_lower_case),
        cmocka_unit_test(test_json_strings_are_escaped_where_they_must_be),
        cmocka_unit_test(test_bytes_that_are_not_utf8_become_replacement_characters),
        cmocka_unit_test(test_without_memory_the_buffer_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
