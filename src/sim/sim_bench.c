/*
 * How many invocations a second are simulated on one core, in processor time, so that a busy machine does not count
 * against it: the rush of the shop's Friday (400 provisioned, 275 spilled) for as many seconds as the argument says
 * (default 600: 2.7 million invocations), and the largest memory that it took. Not a test: run it by hand, or
 * `sim_bench SECONDS json` from `make bench`.
 */
#include "sim/simulation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static const char SCENARIO[] =
    "{\"account\": {\"concurrency\": 3000}, \"duration_s\": %ld, \"functions\": [{\"name\": \"shop\", "
    "\"reserved\": 800, \"versions\": [{\"version\": 7, \"duration_ms\": %s, \"init_ms\": 600}], "
    "\"aliases\": [{\"name\": \"prod\", \"version\": 7}], \"provisioned\": [{\"qualifier\": \"prod\", "
    "\"count\": 400}]}], \"traffic\": [{\"function\": \"shop\", \"qualifier\": \"prod\", \"rps\": 4500, "
    "\"arrivals\": \"%s\"}]}";

static double processor_s(void)
{
    struct timespec time;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double run(const char *name, long seconds, const char *duration, const char *arrivals, bool json)
{
    struct simulation_options options = {.seed = 1};
    struct scenario *scenario CLEANUP(scenario_cleanup) = NULL;
    struct report *report CLEANUP(report_cleanup) = NULL;
    struct fault fault = {0};
    struct rusage usage;
    char text[1024];
    double started_s, taken_s;

    snprintf(text, sizeof(text), SCENARIO, seconds, duration, arrivals);
    started_s = processor_s();
    if (scenario_parse(span_from(text), NULL, &scenario, &fault) < 0 ||
        simulation_run(scenario, &options, &report, &fault) < 0) {
        fprintf(stderr, "sim_bench: %s\n", fault.text);
        exit(1);
    }
    taken_s = processor_s() - started_s;
    getrusage(RUSAGE_SELF, &usage);
    if (!json)
        printf("%-26s %11lld requests in %7.2f s: %5.2f million a second; %ld MB\n", name, (long long)report->requests,
               taken_s, (double)report->requests / taken_s / 1e6, usage.ru_maxrss / 1024);
    return (double)report->requests / taken_s;
}

int main(int argc, char **argv)
{
    long seconds = argc > 1 ? strtol(argv[1], NULL, 10) : 600;
    bool json = argc > 2 && !strcmp(argv[2], "json");
    double constant, drawn;

    if (seconds < 1) {
        fputs("usage: sim_bench [SECONDS [json]]\n", stderr);
        return 2;
    }
    constant = run("constant", seconds, "150", "constant", json);
    drawn = run("poisson, lognormal", seconds, "{\"distribution\": \"lognormal\", \"p50\": 140, \"p99\": 280}",
                "poisson", json);
    if (json)
        printf("{\"constant_per_second\": %.0f, \"lognormal_per_second\": %.0f}\n", constant, drawn);
    return 0;
}
