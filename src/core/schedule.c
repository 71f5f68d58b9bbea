/*
 * cron is searched by days (a day either fits or not), then by the hours and minutes of that day. All of it happens in
 * local time written as seconds since 1970; only the results are turned into UTC.
 */
#include "core/schedule.h"

#include <stdio.h>
#include <strings.h>

#define DAY_S    INT64_C(86400)
#define HOUR_S   INT64_C(3600)
#define MINUTE_S INT64_C(60)

/* ---- the calendar ---- */

struct civil {
    int year, month, day;
};

/* Days since 1970 of a date in the Gregorian calendar (Hinnant's algorithm, which starts the year in March). */
static int64_t days_from_civil(int year, int month, int day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = (y >= 0 ? y : y - 399) / 400, year_of_era = y - era * 400;
    int64_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;

    return era * 146097 + day_of_era - 719468;
}

static struct civil civil_from_days(int64_t days)
{
    int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097, day_of_era = z - era * 146097;
    int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month = (5 * day_of_year + 2) / 153;

    return (struct civil){.year = (int)(year_of_era + era * 400 + (month >= 10)),
                          .month = (int)(month < 10 ? month + 3 : month - 9),
                          .day = (int)(day_of_year - (153 * month + 2) / 5 + 1)};
}

static int days_in_month(int year, int month)
{
    return (int)(days_from_civil(month == 12 ? year + 1 : year, month == 12 ? 1 : month + 1, 1) -
                 days_from_civil(year, month, 1));
}

/* 1 Sunday to 7 Saturday; 1970 began on a Thursday. */
static int weekday_of(int64_t days)
{
    return (int)(((days + 4) % 7 + 7) % 7) + 1;
}

int64_t schedule_from_civil(int year, int month, int day, int hour, int minute, int second)
{
    return days_from_civil(year, month, day) * DAY_S + hour * HOUR_S + minute * MINUTE_S + second;
}

/* ---- zones ---- */

static int32_t no_offset(int64_t utc_s, const void *context)
{
    (void)utc_s;
    (void)context;
    return 0;
}

const struct schedule_zone SCHEDULE_UTC = {no_offset, NULL};

/* The instant of a local time: with the offset of the day before, which is the first of two at a change of clocks, or
 * of the day after. INT64_MAX: there is no such local time. */
static int64_t to_utc(const struct schedule_zone *zone, int64_t local_s)
{
    for (int day = -1; day <= 1; day++) {
        int64_t utc_s = local_s - zone->offset_at(local_s + day * DAY_S, zone->context);
        if (utc_s + zone->offset_at(utc_s, zone->context) == local_s)
            return utc_s;
    }
    return INT64_MAX;
}

/* ---- parsing ---- */

static int digits(struct span *rest, size_t count, int *ret_number)
{
    uint64_t number;

    if (rest->length < count || span_to_u64(span_slice(*rest, 0, count), 9999, &number) < 0)
        return -EINVAL;
    *ret_number = (int)number;
    *rest = span_slice(*rest, count, rest->length);
    return 0;
}

int schedule_parse_time(struct span text, int64_t *ret_s)
{
    static const char separators[] = "--T::";
    static const size_t lengths[] = {4, 2, 2, 2, 2, 2};
    int f[6];

    if (span_ends_with(text, SPAN("Z")))
        text.length--;
    for (size_t i = 0; i < ARRAY_SIZE(f); i++) {
        if (i && (!text.length || text.data[0] != separators[i - 1]))
            return -EINVAL;
        if (i)
            text = span_slice(text, 1, text.length);
        if (digits(&text, lengths[i], &f[i]) < 0)
            return -EINVAL;
    }
    if (text.length || f[0] < SCHEDULE_FIRST_YEAR || f[0] > SCHEDULE_LAST_YEAR || f[1] < 1 || f[1] > 12 || f[2] < 1 ||
        f[2] > days_in_month(f[0], f[1]) || f[3] > 23 || f[4] > 59 || f[5] > 59)
        return -EINVAL;
    *ret_s = schedule_from_civil(f[0], f[1], f[2], f[3], f[4], f[5]);
    return 0;
}

