/*
 * One `struct exchange` per request, in the request's arena, from on_headers to the answer. The route is known when the
 * headers are complete, and with it the body limit; the signature is checked when the body is there (it covers the
 * body's hash), except that a caller without a known access key is turned away before its body is read.
 *
 * An exchange is in one of three hands: its own (answered on the spot), an operation's, or the frontend's. `gone` must
 * reach whoever has it.
 */
#include "api/gateway.h"

#include "api/envelope.h"
#include "api/lambda/invoke.h"
#include "api/lambda/lambda.h"
#include "aws/arn.h"
#include "aws/error.h"
#include "aws/query.h"
#include "aws/sigv4.h"
#include "base/clock.h"
#include "base/random.h"
#include "catalog/catalog.h"
#include "frontend/answer.h"

struct gateway {
    struct gateway_config config;
    struct frontend *frontend;
    struct sigv4_verifier *verifiers[SERVICE_COUNT]; /* one a service; NULL: --auth off */
    struct random_pool request_ids;
    struct list operating; /* exchanges that an operation has */
};

struct exchange {
    struct gateway *gateway;
    struct http_request *http;
    const struct service *service;       /* never NULL once the headers are read */
    struct span unknown_service;         /* named by the caller (by its API's version if unsigned) and not here */
    bool unsigned_root;                  /* for "/", without a credential scope: the form says whose it is */
    const struct operation_route *route; /* NULL: unknown path or method */
    struct operation_parameter parameters[OPERATION_PARAMETERS_MAX];
    size_t parameter_count;
    char request_id[UUID_BYTES];
    struct span account;
    struct span region;
    struct operation *operation;         /* while an operation has it */
    struct list_link of_gateway;         /* in `operating` meanwhile */
    struct frontend_request *invocation; /* while the frontend has it */
};

/* --- answers of the gateway's own ----------------------------------------------------------------------------------
 */

static void respond_error_as(struct exchange *exchange, const struct service *service, struct aws_error *error)
{
    struct http_header headers[ENVELOPE_HEADERS + 1] = {{SPAN("x-amzn-RequestId"), span_from(exchange->request_id)}};
    struct envelope envelope;

    envelope_write(service, error, headers[0].value, &envelope);
    memcpy(headers + 1, envelope.headers, envelope.header_count * sizeof(*headers));
    http_respond(exchange->http, error->status, headers, envelope.header_count + 1, &envelope.body);
    aws_error_deinit(error);
}

static void respond_error(struct exchange *exchange, struct aws_error *error)
{
    respond_error_as(exchange, exchange->service, error);
}

/* In the form of the protocol that the request is in, so that any client can show the sentence. */
static void respond_unknown_service(struct exchange *exchange)
{
    static const struct service any_json = {.protocol = SERVICE_JSON};
    bool is_json = http_request_header(exchange->http, SPAN("X-Amz-Target")).length;
    struct aws_error error = {0};

    aws_error_set_custom(&error, 501, "NotImplementedException", "User", "Kiln does not have the service %s\"%.*s\".",
                         exchange->unsigned_root ? "whose API has the version " : "",
                         SPAN_ARG(exchange->unknown_service));
    respond_error_as(exchange, is_json ? &any_json : exchange->service, &error);
}

static void respond_out_of_memory(struct exchange *exchange)
{
    answer_failure(exchange->http, exchange->request_id, "The daemon is out of memory.");
}

static void respond_health(struct exchange *exchange)
{
    const struct gateway *gateway = exchange->gateway;
    struct buffer body = BUFFER_INIT;
    const struct http_header headers[] = {
        {SPAN("Content-Type"), SPAN("application/json")},
        {SPAN("x-amzn-RequestId"), span_from(exchange->request_id)},
    };

    if (buffer_printf(&body, "{\"status\":\"ready\",\"functions\":%zu,\"environments\":%zu,\"concurrency\":%lld}\n",
                      catalog_function_count(gateway->config.services->catalog),
                      frontend_environment_count(gateway->frontend),
                      (long long)frontend_concurrency(gateway->frontend)) < 0) {
        respond_out_of_memory(exchange);
        return;
    }
    http_respond(exchange->http, 200, headers, ARRAY_SIZE(headers), &body);
}

/* --- who is calling ------------------------------------------------------------------------------------------------
 */

static const struct credential *find_credential(void *context, struct span access_key)
{
    return credentials_find(context, access_key);
}

