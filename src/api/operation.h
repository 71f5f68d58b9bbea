/*
 * One control-plane request on its way through an operation: what came in, copied so that it stays valid however long
 * the operation takes and whatever becomes of the caller, and the way its one answer goes out.
 *
 *   gateway: operation_new -> fields -> operation_start -> the route's handler -> ... -> respond -> freed
 *
 * A handler answers exactly once, now or later, through one of the operation_respond_* functions; the operation is
 * freed by that. When the caller goes away first, the gateway calls operation_abandon: the operation goes on (its
 * change is made), and its answer goes nowhere. Everything on the loop's thread except where a field says otherwise.
 */
#pragma once

#include "api/service.h"
#include "aws/uri.h"
#include "base/arena.h"
#include "base/buffer.h"
#include "base/log.h"
#include "http/header.h"

#include <jansson.h>
#include <uv.h>

struct aws_error;
struct catalog;
struct catalog_target;
struct code_store;
struct core_provisioned_state;
struct http_client;
struct operation;
struct store;

enum {
    OPERATION_PARAMETERS_MAX = 3,
    OPERATION_BODY_DEFAULT = 6291456 + 1024 * 1024,
};

/* Limits and parts that operations use; built once by main, borrowed by all. */
struct operation_services {
    uv_loop_t *loop;
    const struct log *log;
    struct catalog *catalog;
    struct code_store *code;
    struct http_client *client; /* for S3 */
    bool ending;                /* the parts are being closed: what comes back from the pool goes no further */
    const char *s3_endpoint;    /* "http://host:port", NULL: none given */
    const char *s3_access_key;  /* what requests to it are signed with; NULL: unsigned */
    const char *s3_secret_key;
    unsigned concurrency;        /* account limit, 1000 */
    unsigned unreserved_minimum; /* 100 */
    uint64_t code_bytes_limit;   /* all packages of an account in a Region; 80,530,636,800 */
    bool strict_aws;             /* --strict-aws */
    int64_t unseen_update_ns;    /* how long an update lasts for those who have not seen its end; 0 */
    /* What has become of provisioned concurrency that the catalog has; NULL: nothing is allocated, ever. */
    void (*read_provisioned)(const struct catalog_target *target, struct core_provisioned_state *ret_state,
                             void *context);
    void *provisioned_context;
};

/* The service's own limits; the parts are the caller's to set. */
void operation_services_init(struct operation_services *services);

struct operation_parameter {
    struct span name;  /* as in the pattern: "FunctionName" */
    struct span value; /* percent-decoded */
};

/* A row of a service's routing table; of the query protocol's services the name (that of the Action) and the handler.
 */
struct operation_route {
    const char *name;      /* "CreateFunction" */
    const char *wire_name; /* what the service's messages call it ("InvokeFunction"); NULL: the name */
    const char *method;    /* "POST" */
    const char *pattern;   /* "/2015-03-31/functions/{FunctionName}": each {X} is one path segment */
    const char *query;     /* "List=ALL": must be in the query string for this row; NULL: any */
    size_t body_limit;     /* bytes; 0: OPERATION_BODY_DEFAULT */
    void (*handler)(struct operation *operation); /* NULL: not the control plane's (Invoke and its kin) */
    bool unsupported;                             /* answered by operation_respond_unsupported */
    bool anonymous;                               /* not signed: the URL itself carries a token (code downloads) */
};

/* What an answer is sent with. Called at most once per operation. `headers` are borrowed for the call, `body` is taken.
 */
typedef void operation_send(void *context, int status, const struct http_header *headers, size_t header_count,
                            struct buffer *body);

struct operation {
    const struct operation_services *services;
    const struct service *service; /* never NULL */
    const struct operation_route *route;
    struct arena arena; /* lives as long as the operation; the loop's thread only */
    struct span method;
    struct span path;  /* as sent */
    struct span query; /* as sent */
    struct span account;
    struct span region;
    struct span caller_arn;
    struct span request_id;
    struct operation_parameter parameters[OPERATION_PARAMETERS_MAX];
    size_t parameter_count;
    struct http_header *headers;
    size_t header_count;
    struct buffer body;
    struct uri_query form; /* query protocol: the parameters, Action among them */
    bool abandoned;        /* the caller has gone */
    operation_send *send;
    void *send_context;
    void *context;                                /* the handler's own, in the arena */
    void (*cleanup)(struct operation *operation); /* the handler's: frees what the context owns; NULL: nothing */
};

