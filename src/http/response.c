#include "http/response.h"

#include "http/parser.h"

#include <stdio.h>

struct status_line {
    int status;
    struct span line;
};

#define STATUS(code, reason)                                                                     \
    {                                                                                            \
        code,                                                                                    \
        {                                                                                        \
            "HTTP/1.1 " #code " " reason "\r\n", sizeof("HTTP/1.1 " #code " " reason "\r\n") - 1 \
        }                                                                                        \
    }

/* The most frequent first; the search is linear. */
static const struct status_line status_lines[] = {
    STATUS(200, "OK"),
    STATUS(202, "Accepted"),
    STATUS(429, "Too Many Requests"),
    STATUS(201, "Created"),
    STATUS(204, "No Content"),
    STATUS(400, "Bad Request"),
    STATUS(403, "Forbidden"),
    STATUS(404, "Not Found"),
    STATUS(409, "Conflict"),
    STATUS(500, "Internal Server Error"),
    STATUS(502, "Bad Gateway"),
    STATUS(503, "Service Unavailable"),
    STATUS(504, "Gateway Timeout"),
    STATUS(206, "Partial Content"),
    STATUS(301, "Moved Permanently"),
    STATUS(302, "Found"),
    STATUS(303, "See Other"),
    STATUS(304, "Not Modified"),
    STATUS(307, "Temporary Redirect"),
    STATUS(308, "Permanent Redirect"),
    STATUS(401, "Unauthorized"),
    STATUS(405, "Method Not Allowed"),
    STATUS(406, "Not Acceptable"),
    STATUS(408, "Request Timeout"),
    STATUS(410, "Gone"),
    STATUS(411, "Length Required"),
    STATUS(412, "Precondition Failed"),
    STATUS(413, "Content Too Large"),
    STATUS(414, "URI Too Long"),
    STATUS(415, "Unsupported Media Type"),
    STATUS(416, "Range Not Satisfiable"),
    STATUS(417, "Expectation Failed"),
    STATUS(422, "Unprocessable Content"),
    STATUS(424, "Failed Dependency"),
    STATUS(431, "Request Header Fields Too Large"),
    STATUS(501, "Not Implemented"),
    STATUS(505, "HTTP Version Not Supported"),
};

static const struct status_line *find_status(int status)
{
    for (size_t i = 0; i < ARRAY_SIZE(status_lines); i++)
        if (status_lines[i].status == status)
            return &status_lines[i];
    return NULL;
}

static int append_status_line(struct buffer *out, int status)
{
    const struct status_line *known = find_status(status);

    return known ? buffer_append_span(out, known->line) : buffer_printf(out, "HTTP/1.1 %03d Unknown\r\n", status);
}

/* Which given field is ours to write. */
enum field_kind { FIELD_PLAIN, FIELD_CONTENT_LENGTH, FIELD_CONNECTION, FIELD_FRAMING, FIELD_DATE };

static enum field_kind kind_of(struct span name)
{
    switch (name.length) {
    case 4:
        return span_equal_nocase(name, SPAN("Date")) ? FIELD_DATE : FIELD_PLAIN;
    case 10:
        if (span_equal_nocase(name, SPAN("Connection")) || span_equal_nocase(name, SPAN("Keep-Alive")))
            return FIELD_CONNECTION;
        return FIELD_PLAIN;
    case 14:
        return span_equal_nocase(name, SPAN("Content-Length")) ? FIELD_CONTENT_LENGTH : FIELD_PLAIN;
    case 17:
        return span_equal_nocase(name, SPAN("Transfer-Encoding")) ? FIELD_FRAMING : FIELD_PLAIN;
    default:
        return FIELD_PLAIN;
    }
}

static bool says_close(struct span value)
{
    while (value.data)
        if (span_equal_nocase(span_trim(span_cut(&value, ',')), SPAN("close")))
            return true;
    return false;
}

struct response_wishes response_inspect(const struct http_header *headers, size_t count)
{
    struct response_wishes wishes = {.content_length = -1};
    uint64_t length;

