/*
 * The daemon's side of the launcher: the one process with the privileges that making sandboxes needs. It is forked
 * before the daemon opens a socket or starts a thread, stays single-threaded, and speaks messages over a SOCK_SEQPACKET
 * pair; descriptors travel as SCM_RIGHTS. It parses nothing that comes from the network.
 *
 * A sandbox is a group of processes under a small init (pid 1 of its own pid namespace) with its own root, /tmp, cgroup
 * and network slot. Inside it a few processes, each with its group (a runtime and its extensions), can be started,
 * signalled, killed and started again ("reset": memory gone, /tmp kept); the sandbox as a whole is made once and killed
 * once.
 *
 * If the daemon dies, the launcher sees its end of the socket close, kills every sandbox, removes what it made in the
 * cgroup trees and exits. If the launcher dies, the kernel kills every sandbox (parent-death signal on its init) and
 * the daemon, which sees the socket close (on_lost), removes the cgroups and exits non-zero. Leftovers of a run in
 * which both were killed are removed at the next start.
 *
 * All calls are non-blocking and made on the daemon's loop thread. The owner polls launcher_fd for reading and calls
 * launcher_dispatch, which calls the events below; a callback may call any function here but launcher_free.
 */
#pragma once

#include "base/fault.h"
#include "base/log.h"
#include "base/span.h"

struct launcher;

enum sandbox_network {
    SANDBOX_NETWORK_HOST, /* the host's network; a loopback port per sandbox, the peer's uid checked */
    SANDBOX_NETWORK_NONE, /* loopback only, Runtime API at 169.254.100.1:9001 */
    SANDBOX_NETWORK_NAT,  /* the same, and the world behind the host's addresses; needs root */
};

/* With SANDBOX_NETWORK_NAT, what stands for the host inside. */
#define SANDBOX_HOST_NAME "host.kiln.internal"

enum { SANDBOX_LAYERS_MAX = 5 };

/* Where a host directory shows inside the sandbox: /var/task, /opt, /var/runtime. All read-only. */
struct sandbox_spec {
    uint64_t id;                                /* chosen by the caller, unique among live sandboxes, not 0 */
    const char *task_dir;                       /* host path shown as /var/task */
    const char *layer_dirs[SANDBOX_LAYERS_MAX]; /* shown merged as /opt, later ones win; NULL ends the list */
    const char *runtime_dir;                    /* host path shown as /var/runtime; NULL: an empty directory */
    unsigned memory_mib; /* MemorySize: limit for the whole sandbox, /tmp not counted; also sets the CPU share */
    unsigned tmp_mib;    /* EphemeralStorage: size of /tmp */
    /* The CPU limit waits for launcher_limit_cpu, as Lambda gives the Init phase more; false: limited from the start.
     */
    bool cpu_boost;
};

/* What to run inside. Paths are as seen in the sandbox. */
struct sandbox_process {
    const char *const *argv; /* argv[0] is the path of the program; NULL-terminated */
    const char *const *envp; /* NULL-terminated; AWS_LAMBDA_RUNTIME_API is added by the launcher */
    const char *cwd;         /* "/var/task" */
    int output_fd; /* write end of a pipe for stdout and stderr, borrowed for the call; 0: the sandbox's own */
};

/* Processes of one sandbox that launcher_run may have started and that live at the same time. */
enum { SANDBOX_PROCESSES_MAX = 12 };

/* How a process ended. */
struct sandbox_exit {
    int status;         /* exit status when signal is 0 */
    int signal;         /* 0 or the signal that killed it */
    bool out_of_memory; /* the sandbox had hit its memory limit */
};

/* Answer to launcher_create. The descriptors are the receiver's to close. */
struct sandbox_created {
    int api_fd;         /* listening TCP socket of the Runtime API, non-blocking, made inside the network slot */
    int output_fd;      /* read end of the pipe that is stdout and stderr of everything started inside, non-blocking */
    int freeze_fd;      /* write "1" to freeze and "0" to thaw the whole sandbox; -1 where it cannot be frozen */
    int memory_peak_fd; /* pread gives the largest memory use in bytes as decimal text, page cache and /tmp included; -1
                           where unknown */
    uid_t uid;          /* uid of the sandbox's processes as the host sees it, for the peer check */
    pid_t init_pid;     /* of its init, for the peer check where the uid is that of all sandboxes; else 0 */
    char api_address[32]; /* "127.0.0.1:40123" or "169.254.100.1:9001" */
};

