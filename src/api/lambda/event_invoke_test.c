/* Event-invoke configurations: what the recordings do not show, above all at the limits and one past them. */
#include "api/lambda/testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define CONFIG "/2019-09-25/functions/f/event-invoke-config"
#define ARN    "arn:aws:lambda:us-east-1:111111111111:function:"

static void assert_refused(struct api_world *world, const char *body, const char *error_type, const char *message)
{
    lambda_assert_error(api_exchange(world, "PUT", CONFIG, body), 400, error_type, message);
}

/* The settings as Get shows them, without FunctionArn and LastModified. */
static void assert_config(struct api_world *world, const char *target, const char *expected)
{
    struct api_answer answer = api_exchange(world, "GET", target, NULL);

    assert_int_equal(answer.status, 200);
    assert_true(json_is_real(json_object_get(answer.body, "LastModified")));
    json_object_del(answer.body, "LastModified");
    json_object_del(answer.body, "FunctionArn");
    lambda_assert_json(answer.body, expected);
    api_answer_deinit(&answer);
}

static void test_retries_and_age_are_held_to_their_limits(void **state)
{
    struct api_world *world = *state;

    lambda_expect_status(world, 200, "PUT", CONFIG, "{\"MaximumRetryAttempts\":0,\"MaximumEventAgeInSeconds\":60}");
    lambda_expect_status(world, 200, "PUT", CONFIG, "{\"MaximumRetryAttempts\":2,\"MaximumEventAgeInSeconds\":21600}");
    assert_refused(world, "{\"MaximumRetryAttempts\":3}", "ValidationException",
                   "1 validation error detected: Value '3' at 'maximumRetryAttempts' failed to satisfy constraint: "
                   "Member must have value less than or equal to 2");
    assert_refused(world, "{\"MaximumRetryAttempts\":-1}", "ValidationException",
                   "1 validation error detected: Value '-1' at 'maximumRetryAttempts' failed to satisfy constraint: "
                   "Member must have value greater than or equal to 0");
    assert_refused(world, "{\"MaximumRetryAttempts\":3,\"MaximumEventAgeInSeconds\":59}", "ValidationException",
                   "2 validation errors detected: Value '3' at 'maximumRetryAttempts' failed to satisfy constraint: "
                   "Member must have value less than or equal to 2; Value '59' at 'maximumEventAgeInSeconds' failed to "
                   "satisfy constraint: Member must have value greater than or equal to 60");
    assert_refused(world, "{\"MaximumEventAgeInSeconds\":21601}", "ValidationException",
                   "1 validation error detected: Value '21601' at 'maximumEventAgeInSeconds' failed to satisfy "
                   "constraint: Member must have value less than or equal to 21600");
    assert_refused(world, "{\"MaximumRetryAttempts\":null}", "InvalidParameterValueException",
                   "You must specify at least one of error handling or destination setting.");
    assert_config(world, CONFIG,
                  "{\"MaximumRetryAttempts\":2,\"MaximumEventAgeInSeconds\":21600,"
                  "\"DestinationConfig\":{\"OnSuccess\":{},\"OnFailure\":{}}}");
}

/* {"DestinationConfig": {member: {"Destination": arn}}} */
static const char *with_destination(const char *member, const char *arn)
{
    static char text[1024];

    snprintf(text, sizeof(text), "{\"DestinationConfig\":{\"%s\":{\"Destination\":\"%s\"}}}", member, arn);
    return text;
}

static void test_destinations_are_queues_topics_buses_and_functions(void **state)
{
    static const char *const good[] = {"arn:aws:sqs:us-east-1:111111111111:q",
                                       "arn:aws:sns:us-east-1:111111111111:t",
                                       "arn:aws:events:us-east-1:111111111111:event-bus/default",
                                       ARN "g",
                                       ARN "g:$LATEST",
                                       ""};
    struct api_world *world = *state;

    api_create_function(world, "g");
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        lambda_expect_status(world, 200, "PUT", CONFIG, with_destination("OnSuccess", good[i]));
        lambda_expect_status(world, 200, "PUT", CONFIG, with_destination("OnFailure", good[i]));
    }
    assert_config(world, CONFIG, "{\"DestinationConfig\":{\"OnSuccess\":{},\"OnFailure\":{}}}");
    /* Buckets keep failures alone. */
    lambda_expect_status(world, 200, "PUT", CONFIG, with_destination("OnFailure", "arn:aws:s3:::b"));
    assert_refused(world, with_destination("OnSuccess", "arn:aws:s3:::b"), "InvalidParameterValueException",
                   "The provided destination config DestinationConfig(onSuccess=OnSuccess(destination=arn:aws:s3:::b), "
                   "onFailure=null) is invalid.");
    assert_refused(world, with_destination("OnFailure", "kafka://topic"), "InvalidParameterValueException",
                   "The provided destination config DestinationConfig(onSuccess=null, "
                   "onFailure=OnFailure(destination=kafka://topic)) is invalid.");
}

