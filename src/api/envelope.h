/* An error in the form of a service's protocol: the body, and the headers that its SDKs read. */
#pragma once

#include "api/service.h"
#include "aws/error.h"
#include "http/header.h"

enum { ENVELOPE_HEADERS = 3 };

struct envelope {
    struct http_header headers[ENVELOPE_HEADERS]; /* Content-Type first; without the request's id */
    size_t header_count;
    struct buffer body; /* the caller's to free; empty when memory ran out: status and headers must do */
    char retry_after[16];
};

/* The headers borrow from the error and from the envelope itself. */
void envelope_write(const struct service *service, const struct aws_error *error, struct span request_id,
                    struct envelope *ret_envelope);
