#include "aws/query.h"

#include "aws/xml.h"

#include <stdio.h>

enum { NAME_BYTES = 256 };

int query_parse(struct arena *arena, struct span query, struct span body, struct uri_query *ret_form)
{
    return uri_query_parse(arena, body.length ? body : query, ret_form);
}

struct span query_string(const struct uri_query *form, const char *name)
{
    struct span value;

    if (!uri_query_get(form, span_from(name), &value))
        return SPAN_NONE;
    return value.data ? value : SPAN("");
}

struct span query_item(const struct uri_query *form, const char *list, size_t number, const char *member)
{
    char name[NAME_BYTES];
    int length =
        snprintf(name, sizeof(name), "%s.member.%zu%s%s", list, number, member ? "." : "", member ? member : "");

    return length < NAME_BYTES ? query_string(form, name) : SPAN_NONE;
}

bool query_has_item(const struct uri_query *form, const char *list, size_t number)
{
    char name[NAME_BYTES];
    int length = snprintf(name, sizeof(name), "%s.member.%zu", list, number);

    if (length >= NAME_BYTES)
        return false;
    for (size_t i = 0; i < form->count; i++) {
        struct span own = form->parameters[i].name;
        if (span_starts_with(own, span_from(name)) && (own.length == (size_t)length || own.data[length] == '.'))
            return true;
    }
    return false;
}

int query_write_xml(const char *action, const char *xmlns, const json_t *result, struct span request_id,
                    struct buffer *body)
{
    char name[NAME_BYTES];
    int r = buffer_printf(body, "<%sResponse xmlns=\"%s\">\n", action, xmlns);

    snprintf(name, sizeof(name), "%sResult", action);
    if (r == 0 && result)
        r = xml_append_element(name, result, body);
    if (r == 0)
        r = buffer_append_span(body, SPAN("<ResponseMetadata>\n<RequestId>"));
    if (r == 0)
        r = xml_append_text(request_id, body);
    if (r == 0)
        r = buffer_append_span(body, SPAN("</RequestId>\n</ResponseMetadata>\n"));
    return r < 0 ? r : buffer_printf(body, "</%sResponse>\n", action);
}

static int append_chunk(const char *data, size_t length, void *context)
{
    return buffer_append(context, data, length);
}

int query_write_json(const char *action, const json_t *result, struct span request_id, struct buffer *body)
{
    json_t *metadata = json_pack("{s:s%}", "RequestId", request_id.data, request_id.length);
    json_t *content = json_pack("{s:o}", "ResponseMetadata", metadata);
    char name[NAME_BYTES];
    json_t *document;
    int r = 0;

    snprintf(name, sizeof(name), "%sResult", action);
    if (content && result)
        r = json_object_set(content, name, (json_t *)result);
    snprintf(name, sizeof(name), "%sResponse", action);
    document = json_pack("{s:o}", name, content);
    if (!document || r < 0 || json_dump_callback(document, append_chunk, body, JSON_COMPACT) < 0)
        r = -ENOMEM;
    json_decref(document);
    return r;
}