static void test_function_as_destination_must_be_there_and_another(void **state)
{
    static const char *const missing[] = {ARN "nobody", ARN "f:1", "arn:aws:lambda:eu-west-1:111111111111:function:f",
                                          "arn:aws:lambda:us-east-1:222222222222:function:f",
                                          "arn:aws:lambda:us-east-1:111111111111:layer:f"};
    struct api_world *world = *state;
    char text[256];

    for (size_t i = 0; i < ARRAY_SIZE(missing); i++) {
        snprintf(text, sizeof(text), "The destination ARN %s is invalid.", missing[i]);
        assert_refused(world, with_destination("OnFailure", missing[i]), "InvalidParameterValueException", text);
    }
    assert_refused(world, with_destination("OnFailure", ARN "f:$LATEST"), "InvalidParameterValueException",
                   "You can't specify the function as a destination for itself.");
}

static void test_destination_has_at_most_350_characters(void **state)
{
    struct api_world *world = *state;
    char arn[400];
    struct api_answer answer;

    snprintf(arn, sizeof(arn), "arn:aws:sqs:us-east-1:111111111111:");
    memset(arn + strlen(arn), 'q', 350 - strlen(arn));
    arn[350] = '\0';
    lambda_expect_status(world, 200, "PUT", CONFIG, with_destination("OnSuccess", arn));
    memcpy(arn + 350, "q", 2);
    answer = api_exchange(world, "PUT", CONFIG, with_destination("OnSuccess", arn));
    assert_string_equal(answer.error_type, "ValidationException");
    assert_non_null(strstr(api_message(&answer), "at 'destinationConfig.onSuccess.destination' failed to satisfy "
                                                 "constraint: Member must have length less than or equal to 350"));
    api_answer_deinit(&answer);
}

static void test_put_replaces_and_update_merges(void **state)
{
    struct api_world *world = *state;

    lambda_expect_status(world, 404, "POST", CONFIG, "{\"MaximumRetryAttempts\":1}");
    lambda_expect_status(world, 200, "PUT", CONFIG,
                         "{\"MaximumRetryAttempts\":1,\"DestinationConfig\":{\"OnSuccess\":{\"Destination\":"
                         "\"arn:aws:sqs:us-east-1:111111111111:q\"}}}");
    lambda_expect_status(world, 200, "POST", CONFIG, "{\"MaximumEventAgeInSeconds\":60}");
    assert_config(world, CONFIG,
                  "{\"MaximumRetryAttempts\":1,\"MaximumEventAgeInSeconds\":60,\"DestinationConfig\":{\"OnSuccess\":"
                  "{\"Destination\":\"arn:aws:sqs:us-east-1:111111111111:q\"},\"OnFailure\":{}}}");
    lambda_expect_status(world, 200, "POST", CONFIG, "{\"DestinationConfig\":{}}");
    assert_config(world, CONFIG,
                  "{\"MaximumRetryAttempts\":1,\"MaximumEventAgeInSeconds\":60,\"DestinationConfig\":"
                  "{\"OnSuccess\":{},\"OnFailure\":{}}}");
    lambda_expect_status(world, 200, "PUT", CONFIG, "{\"MaximumEventAgeInSeconds\":61}");
    assert_config(world, CONFIG,
                  "{\"MaximumEventAgeInSeconds\":61,\"DestinationConfig\":{\"OnSuccess\":{},\"OnFailure\":{}}}");
}

