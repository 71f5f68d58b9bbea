/* Peers that vanish, streaming, listeners that close, servers that end, many connections. */
#include "http/testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cmocka.h>

#define HOST "Host: kiln\r\n"
#define PARK "GET /park HTTP/1.1\r\n" HOST "\r\n"

enum { MIB = 1024 * 1024 };

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

static void put_bytes(struct buffer *buffer, size_t length)
{
    assert_int_equal(buffer_reserve(buffer, length), 0);
    memset(buffer->data, 'x', length);
    buffer->length = length;
}

static struct http_request *parked(struct service *service, struct peer *peer, const char *text)
{
    size_t before = service->parked_count;

    assert_true(peer_send_text(service, peer, text));
    wait_until(service, service->parked_count == before + 1);
    return service->parked[before];
}

/* --- vanishing peers -------------------------------------------------------------------------------------------- */

static void assert_vanishing_is_noticed(struct service *service, const char *sent, size_t gones)
{
    for (size_t i = 0; i < 2; i++) {
        struct peer peer = peer_connect(service);
        size_t heads = service->heads;
        size_t before = service->gones;
        assert_true(peer_send_text(service, &peer, sent));
        wait_until(service, service->heads == heads + gones);
        service_linger(service, 2);
        assert_int_equal(http_server_connections(service->server), 1);
        if (i)
            peer_reset(&peer);
        else
            peer_close(&peer);
        wait_until(service, http_server_connections(service->server) == 0);
        assert_int_equal(service->gones, before + gones);
    }
}

static void test_peer_vanishes_in_the_header(void **state)
{
    assert_vanishing_is_noticed(*state, "GET / HTTP/1.1\r\nHo", 0);
}