static int parse_at(struct span text, struct schedule *schedule, struct fault *fault)
{
    schedule->kind = SCHEDULE_AT;
    if (schedule_parse_time(text, &schedule->local_s) < 0 || span_ends_with(text, SPAN("Z")))
        return fault_set(fault, 0, "'%.*s' is not a time as in at(2026-11-27T12:00:00)", SPAN_ARG(text));
    return 0;
}

static int parse_rate(struct span text, struct schedule *schedule, struct fault *fault)
{
    static const struct {
        const char *singular, *plural;
        int64_t seconds;
    } units[] = {{"minute", "minutes", MINUTE_S}, {"hour", "hours", HOUR_S}, {"day", "days", DAY_S}};
    struct span unit = text;
    uint64_t value = 0;

    schedule->kind = SCHEDULE_RATE;
    if (span_to_u64(span_cut(&unit, ' '), 1000000, &value) < 0 || value == 0)
        return fault_set(fault, 0, "'%.*s' is not a rate as in rate(5 minutes)", SPAN_ARG(text));
    for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
        if (span_equal(unit, span_from(value == 1 ? units[i].singular : units[i].plural))) {
            schedule->period_s = (int64_t)value * units[i].seconds;
            return 0;
        }
    }
    return fault_set(fault, 0, "'%.*s' is not a rate as in rate(1 minute) or rate(5 minutes)", SPAN_ARG(text));
}

/* A field of cron: its bounds, the names of its values, and where a value goes. */
struct field {
    const char *name;
    int minimum, maximum;
    const char *const *words; /* from `minimum` on; NULL: none */
    void (*set)(struct schedule_cron *cron, int value);
};

static void set_second(struct schedule_cron *cron, int value)
{
    (void)cron;
    (void)value;
}

static void set_minute(struct schedule_cron *cron, int value)
{
    cron->minutes |= UINT64_C(1) << value;
}

static void set_hour(struct schedule_cron *cron, int value)
{
    cron->hours |= UINT32_C(1) << value;
}

static void set_day(struct schedule_cron *cron, int value)
{
    cron->days |= UINT32_C(1) << value;
}

static void set_month(struct schedule_cron *cron, int value)
{
    cron->months |= UINT32_C(1) << value;
}

static void set_weekday(struct schedule_cron *cron, int value)
{
    cron->weekdays |= UINT32_C(1) << value;
}

static void set_year(struct schedule_cron *cron, int value)
{
    cron->years[(value - SCHEDULE_FIRST_YEAR) / 8] |= (uint8_t)(1u << (value - SCHEDULE_FIRST_YEAR) % 8);
}

static const char *const MONTHS[] = {"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL",
                                     "AUG", "SEP", "OCT", "NOV", "DEC", NULL};
static const char *const WEEKDAYS[] = {"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", NULL};

enum { FIELD_SECONDS, FIELD_MINUTES, FIELD_HOURS, FIELD_DAY, FIELD_MONTH, FIELD_WEEKDAY, FIELD_YEAR, FIELDS };

static const struct field FIELD_TABLE[FIELDS] = {
    {"seconds", 0, 59, NULL, set_second},
    {"minutes", 0, 59, NULL, set_minute},
    {"hours", 0, 23, NULL, set_hour},
    {"day-of-month", 1, 31, NULL, set_day},
    {"month", 1, 12, MONTHS, set_month},
    {"day-of-week", 1, 7, WEEKDAYS, set_weekday},
    {"year", SCHEDULE_FIRST_YEAR, SCHEDULE_LAST_YEAR, NULL, set_year},
};

static int parse_value(const struct field *field, struct span text, int *ret_value)
{
    uint64_t number;

    for (int i = 0; field->words && field->words[i]; i++) {
        if (span_equal_nocase(text, span_from(field->words[i]))) {
            *ret_value = field->minimum + i;
            return 0;
        }
    }
    if (span_to_u64(text, (uint64_t)field->maximum, &number) < 0 || (int)number < field->minimum)
        return -EINVAL;
    *ret_value = (int)number;
    return 0;
}

