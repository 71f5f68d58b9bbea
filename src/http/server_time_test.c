/* Slow and silent peers. Every timeout is set to a few milliseconds where it is what is tested. */
#include "http/testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>

#include <cmocka.h>

#define HOST "Host: kiln\r\n"

static void assert_times_out(const struct http_server_config *config, const char *sent, int status)
{
    struct service service;
    struct peer peer;

    service_start(&service, config, true);
    peer = peer_connect(&service);
    assert_true(peer_send_text(&service, &peer, sent));
    if (status) {
        struct response response = peer_response(&service, &peer);
        assert_int_equal(response.status, status);
        assert_true(response_has(&response, "\r\nConnection: close\r\n"));
        response_deinit(&response);
    }
    assert_true(peer_wait_end(&service, &peer));
    peer_close(&peer);
    wait_until(&service, http_server_connections(service.server) == 0);
    assert_int_equal(service.gones, service.heads);
    service_stop(&service);
}

static void test_slow_header_is_refused(void **state)
{
    (void)state;
    assert_times_out(&(struct http_server_config){.header_timeout_ms = 20}, "GET / HTTP/1.1\r\nHost:", 408);
}

static void test_silent_body_is_refused_and_the_handler_told(void **state)
{
    (void)state;
    assert_times_out(&(struct http_server_config){.body_timeout_ms = 20},
                     "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\n123", 408);
    assert_times_out(&(struct http_server_config){.body_timeout_ms = 20},
                     "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n5\r\n123", 408);
}

static void test_idle_connection_is_closed(void **state)
{
    (void)state;
    assert_times_out(&(struct http_server_config){.idle_timeout_ms = 20}, "", 0);
}

/* A byte now and then does not help a header past its deadline (slowloris), nor does a request before it. */
static void test_dripping_header_is_refused(void **state)
{
    static const char drip[] = "X-Header: and so on and so on and so on and so on";
    struct service service;
    struct peer peer;
    struct response response = {0};
    uint64_t start;

    (void)state;
    service_start(&service, &(struct http_server_config){.header_timeout_ms = 60}, true);
    peer = peer_connect(&service);
    assert_answer(&service, &peer, "GET /echo HTTP/1.1\r\n" HOST "\r\n", 200);
    start = uv_hrtime();
    assert_true(peer_send_text(&service, &peer, "GET /echo HTTP/1.1\r\n" HOST));
    for (size_t i = 0; i < sizeof(drip) - 1 && !peer.in.length; i++) {
        assert_true(peer_send(&service, &peer, span_of(drip + i, 1)));
        service_linger(&service, 5);
        peer_receive(&peer);
    }
    response = peer_response(&service, &peer);
    assert_int_equal(response.status, 408);
    assert_true(uv_hrtime() - start >= 55 * UINT64_C(1000000));
    response_deinit(&response);
    peer_close(&peer);
    service_stop(&service);
}

