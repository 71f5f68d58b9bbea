#include "sandbox/seccomp.h"

#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Docker's default profile refuses the same ones to a container without capabilities. ptrace is allowed as it is there:
 * it cannot get past a filter since Linux 4.8, init is not dumpable and other sandboxes cannot be named.
 */
static const int refused[] = {
    /* mounts and namespaces */
    SCMP_SYS(mount),
    SCMP_SYS(umount2),
    SCMP_SYS(pivot_root),
    SCMP_SYS(chroot),
    SCMP_SYS(open_tree),
    SCMP_SYS(move_mount),
    SCMP_SYS(fsopen),
    SCMP_SYS(fsconfig),
    SCMP_SYS(fsmount),
    SCMP_SYS(fspick),
    SCMP_SYS(mount_setattr),
    SCMP_SYS(setns),
    SCMP_SYS(unshare),
    SCMP_SYS(quotactl),
    SCMP_SYS(quotactl_fd),
    SCMP_SYS(swapon),
    SCMP_SYS(swapoff),
    SCMP_SYS(open_by_handle_at),
    SCMP_SYS(name_to_handle_at),
    /* the kernel itself */
    SCMP_SYS(bpf),
    SCMP_SYS(perf_event_open),
    SCMP_SYS(kexec_load),
    SCMP_SYS(kexec_file_load),
    SCMP_SYS(init_module),
    SCMP_SYS(finit_module),
    SCMP_SYS(delete_module),
    SCMP_SYS(create_module),
    SCMP_SYS(query_module),
    SCMP_SYS(get_kernel_syms),
    SCMP_SYS(syslog),
    SCMP_SYS(reboot),
    SCMP_SYS(acct),
    SCMP_SYS(lookup_dcookie),
    SCMP_SYS(userfaultfd),
    SCMP_SYS(fanotify_init),
    SCMP_SYS(vhangup),
    SCMP_SYS(iopl),
    SCMP_SYS(ioperm),
    SCMP_SYS(nfsservctl),
    SCMP_SYS(uselib),
    SCMP_SYS(_sysctl),
    SCMP_SYS(kcmp),
    SCMP_SYS(move_pages),
    /* keys are not namespaced */
    SCMP_SYS(add_key),
    SCMP_SYS(request_key),
    SCMP_SYS(keyctl),
    /* the machine's clock and name */
    SCMP_SYS(settimeofday),
    SCMP_SYS(clock_settime),
    SCMP_SYS(adjtimex),
    SCMP_SYS(clock_adjtime),
    SCMP_SYS(sethostname),
    SCMP_SYS(setdomainname),
};

/* Libraries take ENOSYS for an old kernel and use the older call. A filter cannot look at clone3's flags. */
static const int missing[] = {SCMP_SYS(clone3), SCMP_SYS(io_uring_setup), SCMP_SYS(io_uring_enter),
                              SCMP_SYS(io_uring_register),
                              /* a queue would outlive the process, and a reset could not find it */
                              SCMP_SYS(mq_open)};

static const unsigned long namespaces[] = {CLONE_NEWNS,  CLONE_NEWUTS, CLONE_NEWIPC,   CLONE_NEWUSER,
                                           CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWCGROUP};

static int refuse(scmp_filter_ctx context, const int *calls, size_t count, int error)
{
    for (size_t i = 0; i < count; i++) {
        int r = calls[i] == __NR_SCMP_ERROR ? 0 : seccomp_rule_add(context, SCMP_ACT_ERRNO(error), calls[i], 0);
        /* Calls of other architectures only (negative pseudo numbers) may be unknown here. */
        if (r < 0 && !(calls[i] < 0))
            return r;
    }
    return 0;
}

/* clone with any namespace flag; also TIOCSTI, which types into a terminal shared with the host. */
static int refuse_by_argument(scmp_filter_ctx context)
{
    for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++) {
        int r = seccomp_rule_add(context, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                                 SCMP_A0(SCMP_CMP_MASKED_EQ, namespaces[i], namespaces[i]));
        if (r < 0)
            return r;
    }
    return seccomp_rule_add(context, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
                            SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffu, 0x5412 /* TIOCSTI */));
}

static int build(scmp_filter_ctx context)
{
    int r = seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));

    if (r == 0)
        r = refuse(context, refused, ARRAY_SIZE(refused), EPERM);
    if (r == 0)
        r = refuse(context, missing, ARRAY_SIZE(missing), ENOSYS);
    if (r == 0)
        r = refuse_by_argument(context);
    if (r == 0) /* a binary tree instead of a list: a dozen comparisons a system call at most */
        r = seccomp_attr_set(context, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    return r;
}

/* libseccomp writes the program to a descriptor only (before its version 2.6). */
static int export_to(scmp_filter_ctx context, struct seccomp_filter *ret_filter)
{
    CLEANUP(cleanup_close) int fd = memfd_create("seccomp", MFD_CLOEXEC);
    struct sock_filter *instructions;
    struct stat status;
    int r;

    if (fd < 0)
        return -errno;
    r = seccomp_export_bpf(context, fd);
    if (r < 0)
        return r;
    if (fstat(fd, &status) < 0)
        return -errno;
    instructions = malloc((size_t)status.st_size);
    if (!instructions)
        return -ENOMEM;
    if (pread(fd, instructions, (size_t)status.st_size, 0) != status.st_size) {
        free(instructions);
        return -EIO;
    }
    *ret_filter =
        (struct seccomp_filter){instructions, (unsigned short)((size_t)status.st_size / sizeof(*instructions))};
    return 0;
}

int seccomp_compile(struct seccomp_filter *ret_filter, struct fault *fault)
{
    scmp_filter_ctx context = seccomp_init(SCMP_ACT_ALLOW);
    int r;

    if (!context)
        return fault_set(fault, ENOMEM, "seccomp: out of memory");
    r = build(context);
    if (r == 0)
        r = export_to(context, ret_filter);
    seccomp_release(context);
    return r < 0 ? fault_set(fault, -r, "seccomp: cannot compile the filter: %s", strerror(-r)) : 0;
}

void seccomp_deinit(struct seccomp_filter *filter)
{
    free(filter->instructions);
    *filter = (struct seccomp_filter){0};
}

int seccomp_install(const struct seccomp_filter *filter)
{
    struct sock_fprog program = {.len = filter->count, .filter = filter->instructions};

    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -errno : 0;
}
