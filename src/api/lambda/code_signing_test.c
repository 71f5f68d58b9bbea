/* The rules of code signing configurations, and what is not deployed under them. */
#include "api/lambda/testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define CONFIGS   "/2020-04-22/code-signing-configs"
#define ATTACHED  "/2020-06-30/functions/f/code-signing-config"
#define PUBLISHER "arn:aws:signer:us-east-1:111111111111:/signing-profiles/test"
#define UNSIGNED                                                                                                  \
    "Lambda cannot deploy the function. The function or layer might be signed using a signature that the client " \
    "is not configured to accept. Check the provided signature for f."
#define MISSING "arn:aws:lambda:us-east-1:111111111111:code-signing-config:csc-00000000000000000"

static json_t *body(const char *policy)
{
    return json_pack("{s:{s:[s]}, s:{s:s*}}", "AllowedPublishers", "SigningProfileVersionArns", PUBLISHER,
                     "CodeSigningPolicies", "UntrustedArtifactOnDeployment", policy);
}

/* The ARN of a new one; the caller frees it. */
static char *create_config(struct api_world *world, json_t *configuration)
{
    json_t *answer = lambda_accepted(world, "POST", CONFIGS, configuration, 201);
    char *arn = strdup(lambda_text(json_object_get(answer, "CodeSigningConfig"), "CodeSigningConfigArn"));

    json_decref(answer);
    return arn;
}

static void attach(struct api_world *world, const char *arn)
{
    lambda_done(world, "PUT", ATTACHED, json_pack("{s:s}", "CodeSigningConfigArn", arn), 200);
}

static const char *target(const char *arn, const char *rest)
{
    static char text[512];

    snprintf(text, sizeof(text), CONFIGS "/%s%s", arn, rest);
    return text;
}

static void test_without_a_policy_untrusted_code_is_warned_of(void **state)
{
    struct api_world *world = *state;
    char *arn = create_config(world, body(NULL));
    json_t *answer = lambda_accepted(world, "GET", target(arn, ""), NULL, 200);
    json_t *config = json_object_get(answer, "CodeSigningConfig");

    assert_string_equal(lambda_text(json_object_get(config, "CodeSigningPolicies"), "UntrustedArtifactOnDeployment"),
                        "Warn");
    assert_int_equal(strlen(lambda_text(config, "CodeSigningConfigId")), 21);
    json_decref(answer);
    free(arn);
}

static void test_what_the_model_states_is_told_at_once(void **state)
{
    struct api_world *world = *state;

    lambda_refused(world, "POST", CONFIGS, json_object(), 400, "ValidationException",
                   "1 validation error detected: Value null at 'allowedPublishers' failed to satisfy constraint: "
                   "Member must not be null");
    lambda_refused(
        world, "POST", CONFIGS,
        json_pack("{s:{s:[]}, s:{s:s}}", "AllowedPublishers", "SigningProfileVersionArns", "CodeSigningPolicies",
                  "UntrustedArtifactOnDeployment", "x"),
        400, "ValidationException",
        "2 validation errors detected: Value '[]' at 'allowedPublishers.signingProfileVersionArns' failed to "
        "satisfy constraint: Member must have length greater than or equal to 1; Value 'x' at "
        "'codeSigningPolicies.untrustedArtifactOnDeployment' failed to satisfy constraint: Member must "
        "satisfy enum value set: [Warn, Enforce]");
}

static void test_unsigned_code_is_not_deployed_where_signatures_are_enforced(void **state)
{
    struct api_world *world = *state;
    char *enforce = create_config(world, body("Enforce"));
    char *warn = create_config(world, body("Warn"));

    lambda_refused(world, "POST", FUNCTIONS, lambda_creation_with("f", "CodeSigningConfigArn", json_string(enforce)),
                   400, "CodeVerificationFailedException", UNSIGNED);
    lambda_refused(world, "POST", FUNCTIONS, lambda_creation_with("f", "CodeSigningConfigArn", json_string(MISSING)),
                   404, "CodeSigningConfigNotFoundException",
                   "The code signing configuration cannot be found. Check that the provided configuration is not "
                   "deleted: " MISSING ".");
    lambda_done(world, "POST", FUNCTIONS, lambda_creation_with("f", "CodeSigningConfigArn", json_string(warn)), 201);
    lambda_done(world, "PUT", FUNCTIONS "/f/code", json_pack("{s:o}", "ZipFile", api_zip("a", "1")), 200);
    attach(world, enforce);
    lambda_refused(world, "PUT", FUNCTIONS "/f/code", json_pack("{s:o}", "ZipFile", api_zip("a", "2")), 400,
                   "CodeVerificationFailedException", UNSIGNED);
    lambda_done(world, "PUT", FUNCTIONS "/f/configuration", json_pack("{s:i}", "Timeout", 9), 200);
    lambda_done(world, "PUT", target(enforce, ""),
                json_pack("{s:{s:s}}", "CodeSigningPolicies", "UntrustedArtifactOnDeployment", "Warn"), 200);
    lambda_done(world, "PUT", FUNCTIONS "/f/code", json_pack("{s:o}", "ZipFile", api_zip("a", "2")), 200);
    free(enforce);
    free(warn);
}

