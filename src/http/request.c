#include "http/request.h"

#include "http/connection.h"

#include <arpa/inet.h>

enum { POOL_MAX = 256, BODY_KEPT = 8 * 1024, OUT_KEPT = 4 * 1024 };

struct http_request *request_acquire(struct request_pool *pool, struct connection *connection)
{
    struct http_request *request = pool->free;

    if (request) {
        pool->free = request->next_free;
        pool->count--;
    } else {
        request = calloc(1, sizeof(*request));
        if (!request)
            return NULL;
        parser_init(&request->parser);
    }
    request->connection = connection;
    return request;
}

static void request_free(struct http_request *request)
{
    parser_deinit(&request->parser);
    buffer_deinit(&request->body);
    buffer_deinit(&request->trailers);
    buffer_deinit(&request->out);
    arena_deinit(&request->arena);
    free(request);
}

static void empty(struct buffer *buffer, size_t kept)
{
    if (buffer->capacity > kept)
        buffer_deinit(buffer);
    buffer->length = 0;
}

void request_release(struct request_pool *pool, struct http_request *request)
{
    if (pool->count >= POOL_MAX) {
        request_free(request);
        return;
    }
    arena_deinit(&request->arena);
    empty(&request->body, BODY_KEPT);
    empty(&request->out, OUT_KEPT);
    buffer_deinit(&request->trailers);
    parser_reset(&request->parser);
    request->chunks = (struct chunk_decoder){0};
    request->connection = NULL;
    request->context = NULL;
    request->on_drain = NULL;
    request->on_body = NULL;
    request->paused = false;
    request->announced = request->drain_due = false;
    request->answer = ANSWER_NONE;
    request->next_free = pool->free;
    pool->free = request;
    pool->count++;
}

void request_pool_deinit(struct request_pool *pool)
{
    while (pool->free) {
        struct http_request *next = pool->free->next_free;
        request_free(pool->free);
        pool->free = next;
    }
    pool->count = 0;
}

struct span http_request_method(const struct http_request *request)
{
    return request->parser.method;
}

struct span http_request_path(const struct http_request *request)
{
    return request->parser.path;
}

struct span http_request_query(const struct http_request *request)
{
    return request->parser.query;
}

int http_request_minor_version(const struct http_request *request)
{
    return request->parser.minor_version;
}

size_t http_request_header_count(const struct http_request *request)
{
    return request->parser.field_count;
}

struct http_header http_request_header_at(const struct http_request *request, size_t index)
{
    return parser_field_at(&request->parser, index);
}

struct span http_request_header(const struct http_request *request, struct span name)
{
    const struct parser *parser = &request->parser;

    for (size_t i = 0; i < parser->field_count; i++) {
        if (parser->fields[i].name_length != name.length)
            continue;
        struct http_header field = parser_field_at(parser, i);
        if (span_equal_nocase(field.name, name))
            return field.value;
    }
    return SPAN_NONE;
}

struct span http_request_body(const struct http_request *request)
{
    return buffer_span(&request->body);
}

struct buffer http_request_take_body(struct http_request *request)
{
    return buffer_take(&request->body);
}

void http_request_stream_body(struct http_request *request,
                              void (*on_body)(struct http_request *request, struct span piece, void *context))
{
    request->on_body = on_body;
}

void http_request_pause_body(struct http_request *request, bool paused)
{
    struct connection *connection = request->connection;

    if (!request_is_live(request))
        return;
    connection_enter(connection);
    request->paused = paused;
    connection_leave(connection); /* reading stops or goes on */
}

struct span http_request_trailer(const struct http_request *request, struct span name)
{
    struct span rest = buffer_span(&request->trailers);

    while (rest.length) {
        struct span line = span_cut(&rest, '\n');
        struct span field = span_cut(&line, '\r');
        if (span_equal_nocase(span_cut(&field, ':'), name))
            return span_trim(field);
    }
    return SPAN_NONE;
}

int64_t http_request_content_length(const struct http_request *request)
{
    return request->parser.content_length;
}

struct arena *http_request_arena(struct http_request *request)
{
    return &request->arena;
}

void *http_request_listener_context(const struct http_request *request)
{
    return request->connection->listener->context;
}

void http_request_set_body_limit(struct http_request *request, size_t bytes)
{
    request->body_limit = bytes;
}

void http_request_set_context(struct http_request *request, void *context)
{
    request->context = context;
}

void *http_request_context(const struct http_request *request)
{
    return request->context;
}

struct span http_request_peer(struct http_request *request)
{
    struct sockaddr_storage address;
    int length = sizeof(address);
    char *text = arena_alloc(&request->arena, INET6_ADDRSTRLEN);

    if (!text || uv_tcp_getpeername(&request->connection->tcp, (struct sockaddr *)&address, &length) < 0)
        return SPAN_NONE;
    if (address.ss_family == AF_INET)
        uv_ip4_name((struct sockaddr_in *)&address, text, INET6_ADDRSTRLEN);
    else if (address.ss_family == AF_INET6)
        uv_ip6_name((struct sockaddr_in6 *)&address, text, INET6_ADDRSTRLEN);
    else
        return SPAN_NONE;
    /* An IPv4 peer of a dual-stack socket is known by its IPv4 address. */
    struct span peer = span_from(text);
    if (span_starts_with(peer, SPAN("::ffff:")) && span_find(peer, '.') > 0)
        return span_slice(peer, sizeof("::ffff:") - 1, peer.length);
    return peer;
}
