/*
 * A function that tries to get out. The event names what it shall do, and the answer says what came of it; errors are
 * given by name, as in {"mount":"EPERM"}.
 *
 *   {"try":"calls"}    one system call after the other that a function must not make
 *   {"try":"forks"}    children until fork fails: {"count":N,"error":NAME}; they are ended before the answer
 *   {"try":"files"}    descriptors until open fails: {"highest":N,"error":NAME}
 *   {"try":"inherited"} the descriptors that were open when main began, and the signals then blocked and ignored
 *   {"try":"daemon"}   leaves a process of its own session, named by the event's "name", that never ends
 *   {"try":"chain"}    leaves one such that forks and ends and forks again, so that its pid never stays
 *   {"hang":1}         after any of the above: never answers
 */
#define _GNU_SOURCE
#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/if_packet.h>
#include <linux/perf_event.h>
#include <linux/reboot.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum { ANSWER_BYTES = 32768 };

static char answer[ANSWER_BYTES];
static char inherited[256];

static void put(const char *text)
{
    strncat(answer, text, sizeof(answer) - strlen(answer) - 1);
}

static const char *name_of(long result)
{
    return result >= 0 ? "OK" : strerrorname_np(errno);
}

static void report(const char *call, long result)
{
    char line[128];

    snprintf(line, sizeof(line), "%s\"%s\":\"%s\"", answer[1] ? "," : "", call, name_of(result));
    put(line);
}

/* --- system calls --- */

static void try_mounts(void)
{
    report("mount tmpfs", mount("none", "/tmp", "tmpfs", 0, NULL));
    report("mount proc", mount("none", "/tmp", "proc", 0, NULL));
    report("remount /", mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL));
    report("umount /tmp", umount2("/tmp", MNT_DETACH));
    report("pivot_root", syscall(SYS_pivot_root, "/tmp", "/tmp"));
    report("chroot", chroot("/tmp"));
    report("fsopen", syscall(SYS_fsopen, "tmpfs", 0));
    report("open_tree", syscall(SYS_open_tree, AT_FDCWD, "/tmp", 1 /* OPEN_TREE_CLONE */));
    report("move_mount", syscall(SYS_move_mount, AT_FDCWD, "/tmp", AT_FDCWD, "/mnt", 0));
    report("mount_setattr", syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, NULL, 0));
    report("swapon", syscall(SYS_swapon, "/tmp/swap", 0));
}

static long clone_with(unsigned long flags)
{
    long pid = syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, 0);

    if (pid == 0)
        _exit(0);
    return pid;
}

static void try_namespaces(void)
{
    static const struct {
        const char *name;
        unsigned long flag;
    } kinds[] = {{"user", CLONE_NEWUSER}, {"mnt", CLONE_NEWNS},  {"pid", CLONE_NEWPID},      {"net", CLONE_NEWNET},
                 {"ipc", CLONE_NEWIPC},   {"uts", CLONE_NEWUTS}, {"cgroup", CLONE_NEWCGROUP}};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        char text[64];
        int fd;

        snprintf(text, sizeof(text), "unshare %s", kinds[i].name);
        report(text, unshare((int)kinds[i].flag));
        snprintf(text, sizeof(text), "clone %s", kinds[i].name);
        report(text, clone_with(kinds[i].flag));
        snprintf(text, sizeof(text), "/proc/self/ns/%s", kinds[i].name);
        fd = open(text, O_RDONLY);
        snprintf(text, sizeof(text), "setns %s", kinds[i].name);
        report(text, setns(fd, 0));
        close(fd);
    }
    report("clone3", syscall(SYS_clone3, NULL, 0));
}

static void try_identity(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct all[2] = {{~0u, ~0u, ~0u}, {~0u, ~0u, ~0u}};
    gid_t root = 0;

    report("setuid 0", setuid(0));
    report("setgid 0", setgid(0));
    report("setresuid 0", setresuid(0, 0, 0));
    report("setgroups 0", syscall(SYS_setgroups, 1, &root));
    report("capset", syscall(SYS_capset, &header, all));
    report("ambient capability", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0));
    report("clear no_new_privs", prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
    report("chown", chown("/tmp", 0, 0));
    report("mknod", mknod("/tmp/disk", S_IFBLK | 0600, makedev(8, 0)));
}

