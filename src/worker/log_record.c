#include "worker/log_record.h"

enum { PIECE_MAX = 200, NUMBER_DIGITS_MAX = 20 };

static size_t put_number(char *out, uint64_t value)
{
    char digits[NUMBER_DIGITS_MAX];
    size_t count = 0;

    do {
        digits[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    for (size_t i = 0; i < count; i++)
        out[i] = digits[count - 1 - i];
    return count;
}

int log_record_append(struct buffer *buffer, int64_t time_ms, struct span message)
{
    bool ended = message.length && message.data[message.length - 1] == '\n';
    char *out;
    int r = buffer_reserve(buffer, LOG_RECORD_HEADER_MAX + message.length + 1);

    if (r < 0)
        return r;
    out = buffer->data + buffer->length;
    out += put_number(out, (uint64_t)MAX(time_ms, 0));
    *out++ = ' ';
    out += put_number(out, message.length);
    *out++ = ' ';
    if (message.length)
        memcpy(out, message.data, message.length);
    out += message.length;
    if (!ended)
        *out++ = '\n';
    buffer->length = (size_t)(out - buffer->data);
    return 0;
}

/* A number and the blank after it. */
static int take_number(struct span *rest, uint64_t *ret_value)
{
    ptrdiff_t end = span_find(*rest, ' ');
    struct span digits = span_slice(*rest, 0, end < 0 ? rest->length : (size_t)end);

    for (size_t i = 0; i < digits.length; i++)
        if (digits.data[i] < '0' || digits.data[i] > '9')
            return -EINVAL;
    if (digits.length > NUMBER_DIGITS_MAX - 1 || (end >= 0 && digits.length == 0))
        return -EINVAL;
    if (end < 0)
        return LOG_RECORD_INCOMPLETE;
    *rest = span_slice(*rest, (size_t)end + 1, rest->length);
    return span_to_u64(digits, INT64_MAX, ret_value) < 0 ? -EINVAL : 0;
}

int log_record_parse(struct span *rest, struct log_record *ret_record)
{
    struct span at = *rest;
    uint64_t time_ms, length;
    struct span message;
    bool ended;
    int r;

    r = take_number(&at, &time_ms);
    if (r != 0)
        return r;
    r = take_number(&at, &length);
    if (r != 0)
        return r;
    if (length > LOG_RECORD_MESSAGE_MAX)
        return -EINVAL;
    if (at.length < length)
        return LOG_RECORD_INCOMPLETE;
    message = span_slice(at, 0, length);
    at = span_slice(at, length, at.length);
    ended = length && message.data[length - 1] == '\n';
    if (!ended) {
        if (at.length == 0)
            return LOG_RECORD_INCOMPLETE;
        if (at.data[0] != '\n')
            return -EINVAL;
        at = span_slice(at, 1, at.length);
    }
    *rest = at;
    *ret_record = (struct log_record){.time_ms = (int64_t)time_ms, .message = message};
    return 0;
}

static bool is_literal(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("_-.#$[]", c));
}

static size_t encode_byte(char c, bool first, char out[3])
{
    static const char hex[] = "0123456789ABCDEF";

    if (c == '/') {
        out[0] = '~';
        return 1;
    }
    if (is_literal(c) && !(first && c == '.')) {
        out[0] = c;
        return 1;
    }
    out[0] = '%';
    out[1] = hex[(unsigned char)c >> 4];
    out[2] = hex[(unsigned char)c & 15];
    return 3;
}

int log_name_encode(struct span name, struct buffer *path)
{
    size_t piece = 0;

    for (size_t i = 0; i < name.length; i++) {
        char encoded[3];
        size_t length = encode_byte(name.data[i], piece == 0, encoded);

        if (piece + length > PIECE_MAX) {
            if (buffer_append_span(path, SPAN("+/")) < 0)
                return -ENOMEM;
            piece = 0;
            length = encode_byte(name.data[i], true, encoded);
        }
        if (buffer_append(path, encoded, length) < 0)
            return -ENOMEM;
        piece += length;
    }
    return name.length ? 0 : buffer_append_span(path, SPAN("%"));
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int log_name_decode(struct span path, struct buffer *name)
{
    if (span_equal(path, SPAN("%"))) /* the empty name */
        return 0;
    for (size_t i = 0; i < path.length; i++) {
        char c = path.data[i];

        if (c == '+') {
            if (++i >= path.length || path.data[i] != '/')
                return -EINVAL;
            continue;
        }
        if (c == '%') {
            int high = i + 2 < path.length ? hex_digit(path.data[i + 1]) : -1;
            int low = i + 2 < path.length ? hex_digit(path.data[i + 2]) : -1;

            if (high < 0 || low < 0)
                return -EINVAL;
            c = (char)(high << 4 | low);
            i += 2;
        } else if (c == '~') {
            c = '/';
        } else if (!is_literal(c)) {
            return -EINVAL;
        }
        if (buffer_append_char(name, c) < 0)
            return -ENOMEM;
    }
    return 0;
}
