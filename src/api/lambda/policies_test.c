/* Resource policies: what the recordings do not show, above all at the limits and one past them. */
#include "api/lambda/testing.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define POLICY FUNCTIONS "/f/policy"
#define ARN    "arn:aws:lambda:us-east-1:111111111111:function:f"

/* The least that AddPermission needs. */
static json_t *permission(const char *id)
{
    return json_pack("{s:s, s:s, s:s}", "StatementId", id, "Action", "lambda:InvokeFunction", "Principal",
                     "s3.amazonaws.com");
}

/* With one member set, which is taken. */
static json_t *permission_with(const char *member, json_t *value)
{
    json_t *body = permission("s");

    json_object_set_new(body, member, value);
    return body;
}

static struct api_answer add_to(struct api_world *world, const char *target, json_t *body)
{
    return api_exchange_json(world, "POST", target, body);
}

static void assert_added(struct api_world *world, const char *target, json_t *body)
{
    struct api_answer answer = add_to(world, target, body);

    if (answer.status != 201)
        fail_msg("%s", api_message(&answer));
    api_answer_deinit(&answer);
}

static void remove_from(struct api_world *world, const char *target)
{
    struct api_answer answer = api_exchange(world, "DELETE", target, NULL);

    assert_int_equal(answer.status, 204);
    assert_int_equal(answer.bytes.length, 0);
    api_answer_deinit(&answer);
}

static void publish(struct api_world *world)
{
    struct api_answer answer = api_exchange(world, "POST", FUNCTIONS "/f/versions", "{}");

    assert_int_equal(answer.status, 201);
    api_answer_deinit(&answer);
}

static void create_alias(struct api_world *world)
{
    struct api_answer answer =
        api_exchange(world, "POST", FUNCTIONS "/f/aliases", "{\"Name\":\"live\",\"FunctionVersion\":\"$LATEST\"}");

    assert_int_equal(answer.status, 201);
    api_answer_deinit(&answer);
}

/* The text of the statement that comes back, "" with a refusal. */
static void assert_statement(struct api_world *world, json_t *body, const char *text)
{
    struct api_answer answer = add_to(world, POLICY, body);

    assert_int_equal(answer.status, 201);
    assert_string_equal(json_string_value(json_object_get(answer.body, "Statement")), text);
    api_answer_deinit(&answer);
    remove_from(world, POLICY "/s");
}

static void test_statement_has_the_service_s_form(void **state)
{
    static const char head[] = "{\"Sid\":\"s\",\"Effect\":\"Allow\",\"Principal\":{\"Service\":\"s3.amazonaws.com\"},"
                               "\"Action\":\"lambda:InvokeFunction\",\"Resource\":\"" ARN "\"";
    json_t *body = permission("s");
    char text[1024];

    snprintf(text, sizeof(text), "%s}", head);
    assert_statement(*state, json_incref(body), text);
    json_object_set_new(body, "SourceArn", json_string("arn:aws:s3:::b"));
    json_object_set_new(body, "SourceAccount", json_string("222222222222"));
    json_object_set_new(body, "EventSourceToken", json_string("a.b-c_d"));
    json_object_set_new(body, "PrincipalOrgID", json_string("o-0123456789"));
    snprintf(text, sizeof(text),
             "%s,\"Condition\":{\"StringEquals\":{\"AWS:SourceAccount\":\"222222222222\","
             "\"aws:PrincipalOrgID\":\"o-0123456789\",\"lambda:EventSourceToken\":\"a.b-c_d\"},"
             "\"ArnLike\":{\"AWS:SourceArn\":\"arn:aws:s3:::b\"}}}",
             head);
    assert_statement(*state, body, text);
}

