/*
 * The invoke frontend: admits a request, leases an environment, hands over the event and answers the caller. Decisions
 * are core's; this module carries them out. Everything on the loop's thread.
 *
 * It registers itself as an observer of the catalog and keeps one core account per account and Region in step with it.
 */
#pragma once

#include "base/log.h"
#include "base/span.h"
#include "http/server.h"

#include <uv.h>

struct catalog;
struct catalog_target;
struct core_provisioned_state;
struct credentials;
struct frontend;
struct frontend_request;
struct worker;

struct frontend_config {
    uv_loop_t *loop;
    const struct log *log;   /* borrowed */
    struct catalog *catalog; /* borrowed; frontend_new must come before catalog_load */
    struct worker *worker;   /* borrowed */
    unsigned concurrency;    /* --concurrency */
    unsigned unreserved_minimum;
    unsigned scaling_rate;      /* environments per 10 s and function */
    unsigned provisioning_rate; /* provisioned environments per minute and function */
    unsigned idle_timeout_s;
    const char *default_account;                    /* borrowed, as are the next two */
    const struct credentials *function_credentials; /* what functions of an account get to see; NULL: test ones */
    const char *function_endpoint;                  /* their AWS_ENDPOINT_URL; NULL: none */
};

int frontend_new(const struct frontend_config *config, struct frontend **ret_frontend) MUST_USE;

/*
 * The orderly end: every environment is retired once idle, and on_stopped is called once from the loop when requests in
 * flight have ended and every environment is gone. New requests are refused with 500 from now on.
 */
void frontend_stop(struct frontend *frontend, void (*on_stopped)(void *context), void *context);

/* After worker_free: nothing may be running any more. Requests still there are dropped unanswered. NULL is allowed. */
struct frontend *frontend_free(struct frontend *frontend);

/* A synchronous invoke whose names and headers have been checked, as well as that its caller may (catalog_permits).
 * Spans are borrowed for the call. */
struct frontend_invoke {
    struct http_request *http; /* complete; the frontend takes its body and answers it */
    const char *request_id;    /* 36 characters; copied */
    struct span account;       /* the function's */
    struct span region;
    struct span function_name;  /* the bare name */
    struct span qualifier;      /* version, alias or $LATEST; empty when the caller gave none */
    struct span client_context; /* decoded JSON, may be empty */
    struct span trace_id;       /* X-Amzn-Trace-Id as sent, may be empty */
    bool wants_log_tail;        /* LogType Tail */
    bool streams;               /* InvokeWithResponseStream: the answer is an event stream */
    void (*on_drain)(struct http_request *http, void *context); /* of it; is to call frontend_caller_drained */
    bool dry_run; /* InvocationType DryRun: everything is checked, nothing runs */
};

/*
 * Runs it. Returns NULL when it has been answered already (refused, throttled, dry run); else a handle that lives until
 * the answer has been given. Until then a caller that vanishes must be reported with frontend_caller_gone, after which
 * the handle is dead too; the invoke runs on and its result is dropped, as on AWS.
 */
struct frontend_request *frontend_invoke(struct frontend *frontend, const struct frontend_invoke *invoke);
void frontend_caller_gone(struct frontend_request *request);
/* The caller of an answer that streams has taken most of what was waiting for it. */
void frontend_caller_drained(struct frontend_request *request);

/*
 * What has become of the provisioned concurrency of a version or alias that has it in the catalog. For a moment after
 * it was stored it may not be known here: IN_PROGRESS with nothing allocated. (Function and context, as who asks knows
 * no frontend.)
 */
void frontend_read_provisioned(const struct catalog_target *target, struct core_provisioned_state *ret_state,
                               void *frontend);

/* For health and tests: environments alive; requests not yet through with their environment; units of concurrency that
 * are out, over all accounts and Regions. */
size_t frontend_environment_count(const struct frontend *frontend);
size_t frontend_in_flight(const struct frontend *frontend);
int64_t frontend_concurrency(const struct frontend *frontend);
