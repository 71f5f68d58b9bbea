#include "base/test.h"

#include "sim/plan.h"
#include "sim/simulation.h"

#include <stdio.h>
#include <string.h>

struct planned {
    struct scenario *scenario;
    struct plan *plan;
};

static struct planned planned(const char *text, double fraction)
{
    struct plan_options options = {.seed = 1, .fraction = fraction};
    struct planned planned = {0};
    struct fault fault = {0};

    if (scenario_parse(span_from(text), NULL, &planned.scenario, &fault) < 0 ||
        plan_make(planned.scenario, &options, &planned.plan, &fault) < 0)
        fail_msg("%s", fault.text);
    return planned;
}

static void end(struct planned *planned)
{
    plan_free(planned->plan);
    scenario_free(planned->scenario);
}

/* Throttles and cold starts of function "f" in a scenario of which two counts are still to be filled in. */
static void simulate(const char *format, int reserved, int provisioned, int64_t *ret_throttled, int64_t *ret_cold)
{
    struct simulation_options options = {.seed = 1};
    struct scenario *scenario = NULL;
    struct report *report = NULL;
    struct fault fault = {0};
    char text[2048];

    snprintf(text, sizeof(text), format, reserved, provisioned);
    if (scenario_parse(span_from(text), NULL, &scenario, &fault) < 0 ||
        simulation_run(scenario, &options, &report, &fault) < 0)
        fail_msg("%s", fault.text);
    *ret_throttled = report_throttled(&report->functions[0].total);
    *ret_cold = report->functions[0].total.cold_starts;
    report_free(report);
    scenario_free(scenario);
}

static const char STEADY[] =
    "{\"account\": {\"concurrency\": 200}, \"duration_s\": 60, \"functions\": [{\"name\": \"f\", \"reserved\": 3, "
    "\"versions\": [{\"version\": 1, \"duration_ms\": 500, \"init_ms\": 900}]}, {\"name\": \"unused\"}],"
    " \"traffic\": [{\"function\": \"f\", \"qualifier\": 1, \"rps\": 100}],"
    " \"events\": [{\"at_s\": 3, \"function\": \"f\", \"reserved\": 0}, {\"at_s\": 4, \"concurrency\": 100},"
    "  {\"at_s\": 5, \"function\": \"f\", \"qualifier\": 1, \"provisioned\": 1}]}";

static void test_steady_traffic_needs_what_the_rule_says(void **state)
{
    struct planned p = planned(STEADY, 1);

    (void)state;
    assert_int_equal(p.plan->function_count, 1);
    assert_int_equal(p.plan->functions[0].qualifiers[0].provisioned, 50); /* 100/s x 0.5 s */
    assert_int_equal(p.plan->functions[0].reserved, 50);
    assert_true(p.plan->functions[0].rule > 49.99 && p.plan->functions[0].rule < 50.01);
    assert_true(p.plan->functions[0].qualifiers[0].rule == p.plan->functions[0].rule);
    assert_int_equal(p.plan->functions[0].invocations, 6000);
    assert_int_equal(p.plan->functions[0].cold_starts, 0);
    assert_int_equal(p.plan->functions[0].throttled, 0);
    assert_int_equal(p.plan->needed, 150);
    end(&p);
}

