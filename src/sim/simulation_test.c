#include "base/test.h"

#include "sim/output.h"
#include "sim/simulation.h"

#include <stdio.h>
#include <string.h>

struct run {
    struct scenario *scenario;
    struct report *report;
};

static struct run run_text(const char *text, uint64_t seed)
{
    struct simulation_options options = {.seed = seed};
    struct run run = {0};
    struct fault fault = {0};

    if (scenario_parse(span_from(text), NULL, &run.scenario, &fault) < 0 ||
        simulation_run(run.scenario, &options, &run.report, &fault) < 0)
        fail_msg("%s", fault.text);
    return run;
}

static void end(struct run *run)
{
    run->report = report_free(run->report);
    run->scenario = scenario_free(run->scenario);
}

static const char RANDOM_SCENARIO[] =
    "{\"account\": {\"concurrency\": 30, \"unreserved_minimum\": 5}, \"duration_s\": 30, \"zones\": 2, \"workers\": 4,"
    " \"functions\": [{\"name\": \"f\", \"reserved\": 12, \"versions\": ["
    "   {\"version\": 1, \"duration_ms\": {\"distribution\": \"lognormal\", \"p50\": 80, \"p99\": 900}, "
    "    \"init_ms\": [200, 300, 800]}, {\"version\": 2, \"duration_ms\": 50, \"init_ms\": 100}],"
    "   \"aliases\": [{\"name\": \"prod\", \"version\": 1, \"weights\": {\"2\": 0.3}}],"
    "   \"provisioned\": [{\"qualifier\": \"prod\", \"count\": 6}]},"
    "  {\"name\": \"g\", \"duration_ms\": {\"distribution\": \"normal\", \"mean\": 100, \"sd\": 30}}],"
    " \"traffic\": [{\"function\": \"f\", \"qualifier\": \"prod\", \"rps\": 100, \"arrivals\": \"poisson\"},"
    "  {\"function\": \"g\", \"rps\": 120, \"arrivals\": \"poisson\"}, {\"function\": \"g\", \"concurrency\": 8}],"
    " \"events\": [{\"at_s\": 5, \"function\": \"f\", \"reserved\": 8}, {\"at_s\": 8, \"kill_worker\": 2},"
    "  {\"at_s\": 10, \"function\": \"f\", \"qualifier\": \"prod\", \"provisioned\": 3},"
    "  {\"at_s\": 12, \"function\": \"f\", \"alias\": \"prod\", \"weights\": {}},"
    "  {\"at_s\": 15, \"function\": \"f\", \"qualifier\": \"prod\", \"provisioned\": 0},"
    "  {\"at_s\": 16, \"function\": \"f\", \"reserved\": null}, {\"at_s\": 18, \"concurrency\": 20},"
    "  {\"at_s\": 20, \"function\": \"f\", \"alias\": \"prod\", \"rollout\": {\"version\": 2, \"type\": \"linear\", "
    "    \"percentage\": 25, \"interval_s\": 2}}, {\"at_s\": 23, \"function\": \"f\", \"alias\": \"prod\", "
    "    \"rollback\": true}],"
    " \"retry\": {\"attempts\": 4, \"base_ms\": 50, \"jitter\": \"full\"}}";

static char *json_of(const struct run *run)
{
    struct output output = {.format = OUTPUT_JSON, .scenario = run->scenario};
    size_t length;
    char *text;

    output.file = open_memstream(&text, &length);
    assert_non_null(output.file);
    assert_int_equal(output_report(&output, run->report), 0);
    fclose(output.file);
    return text;
}

static void test_the_same_seed_gives_the_same_result_and_another_does_not(void **state)
{
    struct run a = run_text(RANDOM_SCENARIO, 5), b = run_text(RANDOM_SCENARIO, 5), c = run_text(RANDOM_SCENARIO, 6);
    char *text_a = json_of(&a), *text_b = json_of(&b), *text_c = json_of(&c);

    (void)state;
    assert_string_equal(text_a, text_b);
    assert_string_not_equal(text_a, text_c);
    free(text_a);
    free(text_b);
    free(text_c);
    end(&a);
    end(&b);
    end(&c);
}

