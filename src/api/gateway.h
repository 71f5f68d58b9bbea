/*
 * Where HTTP meets AWS: takes the requests of the API's listener, finds the operation by method and path, establishes
 * who is calling (the signature with `--auth sigv4`; the credential scope is read in any case), and hands the request
 * to the control plane's operation or to the invoke frontend. Also answers GET /_kiln/health.
 *
 * Account and Region of a call: the access key's account (credentials file, or a key of exactly 12 digits), else the
 * default; the Region of the credential scope, else the default.
 */
#pragma once

#include "api/operation.h"
#include "aws/credentials.h"
#include "frontend/frontend.h"
#include "http/server.h"

struct gateway;

struct gateway_config {
    const struct operation_services *services; /* borrowed; may be filled later, before the loop runs */
    const struct log *log;                     /* borrowed */
    const struct credentials *credentials;     /* borrowed; NULL: --auth off */
    const char *default_account;               /* 12 digits, borrowed */
    const char *default_region;                /* borrowed */
};

int gateway_new(const struct gateway_config *config, struct gateway **ret_gateway) MUST_USE;
/* To be called before the loop runs. The frontend is borrowed. */
void gateway_set_frontend(struct gateway *gateway, struct frontend *frontend);
/*
 * Before the listener's server is freed with requests under way: operations go on, but their answers go nowhere. The
 * invokes are the frontend's to drop.
 */
void gateway_abandon(struct gateway *gateway);
/* Requests that an operation has now, for tests. */
size_t gateway_operation_count(const struct gateway *gateway);
/* The listener must be gone. NULL is allowed. */
struct gateway *gateway_free(struct gateway *gateway);

/* The handler for http_server_listen, with the gateway as its context. */
const struct http_handler *gateway_http_handler(void);
