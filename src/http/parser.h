/*
 * The head of an HTTP/1.x request: bytes in, fields out. Pure: no sockets, no clock. llhttp or its forerunner
 * http_parser does the work; both sit behind this file, and what they leave open (bare LF, folded lines, doubled
 * Host, Content-Length beside Transfer-Encoding, ...) is refused here, so that both give the same verdicts.
 *
 * The bytes of the head are kept in one piece in `head`; fields are offsets into it. An object is used again for the
 * next request (parser_reset keeps its memory), and is embedded in its owner.
 */
#pragma once

#include "base/buffer.h"
#include "http/header.h"

#ifdef KILN_HAVE_LLHTTP
#include <llhttp.h>
typedef llhttp_t parser_library;
#else
#include <http_parser.h>
typedef struct http_parser parser_library;
#endif

enum { PARSER_FIELDS_MAX = 1000, PARSER_FIELDS_KEPT = 64 };

enum parser_result {
    PARSER_MORE = 1, /* everything was consumed and more is needed */
    PARSER_DONE,     /* the head is complete and sound */
    PARSER_REFUSED,  /* see parser.refusal; nothing more can be read from this connection */
};

struct parser_field {
    uint32_t name;
    uint32_t name_length;
    uint32_t value;
    uint32_t value_length;
};

struct parser {
    parser_library library;
    struct buffer head;
    struct parser_field *fields;
    size_t field_count;
    size_t field_capacity;
    const char *piece; /* while the library runs: what it is given, and where that will stand in head */
    size_t piece_at;
    uint32_t target;
    uint32_t target_length;
    int failure; /* -ENOMEM or a status, set by a callback */

    /* Valid after PARSER_REFUSED: the status to answer with. */
    int refusal;

    /* Valid after PARSER_DONE. */
    struct span method;
    struct span path;
    struct span query;
    int64_t content_length; /* -1: none given */
    int minor_version;
    bool chunked;
    bool keep_alive;
    bool expects_continue;
};

/* An empty object, ready for a request. */
void parser_init(struct parser *parser);
void parser_deinit(struct parser *parser);
/* Ready for another request. Memory is kept unless the last request needed unusually much. */
void parser_reset(struct parser *parser);

/*
 * Takes the next bytes. `limit` bounds the whole head (431 past it). Returns a parser_result, or -ENOMEM. On
 * PARSER_DONE *ret_consumed may be less than `length`: what follows is the body or the next request. No more may be
 * given after DONE, REFUSED or an error before parser_reset.
 */
int parser_execute(struct parser *parser, const char *data, size_t length, size_t limit, size_t *ret_consumed) MUST_USE;

/* Field `index` of field_count. */
struct http_header parser_field_at(const struct parser *parser, size_t index);

/* True when every byte may stand in a method or field name, and there is at least one. */
bool parser_is_token(struct span text);
