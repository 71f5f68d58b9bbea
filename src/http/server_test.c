/* Requests and answers over real connections: refusals first, then what must work. */
#include "http/testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#define HOST "Host: kiln\r\n"

static int setup(void **state)
{
    struct service *service = calloc(1, sizeof(*service));

    assert_non_null(service);
    service_start(service, &(struct http_server_config){.header_bytes = 4096, .body_bytes = 1000}, true);
    *state = service;
    return 0;
}

static int teardown(void **state)
{
    service_stop(*state);
    free(*state);
    return 0;
}

/* The refusal comes, says so, and ends the connection in an orderly way. */
static void assert_refusal(struct service *service, const char *request, int status)
{
    struct peer peer = peer_connect(service);
    struct response response;

    assert_true(peer_send_text(service, &peer, request));
    response = peer_response(service, &peer);
    assert_int_equal(response.status, status);
    assert_true(response_has(&response, "\r\nConnection: close\r\n"));
    assert_true(peer_wait_end(service, &peer));
    response_deinit(&response);
    peer_close(&peer);
    wait_until(service, http_server_connections(service->server) == 0);
}

static void test_malformed_requests_are_refused(void **state)
{
    struct service *service = *state;

    assert_refusal(service, "nonsense\r\n\r\n", 400);
    assert_refusal(service, "GET / HTTP/1.1\r\n\r\n", 400);
    assert_refusal(service, "GET / HTTP/2.0\r\n" HOST "\r\n", 505);
    assert_refusal(service, "BREW / HTTP/1.1\r\n" HOST "\r\n", 501);
    assert_refusal(service, "POST / HTTP/1.1\r\n" HOST "Expect: gold\r\nContent-Length: 1\r\n\r\n", 417);
    assert_refusal(service,
                   "POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400);
    assert_int_equal(service->heads, 0);
}

static void test_bad_chunk_size_is_refused_and_the_handler_told(void **state)
{
    struct service *service = *state;

    assert_refusal(service, "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nxyz\r\n", 400);
    assert_int_equal(service->heads, 1);
    assert_int_equal(service->requests, 0);
    assert_int_equal(service->gones, 1);
}

static void test_header_limit_and_one_past(void **state)
{
    struct service *service = *state;
    char text[4097 + 1];
    struct peer peer = peer_connect(service);

    snprintf(text, sizeof(text), "GET /echo HTTP/1.1\r\n" HOST "X: %0*d\r\n\r\n", 4096 - 39, 0);
    assert_int_equal(strlen(text), 4096);
    assert_answer(service, &peer, text, 200);
    peer_close(&peer);
    snprintf(text, sizeof(text), "GET /echo HTTP/1.1\r\n" HOST "X: %0*d\r\n\r\n", 4097 - 39, 0);
    assert_refusal(service, text, 431);
}

static void test_body_limit_and_one_past(void **state)
{
    struct service *service = *state;
    char text[4096];
    struct peer peer = peer_connect(service);

    snprintf(text, sizeof(text), "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1000\r\n\r\n%01000d", 0);
    assert_answer(service, &peer, text, 200);
    peer_close(&peer);
    assert_refusal(service, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1001\r\n\r\n", 413);
    assert_int_equal(service->requests, 1);
    assert_int_equal(service->gones, 1);
}

static void test_body_limit_of_a_route(void **state)
{
    struct service *service = *state;
    struct peer peer = peer_connect(service);

    assert_answer(service, &peer, "POST /limit/3 HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc", 200);
    assert_answer(service, &peer,
                  "POST /limit/3 HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 200);
    peer_close(&peer);
    assert_refusal(service, "POST /limit/3 HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\nabcd", 413);
}

static void test_chunked_body_is_refused_as_soon_as_a_size_exceeds_the_limit(void **state)
{
    struct service *service = *state;

    /* The second chunk is only announced. */
    assert_refusal(service,
                   "POST /limit/10 HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n8\r\n12345678\r\n3\r\n", 413);
    assert_refusal(service, "POST /limit/10 HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nfffffffffffffff\r\n",
                   413);
    assert_int_equal(service->requests, 0);
}

static void test_refusals_take_the_owners_form(void **state)
{
    struct service *service = *state;
    struct peer peer = peer_connect(service);
    struct response response;

    service->names_refusals = true;
    assert_true(peer_send_text(service, &peer, "GET /\r\n\r\n"));
    response = peer_response(service, &peer);
    assert_int_equal(response.status, 400);
    assert_true(response_has(&response, "\r\nContent-Type: application/json\r\n"));
    assert_true(span_equal(buffer_span(&response.body), SPAN("{\"refused\":400}")));
    response_deinit(&response);
    peer_close(&peer);
}

static void test_refusal_knows_the_request_and_comes_before_its_end(void **state)
{
    struct service *service = *state;
    struct peer peer = peer_connect(service);
    struct response response;

    service->names_refusals = true;
    assert_true(peer_send_text(service, &peer,
                               "POST /limit/3 HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n"));
    response = peer_response(service, &peer);
    assert_int_equal(response.status, 413);
    assert_true(response_has(&response, "\r\nX-Refused: /limit/3\r\n"));
    assert_true(span_equal(buffer_span(&response.body), SPAN("{\"refused\":413}")));
    assert_int_equal(service->gones_at_refusal, 0);
    assert_int_equal(service->gones, 1);
    response_deinit(&response);
    peer_close(&peer);
}

static void test_unwanted_peer_is_closed_at_once(void **state)
{
    struct service *service = *state;
    struct peer peer = peer_connect(service);

    service->refuses_accept = true;
    assert_true(peer_wait_end(service, &peer));
    assert_int_equal(service->accepts, 1);
    assert_int_equal(http_server_connections(service->server), 0);
    peer_close(&peer);
}

static void test_connection_is_kept_and_used_again(void **state)
{
    struct service *service = *state;
    struct peer peer = peer_connect(service);

    for (size_t i = 0; i < 10; i++) {
        assert_true(peer_send_text(service, &peer, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello"));
        assert_echo(service, &peer, SPAN("hello"));
    }
    assert_int_equal(service->accepts, 1);
    peer_close(&peer);
}

static void test_answer_carries_date_and_length(void **state)
{
    struct service *service = *state;
    struct peer peer = peer_connect(service);
    struct response response;
    struct tm parts = {0};
    ptrdiff_t at;

    assert_true(peer_send_text(service, &peer, "GET /echo HTTP/1.1\r\n" HOST "\r\n"));
    response = peer_response(service, &peer);
    assert_true(response_has(&response, "\r\nContent-Length: 0\r\n"));
    assert_false(response_has(&response, "Connection:"));
    at = span_find_span(buffer_span(&response.head), SPAN("\r\nDate: "));
    assert_true(at > 0);
    assert_non_null(strptime(response.head.data + at + 8, "%a, %d %b %Y %H:%M:%S GMT\r\n", &parts));
    assert_true(llabs((long long)timegm(&parts) - (long long)time(NULL)) <= 1);
    response_deinit(&response);
    peer_close(&peer);
}

static void test_byte_by_byte_request_is_understood(void **state)
{
    static const char text[] = "POST /echo?x HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
                               "5;ext=\"1\"\r\nhello\r\n6\r\n world\r\n0\r\nX-Trailer: 1\r\n\r\n";
    struct service *service = *state;
    struct peer peer = peer_connect(service);

    for (size_t round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof(text) - 1; i++) {
            assert_true(peer_send(service, &peer, span_of(text + i, 1)));
            service_turn(service);
        }
        assert_echo(service, &peer, SPAN("hello world"));
    }
    peer_close(&peer);
}

static void test_head_gets_the_length_and_no_body(void **state)
{
    struct service *service = *state;
    struct peer peer = peer_connect(service);
    struct response response;

    assert_true(peer_send_text(service, &peer, "HEAD /early HTTP/1.1\r\n" HOST "\r\n"));
    response = peer_head_response(service, &peer);
    assert_int_equal(response.status, 403);
    assert_true(response_has(&response, "\r\nContent-Length: 2\r\n"));
    response_deinit(&response);
    assert_answer(service, &peer, "GET /empty HTTP/1.1\r\n" HOST "\r\n", 204);
    assert_int_equal(peer.in.length, 0);
    peer_close(&peer);
}

static void test_no_content_has_no_length(void **state)
{
    struct service *service = *state;
    struct peer peer = peer_connect(service);
    struct response response;

    assert_true(peer_send_text(service, &peer, "GET /empty HTTP/1.1\r\n" HOST "\r\n"));
    response = peer_response(service, &peer);
    assert_int_equal(response.status, 204);
    assert_false(response_has(&response, "Content-Length"));
    response_deinit(&response);
    peer_close(&peer);
}

static void test_expecting_client_is_told_to_continue(void **state)
{
    struct service *service = *state;
    struct peer peer = peer_connect(service);
    struct response response;

    assert_true(peer_send_text(service, &peer,
                               "POST /echo HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n"));
    response = peer_interim_response(service, &peer);
    assert_int_equal(response.status, 100);
    response_deinit(&response);
    assert_true(peer_send_text(service, &peer, "hello"));
    assert_echo(service, &peer, SPAN("hello"));
    peer_close(&peer);
}

static void test_expecting_client_is_refused_before_its_body(void **state)
{
    struct service *service = *state;

    assert_refusal(service, "POST /echo HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 5000\r\n\r\n", 413);
    assert_refusal(service, "POST /early HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n", 403);
}

static void test_early_answer_keeps_the_connection_past_a_small_body(void **state)
{
    struct service *service = *state;
    struct peer peer = peer_connect(service);

    assert_answer(service, &peer, "POST /early HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\n01234", 403);
    assert_true(peer_send_text(service, &peer, "56789POST /echo HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nok"));
    assert_echo(service, &peer, SPAN("ok"));
    assert_int_equal(service->requests, 1);
    assert_int_equal(service->gones, 0);
    peer_close(&peer);
}

/* Sends all of a body that is refused before it reads anything, as simple clients do. */
static void assert_stubborn_client_reads_the_answer(struct service *service, const char *path, int status,
                                                    size_t length)
{
    struct peer peer = peer_connect(service);
    struct response response;
    char head[200];
    char *body = calloc(1, length);

    assert_non_null(body);
    snprintf(head, sizeof(head), "POST %s HTTP/1.1\r\n" HOST "Content-Length: %zu\r\n\r\n", path, length);
    assert_true(peer_send_text(service, &peer, head));
    assert_true(peer_send(service, &peer, span_of(body, length)));
    response = peer_response(service, &peer);
    assert_int_equal(response.status, status);
    assert_true(response_has(&response, "\r\nConnection: close\r\n"));
    assert_true(peer_wait_end(service, &peer));
    response_deinit(&response);
    peer_close(&peer);
    free(body);
    wait_until(service, http_server_connections(service->server) == 0);
}

static void test_client_that_goes_on_writing_reads_the_refusal(void **state)
{
    assert_stubborn_client_reads_the_answer(*state, "/echo", 413, 24 * 1024 * 1024);
    assert_stubborn_client_reads_the_answer(*state, "/early", 403, 24 * 1024 * 1024);
}

static void test_old_clients_are_served(void **state)
{
    struct service *service = *state;
    struct peer peer = peer_connect(service);
    struct response response;

    assert_true(peer_send_text(service, &peer,
                               "POST /echo HTTP/1.0\r\nContent-Length: 2\r\n"
                               "Connection: keep-alive\r\n\r\nhi"));
    response = peer_response(service, &peer);
    assert_int_equal(response.status, 200);
    assert_true(response_has(&response, "\r\nConnection: keep-alive\r\n"));
    response_deinit(&response);
    assert_true(peer_send_text(service, &peer, "GET /echo HTTP/1.0\r\n\r\n"));
    response = peer_response(service, &peer);
    assert_true(response_has(&response, "\r\nConnection: close\r\n"));
    assert_true(peer_wait_end(service, &peer));
    response_deinit(&response);
    peer_close(&peer);
}

static void test_either_side_may_ask_to_close(void **state)
{
    static const char *const requests[] = {"GET /echo HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n",
                                           "GET /close HTTP/1.1\r\n" HOST "\r\n"};
    struct service *service = *state;

    for (size_t i = 0; i < 2; i++) {
        struct peer peer = peer_connect(service);
        assert_true(peer_send_text(service, &peer, requests[i]));
        struct response response = peer_response(service, &peer);
        assert_int_equal(response.status, 200);
        assert_true(response_has(&response, "\r\nConnection: close\r\n"));
        assert_true(peer_wait_end(service, &peer));
        response_deinit(&response);
        peer_close(&peer);
    }
}

static void test_request_says_what_was_sent(void **state)
{
    struct service *service = *state;
    struct peer peer = peer_connect(service);
    struct http_request *request;

    assert_true(peer_send_text(service, &peer,
                               "PUT /park?a=%20&b HTTP/1.1\r\n" HOST "X-One: 1\r\nx-empty:\r\nContent-Length: 3\r\n"
                               "X-One: 2\r\n\r\nabc"));
    wait_until(service, service->parked_count == 1);
    request = service->parked[0];
    assert_true(span_equal(http_request_method(request), SPAN("PUT")));
    assert_true(span_equal(http_request_path(request), SPAN("/park")));
    assert_true(span_equal(http_request_query(request), SPAN("a=%20&b")));
    assert_int_equal(http_request_minor_version(request), 1);
    assert_int_equal(http_request_header_count(request), 5);
    assert_true(span_equal(http_request_header(request, SPAN("x-ONE")), SPAN("1")));
    assert_true(span_equal(http_request_header_at(request, 4).value, SPAN("2")));
    assert_non_null(http_request_header(request, SPAN("X-Empty")).data);
    assert_int_equal(http_request_header(request, SPAN("X-Empty")).length, 0);
    assert_null(http_request_header(request, SPAN("X-None")).data);
    assert_int_equal(http_request_content_length(request), 3);
    assert_true(span_equal(http_request_body(request), SPAN("abc")));
    assert_true(span_equal(http_request_peer(request), SPAN("127.0.0.1")));
    assert_ptr_equal(http_request_listener_context(request), service);
    assert_null(http_request_context(request));
    http_request_set_context(request, service);
    assert_ptr_equal(http_request_context(request), service);
    assert_non_null(arena_alloc(http_request_arena(request), 10000));
    http_respond(request, 200, NULL, 0, NULL);
    peer_close(&peer);
}

/* Six megabytes up and down: past the shared read buffer, and more than any socket buffer takes at once. */
static void test_large_body_makes_the_round_trip(void **state)
{
    enum { LENGTH = 6 * 1024 * 1024 };
    struct service *service = *state;
    struct peer peer = peer_connect(service);
    char *body = malloc(LENGTH);

    assert_non_null(body);
    for (size_t i = 0; i < LENGTH; i++)
        body[i] = (char)(i * 2654435761u >> 11);
    for (size_t round = 0; round < 2; round++) {
        char head[100];
        snprintf(head, sizeof(head), "POST /limit/%d HTTP/1.1\r\n" HOST "Content-Length: %d\r\n\r\n", LENGTH, LENGTH);
        assert_true(peer_send_text(service, &peer, head));
        assert_true(peer_send(service, &peer, span_of(body, LENGTH)));
        assert_echo(service, &peer, span_of(body, LENGTH));
    }
    free(body);
    peer_close(&peer);
}

#define server_test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        server_test(test_malformed_requests_are_refused),
        server_test(test_bad_chunk_size_is_refused_and_the_handler_told),
        server_test(test_header_limit_and_one_past),
        server_test(test_body_limit_and_one_past),
        server_test(test_body_limit_of_a_route),
        server_test(test_chunked_body_is_refused_as_soon_as_a_size_exceeds_the_limit),
        server_test(test_refusals_take_the_owners_form),
        server_test(test_refusal_knows_the_request_and_comes_before_its_end),
        server_test(test_unwanted_peer_is_closed_at_once),
        server_test(test_connection_is_kept_and_used_again),
        server_test(test_answer_carries_date_and_length),
        server_test(test_byte_by_byte_request_is_understood),
        server_test(test_head_gets_the_length_and_no_body),
        server_test(test_no_content_has_no_length),
        server_test(test_expecting_client_is_told_to_continue),
        server_test(test_expecting_client_is_refused_before_its_body),
        server_test(test_early_answer_keeps_the_connection_past_a_small_body),
        server_test(test_client_that_goes_on_writing_reads_the_refusal),
        server_test(test_old_clients_are_served),
        server_test(test_either_side_may_ask_to_close),
        server_test(test_request_says_what_was_sent),
        server_test(test_large_body_makes_the_round_trip),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
