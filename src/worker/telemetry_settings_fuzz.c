/* A subscription is either refused with a reason or within all the ranges. */
#include "worker/telemetry_settings.h"

#include <assert.h>

static void check(enum telemetry_api api, struct span body)
{
    struct telemetry_settings settings;
    char fault[TELEMETRY_FAULT_BYTES];

    if (telemetry_settings_parse(api, body, &settings, fault) != 0) {
        assert(fault[0] && strlen(fault) < TELEMETRY_FAULT_BYTES);
        return;
    }
    assert(settings.types && settings.port && settings.port != 9001);
    assert(settings.max_items >= 1000 && settings.max_items <= 10000);
    assert(settings.max_bytes >= 262144 && settings.max_bytes <= 1048576);
    assert(settings.timeout_ms >= 25 && settings.timeout_ms <= 30000);
    assert(settings.protocol == TELEMETRY_TCP || settings.path[0] == '/');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span body = span_of((const char *)data, size);

    check(TELEMETRY_API, body);
    check(LOGS_API, body);
    return 0;
}
