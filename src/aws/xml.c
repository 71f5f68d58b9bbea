#include "aws/xml.h"

int xml_append_text(struct span text, struct buffer *buffer)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < text.length;) {
        size_t length = span_utf8_length(span_slice(text, i, text.length));
        unsigned char c = (unsigned char)text.data[i];
        if (c == '<')
            r = buffer_append_span(buffer, SPAN("&lt;"));
        else if (c == '>')
            r = buffer_append_span(buffer, SPAN("&gt;"));
        else if (c == '&')
            r = buffer_append_span(buffer, SPAN("&amp;"));
        else if (length == 0 || (c < 0x20 && c != '\n' && c != '\r' && c != '\t'))
            r = buffer_append_char(buffer, '?');
        else
            r = buffer_append_span(buffer, span_slice(text, i, i + length));
        i += MAX(length, (size_t)1);
    }
    return r;
}

static int append_content(const json_t *value, struct buffer *buffer)
{
    const char *name;
    json_t *item;
    size_t index;
    int r = 0;

    switch (json_typeof(value)) {
    case JSON_OBJECT:
        json_object_foreach((json_t *)value, name, item) if (r == 0) r = xml_append_element(name, item, buffer);
        return r;
    case JSON_ARRAY:
        json_array_foreach(value, index, item) if (r == 0) r = xml_append_element("member", item, buffer);
        return r;
    case JSON_STRING:
        return xml_append_text(span_of(json_string_value(value), json_string_length(value)), buffer);
    case JSON_INTEGER:
        return buffer_printf(buffer, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    case JSON_REAL:
        return buffer_printf(buffer, "%.17g", json_real_value(value));
    default:
        return buffer_append_span(buffer, json_is_true(value) ? SPAN("true") : SPAN("false"));
    }
}

int xml_append_element(const char *name, const json_t *value, struct buffer *buffer)
{
    int r;

    if (json_is_null(value))
        return 0;
    r = buffer_printf(buffer, "<%s>", name);
    if (r == 0)
        r = append_content(value, buffer);
    return r < 0 ? r : buffer_printf(buffer, "</%s>\n", name);
}
