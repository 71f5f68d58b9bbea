#include "aws/arn.h"
#include "aws/pattern.h"
#include "aws/shapes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void assert_span(struct span actual, const char *expected)
{
    if (!span_equal(actual, span_from(expected)))
        fail_msg("'%.*s', not '%s'", SPAN_ARG(actual), expected);
}

static void test_what_is_no_arn_is_malformed(void **state)
{
    static const char *const bad[] = {"",
                                      "arn",
                                      "arn:",
                                      "arn:aws",
                                      "arn:aws:lambda:us-east-1:111122223333",
                                      "arn:aws:lambda:us-east-1:111122223333:",
                                      "arn::lambda:us-east-1:111122223333:x",
                                      "arn:aws::us-east-1:111122223333:x",
                                      "urn:aws:lambda:a:b:c"};
    struct arn arn;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (arn_parse(span_from(bad[i]), &arn) != ARN_MALFORMED)
            fail_msg("accepted %s", bad[i]);
}

static void test_arn_gives_its_six_parts(void **state)
{
    struct arn arn;

    (void)state;
    assert_int_equal(arn_parse(SPAN("arn:aws:s3:::bucket/key:with:colons"), &arn), 0);
    assert_span(arn.partition, "aws");
    assert_span(arn.service, "s3");
    assert_span(arn.region, "");
    assert_span(arn.account, "");
    assert_span(arn.resource, "bucket/key:with:colons");
}

