#include "api/operation.h"

#include "api/envelope.h"
#include "aws/error.h"
#include "aws/query.h"

#include <stdio.h>

enum { ANSWER_HEADERS_MAX = 4 };

static const char content_type_json[] = "application/json";

void operation_services_init(struct operation_services *services)
{
    *services = (struct operation_services){
        .concurrency = 1000,
        .unreserved_minimum = 100,
        .code_bytes_limit = UINT64_C(80530636800),
    };
}

static struct operation *operation_free(struct operation *operation)
{
    if (!operation)
        return NULL;
    if (operation->cleanup)
        operation->cleanup(operation);
    buffer_deinit(&operation->body);
    arena_deinit(&operation->arena);
    free(operation);
    return NULL;
}

static void cleanup_operation(struct operation **operation)
{
    operation_free(*operation);
}

/* A copy whose data is never NULL, unless the span's was. */
static int copy_span(struct arena *arena, struct span from, struct span *ret_copy)
{
    char *copy;

    if (!from.data) {
        *ret_copy = SPAN_NONE;
        return 0;
    }
    copy = arena_dup(arena, from);
    if (!copy)
        return -ENOMEM;
    *ret_copy = span_of(copy, from.length);
    return 0;
}

static int copy_headers(struct operation *operation, const struct operation_request *request)
{
    struct http_header *headers = arena_zalloc(&operation->arena, request->header_count * sizeof(*headers));

    if (!headers)
        return -ENOMEM;
    for (size_t i = 0; i < request->header_count; i++)
        if (copy_span(&operation->arena, request->headers[i].name, &headers[i].name) < 0 ||
            copy_span(&operation->arena, request->headers[i].value, &headers[i].value) < 0)
            return -ENOMEM;
    operation->headers = headers;
    operation->header_count = request->header_count;
    return 0;
}

struct operation *operation_new(const struct operation_services *services, const struct operation_request *request,
                                operation_send *send, void *send_context)
{
    CLEANUP(cleanup_operation) struct operation *operation = calloc(1, sizeof(*operation));
    struct arena *arena;

    if (!operation)
        return NULL;
    arena = &operation->arena;
    operation->services = services;
    operation->service = request->service;
    operation->send = send;
    operation->send_context = send_context;
    if (copy_span(arena, request->method, &operation->method) < 0 ||
        copy_span(arena, request->path, &operation->path) < 0 ||
        copy_span(arena, request->query, &operation->query) < 0 ||
        copy_span(arena, request->account, &operation->account) < 0 ||
        copy_span(arena, request->region, &operation->region) < 0 ||
        copy_span(arena, request->caller_arn, &operation->caller_arn) < 0 ||
        copy_span(arena, request->request_id, &operation->request_id) < 0 || copy_headers(operation, request) < 0)
        return NULL;
    if (request->body)
        operation->body = buffer_take(request->body);
    return TAKE_PTR(operation);
}

/* --- the query protocol --- */

static int refuse_action(struct operation *operation, struct span action, struct aws_error *error)
{
    const struct service *service = operation->service;

    if (!action.length)
        return aws_error_set_custom(error, 400, "MissingAction", "Sender",
                                    "Could not find operation for version %s: no Action was given.", service->version);
    return aws_error_set_custom(error, 501, "NotImplementedException", "Sender",
                                "Kiln does not support the action %.*s of %s.", SPAN_ARG(action), service->title);
}

/* Names and values that are text: UTF-8 without NUL. */
static bool is_text(const struct uri_query *form)
{
    for (size_t i = 0; i < form->count; i++) {
        const struct uri_parameter *parameter = &form->parameters[i];
        if (!span_is_utf8(parameter->name) || !span_is_utf8(parameter->value) ||
            span_find(parameter->name, '\0') >= 0 || span_find(parameter->value, '\0') >= 0)
            return false;
    }
    return true;
}

/* Finds the row that the form's Action names. 0, a refusal, -ENOMEM. */
static int find_action(struct operation *operation, struct aws_error *error)
{
    size_t count;
    const struct operation_route *routes = operation->service->routes(&count);
    struct span action;
    int r = query_parse(&operation->arena, operation->query, buffer_span(&operation->body), &operation->form);

    if (r == -EINVAL)
        return aws_error_set_custom(error, 400, "MalformedQueryString", "Sender",
                                    "The parameters hold a '%%' that no two hex digits follow.");
    if (r < 0)
        return r;
    if (!is_text(&operation->form))
        return aws_error_set_custom(error, 400, "MalformedQueryString", "Sender",
                                    "The parameters are not UTF-8 without NUL.");
    action = query_string(&operation->form, "Action");
    for (size_t i = 0; i < count; i++) {
        if (!span_equal(span_from(routes[i].name), action))
            continue;
        operation->route = &routes[i];
        return 0;
    }
    return refuse_action(operation, action, error);
}