/* L, nL, nW and n#k. 0: not one of them; 1: done. */
static int parse_special(int index, struct span text, struct schedule_cron *cron)
{
    const struct field *field = &FIELD_TABLE[index];
    ptrdiff_t hash = span_find(text, '#');
    int value, nth;

    if (index == FIELD_DAY && span_equal(text, SPAN("L"))) {
        cron->last_day = true;
        return 1;
    }
    if (index == FIELD_WEEKDAY && span_equal(text, SPAN("L"))) {
        set_weekday(cron, 7);
        return 1;
    }
    if (index == FIELD_WEEKDAY && hash > 0) {
        struct span count = span_slice(text, (size_t)hash + 1, text.length);
        if (parse_value(field, span_slice(text, 0, (size_t)hash), &value) < 0 || digits(&count, 1, &nth) < 0 ||
            count.length || nth < 1 || nth > 5)
            return -EINVAL;
        cron->nth_weekday = value;
        cron->nth = nth;
        return 1;
    }
    if (text.length < 2 || parse_value(field, span_slice(text, 0, text.length - 1), &value) < 0)
        return 0;
    if (index == FIELD_DAY && span_ends_with(text, SPAN("W"))) {
        cron->workdays_near |= UINT32_C(1) << value;
        return 1;
    }
    if (index == FIELD_WEEKDAY && span_ends_with(text, SPAN("L"))) {
        cron->last_weekday = value;
        return 1;
    }
    return 0;
}

/* VALUE, VALUE-VALUE or *, each with /STEP. */
static int parse_range(const struct field *field, struct span text, struct schedule_cron *cron)
{
    struct span range = text, step_text, first_text, last_text;
    int first = field->minimum, last = field->maximum, step = 1;
    uint64_t number;

    step_text = range;
    range = span_cut(&step_text, '/');
    if (step_text.data) {
        if (span_to_u64(step_text, (uint64_t)field->maximum, &number) < 0 || number == 0)
            return -EINVAL;
        step = (int)number;
    }
    last_text = range;
    first_text = span_cut(&last_text, '-');
    if (!span_equal(range, SPAN("*"))) {
        if (parse_value(field, first_text, &first) < 0)
            return -EINVAL;
        if (last_text.data && parse_value(field, last_text, &last) < 0)
            return -EINVAL;
        if (!last_text.data && !step_text.data)
            last = first;
    }
    if (first > last)
        return -EINVAL;
    for (int value = first; value <= last; value += step)
        field->set(cron, value);
    return 0;
}

static int parse_field(int index, struct span text, struct schedule_cron *cron, struct fault *fault)
{
    struct span rest = text;

    while (rest.data) {
        struct span part = span_cut(&rest, ',');
        int r = parse_special(index, part, cron);
        if (r == 0)
            r = parse_range(&FIELD_TABLE[index], part, cron);
        if (r < 0)
            return fault_set(fault, 0, "'%.*s' is not valid in the %s field of cron", SPAN_ARG(text),
                             FIELD_TABLE[index].name);
    }
    return 0;
}

static int parse_cron(struct span text, struct schedule *schedule, struct fault *fault)
{
    struct span fields[FIELDS + 1], rest = text;
    size_t count = 0;
    int first;

    schedule->kind = SCHEDULE_CRON;
    while (rest.data && count < ARRAY_SIZE(fields)) {
        struct span field = span_cut(&rest, ' ');
        if (field.length)
            fields[count++] = field;
    }
    if (count != FIELDS && count != FIELDS - 1)
        return fault_set(fault, 0, "cron needs six fields, as in cron(0 12 * * ? *)");
    first = FIELDS - (int)count;
    schedule->cron.by_weekday = span_equal(fields[FIELD_DAY - first], SPAN("?"));
    if (schedule->cron.by_weekday == span_equal(fields[FIELD_WEEKDAY - first], SPAN("?")))
        return fault_set(fault, 0, "one of the day fields of cron, and not both, must be ?");
    for (int index = first; index < FIELDS; index++) {
        int r;
        if (span_equal(fields[index - first], SPAN("?")) && (index == FIELD_DAY || index == FIELD_WEEKDAY))
            continue;
        r = parse_field(index, fields[index - first], &schedule->cron, fault);
        if (r < 0)
            return r;
    }
    return 0;
}

