/*
 * Event patterns: the filters of event source mappings. A pattern is a JSON object of the event's own structure whose
 * leaves are lists of what is accepted there: values, or expressions such as {"prefix": "a"}. See "Filter rule syntax"
 * in the Lambda developer guide (invocation-eventfiltering); what is refused beyond that is recorded.
 */
#pragma once

#include "base/span.h"

enum event_pattern_outcome { EVENT_PATTERN_INVALID = 1 };

/* 0, EVENT_PATTERN_INVALID, -ENOMEM. */
int event_pattern_check(struct span text) MUST_USE;
