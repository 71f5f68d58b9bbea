/*
 * An HTTP/1.1 server on a libuv loop. It knows nothing of AWS: it turns bytes into requests, hands them to a handler
 * and writes what the handler answers. Everything happens on the loop's thread; callbacks run from the loop, never from
 * inside a call into this module.
 *
 * One exchange is a `struct http_request`. Its life: on_headers (the header section is complete, the body is not) ->
 * on_request (the body is complete and in memory) -> the handler answers, at once or any time later -> the request is
 * freed when the response has been handed to the kernel. The pointer is valid until the handler has called http_respond
 * (or http_response_end), or until on_gone has returned, whichever comes first.
 *
 * Keep-alive, pipelining (answers leave in order; a connection's next request is parsed when the one before is
 * answered, with a bound on what is read ahead), chunked bodies in both directions, Expect: 100-continue and HEAD are
 * handled here. So are the refusals that need no handler: 400 (malformed), 408 (header or body too slow), 413 (body
 * over the limit), 431 (header section too large), 501/505; they go out in the form set by `refuse`.
 */
#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "base/fault.h"
#include "http/header.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <uv.h>

struct http_server;
struct http_listener;
struct http_request;

enum { HTTP_REFUSAL_HEADERS = 8 };

struct http_handler {
    /*
     * The request line and headers are complete. May set a body limit (http_request_set_body_limit) and a context
     * (http_request_set_context), or answer right away (a body still on its way is then drained within a bound, or the
     * connection is closed after the answer). Optional.
     */
    void (*on_headers)(struct http_request *request, void *context);
    /* The request is complete. Must lead to exactly one answer, now or later. */
    void (*on_request)(struct http_request *request, void *context);
    /*
     * After on_headers and before the answer was complete, the peer closed its end or reset the connection, the
     * listener was closed, or the server itself refused the rest of the request (413, 408 or 400 in the body). Last
     * callback of this request; it is freed when this returns. Optional.
     */
    void (*on_gone)(struct http_request *request, void *context);
    /*
     * Lets the owner give the server's own refusals its own form (say, a JSON error envelope): appends the body to
     * `body` and fills up to HTTP_REFUSAL_HEADERS headers, whose memory may be the request's arena; returns their
     * number. Comes before the on_gone of a request that had its on_headers; for one refused before that there is
     * neither a context nor, perhaps, a method or a path. Must not answer. Optional: without it a short text/plain line
     * is sent.
     */
    size_t (*refuse)(struct http_request *request, int status, struct http_header *headers, struct buffer *body,
                     void *context);
    /* A new connection; false closes it at once. `fd` is borrowed. Optional. */
    bool (*on_accept)(int fd, void *context);
};

struct http_server_config {
    uv_loop_t *loop;
    size_t header_bytes;        /* request line and headers together; 0: 1 MiB + 16 KiB */
    size_t body_bytes;          /* default body limit until on_headers sets another; 0: 1 MiB */
    unsigned header_timeout_ms; /* from the first byte of a request to the end of its headers; 0: 10,000 */
    unsigned body_timeout_ms;   /* longest silence while a body is due; 0: 30,000 */
    unsigned idle_timeout_ms;   /* a kept-alive connection between requests; 0: 75,000 */
    unsigned write_timeout_ms;  /* longest time a response makes no progress; 0: 60,000 */
    unsigned hold_timeout_ms;   /* how long an answer waits for a later one (http_server_adopt); 0: 2 */
    unsigned connections;       /* at most this many at once; 0: 20,000. Past it the longest idle one makes room,
                                   and when none is idle the next waits; patient listeners are exempt */
    size_t drain_bytes;         /* read and dropped after an answer that came before the body's end; 0: 128 MiB */
    unsigned drain_timeout_ms;  /* and for at most this long; 0: 30,000 */
    unsigned stop_timeout_ms;   /* how long http_server_shutdown waits for the rest of a request; 0: 1,000 */
};

/* Makes a server without listeners. The loop is borrowed until http_server_free. 0 or -errno. */
int http_server_new(const struct http_server_config *config, struct http_server **ret_server) MUST_USE;

/*
 * Listens on an address ("127.0.0.1", "::1", ...), with port 0 for any. The handler table is borrowed for the
 * listener's life; `context` is passed to its callbacks. A busy port is -EADDRINUSE with a sentence in `fault`.
 */
int http_server_listen(struct http_server *server, const char *host, uint16_t port, const struct http_handler *handler,
                       void *context, struct http_listener **ret_listener, struct fault *fault) MUST_USE;

/*
 * Accepts on a socket that is already listening (a Runtime API socket made by the launcher). Takes `fd` on success.
 * Connections of such listeners have no idle, header, body or write timeout when `patient` is true: a runtime may stay
 * silent, or leave an answer unread, for as long as its function is frozen. And an answer behind whose request the peer
 * has already sent another may wait up to hold_timeout_ms for that one's answer, so that both are one write; on other
 * listeners only answers given in the same turn are sent together.
 */
int http_server_adopt(struct http_server *server, int fd, bool patient, const struct http_handler *handler,
                      void *context, struct http_listener **ret_listener) MUST_USE;

/* The bound address (for port 0). */
int http_listener_address(const struct http_listener *listener, struct sockaddr_storage *ret_address) MUST_USE;

