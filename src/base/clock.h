/*
 * Time. Instants and durations are int64 nanoseconds. `now_ns` on the decision paths is the monotonic clock, read once
 * per turn of the loop and passed down; the wall clock is only for what people and protocols see.
 */
#pragma once

#include "base/span.h"

#include <stdint.h>

#define NS_PER_US INT64_C(1000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S  INT64_C(1000000000)

/* CLOCK_MONOTONIC. */
int64_t clock_monotonic_ns(void);
/* CLOCK_REALTIME, nanoseconds since 1970. */
int64_t clock_wall_ns(void);

enum { CLOCK_ISO_BYTES = 32 };

/* "2026-01-02T03:04:05.678+0000", the form of LastModified in Lambda's answers (recorded). Returns `text`. */
const char *clock_format_lambda(int64_t wall_ns, char text[CLOCK_ISO_BYTES]);
/* "2026-01-02T03:04:05+0000", the form in which it gives whole seconds. Returns `text`. */
const char *clock_format_lambda_seconds(int64_t wall_ns, char text[CLOCK_ISO_BYTES]);
/* "2026-01-02T03:04:05.678Z". Returns `text`. */
const char *clock_format_iso(int64_t wall_ns, char text[CLOCK_ISO_BYTES]);
/* "2026-01-02T03:04:05.678901Z", the form of the times of function URLs. Returns `text`. */
const char *clock_format_iso_micro(int64_t wall_ns, char text[CLOCK_ISO_BYTES]);
/* "20260102T030405Z", the form of X-Amz-Date. Returns `text`. */
const char *clock_format_amz(int64_t wall_ns, char text[CLOCK_ISO_BYTES]);
/* The reverse of clock_format_amz: -EINVAL unless exactly that form and a real date before 2262. */
int clock_parse_amz(struct span text, int64_t *ret_wall_ns) MUST_USE;
