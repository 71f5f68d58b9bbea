/*
 * Each question is a search for the smallest number that suffices, between 0 and what a run without limits needs at
 * most. With every request warm (or admitted) at some number, a larger one changes nothing, so halving finds it; where
 * a few may fail it finds one of which the number below does not suffice. It begins with what a run was seen to use.
 *
 * Every simulation runs on a variant of the scenario: a copy of the struct with arrays of its own where it differs.
 * While a function is looked at, the others' traffic is silenced in place: every source keeps its index and with it its
 * random numbers.
 */
#include "sim/plan.h"

#include "sim/simulation.h"

#include <math.h>
#include <string.h>

struct planner {
    const struct scenario *scenario;
    const struct plan_options *options;
    struct plan *plan;
    struct scenario variant;
    struct scenario_function *functions; /* the variant's, as the next two */
    struct scenario_event *events;
    struct scenario_traffic *traffic;
    struct scenario_provisioned **provisioned; /* of each function, room for all of its qualifiers */
    int64_t unavoidable; /* cold starts of the function with all PC that the present qualifier could use */
    int32_t peak;        /* its concurrency in the last run that was good enough */
    struct fault *fault;
};

/* ---- the variant ---- */

static bool is_kept(const struct scenario_event *event)
{
    return event->what != EVENT_RESERVED && event->what != EVENT_PROVISIONED && event->what != EVENT_ACCOUNT;
}

static int build_variant(struct planner *planner)
{
    const struct scenario *scenario = planner->scenario;

    planner->variant = *scenario;
    planner->functions = calloc(scenario->function_count, sizeof(*planner->functions));
    planner->events = calloc(MAX(scenario->event_count, (size_t)1), sizeof(*planner->events));
    planner->traffic = calloc(MAX(scenario->traffic_count, (size_t)1), sizeof(*planner->traffic));
    planner->provisioned = calloc(scenario->function_count, sizeof(struct scenario_provisioned *));
    if (!planner->functions || !planner->events || !planner->traffic || !planner->provisioned)
        return -ENOMEM;
    for (size_t i = 0; i < scenario->function_count; i++) {
        const struct scenario_function *function = &scenario->functions[i];
        planner->provisioned[i] =
            calloc(function->version_count + function->alias_count, sizeof(struct scenario_provisioned));
        if (!planner->provisioned[i])
            return -ENOMEM;
    }
    planner->variant.functions = planner->functions;
    planner->variant.traffic = planner->traffic;
    planner->variant.events = planner->events;
    planner->variant.event_count = 0;
    for (size_t i = 0; i < scenario->event_count; i++) {
        if (is_kept(&scenario->events[i]))
            planner->events[planner->variant.event_count++] = scenario->events[i];
    }
    return 0;
}

/* No RC, no PC, no scaling anywhere; no limit but those; all of the traffic. */
static void clear_variant(struct planner *planner)
{
    const struct scenario *scenario = planner->scenario;

    memcpy(planner->functions, scenario->functions, scenario->function_count * sizeof(*planner->functions));
    memcpy(planner->traffic, scenario->traffic, scenario->traffic_count * sizeof(*planner->traffic));
    for (size_t i = 0; i < scenario->function_count; i++) {
        planner->functions[i].reserved = -1;
        planner->functions[i].provisioned = planner->provisioned[i];
        planner->functions[i].provisioned_count = 0;
        planner->functions[i].scaling_count = 0;
    }
    planner->variant.limits = scenario->limits;
    planner->variant.limits.concurrency = COUNTING_MAXIMUM;
    planner->variant.limits.unreserved_minimum = 0;
    planner->variant.limits.scaling_rate = COUNTING_MAXIMUM;
}

