/*
 * Private to http: one exchange, from the first byte of its head to the last byte of its answer, and the pool that
 * finished ones go back to, so that a request on a warm server allocates nothing for itself.
 */
#pragma once

#include "http/chunk.h"
#include "http/parser.h"
#include "http/response.h"
#include "http/server.h"

struct connection;

enum answer {
    ANSWER_NONE,      /* the handler owes one */
    ANSWER_STREAMING, /* http_response_start was called */
    ANSWER_DONE,      /* complete or no longer wanted: the handler's pointer is dead */
};

struct http_request {
    struct connection *connection;
    struct http_request *next_free;
    struct parser parser;
    struct chunk_decoder chunks;
    struct buffer body;
    size_t body_limit;
    /* A body that is handed on piece by piece. */
    void (*on_body)(struct http_request *request, struct span piece, void *context);
    struct buffer trailers; /* of such a body: lines ended by CRLF */
    bool paused;
    struct arena arena;
    void *context;
    bool announced; /* on_headers has been called: the handler knows it */
    bool drain_due; /* more than 64 KiB were unsent: on_drain is owed */
    enum answer answer;
    enum response_framing framing;
    int64_t stream_remaining; /* of a streamed answer with Content-Length */
    void (*on_drain)(struct http_request *request, void *context);
    struct buffer out; /* serialised and not yet given to the kernel */
};

struct request_pool {
    struct http_request *free;
    size_t count;
};

/* NULL when out of memory. */
struct http_request *request_acquire(struct request_pool *pool, struct connection *connection) MUST_USE;
/* Frees what the exchange held; keeps the object, with modest buffers, for another one. */
void request_release(struct request_pool *pool, struct http_request *request);
void request_pool_deinit(struct request_pool *pool);

/* The handler holds the pointer and is owed a callback or owes an answer. */
static inline bool request_is_live(const struct http_request *request)
{
    return request->announced && request->answer != ANSWER_DONE;
}

static inline bool request_is_head(const struct http_request *request)
{
    return span_equal(request->parser.method, SPAN("HEAD"));
}