static void test_function_url_conditions_are_kept(void **state)
{
    assert_statement(*state,
                     json_pack("{s:s, s:s, s:s, s:s}", "StatementId", "s", "Action", "lambda:InvokeFunctionUrl",
                               "Principal", "*", "FunctionUrlAuthType", "NONE"),
                     "{\"Sid\":\"s\",\"Effect\":\"Allow\",\"Principal\":\"*\",\"Action\":\"lambda:InvokeFunctionUrl\","
                     "\"Resource\":\"" ARN
                     "\",\"Condition\":{\"StringEquals\":{\"lambda:FunctionUrlAuthType\":\"NONE\"}}}");
    assert_statement(*state,
                     json_pack("{s:s, s:s, s:s, s:b}", "StatementId", "s", "Action", "lambda:InvokeFunction",
                               "Principal", "*", "InvokedViaFunctionUrl", 1),
                     "{\"Sid\":\"s\",\"Effect\":\"Allow\",\"Principal\":\"*\",\"Action\":\"lambda:InvokeFunction\","
                     "\"Resource\":\"" ARN "\",\"Condition\":{\"Bool\":{\"lambda:InvokedViaFunctionUrl\":\"true\"}}}");
    lambda_assert_error(add_to(*state, POLICY, permission_with("FunctionUrlAuthType", json_string("NONE"))), 400,
                        "InvalidParameterValueException",
                        "FunctionUrlAuthType is only supported for lambda:InvokeFunctionUrl action");
}

/* What becomes of a principal in the statement; NULL: it is refused. */
static void assert_principal(struct api_world *world, const char *principal, const char *shown)
{
    struct api_answer answer = add_to(world, POLICY, permission_with("Principal", json_string(principal)));
    const char *text = json_string_value(json_object_get(answer.body, "Statement"));

    if (!shown) {
        lambda_assert_error(answer, 400, "InvalidParameterValueException",
                            "The provided principal was invalid. Please check the principal and try again.");
        return;
    }
    assert_int_equal(answer.status, 201);
    assert_non_null(strstr(text, shown));
    api_answer_deinit(&answer);
    remove_from(world, POLICY "/s");
}

static void test_principals_are_services_accounts_and_identities(void **state)
{
    assert_principal(*state, "*", "\"Principal\":\"*\",");
    assert_principal(*state, "222222222222", "\"Principal\":{\"AWS\":\"arn:aws:iam::222222222222:root\"}");
    assert_principal(*state, "arn:aws:iam::222222222222:root", "{\"AWS\":\"arn:aws:iam::222222222222:root\"}");
    assert_principal(*state, "arn:aws:iam::222222222222:user/u", "{\"AWS\":\"arn:aws:iam::222222222222:user/u\"}");
    assert_principal(*state, "arn:aws:iam::222222222222:role/p/r", "{\"AWS\":\"arn:aws:iam::222222222222:role/p/r\"}");
    assert_principal(*state, "arn:aws:sts::222222222222:assumed-role/r/s", "\"arn:aws:sts::222222222222:");
    assert_principal(*state, "alexa-appkit.amazon.com", "{\"Service\":\"alexa-appkit.amazon.com\"}");
    assert_principal(*state, "logs.us-east-1.amazonaws.com", "{\"Service\":\"logs.us-east-1.amazonaws.com\"}");
    assert_principal(*state, "ec2.amazonaws.com.cn", "{\"Service\":\"ec2.amazonaws.com.cn\"}");
    assert_principal(*state, "invalid.nonaws.com", NULL);
    assert_principal(*state, "amazonaws.com", NULL);
    assert_principal(*state, ".amazonaws.com", NULL);
    assert_principal(*state, "s3..amazonaws.com", NULL);
    assert_principal(*state, "22222222222", NULL);
    assert_principal(*state, "2222222222222", NULL);
    assert_principal(*state, "arn:aws:iam::22222222222:root", NULL);
    assert_principal(*state, "arn:aws:iam::222222222222:group/g", NULL);
    assert_principal(*state, "arn:aws:iam::222222222222:user/", NULL);
    assert_principal(*state, "arn:aws:s3:::b", NULL);
    assert_principal(*state, "somebody", NULL);
    lambda_assert_error(
        add_to(*state, POLICY, permission_with("Principal", json_string("arn:aws:iam:222222222222:role/r"))), 400,
        "InvalidParameterValueException",
        "The provided input'arn:aws:iam:222222222222:role/r'was invalid. Member must satisfy expression: "
        "[\\w+=,.@-]* Please check your input and try again.");
    lambda_assert_error(
        add_to(*state, POLICY, permission_with("Principal", json_string("*.amazonaws.com"))), 400,
        "InvalidParameterValueException",
        "The provided input'*.amazonaws.com'was invalid. Member must satisfy expression: [\\w+=,.@-]* Please "
        "check your input and try again.");
}

