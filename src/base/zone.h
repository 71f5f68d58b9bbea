/*
 * Time zones out of the system's database: from an instant to the offset of local time. A plain value with all that is
 * known of the zone; nothing to free, no global state (unlike tzset). Reads TZif versions 1 to 4 and the rule for later
 * years that follows the table.
 */
#pragma once

#include "base/fault.h"
#include "base/span.h"

enum { ZONE_TRANSITIONS = 512 };

/* One change of clocks of every year: in `month`, the `week`th (5: last) `weekday` (0 Sunday), `time_s` after its
 * midnight. */
struct zone_change {
    int month, week, weekday;
    int32_t time_s;
};

struct zone {
    size_t count;
    int64_t times_s[ZONE_TRANSITIONS]; /* from here on (UTC) ... */
    int32_t offsets[ZONE_TRANSITIONS]; /* ... local time is so many seconds ahead */
    int32_t first_offset;              /* before all of them */
    bool has_rule;                     /* after the last one */
    int32_t standard, summer;
    bool changes; /* twice a year; else always standard */
    struct zone_change to_summer, to_standard;
};

/* An IANA name, as "Europe/Berlin"; "UTC" needs no database. -EINVAL (not a name), -ENOENT (not there), with a
 * sentence.
 */
int zone_load(struct span name, struct zone *ret_zone, struct fault *fault) MUST_USE;
/* The content of a TZif file: -EINVAL when it is not one. */
int zone_parse(struct span bytes, struct zone *ret_zone) MUST_USE;
/* Seconds that local time is ahead of UTC (east positive) at an instant, in seconds since 1970. `zone` is a struct
 * zone; untyped so that it can be handed on as a callback. */
int32_t zone_offset(int64_t utc_s, const void *zone);
