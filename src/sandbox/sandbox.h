/*
 * One sandbox as the launcher holds it: its process, descriptors, cgroups and network slot; how it is started as a
 * shell (see server.c), fitted to a function, and what remains to be given back. Which state it is in and what the
 * daemon is told is server.c's business.
 */
#pragma once

#include "base/list.h"
#include "sandbox/base_root.h"
#include "sandbox/cgroup.h"
#include "sandbox/launcher.h"
#include "sandbox/memory.h"
#include "sandbox/network.h"
#include "sandbox/seccomp.h"

struct sandbox_slot;

/* What all sandboxes of a launcher share. */
struct sandbox_host {
    bool rootless;
    struct network network;
    uid_t first_uid;
    struct base_root root;
    struct cgroup_host cgroups;
    struct seccomp_filter filter;
    struct list free_slots; /* of struct sandbox_slot */
    unsigned slot_count;    /* made so far, free or not */
};

enum sandbox_state { SANDBOX_SHELL, SANDBOX_FITTING, SANDBOX_LIVE, SANDBOX_DYING, SANDBOX_REMOVING };

enum source_kind { SOURCE_DAEMON, SOURCE_SIGNALS, SOURCE_INIT, SOURCE_PIDFD, SOURCE_MEMORY };

/* What an epoll event is about. */
struct source {
    enum source_kind kind;
    struct sandbox *sandbox;
};

struct sandbox {
    struct list_link link; /* in one of the server's lists */
    enum sandbox_state state;
    uint64_t id; /* 0 for a shell */
    struct sandbox_slot *slot;
    char name[16]; /* of its cgroups */
    pid_t pid;     /* of init; 0 when it could not be started */
    int pidfd;
    int socket; /* to init */
    struct network_listener listener;
    int output; /* read end until it is handed over */
    struct cgroup_limits limits;
    struct memory_watch memory;
    uint64_t oom_kills; /* the kernel's count when the last run began */
    bool out_of_memory; /* this run was killed for its memory */
    bool announced;     /* the daemon knows it: on_gone is due, else on_create_failed */
    struct fault fault; /* why it could not be made */
    struct source init_source, pidfd_source, memory_source;
};

/* Everything absent; what set-up then fills in. `rootless` and the rest from the configuration. */
void sandbox_host_init(struct sandbox_host *host, const struct launcher_config *config, bool rootless);
/* Makes one more network slot and leaves it free. */
int sandbox_host_add_slot(struct sandbox_host *host, struct fault *fault) MUST_USE;

/* An object without a process, in no list. NULL when out of memory. */
struct sandbox *sandbox_new(void);
/* Takes a slot, makes the cgroups and starts init. After a failure sandbox_close and sandbox_remove are still due. */
int sandbox_start(struct sandbox_host *host, struct sandbox *sandbox, struct fault *fault) MUST_USE;
/* Tells init which function it serves, and sets the limits. Init answers when it is done. */
int sandbox_fit(struct sandbox_host *host, struct sandbox *sandbox, const struct sandbox_spec *spec,
                struct fault *fault) MUST_USE;
/* Gives the write end of a pipe to the sandbox's user, so that /dev/stdout can be opened again by its name. 0 or
 * -errno. */
int sandbox_own_pipe(const struct sandbox_host *host, const struct sandbox *sandbox, int fd) MUST_USE;
/* A socket of its network, see launcher_socket. Leaves the caller in its network namespace. 0 or -errno. */
int sandbox_socket(const struct sandbox *sandbox, int *ret_fd) MUST_USE;
/* The uid of its processes inside its user namespace (the same outside, unless rootless). */
uid_t sandbox_uid(const struct sandbox_host *host, const struct sandbox *sandbox);
/* Lets a frozen one run, so that init can do what it is asked. */
void sandbox_thaw(const struct sandbox_host *host, const struct sandbox *sandbox);
/* SIGKILL for init, and by the kernel for its whole pid namespace, frozen or not. */
void sandbox_kill(const struct sandbox *sandbox);
/* Closes its descriptors, once its process is gone. None may be in an epoll set. */
void sandbox_close(struct sandbox *sandbox);
/* Removes its cgroups and gives its slot back. -EBUSY when the kernel is not ready yet: to be called again. */
int sandbox_remove(struct sandbox_host *host, struct sandbox *sandbox) MUST_USE;
