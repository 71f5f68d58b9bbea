/* The client against the server of this folder, both on one loop. */
#include "http/client.h"
#include "http/testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>

#include <cmocka.h>

struct fixture {
    struct service service;
    struct http_client *client;
    char url[128];
};

struct outcome {
    struct fixture *fixture;
    size_t calls;
    int error;
    char sentence[256];
    int status;
    size_t header_count;
    char server_header[64];
    struct buffer body;
    bool frees_client;
    struct http_fetch *cancels;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    assert_non_null(fixture);
    unsetenv("http_proxy");
    unsetenv("all_proxy");
    unsetenv("ALL_PROXY");
    service_start(&fixture->service, &(struct http_server_config){.body_bytes = 16 * 1024 * 1024}, true);
    assert_int_equal(http_client_new(&fixture->service.loop, &fixture->client), 0);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    fixture->client = http_client_free(fixture->client);
    service_stop(&fixture->service);
    free(fixture);
    return 0;
}

static const char *url_of(struct fixture *fixture, const char *path)
{
    snprintf(fixture->url, sizeof(fixture->url), "http://127.0.0.1:%u%s", service_port(&fixture->service), path);
    return fixture->url;
}

static void on_done(struct http_fetch_result *result, void *context)
{
    struct outcome *outcome = context;

    outcome->calls++;
    outcome->error = result->error;
    snprintf(outcome->sentence, sizeof(outcome->sentence), "%s", result->sentence);
    outcome->status = result->status;
    outcome->header_count = result->header_count;
    outcome->body = buffer_take(&result->body);
    for (size_t i = 0; i < result->header_count; i++)
        if (span_equal_nocase(result->headers[i].name, SPAN("Content-Length")))
            snprintf(outcome->server_header, sizeof(outcome->server_header), "%.*s",
                     SPAN_ARG(result->headers[i].value));
    if (outcome->cancels)
        http_fetch_cancel(outcome->cancels);
    if (outcome->frees_client)
        outcome->fixture->client = http_client_free(outcome->fixture->client);
}

static struct outcome fetch(struct fixture *fixture, const struct http_fetch_request *request)
{
    struct outcome outcome = {.fixture = fixture};

    assert_int_equal(http_client_fetch(fixture->client, request, on_done, &outcome, NULL), 0);
    assert_int_equal(outcome.calls, 0);
    wait_until(&fixture->service, outcome.calls == 1);
    assert_int_equal(http_client_fetches(fixture->client), 0);
    return outcome;
}

static void test_what_cannot_be_sent_is_refused(void **state)
{
    struct fixture *fixture = *state;
    const struct http_header bad_value = {SPAN("X"), SPAN("1\r\nY: 2")};
    const struct http_header bad_name = {SPAN("X Y"), SPAN("1")};
    const struct http_fetch_request requests[] = {
        {.url = NULL},
        {.url = "ftp://127.0.0.1/"},
        {.url = "file:///etc/passwd"},
        {.url = "no url"},
        {.url = "http://127.0.0.1/", .method = "GE T"},
        {.url = "http://127.0.0.1/", .headers = &bad_value, .header_count = 1},
        {.url = "http://127.0.0.1/", .headers = &bad_name, .header_count = 1},
    };
    CLEANUP(buffer_deinit) struct buffer body = BUFFER_INIT;
    struct outcome outcome = {0};

    assert_int_equal(buffer_append_span(&body, SPAN("kept")), 0);
    for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
        struct http_fetch_request request = requests[i];
        request.body = &body;
        assert_int_equal(http_client_fetch(fixture->client, &request, on_done, &outcome, NULL), -EINVAL);
        assert_int_equal(body.length, 4);
    }
    service_linger(&fixture->service, 5);
    assert_int_equal(outcome.calls, 0);
}

static void test_refused_connection_is_told(void **state)
{
    struct fixture *fixture = *state;
    struct http_fetch_request request = {.url = url_of(fixture, "/")};
    struct outcome outcome;

    http_listener_close(fixture->service.listener, true);
    outcome = fetch(fixture, &request);
    assert_int_equal(outcome.error, -ECONNREFUSED);
    assert_int_equal(outcome.status, 0);
    assert_true(strlen(outcome.sentence) > 0);
}

static void test_silent_server_times_out(void **state)
{
    struct fixture *fixture = *state;
    struct outcome outcome =
        fetch(fixture, &(struct http_fetch_request){.url = url_of(fixture, "/park"), .timeout_ms = 30});

    assert_int_equal(outcome.error, -ETIMEDOUT);
    wait_until(&fixture->service, fixture->service.gones == 1);
}

