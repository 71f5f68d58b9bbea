#include "sim/output.h"

#include <math.h>

static double seconds(int64_t ns)
{
    return (double)ns / (double)NS_PER_S;
}

static double milliseconds(double ns)
{
    return ns / (double)NS_PER_MS;
}

static double latency_ms(const struct report_function *function, double fraction)
{
    return milliseconds((double)histogram_percentile(&function->latency, fraction));
}

/* ---- requests ---- */

static void write_request_json(FILE *file, const struct report_request *request, const char *function,
                               const char *version)
{
    char label[REPORT_LABEL_BYTES];

    fprintf(file, "{\"number\": %lld, \"attempt\": %d, \"function\": \"%s\", \"version\": \"%s\", \"at_s\": %.9g",
            (long long)request->number, request->attempt, function, version, seconds(request->arrived_ns));
    if (request->verdict == REPORT_SERVED)
        fprintf(file, ", \"start_s\": %.9g, \"end_s\": %.9g", seconds(request->started_ns), seconds(request->ended_ns));
    if (request->environment >= 0)
        fprintf(file, ", \"environment\": \"%s\"", report_label(request->environment, label));
    fprintf(file, ", \"verdict\": \"%s\", \"spillover\": %s", report_verdict_name(request),
            request->verdict == REPORT_SERVED && request->spilled && !request->provisioned ? "true" : "false");
    if (request->verdict == REPORT_THROTTLED)
        fprintf(file, ", \"reason\": \"%s\", \"kind\": \"%s\", \"limit\": %lld, \"used\": %lld",
                counting_reason_name(request->throttle.reason), counting_kind_name(request->throttle.kind),
                (long long)request->throttle.limit, (long long)request->throttle.used);
    fputs("}", file);
}

static void write_request_line(FILE *file, enum output_format format, const struct report_request *request,
                               const char *function, const char *version)
{
    bool throttled = request->verdict == REPORT_THROTTLED, served = request->verdict == REPORT_SERVED;
    char label[REPORT_LABEL_BYTES] = "", start[32] = "", end[32] = "";

    if (request->environment >= 0)
        report_label(request->environment, label);
    if (served) {
        snprintf(start, sizeof(start), "%.6f", seconds(request->started_ns));
        snprintf(end, sizeof(end), "%.6f", seconds(request->ended_ns));
    }
    fprintf(file,
            format == OUTPUT_CSV ? "%lld,%d,%s,%s,%.6f,%s,%s,%s,%s,%s\n"
                                 : "%9lld %7d  %-20s %-8s %12.6f %12s %12s  %-6s %-12s %s\n",
            (long long)request->number, request->attempt, function, version, seconds(request->arrived_ns), start, end,
            label, report_verdict_name(request), throttled ? counting_reason_name(request->throttle.reason) : "");
}

/* What comes before the requests; not before the first, so that a run that cannot start writes nothing. */
static void begin(struct output *output)
{
    if (output->begun)
        return;
    output->begun = true;
    if (output->format == OUTPUT_JSON)
        fputs(output->requests ? "{\"requests\": [" : "{", output->file);
    if (!output->requests)
        return;
    if (output->format == OUTPUT_CSV)
        fputs("number,attempt,function,version,at_s,start_s,end_s,environment,verdict,reason\n", output->file);
    if (output->format == OUTPUT_TABLE)
        fprintf(output->file, "%9s %7s  %-20s %-8s %12s %12s %12s  %-6s %-12s %s\n", "request", "attempt", "function",
                "version", "at s", "start s", "end s", "env", "verdict", "reason");
}

void output_request(const struct report_request *request, void *context)
{
    struct output *output = context;
    const struct scenario_function *function = &output->scenario->functions[request->function];
    const char *version = function->versions[request->version].name;

    begin(output);
    if (output->format == OUTPUT_JSON) {
        fputs(output->lines ? ",\n  " : "\n  ", output->file);
        write_request_json(output->file, request, function->name, version);
    } else {
        write_request_line(output->file, output->format, request, function->name, version);
    }
    output->lines++;
}

