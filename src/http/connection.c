/*
 * One connection. Bytes come in through on_read, go through feed() by state, and lead to callbacks; answers go out
 * through connection_send. One exchange at a time: what a pipelining client sends meanwhile waits in `ahead`, with a
 * bound past which reading pauses (TCP then holds the peer back).
 *
 * Lifetimes. Every entry, from the loop or from a handler's call, goes through connection_enter and connection_leave;
 * only the outermost leave ends exchanges, releases requests and frees the connection. So a handler may answer or
 * close from anywhere, and nothing on the stack is pulled away.
 *
 * Pipelining. An answer behind whose request the peer has sent another is held, and goes out with that one's answer in
 * one write: at the latest when the bytes at hand are used up, or, on a patient listener, a moment later. There the
 * next request is a runtime's for its next event, and under load that one comes at once: one write, and one wakeup of
 * the function, where there would be two.
 *
 * Reading. Everything is first read into one buffer of the server, so an idle connection owns none. Once a body with
 * Content-Length is under way, reads go straight into it; its buffer grows as bytes arrive, never from a promise.
 */
#include "http/connection.h"

#include <assert.h>
#include <sys/socket.h>

enum {
    AHEAD_MAX = 64 * 1024,    /* reading pauses past this while a request is handled */
    DIRECT_MIN = 16 * 1024,   /* a rest of the body at least this long is read in place */
    BODY_FIRST = 64 * 1024,   /* first size of a long body's buffer */
    DISCARD_KEPT = 64 * 1024, /* after an early answer, a rest up to this is read to keep the connection */
    DRAIN_BYTES = 64 * 1024,
    HELD_MAX = 4 * 1024, /* a longer answer does not wait for the next one's */
};

struct output {
    uv_write_t write;
    struct connection *connection;
    struct buffer head;
    struct buffer body;
};

static struct http_server *server_of(const struct connection *connection)
{
    return connection->listener->server;
}

static size_t ahead_length(const struct connection *connection)
{
    return connection->ahead.length - connection->ahead_at;
}

/* Answers that wait stand at the front of what the current request will get. */
static bool has_held(const struct connection *connection)
{
    const struct http_request *request = connection->request;

    return request && request->answer == ANSWER_NONE && request->out.length;
}

static void set_state(struct connection *connection, enum connection_state state)
{
#define FROM(name) (1u << CONNECTION_##name)
    static const unsigned predecessors[] = {
        [CONNECTION_IDLE] = FROM(HANDLING) | FROM(DISCARD),
        [CONNECTION_HEAD] = FROM(IDLE),
        [CONNECTION_BODY] = FROM(HEAD),
        [CONNECTION_HANDLING] = FROM(HEAD) | FROM(BODY) | FROM(DISCARD),
        [CONNECTION_DISCARD] = FROM(HEAD) | FROM(BODY),
        [CONNECTION_LINGER] = FROM(HANDLING) | FROM(DISCARD),
        [CONNECTION_CLOSED] = ~FROM(CLOSED),
    };
#undef FROM
    assert(predecessors[state] & 1u << connection->state);
    (void)predecessors;
    connection->state = state;
}

/* --- closing ---------------------------------------------------------------------------------------------------- */

/* The last step: everything has let go. */
static void settle_closed(struct connection *connection)
{
    struct http_listener *listener = connection->listener;

    if (connection->depth)
        return;
    if (connection->request && !request_is_live(connection->request)) {
        request_release(&listener->server->requests, connection->request);
        connection->request = NULL;
        connection->gone_due = false; /* answered meanwhile */
        list_remove(&connection->of_deferred);
    }
    if (!connection->handle_ended || connection->request)
        return;
    buffer_deinit(&connection->ahead);
    buffer_deinit(&connection->held);
    free(connection);
    listener_unref(listener);
}

static void on_handle_end(uv_handle_t *handle)
{
    struct connection *connection = CONTAINER_OF((uv_tcp_t *)handle, struct connection, tcp);

    connection->handle_ended = true;
    settle_closed(connection);
}

static void leave_lists(struct connection *connection)
{
    set_state(connection, CONNECTION_CLOSED);
    connection->reading = false;
    deadline_clear(&connection->deadline);
    list_remove(&connection->of_listener);
    list_remove(&connection->of_deferred);
    server_connection_closed(server_of(connection));
}

