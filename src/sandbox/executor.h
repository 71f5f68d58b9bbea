/*
 * Carries out a plan in the calling process, operation by operation, stopping at the first failure. The base plan is
 * carried out by the launcher below a directory, the others by init in its own namespaces. Nothing is undone: a process
 * in which it failed exits, and its namespaces with it.
 */
#pragma once

#include "base/fault.h"
#include "sandbox/plan.h"
#include "sandbox/seccomp.h"

struct executor {
    int root;                            /* directory that targets are relative to; borrowed */
    int attach[PLAN_ATTACH_MAX];         /* detached mounts, -1 where there is none; borrowed */
    const struct seccomp_filter *filter; /* for PLAN_SECCOMP */
    bool rootless;
};

/* 0, or -errno with a sentence that names the operation and its target. */
int executor_apply(const struct executor *executor, const struct plan *plan, struct fault *fault) MUST_USE;

/*
 * The directory at host path `path` as a detached read-only mount (nosuid, nodev), ready for PLAN_ATTACH. `file` makes
 * it a copy of one file instead of a directory.
 */
int executor_detach(const char *path, int *ret_fd, struct fault *fault) MUST_USE;
/* Several directories merged (overlayfs, read-only, later ones win), detached likewise. `count` is at least 2. */
int executor_detach_merged(const char *const *paths, size_t count, int *ret_fd, struct fault *fault) MUST_USE;
