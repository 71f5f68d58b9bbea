/*
 * The library runs over each piece in place; its callbacks note offsets, and the piece is then copied behind the head
 * so far: one copy of exactly the head's bytes, wherever the reads happened to end. It is stopped at the end of the
 * head. Bodies need no library: with a length they are counted, and chunks are decoded by chunk.c.
 *
 * The checks afterwards are those where the libraries are lenient, or differ from each other or between builds
 * (http_parser may be compiled without its strict mode, as Debian's is): RFC 9112 sections 2.2, 3, 5.1, 5.2, 6.1
 * and 6.3.
 */
#include "http/parser.h"

/* RFC 9110, 5.6.2: tchar. */
static const bool token_bytes[256] = {
    ['!'] = 1, ['#'] = 1, ['$'] = 1, ['%'] = 1,         ['&'] = 1,         ['\''] = 1,
    ['*'] = 1, ['+'] = 1, ['-'] = 1, ['.'] = 1,         ['^'] = 1,         ['_'] = 1,
    ['`'] = 1, ['|'] = 1, ['~'] = 1, ['0' ... '9'] = 1, ['A' ... 'Z'] = 1, ['a' ... 'z'] = 1,
};

bool parser_is_token(struct span text)
{
    for (size_t i = 0; i < text.length; i++)
        if (!token_bytes[(unsigned char)text.data[i]])
            return false;
    return text.length > 0;
}

/* --- what differs between the libraries ------------------------------------------------------------------------- */

static int on_target(parser_library *library, const char *at, size_t length);
static int on_name(parser_library *library, const char *at, size_t length);
static int on_value(parser_library *library, const char *at, size_t length);
static int on_head_end(parser_library *library);

enum library_result { LIBRARY_MORE, LIBRARY_HEAD_END, LIBRARY_BAD, LIBRARY_BAD_METHOD, LIBRARY_BAD_VERSION };

#ifdef KILN_HAVE_LLHTTP

static const llhttp_settings_t settings = {
    .on_url = on_target,
    .on_header_field = on_name,
    .on_header_value = on_value,
    .on_headers_complete = on_head_end,
};

static int on_head_end(parser_library *library)
{
    (void)library;
    return HPE_PAUSED;
}

static void library_prepare(void)
{
}

static void library_init(parser_library *library)
{
    llhttp_init(library, HTTP_REQUEST, &settings);
}

static const char *library_method(const parser_library *library)
{
    return llhttp_method_name((llhttp_method_t)library->method);
}

static enum library_result library_execute(parser_library *library, const char *data, size_t length,
                                           size_t *ret_consumed)
{
    llhttp_errno_t error = llhttp_execute(library, data, length);

    *ret_consumed = length;
    if (error == HPE_OK)
        return LIBRARY_MORE;
    *ret_consumed = (size_t)(llhttp_get_error_pos(library) - data);
    if (error == HPE_PAUSED || error == HPE_CB_HEADERS_COMPLETE)
        return LIBRARY_HEAD_END;
    if (error == HPE_INVALID_METHOD)
        return LIBRARY_BAD_METHOD;
    return error == HPE_INVALID_VERSION ? LIBRARY_BAD_VERSION : LIBRARY_BAD;
}

#else

static const http_parser_settings settings = {
    .on_url = on_target,
    .on_header_field = on_name,
    .on_header_value = on_value,
    .on_headers_complete = on_head_end,
};

static int on_head_end(parser_library *library)
{
    http_parser_pause(library, 1);
    return 0;
}

/* Its own limit is one number for the whole process; ours is each caller's. */
static void library_prepare(void)
{
    http_parser_set_max_header_size(UINT32_MAX);
}

static void library_init(parser_library *library)
{
    http_parser_init(library, HTTP_REQUEST);
}

static const char *library_method(const parser_library *library)
{
    return http_method_str((enum http_method)library->method);
}