static void drop_request(struct connection *connection)
{
    connection->gone_due = false;
    if (connection->request)
        connection->request->answer = ANSWER_DONE;
}

void connection_close(struct connection *connection)
{
    drop_request(connection);
    if (connection->state == CONNECTION_CLOSED) {
        list_remove(&connection->of_deferred);
    } else {
        leave_lists(connection);
        uv_close((uv_handle_t *)&connection->tcp, on_handle_end);
    }
    settle_closed(connection);
}

void connection_close_with_gone(struct connection *connection)
{
    if (connection->state == CONNECTION_CLOSED)
        return;
    if (!connection->request || !request_is_live(connection->request)) {
        connection_close(connection);
        return;
    }
    leave_lists(connection);
    uv_close((uv_handle_t *)&connection->tcp, on_handle_end);
    connection->gone_due = true;
    server_defer(server_of(connection), connection);
}

void connection_reset(struct connection *connection)
{
    if (connection->state == CONNECTION_CLOSED)
        return;
    drop_request(connection);
    leave_lists(connection);
    if (uv_tcp_close_reset(&connection->tcp, on_handle_end) < 0)
        uv_close((uv_handle_t *)&connection->tcp, on_handle_end);
    settle_closed(connection);
}

static void tell_gone(struct connection *connection)
{
    const struct http_listener *listener = connection->listener;
    struct http_request *request = connection->request;

    if (!request || !request_is_live(request))
        return;
    request->answer = ANSWER_DONE;
    if (listener->handler->on_gone)
        listener->handler->on_gone(request, listener->context);
}

/* The peer has ended or broken the connection. An answer still on its way to one that has only ended its side goes
 * on. */
static void on_peer_loss(struct connection *connection, bool orderly)
{
    struct http_request *request = connection->request;

    connection->peer_ended = true;
    connection->keep_alive = false;
    if (orderly && has_held(connection))
        connection_send(connection, NULL, SPAN_NONE);
    if (orderly && request && request->answer == ANSWER_DONE && connection_unsent(connection))
        return;
    tell_gone(connection);
    connection_close(connection);
}

/* --- writing ---------------------------------------------------------------------------------------------------- */

size_t connection_unsent(const struct connection *connection)
{
    return uv_stream_get_write_queue_size((const uv_stream_t *)&connection->tcp);
}

static void output_free(struct output *output)
{
    buffer_deinit(&output->head);
    buffer_deinit(&output->body);
    free(output);
}

static void tell_drained(struct connection *connection)
{
    struct http_request *request = connection->request;

    if (!request || !request->drain_due || !request_is_live(request) || connection_unsent(connection) >= DRAIN_BYTES)
        return;
    request->drain_due = false;
    if (request->on_drain)
        request->on_drain(request, connection->listener->context);
}

static void on_written(uv_write_t *write, int status)
{
    struct output *output = CONTAINER_OF(write, struct output, write);
    struct connection *connection = output->connection;

    output_free(output);
    if (connection->state == CONNECTION_CLOSED)
        return;
    connection_enter(connection);
    if (status < 0)
        on_peer_loss(connection, false);
    else
        tell_drained(connection);
    connection_leave(connection);
}

static unsigned add_part(uv_buf_t *parts, unsigned count, char *data, size_t length, size_t *skip)
{
    size_t skipped = MIN(*skip, length);

    *skip -= skipped;
    if (length == skipped)
        return count;
    parts[count] = (uv_buf_t){.base = data + skipped, .len = length - skipped};
    return count + 1;
}

/* The parts of head, body and tail past the first `skip` bytes. */
static unsigned gather(uv_buf_t parts[3], const struct buffer *head, const struct buffer *body, struct span tail,
                       size_t skip)
{
    unsigned count = add_part(parts, 0, head->data, head->length, &skip);

    if (body)
        count = add_part(parts, count, body->data, body->length, &skip);
    return add_part(parts, count, (char *)(uintptr_t)tail.data, tail.length, &skip);
}

