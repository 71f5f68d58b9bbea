/*
 * Code in S3: GET of the object from the S3-compatible endpoint of --s3-endpoint, path-style (ENDPOINT/BUCKET/KEY),
 * signed when a key is configured. Without an endpoint there are no buckets, and the service's answer for a bucket that
 * does not exist is the true one.
 */
#include "api/lambda/package.h"
#include "aws/sigv4.h"
#include "aws/uri.h"
#include "base/clock.h"
#include "http/client.h"

enum { S3_OBJECT_BYTES = CODE_UNPACKED_BYTES, S3_TIMEOUT_MS = 300000, S3_HEADERS = 1 + SIGV4_SIGNED_HEADERS };

static int refuse_s3(struct call *call, struct span code, struct span message)
{
    return aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                         "Error occurred while GetObject. S3 Error Code: %.*s. S3 Error Message: %.*s", SPAN_ARG(code),
                         SPAN_ARG(message));
}

/* The text between <name> and </name>, empty when absent. S3's error documents have neither attributes nor nesting
 * here. */
static struct span xml_text(struct span document, const char *name)
{
    char open[32];
    char close[32];
    ptrdiff_t from;
    ptrdiff_t to;

    snprintf(open, sizeof(open), "<%s>", name);
    snprintf(close, sizeof(close), "</%s>", name);
    from = span_find_span(document, span_from(open));
    if (from < 0)
        return SPAN_NONE;
    document = span_slice(document, (size_t)from + strlen(open), document.length);
    to = span_find_span(document, span_from(close));
    return to < 0 ? SPAN_NONE : span_slice(document, 0, (size_t)to);
}

static int refuse_response(struct call *call, const struct http_fetch_result *result)
{
    struct span body = buffer_span(&result->body);
    struct span code = xml_text(body, "Code");
    struct span message = xml_text(body, "Message");
    const char *status;

    if (code.length)
        return refuse_s3(call, code, message);
    status = arena_printf(&call->operation->arena, "%d", result->status);
    return refuse_s3(call, span_from(status), SPAN("The endpoint gave no reason."));
}

static void on_fetched(struct http_fetch_result *result, void *context)
{
    struct call *call = context;

    if (result->error == -EMSGSIZE)
        call_end(call,
                 aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                               "Unzipped size must be smaller than %d bytes", CODE_UNPACKED_BYTES),
                 "");
    else if (result->error)
        call_end(call, refuse_s3(call, SPAN("EndpointUnreachable"), span_from(result->sentence)), "");
    else if (result->status != 200)
        call_end(call, refuse_response(call, result), "");
    else {
        call->zip = buffer_take(&result->body);
        call->next(call);
    }
}

/* "host:port" of "http://host:port". */
static struct span endpoint_host(const char *endpoint)
{
    struct span host = span_from(endpoint);
    ptrdiff_t scheme = span_find_span(host, SPAN("://"));

    if (scheme >= 0)
        host = span_slice(host, (size_t)scheme + 3, host.length);
    return span_cut(&host, '/');
}

/* Appends "/BUCKET/KEY", encoded. */
static int write_path(const json_t *location, struct buffer *path)
{
    int r = buffer_append_char(path, '/');

    if (r == 0)
        r = uri_encode(input_string(location, "S3Bucket"), false, path);
    if (r == 0)
        r = buffer_append_char(path, '/');
    return r < 0 ? r : uri_encode(input_string(location, "S3Key"), true, path);
}

static int write_query(const json_t *location, struct buffer *query)
{
    struct span version = input_string(location, "S3ObjectVersion");
    int r;

    if (version.length == 0)
        return 0;
    r = buffer_printf(query, "versionId=");
    return r < 0 ? r : uri_encode(version, false, query);
}

/* Host, and the signature's headers when a key is configured. */
static int make_headers(struct call *call, struct span path, struct span query, struct http_header headers[S3_HEADERS],
                        size_t *ret_count)
{
    const struct operation_services *services = call->operation->services;
    struct sigv4_header host = {SPAN("Host"), endpoint_host(services->s3_endpoint)};
    struct sigv4_header made[SIGV4_SIGNED_HEADERS];
    struct sigv4_request request = {.method = SPAN("GET"), .path = path, .query = query, .headers = &host, 1};
    struct sigv4_signer signer = {
        .access_key = span_from(services->s3_access_key),
        .secret_key = span_from(services->s3_secret_key),
        .region = call->operation->region,
        .service = SPAN("s3"),
        .flavour = SIGV4_S3,
        .content_sha256_header = true,
    };
    size_t count = 0;
    int r = 0;

    headers[0] = (struct http_header){host.name, host.value};
    if (services->s3_access_key)
        r = sigv4_sign(&signer, &request, clock_wall_ns(), &call->operation->arena, made, &count);
    for (size_t i = 0; r == 0 && i < count; i++)
        headers[1 + i] = (struct http_header){made[i].name, made[i].value};
    *ret_count = 1 + count;
    return r;
}

static int start_fetch(struct call *call, const json_t *location, struct buffer *path, struct buffer *query)
{
    const struct operation_services *services = call->operation->services;
    struct span endpoint = span_from(services->s3_endpoint);
    struct http_header headers[S3_HEADERS];
    struct http_fetch_request request = {
        .headers = headers, .timeout_ms = S3_TIMEOUT_MS, .max_response_bytes = S3_OBJECT_BYTES};
    int r = write_path(location, path);

    if (r == 0)
        r = write_query(location, query);
    if (r == 0)
        r = make_headers(call, buffer_span(path), buffer_span(query), headers, &request.header_count);
    if (r < 0)
        return r;
    if (span_ends_with(endpoint, SPAN("/")))
        endpoint.length--;
    request.url = arena_printf(&call->operation->arena, "%.*s%.*s%s%.*s", SPAN_ARG(endpoint),
                               SPAN_ARG(buffer_span(path)), query->length ? "?" : "", SPAN_ARG(buffer_span(query)));
    return request.url ? http_client_fetch(services->client, &request, on_fetched, call, NULL) : -ENOMEM;
}

void s3_fetch_code(struct call *call, const json_t *location, void (*next)(struct call *call))
{
    struct buffer path = BUFFER_INIT;
    struct buffer query = BUFFER_INIT;
    int r;

    if (!call->operation->services->s3_endpoint) {
        call_end(call, refuse_s3(call, SPAN("NoSuchBucket"), SPAN("The specified bucket does not exist")), "");
        return;
    }
    call->next = next;
    r = start_fetch(call, location, &path, &query);
    buffer_deinit(&path);
    buffer_deinit(&query);
    if (r < 0)
        call_end(call, r, "asking for the code in S3");
}
