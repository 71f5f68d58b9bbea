#include "aws/json_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define SOURCE(line, column)                                                                          \
    "\n at [Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: " #line \
    ", column: " #column "]"
#define VALUES "(JSON String, Number, Array, Object or token 'null', 'true' or 'false')"

struct refusal {
    struct span text;
    size_t offset;
    const char *message;
};

static void assert_refusals(const struct refusal *refusals, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct json_fault fault = {0};
        int r = json_check(refusals[i].text, &fault);
        if (r != JSON_CHECK_INVALID || strcmp(fault.message, refusals[i].message) != 0 ||
            fault.offset != refusals[i].offset)
            fail_msg("%.*s: outcome %d at %zu: %s", SPAN_ARG(refusals[i].text), r, fault.offset, fault.message);
    }
}

static void assert_good(struct span text)
{
    struct json_fault fault;

    if (json_check(text, &fault) != 0)
        fail_msg("%.*s: %s", SPAN_ARG(text), fault.message);
}

/* What Invoke answered on AWS in November 2025 to payloads that the CLI had decoded from base64 by mistake. */
static void test_recorded_messages_are_given(void **state)
{
    static const struct refusal refusals[] = {
        {SPAN("n\x87r\x9e\xe9\xb5\xd7I\xee\x9bmt"), 0, "Invalid UTF-8 start byte 0x87" SOURCE(1, 3)},
        {SPAN("\x99\xeb,j\x07\xa1zYh"), 0,
         "Unexpected character ((CTRL-CHAR, code 153)): expected a valid value " VALUES SOURCE(1, 1)},
    };

    (void)state;
    assert_refusals(refusals, ARRAY_SIZE(refusals));
}

static void test_words_that_are_no_values_are_quoted(void **state)
{
    static const struct refusal refusals[] = {
        {SPAN("foo"), 0, "Unrecognized token 'foo': was expecting " VALUES SOURCE(1, 4)},
        {SPAN("foo bar"), 0, "Unrecognized token 'foo': was expecting " VALUES SOURCE(1, 5)},
        {SPAN("nul"), 0, "Unrecognized token 'nul': was expecting " VALUES SOURCE(1, 4)},
        {SPAN("[True]"), 1, "Unrecognized token 'True': was expecting " VALUES SOURCE(1, 7)},
        {SPAN("truex"), 0, "Unrecognized token 'truex': was expecting " VALUES SOURCE(1, 6)},
        {SPAN("{\"a\":none}"), 5, "Unrecognized token 'none': was expecting " VALUES SOURCE(1, 11)},
        {SPAN("NaN"), 0,
         "Non-standard token 'NaN': enable `JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS` to allow" SOURCE(1, 4)},
        {SPAN("[-Infinity]"), 2,
         "Non-standard token '-Infinity': enable `JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS` to allow" SOURCE(1, 11)},
        {SPAN("Nan"), 0, "Unrecognized token 'Nan': was expecting " VALUES SOURCE(1, 4)},
        {SPAN("\xc3\xa9"), 0, "Invalid UTF-8 start byte 0xa9" SOURCE(1, 3)},
    };

    (void)state;
    assert_refusals(refusals, ARRAY_SIZE(refusals));
}

static void test_long_words_are_cut(void **state)
{
    char text[400];
    struct json_fault fault;

    (void)state;
    memset(text, 'x', sizeof(text));
    assert_int_equal(json_check(span_of(text, sizeof(text)), &fault), JSON_CHECK_INVALID);
    assert_non_null(strstr(fault.message, "xxx...': was expecting"));
    assert_true(strlen(fault.message) < sizeof(fault.message) - 1);
}

