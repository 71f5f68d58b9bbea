#include "base/test.h"

#include "sim/scenario.h"

#include <stdio.h>
#include <string.h>

#define FUNCTIONS                                                                                 \
    "\"functions\": [{\"name\": \"f\", \"versions\": [{\"version\": 7}, {\"version\": \"8\"}],\n" \
    " \"aliases\": [{\"name\": \"prod\", \"version\": 7, \"weights\": {\"8\": 0.1}}]}]"

static void refused(const char *text, const char *expected)
{
    struct scenario *scenario;
    struct fault fault = {0};

    assert_int_equal(scenario_parse(span_from(text), NULL, &scenario, &fault), -EINVAL);
    assert_string_equal(fault.text, expected);
}

static struct scenario *accepted(const char *text)
{
    struct scenario *scenario;
    struct fault fault = {0};

    if (scenario_parse(span_from(text), NULL, &scenario, &fault) != 0)
        fail_msg("%s", fault.text);
    return scenario;
}

static void test_what_is_not_json_is_placed(void **state)
{
    (void)state;
    refused("{\"duration_s\": 1,\n  oops}", "2:6: not JSON: string or '}' expected near 'oops'");
    refused("{\"seed\": 1, \"seed\": 2}", "1:18: not JSON: duplicate object key near '\"seed\"'");
    refused("[]", "1:1: must be an object");
}

static void test_errors_say_line_column_and_member(void **state)
{
    (void)state;
    refused("{\"duration_s\": 1}", "1:1: functions: is missing");
    refused("{\n  \"duration_s\": \"long\", " FUNCTIONS "}", "2:17: duration_s: must be a number");
    refused("{\"duration_s\": 1,\n \"functions\": [{\"name\": \"f\"},\n  {\"name\": \"g\", \"reserved\": -1}]}",
            "3:29: functions[1].reserved: must be from 0 to 100000000");
    refused("{\"duration_s\": 1, \"functions\": [{\"name\": \"\u00e4\u00e4\", \"colour\": 1}]}",
            "1:58: functions[0].colour: is not known here; known are: name reserved versions aliases provisioned "
            "scaling duration_ms init_ms");
    refused("{\"duration_s\": 1, " FUNCTIONS ",\n\"traffic\": [{\"function\": \"g\", \"rps\": 1}]}",
            "3:26: traffic[0].function: there is no function 'g'");
    refused("{\"duration_s\": 1, " FUNCTIONS ",\n\"traffic\": [{\"function\": \"f\"}]}",
            "3:13: traffic[0]: needs one of rps, concurrency, at_s and trace");
}

static void test_references_must_exist(void **state)
{
    (void)state;
    refused("{\"duration_s\": 1, \"functions\": [{\"name\": \"f\", \"aliases\": [{\"name\": \"a\", \"version\": 3}]}]}",
            "1:84: functions[0].aliases[0].version: function 'f' has no version '3'");
    refused("{\"duration_s\": 1, \"functions\": [{\"name\": \"f\", \"provisioned\": [{\"qualifier\": \"$LATEST\", "
            "\"count\": 1}]}]}",
            "1:77: functions[0].provisioned[0].qualifier: $LATEST cannot have provisioned concurrency");
    refused("{\"duration_s\": 1, " FUNCTIONS ", \"events\": [{\"at_s\": 0, \"function\": \"f\"}]}",
            "2:83: events[0]: changes nothing; it needs one of reserved, provisioned, weights, duration_ms, init_ms, "
            "rollout, rollback, kill_worker and concurrency");
    refused("{\"duration_s\": 1, " FUNCTIONS ", \"events\": [{\"at_s\": 0, \"kill_worker\": 1}]}",
            "2:110: events[0].kill_worker: must be from 0 to 0");
}

static void test_schedules_and_zones_are_checked(void **state)
{
    (void)state;
    refused("{\"duration_s\": 1, \"functions\": [{\"name\": \"f\", \"versions\": [{\"version\": 1}],\n\"scaling\": "
            "{\"qualifier\": 1, \"schedules\": [{\"schedule\": \"noon\", \"min\": 1}]}}]}",
            "2:56: functions[0].scaling.schedules[0].schedule: 'noon' is not at(...), rate(...) or cron(...)");
    refused("{\"duration_s\": 1, \"functions\": [{\"name\": \"f\", \"versions\": [{\"version\": 1}],\n\"scaling\": "
            "{\"qualifier\": 1, \"schedules\": [{\"schedule\": \"rate(1 day)\", \"min\": 1,\n\"timezone\": "
            "\"Atlantis/X\"}]}}]}",
            "3:13: functions[0].scaling.schedules[0].timezone: there is no time zone 'Atlantis/X' in "
            "/usr/share/zoneinfo");
}