static int queue_rest(struct connection *connection, struct buffer *body, struct span tail, size_t sent)
{
    struct output *output = malloc(sizeof(*output));
    uv_buf_t parts[3];
    unsigned count;
    int r;

    if (!output)
        return -ENOMEM;
    *output = (struct output){.connection = connection};
    output->head = buffer_take(&connection->request->out);
    output->body = body ? buffer_take(body) : BUFFER_INIT;
    count = gather(parts, &output->head, &output->body, tail, sent);
    r = uv_write(&output->write, (uv_stream_t *)&connection->tcp, parts, count, on_written);
    if (r < 0)
        output_free(output);
    return r;
}

/* Keeps an answer that may wait for the next one's. */
static bool hold(struct connection *connection, const struct buffer *body, struct span tail, size_t total)
{
    const struct http_request *request = connection->request;
    struct buffer *held = &connection->held;

    if (!connection->more_behind || request->answer != ANSWER_DONE || connection->state != CONNECTION_HANDLING ||
        !connection->keep_alive || server_of(connection)->stopping || total > HELD_MAX || connection_unsent(connection))
        return false;
    if (buffer_append_span(held, buffer_span(&request->out)) == 0 &&
        (!body || buffer_append_span(held, buffer_span(body)) == 0) && buffer_append_span(held, tail) == 0)
        return true;
    held->length = 0;
    return false;
}

/* What was held goes before whatever the new request gets. */
static void put_held_first(struct connection *connection)
{
    struct buffer unused = connection->request->out;

    if (!connection->held.length)
        return;
    connection->request->out = connection->held;
    connection->held = unused;
}

void connection_send(struct connection *connection, struct buffer *body, struct span tail)
{
    struct buffer *out = &connection->request->out;
    uv_buf_t parts[3];
    unsigned count = gather(parts, out, body, tail, 0);
    size_t total = out->length + (body ? body->length : 0) + tail.length;
    int sent;

    connection->unflushed = false;
    if (!count || connection->state == CONNECTION_CLOSED)
        return;
    if (hold(connection, body, tail, total)) {
        out->length = 0;
        return;
    }
    sent = uv_try_write((uv_stream_t *)&connection->tcp, parts, count);
    if (sent == UV_EAGAIN)
        sent = 0;
    if (sent >= 0 && (size_t)sent < total)
        sent = queue_rest(connection, body, tail, (size_t)sent);
    out->length = 0;
    if (sent < 0)
        connection_close_with_gone(connection);
}

void connection_prepare_answer(struct connection *connection, bool wants_close)
{
    struct parser *parser = &connection->request->parser;

    if (wants_close || server_of(connection)->stopping)
        connection->keep_alive = false;
    if (connection->state != CONNECTION_BODY)
        return;
    /* A client that awaits 100 Continue may now send its body or not: what follows cannot be told apart. */
    if (parser->chunked || parser->expects_continue || connection->body_remaining > DISCARD_KEPT)
        connection->keep_alive = false;
    set_state(connection, CONNECTION_DISCARD);
}

/* What a refusal consists of. */
struct refusal {
    struct http_header headers[HTTP_REFUSAL_HEADERS];
    size_t header_count;
    struct buffer body;
};

static void prepare_refusal(struct connection *connection, int status, struct refusal *refusal)
{
    const struct http_listener *listener = connection->listener;
    struct span reason = response_reason(status);

    if (listener->handler->refuse) {
        refusal->header_count =
            listener->handler->refuse(connection->request, status, refusal->headers, &refusal->body, listener->context);
        return;
    }
    refusal->headers[refusal->header_count++] = (struct http_header){SPAN("Content-Type"), SPAN("text/plain")};
    if (buffer_printf(&refusal->body, "%d %.*s\n", status, SPAN_ARG(reason)) < 0)
        refusal->body.length = 0;
}

static void send_refusal(struct connection *connection, int status, struct refusal *refusal)
{
    struct http_request *request = connection->request;
    const struct response_plan plan = {
        .status = status,
        .framing = RESPONSE_LENGTH,
        .content_length = (int64_t)refusal->body.length,
        .date = server_date(server_of(connection)),
    };

    request->answer = ANSWER_DONE;
    connection->keep_alive = false;
    set_state(connection, CONNECTION_DISCARD);
    if (response_append_head(&request->out, &plan, refusal->headers, refusal->header_count) < 0)
        connection_close(connection);
    else
        connection_send(connection, request_is_head(request) ? NULL : &refusal->body, SPAN_NONE);
}