/* One less of either does not suffice, in the scenario itself. */
static void test_what_is_found_is_the_smallest(void **state)
{
    static const char FORMAT[] =
        "{\"duration_s\": 120, \"functions\": [{\"name\": \"f\", \"reserved\": %d, \"versions\": [{\"version\": 1, "
        "\"duration_ms\": {\"distribution\": \"lognormal\", \"p50\": 200, \"p99\": 900}, \"init_ms\": 500}], "
        "\"aliases\": [{\"name\": \"prod\", \"version\": 1}], \"provisioned\": [{\"qualifier\": \"prod\", \"count\": "
        "%d}]}], \"traffic\": [{\"function\": \"f\", \"qualifier\": \"prod\", \"rps\": 40, \"arrivals\": "
        "\"poisson\"}]}";
    char text[2048];
    struct planned p;
    int reserved, provisioned;
    int64_t throttled, cold;

    (void)state;
    snprintf(text, sizeof(text), FORMAT, 5, 5);
    p = planned(text, 1);
    reserved = p.plan->functions[0].reserved;
    provisioned = p.plan->functions[0].qualifiers[0].provisioned;
    assert_true(provisioned > p.plan->functions[0].rule);
    /* One request found none idle, and got one that came free before its own was ready. */
    assert_int_equal(reserved, provisioned + 1);
    simulate(FORMAT, reserved, provisioned, &throttled, &cold);
    assert_int_equal(throttled, 0);
    assert_int_equal(cold, 0);
    simulate(FORMAT, reserved, provisioned - 1, &throttled, &cold);
    assert_true(cold > 0);
    simulate(FORMAT, reserved - 1, provisioned, &throttled, &cold);
    assert_true(throttled > 0);
    end(&p);
}

static void test_a_burst_needs_more_than_the_rule_says(void **state)
{
    /* 20 at once every ten seconds are 2/s x 0.1 s = 0.2 on average. */
    struct planned p = planned(
        "{\"duration_s\": 60, \"functions\": [{\"name\": \"f\", \"versions\": [{\"version\": 1, \"duration_ms\": "
        "100}], "
        "\"aliases\": [{\"name\": \"prod\", \"version\": 1}]}], \"traffic\": [{\"function\": \"f\", \"qualifier\": "
        "\"prod\", \"at_s\": [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1, 11,11,11,11,11,11,11,11,11,11]}]}",
        1);

    (void)state;
    assert_int_equal(p.plan->functions[0].qualifiers[0].provisioned, 20);
    assert_int_equal(p.plan->functions[0].reserved, 20);
    assert_true(p.plan->functions[0].rule < 1);
    end(&p);
}

/* 500/s of 10 ms are 5 at a time, but a unit is good for 10 requests a second. */
static void test_short_requests_need_a_tenth_of_their_rate(void **state)
{
    struct planned p = planned("{\"duration_s\": 20, \"functions\": [{\"name\": \"f\", \"versions\": [{\"version\": 1, "
                               "\"duration_ms\": 10, \"init_ms\": 100}]}], \"traffic\": [{\"function\": \"f\", "
                               "\"qualifier\": 1, \"rps\": 500}]}",
                               1);

    (void)state;
    assert_int_equal(p.plan->functions[0].qualifiers[0].provisioned, 50);
    assert_int_equal(p.plan->functions[0].reserved, 50);
    assert_int_equal(p.plan->functions[0].cold_starts, 0);
    assert_int_equal(p.plan->functions[0].throttled, 0);
    assert_true(p.plan->functions[0].rule < 5.01);
    end(&p);
}

static void test_a_lower_percentile_needs_less(void **state)
{
    struct planned all = planned(STEADY, 1), most = planned(STEADY, 0.995), half = planned(STEADY, 0.5);

    (void)state;
    /* Of 6,000 requests 30 may be cold, and each of the 50 environments that are not provisioned is cold once, while
     * its Init keeps 900 ms of requests waiting. */
    assert_in_range(most.plan->functions[0].qualifiers[0].provisioned, 20, 49);
    assert_in_range(most.plan->functions[0].cold_starts, 1, 30);
    assert_in_range(most.plan->functions[0].throttled, 1, 30);
    assert_true(most.plan->functions[0].reserved <= all.plan->functions[0].reserved);
    assert_int_equal(half.plan->functions[0].qualifiers[0].provisioned, 0);
    assert_int_equal(half.plan->functions[0].reserved, 26); /* half of 50, and one for the time of Init */
    end(&all);
    end(&most);
    end(&half);
}

static void test_latest_gets_a_reservation_only(void **state)
{
    struct planned p = planned("{\"duration_s\": 10, \"functions\": [{\"name\": \"f\", \"duration_ms\": 1000}], "
                               "\"traffic\": [{\"function\": \"f\", \"concurrency\": 30}]}",
                               1);

    (void)state;
    assert_int_equal(p.plan->functions[0].qualifiers[0].provisioned, -1);
    assert_int_equal(p.plan->functions[0].reserved, 30);
    assert_int_equal(p.plan->functions[0].cold_starts, 30);
    end(&p);
}

