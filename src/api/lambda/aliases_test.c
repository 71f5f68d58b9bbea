/* Versions and aliases. */
#include "api/lambda/testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* --- versions, aliases --- */

static void assert_version(json_t *body, const char *version)
{
    assert_string_equal(lambda_text(body, "Version"), version);
    json_decref(body);
}

static void test_publishing_is_idempotent_until_something_changes(void **state)
{
    struct api_world *world = *state;

    lambda_create(world, "f");
    assert_version(lambda_publish(world, "a"), "1");
    assert_version(lambda_publish(world, "b"), "1");
    api_restart(world);
    assert_version(lambda_publish(world, "c"), "1");
    lambda_change_code(world, "other");
    assert_version(lambda_publish(world, "d"), "2");
    json_decref(lambda_accepted(world, "DELETE", FUNCTIONS "/f?Qualifier=2", NULL, 204));
    api_restart(world);
    assert_version(lambda_publish(world, "e"), "3");
}

static void test_version_behind_an_alias_cannot_be_deleted(void **state)
{
    struct api_world *world = *state;

    lambda_create(world, "f");
    json_decref(lambda_publish(world, "a"));
    json_decref(lambda_accepted(world, "POST", FUNCTIONS "/f/aliases",
                                json_pack("{s:s, s:s}", "Name", "live", "FunctionVersion", "1"), 201));
    lambda_refused(world, "DELETE", FUNCTIONS "/f?Qualifier=1", NULL, 409, "ResourceConflictException",
                   "Unable to delete version because the following aliases reference it: [live]");
    json_decref(lambda_accepted(world, "DELETE", FUNCTIONS "/f/aliases/live", NULL, 204));
    json_decref(lambda_accepted(world, "DELETE", FUNCTIONS "/f/aliases/live", NULL, 204)); /* again */
    json_decref(lambda_accepted(world, "DELETE", FUNCTIONS "/f?Qualifier=1", NULL, 204));
}

static json_t *alias_body(const char *version, const char *additional, double weight)
{
    json_t *body = json_pack("{s:s, s:s}", "Name", "live", "FunctionVersion", version);

    if (additional)
        json_object_set_new(body, "RoutingConfig",
                            json_pack("{s:{s:f}}", "AdditionalVersionWeights", additional, weight));
    return body;
}

static void test_alias_settings_are_checked(void **state)
{
    struct api_world *world = *state;
    static const char target[] = FUNCTIONS "/f/aliases";
    json_t *two = alias_body("1", "2", 0.5);

    lambda_create(world, "f");
    json_decref(lambda_publish(world, "a"));
    lambda_change_code(world, "other");
    json_decref(lambda_publish(world, "b"));
    json_object_set_new(json_object_get(json_object_get(two, "RoutingConfig"), "AdditionalVersionWeights"), "3",
                        json_real(0.1));
    lambda_refused(world, "POST", target, two, 400, "InvalidParameterValueException",
                   "Number of items in AdditionalVersionWeights cannot be greater than 1");
    lambda_refused(world, "POST", target, alias_body("1", "1", 0.5), 400, "InvalidParameterValueException",
                   "Invalid function version 1. Function version 1 is already included in routing configuration.");
    lambda_refused(world, "POST", target, alias_body("$LATEST", "1", 0.5), 400, "InvalidParameterValueException",
                   "$LATEST is not supported for an alias pointing to more than 1 version");
    lambda_refused(world, "POST", target, alias_body("9", NULL, 0), 404, "ResourceNotFoundException",
                   "Function not found: arn:aws:lambda:us-east-1:111111111111:function:f:9");
    lambda_refused(world, "POST", target, alias_body("1", "9", 0.5), 404, "ResourceNotFoundException",
                   "Function not found: arn:aws:lambda:us-east-1:111111111111:function:f:9");
    lambda_refused(
        world, "POST", target, alias_body("1", "2", 1.5), 400, "ValidationException",
        "1 validation error detected: Value '{2=1.5}' at 'routingConfig.additionalVersionWeights' failed to satisfy "
        "constraint: Map value must satisfy constraint: [Member must have value less than or equal to 1.0, Member "
        "must have value greater than or equal to 0.0, Member must not be null]");
    lambda_refused(
        world, "POST", target,
        json_pack("{s:s, s:s, s:{s:{s:f, s:n}}}", "Name", "live", "FunctionVersion", "1", "RoutingConfig",
                  "AdditionalVersionWeights", "$LATEST", 0.5, "2"),
        400, "ValidationException",
        "2 validation errors detected: Value '{$LATEST=0.5, 2=null}' at 'routingConfig.additionalVersionWeights' "
        "failed "
        "to satisfy constraint: Map keys must satisfy constraint: [Member must have length less than or equal to 1024, "
        "Member must have length greater than or equal to 1, Member must satisfy regular expression pattern: [0-9]+, "
        "Member must not be null]; Value '{$LATEST=0.5, 2=null}' at 'routingConfig.additionalVersionWeights' failed to "
        "satisfy constraint: Map value must satisfy constraint: [Member must have value less than or equal to 1.0, "
        "Member must have value greater than or equal to 0.0, Member must not be null]");
    json_decref(lambda_accepted(world, "POST", target, alias_body("1", "2", 0.25), 201));
    lambda_refused(world, "POST", target, alias_body("1", NULL, 0), 409, "ResourceConflictException",
                   "Alias already exists: arn:aws:lambda:us-east-1:111111111111:function:f:live");
}

