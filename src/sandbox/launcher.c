#include "sandbox/launcher.h"

#include "base/list.h"
#include "sandbox/cgroup.h"
#include "sandbox/protocol.h"
#include "sandbox/server.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum {
    WARNINGS_MAX = 8,
    START_TIMEOUT_MS = 30000, /* many slots take a while */
    END_TIMEOUT_MS = 8000,
    CLEAN_MS = 2000,
};

/* A sandbox whose descriptors got lost: reported as failed, its real end is swallowed. */
struct lost_sandbox {
    struct list_link link;
    uint64_t id;
};

struct launcher {
    int socket;
    int pidfd;
    pid_t pid;
    bool rootless;
    enum sandbox_network network;
    bool lost;
    char instance[48];
    char *warnings[WARNINGS_MAX + 1];
    struct launcher_events events;
    void *context;
    struct list lost_sandboxes;
    char message[MESSAGE_MAX];
};

/* ---- start ---- */

static int check_config(const struct launcher_config *config, struct fault *fault)
{
    size_t length = config->instance ? strlen(config->instance) : 0;

    if (length == 0 || length > 40 || strspn(config->instance, "abcdefghijklmnopqrstuvwxyz0123456789-") != length)
        return fault_set(fault, EINVAL, "the instance name must be 1 to 40 of a-z, 0-9 and '-'");
    if (!config->data_dir || config->data_dir[0] != '/')
        return fault_set(fault, EINVAL, "the data directory must be an absolute path");
    return 0;
}

static int fork_server(struct launcher *launcher, const struct launcher_config *config, struct fault *fault)
{
    struct server_config server = {
        .launcher = *config, .daemon = getpid(), .rootless = launcher->rootless, .uid = geteuid()};
    int sockets[2];
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
        return fault_set(fault, errno, "cannot make a socket pair: %s", strerror(errno));
    server.socket = sockets[1];
    pid = fork();
    if (pid == 0)
        _exit(server_main(&server));
    close(sockets[1]);
    launcher->socket = sockets[0];
    if (pid < 0)
        return fault_set(fault, errno, "cannot fork the launcher: %s", strerror(errno));
    launcher->pid = pid;
    launcher->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    return launcher->pidfd < 0 ? fault_set(fault, errno, "cannot watch the launcher: %s", strerror(errno)) : 0;
}

static int read_hello(struct launcher *launcher, struct message_reader *reader)
{
    launcher->network = (enum sandbox_network)message_get_u32(reader);
    for (size_t i = 0; i < WARNINGS_MAX && reader->offset < reader->length; i++) {
        const char *text = message_get_string(reader);
        launcher->warnings[i] = text ? strdup(text) : NULL;
        if (!launcher->warnings[i])
            return text ? -ENOMEM : -EBADMSG;
    }
    return message_close(reader);
}

static int wait_hello(struct launcher *launcher, struct fault *fault)
{
    struct pollfd ready = {.fd = launcher->socket, .events = POLLIN};
    struct message_header header;
    struct message_reader reader;
    struct message_fds fds = {0};
    size_t length = 0;
    int r = poll(&ready, 1, START_TIMEOUT_MS) == 1
                ? message_receive(launcher->socket, launcher->message, &length, &fds, MSG_DONTWAIT)
                : -ETIMEDOUT;

    if (r == 0)
        r = message_open(launcher->message, length, &header, &reader);
    if (r == 0 && header.type == MESSAGE_FAILED && message_decode_failed(&reader, fault) == 0)
        return -fault->error;
    if (r == 0)
        r = header.type == MESSAGE_HELLO ? read_hello(launcher, &reader) : -EBADMSG;
    return r < 0 ? fault_set(fault, -r, "the launcher did not start: %s", strerror(-r)) : 0;
}

static void cleanup_launcher(struct launcher **launcher)
{
    launcher_free(*launcher);
}

int launcher_start(const struct launcher_config *config, struct launcher **ret_launcher, struct fault *fault)
{
    CLEANUP(cleanup_launcher) struct launcher *launcher = calloc(1, sizeof(*launcher));
    struct fault unused;
    int r;

    fault = fault ? fault : &unused;
    if (!launcher)
        return fault_set(fault, ENOMEM, "out of memory");
    launcher->socket = launcher->pidfd = -1;
    launcher->rootless = geteuid() != 0;
    list_init(&launcher->lost_sandboxes);
    r = check_config(config, fault);
    if (r == 0)
        r = fork_server(launcher, config, fault);
    if (r < 0)
        return r;
    snprintf(launcher->instance, sizeof(launcher->instance), "%s", config->instance);
    r = wait_hello(launcher, fault);
    if (r < 0)
        return r;
    *ret_launcher = TAKE_PTR(launcher);
    return 0;
}