static void try_other_processes(void)
{
    char byte;
    struct iovec here = {&byte, 1}, there = {(void *)0x1000, 1};

    report("ptrace init", ptrace(PTRACE_ATTACH, 1, NULL, NULL));
    report("seize init", ptrace(PTRACE_SEIZE, 1, NULL, NULL));
    report("read init", process_vm_readv(1, &here, 1, &there, 1, 0));
    report("write init", process_vm_writev(1, &here, 1, &there, 1, 0));
    report("pidfd_getfd init", syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, 1, 0), 0, 0));
    report("open memory of init", open("/proc/1/mem", O_RDWR));
    report("open root of init", open("/proc/1/root/", O_RDONLY | O_DIRECTORY));
    report("open directory of init", open("/proc/1/cwd/", O_RDONLY | O_DIRECTORY));
    report("open descriptors of init", open("/proc/1/fd", O_RDONLY | O_DIRECTORY));
    report("open variables of init", open("/proc/1/environ", O_RDONLY));
    report("kcmp", syscall(SYS_kcmp, 1, getpid(), 0, 0, 0));
    report("raise priority", setpriority(PRIO_PROCESS, 0, -10));
    report("real-time priority", sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1}));
}

static void try_kernel(void)
{
    union bpf_attr program = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
    struct perf_event_attr event = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(event)};
    struct timeval now = {0};

    report("bpf", syscall(SYS_bpf, BPF_MAP_CREATE, &program, sizeof(program)));
    report("perf_event_open", syscall(SYS_perf_event_open, &event, 0, -1, -1, 0));
    report("keyctl", syscall(SYS_keyctl, 0 /* KEYCTL_GET_KEYRING_ID */, -3, 0, 0, 0));
    report("add_key", syscall(SYS_add_key, "user", "name", "x", 1, -3));
    report("request_key", syscall(SYS_request_key, "user", "name", NULL, 0));
    report("reboot", syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, LINUX_REBOOT_CMD_CAD_OFF, NULL));
    report("kexec_load", syscall(SYS_kexec_load, 0, 0, NULL, 0));
    report("init_module", syscall(SYS_init_module, NULL, 0, ""));
    report("delete_module", syscall(SYS_delete_module, "ext4", 0));
    report("syslog", syscall(SYS_syslog, 10 /* SIZE_BUFFER */, NULL, 0));
    report("settimeofday", settimeofday(&now, NULL));
    report("sethostname", sethostname("x", 1));
    report("setdomainname", setdomainname("x", 1));
    report("userfaultfd", syscall(SYS_userfaultfd, 0));
    report("io_uring_setup", syscall(SYS_io_uring_setup, 1, NULL));
    report("open_by_handle_at", syscall(SYS_open_by_handle_at, AT_FDCWD, NULL, 0));
    report("iopl", syscall(SYS_iopl, 3));
    report("acct", syscall(SYS_acct, "/tmp/acct"));
    report("TIOCSTI", ioctl(0, TIOCSTI, "x"));
    report("open /dev/mem", open("/dev/mem", O_RDONLY));
    report("open /dev/kmsg", open("/dev/kmsg", O_RDONLY));
}

