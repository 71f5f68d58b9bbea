/* Bodies that are handed on in pieces. */
#include "http/testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define POST_PIECES(limit) "POST /pieces/" limit " HTTP/1.1\r\nHost: kiln\r\n"
#define CHUNKED            "Transfer-Encoding: chunked\r\n\r\n"

static int setup(void **state)
{
    struct service *service = calloc(1, sizeof(*service));

    assert_non_null(service);
    service_start(service, NULL, true);
    *state = service;
    return 0;
}

static int teardown(void **state)
{
    service_stop(*state);
    free(*state);
    return 0;
}

static void assert_pieces(const struct service *service, const char *expected)
{
    assert_true(span_equal(buffer_span(&service->pieces), span_from(expected)));
}

static void answer_parked(struct service *service, struct peer *peer, int status)
{
    struct response response;

    http_respond(service->parked[service->parked_count - 1], status, NULL, 0, NULL);
    response = peer_response(service, peer);
    assert_int_equal(response.status, status);
    response_deinit(&response);
}

static void test_pieces_come_before_the_body_is_complete(void **state)
{
    struct service *service = *state;
    struct peer peer = peer_connect(service);

    assert_true(peer_send_text(service, &peer, POST_PIECES("100") "Content-Length: 6\r\n\r\nabc"));
    wait_until(service, service->pieces.length == 3);
    assert_int_equal(service->requests, 0);
    assert_true(peer_send_text(service, &peer, "def"));
    wait_until(service, service->requests == 1);
    assert_pieces(service, "abcdef");
    assert_int_equal(http_request_body(service->parked[0]).length, 0);
    answer_parked(service, &peer, 202);
    /* The connection goes on. */
    assert_answer(service, &peer, "GET /echo HTTP/1.1\r\nHost: kiln\r\n\r\n", 200);
    peer_close(&peer);
}

static void test_chunks_come_without_their_framing_and_trailers_are_kept(void **state)
{
    struct service *service = *state;
    struct peer peer = peer_connect(service);

    assert_true(peer_send_text(service, &peer, POST_PIECES("100") CHUNKED "3\r\nabc\r\n2\r\nde"));
    wait_until(service, service->pieces.length == 5);
    assert_true(peer_send_text(service, &peer, "\r\n0\r\nError-Type: Oh.No\r\nerror-body:  x:y \r\n\r\n"));
    wait_until(service, service->requests == 1);
    assert_pieces(service, "abcde");
    assert_true(span_equal(http_request_trailer(service->parked[0], SPAN("error-type")), SPAN("Oh.No")));
    assert_true(span_equal(http_request_trailer(service->parked[0], SPAN("Error-Body")), SPAN("x:y")));
    assert_null(http_request_trailer(service->parked[0], SPAN("Error")).data);
    answer_parked(service, &peer, 202);
    assert_answer(service, &peer, "GET /echo HTTP/1.1\r\nHost: kiln\r\n\r\n", 200);
    peer_close(&peer);
}

static void test_nothing_is_read_while_paused(void **state)
{
    enum { TOTAL = 8 * 1024 * 1024, AT_ONCE = 1024 * 1024 };
    struct service *service = *state;
    struct peer peer = peer_connect(service);
    char *block = calloc(1, AT_ONCE);
    size_t sent = 0;
    size_t came;

    assert_non_null(block);
    service->pauses_pieces = true;
    assert_true(peer_send_text(service, &peer, POST_PIECES("8388608") "Content-Length: 8388608\r\n\r\n"));
    while (sent < TOTAL || service->pieces.length < TOTAL) {
        ssize_t n = send(peer.fd, block, MIN((size_t)AT_ONCE, TOTAL - sent), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0) {
            sent += (size_t)n;
            continue;
        }
        if (service->pieces.length > TOTAL / 4) { /* the rest at full speed */
            service->pauses_pieces = false;
            http_request_pause_body(service->parked[0], false);
            service_turn(service);
            continue;
        }
        /* The kernel takes no more: the server has stopped reading. One piece a release. */
        service_linger(service, 3);
        came = service->pieces.length;
        service_linger(service, 3);
        assert_int_equal(service->pieces.length, came);
        http_request_pause_body(service->parked[0], false);
        wait_until(service, service->pieces.length > came);
    }
    wait_until(service, service->requests == 1);
    assert_int_equal(service->pieces.length, TOTAL);
    answer_parked(service, &peer, 202);
    free(block);
    peer_close(&peer);
}

static void test_the_limit_holds_for_pieces(void **state)
{
    struct service *service = *state;
    struct peer peer = peer_connect(service);
    struct response response;

    assert_true(peer_send_text(service, &peer, POST_PIECES("5") CHUNKED "5\r\nabcde\r\n1\r\nf"));
    response = peer_response(service, &peer);
    assert_int_equal(response.status, 413);
    assert_int_equal(service->gones, 1);
    assert_pieces(service, "abcde");
    response_deinit(&response);
    peer_close(&peer);
}

static void test_an_answer_before_the_end_stops_the_pieces(void **state)
{
    struct service *service = *state;
    struct peer peer = peer_connect(service);

    assert_true(peer_send_text(service, &peer, POST_PIECES("100") CHUNKED "3\r\nabc\r\n"));
    wait_until(service, service->pieces.length == 3);
    answer_parked(service, &peer, 400);
    assert_true(peer_send_text(service, &peer, "3\r\ndef\r\n0\r\n\r\n"));
    assert_true(peer_wait_end(service, &peer));
    assert_pieces(service, "abc");
    assert_int_equal(service->requests, 0);
    peer_close(&peer);
}

static void test_a_peer_that_vanishes_is_told(void **state)
{
    struct service *service = *state;
    struct peer peer = peer_connect(service);

    assert_true(peer_send_text(service, &peer, POST_PIECES("100") CHUNKED "3\r\nabc\r\n"));
    wait_until(service, service->pieces.length == 3);
    peer_close(&peer);
    wait_until(service, service->gones == 1);
    assert_int_equal(service->requests, 0);
}

static void test_trailers_have_a_limit(void **state)
{
    struct service service = {0};
    struct response response;
    struct peer peer;

    (void)state;
    service_start(&service, &(struct http_server_config){.header_bytes = 1024}, true);
    peer = peer_connect(&service);
    assert_true(peer_send_text(&service, &peer, POST_PIECES("100") CHUNKED "0\r\nA: "));
    for (size_t i = 0; i < 1100 / 10; i++)
        if (!peer_send_text(&service, &peer, "0123456789"))
            break;
    response = peer_response(&service, &peer);
    assert_int_equal(response.status, 431);
    response_deinit(&response);
    peer_close(&peer);
    service_stop(&service);
}

#define body_test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        body_test(test_pieces_come_before_the_body_is_complete),
        body_test(test_chunks_come_without_their_framing_and_trailers_are_kept),
        body_test(test_nothing_is_read_while_paused),
        body_test(test_the_limit_holds_for_pieces),
        body_test(test_an_answer_before_the_end_stops_the_pieces),
        body_test(test_a_peer_that_vanishes_is_told),
        cmocka_unit_test(test_trailers_have_a_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
