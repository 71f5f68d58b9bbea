/*
 * Schedules of scheduled actions: at(yyyy-mm-ddThh:mm:ss), rate(VALUE UNIT) and cron(FIELDS), in a time zone, between a
 * start and an end. Pure: time zones are a function from an instant to an offset, given by the caller.
 *
 * cron has six fields (minutes hours day-of-month month day-of-week year), or seven with leading seconds, which are
 * checked and not followed: the service does not promise that precision. SUN is 1. One of the two day fields must be
 * "?". L, W and # have the meanings of the service's documentation.
 *
 * At a change of clocks, a local time that does not exist is skipped and one that comes twice is taken once, the first
 * time.
 */
#pragma once

#include "base/fault.h"
#include "base/span.h"

enum schedule_kind { SCHEDULE_AT, SCHEDULE_RATE, SCHEDULE_CRON };

enum { SCHEDULE_FIRST_YEAR = 1970, SCHEDULE_LAST_YEAR = 2199 };

struct schedule_cron {
    uint64_t minutes;       /* bit n: minute n */
    uint32_t hours;         /* bit n: hour n */
    uint32_t days;          /* bit n: day n of the month, from 1 */
    uint32_t months;        /* bit n: month n, from 1 */
    uint32_t weekdays;      /* bit n: 1 Sunday to 7 Saturday */
    uint32_t workdays_near; /* bit n: the working day nearest to day n (nW) */
    bool last_day;          /* L, in day-of-month */
    int last_weekday;       /* nL, in day-of-week; 0: none */
    int nth_weekday, nth;   /* n#k; 0: none */
    bool by_weekday;        /* the day-of-month field is "?" */
    uint8_t years[(SCHEDULE_LAST_YEAR - SCHEDULE_FIRST_YEAR) / 8 + 1];
};

struct schedule {
    enum schedule_kind kind;
    int64_t local_s;  /* at: seconds since 1970 as if the local time were UTC */
    int64_t period_s; /* rate */
    struct schedule_cron cron;
};

/* Offset of local time from UTC in seconds (east positive) at an instant. */
struct schedule_zone {
    int32_t (*offset_at)(int64_t utc_s, const void *context);
    const void *context;
};

/* -EINVAL with a sentence. */
int schedule_parse(struct span text, struct schedule *ret_schedule, struct fault *fault) MUST_USE;
/*
 * The first time after `after_s` (seconds since 1970, UTC; at least 0) at which it is due, INT64_MAX when never. A rate
 * counts from `start_s`.
 */
int64_t schedule_next(const struct schedule *schedule, const struct schedule_zone *zone, int64_t start_s,
                      int64_t after_s);

/* Always 0. */
extern const struct schedule_zone SCHEDULE_UTC;

/* Seconds since 1970 of a civil time; month 1 to 12. */
int64_t schedule_from_civil(int year, int month, int day, int hour, int minute, int second);
/* Parses "yyyy-mm-ddThh:mm:ss" or with a final Z, as if it were UTC: -EINVAL. */
int schedule_parse_time(struct span text, int64_t *ret_s) MUST_USE;
