/*
 * The answer of InvokeWithResponseStream: an event stream of PayloadChunk messages and one InvokeComplete, which leaves
 * while the function is still writing it (Lambda API reference, InvokeWithResponseStream).
 */
#pragma once

#include "http/server.h"

/* After http_response_start. *ret_waiting: bytes still to be sent. 0 or -ENOMEM. */
int stream_answer_piece(struct http_request *http, struct span piece, size_t *ret_waiting) MUST_USE;

/* What InvokeComplete says; spans may be empty. */
struct stream_answer_end {
    struct span error_code;
    struct span error_details;
    struct span log_result; /* base64 */
};

/* The request pointer is dead after this call. */
void stream_answer_end(struct http_request *http, const struct stream_answer_end *end);