/* The server's own answer, the last on this connection. */
static void refuse(struct connection *connection, int status)
{
    struct refusal refusal = {.body = BUFFER_INIT};

    assert(connection->request->answer == ANSWER_NONE);
    prepare_refusal(connection, status, &refusal);
    tell_gone(connection);
    if (connection->state != CONNECTION_CLOSED)
        send_refusal(connection, status, &refusal);
    buffer_deinit(&refusal.body);
}

/* --- exchanges -------------------------------------------------------------------------------------------------- */

static bool exchange_is_over(const struct connection *connection)
{
    return connection->request && connection->request->answer == ANSWER_DONE &&
           connection->state != CONNECTION_CLOSED && !connection_unsent(connection);
}

/*
 * After the last answer. Closing a socket with unread bytes, or one that more bytes arrive for, sends a reset, which
 * may destroy the answer before the peer has read it; so as long as the peer may be sending, only our side is ended.
 */
static void end_connection(struct connection *connection)
{
    uv_os_fd_t fd;

    if (connection->peer_ended || (connection->state == CONNECTION_HANDLING && !ahead_length(connection)) ||
        uv_fileno((uv_handle_t *)&connection->tcp, &fd) < 0 || shutdown(fd, SHUT_WR) < 0) {
        connection_close(connection);
        return;
    }
    set_state(connection, CONNECTION_LINGER);
}

static void finish_exchange(struct connection *connection)
{
    request_release(&server_of(connection)->requests, connection->request);
    connection->request = NULL;
    if (!connection->keep_alive || server_of(connection)->stopping)
        end_connection(connection);
    else if (connection->state != CONNECTION_DISCARD)
        set_state(connection, CONNECTION_IDLE);
}

/* The request is whole. `more`: there are bytes behind it. */
static void on_request_end(struct connection *connection, bool more)
{
    const struct http_listener *listener = connection->listener;

    connection->more_behind = more;
    listener->handler->on_request(connection->request, listener->context);
    connection->more_behind = false;
}

static void on_body_end(struct connection *connection, bool more)
{
    set_state(connection, CONNECTION_HANDLING);
    on_request_end(connection, more);
}

static void send_continue(struct connection *connection)
{
    if (buffer_append_span(&connection->request->out, SPAN("HTTP/1.1 100 Continue\r\n\r\n")) < 0)
        connection_close_with_gone(connection);
    else
        connection_send(connection, NULL, SPAN_NONE);
}

static bool is_answered_or_closed(const struct connection *connection)
{
    return connection->state == CONNECTION_CLOSED || connection->request->answer != ANSWER_NONE;
}

/* `more`: there are bytes behind the head, of the body or of another request. */
static void on_head_end(struct connection *connection, bool more)
{
    const struct http_listener *listener = connection->listener;
    struct http_request *request = connection->request;
    struct parser *parser = &request->parser;
    bool has_body = parser->chunked || parser->content_length > 0;

    connection->keep_alive = parser->keep_alive;
    connection->body_remaining = parser->content_length > 0 ? (uint64_t)parser->content_length : 0;
    request->body_limit = server_of(connection)->config.body_bytes;
    set_state(connection, has_body ? CONNECTION_BODY : CONNECTION_HANDLING);
    request->announced = true;
    if (listener->handler->on_headers)
        listener->handler->on_headers(request, listener->context);
    if (is_answered_or_closed(connection))
        return;
    if (connection->body_remaining > request->body_limit)
        refuse(connection, 413);
    else if (!has_body)
        on_request_end(connection, more);
    else if (parser->expects_continue && !more)
        send_continue(connection);
}

/* --- feeding: each takes some of the bytes and returns how many --------------------------------------------------- */

static size_t feed_head(struct connection *connection, const char *data, size_t length)
{
    struct http_server *server = server_of(connection);
    size_t consumed = length;
    int r;

    if (connection->state == CONNECTION_IDLE) {
        connection->request = request_acquire(&server->requests, connection);
        if (!connection->request) {
            connection_close(connection);
            return length;
        }
        put_held_first(connection);
        if (connection->deadline.kind == DEADLINE_HEADER) /* of a pipelined request before this one */
            deadline_clear(&connection->deadline);
        set_state(connection, CONNECTION_HEAD);
    }
    r = parser_execute(&connection->request->parser, data, length, server->config.header_bytes, &consumed);
    if (r < 0)
        refuse(connection, 503);
    else if (r == PARSER_REFUSED)
        refuse(connection, connection->request->parser.refusal);
    else if (r == PARSER_DONE)
        on_head_end(connection, consumed < length);
    return consumed;
}

