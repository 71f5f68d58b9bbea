/* Runtime management, recursion and scaling configurations: the small settings of functions and versions. */
#include "api/lambda/testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define RUNTIME   "/2021-07-20/functions/f/runtime-management-config"
#define RECURSION "/2024-08-31/functions/f/recursion-config"
#define SCALING   "/2025-11-30/functions/f/function-scaling-config"
#define ARN       "arn:aws:lambda:us-east-1:111111111111:function:f"
#define PINNED    "arn:aws:lambda:us-east-1::runtime:0123"

static void refused(struct api_world *world, const char *method, const char *target, const char *body, int status,
                    const char *code, const char *message)
{
    lambda_assert_error(api_exchange(world, method, target, body), status, code, message);
}

static void assert_body(struct api_world *world, const char *method, const char *target, const char *body,
                        const char *expected)
{
    struct api_answer answer = lambda_expect(world, 200, method, target, body);

    lambda_assert_json(answer.body, expected);
    api_answer_deinit(&answer);
}

static void publish(struct api_world *world)
{
    lambda_expect_status(world, 201, "POST", FUNCTIONS "/f/versions", "{}");
}

/* --- runtime management --- */

#define MANUAL "{\"UpdateRuntimeOn\":\"Manual\",\"RuntimeVersionArn\":\"" PINNED "\"}"

static void test_runtime_is_updated_automatically_unless_told_otherwise(void **state)
{
    struct api_world *world = *state;

    assert_body(world, "GET", RUNTIME, NULL,
                "{\"UpdateRuntimeOn\":\"Auto\",\"FunctionArn\":\"" ARN "\",\"RuntimeVersionArn\":null}");
    assert_body(world, "PUT", RUNTIME, MANUAL,
                "{\"UpdateRuntimeOn\":\"Manual\",\"FunctionArn\":\"" ARN "\",\"RuntimeVersionArn\":\"" PINNED "\"}");
    api_restart(world);
    assert_body(world, "GET", RUNTIME "?Qualifier=%24LATEST", NULL,
                "{\"UpdateRuntimeOn\":\"Manual\",\"FunctionArn\":\"" ARN ":$LATEST\",\"RuntimeVersionArn\":\"" PINNED
                "\"}");
    /* The ARN counts for Manual alone. */
    assert_body(world, "PUT", RUNTIME, "{\"UpdateRuntimeOn\":\"FunctionUpdate\",\"RuntimeVersionArn\":\"" PINNED "\"}",
                "{\"UpdateRuntimeOn\":\"FunctionUpdate\",\"FunctionArn\":\"" ARN "\",\"RuntimeVersionArn\":null}");
}

static const char *runtime_version(const struct api_answer *answer)
{
    return json_string_value(
        json_object_get(json_object_get(answer->body, "RuntimeVersionConfig"), "RuntimeVersionArn"));
}

static void test_pinned_runtime_is_shown_and_cannot_be_changed(void **state)
{
    struct api_world *world = *state;
    struct api_answer answer;

    lambda_expect_status(world, 200, "PUT", RUNTIME, MANUAL);
    answer = lambda_expect(world, 200, "GET", FUNCTIONS "/f/configuration", NULL);
    assert_string_equal(runtime_version(&answer), PINNED);
    api_answer_deinit(&answer);
    refused(world, "PUT", FUNCTIONS "/f/configuration", "{\"Runtime\":\"python3.13\"}", 400,
            "InvalidParameterValueException",
            "Cannot change runtime identifier when runtime management configuration is set to 'Manual'. Change "
            "the runtime management configuration to 'Auto' or 'FunctionUpdate', then retry.");
    lambda_expect_status(world, 200, "PUT", FUNCTIONS "/f/configuration", "{\"Runtime\":\"python3.12\"}");
    testing_run(&world->catalog);
    lambda_expect_status(world, 200, "PUT", RUNTIME, "{\"UpdateRuntimeOn\":\"Auto\"}");
    answer = lambda_expect(world, 200, "GET", FUNCTIONS "/f/configuration", NULL);
    assert_string_not_equal(runtime_version(&answer), PINNED);
    api_answer_deinit(&answer);
    lambda_expect_status(world, 200, "PUT", FUNCTIONS "/f/configuration", "{\"Runtime\":\"python3.13\"}");
}

static void test_versions_have_runtime_management_of_their_own(void **state)
{
    struct api_world *world = *state;

    publish(world);
    lambda_expect_status(world, 200, "PUT", RUNTIME "?Qualifier=1", MANUAL);
    assert_body(world, "GET", RUNTIME, NULL,
                "{\"UpdateRuntimeOn\":\"Auto\",\"FunctionArn\":\"" ARN "\",\"RuntimeVersionArn\":null}");
    assert_body(world, "GET", RUNTIME "?Qualifier=1", NULL,
                "{\"UpdateRuntimeOn\":\"Manual\",\"FunctionArn\":\"" ARN ":1\",\"RuntimeVersionArn\":\"" PINNED "\"}");
    refused(world, "GET", RUNTIME "?Qualifier=2", NULL, 404, "ResourceNotFoundException",
            "Function not found: " ARN ":2");
    refused(world, "PUT", RUNTIME "?Qualifier=live", MANUAL, 400, "InvalidParameterValueException",
            "The provided function name " ARN ":live is invalid. Aliases are not allowed.");
}

