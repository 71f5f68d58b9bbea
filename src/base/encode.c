#include "base/encode.h"

#include <stdio.h>

static const char base64_alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int base64_encode(struct span bytes, struct buffer *buffer)
{
    const unsigned char *in = (const unsigned char *)bytes.data;
    size_t left = bytes.length;
    char *out;
    int r;

    if (!left)
        return 0;
    r = buffer_reserve(buffer, (left + 2) / 3 * 4);
    if (r < 0)
        return r;
    out = buffer->data + buffer->length;
    for (; left >= 3; left -= 3, in += 3) {
        *out++ = base64_alphabet[in[0] >> 2];
        *out++ = base64_alphabet[(in[0] & 3) << 4 | in[1] >> 4];
        *out++ = base64_alphabet[(in[1] & 15) << 2 | in[2] >> 6];
        *out++ = base64_alphabet[in[2] & 63];
    }
    if (left) {
        *out++ = base64_alphabet[in[0] >> 2];
        *out++ = base64_alphabet[(in[0] & 3) << 4 | (left == 2 ? in[1] >> 4 : 0)];
        *out++ = left == 2 ? base64_alphabet[(in[1] & 15) << 2] : '=';
        *out++ = '=';
    }
    buffer->length += (bytes.length + 2) / 3 * 4;
    return 0;
}

/* The 6 bits a character stands for, -1 when it is not of the alphabet. */
static int base64_value(unsigned char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+')
        return 62;
    return c == '/' ? 63 : -1;
}

int base64_decode(struct span text, struct buffer *buffer)
{
    const unsigned char *in = (const unsigned char *)text.data;
    size_t length = text.length;
    size_t padding = 0;
    signed char values[256];
    char *out;
    int r;

    if (length % 4)
        return -EINVAL;
    while (padding < 2 && length && in[length - 1] == '=')
        padding++, length--;
    for (int i = 0; i < 256; i++)
        values[i] = (signed char)base64_value((unsigned char)i);
    r = buffer_reserve(buffer, text.length / 4 * 3);
    if (r < 0)
        return r;
    out = buffer->data ? buffer->data + buffer->length : NULL;
    for (; length >= 4; length -= 4, in += 4) {
        int a = values[in[0]], b = values[in[1]], c = values[in[2]], d = values[in[3]];
        if ((a | b | c | d) < 0)
            return -EINVAL;
        *out++ = (char)(a << 2 | b >> 4);
        *out++ = (char)(b << 4 | c >> 2);
        *out++ = (char)(c << 6 | d);
    }
    if (length == 3) {
        int a = values[in[0]], b = values[in[1]], c = values[in[2]];
        if ((a | b | c) < 0)
            return -EINVAL;
        *out++ = (char)(a << 2 | b >> 4);
        *out++ = (char)(b << 4 | c >> 2);
    } else if (length == 2) {
        int a = values[in[0]], b = values[in[1]];
        if ((a | b) < 0)
            return -EINVAL;
        *out++ = (char)(a << 2 | b >> 4);
    } else if (length == 1) {
        return -EINVAL;
    }
    if (out)
        buffer->length = (size_t)(out - buffer->data);
    return 0;
}

const char *hex_encode(const void *bytes, size_t length, char *text)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *in = bytes;

    for (size_t i = 0; i < length; i++) {
        text[2 * i] = digits[in[i] >> 4];
        text[2 * i + 1] = digits[in[i] & 15];
    }
    text[2 * length] = '\0';
    return text;
}

/* The letter after the backslash for characters that have a short escape, 0 for others. */
static char short_escape(unsigned char c)
{
    switch (c) {
    case '"':
    case '\\':
        return (char)c;
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    case '\b':
        return 'b';
    case '\f':
        return 'f';
    default:
        return 0;
    }
}

/* Writes at most 6 bytes (the text's rest gives room for a sequence); returns how many bytes of `text` it stands for.
 */
static size_t encode_character(struct span text, char **out)
{
    unsigned char c = (unsigned char)text.data[0];
    size_t length = span_utf8_length(text);
    char letter = short_escape(c);

    if (letter) {
        *(*out)++ = '\\';
        *(*out)++ = letter;
    } else if (c < 0x20) {
        *out += sprintf(*out, "\\u%04x", c);
    } else if (length == 0) {
        memcpy(*out, "\xef\xbf\xbd", 3);
        *out += 3;
    } else {
        memcpy(*out, text.data, length);
        *out += length;
    }
    return MAX(length, (size_t)1);
}

int json_encode_string(struct span text, struct buffer *buffer)
{
    size_t room;
    char *out;
    int r;

    /* Six bytes for one, the closing quote and the NUL that sprintf writes. */
    if (__builtin_mul_overflow(text.length, (size_t)6, &room) || __builtin_add_overflow(room, (size_t)3, &room))
        return -ENOMEM;
    r = buffer_reserve(buffer, room);
    if (r < 0)
        return r;
    out = buffer->data + buffer->length;
    *out++ = '"';
    for (size_t i = 0; i < text.length;)
        i += encode_character(span_slice(text, i, text.length), &out);
    *out++ = '"';
    buffer->length = (size_t)(out - buffer->data);
    return 0;
}
