/*
 * The telemetry of one environment: what happens to it, as events of the Telemetry API (schemas of 2022-07-01 to
 * 2025-01-29, which do not differ for text logs) and of the Logs API, for the extensions that have subscribed. The
 * Lambda guide's "Telemetry API Event schema reference" names the members.
 *
 * What has been printed in Init before an extension subscribes is kept, within a bound, until Init ends; the events
 * then begin with platform.initStart as if it had been subscribed from the start. An environment without subscription
 * has environment->telemetry NULL (from the end of Init on) and every function here returns at once.
 */
#pragma once

#include "worker/platform_event.h"
#include "worker/telemetry_settings.h"

struct environment;
struct extension;
struct telemetry;

/* PUT telemetry or logs. Replaces a former subscription of the extension. -ENOMEM; 1: it has one with the other API. */
int telemetry_subscribe(struct environment *environment, struct extension *extension,
                        const struct telemetry_settings *settings) MUST_USE;
/* Everything gathered is lost; before the processes are dead, telemetry_flush. */
void telemetry_forget(struct environment *environment);
/* Init is over: nobody can subscribe any more. */
void telemetry_end_init(struct environment *environment);

/* A line of the function's or an extension's output. */
void telemetry_line(struct environment *environment, enum telemetry_type type, struct span line);

void telemetry_init_runtime_done(struct environment *environment, struct platform_outcome outcome);
void telemetry_init_report(struct environment *environment, int64_t init_ns, struct platform_outcome outcome);
void telemetry_extension(struct environment *environment, const struct extension *extension);
void telemetry_start(struct environment *environment);
/* The runtime has posted its answer, of that many bytes. */
void telemetry_answered(struct environment *environment, size_t bytes);
/* Once per invocation; further calls do nothing. */
void telemetry_runtime_done(struct environment *environment, struct platform_outcome outcome);
void telemetry_fault(struct environment *environment, struct span text);
/* platform.end and platform.report */
void telemetry_report(struct environment *environment, const struct platform_report *report);

/* Sends what has gathered. */
void telemetry_flush(struct environment *environment);
void telemetry_on_thaw(struct environment *environment);
/* A socket that was asked for; takes it. */
void telemetry_on_socket(struct environment *environment, uint32_t tag, int fd);
