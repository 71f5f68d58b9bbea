/* The rules of provisioned concurrency at their limits, and what core's state looks like in the answers. */
#include "api/lambda/lambda.h"

#include "api/lambda/testing.h"
#include "core/core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define ARN "arn:aws:lambda:us-east-1:111111111111:function:f"

/* A world in which core is played: what it says of every configuration. */
struct shop {
    struct api_world world;
    struct core_provisioned_state state;
};

static void read_provisioned(const struct catalog_target *target, struct core_provisioned_state *ret_state,
                             void *context)
{
    const struct shop *shop = context;

    (void)target;
    *ret_state = shop->state;
}

static void create(struct shop *shop, const char *name)
{
    char target[128];

    lambda_done(&shop->world, "POST", FUNCTIONS,
                json_pack("{s:s, s:s, s:s, s:s, s:{s:o}}", "FunctionName", name, "Runtime", "python3.12", "Role", ROLE,
                          "Handler", "handler.handler", "Code", "ZipFile", api_zip("handler.py", name)),
                201);
    snprintf(target, sizeof(target), FUNCTIONS "/%s/versions", name);
    lambda_done(&shop->world, "POST", target, json_object(), 201);
}

/* Another code and another version of "f". */
static void publish(struct shop *shop, const char *content)
{
    lambda_done(&shop->world, "PUT", FUNCTIONS "/f/code",
                json_pack("{s:o, s:b}", "ZipFile", api_zip("handler.py", content), "Publish", 1), 200);
}

/* Alias of "f"; `second` NULL: without weights. */
static json_t *alias_body(const char *name, const char *version, const char *second)
{
    json_t *body = json_pack("{s:s*, s:s}", "Name", name, "FunctionVersion", version);

    if (second)
        json_object_set_new(body, "RoutingConfig", json_pack("{s:{s:f}}", "AdditionalVersionWeights", second, 0.1));
    return body;
}

static void create_alias(struct shop *shop, const char *name, const char *version, const char *second)
{
    lambda_done(&shop->world, "POST", FUNCTIONS "/f/aliases", alias_body(name, version, second), 201);
}

static const char *config(const char *function, const char *qualifier)
{
    static char target[160];

    snprintf(target, sizeof(target), "/2019-09-30/functions/%s/provisioned-concurrency?Qualifier=%s", function,
             qualifier);
    return target;
}

static json_t *count_body(int count)
{
    return json_pack("{s:i}", "ProvisionedConcurrentExecutions", count);
}

static void provide(struct shop *shop, const char *function, const char *qualifier, int count)
{
    lambda_done(&shop->world, "PUT", config(function, qualifier), count_body(count), 202);
}

static void refused_count(struct shop *shop, const char *function, const char *qualifier, int count,
                          const char *message)
{
    lambda_refused(&shop->world, "PUT", config(function, qualifier), count_body(count), 400,
                   "InvalidParameterValueException", message);
}

static void reserve(struct shop *shop, const char *function, int count)
{
    char target[128];

    snprintf(target, sizeof(target), "/2017-10-31/functions/%s/concurrency", function);
    lambda_done(&shop->world, "PUT", target, json_pack("{s:i}", "ReservedConcurrentExecutions", count), 200);
}

static long long unreserved(struct shop *shop)
{
    json_t *settings = lambda_accepted(&shop->world, "GET", "/2016-08-19/account-settings", NULL, 200);
    long long count = json_integer_value(
        json_object_get(json_object_get(settings, "AccountLimit"), "UnreservedConcurrentExecutions"));

    json_decref(settings);
    return count;
}

static int setup(void **state)
{
    struct shop *shop = calloc(1, sizeof(*shop));

    api_open(&shop->world);
    shop->world.services.read_provisioned = read_provisioned;
    shop->world.services.provisioned_context = shop;
    create(shop, "f");
    *state = shop;
    return 0;
}

static int teardown(void **state)
{
    struct shop *shop = *state;

    api_close(&shop->world);
    free(shop);
    return 0;
}

static const char *text_of(const json_t *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));

    return text ? text : "(absent)";
}

static void assert_answer(const json_t *answer, const char *status, const char *reason, int requested, int allocated,
                          int available)
{
    assert_string_equal(text_of(answer, "Status"), status);
    assert_string_equal(text_of(answer, "StatusReason"), reason);
    assert_int_equal(json_integer_value(json_object_get(answer, "RequestedProvisionedConcurrentExecutions")),
                     requested);
    assert_int_equal(json_integer_value(json_object_get(answer, "AllocatedProvisionedConcurrentExecutions")),
                     allocated);
    assert_int_equal(json_integer_value(json_object_get(answer, "AvailableProvisionedConcurrentExecutions")),
                     available);
}

