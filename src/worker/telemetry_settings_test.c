#include "worker/telemetry_settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
/* cmocka.h needs setjmp.h, stdarg.h, stddef.h and stdint.h */
#include <cmocka.h>

#define HTTP_8080 "\"destination\":{\"protocol\":\"HTTP\",\"URI\":\"http://sandbox.localdomain:8080\"}"

static struct telemetry_settings parse(enum telemetry_api api, const char *body)
{
    struct telemetry_settings settings;
    char fault[TELEMETRY_FAULT_BYTES];

    if (telemetry_settings_parse(api, span_from(body), &settings, fault) != 0)
        fail_msg("refused: %s", fault);
    return settings;
}

static void assert_fault(enum telemetry_api api, const char *body, const char *expected)
{
    struct telemetry_settings settings;
    char fault[TELEMETRY_FAULT_BYTES];

    assert_int_equal(telemetry_settings_parse(api, span_from(body), &settings, fault), 1);
    assert_string_equal(fault, expected);
}

static void test_documented_request_is_understood(void **state)
{
    struct telemetry_settings settings =
        parse(TELEMETRY_API, "{\"schemaVersion\":\"2022-12-13\",\"types\":[\"platform\",\"function\",\"extension\"],"
                             "\"buffering\":{\"maxItems\":1000,\"maxBytes\":262144,\"timeoutMs\":100},"
                             "\"destination\":{\"protocol\":\"HTTP\",\"URI\":\"http://sandbox:4243/telemetry?x=1\"}}");

    (void)state;
    assert_int_equal(settings.api, TELEMETRY_API);
    assert_int_equal(settings.types, TELEMETRY_PLATFORM | TELEMETRY_FUNCTION | TELEMETRY_EXTENSION);
    assert_int_equal(settings.protocol, TELEMETRY_HTTP);
    assert_int_equal(settings.port, 4243);
    assert_string_equal(settings.host, "sandbox");
    assert_string_equal(settings.path, "/telemetry?x=1");
    assert_int_equal(settings.max_items, 1000);
    assert_int_equal(settings.max_bytes, 262144);
    assert_int_equal(settings.timeout_ms, 100);
}

static void test_defaults(void **state)
{
    struct telemetry_settings settings =
        parse(TELEMETRY_API, "{\"schemaVersion\":\"2022-07-01\",\"types\":[\"platform\"]," HTTP_8080 "}");

    (void)state;
    assert_int_equal(settings.api, TELEMETRY_API_OF_STRINGS);
    assert_int_equal(settings.types, TELEMETRY_PLATFORM);
    assert_string_equal(settings.path, "/");
    assert_int_equal(settings.max_items, 10000);
    assert_int_equal(settings.max_bytes, 262144);
    assert_int_equal(settings.timeout_ms, 1000);
}

static void test_tcp_by_port_or_uri(void **state)
{
    struct telemetry_settings settings =
        parse(LOGS_API, "{\"types\":[\"function\"],\"destination\":{\"protocol\":\"TCP\",\"port\":8080}}");

    (void)state;
    assert_int_equal(settings.protocol, TELEMETRY_TCP);
    assert_int_equal(settings.port, 8080);
    settings = parse(TELEMETRY_API, "{\"schemaVersion\":\"2025-01-29\",\"types\":[\"function\"],\"destination\":"
                                    "{\"protocol\":\"TCP\",\"URI\":\"tcp://sandbox.localdomain:9999\"}}");
    assert_int_equal(settings.port, 9999);
}

static void test_logs_api_may_ask_for_put(void **state)
{
    struct telemetry_settings settings =
        parse(LOGS_API, "{\"schemaVersion\":\"2020-08-15\",\"types\":[\"platform\"],\"destination\":{\"protocol\":"
                        "\"HTTP\",\"URI\":\"http://sandbox:1\",\"method\":\"PUT\",\"encoding\":\"JSON\"}}");

    (void)state;
    assert_true(settings.put);
}