/* What the gateway knows when a request is complete. */
struct operation_request {
    const struct service *service;
    struct span method;
    struct span path;
    struct span query;
    struct span account; /* 12 digits */
    struct span region;
    struct span caller_arn;
    struct span request_id;
    const struct http_header *headers;
    size_t header_count;
    struct buffer *body; /* taken; may be NULL */
};

/*
 * Makes an operation with copies of the spans and headers given (arena). `send` and its context are used until the
 * answer or operation_abandon. NULL when out of memory.
 */
struct operation *operation_new(const struct operation_services *services, const struct operation_request *request,
                                operation_send *send, void *send_context);

/*
 * Runs the operation: may answer (and free it) before it returns. With the query protocol `route` is NULL: the form
 * names the action. Otherwise NULL (an unknown path or method) answers 404 UnknownOperationException. Parameters are
 * those of operation_match_route, whose arena must live until the answer: give it `&operation->arena`.
 */
void operation_start(struct operation *operation, const struct operation_route *route,
                     const struct operation_parameter *parameters, size_t parameter_count);

/* The caller has gone; `send` will not be called. */
void operation_abandon(struct operation *operation);

/* --- for handlers ---------------------------------------------------------------------------------------------- */

/* A path parameter's decoded value; it is there when the route's pattern has it. */
struct span operation_parameter(const struct operation *operation, struct span name);
/*
 * A query parameter's decoded value through ret_value. False when absent. The first of several counts. Memory is the
 * arena's.
 */
bool operation_query(struct operation *operation, struct span name, struct span *ret_value);
/* First header of that name, SPAN_NONE when absent. */
struct span operation_header(const struct operation *operation, struct span name);

/*
 * Answers with a JSON document (taken; NULL: an empty body). Out of memory becomes a 500. Every answer carries
 * x-amzn-RequestId, and errors x-amzn-ErrorType.
 */
void operation_respond(struct operation *operation, int status, json_t *document);
/* Answers with bytes. Takes `body`. */
void operation_respond_bytes(struct operation *operation, int status, const char *content_type, struct buffer *body);
/*
 * The query protocol's answer: the members of the action's result (taken; NULL when it has none, or when memory ran
 * out, which `failed` tells apart), as XML or, for who accepts that alone, JSON.
 */
void operation_respond_result(struct operation *operation, json_t *result, bool failed);
/* Answers with the error in the envelope of the service's protocol. */
void operation_respond_error(struct operation *operation, const struct aws_error *error);
/* 500 ServiceException; `error` is what the log gets (a negative errno). */
void operation_respond_failure(struct operation *operation, int error, const char *what);
/* 501 NotImplementedException that names the operation. */
void operation_respond_unsupported(struct operation *operation);

/*
 * What a body past the route's limit is refused with, for the gateway: 413, "Request must be smaller than N bytes for
 * the X operation".
 */
void operation_set_too_large(const struct operation_route *route, struct aws_error *error);
size_t operation_body_limit(const struct operation_route *route);

/* --- routing ---------------------------------------------------------------------------------------------------- */

enum operation_match { OPERATION_MATCHED, OPERATION_NO_PATH, OPERATION_NO_METHOD };

/*
 * Finds the row for a request: `path` as sent (one trailing slash is allowed), `query` as sent. Parameters are decoded
 * into the arena. The first row that fits wins: rows with a `query` stand before the same path without, and what is
 * asked for most stands first. OPERATION_NO_METHOD: the path is there, but not for this method.
 */
enum operation_match operation_match_route(const struct operation_route *routes, size_t route_count, struct span method,
                                           struct span path, struct span query, struct arena *arena,
                                           const struct operation_route **ret_route,
                                           struct operation_parameter ret_parameters[OPERATION_PARAMETERS_MAX],
                                           size_t *ret_parameter_count);
