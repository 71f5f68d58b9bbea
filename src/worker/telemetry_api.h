/*
 * The Telemetry API (2022-07-01) and the Logs API (2020-08-15) as extensions see them, on the socket of the Runtime
 * API: subscriptions. Extensions can subscribe until Init ends.
 */
#pragma once

#include <stdbool.h>

struct environment;
struct http_request;

/* Answers a request for a path of these APIs. False: it is none. */
bool telemetry_api_on_request(struct environment *environment, struct http_request *request);
