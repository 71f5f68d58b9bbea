#include "aws/policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define FUNCTION "arn:aws:lambda:us-east-1:111111111111:function:f"
#define INVOKE   "lambda:InvokeFunction"

/* Members of a statement as they stand in JSON; NULL: no condition. */
static bool permits(const char *principal, const char *action, const char *condition,
                    const struct policy_caller *caller)
{
    char text[1024];
    json_t *statements;
    bool answer;

    snprintf(text, sizeof(text),
             "[{\"Sid\":\"s\",\"Effect\":\"Allow\",\"Principal\":%s,\"Action\":\"%s\",\"Resource\":\"" FUNCTION
             "\"%s%s}]",
             principal, action, condition ? ",\"Condition\":" : "", condition ? condition : "");
    statements = json_loads(text, 0, NULL);
    assert_non_null(statements);
    answer = policy_permits(statements, SPAN(INVOKE), SPAN(FUNCTION), caller);
    json_decref(statements);
    return answer;
}

static const struct policy_caller other = {.account = SPAN("222222222222")};
static const struct policy_caller nobody;
static const struct policy_caller s3 = {
    .service = SPAN("s3.amazonaws.com"), .source_arn = SPAN("arn:aws:s3:::b"), .source_account = SPAN("222222222222")};

static void test_nothing_is_permitted_without_a_statement(void **state)
{
    json_t *none = json_array();
    (void)state;

    assert_false(policy_permits(NULL, SPAN(INVOKE), SPAN(FUNCTION), &other));
    assert_false(policy_permits(none, SPAN(INVOKE), SPAN(FUNCTION), &other));
    json_decref(none);
}

static void test_account_covers_its_own_callers_alone(void **state)
{
    (void)state;
    assert_true(permits("{\"AWS\":\"arn:aws:iam::222222222222:root\"}", INVOKE, NULL, &other));
    assert_true(permits("{\"AWS\":\"arn:aws:iam::222222222222:role/r\"}", INVOKE, NULL, &other));
    assert_false(permits("{\"AWS\":\"arn:aws:iam::333333333333:root\"}", INVOKE, NULL, &other));
    assert_false(permits("{\"AWS\":\"arn:aws:iam::222222222222:root\"}", INVOKE, NULL, &nobody));
    assert_false(permits("{\"AWS\":\"arn:aws:iam:::root\"}", INVOKE, NULL, &nobody));
    assert_false(permits("{\"AWS\":\"arn:aws:iam::222222222222:root\"}", INVOKE, NULL, &s3));
    assert_true(permits("\"*\"", INVOKE, NULL, &nobody));
    assert_false(permits("\"222222222222\"", INVOKE, NULL, &other));
    assert_false(permits("{}", INVOKE, NULL, &nobody));
}

static void test_service_calls_by_its_name(void **state)
{
    (void)state;
    assert_true(permits("{\"Service\":\"s3.amazonaws.com\"}", INVOKE, NULL, &s3));
    assert_false(permits("{\"Service\":\"sns.amazonaws.com\"}", INVOKE, NULL, &s3));
    assert_false(permits("{\"Service\":\"s3.amazonaws.com\"}", INVOKE, NULL, &other));
    assert_false(permits("{\"Service\":\"s3.amazonaws.com\"}", INVOKE, NULL, &nobody));
}

static void test_actions_may_be_wildcards(void **state)
{
    (void)state;
    assert_true(permits("\"*\"", "*", NULL, &other));
    assert_true(permits("\"*\"", "lambda:*", NULL, &other));
    assert_true(permits("\"*\"", "lambda:invokefunction", NULL, &other));
    assert_false(permits("\"*\"", "lambda:InvokeFunctionUrl", NULL, &other));
    assert_false(permits("\"*\"", "lambda:Invoke", NULL, &other));
    assert_false(permits("\"*\"", "lambda:GetFunction", NULL, &other));
}

static void test_statement_is_about_its_own_resource(void **state)
{
    json_t *statements = json_pack("[{s:s, s:s, s:s}]", "Principal", "*", "Action", "*", "Resource", FUNCTION ":live");
    (void)state;

    assert_true(policy_permits(statements, SPAN(INVOKE), SPAN(FUNCTION ":live"), &other));
    assert_false(policy_permits(statements, SPAN(INVOKE), SPAN(FUNCTION), &other));
    assert_false(policy_permits(statements, SPAN(INVOKE), SPAN(FUNCTION ":1"), &other));
    assert_false(policy_permits(statements, SPAN(INVOKE), SPAN(FUNCTION ":live2"), &other));
    json_decref(statements);
}

static bool source_matches(const char *pattern, const char *arn)
{
    struct policy_caller caller = {.service = SPAN("s3.amazonaws.com"), .source_arn = span_from(arn)};
    char condition[512];

    snprintf(condition, sizeof(condition), "{\"ArnLike\":{\"AWS:SourceArn\":\"%s\"}}", pattern);
    return permits("{\"Service\":\"s3.amazonaws.com\"}", INVOKE, condition, &caller);
}