const char *const *launcher_warnings(const struct launcher *launcher)
{
    return (const char *const *)launcher->warnings;
}

bool launcher_is_rootless(const struct launcher *launcher)
{
    return launcher->rootless;
}

enum sandbox_network launcher_network(const struct launcher *launcher)
{
    return launcher->network;
}

pid_t launcher_pid(const struct launcher *launcher)
{
    return launcher->pid;
}

void launcher_set_events(struct launcher *launcher, const struct launcher_events *events, void *context)
{
    launcher->events = *events;
    launcher->context = context;
}

int launcher_fd(const struct launcher *launcher)
{
    return launcher->socket;
}

/* ---- requests ---- */

static int send_with_fds(struct launcher *launcher, size_t length, const int *fds, size_t fd_count)
{
    int r;

    if (launcher->lost)
        return -ECONNRESET;
    r = message_send(launcher->socket, launcher->message, length, fds, fd_count, MSG_DONTWAIT);
    return r == -EWOULDBLOCK ? -EAGAIN : r;
}

static int send_request(struct launcher *launcher, size_t length)
{
    return send_with_fds(launcher, length, NULL, 0);
}

static int send_simple(struct launcher *launcher, enum message_type type, uint64_t id)
{
    struct message_writer writer = message_begin(launcher->message, sizeof(launcher->message), type, id, 0);

    return send_request(launcher, writer.length);
}

int launcher_create(struct launcher *launcher, const struct sandbox_spec *spec)
{
    size_t length;
    int r = message_encode_create(spec, launcher->message, &length);

    return r < 0 ? r : send_request(launcher, length);
}

int launcher_run(struct launcher *launcher, uint64_t id, uint32_t run, const struct sandbox_process *process)
{
    size_t length;
    int r = message_encode_run(id, run, process, launcher->message, &length);

    return r < 0 ? r : send_with_fds(launcher, length, &process->output_fd, process->output_fd > 0);
}

int launcher_signal(struct launcher *launcher, uint64_t id, uint32_t run, int signal)
{
    struct message_writer writer = message_begin(launcher->message, sizeof(launcher->message), MESSAGE_SIGNAL, id, run);

    message_put_i32(&writer, signal);
    return send_request(launcher, writer.length);
}

int launcher_socket(struct launcher *launcher, uint64_t id, uint32_t tag)
{
    struct message_writer writer = message_begin(launcher->message, sizeof(launcher->message), MESSAGE_SOCKET, id, tag);

    return send_request(launcher, writer.length);
}

int launcher_reset(struct launcher *launcher, uint64_t id)
{
    return send_simple(launcher, MESSAGE_RESET, id);
}

int launcher_limit_cpu(struct launcher *launcher, uint64_t id)
{
    return send_simple(launcher, MESSAGE_LIMIT_CPU, id);
}

int launcher_kill(struct launcher *launcher, uint64_t id)
{
    return send_simple(launcher, MESSAGE_KILL, id);
}

/* ---- events ---- */

static void on_created(struct launcher *launcher, uint64_t id, struct message_reader *reader, struct message_fds *fds)
{
    struct sandbox_created created = {.uid = message_get_u32(reader), .init_pid = message_get_i32(reader)};
    bool has_freeze = message_get_u32(reader) != 0, has_memory = message_get_u32(reader) != 0;
    const char *address = message_get_string(reader);
    struct fault fault;

    if (!fds->truncated && message_close(reader) == 0 && address && fds->count == 2u + has_freeze + has_memory) {
        snprintf(created.api_address, sizeof(created.api_address), "%s", address);
        created.api_fd = message_fds_take(fds, 0);
        created.output_fd = message_fds_take(fds, 1);
        created.freeze_fd = has_freeze ? message_fds_take(fds, 2) : -1;
        created.memory_peak_fd = has_memory ? message_fds_take(fds, 2u + has_freeze) : -1;
        launcher->events.on_created(id, &created, launcher->context);
        return;
    }
    struct lost_sandbox *lost = calloc(1, sizeof(*lost));
    if (lost) {
        list_link_init(&lost->link);
        lost->id = id;
        list_push_back(&launcher->lost_sandboxes, &lost->link);
    }
    (void)!launcher_kill(launcher, id);
    fault_set(&fault, EMFILE, "this process has no descriptors left for another sandbox (see RLIMIT_NOFILE)");
    launcher->events.on_create_failed(id, &fault, launcher->context);
}