/* ---- JSON ---- */

static void write_throttles(FILE *file, const struct report_point *point)
{
    const char *separator = "";

    fprintf(file, "\"throttled\": %lld, \"throttles\": {", (long long)report_throttled(point));
    for (int reason = 0; reason < COUNTING_REASONS; reason++) {
        if (!point->throttles[reason])
            continue;
        fprintf(file, "%s\"%s\": %lld", separator, counting_reason_name((enum counting_reason)reason),
                (long long)point->throttles[reason]);
        separator = ", ";
    }
    fputs("}", file);
}

static void write_versions(FILE *file, const struct report_function *function)
{
    const char *separator = "";

    fputs("\"versions\": {", file);
    for (size_t i = 0; i < function->scenario->version_count; i++) {
        if (!function->version_invocations[i])
            continue;
        fprintf(file, "%s\"%s\": %lld", separator, function->scenario->versions[i].name,
                (long long)function->version_invocations[i]);
        separator = ", ";
    }
    fputs("}", file);
}

/* A number or null. */
static void write_utilisation(FILE *file, const char *name, double utilisation)
{
    if (utilisation < 0)
        fprintf(file, "\"%s\": null", name);
    else
        fprintf(file, "\"%s\": %.6g", name, utilisation);
}

static void write_function_json(FILE *file, const struct report *report, const struct report_function *function)
{
    const struct report_point *total = &function->total;

    fprintf(file, "    \"%s\": {\"invocations\": %lld, ", function->scenario->name, (long long)total->invocations);
    write_throttles(file, total);
    fprintf(file,
            ",\n      \"cold_starts\": %lld, \"spillover\": %lld, \"provisioned_invocations\": %lld, "
            "\"errors\": %lld, \"retries\": %lld, \"gave_up\": %lld,\n",
            (long long)total->cold_starts, (long long)total->spillover_invocations,
            (long long)total->provisioned_invocations, (long long)total->errors, (long long)function->retries,
            (long long)function->gave_up);
    fprintf(file, "      \"max_concurrency\": %d, \"mean_concurrency\": %.6g, \"max_provisioned_executions\": %d, ",
            total->concurrency_max, report_mean_concurrency(report, function), total->provisioned_max);
    write_utilisation(file, "max_provisioned_utilization", total->utilisation_max);
    fprintf(file,
            ",\n      \"latency_ms\": {\"mean\": %.6g, \"p50\": %.6g, \"p90\": %.6g, \"p99\": %.6g, \"max\": %.6g},\n",
            milliseconds(histogram_mean(&function->latency)), latency_ms(function, 0.5), latency_ms(function, 0.9),
            latency_ms(function, 0.99), milliseconds((double)function->latency.max_ns));
    fprintf(file,
            "      \"environments\": {\"on_demand\": %lld, \"provisioned\": %lld, \"shut_down\": %lld, "
            "\"killed\": %lld},\n      ",
            (long long)function->environments_made[CORE_ON_DEMAND],
            (long long)function->environments_made[CORE_PROVISIONED], (long long)function->environments_ended,
            (long long)function->environments_killed);
    write_versions(file, function);
    fputs("}", file);
}

static struct report_point total_of(const struct report *report)
{
    struct report_point total = {.utilisation_max = -1};

    for (size_t i = 0; i < report->scenario->function_count; i++)
        report_point_merge(&total, &report->functions[i].total);
    return total;
}

static void write_account_json(FILE *file, const struct report *report)
{
    struct report_point total = total_of(report);
    double mean = 0;

    for (size_t i = 0; i < report->scenario->function_count; i++)
        mean += report_mean_concurrency(report, &report->functions[i]);
    fprintf(file, "  \"account\": {\"concurrency\": %d, \"requests\": %lld, \"invocations\": %lld, ",
            report->account.limit, (long long)report->requests, (long long)total.invocations);
    write_throttles(file, &total);
    fprintf(file,
            ",\n    \"cold_starts\": %lld, \"spillover\": %lld, \"errors\": %lld, \"max_concurrency\": %d, "
            "\"mean_concurrency\": %.6g,\n    \"max_unreserved_concurrency\": %d, \"max_claimed_concurrency\": %lld, "
            "\"max_environments\": %d}",
            (long long)total.cold_starts, (long long)total.spillover_invocations, (long long)total.errors,
            report->account.concurrency_max, mean, report->account.unreserved_max,
            (long long)report->account.claimed_max, report->account.environments);
}