static void test_unexpected_characters_are_described(void **state)
{
    static const struct refusal refusals[] = {
        {SPAN("'a'"), 0, "Unexpected character (''' (code 39)): expected a valid value " VALUES SOURCE(1, 1)},
        {SPAN("{'a':1}"), 1,
         "Unexpected character (''' (code 39)): was expecting double-quote to start field name" SOURCE(1, 2)},
        {SPAN("{a:1}"), 1,
         "Unexpected character ('a' (code 97)): was expecting double-quote to start field name" SOURCE(1, 2)},
        {SPAN("{\xe2\x82\xac:1}"), 1,
         "Unexpected character ('\xe2\x82\xac' (code 8364 / 0x20ac)): was expecting double-quote to start field "
         "name" SOURCE(1, 4)},
        {SPAN("{\"a\":1,}"), 7,
         "Unexpected character ('}' (code 125)): was expecting double-quote to start field name" SOURCE(1, 8)},
        {SPAN("{\"a\" 1}"), 5,
         "Unexpected character ('1' (code 49)): was expecting a colon to separate field name and value" SOURCE(1, 6)},
        {SPAN("{\"a\":1 \"b\":2}"), 7,
         "Unexpected character ('\"' (code 34)): was expecting comma to separate Object entries" SOURCE(1, 8)},
        {SPAN("[1 2]"), 3,
         "Unexpected character ('2' (code 50)): was expecting comma to separate Array entries" SOURCE(1, 4)},
        {SPAN("[1,]"), 3, "Unexpected character (']' (code 93)): expected a value" SOURCE(1, 4)},
        {SPAN("[,1]"), 1, "Unexpected character (',' (code 44)): expected a value" SOURCE(1, 2)},
        {SPAN("{\"a\":}"), 5, "Unexpected character ('}' (code 125)): expected a value" SOURCE(1, 6)},
        {SPAN("[// c\n1]"), 1,
         "Unexpected character ('/' (code 47)): maybe a (non-standard) comment? (not recognized as one since Feature "
         "'ALLOW_COMMENTS' not enabled for parser)" SOURCE(1, 2)},
        {SPAN("[\x01]"), 1,
         "Illegal character ((CTRL-CHAR, code 1)): only regular white space (\\r, \\n, \\t) is allowed between "
         "tokens" SOURCE(1, 2)},
    };

    (void)state;
    assert_refusals(refusals, ARRAY_SIZE(refusals));
}

static void test_wrong_brackets_name_the_open_one(void **state)
{
    static const struct refusal refusals[] = {
        {SPAN("{\"a\":[1}"), 7,
         "Unexpected close marker '}': expected ']' (for Array starting at [Source: REDACTED "
         "(`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: 1, column: 6])" SOURCE(1, 8)},
        {SPAN("[\"[{\\\"\",{\n\"a\":1]"), 15,
         "Unexpected close marker ']': expected '}' (for Object starting at [Source: REDACTED "
         "(`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: 1, column: 9])" SOURCE(2, 6)},
        {SPAN("]"), 0,
         "Unexpected close marker ']': expected '}' (for root starting at [Source: REDACTED "
         "(`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: 1, column: 0])" SOURCE(1, 1)},
    };

    (void)state;
    assert_refusals(refusals, ARRAY_SIZE(refusals));
}

static void test_early_ends_say_what_was_open(void **state)
{
    static const struct refusal refusals[] = {
        {SPAN("{"), 1,
         "Unexpected end-of-input: expected close marker for Object (start marker at [Source: REDACTED "
         "(`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: 1, column: 1])" SOURCE(1, 2)},
        {SPAN("{\"a\":[1"), 7,
         "Unexpected end-of-input: expected close marker for Array (start marker at [Source: REDACTED "
         "(`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: 1, column: 6])" SOURCE(1, 8)},
        {SPAN("[1,"), 3, "Unexpected end-of-input within/between Array entries" SOURCE(1, 4)},
        {SPAN("{\"a\""), 4, "Unexpected end-of-input within/between Object entries" SOURCE(1, 5)},
        {SPAN("{\"a\":"), 5, "Unexpected end-of-input within/between Object entries" SOURCE(1, 6)},
        {SPAN("{\"a\":1,"), 7, "Unexpected end-of-input within/between Object entries" SOURCE(1, 8)},
        {SPAN("\"abc"), 4, "Unexpected end-of-input in VALUE_STRING" SOURCE(1, 5)},
        {SPAN("{\""), 2, "Unexpected end-of-input: was expecting closing '\"' for name" SOURCE(1, 3)},
        {SPAN("{\"ab"), 4, "Unexpected end-of-input in field name" SOURCE(1, 5)},
        {SPAN("\"\\"), 2, "Unexpected end-of-input in character escape sequence" SOURCE(1, 3)},
        {SPAN("\"\\u12"), 5, "Unexpected end-of-input in character escape sequence" SOURCE(1, 6)},
        {SPAN("-"), 1, "Unexpected end-of-input in null" SOURCE(1, 2)},
        {SPAN("[1.5,-"), 6, "Unexpected end-of-input in VALUE_NUMBER_FLOAT" SOURCE(1, 7)},
        {SPAN("{\"a\":1e"), 7, "Unexpected end-of-input in FIELD_NAME" SOURCE(1, 8)},
        {SPAN("[1e+"), 4, "Unexpected end-of-input in START_ARRAY" SOURCE(1, 5)},
    };

    (void)state;
    assert_refusals(refusals, ARRAY_SIZE(refusals));
}

