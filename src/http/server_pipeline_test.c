/* Several requests sent without waiting for answers: their order, what is read ahead, which answers go out together. */
#include "http/testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>

#include <cmocka.h>

#define HOST                    "Host: kiln\r\n"
#define GET(path)               "GET " path " HTTP/1.1\r\n" HOST "\r\n"
#define POST(path, digit, body) "POST " path " HTTP/1.1\r\n" HOST "Content-Length: " digit "\r\n\r\n" body

static int setup(void **state)
{
    struct service *service = calloc(1, sizeof(*service));

    assert_non_null(service);
    service_start(service, &(struct http_server_config){.header_bytes = 4096}, true);
    *state = service;
    return 0;
}

static int teardown(void **state)
{
    service_stop(*state);
    free(*state);
    return 0;
}

static void test_pipelined_requests_are_answered_in_order(void **state)
{
    struct service *service = *state;
    struct peer peer = peer_connect(service);
    CLEANUP(buffer_deinit) struct buffer text = BUFFER_INIT;

    for (int i = 0; i < 100; i++)
        assert_int_equal(buffer_printf(&text, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\n%03d%s", i,
                                       i % 7 ? "" : "\r\n"),
                         0);
    assert_true(peer_send(service, &peer, buffer_span(&text)));
    for (int i = 0; i < 100; i++) {
        char expected[4];
        snprintf(expected, sizeof(expected), "%03d", i);
        assert_echo(service, &peer, span_from(expected));
    }
    assert_int_equal(service->accepts, 1);
    peer_close(&peer);
}

static void test_pipelined_requests_wait_for_the_one_being_handled(void **state)
{
    struct service *service = *state;
    struct peer peer = peer_connect(service);
    struct response response;

    assert_true(peer_send_text(service, &peer,
                               "GET /park HTTP/1.1\r\n" HOST "\r\nGET /park HTTP/1.1\r\n" HOST "\r\n"
                               "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nx"));
    for (size_t i = 0; i < 2; i++) {
        wait_until(service, service->parked_count == i + 1);
        service_linger(service, 5);
        assert_int_equal(service->requests, i + 1);
        http_respond(service->parked[i], 202, NULL, 0, NULL);
        assert_int_equal(service->requests, i + 1); /* no callback from inside a call */
        response = peer_response(service, &peer);
        assert_int_equal(response.status, 202);
        response_deinit(&response);
    }
    assert_echo(service, &peer, SPAN("x"));
    peer_close(&peer);
}

static void test_reading_ahead_is_bounded(void **state)
{
    struct service *service = *state;
    struct peer peer = peer_connect(service);
    static char flood[64 * 1024];
    size_t sent = 0;
    ssize_t count;

    memset(flood, '\n', sizeof(flood));
    assert_true(peer_send_text(service, &peer, "GET /park HTTP/1.1\r\n" HOST "\r\n"));
    wait_until(service, service->parked_count == 1);
    for (size_t idle = 0; idle < 20;) {
        count = send(peer.fd, flood, sizeof(flood), MSG_DONTWAIT | MSG_NOSIGNAL);
        idle = count > 0 ? 0 : idle + 1;
        sent += count > 0 ? (size_t)count : 0;
        assert_true(sent < 64 * 1024 * 1024);
        service_turn(service);
    }
    /* Everything that was read ahead is still looked at: bare LFs are no request. */
    http_respond(service->parked[0], 200, NULL, 0, NULL);
    struct response response = peer_response(service, &peer);
    assert_int_equal(response.status, 200);
    response_deinit(&response);
    response = peer_response(service, &peer);
    assert_int_equal(response.status, 431);
    response_deinit(&response);
    peer_close(&peer);
}

/* --- answers that go out together -------------------------------------------------------------------------------- */

enum { NEVER_MS = 3600000 };

static struct peer begin(struct service *service, bool patient, unsigned hold_timeout_ms)
{
    service_start(service, &(struct http_server_config){.hold_timeout_ms = hold_timeout_ms}, false);
    service_adopt(service, SOCK_SEQPACKET, patient);
    return peer_connect_unix(service);
}

static void end(struct service *service, struct peer *peer)
{
    peer_close(peer);
    http_listener_close(service->listener, true);
    service_stop(service);
}

/* Waits for one write of the server and returns how many answers it begins; what it says can be read as responses. */
static size_t next_write(struct service *service, struct peer *peer)
{
    static char text[65536];
    ssize_t count = -1;
    size_t answers = 0;

    wait_until(service, (count = recv(peer->fd, text, sizeof(text), MSG_DONTWAIT)) >= 0);
    assert_int_equal(buffer_append(&peer->in, text, (size_t)count), 0);
    for (ptrdiff_t at = 0, from = 0;
         (at = span_find_span(span_of(text + from, (size_t)(count - from)), SPAN("HTTP/1.1 "))) >= 0; from += at + 9)
        answers++;
    return answers;
}

static void test_answers_of_one_turn_are_one_write(void **state)
{
    struct service service;
    struct peer peer = begin(&service, false, NEVER_MS);

    (void)state;
    assert_true(
        peer_send_text(&service, &peer, POST("/echo", "1", "1") POST("/echo", "1", "2") POST("/echo", "1", "3")));
    assert_int_equal(next_write(&service, &peer), 3);
    assert_echo(&service, &peer, SPAN("1"));
    assert_echo(&service, &peer, SPAN("2"));
    assert_echo(&service, &peer, SPAN("3"));
    end(&service, &peer);
}