static double average_ms(const struct report_point *point)
{
    return point->ended ? milliseconds((double)point->duration_ns) / (double)point->ended : 0;
}

static void write_minute_function(FILE *file, const char *name, const struct report_point *point)
{
    int64_t on_qualifier = point->provisioned_invocations + point->spillover_invocations;

    fprintf(file,
            "\"%s\": {\"Invocations\": %lld, \"Throttles\": %lld, \"Errors\": %lld, \"ConcurrentExecutions\": %d, "
            "\"Duration\": {\"Average\": %.6g, \"Maximum\": %.6g}, \"ColdStarts\": %lld, "
            "\"ProvisionedConcurrencyInvocations\": %lld, \"ProvisionedConcurrencySpilloverInvocations\": %lld, "
            "\"ProvisionedConcurrentExecutions\": %d, ",
            name, (long long)point->invocations, (long long)report_throttled(point), (long long)point->errors,
            point->concurrency_max, average_ms(point), milliseconds((double)point->duration_max_ns),
            (long long)point->cold_starts, (long long)point->provisioned_invocations,
            (long long)point->spillover_invocations, point->provisioned_max);
    write_utilisation(file, "ProvisionedConcurrencyUtilization", point->utilisation_max);
    fputs(", ", file);
    write_utilisation(file, "ProvisionedConcurrencyUtilizationAverage",
                      on_qualifier ? point->utilisation_sum / (double)on_qualifier : -1);
    fputs("}", file);
}

static void write_minute_json(FILE *file, const struct report *report, int64_t minute)
{
    int64_t from_ns = minute * 60 * NS_PER_S, to_ns = from_ns + 60 * NS_PER_S;
    struct report_account_point account = report_account_between(report, from_ns, to_ns);
    struct report_point total = {.utilisation_max = -1};

    fprintf(file, "%s\n    {\"minute\": %lld, \"start_s\": %lld,\n      \"functions\": {", minute ? "," : "",
            (long long)minute, (long long)minute * 60);
    for (size_t i = 0; i < report->scenario->function_count; i++) {
        struct report_point point = report_point_between(report, (int)i, from_ns, to_ns);
        report_point_merge(&total, &point);
        fputs(i ? ",\n        " : "\n        ", file);
        write_minute_function(file, report->scenario->functions[i].name, &point);
    }
    fprintf(file,
            "},\n      \"account\": {\"Invocations\": %lld, \"Throttles\": %lld, \"Errors\": %lld, "
            "\"ConcurrentExecutions\": %d, \"UnreservedConcurrentExecutions\": %d, "
            "\"ClaimedAccountConcurrency\": %lld}}",
            (long long)total.invocations, (long long)report_throttled(&total), (long long)total.errors,
            account.concurrency_max, account.unreserved_max, (long long)account.claimed_max);
}

static void write_json(struct output *output, const struct report *report)
{
    FILE *file = output->file;

    if (output->requests)
        fputs("],\n", file);
    fprintf(file, "  \"seed\": %llu, \"duration_s\": %.9g,\n  \"functions\": {\n", (unsigned long long)report->seed,
            seconds(report->scenario->duration_ns));
    for (size_t i = 0; i < report->scenario->function_count; i++) {
        write_function_json(file, report, &report->functions[i]);
        fputs(i + 1 < report->scenario->function_count ? ",\n" : "},\n", file);
    }
    write_account_json(file, report);
    fputs(",\n  \"events\": [", file);
    /* Notes are made of names (letters, digits, - and _) and fixed words: nothing to escape. */
    for (size_t i = 0; i < report->note_count; i++)
        fprintf(file, "%s\n    {\"at_s\": %.9g, \"text\": \"%s\"}", i ? "," : "", seconds(report->notes[i].at_ns),
                report->notes[i].text);
    fputs("],\n  \"minutes\": [", file);
    for (int64_t minute = 0; minute < report_minutes(report); minute++)
        write_minute_json(file, report, minute);
    fputs("]}\n", file);
}

