#include "base/test.h"

#include "core/schedule.h"

#include <string.h>

static int64_t utc(const char *text)
{
    int64_t s;

    assert_int_equal(schedule_parse_time(span_from(text), &s), 0);
    return s;
}

static struct schedule parsed(const char *text)
{
    struct schedule schedule;
    struct fault fault = {0};

    if (schedule_parse(span_from(text), &schedule, &fault) != 0)
        fail_msg("%s: %s", text, fault.text);
    return schedule;
}

static void refused(const char *text)
{
    struct schedule schedule;
    struct fault fault = {0};

    assert_int_equal(schedule_parse(span_from(text), &schedule, &fault), -EINVAL);
    assert_true(strlen(fault.text) > 0);
}

static void next_is(const char *text, const struct schedule_zone *zone, const char *after, const char *expected)
{
    struct schedule schedule = parsed(text);
    int64_t next = schedule_next(&schedule, zone, 0, utc(after));

    if (next != (expected ? utc(expected) : INT64_MAX))
        fail_msg("%s after %s is %lld, not %s", text, after, (long long)next, expected ? expected : "never");
}

/* Central European time in 2026: summer from 29 March 01:00 UTC to 25 October 01:00 UTC. */
static int32_t offset_in_berlin(int64_t utc_s, const void *context)
{
    (void)context;
    return utc_s >= utc("2026-03-29T01:00:00") && utc_s < utc("2026-10-25T01:00:00") ? 7200 : 3600;
}

static const struct schedule_zone BERLIN = {offset_in_berlin, NULL};

static void test_at_is_due_once(void **state)
{
    (void)state;
    next_is("at(2026-11-27T12:00:00)", &SCHEDULE_UTC, "2026-11-27T11:59:59", "2026-11-27T12:00:00");
    next_is("at(2026-11-27T12:00:00)", &SCHEDULE_UTC, "2026-11-27T12:00:00", NULL);
    next_is("at(2026-11-27T12:00:00)", &BERLIN, "2026-11-27T00:00:00", "2026-11-27T11:00:00");
}

static void test_rate_counts_from_its_start(void **state)
{
    struct schedule schedule = parsed("rate(5 minutes)");

    (void)state;
    assert_int_equal(schedule_next(&schedule, &SCHEDULE_UTC, 1000, 0), 1000);
    assert_int_equal(schedule_next(&schedule, &SCHEDULE_UTC, 1000, 1000), 1300);
    assert_int_equal(schedule_next(&schedule, &SCHEDULE_UTC, 1000, 1301), 1600);
    schedule = parsed("rate(1 day)");
    assert_int_equal(schedule_next(&schedule, &SCHEDULE_UTC, 0, 0), 86400);
}

static void test_cron_finds_the_next_time_of_day(void **state)
{
    (void)state;
    next_is("cron(0 12 * * ? *)", &SCHEDULE_UTC, "2026-11-27T11:50:00", "2026-11-27T12:00:00");
    next_is("cron(0 12 * * ? *)", &SCHEDULE_UTC, "2026-11-27T12:00:00", "2026-11-28T12:00:00");
    next_is("cron(15,45 8-10 * * ? *)", &SCHEDULE_UTC, "2026-11-27T08:15:00", "2026-11-27T08:45:00");
    next_is("cron(15,45 8-10 * * ? *)", &SCHEDULE_UTC, "2026-11-27T10:45:00", "2026-11-28T08:15:00");
    next_is("cron(0/20 * * * ? *)", &SCHEDULE_UTC, "2026-11-27T08:20:00", "2026-11-27T08:40:00");
    next_is("cron(30 0 12 * * ? *)", &SCHEDULE_UTC, "2026-11-27T00:00:00", "2026-11-27T12:00:00"); /* seven fields */
}