/* The request in sigv4's form; headers are copied into the request's arena. */
static int describe(struct exchange *exchange, struct sigv4_request *ret_request)
{
    struct http_request *http = exchange->http;
    size_t count = http_request_header_count(http);
    struct sigv4_header *headers = arena_alloc(http_request_arena(http), count * sizeof(*headers));

    if (!headers)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        struct http_header header = http_request_header_at(http, i);
        headers[i] = (struct sigv4_header){header.name, header.value};
    }
    *ret_request = (struct sigv4_request){
        .method = http_request_method(http),
        .path = http_request_path(http),
        .query = http_request_query(http),
        .headers = headers,
        .header_count = count,
        .body = http_request_body(http),
    };
    return 0;
}

static void set_caller(struct exchange *exchange, struct span account, struct span region)
{
    exchange->account = account.length ? account : span_from(exchange->gateway->config.default_account);
    exchange->region = arn_is_region(region) ? region : span_from(exchange->gateway->config.default_region);
}

/* --auth off: whatever the request says of its signer is believed, and nothing has to be there. */
static int read_caller(struct exchange *exchange)
{
    struct sigv4_request request;
    struct sigv4_authorization authorization = {0};
    int r = describe(exchange, &request);

    if (r == 0)
        r = sigv4_parse(&request, http_request_arena(exchange->http), &authorization);
    if (r < 0)
        return r;
    set_caller(exchange, credentials_account_of_key(authorization.access_key), authorization.region);
    return 0;
}

static struct sigv4_verifier *verifier_of(const struct exchange *exchange)
{
    return exchange->gateway->verifiers[service_index(exchange->service)];
}

/* --auth sigv4. 0, a positive outcome with `error` set, or -ENOMEM. */
static int verify_caller(struct exchange *exchange, struct aws_error *error)
{
    struct sigv4_request request;
    struct sigv4_authorization authorization = {0};
    const struct credential *credential = NULL;
    struct span account;
    int r = describe(exchange, &request);

    if (r == 0)
        r = sigv4_verify(verifier_of(exchange), &request, clock_wall_ns(), http_request_arena(exchange->http),
                         &authorization, &credential, error);
    if (r != 0)
        return r;
    account = span_from(credential->account);
    set_caller(exchange, account.length ? account : credentials_account_of_key(authorization.access_key),
               authorization.region);
    return 0;
}

/* Open to everybody, as load balancers need it. */
static bool is_health(const struct exchange *exchange)
{
    struct span method = http_request_method(exchange->http);

    return span_equal(http_request_path(exchange->http), SPAN("/_kiln/health")) &&
           (span_equal(method, SPAN("GET")) || span_equal(method, SPAN("HEAD")));
}

/* Whether the request has to be signed by a known key. */
static bool needs_signature(const struct exchange *exchange)
{
    return verifier_of(exchange) && !is_health(exchange) && !(exchange->route && exchange->route->anonymous);
}

/*
 * A look at the headers alone: a caller that names no known access key will be refused whatever its body is, so the
 * body need not be read.
 */
static void turn_away_strangers(struct exchange *exchange)
{
    struct sigv4_request request;
    struct sigv4_authorization authorization = {0};
    struct aws_error error = {0};
    struct arena *arena = http_request_arena(exchange->http);

    if (!needs_signature(exchange))
        return;
    if (describe(exchange, &request) < 0 || sigv4_parse(&request, arena, &authorization) < 0)
        return;
    if (credentials_find(exchange->gateway->config.credentials, authorization.access_key))
        return;
    if (sigv4_verify(verifier_of(exchange), &request, clock_wall_ns(), arena, &authorization, NULL, &error) <= 0)
        return;
    respond_error(exchange, &error);
}

/* --- handing over --------------------------------------------------------------------------------------------------
 */

static void send_operation_answer(void *context, int status, const struct http_header *headers, size_t header_count,
                                  struct buffer *body)
{
    struct exchange *exchange = context;

    exchange->operation = NULL;
    list_remove(&exchange->of_gateway);
    http_respond(exchange->http, status, headers, header_count, body);
}

static void start_operation(struct exchange *exchange)
{
    struct http_request *http = exchange->http;
    struct buffer body = http_request_take_body(http);
    struct arena *arena = http_request_arena(http);
    size_t header_count = http_request_header_count(http);
    struct http_header *headers = arena_alloc(arena, header_count * sizeof(*headers));
    struct operation_request request = {
        .service = exchange->service,
        .method = http_request_method(http),
        .path = http_request_path(http),
        .query = http_request_query(http),
        .account = exchange->account,
        .region = exchange->region,
        .request_id = span_from(exchange->request_id),
        .headers = headers,
        .header_count = header_count,
        .body = &body,
    };
    struct operation *operation = NULL;

    for (size_t i = 0; headers && i < header_count; i++)
        headers[i] = http_request_header_at(http, i);
    if (headers)
        request.caller_arn = span_from(arena_printf(arena, "arn:aws:iam::%.*s:root", SPAN_ARG(exchange->account)));
    if (headers)
        operation = operation_new(exchange->gateway->config.services, &request, send_operation_answer, exchange);
    buffer_deinit(&body);
    if (!operation) {
        respond_out_of_memory(exchange);
        return;
    }
    exchange->operation = operation;
    list_push_back(&exchange->gateway->operating, &exchange->of_gateway);
    operation_start(operation, exchange->route, exchange->parameters, exchange->parameter_count);
}