/* Which version or alias of the function the source calls. False: none. */
static bool find_called(const struct scenario *scenario, const struct scenario_traffic *traffic, int function,
                        struct scenario_qualifier *ret_qualifier)
{
    if (traffic->kind == TRAFFIC_TRACE) /* may name any function that has the qualifier */
        return scenario_find_qualifier(scenario, function, traffic->requested, ret_qualifier);
    *ret_qualifier = traffic->qualifier;
    return traffic->qualifier.function == function;
}

static bool is_same(const struct scenario_qualifier *a, const struct scenario_qualifier *b)
{
    return a->function == b->function && a->version == b->version && a->alias == b->alias;
}

/* Leaves the traffic of a function, or of one of its qualifiers. */
static void silence_others(struct planner *planner, int function, const struct scenario_qualifier *only)
{
    for (size_t i = 0; i < planner->scenario->traffic_count; i++) {
        struct scenario_qualifier called;
        if (find_called(planner->scenario, &planner->traffic[i], function, &called) &&
            (!only || is_same(&called, only)))
            continue;
        planner->traffic[i].kind = TRAFFIC_CONSTANT;
        planner->traffic[i].rps = 0;
    }
}

/* PC as planned so far: `count` for one qualifier, `others` for those still to be planned. */
static void provide(struct planner *planner, const struct plan_function *function, size_t qualifier, int32_t count,
                    int32_t others)
{
    struct scenario_function *variant = &planner->functions[function->function];

    variant->provisioned_count = 0;
    for (size_t i = 0; i < function->qualifier_count; i++) {
        const struct plan_qualifier *from = &function->qualifiers[i];
        int32_t wanted = i < qualifier ? from->provisioned : i == qualifier ? count : others;
        if (from->provisioned >= 0 && wanted > 0)
            planner->provisioned[function->function][variant->provisioned_count++] =
                (struct scenario_provisioned){.qualifier = from->qualifier, .count = wanted};
    }
}

static int simulate(struct planner *planner, struct report **ret_report)
{
    struct simulation_options options = {.seed = planner->options->seed};

    planner->plan->simulations++;
    return simulation_run(&planner->variant, &options, ret_report, planner->fault);
}

/* ---- figures of a run ---- */

static bool is_rare(const struct planner *planner, int64_t count, int64_t all)
{
    return (double)count <= floor((1 - planner->options->fraction) * (double)all + 1e-9);
}

static int64_t attempts_of(const struct report_point *total)
{
    return total->invocations + report_throttled(total) + total->errors;
}

/* rps x seconds of the busiest minute (or of the whole, if that is shorter). */
static double rule_of(const struct report *report, int function)
{
    double most = 0;

    for (int64_t minute = 0; minute < report_minutes(report); minute++) {
        int64_t from_ns = minute * 60 * NS_PER_S, to_ns = MIN(from_ns + 60 * NS_PER_S, report->scenario->duration_ns);
        struct report_point point = report_point_between(report, function, from_ns, to_ns);
        if (to_ns - from_ns < 60 * NS_PER_S && minute)
            break; /* the rest of a minute says little */
        if (point.ended)
            most = MAX(most, (double)point.invocations * ((double)point.duration_ns / (double)point.ended) /
                                 (double)(to_ns - from_ns));
    }
    return most;
}

/* Units that certainly suffice: for what was in flight at most, and for the most requests in a second. A second lies
 * within this many steps and one more. */
static int32_t enough_for(const struct report *report, int function)
{
    const struct report_function *run = &report->functions[function];
    size_t steps = (size_t)((NS_PER_S + report->step_ns - 1) / report->step_ns) + 1;
    int64_t within = 0, most = 0;

    for (size_t i = 0; i < report->point_count; i++) {
        within += run->points[i].invocations;
        if (i >= steps)
            within -= run->points[i - steps].invocations;
        most = MAX(most, within);
    }
    most = (most + COUNTING_RATE_FACTOR - 1) / COUNTING_RATE_FACTOR;
    return (int32_t)MIN(MAX(most, run->total.concurrency_max), COUNTING_MAXIMUM);
}

