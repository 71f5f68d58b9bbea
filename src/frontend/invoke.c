/*
 * One invoke. The request lives until the caller has its answer (or has gone) and the environment is free of it.
 *
 *     frontend_invoke ── refused: answered, NULL
 *           │ admitted
 *           v
 *     [waiting] ── serve ──> [running] ── on_response: answer the caller, release the unit ──> on_end: freed
 *           └── refuse, fail: answered, freed
 */
#include "aws/arn.h"
#include "aws/error.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/random.h"
#include "frontend/answer.h"
#include "frontend/realm.h"
#include "frontend/stream_answer.h"
#include "worker/worker.h"

#include <stdio.h>

enum {
    /* arn:aws-us-gov:lambda:us-gov-west-1:111122223333:function: and a name of 64 and a qualifier of 128 */
    INVOKED_ARN_BYTES = 320,
    TRACE_ID_BYTES = 256,
    STREAM_WAITING_MAX = 256 * 1024, /* of an answer in pieces; past it the function is held back */
};

struct frontend_request {
    struct core_request core;
    struct invocation invocation;
    struct realm *realm;
    struct http_request *http; /* NULL once answered or gone */
    void (*on_drain)(struct http_request *http, void *context);
    bool stream_started;
    struct core_environment *environment;
    struct catalog_version_config *config; /* of the version it runs on: for the answer's headers */
    struct buffer event;
    struct buffer client_context;
    char invoked_arn[INVOKED_ARN_BYTES];
    char trace_id[TRACE_ID_BYTES];
    struct list_link link;
};

static void request_free(struct frontend_request *request)
{
    struct frontend *frontend = request->realm->frontend;

    catalog_version_config_unref(request->config);
    buffer_deinit(&request->event);
    buffer_deinit(&request->client_context);
    buffer_deinit(&request->invocation.log_tail);
    list_remove(&request->link);
    frontend->in_flight--;
    free(request);
    frontend_check_stopped(frontend);
}

/* --- refusals ------------------------------------------------------------------------------------------------------
 */

/* One line a second at most, which tells how many came before it: a throttled load must not drown the log. */
static void log_throttle(struct frontend *frontend, const char *function, const struct counting_throttle *throttle)
{
    int64_t now = clock_monotonic_ns();

    if (frontend->throttle_logged_ns && now - frontend->throttle_logged_ns < NS_PER_S) {
        frontend->throttles_unlogged++;
        return;
    }
    log_event(frontend->config.log, LOG_INFO, "throttled %s: %s; limit=%lld; used=%lld (%llu more since the last line)",
              function, counting_kind_name(throttle->kind), (long long)throttle->limit, (long long)throttle->used,
              (unsigned long long)frontend->throttles_unlogged);
    frontend->throttle_logged_ns = now;
    frontend->throttles_unlogged = 0;
}

static void answer_throttled(struct http_request *http, const char *request_id,
                             const struct counting_throttle *throttle)
{
    struct aws_error error = {0};
    char text[96];
    struct http_header extra = {SPAN("X-Kiln-Throttle"), SPAN_NONE};

    snprintf(text, sizeof(text), "%s; limit=%lld; used=%lld", counting_kind_name(throttle->kind),
             (long long)throttle->limit, (long long)throttle->used);
    extra.value = span_from(text);
    aws_error_set(&error, AWS_ERROR_TOO_MANY_REQUESTS, "Rate Exceeded.");
    aws_error_add_member(&error, "Reason", counting_reason_name(throttle->reason));
    answer_error(http, request_id, &error, &extra, 1);
}

static const char machine_full[] = "This machine has no room for another execution environment.";

static void answer_not_found(const struct frontend_invoke *invoke)
{
    struct aws_error error = {0};
    struct arena *arena = http_request_arena(invoke->http);
    struct span qualifier = invoke->qualifier.length ? invoke->qualifier : SPAN("$LATEST");
    const char *arn = arn_build_function(arena, invoke->region, invoke->account, invoke->function_name, qualifier);

    aws_error_set(&error, AWS_ERROR_RESOURCE_NOT_FOUND, "Function not found: %s", arn ? arn : "");
    answer_error(invoke->http, invoke->request_id, &error, NULL, 0);
}

