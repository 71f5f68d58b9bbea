#include "aws/pattern.h"
#include "aws/shapes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static bool matches(const char *pattern, const char *text)
{
    return pattern_matches(pattern, span_from(text));
}

static void test_what_is_not_a_pattern_is_refused(void **state)
{
    static const char *const bad[] = {"(",      ")",      "a)",  "(a",  "*",       "a**",   "[a",     "a{",  "a{2",
                                      "a{3,2}", "a{600}", "\\q", "\\1", "(?<!ab)", "[b-a]", "\\p{X}", "a\\", "\\x4"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        if (pattern_check(bad[i]) != -EINVAL)
            fail_msg("accepted: %s", bad[i]);
    }
}

static void test_a_pattern_past_the_program_limit_is_refused(void **state)
{
    (void)state;
    assert_int_equal(pattern_check("(a{500}){4}"), 0);
    assert_int_equal(pattern_check("(a{500}){5}"), -EINVAL);
}

static void test_a_part_of_the_text_is_no_match(void **state)
{
    (void)state;
    assert_false(matches("[a-z]+", "abc1"));
    assert_false(matches("[a-z]+", "1abc"));
    assert_false(matches("[a-z]+", ""));
    assert_true(matches("[a-z]+", "abc"));
    assert_true(matches("", ""));
    assert_false(matches("", "a"));
}

static void test_alternatives_cover_the_whole_text(void **state)
{
    (void)state;
    assert_true(matches("ab|cd", "ab"));
    assert_true(matches("ab|cd", "cd"));
    assert_false(matches("ab|cd", "abd"));
    assert_true(matches("(|[a-z]+)", ""));
    assert_true(matches("(|[a-z]+)", "x"));
    assert_true(matches("a(b|c)?d", "ad"));
    assert_true(matches("(a.*)|()", ""));
}

static void test_counts_hold_at_their_limits(void **state)
{
    (void)state;
    assert_false(matches("\\d{12}", "11122223333"));
    assert_true(matches("\\d{12}", "111122223333"));
    assert_false(matches("\\d{12}", "1111222233334"));
    assert_false(matches("a{2,3}", "a"));
    assert_true(matches("a{2,3}", "aa"));
    assert_true(matches("a{2,3}", "aaa"));
    assert_false(matches("a{2,3}", "aaaa"));
    assert_true(matches("a{2,}", "aaaaaaaa"));
    assert_true(matches("a{0}", ""));
    assert_true(matches("(ab)*", "ababab"));
    assert_false(matches("(ab)*", "ababa"));
}

static void test_a_dash_between_ranges_is_itself(void **state)
{
    (void)state;
    assert_true(matches("[a-zA-Z0-9-_]+", "a-Z_9"));
    assert_false(matches("[a-zA-Z0-9-_]+", "a:b"));
    assert_true(matches("[+\\-@]", "-"));
    assert_true(matches("[ab-]", "-"));
    assert_false(matches("[^a-c]", "b"));
    assert_true(matches("[\\x21-\\x7E]+", "!~"));
    assert_false(matches("[\\x21-\\x7E]+", " "));
}

static void test_lookaround_looks_without_reading(void **state)
{
    (void)state;
    assert_false(matches(LAMBDA_ALIAS_PATTERN, "123"));
    assert_true(matches(LAMBDA_ALIAS_PATTERN, "123a"));
    assert_true(matches(LAMBDA_ALIAS_PATTERN, "a123"));
    assert_false(matches(LAMBDA_FUNCTION_URL_QUALIFIER_PATTERN, "1"));
    assert_false(matches(LAMBDA_FUNCTION_URL_QUALIFIER_PATTERN, "$LATEST"));
    assert_true(matches(LAMBDA_FUNCTION_URL_QUALIFIER_PATTERN, "prod"));
    assert_false(matches(LAMBDA_S3_BUCKET_PATTERN, "bucket."));
    assert_true(matches(LAMBDA_S3_BUCKET_PATTERN, "bucket.x"));
    assert_true(matches("(?=a).b|(?=c).d", "cd"));
}

static void test_anchors_hold_at_the_ends_only(void **state)
{
    (void)state;
    assert_true(matches("^a$", "a"));
    assert_false(matches("a^b", "ab"));
    assert_true(matches(LAMBDA_DESTINATION_ARN_PATTERN, ""));
    assert_true(matches(LAMBDA_DESTINATION_ARN_PATTERN, "arn:aws:sqs:us-east-1:111122223333:q"));
    assert_true(matches(LAMBDA_DESTINATION_ARN_PATTERN, "kafka://topic"));
    assert_false(matches(LAMBDA_DESTINATION_ARN_PATTERN, "arn:aws:_-/!lambda:us-east-1:111122223333:function:f"));
}

static void test_hostile_texts_take_linear_time(void **state)
{
    char text[8001];

    (void)state;
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_false(matches("(a*)*b", text));
    assert_false(matches("(a|a)*b", text));
    assert_false(matches("(a?){60}b", text));
}

