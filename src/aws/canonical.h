/*
 * The canonical form of a request and the string to sign, as Signature Version 4 prescribes them. Pure; the texts live
 * in the caller's arena. Used by sigv4.c and its tests.
 */
#pragma once

#include "aws/sha256.h"
#include "aws/sigv4.h"

enum { CANONICAL_SIGNED_HEADERS = 200 };

/*
 * METHOD \n path \n query \n headers \n signed headers \n payload hash. `signed_headers` ("host;x-amz-date") are lower
 * case; those that the request does not have count as empty. The parameter X-Amz-Signature is left out of the query. A
 * '%' that starts no valid triple stands for itself. -EINVAL when the names are not sorted, come twice, or are more
 * than CANONICAL_SIGNED_HEADERS; -ENOMEM.
 */
int canonical_request(const struct sigv4_request *request, struct span signed_headers, struct span payload_hash,
                      enum sigv4_flavour flavour, struct arena *arena, struct span *ret_text) MUST_USE;

/* AWS4-HMAC-SHA256 \n timestamp \n date/region/service/aws4_request \n hash of the canonical request. */
int canonical_string_to_sign(struct span timestamp, struct span date, struct span region, struct span service,
                             const char *request_hash, struct arena *arena, struct span *ret_text) MUST_USE;

/* The key that signs for one day, Region and service: four HMACs. The secret is wiped from the arena after use. */
int canonical_signing_key(struct sha256 *sha256, struct span secret, struct span date, struct span region,
                          struct span service, struct arena *arena, unsigned char ret_key[SHA256_BYTES]) MUST_USE;

/* The lower-case names of the request's headers, sorted, each once, without those that must not be signed; ';' between.
 */
int canonical_signed_headers(const struct sigv4_request *request, struct arena *arena, struct span *ret_text) MUST_USE;

/* First header of that name, case ignored; false when absent. `ret_value` may be NULL. */
bool canonical_header(const struct sigv4_request *request, struct span name, struct span *ret_value);
