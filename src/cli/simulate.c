#include "cli/simulate.h"

#include "cli/scenario_command.h"
#include "sim/output.h"
#include "sim/simulation.h"
#include "sim/svg.h"

#include <stdio.h>
#include <string.h>

struct simulate_options {
    enum output_format format;
    bool requests;
    const char *svg; /* NULL: none */
    struct scenario_seed seed;
};

static const char USAGE[] =
    "Usage: kiln simulate SCENARIO.json [OPTION...]\n\n"
    "Says what would happen under the concurrency model, by the same decisions that the daemon makes.\n\n"
    "  --format table|json|csv        form of the result (default table)\n"
    "  --requests                     also a line for every request; in CSV instead of the minutes\n"
    "  --seed N                       start of the random numbers (default: the scenario's, else 1)\n"
    "  --svg FILE                     also draw it\n"
    "  --help                         this text\n\n"
    "Scenarios are described in docs/simulator.md; examples/scenarios has some.\n";

static int apply_format(const char *text, void *context, struct fault *fault)
{
    static const char *const names[] = {"table", "json", "csv"};
    struct simulate_options *options = context;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (!strcmp(names[i], text)) {
            options->format = (enum output_format)i;
            return 0;
        }
    }
    return fault_set(fault, 0, "--format: '%s' is not table, json or csv", text);
}

static int apply_requests(const char *text, void *context, struct fault *fault)
{
    struct simulate_options *options = context;

    (void)text;
    (void)fault;
    options->requests = true;
    return 0;
}

static int apply_svg(const char *text, void *context, struct fault *fault)
{
    struct simulate_options *options = context;

    options->svg = text;
    return *text ? 0 : fault_set(fault, 0, "--svg: must not be empty");
}

static int apply_seed(const char *text, void *context, struct fault *fault)
{
    struct simulate_options *options = context;

    return scenario_seed_apply(text, &options->seed, fault);
}

static const struct scenario_option OPTIONS[] = {
    {"format", false, apply_format},
    {"requests", true, apply_requests},
    {"seed", false, apply_seed},
    {"svg", false, apply_svg},
};

static int draw(const struct report *report, const char *path, struct fault *fault)
{
    FILE *file = fopen(path, "we");
    int r;

    if (!file)
        return fault_set(fault, errno, "--svg: %s: %s", path, strerror(errno));
    r = svg_write(report, file);
    if (fclose(file) != 0 || r < 0)
        return fault_set(fault, EIO, "--svg: cannot write %s", path);
    return 0;
}

static enum scenario_command_status run(const struct scenario *scenario, const void *context, struct fault *fault)
{
    const struct simulate_options *options = context;
    struct report *report CLEANUP(report_cleanup) = NULL;
    struct output output = {
        .scenario = scenario, .file = stdout, .format = options->format, .requests = options->requests};
    struct simulation_options simulation = {.context = &output,
                                            .seed = scenario_seed_of(&options->seed, scenario),
                                            .on_request = options->requests ? output_request : NULL};

    if (simulation_run(scenario, &simulation, &report, fault) < 0)
        return SCENARIO_COMMAND_USAGE;
    if (options->svg && draw(report, options->svg, fault) < 0)
        return SCENARIO_COMMAND_FAILED;
    if (output_report(&output, report) < 0) {
        *fault = (struct fault){.text = "cannot write the result"};
        return SCENARIO_COMMAND_FAILED;
    }
    return SCENARIO_COMMAND_OK;
}

int simulate_main(int argc, char **argv)
{
    struct simulate_options options = {0};
    struct scenario_command command = {"simulate", USAGE, OPTIONS, ARRAY_SIZE(OPTIONS), &options, run};

    return scenario_command_main(&command, argc, argv);
}
