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

int scenario_command_parse(const struct scenario_command *command, int argc, char **argv, const char **ret_path,
                           struct fault *fault)
{
    const char *path = NULL;
    int r = 0;

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            fputs(command->usage, stdout);
            return SCENARIO_COMMAND_HELP;
        }
    }
    for (int i = 1; r == 0 && i < argc; i++)
        r = parse_word(command, argc, argv, &i, &path, fault);
    if (r == 0 && !path)
        r = fault_set(fault, 0, "needs a scenario file; kiln %s --help says more", command->name);
    *ret_path = path;
    return r;
}

int scenario_command_complain(const struct scenario_command *command, const struct fault *fault,
                              enum scenario_command_status status)
{
    fprintf(stderr, "kiln %s: %s\n", command->name, fault->text);
    return (int)status;
}

int scenario_option_seed(const char *text, uint64_t *ret_seed, struct fault *fault)
{
    if (span_to_u64(span_from(text), UINT64_MAX, ret_seed) < 0)
        return fault_set(fault, 0, "--seed: '%s' is not a whole number", text);
    return 0;
}