static void test_numbers_have_one_form(void **state)
{
    static const struct refusal refusals[] = {
        {SPAN("01"), 1, "Invalid numeric value: Leading zeroes not allowed" SOURCE(1, 2)},
        {SPAN("[-01]"), 3, "Invalid numeric value: Leading zeroes not allowed" SOURCE(1, 4)},
        {SPAN("-x"), 1,
         "Unexpected character ('x' (code 120)) in numeric value: expected digit (0-9) to follow minus sign, for valid "
         "numeric value" SOURCE(1, 2)},
        {SPAN(".5"), 0, "Unexpected character ('.' (code 46)): expected a valid value " VALUES SOURCE(1, 1)},
        {SPAN("-.5"), 1, "Unexpected character ('.' (code 46)): expected a valid value " VALUES SOURCE(1, 2)},
        {SPAN("1.x"), 2,
         "Unexpected character ('x' (code 120)) in numeric value: Decimal point not followed by a digit" SOURCE(1, 3)},
        {SPAN("1."), 2,
         "Unexpected character ('.' (code 46)) in numeric value: Decimal point not followed by a digit" SOURCE(1, 2)},
        {SPAN("1ex"), 2,
         "Unexpected character ('x' (code 120)) in numeric value: Exponent indicator not followed by a digit" SOURCE(
             1, 3)},
        {SPAN("+1"), 0,
         "Unexpected character ('+' (code 43)) in numeric value: JSON spec does not allow numbers to have plus signs: "
         "enable `JsonReadFeature.ALLOW_LEADING_PLUS_SIGN_FOR_NUMBERS` to allow" SOURCE(1, 2)},
        {SPAN("0D"), 1,
         "Unexpected character ('D' (code 68)): Expected space separating root-level values" SOURCE(1, 2)},
        {SPAN("1,2"), 1,
         "Unexpected character (',' (code 44)): Expected space separating root-level values" SOURCE(1, 2)},
    };

    (void)state;
    assert_refusals(refusals, ARRAY_SIZE(refusals));
}

static void test_strings_have_one_form(void **state)
{
    static const struct refusal refusals[] = {
        {SPAN("\"a\nb\""), 2,
         "Illegal unquoted character ((CTRL-CHAR, code 10)): has to be escaped using backslash to be included in "
         "string "
         "value" SOURCE(1, 3)},
        {SPAN("{\"a\tb\":1}"), 3,
         "Illegal unquoted character ((CTRL-CHAR, code 9)): has to be escaped using backslash to be included in "
         "name" SOURCE(1, 4)},
        {SPAN("\"\\x41\""), 2, "Unrecognized character escape 'x' (code 120)" SOURCE(1, 3)},
        {SPAN("\"\\u12G4\""), 5,
         "Unexpected character ('G' (code 71)): expected a hex-digit for character escape sequence" SOURCE(1, 6)},
        {SPAN("\"\xff\""), 1, "Invalid UTF-8 start byte 0xff" SOURCE(1, 3)},
        {SPAN("\"\xc3(\""), 2, "Invalid UTF-8 middle byte 0x28" SOURCE(1, 4)},
        {SPAN("{\"\xff\":1}"), 2, "Invalid UTF-8 start byte 0xff" SOURCE(1, 5)},
    };

    (void)state;
    assert_refusals(refusals, ARRAY_SIZE(refusals));
}

