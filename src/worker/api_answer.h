/*
 * Answers of the APIs that an environment's processes call (Runtime, Extensions, Telemetry), in the service's own form.
 * Each takes the request as http_respond does. Out of memory leaves the body empty.
 */
#pragma once

#include "http/server.h"

/* Takes `body`. */
void api_answer_json(struct http_request *request, int status, struct buffer *body);
/* {"errorMessage":MESSAGE,"errorType":TYPE} */
void api_answer_error(struct http_request *request, int status, const char *type, const char *message);
/* 202 {"status":"OK"} */
void api_answer_accepted(struct http_request *request);
void api_answer_text(struct http_request *request, int status, struct span text);
/* 404 and 405, as text. */
void api_answer_not_found(struct http_request *request);
void api_answer_wrong_method(struct http_request *request);