static void test_runtime_management_is_held_to_the_model(void **state)
{
    struct api_world *world = *state;

    refused(world, "PUT", RUNTIME, "{}", 400, "ValidationException",
            "1 validation error detected: Value null at 'updateRuntimeOn' failed to satisfy constraint: Member "
            "must not be null");
    refused(world, "PUT", RUNTIME, "{\"UpdateRuntimeOn\":\"Never\"}", 400, "ValidationException",
            "1 validation error detected: Value 'Never' at 'updateRuntimeOn' failed to satisfy constraint: "
            "Member must satisfy enum value set: [Auto, Manual, FunctionUpdate]");
    lambda_expect_status(world, 400, "PUT", RUNTIME, "{\"UpdateRuntimeOn\":\"Manual\"}");
    lambda_expect_status(
        world, 400, "PUT", RUNTIME,
        "{\"UpdateRuntimeOn\":\"Manual\",\"RuntimeVersionArn\":\"arn:aws:lambda:us-east-1:1:runtime:0\"}");
}

/* --- recursion --- */

static void test_loops_are_terminated_unless_allowed(void **state)
{
    struct api_world *world = *state;

    assert_body(world, "GET", RECURSION, NULL, "{\"RecursiveLoop\":\"Terminate\"}");
    assert_body(world, "PUT", RECURSION, "{\"RecursiveLoop\":\"Allow\"}", "{\"RecursiveLoop\":\"Allow\"}");
    api_restart(world);
    assert_body(world, "GET", RECURSION, NULL, "{\"RecursiveLoop\":\"Allow\"}");
    lambda_expect_status(world, 204, "DELETE", FUNCTIONS "/f", NULL);
    refused(world, "GET", RECURSION, NULL, 404, "ResourceNotFoundException", "Function not found: " ARN);
    refused(world, "PUT", RECURSION, "{\"RecursiveLoop\":\"Allow\"}", 404, "ResourceNotFoundException",
            "Function not found: " ARN);
    api_create_function(world, "f");
    assert_body(world, "GET", RECURSION, NULL, "{\"RecursiveLoop\":\"Terminate\"}");
}

static void test_recursion_is_a_matter_of_whole_functions(void **state)
{
    struct api_world *world = *state;
    struct api_answer answer = lambda_expect(world, 400, "GET", "/2024-08-31/functions/f:1/recursion-config", NULL);

    assert_string_equal(answer.error_type, "ValidationException");
    assert_non_null(strstr(api_message(&answer), "Value 'f:1' at 'functionName' failed to satisfy constraint"));
    api_answer_deinit(&answer);
    refused(world, "PUT", RECURSION, "{}", 400, "ValidationException",
            "1 validation error detected: Value null at 'recursiveLoop' failed to satisfy constraint: Member "
            "must not be null");
}

/* --- scaling --- */

static void test_scaling_is_for_functions_on_capacity_providers(void **state)
{
    static const char no_provider[] =
        "The function provided by the arn does not contain a capacity provider configuration";
    static const char body[] =
        "{\"FunctionScalingConfig\":{\"MinExecutionEnvironments\":0,\"MaxExecutionEnvironments\":15000}}";
    struct api_world *world = *state;

    publish(world);
    refused(world, "PUT", SCALING "?Qualifier=1", body, 403, "AccessDeniedException", no_provider);
    refused(world, "GET", SCALING "?Qualifier=1", NULL, 403, "AccessDeniedException", no_provider);
    refused(world, "GET", SCALING "?Qualifier=2", NULL, 404, "ResourceNotFoundException",
            "Function not found: " ARN ":2");
    refused(world, "PUT", SCALING "?Qualifier=%24LATEST.PUBLISHED", body, 404, "ResourceNotFoundException",
            "Function not found: " ARN ":$LATEST.PUBLISHED");
    refused(world, "GET", SCALING, NULL, 400, "ValidationException",
            "1 validation error detected: Value null at 'qualifier' failed to satisfy constraint: Member must "
            "not be null");
    refused(world, "GET", SCALING "?Qualifier=live", NULL, 400, "ValidationException",
            "1 validation error detected: Value 'live' at 'qualifier' failed to satisfy constraint: Member must "
            "satisfy regular expression pattern: (\\$LATEST\\.PUBLISHED|[0-9]+)");
    refused(world, "PUT", SCALING "?Qualifier=1", "{\"FunctionScalingConfig\":{\"MaxExecutionEnvironments\":15001}}",
            400, "ValidationException",
            "1 validation error detected: Value '15001' at 'functionScalingConfig.maxExecutionEnvironments' "
            "failed to satisfy constraint: Member must have value less than or equal to 15000");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, lambda_test_setup_function, lambda_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_runtime_is_updated_automatically_unless_told_otherwise),
        TEST(test_pinned_runtime_is_shown_and_cannot_be_changed),
        TEST(test_versions_have_runtime_management_of_their_own),
        TEST(test_runtime_management_is_held_to_the_model),
        TEST(test_loops_are_terminated_unless_allowed),
        TEST(test_recursion_is_a_matter_of_whole_functions),
        TEST(test_scaling_is_for_functions_on_capacity_providers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