/* ---- searching ---- */

/* Whether `count` suffices. 1, 0 or -errno. */
typedef int suffices_function(struct planner *planner, const struct plan_function *function, size_t qualifier,
                              int32_t count);

/* `high` is taken to suffice. `guess` and the number below it are tried first: where nothing may fail, the largest that
 * was in use at a time is nearly always the answer. */
static int search(struct planner *planner, const struct plan_function *function, size_t qualifier, int32_t low,
                  int32_t high, int32_t guess, suffices_function *suffices, int32_t *ret_count)
{
    int32_t next = guess;

    for (int tried = 1; low < high; tried++) {
        int r;
        next = MAX(low, MIN(next, high - 1));
        r = suffices(planner, function, qualifier, next);
        if (r < 0)
            return r;
        if (r)
            high = next;
        else
            low = next + 1;
        next = tried == 1 && r ? high - 1 : low + (high - low) / 2;
    }
    *ret_count = low;
    return 0;
}

/* With so much PC. */
static int run_with_provisioned(struct planner *planner, const struct plan_function *function, size_t qualifier,
                                int32_t count, struct report_point *ret_total)
{
    struct report *report CLEANUP(report_cleanup) = NULL;
    int r;

    clear_variant(planner);
    silence_others(planner, function->function, NULL);
    provide(planner, function, qualifier, count, function->reserved);
    r = simulate(planner, &report);
    if (r == 0)
        *ret_total = report->functions[function->function].total;
    return r;
}

static int is_warm_with(struct planner *planner, const struct plan_function *function, size_t qualifier, int32_t count)
{
    struct report_point total;
    int r = run_with_provisioned(planner, function, qualifier, count, &total);

    if (r < 0)
        return r;
    if (total.cold_starts > planner->unavoidable && !is_rare(planner, total.cold_starts, attempts_of(&total)))
        return 0;
    planner->peak = total.concurrency_max;
    return 1;
}

/* Some cold starts no PC prevents: those of $LATEST, or of an alias that moves before its PC has followed. So the
 * smallest PC that has no more of them than the largest is enough. */
static int plan_qualifier(struct planner *planner, struct plan_function *function, size_t index)
{
    struct report_point total;
    int r = run_with_provisioned(planner, function, index, function->reserved, &total);

    if (r < 0)
        return r;
    planner->unavoidable = total.cold_starts;
    planner->peak = total.concurrency_max;
    return search(planner, function, index, 0, function->reserved, total.provisioned_max, is_warm_with,
                  &function->qualifiers[index].provisioned);
}

static int is_admitted_with(struct planner *planner, const struct plan_function *function, size_t qualifier,
                            int32_t count)
{
    struct report *report CLEANUP(report_cleanup) = NULL;
    const struct report_point *total;
    int r;

    (void)qualifier;
    clear_variant(planner);
    silence_others(planner, function->function, NULL);
    provide(planner, function, function->qualifier_count, 0, 0);
    planner->functions[function->function].reserved = count;
    r = simulate(planner, &report);
    if (r < 0)
        return r;
    total = &report->functions[function->function].total;
    return is_rare(planner, report_throttled(total), attempts_of(total));
}

/* ---- one function ---- */

/* What its traffic, or that of one qualifier, does without limits. */
static int run_freely(struct planner *planner, int function, const struct scenario_qualifier *only,
                      struct report **ret_report)
{
    clear_variant(planner);
    silence_others(planner, function, only);
    return simulate(planner, ret_report);
}

/* The most concurrency that anything here is tried with: idle PC of one qualifier is of no use to another. */
static int64_t sum_provisioned(const struct plan_function *function)
{
    int64_t sum = 0;

    for (size_t i = 0; i < function->qualifier_count; i++)
        sum += MAX(function->qualifiers[i].provisioned, 0);
    return sum;
}

