#include "worker/telemetry_settings.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>

enum { RUNTIME_API_PORT = 9001 };

struct faults {
    char *text;
    size_t length;
};

static void PRINTF_LIKE(2, 3) add(struct faults *faults, const char *format, ...)
{
    size_t room = TELEMETRY_FAULT_BYTES - faults->length;
    va_list args;
    int n;

    if (room < 8)
        return;
    n = faults->length ? snprintf(faults->text + faults->length, room, "; ") : 0;
    va_start(args, format);
    n += vsnprintf(faults->text + faults->length + n, room - (size_t)n, format, args);
    va_end(args);
    faults->length = MIN(faults->length + (size_t)n, (size_t)TELEMETRY_FAULT_BYTES - 1);
}

static void parse_schema(const json_t *body, struct telemetry_settings *settings, struct faults *faults)
{
    static const char *const telemetry[] = {"2022-07-01", "2022-12-13", "2025-01-29", NULL};
    static const char *const logs[] = {"2020-08-15", "2021-03-18", NULL};
    const json_t *value = json_object_get(body, "schemaVersion");
    const char *version = json_string_value(value);
    bool is_logs = settings->api == LOGS_API;

    if (!value && is_logs)
        return; /* as old as the API */
    if (!version) {
        add(faults, "schemaVersion should be a string");
        return;
    }
    if (!is_logs && strcmp(version, "2022-07-01") == 0)
        settings->api = TELEMETRY_API_OF_STRINGS;
    for (const char *const *known = is_logs ? logs : telemetry; *known; known++)
        if (strcmp(*known, version) == 0)
            return;
    add(faults, "schemaVersion %.32s is not supported", version);
}

static void parse_types(const json_t *body, struct telemetry_settings *settings, struct faults *faults)
{
    const json_t *types = json_object_get(body, "types");
    size_t i;
    json_t *item;

    if (!json_array_size(types))
        add(faults, "types should not be empty");
    json_array_foreach(types, i, item)
    {
        const char *type = json_string_value(item);

        if (type && strcmp(type, "platform") == 0)
            settings->types |= TELEMETRY_PLATFORM;
        else if (type && strcmp(type, "function") == 0)
            settings->types |= TELEMETRY_FUNCTION;
        else if (type && strcmp(type, "extension") == 0)
            settings->types |= TELEMETRY_EXTENSION;
        else
            add(faults, "types has an invalid value %.32s", type ? type : "");
    }
}

static bool is_sandbox(struct span host)
{
    return span_equal_nocase(host, SPAN("sandbox.localdomain")) || span_equal_nocase(host, SPAN("sandbox")) ||
           span_equal_nocase(host, SPAN("localhost")) || span_equal(host, SPAN("127.0.0.1"));
}

static void set_port(int64_t port, struct telemetry_settings *settings, struct faults *faults)
{
    if (port < 1 || port > 65535)
        add(faults, "port should be between 1 and 65535");
    else if (port == RUNTIME_API_PORT)
        add(faults, "port %d is reserved", RUNTIME_API_PORT);
    else
        settings->port = (uint16_t)port;
}

static bool is_printable(struct span text)
{
    for (size_t i = 0; i < text.length; i++)
        if (text.data[i] <= ' ' || text.data[i] > '~')
            return false;
    return true;
}