/* True for events of a sandbox already reported as failed. */
static bool swallow(struct launcher *launcher, const struct message_header *header)
{
    LIST_FOREACH (link, &launcher->lost_sandboxes) {
        struct lost_sandbox *lost = CONTAINER_OF(link, struct lost_sandbox, link);
        if (lost->id != header->id)
            continue;
        if (header->type == MESSAGE_GONE) {
            list_remove(&lost->link);
            free(lost);
        }
        return true;
    }
    return false;
}

/* -EBADMSG when the launcher does not keep to the protocol. */
static int on_message(struct launcher *launcher, size_t length, struct message_fds *fds)
{
    struct message_header header;
    struct message_reader reader;
    struct message_exit exit;
    struct fault fault;
    int r = message_open(launcher->message, length, &header, &reader);

    if (r < 0 || swallow(launcher, &header))
        return r;
    switch (header.type) {
    case MESSAGE_CREATED:
        on_created(launcher, header.id, &reader, fds);
        return 0;
    case MESSAGE_FAILED:
        r = message_decode_failed(&reader, &fault);
        if (r == 0)
            launcher->events.on_create_failed(header.id, &fault, launcher->context);
        return r;
    case MESSAGE_EXIT:
        r = message_decode_exit(&reader, &exit);
        if (r == 0)
            launcher->events.on_process_exit(header.id, header.run, exit.exec_errno, &exit.exit, launcher->context);
        return r;
    case MESSAGE_RESET_DONE:
        launcher->events.on_reset(header.id, launcher->context);
        return 0;
    case MESSAGE_SOCKET:
        launcher->events.on_socket(header.id, header.run, message_fds_take(fds, 0), launcher->context);
        return 0;
    case MESSAGE_GONE:
        launcher->events.on_gone(header.id, launcher->context);
        return 0;
    default:
        return -EBADMSG;
    }
}

/*
 * The inits have the launcher's death signal already. Their cgroups are removed from here, as nobody else is left to do
 * it; the daemon is about to exit, so waiting for a moment does no harm.
 */
static void on_lost(struct launcher *launcher)
{
    struct cgroup_host host;

    launcher->lost = true;
    kill(launcher->pid, SIGKILL);
    if (!launcher->rootless && cgroup_host_probe(&host) == 0) {
        (void)!cgroup_host_clean(&host, launcher->instance, CLEAN_MS);
        cgroup_host_deinit(&host);
    }
    if (launcher->events.on_lost)
        launcher->events.on_lost(launcher->context);
}

void launcher_dispatch(struct launcher *launcher)
{
    while (!launcher->lost) {
        CLEANUP(message_fds_deinit) struct message_fds fds = {0};
        size_t length;
        int r = message_receive(launcher->socket, launcher->message, &length, &fds, MSG_DONTWAIT);

        if (r == -EAGAIN)
            return;
        if (r == 0)
            r = on_message(launcher, length, &fds);
        if (r < 0)
            on_lost(launcher);
    }
}

/* ---- end ---- */

static void wait_end(struct launcher *launcher)
{
    struct pollfd ended = {.fd = launcher->pidfd, .events = POLLIN};

    if (launcher->pidfd < 0 || poll(&ended, 1, END_TIMEOUT_MS) != 1)
        kill(launcher->pid, SIGKILL);
    waitpid(launcher->pid, NULL, 0);
}

struct launcher *launcher_free(struct launcher *launcher)
{
    if (!launcher)
        return NULL;
    cleanup_close(&launcher->socket); /* the launcher takes it as its sign to end everything */
    if (launcher->pid > 0)
        wait_end(launcher);
    cleanup_close(&launcher->pidfd);
    for (size_t i = 0; i < WARNINGS_MAX; i++)
        free(launcher->warnings[i]);
    LIST_FOREACH (link, &launcher->lost_sandboxes)
        free(CONTAINER_OF(link, struct lost_sandbox, link));
    free(launcher);
    return NULL;
}
