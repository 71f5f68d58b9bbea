#include "api/lambda/download.h"

#include "api/lambda/call.h"
#include "api/lambda/handlers.h"
#include "base/clock.h"
#include "base/encode.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <unistd.h>

enum { DOWNLOAD_SECONDS = 600, SIGNATURE_BYTES = 32, SIGNATURE_HEX = 2 * SIGNATURE_BYTES + 1 };

static void sign(const struct operation_services *services, struct span sha256, uint64_t expires,
                 char text[SIGNATURE_HEX])
{
    unsigned char signature[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    char message[128];
    int size = snprintf(message, sizeof(message), "%.*s %llu", (int)MIN(sha256.length, (size_t)64), sha256.data,
                        (unsigned long long)expires);

    HMAC(EVP_sha256(), catalog_run_key(services->catalog), CATALOG_RUN_KEY_BYTES, (const unsigned char *)message,
         (size_t)size, signature, &length);
    hex_encode(signature, SIGNATURE_BYTES, text);
}

const char *download_url(struct operation *operation, const char *sha256)
{
    struct span host = operation_header(operation, SPAN("Host"));
    uint64_t expires = (uint64_t)(clock_wall_ns() / NS_PER_S) + DOWNLOAD_SECONDS;
    char signature[SIGNATURE_HEX];

    sign(operation->services, span_from(sha256), expires, signature);
    return arena_printf(&operation->arena, "http://%.*s/_kiln/code/%s?Expires=%llu&Signature=%s",
                        SPAN_ARG(host.length ? host : SPAN("localhost")), sha256, (unsigned long long)expires,
                        signature);
}

/* 0 or a refusal. The time is checked behind the signature, so that nobody learns from it. */
static int check_url(struct call *call, struct span sha256)
{
    char expected[SIGNATURE_HEX];
    struct span signature;
    struct span text;
    uint64_t expires;

    if (sha256.length != 64 || !operation_query(call->operation, SPAN("Signature"), &signature) ||
        !operation_query(call->operation, SPAN("Expires"), &text) || span_to_u64(text, INT64_MAX, &expires) < 0)
        return aws_error_set(&call->error, AWS_ERROR_ACCESS_DENIED, "Access Denied");
    sign(call->operation->services, sha256, expires, expected);
    if (signature.length != SIGNATURE_HEX - 1 || CRYPTO_memcmp(signature.data, expected, SIGNATURE_HEX - 1))
        return aws_error_set(&call->error, AWS_ERROR_ACCESS_DENIED, "Access Denied");
    if (expires < (uint64_t)(clock_wall_ns() / NS_PER_S))
        return aws_error_set(&call->error, AWS_ERROR_ACCESS_DENIED, "Request has expired");
    return 0;
}

/* Reading the file, on the pool. */
struct reading {
    uv_work_t work;
    struct call *call;
    int fd;
    uint64_t bytes;
    struct buffer content;
    int result;
};

static int read_all(struct reading *reading)
{
    int r = buffer_reserve(&reading->content, reading->bytes);

    while (r == 0 && reading->content.length < reading->bytes) {
        ssize_t count = read(reading->fd, reading->content.data + reading->content.length,
                             reading->bytes - reading->content.length);
        if (count == 0)
            return -EIO; /* shorter than it was */
        if (count < 0 && errno != EINTR)
            return -errno;
        if (count > 0)
            reading->content.length += (size_t)count;
    }
    return r;
}

static void on_work(uv_work_t *work)
{
    struct reading *reading = CONTAINER_OF(work, struct reading, work);

    reading->result = read_all(reading);
}

static void on_worked(uv_work_t *work, int status)
{
    struct reading *reading = CONTAINER_OF(work, struct reading, work);
    struct call *call = reading->call;
    int r = status < 0 ? status : reading->result;

    if (r == 0)
        operation_respond_bytes(call->operation, 200, "application/zip", &reading->content);
    else
        call_end(call, r, "reading the code package");
    cleanup_close(&reading->fd);
    buffer_deinit(&reading->content);
    free(reading);
}

static int start_reading(struct call *call, struct span sha256)
{
    struct reading *reading = calloc(1, sizeof(*reading));
    char name[65] = {0};
    int r;

    if (!reading)
        return -ENOMEM;
    memcpy(name, sha256.data, 64);
    reading->call = call;
    reading->fd = -1;
    r = code_open_zip(call->operation->services->code, name, &reading->fd, &reading->bytes);
    if (r == 0)
        r = uv_queue_work(call->operation->services->loop, &reading->work, on_work, on_worked);
    if (r == 0)
        return 0;
    cleanup_close(&reading->fd);
    free(reading);
    if (r == -ENOENT)
        return aws_error_set(&call->error, AWS_ERROR_RESOURCE_NOT_FOUND, "The code package is not there any more.");
    return r;
}

void lambda_download_code(struct operation *operation)
{
    struct span sha256 = operation_parameter(operation, SPAN("Sha256"));
    struct call *call = call_new(operation);
    int r;

    if (!call)
        return;
    r = check_url(call, sha256);
    if (r == 0)
        r = start_reading(call, sha256);
    if (r)
        call_end(call, r, "reading the code package");
}
