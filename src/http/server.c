#include "http/server.h"

#include "http/connection.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>

enum { BACKLOG = 4096 /* the kernel lowers it to net.core.somaxconn */ };

/* --- references ------------------------------------------------------------------------------------------------- */

static void server_unref(struct http_server *server)
{
    if (--server->refs)
        return;
    request_pool_deinit(&server->requests);
    free(server);
}

void listener_unref(struct http_listener *listener)
{
    struct http_server *server = listener->server;

    if (--listener->refs)
        return;
    free(listener);
    server_unref(server);
}

static void on_server_handle_end(uv_handle_t *handle)
{
    server_unref(handle->data);
}

static void on_listener_handle_end(uv_handle_t *handle)
{
    listener_unref(CONTAINER_OF((uv_tcp_t *)handle, struct http_listener, tcp));
}

/* --- turns and deadlines ---------------------------------------------------------------------------------------- */

static void accept_next(struct http_listener *listener);
static void on_turn(uv_idle_t *handle);

static void wake_turn(struct http_server *server)
{
    if (!server->freed)
        uv_idle_start(&server->turn, on_turn);
}

void server_defer(struct http_server *server, struct connection *connection)
{
    if (list_is_linked(&connection->of_deferred))
        return;
    list_push_back(&server->deferred, &connection->of_deferred);
    wake_turn(server);
}

static struct connection *pop_connection(struct list *list)
{
    struct list_link *link = list_first(list);

    if (!link)
        return NULL;
    list_remove(link);
    return CONTAINER_OF(link, struct connection, of_deferred);
}

static void run_deferred(struct http_server *server)
{
    struct connection *connection;

    while ((connection = pop_connection(&server->deferred)))
        list_push_back(&server->running, &connection->of_deferred);
    while ((connection = pop_connection(&server->running)))
        connection_run_deferred(connection);
}

static struct http_listener *first_waiting(const struct http_server *server)
{
    LIST_FOREACH (link, &server->listeners) {
        struct http_listener *listener = CONTAINER_OF(link, struct http_listener, of_server);
        if (listener->accept_waiting)
            return listener;
    }
    return NULL;
}

/* Looks from the start each time: on_accept may close listeners. */
static void retry_accepts(struct http_server *server)
{
    struct http_listener *listener;

    if (!server->accept_waiting)
        return;
    server->accept_waiting = false;
    while (!server->freed && !server->accept_waiting && (listener = first_waiting(server)))
        accept_next(listener);
}

static void tell_stopped(struct http_server *server)
{
    void (*on_stopped)(void *context) = server->on_stopped;

    if (!server->stopping || server->connection_count || !on_stopped)
        return;
    server->on_stopped = NULL;
    on_stopped(server->on_stopped_context);
}

static void on_turn(uv_idle_t *handle)
{
    struct http_server *server = handle->data;

    server->refs++;
    uv_idle_stop(handle);
    run_deferred(server);
    retry_accepts(server);
    if (!server->freed)
        tell_stopped(server);
    server_unref(server);
}

static void on_timer(uv_timer_t *timer);

static void arm_timer(struct http_server *server, uint64_t due_ms)
{
    uint64_t now = uv_now(server->loop);

    server->timer_due_ms = due_ms;
    if (due_ms == UINT64_MAX || server->freed)
        uv_timer_stop(&server->timer);
    else
        uv_timer_start(&server->timer, on_timer, due_ms > now ? due_ms - now : 0, 0);
}

static void on_timer(uv_timer_t *timer)
{
    struct http_server *server = timer->data;
    struct deadline *deadline;

    while ((deadline = deadlines_pop_due(&server->deadlines, uv_now(server->loop))))
        connection_on_deadline(CONTAINER_OF(deadline, struct connection, deadline));
    arm_timer(server, deadlines_next_ms(&server->deadlines));
}

void server_set_deadline(struct http_server *server, struct deadline *deadline, enum deadline_kind kind)
{
    deadline_set(&server->deadlines, deadline, kind, uv_now(server->loop));
    if (deadline->due_ms < server->timer_due_ms)
        arm_timer(server, deadline->due_ms);
}

const char *server_date(struct http_server *server)
{
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    time_t now = time(NULL);
    struct tm parts;

    if (now == server->date_second && server->date[0])
        return server->date;
    server->date_second = now;
    gmtime_r(&now, &parts);
    snprintf(server->date, sizeof(server->date), "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT", days + 3 * parts.tm_wday,
             parts.tm_mday, months + 3 * parts.tm_mon, (parts.tm_year + 1900) % 10000, parts.tm_hour, parts.tm_min,
             parts.tm_sec);
    return server->date;
}

/* --- accepting -------------------------------------------------------------------------------------------------- */

void server_connection_opened(struct http_server *server)
{
    server->connection_count++;
}

void server_connection_closed(struct http_server *server)
{
    assert(server->connection_count > 0);
    server->connection_count--;
    if (server->accept_waiting || (server->stopping && !server->connection_count))
        wake_turn(server);
}

