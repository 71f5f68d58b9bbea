/*
 * Random programs for core, with a reference beside it. A program is a string of bytes: the first few choose the
 * limits, the rest are operations (invoke, ready, response, free, death, time, RC, PC, aliases, removal, a full
 * machine). After every operation the whole state is validated, and every verdict, choice and figure is compared with
 * a slow model that keeps nothing but the list of requests and the times of what was admitted, and counts everything
 * anew from these by the rules as they are written down.
 *
 * Aborts with a message on the first difference; any string of bytes is a valid program.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The number of operations. */
size_t random_program_run(const uint8_t *bytes, size_t length);
