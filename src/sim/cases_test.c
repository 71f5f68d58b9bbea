/* The nine worked cases of the concurrency model as they are shipped, second by second where they give figures. */
#include "base/test.h"

#include "sim/simulation.h"

#include <stdio.h>
#include <string.h>

struct run {
    struct scenario *scenario;
    struct report *report;
};

static const char *directory; /* of the scenarios; set by main */

static struct run run_file(const char *name)
{
    struct run run = {0};
    struct fault fault = {0};
    char path[512];

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    if (scenario_load(path, &run.scenario, &fault) < 0)
        fail_msg("%s", fault.text);
    struct simulation_options options = {.seed = run.scenario->seed};
    if (simulation_run(run.scenario, &options, &run.report, &fault) < 0)
        fail_msg("%s", fault.text);
    return run;
}

static void end(struct run *run)
{
    run->report = report_free(run->report);
    run->scenario = scenario_free(run->scenario);
}

/* A function's figures from one second (inclusive) to another (exclusive). */
static struct report_point between(const struct run *run, const char *name, int64_t from_s, int64_t to_s)
{
    int function = scenario_find_function(run->scenario, span_from(name));

    assert_true(function >= 0);
    return report_point_between(run->report, function, from_s * NS_PER_S, to_s * NS_PER_S);
}

static const struct report_function *function_of(const struct run *run, const char *name)
{
    return &run->report->functions[scenario_find_function(run->scenario, span_from(name))];
}

static void test_case_1_ten_requests_on_six_environments(void **state)
{
    static const char environments[] = "ABCDEABCFD";
    struct run run = run_file("case-1-ten-requests.json");
    char label[REPORT_LABEL_BYTES];

    (void)state;
    assert_int_equal(run.report->request_count, 10);
    assert_int_equal(run.report->environment_count, 6);
    for (size_t i = 0; i < 10; i++) {
        const struct report_request *request = &run.report->requests_seen[i];
        report_label(request->environment, label);
        assert_int_equal(label[0], environments[request->number]);
        assert_int_equal(request->cold, request->number < 5 || request->number == 8);
        assert_int_equal(request->started_ns - request->arrived_ns, request->cold ? NS_PER_S : 0);
    }
    end(&run);
}

static void test_case_2_reservations_throttle_beside_unused_capacity(void **state)
{
    struct run run = run_file("case-2-reserved.json");

    (void)state;
    for (int second = 0; second < 30; second++) {
        struct report_point orange = between(&run, "orange", second, second + 1);
        struct report_point green = between(&run, "green", second, second + 1);
        struct report_point purple = between(&run, "purple", second, second + 1);
        struct report_account_point account =
            report_account_between(run.report, second * NS_PER_S, (second + 1) * NS_PER_S);
        assert_int_equal(orange.concurrency_max, second < 10 ? 250 : 400);
        assert_int_equal(orange.throttles[COUNTING_REASON_RESERVED_CONCURRENCY], second < 10 ? 0 : 50);
        assert_int_equal(report_throttled(&orange), second < 10 ? 0 : 50);
        /* 250 want the 200 that are left */
        assert_int_equal(account.unreserved_max, second < 20 ? 150 : 200);
        assert_int_equal(report_throttled(&green) + report_throttled(&purple), second < 20 ? 0 : 50);
        assert_int_equal(green.throttles[COUNTING_REASON_CONCURRENCY] + purple.throttles[COUNTING_REASON_CONCURRENCY],
                         second < 20 ? 0 : 50);
        assert_int_equal(account.claimed_max, second < 20 ? 950 : 1000);
    }
    assert_int_equal(function_of(&run, "blue")->total.invocations, 0);
    end(&run);
}

static void test_case_3_provisioned_then_on_demand_then_full(void **state)
{
    static const int wanted[] = {300, 600, 900, 1200};
    struct run run = run_file("case-3-provisioned.json");

    (void)state;
    for (int second = 0; second < 80; second++) {
        struct report_point orange = between(&run, "orange", second, second + 1);
        assert_int_equal(orange.concurrency_max, MIN(wanted[second / 20], 1000));
        assert_int_equal(orange.provisioned_max, MIN(wanted[second / 20], 400));
        assert_int_equal(orange.throttles[COUNTING_REASON_CONCURRENCY], second < 60 ? 0 : 200);
        assert_int_equal(orange.cold_starts, second == 20 ? 200 : second == 40 ? 300 : second == 60 ? 100 : 0);
    }
    assert_int_equal(function_of(&run, "orange")->total.cold_starts, 600);
    assert_int_equal(report_throttled(&function_of(&run, "orange")->total), 4000);
    end(&run);
}

