/*
 * Pid 1 of a sandbox: a fork of the launcher that never runs another program. It first builds its shell (namespaces,
 * cgroups, /proc), then waits to be told which function it will serve (MESSAGE_FIT), builds the rest, gives up every
 * privilege, and from then on starts, signals and reaps processes as messages ask for. It dies with the launcher, by
 * the parent-death signal and by the end of its socket, and the kernel kills everything in its pid namespace with it.
 *
 * It runs under the sandbox's uid, but is not dumpable: its memory and descriptors are out of the function's reach, and
 * a pid 1 gets no signal from inside its namespace.
 */
#pragma once

#include "sandbox/plan.h"
#include "sandbox/seccomp.h"

enum { INIT_CGROUPS_MAX = 3 };

struct init_config {
    struct plan_identity identity;
    const struct seccomp_filter *filter;
    int socket;                    /* to the launcher */
    int cgroups[INIT_CGROUPS_MAX]; /* cgroup.procs of v1 trees to join, -1 where there is none */
};

/* What the launcher ignores; everything else has its default there. An init, and so a function, starts with defaults.
 */
enum { INIT_SIGNALS_IGNORED = 6 };
extern const int init_signals_ignored[INIT_SIGNALS_IGNORED];

/* Payload of MESSAGE_FIT: memory, /tmp, flags, Runtime API address. Descriptors: output, then the detached mounts. */
enum init_fit_fd { INIT_FIT_OUTPUT, INIT_FIT_TASK, INIT_FIT_MORE };

size_t init_encode_fit(const struct plan_fit *fit, const char *api_address, char *data, size_t capacity);

/* Runs in the process that clone3 made; never returns. Closes every descriptor but those in the configuration. */
_Noreturn void init_main(const struct init_config *config);
