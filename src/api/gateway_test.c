/*
 * The gateway over a real connection, with the control plane behind it. Invokes and signatures are tried against the
 * whole daemon (tests/conformance).
 */
#include "api/gateway.h"

#include "api/testing.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

struct site {
    struct api_world world;
    struct gateway *gateway;
    struct http_server *server;
    struct http_listener *listener;
    int client;
};

static void connect_client(struct site *site)
{
    struct sockaddr_storage address;
    struct sockaddr_in *v4 = (struct sockaddr_in *)&address;

    assert_int_equal(http_listener_address(site->listener, &address), 0);
    site->client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(site->client >= 0);
    assert_int_equal(connect(site->client, (struct sockaddr *)v4, sizeof(*v4)), 0);
}

static int open_site(void **state)
{
    struct site *site = calloc(1, sizeof(*site));
    struct fault fault = {0};

    api_open(&site->world);
    const struct http_server_config server = {.loop = &site->world.catalog.loop};
    const struct gateway_config gateway = {
        .services = &site->world.services,
        .default_account = API_ACCOUNT,
        .default_region = API_REGION,
    };
    assert_int_equal(gateway_new(&gateway, &site->gateway), 0);
    assert_int_equal(http_server_new(&server, &site->server), 0);
    assert_int_equal(http_server_listen(site->server, "127.0.0.1", 0, gateway_http_handler(), site->gateway,
                                        &site->listener, &fault),
                     0);
    connect_client(site);
    *state = site;
    return 0;
}

static int close_site(void **state)
{
    struct site *site = *state;

    http_server_free(site->server);
    testing_run(&site->world.catalog);
    gateway_free(site->gateway);
    api_close(&site->world);
    close(site->client);
    free(site);
    return 0;
}

static void send_text(struct site *site, const char *text)
{
    assert_int_equal(send(site->client, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static void send_creation(struct site *site)
{
    json_t *body =
        json_pack("{s:s, s:s, s:s, s:s, s:{s:o}}", "FunctionName", "f", "Role", "arn:aws:iam::111111111111:role/r",
                  "Runtime", "python3.12", "Handler", "index.handler", "Code", "ZipFile", api_zip("index.py", "x"));
    char *text = json_dumps(body, JSON_COMPACT);
    char head[128];

    snprintf(head, sizeof(head), "POST /2015-03-31/functions HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n",
             strlen(text));
    send_text(site, head);
    send_text(site, text);
    free(text);
    json_decref(body);
}

/* Turns the loop until the answer's head and body are there. */
static void receive(struct site *site, char *answer, size_t size)
{
    size_t got = 0;

    for (;;) {
        ssize_t count = recv(site->client, answer + got, size - 1 - got, MSG_DONTWAIT);
        if (count > 0)
            got += (size_t)count;
        answer[got] = '\0';
        if (strstr(answer, "\r\n\r\n") && answer[got - 1] == '}')
            return;
        uv_run(&site->world.catalog.loop, UV_RUN_NOWAIT);
    }
}

static void test_operation_is_answered(void **state)
{
    struct site *site = *state;
    char answer[8192];

    send_creation(site);
    receive(site, answer, sizeof(answer));
    assert_ptr_equal(strstr(answer, "HTTP/1.1 201 "), answer);
    assert_non_null(strstr(answer, "\r\nx-amzn-RequestId: "));
    assert_non_null(strstr(answer, "\r\nContent-Type: application/json\r\n"));
}

static void test_chunked_body_over_the_limit_names_the_operation(void **state)
{
    struct site *site = *state;
    char answer[8192];

    send_text(site, "POST /2015-03-31/functions/f/invocations HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "600001\r\n");
    receive(site, answer, sizeof(answer));
    assert_ptr_equal(strstr(answer, "HTTP/1.1 413 "), answer);
    assert_non_null(strstr(answer, "\r\nx-amzn-ErrorType: RequestEntityTooLargeException\r\n"));
    assert_non_null(strstr(answer, "{\"Message\":\"Request must be smaller than 6291456 bytes for the InvokeFunction "
                                   "operation\"}"));
}

static void test_broken_request_is_refused_in_the_form_of_the_service(void **state)
{
    struct site *site = *state;
    char answer[8192];

    send_text(site, "nonsense\r\n\r\n");
    receive(site, answer, sizeof(answer));
    assert_ptr_equal(strstr(answer, "HTTP/1.1 400 "), answer);
    assert_non_null(strstr(answer, "\r\nx-amzn-ErrorType: BadRequestException\r\n"));
    assert_non_null(strstr(answer, "{\"Type\":\"User\",\"message\":\"The request is not valid HTTP.\"}"));
}

/* The operation goes on when the server is gone; its answer must not go to the exchange, which is gone too. */
static void test_operation_outlives_the_server(void **state)
{
    struct site *site = *state;

    send_creation(site);
    for (int i = 0; i < 1000 && !gateway_operation_count(site->gateway); i++)
        uv_run(&site->world.catalog.loop, UV_RUN_NOWAIT);
    assert_int_equal(gateway_operation_count(site->gateway), 1);
    gateway_abandon(site->gateway);
    assert_int_equal(gateway_operation_count(site->gateway), 0);
    site->server = http_server_free(site->server);
    while (!catalog_find_function(site->world.catalog.catalog, SPAN(API_ACCOUNT), SPAN(API_REGION), SPAN("f")))
        uv_run(&site->world.catalog.loop, UV_RUN_ONCE);
    testing_run(&site->world.catalog);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_operation_is_answered, open_site, close_site),
        cmocka_unit_test_setup_teardown(test_chunked_body_over_the_limit_names_the_operation, open_site, close_site),
        cmocka_unit_test_setup_teardown(test_broken_request_is_refused_in_the_form_of_the_service, open_site,
                                        close_site),
        cmocka_unit_test_setup_teardown(test_operation_outlives_the_server, open_site, close_site),
    };

    return cmocka_run_group_tests_name("gateway", tests, NULL, NULL);
}