static json_t *text_of(size_t length)
{
    char *text = calloc(1, length + 1);
    json_t *value;

    memset(text, 'a', length);
    value = json_string(text);
    free(text);
    return value;
}

static void assert_violates(struct api_world *world, const char *member, json_t *value, const char *ending)
{
    struct api_answer answer = add_to(world, POLICY, permission_with(member, value));

    assert_int_equal(answer.status, 400);
    assert_string_equal(answer.error_type, "ValidationException");
    if (!strstr(api_message(&answer), ending))
        fail_msg("%s: %s", member, api_message(&answer));
    api_answer_deinit(&answer);
}

static void test_members_are_held_to_the_model(void **state)
{
    struct api_world *world = *state;

    assert_added(world, POLICY, permission_with("StatementId", text_of(100)));
    assert_violates(world, "StatementId", text_of(101),
                    "at 'statementId' failed to satisfy constraint: Member must have length less than or equal to 100");
    assert_violates(world, "StatementId", json_string(""), "Member must have length greater than or equal to 1");
    assert_violates(world, "Action", json_string("s3:GetObject"),
                    "Member must satisfy regular expression pattern: (lambda:[*]|lambda:[a-zA-Z]+|[*])");
    assert_violates(
        world, "Principal", json_string("a b"),
        "at 'principal' failed to satisfy constraint: Member must satisfy regular expression pattern: [^\\s]+");
    assert_violates(world, "Principal", text_of(2049), "Member must have length less than or equal to 2048");
    assert_violates(world, "SourceArn", json_string("b"), "at 'sourceArn' failed");
    assert_violates(
        world, "SourceAccount", json_string("12345678901"),
        "at 'sourceAccount' failed to satisfy constraint: Member must satisfy regular expression pattern: \\d{12}");
    assert_violates(world, "SourceAccount", json_string("1234567890123"), "2 validation errors detected");
    assert_violates(world, "EventSourceToken", text_of(257), "Member must have length less than or equal to 256");
    assert_violates(world, "PrincipalOrgID", json_string("o-012345678"),
                    "Member must have length greater than or equal to 12");
    assert_violates(world, "PrincipalOrgID", text_of(34),
                    "at 'principalOrgID' failed to satisfy constraint: Member must satisfy regular expression pattern: "
                    "o-[a-z0-9]{10,32}");
    assert_violates(world, "FunctionUrlAuthType", json_string("SOME"),
                    "Value 'SOME' at 'functionUrlAuthType' failed to satisfy constraint: Member must satisfy enum "
                    "value set: [NONE, AWS_IAM]");
    lambda_assert_error(
        add_to(world, POLICY, json_object()), 400, "ValidationException",
        "3 validation errors detected: Value null at 'statementId' failed to satisfy constraint: Member must "
        "not be null; Value null at 'action' failed to satisfy constraint: Member must not be null; Value "
        "null at 'principal' failed to satisfy constraint: Member must not be null");
}

static struct api_answer get_policy(struct api_world *world, const char *target)
{
    struct api_answer answer = api_exchange(world, "GET", target, NULL);

    assert_int_equal(answer.status, 200);
    return answer;
}

static size_t policy_size(struct api_world *world)
{
    struct api_answer answer = get_policy(world, POLICY);
    size_t size = strlen(json_string_value(json_object_get(answer.body, "Policy")));

    api_answer_deinit(&answer);
    return size;
}

/* A permission whose SourceArn has `extra` characters more than the shortest. */
static json_t *long_permission(const char *id, size_t extra)
{
    json_t *body = permission(id);
    json_t *filler = text_of(extra);

    json_object_set_new(body, "SourceArn", json_sprintf("arn:aws:s3:::%s", json_string_value(filler)));
    json_decref(filler);
    return body;
}

