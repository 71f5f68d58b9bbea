/* The rules of tags at their limits, and what a change of tags does to the function. */
#include "api/lambda/testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define ARN(resource) "/2017-03-31/tags/arn%3Aaws%3Alambda%3Aus-east-1%3A111111111111%3A" resource
#define TAGS          ARN("function%3Af")

static json_t *tags(int from, int count)
{
    json_t *map = json_object();

    for (int i = from; i < from + count; i++) {
        char key[16];
        snprintf(key, sizeof(key), "key%d", i);
        json_object_set_new(map, key, json_string("value"));
    }
    return json_pack("{s:o}", "Tags", map);
}

static json_t *tag(const char *key, const char *value)
{
    return json_pack("{s:{s:s}}", "Tags", key, value);
}

static size_t count_tags(struct api_world *world)
{
    json_t *answer = lambda_accepted(world, "GET", TAGS, NULL, 200);
    size_t count = json_object_size(json_object_get(answer, "Tags"));

    json_decref(answer);
    return count;
}

static void revision_of(struct api_world *world, char revision[64])
{
    json_t *answer = lambda_accepted(world, "GET", FUNCTIONS "/f/configuration", NULL, 200);

    snprintf(revision, 64, "%s", lambda_text(answer, "RevisionId"));
    json_decref(answer);
}

static void test_fiftieth_tag_is_kept_and_the_next_refused(void **state)
{
    struct api_world *world = *state;

    lambda_create(world, "f");
    lambda_done(world, "POST", TAGS, tags(0, 49), 204);
    lambda_refused(world, "POST", TAGS, tags(49, 2), 400, "InvalidParameterValueException",
                   "Number of tags exceeds resource tag limit.");
    assert_int_equal(count_tags(world), 49);
    lambda_done(world, "POST", TAGS, tags(48, 2), 204); /* one of them overwrites */
    assert_int_equal(count_tags(world), 50);
    lambda_done(world, "DELETE", TAGS "?tagKeys=key0&tagKeys=key%31&tagKeys=none", NULL, 204);
    assert_int_equal(count_tags(world), 48);
}

static void test_keys_and_values_are_held_to_the_model(void **state)
{
    struct api_world *world = *state;
    char key[130] = {0};
    char value[258] = {0};

    lambda_create(world, "f");
    memset(key, 'k', 128);
    memset(value, 'v', 256);
    lambda_done(world, "POST", TAGS, tag(key, value), 204);
    lambda_done(world, "POST", TAGS, tag("\xc3\xa4 b_.:/=+-@", ""), 204);
    assert_int_equal(count_tags(world), 2);
    lambda_refused(
        world, "POST", TAGS, tag("a", "x,y"), 400, "ValidationException",
        "1 validation error detected: Value '{a=x,y}' at 'tags' failed to satisfy constraint: Map value must "
        "satisfy constraint: [Member must have length less than or equal to 256, Member must have length "
        "greater than or equal to 0, Member must satisfy regular expression pattern: "
        "([\\p{L}\\p{Z}\\p{N}_.:/=+\\-@]*), Member must not be null]");
    lambda_refused(world, "POST", TAGS, tag("", "x"), 400, "ValidationException",
                   "1 validation error detected: Value '{=x}' at 'tags' failed to satisfy constraint: Map keys must "
                   "satisfy constraint: [Member must have length less than or equal to 128, Member must have length "
                   "greater than or equal to 1, Member must satisfy regular expression pattern: "
                   "([\\p{L}\\p{Z}\\p{N}_.:/=+\\-@]*), Member must not be null]");
    key[128] = 'k';
    for (int i = 0; i < 2; i++) { /* one past either limit */
        struct api_answer answer = api_exchange_json(world, "POST", TAGS, i ? tag("v", value) : tag(key, "x"));
        assert_string_equal(answer.error_type, "ValidationException");
        api_answer_deinit(&answer);
        value[256] = 'v';
    }
    lambda_refused(world, "POST", TAGS, json_pack("{s:{s:i}}", "Tags", "a", 1), 400, "SerializationException",
                   "NUMBER_VALUE can not be converted to a String");
    lambda_refused(world, "POST", TAGS, json_object(), 400, "ValidationException",
                   "1 validation error detected: Value null at 'tags' failed to satisfy constraint: Member must not be "
                   "null");
    assert_int_equal(count_tags(world), 2);
}

static void test_keys_of_the_service_s_own_are_refused(void **state)
{
    struct api_world *world = *state;

    lambda_create(world, "f");
    lambda_refused(world, "POST", TAGS, tag("aws:a", "b"), 400, "InvalidParameterValueException",
                   "An error occurred and the request cannot be processed.");
    lambda_refused(world, "POST", TAGS, tag("AWS:a", "b"), 400, "InvalidParameterValueException",
                   "An error occurred and the request cannot be processed.");
    lambda_refused(world, "POST", FUNCTIONS, lambda_creation_with("g", "Tags", json_pack("{s:s}", "aws:a", "b")), 400,
                   "InvalidParameterValueException", "An error occurred and the request cannot be processed.");
    lambda_done(world, "POST", TAGS, tag("aws", "b"), 204);
    assert_int_equal(count_tags(world), 1);
}

