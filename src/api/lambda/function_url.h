/*
 * The addresses of function URLs: an id that is drawn once and kept, in front of a host name by which clients reach
 * this daemon.
 */
#pragma once

#include "api/operation.h"

enum { FUNCTION_URL_ID_BYTES = 33 };

/* 32 random small letters and digits, as the service's are; never the same twice. */
void function_url_make_id(char id[FUNCTION_URL_ID_BYTES]);

/*
 * "http://ID.lambda-url.REGION.HOST/", in the arena. HOST is what the request was sent to when that is a domain name
 * (its owner can make a wildcard entry for it), else "localhost" with the request's port: names under localhost are the
 * local machine's (RFC 6761). NULL when out of memory.
 */
const char *function_url_address(struct operation *operation, const char *id);