static enum library_result library_execute(parser_library *library, const char *data, size_t length,
                                           size_t *ret_consumed)
{
    size_t consumed = http_parser_execute(library, &settings, data, length);
    enum http_errno error = HTTP_PARSER_ERRNO(library);

    *ret_consumed = consumed;
    if (error == HPE_OK)
        return LIBRARY_MORE;
    if (error == HPE_PAUSED) {
        *ret_consumed = consumed + 1; /* it stops in front of the last LF */
        return LIBRARY_HEAD_END;
    }
    if (error == HPE_INVALID_METHOD)
        return LIBRARY_BAD_METHOD;
    return error == HPE_INVALID_VERSION ? LIBRARY_BAD_VERSION : LIBRARY_BAD;
}

#endif

/* --- collecting ------------------------------------------------------------------------------------------------- */

static struct parser *parser_of(parser_library *library)
{
    return CONTAINER_OF(library, struct parser, library);
}

static uint32_t offset_of(const struct parser *parser, const char *at)
{
    return (uint32_t)(parser->piece_at + (size_t)(at - parser->piece));
}

static int on_target(parser_library *library, const char *at, size_t length)
{
    struct parser *parser = parser_of(library);

    if (!parser->target_length)
        parser->target = offset_of(parser, at);
    parser->target_length += (uint32_t)length;
    return 0;
}

static int grow_fields(struct parser *parser)
{
    size_t capacity = parser->field_capacity ? parser->field_capacity * 2 : PARSER_FIELDS_KEPT / 2;
    struct parser_field *fields;

    if (parser->field_count >= PARSER_FIELDS_MAX) {
        parser->failure = 431;
        return -1;
    }
    fields = realloc(parser->fields, capacity * sizeof(*fields));
    if (!fields) {
        parser->failure = -ENOMEM;
        return -1;
    }
    parser->fields = fields;
    parser->field_capacity = capacity;
    return 0;
}

/* A name in two pieces is contiguous; between two names there is at least a colon. */
static int on_name(parser_library *library, const char *at, size_t length)
{
    struct parser *parser = parser_of(library);
    uint32_t offset = offset_of(parser, at);
    struct parser_field *field = parser->field_count ? &parser->fields[parser->field_count - 1] : NULL;

    if (field && field->name + field->name_length == offset) {
        field->name_length += (uint32_t)length;
        return 0;
    }
    if ((parser->field_count == parser->field_capacity || parser->field_count >= PARSER_FIELDS_MAX) &&
        grow_fields(parser) < 0)
        return -1;
    parser->fields[parser->field_count++] = (struct parser_field){.name = offset, .name_length = (uint32_t)length};
    return 0;
}

static int on_value(parser_library *library, const char *at, size_t length)
{
    struct parser *parser = parser_of(library);
    uint32_t offset = offset_of(parser, at);
    struct parser_field *field;

    if (!parser->field_count)
        return -1;
    field = &parser->fields[parser->field_count - 1];
    if (!field->value_length)
        field->value = offset;
    else if (field->value + field->value_length != offset)
        return -1; /* a folded line */
    field->value_length += (uint32_t)length;
    return 0;
}

/* --- judging ---------------------------------------------------------------------------------------------------- */

/* Every line ends with CRLF, holds no other CR, and starts with no blank (RFC 9112, 2.2 and 5.2: obs-fold). */
static bool lines_are_sound(struct span head)
{
    const char *at = head.data;
    const char *end = head.data + head.length;

    while (at < end) {
        const char *lf = memchr(at, '\n', (size_t)(end - at));
        if (!lf || memchr(at, '\r', (size_t)(lf - at)) != lf - 1 || *at == ' ' || *at == '\t')
            return false;
        at = lf + 1;
    }
    return true;
}

/* What follows the target, as far as it has come. */
static struct span after_target(const struct parser *parser)
{
    return span_slice(buffer_span(&parser->head), parser->target + parser->target_length, parser->head.length);
}

/* METHOD SP target SP HTTP/1.x CRLF, each blank once, with nothing before it but empty lines. */
static bool request_line_is_sound(const struct parser *parser)
{
    struct span before = span_slice(buffer_span(&parser->head), 0, parser->target);
    struct span after = after_target(parser);
    size_t method_length = parser->method.length + 1;

    if (before.length < method_length || before.data[before.length - 1] != ' ' ||
        memcmp(before.data + before.length - method_length, parser->method.data, parser->method.length) != 0)
        return false;
    for (size_t i = 0; i < before.length - method_length; i++)
        if (before.data[i] != '\r' && before.data[i] != '\n')
            return false;
    return span_starts_with(after, SPAN(" HTTP/1.")) && after.length > 10 && after.data[9] == '\r';
}

