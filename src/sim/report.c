#include "sim/report.h"

#include <stdio.h>

/* Steps that divide a minute (or of which a minute is a whole number), so that minutes are sums of them. */
static const int64_t STEPS_MS[] = {10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 60000};

/* More points than a picture has columns are of no use, but a step must not pass a minute. */
enum { ENOUGH_POINTS = 1800 };

static int64_t step_for(int64_t duration_ns)
{
    for (size_t i = 0; i < ARRAY_SIZE(STEPS_MS); i++) {
        if (duration_ns / (STEPS_MS[i] * NS_PER_MS) <= ENOUGH_POINTS)
            return STEPS_MS[i] * NS_PER_MS;
    }
    return 60 * NS_PER_S;
}

static bool allocate(struct report *report)
{
    const struct scenario *scenario = report->scenario;

    report->functions = calloc(scenario->function_count, sizeof(*report->functions));
    report->account_points = calloc(report->point_count, sizeof(*report->account_points));
    report->notes = calloc(REPORT_NOTES, sizeof(*report->notes));
    report->environments = calloc(REPORT_LANES, sizeof(*report->environments));
    report->requests_seen = calloc(REPORT_LANE_REQUESTS, sizeof(*report->requests_seen));
    if (!report->functions || !report->account_points || !report->notes || !report->environments ||
        !report->requests_seen)
        return false;
    for (size_t i = 0; i < scenario->function_count; i++) {
        struct report_function *function = &report->functions[i];
        function->scenario = &scenario->functions[i];
        function->total.utilisation_max = -1;
        function->version_invocations = calloc(function->scenario->version_count, sizeof(int64_t));
        function->points = calloc(report->point_count, sizeof(*function->points));
        if (!function->version_invocations || !function->points)
            return false;
        for (size_t k = 0; k < report->point_count; k++)
            function->points[k].utilisation_max = -1;
    }
    return true;
}

struct report *report_new(const struct scenario *scenario)
{
    struct report *report CLEANUP(report_cleanup) = calloc(1, sizeof(*report));

    if (!report)
        return NULL;
    report->scenario = scenario;
    report->step_ns = step_for(scenario->duration_ns);
    report->point_count = (size_t)((scenario->duration_ns + report->step_ns - 1) / report->step_ns);
    if (!allocate(report))
        return NULL;
    return TAKE_PTR(report);
}

struct report *report_free(struct report *report)
{
    if (!report)
        return NULL;
    for (size_t i = 0; report->functions && i < report->scenario->function_count; i++) {
        free(report->functions[i].version_invocations);
        free(report->functions[i].points);
    }
    free(report->functions);
    free(report->account_points);
    free(report->notes);
    free(report->environments);
    free(report->requests_seen);
    free(report);
    return NULL;
}

void report_cleanup(struct report **report)
{
    *report = report_free(*report);
}

/* ---- points ---- */

void report_point_merge(struct report_point *into, const struct report_point *from)
{
    into->invocations += from->invocations;
    for (size_t i = 0; i < COUNTING_REASONS; i++)
        into->throttles[i] += from->throttles[i];
    into->errors += from->errors;
    into->cold_starts += from->cold_starts;
    into->provisioned_invocations += from->provisioned_invocations;
    into->spillover_invocations += from->spillover_invocations;
    into->duration_ns += from->duration_ns;
    into->duration_max_ns = MAX(into->duration_max_ns, from->duration_max_ns);
    into->ended += from->ended;
    into->concurrency_max = MAX(into->concurrency_max, from->concurrency_max);
    into->provisioned_max = MAX(into->provisioned_max, from->provisioned_max);
    into->provisioned_ready = from->provisioned_ready;
    into->provisioned_size = from->provisioned_size;
    into->reserved = from->reserved;
    into->environments = from->environments;
    into->utilisation_max = MAX(into->utilisation_max, from->utilisation_max);
    into->utilisation_sum += from->utilisation_sum;
}

struct report_point report_point_between(const struct report *report, int function, int64_t from_ns, int64_t to_ns)
{
    struct report_point point = {.utilisation_max = -1, .reserved = -1};
    size_t end = MIN((size_t)((to_ns + report->step_ns - 1) / report->step_ns), report->point_count);

    for (size_t i = (size_t)(from_ns / report->step_ns); i < end; i++)
        report_point_merge(&point, &report->functions[function].points[i]);
    return point;
}

struct report_account_point report_account_between(const struct report *report, int64_t from_ns, int64_t to_ns)
{
    struct report_account_point point = {0};
    size_t end = MIN((size_t)((to_ns + report->step_ns - 1) / report->step_ns), report->point_count);

    for (size_t i = (size_t)(from_ns / report->step_ns); i < end; i++) {
        const struct report_account_point *from = &report->account_points[i];
        point.concurrency_max = MAX(point.concurrency_max, from->concurrency_max);
        point.unreserved_max = MAX(point.unreserved_max, from->unreserved_max);
        point.claimed_max = MAX(point.claimed_max, from->claimed_max);
        point.environments = MAX(point.environments, from->environments);
        point.limit = from->limit;
    }
    return point;
}

int64_t report_throttled(const struct report_point *point)
{
    int64_t sum = 0;

    for (size_t i = 0; i < COUNTING_REASONS; i++)
        sum += point->throttles[i];
    return sum;
}

int64_t report_minutes(const struct report *report)
{
    return (report->scenario->duration_ns + 60 * NS_PER_S - 1) / (60 * NS_PER_S);
}

double report_mean_concurrency(const struct report *report, const struct report_function *function)
{
    return function->busy_ns / (double)report->scenario->duration_ns;
}

/* ---- names ---- */

const char *report_label(int64_t number, char text[REPORT_LABEL_BYTES])
{
    char reversed[REPORT_LABEL_BYTES];
    size_t length = 0, i = 0;

    for (int64_t rest = number + 1; rest > 0; rest = (rest - 1) / 26)
        reversed[length++] = (char)('A' + (rest - 1) % 26);
    while (length)
        text[i++] = reversed[--length];
    text[i] = '\0';
    return text;
}

const char *report_verdict_name(const struct report_request *request)
{
    switch (request->verdict) {
    case REPORT_SERVED:
        return request->provisioned ? "provisioned" : request->cold ? "cold" : "warm";
    case REPORT_THROTTLED:
        return "throttled";
    case REPORT_ERROR:
        return "error";
    }
    return "";
}