static void test_everything_is_read(void **state)
{
    struct scenario *scenario =
        accepted("{\"account\": {\"concurrency\": 50}, \"duration_s\": 2.5, \"seed\": 9, \"assignment\": \"strict\", "
                 "\"zones\": 3, \"workers\": 6, \"start\": \"1970-01-02T00:00:00Z\", " FUNCTIONS ",\n"
                 "\"traffic\": [{\"function\": \"f\", \"qualifier\": \"prod\", \"at_s\": [2, 1]},"
                 " {\"function\": \"f\", \"qualifier\": 8, \"rps\": 5, \"arrivals\": \"poisson\", \"from_s\": 1}],"
                 "\"events\": [{\"at_s\": 1, \"function\": \"f\", \"reserved\": null},"
                 " {\"at_s\": 1, \"function\": \"f\", \"provisioned\": {\"qualifier\": \"prod\", \"count\": 5}},"
                 " {\"at_s\": 1, \"function\": \"f\", \"qualifier\": \"prod\", \"provisioned\": 5}],"
                 "\"retry\": {\"attempts\": 5, \"jitter\": \"none\"}}");

    (void)state;
    assert_int_equal(scenario->limits.concurrency, 50);
    assert_int_equal(scenario->limits.unreserved_minimum, 50); /* the default, but not above the limit */
    assert_int_equal(scenario->limits.mode, ASSIGNMENT_STRICT);
    assert_int_equal(scenario->duration_ns, 2500 * NS_PER_MS);
    assert_int_equal(scenario->start_s, 86400);
    assert_int_equal(scenario->seed, 9);
    assert_int_equal(scenario->worker_count, 6);
    assert_int_equal(scenario->workers[4].zone, 1);
    assert_int_equal(scenario->functions[0].version_count, 3); /* and $LATEST */
    assert_int_equal(scenario->functions[0].aliases[0].routing.second, 1);
    assert_int_equal(scenario->traffic[0].times_ns[0], NS_PER_S);
    assert_int_equal(scenario->traffic[0].qualifier.alias, 0);
    assert_int_equal(scenario->traffic[1].kind, TRAFFIC_POISSON);
    assert_int_equal(scenario->traffic[1].to_ns, scenario->duration_ns);
    assert_int_equal(scenario->events[0].what, EVENT_RESERVED);
    assert_int_equal(scenario->events[0].count, -1);
    assert_int_equal(scenario->events[1].count, 5);
    assert_int_equal(scenario->events[2].qualifier.alias, scenario->events[1].qualifier.alias);
    assert_int_equal(scenario->retry.attempts, 5);
    assert_false(scenario->retry.jitter);
    scenario_free(scenario);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void test_traces_are_checked_before_the_start(void **state)
{
    char path[] = "/tmp/kiln-trace-XXXXXX", text[512], expected[512];
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    snprintf(text, sizeof(text), "{\"duration_s\": 9, \"traffic\": [{\"trace\": \"%s\"}], " FUNCTIONS "}", path + 5);
    write_file(path, "seconds,function,duration_ms\n0.5,f,10\n1,f,\n\n# a note\n1,f\n");
    struct scenario *scenario;
    struct fault fault = {0};
    assert_int_equal(scenario_parse(span_from(text), "/tmp", &scenario, &fault), 0);
    scenario_free(scenario);
    write_file(path, "1,f,10\n0.5,f,10\n");
    assert_int_equal(scenario_parse(span_from(text), "/tmp", &scenario, &fault), -EINVAL);
    snprintf(expected, sizeof(expected),
             "1:41: traffic[0].trace: %s: line 2: is earlier than the line before; the file must be in order of time",
             path);
    assert_string_equal(fault.text, expected);
    write_file(path, "1,nobody,10\n");
    assert_int_equal(scenario_parse(span_from(text), "/tmp", &scenario, &fault), -EINVAL);
    assert_non_null(strstr(fault.text, "line 1: there is no function 'nobody'"));
    write_file(path, "1,f,-3\n");
    assert_int_equal(scenario_parse(span_from(text), "/tmp", &scenario, &fault), -EINVAL);
    assert_non_null(strstr(fault.text, "line 1: '-3' is not a duration in milliseconds"));
    unlink(path);
}

static void test_a_missing_file_is_named(void **state)
{
    struct scenario *scenario;
    struct fault fault = {0};

    (void)state;
    assert_int_equal(scenario_load("/nonexistent.json", &scenario, &fault), -ENOENT);
    assert_string_equal(fault.text, "/nonexistent.json: No such file or directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_not_json_is_placed), cmocka_unit_test(test_errors_say_line_column_and_member),
        cmocka_unit_test(test_references_must_exist),      cmocka_unit_test(test_schedules_and_zones_are_checked),
        cmocka_unit_test(test_everything_is_read),         cmocka_unit_test(test_traces_are_checked_before_the_start),
        cmocka_unit_test(test_a_missing_file_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
