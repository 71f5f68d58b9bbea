#include "base/zone.h"

#include <ctype.h>
#include <stdio.h>

enum { LARGEST_FILE = 64 * 1024, HEADER_BYTES = 44, TYPE_BYTES = 6 };

#define DAY_S 86400
#define NAMES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/"

/* ---- the table ---- */

struct header {
    uint32_t utc_flags, standard_flags, leaps, times, types, characters;
    char version;
};

static uint64_t read_big(const char *data, size_t bytes)
{
    uint64_t value = 0;

    for (size_t i = 0; i < bytes; i++)
        value = value << 8 | (unsigned char)data[i];
    return value;
}

static int parse_header(struct span bytes, struct header *ret_header)
{
    uint32_t counts[6];

    if (bytes.length < HEADER_BYTES || !span_starts_with(bytes, SPAN("TZif")))
        return -EINVAL;
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
        counts[i] = (uint32_t)read_big(bytes.data + 20 + 4 * i, 4);
        if (counts[i] > LARGEST_FILE)
            return -EINVAL;
    }
    *ret_header = (struct header){counts[0], counts[1], counts[2], counts[3], counts[4], counts[5], bytes.data[4]};
    return 0;
}

/* Bytes of the block behind a header, with times of `width` bytes. */
static size_t block_bytes(const struct header *header, size_t width)
{
    return header->times * (width + 1) + header->types * (size_t)TYPE_BYTES + header->characters +
           header->leaps * (width + 4) + header->standard_flags + header->utc_flags;
}

static int parse_block(struct span block, const struct header *header, size_t width, struct zone *zone)
{
    const char *kinds = block.data + header->times * width, *types = kinds + header->times;

    if (!header->types || header->times > ZONE_TRANSITIONS)
        return -EINVAL;
    zone->first_offset = (int32_t)read_big(types, 4);
    for (size_t i = 0; i < header->times; i++) {
        size_t kind = (unsigned char)kinds[i];
        uint64_t time = read_big(block.data + i * width, width);
        if (kind >= header->types)
            return -EINVAL;
        zone->times_s[i] = width == 8 ? (int64_t)time : (int32_t)(uint32_t)time;
        zone->offsets[i] = (int32_t)read_big(types + kind * TYPE_BYTES, 4);
    }
    zone->count = header->times;
    return 0;
}

/* ---- the rule: NAME OFFSET [NAME [OFFSET] , CHANGE , CHANGE] as in POSIX ---- */

static char peek(struct span rest)
{
    return rest.length ? rest.data[0] : '\0';
}

static bool take(struct span *rest, char c)
{
    if (peek(*rest) != c)
        return false;
    *rest = span_slice(*rest, 1, rest->length);
    return true;
}

static bool take_name(struct span *rest)
{
    size_t before = rest->length;

    if (take(rest, '<')) {
        while (rest->length && peek(*rest) != '>')
            *rest = span_slice(*rest, 1, rest->length);
        return take(rest, '>');
    }
    while (isalpha((unsigned char)peek(*rest)))
        *rest = span_slice(*rest, 1, rest->length);
    return rest->length < before;
}

static bool take_number(struct span *rest, int *ret_number)
{
    size_t before = rest->length;
    int number = 0;

    while (isdigit((unsigned char)peek(*rest)) && number < 10000) {
        number = number * 10 + (peek(*rest) - '0');
        *rest = span_slice(*rest, 1, rest->length);
    }
    *ret_number = number;
    return rest->length < before;
}

/* [+-]hh[:mm[:ss]] */
static bool take_time(struct span *rest, int32_t *ret_s)
{
    bool negative = take(rest, '-');
    int hours, part, seconds;

    if (!negative)
        take(rest, '+');
    if (!take_number(rest, &hours))
        return false;
    seconds = hours * 3600;
    for (int unit = 60; unit && take(rest, ':'); unit /= 60) {
        if (!take_number(rest, &part))
            return false;
        seconds += part * unit;
    }
    *ret_s = negative ? -seconds : seconds;
    return true;
}

/* ,Mm.w.d[/time]: the only form the database uses today. */
static bool take_change(struct span *rest, struct zone_change *ret_change)
{
    struct zone_change change = {.time_s = 2 * 3600};

    if (!take(rest, ',') || !take(rest, 'M') || !take_number(rest, &change.month) || !take(rest, '.') ||
        !take_number(rest, &change.week) || !take(rest, '.') || !take_number(rest, &change.weekday))
        return false;
    if (take(rest, '/') && !take_time(rest, &change.time_s))
        return false;
    *ret_change = change;
    return change.month >= 1 && change.month <= 12 && change.week >= 1 && change.week <= 5 && change.weekday <= 6;
}

