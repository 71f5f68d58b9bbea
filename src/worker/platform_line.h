/*
 * The lines that the service itself writes into a function's log, as recorded: INIT_START, START, END, REPORT,
 * INIT_REPORT. Pure; each fills `text` (cut when too small, which no valid name reaches) and returns the line as a span
 * of it, with its final newline.
 */
#pragma once

#include "base/span.h"

enum { PLATFORM_LINE_BYTES = 768 };

/* How a phase ended, for REPORT and INIT_REPORT. */
enum platform_status { PLATFORM_SUCCESS, PLATFORM_TIMEOUT, PLATFORM_ERROR };

struct platform_report {
    const char *request_id;
    int64_t duration_ns;
    int64_t init_ns; /* -1: not a cold on-demand start. Part of the billed time (as since August 2025) */
    unsigned memory_mib;
    unsigned memory_used_mib;
    enum platform_status status;
    const char *error_type; /* with PLATFORM_ERROR */
};

enum { PLATFORM_RUNTIME_BYTES = 128 };

/* "python:3.12.v1" for "python3.12", "nodejs:20.v1" for "nodejs20.x", "provided:al2023.v1" for "provided.al2023".
 * Returns `text`. */
const char *platform_runtime_version(char text[PLATFORM_RUNTIME_BYTES], const char *runtime);

/* "INIT_START Runtime Version: python:3.12.v1\tRuntime Version ARN: ARN\n"; ARN NULL leaves that part out. */
struct span platform_line_init_start(char text[PLATFORM_LINE_BYTES], const char *runtime, const char *arn);
/* "START RequestId: ID Version: V\n" */
struct span platform_line_start(char text[PLATFORM_LINE_BYTES], const char *request_id, const char *version);
/* "END RequestId: ID\n" */
struct span platform_line_end(char text[PLATFORM_LINE_BYTES], const char *request_id);
/* "REPORT RequestId: ID\tDuration: 3.01 ms\tBilled Duration: 4 ms\tMemory Size: 128 MB\tMax Memory Used: 36 MB\t"
 * and as due "Init Duration: 110.10 ms\t", "Status: timeout", "Status: error\tError Type: T". */
struct span platform_line_report(char text[PLATFORM_LINE_BYTES], const struct platform_report *report);
/* "INIT_REPORT Init Duration: 10.17 ms\tPhase: init\tStatus: error\tError Type: T\n"; `phase` is "init" or "invoke". */
struct span platform_line_init_report(char text[PLATFORM_LINE_BYTES], int64_t init_ns, const char *phase,
                                      enum platform_status status, const char *error_type);

/* "EXTENSION\tName: NAME\tState: Ready\tEvents: [INVOKE, SHUTDOWN]\n", with "\tError Type: T" unless that is empty. */
struct span platform_line_extension(char text[PLATFORM_LINE_BYTES], const char *name, const char *state,
                                    const char *events, const char *error_type);

/* "TELEMETRY\tName: NAME\tState: Subscribed\tTypes: [Platform, Function, Extension]\n"; `api` is TELEMETRY or LOGS, the
 * lowest three bits of `types` are those three. */
struct span platform_line_subscription(char text[PLATFORM_LINE_BYTES], const char *api, const char *name,
                                       unsigned types);

/* Whole milliseconds, rounded up, of Init (if any) and duration together. */
uint64_t platform_billed_ms(int64_t duration_ns, int64_t init_ns);
