#include "sandbox/executor.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define READ_ONLY_CODE (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

static const char *relative(const char *target)
{
    return target[1] ? target + 1 : ".";
}

/* ---- files ---- */

static int write_all(int fd, const char *data, size_t length)
{
    while (length > 0) {
        ssize_t n = write(fd, data, length);
        if (n < 0)
            return -errno;
        data += n;
        length -= (size_t)n;
    }
    return 0;
}

static int make_directory(int root, const struct plan_op *op)
{
    mode_t mode = (mode_t)op->value;

    if (mkdirat(root, relative(op->target), 0755) < 0 && errno != EEXIST)
        return -errno;
    return fchmodat(root, relative(op->target), mode, 0) < 0 ? -errno : 0;
}

static int make_file(int root, const char *target, int *ret_fd)
{
    int fd = openat(root, relative(target), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    if (fd < 0)
        return -errno;
    if (fchmod(fd, 0644) < 0) {
        int error = -errno;
        close(fd);
        return error;
    }
    *ret_fd = fd;
    return 0;
}

static int write_file(int root, const struct plan_op *op)
{
    CLEANUP(cleanup_close) int fd = -1;
    int r = make_file(root, op->target, &fd);

    return r < 0 ? r : write_all(fd, op->source, strlen(op->source));
}

static int copy_file(int root, const struct plan_op *op)
{
    CLEANUP(cleanup_close) int from = open(op->source, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    CLEANUP(cleanup_close) int to = -1;
    char chunk[16 * 1024];
    ssize_t n;
    int r;

    if (from < 0)
        return -errno;
    r = make_file(root, op->target, &to);
    while (r == 0 && (n = read(from, chunk, sizeof(chunk))) != 0)
        r = n < 0 ? -errno : write_all(to, chunk, (size_t)n);
    return r;
}

static int make_device(int root, const struct plan_op *op)
{
    if (mknodat(root, relative(op->target), S_IFCHR | 0666, (dev_t)op->value) < 0)
        return -errno;
    return fchmodat(root, relative(op->target), 0666, 0) < 0 ? -errno : 0;
}

/* ---- mounts ---- */

static int set_attributes(int fd, uint64_t set, unsigned flags)
{
    struct mount_attr attributes = {.attr_set = set, .propagation = MS_PRIVATE};

    return mount_setattr(fd, "", AT_EMPTY_PATH | flags, &attributes, sizeof(attributes)) < 0 ? -errno : 0;
}

static int attach(int mount, int root, const char *target)
{
    return move_mount(mount, "", root, relative(target), MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno : 0;
}

/* A copy of the mount tree (or part of one) at `path` below `directory`, not attached anywhere. */
static int clone_tree(int directory, const char *path, uint64_t attributes, unsigned recursive, int *ret_fd)
{
    CLEANUP(cleanup_close) int fd = open_tree(directory, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | recursive);
    int r;

    if (fd < 0)
        return -errno;
    r = set_attributes(fd, attributes, recursive);
    if (r < 0)
        return r;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

static int bind_host(int root, const struct plan_op *op)
{
    CLEANUP(cleanup_close) int fd = -1;
    int r = clone_tree(AT_FDCWD, op->source, op->value, AT_RECURSIVE, &fd);

    return r < 0 ? r : attach(fd, root, op->target);
}

static int bind_file(int root, const struct plan_op *op)
{
    CLEANUP(cleanup_close) int file = -1;
    int r = make_file(root, op->target, &file);

    return r < 0 ? r : bind_host(root, op);
}

/* "a=1,b" as fsconfig wants it, one by one. */
static int set_options(int context, const char *options)
{
    struct span rest = span_from(options);

    while (rest.data && rest.length > 0) {
        struct span option = span_cut(&rest, ',');
        struct span name = span_cut(&option, '=');
        char key[32], value[64];

        if (name.length >= sizeof(key) || option.length >= sizeof(value))
            return -E2BIG;
        snprintf(key, sizeof(key), "%.*s", SPAN_ARG(name));
        snprintf(value, sizeof(value), "%.*s", SPAN_ARG(option));
        if (fsconfig(context, FSCONFIG_SET_STRING, key, value, 0) < 0)
            return -errno;
    }
    return 0;
}

static int mount_new(const char *type, const char *options, uint64_t attributes, int *ret_fd)
{
    CLEANUP(cleanup_close) int context = fsopen(type, FSOPEN_CLOEXEC);
    int r, fd;

    if (context < 0)
        return -errno;
    r = set_options(context, options);
    if (r < 0)
        return r;
    if (fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -errno;
    fd = fsmount(context, FSMOUNT_CLOEXEC, (unsigned)attributes);
    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    return 0;
}

static int mount_at(int root, const struct plan_op *op, const char *type)
{
    CLEANUP(cleanup_close) int fd = -1;
    int r = mount_new(type, op->source, op->value, &fd);

    return r < 0 ? r : attach(fd, root, op->target);
}

/*
 * Directories disappear behind the base's empty /mnt. A bind keeps the attributes of the mount it copies, and both are
 * on the read-only root. The older call does in one step what the newer ones take four for; it wants absolute paths,
 * which is what a sandbox's own root gives.
 */
static int mask(const struct plan_op *op)
{
    if (mount("/dev/null", op->target, NULL, MS_BIND, NULL) == 0)
        return 0;
    if (errno != ENOTDIR)
        return -errno;
    return mount("/mnt", op->target, NULL, MS_BIND, NULL) < 0 ? -errno : 0;
}

static int make_read_only(int root, const struct plan_op *op)
{
    CLEANUP(cleanup_close) int fd = -1;
    int r = clone_tree(root, relative(op->target), MOUNT_ATTR_RDONLY, 0, &fd);

    return r < 0 ? r : attach(fd, root, op->target);
}

int executor_detach(const char *path, int *ret_fd, struct fault *fault)
{
    int r = clone_tree(AT_FDCWD, path, READ_ONLY_CODE, 0, ret_fd);

    return r < 0 ? fault_set(fault, -r, "%s: %s", path, strerror(-r)) : 0;
}

/*
 * overlayfs takes "a:b:c", uppermost first. fsconfig limits a value to 256 bytes and ':' would need escaping, so the
 * directories are named by descriptor.
 */
static int open_layers(const char *const *paths, int *fds, size_t count, char *text, size_t size)
{
    size_t length = 0;

    for (size_t i = 0; i < count; i++) {
        fds[i] = open(paths[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fds[i] < 0)
            return -errno;
    }
    for (size_t i = count; i-- > 0;)
        length += (size_t)snprintf(text + length, size - length, "/proc/self/fd/%d%s", fds[i], i > 0 ? ":" : "");
    return 0;
}

static int mount_overlay(const char *lower, int *ret_fd)
{
    CLEANUP(cleanup_close) int context = fsopen("overlay", FSOPEN_CLOEXEC);
    int fd;

    if (context < 0 || fsconfig(context, FSCONFIG_SET_STRING, "lowerdir", lower, 0) < 0 ||
        fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -errno;
    fd = fsmount(context, FSMOUNT_CLOEXEC, READ_ONLY_CODE);
    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    return 0;
}

int executor_detach_merged(const char *const *paths, size_t count, int *ret_fd, struct fault *fault)
{
    int fds[SANDBOX_LAYERS_MAX] = {-1, -1, -1, -1, -1};
    char lower[SANDBOX_LAYERS_MAX * 32];
    int r = open_layers(paths, fds, count, lower, sizeof(lower));

    if (r == 0)
        r = mount_overlay(lower, ret_fd);
    for (size_t i = 0; i < count; i++)
        cleanup_close(&fds[i]);
    return r < 0 ? fault_set(fault, -r, "layers cannot be merged: %s", strerror(-r)) : 0;
}

/* ---- the process ---- */

static int write_oom_score(int root, unsigned score)
{
    CLEANUP(cleanup_close) int fd = openat(root, "proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    char text[16];

    if (fd < 0)
        return -errno;
    snprintf(text, sizeof(text), "%u", score);
    return write_all(fd, text, strlen(text));
}

static int set_limit(int resource, uint64_t value)
{
    struct rlimit limit = {.rlim_cur = value, .rlim_max = value};

    if (setrlimit((__rlimit_resource_t)resource, &limit) == 0)
        return 0;
    /* Raising a hard limit takes a capability that containers often lack: then what there is has to do. */
    if (errno != EPERM || getrlimit((__rlimit_resource_t)resource, &limit) < 0)
        return -errno;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit((__rlimit_resource_t)resource, &limit) < 0 ? -errno : 0;
}

static int drop_bounding(void)
{
    for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
        if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0)
            return -errno;
    return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ? -errno : 0;
}

static int set_ids(bool rootless, uid_t uid, gid_t gid)
{
    /* A user namespace made without privileges has setgroups forbidden. */
    if (!rootless && setgroups(0, NULL) < 0)
        return -errno;
    if (setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
        return -errno;
    return 0;
}

static int drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};

    return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

static int set_process_flag(int option, unsigned long value)
{
    return prctl(option, value, 0, 0, 0) < 0 ? -errno : 0;
}

/* A new session, unless the process leads one already (EPERM). */
static int make_session(void)
{
    return setsid() < 0 && errno != EPERM ? -errno : 0;
}

static int apply(const struct executor *executor, const struct plan_op *op)
{
    int root = executor->root;

    switch (op->action) {
    case PLAN_DIRECTORY:
        return make_directory(root, op);
    case PLAN_FILE:
        return write_file(root, op);
    case PLAN_COPY:
        return copy_file(root, op);
    case PLAN_SYMLINK:
        return symlinkat(op->source, root, relative(op->target)) < 0 ? -errno : 0;
    case PLAN_DEVICE:
        return make_device(root, op);
    case PLAN_BIND:
        return bind_host(root, op);
    case PLAN_BIND_FILE:
        return bind_file(root, op);
    case PLAN_TMPFS:
        return mount_at(root, op, "tmpfs");
    case PLAN_PROC:
        return mount_at(root, op, "proc");
    case PLAN_MASK:
        return mask(op);
    case PLAN_READ_ONLY:
        return make_read_only(root, op);
    case PLAN_ATTACH:
        return attach(executor->attach[op->value], root, op->target);
    case PLAN_HOSTNAME:
        return sethostname(op->source, strlen(op->source)) < 0 ? -errno : 0;
    case PLAN_OOM_SCORE:
        return write_oom_score(root, (unsigned)op->value);
    case PLAN_RLIMIT:
        return set_limit((int)op->value, op->limit);
    case PLAN_SESSION:
        return make_session();
    case PLAN_NO_NEW_PRIVILEGES:
        return set_process_flag(PR_SET_NO_NEW_PRIVS, 1);
    case PLAN_DROP_BOUNDING:
        return drop_bounding();
    case PLAN_IDS:
        return set_ids(executor->rootless, (uid_t)op->value, (gid_t)op->limit);
    case PLAN_DROP_CAPABILITIES:
        return drop_capabilities();
    case PLAN_UNDUMPABLE:
        return set_process_flag(PR_SET_DUMPABLE, 0);
    case PLAN_DEATH_SIGNAL:
        return set_process_flag(PR_SET_PDEATHSIG, SIGKILL);
    case PLAN_SECCOMP:
        return seccomp_install(executor->filter);
    }
    return -ENOSYS;
}

static const char *const action_names[] = {
    [PLAN_DIRECTORY] = "make directory",
    [PLAN_FILE] = "write",
    [PLAN_COPY] = "copy",
    [PLAN_SYMLINK] = "link",
    [PLAN_DEVICE] = "make device",
    [PLAN_BIND] = "bind",
    [PLAN_BIND_FILE] = "bind",
    [PLAN_TMPFS] = "mount tmpfs at",
    [PLAN_PROC] = "mount proc at",
    [PLAN_MASK] = "mask",
    [PLAN_READ_ONLY] = "make read-only",
    [PLAN_ATTACH] = "mount",
    [PLAN_HOSTNAME] = "set the host name",
    [PLAN_OOM_SCORE] = "set the out-of-memory score",
    [PLAN_RLIMIT] = "set a resource limit",
    [PLAN_SESSION] = "start a session",
    [PLAN_NO_NEW_PRIVILEGES] = "set no_new_privs",
    [PLAN_DROP_BOUNDING] = "empty the bounding set",
    [PLAN_IDS] = "change the user",
    [PLAN_DROP_CAPABILITIES] = "drop capabilities",
    [PLAN_UNDUMPABLE] = "become undumpable",
    [PLAN_DEATH_SIGNAL] = "set the parent-death signal",
    [PLAN_SECCOMP] = "install the system call filter",
};

int executor_apply(const struct executor *executor, const struct plan *plan, struct fault *fault)
{
    for (size_t i = 0; i < plan->count; i++) {
        const struct plan_op *op = &plan->ops[i];
        int r = apply(executor, op);

        if (r == -ENOENT && op->optional)
            continue;
        if (r < 0)
            return fault_set(fault, -r, "cannot %s %s: %s", action_names[op->action], op->target ? op->target : "",
                             strerror(-r));
    }
    return 0;
}
