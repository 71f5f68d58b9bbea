#include "aws/sigv4.h"

#include "aws/canonical.h"
#include "aws/sha256.h"
#include "aws/uri.h"
#include "base/clock.h"
#include "base/encode.h"

#include <stdio.h>

#include <openssl/crypto.h>

static void cleanup_sha256(struct sha256 *sha256)
{
    sha256_deinit(sha256);
}

/* A signature being made. */
struct signing {
    const struct sigv4_signer *signer;
    struct sigv4_request request; /* with the headers or parameters that are to be added */
    struct arena *arena;
    struct sha256 sha256;
    struct span timestamp; /* "20260102T030405Z" */
    struct span signed_headers;
    struct span payload_hash;
};

/* The time the request already names, else now. */
static int choose_timestamp(struct signing *signing, int64_t now_wall_ns, bool *ret_given)
{
    char text[CLOCK_ISO_BYTES];
    int64_t parsed;
    char *copy;

    *ret_given = canonical_header(&signing->request, SPAN("X-Amz-Date"), &signing->timestamp);
    if (*ret_given)
        return clock_parse_amz(signing->timestamp, &parsed);
    copy = arena_dup(signing->arena, span_from(clock_format_amz(now_wall_ns, text)));
    signing->timestamp = span_from(copy);
    return copy ? 0 : -ENOMEM;
}

static int hash_payload(struct signing *signing)
{
    char *hex;

    if (signing->signer->unsigned_payload) {
        signing->payload_hash = SPAN("UNSIGNED-PAYLOAD");
        return 0;
    }
    if (signing->request.body_sha256.length) {
        signing->payload_hash = signing->request.body_sha256;
        return 0;
    }
    hex = arena_alloc(signing->arena, SHA256_HEX_BYTES);
    if (!hex)
        return -ENOMEM;
    signing->payload_hash = span_of(hex, SHA256_HEX_BYTES - 1);
    return sha256_hex(&signing->sha256, &signing->request.body, 1, hex);
}

static int sign(struct signing *signing, char hex[SHA256_HEX_BYTES])
{
    const struct sigv4_signer *signer = signing->signer;
    struct span date = span_slice(signing->timestamp, 0, 8);
    unsigned char key[SHA256_BYTES], signature[SHA256_BYTES];
    struct span text;
    int r;

    r = canonical_request(&signing->request, signing->signed_headers, signing->payload_hash, signer->flavour,
                          signing->arena, &text);
    if (r == 0)
        r = sha256_hex(&signing->sha256, &text, 1, hex);
    if (r == 0)
        r = canonical_string_to_sign(signing->timestamp, date, signer->region, signer->service, hex, signing->arena,
                                     &text);
    if (r == 0)
        r = canonical_signing_key(&signing->sha256, signer->secret_key, date, signer->region, signer->service,
                                  signing->arena, key);
    if (r == 0)
        r = sha256_hmac(&signing->sha256, span_of((char *)key, sizeof(key)), text, signature);
    OPENSSL_cleanse(key, sizeof(key));
    if (r == 0)
        hex_encode(signature, sizeof(signature), hex);
    return r;
}

/* Puts the request's headers and the new ones into one array. */
static int join_headers(struct signing *signing, const struct sigv4_header *added, size_t added_count)
{
    struct sigv4_request *request = &signing->request;
    size_t count = request->header_count + added_count;
    struct sigv4_header *headers = arena_alloc(signing->arena, count * sizeof(*headers));

    if (!headers)
        return -ENOMEM;
    if (request->header_count)
        memcpy(headers, request->headers, request->header_count * sizeof(*headers));
    memcpy(headers + request->header_count, added, added_count * sizeof(*headers));
    request->headers = headers;
    request->header_count = count;
    return canonical_signed_headers(request, signing->arena, &signing->signed_headers);
}

int sigv4_sign(const struct sigv4_signer *signer, const struct sigv4_request *request, int64_t now_wall_ns,
               struct arena *arena, struct sigv4_header ret_headers[SIGV4_SIGNED_HEADERS], size_t *ret_count)
{
    struct sha256 CLEANUP(cleanup_sha256) sha256 = {0};
    struct signing signing = {.signer = signer, .request = *request, .arena = arena};
    const struct sigv4_header token = {SPAN("X-Amz-Security-Token"), signer->session_token};
    size_t count = 0;
    char hex[SHA256_HEX_BYTES];
    bool dated;
    char *value;
    int r;

