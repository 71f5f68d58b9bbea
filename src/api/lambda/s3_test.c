/* Code in S3, against a small server on a loopback port of its own. */
#include "api/lambda/testing.h"
#include "http/client.h"
#include "http/server.h"
#include "store/zip_builder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

struct fixture {
    struct api_world world;
    struct http_server *server;
    struct http_listener *listener;
    char endpoint[64];
    char seen_path[256];
    char seen_query[64];
    char seen_authorization[512];
    char seen_sha256[128];
};

static void copy(struct span from, char *to, size_t size)
{
    snprintf(to, size, "%.*s", SPAN_ARG(from));
}

static void respond_xml(struct http_request *request, int status, const char *document)
{
    struct buffer body = BUFFER_INIT;

    assert_int_equal(buffer_append_span(&body, span_from(document)), 0);
    http_respond(request, status, NULL, 0, &body);
}

/* The bucket has one object. */
static void on_request(struct http_request *request, void *context)
{
    struct fixture *fixture = context;
    struct zip_entry entry = {.name = SPAN("handler.py"), .mode = S_IFREG | 0644, .content = SPAN("from s3")};
    struct buffer zip = BUFFER_INIT;

    copy(http_request_path(request), fixture->seen_path, sizeof(fixture->seen_path));
    copy(http_request_query(request), fixture->seen_query, sizeof(fixture->seen_query));
    copy(http_request_header(request, SPAN("Authorization")), fixture->seen_authorization,
         sizeof(fixture->seen_authorization));
    copy(http_request_header(request, SPAN("x-amz-content-sha256")), fixture->seen_sha256,
         sizeof(fixture->seen_sha256));
    if (!strcmp(fixture->seen_path, "/bucket/plain")) {
        respond_xml(request, 503, "busy");
        return;
    }
    if (strcmp(fixture->seen_path, "/bucket/code/my%20function.zip")) {
        respond_xml(request, 404,
                    "<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code><Message>The specified key does not "
                    "exist.</Message><Key>k</Key></Error>");
        return;
    }
    zip_build(&zip, &entry, 1);
    http_respond(request, 200, NULL, 0, &zip);
}

static const struct http_handler handler = {.on_request = on_request};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct http_server_config config;
    struct sockaddr_storage address;
    struct fault fault;

    api_open(&fixture->world);
    config = (struct http_server_config){.loop = &fixture->world.catalog.loop};
    assert_int_equal(http_server_new(&config, &fixture->server), 0);
    assert_int_equal(http_server_listen(fixture->server, "127.0.0.1", 0, &handler, fixture, &fixture->listener, &fault),
                     0);
    assert_int_equal(http_listener_address(fixture->listener, &address), 0);
    snprintf(fixture->endpoint, sizeof(fixture->endpoint), "http://127.0.0.1:%u",
             ntohs(((struct sockaddr_in *)&address)->sin_port));
    fixture->world.services.s3_endpoint = fixture->endpoint;
    assert_int_equal(http_client_new(&fixture->world.catalog.loop, &fixture->world.services.client), 0);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    http_client_free(fixture->world.services.client);
    http_server_free(fixture->server);
    api_close(&fixture->world);
    free(fixture);
    return 0;
}

static struct api_answer create(struct fixture *fixture, const char *key, const char *version)
{
    json_t *code = json_pack("{s:s, s:s, s:s*}", "S3Bucket", "bucket", "S3Key", key, "S3ObjectVersion", version);

    return api_exchange_json(&fixture->world, "POST", FUNCTIONS,
                             json_pack("{s:s, s:s, s:s, s:s, s:o}", "FunctionName", "f", "Runtime", "python3.12",
                                       "Role", ROLE, "Handler", "handler.handler", "Code", code));
}

static void test_object_becomes_the_function_s_code(void **state)
{
    struct fixture *fixture = *state;
    struct api_answer answer = create(fixture, "code/my function.zip", "v 1");

    assert_string_equal(api_message(&answer), "");
    assert_int_equal(answer.status, 201);
    assert_string_equal(fixture->seen_path, "/bucket/code/my%20function.zip");
    assert_string_equal(fixture->seen_query, "versionId=v%201");
    assert_string_equal(fixture->seen_authorization, "");
    api_answer_deinit(&answer);
}

static struct api_answer publish_layer(struct fixture *fixture, const char *key)
{
    return api_exchange_json(&fixture->world, "POST", "/2018-10-31/layers/l/versions",
                             json_pack("{s:{s:s, s:s}}", "Content", "S3Bucket", "bucket", "S3Key", key));
}

static void test_object_becomes_a_layer_s_content(void **state)
{
    struct fixture *fixture = *state;
    struct api_answer answer = publish_layer(fixture, "none");

    assert_string_equal(api_message(&answer),
                        "Error occurred while GetObject. S3 Error Code: NoSuchKey. S3 Error Message: The specified key "
                        "does not exist.");
    api_answer_deinit(&answer);
    answer = publish_layer(fixture, "code/my function.zip");
    assert_string_equal(api_message(&answer), "");
    assert_int_equal(answer.status, 201);
    assert_int_equal(json_integer_value(json_object_get(answer.body, "Version")), 1); /* the failure used no number */
    api_answer_deinit(&answer);
}

static void test_request_is_signed_when_a_key_is_configured(void **state)
{
    struct fixture *fixture = *state;
    struct api_answer answer;

    fixture->world.services.s3_access_key = "AKIDEXAMPLE";
    fixture->world.services.s3_secret_key = "secret";
    answer = create(fixture, "code/my function.zip", NULL);
    assert_int_equal(answer.status, 201);
    assert_ptr_equal(strstr(fixture->seen_authorization, "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"),
                     fixture->seen_authorization);
    assert_non_null(strstr(fixture->seen_authorization, "/us-east-1/s3/aws4_request"));
    assert_int_equal(strlen(fixture->seen_sha256), 64);
    api_answer_deinit(&answer);
}

static void refused(struct fixture *fixture, const char *key, const char *message)
{
    struct api_answer answer = create(fixture, key, NULL);

    assert_string_equal(api_message(&answer), message);
    assert_string_equal(answer.error_type, "InvalidParameterValueException");
    assert_int_equal(answer.status, 400);
    api_answer_deinit(&answer);
}

static void test_refusal_of_s3_is_passed_on(void **state)
{
    refused(*state, "missing",
            "Error occurred while GetObject. S3 Error Code: NoSuchKey. S3 Error Message: The specified key does not "
            "exist.");
    refused(*state, "plain",
            "Error occurred while GetObject. S3 Error Code: 503. S3 Error Message: The endpoint gave no reason.");
}

static void test_endpoint_that_is_not_there_is_named_so(void **state)
{
    struct fixture *fixture = *state;
    struct api_answer answer;

    http_listener_close(fixture->listener, true);
    answer = create(fixture, "k", NULL);
    assert_int_equal(answer.status, 400);
    assert_non_null(strstr(api_message(&answer), "S3 Error Code: EndpointUnreachable. S3 Error Message: "));
    api_answer_deinit(&answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(test_object_becomes_the_function_s_code),         TEST(test_object_becomes_a_layer_s_content),
        TEST(test_request_is_signed_when_a_key_is_configured), TEST(test_refusal_of_s3_is_passed_on),
        TEST(test_endpoint_that_is_not_there_is_named_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