static void test_source_arn_is_compared_part_by_part(void **state)
{
    (void)state;
    assert_true(source_matches("arn:aws:s3:::b", "arn:aws:s3:::b"));
    assert_false(source_matches("arn:aws:s3:::b", "arn:aws:s3:::bb"));
    assert_false(source_matches("arn:aws:s3:::b", ""));
    assert_true(source_matches("arn:aws:s3:::b*", "arn:aws:s3:::bucket:and:more"));
    assert_true(
        source_matches("arn:aws:execute-api:us-east-1:1:a/*/GET/?", "arn:aws:execute-api:us-east-1:1:a/x/y/GET/z"));
    assert_false(
        source_matches("arn:aws:execute-api:us-east-1:1:a/*/GET/?", "arn:aws:execute-api:us-east-1:1:a/x/GET/"));
    assert_true(source_matches("arn:*:s3:*:*:*", "arn:aws-cn:s3:::b"));
    /* A wildcard does not reach over a colon but in the last part. */
    assert_false(source_matches("arn:aws:s3:*", "arn:aws:s3:::b"));
    assert_false(source_matches("arn:aws:*:b", "arn:aws:s3:::b"));
    assert_false(source_matches("*", "arn:aws:s3:::b"));
    assert_true(source_matches("arn:aws:s3:::*a*ab", "arn:aws:s3:::aaaab"));
}

static void test_all_conditions_must_be_met(void **state)
{
    static const char both[] = "{\"StringEquals\":{\"AWS:SourceAccount\":\"222222222222\"},"
                               "\"ArnLike\":{\"AWS:SourceArn\":\"arn:aws:s3:::b\"}}";
    struct policy_caller caller = s3;
    (void)state;

    assert_true(permits("{\"Service\":\"s3.amazonaws.com\"}", INVOKE, both, &caller));
    caller.source_account = SPAN("333333333333");
    assert_false(permits("{\"Service\":\"s3.amazonaws.com\"}", INVOKE, both, &caller));
    caller.source_account = SPAN_NONE;
    assert_false(permits("{\"Service\":\"s3.amazonaws.com\"}", INVOKE, both, &caller));
}

static void test_keys_without_regard_to_case_and_unknown_ones_never(void **state)
{
    (void)state;
    assert_true(permits("\"*\"", INVOKE, "{\"StringEquals\":{\"aws:sourceaccount\":\"222222222222\"}}", &s3));
    assert_false(permits("\"*\"", INVOKE, "{\"StringEquals\":{\"aws:PrincipalOrgID\":\"o-0123456789\"}}", &other));
    assert_false(permits("\"*\"", INVOKE, "{\"StringEquals\":{\"aws:PrincipalOrgID\":\"\"}}", &other));
    assert_false(permits("\"*\"", INVOKE, "{\"IpAddress\":{\"AWS:SourceAccount\":\"222222222222\"}}", &s3));
}

static void test_url_and_token_conditions(void **state)
{
    static const char via_url[] = "{\"Bool\":{\"lambda:InvokedViaFunctionUrl\":\"true\"}}";
    static const char not_via_url[] = "{\"Bool\":{\"lambda:InvokedViaFunctionUrl\":\"false\"}}";
    static const char public[] = "{\"StringEquals\":{\"lambda:FunctionUrlAuthType\":\"NONE\"}}";
    static const char token[] = "{\"StringEquals\":{\"lambda:EventSourceToken\":\"t\"}}";
    const struct policy_caller by_url = {.url_auth_type = SPAN("NONE")};
    const struct policy_caller by_signed_url = {.account = SPAN("222222222222"), .url_auth_type = SPAN("AWS_IAM")};
    const struct policy_caller alexa = {.service = SPAN("alexa-connectedhome.amazon.com"),
                                        .event_source_token = SPAN("t")};
    (void)state;

    assert_true(permits("\"*\"", INVOKE, via_url, &by_url));
    assert_true(permits("\"*\"", INVOKE, via_url, &by_signed_url));
    assert_false(permits("\"*\"", INVOKE, via_url, &other));
    assert_true(permits("\"*\"", INVOKE, not_via_url, &other));
    assert_false(permits("\"*\"", INVOKE, not_via_url, &by_url));
    assert_true(permits("\"*\"", INVOKE, public, &by_url));
    assert_false(permits("\"*\"", INVOKE, public, &by_signed_url));
    assert_false(permits("\"*\"", INVOKE, public, &other));
    assert_true(permits("\"*\"", INVOKE, token, &alexa));
    assert_false(permits("\"*\"", INVOKE, token, &other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_permitted_without_a_statement),
        cmocka_unit_test(test_account_covers_its_own_callers_alone),
        cmocka_unit_test(test_service_calls_by_its_name),
        cmocka_unit_test(test_actions_may_be_wildcards),
        cmocka_unit_test(test_statement_is_about_its_own_resource),
        cmocka_unit_test(test_source_arn_is_compared_part_by_part),
        cmocka_unit_test(test_all_conditions_must_be_met),
        cmocka_unit_test(test_keys_without_regard_to_case_and_unknown_ones_never),
        cmocka_unit_test(test_url_and_token_conditions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
