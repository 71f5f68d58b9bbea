#include "api/lambda/invoke.h"

#include "api/lambda/names.h"
#include "aws/json_check.h"
#include "aws/shapes.h"
#include "aws/uri.h"
#include "aws/validate.h"
#include "base/encode.h"
#include "frontend/answer.h"

static const char *const invocation_types[] = {"Event", "RequestResponse", "DryRun", NULL};
static const char *const streaming_invocation_types[] = {"RequestResponse", "DryRun", NULL};
static const char *const log_types[] = {"None", "Tail", NULL};

/* What was found in the request. */
struct invoke_parameters {
    struct function_name name;
    struct span qualifier; /* of the query, no data when absent; then the one that counts */
    struct span invocation_type;
    struct span log_type;
    struct buffer client_context; /* decoded */
};

bool lambda_route_is_invoke(const struct operation_route *route)
{
    return !strcmp(route->name, "Invoke") || lambda_route_streams(route);
}

bool lambda_route_streams(const struct operation_route *route)
{
    return !strcmp(route->name, "InvokeWithResponseStream");
}

static struct span header_or(const struct http_request *http, struct span name, struct span fallback)
{
    struct span value = http_request_header(http, name);

    return value.length ? value : fallback;
}

#define TENANT_HEADER  SPAN("X-Amz-Tenant-Id")
#define DURABLE_HEADER SPAN("X-Amz-Durable-Execution-Name")

static void validate_isolation(const struct lambda_invoke_request *request, struct validation *validation)
{
    static const struct validation_constraint tenant = {
        .minimum = 1, .maximum = LAMBDA_TENANT_ID_MAXIMUM, .pattern = LAMBDA_TENANT_ID_PATTERN};
    static const struct validation_constraint execution = {.minimum = 1,
                                                           .maximum = LAMBDA_DURABLE_EXECUTION_NAME_MAXIMUM,
                                                           .pattern = LAMBDA_DURABLE_EXECUTION_NAME_PATTERN};
    struct span tenant_id = http_request_header(request->http, TENANT_HEADER);
    struct span name = http_request_header(request->http, DURABLE_HEADER);

    if (name.data)
        validate_string(validation, name, "durableExecutionName", &execution);
    if (tenant_id.data)
        validate_string(validation, tenant_id, "tenantId", &tenant);
}

/*
 * No function isolates tenants or executes durably. The service refuses a tenant for such a function (developer guide,
 * "Troubleshooting tenant isolation"; the text is ours).
 */
static int check_isolation(const struct lambda_invoke_request *request, struct aws_error *error)
{
    if (http_request_header(request->http, TENANT_HEADER).data)
        return aws_error_set(error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                             "Tenant isolation is not enabled for the function. Invoke it without a tenant ID.");
    if (http_request_header(request->http, DURABLE_HEADER).data)
        return aws_error_set(error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                             "Durable execution is not enabled for the function. Invoke it without an execution name.");
    return 0;
}

/* What the model states; in the recorded order: the qualifier before the name. */
static int check_constraints(const struct lambda_invoke_request *request, struct invoke_parameters *parameters,
                             struct aws_error *error)
{
    struct validation validation CLEANUP(validation_deinit) = VALIDATION_INIT;

    if (parameters->qualifier.data)
        validate_qualifier(&validation, parameters->qualifier, "qualifier");
    validate_enum(&validation, parameters->invocation_type, "invocationType",
                  request->streams ? streaming_invocation_types : invocation_types);
    validate_enum(&validation, parameters->log_type, "logType", log_types);
    validate_isolation(request, &validation);
    validate_function_name(&validation, request->function_name, FUNCTION_NAME_NAMESPACED, "functionName",
                           &parameters->name);
    return validation_finish(&validation, AWS_ERROR_VALIDATION, error);
}

/* The function that is meant, the caller's or one whose policy lets the caller in; leaves the qualifier that counts. */
static int check_name(const struct lambda_invoke_request *request, struct invoke_parameters *parameters,
                      struct aws_error *error)
{
    const struct name_caller caller = {request->catalog, request->account, request->region, "InvokeFunction"};
    int r = names_check_place(&parameters->name, parameters->qualifier, &caller, error);