static void test_regions_by_their_form(void **state)
{
    static const char *const good[] = {"us-east-1",      "cn-north-1",     "us-gov-west-1",  "us-iso-east-1",
                                       "us-isob-east-1", "eusc-de-east-1", "xx-something-9", "us-gov-1"};
    static const char *const bad[] = {
        "",       "us-east",        "us-east-12",    "US-east-1",       "use-east-1", "us--1",    "us-east-x",
        "eusc-1", "invalid-region", "us-foo-east-1", "us-isobb-east-1", "us-east-1-", "u-east-1", "us-gov-west-east-1"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        if (!arn_is_region(span_from(good[i])) || !pattern_matches(LAMBDA_REGION_PATTERN, span_from(good[i])))
            fail_msg("refused %s", good[i]);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (arn_is_region(span_from(bad[i])) || pattern_matches(LAMBDA_REGION_PATTERN, span_from(bad[i])))
            fail_msg("accepted %s", bad[i]);
}

static void test_account_ids_are_twelve_digits(void **state)
{
    (void)state;
    assert_false(arn_is_account_id(SPAN("11112222333")));
    assert_true(arn_is_account_id(SPAN("111122223333")));
    assert_false(arn_is_account_id(SPAN("1111222233334")));
    assert_false(arn_is_account_id(SPAN("11112222333a")));
}

static void test_partition_follows_from_the_region(void **state)
{
    (void)state;
    assert_span(arn_partition_of_region(SPAN("eu-central-1")), "aws");
    assert_span(arn_partition_of_region(SPAN("cn-north-1")), "aws-cn");
    assert_span(arn_partition_of_region(SPAN("us-gov-east-1")), "aws-us-gov");
    assert_span(arn_partition_of_region(SPAN("us-iso-east-1")), "aws-iso");
    assert_span(arn_partition_of_region(SPAN("us-isob-east-1")), "aws-iso-b");
    assert_span(arn_partition_of_region(SPAN("eusc-de-east-1")), "aws-eusc");
}

static void test_qualifiers_have_kinds(void **state)
{
    char text[130];

    (void)state;
    assert_int_equal(qualifier_kind_of(SPAN("")), QUALIFIER_NONE);
    assert_int_equal(qualifier_kind_of(SPAN("$LATEST")), QUALIFIER_LATEST);
    assert_int_equal(qualifier_kind_of(SPAN("$latest")), QUALIFIER_OTHER);
    assert_int_equal(qualifier_kind_of(SPAN("$LATEST.PUBLISHED")), QUALIFIER_OTHER);
    assert_int_equal(qualifier_kind_of(SPAN("12")), QUALIFIER_VERSION);
    assert_int_equal(qualifier_kind_of(SPAN("12a")), QUALIFIER_ALIAS);
    assert_int_equal(qualifier_kind_of(SPAN("a.b")), QUALIFIER_OTHER);
    memset(text, 'a', sizeof(text));
    assert_int_equal(qualifier_kind_of(span_of(text, 128)), QUALIFIER_ALIAS);
    assert_int_equal(qualifier_kind_of(span_of(text, 129)), QUALIFIER_OTHER);
}

struct reading {
    const char *text;
    const char *partition, *region, *account, *name, *qualifier;
};

static void test_names_are_read_in_all_forms(void **state)
{
    static const struct reading readings[] = {
        {"f", "", "", "", "f", ""},
        {"f:1", "", "", "", "f", "1"},
        {"f:$LATEST", "", "", "", "f", "$LATEST"},
        {"function:f", "", "", "", "f", ""},
        {"function:f:prod", "", "", "", "f", "prod"},
        {"111122223333:function:f", "", "", "111122223333", "f", ""},
        {"111122223333:f:1", "", "", "111122223333", "f", "1"},
        {"us-east-1:111122223333:function:f", "", "us-east-1", "111122223333", "f", ""},
        {"us-east-1:111122223333:function:f:1", "", "us-east-1", "111122223333", "f", "1"},
        {"arn:aws:lambda:us-east-1:111122223333:function:f", "aws", "us-east-1", "111122223333", "f", ""},
        {"arn:aws-cn:lambda:cn-north-1:111122223333:function:f:prod", "aws-cn", "cn-north-1", "111122223333", "f",
         "prod"},
        {"arn:aws-us-gov:lambda:us-gov-west-1:111122223333:function:f:$LATEST", "aws-us-gov", "us-gov-west-1",
         "111122223333", "f", "$LATEST"},
        /* What is optional may be the name itself. */
        {"function", "", "", "", "function", ""},
        {"111122223333", "", "", "", "111122223333", ""},
        {"us-east-1", "", "", "", "us-east-1", ""},
        {"arn", "", "", "", "arn", ""},
        {"us-east-1:111122223333", "", "us-east-1", "", "111122223333", ""},
        {"arn:aws:lambda:us-east-1:111122223333:function", "aws", "us-east-1", "111122223333", "function", ""},
        {"arn:aws:lambda:f", "aws", "", "", "f", ""},
        {"arn::lambda:function:f", "", "", "", "f", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(readings); i++) {
        struct function_name name;
        if (function_name_parse(span_from(readings[i].text), FUNCTION_NAME_PLAIN, &name) != 0)
            fail_msg("refused %s", readings[i].text);
        assert_span(name.partition, readings[i].partition);
        assert_span(name.region, readings[i].region);
        assert_span(name.account, readings[i].account);
        assert_span(name.name, readings[i].name);
        assert_span(name.qualifier, readings[i].qualifier);
    }
}

/* --- the parser against the patterns it stands for --------------------------------------------------------------- */

static const char *const patterns[] = {
    [FUNCTION_NAME_PLAIN] = LAMBDA_FUNCTION_NAME_PATTERN,
    [FUNCTION_NAME_NAMESPACED] = LAMBDA_NAMESPACED_FUNCTION_NAME_PATTERN,
    [FUNCTION_NAME_UNQUALIFIED] = LAMBDA_UNQUALIFIED_FUNCTION_NAME_PATTERN,
    [FUNCTION_NAME_URL] = LAMBDA_FUNCTION_URL_FUNCTION_NAME_PATTERN,
};

static void assert_agreement(struct span text)
{
    for (size_t form = 0; form < ARRAY_SIZE(patterns); form++) {
        struct function_name name;
        bool parsed = function_name_parse(text, (enum function_name_form)form, &name) == 0;
        if (parsed != pattern_matches(patterns[form], text))
            fail_msg("form %zu: parser says %s: %.*s", form, parsed ? "yes" : "no", SPAN_ARG(text));
    }
}

/* Sequences of up to five of these pieces: all of up to three, samples of the longer ones. */
static void test_parser_and_patterns_agree_on_all_combinations(void **state)
{
    static const char *const pieces[] = {"arn", "aws",     "lambda", "us-east-1", "111122223333",      "function",
                                         "f.g", "$LATEST", "12",     "",          "$LATEST.PUBLISHED", "a!"};
    enum { PIECES = ARRAY_SIZE(pieces) };
    size_t index[5] = {0};

    (void)state;
    for (size_t count = 1; count <= 5; count++) {
        size_t total = 1;
        for (size_t i = 0; i < count; i++)
            total *= PIECES;
        /* 7 and 101 are prime to the number of pieces, so that every piece comes at every place. */
        for (size_t n = 0; n < total; n += count < 4 ? 1 : count < 5 ? 7 : 101) {
            char text[256] = "";
            size_t rest = n;
            for (size_t i = 0; i < count; i++, rest /= PIECES)
                index[i] = rest % PIECES;
            for (size_t i = 0; i < count; i++) {
                strcat(text, i ? ":" : "");
                strcat(text, pieces[index[i]]);
            }
            assert_agreement(span_from(text));
        }
    }
}

static void test_parser_and_patterns_agree_on_whole_arns(void **state)
{
    static const char *const texts[] = {"arn:aws:lambda:us-east-1:111122223333:function:f",
                                        "arn:aws:lambda:us-east-1:111122223333:function:f:1:2",
                                        "arn:aws:lambda:us-east-1:111122223333:function:f:$LATES",
                                        "arn:aws:lambda::111122223333:function:f",
                                        "arn:aws:lambda:us-east-1::function:f",
                                        "arn:aws:ec2:us-east-1:111122223333:instance:i-1234567890abcdef0",
                                        "arn:aws:lambda:invalid-region:111122223333:function:f",
                                        "arn:aws:lambda:us-east-1:111122223333:function:f.g",
                                        "arn:aws:lambda:us-east-1:111122223333:function:f:$LATEST.PUBLISHED",
                                        "invalid-account:function:f",
                                        "arn:awsx-Y:lambda:us-east-1:111122223333:function:f",
                                        "arn:aws_:lambda:us-east-1:111122223333:function:f",
                                        "arn:azure:lambda:us-east-1:111122223333:function:f",
                                        "arn:aws:lambda:us-east-1:123400000000@function:f",
                                        "f:12",
                                        "f:12a",
                                        "f:",
                                        ":f",
                                        "f\n",
                                        "f:$latest"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        assert_agreement(span_from(texts[i]));
}

static void test_url_names_hold_sixty_four_characters(void **state)
{
    char text[66];
    struct function_name name;

    (void)state;
    memset(text, 'a', sizeof(text));
    assert_int_equal(function_name_parse(span_of(text, 64), FUNCTION_NAME_URL, &name), 0);
    assert_int_equal(function_name_parse(span_of(text, 65), FUNCTION_NAME_URL, &name), FUNCTION_NAME_MALFORMED);
    assert_int_equal(function_name_parse(span_of(text, 65), FUNCTION_NAME_PLAIN, &name), 0);
}

/* --- building ---------------------------------------------------------------------------------------------------- */

static void test_arns_are_built_for_their_partition(void **state)
{
    struct arena arena = {0};

    (void)state;
    assert_string_equal(arn_build_function(&arena, SPAN("us-east-1"), SPAN("111122223333"), SPAN("f"), SPAN_NONE),
                        "arn:aws:lambda:us-east-1:111122223333:function:f");
    assert_string_equal(
        arn_build_function(&arena, SPAN("cn-north-1"), SPAN("111122223333"), SPAN("f"), SPAN("$LATEST")),
        "arn:aws-cn:lambda:cn-north-1:111122223333:function:f:$LATEST");
    assert_string_equal(arn_build_layer(&arena, SPAN("us-gov-west-1"), SPAN("111122223333"), SPAN("l"), 0),
                        "arn:aws-us-gov:lambda:us-gov-west-1:111122223333:layer:l");
    assert_string_equal(arn_build_layer(&arena, SPAN("us-east-1"), SPAN("111122223333"), SPAN("l"), 7),
                        "arn:aws:lambda:us-east-1:111122223333:layer:l:7");
    assert_string_equal(arn_build(&arena, "sqs", SPAN("us-east-1"), SPAN("111122223333"), SPAN("q")),
                        "arn:aws:sqs:us-east-1:111122223333:q");
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_no_arn_is_malformed),
        cmocka_unit_test(test_arn_gives_its_six_parts),
        cmocka_unit_test(test_regions_by_their_form),
        cmocka_unit_test(test_account_ids_are_twelve_digits),
        cmocka_unit_test(test_partition_follows_from_the_region),
        cmocka_unit_test(test_qualifiers_have_kinds),
        cmocka_unit_test(test_names_are_read_in_all_forms),
        cmocka_unit_test(test_parser_and_patterns_agree_on_all_combinations),
        cmocka_unit_test(test_parser_and_patterns_agree_on_whole_arns),
        cmocka_unit_test(test_url_names_hold_sixty_four_characters),
        cmocka_unit_test(test_arns_are_built_for_their_partition),
    };

    return cmocka_run_group_tests_name("arn", tests, NULL, NULL);
}
