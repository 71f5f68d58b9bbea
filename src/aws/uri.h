/*
 * URIs as AWS clients send them: percent encoding (RFC 3986), query strings and path segments. Results live in the
 * caller's arena, or point into the input where nothing had to be decoded; they are borrowed until both are gone.
 */
#pragma once

#include "base/arena.h"
#include "base/buffer.h"

/*
 * Decodes %XX. A '+' stays a '+'. 0, -EINVAL for a '%' that two hex digits do not follow, -ENOMEM. The result may hold
 * any byte, NUL included.
 */
int uri_decode(struct arena *arena, struct span text, struct span *ret_decoded) MUST_USE;

/*
 * Appends `text` with everything but A-Z a-z 0-9 - . _ ~ as %XX in upper case; '/' is kept when `keep_slash`. This is
 * the encoding that Signature Version 4 prescribes. 0 or -ENOMEM.
 */
int uri_encode(struct span text, bool keep_slash, struct buffer *buffer) MUST_USE;

/* A-Z a-z 0-9 - . _ ~ : what is never encoded. */
bool uri_is_unreserved(unsigned char c);

struct uri_parameter {
    struct span name;
    struct span value; /* empty with data NULL when there was no '=' */
};

struct uri_query {
    struct uri_parameter *parameters; /* in the order sent */
    size_t count;
};

/*
 * Parses what follows the '?': parts between '&', empty ones skipped, names and values decoded, with '+' as a space in
 * both. 0, -EINVAL for bad percent encoding, -ENOMEM.
 */
int uri_query_parse(struct arena *arena, struct span query, struct uri_query *ret_query) MUST_USE;
/* Value of the first parameter of that name (case counts); false when there is none. `ret_value` may be NULL. */
bool uri_query_get(const struct uri_query *query, struct span name, struct span *ret_value);

enum { URI_SEGMENTS = 16 };

struct uri_path {
    struct span segments[URI_SEGMENTS]; /* decoded */
    size_t count;
    bool trailing_slash; /* "/a/b/": two segments and this */
};

/*
 * Splits "/a/b%3Ac" at its slashes and then decodes each segment, so that an encoded slash does not split. A leading
 * slash is skipped; empty segments within the path are kept. 0, -EINVAL for bad percent encoding, -E2BIG past
 * URI_SEGMENTS, -ENOMEM.
 */
int uri_path_split(struct arena *arena, struct span path, struct uri_path *ret_path) MUST_USE;
