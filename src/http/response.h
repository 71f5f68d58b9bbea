/*
 * The head of a response and the framing of its body, as bytes. Pure. What the handler gives is made safe here: no
 * value can end its line, and the fields that frame the message are ours alone (see http_respond in server.h).
 */
#pragma once

#include "base/buffer.h"
#include "http/header.h"

enum response_framing {
    RESPONSE_NO_BODY,     /* 204, 304: no Content-Length unless given */
    RESPONSE_LENGTH,      /* Content-Length */
    RESPONSE_CHUNKED,     /* Transfer-Encoding: chunked */
    RESPONSE_UNTIL_CLOSE, /* HTTP/1.0: the end of the connection is the end of the body */
};

/* What given headers say about the connection and the message. */
struct response_wishes {
    bool close;             /* "Connection: close" */
    bool has_date;          /* ours is left out */
    int64_t content_length; /* a valid Content-Length, else -1 */
};

struct response_wishes response_inspect(const struct http_header *headers, size_t count);

struct response_plan {
    int status;
    enum response_framing framing;
    int64_t content_length; /* for RESPONSE_LENGTH; for RESPONSE_NO_BODY -1 or what to say anyway */
    bool keep_alive;
    int minor_version; /* of the request: 1.0 must be told of keep-alive */
    const char *date;  /* "Sun, 06 Nov 1994 08:49:37 GMT", NULL: none */
};

/* Appends status line, fields and the empty line. 0 or -ENOMEM (nothing is then appended). */
int response_append_head(struct buffer *out, const struct response_plan *plan, const struct http_header *headers,
                         size_t count) MUST_USE;

/* Appends the size line of a chunk. Its data and CRLF follow. `length` is not 0. */
int response_append_chunk_size(struct buffer *out, size_t length) MUST_USE;

/* Appends the last chunk with the trailers. */
int response_append_last_chunk(struct buffer *out, const struct http_header *trailers, size_t count) MUST_USE;

/* "OK" for 200; "Unknown" for what has no name. */
struct span response_reason(int status);