static void test_sunday_is_day_one(void **state)
{
    (void)state;
    /* 27 November 2026 is a Friday. */
    next_is("cron(0 9 ? * 6 *)", &SCHEDULE_UTC, "2026-11-26T00:00:00", "2026-11-27T09:00:00");
    next_is("cron(0 9 ? * FRI *)", &SCHEDULE_UTC, "2026-11-26T00:00:00", "2026-11-27T09:00:00");
    next_is("cron(0 9 ? * MON-FRI *)", &SCHEDULE_UTC, "2026-11-27T09:00:00", "2026-11-30T09:00:00");
    next_is("cron(0 9 ? * 2#1 *)", &SCHEDULE_UTC, "2026-11-27T00:00:00", "2026-12-07T09:00:00");
    next_is("cron(0 9 ? * 6L *)", &SCHEDULE_UTC, "2026-11-01T00:00:00", "2026-11-27T09:00:00");
}

static void test_days_of_the_month(void **state)
{
    (void)state;
    next_is("cron(0 0 L * ? *)", &SCHEDULE_UTC, "2028-02-01T00:00:00", "2028-02-29T00:00:00");
    next_is("cron(0 0 31 * ? *)", &SCHEDULE_UTC, "2026-11-01T00:00:00", "2026-12-31T00:00:00");
    next_is("cron(0 0 1W * ? *)", &SCHEDULE_UTC, "2026-07-31T00:00:00", "2026-08-03T00:00:00"); /* the 1st: Saturday */
    next_is("cron(0 0 1 JAN ? 2026/2)", &SCHEDULE_UTC, "2026-01-01T00:00:00", "2028-01-01T00:00:00");
    next_is("cron(0 0 1 1 ? 2020)", &SCHEDULE_UTC, "2026-01-01T00:00:00", NULL);
}

static void test_a_local_time_that_does_not_exist_is_skipped(void **state)
{
    (void)state;
    next_is("cron(30 2 * * ? *)", &BERLIN, "2026-03-28T00:00:00", "2026-03-28T01:30:00");
    next_is("cron(30 2 * * ? *)", &BERLIN, "2026-03-28T01:30:00", "2026-03-30T00:30:00");
}

static void test_a_local_time_that_comes_twice_is_taken_once(void **state)
{
    (void)state;
    next_is("cron(30 2 * * ? *)", &BERLIN, "2026-10-24T00:30:00", "2026-10-25T00:30:00");
    next_is("cron(30 2 * * ? *)", &BERLIN, "2026-10-25T00:30:00", "2026-10-26T01:30:00");
}

static void test_what_is_no_schedule_is_refused(void **state)
{
    (void)state;
    refused("");
    refused("at(2026-02-30T00:00:00)");
    refused("at(2026-11-27T12:00:00Z)");
    refused("at(2026-11-27 12:00:00)");
    refused("rate(0 minutes)");
    refused("rate(1 minutes)");
    refused("rate(2 minute)");
    refused("rate(5 weeks)");
    refused("cron(0 12 * * *)");
    refused("cron(0 12 * * * *)");
    refused("cron(0 12 ? * ? *)");
    refused("cron(60 12 * * ? *)");
    refused("cron(0 24 * * ? *)");
    refused("cron(0 12 * * 8 ?)");
    refused("cron(0 12 ? * 2#6 *)");
    refused("cron(0/0 12 * * ? *)");
    refused("cron(5-1 12 * * ? *)");
    refused("cron(0 12 * * ? 1969)");
    refused("every(5 minutes)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_at_is_due_once),
        cmocka_unit_test(test_rate_counts_from_its_start),
        cmocka_unit_test(test_cron_finds_the_next_time_of_day),
        cmocka_unit_test(test_sunday_is_day_one),
        cmocka_unit_test(test_days_of_the_month),
        cmocka_unit_test(test_a_local_time_that_does_not_exist_is_skipped),
        cmocka_unit_test(test_a_local_time_that_comes_twice_is_taken_once),
        cmocka_unit_test(test_what_is_no_schedule_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
