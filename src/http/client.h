/*
 * Outgoing HTTP and HTTPS requests on the caller's libuv loop (libcurl's multi interface underneath): for fetching a
 * function's code from an S3-compatible endpoint and the like. Connections are kept and used again.
 *
 * Everything happens on the loop's thread. on_done comes from the loop, once per fetch, never from inside a call into
 * this module; it may start, cancel or free anything here. Redirects are not followed (the caller sees the 3xx), only
 * http and https URLs are accepted, and certificates are verified.
 */
#pragma once

#include "base/buffer.h"
#include "http/header.h"

#include <uv.h>

struct http_client;
struct http_fetch;

/* Read during http_client_fetch only; nothing of it is kept by reference. */
struct http_fetch_request {
    const char *method; /* NULL: GET */
    const char *url;
    const struct http_header *headers; /* Host, Content-Length and the rest are added unless given */
    size_t header_count;
    struct buffer *body;       /* taken when http_client_fetch succeeds; NULL: none */
    unsigned timeout_ms;       /* for the whole exchange, name resolution included; 0: 30,000 */
    size_t max_response_bytes; /* longest body accepted; 0: 64 MiB */
};

struct http_fetch_result {
    int error;                         /* 0: the response is complete, whatever its status; else negative errno */
    const char *sentence;              /* what went wrong, for a person; "" when nothing did */
    int status;                        /* 200, 404, ...; 0 when no response came */
    const struct http_header *headers; /* of the final response, in their order */
    size_t header_count;
    struct buffer body; /* buffer_take what is wanted; the rest is freed when on_done returns */
};

/*
 * Errors: -ETIMEDOUT, -ECONNREFUSED, -EHOSTUNREACH (name or route), -EMSGSIZE (body past max_response_bytes),
 * -ECONNRESET (broken off), -EPROTO (not HTTP, or TLS), -ENOMEM, -EIO (the rest).
 * `result` and all it points to are borrowed until the callback returns; the fetch is gone by then.
 */
typedef void http_fetch_done(struct http_fetch_result *result, void *context);

/* The loop is borrowed until the handles have ended after http_client_free. 0 or -errno. */
int http_client_new(uv_loop_t *loop, struct http_client **ret_client) MUST_USE;

/*
 * Starts a fetch. -EINVAL for a URL, method or header that cannot be sent, -ENOMEM; on_done is then not called and the
 * body not taken. ret_fetch may be NULL; the pointer is good until on_done is called.
 */
int http_client_fetch(struct http_client *client, const struct http_fetch_request *request, http_fetch_done *on_done,
                      void *context, struct http_fetch **ret_fetch) MUST_USE;

/* Ends a fetch without on_done. */
void http_fetch_cancel(struct http_fetch *fetch);

/* Fetches under way now. */
size_t http_client_fetches(const struct http_client *client);

/* Cancels every fetch. The handles end on later turns of the loop. NULL is allowed. */
struct http_client *http_client_free(struct http_client *client);