static void on_invocation_drain(struct http_request *http, void *context)
{
    struct exchange *exchange = http_request_context(http);

    (void)context;
    frontend_caller_drained(exchange->invocation);
}

static void start_invocation(struct exchange *exchange)
{
    const struct lambda_invoke_request request = {
        .http = exchange->http,
        .catalog = exchange->gateway->config.services->catalog,
        .function_name = exchange->parameters[0].value,
        .account = exchange->account,
        .region = exchange->region,
        .request_id = exchange->request_id,
        .streams = lambda_route_streams(exchange->route),
        .on_drain = on_invocation_drain,
    };

    exchange->invocation = lambda_invoke(exchange->gateway->frontend, &request);
}

/* --- which service -------------------------------------------------------------------------------------------------
 */

static const struct service *lambda(void)
{
    return service_at(0);
}

/* What to answer in when the service is not known: the form in which it was asked. */
static bool is_form(const struct exchange *exchange)
{
    struct span type = http_request_header(exchange->http, SPAN("Content-Type"));

    return span_starts_with(type, SPAN("application/x-www-form-urlencoded"));
}

/* By the credential scope. SPAN_NONE when nothing was signed. */
static struct span scope_service(struct exchange *exchange)
{
    struct sigv4_request request;
    struct sigv4_authorization authorization = {0};

    if (describe(exchange, &request) < 0 ||
        sigv4_parse(&request, http_request_arena(exchange->http), &authorization) < 0)
        return SPAN_NONE;
    return authorization.service;
}

/* Lambda's paths are Lambda's, whoever signed; else the scope says. A later look at the body may say more. */
static void choose_service(struct exchange *exchange)
{
    struct http_request *http = exchange->http;
    struct span name;
    enum operation_match match =
        lambda_route(http_request_method(http), http_request_path(http), http_request_query(http),
                     http_request_arena(http), &exchange->route, exchange->parameters, &exchange->parameter_count);

    exchange->service = lambda();
    if (match == OPERATION_MATCHED)
        return;
    exchange->route = NULL;
    if (match == OPERATION_NO_METHOD)
        return;
    if (is_form(exchange)) /* whose it is decides what errors look like */
        exchange->service = service_find(SPAN("sts"));
    name = scope_service(exchange);
    exchange->unsigned_root = !name.length && span_equal(http_request_path(http), SPAN("/"));
    if (!name.length)
        return;
    if (service_find(name))
        exchange->service = service_find(name);
    else
        exchange->unknown_service = name;
}

/* Nobody signed it: the form that the body or the query is may name the version of its API. */
static void choose_service_by_version(struct exchange *exchange)
{
    struct http_request *http = exchange->http;
    struct span body = is_form(exchange) ? http_request_body(http) : SPAN_NONE;
    struct uri_query form;
    struct span version;

    if (query_parse(http_request_arena(http), http_request_query(http), body, &form) != 0)
        return;
    version = query_string(&form, "Version");
    if (service_find_version(version))
        exchange->service = service_find_version(version);
    else if (version.length)
        exchange->unknown_service = version;
}

/* --- the listener's callbacks --------------------------------------------------------------------------------------
 */

static void on_headers(struct http_request *http, void *context)
{
    struct exchange *exchange = arena_zalloc(http_request_arena(http), sizeof(*exchange));

    if (!exchange)
        return; /* on_request answers */
    exchange->gateway = context;
    exchange->http = http;
    list_link_init(&exchange->of_gateway);
    random_pool_uuid(&exchange->gateway->request_ids, exchange->request_id);
    http_request_set_context(http, exchange);
    choose_service(exchange);
    http_request_set_body_limit(http, operation_body_limit(exchange->route));
    turn_away_strangers(exchange);
}

static void on_request(struct http_request *http, void *context)
{
    struct exchange *exchange = http_request_context(http);
    struct aws_error error = {0};
    int r;

    if (!exchange) {
        struct exchange fallback = {.gateway = context, .http = http};
        respond_out_of_memory(&fallback);
        return;
    }
    if (is_health(exchange)) {
        respond_health(exchange);
        return;
    }
    if (exchange->unsigned_root)
        choose_service_by_version(exchange);
    r = needs_signature(exchange) ? verify_caller(exchange, &error) : read_caller(exchange);
    if (r < 0)
        respond_out_of_memory(exchange);
    else if (r > 0)
        respond_error(exchange, &error);
    else if (exchange->unknown_service.length)
        respond_unknown_service(exchange);
    else if (exchange->route && lambda_route_is_invoke(exchange->route))
        start_invocation(exchange);
    else
        start_operation(exchange);
}

