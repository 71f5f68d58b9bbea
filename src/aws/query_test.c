#include "aws/query.h"

#include "aws/xml.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct fixture {
    struct arena arena;
    struct uri_query form;
    struct buffer text;
};

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct fixture));
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    arena_deinit(&fixture->arena);
    buffer_deinit(&fixture->text);
    free(fixture);
    return 0;
}

static void parse(struct fixture *fixture, const char *query, const char *body)
{
    assert_int_equal(query_parse(&fixture->arena, span_from(query), span_from(body), &fixture->form), 0);
}

static void assert_span(struct span actual, const char *expected)
{
    assert_true(span_equal(actual, span_from(expected)));
}

static void assert_text(struct fixture *fixture, const char *expected)
{
    assert_int_equal(buffer_append(&fixture->text, "", 1), 0);
    assert_string_equal(fixture->text.data, expected);
    fixture->text.length = 0;
}

static void test_body_is_read_as_a_form(void **state)
{
    struct fixture *fixture = *state;

    parse(fixture, "", "Action=TagRole&Name=a+b%26c&Empty=&Bare");
    assert_span(query_string(&fixture->form, "Action"), "TagRole");
    assert_span(query_string(&fixture->form, "Name"), "a b&c");
    assert_non_null(query_string(&fixture->form, "Empty").data);
    assert_non_null(query_string(&fixture->form, "Bare").data);
    assert_null(query_string(&fixture->form, "name").data);
}

static void test_query_string_counts_without_a_body_alone(void **state)
{
    struct fixture *fixture = *state;

    parse(fixture, "Action=A", "");
    assert_span(query_string(&fixture->form, "Action"), "A");
    parse(fixture, "Action=A", "Action=B");
    assert_span(query_string(&fixture->form, "Action"), "B");
    assert_int_equal(query_parse(&fixture->arena, SPAN("Action=%4"), SPAN_NONE, &fixture->form), -EINVAL);
}

static void test_items_of_lists_are_found_by_number(void **state)
{
    struct fixture *fixture = *state;

    parse(fixture, "", "K.member.1=a&T.member.1.Key=k&T.member.1.Value=v&T.member.12.Key=l");
    assert_span(query_item(&fixture->form, "K", 1, NULL), "a");
    assert_null(query_item(&fixture->form, "K", 2, NULL).data);
    assert_span(query_item(&fixture->form, "T", 1, "Value"), "v");
    assert_true(query_has_item(&fixture->form, "K", 1));
    assert_true(query_has_item(&fixture->form, "T", 1));
    assert_true(query_has_item(&fixture->form, "T", 12));
    assert_false(query_has_item(&fixture->form, "T", 2));
}

static void test_values_become_elements(void **state)
{
    struct fixture *fixture = *state;
    json_t *value = json_pack("{s:s, s:i, s:b, s:n, s:[s, {s:s}], s:[]}", "Text", "a<b>&\"c\"\x01", "Number", 42,
                              "Flag", 0, "Nothing", "List", "x", "Key", "k", "Empty");

    assert_int_equal(xml_append_element("R", value, &fixture->text), 0);
    assert_text(fixture, "<R><Text>a&lt;b&gt;&amp;\"c\"?</Text>\n<Number>42</Number>\n<Flag>false</Flag>\n"
                         "<List><member>x</member>\n<member><Key>k</Key>\n</member>\n</List>\n<Empty></Empty>\n</R>\n");
    json_decref(value);
}

static void test_answer_is_wrapped_in_the_actions_name(void **state)
{
    struct fixture *fixture = *state;
    json_t *result = json_pack("{s:s}", "Account", "1");

    assert_int_equal(query_write_xml("GetIt", "urn:x", result, SPAN("id"), &fixture->text), 0);
    assert_text(fixture, "<GetItResponse xmlns=\"urn:x\">\n<GetItResult><Account>1</Account>\n</GetItResult>\n"
                         "<ResponseMetadata>\n<RequestId>id</RequestId>\n</ResponseMetadata>\n</GetItResponse>\n");
    assert_int_equal(query_write_xml("DeleteIt", "urn:x", NULL, SPAN("id"), &fixture->text), 0);
    assert_text(fixture, "<DeleteItResponse xmlns=\"urn:x\">\n<ResponseMetadata>\n<RequestId>id</RequestId>\n"
                         "</ResponseMetadata>\n</DeleteItResponse>\n");
    json_decref(result);
}

static void test_answer_as_json_has_the_same_envelope(void **state)
{
    struct fixture *fixture = *state;
    json_t *result = json_pack("{s:s}", "Account", "1");

    assert_int_equal(query_write_json("GetIt", result, SPAN("id"), &fixture->text), 0);
    assert_text(
        fixture,
        "{\"GetItResponse\":{\"ResponseMetadata\":{\"RequestId\":\"id\"},\"GetItResult\":{\"Account\":\"1\"}}}");
    json_decref(result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(test_body_is_read_as_a_form),
        TEST(test_query_string_counts_without_a_body_alone),
        TEST(test_items_of_lists_are_found_by_number),
        TEST(test_values_become_elements),
        TEST(test_answer_is_wrapped_in_the_actions_name),
        TEST(test_answer_as_json_has_the_same_envelope),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