static void test_peer_vanishes_in_the_body(void **state)
{
    assert_vanishing_is_noticed(*state, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\n123", 1);
    assert_vanishing_is_noticed(*state, "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n9\r\n123", 1);
}

static void test_peer_vanishes_while_the_handler_works(void **state)
{
    assert_vanishing_is_noticed(*state, PARK, 1);
    assert_vanishing_is_noticed(*state, "GET /stream HTTP/1.1\r\n" HOST "\r\n", 1);
}

static void test_peer_vanishes_in_a_large_answer(void **state)
{
    struct service *service = *state;
    struct peer peer = peer_connect(service);
    struct http_request *request = parked(service, &peer, PARK);
    struct buffer body = BUFFER_INIT;

    put_bytes(&body, 32 * MIB);
    http_respond(request, 200, NULL, 0, &body);
    service_linger(service, 2);
    peer_reset(&peer);
    wait_until(service, http_server_connections(service->server) == 0);
    assert_int_equal(service->gones, 0);
}

static void test_answer_to_a_vanished_peer_is_dropped(void **state)
{
    struct service *service = *state;
    struct peer peer = peer_connect(service);
    struct http_request *request = parked(service, &peer, PARK);

    peer_reset(&peer); /* not seen by the loop yet */
    http_respond(request, 200, NULL, 0, NULL);
    wait_until(service, http_server_connections(service->server) == 0);
    assert_int_equal(service->gones, 0);
}

static void test_streaming_to_a_vanished_peer_tells_on_a_later_turn(void **state)
{
    struct service *service = *state;
    struct peer peer = peer_connect(service);
    struct http_request *request = parked(service, &peer, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
    struct buffer chunk = BUFFER_INIT;

    service_linger(service, 2);
    peer_reset(&peer); /* the first write hits the reset before the loop has seen it */
    put_bytes(&chunk, 1000);
    http_response_write(request, &chunk);
    assert_int_equal(service->gones, 0);
    put_bytes(&chunk, 1000);
    http_response_write(request, &chunk);
    assert_null(chunk.data);
    wait_until(service, service->gones == 1);
    assert_int_equal(http_server_connections(service->server), 0);
}

static void test_peer_that_ends_its_side_while_reading_gets_all(void **state)
{
    struct service *service = *state;
    struct peer peer = peer_connect(service);
    struct http_request *request = parked(service, &peer, PARK);
    struct buffer body = BUFFER_INIT;
    struct response response;

    put_bytes(&body, 32 * MIB);
    http_respond(request, 200, NULL, 0, &body);
    assert_int_equal(shutdown(peer.fd, SHUT_WR), 0);
    response = peer_response(service, &peer);
    assert_int_equal(response.body.length, 32 * MIB);
    assert_true(peer_wait_end(service, &peer));
    response_deinit(&response);
    peer_close(&peer);
}

/* --- streaming -------------------------------------------------------------------------------------------------- */

static void stream_text(struct http_request *request, const char *text)
{
    struct buffer chunk = BUFFER_INIT;

    assert_int_equal(buffer_append_span(&chunk, span_from(text)), 0);
    http_response_write(request, &chunk);
    assert_null(chunk.data);
}

static bool has_received(struct peer *peer, const char *text)
{
    peer_receive(peer);
    return span_find_span(buffer_span(&peer->in), span_from(text)) >= 0;
}

static void assert_body_of(struct service *service, struct peer *peer, const char *field, const char *body)
{
    struct response response = peer_response(service, peer);

    assert_int_equal(response.status, 200);
    assert_true(response_has(&response, field));
    assert_true(span_equal(buffer_span(&response.body), span_from(body)));
    response_deinit(&response);
}

static void test_streamed_answer_is_chunked(void **state)
{
    struct service *service = *state;
    struct peer peer = peer_connect(service);
    const struct http_header trailer = {SPAN("X-Sum"), SPAN("9")};
    struct http_request *request = parked(service, &peer, "GET /stream HTTP/1.1\r\n" HOST "\r\n");

    wait_until(service, has_received(&peer, "\r\nTransfer-Encoding: chunked\r\n")); /* without a chunk yet */
    stream_text(request, "hello");
    stream_text(request, "");
    wait_until(service, has_received(&peer, "5\r\nhello\r\n"));
    stream_text(request, " world");
    http_response_end(request, &trailer, 1);
    wait_until(service, has_received(&peer, "0\r\nX-Sum: 9\r\n\r\n"));
    assert_body_of(service, &peer, "Transfer-Encoding", "hello world");
    assert_answer(service, &peer, "GET /echo HTTP/1.1\r\n" HOST "\r\n", 200);
    peer_close(&peer);
}

static void test_streamed_answer_to_an_old_client_ends_with_the_connection(void **state)
{
    struct service *service = *state;
    struct peer peer = peer_connect(service);
    struct http_request *request = parked(service, &peer, "GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");

    stream_text(request, "hello");
    http_response_end(request, NULL, 0);
    assert_true(peer_wait_end(service, &peer));
    assert_body_of(service, &peer, "\r\nConnection: close\r\n", "hello");
    peer_close(&peer);
}

static void test_streamed_answer_with_length_is_held_to_it(void **state)
{
    struct service *service = *state;
    struct peer peer = peer_connect(service);
    struct http_request *request = parked(service, &peer, "GET /length HTTP/1.1\r\n" HOST "\r\n");

    stream_text(request, "0123456");
    stream_text(request, "789 and more");
    stream_text(request, "and more");
    http_response_end(request, NULL, 0);
    assert_body_of(service, &peer, "\r\nContent-Length: 10\r\n", "0123456789");
    request = parked(service, &peer, "GET /length HTTP/1.1\r\n" HOST "\r\n");
    stream_text(request, "012345678");
    http_response_end(request, NULL, 0);
    assert_false(peer_wait_end(service, &peer)); /* a reset: the answer is visibly incomplete */
    peer_close(&peer);
}

static void test_streamed_answer_to_head_has_no_body(void **state)
{
    struct service *service = *state;
    struct peer peer = peer_connect(service);
    struct http_request *request = parked(service, &peer, "HEAD /stream HTTP/1.1\r\n" HOST "\r\n");
    struct response response;

    stream_text(request, "hello");
    http_response_end(request, NULL, 0);
    response = peer_head_response(service, &peer);
    assert_int_equal(response.status, 200);
    response_deinit(&response);
    assert_answer(service, &peer, "GET /echo HTTP/1.1\r\n" HOST "\r\n", 200);
    peer_close(&peer);
}

static void test_aborted_answer_is_seen_as_incomplete(void **state)
{
    static const char *const requests[] = {"GET /stream HTTP/1.1\r\n" HOST "\r\n", "GET /stream HTTP/1.0\r\n\r\n",
                                           PARK};
    struct service *service = *state;

    for (size_t i = 0; i < 3; i++) {
        struct peer peer = peer_connect(service);
        struct http_request *request = parked(service, &peer, requests[i]);
        if (i < 2)
            stream_text(request, "hello");
        http_response_abort(request);
        assert_false(peer_wait_end(service, &peer));
        assert_int_equal(peer.error, ECONNRESET);
        peer_close(&peer);
    }
    assert_int_equal(service->gones, 0);
}

static void test_producer_is_told_to_pause_and_to_go_on(void **state)
{
    struct service *service = *state;
    struct peer peer = peer_connect(service);
    struct http_request *request = parked(service, &peer, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
    struct buffer chunk = BUFFER_INIT;
    struct response response;
    size_t waiting = 0;
    size_t sent = 0;

    while (waiting < 64 * 1024) {
        assert_true(sent < 64 * MIB);
        put_bytes(&chunk, 256 * 1024);
        waiting = http_response_write(request, &chunk);
        sent += 256 * 1024;
    }
    service_linger(service, 5);
    assert_int_equal(service->drains, 0);
    wait_until(service, (peer_receive(&peer), service->drains == 1));
    stream_text(request, "end");
    http_response_end(request, NULL, 0);
    response = peer_response(service, &peer);
    assert_int_equal(response.body.length, sent + 3);
    assert_int_equal(service->drains, 1);
    response_deinit(&response);
    peer_close(&peer);
}

/* --- listeners -------------------------------------------------------------------------------------------------- */

static void test_busy_port_and_bad_address_are_explained(void **state)
{
    struct service *service = *state;
    struct http_listener *listener = NULL;
    struct fault fault = {0};
    uint16_t port = service_port(service);

    assert_int_equal(
        http_server_listen(service->server, "127.0.0.1", port, &service_handler, service, &listener, &fault),
        -EADDRINUSE);
    assert_non_null(strstr(fault.text, "in use"));
    assert_int_equal(http_server_listen(service->server, "nowhere", 0, &service_handler, service, &listener, &fault),
                     -EINVAL);
    assert_non_null(strstr(fault.text, "nowhere"));
    assert_null(listener);
}

static void test_only_a_listening_socket_is_adopted(void **state)
{
    struct service *service = *state;
    CLEANUP(cleanup_close) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct http_listener *listener = NULL;

    assert_int_equal(http_server_adopt(service->server, fd, false, &service_handler, service, &listener), -EINVAL);
    assert_int_equal(http_server_adopt(service->server, -1, false, &service_handler, service, &listener), -EBADF);
    assert_null(listener);
}

static void test_adopted_listener_serves(void **state)
{
    struct service *service = *state;
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    socklen_t length = sizeof(address);
    struct http_listener *listener;
    struct sockaddr_storage bound;
    struct http_request *request;
    struct peer peer;

    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 5), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    assert_int_equal(http_server_adopt(service->server, fd, false, &service_handler, service, &listener), 0);
    assert_int_equal(http_listener_address(listener, &bound), 0);
    assert_int_equal(((struct sockaddr_in6 *)&bound)->sin6_port, address.sin6_port);
    peer = peer_of_fd(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    assert_int_equal(connect(peer.fd, (struct sockaddr *)&address, sizeof(address)), 0);
    request = parked(service, &peer, PARK);
    assert_true(span_equal(http_request_peer(request), SPAN("::1")));
    http_respond(request, 200, NULL, 0, NULL);
    assert_answer(service, &peer, "GET /echo HTTP/1.1\r\n" HOST "\r\n", 200);
    peer_close(&peer);
    http_listener_close(listener, false);
}

static void test_listener_shut_down_by_another_holder_does_not_spin(void **state)
{
    struct service *service = *state;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CLEANUP(cleanup_close) int shared = dup(fd);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct http_listener *listener;
    struct peer peer;

    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 5), 0);
    assert_int_equal(http_server_adopt(service->server, fd, true, &service_handler, service, &listener), 0);
    assert_int_equal(shutdown(shared, SHUT_RDWR), 0);
    service_linger(service, 20); /* would never return */
    peer = peer_connect(service);
    assert_answer(service, &peer, "GET /echo HTTP/1.1\r\n" HOST "\r\n", 200);
    peer_close(&peer);
    http_listener_close(listener, false);
}

static void test_closing_a_listener_tells_parked_requests_on_a_later_turn(void **state)
{
    struct service *service = *state;
    struct peer peers[3];

    for (size_t i = 0; i < 3; i++) {
        peers[i] = peer_connect(service);
        if (i)
            parked(service, &peers[i], PARK);
    }
    wait_until(service, http_server_connections(service->server) == 3);
    http_listener_close(service->listener, false);
    assert_int_equal(http_server_connections(service->server), 0);
    assert_int_equal(service->gones, 0);
    assert_non_null(service->parked[0]);
    /* A pointer that waits for on_gone may still be answered; then there is no on_gone. */
    http_respond(service->parked[0], 200, NULL, 0, NULL);
    wait_until(service, service->gones == 1);
    service_linger(service, 5);
    assert_int_equal(service->gones, 1);
    assert_null(service->parked[1]);
    for (size_t i = 0; i < 3; i++) {
        assert_true(peer_wait_end(service, &peers[i]));
        assert_int_equal(peers[i].in.length, 0);
        peer_close(&peers[i]);
    }
}

static void test_closing_a_listener_quietly_tells_nobody(void **state)
{
    struct service *service = *state;
    struct peer peer = peer_connect(service);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(service_port(service))};

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    parked(service, &peer, PARK);
    http_listener_close(service->listener, true);
    assert_true(peer_wait_end(service, &peer));
    service_linger(service, 5);
    assert_int_equal(service->gones, 0);
    peer_close(&peer);
    peer = peer_of_fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    assert_int_equal(connect(peer.fd, (struct sockaddr *)&address, sizeof(address)), -1);
    assert_int_equal(errno, ECONNREFUSED);
    peer_close(&peer);
}