static void test_policy_may_have_exactly_20480_bytes(void **state)
{
    struct api_world *world = *state;
    size_t extra;

    assert_added(world, POLICY, long_permission("a", 9000));
    assert_added(world, POLICY, long_permission("b", 9000));
    assert_added(world, POLICY, long_permission("c", 0));
    extra = 20480 - policy_size(world);
    remove_from(world, POLICY "/c");
    lambda_assert_error(add_to(world, POLICY, long_permission("c", extra + 1)), 400, "PolicyLengthExceededException",
                        "The final policy size (20481) is bigger than the limit (20480).");
    assert_added(world, POLICY, long_permission("c", extra));
    assert_int_equal(policy_size(world), 20480);
}

static void copy_revision(struct api_world *world, const char *target, char revision[64])
{
    struct api_answer answer = get_policy(world, target);
    const char *text = json_string_value(json_object_get(answer.body, "RevisionId"));

    assert_non_null(text);
    snprintf(revision, 64, "%s", text);
    api_answer_deinit(&answer);
}

static json_t *permission_at(const char *id, const char *revision)
{
    json_t *body = permission(id);

    json_object_set_new(body, "RevisionId", json_string(revision));
    return body;
}

static const char stale[] = "The Revision Id provided does not match the latest Revision Id. Call the GetPolicy API to "
                            "retrieve the latest Revision Id";

static void test_policy_has_its_own_revision(void **state)
{
    struct api_world *world = *state;
    char function[64];
    char first[64];
    char second[64];
    char target[256];

    copy_revision(world, FUNCTIONS "/f/configuration", function);
    lambda_assert_error(add_to(world, POLICY, permission_at("s1", "")), 412, "PreconditionFailedException", stale);
    assert_added(world, POLICY, permission_at("s1", function));
    copy_revision(world, POLICY, first);
    assert_string_not_equal(first, function);
    lambda_assert_error(add_to(world, POLICY, permission_at("s2", function)), 412, "PreconditionFailedException",
                        stale);
    assert_added(world, POLICY, permission_at("s2", first));
    copy_revision(world, POLICY, second);
    assert_string_not_equal(second, first);
    snprintf(target, sizeof(target), POLICY "/s1?RevisionId=%s", first);
    lambda_assert_error(api_exchange(world, "DELETE", target, NULL), 412, "PreconditionFailedException", stale);
    snprintf(target, sizeof(target), POLICY "/s1?RevisionId=%s", second);
    remove_from(world, target);
    remove_from(world, POLICY "/s2");
    /* Without a policy it is the function's again. */
    lambda_assert_error(add_to(world, POLICY, permission_at("s1", second)), 412, "PreconditionFailedException", stale);
    assert_added(world, POLICY, permission_at("s1", function));
}

static void test_what_is_missing_has_its_own_texts(void **state)
{
    struct api_world *world = *state;
    static const char no_policy[] = "No policy is associated with the given resource.";
    static const char none[] = "The resource you requested does not exist.";

    publish(world);
    create_alias(world);
    lambda_assert_error(api_exchange(world, "DELETE", POLICY "/s?Qualifier=1", NULL), 404, "ResourceNotFoundException",
                        no_policy);
    lambda_assert_error(api_exchange(world, "DELETE", POLICY "/s?Qualifier=live", NULL), 404,
                        "ResourceNotFoundException", no_policy);
    lambda_assert_error(api_exchange(world, "DELETE", POLICY "/s?Qualifier=2", NULL), 404, "ResourceNotFoundException",
                        "No policy found for: " ARN ":2");
    lambda_assert_error(api_exchange(world, "GET", POLICY "?Qualifier=nobody", NULL), 404, "ResourceNotFoundException",
                        none);
    /* The function's own policy is not that of $LATEST by its name. */
    assert_added(world, POLICY, permission("s"));
    lambda_assert_error(api_exchange(world, "GET", POLICY "?Qualifier=%24LATEST", NULL), 404,
                        "ResourceNotFoundException", none);
    lambda_assert_error(api_exchange(world, "DELETE", POLICY "/s?Qualifier=%24LATEST", NULL), 404,
                        "ResourceNotFoundException", no_policy);
    lambda_assert_error(
        api_exchange(world, "DELETE", POLICY "/a%20b", NULL), 400, "ValidationException",
        "1 validation error detected: Value 'a b' at 'statementId' failed to satisfy constraint: Member must "
        "satisfy regular expression pattern: ([a-zA-Z0-9-_.]+)");
}

