/*
 * Private to http: the structures of the server, its listeners and connections, and what server.c, connection.c and
 * answer.c ask of each other.
 *
 * References: a connection holds its listener, a listener holds the server; each is freed when its handle has ended
 * and nothing refers to it any more. So closing may happen anywhere, in any callback, and memory goes later.
 */
#pragma once

#include "base/list.h"
#include "http/deadline.h"
#include "http/request.h"
#include "http/server.h"

enum { SHARED_READ_BYTES = 64 * 1024, DATE_BYTES = 80 };

struct http_server {
    uv_loop_t *loop;
    struct http_server_config config; /* defaults filled in */
    struct list listeners;            /* those the caller still holds */
    struct deadlines deadlines;
    uv_timer_t timer;
    uint64_t timer_due_ms; /* UINT64_MAX: not running */
    uv_idle_t turn;        /* runs the deferred connections on the next turn */
    struct list deferred;
    struct list running; /* those of `deferred` that this turn runs */
    struct request_pool requests;
    size_t connection_count;
    size_t refs;
    bool accept_waiting; /* some listener has one */
    bool stopping;
    bool freed;
    void (*on_stopped)(void *context);
    void *on_stopped_context;
    time_t date_second;
    char date[DATE_BYTES];
    char shared[SHARED_READ_BYTES]; /* what is read from any connection goes here first */
};

struct http_listener {
    uv_tcp_t tcp;
    struct http_server *server;
    struct list_link of_server;
    struct list connections;
    const struct http_handler *handler;
    void *context;
    size_t refs;
    bool patient;
    bool listening;      /* the handle is open */
    bool accept_waiting; /* a connection waits to be accepted for want of room */
};

/*
 * What is expected from the peer:
 *
 *    IDLE -> HEAD -> BODY -> HANDLING -> IDLE     one exchange on a kept-alive connection
 *              \________________/ /               (HEAD -> HANDLING when there is no body)
 *                    BODY -> DISCARD -> IDLE      answered early, what is left of the body is small
 *    HEAD, BODY, HANDLING -> DISCARD -> LINGER    last answer given while the peer still sends
 *    any -> CLOSED
 */
enum connection_state {
    CONNECTION_IDLE,
    CONNECTION_HEAD,
    CONNECTION_BODY,
    CONNECTION_HANDLING,
    CONNECTION_DISCARD,
    CONNECTION_LINGER,
    CONNECTION_CLOSED,
};

struct connection {
    uv_tcp_t tcp;
    struct http_listener *listener;
    struct list_link of_listener;
    struct list_link of_deferred;
    struct deadline deadline;
    struct http_request *request; /* NULL between exchanges */
    struct buffer ahead;          /* read while a request was being handled, from ahead_at on */
    size_t ahead_at;
    struct buffer held;      /* an answer, until the request behind it begins */
    uint64_t body_remaining; /* of a body with Content-Length */
    uint64_t discarded;
    size_t unsent_seen; /* the write queue when its deadline was set */
    enum connection_state state;
    unsigned depth; /* callbacks and calls on the stack that use this connection */
    bool keep_alive;
    bool reading;
    bool gone_due;    /* closed by a call: on_gone follows on a later turn */
    bool peer_ended;  /* it will send nothing more */
    bool more_behind; /* the request being handed over has bytes behind it */
    bool unflushed;   /* the head of a streamed answer waits for its first chunk, or the end of this turn */
    bool handle_ended;
};

/* --- connection.c ------------------------------------------------------------------------------------------------ */

/* Accepts what waits on the listener. -ENOMEM when it has to wait on. */
int connection_accept(struct http_listener *listener) MUST_USE;
/* Every use of a connection that may call back, answer or close stands between these two. */
void connection_enter(struct connection *connection);
void connection_leave(struct connection *connection);
/* Closes now. A live request is dropped without a callback. */
void connection_close(struct connection *connection);
/* Closes now; a live request gets on_gone on a later turn. */
void connection_close_with_gone(struct connection *connection);
/* The peer gets a reset. */
void connection_reset(struct connection *connection);
void connection_on_deadline(struct connection *connection);
void connection_run_deferred(struct connection *connection);
/* Before an answer is serialised: settles whether the connection lives on, and what happens to a body under way. */
void connection_prepare_answer(struct connection *connection, bool wants_close);
/*
 * Writes request->out, `body` (may be NULL) and `tail` (static bytes). What the kernel does not take at once is moved
 * away and written later. A failure closes the connection.
 */
void connection_send(struct connection *connection, struct buffer *body, struct span tail);
/* Bytes given to connection_send and not yet taken by the kernel. */
size_t connection_unsent(const struct connection *connection);

/* --- server.c ---------------------------------------------------------------------------------------------------- */

void server_defer(struct http_server *server, struct connection *connection);
void server_set_deadline(struct http_server *server, struct deadline *deadline, enum deadline_kind kind);
void server_connection_opened(struct http_server *server);
void server_connection_closed(struct http_server *server);
const char *server_date(struct http_server *server);
void listener_unref(struct http_listener *listener);