/* A handler that ends the world from inside its callbacks. */
struct suicide {
    struct service *service;
    const char *at;
    bool frees_server;
    bool quiet;
    size_t gones;
};

static void end_world(struct suicide *suicide)
{
    if (suicide->frees_server)
        suicide->service->server = http_server_free(suicide->service->server);
    else
        http_listener_close(suicide->service->listener, suicide->quiet);
}

static void suicide_on_headers(struct http_request *request, void *context)
{
    struct suicide *suicide = context;

    if (strcmp(suicide->at, "headers") == 0)
        end_world(suicide);
    assert_true(span_equal(http_request_method(request), SPAN("POST")));
}

static void suicide_on_request(struct http_request *request, void *context)
{
    struct suicide *suicide = context;

    if (strcmp(suicide->at, "request") == 0)
        end_world(suicide);
    assert_true(span_equal(http_request_body(request), SPAN("abc")));
    if (strcmp(suicide->at, "answer") == 0) {
        http_respond(request, 200, NULL, 0, NULL);
        end_world(suicide);
    }
}

static void suicide_on_gone(struct http_request *request, void *context)
{
    struct suicide *suicide = context;

    assert_true(span_equal(http_request_method(request), SPAN("POST")));
    suicide->gones++;
    if (strcmp(suicide->at, "gone") == 0)
        end_world(suicide);
}

