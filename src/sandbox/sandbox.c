#include "sandbox/sandbox.h"

#include "sandbox/executor.h"
#include "sandbox/init.h"
#include "sandbox/protocol.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>

enum { FIRST_UID = 0x10000000, UID_RANGES = 4096, UID_RANGE = 65536 };

/* Number, uid and network namespace, used by one sandbox after the other. */
struct sandbox_slot {
    struct list_link link; /* in free_slots while unused */
    unsigned index;
    struct network_slot network;
};

/* ---- slots ---- */

static int slot_new(struct sandbox_host *host, struct sandbox_slot **ret_slot, struct fault *fault)
{
    struct sandbox_slot *slot = calloc(1, sizeof(*slot));
    int r;

    if (!slot)
        return fault_set(fault, ENOMEM, "out of memory");
    list_link_init(&slot->link);
    r = network_slot_init(&slot->network, &host->network, host->slot_count, host->root.proc, fault);
    if (r < 0) {
        free(slot);
        return r;
    }
    slot->index = host->slot_count++;
    *ret_slot = slot;
    return 0;
}

/* Leaves the process in the slot's namespace. */
static int slot_acquire(struct sandbox_host *host, struct sandbox_slot **ret_slot, struct fault *fault)
{
    struct list_link *first = list_first(&host->free_slots);
    int r;

    if (!first)
        return slot_new(host, ret_slot, fault);
    *ret_slot = CONTAINER_OF(first, struct sandbox_slot, link);
    list_remove(first);
    r = network_slot_enter(&(*ret_slot)->network);
    return r < 0 ? fault_set(fault, -r, "cannot enter a network namespace: %s", strerror(-r)) : 0;
}

/* The most recently used is taken first: its kernel structures are warm. */
static void slot_release(struct sandbox_host *host, struct sandbox_slot *slot)
{
    if (slot)
        list_push_front(&host->free_slots, &slot->link);
}

/*
 * Two instances on one host must not share uids: with the host's network a uid is what tells sandboxes apart. Without a
 * configured range each takes one of 4,096 ranges above those of accounts and of most containers, by its name (FNV-1a).
 */