/*
 * Stops accepting and closes every connection of this listener at once; requests under way get on_gone on a later turn
 * of the loop (unless `quiet`, then they get no callback and their pointers die now; the one whose callback is running
 * dies when that returns). The listener is gone for the caller when this returns; without `quiet` the handler table and
 * its context are still used until the last on_gone.
 */
void http_listener_close(struct http_listener *listener, bool quiet);

/*
 * Orderly end: stops accepting on all listeners, closes idle connections, lets requests under way be answered (with
 * Connection: close), then calls on_done once from the loop. A request that is not complete within stop_timeout_ms is
 * dropped (on_gone). Waits for as long as the complete ones take; the caller bounds it with http_server_free, which may
 * follow at any time (on_done is then not called). Listeners stay valid pointers.
 */
void http_server_shutdown(struct http_server *server, void (*on_done)(void *context), void *context);

/* Closes everything at once, without callbacks. The handles end on later turns of the loop. NULL is allowed. */
struct http_server *http_server_free(struct http_server *server);

/* Connections open now, for tests and metrics. */
size_t http_server_connections(const struct http_server *server);

/* --- what a handler asks of a request; spans are valid as long as the request ------------------------------------ */

struct span http_request_method(const struct http_request *request);
/* The path as sent: percent-encoding untouched, without the query (and without scheme and host when sent so). */
struct span http_request_path(const struct http_request *request);
/* What follows the first '?', as sent; empty when there is none. */
struct span http_request_query(const struct http_request *request);
size_t http_request_header_count(const struct http_request *request);
struct http_header http_request_header_at(const struct http_request *request, size_t index);
/* First header of that name (ASCII case ignored), SPAN_NONE when absent; a present but empty one has non-NULL data. */
struct span http_request_header(const struct http_request *request, struct span name);
/* HTTP/1.minor: 0 or 1. */
int http_request_minor_version(const struct http_request *request);
/* The body so far: whole in on_request, empty in on_headers. Stays valid until taken or the request is freed. */
struct span http_request_body(const struct http_request *request);
/* Moves the body out (no copy). The caller owns it. */
struct buffer http_request_take_body(struct http_request *request);
/*
 * In on_headers: hands the body to `on_body` in pieces as they arrive instead of keeping it; the body limit holds.
 * on_request follows with an empty body. `context` is the listener's. A piece is valid during the call only.
 */
void http_request_stream_body(struct http_request *request,
                              void (*on_body)(struct http_request *request, struct span piece, void *context));
/* While paused no more of such a body is read than has come already, and TCP holds the peer back. */
void http_request_pause_body(struct http_request *request, bool paused);
/* First trailer of that name of such a body, in on_request; SPAN_NONE when absent. */
struct span http_request_trailer(const struct http_request *request, struct span name);
/* Content-Length when one was sent and is valid, else -1. */
int64_t http_request_content_length(const struct http_request *request);
/* Memory that lives as long as the request. */
struct arena *http_request_arena(struct http_request *request);
/* The listener's context. */
void *http_request_listener_context(const struct http_request *request);
void http_request_set_body_limit(struct http_request *request, size_t bytes);
void http_request_set_context(struct http_request *request, void *context);
void *http_request_context(const struct http_request *request);
/* "203.0.113.7" or "::1" of the peer, from the request's arena; empty for other socket families. */
struct span http_request_peer(struct http_request *request);

/* --- answering ------------------------------------------------------------------------------------------------- */

/*
 * The whole answer at once. Adds Content-Length (except 204/304), Date and, when due, Connection. Takes `body` (may be
 * NULL), which is written without copying. Headers are copied. The request pointer is dead after this call. Failure to
 * write is the peer's loss: the connection is closed.
 *
 * `status` is 200 to 999. Of the given headers, Content-Length counts only in an answer to HEAD without a body and in
 * a 304, "Connection: close" ends the connection after this answer, other Connection and Transfer-Encoding fields are
 * dropped, and a given Date replaces ours. A field whose name is not a token is dropped; control characters in a
 * value become blanks, so that no value can start another field.
 */
void http_respond(struct http_request *request, int status, const struct http_header *headers, size_t header_count,
                  struct buffer *body);

/*
 * An answer that starts before it ends: chunked for HTTP/1.1 (unless the headers carry Content-Length), closed at the
 * end for HTTP/1.0. `trailers` of http_response_end may be none; they are sent only when chunked. on_drain (may be
 * NULL; its context is the listener's) is called from the loop when less than 64 KiB remain unsent after more had been.
 * With Content-Length given, bytes past it are dropped and an end short of it breaks the connection off. on_gone may
 * come until http_response_end, abort or on_gone itself makes the pointer dead.
 */
void http_response_start(struct http_request *request, int status, const struct http_header *headers,
                         size_t header_count, void (*on_drain)(struct http_request *request, void *context));
/* Takes `chunk`. Returns the bytes now waiting to be sent, so that the producer can pause. */
size_t http_response_write(struct http_request *request, struct buffer *chunk);
void http_response_end(struct http_request *request, const struct http_header *trailers, size_t trailer_count);
/* Breaks the connection off, so that the peer sees an incomplete answer. The pointer is dead after this call. */
void http_response_abort(struct http_request *request);
