#include "api/envelope.h"

#include <stdio.h>

/* A refusal to act for another account comes with a message of null (recorded). */
static int write_rest_json(const struct aws_error *error, struct buffer *body)
{
    static const char null_message[] = "{\"Message\":null}";

    if (error->error_class == AWS_ERROR_ACCESS_DENIED && error->message.length == 0)
        return buffer_append(body, null_message, sizeof(null_message) - 1);
    return aws_error_write_rest_json(error, body);
}

/*
 * What is wrong with a signature has other names in the query protocol than in the later ones; see "Common Errors" of
 * either kind of API reference.
 */
static struct span query_code(const struct aws_error *error)
{
    static const struct {
        enum aws_error_class error_class;
        const char *code;
    } codes[] = {
        {AWS_ERROR_ACCESS_DENIED, "AccessDenied"},
        {AWS_ERROR_EXPIRED_TOKEN, "ExpiredToken"},
        {AWS_ERROR_INCOMPLETE_SIGNATURE, "IncompleteSignature"},
        {AWS_ERROR_INVALID_SIGNATURE, "SignatureDoesNotMatch"},
        {AWS_ERROR_MISSING_AUTHENTICATION_TOKEN, "MissingAuthenticationToken"},
        {AWS_ERROR_SERVICE, "ServiceFailure"},
        {AWS_ERROR_UNRECOGNIZED_CLIENT, "InvalidClientTokenId"},
        {AWS_ERROR_VALIDATION, "ValidationError"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
        if (codes[i].error_class == error->error_class)
            return span_from(codes[i].code);
    return span_from(error->code);
}

static void add_header(struct envelope *envelope, struct span name, struct span value)
{
    envelope->headers[envelope->header_count++] = (struct http_header){name, value};
}

void envelope_write(const struct service *service, const struct aws_error *error, struct span request_id,
                    struct envelope *ret_envelope)
{
    struct aws_error named = *error;
    int r;

    *ret_envelope = (struct envelope){0};
    if (service->protocol == SERVICE_QUERY) {
        named.code = query_code(error).data;
        add_header(ret_envelope, SPAN("Content-Type"), SPAN("text/xml"));
        r = aws_error_write_query(&named, service->xmlns, request_id, &ret_envelope->body);
    } else if (service->protocol == SERVICE_JSON) {
        add_header(ret_envelope, SPAN("Content-Type"), SPAN("application/x-amz-json-1.1"));
        r = aws_error_write_json(error, &ret_envelope->body);
    } else {
        add_header(ret_envelope, SPAN("Content-Type"), SPAN("application/json"));
        r = write_rest_json(error, &ret_envelope->body);
    }
    if (service->protocol != SERVICE_QUERY)
        add_header(ret_envelope, SPAN("x-amzn-ErrorType"), span_from(error->code));
    if (error->retry_after_s > 0) {
        snprintf(ret_envelope->retry_after, sizeof(ret_envelope->retry_after), "%d", error->retry_after_s);
        add_header(ret_envelope, SPAN("Retry-After"), span_from(ret_envelope->retry_after));
    }
    if (r < 0)
        buffer_deinit(&ret_envelope->body);
}