static void test_alias_is_updated_member_by_member(void **state)
{
    struct api_world *world = *state;
    static const char target[] = FUNCTIONS "/f/aliases/live";
    json_t *first;
    json_t *body;

    lambda_create(world, "f");
    json_decref(lambda_publish(world, "a"));
    lambda_change_code(world, "other");
    json_decref(lambda_publish(world, "b"));
    first = lambda_accepted(world, "POST", FUNCTIONS "/f/aliases", alias_body("1", "2", 0.25), 201);
    body = lambda_accepted(world, "PUT", target, json_pack("{s:s}", "Description", "words"), 200);
    assert_string_equal(lambda_text(body, "Description"), "words");
    assert_non_null(json_object_get(body, "RoutingConfig"));
    assert_string_not_equal(lambda_text(body, "RevisionId"), lambda_text(first, "RevisionId"));
    json_decref(body);
    lambda_refused(
        world, "PUT", target, json_pack("{s:s}", "RevisionId", lambda_text(first, "RevisionId")), 412,
        "PreconditionFailedException",
        "The Revision Id provided does not match the latest Revision Id. Call the GetFunction/GetAlias API to "
        "retrieve the latest Revision Id");
    body = lambda_accepted(
        world, "PUT", target,
        json_pack("{s:s, s:{s:{}}}", "FunctionVersion", "2", "RoutingConfig", "AdditionalVersionWeights"), 200);
    assert_string_equal(lambda_text(body, "FunctionVersion"), "2");
    assert_null(json_object_get(body, "RoutingConfig"));
    json_decref(body);
    api_restart(world);
    body = lambda_accepted(world, "GET", FUNCTIONS "/f?Qualifier=live", NULL, 200);
    assert_string_equal(lambda_text(json_object_get(body, "Configuration"), "FunctionArn"),
                        "arn:aws:lambda:us-east-1:111111111111:function:f:live");
    assert_string_equal(lambda_text(json_object_get(body, "Configuration"), "Version"), "2");
    json_decref(body);
    json_decref(first);
}

static void test_missing_aliases_have_their_own_texts(void **state)
{
    struct api_world *world = *state;

    lambda_create(world, "f");
    lambda_refused(world, "GET", FUNCTIONS "/f/aliases/live", NULL, 404, "ResourceNotFoundException",
                   "Cannot find alias arn: arn:aws:lambda:us-east-1:111111111111:function:f:live");
    lambda_refused(world, "PUT", FUNCTIONS "/f/aliases/live", json_object(), 404, "ResourceNotFoundException",
                   "Alias not found: arn:aws:lambda:us-east-1:111111111111:function:f:live");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, lambda_test_setup, lambda_test_teardown)
        TEST(test_publishing_is_idempotent_until_something_changes),
        TEST(test_version_behind_an_alias_cannot_be_deleted),
        TEST(test_alias_settings_are_checked),
        TEST(test_alias_is_updated_member_by_member),
        TEST(test_missing_aliases_have_their_own_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