static void start_action(struct operation *operation)
{
    struct aws_error error = {0};
    int r = find_action(operation, &error);

    if (r == 0)
        operation->route->handler(operation);
    else if (r > 0)
        operation_respond_error(operation, &error);
    else
        operation_respond_failure(operation, r, "reading the parameters");
    aws_error_deinit(&error);
}

/* The names are the routing table's, the values may lie in the request's memory. */
static int take_parameters(struct operation *operation, const struct operation_parameter *parameters, size_t count)
{
    for (size_t i = 0; i < count && i < OPERATION_PARAMETERS_MAX; i++) {
        operation->parameters[i].name = parameters[i].name;
        if (copy_span(&operation->arena, parameters[i].value, &operation->parameters[i].value) < 0)
            return -ENOMEM;
        operation->parameter_count = i + 1;
    }
    return 0;
}

void operation_start(struct operation *operation, const struct operation_route *route,
                     const struct operation_parameter *parameters, size_t parameter_count)
{
    struct aws_error error = {0};

    operation->route = route;
    if (operation->service->protocol == SERVICE_QUERY) {
        start_action(operation);
        return;
    }
    if (take_parameters(operation, parameters, parameter_count) < 0) {
        operation_respond_failure(operation, -ENOMEM, "copying the path's parameters");
    } else if (!route) {
        aws_error_set(&error, AWS_ERROR_UNKNOWN_OPERATION, "Unknown operation: %.*s %.*s", SPAN_ARG(operation->method),
                      SPAN_ARG(operation->path));
        operation_respond_error(operation, &error);
        aws_error_deinit(&error);
    } else if (route->unsupported || !route->handler) {
        operation_respond_unsupported(operation);
    } else {
        route->handler(operation);
    }
}

void operation_abandon(struct operation *operation)
{
    operation->abandoned = true;
    operation->send = NULL;
    operation->send_context = NULL;
}

/* --- what came in --- */

struct span operation_parameter(const struct operation *operation, struct span name)
{
    for (size_t i = 0; i < operation->parameter_count; i++)
        if (span_equal(operation->parameters[i].name, name))
            return operation->parameters[i].value;
    return SPAN_NONE;
}

bool operation_query(struct operation *operation, struct span name, struct span *ret_value)
{
    struct uri_query query;

    if (uri_query_parse(&operation->arena, operation->query, &query) < 0)
        return false;
    return uri_query_get(&query, name, ret_value);
}

struct span operation_header(const struct operation *operation, struct span name)
{
    for (size_t i = 0; i < operation->header_count; i++)
        if (span_equal_nocase(operation->headers[i].name, name))
            return operation->headers[i].value;
    return SPAN_NONE;
}

/* --- what goes out --- */

/* Sends, unless nobody is there any more, and ends the operation. Takes the body. */
static void answer(struct operation *operation, int status, const struct http_header *headers, size_t header_count,
                   struct buffer *body)
{
    operation_send *send = operation->send;
    struct http_header all[ANSWER_HEADERS_MAX] = {{SPAN("x-amzn-RequestId"), operation->request_id}};
    size_t count = 1;

    for (size_t i = 0; i < header_count && count < ANSWER_HEADERS_MAX; i++)
        all[count++] = headers[i];
    if (send)
        send(operation->send_context, status, all, count, body);
    if (body)
        buffer_deinit(body);
    operation_free(operation);
}

static int append_chunk(const char *data, size_t length, void *context)
{
    return buffer_append(context, data, length);
}

void operation_respond(struct operation *operation, int status, json_t *document)
{
    struct http_header type = {SPAN("Content-Type"), span_from(content_type_json)};
    struct buffer body = BUFFER_INIT;
    int r = document ? json_dump_callback(document, append_chunk, &body, JSON_COMPACT) : 0;

    json_decref(document);
    if (r < 0) {
        buffer_deinit(&body);
        operation_respond_failure(operation, -ENOMEM, "writing the answer");
        return;
    }
    answer(operation, status, &type, document ? 1 : 0, &body);
}

void operation_respond_bytes(struct operation *operation, int status, const char *content_type, struct buffer *body)
{
    struct http_header type = {SPAN("Content-Type"), span_from(content_type)};

    answer(operation, status, &type, 1, body);
}

static bool accepts_json_alone(const struct operation *operation)
{
    return operation->service->answers_json &&
           span_starts_with(operation_header(operation, SPAN("Accept")), span_from(content_type_json));
}