static void test_case_4_provisioned_inside_a_reservation_stops_at_it(void **state)
{
    struct run run = run_file("case-4-provisioned-in-reserved.json");

    (void)state;
    for (int second = 0; second < 60; second++) {
        struct report_point orange = between(&run, "orange", second, second + 1);
        assert_int_equal(orange.concurrency_max, second < 20 ? 200 : 400);
        assert_int_equal(orange.provisioned_max, 200);
        assert_int_equal(orange.throttles[COUNTING_REASON_RESERVED_CONCURRENCY], second < 40 ? 0 : 1);
        assert_int_equal(report_throttled(&orange), second < 40 ? 0 : 1);
    }
    assert_int_equal(run.report->account.claimed_max, 400);
    assert_int_equal(run.report->account.concurrency_max, 400);
    end(&run);
}

static void test_case_5_half_of_the_requests_meet_the_rate(void **state)
{
    struct run run = run_file("case-5-request-rate.json");

    (void)state;
    for (int second = 0; second < 10; second++) {
        struct report_point point = between(&run, "f", second, second + 1);
        assert_int_equal(point.invocations, 10000);
        assert_int_equal(point.throttles[COUNTING_REASON_RATE], 10000);
        assert_int_equal(report_throttled(&point), 10000);
    }
    end(&run);
}

static void test_case_6_utilisation_and_executions_of_provisioned(void **state)
{
    struct run run = run_file("case-6-utilization.json");

    (void)state;
    for (int minute = 0; minute < 5; minute++) {
        struct report_point busy = between(&run, "busy", minute * 60, minute * 60 + 60);
        struct report_point slow = between(&run, "slow", minute * 60, minute * 60 + 60);
        assert_int_equal(busy.provisioned_max, 60);
        assert_true(busy.utilisation_max == 0.6);
        assert_int_equal(busy.spillover_invocations, 0);
        assert_int_equal(slow.provisioned_max, minute ? 2 : 1);
        assert_int_equal(slow.provisioned_invocations, 1);
    }
    end(&run);
}

static void test_case_7_a_step_to_five_thousand_is_paced_by_the_scaling_rate(void **state)
{
    struct run run = run_file("case-7-scaling-rate.json");

    (void)state;
    for (int second = 0; second < 50; second++) {
        struct report_point point = between(&run, "f", second, second + 1);
        int32_t running = MIN(1000 + 100 * second, 5000);
        assert_int_equal(point.concurrency_max, running);
        assert_int_equal(point.environments, running);
        assert_int_equal(point.cold_starts, second ? second <= 40 ? 100 : 0 : 1000);
        assert_int_equal(point.throttles[COUNTING_REASON_RATE], 5000 - running);
        assert_int_equal(report_throttled(&point), 5000 - running);
    }
    end(&run);
}

static void test_case_8_the_shops_friday(void **state)
{
    struct run run = run_file("case-8-friday.json");
    struct report_point calm, rush, peak, noon, after;

    (void)state;
    calm = between(&run, "shop", 0, 180);
    assert_int_equal(calm.concurrency_max, 300);
    assert_true(calm.utilisation_max == 0.75);
    assert_int_equal(calm.spillover_invocations, 0);
    assert_int_equal(calm.invocations, 180 * 2000);
    for (int second = 240; second < 420; second++) {
        rush = between(&run, "shop", second, second + 1);
        assert_int_equal(rush.concurrency_max, 675);
        assert_int_equal(rush.provisioned_max, 400);
        assert_int_equal(rush.invocations, 4500);
    }
    rush = between(&run, "shop", 0, 420);
    assert_int_equal(report_throttled(&rush), 0);
    /* 675 - 400, and a few more while the ramp's newest were in their Init */
    assert_in_range(rush.cold_starts, 275, 280);
    peak = between(&run, "shop", 421, 480);
    assert_int_equal(peak.concurrency_max, 800);
    assert_true(peak.throttles[COUNTING_REASON_RESERVED_CONCURRENCY] > 0);
    assert_int_equal(report_throttled(&peak), peak.throttles[COUNTING_REASON_RESERVED_CONCURRENCY]);
    noon = between(&run, "shop", 590, 600);
    assert_int_equal(noon.provisioned_ready, 400);
    after = between(&run, "shop", 602, 900);
    assert_int_equal(after.provisioned_ready, 50);
    assert_true(after.utilisation_max == 0.6);
    assert_int_equal(report_throttled(&after), 0);
    end(&run);
}

