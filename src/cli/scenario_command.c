#include "cli/scenario_command.h"

#include <stdio.h>
#include <string.h>

static const struct scenario_option *find(const struct scenario_command *command, struct span name)
{
    for (size_t i = 0; i < command->option_count; i++) {
        if (span_equal(name, span_from(command->options[i].name)))
            return &command->options[i];
    }
    return NULL;
}

/* One word, and the next if it is the value of this one; moves *index to the last. */
static int parse_word(const struct scenario_command *command, int argc, char **argv, int *index, const char **path,
                      struct fault *fault)
{
    struct span rest = span_from(argv[*index]), name;
    const struct scenario_option *option;

    if (!span_starts_with(rest, SPAN("--"))) {
        if (*path)
            return fault_set(fault, 0, "unexpected argument '%s'", argv[*index]);
        *path = argv[*index];
        return 0;
    }
    rest = span_slice(rest, 2, rest.length);
    name = span_cut(&rest, '=');
    option = find(command, name);
    if (!option)
        return fault_set(fault, 0, "unknown option '%s'", argv[*index]);
    if (option->is_flag)
        return rest.data ? fault_set(fault, 0, "--%s takes no value", option->name)
                         : option->apply(NULL, command->context, fault);
    if (rest.data)
        return option->apply(rest.data, command->context, fault); /* the tail of a NUL-terminated word */
    if (*index + 1 == argc)
        return fault_set(fault, 0, "--%s needs a value", option->name);
    return option->apply(argv[++*index], command->context, fault);
}

/* The options, and the scenario's path (borrowed). 0 or -EINVAL with a sentence. */
static int parse(const struct scenario_command *command, int argc, char **argv, const char **ret_path,
                 struct fault *fault)
{
    const char *path = NULL;
    int r = 0;

    for (int i = 1; r == 0 && i < argc; i++)
        r = parse_word(command, argc, argv, &i, &path, fault);
    if (r == 0 && !path)
        r = fault_set(fault, 0, "needs a scenario file; kiln %s --help says more", command->name);
    *ret_path = path;
    return r;
}

static enum scenario_command_status run(const struct scenario_command *command, int argc, char **argv,
                                        struct fault *fault)
{
    struct scenario *scenario CLEANUP(scenario_cleanup) = NULL;
    enum scenario_command_status status;
    const char *path;

    if (parse(command, argc, argv, &path, fault) < 0 || scenario_load(path, &scenario, fault) < 0)
        return SCENARIO_COMMAND_USAGE;
    status = command->run(scenario, command->context, fault);
    if (status == SCENARIO_COMMAND_USAGE)
        fault_prepend(fault, "%s", path);
    return status;
}

int scenario_command_main(const struct scenario_command *command, int argc, char **argv)
{
    enum scenario_command_status status;
    struct fault fault = {0};

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            fputs(command->usage, stdout);
            return SCENARIO_COMMAND_OK;
        }
    }
    status = run(command, argc, argv, &fault);
    if (status != SCENARIO_COMMAND_OK)
        fprintf(stderr, "kiln %s: %s\n", command->name, fault.text);
    return (int)status;
}

int scenario_seed_apply(const char *text, struct scenario_seed *seed, struct fault *fault)
{
    seed->given = true;
    if (span_to_u64(span_from(text), UINT64_MAX, &seed->value) < 0)
        return fault_set(fault, 0, "--seed: '%s' is not a whole number", text);
    return 0;
}

uint64_t scenario_seed_of(const struct scenario_seed *seed, const struct scenario *scenario)
{
    return seed->given ? seed->value : scenario->seed;
}
