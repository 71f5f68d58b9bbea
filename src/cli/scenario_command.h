/*
 * What the commands on a scenario file (simulate, plan) share: `kiln COMMAND SCENARIO.json [OPTION...]`. Options are
 * written --name value or --name=value, anywhere; faults are sentences that name the option.
 */
#pragma once

#include "base/fault.h"
#include "base/macros.h"
#include "base/span.h"
#include "sim/scenario.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum scenario_command_status { SCENARIO_COMMAND_OK = 0, SCENARIO_COMMAND_FAILED = 1, SCENARIO_COMMAND_USAGE = 2 };

struct scenario_option {
    const char *name; /* without the dashes */
    bool is_flag;     /* has no value: `apply` gets NULL */
    /* `text` is borrowed from argv. 0 or -EINVAL with a sentence. */
    int (*apply)(const char *text, void *context, struct fault *fault);
};

struct scenario_command {
    const char *name; /* "simulate" */
    const char *usage;
    const struct scenario_option *options;
    size_t option_count;
    void *context;
    /* With a sentence where it is not SCENARIO_COMMAND_OK; that of a fault in the scenario (_USAGE) without its path.
     */
    enum scenario_command_status (*run)(const struct scenario *scenario, const void *context, struct fault *fault);
};

/*
 * argv[0] is the command. Applies the options, reads the scenario and runs the command on it; what went wrong is one
 * line on standard error. --help anywhere prints the usage alone, whatever else there is. Returns the exit status.
 */
int scenario_command_main(const struct scenario_command *command, int argc, char **argv);

/* --seed N, a whole number from 0 to 2^64 - 1. */
struct scenario_seed {
    bool given;
    uint64_t value;
};

int scenario_seed_apply(const char *text, struct scenario_seed *seed, struct fault *fault) MUST_USE;
/* The one given, else the scenario's own. */
uint64_t scenario_seed_of(const struct scenario_seed *seed, const struct scenario *scenario);