static const struct http_handler suicide_handler = {
    .on_headers = suicide_on_headers, .on_request = suicide_on_request, .on_gone = suicide_on_gone};

static size_t gones_after_end(const char *at, bool frees_server, bool quiet)
{
    struct service service;
    struct suicide suicide = {.service = &service, .at = at, .frees_server = frees_server, .quiet = quiet};
    struct fault fault;
    struct peer peer;

    service_start(&service, NULL, false);
    assert_int_equal(
        http_server_listen(service.server, "127.0.0.1", 0, &suicide_handler, &suicide, &service.listener, &fault), 0);
    peer = peer_connect(&service);
    assert_true(
        peer_send_text(&service, &peer, "POST / HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabcPOST / HTTP/1.1\r\n"));
    if (strcmp(at, "gone") == 0) {
        service_linger(&service, 2);
        peer_reset(&peer);
        wait_until(&service, suicide.gones == 1);
    } else {
        peer_wait_end(&service, &peer);
    }
    service_linger(&service, 2);
    peer_close(&peer);
    service_stop(&service);
    return suicide.gones;
}

static void test_handlers_may_close_everything(void **state)
{
    static const char *const places[] = {"headers", "request", "answer"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(gones_after_end(places[i], true, false), 0);
        assert_int_equal(gones_after_end(places[i], false, true), 0);
        assert_int_equal(gones_after_end(places[i], false, false), i < 2 ? 1 : 0);
    }
    for (int how = 0; how < 3; how++)
        assert_int_equal(gones_after_end("gone", how == 0, how == 1), 1);
}

/* --- the end of a server ---------------------------------------------------------------------------------------- */

static void count_call(void *context)
{
    ++*(size_t *)context;
}

