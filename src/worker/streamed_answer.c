#include "worker/streamed_answer.h"

#include "base/encode.h"

#include <stdio.h>

bool streamed_answer_is_asked_for(const struct http_request *request)
{
    return span_equal(http_request_header(request, SPAN("Lambda-Runtime-Function-Response-Mode")), SPAN("streaming"));
}

static void on_piece(struct http_request *request, struct span piece, void *context)
{
    struct environment *environment = context;
    struct invocation *invocation = environment->invocation;

    if (!environment->streaming || environment->answered)
        return; /* it timed out meanwhile */
    if (!invocation->events->on_piece(invocation, piece))
        http_request_pause_body(request, true);
}

bool streamed_answer_begin(struct environment *environment, struct http_request *request)
{
    struct invocation *invocation = environment->invocation;

    if (!invocation->streams || !streamed_answer_is_asked_for(request))
        return false;
    environment->streaming = true;
    http_request_set_body_limit(request, environment->worker->config.stream_bytes);
    http_request_stream_body(request, on_piece);
    invocation->events->on_stream(invocation);
    return true;
}

void streamed_answer_end(struct environment *environment, struct http_request *request)
{
    struct span type = http_request_trailer(request, SPAN("Lambda-Runtime-Function-Error-Type"));
    struct span body = http_request_trailer(request, SPAN("Lambda-Runtime-Function-Error-Body"));
    CLEANUP(buffer_deinit) struct buffer error = BUFFER_INIT;

    if (body.length && base64_decode(body, &error) < 0)
        error.length = 0; /* the type must do */
    environment_take_streamed_end(environment, type, &error);
}

const char *streamed_answer_too_large(const struct environment *environment, char text[INVOCATION_MESSAGE_BYTES])
{
    snprintf(text, INVOCATION_MESSAGE_BYTES, "Response payload size exceeded maximum allowed payload size (%zu bytes).",
             environment->worker->config.stream_bytes);
    return text;
}

void environment_resume_stream(struct environment *environment)
{
    if (environment->streaming && environment->upload)
        http_request_pause_body(environment->upload, false);
}
