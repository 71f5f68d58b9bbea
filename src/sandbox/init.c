#include "sandbox/init.h"

#include "sandbox/executor.h"
#include "sandbox/protocol.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct init {
    const struct init_config *config;
    int socket;
    int signals; /* signalfd for SIGCHLD */
    int output;
    int null;
    char api_variable[64]; /* "AWS_LAMBDA_RUNTIME_API=..." */
    struct {
        pid_t pid; /* 0: free */
        uint32_t run;
    } processes[SANDBOX_PROCESSES_MAX]; /* what was started and lives */
    char message[MESSAGE_MAX];
    struct message_process process;
};

const int init_signals_ignored[INIT_SIGNALS_IGNORED] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1};

static const char api_prefix[] = "AWS_LAMBDA_RUNTIME_API=";

size_t init_encode_fit(const struct plan_fit *fit, const char *api_address, char *data, size_t capacity)
{
    struct message_writer writer = message_begin(data, capacity, MESSAGE_FIT, 0, 0);

    message_put_u32(&writer, fit->memory_mib);
    message_put_u32(&writer, fit->tmp_mib);
    message_put_u32(&writer, fit->has_opt);
    message_put_u32(&writer, fit->has_runtime);
    message_put_u32(&writer, fit->limit_by_uid);
    message_put_string(&writer, api_address);
    return writer.length;
}

/* ---- to the launcher ---- */

/* The launcher always reads; if it is gone this process is about to die anyway. */
static void send_message(const struct init *init, size_t length, const int *fds, size_t fd_count)
{
    if (message_send(init->socket, init->message, length, fds, fd_count, 0) < 0)
        _exit(1);
}

static void send_simple(struct init *init, enum message_type type)
{
    struct message_writer writer = message_begin(init->message, sizeof(init->message), type, 0, 0);

    send_message(init, writer.length, NULL, 0);
}

static _Noreturn void fail(struct init *init, const struct fault *fault)
{
    send_message(init, message_encode_failed(0, fault, init->message), NULL, 0);
    _exit(1);
}

static void send_exit(struct init *init, uint32_t run, const struct message_exit *exit)
{
    send_message(init, message_encode_exit(0, run, exit, init->message), NULL, 0);
}

/* ---- building ---- */

/* `keep` in any order, -1 for none; everything else above standard error goes. */
static int close_all_but(const int *keep, size_t count)
{
    int from = 3;

    for (;;) {
        int next = INT_MAX;
        for (size_t i = 0; i < count; i++)
            if (keep[i] >= from && keep[i] < next)
                next = keep[i];
        if (next > from && close_range((unsigned)from, (unsigned)next - 1, 0) < 0)
            return -errno;
        if (next == INT_MAX)
            return 0;
        from = next + 1;
    }
}

static int join_cgroups(const int *cgroups)
{
    for (int i = 0; i < INIT_CGROUPS_MAX; i++)
        if (cgroups[i] >= 0 && write(cgroups[i], "0", 1) < 0)
            return -errno;
    return 0;
}

/* Standard descriptors from the launcher are of no use here. */
static int open_null(struct init *init)
{
    init->null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (init->null < 0)
        return -errno;
    for (int fd = 0; fd <= 2; fd++)
        if (dup2(init->null, fd) < 0)
            return -errno;
    return 0;
}

/* What the launcher ignores a function must not inherit as ignored. */
static int open_signals(struct init *init)
{
    sigset_t set;

    for (size_t i = 0; i < INIT_SIGNALS_IGNORED; i++)
        signal(init_signals_ignored[i], SIG_DFL);

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
        return -errno;
    init->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return init->signals < 0 ? -errno : 0;
}

static int apply_plan(struct init *init, const struct plan *plan, const int attach[PLAN_ATTACH_MAX],
                      struct fault *fault)
{
    struct executor executor = {.filter = init->config->filter, .rootless = init->config->identity.rootless};
    CLEANUP(cleanup_close) int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (root < 0)
        return fault_set(fault, errno, "cannot open the root: %s", strerror(errno));
    executor.root = root;
    for (int i = 0; i < PLAN_ATTACH_MAX; i++)
        executor.attach[i] = attach ? attach[i] : -1;
    return executor_apply(&executor, plan, fault);
}

