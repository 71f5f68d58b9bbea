/*
 * What a sandbox consists of, as data: lists of operations computed from the spec and a probe of the host, without a
 * system call, so that tests can read them. executor.h carries them out.
 *
 * There are three plans, because most of a sandbox is the same for all and can be made ahead:
 *   base   once per launcher: the read-only root, a tmpfs with binds of the host's /usr and parts of /etc;
 *   shell  once per init, before it is known which function it will serve: what hangs on its namespaces (hostname,
 * /proc); fit    when it is known: /tmp, code, layers, limits; its last operations give up every privilege.
 */
#pragma once

#include "base/arena.h"
#include "sandbox/launcher.h"

enum plan_action {
    PLAN_DIRECTORY, /* mkdir target, mode `value`, parents exist */
    PLAN_FILE,      /* write `source` (the content) to target, mode 0644 */
    PLAN_COPY,      /* copy the host file `source` to target, mode 0644 */
    PLAN_SYMLINK,   /* target becomes a link that reads `source` */
    PLAN_DEVICE,    /* character device `value` (makedev), mode 0666 */
    PLAN_BIND,      /* the host's `source` with what is mounted below, read-only, attributes `value` */
    PLAN_BIND_FILE, /* the same for one file or device; target is made as an empty file first */
    PLAN_TMPFS,     /* a tmpfs with options `source` ("size=1m,mode=755") and attributes `value` */
    PLAN_PROC,      /* proc of the current pid namespace at target */
    PLAN_MASK,      /* hide target (of the sandbox): /dev/null over a file, an empty directory over a directory */
    PLAN_READ_ONLY, /* target (of the sandbox) onto itself, read-only */
    PLAN_ATTACH,    /* the detached mount number `value` handed to the executor */
    PLAN_HOSTNAME,  /* `source` */
    PLAN_OOM_SCORE, /* oom_score_adj `value` */
    PLAN_RLIMIT,    /* resource `value`, soft and hard `limit` */
    PLAN_SESSION,   /* a session of its own */
    PLAN_NO_NEW_PRIVILEGES,
    PLAN_DROP_BOUNDING, /* every capability out of the bounding and ambient sets; inherited */
    PLAN_IDS,           /* no supplementary groups (unless rootless), gid and uid `value` */
    PLAN_DROP_CAPABILITIES,
    PLAN_UNDUMPABLE,   /* not to be traced, its /proc files not to be read, by its own uid */
    PLAN_DEATH_SIGNAL, /* SIGKILL when the launcher dies; given up by the kernel at every change of uid */
    PLAN_SECCOMP,      /* the filter handed to the executor */
};

struct plan_op {
    enum plan_action action;
    bool optional;      /* a target or source that does not exist is no failure */
    const char *target; /* absolute */
    const char *source;
    uint64_t value;
    uint64_t limit;
};

enum { PLAN_OPS_MAX = 192, PLAN_ATTACH_MAX = 3 };

struct plan {
    struct plan_op ops[PLAN_OPS_MAX + 1]; /* the last one takes what no longer fits */
    size_t count;
    struct arena strings;
    int error; /* -ENOMEM or -E2BIG once building has failed; sticky */
};

void plan_deinit(struct plan *plan);

enum plan_entry_kind { PLAN_ENTRY_ABSENT, PLAN_ENTRY_FILE, PLAN_ENTRY_DIRECTORY, PLAN_ENTRY_SYMLINK };

/* One path of the host that the base may show. */
struct plan_entry {
    const char *path;
    enum plan_entry_kind kind;
    const char *link; /* what the symlink reads; NULL otherwise */
};

enum { PLAN_ENTRIES_MAX = 64 };

/* What the base depends on. */
struct plan_host {
    bool rootless;
    const char *data_dir;    /* hidden when it lies below a directory that is shown */
    const char *more_hosts;  /* lines for /etc/hosts, borrowed; NULL: none. Not probed */
    const char *resolv_conf; /* text in the place of the host's /etc/resolv.conf, borrowed; NULL: its own. Not probed */
    struct plan_entry entries[PLAN_ENTRIES_MAX];
    size_t entry_count;
    const char *hosts; /* content of /etc/hosts; NULL: none */
    struct arena strings;
};

/* Looks at the host's file system; the one function here that makes system calls. -ENOMEM. */
int plan_probe(bool rootless, const char *data_dir, struct plan_host *ret_host) MUST_USE;
void plan_host_deinit(struct plan_host *host);

/* The base's root is mounted read-only after the plan has been carried out in it. */
int plan_base(const struct plan_host *host, struct plan *ret_plan) MUST_USE;

struct plan_identity {
    bool rootless;
    unsigned index; /* of the slot; gives the hostname */
    uid_t uid;      /* inside the sandbox's user namespace */
    gid_t gid;
};

int plan_shell(const struct plan_identity *identity, struct plan *ret_plan) MUST_USE;

/* Numbers of the detached mounts of a fit; a sandbox without layers or runtime lacks the later ones. */
enum plan_attach { PLAN_ATTACH_TASK, PLAN_ATTACH_OPT, PLAN_ATTACH_RUNTIME };

struct plan_fit {
    struct plan_identity identity;
    unsigned memory_mib;
    unsigned tmp_mib;
    bool has_opt;
    bool has_runtime;
    bool limit_by_uid; /* processes by RLIMIT_NPROC, for want of a pids controller; needs a uid of its own */
};

int plan_fit(const struct plan_fit *fit, struct plan *ret_plan) MUST_USE;

/* Processes and threads of one sandbox without init, and descriptors of one process (Lambda quotas). */
enum { PLAN_PROCESSES_MAX = 1024, PLAN_FILES_MAX = 1024 };
