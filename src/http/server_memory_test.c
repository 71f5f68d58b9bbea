/*
 * Memory that runs out, at every place where the server asks for some: the n-th allocation fails, for every n. Each
 * time the server must survive, give everything back (the sanitizer looks) and serve the next connection.
 * malloc, calloc and realloc of the code under test are wrapped by the linker.
 */
#include "http/testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>

#include <cmocka.h>

#define HOST "Host: kiln\r\n"

/* The wrapped functions have no other way to know. */
static struct {
    bool armed;
    bool for_good; /* every later one fails too */
    size_t countdown;
    size_t failed;
} memory;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *pointer, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *pointer, size_t size);

static bool fails_now(void)
{
    if (!memory.armed)
        return false;
    if (memory.countdown) {
        memory.countdown--;
        return false;
    }
    memory.armed = memory.for_good;
    memory.failed++;
    return true;
}

void *__wrap_malloc(size_t size)
{
    return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails_now() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *pointer, size_t size)
{
    return fails_now() ? NULL : __real_realloc(pointer, size);
}

/* --- a handler that can do without memory ------------------------------------------------------------------------ */

static void stream(struct http_request *request)
{
    struct buffer chunk = BUFFER_INIT;

    http_response_start(request, 200, NULL, 0, NULL);
    for (size_t i = 0; i < 3; i++) {
        if (buffer_append_span(&chunk, SPAN("hello")) == 0)
            http_response_write(request, &chunk);
    }
    http_response_end(request, NULL, 0);
}

static void answer_large(struct http_request *request)
{
    struct buffer body = BUFFER_INIT;

    if (buffer_reserve(&body, 8 * 1024 * 1024) == 0) {
        body.length = body.capacity;
        memset(body.data, 'x', body.length);
    }
    http_respond(request, 200, NULL, 0, &body);
}

static void on_request(struct http_request *request, void *context)
{
    struct span path = http_request_path(request);
    struct http_header header = {SPAN("X-Padding"), SPAN("0123456789012345678901234567890123456789")};
    struct buffer body;

    (void)context;
    if (span_equal(path, SPAN("/stream"))) {
        stream(request);
    } else if (span_equal(path, SPAN("/large"))) {
        answer_large(request);
    } else {
        body = http_request_take_body(request);
        http_respond(request, 200, &header, 1, &body);
    }
}

static void on_gone(struct http_request *request, void *context)
{
    (void)request;
    (void)context;
}

static const struct http_handler handler = {.on_request = on_request, .on_gone = on_gone};

/* --- running out ------------------------------------------------------------------------------------------------- */

static const char *const exchanges[] = {
    "GET / HTTP/1.1\r\n" HOST "\r\n",
    "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello",
    "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n",
    "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n5\r\nhello\r\n0\r\n\r\n",
    "GET /stream HTTP/1.1\r\n" HOST "\r\n",
    "GET /large HTTP/1.1\r\n" HOST "\r\n",
    "GET / HTTP/9.1\r\n" HOST "\r\n",
    "POST / HTTP/1.1\r\n" HOST "Content-Length: 9999999\r\n\r\n",
    "GET / HTTP/1.1\r\n" HOST "\r\nGET /stream HTTP/1.1\r\n" HOST "\r\nGET / HTTP/1.0\r\n\r\n",
};

/* Forty fields: more than the first array of them holds. */
static void send_many_fields(struct service *service, struct peer *peer)
{
    char line[32];

    assert_true(peer_send_text(service, peer, "GET / HTTP/1.1\r\n" HOST));
    for (int i = 0; i < 40; i++) {
        snprintf(line, sizeof(line), "X-%d: %d\r\n", i, i);
        if (!peer_send_text(service, peer, line))
            return;
    }
    (void)peer_send_text(service, peer, "\r\n");
}

/* Returns whether an allocation failed. */
static bool run(size_t exchange, size_t nth, bool for_good)
{
    struct service service;
    struct fault fault;
    struct peer peer;

    service_start(&service, NULL, false);
    assert_int_equal(http_server_listen(service.server, "127.0.0.1", 0, &handler, NULL, &service.listener, &fault), 0);
    peer = peer_connect(&service);
    memory.armed = true;
    memory.for_good = for_good;
    memory.countdown = nth;
    memory.failed = 0;
    if (exchange < ARRAY_SIZE(exchanges))
        (void)peer_send_text(&service, &peer, exchanges[exchange]);
    else
        send_many_fields(&service, &peer);
    for (size_t i = 0; i < 5; i++)
        service_turn(&service);
    memory.armed = false;
    peer_close(&peer);
    peer = peer_connect(&service);
    assert_answer(&service, &peer, "POST / HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nok", 200);
    peer_close(&peer);
    service_stop(&service);
    return memory.failed > 0;
}

static void assert_survives(bool for_good)
{
    for (size_t exchange = 0; exchange <= ARRAY_SIZE(exchanges); exchange++) {
        size_t nth = 0;
        while (run(exchange, nth, for_good))
            nth++;
        assert_true(nth >= 2); /* the connection and the request, at least */
    }
}

static void test_server_survives_one_failed_allocation(void **state)
{
    (void)state;
    assert_survives(false);
}

static void test_server_survives_a_time_without_memory(void **state)
{
    (void)state;
    assert_survives(true);
}

static void test_making_a_server_without_memory_fails_cleanly(void **state)
{
    struct http_server *server = NULL;
    struct http_listener *listener = NULL;
    struct service service;
    struct fault fault;
    int r;

    (void)state;
    service_start(&service, NULL, false);
    memory.armed = true;
    memory.countdown = 0;
    assert_int_equal(http_server_new(&(struct http_server_config){.loop = &service.loop}, &server), -ENOMEM);
    assert_null(server);
    memory.armed = true;
    r = http_server_listen(service.server, "127.0.0.1", 0, &handler, NULL, &listener, &fault);
    assert_int_equal(r, -ENOMEM);
    assert_null(listener);
    service_stop(&service);
}

/* What a request needs is kept from the one before. */
static void test_warm_request_allocates_nothing(void **state)
{
    static const char request[] = "GET / HTTP/1.1\r\n" HOST "X-A: 1\r\nX-B: 2\r\n\r\n";
    struct service service;
    struct fault fault;
    struct peer peer;

    (void)state;
    service_start(&service, NULL, false);
    assert_int_equal(http_server_listen(service.server, "127.0.0.1", 0, &handler, NULL, &service.listener, &fault), 0);
    peer = peer_connect(&service);
    assert_answer(&service, &peer, request, 200);
    memory.for_good = true;
    memory.countdown = 0;
    memory.failed = 0;
    memory.armed = true;
    assert_true(peer_send_text(&service, &peer, request));
    for (size_t i = 0; i < 5; i++)
        service_turn(&service);
    memory.armed = false;
    assert_int_equal(memory.failed, 0);
    struct response response = peer_response(&service, &peer);
    assert_int_equal(response.status, 200);
    response_deinit(&response);
    peer_close(&peer);
    service_stop(&service);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_server_survives_one_failed_allocation),
        cmocka_unit_test(test_server_survives_a_time_without_memory),
        cmocka_unit_test(test_warm_request_allocates_nothing),
        cmocka_unit_test(test_making_a_server_without_memory_fails_cleanly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
