/*
 * The input is a request as it travels: request line, headers, empty line, body. It is read and checked as it is; then
 * it is stripped of what signs it, signed, and must be accepted.
 */
#include "aws/sigv4.h"

#include <assert.h>

enum { HEADERS = 32 };

static const struct credential key = {.profile = "p", .access_key = "AKIDEXAMPLE", .secret_key = "secret"};

static const struct credential *find(void *context, struct span access_key)
{
    (void)context;
    return span_equal(access_key, span_from(key.access_key)) ? &key : NULL;
}

static void read_request(struct span text, struct sigv4_header *headers, struct sigv4_request *request)
{
    struct span target = span_cut(&text, '\n');

    request->method = span_cut(&target, ' ');
    request->path = span_cut(&target, '?');
    request->query = target;
    request->headers = headers;
    while (text.data && request->header_count < HEADERS) {
        struct span line = span_cut(&text, '\n');
        if (!line.length)
            break;
        headers[request->header_count].name = span_cut(&line, ':');
        headers[request->header_count++].value = line;
    }
    request->body = text;
}

/* What an HTTP server lets through as a header's name. */
static bool is_token(struct span name)
{
    for (size_t i = 0; i < name.length; i++)
        if (name.data[i] <= ' ' || name.data[i] == 0x7f || strchr("\"(),/:;<=>?@[\\]{}", name.data[i]))
            return false;
    return name.length > 0;
}

static void keep_plain_headers(struct sigv4_header *headers, struct sigv4_request *request)
{
    size_t kept = 0;

    for (size_t i = 0; i < request->header_count && kept < HEADERS - SIGV4_SIGNED_HEADERS - 1; i++) {
        struct span name = headers[i].name;
        bool amz = name.length >= 6 && span_equal_nocase(span_slice(name, 0, 6), SPAN("x-amz-"));
        if (is_token(name) && !amz && !span_equal_nocase(name, SPAN("authorization")))
            headers[kept++] = headers[i];
    }
    headers[kept++] = (struct sigv4_header){SPAN("Host"), SPAN("localhost:4566")};
    request->header_count = kept;
}

static void check(struct sigv4_verifier *verifier, const struct sigv4_request *request, struct arena *arena, bool good)
{
    struct sigv4_authorization authorization;
    const struct credential *who = NULL;
    struct aws_error error = {0};
    int r = sigv4_verify(verifier, request, 0, arena, &authorization, &who, &error);

    assert(r >= 0 && r <= SIGV4_MISMATCH);
    assert((r == 0) == (who != NULL));
    assert((r == 0) == (error.error_class == AWS_ERROR_NONE));
    assert(r == 0 || error.message.length > 0);
    assert(r == 0 || !good);
    aws_error_deinit(&error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct sigv4_policy policy = {.find = find};
    struct sigv4_header headers[HEADERS] = {0};
    struct sigv4_request request = {0};
    struct arena arena = {0};
    struct sigv4_verifier *verifier;
    struct sigv4_signer signer = {
        .access_key = SPAN("AKIDEXAMPLE"), .secret_key = SPAN("secret"), .region = SPAN("r"), .service = SPAN("s")};
    struct sigv4_header added[SIGV4_SIGNED_HEADERS];
    size_t count;

    if (sigv4_verifier_new(&policy, 2, &verifier) < 0)
        return 0;
    read_request(span_of((const char *)data, size), headers, &request);
    check(verifier, &request, &arena, false);
    keep_plain_headers(headers, &request);
    assert(sigv4_sign(&signer, &request, 0, &arena, added, &count) == 0);
    memcpy(headers + request.header_count, added, count * sizeof(added[0]));
    request.header_count += count;
    check(verifier, &request, &arena, true);
    request.header_count = 0;
    keep_plain_headers(headers, &request);
    assert(sigv4_presign(&signer, &request, 0, 60, &arena, &request.query) == 0);
    check(verifier, &request, &arena, false);
    sigv4_verifier_free(verifier);
    arena_deinit(&arena);
    return 0;
}