static void test_answers_show_what_core_says(void **state)
{
    struct shop *shop = *state;
    json_t *answer;
    unsigned year, digits;
    char zone[8];

    provide(shop, "f", "1", 5);
    shop->state = (struct core_provisioned_state){CORE_PROVISIONED_IN_PROGRESS, 5, 3, 0, false};
    answer = lambda_accepted(&shop->world, "GET", config("f", "1"), NULL, 200);
    assert_answer(answer, "IN_PROGRESS", "(absent)", 5, 3, 0);
    assert_int_equal(json_object_size(answer), 5);
    assert_int_equal(sscanf(text_of(answer, "LastModified"), "%4u-%*2u-%*2uT%*2u:%*2u:%2u%7s", &year, &digits, zone),
                     3);
    assert_string_equal(zone, "+0000");
    json_decref(answer);
    shop->state = (struct core_provisioned_state){CORE_PROVISIONED_READY, 5, 5, 5, false};
    answer = lambda_accepted(&shop->world, "GET", config("f", "1"), NULL, 200);
    assert_answer(answer, "READY", "(absent)", 5, 5, 5);
    json_decref(answer);
    shop->state = (struct core_provisioned_state){CORE_PROVISIONED_FAILED, 5, 0, 0, true};
    answer = lambda_accepted(&shop->world, "GET", config("f", "1"), NULL, 200);
    assert_answer(answer, "FAILED", "FUNCTION_ERROR_INIT_FAILURE", 5, 0, 0);
    json_decref(answer);
}

static void test_without_core_nothing_is_allocated(void **state)
{
    struct shop *shop = *state;
    json_t *answer;

    shop->world.services.read_provisioned = NULL;
    answer = lambda_accepted(&shop->world, "PUT", config("f", "1"), count_body(2), 202);
    assert_answer(answer, "IN_PROGRESS", "(absent)", 2, 0, 0);
    json_decref(answer);
}

static void test_pool_and_minimum_are_kept(void **state)
{
    struct shop *shop = *state;

    create(shop, "g");
    assert_int_equal(unreserved(shop), 1000);
    refused_count(shop, "f", "1", 1001,
                  "Specified ConcurrentExecutions for function is greater than account's unreserved concurrency "
                  "[1000].");
    refused_count(shop, "f", "1", 901,
                  "Specified ConcurrentExecutions for function decreases account's UnreservedConcurrentExecution below "
                  "its minimum value of [100].");
    provide(shop, "f", "1", 900);
    assert_int_equal(unreserved(shop), 100);
    refused_count(shop, "g", "1", 1,
                  "Specified ConcurrentExecutions for function decreases account's UnreservedConcurrentExecution below "
                  "its minimum value of [100].");
    refused_count(shop, "g", "1", 101,
                  "Specified ConcurrentExecutions for function is greater than account's unreserved concurrency "
                  "[100].");
    refused_count(shop, "f", "1", INT32_MAX,
                  "Specified ConcurrentExecutions for function is greater than account's unreserved concurrency "
                  "[1000].");
    lambda_refused(
        &shop->world, "PUT", "/2017-10-31/functions/g/concurrency",
        json_pack("{s:i}", "ReservedConcurrentExecutions", 1), 400, "InvalidParameterValueException",
        "Specified ReservedConcurrentExecutions for function decreases account's UnreservedConcurrentExecution "
        "below its minimum value of [100].");
    provide(shop, "f", "1", 900);
    provide(shop, "f", "1", 10);
    provide(shop, "g", "1", 890);
    assert_int_equal(unreserved(shop), 100);
}

static void test_provisioned_lies_within_reserved(void **state)
{
    struct shop *shop = *state;

    publish(shop, "2");
    reserve(shop, "f", 10);
    assert_int_equal(unreserved(shop), 990);
    provide(shop, "f", "1", 6);
    assert_int_equal(unreserved(shop), 990);
    refused_count(
        shop, "f", "2", 5,
        "Requested Provisioned Concurrency should not be greater than the reservedConcurrentExecution for function");
    provide(shop, "f", "2", 4);
    lambda_refused(&shop->world, "PUT", "/2017-10-31/functions/f/concurrency",
                   json_pack("{s:i}", "ReservedConcurrentExecutions", 9), 400, "InvalidParameterValueException",
                   " ReservedConcurrentExecutions  9 should not be lower than function's total provisioned concurrency "
                   "[10].");
    reserve(shop, "f", 0);
    refused_count(
        shop, "f", "1", 7,
        "Requested Provisioned Concurrency should not be greater than the reservedConcurrentExecution for function");
    lambda_done(&shop->world, "DELETE", "/2017-10-31/functions/f/concurrency", NULL, 204);
    assert_int_equal(unreserved(shop), 990);
    lambda_done(&shop->world, "DELETE", config("f", "1"), NULL, 204);
    assert_int_equal(unreserved(shop), 996);
}

