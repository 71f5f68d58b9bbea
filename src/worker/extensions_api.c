#include "worker/extensions_api.h"

#include "base/encode.h"
#include "worker/api_answer.h"
#include "worker/environment.h"
#include "worker/environment_extensions.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#define API_ROOT "/2020-01-01/extension/"

static void refuse(struct http_request *request, const char *type, const char *message)
{
    api_answer_error(request, 403, type, message);
}

static void refuse_transition(struct http_request *request, const struct extension *extension,
                              enum extension_state wanted)
{
    char text[512];

    snprintf(text, sizeof(text),
             "State transition from %s to %s failed for extension %s. Error: State transition is not allowed",
             extension_state_name(extension->state), extension_state_name(wanted),
             wanted == EXTENSION_REGISTERED ? extension->name : extension->id);
    refuse(request, "Extension.InvalidExtensionState", text);
}

/* --- registration ------------------------------------------------------------------------------------------------- */

static bool add_event(const char *name, bool external, unsigned *events, const char **ret_fault)
{
    *ret_fault = NULL;
    if (strcmp(name, "INVOKE") == 0)
        *events |= EXTENSION_INVOKE;
    else if (strcmp(name, "SHUTDOWN") != 0)
        *ret_fault = "ErrorInvalidEventType";
    else if (!external)
        *ret_fault = "ShutdownEventNotSupportedForInternalExtension";
    else
        *events |= EXTENSION_SHUTDOWN;
    return !*ret_fault;
}

/* True when the request has been refused. */
static bool refuse_events(struct http_request *request, const json_t *list, bool external, unsigned *events)
{
    const char *fault;
    size_t i;
    json_t *item;
    char text[256];

    json_array_foreach(list, i, item)
    {
        if (!json_is_string(item)) {
            refuse(request, "InvalidRequestFormat", "events must be a list of strings");
            return true;
        }
        if (!add_event(json_string_value(item), external, events, &fault)) {
            snprintf(text, sizeof(text), "%.100s: %s", json_string_value(item), fault);
            refuse(request, "Extension.InvalidEventType", text);
            return true;
        }
    }
    return false;
}

/* The list of events, NULL when the request has been refused. Borrowed from `document`; absent it is empty. */
static bool parse_events(struct http_request *request, json_t **document, bool external, unsigned *events)
{
    struct span body = http_request_body(request);
    json_error_t error;
    json_t *list, *keys;

    *document = json_loadb(body.data ? body.data : "", body.length, 0, &error);
    if (!json_is_object(*document)) {
        refuse(request, "InvalidRequestFormat", *document ? "the body must be a JSON object" : error.text);
        return false;
    }
    list = json_object_get(*document, "events");
    keys = json_object_get(*document, "configurationKeys");
    if (keys && !json_is_null(keys) && (!json_is_array(keys) || json_array_size(keys))) {
        refuse(request, "InvalidRequestFormat", "configurationKeys are deprecated; use environment variables instead");
        return false;
    }
    if (list && !json_is_null(list) && !json_is_array(list)) {
        refuse(request, "InvalidRequestFormat", "events must be a list of strings");
        return false;
    }
    return !refuse_events(request, list, external, events);
}

static void refuse_registration(struct http_request *request, int refusal, const struct extension *extension)
{
    char text[64];

    switch (refusal) {
    case EXTENSION_REFUSED_CLOSED:
        refuse(request, "Extension.RegistrationClosed", "Extension registration closed already");
        return;
    case EXTENSION_REFUSED_NAME:
        refuse(request, "Extension.InvalidExtensionState", "Extension with this name already registered");
        return;
    case EXTENSION_REFUSED_TOO_MANY:
        snprintf(text, sizeof(text), "Extension limit (%d) reached", EXTENSIONS_MAX);
        refuse(request, "Extension.TooManyExtensions", text);
        return;
    case EXTENSION_REFUSED_STATE:
        refuse_transition(request, extension, EXTENSION_REGISTERED);
        return;
    default:
        api_answer_error(request, 500, "InternalServerError", "Internal Server Error");
    }
}