static void test_case_8_environments_get_their_shutdown_at_noon(void **state)
{
    struct run run = run_file("case-8-friday.json");
    int stopped = 0;

    (void)state;
    for (size_t i = 0; i < run.report->environment_count; i++) { /* the first are the provisioned ones */
        const struct report_environment *environment = &run.report->environments[i];
        assert_true(environment->provisioned);
        if (environment->stopped_ns == INT64_MAX)
            continue;
        stopped++;
        /* idle ones at once, busy ones after their 150 ms */
        assert_in_range(environment->stopped_ns, 600 * NS_PER_S, 600 * NS_PER_S + 150 * NS_PER_MS);
        assert_int_equal(environment->gone_ns - environment->stopped_ns, 500 * NS_PER_MS);
    }
    assert_true(stopped >= REPORT_LANES - 50);
    end(&run);
}

/* Provisioned environments of a version that were started (or stopped) within some seconds of a moment. */
static int count_environments(const struct run *run, const char *version, bool stopped, int64_t at_s)
{
    int index = scenario_find_version(&run->scenario->functions[0], version), count = 0;

    for (size_t i = 0; i < run->report->environment_count; i++) {
        const struct report_environment *environment = &run->report->environments[i];
        int64_t when_ns = stopped ? environment->stopped_ns : environment->started_ns;
        count += environment->provisioned && environment->version == index && when_ns >= at_s * NS_PER_S &&
                 when_ns < (at_s + 5) * NS_PER_S;
    }
    return count;
}

static void test_case_9_provisioned_follows_the_canary(void **state)
{
    struct run run = run_file("case-9-canary.json");
    const struct report_function *shop = function_of(&run, "shop");
    int old = scenario_find_version(shop->scenario, "7"), new = scenario_find_version(shop->scenario, "8");

    (void)state;
    assert_false(run.report->too_many_environments);
    assert_int_equal(count_environments(&run, "8", false, 60), 5);
    assert_int_equal(count_environments(&run, "7", true, 60), 5);
    assert_int_equal(count_environments(&run, "8", false, 660), 45);
    assert_int_equal(count_environments(&run, "7", true, 660), 45);
    assert_int_equal(shop->environments_made[CORE_PROVISIONED], 100);
    /* New before old: PC never serves with less than it has been. */
    for (int second = 1; second < 900; second++)
        assert_true(between(&run, "shop", second, second + 1).environments >= 50);
    assert_int_equal(shop->version_invocations[old] + shop->version_invocations[new], 180000);
    /* 10% of 600 s at 200/s, within five standard deviations; all of it in the last 240 s. */
    assert_in_range(shop->version_invocations[new], 12000 + 48000 - 520, 12000 + 48000 + 520);
    assert_int_equal(report_throttled(&shop->total), 0);
    end(&run);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_case_1_ten_requests_on_six_environments),
        cmocka_unit_test(test_case_2_reservations_throttle_beside_unused_capacity),
        cmocka_unit_test(test_case_3_provisioned_then_on_demand_then_full),
        cmocka_unit_test(test_case_4_provisioned_inside_a_reservation_stops_at_it),
        cmocka_unit_test(test_case_5_half_of_the_requests_meet_the_rate),
        cmocka_unit_test(test_case_6_utilisation_and_executions_of_provisioned),
        cmocka_unit_test(test_case_7_a_step_to_five_thousand_is_paced_by_the_scaling_rate),
        cmocka_unit_test(test_case_8_the_shops_friday),
        cmocka_unit_test(test_case_8_environments_get_their_shutdown_at_noon),
        cmocka_unit_test(test_case_9_provisioned_follows_the_canary),
    };

    if (argc != 2) {
        fputs("usage: cases_test DIRECTORY\n", stderr);
        return 2;
    }
    directory = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