static int build_shell(struct init *init, struct fault *fault)
{
    CLEANUP(plan_deinit) struct plan plan = {0};
    int r = plan_shell(&init->config->identity, &plan);

    return r < 0 ? fault_set(fault, -r, "plan: %s", strerror(-r)) : apply_plan(init, &plan, NULL, fault);
}

/* The cgroup namespace is made last, so that its root is the cgroups just joined. */
static int start_shell(struct init *init, struct fault *fault)
{
    const struct init_config *config = init->config;
    const int keep[] = {config->socket, config->cgroups[0], config->cgroups[1], config->cgroups[2]};
    int r;

    prctl(PR_SET_NAME, "kiln-init", 0, 0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    r = close_all_but(keep, ARRAY_SIZE(keep));
    init->socket = config->socket;
    if (r == 0)
        r = join_cgroups(config->cgroups);
    for (int i = 0; i < INIT_CGROUPS_MAX; i++)
        if (config->cgroups[i] >= 0)
            close(config->cgroups[i]);
    if (r == 0 && unshare(CLONE_NEWCGROUP) < 0)
        r = -errno;
    if (r == 0)
        r = open_null(init);
    if (r == 0)
        r = open_signals(init);
    return r < 0 ? fault_set(fault, -r, "cannot start init: %s", strerror(-r)) : build_shell(init, fault);
}

static int receive(struct init *init, struct message_header *ret_header, struct message_reader *ret_reader,
                   struct message_fds *ret_fds, int flags)
{
    size_t length;
    int r = message_receive(init->socket, init->message, &length, ret_fds, flags);

    if (r == -ECONNRESET)
        _exit(0); /* the launcher is gone */
    return r < 0 ? r : message_open(init->message, length, ret_header, ret_reader);
}

static int decode_fit(struct init *init, struct message_reader *reader, struct plan_fit *ret_fit)
{
    const char *address;

    ret_fit->identity = init->config->identity;
    ret_fit->memory_mib = message_get_u32(reader);
    ret_fit->tmp_mib = message_get_u32(reader);
    ret_fit->has_opt = message_get_u32(reader) != 0;
    ret_fit->has_runtime = message_get_u32(reader) != 0;
    ret_fit->limit_by_uid = message_get_u32(reader) != 0;
    address = message_get_string(reader);
    if (message_close(reader) < 0 || !address)
        return -EBADMSG;
    snprintf(init->api_variable, sizeof(init->api_variable), "%s%s", api_prefix, address);
    return 0;
}

static int build_fit(struct init *init, const struct plan_fit *fit, const struct message_fds *fds, struct fault *fault)
{
    CLEANUP(plan_deinit) struct plan plan = {0};
    int attach[PLAN_ATTACH_MAX] = {fds->fds[INIT_FIT_TASK], -1, -1};
    size_t next = INIT_FIT_MORE;
    int r = plan_fit(fit, &plan);

    if (r < 0)
        return fault_set(fault, -r, "plan: %s", strerror(-r));
    if (fit->has_opt)
        attach[PLAN_ATTACH_OPT] = fds->fds[next++];
    if (fit->has_runtime)
        attach[PLAN_ATTACH_RUNTIME] = fds->fds[next++];
    if (fds->count != next)
        return fault_set(fault, EBADMSG, "descriptors are missing");
    return apply_plan(init, &plan, attach, fault);
}

/* The launcher gets /tmp to see how much it holds. */
static void send_fitted(struct init *init)
{
    CLEANUP(cleanup_close) int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct message_writer writer = message_begin(init->message, sizeof(init->message), MESSAGE_FITTED, 0, 0);
    struct fault fault;

    if (tmp < 0) {
        fault_set(&fault, errno, "cannot open /tmp: %s", strerror(errno));
        fail(init, &fault);
    }
    send_message(init, writer.length, &tmp, 1);
}

/* Waits to be told, and builds the rest. */
static int fit(struct init *init, struct fault *fault)
{
    CLEANUP(message_fds_deinit) struct message_fds fds = {0};
    struct message_header header;
    struct message_reader reader;
    struct plan_fit fit = {0};
    int r = receive(init, &header, &reader, &fds, 0);

    if (r == 0)
        r = header.type == MESSAGE_FIT ? decode_fit(init, &reader, &fit) : -EBADMSG;
    if (r < 0)
        return fault_set(fault, -r, "bad message to init: %s", strerror(-r));
    r = build_fit(init, &fit, &fds, fault);
    if (r < 0)
        return r;
    init->output = message_fds_take(&fds, INIT_FIT_OUTPUT);
    send_fitted(init);
    return 0;
}

/* ---- processes ---- */

/*
 * Runs in the child of vfork, on init's memory: makes system calls only and leaves by exec or _exit. Signal handlers
 * there are none. Returns the errno of what failed.
 */
static int execute(const struct init *init, const struct message_process *process, int output)
{
    struct sched_param batch = {0};
    sigset_t none;

    sigemptyset(&none);
    setsid();
    /* A function that wakes takes the CPU from nobody: the daemon that woke it has more to do for others. */
    (void)sched_setscheduler(0, SCHED_BATCH, &batch);
    if (dup2(init->null, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0)
        return errno;
    if (chdir(process->cwd) < 0)
        return errno;
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(process->argv[0], (char *const *)process->argv, (char *const *)process->envp);
    return errno;
}

/* vfork: the page tables are not copied, and whether exec worked is known when it returns. */
static int spawn(const struct init *init, const struct message_process *process, int output, pid_t *ret_pid)
{
    volatile int error = 0;
    pid_t pid = vfork();

    if (pid == 0) {
        error = execute(init, process, output);
        _exit(127);
    }
    if (pid < 0)
        return errno;
    if (error)
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
    else
        *ret_pid = pid;
    return error;
}

/* The place of a process by its pid (0: the first free one), -1 when there is none. */
static int find_pid(const struct init *init, pid_t pid)
{
    for (int i = 0; i < SANDBOX_PROCESSES_MAX; i++)
        if (init->processes[i].pid == pid)
            return i;
    return -1;
}

static pid_t find_run(const struct init *init, uint32_t run)
{
    for (int i = 0; i < SANDBOX_PROCESSES_MAX; i++)
        if (init->processes[i].pid && init->processes[i].run == run)
            return init->processes[i].pid;
    return 0;
}

static void on_run(struct init *init, uint32_t run, struct message_reader *reader, const struct message_fds *fds)
{
    struct message_exit exit = {0};
    int place = find_pid(init, 0);
    pid_t pid = 0;

    if (message_decode_run(reader, &init->process) < 0) {
        exit.exec_errno = EBADMSG;
    } else if (place < 0 || find_run(init, run)) {
        exit.exec_errno = EBUSY;
    } else {
        init->process.envp[init->process.envc] = init->api_variable;
        init->process.envp[init->process.envc + 1] = NULL;
        exit.exec_errno = spawn(init, &init->process, fds->count ? fds->fds[0] : init->output, &pid);
    }
    if (exit.exec_errno) {
        send_exit(init, run, &exit);
        return;
    }
    init->processes[place].run = run;
    init->processes[place].pid = pid;
}

static void on_child(struct init *init, pid_t pid, int status)
{
    struct message_exit exit = {0};
    int place = find_pid(init, pid);

    if (place < 0)
        return; /* an orphan */
    init->processes[place].pid = 0;
    if (WIFSIGNALED(status))
        exit.exit.signal = WTERMSIG(status);
    else
        exit.exit.status = WEXITSTATUS(status);
    send_exit(init, init->processes[place].run, &exit);
}

static void reap(struct init *init, int flags)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, flags)) > 0)
        on_child(init, pid, status);
}