static void test_all_faults_are_told_at_once(void **state)
{
    (void)state;
    assert_fault(TELEMETRY_API,
                 "{\"schemaVersion\":\"2022-12-13\",\"types\":[],\"destination\":{\"protocol\":\"HTTP\",\"URI\":"
                 "\"http://sandbox.localdomain\"}}",
                 "URI port is not provided; types should not be empty");
    assert_fault(TELEMETRY_API, "[]", "the body should be a JSON object");
    assert_fault(TELEMETRY_API, "", "the body should be a JSON object");
    assert_fault(TELEMETRY_API, "{}",
                 "schemaVersion should be a string; destination should be provided; types should not be empty");
    assert_fault(TELEMETRY_API, "{\"schemaVersion\":\"1999-01-01\",\"types\":[\"platform\",\"nope\"]," HTTP_8080 "}",
                 "schemaVersion 1999-01-01 is not supported; types has an invalid value nope");
}

static void test_destination_must_be_in_the_sandbox_and_free(void **state)
{
    static const struct {
        const char *destination, *fault;
    } cases[] = {
        {"{\"protocol\":\"HTTP\",\"URI\":\"http://sandbox:9001\"}", "port 9001 is reserved"},
        {"{\"protocol\":\"HTTP\",\"URI\":\"http://sandbox:0\"}", "port should be between 1 and 65535"},
        {"{\"protocol\":\"HTTP\",\"URI\":\"http://sandbox:65536\"}", "port should be between 1 and 65535"},
        {"{\"protocol\":\"HTTP\",\"URI\":\"http://sandbox:-1\"}", "port should be between 1 and 65535"},
        {"{\"protocol\":\"HTTP\",\"URI\":\"http://10.0.0.1:80\"}", "URI host should be sandbox.localdomain"},
        {"{\"protocol\":\"HTTP\",\"URI\":\"https://sandbox:80\"}", "URI scheme should be http"},
        {"{\"protocol\":\"HTTP\",\"URI\":\"http://sandbox:80/a\\r\\nb\"}", "URI path is not valid"},
        {"{\"protocol\":\"HTTP\"}", "URI is not provided"},
        {"{\"protocol\":\"TCP\"}", "port is not provided"},
        {"{\"protocol\":\"UDP\",\"URI\":\"http://sandbox:80\"}", "destination protocol should be HTTP or TCP"},
    };
    char body[512];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        snprintf(body, sizeof(body), "{\"schemaVersion\":\"2022-07-01\",\"types\":[\"platform\"],\"destination\":%s}",
                 cases[i].destination);
        assert_fault(TELEMETRY_API, body, cases[i].fault);
    }
}

static void test_buffering_keeps_to_its_ranges(void **state)
{
    static const struct {
        const char *buffering, *fault;
    } cases[] = {
        {"{\"maxItems\":999}", "maxItems should be between 1000 and 10000"},
        {"{\"maxItems\":10001}", "maxItems should be between 1000 and 10000"},
        {"{\"maxBytes\":262143}", "maxBytes should be between 262144 and 1048576"},
        {"{\"maxBytes\":1048577}", "maxBytes should be between 262144 and 1048576"},
        {"{\"timeoutMs\":24}", "timeoutMs should be between 25 and 30000"},
        {"{\"timeoutMs\":30001}", "timeoutMs should be between 25 and 30000"},
        {"{\"timeoutMs\":\"100\"}", "timeoutMs should be between 25 and 30000"},
        {"7", "buffering should be an object"},
    };
    char body[512];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        snprintf(body, sizeof(body),
                 "{\"schemaVersion\":\"2022-07-01\",\"types\":[\"platform\"],\"buffering\":%s," HTTP_8080 "}",
                 cases[i].buffering);
        assert_fault(TELEMETRY_API, body, cases[i].fault);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_documented_request_is_understood),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_tcp_by_port_or_uri),
        cmocka_unit_test(test_logs_api_may_ask_for_put),
        cmocka_unit_test(test_all_faults_are_told_at_once),
        cmocka_unit_test(test_destination_must_be_in_the_sandbox_and_free),
        cmocka_unit_test(test_buffering_keeps_to_its_ranges),
    };

    return cmocka_run_group_tests_name("telemetry_settings", tests, NULL, NULL);
}
