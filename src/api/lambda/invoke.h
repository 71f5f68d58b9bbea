/*
 * The operations Invoke and InvokeWithResponseStream in front of the frontend: checks the names and headers of the
 * request as the service does (texts as recorded), then hands it to frontend_invoke. Loop's thread.
 */
#pragma once

#include "api/operation.h"
#include "frontend/frontend.h"

enum { LAMBDA_CLIENT_CONTEXT_BYTES = 3583 }; /* as encoded */

struct lambda_invoke_request {
    struct http_request *http;
    const struct catalog *catalog;
    struct span function_name; /* the path parameter, percent-decoded */
    struct span account;       /* the caller's */
    struct span region;
    const char *request_id;
    bool streams;                                               /* InvokeWithResponseStream */
    void (*on_drain)(struct http_request *http, void *context); /* see frontend_invoke */
};

/* Answers, or returns the frontend's handle (see frontend_invoke). */
struct frontend_request *lambda_invoke(struct frontend *frontend, const struct lambda_invoke_request *request);

/* True for the routing table's rows of the two. */
bool lambda_route_is_invoke(const struct operation_route *route);
/* True for InvokeWithResponseStream's. */
bool lambda_route_streams(const struct operation_route *route);