int schedule_parse(struct span text, struct schedule *ret_schedule, struct fault *fault)
{
    static const struct {
        struct span prefix;
        int (*parse)(struct span text, struct schedule *schedule, struct fault *fault);
    } kinds[] = {{{"at(", 3}, parse_at}, {{"rate(", 5}, parse_rate}, {{"cron(", 5}, parse_cron}};

    *ret_schedule = (struct schedule){0};
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (span_starts_with(text, kinds[i].prefix) && span_ends_with(text, SPAN(")")))
            return kinds[i].parse(span_slice(text, kinds[i].prefix.length, text.length - 1), ret_schedule, fault);
    }
    return fault_set(fault, 0, "'%.*s' is not at(...), rate(...) or cron(...)", SPAN_ARG(text));
}

/* ---- when ---- */

/* The working day nearest to a day, within its month. */
static int nearest_workday(int year, int month, int day)
{
    int length = days_in_month(year, month), weekday;

    day = MIN(day, length);
    weekday = weekday_of(days_from_civil(year, month, day));
    if (weekday == 7)
        return day > 1 ? day - 1 : day + 2;
    if (weekday == 1)
        return day < length ? day + 1 : day - 2;
    return day;
}

static bool fits_weekday(const struct schedule_cron *cron, const struct civil *date, int weekday)
{
    if (cron->weekdays >> weekday & 1)
        return true;
    if (cron->nth_weekday == weekday && (date->day - 1) / 7 + 1 == cron->nth)
        return true;
    return cron->last_weekday == weekday && date->day + 7 > days_in_month(date->year, date->month);
}

static bool fits_month_day(const struct schedule_cron *cron, const struct civil *date)
{
    int length = days_in_month(date->year, date->month);

    if (cron->days >> date->day & 1)
        return true;
    if (cron->last_day && date->day == length)
        return true;
    for (int day = 1; cron->workdays_near && day <= length; day++) {
        if ((cron->workdays_near >> day & 1) && nearest_workday(date->year, date->month, day) == date->day)
            return true;
    }
    return false;
}

static bool fits_day(const struct schedule_cron *cron, int64_t days)
{
    struct civil date = civil_from_days(days);
    int year = date.year - SCHEDULE_FIRST_YEAR;

    if (!(cron->years[year / 8] >> year % 8 & 1) || !(cron->months >> date.month & 1))
        return false;
    return cron->by_weekday ? fits_weekday(cron, &date, weekday_of(days)) : fits_month_day(cron, &date);
}

/* The first minute of the day that is due after `after_s`; INT64_MAX: none. Two local times can be the same or a later
 * instant than the next at a change of clocks, so each is asked. */
static int64_t next_in_day(const struct schedule_cron *cron, const struct schedule_zone *zone, int64_t days,
                           int64_t after_s)
{
    for (int hour = 0; hour < 24; hour++) {
        if (!(cron->hours >> hour & 1))
            continue;
        for (int minute = 0; minute < 60; minute++) {
            int64_t utc_s;
            if (!(cron->minutes >> minute & 1))
                continue;
            utc_s = to_utc(zone, days * DAY_S + hour * HOUR_S + minute * MINUTE_S);
            if (utc_s != INT64_MAX && utc_s > after_s)
                return utc_s;
        }
    }
    return INT64_MAX;
}

static int64_t next_cron(const struct schedule_cron *cron, const struct schedule_zone *zone, int64_t after_s)
{
    int64_t last = days_from_civil(SCHEDULE_LAST_YEAR, 12, 31);
    int64_t local_s = after_s + zone->offset_at(after_s, zone->context);

    for (int64_t days = MAX(local_s, 0) / DAY_S; days <= last; days++) {
        int64_t next = fits_day(cron, days) ? next_in_day(cron, zone, days, after_s) : INT64_MAX;
        if (next != INT64_MAX)
            return next;
    }
    return INT64_MAX;
}

int64_t schedule_next(const struct schedule *schedule, const struct schedule_zone *zone, int64_t start_s,
                      int64_t after_s)
{
    int64_t at_s;

    switch (schedule->kind) {
    case SCHEDULE_AT:
        at_s = to_utc(zone, schedule->local_s);
        return at_s > after_s ? at_s : INT64_MAX;
    case SCHEDULE_RATE:
        if (after_s < start_s)
            return start_s;
        return start_s + ((after_s - start_s) / schedule->period_s + 1) * schedule->period_s;
    case SCHEDULE_CRON:
        return next_cron(&schedule->cron, zone, after_s);
    }
    return INT64_MAX;
}