/* "http://sandbox.localdomain:8080/path" */
static void parse_uri(struct span uri, struct telemetry_settings *settings, struct faults *faults)
{
    struct span scheme = settings->protocol == TELEMETRY_HTTP ? SPAN("http://") : SPAN("tcp://");
    struct span rest, authority, host;
    uint64_t port = 0;

    if (!span_starts_with(uri, scheme) && !span_starts_with(uri, SPAN("http://"))) {
        add(faults, "URI scheme should be %.*s", (int)scheme.length - 3, scheme.data);
        return;
    }
    rest = span_slice(uri, span_starts_with(uri, scheme) ? scheme.length : 7, uri.length);
    authority = span_slice(rest, 0, span_find(rest, '/') < 0 ? rest.length : (size_t)span_find(rest, '/'));
    rest = span_slice(rest, authority.length, rest.length);
    host = span_cut(&authority, ':');
    if (!is_sandbox(host))
        add(faults, "URI host should be sandbox.localdomain");
    else
        snprintf(settings->host, sizeof(settings->host), "%.*s", SPAN_ARG(host));
    if (!authority.length)
        add(faults, "URI port is not provided");
    else
        set_port(span_to_u64(authority, 65536, &port) < 0 ? 0 : (int64_t)port, settings, faults);
    if (rest.length >= sizeof(settings->path) || !is_printable(rest))
        add(faults, "URI path is not valid");
    else
        snprintf(settings->path, sizeof(settings->path), "%.*s", SPAN_ARG(rest.length ? rest : SPAN("/")));
}

static void parse_destination(const json_t *body, struct telemetry_settings *settings, struct faults *faults)
{
    const json_t *destination = json_object_get(body, "destination");
    const char *protocol = json_string_value(json_object_get(destination, "protocol"));
    const char *method = json_string_value(json_object_get(destination, "method"));
    const json_t *uri = json_object_get(destination, "URI");
    const json_t *port = json_object_get(destination, "port");

    if (!json_is_object(destination)) {
        add(faults, "destination should be provided");
        return;
    }
    if (protocol && strcmp(protocol, "TCP") == 0)
        settings->protocol = TELEMETRY_TCP;
    else if (!protocol || strcmp(protocol, "HTTP") != 0)
        add(faults, "destination protocol should be HTTP or TCP");
    settings->put = method && strcmp(method, "PUT") == 0;
    snprintf(settings->host, sizeof(settings->host), "sandbox.localdomain");
    if (json_is_string(uri))
        parse_uri(span_of(json_string_value(uri), json_string_length(uri)), settings, faults);
    else if (settings->protocol == TELEMETRY_TCP && json_is_integer(port))
        set_port(json_integer_value(port), settings, faults);
    else
        add(faults, settings->protocol == TELEMETRY_TCP ? "port is not provided" : "URI is not provided");
}

static void parse_limit(const json_t *buffering, const char *name, unsigned minimum, unsigned maximum, unsigned *value,
                        struct faults *faults)
{
    const json_t *given = json_object_get(buffering, name);

    if (!given || json_is_null(given))
        return;
    if (!json_is_integer(given) || json_integer_value(given) < (json_int_t)minimum ||
        json_integer_value(given) > (json_int_t)maximum)
        add(faults, "%s should be between %u and %u", name, minimum, maximum);
    else
        *value = (unsigned)json_integer_value(given);
}

static void parse_buffering(const json_t *body, struct telemetry_settings *settings, struct faults *faults)
{
    const json_t *buffering = json_object_get(body, "buffering");

    settings->max_items = 10000;
    settings->max_bytes = 262144;
    settings->timeout_ms = 1000;
    if (!buffering || json_is_null(buffering))
        return;
    if (!json_is_object(buffering))
        add(faults, "buffering should be an object");
    parse_limit(buffering, "maxItems", 1000, 10000, &settings->max_items, faults);
    parse_limit(buffering, "maxBytes", 262144, 1048576, &settings->max_bytes, faults);
    parse_limit(buffering, "timeoutMs", 25, 30000, &settings->timeout_ms, faults);
}

int telemetry_settings_parse(enum telemetry_api api, struct span body, struct telemetry_settings *settings,
                             char fault[TELEMETRY_FAULT_BYTES])
{
    json_t *document = json_loadb(body.data ? body.data : "", body.length, 0, NULL);
    struct faults faults = {.text = fault};

    fault[0] = '\0';
    *settings = (struct telemetry_settings){.api = api};
    if (json_is_object(document)) {
        parse_schema(document, settings, &faults);
        parse_destination(document, settings, &faults);
        parse_types(document, settings, &faults);
        parse_buffering(document, settings, &faults);
    } else {
        add(&faults, "the body should be a JSON object");
    }
    json_decref(document);
    return faults.length ? 1 : 0;
}
