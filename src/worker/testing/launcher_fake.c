#include "worker/testing/launcher_fake.h"

#include "base/buffer.h"
#include "base/list.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum event_kind { EVENT_CREATED, EVENT_CREATE_FAILED, EVENT_EXIT, EVENT_RESET, EVENT_SOCKET, EVENT_GONE, EVENT_LOST };

struct event {
    struct list_link link;
    enum event_kind kind;
    uint64_t id;
    uint32_t run; /* the tag of EVENT_SOCKET */
    int exec_errno;
    struct sandbox_exit exit;
    struct sandbox_created created;
};

struct process {
    uint32_t run;
    pid_t pid; /* 0: free */
    int pidfd;
};

struct sandbox {
    struct list_link link;
    uint64_t id;
    char task_dir[4096];
    char api_address[32];
    int output_fd; /* write end */
    int freeze_fd; /* ours of the same memory file */
    char layer_dirs[SANDBOX_LAYERS_MAX][4096];
    struct process processes[SANDBOX_PROCESSES_MAX];
};

struct launcher {
    const struct launcher_events *events;
    void *context;
    int epoll_fd;
    int event_fd;
    struct list sandboxes;
    struct list queue;
    unsigned refusals;
    bool fail_create;
};

/* What cannot fail in a test; unlike assert it is there in every build. */
static void must(bool ok)
{
    if (!ok)
        abort();
}

static void wake(struct launcher *launcher)
{
    uint64_t one = 1;

    must(write(launcher->event_fd, &one, sizeof(one)) == sizeof(one));
}

static struct event *add_event(struct launcher *launcher, enum event_kind kind, uint64_t id)
{
    struct event *event = calloc(1, sizeof(*event));

    event->kind = kind;
    event->id = id;
    list_push_back(&launcher->queue, &event->link);
    wake(launcher);
    return event;
}

static struct sandbox *find(struct launcher *launcher, uint64_t id)
{
    LIST_FOREACH (link, &launcher->sandboxes) {
        struct sandbox *sandbox = CONTAINER_OF(link, struct sandbox, link);

        if (sandbox->id == id)
            return sandbox;
    }
    return NULL;
}

struct launcher *launcher_fake_new(void)
{
    struct launcher *launcher = calloc(1, sizeof(*launcher));
    struct epoll_event event = {.events = EPOLLIN};

