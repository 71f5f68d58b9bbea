/*
 * All numbers are big-endian:
 *
 *     total length 4 | headers' length 4 | CRC of these 8 bytes 4 | headers | payload | CRC of all before it 4
 *
 * A header: length of its name 1 | name | kind of its value 1 (7: string) | length of the value 2 | value
 */
#include "aws/event_stream.h"

#include <zlib.h>

enum { PRELUDE_BYTES = 12, CRC_BYTES = 4, HEADER_OVERHEAD = 4, KIND_STRING = 7 };

struct header {
    struct span name;
    struct span value;
};

static char *put(char *at, uint32_t number, unsigned bytes)
{
    while (bytes--)
        *at++ = (char)(number >> (8 * bytes));
    return at;
}

static char *put_span(char *at, struct span span)
{
    if (span.length)
        memcpy(at, span.data, span.length);
    return at + span.length;
}

static char *put_header(char *at, const struct header *header)
{
    at = put(at, (uint32_t)header->name.length, 1);
    at = put_span(at, header->name);
    at = put(at, KIND_STRING, 1);
    at = put(at, (uint32_t)header->value.length, 2);
    return put_span(at, header->value);
}

static uint32_t crc_of(const char *start, const char *end)
{
    return (uint32_t)crc32(0, (const unsigned char *)start, (unsigned)(end - start));
}

int event_stream_append(struct buffer *out, struct span event_type, struct span content_type, struct span payload)
{
    const struct header headers[] = {
        {SPAN(":event-type"), event_type},
        {SPAN(":content-type"), content_type},
        {SPAN(":message-type"), SPAN("event")},
    };
    size_t headers_length = 0;
    size_t total;
    char *start, *at;
    int r;

    for (size_t i = 0; i < ARRAY_SIZE(headers); i++)
        headers_length += HEADER_OVERHEAD + headers[i].name.length + headers[i].value.length;
    total = PRELUDE_BYTES + headers_length + payload.length + CRC_BYTES;
    r = buffer_reserve(out, total);
    if (r < 0)
        return r;
    at = start = out->data + out->length;
    at = put(at, (uint32_t)total, 4);
    at = put(at, (uint32_t)headers_length, 4);
    at = put(at, crc_of(start, at), 4);
    for (size_t i = 0; i < ARRAY_SIZE(headers); i++)
        at = put_header(at, &headers[i]);
    at = put_span(at, payload);
    at = put(at, crc_of(start, at), 4);
    out->length += total;
    return 0;
}
