#include "aws/error.h"

#include "aws/xml.h"
#include "base/encode.h"

struct error_row {
    int status;
    const char *code;
    const char *type;
    const char *message_key;
};

static const char user[] = "User";
static const char service[] = "Service";

/*
 * Statuses from the service model; keys and types as recorded where a recording exists (ResourceNotFoundException says
 * "Message", InvalidParameterValueException "message", ValidationException has no Type), else as the model spells them.
 * What the gateway in front of the service refuses (authentication) has "message" alone.
 */
static const struct error_row rows[] = {
    [AWS_ERROR_ACCESS_DENIED] = {403, "AccessDeniedException", NULL, "Message"},
    [AWS_ERROR_ALIAS_LIMIT_EXCEEDED] = {400, "AliasLimitExceededException", user, "message"},
    [AWS_ERROR_CODE_SIGNING_CONFIG_NOT_FOUND] = {404, "CodeSigningConfigNotFoundException", user, "Message"},
    [AWS_ERROR_CODE_STORAGE_EXCEEDED] = {400, "CodeStorageExceededException", user, "message"},
    [AWS_ERROR_CODE_VERIFICATION_FAILED] = {400, "CodeVerificationFailedException", user, "Message"},
    [AWS_ERROR_EXPIRED_TOKEN] = {403, "ExpiredTokenException", NULL, "message"},
    [AWS_ERROR_INCOMPLETE_SIGNATURE] = {403, "IncompleteSignatureException", NULL, "message"},
    [AWS_ERROR_INVALID_CODE_SIGNATURE] = {400, "InvalidCodeSignatureException", user, "Message"},
    [AWS_ERROR_INVALID_PARAMETER_VALUE] = {400, "InvalidParameterValueException", user, "message"},
    [AWS_ERROR_INVALID_REQUEST_CONTENT] = {400, "InvalidRequestContentException", user, "message"},
    [AWS_ERROR_INVALID_RUNTIME] = {502, "InvalidRuntimeException", service, "Message"},
    [AWS_ERROR_INVALID_SIGNATURE] = {403, "InvalidSignatureException", NULL, "message"},
    [AWS_ERROR_INVALID_ZIP_FILE] = {502, "InvalidZipFileException", service, "Message"},
    [AWS_ERROR_KMS_ACCESS_DENIED] = {502, "KMSAccessDeniedException", service, "Message"},
    [AWS_ERROR_MISSING_AUTHENTICATION_TOKEN] = {403, "MissingAuthenticationTokenException", NULL, "message"},
    [AWS_ERROR_MODE_NOT_SUPPORTED] = {400, "ModeNotSupportedException", user, "message"},
    [AWS_ERROR_NO_PUBLISHED_VERSION] = {400, "NoPublishedVersionException", user, "Message"},
    [AWS_ERROR_POLICY_LENGTH_EXCEEDED] = {400, "PolicyLengthExceededException", user, "message"},
    [AWS_ERROR_PRECONDITION_FAILED] = {412, "PreconditionFailedException", user, "message"},
    [AWS_ERROR_PROVISIONED_CONCURRENCY_NOT_FOUND] = {404, "ProvisionedConcurrencyConfigNotFoundException", user,
                                                     "message"},
    [AWS_ERROR_PUBLIC_POLICY] = {400, "PublicPolicyException", user, "Message"},
    [AWS_ERROR_RECURSIVE_INVOCATION] = {400, "RecursiveInvocationException", user, "Message"},
    [AWS_ERROR_REQUEST_ENTITY_TOO_LARGE] = {413, "RequestEntityTooLargeException", NULL, "Message"},
    [AWS_ERROR_RESOURCE_CONFLICT] = {409, "ResourceConflictException", user, "message"},
    [AWS_ERROR_RESOURCE_IN_USE] = {400, "ResourceInUseException", user, "Message"},
    [AWS_ERROR_RESOURCE_NOT_FOUND] = {404, "ResourceNotFoundException", user, "Message"},
    [AWS_ERROR_RESOURCE_NOT_READY] = {502, "ResourceNotReadyException", service, "message"},
    [AWS_ERROR_SERIALIZATION] = {400, "SerializationException", NULL, "Message"},
    [AWS_ERROR_SERIALIZED_REQUEST_ENTITY_TOO_LARGE] = {413, "SerializedRequestEntityTooLargeException", user,
                                                       "message"},
    [AWS_ERROR_SERVICE] = {500, "ServiceException", service, "Message"},
    [AWS_ERROR_SERVICE_QUOTA_EXCEEDED] = {402, "ServiceQuotaExceededException", user, "Message"},
    [AWS_ERROR_SNAP_START] = {400, "SnapStartException", user, "Message"},
    [AWS_ERROR_SNAP_START_NOT_READY] = {409, "SnapStartNotReadyException", user, "Message"},
    [AWS_ERROR_SNAP_START_TIMEOUT] = {408, "SnapStartTimeoutException", user, "Message"},
    [AWS_ERROR_TOO_MANY_REQUESTS] = {429, "TooManyRequestsException", user, "message"},
    [AWS_ERROR_UNKNOWN_OPERATION] = {404, "UnknownOperationException", NULL, "message"},
    [AWS_ERROR_UNRECOGNIZED_CLIENT] = {403, "UnrecognizedClientException", NULL, "message"},
    [AWS_ERROR_UNSUPPORTED_MEDIA_TYPE] = {415, "UnsupportedMediaTypeException", user, "message"},
    [AWS_ERROR_VALIDATION] = {400, "ValidationException", NULL, "message"},
};

