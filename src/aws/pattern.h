/*
 * Matches the regular expressions that service models state for their members, from the very text that the service
 * quotes in its refusals, so that what is checked and what is quoted cannot drift apart.
 *
 * Supported: literals, '.', classes (ranges, negation, \d \w \s, \p{L} \p{N} \p{Z}), groups (also (?:...)), '|',
 * ? * + {n} {n,} {n,m}, ^ $, and lookahead (?!...) (?=...), lookbehind (?<!x) of one class. Matching is by bytes: any
 * byte past 0x7f counts as a letter for \p{L} and for '.'. Time is linear in text times pattern, whatever the text.
 */
#pragma once

#include "base/span.h"

/*
 * True when the whole of `text` matches. The pattern is part of the program: one that cannot be compiled is our own
 * mistake and asserted. No allocation.
 */
bool pattern_matches(const char *pattern, struct span text) MUST_USE;

/* 0, or -EINVAL for a pattern that is not supported or too large. For tests. */
int pattern_check(const char *pattern) MUST_USE;
