/* Picks the subcommand. */
#include "cli/plan.h"
#include "cli/serve.h"
#include "cli/simulate.h"

#include <stdio.h>
#include <string.h>

static int version_main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) {
        fputs("kiln version: takes no arguments\n", stderr);
        return 2;
    }
    puts("kiln " KILN_VERSION);
    return 0;
}

static void print_usage(FILE *out)
{
    fputs("Usage: kiln COMMAND [OPTION...]\n\n"
          "A self-hosted AWS Lambda.\n\n"
          "  serve      run the daemon (kiln serve --help lists its options)\n"
          "  simulate   say what would happen in a scenario (kiln simulate --help)\n"
          "  plan       find the reserved and provisioned concurrency that a scenario needs\n"
          "  version    print the version\n"
          "  help       this text\n",
          out);
}

int main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "";

    if (!strcmp(command, "serve"))
        return serve_main(argc - 1, argv + 1);
    if (!strcmp(command, "simulate"))
        return simulate_main(argc - 1, argv + 1);
    if (!strcmp(command, "plan"))
        return plan_main(argc - 1, argv + 1);
    if (!strcmp(command, "version") || !strcmp(command, "--version"))
        return version_main(argc - 1, argv + 1);
    if (!strcmp(command, "help") || !strcmp(command, "--help") || !strcmp(command, "-h")) {
        print_usage(stdout);
        return 0;
    }
    if (*command)
        fprintf(stderr, "kiln: unknown command '%s'\n", command);
    else
        print_usage(stderr);
    return 2;
}
