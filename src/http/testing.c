#include "http/testing.h"

#include "http/chunk.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>

#include <cmocka.h>

/* --- the handler ------------------------------------------------------------------------------------------------ */

static void respond_text(struct http_request *request, int status, const char *text)
{
    CLEANUP(buffer_deinit) struct buffer body = BUFFER_INIT;

    if (buffer_append_span(&body, span_from(text)) < 0)
        abort();
    http_respond(request, status, NULL, 0, &body);
}

static void park(struct service *service, struct http_request *request)
{
    if (service->parked_count == PARKED_MAX)
        abort();
    service->parked[service->parked_count++] = request;
}

static void on_piece(struct http_request *request, struct span piece, void *context)
{
    struct service *service = context;

    if (buffer_append_span(&service->pieces, piece) < 0)
        abort();
    if (service->pauses_pieces)
        http_request_pause_body(request, true);
}

static void on_headers(struct http_request *request, void *context)
{
    struct service *service = context;
    struct span path = http_request_path(request);
    uint64_t limit;

    service->heads++;
    if (span_equal(path, SPAN("/early")))
        respond_text(request, 403, "no");
    else if (span_starts_with(path, SPAN("/limit/")) &&
             span_to_u64(span_slice(path, 7, path.length), SIZE_MAX, &limit) == 0)
        http_request_set_body_limit(request, limit);
    if (span_starts_with(path, SPAN("/pieces/")) &&
        span_to_u64(span_slice(path, 8, path.length), SIZE_MAX, &limit) == 0) {
        http_request_set_body_limit(request, limit);
        http_request_stream_body(request, on_piece);
        park(service, request);
    }
}

static void on_drain(struct http_request *request, void *context)
{
    struct service *service = context;

    (void)request;
    service->drains++;
}

static void on_request(struct http_request *request, void *context)
{
    struct service *service = context;
    struct span path = http_request_path(request);
    const struct http_header close_header = {SPAN("Connection"), SPAN("close")};
    const struct http_header length_header = {SPAN("Content-Length"), SPAN("10")};
    struct buffer body;

    service->requests++;
    if (span_starts_with(path, SPAN("/pieces/")))
        return; /* parked already */
    if (span_equal(path, SPAN("/park"))) {
        park(service, request);
    } else if (span_equal(path, SPAN("/empty"))) {
        http_respond(request, 204, NULL, 0, NULL);
    } else if (span_equal(path, SPAN("/close"))) {
        http_respond(request, 200, &close_header, 1, NULL);
    } else if (span_equal(path, SPAN("/stream"))) {
        http_response_start(request, 200, NULL, 0, on_drain);
        park(service, request);
    } else if (span_equal(path, SPAN("/length"))) {
        http_response_start(request, 200, &length_header, 1, on_drain);
        park(service, request);
    } else {
        body = http_request_take_body(request);
        http_respond(request, 200, NULL, 0, &body);
    }
}

static void on_gone(struct http_request *request, void *context)
{
    struct service *service = context;

    service->gones++;
    for (size_t i = 0; i < service->parked_count; i++)
        if (service->parked[i] == request)
            service->parked[i] = NULL;
}

static size_t refuse(struct http_request *request, int status, struct http_header *headers, struct buffer *body,
                     void *context)
{
    struct service *service = context;
    const char *path = arena_printf(http_request_arena(request), "%.*s", SPAN_ARG(http_request_path(request)));

    service->gones_at_refusal = service->gones;
    if (!service->names_refusals) {
        headers[0] = (struct http_header){SPAN("Content-Type"), SPAN("text/plain")};
        return 1;
    }
    if (!path || buffer_printf(body, "{\"refused\":%d}", status) < 0)
        abort();
    headers[0] = (struct http_header){SPAN("Content-Type"), SPAN("application/json")};
    headers[1] = (struct http_header){SPAN("X-Refused"), span_from(path)};
    return 2;
}

static bool on_accept(int fd, void *context)
{
    struct service *service = context;

    assert_true(fd >= 0);
    service->accepts++;
    return !service->refuses_accept;
}

const struct http_handler service_handler = {
    .on_headers = on_headers,
    .on_request = on_request,
    .on_gone = on_gone,
    .refuse = refuse,
    .on_accept = on_accept,
};