/* A long body's buffer doubles, so that it costs no more than twice what has come. */
static int grow_body(struct connection *connection)
{
    struct buffer *body = &connection->request->body;
    size_t target = MAX((size_t)BODY_FIRST, body->capacity * 2);

    return buffer_reserve(body, MIN(target - body->length, connection->body_remaining));
}

/* The handler may answer, close or pause. */
static void hand_on(struct connection *connection, struct span piece)
{
    const struct http_listener *listener = connection->listener;

    if (piece.length)
        connection->request->on_body(connection->request, piece, listener->context);
}

static size_t feed_body(struct connection *connection, const char *data, size_t length)
{
    struct buffer *body = &connection->request->body;
    size_t count = MIN(length, connection->body_remaining);

    if (connection->request->on_body) {
        connection->body_remaining -= count;
        hand_on(connection, span_of(data, count));
        if (!connection->body_remaining && connection->state == CONNECTION_BODY)
            on_body_end(connection, count < length);
        return count;
    }
    if (body->capacity - body->length >= count && data == body->data + body->length) {
        body->length += count; /* it was read in place */
    } else if ((body->capacity - body->length < count && grow_body(connection) < 0) ||
               buffer_append(body, data, count) < 0) {
        refuse(connection, 503);
        return count;
    }
    connection->body_remaining -= count;
    if (!connection->body_remaining)
        on_body_end(connection, count < length);
    return count;
}

static void feed_streamed_chunk(struct connection *connection, struct span run, struct span trailers)
{
    struct http_request *request = connection->request;

    if (trailers.length > server_of(connection)->config.header_bytes - request->trailers.length)
        refuse(connection, 431);
    else if (buffer_append_span(&request->trailers, trailers) < 0)
        refuse(connection, 503);
    else
        hand_on(connection, run);
}

static size_t feed_chunked(struct connection *connection, const char *data, size_t length)
{
    struct http_request *request = connection->request;
    struct span run;
    size_t consumed;
    bool trailing = chunk_is_trailing(&request->chunks);
    enum chunk_result result = chunk_decode(&request->chunks, span_of(data, length), &run, &consumed);

    if (result == CHUNK_BAD)
        refuse(connection, 400);
    else if (request->chunks.data > request->body_limit ||
             request->chunks.remaining > request->body_limit - request->chunks.data)
        refuse(connection, 413);
    else if (request->on_body)
        feed_streamed_chunk(connection, run, trailing ? span_of(data, consumed) : SPAN_NONE);
    else if (buffer_append_span(&request->body, run) < 0)
        refuse(connection, 503);
    if (result == CHUNK_DONE && connection->state == CONNECTION_BODY)
        on_body_end(connection, consumed < length);
    return consumed;
}

static size_t feed_discard(struct connection *connection, size_t length)
{
    size_t count = length;

    if (connection->state == CONNECTION_DISCARD && connection->keep_alive) {
        count = MIN(length, connection->body_remaining);
        connection->body_remaining -= count;
        if (!connection->body_remaining)
            set_state(connection, connection->request ? CONNECTION_HANDLING : CONNECTION_IDLE);
        return count;
    }
    connection->discarded += count;
    if (connection->discarded > server_of(connection)->config.drain_bytes)
        connection_close_with_gone(connection);
    return count;
}

static size_t feed_some(struct connection *connection, const char *data, size_t length)
{
    switch (connection->state) {
    case CONNECTION_IDLE:
    case CONNECTION_HEAD:
        return feed_head(connection, data, length);
    case CONNECTION_BODY:
        return connection->request->parser.chunked ? feed_chunked(connection, data, length)
                                                   : feed_body(connection, data, length);
    case CONNECTION_DISCARD:
    case CONNECTION_LINGER:
        return feed_discard(connection, length);
    case CONNECTION_HANDLING:
    case CONNECTION_CLOSED:
        break;
    }
    return 0;
}

