#include "sandbox/base_root.h"

#include "sandbox/executor.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int write_file(const char *path, const char *format, unsigned a, unsigned b)
    __attribute__((format(printf, 2, 0)));

static int write_file(const char *path, const char *format, unsigned a, unsigned b)
{
    CLEANUP(cleanup_close) int fd = open(path, O_WRONLY | O_CLOEXEC);
    char text[64];

    if (fd < 0)
        return -errno;
    snprintf(text, sizeof(text), format, a, b);
    return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

/* One uid and one gid, ours, under other numbers: all an unprivileged process may map without helpers. */
static int enter_user_namespace(struct fault *fault)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();
    int r;

    if (unshare(CLONE_NEWUSER) < 0)
        return fault_set(fault, EPERM,
                         "this system forbids user namespaces (%s), which sandboxes need when not started as root",
                         strerror(errno));
    r = write_file("/proc/self/setgroups", "deny", 0, 0);
    if (r == 0)
        r = write_file("/proc/self/uid_map", "%u %u 1", BASE_ROOT_UID, uid);
    if (r == 0)
        r = write_file("/proc/self/gid_map", "%u %u 1", BASE_ROOT_GID, gid);
    return r < 0 ? fault_set(fault, EPERM,
                             "this system restricts user namespaces (%s), which sandboxes need when not "
                             "started as root",
                             strerror(-r))
                 : 0;
}

static int enter_private_copy(bool rootless, struct fault *fault)
{
    if (unshare(CLONE_NEWNS) < 0)
        return fault_set(fault, EPERM,
                         rootless ? "this system restricts user namespaces (mounts: %s), which sandboxes "
                                    "need when not started as root"
                                  : "cannot make a mount namespace: %s",
                         strerror(errno));
    return 0;
}

static int set_propagation(unsigned long propagation, struct fault *fault)
{
    if (mount(NULL, "/", NULL, MS_REC | propagation, NULL) < 0)
        return fault_set(fault, errno, "cannot change mount propagation: %s", strerror(errno));
    return 0;
}

static int open_namespace(const struct base_root *root, int *ret_fd, struct fault *fault)
{
    int fd = openat(root->proc, "self/ns/mnt", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return fault_set(fault, errno, "cannot open a mount namespace: %s", strerror(errno));
    *ret_fd = fd;
    return 0;
}

/* Any directory will do to hang the new root on while it is filled: the host's disappears afterwards. */
static int open_empty_root(int *ret_fd, struct fault *fault)
{
    static const char *const places[] = {"/tmp", "/mnt", "/run"};
    int error = ENOENT;

    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        if (mount("kiln", places[i], "tmpfs", MS_NOSUID, "size=16m,mode=755") < 0) {
            error = errno;
            continue;
        }
        *ret_fd = open(places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return *ret_fd < 0 ? fault_set(fault, errno, "cannot open the new root: %s", strerror(errno)) : 0;
    }
    return fault_set(fault, error, "cannot mount a new root: %s", strerror(error));
}

/*
 * In a user namespace the kernel lets proc be mounted only where a complete one can be seen already; the template needs
 * one for the inits to cover with their own.
 */
static int show_proc(int fd, struct fault *fault)
{
    CLEANUP(cleanup_close) int proc = open_tree(AT_FDCWD, "/proc", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

    if (proc < 0 || move_mount(proc, "", fd, "proc", MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return fault_set(fault, errno, "cannot show /proc: %s", strerror(errno));
    return 0;
}

static int fill(int fd, const struct base_root_config *config, struct fault *fault)
{
    CLEANUP(plan_host_deinit) struct plan_host host = {0};
    CLEANUP(plan_deinit) struct plan plan = {0};
    struct executor executor = {.root = fd, .attach = {-1, -1, -1}, .rootless = config->rootless};
    int r = plan_probe(config->rootless, config->data_dir, &host);

    host.more_hosts = config->more_hosts;
    host.resolv_conf = config->resolv_conf;
    if (r == 0)
        r = plan_base(&host, &plan);
    if (r < 0)
        return fault_set(fault, -r, "plan of the root: %s", strerror(-r));
    r = executor_apply(&executor, &plan, fault);
    return r == 0 && config->rootless ? show_proc(fd, fault) : r;
}

/* The tmpfs becomes the root, the host's goes, and what is left can no longer be changed. */
static int pivot(int fd, struct fault *fault)
{
    struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};

    if (fchdir(fd) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0 ||
        mount_setattr(AT_FDCWD, "/", 0, &read_only, sizeof(read_only)) < 0)
        return fault_set(fault, errno, "cannot change to the new root: %s", strerror(errno));
    return 0;
}

static int make_template(struct base_root *root, const struct base_root_config *config, struct fault *fault)
{
    CLEANUP(cleanup_close) int fd = -1;
    int r = enter_private_copy(config->rootless, fault);

    if (r == 0)
        r = set_propagation(MS_PRIVATE, fault);
    if (r == 0)
        r = open_empty_root(&fd, fault);
    if (r == 0)
        r = fill(fd, config, fault);
    if (r == 0)
        r = pivot(fd, fault);
    return r < 0 ? r : open_namespace(root, &root->template, fault);
}

int base_root_init(struct base_root *root, const struct base_root_config *config, struct fault *fault)
{
    int r;

    *root = (struct base_root){-1, -1, -1};
    umask(022);
    r = config->rootless ? enter_user_namespace(fault) : 0;
    if (r == 0)
        r = enter_private_copy(config->rootless, fault);
    if (r == 0)
        r = set_propagation(MS_SLAVE, fault);
    if (r < 0)
        return r;
    root->proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root->proc < 0)
        return fault_set(fault, errno, "cannot open /proc: %s", strerror(errno));
    r = open_namespace(root, &root->host, fault);
    if (r == 0)
        r = make_template(root, config, fault);
    if (r < 0)
        return r;
    r = base_root_enter_host(root);
    return r < 0 ? fault_set(fault, -r, "cannot return to the host's mounts: %s", strerror(-r)) : 0;
}

void base_root_deinit(struct base_root *root)
{
    cleanup_close(&root->host);
    cleanup_close(&root->template);
    cleanup_close(&root->proc);
}

int base_root_enter_host(const struct base_root *root)
{
    return setns(root->host, CLONE_NEWNS) < 0 ? -errno : 0;
}

int base_root_enter_template(const struct base_root *root)
{
    return setns(root->template, CLONE_NEWNS) < 0 ? -errno : 0;
}
