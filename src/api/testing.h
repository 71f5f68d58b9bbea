/*
 * For tests: operations run straight through the dispatcher, without HTTP, on a catalog in a directory of its own.
 */
#pragma once

#include "api/operation.h"
#include "catalog/testing.h"

struct api_world {
    struct testing_world catalog;
    struct span caller;            /* the account that calls; API_ACCOUNT at first */
    const struct service *service; /* the one that is called; Lambda at first */
    struct operation_services services;
};

/* One answer. `body` is NULL unless it is JSON. */
struct api_answer {
    bool answered;
    int status;
    char error_type[96]; /* x-amzn-ErrorType, "" without */
    char request_id[64];
    json_t *body;
    struct buffer bytes; /* as sent */
};

void api_open(struct api_world *world);
void api_close(struct api_world *world);
/* Restarts stores and catalog on the same directory. */
void api_restart(struct api_world *world);

/* A call that has been started and may not be answered yet. */
struct api_call {
    struct api_answer answer;
    struct operation *operation;
};

#define API_ACCOUNT "111111111111"
#define API_REGION  "us-east-1"

/* Starts "METHOD PATH?QUERY" with a body (may be NULL). The call must live until it is answered. */
void api_start(struct api_world *world, const char *method, const char *target, struct span body,
               struct api_call *call);
/* Runs the loop until the call is answered, and not a turn longer. */
void api_wait(struct api_world *world, struct api_call *call);
/* Both. The answer belongs to the caller: api_answer_deinit. */
struct api_answer api_exchange(struct api_world *world, const char *method, const char *target, const char *body);
struct api_answer api_exchange_json(struct api_world *world, const char *method, const char *target, json_t *body);
void api_answer_deinit(struct api_answer *answer);
/* "message" or "Message" of an error, "" when there is none. */
const char *api_message(const struct api_answer *answer);
/* A zip with one file, in base64, as a JSON string. */
json_t *api_zip(const char *name, const char *content);
/* Makes a Python function and waits until it is Active. */
void api_create_function(struct api_world *world, const char *name);