/* Neither a request that takes its time nor half a one keeps the answer before it back. */
static void test_answer_does_not_wait_for_what_is_not_answered_at_once(void **state)
{
    static const char *const nexts[] = {GET("/park"), "GET /ec", POST("/echo", "9", "1"), "\r\n"};

    (void)state;
    for (size_t i = 0; i < sizeof(nexts) / sizeof(*nexts); i++) {
        struct service service;
        struct peer peer = begin(&service, false, NEVER_MS);
        char text[256];

        snprintf(text, sizeof(text), "%s%s", POST("/echo", "5", "first"), nexts[i]);
        assert_true(peer_send_text(&service, &peer, text));
        assert_int_equal(next_write(&service, &peer), 1);
        assert_echo(&service, &peer, SPAN("first"));
        end(&service, &peer);
    }
}

static void test_large_answers_are_not_held(void **state)
{
    struct service service;
    struct peer peer = begin(&service, true, NEVER_MS);
    static char body[5001];
    CLEANUP(buffer_deinit) struct buffer text = BUFFER_INIT;

    (void)state;
    memset(body, 'x', sizeof(body) - 1);
    assert_int_equal(
        buffer_printf(&text, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5000\r\n\r\n%s" GET("/park"), body), 0);
    assert_true(peer_send(&service, &peer, buffer_span(&text)));
    assert_int_equal(next_write(&service, &peer), 1);
    assert_echo(&service, &peer, span_from(body));
    end(&service, &peer);
}

/* A runtime posts a result and asks for its next event: acknowledgement and event are one write. */
static void test_patient_listener_holds_an_answer_for_the_next_one(void **state)
{
    struct service service;
    struct peer peer = begin(&service, true, NEVER_MS);
    struct buffer body = BUFFER_INIT;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        assert_true(peer_send_text(&service, &peer, POST("/echo", "6", "result") GET("/park")));
        wait_until(&service, service.parked_count == i + 1);
        service_linger(&service, 5);
        assert_int_equal(buffer_append_span(&body, SPAN("event")), 0);
        http_respond(service.parked[i], 200, NULL, 0, &body);
        assert_int_equal(next_write(&service, &peer), 2);
        assert_echo(&service, &peer, SPAN("result"));
        assert_echo(&service, &peer, SPAN("event"));
    }
    end(&service, &peer);
}

static void test_streamed_answer_comes_behind_what_was_held(void **state)
{
    struct service service;
    struct peer peer = begin(&service, true, NEVER_MS);

    (void)state;
    assert_true(peer_send_text(&service, &peer, POST("/echo", "6", "result") GET("/stream")));
    wait_until(&service, service.parked_count == 1);
    assert_int_equal(next_write(&service, &peer), 2); /* its head goes at the end of the turn */
    http_response_end(service.parked[0], NULL, 0);
    assert_echo(&service, &peer, SPAN("result"));
    assert_int_equal(next_write(&service, &peer), 0);
    assert_echo(&service, &peer, SPAN(""));
    end(&service, &peer);
}

static void test_held_answer_goes_when_its_time_is_over(void **state)
{
    struct service service;
    struct peer peer = begin(&service, true, 0);

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        assert_true(peer_send_text(&service, &peer, POST("/echo", "6", "result") GET("/park")));
        assert_int_equal(next_write(&service, &peer), 1);
        assert_echo(&service, &peer, SPAN("result"));
        assert_int_equal(service.parked_count, i + 1);
        http_respond(service.parked[i], 204, NULL, 0, NULL);
        assert_int_equal(next_write(&service, &peer), 1);
        peer.in.length = 0;
    }
    end(&service, &peer);
}

/* The peer ends its side behind its requests: what it is owed already still comes. */
static void test_held_answer_goes_to_a_peer_that_has_ended(void **state)
{
    struct service service;
    struct peer peer = begin(&service, true, NEVER_MS);

    (void)state;
    assert_true(peer_send_text(&service, &peer, POST("/echo", "6", "result") GET("/park")));
    wait_until(&service, service.parked_count == 1);
    assert_int_equal(shutdown(peer.fd, SHUT_WR), 0);
    assert_int_equal(next_write(&service, &peer), 1);
    assert_echo(&service, &peer, SPAN("result"));
    assert_int_equal(service.gones, 1);
    end(&service, &peer);
}

#define pipeline_test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        pipeline_test(test_pipelined_requests_are_answered_in_order),
        pipeline_test(test_pipelined_requests_wait_for_the_one_being_handled),
        pipeline_test(test_reading_ahead_is_bounded),
        cmocka_unit_test(test_answers_of_one_turn_are_one_write),
        cmocka_unit_test(test_answer_does_not_wait_for_what_is_not_answered_at_once),
        cmocka_unit_test(test_large_answers_are_not_held),
        cmocka_unit_test(test_patient_listener_holds_an_answer_for_the_next_one),
        cmocka_unit_test(test_streamed_answer_comes_behind_what_was_held),
        cmocka_unit_test(test_held_answer_goes_when_its_time_is_over),
        cmocka_unit_test(test_held_answer_goes_to_a_peer_that_has_ended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
