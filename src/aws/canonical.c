/*
 * Every text is written into memory of a known upper bound (a byte becomes three at most), taken from the arena in one
 * piece: no growing, no second pass. The bounds are stated beside each allocation.
 */
#include "aws/canonical.h"

#include "aws/uri.h"

#include <openssl/crypto.h>

/* Appends into memory that is known to suffice. */
struct writer {
    char *data;
    size_t length;
};

static void put(struct writer *writer, char c)
{
    writer->data[writer->length++] = c;
}

static void put_span(struct writer *writer, struct span text)
{
    if (text.length)
        memcpy(writer->data + writer->length, text.data, text.length);
    writer->length += text.length;
}

static void put_encoded(struct writer *writer, unsigned char c)
{
    static const char digits[] = "0123456789ABCDEF";

    if (uri_is_unreserved(c)) {
        put(writer, (char)c);
        return;
    }
    put(writer, '%');
    put(writer, digits[c >> 4]);
    put(writer, digits[c & 15]);
}

static struct span written(const struct writer *writer, size_t from)
{
    return span_of(writer->data + from, writer->length - from);
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

bool canonical_header(const struct sigv4_request *request, struct span name, struct span *ret_value)
{
    for (size_t i = 0; i < request->header_count; i++) {
        if (span_equal_nocase(request->headers[i].name, name)) {
            if (ret_value)
                *ret_value = request->headers[i].value;
            return true;
        }
    }
    return false;
}

/* --- path -------------------------------------------------------------------------------------------------------- */

/* S3 signs the path as it travels: unreserved bytes and valid triples stay, the rest is encoded. */
static void put_path_s3(struct writer *writer, struct span path)
{
    for (size_t i = 0; i < path.length; i++) {
        if (path.data[i] == '/' || path.data[i] == '%')
            put(writer, path.data[i]);
        else
            put_encoded(writer, (unsigned char)path.data[i]);
    }
}

static void put_segment(struct writer *writer, struct span segment)
{
    for (size_t i = 0; i < segment.length; i++)
        put_encoded(writer, (unsigned char)segment.data[i]);
}

/* Without empty and "." segments, and ".." taking the one before with it; a slash at the end stays. */
static void put_path_normalised(struct writer *writer, struct span path)
{
    size_t start = writer->length;
    struct span rest = path;

    while (rest.data) {
        struct span segment = span_cut(&rest, '/');
        if (segment.length == 0 || span_equal(segment, SPAN(".")))
            continue;
        if (span_equal(segment, SPAN(".."))) {
            while (writer->length > start && writer->data[--writer->length] != '/')
                ;
            continue;
        }
        put(writer, '/');
        put_segment(writer, segment);
    }
    if (writer->length == start || path.data[path.length - 1] == '/')
        put(writer, '/');
}

/* At most three bytes for one, and a slash at either end. */
static void put_path(struct writer *writer, struct span path, enum sigv4_flavour flavour)
{
    if (path.length == 0)
        put(writer, '/');
    else if (flavour == SIGV4_S3)
        put_path_s3(writer, path);
    else
        put_path_normalised(writer, path);
}

/* --- query ------------------------------------------------------------------------------------------------------- */

struct parameter {
    struct span name;
    struct span value;
};

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes and encodes again, so that every way of writing a parameter gives the same text. */
static struct span put_parameter_part(struct writer *writer, struct span text)
{
    size_t start = writer->length;

    for (size_t i = 0; i < text.length; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c == '%' && i + 2 < text.length && hex_value(text.data[i + 1]) >= 0 && hex_value(text.data[i + 2]) >= 0) {
            c = (unsigned char)(hex_value(text.data[i + 1]) << 4 | hex_value(text.data[i + 2]));
            i += 2;
        } else if (c == '+') {
            c = ' ';
        }
        put_encoded(writer, c);
    }
    return written(writer, start);
}