static void test_every_request_is_accounted_for(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct run run = run_text(RANDOM_SCENARIO, seed);
        int64_t ended = 0, gave_up = 0, attempts = 0, outcomes = 0;
        for (size_t i = 0; i < run.scenario->function_count; i++) {
            const struct report_function *function = &run.report->functions[i];
            ended += function->total.ended;
            gave_up += function->gave_up;
            attempts += function->retries;
            outcomes += function->total.invocations + report_throttled(&function->total);
            /* Each admitted one was served, or its environment died with it. */
            assert_in_range(function->total.invocations, function->total.ended,
                            function->total.ended + function->total.errors);
        }
        attempts += run.report->requests;
        assert_int_equal(ended + gave_up, run.report->requests);
        assert_in_range(outcomes, attempts - 20, attempts); /* what the retries never got to do at the end */
        end(&run);
    }
}

static void test_what_is_in_flight_at_the_end_is_followed(void **state)
{
    struct run run = run_text("{\"duration_s\": 1, \"functions\": [{\"name\": \"f\", \"duration_ms\": 5000, "
                              "\"init_ms\": 3000}], \"traffic\": [{\"function\": \"f\", \"at_s\": [0, 0.5, 2]}]}",
                              1);
    const struct report_function *f = &run.report->functions[0];

    (void)state;
    assert_int_equal(run.report->requests, 2); /* the third would come after the end */
    assert_int_equal(f->total.invocations, 2);
    assert_int_equal(f->total.cold_starts, 2);
    assert_int_equal(histogram_percentile(&f->latency, 0.5), 8 * NS_PER_S);
    assert_true(report_mean_concurrency(run.report, f) == 1.5);
    end(&run);
}

static void test_retries_wait_and_end(void **state)
{
    /* One at a time, 1 s each. The second request meets it at 0, 0.2 and 0.6 s and then has no attempt left. */
    struct run run =
        run_text("{\"duration_s\": 5, \"account\": {\"concurrency\": 1}, \"functions\": [{\"name\": \"f\", "
                 "\"duration_ms\": 1000}], \"traffic\": [{\"function\": \"f\", \"at_s\": [0, 0]}],"
                 " \"retry\": {\"attempts\": 3, \"base_ms\": 200, \"jitter\": \"none\"}}",
                 1);

    (void)state;
    assert_int_equal(run.report->request_count, 4);
    for (int i = 0; i < 3; i++) {
        static const int64_t expected_ms[] = {0, 200, 600};
        assert_int_equal(run.report->requests_seen[i].attempt, i);
        assert_int_equal(run.report->requests_seen[i].arrived_ns, expected_ms[i] * NS_PER_MS);
        assert_int_equal(run.report->requests_seen[i].verdict, REPORT_THROTTLED);
    }
    assert_int_equal(run.report->functions[0].retries, 2);
    assert_int_equal(run.report->functions[0].gave_up, 1);
    end(&run);
}

static void test_jitter_is_a_random_part_of_the_wait(void **state)
{
    /* RC 0: every attempt of 300 requests is throttled; waits of at most 100, 200, 250 ms. */
    struct run run = run_text("{\"duration_s\": 60, \"functions\": [{\"name\": \"f\", \"reserved\": 0}], "
                              "\"traffic\": [{\"function\": \"f\", \"rps\": 5, \"to_s\": 50}],"
                              " \"retry\": {\"attempts\": 4, \"base_ms\": 100, \"cap_ms\": 250}}",
                              1);
    static const int64_t longest_ms[] = {100, 200, 250};
    int64_t last_ns[250] = {0}, sum_ns[3] = {0};
    size_t waits = 0;

    (void)state;
    assert_int_equal(run.report->requests, 250);
    assert_int_equal(run.report->functions[0].retries, 750);
    assert_int_equal(run.report->functions[0].gave_up, 250);
    for (size_t i = 0; i < run.report->request_count; i++) {
        const struct report_request *request = &run.report->requests_seen[i];
        if (request->attempt) {
            int64_t waited_ns = request->arrived_ns - last_ns[request->number];
            assert_in_range(waited_ns, 0, longest_ms[request->attempt - 1] * NS_PER_MS);
            sum_ns[request->attempt - 1] += waited_ns;
            waits++;
        }
        last_ns[request->number] = request->arrived_ns;
    }
    assert_int_equal(waits, 750);
    for (int i = 0; i < 3; i++) /* half of it on average; one standard deviation is 1.8% of the longest */
        assert_in_range(sum_ns[i] / 250, longest_ms[i] * NS_PER_MS * 41 / 100, longest_ms[i] * NS_PER_MS * 59 / 100);
    end(&run);
}

