/*
 * Is this payload JSON? A strict validator over bytes (RFC 8259, UTF-8 checked) that allocates nothing, does not
 * recurse and runs at memory speed over strings; and, when it is not, the sentence that the service gives, which is
 * that of the Jackson parser with line and column (recorded for Invoke; the rarer texts follow jackson-core 2.17).
 */
#pragma once

#include "base/span.h"

enum {
    JSON_CHECK_DEPTH = 1000,       /* nested arrays and objects allowed, as the service's parser allows */
    JSON_CHECK_MESSAGE_BYTES = 640 /* enough for the longest message */
};

enum json_check_outcome {
    JSON_CHECK_INVALID = 1,
    JSON_CHECK_EMPTY = 2, /* nothing but white space: callers decide (Invoke takes a payload of no bytes) */
};

struct json_fault {
    size_t offset;                          /* of the offending byte; the payload's length for an unexpected end */
    unsigned line;                          /* from 1 */
    unsigned column;                        /* from 1, in bytes, as Jackson counts for the message at hand */
    char message[JSON_CHECK_MESSAGE_BYTES]; /* "Unexpected character ('x' (code 120)): ...\n at [Source: ...]" */
};

/* 0 when `text` is exactly one JSON value with white space around it. `fault` may be NULL; it is filled on refusal. */
int json_check(struct span text, struct json_fault *fault) MUST_USE;