static void test_too_large_response_is_cut_off(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(buffer_deinit) struct buffer body = BUFFER_INIT;
    struct http_fetch_request request = {
        .url = url_of(fixture, "/echo"), .method = "POST", .body = &body, .max_response_bytes = 5};
    struct outcome outcome;

    assert_int_equal(buffer_append_span(&body, SPAN("123456")), 0);
    outcome = fetch(fixture, &request);
    assert_int_equal(outcome.error, -EMSGSIZE);
    buffer_deinit(&outcome.body);
    assert_int_equal(buffer_append_span(&body, SPAN("12345")), 0);
    outcome = fetch(fixture, &request);
    assert_int_equal(outcome.error, 0);
    assert_int_equal(outcome.body.length, 5);
    buffer_deinit(&outcome.body);
}

static void test_too_large_streamed_response_is_cut_off(void **state)
{
    struct fixture *fixture = *state;
    struct http_fetch_request request = {.url = url_of(fixture, "/stream"), .max_response_bytes = 5};
    struct outcome outcome = {.fixture = fixture};
    struct buffer chunk = BUFFER_INIT;

    assert_int_equal(http_client_fetch(fixture->client, &request, on_done, &outcome, NULL), 0);
    wait_until(&fixture->service, fixture->service.parked_count == 1);
    assert_int_equal(buffer_append_span(&chunk, SPAN("123456")), 0);
    http_response_write(fixture->service.parked[0], &chunk);
    wait_until(&fixture->service, outcome.calls == 1);
    assert_int_equal(outcome.error, -EMSGSIZE);
    buffer_deinit(&outcome.body);
}

static void test_broken_off_response_is_told(void **state)
{
    static const char *const paths[] = {"/stream", "/length", "/park"};
    struct fixture *fixture = *state;

    for (size_t i = 0; i < 3; i++) {
        struct http_fetch_request request = {.url = url_of(fixture, paths[i])};
        struct outcome outcome = {.fixture = fixture};
        assert_int_equal(http_client_fetch(fixture->client, &request, on_done, &outcome, NULL), 0);
        wait_until(&fixture->service, fixture->service.parked_count == i + 1);
        http_response_abort(fixture->service.parked[i]);
        wait_until(&fixture->service, outcome.calls == 1);
        assert_int_equal(outcome.error, -ECONNRESET);
        buffer_deinit(&outcome.body);
    }
}

static void test_response_comes_with_status_headers_and_body(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(buffer_deinit) struct buffer body = BUFFER_INIT;
    struct http_fetch_request request = {.url = url_of(fixture, "/echo?x=1"), .method = "PUT", .body = &body};
    struct outcome outcome;

    assert_int_equal(buffer_append_span(&body, SPAN("hello")), 0);
    outcome = fetch(fixture, &request);
    assert_null(body.data);
    assert_int_equal(outcome.error, 0);
    assert_string_equal(outcome.sentence, "");
    assert_int_equal(outcome.status, 200);
    assert_int_equal(outcome.header_count, 2);
    assert_string_equal(outcome.server_header, "5");
    assert_true(span_equal(buffer_span(&outcome.body), SPAN("hello")));
    buffer_deinit(&outcome.body);
}

static void test_request_is_sent_as_asked(void **state)
{
    struct fixture *fixture = *state;
    const struct http_header headers[] = {{SPAN("X-One"), SPAN("1, 2")}, {SPAN("x-empty"), SPAN("")}};
    struct http_fetch_request request = {
        .url = url_of(fixture, "/park"), .method = "DELETE", .headers = headers, .header_count = 2};
    struct outcome outcome = {.fixture = fixture};
    struct http_request *received;

    assert_int_equal(http_client_fetch(fixture->client, &request, on_done, &outcome, NULL), 0);
    wait_until(&fixture->service, fixture->service.parked_count == 1);
    received = fixture->service.parked[0];
    assert_true(span_equal(http_request_method(received), SPAN("DELETE")));
    assert_true(span_equal(http_request_header(received, SPAN("X-One")), SPAN("1, 2")));
    assert_non_null(http_request_header(received, SPAN("X-Empty")).data);
    assert_null(http_request_header(received, SPAN("Expect")).data);
    assert_null(http_request_header(received, SPAN("Content-Type")).data);
    assert_non_null(http_request_header(received, SPAN("Host")).data);
    http_respond(received, 404, NULL, 0, NULL);
    wait_until(&fixture->service, outcome.calls == 1);
    assert_int_equal(outcome.error, 0);
    assert_int_equal(outcome.status, 404);
}

static void test_head_has_no_body(void **state)
{
    struct fixture *fixture = *state;
    struct outcome outcome =
        fetch(fixture, &(struct http_fetch_request){.url = url_of(fixture, "/early"), .method = "HEAD"});

    assert_int_equal(outcome.error, 0);
    assert_int_equal(outcome.status, 403);
    assert_int_equal(outcome.body.length, 0);
}

