#include "worker/telemetry_api.h"

#include "worker/api_answer.h"
#include "worker/environment.h"
#include "worker/extensions_api.h"
#include "worker/telemetry.h"

static void answer_ok(struct http_request *request)
{
    struct buffer body = BUFFER_INIT;

    if (buffer_append_span(&body, SPAN("\"OK\"")) < 0)
        buffer_deinit(&body);
    api_answer_json(request, 200, &body);
}

static void answer_closed(struct http_request *request, enum telemetry_api api)
{
    if (api == LOGS_API)
        api_answer_error(request, 403, "Logs.SubscriptionClosed", "Logs API subscription is closed already");
    else
        api_answer_error(request, 403, "Telemetry.SubscriptionClosed", "Telemetry API subscription is closed already");
}

static void subscribe(struct environment *environment, struct http_request *request, enum telemetry_api api)
{
    struct extension *extension = extensions_api_identify(environment, request);
    struct telemetry_settings settings;
    char fault[TELEMETRY_FAULT_BYTES];
    int r;

    if (!extension)
        return;
    if (environment->state != ENVIRONMENT_INIT) {
        answer_closed(request, api);
        return;
    }
    if (telemetry_settings_parse(api, http_request_body(request), &settings, fault) != 0) {
        api_answer_error(request, 400, "ValidationError", fault);
        return;
    }
    r = telemetry_subscribe(environment, extension, &settings);
    if (r < 0)
        api_answer_error(request, 500, "InternalServerError", "Internal Server Error");
    else if (r > 0)
        api_answer_error(request, 400, "ValidationError",
                         "an extension can subscribe to one of the Telemetry API and the Logs API");
    else
        answer_ok(request);
}

static enum telemetry_api api_of(struct span path)
{
    if (span_ends_with(path, SPAN("/")))
        path.length--;
    return span_equal(path, SPAN("/2022-07-01/telemetry")) ? TELEMETRY_API
           : span_equal(path, SPAN("/2020-08-15/logs"))    ? LOGS_API
                                                           : 0;
}

bool telemetry_api_on_request(struct environment *environment, struct http_request *request)
{
    enum telemetry_api api = api_of(http_request_path(request));

    if (!api)
        return false;
    if (!span_equal(http_request_method(request), SPAN("PUT")))
        api_answer_wrong_method(request);
    else
        subscribe(environment, request, api);
    return true;
}
