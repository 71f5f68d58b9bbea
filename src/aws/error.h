/*
 * What an operation refuses with: class, HTTP status, message and the members that go beside it. The table below holds
 * Lambda's classes with the status of the service model, and the key under which the message travels as recorded.
 */
#pragma once

#include "base/buffer.h"

#include <stdarg.h>

enum aws_error_class {
    AWS_ERROR_NONE,
    AWS_ERROR_ACCESS_DENIED,                       /* 403 AccessDeniedException */
    AWS_ERROR_ALIAS_LIMIT_EXCEEDED,                /* 400 */
    AWS_ERROR_CODE_SIGNING_CONFIG_NOT_FOUND,       /* 404 */
    AWS_ERROR_CODE_STORAGE_EXCEEDED,               /* 400 */
    AWS_ERROR_CODE_VERIFICATION_FAILED,            /* 400 */
    AWS_ERROR_EXPIRED_TOKEN,                       /* 403 ExpiredTokenException */
    AWS_ERROR_INCOMPLETE_SIGNATURE,                /* 403 IncompleteSignatureException */
    AWS_ERROR_INVALID_CODE_SIGNATURE,              /* 400 */
    AWS_ERROR_INVALID_PARAMETER_VALUE,             /* 400 InvalidParameterValueException */
    AWS_ERROR_INVALID_REQUEST_CONTENT,             /* 400 InvalidRequestContentException */
    AWS_ERROR_INVALID_RUNTIME,                     /* 502 */
    AWS_ERROR_INVALID_SIGNATURE,                   /* 403 InvalidSignatureException */
    AWS_ERROR_INVALID_ZIP_FILE,                    /* 502 */
    AWS_ERROR_KMS_ACCESS_DENIED,                   /* 502 */
    AWS_ERROR_MISSING_AUTHENTICATION_TOKEN,        /* 403 MissingAuthenticationTokenException */
    AWS_ERROR_MODE_NOT_SUPPORTED,                  /* 400 */
    AWS_ERROR_NO_PUBLISHED_VERSION,                /* 400 */
    AWS_ERROR_POLICY_LENGTH_EXCEEDED,              /* 400 */
    AWS_ERROR_PRECONDITION_FAILED,                 /* 412 */
    AWS_ERROR_PROVISIONED_CONCURRENCY_NOT_FOUND,   /* 404 ProvisionedConcurrencyConfigNotFoundException */
    AWS_ERROR_PUBLIC_POLICY,                       /* 400 */
    AWS_ERROR_RECURSIVE_INVOCATION,                /* 400 */
    AWS_ERROR_REQUEST_ENTITY_TOO_LARGE,            /* 413 RequestEntityTooLargeException (the wire name, recorded) */
    AWS_ERROR_RESOURCE_CONFLICT,                   /* 409 */
    AWS_ERROR_RESOURCE_IN_USE,                     /* 400 */
    AWS_ERROR_RESOURCE_NOT_FOUND,                  /* 404 */
    AWS_ERROR_RESOURCE_NOT_READY,                  /* 502 */
    AWS_ERROR_SERIALIZATION,                       /* 400 SerializationException */
    AWS_ERROR_SERIALIZED_REQUEST_ENTITY_TOO_LARGE, /* 413 */
    AWS_ERROR_SERVICE,                             /* 500 ServiceException */
    AWS_ERROR_SERVICE_QUOTA_EXCEEDED,              /* 402 */
    AWS_ERROR_SNAP_START,                          /* 400 SnapStartException */
    AWS_ERROR_SNAP_START_NOT_READY,                /* 409 */
    AWS_ERROR_SNAP_START_TIMEOUT,                  /* 408 */
    AWS_ERROR_TOO_MANY_REQUESTS,                   /* 429; add the member Reason */
    AWS_ERROR_UNKNOWN_OPERATION,                   /* 404 UnknownOperationException */
    AWS_ERROR_UNRECOGNIZED_CLIENT,                 /* 403 UnrecognizedClientException */
    AWS_ERROR_UNSUPPORTED_MEDIA_TYPE,              /* 415 */
    AWS_ERROR_VALIDATION,                          /* 400 ValidationException; no Type */
    AWS_ERROR_CUSTOM,                              /* by aws_error_set_custom: another service's class */
};

enum { AWS_ERROR_MEMBERS = 4 };

struct aws_error_member {
    const char *name;  /* static */
    const char *value; /* static, or alive as long as the error */
};

/*
 * Zero-initialised it is "no error" and valid. Owns its message. After aws_error_set the fields may be changed before
 * the error is written.
 */
struct aws_error {
    enum aws_error_class error_class;
    int status;
    const char *code;        /* "ResourceNotFoundException" */
    const char *type;        /* "User", "Service" or NULL for none */
    const char *message_key; /* "message" or "Message" */
    struct buffer message;
    struct aws_error_member members[AWS_ERROR_MEMBERS]; /* beside Type and the message, as Reason */
    size_t member_count;
    int retry_after_s; /* 0: no Retry-After header */
};

/*
 * Fills the error from the table; the message is formatted (out of memory leaves it empty). An earlier content is
 * replaced. Returns `error_class`, a positive number, so that callers can `return aws_error_set(...)`. NULL is allowed.
 */
int aws_error_set(struct aws_error *error, enum aws_error_class error_class, const char *format, ...) PRINTF_LIKE(3, 4);
int aws_error_vset(struct aws_error *error, enum aws_error_class error_class, const char *format, va_list args)
    PRINTF_LIKE(3, 0);
/* The same for a class that is not in the table; `code` and `type` (NULL for none) are static. Message key "message".
 */
int aws_error_set_custom(struct aws_error *error, int status, const char *code, const char *type, const char *format,
                         ...) PRINTF_LIKE(5, 6);
/* Adds a member such as Reason; dropped when AWS_ERROR_MEMBERS are there already. */
void aws_error_add_member(struct aws_error *error, const char *name, const char *value);
void aws_error_deinit(struct aws_error *error);
/* The class of a code such as "ResourceNotFoundException", AWS_ERROR_NONE when it is not in the table. */
enum aws_error_class aws_error_class_of(struct span code);
/* The code of a class in the table: the value of the header x-amzn-ErrorType. */
const char *aws_error_code(enum aws_error_class error_class);

/*
 * Appends the body in one of the services' forms. The caller sets the status, the request id header and the headers
 * named here. 0 or -ENOMEM.
 */
/* rest-json (Lambda): {"Reason":...,"Type":"User","message":"..."}; headers x-amzn-ErrorType, application/json. */
int aws_error_write_rest_json(const struct aws_error *error, struct buffer *body) MUST_USE;
/* JSON 1.0 and 1.1: {"__type":"ValidationException","message":"..."}; application/x-amz-json-1.x. */
int aws_error_write_json(const struct aws_error *error, struct buffer *body) MUST_USE;
/* Query protocol: <ErrorResponse xmlns="..."><Error><Type>Sender</Type>...; text/xml. */
int aws_error_write_query(const struct aws_error *error, const char *xmlns, struct span request_id,
                          struct buffer *body) MUST_USE;
