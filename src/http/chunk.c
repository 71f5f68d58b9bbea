/*
 *   SIZE_FIRST -> SIZE -> [EXTENSION] -> SIZE_LF -> DATA -> DATA_CR -> DATA_LF -> SIZE_FIRST ...
 *                                           \ size 0
 *                                            TRAILER_FIRST -> TRAILER -> TRAILER_LF -> TRAILER_FIRST ...
 *                                                        \ CR: END_LF -> done
 */
#include "http/chunk.h"

enum { SIZE_DIGITS_MAX = 15, OVERHEAD_FREE = 64 * 1024, OVERHEAD_PER_BYTE = 8 };

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
        return (c | 0x20) - 'a' + 10;
    return -1;
}

static bool is_control(char c)
{
    return ((unsigned char)c < 0x20 && c != '\t') || c == 0x7f;
}

static bool step_size(struct chunk_decoder *decoder, char c)
{
    int digit = hex_digit(c);

    if (digit >= 0) {
        if (decoder->state == CHUNK_SIZE_FIRST)
            decoder->remaining = decoder->digits = 0;
        decoder->state = CHUNK_SIZE;
        decoder->remaining = decoder->remaining << 4 | (unsigned)digit;
        return ++decoder->digits <= SIZE_DIGITS_MAX;
    }
    if (decoder->state == CHUNK_SIZE_FIRST)
        return false;
    decoder->state = c == '\r' ? CHUNK_SIZE_LF : CHUNK_EXTENSION;
    return c == '\r' || c == ';';
}

/* One byte of framing. False when it is wrong. */
static bool step(struct chunk_decoder *decoder, char c)
{
    switch (decoder->state) {
    case CHUNK_SIZE_FIRST:
    case CHUNK_SIZE:
        return step_size(decoder, c);
    case CHUNK_EXTENSION:
        if (c == '\r')
            decoder->state = CHUNK_SIZE_LF;
        return c == '\r' || !is_control(c);
    case CHUNK_SIZE_LF:
        decoder->state = decoder->remaining ? CHUNK_DATA : CHUNK_TRAILER_FIRST;
        return c == '\n';
    case CHUNK_DATA_CR:
        decoder->state = CHUNK_DATA_LF;
        return c == '\r';
    case CHUNK_DATA_LF:
        decoder->state = CHUNK_SIZE_FIRST;
        return c == '\n';
    case CHUNK_TRAILER_FIRST:
        decoder->state = c == '\r' ? CHUNK_END_LF : CHUNK_TRAILER;
        return c == '\r' || (!is_control(c) && c != ' ' && c != '\t');
    case CHUNK_TRAILER:
        if (c == '\r')
            decoder->state = CHUNK_TRAILER_LF;
        return c == '\r' || !is_control(c);
    case CHUNK_TRAILER_LF:
        decoder->state = CHUNK_TRAILER_FIRST;
        return c == '\n';
    case CHUNK_END_LF:
        return c == '\n';
    case CHUNK_DATA:
        break;
    }
    return false;
}

static struct span take_data(struct chunk_decoder *decoder, struct span input, size_t at)
{
    size_t length = MIN(input.length - at, decoder->remaining);

    decoder->remaining -= length;
    decoder->data += length;
    if (!decoder->remaining)
        decoder->state = CHUNK_DATA_CR;
    return span_of(input.data + at, length);
}

enum chunk_result chunk_decode(struct chunk_decoder *decoder, struct span input, struct span *ret_data,
                               size_t *ret_consumed)
{
    *ret_data = SPAN_NONE;
    for (size_t at = 0; at < input.length; at++) {
        bool last = decoder->state == CHUNK_END_LF;
        bool ends_last_chunk = decoder->state == CHUNK_SIZE_LF && !decoder->remaining;

        if (decoder->state == CHUNK_DATA) {
            *ret_data = take_data(decoder, input, at);
            *ret_consumed = at + ret_data->length;
            return CHUNK_MORE;
        }
        decoder->overhead++;
        if (!step(decoder, input.data[at]) || decoder->overhead / OVERHEAD_PER_BYTE > OVERHEAD_FREE + decoder->data) {
            *ret_consumed = at;
            return CHUNK_BAD;
        }
        if (last) {
            *ret_consumed = at + 1;
            return CHUNK_DONE;
        }
        if (ends_last_chunk) {
            *ret_consumed = at + 1;
            return CHUNK_MORE;
        }
    }
    *ret_consumed = input.length;
    return CHUNK_MORE;
}