/* ---- CSV ---- */

static void write_csv_row(FILE *file, int64_t minute, const char *name, const struct report_point *point)
{
    fprintf(file, "%lld,%s,%lld,%lld,", (long long)minute, name, (long long)point->invocations,
            (long long)report_throttled(point));
    for (int reason = 0; reason < COUNTING_REASONS; reason++)
        fprintf(file, "%lld,", (long long)point->throttles[reason]);
    fprintf(file, "%lld,%d,%.6g,%.6g,%lld,%lld,%lld,%d,", (long long)point->errors, point->concurrency_max,
            average_ms(point), milliseconds((double)point->duration_max_ns), (long long)point->cold_starts,
            (long long)point->provisioned_invocations, (long long)point->spillover_invocations, point->provisioned_max);
    if (point->utilisation_max >= 0)
        fprintf(file, "%.6g", point->utilisation_max);
}

/* One row for each function and minute, and one for the account (function empty). */
static void write_csv(FILE *file, const struct report *report)
{
    fputs("minute,function,Invocations,Throttles,", file);
    for (int reason = 0; reason < COUNTING_REASONS; reason++)
        fprintf(file, "%s,", counting_reason_name((enum counting_reason)reason));
    fputs("Errors,ConcurrentExecutions,DurationAverage,DurationMaximum,ColdStarts,ProvisionedConcurrencyInvocations,"
          "ProvisionedConcurrencySpilloverInvocations,ProvisionedConcurrentExecutions,"
          "ProvisionedConcurrencyUtilization,UnreservedConcurrentExecutions,ClaimedAccountConcurrency\n",
          file);
    for (int64_t minute = 0; minute < report_minutes(report); minute++) {
        int64_t from_ns = minute * 60 * NS_PER_S, to_ns = from_ns + 60 * NS_PER_S;
        struct report_account_point account = report_account_between(report, from_ns, to_ns);
        struct report_point total = {.utilisation_max = -1};
        for (size_t i = 0; i < report->scenario->function_count; i++) {
            struct report_point point = report_point_between(report, (int)i, from_ns, to_ns);
            report_point_merge(&total, &point);
            write_csv_row(file, minute, report->scenario->functions[i].name, &point);
            fputs(",,\n", file);
        }
        total.concurrency_max = account.concurrency_max;
        total.utilisation_max = -1;
        write_csv_row(file, minute, "", &total);
        fprintf(file, ",%d,%lld\n", account.unreserved_max, (long long)account.claimed_max);
    }
}

/* ---- tables ---- */

static void write_function_row(FILE *file, const struct report *report, const struct report_function *function)
{
    const struct report_point *total = &function->total;

    fprintf(file, "%-20s %12lld %10lld %8lld %10lld %8d %9.1f %9.1f %9.1f %9.1f\n", function->scenario->name,
            (long long)total->invocations, (long long)report_throttled(total), (long long)total->cold_starts,
            (long long)total->spillover_invocations, total->concurrency_max, report_mean_concurrency(report, function),
            latency_ms(function, 0.5), latency_ms(function, 0.9), latency_ms(function, 0.99));
}