static void test_a_strict_request_waits_for_its_own_environment(void **state)
{
    /* The second request starts B with a long Init; A is free again long before. */
    static const char FORMAT[] =
        "{\"duration_s\": 9, \"assignment\": \"%s\", \"functions\": [{\"name\": \"f\", \"duration_ms\": 1000, "
        "\"init_ms\": 2000}], \"traffic\": [{\"function\": \"f\", \"at_s\": [0, 2.5]}]}";
    char text[512];
    struct run run;

    (void)state;
    snprintf(text, sizeof(text), FORMAT, "strict");
    run = run_text(text, 1);
    assert_int_equal(run.report->requests_seen[1].environment, 1);
    assert_int_equal(run.report->requests_seen[1].started_ns, 4500 * NS_PER_MS);
    end(&run);
    snprintf(text, sizeof(text), FORMAT, "shared");
    run = run_text(text, 1);
    assert_int_equal(run.report->requests_seen[1].environment, 0);
    assert_int_equal(run.report->requests_seen[1].started_ns, 3 * NS_PER_S);
    end(&run);
}

static void test_a_changed_duration_holds_from_then_on(void **state)
{
    struct run run = run_text("{\"duration_s\": 20, \"functions\": [{\"name\": \"f\", \"versions\": [{\"version\": 1, "
                              "\"duration_ms\": 100}]}], \"traffic\": [{\"function\": \"f\", \"qualifier\": 1, "
                              "\"at_s\": [1, 5, 6]}], \"events\": [{\"at_s\": 5, \"function\": \"f\", \"version\": 1, "
                              "\"duration_ms\": 2000, \"init_ms\": 300}]}",
                              1);
    const struct report_request *requests = run.report->requests_seen;

    (void)state;
    assert_int_equal(requests[0].ended_ns, 1100 * NS_PER_MS);
    assert_int_equal(requests[1].ended_ns, 7000 * NS_PER_MS);
    assert_int_equal(requests[2].started_ns, 6300 * NS_PER_MS); /* a second environment, with the new Init */
    assert_int_equal(requests[2].ended_ns, 8300 * NS_PER_MS);
    end(&run);
}

/* Requests of a second that ran on version 2, of 100. */
static int on_second_version(const struct run *run, int64_t second)
{
    int count = 0;

    for (size_t i = 0; i < run->report->request_count; i++) {
        const struct report_request *request = &run->report->requests_seen[i];
        if (request->arrived_ns >= second * NS_PER_S && request->arrived_ns < (second + 1) * NS_PER_S)
            count += !strcmp(run->scenario->functions[0].versions[request->version].name, "2");
    }
    return count;
}

static void test_a_rollout_shifts_step_by_step_and_can_be_rolled_back(void **state)
{
    static const char FORMAT[] =
        "{\"duration_s\": 8, \"functions\": [{\"name\": \"f\", \"duration_ms\": 1, \"versions\": [{\"version\": 1}, "
        "{\"version\": 2}], \"aliases\": [{\"name\": \"prod\", \"version\": 1}]}], \"traffic\": [{\"function\": \"f\", "
        "\"qualifier\": \"prod\", \"rps\": 100}], \"events\": [{\"at_s\": 1, \"function\": \"f\", \"alias\": \"prod\", "
        "\"rollout\": %s}%s]}";
    char text[1024];
    struct run run;

    (void)state;
    snprintf(text, sizeof(text), FORMAT,
             "{\"version\": 2, \"type\": \"linear\", \"percentage\": 40, \"interval_s\": 2}", "");
    run = run_text(text, 1);
    assert_int_equal(on_second_version(&run, 0), 0);
    assert_in_range(on_second_version(&run, 1), 15, 65); /* 40%, within five standard deviations */
    assert_in_range(on_second_version(&run, 3), 60, 99); /* 80% */
    assert_int_equal(on_second_version(&run, 5), 100);
    end(&run);
    snprintf(text, sizeof(text), FORMAT,
             "{\"version\": 2, \"type\": \"canary\", \"percentage\": 50, \"interval_s\": 5}",
             ", {\"at_s\": 3, \"function\": \"f\", \"alias\": \"prod\", \"rollback\": true}");
    run = run_text(text, 1);
    assert_in_range(on_second_version(&run, 2), 25, 75);
    assert_int_equal(on_second_version(&run, 3), 0);
    assert_int_equal(on_second_version(&run, 7), 0);
    end(&run);
    snprintf(text, sizeof(text), FORMAT, "{\"version\": 2, \"type\": \"all-at-once\"}", "");
    run = run_text(text, 1);
    assert_int_equal(on_second_version(&run, 0), 0);
    assert_int_equal(on_second_version(&run, 1), 100);
    end(&run);
}