struct launcher_events {
    void (*on_created)(uint64_t id, struct sandbox_created *created, void *context);
    /* The sandbox could not be made: nothing is left of it. An errno and a sentence; no other event follows for the id.
     */
    void (*on_create_failed)(uint64_t id, const struct fault *fault, void *context);
    /*
     * A process started by launcher_run could not be executed (`exec_errno` > 0: ENOENT, EACCES, ENOEXEC ...) or has
     * ended. Orphans it left may still run until launcher_reset or launcher_kill.
     */
    void (*on_process_exit)(uint64_t id, uint32_t run, int exec_errno, const struct sandbox_exit *exit, void *context);
    /* launcher_reset is done: no process but init is left. */
    void (*on_reset)(uint64_t id, void *context);
    /* After launcher_kill, or because init died: every process is gone, cgroup and slot are free. The id may be used
     * again. */
    void (*on_gone)(uint64_t id, void *context);
    /* Answer to launcher_socket: the receiver's to close; -1 when there is none to be had. */
    void (*on_socket)(uint64_t id, uint32_t tag, int fd, void *context);
    /* The launcher died or broke the protocol. Every sandbox is dead or dying. Last event. */
    void (*on_lost)(void *context);
};

struct launcher_config {
    enum sandbox_network network;
    bool or_host_network; /* where NAT cannot be had, SANDBOX_NETWORK_HOST and a warning, instead of a failure */
    uint32_t
        api_address;   /* NAT: where functions that call host.kiln.internal at `api_port` are let to, an address of */
    uint16_t api_port; /* the host's loopback in its byte order; 0: they are not */
    const char *instance; /* name of this Kiln in the cgroup trees, [a-z0-9-]{1,40}; derived from the data directory */
    const char *data_dir; /* absolute; must not be visible inside any sandbox */
    uid_t first_uid;      /* sandboxes run as uids from here on; 0: a range by `instance`. Ignored when rootless */
    unsigned slots;       /* network slots to make ahead */
};

/*
 * Forks the launcher. Must be called while the process has one thread. Chooses root or rootless (user namespace) by
 * itself; what cannot be enforced is said by launcher_warnings. -EPERM with a sentence when user namespaces are needed
 * and forbidden.
 */
int launcher_start(const struct launcher_config *config, struct launcher **ret_launcher, struct fault *fault) MUST_USE;

/* Sentences about what this host cannot enforce (NULL-terminated array, borrowed until launcher_free); empty as root
 * with complete cgroups. */
const char *const *launcher_warnings(const struct launcher *launcher);
bool launcher_is_rootless(const struct launcher *launcher);
/* The network that sandboxes have, which is not the one asked for where that could not be had (or_host_network). */
enum sandbox_network launcher_network(const struct launcher *launcher);
pid_t launcher_pid(const struct launcher *launcher);

void launcher_set_events(struct launcher *launcher, const struct launcher_events *events, void *context);
int launcher_fd(const struct launcher *launcher);
/* Reads what has come and calls the events. */
void launcher_dispatch(struct launcher *launcher);

/* Asks for a sandbox; on_created or on_create_failed follows. -EAGAIN when the socket is full, -E2BIG when the spec is.
 */
int launcher_create(struct launcher *launcher, const struct sandbox_spec *spec) MUST_USE;
/*
 * Starts a process in the sandbox, beside those that are there (EBUSY as its exec_errno past SANDBOX_PROCESSES_MAX);
 * `run` numbers the runs of one sandbox and comes back in on_process_exit. May be sent right after launcher_create,
 * without waiting for on_created: requests for one id are carried out in order.
 */
int launcher_run(struct launcher *launcher, uint64_t id, uint32_t run, const struct sandbox_process *process) MUST_USE;
/* Sends a signal to the process of that run (SIGTERM at shutdown), if it lives. */
int launcher_signal(struct launcher *launcher, uint64_t id, uint32_t run, int signal) MUST_USE;
/* Asks for an unconnected, non-blocking TCP socket of the sandbox's own network, to reach what listens inside.
 * on_socket follows with the same tag unless the sandbox ends before. */
int launcher_socket(struct launcher *launcher, uint64_t id, uint32_t tag) MUST_USE;
/* Kills every process in the sandbox but init; /tmp stays. on_reset follows (after on_process_exit). Thaws first. */
int launcher_reset(struct launcher *launcher, uint64_t id) MUST_USE;
/* Ends the boost of a sandbox made with cpu_boost: from here on its CPU share follows from memory_mib. No answer. */
int launcher_limit_cpu(struct launcher *launcher, uint64_t id) MUST_USE;
/* Kills the whole sandbox, frozen or not. on_gone follows. */
int launcher_kill(struct launcher *launcher, uint64_t id) MUST_USE;

/* Ends every sandbox and the launcher, and waits for it (bounded). NULL is allowed. */
struct launcher *launcher_free(struct launcher *launcher);