    for (size_t i = 0; i < count; i++) {
        switch (kind_of(headers[i].name)) {
        case FIELD_DATE:
            wishes.has_date = true;
            break;
        case FIELD_CONNECTION:
            wishes.close |= says_close(headers[i].value);
            break;
        case FIELD_CONTENT_LENGTH:
            if (span_to_u64(span_trim(headers[i].value), INT64_MAX, &length) == 0)
                wishes.content_length = (int64_t)length;
            break;
        case FIELD_FRAMING:
        case FIELD_PLAIN:
            break;
        }
    }
    return wishes;
}

/* The room is there: see fields_bytes. */
static void put(struct buffer *out, struct span text)
{
    if (text.length)
        memcpy(out->data + out->length, text.data, text.length);
    out->length += text.length;
}

static void put_value(struct buffer *out, struct span value)
{
    char *at = out->data + out->length;

    put(out, value);
    for (size_t i = 0; i < value.length; i++)
        if (((unsigned char)at[i] < 0x20 && at[i] != '\t') || at[i] == 0x7f)
            at[i] = ' ';
}

static size_t fields_bytes(const struct http_header *headers, size_t count)
{
    size_t bytes = 0;

    for (size_t i = 0; i < count; i++)
        bytes += headers[i].name.length + headers[i].value.length + sizeof(": \r\n") - 1;
    return bytes;
}

static void put_fields(struct buffer *out, const struct http_header *headers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        enum field_kind kind = kind_of(headers[i].name);
        if ((kind != FIELD_PLAIN && kind != FIELD_DATE) || !parser_is_token(headers[i].name))
            continue;
        put(out, headers[i].name);
        put(out, SPAN(": "));
        put_value(out, headers[i].value);
        put(out, SPAN("\r\n"));
    }
}

static void put_content_length(struct buffer *out, int64_t length)
{
    char digits[20];
    size_t at = sizeof(digits);
    uint64_t rest = (uint64_t)length;

    do
        digits[--at] = (char)('0' + rest % 10);
    while (rest /= 10);
    put(out, SPAN("Content-Length: "));
    put(out, span_of(digits + at, sizeof(digits) - at));
    put(out, SPAN("\r\n"));
}

int response_append_head(struct buffer *out, const struct response_plan *plan, const struct http_header *headers,
                         size_t count)
{
    enum { OWN_FIELDS_BYTES = 224 }; /* the longest status line and all our fields */
    int r = buffer_reserve(out, fields_bytes(headers, count) + OWN_FIELDS_BYTES);

    if (r < 0)
        return r;
    r = append_status_line(out, plan->status);
    if (r < 0)
        return r;
    put_fields(out, headers, count);
    if (plan->framing == RESPONSE_CHUNKED)
        put(out, SPAN("Transfer-Encoding: chunked\r\n"));
    else if (plan->framing != RESPONSE_UNTIL_CLOSE && plan->content_length >= 0)
        put_content_length(out, plan->content_length);
    if (plan->date) {
        put(out, SPAN("Date: "));
        put(out, span_from(plan->date));
        put(out, SPAN("\r\n"));
    }
    if (!plan->keep_alive)
        put(out, SPAN("Connection: close\r\n"));
    else if (plan->minor_version == 0)
        put(out, SPAN("Connection: keep-alive\r\n"));
    put(out, SPAN("\r\n"));
    return 0;
}

int response_append_chunk_size(struct buffer *out, size_t length)
{
    char text[24];
    int digits = snprintf(text, sizeof(text), "%zx\r\n", length);

    return buffer_append(out, text, (size_t)digits);
}

int response_append_last_chunk(struct buffer *out, const struct http_header *trailers, size_t count)
{
    int r = buffer_reserve(out, fields_bytes(trailers, count) + sizeof("0\r\n\r\n"));

    if (r < 0)
        return r;
    put(out, SPAN("0\r\n"));
    put_fields(out, trailers, count);
    put(out, SPAN("\r\n"));
    return 0;
}

struct span response_reason(int status)
{
    const struct status_line *known = find_status(status);

    if (!known)
        return SPAN("Unknown");
    return span_trim(span_slice(known->line, sizeof("HTTP/1.1 200 ") - 1, known->line.length - 2));
}