static void test_environments_are_spread_over_zones_and_a_worker_dies_by_name(void **state)
{
    /* Three zones, the third with two workers: nine environments are three in each zone; "c2" holds one or two. */
    struct run run = run_text("{\"duration_s\": 5, \"workers\": [{\"name\": \"a\", \"zone\": 0}, {\"name\": \"b\", "
                              "\"zone\": 1}, {\"name\": \"c1\", \"zone\": 2}, {\"name\": \"c2\", \"zone\": 2}], "
                              "\"zones\": 3, \"functions\": [{\"name\": \"f\", \"duration_ms\": 4000}], \"traffic\": "
                              "[{\"function\": \"f\", \"at_s\": [0,0,0,0,0,0,0,0,0]}], "
                              "\"events\": [{\"at_s\": 1, \"kill_worker\": \"b\"}, {\"at_s\": 2, \"kill_worker\": "
                              "\"c2\"}]}",
                              1);

    (void)state;
    assert_int_equal(report_point_between(run.report, 0, 0, 1900 * NS_PER_MS).environments, 6);
    assert_in_range(run.report->functions[0].environments_killed, 4, 5);
    assert_int_equal(run.report->functions[0].total.errors, run.report->functions[0].environments_killed);
    end(&run);
}

static void test_a_worker_that_dies_takes_its_requests_along(void **state)
{
    struct run run = run_text("{\"duration_s\": 10, \"zones\": 2, \"workers\": 2, \"functions\": [{\"name\": \"f\", "
                              "\"versions\": [{\"version\": 1, \"duration_ms\": 4000}], "
                              "\"provisioned\": [{\"qualifier\": 1, \"count\": 4}]}],"
                              " \"traffic\": [{\"function\": \"f\", \"qualifier\": 1, \"at_s\": [1, 1, 1, 1]}],"
                              " \"events\": [{\"at_s\": 2, \"kill_worker\": 0}]}",
                              1);
    const struct report_function *f = &run.report->functions[0];
    struct report_point after = report_point_between(run.report, 0, 3 * NS_PER_S, 4 * NS_PER_S);

    (void)state;
    assert_int_equal(f->total.errors, 2);
    assert_int_equal(f->total.ended, 2);
    assert_int_equal(f->environments_killed, 2);
    assert_int_equal(after.provisioned_ready, 4); /* replaced on the other worker */
    end(&run);
}

static void test_a_full_machine_fails_requests(void **state)
{
    struct run run =
        run_text("{\"duration_s\": 5, \"workers\": [{\"environments\": 2}], \"functions\": [{\"name\": "
                 "\"f\", \"duration_ms\": 1000}], \"traffic\": [{\"function\": \"f\", \"at_s\": [0, 0, 0]}]}",
                 1);

    (void)state;
    assert_int_equal(run.report->functions[0].total.invocations, 2);
    assert_int_equal(run.report->functions[0].total.errors, 1);
    assert_int_equal(report_throttled(&run.report->functions[0].total), 0);
    end(&run);
}

static void test_target_tracking_follows_the_load(void **state)
{
    /* 90 of 100 busy at a target of 0.6: after three minutes 150. */
    struct run run = run_text("{\"duration_s\": 600, \"functions\": [{\"name\": \"f\", \"versions\": [{\"version\": 1, "
                              "\"duration_ms\": 1000}], \"provisioned\": [{\"qualifier\": 1, \"count\": 100}], "
                              "\"scaling\": {\"qualifier\": 1, \"min\": 10, \"max\": 500, \"target\": 0.6, "
                              "\"statistic\": \"maximum\"}}],"
                              " \"traffic\": [{\"function\": \"f\", \"qualifier\": 1, \"concurrency\": 90}]}",
                              1);

    (void)state;
    assert_int_equal(report_point_between(run.report, 0, 0, 180 * NS_PER_S).provisioned_size, 100);
    assert_int_equal(report_point_between(run.report, 0, 0, 190 * NS_PER_S).provisioned_size, 150);
    assert_int_equal(report_point_between(run.report, 0, 0, 600 * NS_PER_S).provisioned_size, 150);
    end(&run);
}

static void test_what_the_limits_do_not_allow_is_refused(void **state)
{
    static const char text[] = "{\"duration_s\": 1, \"functions\": [{\"name\": \"f\", \"reserved\": 950}]}";
    struct simulation_options options = {.seed = 1};
    struct scenario *scenario;
    struct report *report;
    struct fault fault = {0};

    (void)state;
    assert_int_equal(scenario_parse(span_from(text), NULL, &scenario, &fault), 0);
    assert_int_equal(simulation_run(scenario, &options, &report, &fault), -EINVAL);
    assert_string_equal(fault.text, "functions[0].reserved: 950 is refused: it would leave less than the unreserved "
                                    "minimum of 100");
    scenario_free(scenario);
}

