/*
 * The function's part of the sandbox tests: a static program that tries one thing from inside and says how it went.
 * Where a call is expected to fail its errno is the exit status; text goes to standard output.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MIB = 1024 * 1024 };

static int status_of(long result)
{
    return result < 0 ? errno : 0;
}

static int do_cat(char **argv)
{
    char text[4096];
    int fd = open(argv[0], O_RDONLY);
    ssize_t n;

    if (fd < 0)
        return errno;
    while ((n = read(fd, text, sizeof(text))) > 0)
        if (write(1, text, (size_t)n) < 0)
            return errno;
    return status_of(n);
}

static int do_create(char **argv)
{
    return status_of(open(argv[0], O_WRONLY | O_CREAT, 0600));
}

static int do_open_write(char **argv)
{
    return status_of(open(argv[0], O_WRONLY));
}

static int do_exists(char **argv)
{
    return status_of(access(argv[0], F_OK));
}

static int do_size(char **argv)
{
    struct stat status;

    if (stat(argv[0], &status) < 0)
        return errno;
    printf("%lld", (long long)status.st_size);
    return 0;
}

/* One forbidden call by name. */
static int do_call(char **argv)
{
    const char *call = argv[0];

    if (!strcmp(call, "mount"))
        return status_of(mount("tmpfs", "/tmp", "tmpfs", 0, NULL));
    if (!strcmp(call, "umount"))
        return status_of(umount2("/tmp", MNT_DETACH));
    if (!strcmp(call, "unshare-user"))
        return status_of(unshare(CLONE_NEWUSER));
    if (!strcmp(call, "unshare-fs")) /* no namespace, but refused with the rest */
        return status_of(unshare(CLONE_FS));
    if (!strcmp(call, "clone-user"))
        return status_of(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
    if (!strcmp(call, "clone-net"))
        return status_of(syscall(SYS_clone, CLONE_NEWNET | SIGCHLD, 0, 0, 0, 0));
    if (!strcmp(call, "clone3"))
        return status_of(syscall(SYS_clone3, NULL, 0));
    if (!strcmp(call, "chroot"))
        return status_of(chroot("/tmp"));
    if (!strcmp(call, "bpf"))
        return status_of(syscall(SYS_bpf, 0, NULL, 0));
    if (!strcmp(call, "keyctl"))
        return status_of(syscall(SYS_keyctl, 0, -3, 1));
    if (!strcmp(call, "io_uring"))
        return status_of(syscall(SYS_io_uring_setup, 1, NULL));
    if (!strcmp(call, "ptrace-init"))
        return status_of(ptrace(PTRACE_ATTACH, 1, NULL, NULL));
    if (!strcmp(call, "kill-init"))
        return status_of(kill(1, SIGKILL));
    if (!strcmp(call, "setuid"))
        return status_of(setuid(0));
    if (!strcmp(call, "mknod"))
        return status_of(mknod("/tmp/disk", S_IFBLK | 0600, 0xfe00));
    if (!strcmp(call, "chmod-root"))
        return status_of(chmod("/", 0777));
    if (!strcmp(call, "sethostname"))
        return status_of(sethostname("x", 1));
    return 255;
}

static int do_forks(char **argv)
{
    int count = 0;

    (void)argv;
    for (;; count++) {
        pid_t pid = fork();
        if (pid < 0)
            break;
        if (pid == 0)
            for (;;)
                pause();
    }
    int error = errno;
    printf("%d", count + 1); /* this process counts */
    fflush(stdout);
    return error;
}

static int do_files(char **argv)
{
    int last = 0;

    (void)argv;
    for (;;) {
        int fd = open("/dev/null", O_RDONLY);
        if (fd < 0)
            break;
        last = fd;
    }
    int error = errno;
    dprintf(1, "%d", last + 1);
    return error;
}

static int do_alloc(char **argv)
{
    size_t size = (size_t)atoi(argv[0]) * MIB;
    volatile char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return errno;
    for (size_t i = 0; i < size; i += 4096)
        memory[i] = 1;
    printf("allocated");
    fflush(stdout);
    if (argv[1])
        sleep((unsigned)atoi(argv[1]));
    return 0;
}

static int write_file(const char *path, int mebibytes, int *error)
{
    static char chunk[MIB];
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int written = 0;

    *error = fd < 0 ? errno : 0;
    memset(chunk, 'x', sizeof(chunk));
    while (fd >= 0 && written < mebibytes) {
        ssize_t n = write(fd, chunk, sizeof(chunk));
        if (n < 0)
            *error = errno;
        if (n < (ssize_t)sizeof(chunk) && *error)
            break;
        written += n == (ssize_t)sizeof(chunk);
    }
    close(fd);
    return written;
}

/* Fills a file up to so many MiB; prints how many went in. */
static int do_fill(char **argv)
{
    int error;

    printf("%d", write_file(argv[0], atoi(argv[1]), &error));
    return error;
}

/* /tmp full, then emptied, then memory: what a leak in the accounting would let through. */
static int do_fill_then_alloc(char **argv)
{
    int error;

    write_file("/tmp/fill", atoi(argv[0]), &error);
    if (error)
        return error;
    if (unlink("/tmp/fill") < 0)
        return errno;
    return do_alloc(argv + 1);
}

/* Reads files over and over until the page cache of the sandbox is at its hard limit, then allocates. */
static int do_cache_then_alloc(char **argv)
{
    static char chunk[MIB];
    int fd = open(argv[0], O_RDONLY);

    if (fd < 0)
        return errno;
    while (read(fd, chunk, sizeof(chunk)) > 0)
        ;
    return do_alloc(argv + 1);
}

/* A classic daemon: its parent is gone, it has a session of its own, and writes now and then. */
static int do_daemon(char **argv)
{
    (void)argv;
    if (fork())
        return 0;
    setsid();
    if (fork())
        _exit(0);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    for (;;) {
        if (write(1, ".", 1) < 0)
            _exit(1);
        usleep(10000);
    }
}

/* Forks for ever, each child taking over from its parent. */
static int do_runner(char **argv)
{
    (void)argv;
    if (fork())
        return 0;
    for (;;)
        if (fork() > 0)
            _exit(0);
}

static volatile int never;

static int do_spin(char **argv)
{
    (void)argv;
    while (!never) {
    }
    return 0;
}

static int do_tick(char **argv)
{
    (void)argv;
    for (;;) {
        if (write(1, ".", 1) < 0)
            return errno;
        usleep(5000);
    }
}

static int do_sleep(char **argv)
{
    (void)argv;
    printf("ready");
    fflush(stdout);
    while (!never)
        pause();
    return 0;
}

static int do_connect(char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1]))};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct timeval timeout = {.tv_sec = 2};

    inet_pton(AF_INET, argv[0], &address.sin_addr);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        return errno;
    if (argv[2]) { /* wait for an answer, so that the far end can look at us */
        char c;
        return read(fd, &c, 1) < 0 ? errno : 0;
    }
    return 0;
}

