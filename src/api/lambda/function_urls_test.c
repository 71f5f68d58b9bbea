/* Function URLs: what the recordings do not show, above all at the limits and one past them. */
#include "api/lambda/function_url.h"
#include "api/lambda/testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define URL    "/2021-10-31/functions/f/url"
#define ARN    "arn:aws:lambda:us-east-1:111111111111:function:f"
#define ENDING ".lambda-url.us-east-1.localhost:4566/"

static const char *member(const struct api_answer *answer, const char *name)
{
    return json_string_value(json_object_get(answer->body, name));
}

static void create_alias(struct api_world *world)
{
    lambda_expect_status(world, 201, "POST", FUNCTIONS "/f/aliases",
                         "{\"Name\":\"live\",\"FunctionVersion\":\"$LATEST\"}");
}

static void test_address_is_kept_and_another_after_deletion(void **state)
{
    struct api_world *world = *state;
    struct api_answer answer = lambda_expect(world, 201, "POST", URL, "{\"AuthType\":\"NONE\"}");
    char address[128];

    snprintf(address, sizeof(address), "%s", member(&answer, "FunctionUrl"));
    assert_int_equal(strlen(address), strlen("http://") + 32 + strlen(ENDING));
    assert_string_equal(address + strlen("http://") + 32, ENDING);
    assert_int_equal(strspn(address + strlen("http://"), "abcdefghijklmnopqrstuvwxyz0123456789"), 32);
    api_answer_deinit(&answer);
    api_restart(world);
    answer = lambda_expect(world, 200, "GET", URL, NULL);
    assert_string_equal(member(&answer, "FunctionUrl"), address);
    api_answer_deinit(&answer);
    answer = lambda_expect(world, 200, "PUT", URL, "{\"AuthType\":\"AWS_IAM\"}");
    assert_string_equal(member(&answer, "FunctionUrl"), address);
    api_answer_deinit(&answer);
    lambda_expect_status(world, 204, "DELETE", URL, NULL);
    answer = lambda_expect(world, 201, "POST", URL, "{\"AuthType\":\"NONE\"}");
    assert_string_not_equal(member(&answer, "FunctionUrl"), address);
    api_answer_deinit(&answer);
}

static void assert_host(const char *host, const char *expected)
{
    struct http_header header = {SPAN("Host"), span_from(host)};
    struct operation operation = {.region = SPAN("eu-west-1"), .headers = &header, .header_count = 1};

    assert_string_equal(function_url_address(&operation, "id"), expected);
    arena_deinit(&operation.arena);
}

static void test_address_can_be_reached_from_where_the_request_came(void **state)
{
    char host[128];
    (void)state;

    assert_host("localhost:4566", "http://id.lambda-url.eu-west-1.localhost:4566/");
    assert_host("127.0.0.1:80", "http://id.lambda-url.eu-west-1.localhost:80/");
    assert_host("[::1]:4566", "http://id.lambda-url.eu-west-1.localhost:4566/");
    assert_host("kiln", "http://id.lambda-url.eu-west-1.localhost/");
    assert_host("", "http://id.lambda-url.eu-west-1.localhost/");
    assert_host("kiln.example.com:4566", "http://id.lambda-url.eu-west-1.kiln.example.com:4566/");
    assert_host("kiln.example.com", "http://id.lambda-url.eu-west-1.kiln.example.com/");
    assert_host("a.b:x/y", "http://id.lambda-url.eu-west-1.a.b/");
    assert_host(".a\"b.c:1", "http://id.lambda-url.eu-west-1.localhost:1/");
    memset(host, 'a', 80);
    snprintf(host + 80, sizeof(host) - 80, ".example.com");
    assert_host(host, "http://id.lambda-url.eu-west-1.localhost/");
}

static void test_invoke_mode_is_buffered_unless_it_was_given(void **state)
{
    struct api_world *world = *state;
    struct api_answer answer = lambda_expect(world, 201, "POST", URL, "{\"AuthType\":\"NONE\"}");

    assert_null(json_object_get(answer.body, "InvokeMode"));
    assert_null(json_object_get(answer.body, "LastModifiedTime"));
    api_answer_deinit(&answer);
    answer = lambda_expect(world, 200, "GET", URL, NULL);
    assert_string_equal(member(&answer, "InvokeMode"), "BUFFERED");
    assert_string_equal(member(&answer, "LastModifiedTime"), member(&answer, "CreationTime"));
    assert_int_equal(strlen(member(&answer, "CreationTime")), strlen("2026-01-02T03:04:05.678901Z"));
    api_answer_deinit(&answer);
    lambda_expect_status(world, 200, "PUT", URL, "{\"InvokeMode\":\"RESPONSE_STREAM\"}");
    answer = lambda_expect(world, 200, "GET", URL, NULL);
    assert_string_equal(member(&answer, "InvokeMode"), "RESPONSE_STREAM");
    assert_string_equal(member(&answer, "AuthType"), "NONE");
    assert_true(strcmp(member(&answer, "LastModifiedTime"), member(&answer, "CreationTime")) > 0);
    api_answer_deinit(&answer);
}

