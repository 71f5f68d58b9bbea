#include "aws/uri.h"

static const char upper_hex[] = "0123456789ABCDEF";

/* The value of a hex digit, -1 for anything else. */
static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static int decode(struct arena *arena, struct span text, bool plus_is_space, struct span *ret_decoded)
{
    char *out;
    size_t length = 0;

    if (span_find(text, '%') < 0 && !(plus_is_space && span_find(text, '+') >= 0)) {
        *ret_decoded = text;
        return 0;
    }
    out = arena_alloc(arena, text.length);
    if (!out)
        return -ENOMEM;
    for (size_t i = 0; i < text.length; i++) {
        char c = text.data[i];
        if (c == '%') {
            int high = i + 2 < text.length ? hex_value(text.data[i + 1]) : -1;
            int low = i + 2 < text.length ? hex_value(text.data[i + 2]) : -1;
            if (high < 0 || low < 0)
                return -EINVAL;
            c = (char)(high << 4 | low);
            i += 2;
        } else if (c == '+' && plus_is_space) {
            c = ' ';
        }
        out[length++] = c;
    }
    *ret_decoded = span_of(out, length);
    return 0;
}

int uri_decode(struct arena *arena, struct span text, struct span *ret_decoded)
{
    return decode(arena, text, false, ret_decoded);
}

bool uri_is_unreserved(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
           c == '_' || c == '~';
}

int uri_encode(struct span text, bool keep_slash, struct buffer *buffer)
{
    size_t encoded = 0;
    char *out;
    int r;

    for (size_t i = 0; i < text.length; i++)
        encoded += uri_is_unreserved((unsigned char)text.data[i]) || (keep_slash && text.data[i] == '/') ? 1 : 3;
    if (encoded == 0)
        return 0;
    r = buffer_reserve(buffer, encoded);
    if (r < 0)
        return r;
    out = buffer->data + buffer->length;
    for (size_t i = 0; i < text.length; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (uri_is_unreserved(c) || (keep_slash && c == '/')) {
            *out++ = (char)c;
        } else {
            *out++ = '%';
            *out++ = upper_hex[c >> 4];
            *out++ = upper_hex[c & 15];
        }
    }
    buffer->length += encoded;
    return 0;
}

int uri_query_parse(struct arena *arena, struct span query, struct uri_query *ret_query)
{
    struct uri_query parsed = {0};
    size_t parts = 1;

    for (size_t i = 0; i < query.length; i++)
        parts += query.data[i] == '&';
    parsed.parameters = arena_alloc(arena, parts * sizeof(*parsed.parameters));
    if (!parsed.parameters)
        return -ENOMEM;
    while (query.data) {
        struct span value = span_cut(&query, '&');
        struct span name = span_cut(&value, '=');
        struct uri_parameter *parameter = &parsed.parameters[parsed.count];
        int r;

        if (name.length == 0 && !value.data)
            continue;
        r = decode(arena, name, true, &parameter->name);
        if (r == 0)
            r = decode(arena, value, true, &parameter->value);
        if (r < 0)
            return r;
        parsed.count++;
    }
    *ret_query = parsed;
    return 0;
}

bool uri_query_get(const struct uri_query *query, struct span name, struct span *ret_value)
{
    for (size_t i = 0; i < query->count; i++) {
        if (span_equal(query->parameters[i].name, name)) {
            if (ret_value)
                *ret_value = query->parameters[i].value;
            return true;
        }
    }
    return false;
}

int uri_path_split(struct arena *arena, struct span path, struct uri_path *ret_path)
{
    struct uri_path split = {0};

    if (path.length && path.data[0] == '/')
        path = span_slice(path, 1, path.length);
    if (path.length == 0) {
        *ret_path = split;
        return 0;
    }
    while (path.data) {
        struct span segment = span_cut(&path, '/');
        int r;

        if (!path.data && segment.length == 0) {
            split.trailing_slash = true;
            break;
        }
        if (split.count == URI_SEGMENTS)
            return -E2BIG;
        r = decode(arena, segment, false, &split.segments[split.count]);
        if (r < 0)
            return r;
        split.count++;
    }
    *ret_path = split;
    return 0;
}