static void answer_pending(const struct frontend_invoke *invoke)
{
    struct aws_error error = {0};

    aws_error_set(&error, AWS_ERROR_RESOURCE_CONFLICT,
                  "The operation cannot be performed at this time. The function is currently in the following state: "
                  "Pending");
    answer_error(invoke->http, invoke->request_id, &error, NULL, 0);
}

/* --- the answer ----------------------------------------------------------------------------------------------------
 */

enum { ANSWER_HEADERS_MAX = 6 };

/* Those of every answer; returns their number. */
static size_t common_headers(const struct frontend_request *request, struct span content_type,
                             struct http_header headers[ANSWER_HEADERS_MAX])
{
    size_t count = 0;

    headers[count++] = (struct http_header){SPAN("Content-Type"), content_type};
    headers[count++] = (struct http_header){SPAN("x-amzn-RequestId"), span_from(request->invocation.request_id)};
    headers[count++] = (struct http_header){SPAN("X-Amz-Executed-Version"), span_from(request->config->version)};
    headers[count++] = (struct http_header){SPAN("X-Amzn-Trace-Id"), request->invocation.trace_id};
    return count;
}

/* The tail of the log in base64; empty when it was not asked for. */
static struct span encode_log_tail(const struct frontend_request *request, struct buffer *text)
{
    if (!request->invocation.wants_log_tail || base64_encode(buffer_span(&request->invocation.log_tail), text) < 0)
        return SPAN_NONE;
    return buffer_span(text);
}

static void answer_whole(struct frontend_request *request, struct invocation_result *result)
{
    struct buffer log_text CLEANUP(buffer_deinit) = BUFFER_INIT;
    struct span log_result = encode_log_tail(request, &log_text);
    struct http_header headers[ANSWER_HEADERS_MAX];
    size_t count = common_headers(request, SPAN("application/json"), headers);

    if (result->function_error)
        headers[count++] = (struct http_header){SPAN("X-Amz-Function-Error"), SPAN("Unhandled")};
    if (log_result.data)
        headers[count++] = (struct http_header){SPAN("X-Amz-Log-Result"), log_result};
    http_respond(TAKE_PTR(request->http), 200, headers, count, &result->payload);
}

/* --- the answer in pieces ------------------------------------------------------------------------------------------
 */

static void start_stream(struct frontend_request *request)
{
    struct http_header headers[ANSWER_HEADERS_MAX];
    size_t count = common_headers(request, SPAN("application/vnd.amazon.eventstream"), headers);

    request->stream_started = true;
    http_response_start(request->http, 200, headers, count, request->on_drain);
}

static void on_stream(struct invocation *invocation)
{
    struct frontend_request *request = invocation->context;

    if (request->http)
        start_stream(request);
}

static bool on_piece(struct invocation *invocation, struct span piece)
{
    struct frontend_request *request = invocation->context;
    size_t waiting = 0;

    if (request->http && stream_answer_piece(request->http, piece, &waiting) < 0)
        http_response_abort(TAKE_PTR(request->http));
    return waiting < STREAM_WAITING_MAX;
}

/* What the runtime posted whole goes out as a stream too. */
static void end_stream(struct frontend_request *request, struct invocation_result *result)
{
    struct buffer log_text CLEANUP(buffer_deinit) = BUFFER_INIT;
    struct stream_answer_end end = {.log_result = encode_log_tail(request, &log_text)};

    if (!request->stream_started)
        start_stream(request);
    if (result->function_error) {
        end.error_code = result->error_type[0] ? span_from(result->error_type) : SPAN("Unhandled");
        end.error_details = buffer_span(&result->payload);
    } else {
        on_piece(&request->invocation, buffer_span(&result->payload));
    }
    if (request->http)
        stream_answer_end(TAKE_PTR(request->http), &end);
}

/* --- the end of an invocation --------------------------------------------------------------------------------------
 */

