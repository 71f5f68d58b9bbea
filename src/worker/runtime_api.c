/*
 * The Runtime API (version 2018-06-01) as the runtime of one environment sees it. Which environment speaks is a matter
 * of which socket the request came in on; on the host's network also of the uid at the other end.
 *
 * Only the environment knows whether a call is right at this moment; here are paths, headers and refusals.
 */
#include "worker/environment.h"

#include "base/clock.h"
#include "http/server.h"
#include "sandbox/peer.h"
#include "worker/api_answer.h"
#include "worker/environment_extensions.h"
#include "worker/extensions_api.h"
#include "worker/streamed_answer.h"
#include "worker/telemetry_api.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/socket.h>

#define API_ROOT "/2018-06-01/runtime/"

enum route { ROUTE_NONE, ROUTE_NEXT, ROUTE_INIT_ERROR, ROUTE_RESPONSE, ROUTE_ERROR };

struct target {
    enum route route;
    struct span request_id; /* of RESPONSE and ERROR */
};

static struct target parse_path(struct span path)
{
    static const struct span invocation = {"invocation/", sizeof("invocation/") - 1};
    struct span id;

    if (!span_starts_with(path, SPAN(API_ROOT)))
        return (struct target){ROUTE_NONE, SPAN_NONE};
    path = span_slice(path, sizeof(API_ROOT) - 1, path.length);
    if (span_equal(path, SPAN("invocation/next")))
        return (struct target){ROUTE_NEXT, SPAN_NONE};
    if (span_equal(path, SPAN("init/error")))
        return (struct target){ROUTE_INIT_ERROR, SPAN_NONE};
    if (!span_starts_with(path, invocation))
        return (struct target){ROUTE_NONE, SPAN_NONE};
    path = span_slice(path, invocation.length, path.length);
    id = span_cut(&path, '/');
    if (span_equal(path, SPAN("response")))
        return (struct target){ROUTE_RESPONSE, id};
    if (span_equal(path, SPAN("error")))
        return (struct target){ROUTE_ERROR, id};
    return (struct target){ROUTE_NONE, SPAN_NONE};
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

static const struct http_header json_type = {{"Content-Type", 12}, {"application/json", 16}};

static void respond_wrong_moment(struct http_request *request)
{
    api_answer_error(request, 403, "InvalidStateTransition", "State transition is not allowed");
}

static void respond_unknown_id(struct http_request *request)
{
    api_answer_error(request, 400, "InvalidRequestID", "Invalid request ID");
}

#define TOO_LARGE_FOR_RUNTIME "Exceeded maximum allowed payload size (6291556 bytes)."
#define TOO_LARGE_FOR_CALLER  "Response payload size exceeded maximum allowed payload size (6291556 bytes)."

/* --- requests ----------------------------------------------------------------------------------------------------- */

static void refuse_large_answer(struct environment *environment)
{
    char text[INVOCATION_MESSAGE_BYTES];

    environment_refuse_answer(environment, "Function.ResponseSizeTooLarge",
                              environment->streaming ? streamed_answer_too_large(environment, text)
                                                     : TOO_LARGE_FOR_CALLER);
}

static void on_headers(struct http_request *request, void *context)
{
    struct environment *environment = context;
    struct target target = parse_path(http_request_path(request));

    http_request_set_body_limit(request, INVOCATION_RESPONSE_MAX);
    if ((target.route != ROUTE_RESPONSE && target.route != ROUTE_ERROR) ||
        !environment_expects_answer(environment, target.request_id) || environment->streaming)
        return;
    if (!environment->upload && target.route == ROUTE_RESPONSE) {
        environment->upload = request;
        if (streamed_answer_begin(environment, request))
            return;
        environment->upload = NULL;
    }
    if (http_request_content_length(request) > INVOCATION_RESPONSE_MAX) {
        refuse_large_answer(environment);
        api_answer_error(request, 413, "RequestEntityTooLarge", TOO_LARGE_FOR_RUNTIME);
        return;
    }
    if (!environment->upload)
        environment->upload = request;
}

static void on_next(struct environment *environment, struct http_request *request)
{
    if (!environment_take_next(environment, request))
        respond_wrong_moment(request);
}

static struct span error_type_of(const struct http_request *request)
{
    struct span type = http_request_header(request, SPAN("Lambda-Runtime-Function-Error-Type"));