/* Every text in shapes.h must be one that can be compiled: callers cannot handle a failure there. */
static void test_every_shape_compiles(void **state)
{
    static const char *const shapes[] = {
        LAMBDA_FUNCTION_NAME_PATTERN,
        LAMBDA_NAMESPACED_FUNCTION_NAME_PATTERN,
        LAMBDA_UNQUALIFIED_FUNCTION_NAME_PATTERN,
        LAMBDA_FUNCTION_URL_FUNCTION_NAME_PATTERN,
        LAMBDA_QUALIFIER_PATTERN,
        LAMBDA_PROVISIONED_QUALIFIER_PATTERN,
        LAMBDA_FUNCTION_URL_QUALIFIER_PATTERN,
        LAMBDA_ALIAS_PATTERN,
        LAMBDA_VERSION_PATTERN,
        LAMBDA_VERSION_WITH_LATEST_PUBLISHED_PATTERN,
        LAMBDA_ADDITIONAL_VERSION_PATTERN,
        LAMBDA_FUNCTION_ARN_PATTERN,
        LAMBDA_LAYER_NAME_PATTERN,
        LAMBDA_LAYER_VERSION_ARN_PATTERN,
        LAMBDA_ROLE_ARN_PATTERN,
        LAMBDA_HANDLER_PATTERN,
        LAMBDA_KMS_KEY_ARN_PATTERN,
        LAMBDA_RESOURCE_ARN_PATTERN,
        LAMBDA_ENVIRONMENT_NAME_PATTERN,
        LAMBDA_LOG_GROUP_PATTERN,
        LAMBDA_LOCAL_MOUNT_PATH_PATTERN,
        LAMBDA_S3_BUCKET_PATTERN,
        LAMBDA_SECURITY_GROUP_ID_PATTERN,
        LAMBDA_SUBNET_ID_PATTERN,
        LAMBDA_ARN_PATTERN,
        LAMBDA_DESTINATION_ARN_PATTERN,
        LAMBDA_STATEMENT_ID_PATTERN,
        LAMBDA_NAMESPACED_STATEMENT_ID_PATTERN,
        LAMBDA_ACTION_PATTERN,
        LAMBDA_PRINCIPAL_PATTERN,
        LAMBDA_SOURCE_ACCOUNT_PATTERN,
        LAMBDA_EVENT_SOURCE_TOKEN_PATTERN,
        LAMBDA_PRINCIPAL_ORG_ID_PATTERN,
        LAMBDA_LAYER_PERMISSION_ACTION_PATTERN,
        LAMBDA_LAYER_PRINCIPAL_PATTERN,
        LAMBDA_ORGANIZATION_ID_PATTERN,
        LAMBDA_CODE_SIGNING_ARN_PATTERN,
        LAMBDA_RUNTIME_VERSION_ARN_PATTERN,
        LAMBDA_TAGGABLE_RESOURCE_PATTERN,
        LAMBDA_TAG_PATTERN,
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
        if (pattern_check(shapes[i]) < 0)
            fail_msg("does not compile: %s", shapes[i]);
    }
}

static void test_resources_that_can_be_tagged(void **state)
{
    (void)state;
    assert_true(matches(LAMBDA_TAGGABLE_RESOURCE_PATTERN, "arn:aws:lambda:us-east-1:111122223333:function:f"));
    assert_true(matches(LAMBDA_TAGGABLE_RESOURCE_PATTERN, "arn:aws:lambda:us-gov-west-1:111122223333:function:f:1"));
    assert_true(matches(LAMBDA_TAGGABLE_RESOURCE_PATTERN, "arn:aws:lambda:us-east-1:111122223333:event-source-mapping:"
                                                          "0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f"));
    assert_false(matches(LAMBDA_TAGGABLE_RESOURCE_PATTERN, "arn:aws:lambda:us-east-1:111122223333:foobar:f"));
    assert_false(matches(LAMBDA_TAGGABLE_RESOURCE_PATTERN, "arn:aws:something"));
    assert_true(matches(LAMBDA_TAG_PATTERN, "Größe = 1"));
    assert_false(matches(LAMBDA_TAG_PATTERN, "a,b"));
    assert_true(matches(LAMBDA_ROLE_ARN_PATTERN, "arn:aws:iam::111122223333:role/service-role/r@x"));
    assert_false(matches(LAMBDA_ROLE_ARN_PATTERN, "r1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_not_a_pattern_is_refused),
        cmocka_unit_test(test_a_pattern_past_the_program_limit_is_refused),
        cmocka_unit_test(test_a_part_of_the_text_is_no_match),
        cmocka_unit_test(test_alternatives_cover_the_whole_text),
        cmocka_unit_test(test_counts_hold_at_their_limits),
        cmocka_unit_test(test_a_dash_between_ranges_is_itself),
        cmocka_unit_test(test_lookaround_looks_without_reading),
        cmocka_unit_test(test_anchors_hold_at_the_ends_only),
        cmocka_unit_test(test_hostile_texts_take_linear_time),
        cmocka_unit_test(test_every_shape_compiles),
        cmocka_unit_test(test_resources_that_can_be_tagged),
    };

    return cmocka_run_group_tests_name("pattern", tests, NULL, NULL);
}