static void assert_cors(struct api_world *world, const char *expected)
{
    struct api_answer answer = lambda_expect(world, 200, "GET", URL, NULL);
    json_t *wanted = expected ? json_loads(expected, 0, NULL) : NULL;

    if (expected)
        assert_true(json_equal(json_object_get(answer.body, "Cors"), wanted));
    else
        assert_null(json_object_get(answer.body, "Cors"));
    json_decref(wanted);
    api_answer_deinit(&answer);
}

static void test_cors_is_replaced_as_a_whole(void **state)
{
    static const char first[] = "{\"AllowCredentials\":true,\"AllowHeaders\":[\"x-a\"],\"AllowMethods\":[\"*\"],"
                                "\"AllowOrigins\":[\"https://example.com\"],\"ExposeHeaders\":[],\"MaxAge\":86400}";
    struct api_world *world = *state;
    char body[512];

    snprintf(body, sizeof(body), "{\"AuthType\":\"NONE\",\"Cors\":%s}", first);
    lambda_expect_status(world, 201, "POST", URL, body);
    assert_cors(world, first);
    lambda_expect_status(world, 200, "PUT", URL, "{\"AuthType\":\"AWS_IAM\"}");
    assert_cors(world, first);
    lambda_expect_status(world, 200, "PUT", URL, "{\"Cors\":{\"AllowOrigins\":[\"*\"]}}");
    assert_cors(world, "{\"AllowOrigins\":[\"*\"]}");
    lambda_expect_status(world, 200, "PUT", URL, "{\"Cors\":{}}");
    assert_cors(world, NULL);
}

/* {"AuthType": "NONE", "Cors": {member: value}}; takes the value. */
static struct api_answer create_with(struct api_world *world, const char *name, json_t *value)
{
    return api_exchange_json(world, "POST", URL, json_pack("{s:s, s:{s:o}}", "AuthType", "NONE", "Cors", name, value));
}

static json_t *list_of(size_t count, size_t length)
{
    json_t *list = json_array();
    char text[1100];

    memset(text, 'a', length);
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_stringn(text, length));
    return list;
}

static void assert_good(struct api_world *world, const char *name, json_t *value)
{
    struct api_answer answer = create_with(world, name, value);

    if (answer.status != 201)
        fail_msg("%s: %s", name, api_message(&answer));
    api_answer_deinit(&answer);
    lambda_expect_status(world, 204, "DELETE", URL, NULL);
}

static void assert_violates(struct api_world *world, const char *name, json_t *value, const char *ending)
{
    struct api_answer answer = create_with(world, name, value);

    assert_string_equal(answer.error_type, "ValidationException");
    if (!strstr(api_message(&answer), ending))
        fail_msg("%s: %s", name, api_message(&answer));
    api_answer_deinit(&answer);
}

static void test_cors_is_held_to_the_model(void **state)
{
    struct api_world *world = *state;

    assert_good(world, "AllowMethods", list_of(6, 6));
    assert_violates(
        world, "AllowMethods", list_of(7, 1),
        "at 'cors.allowMethods' failed to satisfy constraint: Member must have length less than or equal to 6");
    assert_violates(
        world, "AllowMethods", json_pack("[s]", "OPTIONS"),
        "Value '[OPTIONS]' at 'cors.allowMethods' failed to satisfy constraint: Member must satisfy "
        "constraint: [Member must have length less than or equal to 6, Member must have length greater than "
        "or equal to 0, Member must satisfy regular expression pattern: .*, Member must not be null]");
    assert_good(world, "AllowOrigins", list_of(100, 253));
    assert_violates(world, "AllowOrigins", list_of(101, 1), "Member must have length less than or equal to 100");
    assert_violates(world, "AllowOrigins", list_of(1, 254), "Member must have length less than or equal to 253");
    assert_violates(world, "AllowOrigins", list_of(1, 0), "at 'cors.allowOrigins' failed");
    assert_good(world, "AllowHeaders", list_of(100, 1024));
    assert_violates(world, "AllowHeaders", list_of(101, 1), "at 'cors.allowHeaders' failed");
    assert_violates(world, "ExposeHeaders", list_of(1, 1025), "at 'cors.exposeHeaders' failed");
    assert_good(world, "MaxAge", json_integer(0));
    assert_good(world, "MaxAge", json_integer(86400));
    assert_violates(world, "MaxAge", json_integer(86401),
                    "Value '86401' at 'cors.maxAge' failed to satisfy constraint: Member must have value less than or "
                    "equal to 86400");
    assert_violates(world, "MaxAge", json_integer(-1), "Member must have value greater than or equal to 0");
}