static bool accepts_account_id(const struct http_request *request)
{
    struct span features = http_request_header(request, SPAN("Lambda-Extension-Accept-Feature"));

    while (features.data)
        if (span_equal(span_trim(span_cut(&features, ',')), SPAN("accountId")))
            return true;
    return false;
}

static int append_member(struct buffer *body, const char *before, const char *value)
{
    int r = buffer_append_span(body, span_from(before));

    return r < 0 ? r : json_encode_string(span_from(value), body);
}

static int registration_json(const struct environment *environment, bool account_id, struct buffer *body)
{
    const struct environment_spec *spec = &environment->spec;
    int r = append_member(body, "{\"functionName\":", spec->function_name);

    if (r == 0)
        r = append_member(body, ",\"functionVersion\":", spec->version);
    if (r == 0)
        r = append_member(body, ",\"handler\":", spec->handler);
    if (r == 0 && account_id)
        r = append_member(body, ",\"accountId\":", spec->account);
    return r < 0 ? r : buffer_append_char(body, '}');
}

static void answer_registration(struct environment *environment, struct http_request *request,
                                const struct extension *extension)
{
    struct buffer body = BUFFER_INIT;
    const struct http_header headers[] = {{SPAN("Content-Type"), SPAN("application/json")},
                                          {SPAN("Lambda-Extension-Identifier"), span_from(extension->id)}};

    if (registration_json(environment, accepts_account_id(request), &body) < 0)
        buffer_deinit(&body);
    http_respond(request, 200, headers, ARRAY_SIZE(headers), &body);
}

static void cleanup_json(json_t **document)
{
    json_decref(*document);
}

static void on_register(struct environment *environment, struct http_request *request)
{
    CLEANUP(cleanup_json) json_t *document = NULL;
    struct span name = http_request_header(request, SPAN("Lambda-Extension-Name"));
    struct extension *extension = NULL;
    unsigned events = 0;
    int r;

    if (!name.length) {
        refuse(request, "Extension.InvalidExtensionName", "Empty extension name");
        return;
    }
    if (extensions_ensure(environment) < 0) {
        refuse_registration(request, -ENOMEM, NULL);
        return;
    }
    extension = extension_set_find_external(&environment->extensions->set, name);
    if (!parse_events(request, &document, extension != NULL, &events))
        return;
    r = environment->state == ENVIRONMENT_INIT
            ? extension_set_register(&environment->extensions->set, name, events, &extension)
            : EXTENSION_REFUSED_CLOSED;
    if (r != 0) {
        refuse_registration(request, r, extension);
        return;
    }
    answer_registration(environment, request, extension);
    if (extension->external)
        extensions_on_registered(environment);
}

/* --- who is asking ------------------------------------------------------------------------------------------------ */

static bool is_uuid(struct span text)
{
    if (text.length != UUID_BYTES - 1)
        return false;
    for (size_t i = 0; i < text.length; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;

        if (dash ? text.data[i] != '-' : !strchr("0123456789abcdefABCDEF", text.data[i]) || !text.data[i])
            return false;
    }
    return true;
}

struct extension *extensions_api_identify(struct environment *environment, struct http_request *request)
{
    struct span id = http_request_header(request, SPAN("Lambda-Extension-Identifier"));
    struct extension *extension;
    char text[64 + UUID_BYTES];

    if (!id.length) {
        refuse(request, "Extension.MissingExtensionIdentifier", "Missing Lambda-Extension-Identifier header");
        return NULL;
    }
    if (!is_uuid(id)) {
        refuse(request, "Extension.InvalidExtensionIdentifier", "Invalid Lambda-Extension-Identifier");
        return NULL;
    }
    extension = environment->extensions ? extension_set_find(&environment->extensions->set, id) : NULL;
    if (!extension) {
        snprintf(text, sizeof(text), "Unknown extension %.*s", SPAN_ARG(id));
        refuse(request, "Extension.UnknownExtensionIdentifier", text);
    }
    return extension;
}