static void test_labels_count_like_columns(void **state)
{
    char label[REPORT_LABEL_BYTES];

    (void)state;
    assert_string_equal(report_label(0, label), "A");
    assert_string_equal(report_label(25, label), "Z");
    assert_string_equal(report_label(26, label), "AA");
    assert_string_equal(report_label(701, label), "ZZ");
    assert_string_equal(report_label(702, label), "AAA");
}

/* As PutProvisionedConcurrencyConfig refuses it; a version that no alias with PC points to may have its own. */
static void test_a_version_and_its_alias_are_not_both_provisioned(void **state)
{
    static const char text[] =
        "{\"duration_s\": 20, \"functions\": [{\"name\": \"f\", \"versions\": [{\"version\": 1}, {\"version\": 2}, "
        "{\"version\": 3}], \"aliases\": [{\"name\": \"prod\", \"version\": 1, \"weights\": {\"2\": 0.5}}, {\"name\": "
        "\"test\", \"version\": 1}], \"provisioned\": [{\"qualifier\": \"prod\", \"count\": 4}, {\"qualifier\": 3, "
        "\"count\": 4}%s]}], \"events\": [{\"at_s\": 1, \"function\": \"f\", \"qualifier\": 2, \"provisioned\": 5}, "
        "{\"at_s\": 2, \"function\": \"f\", \"qualifier\": \"test\", \"provisioned\": 6}, "
        "{\"at_s\": 3, \"function\": \"f\", \"qualifier\": \"prod\", \"provisioned\": 0}, "
        "{\"at_s\": 4, \"function\": \"f\", \"qualifier\": 2, \"provisioned\": 7}, "
        "{\"at_s\": 5, \"function\": \"f\", \"qualifier\": \"prod\", \"provisioned\": 8}]}";
    struct simulation_options options = {.seed = 1};
    struct scenario *scenario;
    struct report *report;
    struct fault fault = {0};
    char filled[2048];
    struct run run;

    (void)state;
    snprintf(filled, sizeof(filled), text, "");
    run = run_text(filled, 1);
    assert_string_equal(run.report->notes[0].text, "provisioned concurrency 5 of f:2 (event) is refused: an alias that "
                                                   "points to the version has provisioned concurrency already");
    assert_string_equal(run.report->notes[1].text, "provisioned concurrency of f:test set to 6 (event)");
    assert_string_equal(run.report->notes[run.report->note_count - 1].text,
                        "provisioned concurrency 8 of f:prod (event) is refused: a version of the alias has "
                        "provisioned concurrency already");
    end(&run);
    snprintf(filled, sizeof(filled), text, ", {\"qualifier\": 1, \"count\": 2}");
    assert_int_equal(scenario_parse(span_from(filled), NULL, &scenario, &fault), 0);
    assert_int_equal(simulation_run(scenario, &options, &report, &fault), -EINVAL);
    assert_string_equal(fault.text, "functions[0].provisioned[2].count: 2 is refused: an alias that points to the "
                                    "version has provisioned concurrency already");
    scenario_free(scenario);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_seed_gives_the_same_result_and_another_does_not),
        cmocka_unit_test(test_every_request_is_accounted_for),
        cmocka_unit_test(test_what_is_in_flight_at_the_end_is_followed),
        cmocka_unit_test(test_retries_wait_and_end),
        cmocka_unit_test(test_jitter_is_a_random_part_of_the_wait),
        cmocka_unit_test(test_a_strict_request_waits_for_its_own_environment),
        cmocka_unit_test(test_a_changed_duration_holds_from_then_on),
        cmocka_unit_test(test_a_rollout_shifts_step_by_step_and_can_be_rolled_back),
        cmocka_unit_test(test_environments_are_spread_over_zones_and_a_worker_dies_by_name),
        cmocka_unit_test(test_a_worker_that_dies_takes_its_requests_along),
        cmocka_unit_test(test_a_full_machine_fails_requests),
        cmocka_unit_test(test_target_tracking_follows_the_load),
        cmocka_unit_test(test_what_the_limits_do_not_allow_is_refused),
        cmocka_unit_test(test_a_version_and_its_alias_are_not_both_provisioned),
        cmocka_unit_test(test_labels_count_like_columns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