static void test_qualifier_must_be_given_and_well_formed(void **state)
{
    struct shop *shop = *state;
    const char *bare = "/2019-09-30/functions/f/provisioned-concurrency";
    static const char *const methods[] = {"GET", "DELETE"};

    for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
        lambda_refused(
            &shop->world, methods[i], bare, NULL, 400, "ValidationException",
            "1 validation error detected: Value null at 'qualifier' failed to satisfy constraint: Member must not "
            "be null");
        lambda_refused(
            &shop->world, methods[i], config("f", "a.b"), NULL, 400, "ValidationException",
            "1 validation error detected: Value 'a.b' at 'qualifier' failed to satisfy constraint: Member must "
            "satisfy regular expression pattern: (|[a-zA-Z0-9$_-]+)");
    }
    lambda_refused(
        &shop->world, "PUT", bare, json_object(), 400, "ValidationException",
        "2 validation errors detected: Value null at 'provisionedConcurrentExecutions' failed to satisfy "
        "constraint: Member must not be null; Value null at 'qualifier' failed to satisfy constraint: Member must "
        "not be null");
    lambda_refused(&shop->world, "PUT", config("f:2", "1"), count_body(1), 400, "InvalidParameterValueException",
                   "The derived qualifier from the function name does not match the specified qualifier.");
    provide(shop, "f:1", "1", 1);
    lambda_refused(&shop->world, "PUT", config("f", "1"), json_pack("{s:s}", "ProvisionedConcurrentExecutions", "1"),
                   400, "SerializationException", "STRING_VALUE can not be converted to an Integer");
}

static void test_alias_of_latest_cannot_be_provisioned(void **state)
{
    struct shop *shop = *state;

    create_alias(shop, "dev", "$LATEST", NULL);
    refused_count(shop, "f", "dev", 1,
                  "Provisioned Concurrency Configs cannot be applied to unpublished function versions.");
    create_alias(shop, "live", "1", NULL);
    provide(shop, "f", "live", 1);
    lambda_refused(&shop->world, "PUT", FUNCTIONS "/f/aliases/live", json_pack("{s:s}", "FunctionVersion", "$LATEST"),
                   400, "InvalidParameterValueException",
                   "Provisioned Concurrency Configs cannot be applied to unpublished function versions.");
}

static void test_version_is_provisioned_by_itself_or_through_aliases(void **state)
{
    static const char already[] =
        "Alias can't be used for Provisioned Concurrency configuration on an already Provisioned version";
    static const char pointed[] = "Version is pointed by a Provisioned Concurrency alias";
    struct shop *shop = *state;

    publish(shop, "2");
    publish(shop, "3");
    create_alias(shop, "live", "1", "2");
    provide(shop, "f", "2", 1);
    lambda_refused(&shop->world, "PUT", config("f", "live"), count_body(1), 409, "ResourceConflictException", already);
    lambda_done(&shop->world, "DELETE", config("f", "2"), NULL, 204);
    provide(shop, "f", "live", 1);
    lambda_refused(&shop->world, "PUT", config("f", "1"), count_body(1), 409, "ResourceConflictException", pointed);
    lambda_refused(&shop->world, "PUT", config("f", "2"), count_body(1), 409, "ResourceConflictException", pointed);
    provide(shop, "f", "3", 1);
    create_alias(shop, "other", "1", NULL);
    provide(shop, "f", "other", 1);
}

static void test_weights_are_refused_only_by_strict_aws(void **state)
{
    static const char weights[] = "Alias with weights can not be used with Provisioned Concurrency";
    struct shop *shop = *state;

    publish(shop, "2");
    create_alias(shop, "canary", "1", "2");
    create_alias(shop, "live", "1", NULL);
    provide(shop, "f", "canary", 2);
    provide(shop, "f", "live", 2);
    lambda_done(&shop->world, "PUT", FUNCTIONS "/f/aliases/live", alias_body(NULL, "1", "2"), 200);
    lambda_done(&shop->world, "PUT", FUNCTIONS "/f/aliases/live",
                json_pack("{s:{s:{}}}", "RoutingConfig", "AdditionalVersionWeights"), 200);
    shop->world.services.strict_aws = true;
    refused_count(shop, "f", "canary", 3, weights);
    lambda_refused(&shop->world, "PUT", FUNCTIONS "/f/aliases/live", alias_body(NULL, "1", "2"), 400,
                   "InvalidParameterValueException", weights);
    lambda_done(&shop->world, "PUT", FUNCTIONS "/f/aliases/live", alias_body(NULL, "2", NULL), 200);
    provide(shop, "f", "live", 3);
}