_Static_assert(ARRAY_SIZE(rows) == AWS_ERROR_CUSTOM, "every class but the custom one has a row");

/* Starts anew; a message kept from before is emptied, its memory used again. */
static void reset(struct aws_error *error, enum aws_error_class error_class, const struct error_row *row)
{
    struct buffer message = error->message;

    message.length = 0;
    *error = (struct aws_error){
        .error_class = error_class,
        .status = row->status,
        .code = row->code,
        .type = row->type,
        .message_key = row->message_key,
        .message = message,
    };
}

static void format_message(struct aws_error *error, const char *format, va_list args)
{
    int r = buffer_vprintf(&error->message, format, args);

    if (r < 0) /* the class alone still tells the caller what happened */
        error->message.length = 0;
}

int aws_error_vset(struct aws_error *error, enum aws_error_class error_class, const char *format, va_list args)
{
    if (!error)
        return error_class;
    reset(error, error_class, &rows[error_class]);
    format_message(error, format, args);
    return error_class;
}

int aws_error_set(struct aws_error *error, enum aws_error_class error_class, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    aws_error_vset(error, error_class, format, args);
    va_end(args);
    return error_class;
}

int aws_error_set_custom(struct aws_error *error, int status, const char *code, const char *type, const char *format,
                         ...)
{
    va_list args;

    if (!error)
        return AWS_ERROR_CUSTOM;
    reset(error, AWS_ERROR_CUSTOM, &(struct error_row){status, code, type, "message"});
    va_start(args, format);
    format_message(error, format, args);
    va_end(args);
    return AWS_ERROR_CUSTOM;
}

void aws_error_add_member(struct aws_error *error, const char *name, const char *value)
{
    if (error && error->member_count < AWS_ERROR_MEMBERS)
        error->members[error->member_count++] = (struct aws_error_member){name, value};
}

void aws_error_deinit(struct aws_error *error)
{
    buffer_deinit(&error->message);
    *error = (struct aws_error){0};
}

enum aws_error_class aws_error_class_of(struct span code)
{
    for (size_t i = 1; i < ARRAY_SIZE(rows); i++)
        if (span_equal(span_from(rows[i].code), code))
            return (enum aws_error_class)i;
    return AWS_ERROR_NONE;
}

const char *aws_error_code(enum aws_error_class error_class)
{
    return error_class < ARRAY_SIZE(rows) ? rows[error_class].code : NULL;
}

/* One more member, with the comma that it needs. */
static int write_member(struct buffer *body, bool *first, const char *name, struct span value)
{
    int r = *first ? 0 : buffer_append_char(body, ',');

    *first = false;
    if (r == 0)
        r = json_encode_string(span_from(name), body);
    if (r == 0)
        r = buffer_append_char(body, ':');
    if (r == 0)
        r = json_encode_string(value, body);
    return r;
}

/* Members come in the order of their names, as recorded: Reason, Type, message. */
int aws_error_write_rest_json(const struct aws_error *error, struct buffer *body)
{
    size_t before = body->length;
    bool first = true;
    int r = buffer_append_char(body, '{');

    for (size_t i = 0; r == 0 && i < error->member_count; i++)
        r = write_member(body, &first, error->members[i].name, span_from(error->members[i].value));
    if (r == 0 && error->type)
        r = write_member(body, &first, "Type", span_from(error->type));
    if (r == 0)
        r = write_member(body, &first, error->message_key, buffer_span(&error->message));
    if (r == 0)
        r = buffer_append_char(body, '}');
    if (r < 0)
        body->length = before;
    return r;
}

int aws_error_write_json(const struct aws_error *error, struct buffer *body)
{
    size_t before = body->length;
    bool first = true;
    int r = buffer_append_char(body, '{');

    if (r == 0)
        r = write_member(body, &first, "__type", span_from(error->code));
    for (size_t i = 0; r == 0 && i < error->member_count; i++)
        r = write_member(body, &first, error->members[i].name, span_from(error->members[i].value));
    if (r == 0)
        r = write_member(body, &first, "message", buffer_span(&error->message));
    if (r == 0)
        r = buffer_append_char(body, '}');
    if (r < 0)
        body->length = before;
    return r;
}

int aws_error_write_query(const struct aws_error *error, const char *xmlns, struct span request_id, struct buffer *body)
{
    size_t before = body->length;
    const char *fault = error->status >= 500 ? "Receiver" : "Sender";
    int r = buffer_printf(body,
                          "<ErrorResponse xmlns=\"%s\">\n  <Error>\n    <Type>%s</Type>\n    <Code>%s</Code>\n"
                          "    <Message>",
                          xmlns, fault, error->code);

    if (r == 0)
        r = xml_append_text(buffer_span(&error->message), body);
    if (r == 0)
        r = buffer_append_span(body, SPAN("</Message>\n  </Error>\n  <RequestId>"));
    if (r == 0)
        r = xml_append_text(request_id, body);
    if (r == 0)
        r = buffer_append_span(body, SPAN("</RequestId>\n</ErrorResponse>\n"));
    if (r < 0)
        body->length = before;
    return r;
}
