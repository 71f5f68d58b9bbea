#include "cli/simulate.h"

#include "sim/output.h"
#include "sim/simulation.h"
#include "sim/svg.h"

#include <stdio.h>
#include <string.h>

enum exit_status { EXIT_STATUS_OK = 0, EXIT_STATUS_FAILED = 1, EXIT_STATUS_USAGE = 2 };

struct simulate_options {
    const char *path;
    enum output_format format;
    bool requests;
    const char *svg; /* NULL: none */
    bool has_seed;
    uint64_t seed;
};

static void print_usage(FILE *out)
{
    fputs("Usage: kiln simulate SCENARIO.json [OPTION...]\n\n"
          "Says what would happen under the concurrency model, by the same decisions that the daemon makes.\n\n"
          "  --format table|json|csv        form of the result (default table)\n"
          "  --requests                     also a line for every request; in CSV instead of the minutes\n"
          "  --seed N                       start of the random numbers (default: the scenario's, else 1)\n"
          "  --svg FILE                     also draw it\n"
          "  --help                         this text\n\n"
          "Scenarios are described in docs/simulator.md; examples/scenarios has some.\n",
          out);
}

static int parse_format(const char *text, enum output_format *ret_format, struct fault *fault)
{
    static const char *const names[] = {"table", "json", "csv"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (!strcmp(names[i], text)) {
            *ret_format = (enum output_format)i;
            return 0;
        }
    }
    return fault_set(fault, 0, "--format: '%s' is not table, json or csv", text);
}

static int apply(struct span name, const char *text, struct simulate_options *options, struct fault *fault)
{
    if (span_equal(name, SPAN("format")))
        return parse_format(text, &options->format, fault);
    if (span_equal(name, SPAN("svg"))) {
        options->svg = text;
        return *text ? 0 : fault_set(fault, 0, "--svg: must not be empty");
    }
    options->has_seed = true;
    if (span_to_u64(span_from(text), UINT64_MAX, &options->seed) < 0)
        return fault_set(fault, 0, "--seed: '%s' is not a whole number", text);
    return 0;
}

/* One word, and the next if it is the value of this one; moves *index to the last. */
static int parse_word(int argc, char **argv, int *index, struct simulate_options *options, struct fault *fault)
{
    struct span rest = span_from(argv[*index]), name;

    if (!span_starts_with(rest, SPAN("--"))) {
        if (options->path)
            return fault_set(fault, 0, "unexpected argument '%s'", argv[*index]);
        options->path = argv[*index];
        return 0;
    }
    rest = span_slice(rest, 2, rest.length);
    name = span_cut(&rest, '=');
    if (span_equal(name, SPAN("requests")) && !rest.data) {
        options->requests = true;
        return 0;
    }
    if (!span_equal(name, SPAN("format")) && !span_equal(name, SPAN("svg")) && !span_equal(name, SPAN("seed")))
        return fault_set(fault, 0, "unknown option '%s'", argv[*index]);
    if (rest.data)
        return apply(name, rest.data, options, fault); /* the tail of a NUL-terminated word */
    if (*index + 1 == argc)
        return fault_set(fault, 0, "--%.*s needs a value", SPAN_ARG(name));
    return apply(name, argv[++*index], options, fault);
}

static int parse(int argc, char **argv, struct simulate_options *options, struct fault *fault)
{
    int r = 0;

    for (int i = 1; r == 0 && i < argc; i++)
        r = parse_word(argc, argv, &i, options, fault);
    if (r == 0 && !options->path)
        return fault_set(fault, 0, "needs a scenario file; kiln simulate --help says more");
    return r;
}

static int complain(const struct fault *fault, enum exit_status status)
{
    fprintf(stderr, "kiln simulate: %s\n", fault->text);
    return (int)status;
}

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

static int simulate(const struct simulate_options *options)
{
    struct scenario *scenario CLEANUP(scenario_cleanup) = NULL;
    struct report *report CLEANUP(report_cleanup) = NULL;
    struct output output = {.file = stdout, .format = options->format, .requests = options->requests};
    struct simulation_options simulation = {.context = &output};
    struct fault fault = {0};

    if (scenario_load(options->path, &scenario, &fault) < 0)
        return complain(&fault, EXIT_STATUS_USAGE);
    output.scenario = scenario;
    simulation.seed = options->has_seed ? options->seed : scenario->seed;
    simulation.on_request = options->requests ? output_request : NULL;
    if (simulation_run(scenario, &simulation, &report, &fault) < 0) {
        fault_prepend(&fault, "%s", options->path);
        return complain(&fault, EXIT_STATUS_USAGE);
    }
    if (options->svg && draw(report, options->svg, &fault) < 0)
        return complain(&fault, EXIT_STATUS_FAILED);
    if (output_report(&output, report) < 0)
        return complain(&(struct fault){.text = "cannot write the result"}, EXIT_STATUS_FAILED);
    return EXIT_STATUS_OK;
}

int simulate_main(int argc, char **argv)
{
    struct simulate_options options = {0};
    struct fault fault = {0};

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            print_usage(stdout);
            return EXIT_STATUS_OK;
        }
    }
    if (parse(argc, argv, &options, &fault) < 0)
        return complain(&fault, EXIT_STATUS_USAGE);
    return simulate(&options);
}