/* The body's timeout is for silence: a body that takes longer than it, and keeps coming, is fine. */
static void test_steady_slow_body_is_accepted(void **state)
{
    struct service service;
    struct peer peer;
    struct response response;

    (void)state;
    service_start(&service, &(struct http_server_config){.body_timeout_ms = 1500, .header_timeout_ms = 500}, true);
    peer = peer_connect(&service);
    assert_true(peer_send_text(&service, &peer, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 15\r\n\r\n"));
    for (size_t i = 0; i < 15; i++) {
        assert_true(peer_send_text(&service, &peer, "x"));
        service_linger(&service, 120); /* a busy machine may stretch this tenfold */
    }
    response = peer_response(&service, &peer);
    assert_int_equal(response.status, 200);
    assert_int_equal(response.body.length, 15);
    response_deinit(&response);
    peer_close(&peer);
    service_stop(&service);
}

static void test_handling_has_no_timeout(void **state)
{
    const struct http_server_config config = {
        .header_timeout_ms = 10, .body_timeout_ms = 10, .idle_timeout_ms = 10, .write_timeout_ms = 10};
    struct service service;
    struct peer peer;
    struct response response;

    (void)state;
    service_start(&service, &config, true);
    peer = peer_connect(&service);
    assert_true(peer_send_text(&service, &peer, "GET /park HTTP/1.1\r\n" HOST "\r\n"));
    wait_until(&service, service.parked_count == 1);
    service_linger(&service, 50);
    assert_int_equal(service.gones, 0);
    http_respond(service.parked[0], 200, NULL, 0, NULL);
    response = peer_response(&service, &peer);
    assert_int_equal(response.status, 200);
    response_deinit(&response);
    peer_close(&peer);
    service_stop(&service);
}

static void put_bytes(struct buffer *buffer, size_t length)
{
    assert_int_equal(buffer_reserve(buffer, length), 0);
    memset(buffer->data, 'x', length);
    buffer->length = length;
}

static void test_answer_that_nobody_reads_is_given_up(void **state)
{
    struct service service;
    struct peer peer;
    struct buffer body = BUFFER_INIT;

    (void)state;
    service_start(&service, &(struct http_server_config){.write_timeout_ms = 20}, true);
    peer = peer_connect(&service);
    assert_true(peer_send_text(&service, &peer, "GET /park HTTP/1.1\r\n" HOST "\r\n"));
    wait_until(&service, service.parked_count == 1);
    put_bytes(&body, 32 * 1024 * 1024);
    http_respond(service.parked[0], 200, NULL, 0, &body);
    assert_null(body.data);
    wait_until(&service, http_server_connections(service.server) == 0);
    assert_int_equal(service.gones, 0); /* the pointer was dead since http_respond */
    peer_close(&peer);
    service_stop(&service);
}

static void test_streamed_answer_that_nobody_reads_is_given_up_and_the_handler_told(void **state)
{
    struct service service;
    struct peer peer;
    struct buffer chunk = BUFFER_INIT;

    (void)state;
    service_start(&service, &(struct http_server_config){.write_timeout_ms = 20}, true);
    peer = peer_connect(&service);
    assert_true(peer_send_text(&service, &peer, "GET /stream HTTP/1.1\r\n" HOST "\r\n"));
    wait_until(&service, service.parked_count == 1);
    put_bytes(&chunk, 32 * 1024 * 1024);
    assert_true(http_response_write(service.parked[0], &chunk) > 1024 * 1024);
    wait_until(&service, service.gones == 1);
    assert_int_equal(http_server_connections(service.server), 0);
    assert_int_equal(service.drains, 0);
    peer_close(&peer);
    service_stop(&service);
}

static void receive_exactly(struct service *service, struct peer *peer, size_t length)
{
    size_t end = peer->in.length + length;

    assert_int_equal(buffer_reserve(&peer->in, length), 0);
    while (peer->in.length < end) {
        ssize_t count = recv(peer->fd, peer->in.data + peer->in.length, end - peer->in.length, MSG_DONTWAIT);
        assert_true(count > 0 || (count < 0 && errno == EAGAIN));
        peer->in.length += count > 0 ? (size_t)count : 0;
        service_turn(service);
    }
}

/* Reads a megabyte now and then: the deadline is for progress, not for the whole. */
static void test_slow_reader_gets_all(void **state)
{
    enum { MIB = 1024 * 1024, MIBS = 16 };
    struct service service;
    struct peer peer;
    struct buffer body = BUFFER_INIT;
    struct response response;
    int window = 256 * 1024; /* small, so that every read lets the server go on */

    (void)state;
    service_start(&service, &(struct http_server_config){.write_timeout_ms = 2000}, true);
    peer = peer_connect(&service);
    assert_int_equal(setsockopt(peer.fd, SOL_SOCKET, SO_RCVBUF, &window, sizeof(window)), 0);
    assert_true(peer_send_text(&service, &peer, "GET /park HTTP/1.1\r\n" HOST "\r\n"));
    wait_until(&service, service.parked_count == 1);
    put_bytes(&body, MIBS * MIB);
    http_respond(service.parked[0], 200, NULL, 0, &body);
    for (size_t i = 0; i < MIBS; i++) {
        service_linger(&service, 150);
        receive_exactly(&service, &peer, MIB);
    }
    response = peer_response(&service, &peer);
    assert_int_equal(response.body.length, MIBS * MIB);
    response_deinit(&response);
    peer_close(&peer);
    service_stop(&service);
}

static void count_call(void *context)
{
    ++*(size_t *)context;
}

/* Sent bytes and the state they leave the connection in; the peer never sends the rest. */
static void assert_shutdown_drops(const char *sent, size_t heads, int status)
{
    struct service service;
    struct peer peer;
    size_t done = 0;

    service_start(&service, &(struct http_server_config){.body_bytes = 10, .stop_timeout_ms = 20}, true);
    peer = peer_connect(&service);
    assert_true(peer_send_text(&service, &peer, sent));
    wait_until(&service, http_server_connections(service.server) == 1 && service.heads == heads);
    service_linger(&service, 5);
    if (status) {
        struct response response = peer_response(&service, &peer);
        assert_int_equal(response.status, status);
        response_deinit(&response);
    }
    http_server_shutdown(service.server, count_call, &done);
    wait_until(&service, done == 1);
    assert_true(peer_wait_end(&service, &peer));
    assert_int_equal(http_server_connections(service.server), 0);
    assert_int_equal(service.gones, status ? 0 : heads);
    peer_close(&peer);
    service_stop(&service);
}

static void test_shutdown_does_not_wait_for_half_a_request(void **state)
{
    (void)state;
    assert_shutdown_drops("GET / HT", 0, 0);
    assert_shutdown_drops("GET /echo HTTP/1.1\r\nHost:", 0, 0);
    assert_shutdown_drops("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\n123", 1, 0);
    assert_shutdown_drops("POST /early HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\n123", 1, 403);
}

static void test_draining_is_bounded_in_time(void **state)
{
    struct service service;
    struct peer peer;
    struct response response;

    (void)state;
    service_start(&service, &(struct http_server_config){.body_bytes = 10, .drain_timeout_ms = 20}, true);
    peer = peer_connect(&service);
    assert_true(peer_send_text(&service, &peer, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1000\r\n\r\n"));
    response = peer_response(&service, &peer);
    assert_int_equal(response.status, 413);
    response_deinit(&response);
    wait_until(&service, http_server_connections(service.server) == 0); /* the peer never closes */
    peer_close(&peer);
    service_stop(&service);
}

static void test_draining_is_bounded_in_bytes(void **state)
{
    struct service service;
    struct peer peer;
    char *body = calloc(1, 4 * 1024 * 1024);
    bool open = true;

    (void)state;
    assert_non_null(body);
    service_start(&service, &(struct http_server_config){.body_bytes = 10, .drain_bytes = 100 * 1024}, true);
    peer = peer_connect(&service);
    assert_true(peer_send_text(&service, &peer, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 100000000\r\n\r\n"));
    for (size_t i = 0; i < 25 && open; i++)
        open = peer_send(&service, &peer, span_of(body, 4 * 1024 * 1024));
    assert_false(open);
    assert_int_equal(http_server_connections(service.server), 0);
    free(body);
    peer_close(&peer);
    service_stop(&service);
}

/* Callers, however many, cannot keep a runtime from connecting either. A frozen runtime neither finishes its header or
 * body nor reads its answer, and is not given up for it. */
static void test_patient_listener_waits_for_ever(void **state)
{
    const struct http_server_config config = {.header_timeout_ms = 10,
                                              .body_timeout_ms = 10,
                                              .idle_timeout_ms = 10,
                                              .write_timeout_ms = 10,
                                              .connections = 1};
    static const char *const beginnings[] = {"", "GET /echo HTT",
                                             "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\n1"};
    struct service service;
    struct peer peers[3];

    (void)state;
    service_start(&service, &config, false);
    service_adopt(&service, SOCK_STREAM, true);
    for (size_t i = 0; i < 3; i++) {
        peers[i] = peer_connect_unix(&service);
        assert_true(peer_send_text(&service, &peers[i], beginnings[i]));
    }
    service_linger(&service, 60);
    assert_int_equal(http_server_connections(service.server), 3);
    assert_answer(&service, &peers[0], "GET /echo HTTP/1.1\r\n" HOST "\r\n", 200);
    assert_answer(&service, &peers[1], "P/1.1\r\n" HOST "\r\n", 200);
    assert_answer(&service, &peers[2], "2345", 200);
    for (size_t i = 0; i < 3; i++)
        peer_close(&peers[i]);
    http_listener_close(service.listener, true);
    service_stop(&service);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slow_header_is_refused),
        cmocka_unit_test(test_silent_body_is_refused_and_the_handler_told),
        cmocka_unit_test(test_idle_connection_is_closed),
        cmocka_unit_test(test_dripping_header_is_refused),
        cmocka_unit_test(test_steady_slow_body_is_accepted),
        cmocka_unit_test(test_handling_has_no_timeout),
        cmocka_unit_test(test_answer_that_nobody_reads_is_given_up),
        cmocka_unit_test(test_streamed_answer_that_nobody_reads_is_given_up_and_the_handler_told),
        cmocka_unit_test(test_slow_reader_gets_all),
        cmocka_unit_test(test_shutdown_does_not_wait_for_half_a_request),
        cmocka_unit_test(test_draining_is_bounded_in_time),
        cmocka_unit_test(test_draining_is_bounded_in_bytes),
        cmocka_unit_test(test_patient_listener_waits_for_ever),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