/* Removes what is below a directory of the sandbox's own. Depth is bounded by the limit on descriptors. */
static int remove_below(int parent, const char *name)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    int r = 0;

    if (!directory)
        return -errno;
    while ((entry = readdir(directory))) {
        bool is_directory = entry->d_type == DT_DIR;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (is_directory && (fchmodat(fd, entry->d_name, 0700, 0) < 0 || remove_below(fd, entry->d_name) < 0))
            r = -errno;
        if (unlinkat(fd, entry->d_name, is_directory ? AT_REMOVEDIR : 0) < 0)
            r = -errno;
    }
    closedir(directory);
    return r;
}

/* Shared memory outlives processes, but counts as memory: nothing of it may reach the next run. */
static void remove_shared_memory(void)
{
    struct shm_info shm_info;
    struct shmid_ds shm;
    struct seminfo semaphores;
    struct semid_ds semaphore;
    struct msginfo queues;
    struct msqid_ds queue;
    int last, id;

    if (remove_below(AT_FDCWD, "/dev/shm") < 0)
        _exit(1); /* cannot be made clean: the sandbox ends */
    last = shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&shm_info);
    for (int i = 0; i <= last; i++)
        if ((id = shmctl(i, SHM_STAT, &shm)) >= 0)
            shmctl(id, IPC_RMID, NULL);
    last = semctl(0, 0, SEM_INFO, &semaphores);
    for (int i = 0; i <= last; i++)
        if ((id = semctl(i, 0, SEM_STAT, &semaphore)) >= 0)
            semctl(id, 0, IPC_RMID);
    last = msgctl(0, MSG_INFO, (struct msqid_ds *)(void *)&queues);
    for (int i = 0; i <= last; i++)
        if ((id = msgctl(i, MSG_STAT, &queue)) >= 0)
            msgctl(id, IPC_RMID, NULL);
}