static bool is_paused(const struct connection *connection)
{
    return connection->state == CONNECTION_BODY && connection->request->paused;
}

static bool wants_input(const struct connection *connection)
{
    return connection->state != CONNECTION_HANDLING && connection->state != CONNECTION_CLOSED && !is_paused(connection);
}

static size_t feed(struct connection *connection, const char *data, size_t length)
{
    size_t used = 0;

    while (used < length && wants_input(connection)) {
        used += feed_some(connection, data + used, length - used);
        if (exchange_is_over(connection))
            finish_exchange(connection);
    }
    return used;
}

static void feed_ahead(struct connection *connection)
{
    struct buffer *ahead = &connection->ahead;

    if (!ahead_length(connection) || !wants_input(connection))
        return;
    connection->ahead_at += feed(connection, ahead->data + connection->ahead_at, ahead_length(connection));
    if (!ahead_length(connection)) {
        buffer_deinit(ahead);
        connection->ahead_at = 0;
    }
}

static void take_input(struct connection *connection, const char *data, size_t length)
{
    size_t used = ahead_length(connection) ? 0 : feed(connection, data, length);

    if (used == length || connection->state == CONNECTION_CLOSED)
        return;
    buffer_consume(&connection->ahead, connection->ahead_at);
    connection->ahead_at = 0;
    if (buffer_append(&connection->ahead, data + used, length - used) < 0) {
        on_peer_loss(connection, false);
        return;
    }
    feed_ahead(connection);
}

/* --- the loop's side -------------------------------------------------------------------------------------------- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buffer)
{
    struct connection *connection = CONTAINER_OF((uv_tcp_t *)handle, struct connection, tcp);
    struct http_server *server = server_of(connection);

    (void)suggested;
    *ret_buffer = (uv_buf_t){.base = server->shared, .len = SHARED_READ_BYTES};
    if (connection->state != CONNECTION_BODY || connection->body_remaining < DIRECT_MIN || ahead_length(connection) ||
        connection->request->on_body)
        return;
    struct buffer *body = &connection->request->body;
    if (body->capacity - body->length < MIN(connection->body_remaining, (uint64_t)DIRECT_MIN) &&
        grow_body(connection) < 0)
        return; /* feed_body will find the same */
    *ret_buffer = (uv_buf_t){
        .base = body->data + body->length,
        .len = MIN(body->capacity - body->length, connection->body_remaining),
    };
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    struct connection *connection = CONTAINER_OF((uv_tcp_t *)stream, struct connection, tcp);

    if (!count)
        return;
    connection_enter(connection);
    if (count < 0)
        on_peer_loss(connection, count == UV_EOF);
    else
        take_input(connection, buffer->base, (size_t)count);
    connection_leave(connection);
}

static int update_reading(struct connection *connection)
{
    bool wanted = !connection->peer_ended && !is_paused(connection) &&
                  !(connection->state == CONNECTION_HANDLING && ahead_length(connection) >= AHEAD_MAX);

    if (wanted == connection->reading)
        return 0;
    connection->reading = wanted;
    if (wanted)
        return uv_read_start((uv_stream_t *)&connection->tcp, on_alloc, on_read);
    return uv_read_stop((uv_stream_t *)&connection->tcp);
}

/* The deadline for what the peer still has to send; a server that stops does not wait for that. */
static enum deadline_kind unless_stopping(const struct connection *connection, enum deadline_kind kind)
{
    return server_of(connection)->stopping ? DEADLINE_STOP : kind;
}

static enum deadline_kind deadline_kind_of(const struct connection *connection)
{
    if (connection->state == CONNECTION_LINGER)
        return unless_stopping(connection, DEADLINE_LINGER);
    if (has_held(connection))
        return DEADLINE_HOLD;
    if (connection->listener->patient)
        return DEADLINE_NONE;
    if (connection_unsent(connection))
        return DEADLINE_WRITE;
    switch (connection->state) {
    case CONNECTION_IDLE:
        return DEADLINE_IDLE;
    case CONNECTION_HEAD:
        return unless_stopping(connection, DEADLINE_HEADER);
    case CONNECTION_BODY:
        if (is_paused(connection))
            return DEADLINE_NONE;
        return unless_stopping(connection, DEADLINE_BODY);
    case CONNECTION_DISCARD:
        if (connection->request && request_is_live(connection->request))
            return DEADLINE_NONE; /* the handler streams; its writes have deadlines */
        return unless_stopping(connection, connection->keep_alive ? DEADLINE_BODY : DEADLINE_LINGER);
    case CONNECTION_HANDLING:
    case CONNECTION_LINGER:
    case CONNECTION_CLOSED:
        break;
    }
    return DEADLINE_NONE;
}

