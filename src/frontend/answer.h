/*
 * Answers in the service's form on an HTTP request: the error envelope of rest-json with the headers that SDKs read.
 */
#pragma once

#include "aws/error.h"
#include "http/server.h"

/*
 * Answers with the error (x-amzn-ErrorType, x-amzn-RequestId, Retry-After as due, and `extra` headers if any) and
 * empties it. The request pointer is dead after this call.
 */
void answer_error(struct http_request *request, const char *request_id, struct aws_error *error,
                  const struct http_header *extra, size_t extra_count);

/* The same for 500 ServiceException with a sentence. */
void answer_failure(struct http_request *request, const char *request_id, const char *sentence);
