/*
 * A simulation's findings as text: tables for people, JSON and CSV for programs. docs/simulator.md describes them; the
 * JSON members are a contract. Requests, if wanted, are written while the simulation runs and are not kept.
 */
#pragma once

#include "sim/report.h"

#include <stdio.h>

enum output_format { OUTPUT_TABLE, OUTPUT_JSON, OUTPUT_CSV };

struct output {
    FILE *file; /* borrowed */
    enum output_format format;
    const struct scenario *scenario;
    bool requests; /* a line for every attempt; in CSV instead of the minutes */
    bool begun;    /* what comes before the requests is written */
    int64_t lines; /* of requests written so far */
};

/* One attempt; `context` is the struct output. For simulation_options.on_request. */
void output_request(const struct report_request *request, void *context);
/* Everything else. -EIO when anything could not be written. */
int output_report(struct output *output, const struct report *report) MUST_USE;