/* --- events ------------------------------------------------------------------------------------------------------- */

static void on_next(struct environment *environment, struct http_request *request)
{
    struct extension *extension = extensions_api_identify(environment, request);

    if (extension && !extensions_take_next(environment, extension, request))
        refuse_transition(request, extension, EXTENSION_READY);
}

static void on_error(struct environment *environment, struct http_request *request, enum extension_state state)
{
    struct extension *extension = extensions_api_identify(environment, request);
    struct span type = http_request_header(request, SPAN("Lambda-Extension-Function-Error-Type"));

    if (!extension)
        return;
    if (!type.length)
        refuse(request, "Extension.MissingHeader", "Lambda-Extension-Function-Error-Type not found");
    else if (!extensions_take_error(environment, extension, state, type))
        refuse_transition(request, extension, state);
    else
        api_answer_accepted(request);
}

static void send_event(struct extension *extension, struct buffer *body)
{
    char id[UUID_BYTES];
    const struct http_header headers[] = {{SPAN("Content-Type"), SPAN("application/json")},
                                          {SPAN("Lambda-Extension-Event-Identifier"), span_from(random_uuid(id))}};

    http_respond(TAKE_PTR(extension->next), 200, headers, ARRAY_SIZE(headers), body);
}

static int invoke_json(const struct environment *environment, struct span trace_id, struct buffer *body)
{
    int r = buffer_printf(body, "{\"eventType\":\"INVOKE\",\"deadlineMs\":%" PRId64 ",\"requestId\":\"%s\"",
                          environment->deadline_wall_ms, environment->invocation->request_id);

    if (r == 0)
        r = append_member(body, ",\"invokedFunctionArn\":", environment->invocation->invoked_arn);
    if (r == 0)
        r = buffer_append_span(body, SPAN(",\"tracing\":{\"type\":\"X-Amzn-Trace-Id\",\"value\":"));
    if (r == 0)
        r = json_encode_string(trace_id, body);
    return r < 0 ? r : buffer_append_span(body, SPAN("}}"));
}

int extensions_api_send_invoke(struct environment *environment, struct extension *extension, struct span trace_id)
{
    CLEANUP(buffer_deinit) struct buffer body = BUFFER_INIT;
    int r = extension->next ? invoke_json(environment, trace_id, &body) : -ENOENT;

    if (r == 0)
        send_event(extension, &body);
    return r;
}

int extensions_api_send_shutdown(struct extension *extension, const char *reason, int64_t deadline_wall_ms)
{
    CLEANUP(buffer_deinit) struct buffer body = BUFFER_INIT;
    int r = buffer_printf(&body, "{\"eventType\":\"SHUTDOWN\",\"deadlineMs\":%" PRId64 ",\"shutdownReason\":\"%s\"}",
                          deadline_wall_ms, reason);

    if (r == 0)
        send_event(extension, &body);
    return r;
}

/* --- routes ------------------------------------------------------------------------------------------------------- */

bool extensions_api_on_request(struct environment *environment, struct http_request *request)
{
    struct span path = http_request_path(request);
    struct span method = http_request_method(request);
    bool is_next;

    if (!span_starts_with(path, SPAN(API_ROOT)))
        return false;
    path = span_slice(path, sizeof(API_ROOT) - 1, path.length);
    is_next = span_equal(path, SPAN("event/next"));
    if (!is_next && !span_equal(path, SPAN("register")) && !span_equal(path, SPAN("init/error")) &&
        !span_equal(path, SPAN("exit/error")))
        api_answer_not_found(request);
    else if (!span_equal(method, is_next ? SPAN("GET") : SPAN("POST")))
        api_answer_wrong_method(request);
    else if (is_next)
        on_next(environment, request);
    else if (span_equal(path, SPAN("register")))
        on_register(environment, request);
    else
        on_error(environment, request,
                 span_equal(path, SPAN("init/error")) ? EXTENSION_INIT_ERROR : EXTENSION_EXIT_ERROR);
    return true;
}