    return invocation_error_type_is_valid(type) ? type : SPAN("Runtime.Unknown");
}

static void on_init_error(struct environment *environment, struct http_request *request)
{
    CLEANUP(buffer_deinit) struct buffer posted = http_request_take_body(request);

    if (environment_take_init_error(environment, error_type_of(request), &posted))
        api_answer_accepted(request);
    else
        respond_wrong_moment(request);
}

/* There is no other mode than `streaming`. */
static bool mode_is_valid(const struct http_request *request)
{
    return streamed_answer_is_asked_for(request) ||
           !http_request_header(request, SPAN("Lambda-Runtime-Function-Response-Mode")).data;
}

static void on_answer(struct environment *environment, struct http_request *request, struct target target)
{
    bool is_upload = environment->upload == request;
    struct buffer payload;

    if (is_upload)
        environment->upload = NULL;
    if (!environment_expects_answer(environment, target.request_id) || (environment->streaming && !is_upload)) {
        respond_unknown_id(request);
        return;
    }
    if (target.route == ROUTE_RESPONSE && !mode_is_valid(request)) {
        environment_refuse_answer(environment, "Runtime.InvalidResponseModeHeader",
                                  "Invalid response mode header: only streaming is known");
        api_answer_error(request, 400, "InvalidFunctionResponseMode", "Invalid response mode");
        return;
    }
    if (environment->streaming) {
        streamed_answer_end(environment, request);
        api_answer_accepted(request);
        return;
    }
    payload = http_request_take_body(request);
    environment_take_answer(environment, &payload, target.route == ROUTE_ERROR);
    api_answer_accepted(request); /* the caller's answer is on its way already */
}

static void on_request(struct http_request *request, void *context)
{
    struct environment *environment = context;
    struct target target = parse_path(http_request_path(request));
    bool is_get = span_equal(http_request_method(request), SPAN("GET"));
    bool is_post = span_equal(http_request_method(request), SPAN("POST"));

    if (target.route == ROUTE_NONE &&
        (extensions_api_on_request(environment, request) || telemetry_api_on_request(environment, request)))
        return;
    if (target.route == ROUTE_NONE)
        api_answer_not_found(request);
    else if (target.route == ROUTE_NEXT ? !is_get : !is_post)
        api_answer_wrong_method(request);
    else if (target.route == ROUTE_NEXT)
        on_next(environment, request);
    else if (target.route == ROUTE_INIT_ERROR)
        on_init_error(environment, request);
    else
        on_answer(environment, request, target);
}

static void on_request_gone(struct http_request *request, void *context)
{
    struct environment *environment = context;

    if (environment->next == request)
        environment_on_next_lost(environment);
    else if (extensions_on_next_lost(environment, request))
        environment_on_idle_lost(environment);
    if (environment->upload != request)
        return;
    environment->upload = NULL;
    environment_on_torn_answer(environment);
}

/* The server's own refusals; on_request_gone follows. A chunked answer that grows too large shows here first. */
static size_t on_refuse(struct http_request *request, int status, struct http_header *headers, struct buffer *body,
                        void *context)
{
    struct environment *environment = context;
    int r;

    headers[0] = json_type;
    if (status != 413) {
        r = runtime_api_error_json("InvalidRequest", "The request is not valid HTTP", body);
        return r < 0 ? 0 : 1;
    }
    if (environment->upload == request) {
        environment->upload = NULL;
        if (!environment->answered)
            refuse_large_answer(environment);
    }
    r = runtime_api_error_json("RequestEntityTooLarge", TOO_LARGE_FOR_RUNTIME, body);
    return r < 0 ? 0 : 1; /* out of memory: an empty body */
}

static bool on_accept(int fd, void *context)
{
    struct environment *environment = context;
    struct peer peer;

    if (!environment->check_peer)
        return true;
    return peer_of_tcp(fd, &peer) == 0 && peer.uid == environment->uid &&
           (!environment->init_pid || peer_is_below(&peer, environment->init_pid));
}

static const struct http_handler handler = {
    .on_headers = on_headers,
    .on_request = on_request,
    .on_gone = on_request_gone,
    .refuse = on_refuse,
    .on_accept = on_accept,
};

/* --- the listener ------------------------------------------------------------------------------------------------- */

/* The server has the descriptor; a duplicate of it lets the socket live on when the listener is renewed. */
static int adopt(struct environment *environment, int fd)
{
    return http_server_adopt(environment->worker->config.server, fd, true, &handler, environment,
                             &environment->listener);
}

int runtime_api_listen(struct environment *environment, int fd)
{
    environment->api_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return environment->api_fd < 0 ? -errno : adopt(environment, fd);
}

int runtime_api_renew(struct environment *environment)
{
    CLEANUP(cleanup_close) int fd = fcntl(environment->api_fd, F_DUPFD_CLOEXEC, 0);
    int stranger;
    int r;

    if (fd < 0)
        return -errno;
    http_listener_close(TAKE_PTR(environment->listener), true);
    environment->next = NULL;
    environment->upload = NULL;
    environment->streaming = false;
    /* All processes are dead, so whatever waits to be accepted is of the past. */
    while ((stranger = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
        close(stranger);
    r = adopt(environment, fd);
    if (r == 0)
        (void)TAKE_FD(fd);
    return r;
}

/* --- the event ---------------------------------------------------------------------------------------------------- */

enum { EVENT_HEADERS_MAX = 7 };

/* As the service makes one for callers that sent none: not sampled. */
static struct span make_trace_id(struct environment *environment)
{
    struct prng *prng = &environment->worker->prng;
    uint64_t a = prng_next(prng), b = prng_next(prng), parent = prng_next(prng);
    int length = snprintf(environment->trace_id, sizeof(environment->trace_id),
                          "Root=1-%08x-%016" PRIx64 "%08x;Parent=%016" PRIx64 ";Sampled=0",
                          (unsigned)(clock_wall_ns() / NS_PER_S), a, (unsigned)b, parent);

    return span_of(environment->trace_id, (size_t)length);
}

/* The event's bytes: moved where the owner lets us, copied otherwise. */
static int take_event(struct invocation *invocation, struct buffer *body)
{
    *body = BUFFER_INIT;
    if (!invocation->event_owner)
        return buffer_append_span(body, invocation->event);
    *body = buffer_take(invocation->event_owner);
    return 0;
}

int runtime_api_send_event(struct environment *environment)
{
    struct invocation *invocation = environment->invocation;
    struct buffer body;
    struct http_header headers[EVENT_HEADERS_MAX];
    size_t count = 0;
    char deadline[24];
    struct span trace;
    int length = snprintf(deadline, sizeof(deadline), "%" PRId64, environment->deadline_wall_ms);
    int r = take_event(invocation, &body);

    if (r < 0)
        return r;
    trace = invocation->trace_id.length ? invocation->trace_id : make_trace_id(environment);
    extensions_send_invoke(environment, trace);
    headers[count++] = json_type;
    headers[count++] = (struct http_header){SPAN("Lambda-Runtime-Aws-Request-Id"), span_from(invocation->request_id)};
    headers[count++] = (struct http_header){SPAN("Lambda-Runtime-Deadline-Ms"), span_of(deadline, (size_t)length)};
    headers[count++] =
        (struct http_header){SPAN("Lambda-Runtime-Invoked-Function-Arn"), span_from(invocation->invoked_arn)};
    headers[count++] = (struct http_header){SPAN("Lambda-Runtime-Trace-Id"), trace};
    if (invocation->client_context.length)
        headers[count++] = (struct http_header){SPAN("Lambda-Runtime-Client-Context"), invocation->client_context};
    http_respond(TAKE_PTR(environment->next), 200, headers, count, &body);
    return 0;
}