static void test_throttles_that_no_reservation_prevents_are_told_apart(void **state)
{
    struct planned p = planned("{\"duration_s\": 3, \"account\": {\"scaling_rate\": 10}, \"functions\": [{\"name\": "
                               "\"f\", \"duration_ms\": 1000}], \"traffic\": [{\"function\": \"f\", "
                               "\"at_s\": [0,0,0,0,0,0,0,0,0,0,0,0,0,0]}]}",
                               1);

    (void)state;
    assert_int_equal(p.plan->functions[0].reserved, 14);
    assert_int_equal(p.plan->functions[0].throttled, 4);
    assert_int_equal(p.plan->functions[0].paced, 4);
    end(&p);
}

static void test_cold_starts_that_no_provisioning_prevents_do_not_drive_it_up(void **state)
{
    /* Those of $LATEST, which is busy at another time than version 1: PC of the one is of no use to the other. */
    struct planned p = planned("{\"duration_s\": 20, \"functions\": [{\"name\": \"f\", \"versions\": [{\"version\": 1, "
                               "\"duration_ms\": 1000, \"init_ms\": 1000}]}], \"traffic\": [{\"function\": \"f\", "
                               "\"qualifier\": 1, \"rps\": 10, \"to_s\": 8}, {\"function\": \"f\", \"concurrency\": 5, "
                               "\"from_s\": 12}]}",
                               1);

    (void)state;
    assert_int_equal(p.plan->functions[0].qualifier_count, 2);
    assert_int_equal(p.plan->functions[0].qualifiers[0].provisioned, 10);
    assert_int_equal(p.plan->functions[0].qualifiers[1].provisioned, -1);
    assert_int_equal(p.plan->functions[0].cold_starts, 5);
    assert_int_equal(p.plan->functions[0].throttled, 0);
    assert_int_equal(p.plan->functions[0].reserved, 15);
    end(&p);
}

/* The service takes PC for the alias or for its version, not for both; that of the alias serves either's requests. */
static void test_a_version_behind_a_called_alias_gets_no_provisioning_of_its_own(void **state)
{
    struct planned p =
        planned("{\"duration_s\": 20, \"functions\": [{\"name\": \"f\", \"versions\": [{\"version\": 1, "
                "\"duration_ms\": 1000, \"init_ms\": 1000}, {\"version\": 2, \"duration_ms\": 500, "
                "\"init_ms\": 10}], \"aliases\": [{\"name\": \"prod\", \"version\": 1}]}], \"traffic\": ["
                "{\"function\": \"f\", \"qualifier\": 1, \"rps\": 4}, "
                "{\"function\": \"f\", \"qualifier\": 2, \"rps\": 6}, "
                "{\"function\": \"f\", \"qualifier\": \"prod\", \"rps\": 10}]}",
                1);
    const struct plan_function *f = &p.plan->functions[0];

    (void)state;
    assert_int_equal(f->qualifier_count, 3);
    assert_int_equal(f->qualifiers[0].qualifier.alias, 0);
    assert_int_equal(f->qualifiers[0].provisioned, 14); /* 10 + 4 */
    assert_true(f->qualifiers[0].rule > 9.4 && f->qualifiers[0].rule < 10.1);
    assert_int_equal(f->qualifiers[1].provisioned, -1);
    assert_int_equal(f->qualifiers[2].provisioned, 3);
    assert_int_equal(f->cold_starts, 0);
    assert_int_equal(f->throttled, 0);
    assert_int_equal(f->reserved, 14 + 3 + 4); /* version 1's requests take units of the rest, though on warm ones */
    end(&p);
}

