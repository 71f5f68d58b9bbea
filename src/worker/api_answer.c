#include "worker/api_answer.h"

#include "worker/invocation_error.h"

static const struct http_header json_type = {{"Content-Type", 12}, {"application/json", 16}};

void api_answer_json(struct http_request *request, int status, struct buffer *body)
{
    http_respond(request, status, &json_type, 1, body);
}

void api_answer_error(struct http_request *request, int status, const char *type, const char *message)
{
    struct buffer body = BUFFER_INIT;

    if (runtime_api_error_json(type, message, &body) < 0)
        buffer_deinit(&body);
    api_answer_json(request, status, &body);
}

void api_answer_accepted(struct http_request *request)
{
    struct buffer body = BUFFER_INIT;

    if (buffer_append_span(&body, SPAN("{\"status\":\"OK\"}\n")) < 0)
        buffer_deinit(&body);
    api_answer_json(request, 202, &body);
}

void api_answer_text(struct http_request *request, int status, struct span text)
{
    static const struct http_header type = {{"Content-Type", 12}, {"text/plain; charset=utf-8", 25}};
    struct buffer body = BUFFER_INIT;

    if (buffer_append_span(&body, text) < 0)
        buffer_deinit(&body);
    http_respond(request, status, &type, 1, &body);
}

void api_answer_not_found(struct http_request *request)
{
    api_answer_text(request, 404, SPAN("404 page not found\n"));
}

void api_answer_wrong_method(struct http_request *request)
{
    api_answer_text(request, 405, SPAN("405 method not allowed\n"));
}
