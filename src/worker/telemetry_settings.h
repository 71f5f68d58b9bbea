/*
 * What an extension asks for when it subscribes: the body of PUT /2022-07-01/telemetry (Telemetry API) and of PUT
 * /2020-08-15/logs (its forerunner, the Logs API), checked. Ranges and defaults are those of the Lambda guide's pages
 * "Telemetry API reference" and "Logs API". Pure.
 */
#pragma once

#include "base/span.h"

/* Bits, for events that are of one alone. Before schema 2022-12-13 lines of JSON logs were strings too. */
enum telemetry_api { TELEMETRY_API = 1, LOGS_API = 2, TELEMETRY_API_OF_STRINGS = 4 };

#define TELEMETRY_APIS (TELEMETRY_API | TELEMETRY_API_OF_STRINGS)

enum telemetry_type { TELEMETRY_PLATFORM = 1, TELEMETRY_FUNCTION = 2, TELEMETRY_EXTENSION = 4 };

enum telemetry_protocol { TELEMETRY_HTTP, TELEMETRY_TCP };

struct telemetry_settings {
    enum telemetry_api api;
    unsigned types; /* enum telemetry_type */
    enum telemetry_protocol protocol;
    bool put; /* HTTP by PUT instead of POST, which the Logs API has */
    uint16_t port;
    char host[32];  /* as named, for the Host header */
    char path[512]; /* with its slash; of HTTP */
    unsigned max_items;
    unsigned max_bytes;
    unsigned timeout_ms;
};

enum { TELEMETRY_FAULT_BYTES = 1024 };

/* `api` is TELEMETRY_API or LOGS_API. What is wrong with it, all of it, joined by "; ", and the settings are then not
 * to be used. 0, or 1 with `fault`. */
int telemetry_settings_parse(enum telemetry_api api, struct span body, struct telemetry_settings *settings,
                             char fault[TELEMETRY_FAULT_BYTES]) MUST_USE;
