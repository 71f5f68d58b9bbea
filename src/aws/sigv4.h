/*
 * AWS Signature Version 4: reading, checking and making signatures, in the Authorization header or in the query
 * (presigned). Follows "Signature Version 4 signing process" of the AWS General Reference; the published test suite is
 * a unit test. Spans in results point into the request or the caller's arena and are borrowed as long as those.
 */
#pragma once

#include "aws/credentials.h"
#include "aws/error.h"
#include "base/arena.h"

struct sigv4_header {
    struct span name;
    struct span value;
};

/* A request as it came in, or as it will go out. */
struct sigv4_request {
    struct span method;
    struct span path;  /* as sent: percent-encoded, without the query; empty means "/" */
    struct span query; /* as sent, without the '?' */
    const struct sigv4_header *headers;
    size_t header_count;
    struct span body;
    struct span body_sha256; /* 64 lower-case hex digits when the caller knows them, else empty */
};

enum sigv4_flavour {
    SIGV4_STANDARD, /* the path is normalised and encoded once more: all services but S3 */
    SIGV4_S3,       /* the path is encoded once and not normalised */
};

/* What a request says about who signed it. Members that were not there are empty. */
struct sigv4_authorization {
    bool presigned;             /* from the query, not from the header */
    struct span access_key;     /* the credential's parts */
    struct span date;           /* "20260102" */
    struct span region;         /* "us-east-1" */
    struct span service;        /* "lambda" */
    struct span signed_headers; /* "host;x-amz-date" */
    struct span signature;      /* 64 hex digits */
    struct span timestamp;      /* X-Amz-Date as sent; empty when Date has to serve */
    struct span session_token;  /* X-Amz-Security-Token */
    struct span expires;        /* X-Amz-Expires as sent, presigned only */
    struct span algorithm;      /* "AWS4-HMAC-SHA256" */
    struct span credential;     /* the whole credential, also when its parts could not be told */
    struct span terminator;     /* "aws4_request" */
    struct span header;         /* the Authorization header as sent */
    struct span odd_pair;       /* the first thing in it that is not key=value */
};

enum sigv4_outcome {
    SIGV4_MISSING = 1,   /* neither Authorization header nor query parameters */
    SIGV4_INCOMPLETE,    /* there, but not all of it, or not well-formed */
    SIGV4_UNKNOWN_KEY,   /* no such access key */
    SIGV4_BAD_TOKEN,     /* the session token is not the key's */
    SIGV4_EXPIRED,       /* signed too long ago, or the presigned time is over */
    SIGV4_NOT_YET,       /* signed in the future */
    SIGV4_BAD_SCOPE,     /* the credential's date, Region, service or terminator is not what it must be */
    SIGV4_UNSIGNED,      /* host or an x-amz-* header is not among the signed ones */
    SIGV4_BAD_BODY_HASH, /* x-amz-content-sha256 is not the body's hash */
    SIGV4_UNSUPPORTED,   /* STREAMING-* bodies, AWS4-ECDSA-P256-SHA256 */
    SIGV4_MISMATCH,      /* the signature differs */
};

/*
 * Reads the authorization without checking it. 0, SIGV4_MISSING, or SIGV4_INCOMPLETE: then whatever could be read is
 * there nevertheless, which is all that `--auth off` needs. -ENOMEM.
 */
int sigv4_parse(const struct sigv4_request *request, struct arena *arena,
                struct sigv4_authorization *ret_authorization) MUST_USE;

/* How requests are checked. */
struct sigv4_policy {
    /* NULL for an unknown key; the result is borrowed until sigv4_verify returns. */
    const struct credential *(*find)(void *context, struct span access_key);
    void *context;
    struct span service;           /* the one that must be in the scope; empty: any */
    struct span region;            /* likewise */
    enum sigv4_flavour flavour;    /* SIGV4_S3 when checking for S3 */
    unsigned skew_minutes;         /* allowed clock difference; 0: 15. Lambda itself has answered "- 5 min." */
    bool unsigned_headers_allowed; /* do not insist that x-amz-* headers are signed */
};

/* Holds signing keys (one day, Region and service each) so that a check costs few hashes. For one thread. */
struct sigv4_verifier;

/* At most `keys` are kept (0: 256); the least recently used one leaves. The policy is copied. */
int sigv4_verifier_new(const struct sigv4_policy *policy, size_t keys, struct sigv4_verifier **ret_verifier) MUST_USE;
struct sigv4_verifier *sigv4_verifier_free(struct sigv4_verifier *verifier);

/*
 * Parses and checks everything. 0: `ret_authorization` and the credential (may be NULL) tell who it was. A positive
 * enum sigv4_outcome: `error` holds the service's own answer, and `ret_authorization` what could be read. -ENOMEM.
 * `now_wall_ns` is the wall clock. The body's hash is computed only when the request does not come with it.
 */
int sigv4_verify(struct sigv4_verifier *verifier, const struct sigv4_request *request, int64_t now_wall_ns,
                 struct arena *arena, struct sigv4_authorization *ret_authorization,
                 const struct credential **ret_credential, struct aws_error *error) MUST_USE;

struct sigv4_signer {
    struct span access_key;
    struct span secret_key;
    struct span session_token; /* empty: none */
    struct span region;
    struct span service;
    enum sigv4_flavour flavour;
    bool content_sha256_header; /* send and sign x-amz-content-sha256 (S3 asks for it) */
    bool unsigned_payload;      /* UNSIGNED-PAYLOAD in place of the body's hash */
    bool token_after_signing;   /* send x-amz-security-token without signing it (some published vectors) */
};

enum { SIGV4_SIGNED_HEADERS = 4 };

/*
 * Makes the headers to add to an outgoing request: X-Amz-Date (unless the request has one), X-Amz-Security-Token,
 * x-amz-content-sha256 as asked, and Authorization last. The request must carry Host; all its headers are signed
 * except Authorization, Connection, Expect, User-Agent and X-Amzn-Trace-Id. Values live in the arena. 0, -EINVAL
 * without Host, -ENOMEM.
 */
int sigv4_sign(const struct sigv4_signer *signer, const struct sigv4_request *request, int64_t now_wall_ns,
               struct arena *arena, struct sigv4_header ret_headers[SIGV4_SIGNED_HEADERS], size_t *ret_count) MUST_USE;
/* The query of a presigned URL (with its signature), valid for `expires_s` (1 to 604,800). NULL-safe as above. */
int sigv4_presign(const struct sigv4_signer *signer, const struct sigv4_request *request, int64_t now_wall_ns,
                  unsigned expires_s, struct arena *arena, struct span *ret_query) MUST_USE;
