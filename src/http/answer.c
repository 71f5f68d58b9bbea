/* The handler's side of an exchange: whole answers and streamed ones. */
#include "http/connection.h"

#include <assert.h>

enum { DRAIN_BYTES = 64 * 1024 };

static bool status_has_no_body(int status)
{
    return status == 204 || status == 304;
}

/* Serialises the head into request->out. */
static int prepare_head(struct http_request *request, struct response_plan *plan, const struct response_wishes *wishes,
                        const struct http_header *headers, size_t header_count)
{
    struct connection *connection = request->connection;

    plan->keep_alive = connection->keep_alive;
    plan->minor_version = request->parser.minor_version;
    plan->date = wishes->has_date ? NULL : server_date(connection->listener->server);
    request->framing = plan->framing;
    return response_append_head(&request->out, plan, headers, header_count);
}

static struct response_plan plan_whole(const struct http_request *request, int status, size_t length,
                                       const struct response_wishes *wishes)
{
    struct response_plan plan = {.status = status, .framing = RESPONSE_LENGTH, .content_length = (int64_t)length};

    if (status_has_no_body(status)) {
        plan.framing = RESPONSE_NO_BODY;
        plan.content_length = status == 304 ? wishes->content_length : -1;
    } else if (request_is_head(request) && !length && wishes->content_length >= 0) {
        plan.content_length = wishes->content_length;
    }
    return plan;
}

void http_respond(struct http_request *request, int status, const struct http_header *headers, size_t header_count,
                  struct buffer *body)
{
    struct connection *connection = request->connection;
    struct response_wishes wishes = response_inspect(headers, header_count);
    struct response_plan plan = plan_whole(request, status, body ? body->length : 0, &wishes);
    struct buffer taken = body ? buffer_take(body) : BUFFER_INIT;

    assert(status >= 200 && status <= 999);
    if (request->answer != ANSWER_NONE) { /* gone meanwhile */
        buffer_deinit(&taken);
        return;
    }
    connection_enter(connection);
    request->answer = ANSWER_DONE;
    connection_prepare_answer(connection, wishes.close);
    if (plan.framing == RESPONSE_NO_BODY || request_is_head(request))
        buffer_deinit(&taken);
    if (prepare_head(request, &plan, &wishes, headers, header_count) < 0)
        connection_close(connection);
    else
        connection_send(connection, &taken, SPAN_NONE);
    buffer_deinit(&taken);
    connection_leave(connection);
}

static struct response_plan plan_stream(const struct http_request *request, int status,
                                        const struct response_wishes *wishes)
{
    struct response_plan plan = {.status = status, .content_length = wishes->content_length};

    if (status_has_no_body(status))
        plan.framing = RESPONSE_NO_BODY;
    else if (wishes->content_length >= 0)
        plan.framing = RESPONSE_LENGTH;
    else
        plan.framing = request->parser.minor_version ? RESPONSE_CHUNKED : RESPONSE_UNTIL_CLOSE;
    return plan;
}

void http_response_start(struct http_request *request, int status, const struct http_header *headers,
                         size_t header_count, void (*on_drain)(struct http_request *request, void *context))
{
    struct connection *connection = request->connection;
    struct response_wishes wishes = response_inspect(headers, header_count);
    struct response_plan plan = plan_stream(request, status, &wishes);

    assert(status >= 200 && status <= 999);
    if (request->answer != ANSWER_NONE)
        return;
    connection_enter(connection);
    request->answer = ANSWER_STREAMING;
    request->on_drain = on_drain;
    request->stream_remaining = wishes.content_length;
    connection_prepare_answer(connection, wishes.close || plan.framing == RESPONSE_UNTIL_CLOSE);
    if (prepare_head(request, &plan, &wishes, headers, header_count) < 0) {
        connection_close_with_gone(connection);
    } else {
        /* Most producers write at once: one system call for both. */
        connection->unflushed = true;
        server_defer(connection->listener->server, connection);
    }
    connection_leave(connection);
}

/* Nothing more may be written: dead to the handler, closed, or a response that has no body. */
static bool is_mute(const struct http_request *request)
{
    return request->answer != ANSWER_STREAMING || request->connection->state == CONNECTION_CLOSED ||
           request->framing == RESPONSE_NO_BODY || request_is_head(request);
}

static void send_chunk(struct http_request *request, struct buffer *chunk)
{
    struct connection *connection = request->connection;

    if (request->framing == RESPONSE_LENGTH) {
        chunk->length = MIN(chunk->length, (size_t)request->stream_remaining);
        request->stream_remaining -= (int64_t)chunk->length;
    }
    if (!chunk->length)
        return;
    if (request->framing != RESPONSE_CHUNKED)
        connection_send(connection, chunk, SPAN_NONE);
    else if (response_append_chunk_size(&request->out, chunk->length) < 0)
        connection_close_with_gone(connection);
    else
        connection_send(connection, chunk, SPAN("\r\n"));
}

size_t http_response_write(struct http_request *request, struct buffer *chunk)
{
    struct connection *connection = request->connection;
    struct buffer taken = buffer_take(chunk);
    size_t unsent;

    if (is_mute(request)) {
        buffer_deinit(&taken);
        return 0;
    }
    connection_enter(connection);
    send_chunk(request, &taken);
    unsent = connection_unsent(connection);
    if (unsent >= DRAIN_BYTES)
        request->drain_due = true;
    buffer_deinit(&taken);
    connection_leave(connection);
    return unsent;
}

void http_response_end(struct http_request *request, const struct http_header *trailers, size_t trailer_count)
{
    struct connection *connection = request->connection;
    bool mute = is_mute(request);

    if (request->answer != ANSWER_STREAMING)
        return;
    connection_enter(connection);
    request->answer = ANSWER_DONE;
    if (!mute && request->framing == RESPONSE_LENGTH && request->stream_remaining > 0)
        connection_reset(connection);
    else if (!mute && request->framing == RESPONSE_CHUNKED &&
             response_append_last_chunk(&request->out, trailers, trailer_count) < 0)
        connection_reset(connection);
    else
        connection_send(connection, NULL, SPAN_NONE);
    connection_leave(connection);
}

void http_response_abort(struct http_request *request)
{
    struct connection *connection = request->connection;

    if (request->answer == ANSWER_DONE)
        return;
    connection_enter(connection);
    request->answer = ANSWER_DONE;
    connection_reset(connection);
    connection_leave(connection);
}
