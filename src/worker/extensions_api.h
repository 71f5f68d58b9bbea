/*
 * The Extensions API (version 2020-01-01) as the extensions of one environment see it, on the socket of its Runtime
 * API: paths, headers, bodies and refusals. When what is right is environment_extensions.h's business.
 */
#pragma once

#include "base/macros.h"
#include "base/span.h"

struct environment;
struct extension;
struct http_request;

/* Answers a request for a path of this API, now or later. False: it is none. */
bool extensions_api_on_request(struct environment *environment, struct http_request *request);

/* Give the waiting GET event/next its event. -ENOMEM, -ENOENT: none waits. */
int extensions_api_send_invoke(struct environment *environment, struct extension *extension,
                               struct span trace_id) MUST_USE;
int extensions_api_send_shutdown(struct extension *extension, const char *reason, int64_t deadline_wall_ms) MUST_USE;

/* The registered extension that the request names. NULL: it has been refused. Also for the Telemetry API. */
struct extension *extensions_api_identify(struct environment *environment, struct http_request *request);