static void test_same_statement_id_may_stand_in_several_policies(void **state)
{
    struct api_world *world = *state;

    publish(world);
    create_alias(world);
    assert_added(world, POLICY, permission("s"));
    assert_added(world, POLICY "?Qualifier=1", permission("s"));
    assert_added(world, POLICY "?Qualifier=live", permission("s"));
    remove_from(world, POLICY "/s?Qualifier=1");
    copy_revision(world, POLICY, (char[64]){0});
    copy_revision(world, POLICY "?Qualifier=live", (char[64]){0});
}

static void test_policies_go_with_what_they_are_for(void **state)
{
    struct api_world *world = *state;
    struct api_answer answer;

    publish(world);
    create_alias(world);
    assert_added(world, POLICY, permission("s"));
    assert_added(world, POLICY "?Qualifier=1", permission("s"));
    assert_added(world, POLICY "?Qualifier=live", permission("s"));
    remove_from(world, FUNCTIONS "/f/aliases/live");
    create_alias(world);
    answer = api_exchange(world, "GET", POLICY "?Qualifier=live", NULL);
    assert_int_equal(answer.status, 404);
    api_answer_deinit(&answer);
    remove_from(world, FUNCTIONS "/f");
    api_create_function(world, "f");
    publish(world);
    answer = api_exchange(world, "GET", POLICY, NULL);
    assert_int_equal(answer.status, 404);
    api_answer_deinit(&answer);
    answer = api_exchange(world, "GET", POLICY "?Qualifier=1", NULL);
    assert_int_equal(answer.status, 404);
    api_answer_deinit(&answer);
}

static void test_policy_is_there_after_a_restart(void **state)
{
    struct api_world *world = *state;
    char before[64];
    char after[64];

    publish(world);
    assert_added(world, POLICY "?Qualifier=1", long_permission("s", 10));
    copy_revision(world, POLICY "?Qualifier=1", before);
    api_restart(world);
    copy_revision(world, POLICY "?Qualifier=1", after);
    assert_string_equal(after, before);
    remove_from(world, POLICY "/s?Qualifier=1");
}

