#include "cli/plan.h"

#include "cli/scenario_command.h"
#include "sim/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct plan_command_options {
    bool json;
    struct scenario_seed seed;
    double percentile;
};

static const char USAGE[] =
    "Usage: kiln plan SCENARIO.json [OPTION...]\n\n"
    "Finds the smallest provisioned concurrency (PC) without cold starts, and with it the smallest reserved\n"
    "concurrency (RC) without throttles, for the traffic of a scenario; the service's own rule beside them.\n\n"
    "  --percentile P         of the requests that must be warm and not throttled (default 100: all)\n"
    "  --format table|json    form of the result (default table)\n"
    "  --seed N               start of the random numbers (default: the scenario's, else 1)\n"
    "  --help                 this text\n\n"
    "Scenarios and plans are described in docs/simulator.md; examples/scenarios has some.\n";

static int apply_percentile(const char *text, void *context, struct fault *fault)
{
    struct plan_command_options *options = context;
    char *end;

    options->percentile = strtod(text, &end);
    if (!*text || *end || !(options->percentile > 0 && options->percentile <= 100))
        return fault_set(fault, 0, "--percentile: '%s' is not a number above 0 and up to 100", text);
    return 0;
}

static int apply_format(const char *text, void *context, struct fault *fault)
{
    struct plan_command_options *options = context;

    options->json = !strcmp(text, "json");
    if (!options->json && strcmp(text, "table"))
        return fault_set(fault, 0, "--format: '%s' is not table or json", text);
    return 0;
}

static int apply_seed(const char *text, void *context, struct fault *fault)
{
    struct plan_command_options *options = context;

    return scenario_seed_apply(text, &options->seed, fault);
}

static const struct scenario_option OPTIONS[] = {
    {"format", false, apply_format},
    {"percentile", false, apply_percentile},
    {"seed", false, apply_seed},
};

/* Whole units, as one would set them. A product that is a whole number but for rounding is that number. */
static double rule_for_pc(double rule)
{
    return ceil(rule * 1.1 - 1e-6);
}

static double rule_for_rc(double rule)
{
    return ceil(rule - 1e-6);
}

static void write_rows(const struct scenario *scenario, const struct plan_function *function)
{
    for (size_t i = 0; i < function->qualifier_count; i++) {
        const struct plan_qualifier *qualifier = &function->qualifiers[i];
        char pc[16] = "-", rule[16] = "-";
        if (qualifier->provisioned >= 0) {
            snprintf(pc, sizeof(pc), "%d", qualifier->provisioned);
            snprintf(rule, sizeof(rule), "%.0f", rule_for_pc(qualifier->rule));
        }
        printf("%-20s %-12s %10s %16s", scenario->functions[function->function].name,
               scenario_qualifier_name(scenario, &qualifier->qualifier), pc, rule);
        if (i == 0)
            printf(" %10d %16.0f", function->reserved, rule_for_rc(function->rule));
        putchar('\n');
    }
}

static void write_outcome(const struct scenario *scenario, const struct plan_function *function)
{
    printf("  %s: %lld invocations, %lld cold starts, %lld throttled", scenario->functions[function->function].name,
           (long long)function->invocations, (long long)function->cold_starts, (long long)function->throttled);
    if (function->paced)
        printf(" (%lld by the scaling rate, which more RC does not change)", (long long)function->paced);
    if (function->errors)
        printf(", %lld failed with 500", (long long)function->errors);
    putchar('\n');
}

static void write_table(const struct plan *plan, double percentile)
{
    const struct scenario *scenario = plan->scenario;

    printf("%-20s %-12s %10s %16s %10s %16s\n", "function", "qualifier", "PC", "rps x s + 10%", "RC", "rps x s");
    for (size_t i = 0; i < plan->function_count; i++)
        write_rows(scenario, &plan->functions[i]);
    printf("\nWith these, found for %g%% of the requests:\n", percentile);
    for (size_t i = 0; i < plan->function_count; i++)
        write_outcome(scenario, &plan->functions[i]);
    printf("\nThe account limit must be at least %lld, %d of them unreserved. It is %d%s.\n", (long long)plan->needed,
           scenario->limits.unreserved_minimum, scenario->limits.concurrency,
           plan->needed > scenario->limits.concurrency ? ", which is too low" : "");
}

static void write_qualifiers_json(const struct plan *plan, const struct plan_function *function)
{
    const char *separator = "";

    for (size_t i = 0; i < function->qualifier_count; i++) {
        const struct plan_qualifier *qualifier = &function->qualifiers[i];
        if (qualifier->provisioned < 0)
            continue;
        printf("%s\"%s\": {\"count\": %d, \"rule\": %.0f}", separator,
               scenario_qualifier_name(plan->scenario, &qualifier->qualifier), qualifier->provisioned,
               rule_for_pc(qualifier->rule));
        separator = ", ";
    }
}

/* Names of functions and qualifiers are made of letters, digits, - and _ (and $LATEST): nothing to escape. */
static void write_json(const struct plan *plan, double percentile)
{
    const struct scenario *scenario = plan->scenario;

    printf("{\"percentile\": %.9g, \"simulations\": %d,\n"
           "  \"account\": {\"concurrency\": %d, \"unreserved_minimum\": %d, \"needed_concurrency\": %lld},\n"
           "  \"functions\": {",
           percentile, plan->simulations, scenario->limits.concurrency, scenario->limits.unreserved_minimum,
           (long long)plan->needed);
    for (size_t i = 0; i < plan->function_count; i++) {
        const struct plan_function *function = &plan->functions[i];
        printf("%s\n    \"%s\": {\"reserved\": {\"count\": %d, \"rule\": %.0f}, \"provisioned\": {", i ? "," : "",
               scenario->functions[function->function].name, function->reserved, rule_for_rc(function->rule));
        write_qualifiers_json(plan, function);
        printf("},\n      \"invocations\": %lld, \"cold_starts\": %lld, \"throttled\": %lld, "
               "\"throttled_by_scaling_rate\": %lld, \"errors\": %lld}",
               (long long)function->invocations, (long long)function->cold_starts, (long long)function->throttled,
               (long long)function->paced, (long long)function->errors);
    }
    puts("}}");
}

static enum scenario_command_status run(const struct scenario *scenario, const void *context, struct fault *fault)
{
    const struct plan_command_options *given = context;
    struct plan *plan CLEANUP(plan_cleanup) = NULL;
    struct plan_options options = {.fraction = given->percentile / 100,
                                   .seed = scenario_seed_of(&given->seed, scenario)};

    if (plan_make(scenario, &options, &plan, fault) < 0)
        return SCENARIO_COMMAND_USAGE;
    if (given->json)
        write_json(plan, given->percentile);
    else
        write_table(plan, given->percentile);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        *fault = (struct fault){.text = "cannot write the result"};
        return SCENARIO_COMMAND_FAILED;
    }
    return SCENARIO_COMMAND_OK;
}

int plan_main(int argc, char **argv)
{
    struct plan_command_options options = {.percentile = 100};
    struct scenario_command command = {"plan", USAGE, OPTIONS, ARRAY_SIZE(OPTIONS), &options, run};

    return scenario_command_main(&command, argc, argv);
}