/* kill(-1) names every process of the namespace but this one, atomically: none can fork its way out of it. */
static void reset(struct init *init)
{
    kill(-1, SIGKILL);
    reap(init, 0);
    remove_shared_memory();
    send_simple(init, MESSAGE_RESET_DONE);
}

static void on_signal(const struct init *init, uint32_t run, struct message_reader *reader)
{
    int signal = message_get_i32(reader);
    pid_t pid = find_run(init, run);

    if (message_close(reader) == 0 && pid)
        kill(pid, signal);
}

static void on_message(struct init *init)
{
    CLEANUP(message_fds_deinit) struct message_fds fds = {0};
    struct message_header header;
    struct message_reader reader;

    if (receive(init, &header, &reader, &fds, MSG_DONTWAIT) < 0)
        return;
    if (header.type == MESSAGE_RUN)
        on_run(init, header.run, &reader, &fds);
    else if (header.type == MESSAGE_SIGNAL)
        on_signal(init, header.run, &reader);
    else if (header.type == MESSAGE_RESET)
        reset(init);
    else if (header.type == MESSAGE_KILL_ALL)
        kill(-1, SIGKILL);
}

static void on_signals(struct init *init)
{
    struct signalfd_siginfo info;

    while (read(init->signals, &info, sizeof(info)) > 0)
        ;
    reap(init, WNOHANG);
}

static _Noreturn void loop(struct init *init)
{
    struct pollfd fds[] = {{.fd = init->socket, .events = POLLIN}, {.fd = init->signals, .events = POLLIN}};

    for (;;) {
        if (poll(fds, ARRAY_SIZE(fds), -1) < 0)
            continue;
        if (fds[1].revents)
            on_signals(init);
        if (fds[0].revents)
            on_message(init);
    }
}

_Noreturn void init_main(const struct init_config *config)
{
    /* Fresh pages: the heap's would each be copied from the launcher's first. */
    struct init *init = mmap(NULL, sizeof(*init), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct fault fault;

    if (init == MAP_FAILED)
        _exit(1);
    init->config = config;
    if (start_shell(init, &fault) < 0 || fit(init, &fault) < 0)
        fail(init, &fault);
    loop(init);
}