static void publish(struct api_world *world)
{
    lambda_expect_status(world, 201, "POST", FUNCTIONS "/f/versions", "{}");
    lambda_expect_status(world, 201, "POST", FUNCTIONS "/f/aliases", "{\"Name\":\"live\",\"FunctionVersion\":\"1\"}");
}

static void test_each_qualifier_has_its_own(void **state)
{
    struct api_world *world = *state;

    publish(world);
    lambda_expect_status(world, 200, "PUT", CONFIG, "{\"MaximumRetryAttempts\":0}");
    lambda_expect_status(world, 404, "GET", CONFIG "?Qualifier=1", NULL);
    lambda_expect_status(world, 404, "GET", CONFIG "?Qualifier=live", NULL);
    assert_config(world, CONFIG "?Qualifier=%24LATEST",
                  "{\"MaximumRetryAttempts\":0,\"DestinationConfig\":{\"OnSuccess\":{},\"OnFailure\":{}}}");
    lambda_expect_status(world, 204, "DELETE", CONFIG "?Qualifier=%24LATEST", NULL);
    lambda_expect_status(world, 404, "GET", CONFIG, NULL);
}

static void test_configurations_are_listed_across_pages(void **state)
{
    struct api_world *world = *state;
    struct api_answer answer;
    char target[256];

    publish(world);
    lambda_expect_status(world, 200, "PUT", CONFIG "?Qualifier=live", "{\"MaximumRetryAttempts\":0}");
    lambda_expect_status(world, 200, "PUT", CONFIG, "{\"MaximumRetryAttempts\":0}");
    lambda_expect_status(world, 400, "GET", CONFIG "/list?MaxItems=51", NULL);
    lambda_expect_status(world, 400, "GET", CONFIG "/list?MaxItems=0", NULL);
    answer = api_exchange(world, "GET", CONFIG "/list?MaxItems=1", NULL);
    assert_int_equal(json_array_size(json_object_get(answer.body, "FunctionEventInvokeConfigs")), 1);
    snprintf(target, sizeof(target), CONFIG "/list?MaxItems=1&Marker=%s",
             json_string_value(json_object_get(answer.body, "NextMarker")));
    api_answer_deinit(&answer);
    answer = api_exchange(world, "GET", target, NULL);
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(json_object_get(answer.body, "FunctionEventInvokeConfigs"), 0),
                                          "FunctionArn")),
        ARN "f:live");
    assert_null(json_object_get(answer.body, "NextMarker"));
    api_answer_deinit(&answer);
}

static void test_they_go_with_what_they_are_for_and_survive_a_restart(void **state)
{
    struct api_world *world = *state;

    publish(world);
    lambda_expect_status(world, 200, "PUT", CONFIG, "{\"MaximumRetryAttempts\":0}");
    lambda_expect_status(world, 200, "PUT", CONFIG "?Qualifier=live", "{\"MaximumRetryAttempts\":0}");
    lambda_expect_status(world, 200, "PUT", CONFIG "?Qualifier=1", "{\"MaximumRetryAttempts\":0}");
    api_restart(world);
    lambda_expect_status(world, 200, "GET", CONFIG "?Qualifier=live", NULL);
    lambda_expect_status(world, 204, "DELETE", FUNCTIONS "/f/aliases/live", NULL);
    lambda_expect_status(world, 404, "GET", CONFIG "?Qualifier=live", NULL);
    lambda_expect_status(world, 204, "DELETE", FUNCTIONS "/f?Qualifier=1", NULL);
    lambda_expect_status(world, 404, "GET", CONFIG "?Qualifier=1", NULL);
    lambda_expect_status(world, 204, "DELETE", FUNCTIONS "/f", NULL);
    api_create_function(world, "f");
    lambda_expect_status(world, 404, "GET", CONFIG, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, lambda_test_setup_function, lambda_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_retries_and_age_are_held_to_their_limits),
        TEST(test_destinations_are_queues_topics_buses_and_functions),
        TEST(test_function_as_destination_must_be_there_and_another),
        TEST(test_destination_has_at_most_350_characters),
        TEST(test_put_replaces_and_update_merges),
        TEST(test_each_qualifier_has_its_own),
        TEST(test_configurations_are_listed_across_pages),
        TEST(test_they_go_with_what_they_are_for_and_survive_a_restart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