/* Takes one connection on that port of the loopback and answers with what it was sent. */
static int do_listen(char **argv)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[0])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    char text[64];
    ssize_t n;

    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 1) < 0)
        return errno;
    printf("ready");
    fflush(stdout);
    fd = accept(fd, NULL, NULL);
    n = read(fd, text, sizeof(text));
    return n < 0 ? errno : status_of(write(fd, text, (size_t)n));
}

static int do_print_env(char **argv)
{
    const char *value = getenv(argv[0]);

    if (value)
        printf("%s", value);
    return value ? 0 : 1;
}

static int do_reopen_stdout(char **argv)
{
    int fd = open("/dev/stdout", O_WRONLY);

    if (fd < 0)
        return errno;
    return status_of(write(fd, argv[0], strlen(argv[0])));
}

/* Shared memory of both kinds that outlives the process. */
static int do_leave_shared(char **argv)
{
    int error, id = shmget(0x4b494c4e, MIB, IPC_CREAT | 0600);

    (void)argv;
    if (id < 0)
        return errno;
    mkdir("/dev/shm/d", 0700);
    write_file("/dev/shm/d/f", 1, &error);
    chmod("/dev/shm/d", 0);
    return error;
}

static int do_find_shared(char **argv)
{
    (void)argv;
    if (shmget(0x4b494c4e, MIB, 0600) >= 0)
        return 1;
    return access("/dev/shm/d", F_OK) == 0 ? 2 : 0;
}

static int do_exit(char **argv)
{
    return atoi(argv[0]);
}

static int do_hostname(char **argv)
{
    char name[65] = "";

    (void)argv;
    gethostname(name, sizeof(name) - 1);
    printf("%s", name);
    return 0;
}

static const struct {
    const char *name;
    int (*run)(char **argv);
    int arguments;
} commands[] = {
    {"cat", do_cat, 1},
    {"create", do_create, 1},
    {"open-write", do_open_write, 1},
    {"exists", do_exists, 1},
    {"size", do_size, 1},
    {"call", do_call, 1},
    {"forks", do_forks, 0},
    {"files", do_files, 0},
    {"alloc", do_alloc, 1},
    {"fill", do_fill, 2},
    {"fill-then-alloc", do_fill_then_alloc, 2},
    {"cache-then-alloc", do_cache_then_alloc, 2},
    {"daemon", do_daemon, 0},
    {"runner", do_runner, 0},
    {"spin", do_spin, 0},
    {"tick", do_tick, 0},
    {"sleep", do_sleep, 0},
    {"connect", do_connect, 2},
    {"listen", do_listen, 1},
    {"env", do_print_env, 1},
    {"reopen-stdout", do_reopen_stdout, 1},
    {"leave-shared", do_leave_shared, 0},
    {"find-shared", do_find_shared, 0},
    {"exit", do_exit, 1},
    {"hostname", do_hostname, 0},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]); i++)
        if (!strcmp(argv[1], commands[i].name) && argc - 2 >= commands[i].arguments)
            return commands[i].run(argv + 2);
    return 254;
}
