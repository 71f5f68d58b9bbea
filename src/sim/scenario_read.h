/* Parts of reading a scenario that scenario.c divides its work into. Not for users of the scenario. */
#pragma once

#include "sim/json_reader.h"
#include "sim/scenario.h"

/* The most of anything in a scenario; keeps mistakes from becoming gigabytes. */
enum { SCENARIO_MOST = 100000 };

struct distribution scenario_read_duration(struct json_reader *reader, const struct json_value *value,
                                           double otherwise_ms);
/* Seconds as nanoseconds; absent: `otherwise`. */
int64_t scenario_read_seconds(struct json_reader *reader, const struct json_value *value, int64_t otherwise);
/* Zeroed, from the arena; NULL when there are none or memory is short (the reader fails). */
void *scenario_array(struct json_reader *reader, size_t count, size_t size);
/* "function" of `value`, which must name one. */
int scenario_read_function(struct json_reader *reader, const struct scenario *scenario, const struct json_value *value);
/* A version or alias named by `value`; absent: $LATEST. */
struct scenario_qualifier scenario_read_qualifier(struct json_reader *reader, const struct scenario *scenario,
                                                  int function, const struct json_value *value);
/* Members "version" (absent: `present`'s) and "weights" of an alias or of a change to one. */
struct scenario_routing scenario_read_routing(struct json_reader *reader, const struct scenario_function *function,
                                              const struct json_value *object, int present);

void scenario_read_functions(struct json_reader *reader, const struct json_value *root, struct scenario *scenario);
void scenario_read_traffic(struct json_reader *reader, const struct json_value *root, const char *directory,
                           struct scenario *scenario);
void scenario_read_events(struct json_reader *reader, const struct json_value *root, struct scenario *scenario);
