#include "base/clock.h"

#include <stdio.h>
#include <time.h>

enum { CLOCK_YEAR_MAX = 2261 }; /* the last whole one whose nanoseconds fit in int64_t */

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

int64_t clock_monotonic_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

int64_t clock_wall_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}

/* `digits` of a second's fraction, 0 to 9, before the zone. */
static const char *format(int64_t wall_ns, const char *pattern, int digits, const char *zone,
                          char text[CLOCK_ISO_BYTES])
{
    time_t seconds = wall_ns / NS_PER_S;
    struct tm parts = {0};
    size_t length;

    gmtime_r(&seconds, &parts);
    length = strftime(text, CLOCK_ISO_BYTES, pattern, &parts);
    if (digits) {
        char fraction[16];
        snprintf(fraction, sizeof(fraction), "%09d", (int)(wall_ns % NS_PER_S));
        snprintf(text + length, CLOCK_ISO_BYTES - length, ".%.*s%s", digits, fraction, zone);
    }
    return text;
}

const char *clock_format_lambda(int64_t wall_ns, char text[CLOCK_ISO_BYTES])
{
    return format(wall_ns, "%Y-%m-%dT%H:%M:%S", 3, "+0000", text);
}

const char *clock_format_lambda_seconds(int64_t wall_ns, char text[CLOCK_ISO_BYTES])
{
    return format(wall_ns, "%Y-%m-%dT%H:%M:%S+0000", 0, NULL, text);
}

const char *clock_format_iso(int64_t wall_ns, char text[CLOCK_ISO_BYTES])
{
    return format(wall_ns, "%Y-%m-%dT%H:%M:%S", 3, "Z", text);
}

const char *clock_format_iso_micro(int64_t wall_ns, char text[CLOCK_ISO_BYTES])
{
    return format(wall_ns, "%Y-%m-%dT%H:%M:%S", 6, "Z", text);
}

const char *clock_format_amz(int64_t wall_ns, char text[CLOCK_ISO_BYTES])
{
    return format(wall_ns, "%Y%m%dT%H%M%SZ", 0, NULL, text);
}

static int digits(struct span text, size_t from, size_t to, int *ret_value)
{
    uint64_t value;
    int r = span_to_u64(span_slice(text, from, to), 9999, &value);

    if (r < 0)
        return -EINVAL;
    *ret_value = (int)value;
    return 0;
}

int clock_parse_amz(struct span text, int64_t *ret_wall_ns)
{
    struct tm parts = {0};
    struct tm check;
    time_t seconds;

    if (text.length != 16 || text.data[8] != 'T' || text.data[15] != 'Z')
        return -EINVAL;
    if (digits(text, 0, 4, &parts.tm_year) < 0 || digits(text, 4, 6, &parts.tm_mon) < 0 ||
        digits(text, 6, 8, &parts.tm_mday) < 0 || digits(text, 9, 11, &parts.tm_hour) < 0 ||
        digits(text, 11, 13, &parts.tm_min) < 0 || digits(text, 13, 15, &parts.tm_sec) < 0)
        return -EINVAL;
    if (parts.tm_year < 1970 || parts.tm_year > CLOCK_YEAR_MAX || parts.tm_hour > 23 || parts.tm_min > 59 ||
        parts.tm_sec > 59)
        return -EINVAL;
    parts.tm_year -= 1900;
    parts.tm_mon -= 1;
    check = parts;
    seconds = timegm(&check);
    if (check.tm_mday != parts.tm_mday || check.tm_mon != parts.tm_mon)
        return -EINVAL;
    *ret_wall_ns = seconds * NS_PER_S;
    return 0;
}