static void test_settings_are_held_to_the_model(void **state)
{
    struct api_world *world = *state;
    struct api_answer answer = lambda_expect(world, 400, "POST", URL, "{}");

    assert_string_equal(api_message(&answer), "1 validation error detected: Value null at 'authType' failed to satisfy "
                                              "constraint: Member must not be null");
    api_answer_deinit(&answer);
    answer = lambda_expect(world, 400, "PUT", URL, "{\"AuthType\":\"a\",\"InvokeMode\":\"b\"}");
    assert_string_equal(
        api_message(&answer),
        "2 validation errors detected: Value 'a' at 'authType' failed to satisfy constraint: Member must "
        "satisfy enum value set: [NONE, AWS_IAM]; Value 'b' at 'invokeMode' failed to satisfy "
        "constraint: Member must satisfy enum value set: [BUFFERED, RESPONSE_STREAM]");
    api_answer_deinit(&answer);
    lambda_expect_status(world, 400, "POST", URL, "{\"AuthType\":1}");
    lambda_expect_status(world, 400, "POST", URL, "{\"AuthType\":\"NONE\",\"Cors\":[]}");
}

static void test_alias_has_a_url_of_its_own_that_outlives_it(void **state)
{
    struct api_world *world = *state;
    struct api_answer answer;

    create_alias(world);
    lambda_expect_status(world, 201, "POST", URL, "{\"AuthType\":\"NONE\"}");
    answer = lambda_expect(world, 201, "POST", URL "?Qualifier=live", "{\"AuthType\":\"NONE\"}");
    assert_string_equal(member(&answer, "FunctionArn"), ARN ":live");
    api_answer_deinit(&answer);
    answer = lambda_expect(world, 409, "POST", URL "?Qualifier=live", "{\"AuthType\":\"NONE\"}");
    assert_string_equal(api_message(&answer),
                        "Failed to create function url config for [functionArn = " ARN
                        ":live]. Error message:  FunctionUrlConfig exists for this Lambda function");
    api_answer_deinit(&answer);
    lambda_expect_status(world, 204, "DELETE", URL, NULL);
    lambda_expect_status(world, 200, "GET", URL "?Qualifier=live", NULL);
    lambda_expect_status(world, 204, "DELETE", FUNCTIONS "/f/aliases/live", NULL);
    lambda_expect_status(world, 200, "GET", URL "?Qualifier=live", NULL);
    answer = lambda_expect(world, 404, "PUT", URL "?Qualifier=live", "{\"AuthType\":\"NONE\"}");
    assert_string_equal(api_message(&answer), "Function does not exist");
    api_answer_deinit(&answer);
    lambda_expect_status(world, 204, "DELETE", URL "?Qualifier=live", NULL);
    lambda_expect_status(world, 404, "GET", URL "?Qualifier=live", NULL);
}

static void test_urls_go_with_their_function(void **state)
{
    struct api_world *world = *state;
    struct api_answer answer;

    create_alias(world);
    lambda_expect_status(world, 201, "POST", URL, "{\"AuthType\":\"NONE\"}");
    lambda_expect_status(world, 201, "POST", URL "?Qualifier=live", "{\"AuthType\":\"NONE\"}");
    lambda_expect_status(world, 204, "DELETE", FUNCTIONS "/f/aliases/live", NULL);
    lambda_expect_status(world, 204, "DELETE", FUNCTIONS "/f", NULL);
    api_create_function(world, "f");
    answer = lambda_expect(world, 200, "GET", URL "s", NULL);
    assert_int_equal(json_array_size(json_object_get(answer.body, "FunctionUrlConfigs")), 0);
    api_answer_deinit(&answer);
}

static void test_urls_are_listed_across_pages(void **state)
{
    struct api_world *world = *state;
    struct api_answer answer;
    char target[256];

    create_alias(world);
    lambda_expect_status(world, 201, "POST", URL "?Qualifier=live", "{\"AuthType\":\"NONE\"}");
    lambda_expect_status(world, 201, "POST", URL, "{\"AuthType\":\"NONE\"}");
    lambda_expect_status(world, 400, "GET", URL "s?MaxItems=51", NULL);
    answer = lambda_expect(world, 200, "GET", URL "s?MaxItems=1", NULL);
    assert_string_equal(json_string_value(json_object_get(
                            json_array_get(json_object_get(answer.body, "FunctionUrlConfigs"), 0), "FunctionArn")),
                        ARN);
    snprintf(target, sizeof(target), URL "s?MaxItems=1&Marker=%s", member(&answer, "NextMarker"));
    api_answer_deinit(&answer);
    answer = lambda_expect(world, 200, "GET", target, NULL);
    assert_string_equal(json_string_value(json_object_get(
                            json_array_get(json_object_get(answer.body, "FunctionUrlConfigs"), 0), "FunctionArn")),
                        ARN ":live");
    assert_null(json_object_get(answer.body, "NextMarker"));
    api_answer_deinit(&answer);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, lambda_test_setup_function, lambda_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_address_is_kept_and_another_after_deletion),
        cmocka_unit_test(test_address_can_be_reached_from_where_the_request_came),
        TEST(test_invoke_mode_is_buffered_unless_it_was_given),
        TEST(test_cors_is_replaced_as_a_whole),
        TEST(test_cors_is_held_to_the_model),
        TEST(test_settings_are_held_to_the_model),
        TEST(test_alias_has_a_url_of_its_own_that_outlives_it),
        TEST(test_urls_go_with_their_function),
        TEST(test_urls_are_listed_across_pages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