static int compare_parameters(const void *left, const void *right)
{
    const struct parameter *a = left, *b = right;
    int order = span_compare(a->name, b->name);

    return order ? order : span_compare(a->value, b->value);
}

/* Fills `parameters` with the encoded parts of the query; their text goes to `scratch`. Returns how many. */
static size_t read_parameters(struct span query, struct writer *scratch, struct parameter *parameters)
{
    size_t count = 0;

    while (query.data) {
        struct span value = span_cut(&query, '&');
        struct span name = span_cut(&value, '=');
        if (name.length == 0 && value.length == 0)
            continue;
        parameters[count].name = put_parameter_part(scratch, name);
        parameters[count].value = put_parameter_part(scratch, value);
        if (!span_equal(parameters[count].name, SPAN("X-Amz-Signature")))
            count++;
    }
    return count;
}

/* At most three bytes for one, and an '=' for each part. */
static int put_query(struct writer *writer, struct span query, struct arena *arena)
{
    struct writer scratch = {0};
    struct parameter *parameters;
    size_t parts = 1;
    size_t count;

    if (query.length == 0)
        return 0;
    for (size_t i = 0; i < query.length; i++)
        parts += query.data[i] == '&';
    scratch.data = arena_alloc(arena, 3 * query.length);
    parameters = arena_alloc(arena, parts * sizeof(*parameters));
    if (!scratch.data || !parameters)
        return -ENOMEM;
    count = read_parameters(query, &scratch, parameters);
    qsort(parameters, count, sizeof(*parameters), compare_parameters);
    for (size_t i = 0; i < count; i++) {
        if (i)
            put(writer, '&');
        put_span(writer, parameters[i].name);
        put(writer, '=');
        put_span(writer, parameters[i].value);
    }
    return 0;
}

/* --- headers ----------------------------------------------------------------------------------------------------- */

/* Without blanks at the ends, runs of blanks within as one space. */
static void put_header_value(struct writer *writer, struct span value)
{
    size_t start = writer->length;

    for (size_t i = 0; i < value.length; i++) {
        if (!is_blank(value.data[i]))
            put(writer, value.data[i]);
        else if (writer->length > start && writer->data[writer->length - 1] != ' ')
            put(writer, ' ');
    }
    if (writer->length > start && writer->data[writer->length - 1] == ' ')
        writer->length--;
}

/* "name:value,value\n" with all headers of that name in the order they came. */
static void put_header(struct writer *writer, const struct sigv4_request *request, struct span name)
{
    bool first = true;

    put_span(writer, name);
    put(writer, ':');
    for (size_t i = 0; i < request->header_count; i++) {
        if (!span_equal_nocase(request->headers[i].name, name))
            continue;
        if (!first)
            put(writer, ',');
        first = false;
        put_header_value(writer, request->headers[i].value);
    }
    put(writer, '\n');
}

/* Sorted, none twice, and not so many that matching them against the headers would take long. */
static bool names_are_sound(struct span signed_headers)
{
    struct span names = signed_headers;
    struct span previous = span_cut(&names, ';');
    size_t count = 1;

    while (names.data) {
        struct span name = span_cut(&names, ';');
        if (span_compare(name, previous) <= 0 || ++count > CANONICAL_SIGNED_HEADERS)
            return false;
        previous = name;
    }
    return true;
}

/* Room for the header block: each name once more with ':' and '\n', and every value once with a ','. */
static size_t headers_bound(const struct sigv4_request *request, struct span signed_headers)
{
    size_t bound = 3 * signed_headers.length + 2;

    for (size_t i = 0; i < request->header_count; i++)
        bound += request->headers[i].value.length + 1;
    return bound;
}