/* --- the service ------------------------------------------------------------------------------------------------ */

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

void service_start(struct service *service, const struct http_server_config *config, bool listens)
{
    struct http_server_config own = config ? *config : (struct http_server_config){0};
    struct fault fault;

    *service = (struct service){0};
    assert_int_equal(uv_loop_init(&service->loop), 0);
    assert_int_equal(uv_timer_init(&service->loop, &service->tick), 0);
    own.loop = &service->loop;
    assert_int_equal(http_server_new(&own, &service->server), 0);
    if (listens)
        assert_int_equal(
            http_server_listen(service->server, "127.0.0.1", 0, &service_handler, service, &service->listener, &fault),
            0);
}

void service_stop(struct service *service)
{
    service->server = http_server_free(service->server);
    buffer_deinit(&service->pieces);
    uv_close((uv_handle_t *)&service->tick, NULL);
    uv_run(&service->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&service->loop), 0);
}

void service_adopt(struct service *service, int type, bool patient)
{
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    service->unix_type = type;
    service->unix_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    service->unix_length = sizeof(service->unix_address);
    /* Without a name: the kernel picks an abstract one. */
    assert_int_equal(bind(fd, (struct sockaddr *)&service->unix_address, sizeof(sa_family_t)), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&service->unix_address, &service->unix_length), 0);
    assert_int_equal(http_server_adopt(service->server, fd, patient, &service_handler, service, &service->listener), 0);
}

void service_turn(struct service *service)
{
    uv_update_time(&service->loop);
    /* Repeating: uv_run looks at timers before it waits too, and one that went off there would not end the wait. */
    uv_timer_start(&service->tick, on_tick, 1, 1);
    uv_run(&service->loop, UV_RUN_ONCE);
}

void service_linger(struct service *service, unsigned ms)
{
    uint64_t end = uv_hrtime() + ms * UINT64_C(1000000);

    while (uv_hrtime() < end)
        service_turn(service);
}

uint16_t service_port(const struct service *service)
{
    struct sockaddr_storage address;

    assert_int_equal(http_listener_address(service->listener, &address), 0);
    return ntohs(((struct sockaddr_in *)&address)->sin_port);
}

/* --- peers ------------------------------------------------------------------------------------------------------ */

struct peer peer_of_fd(int fd)
{
    return (struct peer){.fd = fd, .in = BUFFER_INIT};
}

struct peer peer_connect_unix(struct service *service)
{
    int fd = socket(AF_UNIX, service->unix_type | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&service->unix_address, service->unix_length), 0);
    return peer_of_fd(fd);
}

struct peer peer_connect(struct service *service)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(service_port(service))};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    assert_true(fd >= 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 || errno == EINPROGRESS);
    return peer_of_fd(fd);
}

void peer_close(struct peer *peer)
{
    cleanup_close(&peer->fd);
    buffer_deinit(&peer->in);
}