static void on_response(struct invocation *invocation, struct invocation_result *result)
{
    struct frontend_request *request = invocation->context;

    if (request->http && invocation->streams)
        end_stream(request, result);
    else if (request->http)
        answer_whole(request, result);
    buffer_deinit(&result->payload);
    core_response_done(&request->core, clock_monotonic_ns());
}

static void on_end(struct invocation *invocation)
{
    struct frontend_request *request = invocation->context;
    struct realm *realm = request->realm;
    struct core_environment *environment = request->environment;

    request_free(request);
    if (environments_is_ending(environment))
        return; /* core hears of it when it is gone */
    core_environment_free(environment, clock_monotonic_ns());
    realm_arm(realm);
}

static const struct invocation_events invocation_events = {
    .on_response = on_response,
    .on_end = on_end,
    .on_stream = on_stream,
    .on_piece = on_piece,
};

/* --- core's effects on requests ------------------------------------------------------------------------------------
 */

static void run(struct frontend_request *request, struct core_environment *environment)
{
    request->environment = environment;
    environments_invoke(environment, &request->invocation);
}

void invoke_serve(struct core_request *core, struct core_environment *environment, void *context)
{
    (void)context;
    run(core->owner, environment);
}

void invoke_refuse(struct core_request *core, const struct counting_throttle *throttle, void *context)
{
    struct frontend_request *request = core->owner;
    struct realm *realm = context;

    log_throttle(realm->frontend, request->config->function_name, throttle);
    if (request->http)
        answer_throttled(TAKE_PTR(request->http), request->invocation.request_id, throttle);
    request_free(request);
}

void invoke_fail(struct core_request *core, enum core_failure why, void *context)
{
    struct frontend_request *request = core->owner;

    (void)context;
    if (request->http)
        answer_failure(TAKE_PTR(request->http), request->invocation.request_id,
                       why == CORE_FAILURE_REMOVED ? "The function was deleted before the request could run."
                                                   : machine_full);
    request_free(request);
}

/* --- admission -----------------------------------------------------------------------------------------------------
 */

/* X-Ray's form from the request id, for callers that sent none: the id is random already. */
static void make_trace_id(struct frontend_request *request, struct span given)
{
    const char *id = request->invocation.request_id;

    if (given.length && given.length < TRACE_ID_BYTES)
        snprintf(request->trace_id, sizeof(request->trace_id), "%.*s", SPAN_ARG(given));
    else
        snprintf(request->trace_id, sizeof(request->trace_id),
                 "Root=1-%08llx-%.8s%.4s%.12s;Parent=%.8s%.4s%.4s;Sampled=0",
                 (unsigned long long)(clock_wall_ns() / NS_PER_S), id, id + 9, id + 24, id + 24, id + 9, id + 14);
    request->invocation.trace_id = span_from(request->trace_id);
}

static int prepare(struct frontend_request *request, const struct frontend_invoke *invoke,
                   const struct catalog_function *function)
{
    struct invocation *invocation = &request->invocation;
    int length = snprintf(request->invoked_arn, sizeof(request->invoked_arn), "%s%s%.*s", function->arn,
                          invoke->qualifier.length ? ":" : "", SPAN_ARG(invoke->qualifier));
    int r;

    if (length < 0 || (size_t)length >= sizeof(request->invoked_arn))
        return -EINVAL;
    core_request_init(&request->core, request);
    list_link_init(&request->link);
    invocation->events = &invocation_events;
    invocation->context = request;
    invocation->invoked_arn = request->invoked_arn;
    invocation->wants_log_tail = invoke->wants_log_tail;
    invocation->streams = invoke->streams;
    request->on_drain = invoke->on_drain;
    snprintf(invocation->request_id, sizeof(invocation->request_id), "%s", invoke->request_id);
    make_trace_id(request, invoke->trace_id);
    r = buffer_append_span(&request->client_context, invoke->client_context);
    if (r < 0)
        return r;
    invocation->client_context = buffer_span(&request->client_context);
    request->event = http_request_take_body(invoke->http);
    if (!request->event.length && (r = buffer_append(&request->event, "{}", 2)) < 0)
        return r; /* as on AWS: a request without payload is an empty object */
    invocation->event = buffer_span(&request->event);
    invocation->event_owner = &request->event;
    request->http = invoke->http;
    return 0;
}