static void test_connection_is_used_again(void **state)
{
    struct fixture *fixture = *state;

    for (size_t i = 0; i < 5; i++) {
        struct outcome outcome = fetch(fixture, &(struct http_fetch_request){.url = url_of(fixture, "/echo")});
        assert_int_equal(outcome.status, 200);
    }
    assert_int_equal(fixture->service.accepts, 1);
}

static void test_large_body_makes_the_round_trip(void **state)
{
    enum { LENGTH = 8 * 1024 * 1024 };
    struct fixture *fixture = *state;
    CLEANUP(buffer_deinit) struct buffer body = BUFFER_INIT;
    struct http_fetch_request request = {.url = url_of(fixture, "/echo"), .method = "POST", .body = &body};
    struct outcome outcome;

    assert_int_equal(buffer_reserve(&body, LENGTH), 0);
    for (body.length = 0; body.length < LENGTH; body.length++)
        body.data[body.length] = (char)(body.length * 2654435761u >> 9);
    outcome = fetch(fixture, &request);
    assert_int_equal(outcome.error, 0);
    assert_int_equal(outcome.body.length, LENGTH);
    for (size_t i = 0; i < LENGTH; i++)
        if (outcome.body.data[i] != (char)(i * 2654435761u >> 9))
            fail_msg("byte %zu differs", i);
    buffer_deinit(&outcome.body);
}

static void test_many_fetches_at_once(void **state)
{
    enum { COUNT = 50 };
    struct fixture *fixture = *state;
    struct outcome outcomes[COUNT] = {0};
    struct http_fetch_request request = {.url = url_of(fixture, "/park")};

    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(http_client_fetch(fixture->client, &request, on_done, &outcomes[i], NULL), 0);
    assert_int_equal(http_client_fetches(fixture->client), COUNT);
    wait_until(&fixture->service, fixture->service.parked_count == COUNT);
    for (size_t i = 0; i < COUNT; i++)
        http_respond(fixture->service.parked[i], 202, NULL, 0, NULL);
    wait_until(&fixture->service, http_client_fetches(fixture->client) == 0);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(outcomes[i].calls, 1);
        assert_int_equal(outcomes[i].status, 202);
    }
}

static void test_cancelled_fetch_tells_nobody(void **state)
{
    struct fixture *fixture = *state;
    struct http_fetch_request request = {.url = url_of(fixture, "/park")};
    struct outcome outcome = {.fixture = fixture};
    struct http_fetch *fetch;

    assert_int_equal(http_client_fetch(fixture->client, &request, on_done, &outcome, &fetch), 0);
    http_fetch_cancel(fetch); /* before anything was sent */
    assert_int_equal(http_client_fetch(fixture->client, &request, on_done, &outcome, &fetch), 0);
    wait_until(&fixture->service, fixture->service.parked_count == 1);
    http_fetch_cancel(fetch);
    wait_until(&fixture->service, fixture->service.gones == 1);
    assert_int_equal(outcome.calls, 0);
    assert_int_equal(http_client_fetches(fixture->client), 0);
}

static void test_callback_may_cancel_others_and_free_the_client(void **state)
{
    struct fixture *fixture = *state;
    struct http_fetch_request parked = {.url = url_of(fixture, "/park")};
    struct outcome others[2] = {{.fixture = fixture}, {.fixture = fixture}};
    struct outcome outcome = {.fixture = fixture, .frees_client = true};
    struct http_fetch *fetches[2];

    for (size_t i = 0; i < 2; i++)
        assert_int_equal(http_client_fetch(fixture->client, &parked, on_done, &others[i], &fetches[i]), 0);
    wait_until(&fixture->service, fixture->service.parked_count == 2);
    outcome.cancels = fetches[0];
    assert_int_equal(http_client_fetch(fixture->client, &(struct http_fetch_request){.url = url_of(fixture, "/empty")},
                                       on_done, &outcome, NULL),
                     0);
    wait_until(&fixture->service, outcome.calls == 1);
    assert_null(fixture->client);
    wait_until(&fixture->service, fixture->service.gones == 2);
    assert_int_equal(others[0].calls + others[1].calls, 0);
    assert_int_equal(outcome.status, 204);
}

#define client_test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        client_test(test_what_cannot_be_sent_is_refused),
        client_test(test_refused_connection_is_told),
        client_test(test_silent_server_times_out),
        client_test(test_too_large_response_is_cut_off),
        client_test(test_too_large_streamed_response_is_cut_off),
        client_test(test_broken_off_response_is_told),
        client_test(test_response_comes_with_status_headers_and_body),
        client_test(test_request_is_sent_as_asked),
        client_test(test_head_has_no_body),
        client_test(test_connection_is_used_again),
        client_test(test_large_body_makes_the_round_trip),
        client_test(test_many_fetches_at_once),
        client_test(test_cancelled_fetch_tells_nobody),
        client_test(test_callback_may_cancel_others_and_free_the_client),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