static void try_network(void)
{
    report("raw socket", socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
    report("packet socket", socket(AF_PACKET, SOCK_RAW, 0));
}

static void try_calls(void)
{
    strcpy(answer, "{");
    try_mounts();
    try_namespaces();
    try_identity();
    try_other_processes();
    try_kernel();
    try_network();
    put("}");
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

/* --- limits --- */

static void try_forks(void)
{
    static pid_t children[8192];
    int count = 0, error = 0;

    while (count < 8192) {
        pid_t pid = fork();
        if (pid == 0)
            for (;;)
                pause();
        if (pid < 0) {
            error = errno;
            break;
        }
        children[count++] = pid;
    }
    for (int i = 0; i < count; i++)
        kill(children[i], SIGKILL);
    while (waitpid(-1, NULL, 0) > 0)
        ;
    snprintf(answer, sizeof(answer), "{\"count\":%d,\"error\":\"%s\"}", count, error ? strerrorname_np(error) : "none");
}

static void try_files(void)
{
    int highest = -1, fd;

    while ((fd = open("/dev/null", O_RDONLY)) >= 0)
        highest = fd;
    snprintf(answer, sizeof(answer), "{\"highest\":%d,\"error\":\"%s\"}", highest, strerrorname_np(errno));
    for (fd = client_socket + 1; fd <= highest; fd++)
        close(fd);
}

/* --- what main began with --- */

static void see_inherited(void)
{
    sigset_t blocked;
    struct sigaction action;
    char number[16];

    strcpy(inherited, "{\"descriptors\":[0");
    for (int fd = 1; fd < 4096; fd++) {
        if (fcntl(fd, F_GETFD) >= 0) {
            snprintf(number, sizeof(number), ",%d", fd);
            strcat(inherited, number);
        }
    }
    strcat(inherited, "],\"blocked\":[");
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    for (int signal = 1; signal < 32; signal++) {
        if (sigismember(&blocked, signal) == 1) {
            snprintf(number, sizeof(number), "%s%d", inherited[strlen(inherited) - 1] == '[' ? "" : ",", signal);
            strcat(inherited, number);
        }
    }
    strcat(inherited, "],\"ignored\":[");
    for (int signal = 1; signal < 32; signal++) {
        if (sigaction(signal, NULL, &action) == 0 && action.sa_handler == SIG_IGN) {
            snprintf(number, sizeof(number), "%s%d", inherited[strlen(inherited) - 1] == '[' ? "" : ",", signal);
            strcat(inherited, number);
        }
    }
    strcat(inherited, "]}");
}

/* --- processes that want to stay --- */

static void become_daemon(const char *name)
{
    setsid();
    if (fork() > 0)
        _exit(0);
    for (int signal_number = 1; signal_number < 32; signal_number++)
        signal(signal_number, SIG_IGN);
    prctl(PR_SET_NAME, name, 0, 0, 0);
    for (int fd = 0; fd < 1024; fd++)
        close(fd);
}

static _Noreturn void run_daemon(void)
{
    for (;;)
        pause();
}

static _Noreturn void run_chain(void)
{
    signal(SIGCHLD, SIG_IGN);
    for (;;) {
        if (fork() > 0)
            _exit(0);
        usleep(200);
    }
}

/* Comes back when the one that stays has its name and has closed everything. */
static void leave(const char *event, bool chain)
{
    char name[16] = "";
    const char *at = strstr(event, "\"name\":\"");
    char byte;
    int alive[2];

    if (at)
        sscanf(at + 8, "%15[^\"]", name);
    if (pipe(alive) < 0)
        exit(109);
    if (fork() == 0) {
        become_daemon(name);
        if (chain)
            run_chain();
        run_daemon();
    }
    close(alive[1]);
    while (read(alive[0], &byte, 1) > 0)
        continue;
    close(alive[0]);
    wait(NULL);
    strcpy(answer, "{}");
}

static void obey(const char *event)
{
    strcpy(answer, "{}");
    if (strstr(event, "\"calls\""))
        try_calls();
    else if (strstr(event, "\"forks\""))
        try_forks();
    else if (strstr(event, "\"files\""))
        try_files();
    else if (strstr(event, "\"inherited\""))
        strcpy(answer, inherited);
    else if (strstr(event, "\"daemon\"") || strstr(event, "\"chain\""))
        leave(event, strstr(event, "\"chain\"") != NULL);
    while (strstr(event, "\"hang\""))
        pause();
}

int main(void)
{
    see_inherited();
    client_connect();
    for (;;) {
        obey(client_next());
        client_answer(answer);
    }
}
