/*
 * The services behind the one port. Which of them a request is for is said by its path (Lambda's are its own), else by
 * the credential scope of its signature, else, when nobody signed it, by the version of the API that its form names.
 * What is for a service that Kiln does not have is told so by name.
 */
#pragma once

#include "base/span.h"

struct operation_route;

enum service_protocol {
    SERVICE_REST_JSON, /* Lambda */
    SERVICE_JSON,      /* JSON 1.0 and 1.1: X-Amz-Target */
    SERVICE_QUERY,     /* STS, IAM */
};

struct service {
    const char *name;  /* as in a credential scope: "lambda" */
    const char *title; /* for people: "AWS Lambda" */
    enum service_protocol protocol;
    const char *version; /* of the API: "2015-03-31" */
    const char *xmlns;   /* query protocol: the namespace of its answers */
    bool answers_json;   /* query protocol: also in JSON, for "Accept: application/json" */
    const struct operation_route *(*routes)(size_t *ret_count);
};

enum { SERVICE_COUNT = 3 };

/* All of them, SERVICE_COUNT; Lambda is the first. */
const struct service *service_at(size_t index);
/* By the name in a credential scope; NULL when Kiln does not have it. */
const struct service *service_find(struct span name);
/* By the version of a query protocol's API ("2011-06-15"), NULL when there is none. */
const struct service *service_find_version(struct span version);
/* Its place among them. */
size_t service_index(const struct service *service);
