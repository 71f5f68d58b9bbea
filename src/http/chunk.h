/*
 * The chunked transfer coding of a request (RFC 9112, 7.1). Pure. Strict where leniency has been used for smuggling:
 * sizes are 1 to 15 hexadecimal digits with nothing around them but an extension, every line ends with CRLF, and no
 * control byte stands in an extension or a trailer. Extensions are dropped.
 *
 * Zero-initialised is ready for a body.
 */
#pragma once

#include "base/span.h"

enum chunk_state {
    CHUNK_SIZE_FIRST,
    CHUNK_SIZE,
    CHUNK_EXTENSION,
    CHUNK_SIZE_LF,
    CHUNK_DATA,
    CHUNK_DATA_CR,
    CHUNK_DATA_LF,
    CHUNK_TRAILER_FIRST, /* at the start of a line after the last chunk */
    CHUNK_TRAILER,
    CHUNK_TRAILER_LF,
    CHUNK_END_LF,
};

enum chunk_result {
    CHUNK_MORE = 1, /* go on with what was not consumed, or with the next bytes */
    CHUNK_DONE,     /* the body is complete; what was not consumed is the next request */
    CHUNK_BAD,
};

struct chunk_decoder {
    enum chunk_state state;
    unsigned digits;
    uint64_t remaining; /* of the current chunk's data: known as soon as its size line is read */
    uint64_t overhead;  /* bytes that were not data */
    uint64_t data;
};

/* The last chunk has been read: what chunk_decode consumes from here on is the trailer section. */
static inline bool chunk_is_trailing(const struct chunk_decoder *decoder)
{
    return decoder->state >= CHUNK_TRAILER_FIRST;
}

/*
 * Reads on to the end of one run of data, of the last chunk, of the body or of the input, whichever is first. *ret_data
 * is the run of data met, inside `input`, perhaps empty. CHUNK_BAD also when framing outweighs the data beyond reason.
 */
enum chunk_result chunk_decode(struct chunk_decoder *decoder, struct span input, struct span *ret_data,
                               size_t *ret_consumed);
