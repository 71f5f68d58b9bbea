/*
 * Where this host keeps its cgroup controllers, what is written there for a sandbox, and removal.
 *
 * The unified tree (v2) is used for everything it has controllers for; on hosts where memory, cpu or pids still live in
 * v1 hierarchies ("hybrid", "legacy") limits go there, while freezing and killing are always done by v2, which exists
 * on every kernel and is mounted privately where the host has not mounted it. Below each root: kiln/<instance>/<name>.
 *
 * The root is that of the tree as this process sees it. In the unified tree it is the process's own cgroup instead
 * where that was delegated (a systemd service with Delegate=yes), so that what is said of the service holds for its
 * functions. A cgroup with processes in it cannot hand controllers down, unless it is the root of the whole tree; in a
 * container and in a delegated service those found in the root are therefore moved one level down, to kiln-daemon.
 *
 * No call blocks on a process: removal of a cgroup that is still in use gives -EBUSY and is tried again later.
 */
#pragma once

#include "base/fault.h"
#include "base/span.h"

#include <sys/types.h>

enum cgroup_tree { CGROUP_UNIFIED, CGROUP_MEMORY, CGROUP_CPU, CGROUP_PIDS, CGROUP_TREES };

/* Mount points found in mountinfo; empty where there is none. */
struct cgroup_mounts {
    char paths[CGROUP_TREES][128];
};

struct cgroup_host {
    int roots[CGROUP_TREES];       /* directory descriptors; -1 where there is no such tree */
    bool on_unified[CGROUP_TREES]; /* the controller is served by the unified tree */
    char base[64];                 /* "kiln/<instance>" */
    int create_flags;              /* O_CREAT | O_TRUNC for tests on a plain directory, else 0 */
};

/* What a sandbox may use. */
struct cgroup_limits {
    unsigned memory_mib; /* the function's memory; where it is enforced exactly see memory.h */
    unsigned tmp_mib;    /* tmpfs pages count as memory too, hence the hard limit is the sum */
    unsigned processes;
    bool cpu_unlimited;
};

/* One file to write. */
struct cgroup_setting {
    enum cgroup_tree tree; /* CGROUP_UNIFIED or the v1 tree */
    const char *file;
    char value[48];
    bool optional; /* older kernels or kernels without swap accounting lack it */
};

enum { CGROUP_SETTINGS_MAX = 12 };

/* Reads the text of /proc/self/mountinfo. */
void cgroup_parse_mounts(struct span mountinfo, struct cgroup_mounts *ret_mounts);
/*
 * Reads the text of /proc/self/cgroup: the path in the unified tree without its first '/', and without kiln-daemon.
 * Empty where it is the root, outside of what is seen, or too long.
 */
void cgroup_parse_own(struct span text, char ret_path[256]);
/* Opens the roots; sees which controllers the unified tree has. -ENOMEM, -EMFILE and the like only. */
int cgroup_host_open(const struct cgroup_mounts *mounts, struct cgroup_host *ret_host) MUST_USE;
/* All of the above for this process, mounting cgroup2 privately (detached) if need be. */
int cgroup_host_probe(struct cgroup_host *ret_host) MUST_USE;
void cgroup_host_deinit(struct cgroup_host *host);

/* Makes kiln/<instance> in every tree, with the controllers handed down, and removes what an earlier run left there. */
int cgroup_host_prepare(struct cgroup_host *host, const char *instance, struct fault *fault) MUST_USE;
/* True when the controller (MEMORY, CPU, PIDS) can be used in either version; UNIFIED: freezing and killing. */
bool cgroup_host_has(const struct cgroup_host *host, enum cgroup_tree controller);
/*
 * Kills what is left below the instance and removes its directories, waiting up to `wait_ms` for processes to go. For
 * start and end, not for the loop. -EBUSY when something stayed.
 */
int cgroup_host_clean(struct cgroup_host *host, const char *instance, int wait_ms) MUST_USE;

/* The directories of one sandbox; `name` without '/'. */
int cgroup_make(const struct cgroup_host *host, const char *name) MUST_USE;
/* Removes them. -EBUSY: still in use, to be tried again. 0 also when there were none. */
int cgroup_remove(const struct cgroup_host *host, const char *name) MUST_USE;
/* The directory of the unified tree, for CLONE_INTO_CGROUP. */
int cgroup_open_unified(const struct cgroup_host *host, const char *name, int *ret_fd) MUST_USE;
/* A file of it. `controller` is resolved to the tree that serves it. */
int cgroup_open(const struct cgroup_host *host, enum cgroup_tree controller, const char *name, const char *file,
                int flags, int *ret_fd) MUST_USE;

/* The files to write for these limits, in order; returns how many. */
size_t cgroup_settings(const struct cgroup_host *host, const struct cgroup_limits *limits,
                       struct cgroup_setting ret_settings[CGROUP_SETTINGS_MAX]);
/* Writes them. */
int cgroup_apply(const struct cgroup_host *host, const char *name, const struct cgroup_limits *limits,
                 struct fault *fault) MUST_USE;
/* Writes those of the CPU only: others may have been moved since by memory.h. */
int cgroup_apply_cpu(const struct cgroup_host *host, const char *name, const struct cgroup_limits *limits,
                     struct fault *fault) MUST_USE;