static void test_what_is_not_there_has_its_own_name(void **state)
{
    struct api_world *world = *state;

    lambda_refused(world, "GET", TAGS, NULL, 404, "ResourceNotFoundException",
                   "Function not found: arn:aws:lambda:us-east-1:111111111111:function:f");
    lambda_refused(world, "GET", ARN("event-source-mapping%3Aa0000000-0000-0000-0000-00000000000f"), NULL, 404,
                   "ResourceNotFoundException",
                   "Event source mapping not found: "
                   "arn:aws:lambda:us-east-1:111111111111:event-source-mapping:a0000000-0000-0000-0000-00000000000f");
    lambda_refused(world, "GET", "/2017-03-31/tags/arn%3Aaws%3Alambda%3Aeu-west-1%3A111111111111%3Afunction%3Af", NULL,
                   404, "ResourceNotFoundException",
                   "Functions from 'eu-west-1' are not reachable in this region ('us-east-1')");
    lambda_refused(world, "GET", "/2017-03-31/tags/arn%3Aaws%3Alambda%3Aus-east-1%3A222222222222%3Afunction%3Af", NULL,
                   403, "AccessDeniedException",
                   "User: arn:aws:iam::111111111111:root is not authorized to perform: lambda:ListTags on resource: "
                   "arn:aws:lambda:us-east-1:222222222222:function:f because no resource-based policy allows the "
                   "lambda:ListTags action");
}

static void test_all_violations_of_untagging_are_told(void **state)
{
    struct api_answer answer = api_exchange(*state, "DELETE", "/2017-03-31/tags/x", NULL);
    const char *message = api_message(&answer);

    assert_non_null(strstr(message, "2 validation errors detected: Value null at 'tagKeys' failed"));
    assert_non_null(strstr(message, "; Value 'x' at 'resource' failed"));
    api_answer_deinit(&answer);
}

static void test_change_of_tags_renews_the_revision_and_keeps_what_runs(void **state)
{
    struct api_world *world = *state;
    const struct catalog_function *function;
    const struct catalog_version_config *running;
    char before[64], after[64];

    lambda_create(world, "f");
    function = catalog_find_function(world->catalog.catalog, SPAN(API_ACCOUNT), SPAN(API_REGION), SPAN("f"));
    running = function->latest->active;
    revision_of(world, before);
    lambda_done(world, "POST", TAGS, tag("a", "b"), 204);
    revision_of(world, after);
    assert_string_not_equal(before, after);
    assert_ptr_equal(function->latest->active, running);
    lambda_done(world, "DELETE", TAGS "?tagKeys=a", NULL, 204);
    revision_of(world, before);
    assert_string_not_equal(before, after);
    assert_int_equal(count_tags(world), 0);
}

static void test_tags_are_there_after_a_restart(void **state)
{
    struct api_world *world = *state;
    char before[64], after[64];

    lambda_create(world, "f");
    lambda_done(world, "POST", TAGS, tags(0, 3), 204);
    revision_of(world, before);
    api_restart(world);
    revision_of(world, after);
    assert_string_equal(before, after);
    assert_int_equal(count_tags(world), 3);
}

/* The update that is under way, and no other, comes into force. */
static void test_tags_may_change_while_an_update_settles(void **state)
{
    struct api_world *world = *state;
    struct api_call update, tagging;
    json_t *answer;

    lambda_create(world, "f");
    api_start(world, "PUT", FUNCTIONS "/f/configuration", SPAN("{\"Timeout\": 7}"), &update);
    api_start(world, "POST", TAGS, SPAN("{\"Tags\": {\"a\": \"b\"}}"), &tagging);
    api_wait(world, &update);
    api_wait(world, &tagging);
    assert_int_equal(update.answer.status, 200);
    assert_int_equal(tagging.answer.status, 204);
    api_answer_deinit(&update.answer);
    api_answer_deinit(&tagging.answer);
    testing_run(&world->catalog);
    answer = lambda_accepted(world, "GET", FUNCTIONS "/f/configuration", NULL, 200);
    assert_int_equal(json_integer_value(json_object_get(answer, "Timeout")), 7);
    assert_string_equal(lambda_text(answer, "LastUpdateStatus"), "Successful");
    json_decref(answer);
    assert_int_equal(count_tags(world), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, lambda_test_setup, lambda_test_teardown)
        TEST(test_fiftieth_tag_is_kept_and_the_next_refused),
        TEST(test_keys_and_values_are_held_to_the_model),
        TEST(test_keys_of_the_service_s_own_are_refused),
        TEST(test_what_is_not_there_has_its_own_name),
        TEST(test_all_violations_of_untagging_are_told),
        TEST(test_change_of_tags_renews_the_revision_and_keeps_what_runs),
        TEST(test_tags_are_there_after_a_restart),
        TEST(test_tags_may_change_while_an_update_settles),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