static void test_shutdown_answers_what_is_under_way(void **state)
{
    struct service *service = *state;
    struct peer idle = peer_connect(service);
    struct peer busy = peer_connect(service);
    struct peer late = peer_connect(service);
    struct response response;
    size_t done = 0;

    assert_answer(service, &idle, "GET /echo HTTP/1.1\r\n" HOST "\r\n", 200);
    parked(service, &busy, PARK);
    assert_true(peer_send_text(service, &late, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\n12"));
    wait_until(service, service->heads == 3);
    http_server_shutdown(service->server, count_call, &done);
    assert_true(peer_wait_end(service, &idle));
    service_linger(service, 5);
    assert_int_equal(done, 0);
    assert_int_equal(http_server_connections(service->server), 2);
    http_respond(service->parked[0], 200, NULL, 0, NULL);
    response = peer_response(service, &busy);
    assert_true(response_has(&response, "\r\nConnection: close\r\n"));
    response_deinit(&response);
    assert_true(peer_wait_end(service, &busy));
    assert_true(peer_send_text(service, &late, "34"));
    response = peer_response(service, &late);
    assert_true(span_equal(buffer_span(&response.body), SPAN("1234")));
    assert_true(response_has(&response, "\r\nConnection: close\r\n"));
    response_deinit(&response);
    assert_true(peer_wait_end(service, &late));
    wait_until(service, done == 1);
    service_linger(service, 5);
    assert_int_equal(done, 1);
    peer_close(&idle);
    peer_close(&busy);
    peer_close(&late);
}

static void test_shutdown_of_a_quiet_server_is_told_from_the_loop(void **state)
{
    struct service *service = *state;
    size_t done = 0;

    http_server_shutdown(service->server, count_call, &done);
    assert_int_equal(done, 0);
    wait_until(service, done == 1);
}

static void test_freeing_ends_a_shutdown_without_a_word(void **state)
{
    struct service *service = *state;
    struct peer peer = peer_connect(service);
    size_t done = 0;

    parked(service, &peer, PARK);
    http_server_shutdown(service->server, count_call, &done);
    service->server = http_server_free(service->server);
    assert_true(peer_wait_end(service, &peer));
    service_linger(service, 5);
    assert_int_equal(done, 0);
    assert_int_equal(service->gones, 0);
    peer_close(&peer);
}

static void test_freeing_drops_gone_calls_that_are_due(void **state)
{
    struct service *service = *state;
    struct peer peer = peer_connect(service);

    parked(service, &peer, PARK);
    http_listener_close(service->listener, false);
    service->server = http_server_free(service->server);
    service_linger(service, 5);
    assert_int_equal(service->gones, 0);
    peer_close(&peer);
}

/* --- many ------------------------------------------------------------------------------------------------------- */

static void test_thousand_idle_connections(void **state)
{
    enum { COUNT = 1000 };
    struct service *service = *state;
    struct peer *peers = calloc(COUNT, sizeof(*peers));

    assert_non_null(peers);
    for (size_t i = 0; i < COUNT; i++) {
        peers[i] = peer_connect(service);
        if (i % 64 == 0)
            service_turn(service);
    }
    wait_until(service, http_server_connections(service->server) == COUNT);
    for (size_t i = 0; i < COUNT; i += 97)
        assert_answer(service, &peers[i], "GET /echo HTTP/1.1\r\n" HOST "\r\n", 200);
    for (size_t i = 0; i < COUNT; i++)
        peer_close(&peers[i]);
    wait_until(service, http_server_connections(service->server) == 0);
    free(peers);
}

static void test_thousand_requests_under_way(void **state)
{
    enum { COUNT = 1000 };
    struct service *service = *state;
    struct peer *peers = calloc(COUNT, sizeof(*peers));

    assert_non_null(peers);
    for (size_t i = 0; i < COUNT; i++) {
        peers[i] = peer_connect(service);
        assert_true(peer_send_text(service, &peers[i], PARK));
    }
    wait_until(service, service->parked_count == COUNT);
    for (size_t i = COUNT; i > 0; i--)
        http_respond(service->parked[i - 1], 200, NULL, 0, NULL);
    for (size_t i = 0; i < COUNT; i++) {
        struct response response = peer_response(service, &peers[i]);
        assert_int_equal(response.status, 200);
        response_deinit(&response);
        peer_close(&peers[i]);
    }
    free(peers);
}

static void test_longest_idle_connection_makes_room(void **state)
{
    struct service service;
    struct peer peers[4];

    (void)state;
    service_start(&service, &(struct http_server_config){.connections = 3}, true);
    for (size_t i = 0; i < 3; i++) {
        peers[i] = peer_connect(&service);
        assert_answer(&service, &peers[i], "GET /echo HTTP/1.1\r\n" HOST "\r\n", 200);
    }
    assert_answer(&service, &peers[0], "GET /echo HTTP/1.1\r\n" HOST "\r\n", 200);
    peers[3] = peer_connect(&service);
    assert_answer(&service, &peers[3], "GET /echo HTTP/1.1\r\n" HOST "\r\n", 200);
    assert_true(peer_wait_end(&service, &peers[1]));
    assert_int_equal(http_server_connections(service.server), 3);
    assert_answer(&service, &peers[0], "GET /echo HTTP/1.1\r\n" HOST "\r\n", 200);
    for (size_t i = 0; i < 4; i++)
        peer_close(&peers[i]);
    service_stop(&service);
}

static void test_connection_past_the_limit_waits_when_none_is_idle(void **state)
{
    struct service service;
    struct peer busy;
    struct peer waiting;
    struct response response;

    (void)state;
    service_start(&service, &(struct http_server_config){.connections = 1}, true);
    busy = peer_connect(&service);
    parked(&service, &busy, PARK);
    waiting = peer_connect(&service);
    assert_true(peer_send_text(&service, &waiting, "GET /echo HTTP/1.1\r\n" HOST "\r\n"));
    service_linger(&service, 10);
    assert_int_equal(service.requests, 1);
    peer_close(&busy);
    response = peer_response(&service, &waiting);
    assert_int_equal(response.status, 200);
    assert_int_equal(service.gones, 1);
    response_deinit(&response);
    peer_close(&waiting);
    service_stop(&service);
}

/* With no descriptor left, waiting peers are closed rather than left hanging, and serving goes on. */
static void test_running_out_of_descriptors_is_survived(void **state)
{
    struct service *service = *state;
    struct peer first = peer_connect(service);
    struct rlimit saved;
    struct rlimit low;
    struct peer second;
    struct peer third;

    assert_answer(service, &first, "GET /echo HTTP/1.1\r\n" HOST "\r\n", 200);
    second = peer_connect(service);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &saved), 0);
    low = (struct rlimit){.rlim_cur = (rlim_t)second.fd + 1, .rlim_max = saved.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    assert_int_equal(dup(0), -1);
    peer_wait_end(service, &second);
    assert_answer(service, &first, "GET /echo HTTP/1.1\r\n" HOST "\r\n", 200);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &saved), 0);
    third = peer_connect(service);
    assert_answer(service, &third, "GET /echo HTTP/1.1\r\n" HOST "\r\n", 200);
    peer_close(&first);
    peer_close(&second);
    peer_close(&third);
}