static void abandon_operation(struct exchange *exchange)
{
    operation_abandon(exchange->operation);
    exchange->operation = NULL;
    list_remove(&exchange->of_gateway);
}

static void on_gone(struct http_request *http, void *context)
{
    struct exchange *exchange = http_request_context(http);

    (void)context;
    if (!exchange)
        return;
    if (exchange->operation)
        abandon_operation(exchange);
    if (exchange->invocation)
        frontend_caller_gone(exchange->invocation);
}

/* What the server refuses by itself. Where the service has no class of its own, the name of the status is one. */
static void describe_refusal(const struct exchange *exchange, int status, struct aws_error *error)
{
    static const struct {
        int status;
        const char *code;
        const char *text;
    } refusals[] = {
        {400, "BadRequestException", "The request is not valid HTTP."},
        {408, "RequestTimeoutException", "The rest of the request did not come in time."},
        {417, "ExpectationFailedException", "The only expectation that can be met is 100-continue."},
        {431, "RequestHeaderFieldsTooLargeException", "The request line and the headers are too long."},
        {501, "NotImplementedException", "The method or the transfer coding is not supported."},
        {505, "HttpVersionNotSupportedException", "Only HTTP/1.0 and HTTP/1.1 are supported."},
    };

    if (status == 413) {
        operation_set_too_large(exchange ? exchange->route : NULL, error);
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
        if (refusals[i].status != status)
            continue;
        aws_error_set_custom(error, status, refusals[i].code, status < 500 ? "User" : "Server", "%s", refusals[i].text);
        return;
    }
    aws_error_set_custom(error, status, "ServiceUnavailableException", "Server", "The daemon is out of memory.");
}

static size_t refuse(struct http_request *http, int status, struct http_header *headers, struct buffer *body,
                     void *context)
{
    const struct exchange *exchange = http_request_context(http);
    struct aws_error error = {0};
    char request_id[UUID_BYTES];
    struct envelope envelope;
    struct span id;
    size_t count;

    (void)context;
    random_uuid(request_id);
    describe_refusal(exchange, status, &error);
    id = span_from(arena_printf(http_request_arena(http), "%s", request_id));
    envelope_write(exchange ? exchange->service : lambda(), &error, id, &envelope);
    memcpy(headers, envelope.headers, envelope.header_count * sizeof(*headers));
    count = envelope.header_count;
    if (id.data)
        headers[count++] = (struct http_header){SPAN("x-amzn-RequestId"), id};
    *body = envelope.body;
    aws_error_deinit(&error);
    return count;
}

const struct http_handler *gateway_http_handler(void)
{
    static const struct http_handler handler = {
        .on_headers = on_headers,
        .on_request = on_request,
        .on_gone = on_gone,
        .refuse = refuse,
    };

    return &handler;
}

static int make_verifiers(struct gateway *gateway)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < SERVICE_COUNT; i++) {
        const struct sigv4_policy policy = {
            .find = find_credential,
            .context = (void *)(uintptr_t)gateway->config.credentials,
            .service = span_from(service_at(i)->name),
        };
        r = sigv4_verifier_new(&policy, 0, &gateway->verifiers[i]);
    }
    return r;
}

int gateway_new(const struct gateway_config *config, struct gateway **ret_gateway)
{
    struct gateway *gateway = calloc(1, sizeof(*gateway));

    if (!gateway)
        return -ENOMEM;
    gateway->config = *config;
    list_init(&gateway->operating);
    if (config->credentials) {
        int r = make_verifiers(gateway);
        if (r < 0) {
            gateway_free(gateway);
            return r;
        }
    }
    *ret_gateway = gateway;
    return 0;
}

void gateway_set_frontend(struct gateway *gateway, struct frontend *frontend)
{
    gateway->frontend = frontend;
}

void gateway_abandon(struct gateway *gateway)
{
    LIST_FOREACH (link, &gateway->operating)
        abandon_operation(CONTAINER_OF(link, struct exchange, of_gateway));
}

size_t gateway_operation_count(const struct gateway *gateway)
{
    size_t count = 0;

    LIST_FOREACH (link, &gateway->operating)
        count++;
    return count;
}

struct gateway *gateway_free(struct gateway *gateway)
{
    if (gateway) {
        for (size_t i = 0; i < SERVICE_COUNT; i++)
            sigv4_verifier_free(gateway->verifiers[i]);
        free(gateway);
    }
    return NULL;
}