/* The connection that has been idle longest makes room. */
static bool evict_idle(struct http_server *server)
{
    struct list_link *link = list_first(&server->deadlines.lists[DEADLINE_IDLE]);

    if (!link)
        return false;
    connection_close(CONTAINER_OF(CONTAINER_OF(link, struct deadline, link), struct connection, deadline));
    return true;
}

/* A connection that cannot be taken now stays with libuv, which polls for no further ones until it is. */
static void accept_next(struct http_listener *listener)
{
    struct http_server *server = listener->server;

    listener->accept_waiting = false;
    if (!listener->patient && server->connection_count >= server->config.connections && !evict_idle(server)) {
        listener->accept_waiting = server->accept_waiting = true;
    } else if (connection_accept(listener) < 0) {
        listener->accept_waiting = server->accept_waiting = true;
        wake_turn(server);
    }
}

static void stop_listening(struct http_listener *listener)
{
    if (!listener->listening)
        return;
    listener->listening = false;
    listener->accept_waiting = false;
    uv_close((uv_handle_t *)&listener->tcp, on_listener_handle_end);
}

/*
 * When descriptors run out, libuv closes the waiting connections with one it keeps back, and nothing is to be done. But
 * a socket that somebody else shares and has shut down (the launcher does, when an environment ends) fails every accept
 * with EINVAL for good, and libuv would try for ever.
 */
static void on_connection(uv_stream_t *stream, int status)
{
    struct http_listener *listener = CONTAINER_OF((uv_tcp_t *)stream, struct http_listener, tcp);

    if (status == 0)
        accept_next(listener);
    else if (status == UV_EINVAL)
        stop_listening(listener);
}

/* For CLEANUP: ends one that was never handed out. */
static void abandon_listener(struct http_listener **listener)
{
    if (*listener)
        http_listener_close(*listener, true);
}

static int listener_new(struct http_server *server, const struct http_handler *handler, void *context,
                        struct http_listener **ret_listener)
{
    struct http_listener *listener = calloc(1, sizeof(*listener));
    int r;

    assert(handler->on_request);
    if (!listener)
        return -ENOMEM;
    r = uv_tcp_init(server->loop, &listener->tcp);
    if (r < 0) {
        free(listener);
        return r;
    }
    listener->server = server;
    listener->handler = handler;
    listener->context = context;
    listener->listening = true;
    listener->refs = 2; /* the caller's and the handle's */
    server->refs++;
    list_init(&listener->connections);
    list_push_back(&server->listeners, &listener->of_server);
    *ret_listener = listener;
    return 0;
}

static int parse_address(const char *host, uint16_t port, struct sockaddr_storage *ret_address)
{
    if (uv_ip4_addr(host, port, (struct sockaddr_in *)ret_address) == 0)
        return 0;
    return uv_ip6_addr(host, port, (struct sockaddr_in6 *)ret_address);
}

int http_server_listen(struct http_server *server, const char *host, uint16_t port, const struct http_handler *handler,
                       void *context, struct http_listener **ret_listener, struct fault *fault)
{
    CLEANUP(abandon_listener) struct http_listener *listener = NULL;
    struct sockaddr_storage address = {0};
    int r;

    if (parse_address(host, port, &address) < 0)
        return fault_set(fault, EINVAL, "\"%s\" is not an IP address to listen on", host);
    r = listener_new(server, handler, context, &listener);
    if (r < 0)
        return fault_set(fault, -r, "cannot make a listener: %s", uv_strerror(r));
    r = uv_tcp_bind(&listener->tcp, (struct sockaddr *)&address, 0);
    if (r == 0)
        r = uv_listen((uv_stream_t *)&listener->tcp, BACKLOG, on_connection);
    if (r == UV_EADDRINUSE)
        return fault_set(fault, EADDRINUSE, "%s port %u is in use by another program", host, port);
    if (r < 0)
        return fault_set(fault, -r, "cannot listen on %s port %u: %s", host, port, uv_strerror(r));
    *ret_listener = TAKE_PTR(listener);
    return 0;
}

int http_server_adopt(struct http_server *server, int fd, bool patient, const struct http_handler *handler,
                      void *context, struct http_listener **ret_listener)
{
    CLEANUP(abandon_listener) struct http_listener *listener = NULL;
    CLEANUP(cleanup_close) int own = -1; /* so that a failure leaves the caller's alone */
    int listening = 0;
    socklen_t length = sizeof(listening);
    int r;

    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) < 0)
        return -errno;
    if (!listening)
        return -EINVAL;
    r = listener_new(server, handler, context, &listener);
    if (r < 0)
        return r;
    listener->patient = patient;
    own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0)
        return -errno;
    r = uv_tcp_open(&listener->tcp, own);
    if (r < 0)
        return r;
    TAKE_FD(own);
    r = uv_listen((uv_stream_t *)&listener->tcp, BACKLOG, on_connection);
    if (r < 0)
        return r;
    close(fd);
    *ret_listener = TAKE_PTR(listener);
    return 0;
}