static void update_deadline(struct connection *connection)
{
    enum deadline_kind kind = deadline_kind_of(connection);
    size_t unsent = connection_unsent(connection);
    bool progressed =
        kind == DEADLINE_IDLE || kind == DEADLINE_BODY || (kind == DEADLINE_WRITE && unsent < connection->unsent_seen);

    connection->unsent_seen = unsent;
    if (kind == DEADLINE_NONE)
        deadline_clear(&connection->deadline);
    else if (kind != connection->deadline.kind || progressed)
        server_set_deadline(server_of(connection), &connection->deadline, kind);
}

void connection_on_deadline(struct connection *connection)
{
    enum deadline_kind kind = connection->deadline.kind;

    connection_enter(connection);
    deadline_clear(&connection->deadline);
    if (kind == DEADLINE_HOLD) {
        connection_send(connection, NULL, SPAN_NONE);
    } else if (kind == DEADLINE_HEADER || (kind == DEADLINE_BODY && connection->state == CONNECTION_BODY)) {
        refuse(connection, 408);
    } else if (kind != DEADLINE_WRITE || connection_unsent(connection) >= connection->unsent_seen) {
        tell_gone(connection);
        connection_close(connection);
    }
    connection_leave(connection);
}

void connection_run_deferred(struct connection *connection)
{
    connection_enter(connection);
    if (connection->gone_due) {
        connection->gone_due = false;
        tell_gone(connection);
    } else if (connection->state != CONNECTION_CLOSED) {
        if (connection->unflushed)
            connection_send(connection, NULL, SPAN_NONE);
        feed_ahead(connection);
    }
    connection_leave(connection);
}

void connection_enter(struct connection *connection)
{
    connection->depth++;
}

void connection_leave(struct connection *connection)
{
    if (--connection->depth)
        return;
    if (exchange_is_over(connection))
        finish_exchange(connection);
    if (has_held(connection) && !(connection->listener->patient && connection->state == CONNECTION_HANDLING))
        connection_send(connection, NULL, SPAN_NONE);
    if (connection->state == CONNECTION_CLOSED) {
        settle_closed(connection);
        return;
    }
    if ((connection->state == CONNECTION_IDLE && server_of(connection)->stopping) || update_reading(connection) < 0) {
        connection_close_with_gone(connection);
        return;
    }
    if (connection->state == CONNECTION_IDLE)
        buffer_deinit(&connection->held);
    update_deadline(connection);
    if (ahead_length(connection) && wants_input(connection))
        server_defer(server_of(connection), connection);
}

int connection_accept(struct http_listener *listener)
{
    struct connection *connection = calloc(1, sizeof(*connection));
    const struct http_handler *handler = listener->handler;
    uv_os_fd_t fd;
    int r;

    if (!connection)
        return -ENOMEM;
    r = uv_tcp_init(listener->server->loop, &connection->tcp);
    if (r < 0) {
        free(connection);
        return r;
    }
    connection->listener = listener;
    listener->refs++;
    list_link_init(&connection->of_deferred);
    deadline_init(&connection->deadline);
    list_push_back(&listener->connections, &connection->of_listener);
    server_connection_opened(listener->server);
    connection_enter(connection);
    r = uv_accept((uv_stream_t *)&listener->tcp, (uv_stream_t *)&connection->tcp);
    if (r < 0 || uv_fileno((uv_handle_t *)&connection->tcp, &fd) < 0 ||
        (handler->on_accept && !handler->on_accept(fd, listener->context)))
        connection_close(connection);
    else
        (void)uv_tcp_nodelay(&connection->tcp, 1); /* not every adopted socket is TCP */
    connection_leave(connection);
    return 0;
}