/* POSIX offsets are positive to the west. */
static bool parse_rule(struct span rest, struct zone *zone)
{
    int32_t west;

    if (!take_name(&rest) || !take_time(&rest, &west))
        return false;
    zone->standard = -west;
    if (!rest.length)
        return true;
    if (!take_name(&rest))
        return false;
    zone->summer = zone->standard + 3600;
    if (peek(rest) != ',') {
        if (!take_time(&rest, &west))
            return false;
        zone->summer = -west;
    }
    zone->changes = true;
    return take_change(&rest, &zone->to_summer) && take_change(&rest, &zone->to_standard) && !rest.length;
}

int zone_parse(struct span bytes, struct zone *ret_zone)
{
    struct header header;
    size_t width = 4, length;

    *ret_zone = (struct zone){0};
    if (parse_header(bytes, &header) < 0)
        return -EINVAL;
    if (header.version) { /* the table comes a second time, with longer times */
        length = HEADER_BYTES + block_bytes(&header, width);
        width = 8;
        if (bytes.length < length || parse_header(span_slice(bytes, length, bytes.length), &header) < 0)
            return -EINVAL;
        bytes = span_slice(bytes, length, bytes.length);
    }
    length = HEADER_BYTES + block_bytes(&header, width);
    if (bytes.length < length || parse_block(span_slice(bytes, HEADER_BYTES, length), &header, width, ret_zone) < 0)
        return -EINVAL;
    bytes = span_slice(bytes, length, bytes.length);
    if (!take(&bytes, '\n'))
        return 0;
    bytes = span_cut(&bytes, '\n');
    if (bytes.length && !parse_rule(bytes, ret_zone))
        return -EINVAL;
    ret_zone->has_rule = bytes.length > 0;
    return 0;
}

/* ---- reading ---- */

static void close_file(FILE **file)
{
    if (*file)
        fclose(*file);
}

int zone_load(struct span name, struct zone *ret_zone, struct fault *fault)
{
    FILE *file CLEANUP(close_file) = NULL;
    char path[256], bytes[LARGEST_FILE];
    int length = snprintf(path, sizeof(path), "/usr/share/zoneinfo/%.*s", SPAN_ARG(name));

    *ret_zone = (struct zone){0};
    if (span_equal(name, SPAN("UTC")))
        return 0;
    if (!name.length || (size_t)length >= sizeof(path) || name.data[0] == '/' ||
        strspn(path, NAMES) != (size_t)length) /* hence no dots */
        return fault_set(fault, EINVAL, "'%.*s' is not a time zone as in Europe/Berlin", SPAN_ARG(name));
    file = fopen(path, "re");
    if (!file)
        return fault_set(fault, ENOENT, "there is no time zone '%.*s' in /usr/share/zoneinfo", SPAN_ARG(name));
    if (zone_parse(span_of(bytes, fread(bytes, 1, sizeof(bytes), file)), ret_zone) < 0)
        return fault_set(fault, EINVAL, "'%s' is not a time zone", path);
    return 0;
}

/* ---- offsets ---- */

static int64_t floor_divide(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Days since 1970 of a date in the Gregorian calendar, the year taken from March on. */
static int64_t days_of(int64_t year, int month, int day)
{
    int64_t y = month <= 2 ? year - 1 : year, era = floor_divide(y, 400), year_of_era = y - era * 400;
    int64_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

/* When a change happens in a year, in seconds since 1970 by the local clock that it changes. */
static int64_t change_in(const struct zone_change *change, int64_t year)
{
    int64_t first = days_of(year, change->month, 1);
    int64_t next = days_of(change->month == 12 ? year + 1 : year, change->month == 12 ? 1 : change->month + 1, 1);
    int64_t weekday = ((first + 4) % 7 + 7) % 7; /* 1970 began on a Thursday */
    int64_t day = first + (change->weekday - weekday + 7) % 7 + 7 * (change->week - 1);

    if (day >= next)
        day -= 7;
    return day * DAY_S + change->time_s;
}

static int32_t offset_by_rule(const struct zone *zone, int64_t utc_s)
{
    int64_t year, to_summer, to_standard;

    if (!zone->changes)
        return zone->standard;
    year = 1970 + floor_divide(utc_s + zone->standard, 31556952); /* right or one off, at the turn of the year */
    if (utc_s + zone->standard < days_of(year, 1, 1) * DAY_S)
        year--;
    else if (utc_s + zone->standard >= days_of(year + 1, 1, 1) * DAY_S)
        year++;
    to_summer = change_in(&zone->to_summer, year) - zone->standard;
    to_standard = change_in(&zone->to_standard, year) - zone->summer;
    if (to_summer < to_standard)
        return utc_s >= to_summer && utc_s < to_standard ? zone->summer : zone->standard;
    return utc_s >= to_standard && utc_s < to_summer ? zone->standard : zone->summer;
}

int32_t zone_offset(int64_t utc_s, const void *context)
{
    const struct zone *zone = context;
    size_t low = 0, high = zone->count; /* the first that comes later */

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (zone->times_s[middle] <= utc_s)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == zone->count && zone->has_rule)
        return offset_by_rule(zone, utc_s);
    return low ? zone->offsets[low - 1] : zone->first_offset;
}