int http_listener_address(const struct http_listener *listener, struct sockaddr_storage *ret_address)
{
    int length = sizeof(*ret_address);

    return uv_tcp_getsockname(&listener->tcp, (struct sockaddr *)ret_address, &length);
}

/* --- the ends --------------------------------------------------------------------------------------------------- */

void http_listener_close(struct http_listener *listener, bool quiet)
{
    stop_listening(listener);
    list_remove(&listener->of_server);
    LIST_FOREACH (link, &listener->connections) {
        struct connection *connection = CONTAINER_OF(link, struct connection, of_listener);
        if (quiet)
            connection_close(connection);
        else
            connection_close_with_gone(connection);
    }
    listener_unref(listener);
}

void http_server_shutdown(struct http_server *server, void (*on_done)(void *context), void *context)
{
    server->stopping = true;
    server->on_stopped = on_done;
    server->on_stopped_context = context;
    LIST_FOREACH (link, &server->listeners) {
        struct http_listener *listener = CONTAINER_OF(link, struct http_listener, of_server);
        stop_listening(listener);
        LIST_FOREACH (member, &listener->connections) {
            struct connection *connection = CONTAINER_OF(member, struct connection, of_listener);
            /* Leaving closes it when it is idle, and sets its deadline else. */
            connection_enter(connection);
            connection_leave(connection);
        }
    }
    if (!server->connection_count)
        wake_turn(server);
}

struct http_server *http_server_free(struct http_server *server)
{
    struct connection *connection;
    struct list_link *link;

    if (!server)
        return NULL;
    assert(!server->freed);
    server->freed = true;
    server->on_stopped = NULL;
    while ((link = list_first(&server->listeners)))
        http_listener_close(CONTAINER_OF(link, struct http_listener, of_server), true);
    /* What is left are closed ones that wait for on_gone. */
    while ((connection = pop_connection(&server->deferred)) || (connection = pop_connection(&server->running)))
        connection_close(connection);
    uv_close((uv_handle_t *)&server->timer, on_server_handle_end);
    uv_close((uv_handle_t *)&server->turn, on_server_handle_end);
    return NULL;
}

static uint64_t or_default(uint64_t value, uint64_t fallback)
{
    return value ? value : fallback;
}

static void fill_defaults(struct http_server *server, const struct http_server_config *config)
{
    struct http_server_config *own = &server->config;
    uint64_t *durations = server->deadlines.durations_ms;

    *own = *config;
    own->header_bytes = or_default(config->header_bytes, 1024 * 1024 + 16 * 1024);
    own->body_bytes = or_default(config->body_bytes, 1024 * 1024);
    own->connections = (unsigned)or_default(config->connections, 20000);
    own->drain_bytes = or_default(config->drain_bytes, 128 * 1024 * 1024);
    durations[DEADLINE_IDLE] = or_default(config->idle_timeout_ms, 75000);
    durations[DEADLINE_HEADER] = or_default(config->header_timeout_ms, 10000);
    durations[DEADLINE_BODY] = or_default(config->body_timeout_ms, 30000);
    durations[DEADLINE_WRITE] = or_default(config->write_timeout_ms, 60000);
    durations[DEADLINE_LINGER] = or_default(config->drain_timeout_ms, 30000);
    durations[DEADLINE_HOLD] = or_default(config->hold_timeout_ms, 2);
    durations[DEADLINE_STOP] = or_default(config->stop_timeout_ms, 1000);
}

/* libuv writes with write(2) and writev(2): a peer that has gone must not kill the process. */
static void ignore_sigpipe(void)
{
    struct sigaction action;

    if (sigaction(SIGPIPE, NULL, &action) == 0 && action.sa_handler == SIG_DFL)
        signal(SIGPIPE, SIG_IGN);
}

int http_server_new(const struct http_server_config *config, struct http_server **ret_server)
{
    CLEANUP(cleanup_free) struct http_server *server = calloc(1, sizeof(*server));
    int r;

    if (!server)
        return -ENOMEM;
    server->loop = config->loop;
    server->timer_due_ms = UINT64_MAX;
    list_init(&server->listeners);
    list_init(&server->deferred);
    list_init(&server->running);
    deadlines_init(&server->deadlines);
    fill_defaults(server, config);
    r = uv_timer_init(config->loop, &server->timer);
    if (r < 0)
        return r;
    r = uv_idle_init(config->loop, &server->turn);
    assert(r == 0); /* neither can fail */
    server->timer.data = server->turn.data = server;
    server->refs = 2;
    uv_unref((uv_handle_t *)&server->timer);
    ignore_sigpipe();
    *ret_server = TAKE_PTR(server);
    return 0;
}

size_t http_server_connections(const struct http_server *server)
{
    return server->connection_count;
}