static uid_t first_uid(const struct launcher_config *config)
{
    uint32_t hash = 0x811c9dc5u;

    if (config->first_uid)
        return config->first_uid;
    for (const char *c = config->instance; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x01000193u;
    return FIRST_UID + (hash ^ hash >> 16) % UID_RANGES * UID_RANGE;
}

void sandbox_host_init(struct sandbox_host *host, const struct launcher_config *config, bool rootless)
{
    *host = (struct sandbox_host){
        .rootless = rootless,
        .network = {.kind = config->network, .nat = NAT_INIT},
        .first_uid = first_uid(config),
        .root = {-1, -1, -1},
        .cgroups = {.roots = {-1, -1, -1, -1}},
    };
    list_init(&host->free_slots);
}

int sandbox_host_add_slot(struct sandbox_host *host, struct fault *fault)
{
    struct sandbox_slot *slot;
    int r = slot_new(host, &slot, fault);

    if (r == 0)
        slot_release(host, slot);
    return r;
}

uid_t sandbox_uid(const struct sandbox_host *host, const struct sandbox *sandbox)
{
    return host->rootless ? (uid_t)BASE_ROOT_UID : host->first_uid + sandbox->slot->index;
}

static struct plan_identity identity_of(const struct sandbox_host *host, const struct sandbox *sandbox)
{
    bool rootless = host->rootless;
    uid_t uid = sandbox_uid(host, sandbox);

    return (struct plan_identity){
        .rootless = rootless,
        .index = sandbox->slot->index,
        .uid = uid,
        .gid = rootless ? (gid_t)BASE_ROOT_GID : (gid_t)uid,
    };
}

/* ---- shells ---- */

struct sandbox *sandbox_new(void)
{
    struct sandbox *sandbox = calloc(1, sizeof(*sandbox));

    if (!sandbox)
        return NULL;
    list_link_init(&sandbox->link);
    sandbox->pidfd = sandbox->socket = sandbox->output = sandbox->listener.fd = -1;
    sandbox->memory = MEMORY_WATCH_INIT;
    sandbox->init_source = (struct source){SOURCE_INIT, sandbox};
    sandbox->pidfd_source = (struct source){SOURCE_PIDFD, sandbox};
    sandbox->memory_source = (struct source){SOURCE_MEMORY, sandbox};
    return sandbox;
}

/* Files through which init moves itself into the v1 trees; the unified one it is born in. */
static int open_joins(const struct sandbox_host *host, const char *name, int joins[INIT_CGROUPS_MAX])
{
    for (int i = 0; i < INIT_CGROUPS_MAX; i++) {
        enum cgroup_tree tree = (enum cgroup_tree)(CGROUP_MEMORY + i);
        joins[i] = -1;
        if (host->cgroups.on_unified[tree] || host->cgroups.roots[tree] < 0)
            continue;
        int r = cgroup_open(&host->cgroups, tree, name, "cgroup.procs", O_WRONLY, &joins[i]);
        if (r < 0)
            return r;
    }
    return 0;
}

/*
 * The child is a copy of this process in the template's namespace. Both sides return; the launcher is back among the
 * host's mounts then.
 */
static int clone_init(struct sandbox_host *host, int unified, int *ret_pidfd, pid_t *ret_pid)
{
    struct clone_args args = {
        .flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_PIDFD |
                 (unified >= 0 ? CLONE_INTO_CGROUP : 0),
        .pidfd = (uint64_t)(uintptr_t)ret_pidfd,
        .exit_signal = SIGCHLD,
        .cgroup = unified >= 0 ? (uint64_t)unified : 0,
    };
    int r = base_root_enter_template(&host->root);
    long pid;

    if (r < 0)
        return r;
    pid = syscall(SYS_clone3, &args, sizeof(args));
    r = pid < 0 ? -errno : 0;
    if (pid == 0)
        return 0;
    if (base_root_enter_host(&host->root) < 0)
        _exit(1); /* nothing can be opened any more */
    *ret_pid = (pid_t)pid;
    return r;
}

static int start_init(struct sandbox_host *host, struct sandbox *sandbox, struct fault *fault)
{
    struct init_config config = {
        .identity = identity_of(host, sandbox), .filter = &host->filter, .cgroups = {-1, -1, -1}};
    CLEANUP(cleanup_close) int unified = -1;
    int sockets[2] = {-1, -1};
    int r = 0;

    if (host->cgroups.roots[CGROUP_UNIFIED] >= 0)
        r = cgroup_open_unified(&host->cgroups, sandbox->name, &unified);
    if (r == 0)
        r = open_joins(host, sandbox->name, config.cgroups);
    if (r == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
        r = -errno;
    config.socket = sockets[1];
    sandbox->pid = 0;
    if (r == 0)
        r = clone_init(host, unified, &sandbox->pidfd, &sandbox->pid);
    if (r == 0 && sandbox->pid == 0)
        init_main(&config);
    for (int i = 0; i < INIT_CGROUPS_MAX; i++)
        cleanup_close(&config.cgroups[i]);
    cleanup_close(&sockets[1]);
    sandbox->socket = sockets[0];
    if (r < 0)
        sandbox->pid = 0;
    return r < 0 ? fault_set(fault, -r, "cannot start a sandbox: %s", strerror(-r)) : 0;
}

int sandbox_start(struct sandbox_host *host, struct sandbox *sandbox, struct fault *fault)
{
    int r = slot_acquire(host, &sandbox->slot, fault);

    if (r < 0)
        return r;
    snprintf(sandbox->name, sizeof(sandbox->name), "s%u", sandbox->slot->index);
    r = cgroup_make(&host->cgroups, sandbox->name);
    if (r < 0)
        return fault_set(fault, -r, "cannot make a cgroup: %s", strerror(-r));
    r = network_listen(&sandbox->slot->network, &sandbox->listener, fault);
    if (r == 0)
        r = start_init(host, sandbox, fault);
    return r;
}

/* ---- fit ---- */

/* The mounts of a fit, and the pipe's write end first, in the order init expects. */
struct fit_fds {
    int fds[INIT_FIT_MORE + 2];
    size_t count;
};

static void fit_fds_deinit(struct fit_fds *fds)
{
    for (size_t i = 0; i < fds->count; i++)
        cleanup_close(&fds->fds[i]);
}

static int add_directory(struct fit_fds *fds, const char *path, struct fault *fault)
{
    int r = executor_detach(path, &fds->fds[fds->count], fault);

    fds->count += r == 0;
    return r;
}

static int add_layers(struct fit_fds *fds, const struct sandbox_spec *spec, struct fault *fault)
{
    size_t count = 0;
    int r;

    while (count < SANDBOX_LAYERS_MAX && spec->layer_dirs[count])
        count++;
    if (count == 0)
        return 0;
    if (count == 1)
        return add_directory(fds, spec->layer_dirs[0], fault);
    r = executor_detach_merged(spec->layer_dirs, count, &fds->fds[fds->count], fault);
    fds->count += r == 0;
    return r;
}

int sandbox_own_pipe(const struct sandbox_host *host, const struct sandbox *sandbox, int fd)
{
    struct plan_identity identity = identity_of(host, sandbox);

    return fchown(fd, identity.uid, identity.gid) < 0 ? -errno : 0;
}

static int make_output(const struct sandbox_host *host, struct sandbox *sandbox, struct fit_fds *fds)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    sandbox->output = ends[0];
    fds->fds[fds->count++] = ends[1];
    if (fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0)
        return -errno;
    return sandbox_own_pipe(host, sandbox, ends[1]);
}

static int collect_fds(struct sandbox_host *host, struct sandbox *sandbox, const struct sandbox_spec *spec,
                       struct fit_fds *fds, struct fault *fault)
{
    int r = make_output(host, sandbox, fds);

    if (r < 0)
        return fault_set(fault, -r, "cannot make the output pipe: %s", strerror(-r));
    r = add_directory(fds, spec->task_dir, fault);
    if (r == 0)
        r = add_layers(fds, spec, fault);
    if (r == 0 && spec->runtime_dir)
        r = add_directory(fds, spec->runtime_dir, fault);
    return r;
}

static int send_fit(struct sandbox_host *host, struct sandbox *sandbox, const struct sandbox_spec *spec,
                    const struct fit_fds *fds, struct fault *fault)
{
    struct plan_fit fit = {
        .identity = identity_of(host, sandbox),
        .memory_mib = spec->memory_mib,
        .tmp_mib = spec->tmp_mib,
        .has_opt = spec->layer_dirs[0] != NULL,
        .has_runtime = spec->runtime_dir != NULL,
        .limit_by_uid = !host->rootless && !cgroup_host_has(&host->cgroups, CGROUP_PIDS),
    };
    char message[128];
    size_t length = init_encode_fit(&fit, sandbox->listener.address, message, sizeof(message));
    int r = message_send(sandbox->socket, message, length, fds->fds, fds->count, MSG_DONTWAIT);

    return r < 0 ? fault_set(fault, -r, "cannot reach init: %s", strerror(-r)) : 0;
}

int sandbox_fit(struct sandbox_host *host, struct sandbox *sandbox, const struct sandbox_spec *spec,
                struct fault *fault)
{
    CLEANUP(fit_fds_deinit) struct fit_fds fds = {.count = 0};
    int r = collect_fds(host, sandbox, spec, &fds, fault);

    if (r == 0)
        r = send_fit(host, sandbox, spec, &fds, fault);
    if (r < 0)
        return r;
    sandbox->limits = (struct cgroup_limits){
        .memory_mib = spec->memory_mib,
        .tmp_mib = spec->tmp_mib,
        .processes = PLAN_PROCESSES_MAX,
        .cpu_unlimited = spec->cpu_boost,
    };
    return cgroup_apply(&host->cgroups, sandbox->name, &sandbox->limits, fault);
}

int sandbox_socket(const struct sandbox *sandbox, int *ret_fd)
{
    int r = network_slot_enter(&sandbox->slot->network);

    return r < 0 ? r : network_socket(ret_fd);
}

/* ---- end ---- */

void sandbox_thaw(const struct sandbox_host *host, const struct sandbox *sandbox)
{
    CLEANUP(cleanup_close) int fd = -1;

    if (cgroup_open(&host->cgroups, CGROUP_UNIFIED, sandbox->name, "cgroup.freeze", O_WRONLY, &fd) == 0)
        (void)!write(fd, "0", 1);
}

void sandbox_kill(const struct sandbox *sandbox)
{
    syscall(SYS_pidfd_send_signal, sandbox->pidfd, SIGKILL, NULL, 0);
}

void sandbox_close(struct sandbox *sandbox)
{
    cleanup_close(&sandbox->pidfd);
    cleanup_close(&sandbox->socket);
    cleanup_close(&sandbox->output);
    network_listener_deinit(&sandbox->listener);
    memory_watch_deinit(&sandbox->memory);
}

int sandbox_remove(struct sandbox_host *host, struct sandbox *sandbox)
{
    int r = sandbox->slot ? cgroup_remove(&host->cgroups, sandbox->name) : 0;

    if (r < 0)
        return r;
    slot_release(host, TAKE_PTR(sandbox->slot));
    return 0;
}