static void test_malformed_utf8_is_refused(void **state)
{
    static const char *const bad[] = {
        "\"\x80\"",         "\"\xc0\x80\"",         "\"\xc1\xbf\"",         "\"\xe0\x9f\xbf\"",     "\"\xed\xa0\x80\"",
        "\"\xed\xbf\xbf\"", "\"\xf0\x8f\xbf\xbf\"", "\"\xf4\x90\x80\x80\"", "\"\xf5\x80\x80\x80\"", "\"\xe2\x82\"",
        "\"\xf0\x9f\x98\"",
    };
    static const char *const good[] = {
        "\"\xc2\x80\"",     "\"\xdf\xbf\"",         "\"\xe0\xa0\x80\"",     "\"\xed\x9f\xbf\"",
        "\"\xee\x80\x80\"", "\"\xf0\x90\x80\x80\"", "\"\xf4\x8f\xbf\xbf\"", "\"\xf0\x9f\x98\x80\"",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (json_check(span_from(bad[i]), NULL) != JSON_CHECK_INVALID)
            fail_msg("accepted number %zu", i);
    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        assert_good(span_from(good[i]));
}

static void test_something_after_the_value_is_refused(void **state)
{
    static const struct refusal refusals[] = {
        {SPAN("{} {}"), 3,
         "Trailing token (of type START_OBJECT) found after value (bound as "
         "`com.fasterxml.jackson.databind.JsonNode`): not allowed as per "
         "`DeserializationFeature.FAIL_ON_TRAILING_TOKENS`" SOURCE(1, 4)},
        {SPAN("1 null"), 2,
         "Trailing token (of type VALUE_NULL) found after value (bound as `com.fasterxml.jackson.databind.JsonNode`): "
         "not allowed as per `DeserializationFeature.FAIL_ON_TRAILING_TOKENS`" SOURCE(1, 3)},
        {SPAN("[]\r\n\r\nx"), 6, "Unrecognized token 'x': was expecting " VALUES SOURCE(3, 2)},
        {SPAN("\"a\"}"), 3,
         "Unexpected close marker '}': expected ']' (for root starting at [Source: REDACTED "
         "(`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: 1, column: 0])" SOURCE(1, 4)},
    };

    (void)state;
    assert_refusals(refusals, ARRAY_SIZE(refusals));
}

static void test_nothing_is_an_outcome_of_its_own(void **state)
{
    struct json_fault fault;

    (void)state;
    assert_int_equal(json_check(SPAN_NONE, &fault), JSON_CHECK_EMPTY);
    assert_int_equal(json_check(SPAN(""), NULL), JSON_CHECK_EMPTY);
    assert_int_equal(json_check(SPAN(" \n\t"), &fault), JSON_CHECK_EMPTY);
    assert_string_equal(fault.message, "No content to map due to end-of-input" SOURCE(2, 2));
}

static void test_depth_is_bounded(void **state)
{
    enum { LIMIT = JSON_CHECK_DEPTH };
    static char text[2 * LIMIT + 2];
    struct json_fault fault;

    (void)state;
    memset(text, '[', LIMIT);
    memset(text + LIMIT, ']', LIMIT);
    assert_good(span_of(text, 2 * LIMIT));
    memset(text, '[', LIMIT + 1);
    memset(text + LIMIT + 1, ']', LIMIT + 1);
    assert_int_equal(json_check(span_of(text, sizeof(text)), &fault), JSON_CHECK_INVALID);
    assert_int_equal(fault.offset, LIMIT);
    assert_string_equal(fault.message, "Document nesting depth (1001) exceeds the maximum allowed (1000, from "
                                       "`StreamReadConstraints.getMaxNestingDepth()`)");
    assert_int_equal(json_check(span_of(text, LIMIT), &fault), JSON_CHECK_INVALID);
}

static void test_json_is_json(void **state)
{
    static const char *const good[] = {
        "null",
        "true",
        "false",
        "0",
        "-0",
        "-1.5e+10",
        "1E5",
        "\"\"",
        "[]",
        "{}",
        " \r\n\t{ } ",
        "[[],{},[{}]]",
        "{\"a\":1,\"b\":[true,false,null,\"x\"],\"a\":2}",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83D\\ude00\\ud800\"",
        "\"\x7f\"",
        "1 ",
        "[1]\n",
        "[123456789012345678901234567890, 1e999]",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        assert_good(span_from(good[i]));
}

/* The scanner reads eight bytes at a time: what stops it must do so at each of the eight places. */
static void test_strings_stop_at_every_alignment(void **state)
{
    static const unsigned char stops[] = {0x00, 0x1f, 0x80, 0xff, '\\'};
    char text[40];

    (void)state;
    for (size_t length = 2; length < sizeof(text); length++) {
        memset(text, 'a', length);
        text[0] = text[length - 1] = '"';
        assert_good(span_of(text, length));
        assert_int_equal(json_check(span_of(text, length - 1), NULL), JSON_CHECK_INVALID);
        for (size_t at = 1; at + 1 < length; at++) {
            for (size_t i = 0; i < sizeof(stops); i++) {
                struct json_fault fault;
                text[at] = (char)stops[i];
                assert_int_equal(json_check(span_of(text, length), &fault), JSON_CHECK_INVALID);
                assert_int_equal(fault.offset, at + (stops[i] == '\\' && at + 2 < length) +
                                                   (stops[i] == '\\' && at + 2 == length ? 2 : 0));
            }
            text[at] = 'a';
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded_messages_are_given),
        cmocka_unit_test(test_words_that_are_no_values_are_quoted),
        cmocka_unit_test(test_long_words_are_cut),
        cmocka_unit_test(test_unexpected_characters_are_described),
        cmocka_unit_test(test_wrong_brackets_name_the_open_one),
        cmocka_unit_test(test_early_ends_say_what_was_open),
        cmocka_unit_test(test_numbers_have_one_form),
        cmocka_unit_test(test_strings_have_one_form),
        cmocka_unit_test(test_malformed_utf8_is_refused),
        cmocka_unit_test(test_something_after_the_value_is_refused),
        cmocka_unit_test(test_nothing_is_an_outcome_of_its_own),
        cmocka_unit_test(test_depth_is_bounded),
        cmocka_unit_test(test_json_is_json),
        cmocka_unit_test(test_strings_stop_at_every_alignment),
    };

    return cmocka_run_group_tests_name("json_check", tests, NULL, NULL);
}
