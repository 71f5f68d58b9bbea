#include "api/lambda/invoke.h"

#include "aws/arn.h"
#include "aws/json_check.h"
#include "aws/shapes.h"
#include "aws/uri.h"
#include "aws/validate.h"
#include "base/encode.h"
#include "frontend/answer.h"

static const char *const invocation_types[] = {"Event", "RequestResponse", "DryRun", NULL};
static const char *const log_types[] = {"None", "Tail", NULL};

/* What was found in the request. */
struct invoke_parameters {
    struct function_name name;
    struct span qualifier; /* of the query; empty when absent */
    struct span invocation_type;
    struct span log_type;
    struct buffer client_context; /* decoded */
};

bool lambda_route_is_invoke(const struct operation_route *route)
{
    return !strcmp(route->name, "Invoke");
}

const char *lambda_wire_operation_name(const struct operation_route *route)
{
    return lambda_route_is_invoke(route) ? "InvokeFunction" : route->name;
}

static struct span header_or(const struct http_request *http, struct span name, struct span fallback)
{
    struct span value = http_request_header(http, name);

    return value.length ? value : fallback;
}

/* What the model states; in the recorded order: the qualifier before the name. */
static int check_constraints(const struct lambda_invoke_request *request, const struct invoke_parameters *parameters,
                             struct aws_error *error)
{
    const struct validation_constraint qualifier = {.maximum = LAMBDA_QUALIFIER_MAXIMUM,
                                                    .pattern = LAMBDA_QUALIFIER_PATTERN};
    const struct validation_constraint name = {.minimum = 1,
                                               .maximum = LAMBDA_NAMESPACED_FUNCTION_NAME_MAXIMUM,
                                               .pattern = LAMBDA_NAMESPACED_FUNCTION_NAME_PATTERN};
    struct validation validation CLEANUP(validation_deinit) = VALIDATION_INIT;

    if (parameters->qualifier.length)
        validate_string(&validation, parameters->qualifier, "qualifier", &qualifier);
    validate_enum(&validation, parameters->invocation_type, "invocationType", invocation_types);
    validate_enum(&validation, parameters->log_type, "logType", log_types);
    validate_string(&validation, request->function_name, "functionName", &name);
    return validation_finish(&validation, AWS_ERROR_VALIDATION, error);
}

/* Region, account and qualifier of the name against those of the call. */
static int check_name(const struct lambda_invoke_request *request, const struct invoke_parameters *parameters,
                      struct aws_error *error)
{
    const struct function_name *name = &parameters->name;

    if (name->region.length && !span_equal(name->region, request->region))
        return aws_error_set(error, AWS_ERROR_RESOURCE_NOT_FOUND,
                             "Functions from '%.*s' are not reachable in this region ('%.*s')", SPAN_ARG(name->region),
                             SPAN_ARG(request->region));
    if (name->account.length && !span_equal(name->account, request->account))
        return aws_error_set(error, AWS_ERROR_ACCESS_DENIED,
                             "User: arn:aws:iam::%.*s:root is not authorized to perform: lambda:InvokeFunction on "
                             "resource: arn:aws:lambda:%.*s:%.*s:function:%.*s because no resource-based policy allows "
                             "the lambda:InvokeFunction action",
                             SPAN_ARG(request->account), SPAN_ARG(request->region), SPAN_ARG(name->account),
                             SPAN_ARG(name->name));
    if (name->qualifier.length && parameters->qualifier.length && !span_equal(name->qualifier, parameters->qualifier))
        return aws_error_set(error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                             "The derived qualifier from the function name does not match the specified qualifier.");
    return 0;
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
    if (function_name_parse(request->function_name, FUNCTION_NAME_NAMESPACED, &parameters->name) != 0)
        return -EINVAL; /* the constraints are the same pattern */
    r = check_name(request, parameters, error);
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
            .account = request->account,
            .region = request->region,
            .function_name = parameters.name.name,
            .qualifier = parameters.qualifier.length ? parameters.qualifier : parameters.name.qualifier,
            .client_context = buffer_span(&parameters.client_context),
            .trace_id = http_request_header(request->http, SPAN("X-Amzn-Trace-Id")),
            .wants_log_tail = span_equal(parameters.log_type, SPAN("Tail")),
            .dry_run = span_equal(parameters.invocation_type, SPAN("DryRun")),
        };
        handle = frontend_invoke(frontend, &invoke);
    }
    buffer_deinit(&parameters.client_context);
    return handle;
}
