/*
 * What the commands on a scenario file (simulate, plan) share: `kiln COMMAND SCENARIO.json [OPTION...]`. Options are
 * written --name value or --name=value, anywhere; faults are sentences that name the option.
 */
#pragma once

#include "base/fault.h"
#include "base/macros.h"
#include "base/span.h"

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
};

enum scenario_command_outcome { SCENARIO_COMMAND_HELP = 1 };

/* argv[0] is the command. Applies the options and gives the path of the scenario (borrowed). --help anywhere prints the
 * usage and gives SCENARIO_COMMAND_HELP, whatever else there is. Else 0 or -EINVAL with a sentence. */
int scenario_command_parse(const struct scenario_command *command, int argc, char **argv, const char **ret_path,
                           struct fault *fault) MUST_USE;
/* One line on standard error. Returns the status. */
int scenario_command_complain(const struct scenario_command *command, const struct fault *fault,
                              enum scenario_command_status status);

/* --seed N: a whole number from 0 to 2^64 - 1. */
int scenario_option_seed(const char *text, uint64_t *ret_seed, struct fault *fault) MUST_USE;
