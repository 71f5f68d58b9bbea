#include "frontend/answer.h"

#include <assert.h>
#include <stdio.h>

enum { ANSWER_EXTRA_HEADERS = 4 };

void answer_error(struct http_request *request, const char *request_id, struct aws_error *error,
                  const struct http_header *extra, size_t extra_count)
{
    struct buffer body = BUFFER_INIT;
    char seconds[16];
    size_t count = 0;
    struct http_header headers[4 + ANSWER_EXTRA_HEADERS];

    assert(extra_count <= ANSWER_EXTRA_HEADERS);
    headers[count++] = (struct http_header){SPAN("Content-Type"), SPAN("application/json")};
    headers[count++] = (struct http_header){SPAN("x-amzn-RequestId"), span_from(request_id)};
    headers[count++] = (struct http_header){SPAN("x-amzn-ErrorType"), span_from(error->code)};
    if (error->retry_after_s > 0) {
        snprintf(seconds, sizeof(seconds), "%d", error->retry_after_s);
        headers[count++] = (struct http_header){SPAN("Retry-After"), span_from(seconds)};
    }
    for (size_t i = 0; i < extra_count; i++)
        headers[count++] = extra[i];
    if (aws_error_write_rest_json(error, &body) < 0)
        buffer_deinit(&body); /* out of memory: the status and headers must do */
    http_respond(request, error->status, headers, count, &body);
    aws_error_deinit(error);
}

void answer_failure(struct http_request *request, const char *request_id, const char *sentence)
{
    struct aws_error error = {0};

    aws_error_set(&error, AWS_ERROR_SERVICE, "%s", sentence);
    answer_error(request, request_id, &error, NULL, 0);
}