static void write_function_details(FILE *file, const struct report_function *function)
{
    const struct report_point *total = &function->total;

    for (int reason = 0; reason < COUNTING_REASONS; reason++) {
        if (total->throttles[reason])
            fprintf(file, "  %s: %lld throttled with %s\n", function->scenario->name,
                    (long long)total->throttles[reason], counting_reason_name((enum counting_reason)reason));
    }
    if (total->errors)
        fprintf(file, "  %s: %lld failed with 500\n", function->scenario->name, (long long)total->errors);
    if (function->retries)
        fprintf(file, "  %s: %lld retries, %lld requests gave up\n", function->scenario->name,
                (long long)function->retries, (long long)function->gave_up);
    if (total->provisioned_max)
        fprintf(file, "  %s: at most %d executions on provisioned environments, utilisation %.2f\n",
                function->scenario->name, total->provisioned_max, MAX(total->utilisation_max, 0));
    for (size_t i = 0; i < function->scenario->version_count; i++) {
        if (function->version_invocations[i] && function->scenario->version_count > 2)
            fprintf(file, "  %s: %lld on version %s\n", function->scenario->name,
                    (long long)function->version_invocations[i], function->scenario->versions[i].name);
    }
}

static void write_minutes_table(FILE *file, const struct report *report)
{
    fprintf(file, "\n%6s %-20s %12s %10s %8s %10s %8s %8s %8s %8s\n", "minute", "function", "Invocations", "Throttles",
            "cold", "Spillover", "Concurr.", "PC exec.", "PC util.", "Claimed");
    for (int64_t minute = 0; minute < report_minutes(report); minute++) {
        int64_t from_ns = minute * 60 * NS_PER_S, to_ns = from_ns + 60 * NS_PER_S;
        struct report_account_point account = report_account_between(report, from_ns, to_ns);
        for (size_t i = 0; i < report->scenario->function_count; i++) {
            struct report_point point = report_point_between(report, (int)i, from_ns, to_ns);
            char utilisation[16] = "-";
            if (point.utilisation_max >= 0)
                snprintf(utilisation, sizeof(utilisation), "%.2f", point.utilisation_max);
            fprintf(file, "%6lld %-20s %12lld %10lld %8lld %10lld %8d %8d %8s %8lld\n", (long long)minute,
                    report->scenario->functions[i].name, (long long)point.invocations,
                    (long long)report_throttled(&point), (long long)point.cold_starts,
                    (long long)point.spillover_invocations, point.concurrency_max, point.provisioned_max, utilisation,
                    (long long)account.claimed_max);
        }
    }
}

static void write_table(struct output *output, const struct report *report)
{
    FILE *file = output->file;

    if (output->requests)
        fputs("\n", file);
    fprintf(file, "%.9g s simulated, %lld requests, seed %llu\n\n", seconds(report->scenario->duration_ns),
            (long long)report->requests, (unsigned long long)report->seed);
    fprintf(file, "%-20s %12s %10s %8s %10s %8s %9s %9s %9s %9s\n", "function", "invocations", "throttled", "cold",
            "spillover", "max con.", "mean con.", "p50 ms", "p90 ms", "p99 ms");
    for (size_t i = 0; i < report->scenario->function_count; i++)
        write_function_row(file, report, &report->functions[i]);
    for (size_t i = 0; i < report->scenario->function_count; i++)
        write_function_details(file, &report->functions[i]);
    fprintf(file, "account: limit %d, at most %d in flight (%d unreserved), %lld claimed, %d environments\n",
            report->account.limit, report->account.concurrency_max, report->account.unreserved_max,
            (long long)report->account.claimed_max, report->account.environments);
    if (report->note_count)
        fputs("\n", file);
    for (size_t i = 0; i < report->note_count; i++)
        fprintf(file, "%12.3f s  %s\n", seconds(report->notes[i].at_ns), report->notes[i].text);
    write_minutes_table(file, report);
}

int output_report(struct output *output, const struct report *report)
{
    begin(output);
    switch (output->format) {
    case OUTPUT_TABLE:
        write_table(output, report);
        break;
    case OUTPUT_JSON:
        write_json(output, report);
        break;
    case OUTPUT_CSV:
        if (!output->requests)
            write_csv(output->file, report);
        break;
    }
    return fflush(output->file) == 0 && !ferror(output->file) ? 0 : -EIO;
}