static void split_query(struct parser *parser, struct span target)
{
    parser->path = span_cut(&target, '?');
    parser->query = target.data ? target : span_of(parser->path.data + parser->path.length, 0);
}

/* origin-form, absolute-form (its scheme and authority are dropped: Host decides nothing here) or "*". */
static bool split_target(struct parser *parser)
{
    struct span target = span_of(parser->head.data + parser->target, parser->target_length);
    ptrdiff_t scheme;

    for (size_t i = 0; i < target.length; i++)
        if ((unsigned char)target.data[i] <= 0x20 || (unsigned char)target.data[i] >= 0x7f)
            return false;
    if (!target.length)
        return false;
    if (target.data[0] == '/' || span_equal(target, SPAN("*"))) {
        split_query(parser, target);
        return true;
    }
    scheme = span_find_span(target, SPAN("://"));
    if (scheme <= 0)
        return false;
    target = span_slice(target, (size_t)scheme + 3, target.length);
    while (target.length && target.data[0] != '/' && target.data[0] != '?')
        target = span_slice(target, 1, target.length);
    split_query(parser, target);
    if (!parser->path.length)
        parser->path = SPAN("/");
    return true;
}

struct framing {
    struct span encoding;
    struct span connection;
    size_t hosts;
    size_t lengths;
    size_t encodings;
    bool closes;
    bool keeps;
};

static void note_connection(struct framing *framing, struct span value)
{
    while (value.data) {
        struct span option = span_trim(span_cut(&value, ','));
        framing->closes |= span_equal_nocase(option, SPAN("close"));
        framing->keeps |= span_equal_nocase(option, SPAN("keep-alive"));
    }
}

/* The fields that decide where the message ends and what follows. Returns a status, 0 when sound. */
static int note_field(struct parser *parser, struct framing *framing, struct http_header field)
{
    uint64_t length;

    switch (field.name.length) {
    case 4:
        framing->hosts += span_equal_nocase(field.name, SPAN("Host"));
        return 0;
    case 6:
        if (!span_equal_nocase(field.name, SPAN("Expect")))
            return 0;
        if (!span_equal_nocase(field.value, SPAN("100-continue")))
            return 417;
        parser->expects_continue = true;
        return 0;
    case 10:
        if (span_equal_nocase(field.name, SPAN("Connection")))
            note_connection(framing, field.value);
        return 0;
    case 14:
        if (!span_equal_nocase(field.name, SPAN("Content-Length")))
            return 0;
        if (framing->lengths++ || span_to_u64(field.value, INT64_MAX, &length) < 0)
            return 400;
        parser->content_length = (int64_t)length;
        return 0;
    case 17:
        if (!span_equal_nocase(field.name, SPAN("Transfer-Encoding")))
            return 0;
        framing->encoding = field.value;
        framing->encodings++;
        return 0;
    default:
        return 0;
    }
}

static int judge_fields(struct parser *parser, struct framing *framing)
{
    for (size_t i = 0; i < parser->field_count; i++) {
        struct parser_field *at = &parser->fields[i];
        struct http_header field = parser_field_at(parser, i);
        struct span trimmed = span_trim(field.value);
        int status;

        if (!parser_is_token(field.name))
            return 400;
        /* http_parser looks at every byte of a value but the first. */
        if (trimmed.length && ((unsigned char)trimmed.data[0] < 0x20 || trimmed.data[0] == 0x7f))
            return 400;
        at->value += (uint32_t)(trimmed.data - field.value.data);
        at->value_length = (uint32_t)trimmed.length;
        field.value = trimmed;
        status = note_field(parser, framing, field);
        if (status)
            return status;
    }
    return 0;
}

/* HTTP/2.0 and 1.2 are versions we do not speak, the rest is noise. */
static int refusal_of_version(const struct parser *parser)
{
    struct span after = after_target(parser);
    bool major = span_starts_with(after, SPAN(" HTTP/")) && after.length > 6;
    bool minor = span_starts_with(after, SPAN(" HTTP/1.")) && after.length > 8;

    if ((major && after.data[6] >= '2' && after.data[6] <= '9') ||
        (minor && after.data[8] >= '2' && after.data[8] <= '9'))
        return 505;
    return 400;
}