/* Both are in the lane at once: the second is built on what the first left. */
static void test_two_additions_at_once_are_both_there(void **state)
{
    struct api_world *world = *state;
    struct api_call calls[2];
    char *bodies[2];
    struct api_answer answer;

    for (size_t i = 0; i < 2; i++) {
        json_t *body = permission(i ? "b" : "a");
        bodies[i] = json_dumps(body, 0);
        json_decref(body);
        api_start(world, "POST", POLICY, span_from(bodies[i]), &calls[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        api_wait(world, &calls[i]);
        assert_int_equal(calls[i].answer.status, 201);
        api_answer_deinit(&calls[i].answer);
        free(bodies[i]);
    }
    answer = get_policy(world, POLICY);
    assert_non_null(strstr(json_string_value(json_object_get(answer.body, "Policy")), "\"Sid\":\"a\""));
    assert_non_null(strstr(json_string_value(json_object_get(answer.body, "Policy")), "\"Sid\":\"b\""));
    api_answer_deinit(&answer);
}

/* Both name the revision that is there; whoever is second finds another. */
static void test_of_two_additions_for_one_revision_one_is_refused(void **state)
{
    struct api_world *world = *state;
    char revision[64];
    struct api_call calls[2];
    char *bodies[2];

    assert_added(world, POLICY, permission("s"));
    copy_revision(world, POLICY, revision);
    for (size_t i = 0; i < 2; i++) {
        json_t *body = permission_at(i ? "b" : "a", revision);
        bodies[i] = json_dumps(body, 0);
        json_decref(body);
        api_start(world, "POST", POLICY, span_from(bodies[i]), &calls[i]);
    }
    for (size_t i = 0; i < 2; i++)
        api_wait(world, &calls[i]);
    assert_int_equal(MIN(calls[0].answer.status, calls[1].answer.status), 201);
    assert_int_equal(MAX(calls[0].answer.status, calls[1].answer.status), 412);
    for (size_t i = 0; i < 2; i++) {
        api_answer_deinit(&calls[i].answer);
        free(bodies[i]);
    }
}

/* --- other accounts --- */

static void call_as(struct api_world *world, const char *account)
{
    world->caller = span_from(account);
}

static void assert_answered(struct api_world *world, int status, const char *method, const char *target,
                            const char *body)
{
    struct api_answer answer = api_exchange(world, method, target, body);

    if (answer.status != status)
        fail_msg("%s %s: %d %s", method, target, answer.status, api_message(&answer));
    api_answer_deinit(&answer);
}

static json_t *grant(const char *action, const char *principal)
{
    return json_pack("{s:s, s:s, s:s}", "StatementId", "s", "Action", action, "Principal", principal);
}

static void test_other_account_may_what_the_policy_permits(void **state)
{
    struct api_world *world = *state;

    assert_added(world, POLICY, grant("lambda:GetFunction", "222222222222"));
    call_as(world, "222222222222");
    assert_answered(world, 200, "GET", FUNCTIONS "/" ARN, NULL);
    assert_answered(world, 200, "GET", FUNCTIONS "/111111111111:f", NULL);
    assert_answered(world, 404, "GET", FUNCTIONS "/f", NULL); /* its own */
    lambda_assert_error(
        api_exchange(world, "GET", FUNCTIONS "/" ARN "/configuration", NULL), 403, "AccessDeniedException",
        "User: arn:aws:iam::222222222222:root is not authorized to perform: lambda:GetFunctionConfiguration "
        "on resource: " ARN " because no resource-based policy allows the lambda:GetFunctionConfiguration "
        "action");
    call_as(world, "333333333333");
    assert_answered(world, 403, "GET", FUNCTIONS "/" ARN, NULL);
    call_as(world, API_ACCOUNT);
    remove_from(world, POLICY "/s");
    call_as(world, "222222222222");
    assert_answered(world, 403, "GET", FUNCTIONS "/" ARN, NULL);
}

static void test_permission_is_for_the_qualifier_it_was_given_on(void **state)
{
    struct api_world *world = *state;

    publish(world);
    create_alias(world);
    assert_added(world, POLICY "?Qualifier=live", grant("lambda:*", "222222222222"));
    call_as(world, "222222222222");
    assert_answered(world, 200, "GET", FUNCTIONS "/" ARN "?Qualifier=live", NULL);
    assert_answered(world, 200, "GET", FUNCTIONS "/" ARN ":live", NULL);
    assert_answered(world, 403, "GET", FUNCTIONS "/" ARN, NULL);
    assert_answered(world, 403, "GET", FUNCTIONS "/" ARN ":1", NULL);
    lambda_assert_error(
        api_exchange(world, "GET", FUNCTIONS "/" ARN "?Qualifier=%24LATEST", NULL), 403, "AccessDeniedException",
        "User: arn:aws:iam::222222222222:root is not authorized to perform: lambda:GetFunction on resource: " ARN
        ":$LATEST because no resource-based policy allows the lambda:GetFunction action");
    call_as(world, API_ACCOUNT);
    assert_added(world, POLICY, grant("lambda:*", "222222222222"));
    call_as(world, "222222222222");
    assert_answered(world, 200, "GET", FUNCTIONS "/" ARN, NULL);
    assert_answered(world, 403, "GET", FUNCTIONS "/" ARN ":$LATEST", NULL);
}

/* The developer guide lists what can be permitted. */
static void test_some_operations_are_the_owner_s_alone(void **state)
{
    struct api_world *world = *state;

    assert_added(world, POLICY, grant("*", "*"));
    call_as(world, "222222222222");
    assert_answered(world, 200, "GET", FUNCTIONS "/" ARN "/policy", NULL);
    assert_answered(world, 403, "POST", FUNCTIONS "/" ARN "/policy",
                    "{\"StatementId\":\"t\",\"Action\":\"*\",\"Principal\":\"*\"}");
    assert_answered(world, 403, "DELETE", FUNCTIONS "/" ARN "/policy/s", NULL);
    assert_answered(world, 403, "PUT", FUNCTIONS "/" ARN "/configuration", "{\"Description\":\"d\"}");
    assert_answered(world, 403, "GET", "/2021-10-31/functions/" ARN "/url", NULL);
    assert_answered(world, 403, "GET", "/2019-09-25/functions/" ARN "/event-invoke-config", NULL);
}

static void assert_tag(struct api_world *world, const char *value)
{
    struct api_answer answer = api_exchange(world, "GET", "/2017-03-31/tags/" ARN, NULL);

    assert_string_equal(json_string_value(json_object_get(json_object_get(answer.body, "Tags"), "k")), value);
    api_answer_deinit(&answer);
}

/* As recorded of operations of a second account: they are done to the owner's function. */
static void test_permitted_changes_are_made_in_the_owner_s_account(void **state)
{
    struct api_world *world = *state;

    assert_added(world, POLICY, grant("lambda:*", "222222222222"));
    call_as(world, "222222222222");
    assert_answered(world, 201, "POST", FUNCTIONS "/" ARN "/aliases",
                    "{\"Name\":\"a\",\"FunctionVersion\":\"$LATEST\"}");
    assert_answered(world, 200, "PUT", FUNCTIONS "/" ARN "/aliases/a", "{\"Description\":\"d\"}");
    assert_answered(world, 200, "GET", FUNCTIONS "/" ARN "/aliases", NULL);
    assert_answered(world, 201, "POST", FUNCTIONS "/" ARN "/versions", "{}");
    assert_answered(world, 204, "POST", "/2017-03-31/tags/" ARN, "{\"Tags\":{\"k\":\"v\"}}");
    assert_answered(world, 200, "GET", "/2017-03-31/tags/" ARN, NULL);
    assert_answered(world, 204, "DELETE", "/2017-03-31/tags/" ARN "?tagKeys=other", NULL);
    call_as(world, API_ACCOUNT);
    assert_tag(world, "v");
    assert_answered(world, 200, "GET", FUNCTIONS "/f/aliases/a", NULL);
    assert_answered(world, 200, "GET", FUNCTIONS "/f?Qualifier=1", NULL);
    call_as(world, "222222222222");
    assert_answered(world, 204, "DELETE", FUNCTIONS "/" ARN, NULL);
    assert_answered(world, 403, "GET", FUNCTIONS "/" ARN, NULL); /* nothing there, nothing said */
    call_as(world, API_ACCOUNT);
    assert_answered(world, 404, "GET", FUNCTIONS "/f", NULL);
}

static void test_function_cannot_be_made_in_another_account(void **state)
{
    struct api_world *world = *state;
    json_t *body =
        json_pack("{s:s, s:s, s:s, s:s, s:{s:o}}", "FunctionName", ARN, "Runtime", "python3.12", "Role",
                  "arn:aws:iam::222222222222:role/r", "Handler", "a.b", "Code", "ZipFile", api_zip("a.py", "pass"));
    struct api_answer answer;

    assert_added(world, POLICY, grant("*", "*"));
    call_as(world, "222222222222");
    answer = api_exchange_json(world, "POST", FUNCTIONS, body);
    assert_int_equal(answer.status, 403);
    api_answer_deinit(&answer);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, lambda_test_setup_function, lambda_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_statement_has_the_service_s_form),
        TEST(test_function_url_conditions_are_kept),
        TEST(test_principals_are_services_accounts_and_identities),
        TEST(test_members_are_held_to_the_model),
        TEST(test_policy_may_have_exactly_20480_bytes),
        TEST(test_policy_has_its_own_revision),
        TEST(test_what_is_missing_has_its_own_texts),
        TEST(test_same_statement_id_may_stand_in_several_policies),
        TEST(test_policies_go_with_what_they_are_for),
        TEST(test_policy_is_there_after_a_restart),
        TEST(test_two_additions_at_once_are_both_there),
        TEST(test_of_two_additions_for_one_revision_one_is_refused),
        TEST(test_other_account_may_what_the_policy_permits),
        TEST(test_permission_is_for_the_qualifier_it_was_given_on),
        TEST(test_some_operations_are_the_owner_s_alone),
        TEST(test_permitted_changes_are_made_in_the_owner_s_account),
        TEST(test_function_cannot_be_made_in_another_account),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