    if (r == 0 && !parameters->name.account.length)
        parameters->name.account = request->account;
    if (r == 0 && !span_equal(parameters->name.account, request->account) &&
        span_equal(parameters->log_type, SPAN("Tail")))
        r = aws_error_set(error, AWS_ERROR_ACCESS_DENIED, "Cross-account log access is not allowed");
    return r ? r
             : names_join_qualifiers(parameters->name.qualifier, parameters->qualifier, &parameters->qualifier, error);
}

static int decode_client_context(struct span text, struct buffer *decoded, struct aws_error *error)
{
    if (text.length > LAMBDA_CLIENT_CONTEXT_BYTES || base64_decode(text, decoded) < 0 ||
        json_check(buffer_span(decoded), NULL) != 0)
        return aws_error_set(error, AWS_ERROR_INVALID_REQUEST_CONTENT,
                             "Client context must be a valid Base64-encoded JSON object.");
    return 0;
}

static int check_payload(struct span payload, struct aws_error *error)
{
    struct json_fault fault;
    int r = payload.length ? json_check(payload, &fault) : 0;

    if (r == 0)
        return 0;
    return aws_error_set(error, AWS_ERROR_INVALID_REQUEST_CONTENT,
                         "Could not parse request body into json: Could not parse payload into json: %s",
                         fault.message);
}

static int read_parameters(const struct lambda_invoke_request *request, struct invoke_parameters *parameters)
{
    struct uri_query query;
    int r = uri_query_parse(http_request_arena(request->http), http_request_query(request->http), &query);

    if (r == -ENOMEM)
        return r;
    if (r == 0)
        uri_query_get(&query, SPAN("Qualifier"), &parameters->qualifier);
    parameters->invocation_type = header_or(request->http, SPAN("X-Amz-Invocation-Type"), SPAN("RequestResponse"));
    parameters->log_type = header_or(request->http, SPAN("X-Amz-Log-Type"), SPAN("None"));
    return 0;
}

/* 0, a positive class with `error` set, or -ENOMEM. */
static int check(const struct lambda_invoke_request *request, struct invoke_parameters *parameters,
                 struct aws_error *error)
{
    struct span client_context = http_request_header(request->http, SPAN("X-Amz-Client-Context"));
    int r = read_parameters(request, parameters);

    if (r == 0)
        r = check_constraints(request, parameters, error);
    if (r != 0)
        return r;
    r = check_name(request, parameters, error);
    if (r == 0)
        r = check_isolation(request, error);
    if (r == 0 && client_context.length)
        r = decode_client_context(client_context, &parameters->client_context, error);
    if (r == 0)
        r = check_payload(http_request_body(request->http), error);
    if (r == 0 && span_equal(parameters->invocation_type, SPAN("Event")))
        r = aws_error_set_custom(error, 501, "NotImplementedException", "User",
                                 "Kiln does not support asynchronous invocation (InvocationType Event) yet.");
    return r;
}

struct frontend_request *lambda_invoke(struct frontend *frontend, const struct lambda_invoke_request *request)
{
    struct invoke_parameters parameters = {0};
    struct aws_error error = {0};
    struct frontend_request *handle = NULL;
    int r = check(request, &parameters, &error);

    if (r < 0) {
        answer_failure(request->http, request->request_id, "The daemon is out of memory.");
    } else if (r > 0) {
        answer_error(request->http, request->request_id, &error, NULL, 0);
    } else {
        const struct frontend_invoke invoke = {
            .http = request->http,
            .request_id = request->request_id,
            .account = parameters.name.account,
            .region = request->region,
            .function_name = parameters.name.name,
            .qualifier = parameters.qualifier,
            .client_context = buffer_span(&parameters.client_context),
            .trace_id = http_request_header(request->http, SPAN("X-Amzn-Trace-Id")),
            .wants_log_tail = span_equal(parameters.log_type, SPAN("Tail")),
            .streams = request->streams,
            .on_drain = request->on_drain,
            .dry_run = span_equal(parameters.invocation_type, SPAN("DryRun")),
        };
        handle = frontend_invoke(frontend, &invoke);
    }
    buffer_deinit(&parameters.client_context);
    return handle;
}
