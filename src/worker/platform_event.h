/*
 * What the service itself has to say about an environment, as JSON: the lines of a log in the JSON format. The schemas
 * are those of the Telemetry API (guide, "Lambda Telemetry API Event schema reference"), the order of members that of
 * lines seen on the service.
 *
 *     {"time":"2026-01-02T03:04:05.678Z","type":"platform.start","record":{"requestId":"...", ...}}
 *
 * Pure. Each appends one event without a newline: 0, or -ENOMEM with the buffer unchanged.
 */
#pragma once

#include "base/buffer.h"
#include "worker/platform_line.h"

/* What stays the same for all of an environment's life. */
struct platform_source {
    const char *initialization_type; /* "on-demand", "provisioned-concurrency" */
    const char *runtime;             /* as in a FunctionConfiguration */
    const char *runtime_version_arn; /* NULL: left out */
    const char *function_name;
    const char *function_version;
    const char *instance_id;
    unsigned memory_mib;
};

/* How a phase ended. */
struct platform_outcome {
    enum platform_status status;
    const char *error_type; /* with PLATFORM_ERROR */
};

/* `phase` is "init" or "invoke". */
int platform_event_init_start(struct buffer *buffer, int64_t wall_ns, const struct platform_source *source,
                              const char *phase) MUST_USE;
int platform_event_init_runtime_done(struct buffer *buffer, int64_t wall_ns, const struct platform_source *source,
                                     const char *phase, struct platform_outcome outcome) MUST_USE;
int platform_event_init_report(struct buffer *buffer, int64_t wall_ns, const struct platform_source *source,
                               const char *phase, struct platform_outcome outcome, int64_t duration_ns) MUST_USE;
/* `events`: bit 0 is INVOKE, bit 1 SHUTDOWN. `error_type` is "" for none. */
int platform_event_extension(struct buffer *buffer, int64_t wall_ns, const char *name, const char *state,
                             unsigned events, const char *error_type) MUST_USE;
/* `arn` as the caller named the function; NULL: left out. */
int platform_event_start(struct buffer *buffer, int64_t wall_ns, const struct platform_source *source,
                         const char *request_id, const char *arn) MUST_USE;
int platform_event_runtime_done(struct buffer *buffer, int64_t wall_ns, const char *request_id,
                                struct platform_outcome outcome, int64_t duration_ns, uint64_t produced_bytes) MUST_USE;
int platform_event_report(struct buffer *buffer, int64_t wall_ns, const struct platform_report *report) MUST_USE;
int platform_event_logs_dropped(struct buffer *buffer, int64_t wall_ns, uint64_t records, uint64_t bytes,
                                const char *reason) MUST_USE;