static int plan_function(struct planner *planner, struct plan_function *function)
{
    struct report *report CLEANUP(report_cleanup) = NULL;
    int32_t enough;
    int64_t provisioned;
    int r = run_freely(planner, function->function, NULL, &report);

    if (r < 0)
        return r;
    enough = enough_for(report, function->function);
    planner->peak = report->functions[function->function].total.concurrency_max;
    function->rule = rule_of(report, function->function);
    function->reserved = enough; /* until it is found */
    for (size_t i = 0; i < function->qualifier_count; i++) {
        r = function->qualifiers[i].provisioned < 0 ? 0 : plan_qualifier(planner, function, i);
        if (r < 0)
            return r;
    }
    provisioned = sum_provisioned(function);
    return search(planner, function, 0, (int32_t)MAX(provisioned, 1),
                  (int32_t)MIN(provisioned + enough, COUNTING_MAXIMUM), planner->peak, is_admitted_with,
                  &function->reserved);
}

/* ---- who has traffic ---- */

static bool points_at(const struct scenario_alias *alias, int version)
{
    return alias->routing.version == version || alias->routing.second == version;
}

/* The service refuses PC for a version that an alias with PC points to. */
static bool can_have_provisioned(const struct planner *planner, const struct plan_function *function,
                                 const struct scenario_qualifier *qualifier)
{
    const struct scenario_function *scenario = &planner->scenario->functions[qualifier->function];

    if (!strcmp(scenario_qualifier_name(planner->scenario, qualifier), "$LATEST"))
        return false;
    for (size_t i = 0; qualifier->alias < 0 && i < function->qualifier_count; i++) {
        int alias = function->qualifiers[i].qualifier.alias;
        if (alias >= 0 && points_at(&scenario->aliases[alias], qualifier->version))
            return false;
    }
    return true;
}

/* Keeps the qualifier if it has requests, which of a trace only a run shows. */
static int add_qualifier(struct planner *planner, struct plan_function *function,
                         const struct scenario_qualifier *qualifier)
{
    struct report *report CLEANUP(report_cleanup) = NULL;
    int r = run_freely(planner, qualifier->function, qualifier, &report);

    if (r < 0 || !report->functions[qualifier->function].total.invocations)
        return r;
    function->qualifiers[function->qualifier_count] = (struct plan_qualifier){
        .qualifier = *qualifier,
        .provisioned = can_have_provisioned(planner, function, qualifier) ? 0 : -1,
        .rule = rule_of(report, qualifier->function),
    };
    function->qualifier_count++;
    return 0;
}

static bool is_called(const struct planner *planner, const struct scenario_qualifier *qualifier)
{
    for (size_t i = 0; i < planner->scenario->traffic_count; i++) {
        struct scenario_qualifier called;
        if (find_called(planner->scenario, &planner->scenario->traffic[i], qualifier->function, &called) &&
            is_same(&called, qualifier))
            return true;
    }
    return false;
}

/* Aliases first: see can_have_provisioned. */
static int find_qualifiers(struct planner *planner, struct plan_function *function)
{
    const struct scenario_function *scenario = &planner->scenario->functions[function->function];
    int aliases = (int)scenario->alias_count, count = aliases + (int)scenario->version_count, r = 0;

    function->qualifiers = calloc((size_t)count, sizeof(*function->qualifiers));
    if (!function->qualifiers)
        return -ENOMEM;
    for (int i = 0; r == 0 && i < count; i++) {
        struct scenario_qualifier qualifier = {function->function, i < aliases ? -1 : i - aliases,
                                               i < aliases ? i : -1};
        if (is_called(planner, &qualifier))
            r = add_qualifier(planner, function, &qualifier);
    }
    return r;
}