    /* Orphans that leave their group come back to us, to be found and killed. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    launcher->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    launcher->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    epoll_ctl(launcher->epoll_fd, EPOLL_CTL_ADD, launcher->event_fd, &event);
    list_init(&launcher->sandboxes);
    list_init(&launcher->queue);
    return launcher;
}

static bool refuses(struct launcher *launcher)
{
    if (!launcher->refusals)
        return false;
    launcher->refusals--;
    return true;
}

static int memory_file(const char *content)
{
    int fd = memfd_create("fake", MFD_CLOEXEC);

    must(fd >= 0 && pwrite(fd, content, strlen(content), 0) == (ssize_t)strlen(content));
    return fd;
}

int launcher_create(struct launcher *launcher, const struct sandbox_spec *spec)
{
    struct sandbox *sandbox;
    struct event *event;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int ends[2];

    if (refuses(launcher))
        return -EAGAIN;
    if (strlen(spec->task_dir) >= sizeof(sandbox->task_dir) - 1)
        return -E2BIG;
    if (launcher->fail_create) {
        launcher->fail_create = false;
        add_event(launcher, EVENT_CREATE_FAILED, spec->id);
        return 0;
    }
    sandbox = calloc(1, sizeof(*sandbox));
    sandbox->id = spec->id;
    for (size_t i = 0; i < SANDBOX_LAYERS_MAX && spec->layer_dirs[i]; i++)
        snprintf(sandbox->layer_dirs[i], sizeof(sandbox->layer_dirs[i]), "%s", spec->layer_dirs[i]);
    snprintf(sandbox->task_dir, sizeof(sandbox->task_dir), "%s", spec->task_dir);
    event = add_event(launcher, EVENT_CREATED, spec->id);
    event->created.api_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    must(bind(event->created.api_fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    must(listen(event->created.api_fd, 64) == 0);
    must(getsockname(event->created.api_fd, (struct sockaddr *)&address, &length) == 0);
    snprintf(sandbox->api_address, sizeof(sandbox->api_address), "127.0.0.1:%u", ntohs(address.sin_port));
    memcpy(event->created.api_address, sandbox->api_address, sizeof(sandbox->api_address));
    must(pipe2(ends, O_CLOEXEC) == 0);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    event->created.output_fd = ends[0];
    sandbox->output_fd = ends[1];
    sandbox->freeze_fd = memory_file("");
    event->created.freeze_fd = dup(sandbox->freeze_fd);
    event->created.memory_peak_fd = memory_file("37748736\n");
    event->created.uid = getuid();
    list_push_back(&launcher->sandboxes, &sandbox->link);
    return 0;
}

/* /var/task and /opt stand for directories of the host: the last layer that has the file wins. */
static int find_program(const struct sandbox *sandbox, const char *program, struct buffer *path)
{
    if (strncmp(program, "/var/task/", 10) == 0)
        return buffer_printf(path, "%s/%s", sandbox->task_dir, program + 10);
    for (int i = SANDBOX_LAYERS_MAX - 1; i >= 0 && strncmp(program, "/opt/", 5) == 0; i--) {
        path->length = 0;
        if (!sandbox->layer_dirs[i][0])
            continue;
        if (buffer_printf(path, "%s/%s", sandbox->layer_dirs[i], program + 5) < 0)
            return -ENOMEM;
        if (access(buffer_terminate(path), F_OK) == 0)
            return 0;
    }
    path->length = 0;
    return buffer_append_span(path, span_from(program));
}

static void exec_child(struct sandbox *sandbox, const struct sandbox_process *process, int error_fd)
{
    CLEANUP(buffer_deinit) struct buffer path = BUFFER_INIT;
    int output = process->output_fd > 0 ? process->output_fd : sandbox->output_fd;
    char variable[64];
    const char **variables;
    size_t count = 0;
    int error;

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    while (process->envp[count])
        count++;
    variables = calloc(count + 2, sizeof(*variables));
    memcpy(variables, process->envp, count * sizeof(*variables));
    snprintf(variable, sizeof(variable), "AWS_LAMBDA_RUNTIME_API=%s", sandbox->api_address);
    variables[count] = variable;
    if (find_program(sandbox, process->argv[0], &path) < 0)
        _exit(1);
    if (chdir(sandbox->task_dir) == 0)
        execve(buffer_terminate(&path), (char *const *)process->argv, (char *const *)variables);
    error = errno;
    if (write(error_fd, &error, sizeof(error)) != sizeof(error))
        _exit(2);
    _exit(1);
}

static struct process *find_run(struct sandbox *sandbox, uint32_t run)
{
    for (size_t i = 0; i < SANDBOX_PROCESSES_MAX; i++)
        if (sandbox->processes[i].pid > 0 && sandbox->processes[i].run == run)
            return &sandbox->processes[i];
    return NULL;
}

static struct process *find_free(struct sandbox *sandbox)
{
    for (size_t i = 0; i < SANDBOX_PROCESSES_MAX; i++)
        if (sandbox->processes[i].pid == 0)
            return &sandbox->processes[i];
    abort(); /* the worker keeps to the limit */
}

int launcher_run(struct launcher *launcher, uint64_t id, uint32_t run, const struct sandbox_process *process)
{
    struct sandbox *sandbox = find(launcher, id);
    struct epoll_event ready = {.events = EPOLLIN};
    struct process *made;
    int ends[2];
    int error = 0;
    pid_t pid;

    if (refuses(launcher))
        return -EAGAIN;
    if (!sandbox)
        return 0;
    must(pipe2(ends, O_CLOEXEC) == 0);
    pid = fork();
    if (pid == 0)
        exec_child(sandbox, process, ends[1]);
    setpgid(pid, pid);
    close(ends[1]);
    if (read(ends[0], &error, sizeof(error)) != sizeof(error))
        error = 0;
    close(ends[0]);
    if (error) {
        struct event *event = add_event(launcher, EVENT_EXIT, id);

        waitpid(pid, NULL, 0);
        event->run = run;
        event->exec_errno = error;
        return 0;
    }
    made = find_free(sandbox);
    made->run = run;
    made->pid = pid;
    made->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    must(made->pidfd >= 0);
    epoll_ctl(launcher->epoll_fd, EPOLL_CTL_ADD, made->pidfd, &ready);
    return 0;
}

static void note_exit(struct launcher *launcher, struct sandbox *sandbox, struct process *process, int status)
{
    struct event *event = add_event(launcher, EVENT_EXIT, sandbox->id);

    event->run = process->run;
    if (WIFSIGNALED(status))
        event->exit.signal = WTERMSIG(status);
    else
        event->exit.status = WEXITSTATUS(status);
    close(TAKE_FD(process->pidfd));
    process->pid = 0;
}

/* Tells of every process that has ended; with `wait` each is waited for. */
static void reap(struct launcher *launcher, struct sandbox *sandbox, bool wait)
{
    for (size_t i = 0; i < SANDBOX_PROCESSES_MAX; i++) {
        struct process *process = &sandbox->processes[i];
        int status;

        if (process->pid > 0 && waitpid(process->pid, &status, wait ? 0 : WNOHANG) == process->pid)
            note_exit(launcher, sandbox, process, status);
    }
}

/* Children of ours that carry this sandbox's address in their environment: the runtime and what it left behind. */
static void kill_processes(struct launcher *launcher, struct sandbox *sandbox)
{
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    char needle[64];
    static char text[65536];

    snprintf(needle, sizeof(needle), "AWS_LAMBDA_RUNTIME_API=%s", sandbox->api_address);
    while ((entry = readdir(proc))) {
        char path[300];
        int fd;
        ssize_t n;

        if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
            continue;
        snprintf(path, sizeof(path), "/proc/%s/environ", entry->d_name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd >= 0 ? read(fd, text, sizeof(text)) : -1;
        if (fd >= 0)
            close(fd);
        if (n > 0 && memmem(text, (size_t)n, needle, strlen(needle) + 1))
            kill(atoi(entry->d_name), SIGKILL);
    }
    closedir(proc);
    reap(launcher, sandbox, true);
}

int launcher_reset(struct launcher *launcher, uint64_t id)
{
    struct sandbox *sandbox = find(launcher, id);

    if (refuses(launcher))
        return -EAGAIN;
    if (sandbox) {
        kill_processes(launcher, sandbox);
        add_event(launcher, EVENT_RESET, id);
    }
    return 0;
}

int launcher_limit_cpu(struct launcher *launcher, uint64_t id)
{
    (void)id;
    return refuses(launcher) ? -EAGAIN : 0;
}

int launcher_signal(struct launcher *launcher, uint64_t id, uint32_t run, int signal)
{
    struct sandbox *sandbox = find(launcher, id);
    struct process *process = sandbox ? find_run(sandbox, run) : NULL;

    if (refuses(launcher))
        return -EAGAIN;
    if (process)
        kill(process->pid, signal);
    return 0;
}

int launcher_socket(struct launcher *launcher, uint64_t id, uint32_t tag)
{
    struct event *event;

    if (refuses(launcher))
        return -EAGAIN;
    if (!find(launcher, id))
        return 0;
    event = add_event(launcher, EVENT_SOCKET, id);
    event->run = tag;
    event->created.api_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return 0;
}

static void free_sandbox(struct sandbox *sandbox)
{
    list_remove(&sandbox->link);
    close(sandbox->output_fd);
    close(sandbox->freeze_fd);
    free(sandbox);
}

int launcher_kill(struct launcher *launcher, uint64_t id)
{
    struct sandbox *sandbox = find(launcher, id);

    if (refuses(launcher))
        return -EAGAIN;
    if (sandbox) {
        kill_processes(launcher, sandbox);
        add_event(launcher, EVENT_GONE, id);
        free_sandbox(sandbox);
    }
    return 0;
}

void launcher_set_events(struct launcher *launcher, const struct launcher_events *events, void *context)
{
    launcher->events = events;
    launcher->context = context;
}

int launcher_fd(const struct launcher *launcher)
{
    return launcher->epoll_fd;
}

bool launcher_is_rootless(const struct launcher *launcher)
{
    (void)launcher;
    return true;
}

static void call(struct launcher *launcher, struct event *event)
{
    struct fault fault;

    switch (event->kind) {
    case EVENT_CREATED:
        launcher->events->on_created(event->id, &event->created, launcher->context);
        break;
    case EVENT_CREATE_FAILED:
        fault_set(&fault, ENOSPC, "no room for a sandbox");
        launcher->events->on_create_failed(event->id, &fault, launcher->context);
        break;
    case EVENT_EXIT:
        launcher->events->on_process_exit(event->id, event->run, event->exec_errno, &event->exit, launcher->context);
        break;
    case EVENT_RESET:
        launcher->events->on_reset(event->id, launcher->context);
        break;
    case EVENT_SOCKET:
        launcher->events->on_socket(event->id, event->run, event->created.api_fd, launcher->context);
        break;
    case EVENT_GONE:
        launcher->events->on_gone(event->id, launcher->context);
        break;
    case EVENT_LOST:
        launcher->events->on_lost(launcher->context);
        break;
    }
}

void launcher_dispatch(struct launcher *launcher)
{
    struct list_link *first;
    uint64_t count;

    if (read(launcher->event_fd, &count, sizeof(count)) < 0)
        count = 0;
    LIST_FOREACH (link, &launcher->sandboxes) {
        reap(launcher, CONTAINER_OF(link, struct sandbox, link), false);
    }
    while ((first = list_first(&launcher->queue))) {
        struct event *event = CONTAINER_OF(first, struct event, link);

        list_remove(first);
        call(launcher, event);
        free(event);
    }
}

struct launcher *launcher_free(struct launcher *launcher)
{
    struct list_link *first;

    if (!launcher)
        return NULL;
    launcher->refusals = 0;
    while ((first = list_first(&launcher->sandboxes)))
        (void)!launcher_kill(launcher, CONTAINER_OF(first, struct sandbox, link)->id);
    launcher_dispatch(launcher);
    close(launcher->epoll_fd);
    close(launcher->event_fd);
    free(launcher);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ; /* orphans that came to us */
    return NULL;
}

void launcher_fake_refuse(struct launcher *launcher, unsigned count)
{
    launcher->refusals = count;
}

char launcher_fake_frozen(struct launcher *launcher, uint64_t id)
{
    struct sandbox *sandbox = find(launcher, id);
    char value = 0;

    return sandbox && pread(sandbox->freeze_fd, &value, 1, 0) == 1 ? value : 0;
}

void launcher_fake_fail_create(struct launcher *launcher)
{
    launcher->fail_create = true;
}

void launcher_fake_die(struct launcher *launcher)
{
    struct list_link *first;

    while ((first = list_first(&launcher->sandboxes))) {
        struct sandbox *sandbox = CONTAINER_OF(first, struct sandbox, link);

        kill_processes(launcher, sandbox);
        free_sandbox(sandbox);
    }
    add_event(launcher, EVENT_LOST, 0);
}

void launcher_fake_end_sandbox(struct launcher *launcher, uint64_t id)
{
    (void)!launcher_kill(launcher, id);
}