static int judge(struct parser *parser)
{
    struct framing framing = {0};
    int major = parser->library.http_major;
    int status;

    parser->minor_version = parser->library.http_minor;
    parser->content_length = -1;
    parser->method = span_from(library_method(&parser->library));
    if (major != 1 || parser->minor_version > 1)
        return refusal_of_version(parser);
    if (span_equal(parser->method, SPAN("CONNECT")))
        return 501;
    if (!request_line_is_sound(parser) || !lines_are_sound(buffer_span(&parser->head)) || !split_target(parser))
        return 400;
    status = judge_fields(parser, &framing);
    if (status)
        return status;
    if (framing.hosts > 1 || (framing.hosts == 0 && parser->minor_version == 1))
        return 400;
    if (framing.encodings) {
        if (framing.encodings > 1 || framing.lengths || parser->minor_version == 0)
            return 400;
        if (!span_equal_nocase(framing.encoding, SPAN("chunked")))
            return 501;
        parser->chunked = true;
    }
    parser->keep_alive = !framing.closes && (parser->minor_version == 1 || framing.keeps);
    parser->expects_continue &= parser->minor_version == 1;
    return 0;
}

static int refuse(struct parser *parser, int status)
{
    parser->refusal = status;
    return PARSER_REFUSED;
}

/* --- the module's face ------------------------------------------------------------------------------------------- */

void parser_init(struct parser *parser)
{
    *parser = (struct parser){0};
    library_prepare();
    parser_reset(parser);
}

void parser_deinit(struct parser *parser)
{
    buffer_deinit(&parser->head);
    free(parser->fields);
    *parser = (struct parser){0};
}

void parser_reset(struct parser *parser)
{
    enum { HEAD_KEPT = 8 * 1024 };

    if (parser->head.capacity > HEAD_KEPT)
        buffer_deinit(&parser->head);
    if (parser->field_capacity > PARSER_FIELDS_KEPT) {
        free(parser->fields);
        parser->fields = NULL;
        parser->field_capacity = 0;
    }
    parser->head.length = 0;
    parser->field_count = 0;
    parser->target_length = 0;
    parser->failure = 0;
    parser->refusal = 0;
    parser->method = parser->path = parser->query = SPAN_NONE;
    parser->content_length = -1;
    parser->chunked = parser->keep_alive = parser->expects_continue = false;
    library_init(&parser->library);
}

int parser_execute(struct parser *parser, const char *data, size_t length, size_t limit, size_t *ret_consumed)
{
    enum library_result result;
    size_t consumed;
    int r;

    parser->piece = data;
    parser->piece_at = parser->head.length;
    result = library_execute(&parser->library, data, length, &consumed);
    *ret_consumed = consumed;
    if (parser->failure < 0)
        return parser->failure;
    if (parser->failure)
        return refuse(parser, parser->failure);
    if (parser->head.length + consumed > limit)
        return refuse(parser, 431);
    if (result == LIBRARY_BAD_METHOD)
        return refuse(parser, consumed < length && data[consumed] >= 'A' && data[consumed] <= 'Z' ? 501 : 400);
    r = buffer_append(&parser->head, data, result == LIBRARY_BAD_VERSION ? MIN(consumed + 1, length) : consumed);
    if (r < 0)
        return r;
    if (result == LIBRARY_BAD_VERSION)
        return refuse(parser, refusal_of_version(parser));
    if (result == LIBRARY_BAD)
        return refuse(parser, 400);
    if (result == LIBRARY_MORE)
        return PARSER_MORE;
    r = judge(parser);
    return r ? refuse(parser, r) : PARSER_DONE;
}

struct http_header parser_field_at(const struct parser *parser, size_t index)
{
    const struct parser_field *field = &parser->fields[index];

    return (struct http_header){
        span_of(parser->head.data + field->name, field->name_length),
        span_of(parser->head.data + (field->value ? field->value : field->name + field->name_length),
                field->value_length),
    };
}