static void discard(struct frontend_request *request)
{
    buffer_deinit(&request->event);
    buffer_deinit(&request->client_context);
    free(request);
}

/* The request is core's now: it counts as in flight. */
static void enlist(struct frontend_request *request)
{
    struct frontend *frontend = request->realm->frontend;
    struct catalog_version *version = core_version_owner(request->core.version);

    request->config = catalog_version_config_ref(version->active);
    list_push_back(&frontend->requests, &request->link);
    frontend->in_flight++;
}

static struct frontend_request *admit(struct frontend *frontend, const struct frontend_invoke *invoke,
                                      const struct catalog_function *function, const struct core_qualifier *qualifier)
{
    struct frontend_request *request = calloc(1, sizeof(*request));
    struct counting_throttle throttle;
    int outcome;

    if (!request || prepare(request, invoke, function) < 0) {
        if (request)
            discard(request);
        answer_failure(invoke->http, invoke->request_id, "The daemon is out of memory.");
        return NULL;
    }
    request->realm = function->scope->attachment;
    outcome = core_invoke(request->realm->core, qualifier, &request->core, clock_monotonic_ns(),
                          prng_next(&frontend->prng), &throttle);
    switch (outcome) {
    case CORE_SERVED:
        enlist(request);
        run(request, request->core.environment);
        return request;
    case CORE_WAITING:
        enlist(request);
        realm_arm(request->realm);
        return request;
    case CORE_THROTTLED:
        log_throttle(frontend, function->name, &throttle);
        answer_throttled(invoke->http, invoke->request_id, &throttle);
        break;
    case CORE_MACHINE_FULL:
        answer_failure(invoke->http, invoke->request_id, machine_full);
        break;
    default:
        answer_failure(invoke->http, invoke->request_id, "The daemon is out of memory.");
        break;
    }
    discard(request);
    return NULL;
}

static void answer_dry_run(const struct frontend_invoke *invoke)
{
    const struct http_header headers[] = {{SPAN("x-amzn-RequestId"), span_from(invoke->request_id)}};

    http_respond(invoke->http, 204, headers, ARRAY_SIZE(headers), NULL);
}

static bool is_ready(const struct catalog_target *target)
{
    if (target->alias && target->alias->additional && !target->alias->additional->active)
        return false;
    return target->version->active;
}

struct frontend_request *frontend_invoke(struct frontend *frontend, const struct frontend_invoke *invoke)
{
    struct catalog_function *function =
        catalog_find_function(frontend->config.catalog, invoke->account, invoke->region, invoke->function_name);
    struct catalog_target target;
    struct core_qualifier qualifier;

    if (!function || !catalog_resolve(function, invoke->qualifier, &target)) {
        answer_not_found(invoke);
        return NULL;
    }
    if (!is_ready(&target)) {
        answer_pending(invoke);
        return NULL;
    }
    if (invoke->dry_run) {
        answer_dry_run(invoke);
        return NULL;
    }
    qualifier = realm_qualifier(&target);
    if (frontend->stopping || (!qualifier.version && !qualifier.alias)) {
        answer_failure(invoke->http, invoke->request_id,
                       frontend->stopping ? "The daemon is stopping." : "The daemon is out of memory.");
        return NULL;
    }
    return admit(frontend, invoke, function, &qualifier);
}

void frontend_caller_gone(struct frontend_request *request)
{
    request->http = NULL;
    frontend_caller_drained(request); /* the function writes on, to nobody */
}

void frontend_caller_drained(struct frontend_request *request)
{
    if (request->environment)
        environments_resume_stream(request->environment);
}

void invoke_drop_all(struct frontend *frontend)
{
    LIST_FOREACH (link, &frontend->requests) {
        struct frontend_request *request = CONTAINER_OF(link, struct frontend_request, link);
        request->http = NULL;
        request_free(request);
    }
}