    if (!canonical_header(request, SPAN("Host"), NULL))
        return -EINVAL;
    r = sha256_init(&sha256);
    signing.sha256 = sha256;
    if (r == 0)
        r = choose_timestamp(&signing, now_wall_ns, &dated);
    if (r == 0)
        r = hash_payload(&signing);
    if (r < 0)
        return r;
    if (!dated)
        ret_headers[count++] = (struct sigv4_header){SPAN("X-Amz-Date"), signing.timestamp};
    if (signer->content_sha256_header)
        ret_headers[count++] = (struct sigv4_header){SPAN("x-amz-content-sha256"), signing.payload_hash};
    if (token.value.length && !signer->token_after_signing)
        ret_headers[count++] = token;
    r = join_headers(&signing, ret_headers, count);
    if (r == 0)
        r = sign(&signing, hex);
    if (r < 0)
        return r;
    if (token.value.length && signer->token_after_signing)
        ret_headers[count++] = token;
    value = arena_printf(arena,
                         "AWS4-HMAC-SHA256 Credential=%.*s/%.8s/%.*s/%.*s/aws4_request, SignedHeaders=%.*s, "
                         "Signature=%s",
                         SPAN_ARG(signer->access_key), signing.timestamp.data, SPAN_ARG(signer->region),
                         SPAN_ARG(signer->service), SPAN_ARG(signing.signed_headers), hex);
    if (!value)
        return -ENOMEM;
    ret_headers[count++] = (struct sigv4_header){SPAN("Authorization"), span_from(value)};
    *ret_count = count;
    return 0;
}

/* "&name=value", the value encoded. */
static int put_parameter(struct buffer *query, const char *name, struct span value)
{
    int r = query->length ? buffer_append_char(query, '&') : 0;

    if (r == 0)
        r = buffer_printf(query, "%s=", name);
    if (r == 0)
        r = uri_encode(value, false, query);
    return r;
}

static int put_parameters(struct signing *signing, unsigned expires_s, struct buffer *query)
{
    const struct sigv4_signer *signer = signing->signer;
    char *credential = arena_printf(signing->arena, "%.*s/%.8s/%.*s/%.*s/aws4_request", SPAN_ARG(signer->access_key),
                                    signing->timestamp.data, SPAN_ARG(signer->region), SPAN_ARG(signer->service));
    char seconds[16];
    int length = snprintf(seconds, sizeof(seconds), "%u", expires_s);
    int r = credential ? buffer_append_span(query, signing->request.query) : -ENOMEM;

    if (r == 0)
        r = put_parameter(query, "X-Amz-Algorithm", SPAN("AWS4-HMAC-SHA256"));
    if (r == 0)
        r = put_parameter(query, "X-Amz-Credential", span_from(credential));
    if (r == 0)
        r = put_parameter(query, "X-Amz-Date", signing->timestamp);
    if (r == 0)
        r = put_parameter(query, "X-Amz-Expires", span_of(seconds, (size_t)length));
    if (r == 0 && signer->session_token.length)
        r = put_parameter(query, "X-Amz-Security-Token", signer->session_token);
    if (r == 0)
        r = put_parameter(query, "X-Amz-SignedHeaders", signing->signed_headers);
    return r;
}

int sigv4_presign(const struct sigv4_signer *signer, const struct sigv4_request *request, int64_t now_wall_ns,
                  unsigned expires_s, struct arena *arena, struct span *ret_query)
{
    struct sha256 CLEANUP(cleanup_sha256) sha256 = {0};
    struct buffer CLEANUP(buffer_deinit) query = BUFFER_INIT;
    struct signing signing = {.signer = signer, .request = *request, .arena = arena};
    char hex[SHA256_HEX_BYTES];
    bool dated;
    char *copy;
    int r;

    if (expires_s < 1 || expires_s > 604800 || !canonical_header(request, SPAN("Host"), NULL))
        return -EINVAL;
    r = sha256_init(&sha256);
    signing.sha256 = sha256;
    if (r == 0)
        r = choose_timestamp(&signing, now_wall_ns, &dated);
    if (r == 0)
        r = hash_payload(&signing);
    if (r == 0)
        r = canonical_signed_headers(&signing.request, arena, &signing.signed_headers);
    if (r == 0)
        r = put_parameters(&signing, expires_s, &query);
    signing.request.query = buffer_span(&query);
    if (r == 0)
        r = sign(&signing, hex);
    if (r == 0)
        r = put_parameter(&query, "X-Amz-Signature", span_of(hex, sizeof(hex) - 1));
    if (r < 0)
        return r;
    copy = arena_dup(arena, buffer_span(&query));
    *ret_query = span_of(copy, query.length);
    return copy ? 0 : -ENOMEM;
}