static void test_functions_do_not_stand_in_each_others_way(void **state)
{
    struct planned p = planned(
        "{\"account\": {\"concurrency\": 10}, \"duration_s\": 20, \"functions\": [{\"name\": \"f\", \"versions\": "
        "[{\"version\": 1, \"duration_ms\": 1000}]}, {\"name\": \"g\", \"versions\": [{\"version\": 1, "
        "\"duration_ms\": 2000}]}], \"traffic\": [{\"function\": \"f\", \"qualifier\": 1, \"rps\": 20}, {\"function\": "
        "\"g\", \"qualifier\": 1, \"rps\": 15}]}",
        1);

    (void)state;
    assert_int_equal(p.plan->function_count, 2);
    assert_int_equal(p.plan->functions[0].reserved, 20);
    assert_int_equal(p.plan->functions[1].reserved, 30);
    assert_int_equal(p.plan->functions[0].throttled + p.plan->functions[1].throttled, 0);
    assert_int_equal(p.plan->needed, 60);
    end(&p);
}

static void test_a_trace_is_planned_for_those_it_names(void **state)
{
    char path[] = "/tmp/kiln-plan-XXXXXX", text[1024];
    int fd = mkstemp(path);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    struct planned p;

    (void)state;
    assert_non_null(file);
    for (int i = 0; i < 4; i++)
        fputs("1,g,3000\n", file);
    assert_int_equal(fclose(file), 0);
    snprintf(text, sizeof(text),
             "{\"duration_s\": 9, \"traffic\": [{\"trace\": \"%s\", \"qualifier\": \"prod\"}, {\"function\": \"f\", "
             "\"qualifier\": 1, \"at_s\": 2}], \"functions\": ["
             "{\"name\": \"f\", \"versions\": [{\"version\": 1}], \"aliases\": [{\"name\": \"prod\", \"version\": 1}]},"
             "{\"name\": \"g\", \"versions\": [{\"version\": 1}], \"aliases\": [{\"name\": \"prod\", \"version\": "
             "1}]}]}",
             path);
    p = planned(text, 1);
    assert_int_equal(p.plan->function_count, 2);
    assert_int_equal(p.plan->functions[0].qualifier_count, 1);
    assert_int_equal(p.plan->functions[0].qualifiers[0].qualifier.version, 0);
    assert_int_equal(p.plan->functions[0].qualifiers[0].provisioned, 1);
    assert_int_equal(p.plan->functions[1].qualifier_count, 1);
    assert_int_equal(p.plan->functions[1].qualifiers[0].qualifier.alias, 0);
    assert_int_equal(p.plan->functions[1].qualifiers[0].provisioned, 4);
    end(&p);
    unlink(path);
}

static void test_a_scenario_without_traffic_has_no_plan(void **state)
{
    struct plan_options options = {.seed = 1, .fraction = 1};
    struct scenario *scenario;
    struct plan *plan;
    struct fault fault = {0};

    (void)state;
    assert_int_equal(
        scenario_parse(SPAN("{\"duration_s\": 9, \"functions\": [{\"name\": \"f\"}]}"), NULL, &scenario, &fault), 0);
    assert_int_equal(plan_make(scenario, &options, &plan, &fault), -EINVAL);
    assert_string_equal(fault.text, "there is no traffic to plan for");
    scenario_free(scenario);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steady_traffic_needs_what_the_rule_says),
        cmocka_unit_test(test_what_is_found_is_the_smallest),
        cmocka_unit_test(test_a_burst_needs_more_than_the_rule_says),
        cmocka_unit_test(test_short_requests_need_a_tenth_of_their_rate),
        cmocka_unit_test(test_a_lower_percentile_needs_less),
        cmocka_unit_test(test_latest_gets_a_reservation_only),
        cmocka_unit_test(test_throttles_that_no_reservation_prevents_are_told_apart),
        cmocka_unit_test(test_cold_starts_that_no_provisioning_prevents_do_not_drive_it_up),
        cmocka_unit_test(test_a_version_behind_a_called_alias_gets_no_provisioning_of_its_own),
        cmocka_unit_test(test_functions_do_not_stand_in_each_others_way),
        cmocka_unit_test(test_a_trace_is_planned_for_those_it_names),
        cmocka_unit_test(test_a_scenario_without_traffic_has_no_plan),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