#define life_test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* Both ends of a thousand connections are in this process. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        life_test(test_peer_vanishes_in_the_header),
        life_test(test_peer_vanishes_in_the_body),
        life_test(test_peer_vanishes_while_the_handler_works),
        life_test(test_peer_vanishes_in_a_large_answer),
        life_test(test_answer_to_a_vanished_peer_is_dropped),
        life_test(test_streaming_to_a_vanished_peer_tells_on_a_later_turn),
        life_test(test_peer_that_ends_its_side_while_reading_gets_all),
        life_test(test_streamed_answer_is_chunked),
        life_test(test_streamed_answer_to_an_old_client_ends_with_the_connection),
        life_test(test_streamed_answer_with_length_is_held_to_it),
        life_test(test_streamed_answer_to_head_has_no_body),
        life_test(test_aborted_answer_is_seen_as_incomplete),
        life_test(test_producer_is_told_to_pause_and_to_go_on),
        life_test(test_busy_port_and_bad_address_are_explained),
        life_test(test_only_a_listening_socket_is_adopted),
        life_test(test_listener_shut_down_by_another_holder_does_not_spin),
        life_test(test_adopted_listener_serves),
        life_test(test_closing_a_listener_tells_parked_requests_on_a_later_turn),
        life_test(test_closing_a_listener_quietly_tells_nobody),
        cmocka_unit_test(test_handlers_may_close_everything),
        life_test(test_shutdown_answers_what_is_under_way),
        life_test(test_shutdown_of_a_quiet_server_is_told_from_the_loop),
        life_test(test_freeing_ends_a_shutdown_without_a_word),
        life_test(test_freeing_drops_gone_calls_that_are_due),
        life_test(test_thousand_idle_connections),
        life_test(test_thousand_requests_under_way),
        cmocka_unit_test(test_longest_idle_connection_makes_room),
        cmocka_unit_test(test_connection_past_the_limit_waits_when_none_is_idle),
        life_test(test_running_out_of_descriptors_is_survived),
    };

    raise_descriptor_limit();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