static void test_unsigned_layers_are_not_added_where_signatures_are_enforced(void **state)
{
    struct api_world *world = *state;
    char *enforce = create_config(world, body("Enforce"));

    lambda_done(world, "POST", "/2018-10-31/layers/l/versions",
                json_pack("{s:{s:o}}", "Content", "ZipFile", api_zip("a", "1")), 201);
    lambda_create(world, "f");
    attach(world, enforce);
    lambda_refused(world, "PUT", FUNCTIONS "/f/configuration",
                   json_pack("{s:[s]}", "Layers", "arn:aws:lambda:us-east-1:111111111111:layer:l:1"), 400,
                   "CodeVerificationFailedException", UNSIGNED);
    lambda_done(world, "DELETE", ATTACHED, NULL, 204);
    lambda_done(world, "PUT", FUNCTIONS "/f/configuration",
                json_pack("{s:[s]}", "Layers", "arn:aws:lambda:us-east-1:111111111111:layer:l:1"), 200);
    free(enforce);
}

static void test_configuration_in_use_stays(void **state)
{
    struct api_world *world = *state;
    char *arn = create_config(world, body("Warn"));
    struct api_answer answer;

    lambda_create(world, "f");
    attach(world, arn);
    api_restart(world);
    answer = api_exchange(world, "DELETE", target(arn, ""), NULL);
    assert_string_equal(answer.error_type, "ResourceConflictException");
    api_answer_deinit(&answer);
    lambda_done(world, "DELETE", FUNCTIONS "/f", NULL, 204);
    lambda_done(world, "DELETE", target(arn, ""), NULL, 204);
    answer = api_exchange(world, "GET", target(arn, ""), NULL);
    assert_int_equal(answer.status, 404);
    api_answer_deinit(&answer);
    free(arn);
}

static void test_lists_are_paged(void **state)
{
    struct api_world *world = *state;
    char *arns[2] = {create_config(world, body("Warn")), create_config(world, body("Warn"))};
    char page[256];
    json_t *first, *second;

    first = lambda_accepted(world, "GET", CONFIGS "?MaxItems=1", NULL, 200);
    snprintf(page, sizeof(page), CONFIGS "?MaxItems=1&Marker=%s", lambda_text(first, "NextMarker"));
    second = lambda_accepted(world, "GET", page, NULL, 200);
    assert_int_equal(json_array_size(json_object_get(second, "CodeSigningConfigs")), 1);
    assert_false(
        json_equal(json_object_get(first, "CodeSigningConfigs"), json_object_get(second, "CodeSigningConfigs")));
    assert_string_equal(lambda_text(second, "NextMarker"), "(absent)");
    json_decref(first);
    json_decref(second);
    lambda_create(world, "f");
    lambda_create(world, "g");
    attach(world, arns[0]);
    lambda_done(world, "PUT", "/2020-06-30/functions/g/code-signing-config",
                json_pack("{s:s}", "CodeSigningConfigArn", arns[0]), 200);
    first = lambda_accepted(world, "GET", target(arns[0], "/functions?MaxItems=1"), NULL, 200);
    assert_int_equal(json_array_size(json_object_get(first, "FunctionArns")), 1);
    snprintf(page, sizeof(page), "/functions?MaxItems=1&Marker=%s", lambda_text(first, "NextMarker"));
    second = lambda_accepted(world, "GET", target(arns[0], page), NULL, 200);
    assert_string_equal(json_string_value(json_array_get(json_object_get(second, "FunctionArns"), 0)),
                        "arn:aws:lambda:us-east-1:111111111111:function:g");
    assert_string_equal(lambda_text(second, "NextMarker"), "(absent)");
    json_decref(first);
    json_decref(second);
    free(arns[0]);
    free(arns[1]);
}

static void test_configuration_has_tags(void **state)
{
    struct api_world *world = *state;
    json_t *tagged = body("Warn");
    char *arn;
    char tags[512];
    json_t *answer;

    json_object_set_new(tagged, "Tags", json_pack("{s:s}", "a", "1"));
    arn = create_config(world, tagged);
    snprintf(tags, sizeof(tags), "/2017-03-31/tags/%s", arn);
    lambda_done(world, "POST", tags, json_pack("{s:{s:s}}", "Tags", "b", "2"), 204);
    answer = lambda_accepted(world, "GET", tags, NULL, 200);
    assert_int_equal(json_object_size(json_object_get(answer, "Tags")), 2);
    json_decref(answer);
    answer = lambda_accepted(world, "GET", target(arn, ""), NULL, 200);
    assert_null(json_object_get(json_object_get(answer, "CodeSigningConfig"), "Tags"));
    json_decref(answer);
    free(arn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, lambda_test_setup, lambda_test_teardown)
        TEST(test_without_a_policy_untrusted_code_is_warned_of),
        TEST(test_what_the_model_states_is_told_at_once),
        TEST(test_unsigned_code_is_not_deployed_where_signatures_are_enforced),
        TEST(test_unsigned_layers_are_not_added_where_signatures_are_enforced),
        TEST(test_configuration_in_use_stays),
        TEST(test_lists_are_paged),
        TEST(test_configuration_has_tags),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
