#include "base/span.h"

#include <strings.h>

static unsigned char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (unsigned char)(c + 32) : (unsigned char)c;
}

bool span_equal_nocase(struct span a, struct span b)
{
    if (a.length != b.length)
        return false;
    for (size_t i = 0; i < a.length; i++)
        if (lower(a.data[i]) != lower(b.data[i]))
            return false;
    return true;
}

int span_compare(struct span a, struct span b)
{
    size_t common = MIN(a.length, b.length);
    int order = common ? memcmp(a.data, b.data, common) : 0;

    if (order)
        return order;
    return a.length < b.length ? -1 : a.length > b.length;
}

bool span_starts_with(struct span s, struct span prefix)
{
    return s.length >= prefix.length && span_equal(span_of(s.data, prefix.length), prefix);
}

bool span_ends_with(struct span s, struct span suffix)
{
    return s.length >= suffix.length && span_equal(span_slice(s, s.length - suffix.length, s.length), suffix);
}

struct span span_trim(struct span s)
{
    while (s.length && (s.data[0] == ' ' || s.data[0] == '\t'))
        s = span_slice(s, 1, s.length);
    while (s.length && (s.data[s.length - 1] == ' ' || s.data[s.length - 1] == '\t'))
        s.length--;
    return s;
}

ptrdiff_t span_find(struct span s, char c)
{
    const char *at = s.length ? memchr(s.data, c, s.length) : NULL;

    return at ? at - s.data : -1;
}

ptrdiff_t span_find_span(struct span s, struct span needle)
{
    if (!needle.length)
        return 0;
    const char *at = s.length ? memmem(s.data, s.length, needle.data, needle.length) : NULL;

    return at ? at - s.data : -1;
}

struct span span_cut(struct span *rest, char separator)
{
    struct span whole = *rest;
    ptrdiff_t at = span_find(whole, separator);

    if (at < 0) {
        *rest = SPAN_NONE;
        return whole;
    }
    *rest = span_slice(whole, (size_t)at + 1, whole.length);
    return span_slice(whole, 0, (size_t)at);
}

int span_to_u64(struct span s, uint64_t maximum, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (!s.length)
        return -EINVAL;
    for (size_t i = 0; i < s.length; i++)
        if (s.data[i] < '0' || s.data[i] > '9')
            return -EINVAL;
    for (size_t i = 0; i < s.length; i++) {
        uint64_t digit = (uint64_t)(s.data[i] - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return -ERANGE;
        value = value * 10 + digit;
    }
    if (value > maximum)
        return -ERANGE;
    *ret_value = value;
    return 0;
}

char *span_dup(struct span s)
{
    char *copy = malloc(s.length + 1);

    if (!copy)
        return NULL;
    if (s.length)
        memcpy(copy, s.data, s.length);
    copy[s.length] = '\0';
    return copy;
}

size_t span_utf8_length(struct span s)
{
    const unsigned char *p = (const unsigned char *)s.data;
    size_t length;
    uint32_t code;
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};

    if (p[0] < 0x80)
        return 1;
    if ((p[0] & 0xe0) == 0xc0)
        length = 2, code = p[0] & 0x1f;
    else if ((p[0] & 0xf0) == 0xe0)
        length = 3, code = p[0] & 0x0f;
    else if ((p[0] & 0xf8) == 0xf0)
        length = 4, code = p[0] & 0x07;
    else
        return 0;
    if (s.length < length)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (p[i] & 0x3f);
    }
    if (code < smallest[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return 0;
    return length;
}

bool span_is_utf8(struct span s)
{
    for (size_t i = 0; i < s.length;) {
        size_t length = span_utf8_length(span_slice(s, i, s.length));
        if (!length)
            return false;
        i += length;
    }
    return true;
}