static int find_traffic(struct planner *planner)
{
    struct plan *plan = planner->plan;

    plan->functions = calloc(planner->scenario->function_count, sizeof(*plan->functions));
    if (!plan->functions)
        return -ENOMEM;
    for (size_t i = 0; i < planner->scenario->function_count; i++) {
        struct plan_function *function = &plan->functions[plan->function_count];
        int r;
        function->function = (int)i;
        r = find_qualifiers(planner, function);
        if (r < 0 || function->qualifier_count) {
            plan->function_count++;
            if (r < 0)
                return r;
            continue;
        }
        free(function->qualifiers);
        *function = (struct plan_function){0};
    }
    return plan->function_count ? 0 : fault_set(planner->fault, 0, "there is no traffic to plan for");
}

/* ---- the whole plan at work ---- */

static void count_paced(const struct report_request *request, void *context)
{
    struct plan *plan = context;

    if (request->verdict != REPORT_THROTTLED || request->throttle.kind != COUNTING_KIND_SCALING_RATE)
        return;
    for (size_t i = 0; i < plan->function_count; i++)
        plan->functions[i].paced += plan->functions[i].function == request->function;
}

static int prove(struct planner *planner)
{
    struct plan *plan = planner->plan;
    struct simulation_options options = {planner->options->seed, count_paced, plan};
    struct report *report CLEANUP(report_cleanup) = NULL;
    int r;

    clear_variant(planner);
    planner->variant.limits = planner->scenario->limits;
    planner->variant.limits.concurrency = (int32_t)MIN(plan->needed, COUNTING_MAXIMUM);
    for (size_t i = 0; i < plan->function_count; i++) {
        const struct plan_function *function = &plan->functions[i];
        provide(planner, function, function->qualifier_count, 0, 0);
        planner->functions[function->function].reserved = function->reserved;
    }
    plan->simulations++;
    r = simulation_run(&planner->variant, &options, &report, planner->fault);
    for (size_t i = 0; r == 0 && i < plan->function_count; i++) {
        struct plan_function *function = &plan->functions[i];
        const struct report_point *total = &report->functions[function->function].total;
        function->invocations = total->invocations;
        function->cold_starts = total->cold_starts;
        function->throttled = report_throttled(total);
        function->errors = total->errors;
    }
    return r;
}

/* ---- the plan ---- */

static int make(struct planner *planner)
{
    struct plan *plan = planner->plan;
    int r = build_variant(planner);

    if (r == 0)
        r = find_traffic(planner);
    plan->needed = planner->scenario->limits.unreserved_minimum;
    for (size_t i = 0; r == 0 && i < plan->function_count; i++) {
        r = plan_function(planner, &plan->functions[i]);
        plan->needed += plan->functions[i].reserved;
    }
    return r == 0 ? prove(planner) : r;
}

static void free_variant(struct planner *planner)
{
    for (size_t i = 0; planner->provisioned && i < planner->scenario->function_count; i++)
        free(planner->provisioned[i]);
    free(planner->provisioned);
    free(planner->functions);
    free(planner->events);
    free(planner->traffic);
}

int plan_make(const struct scenario *scenario, const struct plan_options *options, struct plan **ret_plan,
              struct fault *fault)
{
    struct plan *plan CLEANUP(plan_cleanup) = calloc(1, sizeof(*plan));
    struct planner planner = {.scenario = scenario, .options = options, .plan = plan, .fault = fault};
    int r = -ENOMEM;

    if (plan) {
        plan->scenario = scenario;
        r = make(&planner);
        free_variant(&planner);
    }
    if (r == -ENOMEM)
        return fault_set(fault, ENOMEM, "out of memory");
    if (r < 0)
        return r;
    *ret_plan = TAKE_PTR(plan);
    return 0;
}

struct plan *plan_free(struct plan *plan)
{
    if (!plan)
        return NULL;
    for (size_t i = 0; i < plan->function_count; i++)
        free(plan->functions[i].qualifiers);
    free(plan->functions);
    free(plan);
    return NULL;
}

void plan_cleanup(struct plan **plan)
{
    *plan = plan_free(*plan);
}
