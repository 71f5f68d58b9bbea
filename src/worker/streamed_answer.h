/*
 * Answers that a runtime posts in pieces (Lambda-Runtime-Function-Response-Mode: streaming, Lambda guide, "Building a
 * custom runtime") and whose caller takes them so: each piece goes to the owner as it comes, and an owner that cannot
 * take more holds the runtime back. For callers that want one whole answer the pieces are collected as any other body.
 */
#pragma once

#include "worker/environment.h"

/* True when `request` asks for this mode. */
bool streamed_answer_is_asked_for(const struct http_request *request);
/* With the head of the invocation's answer, when environment_expects_answer: tells the owner, if it streams. True when
 * the body goes there piece by piece. */
bool streamed_answer_begin(struct environment *environment, struct http_request *request);
/* The body is complete: the trailers say whether it went well. */
void streamed_answer_end(struct environment *environment, struct http_request *request);
/* "Response payload size exceeded maximum allowed payload size (N bytes)." Returns `text`. */
const char *streamed_answer_too_large(const struct environment *environment, char text[INVOCATION_MESSAGE_BYTES]);