static void test_configuration_goes_with_version_alias_and_function(void **state)
{
    struct shop *shop = *state;

    publish(shop, "2");
    create_alias(shop, "live", "1", NULL);
    provide(shop, "f", "live", 3);
    provide(shop, "f", "2", 4);
    assert_int_equal(unreserved(shop), 993);
    lambda_done(&shop->world, "DELETE", FUNCTIONS "/f/aliases/live", NULL, 204);
    assert_int_equal(unreserved(shop), 996);
    lambda_done(&shop->world, "DELETE", FUNCTIONS "/f?Qualifier=2", NULL, 204);
    assert_int_equal(unreserved(shop), 1000);
    lambda_refused(&shop->world, "GET", config("f", "2"), NULL, 404, "ResourceNotFoundException",
                   "Function not found: " ARN ":2");
    provide(shop, "f", "1", 5);
    lambda_done(&shop->world, "DELETE", FUNCTIONS "/f", NULL, 204);
    assert_int_equal(unreserved(shop), 1000);
}

static void test_configuration_survives_a_restart(void **state)
{
    struct shop *shop = *state;
    json_t *before, *after;

    provide(shop, "f", "1", 5);
    before = lambda_accepted(&shop->world, "GET", config("f", "1"), NULL, 200);
    api_restart(&shop->world);
    after = lambda_accepted(&shop->world, "GET", config("f", "1"), NULL, 200);
    assert_true(json_equal(before, after));
    json_decref(before);
    json_decref(after);
}

static json_t *list(struct shop *shop, const char *query)
{
    char target[256];

    snprintf(target, sizeof(target), "/2019-09-30/functions/f/provisioned-concurrency?List=ALL%s", query);
    return lambda_accepted(&shop->world, "GET", target, NULL, 200);
}

static void assert_row(const json_t *page, size_t i, const char *arn)
{
    assert_string_equal(
        text_of(json_array_get(json_object_get(page, "ProvisionedConcurrencyConfigs"), i), "FunctionArn"), arn);
}

static void test_list_is_paged_by_qualifier(void **state)
{
    struct shop *shop = *state;
    char query[128];
    json_t *page;

    publish(shop, "2");
    publish(shop, "3");
    create_alias(shop, "live", "1", NULL);
    create_alias(shop, "idle", "1", NULL);
    provide(shop, "f", "live", 1);
    provide(shop, "f", "3", 2);
    provide(shop, "f", "2", 3);
    page = list(shop, "");
    assert_int_equal(json_array_size(json_object_get(page, "ProvisionedConcurrencyConfigs")), 3);
    assert_string_equal(text_of(page, "NextMarker"), "(absent)");
    assert_row(page, 0, ARN ":2");
    assert_row(page, 1, ARN ":3");
    assert_row(page, 2, ARN ":live");
    json_decref(page);
    page = list(shop, "&MaxItems=2");
    assert_int_equal(json_array_size(json_object_get(page, "ProvisionedConcurrencyConfigs")), 2);
    snprintf(query, sizeof(query), "&MaxItems=2&Marker=%s", text_of(page, "NextMarker"));
    json_decref(page);
    page = list(shop, query);
    assert_int_equal(json_array_size(json_object_get(page, "ProvisionedConcurrencyConfigs")), 1);
    assert_string_equal(text_of(page, "NextMarker"), "(absent)");
    assert_row(page, 0, ARN ":live");
    json_decref(page);
    lambda_refused(
        &shop->world, "GET", "/2019-09-30/functions/f/provisioned-concurrency?List=ALL&MaxItems=51", NULL, 400,
        "ValidationException",
        "1 validation error detected: Value '51' at 'maxItems' failed to satisfy constraint: Member must have "
        "value less than or equal to 50");
    lambda_refused(
        &shop->world, "GET", "/2019-09-30/functions/f/provisioned-concurrency?List=ALL&MaxItems=0", NULL, 400,
        "ValidationException",
        "1 validation error detected: Value '0' at 'maxItems' failed to satisfy constraint: Member must have value "
        "greater than or equal to 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(test_answers_show_what_core_says),
        TEST(test_without_core_nothing_is_allocated),
        TEST(test_pool_and_minimum_are_kept),
        TEST(test_provisioned_lies_within_reserved),
        TEST(test_qualifier_must_be_given_and_well_formed),
        TEST(test_alias_of_latest_cannot_be_provisioned),
        TEST(test_version_is_provisioned_by_itself_or_through_aliases),
        TEST(test_weights_are_refused_only_by_strict_aws),
        TEST(test_configuration_goes_with_version_alias_and_function),
        TEST(test_configuration_survives_a_restart),
        TEST(test_list_is_paged_by_qualifier),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