void peer_reset(struct peer *peer)
{
    struct linger linger = {.l_onoff = 1};

    assert_int_equal(setsockopt(peer->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
    peer_close(peer);
}

void peer_receive(struct peer *peer)
{
    ssize_t count = 1;

    while (!peer->ended && !peer->error && count > 0) {
        assert_int_equal(buffer_reserve(&peer->in, 64 * 1024), 0);
        count = recv(peer->fd, peer->in.data + peer->in.length, 64 * 1024, MSG_DONTWAIT);
        if (count > 0)
            peer->in.length += (size_t)count;
        else if (count == 0)
            peer->ended = true;
        else if (errno != EAGAIN)
            peer->error = errno;
    }
}

bool peer_send(struct service *service, struct peer *peer, struct span bytes)
{
    uint64_t end = uv_hrtime() + PATIENCE_NS;

    while (bytes.length) {
        ssize_t sent = send(peer->fd, bytes.data, bytes.length, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN) {
            peer->error = errno;
            return false;
        }
        if (sent > 0)
            bytes = span_slice(bytes, (size_t)sent, bytes.length);
        if (uv_hrtime() > end)
            fail_msg("the server takes nothing");
        service_turn(service);
    }
    return true;
}

bool peer_send_text(struct service *service, struct peer *peer, const char *text)
{
    return peer_send(service, peer, span_from(text));
}

/* --- responses -------------------------------------------------------------------------------------------------- */

void response_deinit(struct response *response)
{
    buffer_deinit(&response->head);
    buffer_deinit(&response->body);
}

bool response_has(const struct response *response, const char *text)
{
    return span_find_span(buffer_span(&response->head), span_from(text)) >= 0;
}

static bool decode_chunks(struct span rest, struct buffer *body, size_t *ret_length)
{
    struct chunk_decoder decoder = {0};
    enum chunk_result result = CHUNK_MORE;
    size_t total = 0;

    while (result == CHUNK_MORE && total < rest.length) {
        struct span run;
        size_t consumed;
        result = chunk_decode(&decoder, span_slice(rest, total, rest.length), &run, &consumed);
        assert_int_equal(buffer_append_span(body, run), 0);
        total += consumed;
    }
    assert_int_not_equal(result, CHUNK_BAD);
    *ret_length = total;
    return result == CHUNK_DONE;
}

/* Takes one whole response off the front of what was received. */
static bool take_response(struct peer *peer, bool bodiless, struct response *response)
{
    struct span in = buffer_span(&peer->in);
    ptrdiff_t end = span_find_span(in, SPAN("\r\n\r\n"));
    struct span rest;
    ptrdiff_t at;
    size_t length = 0;

    if (end < 0)
        return false;
    *response = (struct response){0};
    assert_int_equal(buffer_append(&response->head, in.data, (size_t)end + 4), 0);
    assert_non_null(buffer_terminate(&response->head));
    assert_int_equal(sscanf(response->head.data, "HTTP/1.1 %3d ", &response->status), 1);
    rest = span_slice(in, (size_t)end + 4, in.length);
    at = span_find_span(buffer_span(&response->head), SPAN("Content-Length: "));
    if (bodiless || response->status < 200 || response->status == 204) {
        length = 0;
    } else if (response_has(response, "Transfer-Encoding: chunked")) {
        if (!decode_chunks(rest, &response->body, &length)) {
            response_deinit(response);
            return false;
        }
    } else if (at >= 0) {
        length = strtoul(response->head.data + at + 16, NULL, 10);
        if (rest.length < length) {
            response_deinit(response);
            return false;
        }
        assert_int_equal(buffer_append(&response->body, rest.data, length), 0);
    } else {
        if (!peer->ended) {
            response_deinit(response);
            return false;
        }
        length = rest.length;
        assert_int_equal(buffer_append(&response->body, rest.data, length), 0);
    }
    buffer_consume(&peer->in, (size_t)end + 4 + length);
    return true;
}

static struct response wait_response(struct service *service, struct peer *peer, bool bodiless)
{
    uint64_t end = uv_hrtime() + PATIENCE_NS;
    struct response response;

    while (!take_response(peer, bodiless, &response)) {
        if (peer->ended || peer->error || uv_hrtime() > end)
            fail_msg("no response: %s, received %.*s", peer->error ? strerror(peer->error) : "ended or too late",
                     (int)MIN(peer->in.length, (size_t)400), peer->in.data ? peer->in.data : "");
        service_turn(service);
        peer_receive(peer);
    }
    return response;
}

struct response peer_response(struct service *service, struct peer *peer)
{
    return wait_response(service, peer, false);
}

struct response peer_head_response(struct service *service, struct peer *peer)
{
    return wait_response(service, peer, true);
}

struct response peer_interim_response(struct service *service, struct peer *peer)
{
    return wait_response(service, peer, true);
}

bool peer_wait_end(struct service *service, struct peer *peer)
{
    wait_until(service, (peer_receive(peer), peer->ended || peer->error));
    return peer->ended;
}

void assert_echo(struct service *service, struct peer *peer, struct span expected)
{
    struct response response = peer_response(service, peer);

    assert_int_equal(response.status, 200);
    assert_int_equal(response.body.length, expected.length);
    assert_true(span_equal(buffer_span(&response.body), expected));
    response_deinit(&response);
}

void assert_answer(struct service *service, struct peer *peer, const char *request, int status)
{
    struct response response;

    assert_true(peer_send_text(service, peer, request));
    response = peer_response(service, peer);
    assert_int_equal(response.status, status);
    response_deinit(&response);
}