void operation_respond_result(struct operation *operation, json_t *result, bool failed)
{
    const struct service *service = operation->service;
    bool as_json = accepts_json_alone(operation);
    struct buffer body = BUFFER_INIT;
    int r = failed ? -ENOMEM : 0;

    if (r == 0)
        r = as_json ? query_write_json(operation->route->name, result, operation->request_id, &body)
                    : query_write_xml(operation->route->name, service->xmlns, result, operation->request_id, &body);
    json_decref(result);
    if (r < 0) {
        buffer_deinit(&body);
        operation_respond_failure(operation, r, "writing the answer");
        return;
    }
    operation_respond_bytes(operation, 200, as_json ? content_type_json : "text/xml", &body);
}

void operation_respond_error(struct operation *operation, const struct aws_error *error)
{
    struct envelope envelope;

    envelope_write(operation->service, error, operation->request_id, &envelope);
    answer(operation, error->status, envelope.headers, envelope.header_count, &envelope.body);
}

void operation_respond_failure(struct operation *operation, int error, const char *what)
{
    struct aws_error answer_error = {0};

    log_event(operation->services->log, LOG_ERROR, "request %.*s (%s): %s: %s", SPAN_ARG(operation->request_id),
              operation->route ? operation->route->name : "?", what, strerror(error < 0 ? -error : error));
    aws_error_set(&answer_error, AWS_ERROR_SERVICE, "%s",
                  error == -ENOSPC ? "The data directory's file system is full."
                                   : "An internal error occurred. Please try again later.");
    operation_respond_error(operation, &answer_error);
    aws_error_deinit(&answer_error);
}

void operation_respond_unsupported(struct operation *operation)
{
    struct aws_error error = {0};

    aws_error_set_custom(&error, 501, "NotImplementedException", "User", "Kiln does not support the operation %s yet.",
                         operation->route->name);
    operation_respond_error(operation, &error);
    aws_error_deinit(&error);
}

size_t operation_body_limit(const struct operation_route *route)
{
    return route && route->body_limit ? route->body_limit : OPERATION_BODY_DEFAULT;
}

static const char *wire_name(const struct operation_route *route)
{
    if (!route)
        return "unknown";
    return route->wire_name ? route->wire_name : route->name;
}

void operation_set_too_large(const struct operation_route *route, struct aws_error *error)
{
    aws_error_set(error, AWS_ERROR_REQUEST_ENTITY_TOO_LARGE,
                  "Request must be smaller than %zu bytes for the %s operation", operation_body_limit(route),
                  wire_name(route));
}

/* --- routing --- */

/* Matches one path; `path` was split and decoded. */
static bool match_pattern(const char *pattern, const struct uri_path *path,
                          struct operation_parameter parameters[OPERATION_PARAMETERS_MAX], size_t *ret_count)
{
    struct span rest = span_from(pattern + 1); /* behind the leading slash */
    size_t count = 0;
    size_t i = 0;

    while (rest.data) {
        struct span part = span_cut(&rest, '/');
        if (i == path->count)
            return false;
        if (part.data[0] == '{') {
            if (path->segments[i].length == 0 || count == OPERATION_PARAMETERS_MAX)
                return false;
            parameters[count++] = (struct operation_parameter){span_slice(part, 1, part.length - 1), path->segments[i]};
        } else if (!span_equal(part, path->segments[i])) {
            return false;
        }
        i++;
    }
    *ret_count = count;
    return i == path->count;
}

static bool match_query(const char *wanted, const struct uri_query *query)
{
    struct span rest = span_from(wanted);
    struct span name = span_cut(&rest, '=');
    struct span value;

    return uri_query_get(query, name, &value) && span_equal(value, rest);
}

enum operation_match operation_match_route(const struct operation_route *routes, size_t route_count, struct span method,
                                           struct span path, struct span query, struct arena *arena,
                                           const struct operation_route **ret_route,
                                           struct operation_parameter ret_parameters[OPERATION_PARAMETERS_MAX],
                                           size_t *ret_parameter_count)
{
    enum operation_match match = OPERATION_NO_PATH;
    struct uri_query parsed = {0};
    struct uri_path split;

    if (uri_path_split(arena, path, &split) < 0 || uri_query_parse(arena, query, &parsed) < 0)
        return OPERATION_NO_PATH;
    for (size_t i = 0; i < route_count; i++) {
        const struct operation_route *route = &routes[i];
        if (!match_pattern(route->pattern, &split, ret_parameters, ret_parameter_count))
            continue;
        match = OPERATION_NO_METHOD;
        if (!span_equal(span_from(route->method), method) || (route->query && !match_query(route->query, &parsed)))
            continue;
        *ret_route = route;
        return OPERATION_MATCHED;
    }
    return match;
}