int canonical_request(const struct sigv4_request *request, struct span signed_headers, struct span payload_hash,
                      enum sigv4_flavour flavour, struct arena *arena, struct span *ret_text)
{
    struct writer writer = {0};
    struct span names = signed_headers;
    size_t bound = request->method.length + 3 * request->path.length + 4 * request->query.length +
                   headers_bound(request, signed_headers) + signed_headers.length + payload_hash.length + 16;
    int r;

    if (!names_are_sound(signed_headers))
        return -EINVAL;
    writer.data = arena_alloc(arena, bound);
    if (!writer.data)
        return -ENOMEM;
    put_span(&writer, request->method);
    put(&writer, '\n');
    put_path(&writer, request->path, flavour);
    put(&writer, '\n');
    r = put_query(&writer, request->query, arena);
    if (r < 0)
        return r;
    put(&writer, '\n');
    while (names.data)
        put_header(&writer, request, span_cut(&names, ';'));
    put(&writer, '\n');
    put_span(&writer, signed_headers);
    put(&writer, '\n');
    put_span(&writer, payload_hash);
    *ret_text = written(&writer, 0);
    return 0;
}

int canonical_string_to_sign(struct span timestamp, struct span date, struct span region, struct span service,
                             const char *request_hash, struct arena *arena, struct span *ret_text)
{
    char *text = arena_printf(arena, "AWS4-HMAC-SHA256\n%.*s\n%.*s/%.*s/%.*s/aws4_request\n%s", SPAN_ARG(timestamp),
                              SPAN_ARG(date), SPAN_ARG(region), SPAN_ARG(service), request_hash);

    *ret_text = span_from(text);
    return text ? 0 : -ENOMEM;
}

int canonical_signing_key(struct sha256 *sha256, struct span secret, struct span date, struct span region,
                          struct span service, struct arena *arena, unsigned char ret_key[SHA256_BYTES])
{
    const struct span messages[] = {date, region, service, SPAN("aws4_request")};
    char *prefixed = arena_printf(arena, "AWS4%.*s", SPAN_ARG(secret));
    struct span key = span_from(prefixed);
    int r = 0;

    if (!prefixed)
        return -ENOMEM;
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(messages); i++) {
        r = sha256_hmac(sha256, key, messages[i], ret_key);
        key = span_of((char *)ret_key, SHA256_BYTES);
    }
    OPENSSL_cleanse(prefixed, secret.length + 4);
    return r;
}

/* What proxies and HTTP stacks change on the way. */
static bool is_never_signed(struct span name)
{
    static const char *const names[] = {"authorization", "connection", "expect", "user-agent", "x-amzn-trace-id"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (span_equal(name, span_from(names[i])))
            return true;
    return false;
}

static int compare_names(const void *left, const void *right)
{
    return span_compare(*(const struct span *)left, *(const struct span *)right);
}

int canonical_signed_headers(const struct sigv4_request *request, struct arena *arena, struct span *ret_text)
{
    struct span *names = arena_alloc(arena, request->header_count * sizeof(*names));
    struct writer lowered = {0}, writer = {0};
    size_t bytes = 0, count = 0;

    for (size_t i = 0; i < request->header_count; i++)
        bytes += request->headers[i].name.length + 1;
    lowered.data = arena_alloc(arena, bytes);
    writer.data = arena_alloc(arena, bytes);
    if (!names || !lowered.data || !writer.data)
        return -ENOMEM;
    for (size_t i = 0; i < request->header_count; i++) {
        size_t start = lowered.length;
        for (size_t k = 0; k < request->headers[i].name.length; k++)
            put(&lowered, lower(request->headers[i].name.data[k]));
        names[count] = written(&lowered, start);
        if (!is_never_signed(names[count]))
            count++;
    }
    qsort(names, count, sizeof(*names), compare_names);
    for (size_t i = 0; i < count; i++) {
        if (i && span_equal(names[i], names[i - 1]))
            continue;
        if (i)
            put(&writer, ';');
        put_span(&writer, names[i]);
    }
    *ret_text = written(&writer, 0);
    return 0;
}
