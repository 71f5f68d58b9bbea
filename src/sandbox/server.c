/*
 * A sandbox's way through here:
 *
 *     SHELL --create--> FITTING --fitted--> LIVE --kill or death of init--> DYING --reaped--> REMOVING --> (freed)
 *       |                  |                                                  ^
 *       +------ death -----+--------------- failure --------------------------+
 *
 * A shell is a sandbox that does not know its function yet: init with its namespaces, cgroups, network slot and /proc.
 * A few are made ahead while there is nothing else to do, because that is where the time goes: making cgroups and
 * moving a process into them waits for the kernel's grace periods. Fitting one takes some mounts and a few writes.
 *
 * REMOVING ends when every cgroup directory is gone, which the kernel may refuse for a moment (EBUSY); it is tried from
 * the loop. Only then are slot, uid and id free for another.
 *
 * Sandboxes are freed at the end of a turn, as several events of one turn may concern the same.
 */
#include "sandbox/server.h"

#include "base/clock.h"
#include "base/list.h"
#include "base/table.h"
#include "sandbox/init.h"
#include "sandbox/peer.h"
#include "sandbox/protocol.h"
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum {
    SPARES_MAX = 16,
    REMOVE_RETRY_MS = 5,
    IDLE_MS = 2,
    MEMORY_POLL_MS = 500,
    SHUTDOWN_MS = 5000,
    EVENTS_MAX = 64,
    MESSAGES_PER_TURN = 64,
    DEATH_SIGNAL = SIGUSR2, /* not one that a service manager sends to the whole group before the daemon is done */
};

/* A message the daemon's socket had no room for yet. */
struct outgoing {
    struct list_link link;
    int fds[MESSAGE_FDS_MAX];
    size_t fd_count;
    size_t length;
    char data[];
};

struct server {
    const struct server_config *config;
    struct sandbox_host host;
    struct registrar registrar; /* of memory thresholds; started where memory is limited by v1 */
    int epoll;
    int signals;
    bool ending;
    struct source daemon_source, signals_source;
    struct table by_id; /* 8-byte ids to sandboxes from FITTING to REMOVING */
    struct list spares, fitted, dying, removing, dead;
    size_t spare_count;
    size_t spare_target;
    unsigned ahead;             /* slots to have made while idle */
    struct fault network_fault; /* why it is not the one that was asked for */
    struct list outgoing;
    int64_t memory_polled_ns;
    char message[MESSAGE_MAX];
    char reply[MESSAGE_MAX];
};

static struct span id_key(const uint64_t *id)
{
    return span_of((const char *)id, sizeof(*id));
}

static struct sandbox *find(const struct server *server, uint64_t id)
{
    return table_get(&server->by_id, id_key(&id));
}

static int watch(struct server *server, int fd, uint32_t events, struct source *source)
{
    struct epoll_event event = {.events = events, .data.ptr = source};

    return epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/*
 * Closing a descriptor does not end its events: an init that was cloned a moment ago may hold a copy until it has
 * closed what it does not need, and epoll follows the file, not the number.
 */
static void unwatch(struct server *server, int fd)
{
    if (fd >= 0)
        epoll_ctl(server->epoll, EPOLL_CTL_DEL, fd, NULL);
}

/* ---- to the daemon ---- */

static void outgoing_free(struct outgoing *outgoing)
{
    for (size_t i = 0; i < outgoing->fd_count; i++)
        cleanup_close(&outgoing->fds[i]);
    free(outgoing);
}

/* Waits for room only when the daemon is behind; then the loop goes on when there is. */
static void flush_outgoing(struct server *server)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &server->daemon_source};

    LIST_FOREACH (link, &server->outgoing) {
        struct outgoing *outgoing = CONTAINER_OF(link, struct outgoing, link);
        if (message_send(server->config->socket, outgoing->data, outgoing->length, outgoing->fds, outgoing->fd_count,
                         MSG_DONTWAIT) == -EAGAIN) {
            event.events |= EPOLLOUT;
            break;
        }
        list_remove(&outgoing->link); /* sent, or the daemon is gone */
        outgoing_free(outgoing);
    }
    epoll_ctl(server->epoll, EPOLL_CTL_MOD, server->config->socket, &event);
}

/* Takes the descriptors over; those that are -1 must have been left out. */
static void send_to_daemon(struct server *server, size_t length, const int *fds, size_t fd_count)
{
    struct outgoing *outgoing;

    if (list_is_empty(&server->outgoing) &&
        message_send(server->config->socket, server->reply, length, fds, fd_count, MSG_DONTWAIT) != -EAGAIN) {
        for (size_t i = 0; i < fd_count; i++)
            close(fds[i]);
        return;
    }
    outgoing = malloc(sizeof(*outgoing) + length);
    if (!outgoing)
        _exit(1); /* an event that is lost breaks the contract; the end of the launcher is part of it */
    list_link_init(&outgoing->link);
    outgoing->length = length;
    outgoing->fd_count = fd_count;
    memcpy(outgoing->data, server->reply, length);
    memcpy(outgoing->fds, fds, sizeof(*fds) * fd_count);
    list_push_back(&server->outgoing, &outgoing->link);
    flush_outgoing(server);
}

static void send_simple(struct server *server, enum message_type type, uint64_t id)
{
    struct message_writer writer = message_begin(server->reply, sizeof(server->reply), type, id, 0);

    send_to_daemon(server, writer.length, NULL, 0);
}

static void send_failed(struct server *server, uint64_t id, const struct fault *fault)
{
    send_to_daemon(server, message_encode_failed(id, fault, server->reply), NULL, 0);
}

/* ---- shells ---- */

/* What is left of one whose process is gone: the kernel may hold its cgroups for a moment. */
static void retire(struct server *server, struct sandbox *sandbox)
{
    unwatch(server, sandbox->pidfd);
    unwatch(server, sandbox->socket);
    unwatch(server, sandbox->memory.threshold_fd);
    unwatch(server, sandbox->memory.pressure_fd);
    sandbox_close(sandbox);
    sandbox->state = SANDBOX_REMOVING;
    list_remove(&sandbox->link);
    list_push_back(&server->removing, &sandbox->link);
}

static int watch_shell(struct server *server, struct sandbox *sandbox, struct fault *fault)
{
    int r = watch(server, sandbox->socket, EPOLLIN, &sandbox->init_source);

    if (r == 0)
        r = watch(server, sandbox->pidfd, EPOLLIN, &sandbox->pidfd_source);
    if (r == 0)
        return 0;
    sandbox_kill(sandbox);
    waitpid(sandbox->pid, NULL, 0);
    return fault_set(fault, -r, "cannot watch a sandbox: %s", strerror(-r));
}

/* A new shell, in no list. */
static int shell_new(struct server *server, struct sandbox **ret_sandbox, struct fault *fault)
{
    struct sandbox *sandbox = sandbox_new();
    int r;

    if (!sandbox)
        return fault_set(fault, ENOMEM, "out of memory");
    r = sandbox_start(&server->host, sandbox, fault);
    if (r == 0)
        r = watch_shell(server, sandbox, fault);
    if (r < 0) {
        retire(server, sandbox);
        return r;
    }
    *ret_sandbox = sandbox;
    return 0;
}

static int shell_take(struct server *server, struct sandbox **ret_sandbox, struct fault *fault)
{
    struct list_link *first = list_first(&server->spares);

    if (!first)
        return shell_new(server, ret_sandbox, fault);
    list_remove(first);
    server->spare_count--;
    *ret_sandbox = CONTAINER_OF(first, struct sandbox, link);
    return 0;
}

/* A failure is left for a create to meet again and report. */
static void make_spare(struct server *server)
{
    struct sandbox *sandbox;
    struct fault fault;

    if (shell_new(server, &sandbox, &fault) < 0) {
        server->spare_target = 0;
        return;
    }
    list_push_back(&server->spares, &sandbox->link);
    server->spare_count++;
}

static void make_slot(struct server *server)
{
    struct fault fault;

    if (sandbox_host_add_slot(&server->host, &fault) < 0)
        server->ahead = 0;
}

static bool wants_to_work_ahead(const struct server *server)
{
    return server->spare_count < server->spare_target || server->host.slot_count < server->ahead;
}

/* One thing at a time, when nothing has happened for a moment: a sandbox on its way must not wait for it. */
static void work_ahead(struct server *server)
{
    if (server->spare_count < server->spare_target)
        make_spare(server);
    else if (server->host.slot_count < server->ahead)
        make_slot(server);
}

/* ---- create ---- */

/*
 * Dying takes CPU time too: a thousand processes on the share of 128 MB would take half a minute to go. A limit that
 * stays only makes them slower, so failures are nothing.
 */
static void lift_cpu_limit(struct server *server, const struct sandbox *sandbox)
{
    struct cgroup_limits limits = sandbox->limits;
    struct fault fault;

    limits.cpu_unlimited = true;
    if (!sandbox->limits.cpu_unlimited)
        (void)!cgroup_apply_cpu(&server->host.cgroups, sandbox->name, &limits, &fault);
}

static void end_sandbox(struct server *server, struct sandbox *sandbox)
{
    if (sandbox->state >= SANDBOX_DYING)
        return;
    if (sandbox->state == SANDBOX_LIVE)
        lift_cpu_limit(server, sandbox);
    sandbox_kill(sandbox);
    if (sandbox->state == SANDBOX_SHELL)
        server->spare_count--;
    sandbox->state = SANDBOX_DYING;
    list_remove(&sandbox->link);
    list_push_back(&server->dying, &sandbox->link);
}

static void create(struct server *server, const struct sandbox_spec *spec)
{
    struct sandbox *sandbox;
    struct fault fault;

    if (find(server, spec->id)) {
        fault_set(&fault, EEXIST, "a sandbox with this id is there already");
        send_failed(server, spec->id, &fault);
        return;
    }
    if (shell_take(server, &sandbox, &fault) < 0) {
        send_failed(server, spec->id, &fault);
        return;
    }
    sandbox->id = spec->id;
    sandbox->state = SANDBOX_FITTING;
    list_push_back(&server->fitted, &sandbox->link);
    if (table_add(&server->by_id, id_key(&sandbox->id), sandbox) < 0)
        fault_set(&sandbox->fault, ENOMEM, "out of memory");
    else if (sandbox_fit(&server->host, sandbox, spec, &sandbox->fault) == 0)
        return;
    end_sandbox(server, sandbox);
}

/* ---- from the daemon ---- */

/* A full socket means that init does not read: it is broken, or was flooded while frozen. */
static void forward(struct server *server, struct sandbox *sandbox, size_t length, const struct message_fds *fds)
{
    size_t count = fds ? MIN(fds->count, (size_t)1) : 0;

    if (count && sandbox_own_pipe(&server->host, sandbox, fds->fds[0]) < 0) {
        end_sandbox(server, sandbox);
        return;
    }
    if (message_send(sandbox->socket, server->message, length, count ? fds->fds : NULL, count, MSG_DONTWAIT) < 0)
        end_sandbox(server, sandbox);
}

/* Without a descriptor the answer says that there is none to be had. */
static void open_socket(struct server *server, const struct sandbox *sandbox, uint32_t tag)
{
    struct message_writer writer =
        message_begin(server->reply, sizeof(server->reply), MESSAGE_SOCKET, sandbox->id, tag);
    int fd = -1;
    int r = sandbox_socket(sandbox, &fd);

    send_to_daemon(server, writer.length, &fd, r == 0);
}

static void apply_cpu_limit(struct server *server, struct sandbox *sandbox)
{
    struct fault fault;

    if (cgroup_apply_cpu(&server->host.cgroups, sandbox->name, &sandbox->limits, &fault) < 0)
        end_sandbox(server, sandbox);
}

static void on_request(struct server *server, const struct message_header *header, struct message_reader *reader,
                       size_t length, const struct message_fds *fds)
{
    struct sandbox *sandbox = find(server, header->id);
    struct sandbox_spec spec;

    if (header->type == MESSAGE_CREATE) {
        if (message_decode_create(header->id, reader, &spec) == 0)
            create(server, &spec);
        return;
    }
    if (!sandbox || sandbox->state >= SANDBOX_DYING)
        return; /* crossed with its end, which the daemon is about to hear of */
    switch (header->type) {
    case MESSAGE_RUN:
        sandbox->out_of_memory = false;
        if (sandbox->state == SANDBOX_LIVE) /* before, it has not run anything that could be killed */
            sandbox->oom_kills = memory_oom_kills(&server->host.cgroups, sandbox->name);
        forward(server, sandbox, length, fds);
        break;
    case MESSAGE_RESET:
        lift_cpu_limit(server, sandbox);
        sandbox_thaw(&server->host, sandbox);
        forward(server, sandbox, length, NULL);
        break;
    case MESSAGE_SIGNAL:
        forward(server, sandbox, length, NULL);
        break;
    case MESSAGE_SOCKET:
        open_socket(server, sandbox, header->run);
        break;
    case MESSAGE_LIMIT_CPU:
        sandbox->limits.cpu_unlimited = false;
        apply_cpu_limit(server, sandbox);
        break;
    case MESSAGE_KILL:
        end_sandbox(server, sandbox);
        break;
    default:
        break;
    }
}

static void begin_ending(struct server *server)
{
    server->ending = true;
    server->spare_target = server->ahead = 0;
    LIST_FOREACH (link, &server->spares)
        end_sandbox(server, CONTAINER_OF(link, struct sandbox, link));
    LIST_FOREACH (link, &server->fitted)
        end_sandbox(server, CONTAINER_OF(link, struct sandbox, link));
}

static void on_daemon(struct server *server)
{
    for (int i = 0; i < MESSAGES_PER_TURN && !server->ending; i++) {
        CLEANUP(message_fds_deinit) struct message_fds fds = {0};
        struct message_header header;
        struct message_reader reader;
        size_t length = 0;
        int r = message_receive(server->config->socket, server->message, &length, &fds, MSG_DONTWAIT);

        if (r == -EAGAIN)
            return;
        if (r == -ECONNRESET) {
            begin_ending(server);
            return;
        }
        if (r == 0 && message_open(server->message, length, &header, &reader) == 0)
            on_request(server, &header, &reader, length, &fds);
        /* Environment variables of one function must not be in the memory of the next one's init. */
        explicit_bzero(server->message, length);
    }
}

/* ---- from the sandboxes ---- */

/* In the order of struct sandbox_created; which optional ones are there goes along as numbers. */
static void announce(struct server *server, struct sandbox *sandbox)
{
    struct message_writer writer = message_begin(server->reply, sizeof(server->reply), MESSAGE_CREATED, sandbox->id, 0);
    const char *peak = server->host.cgroups.on_unified[CGROUP_MEMORY] ? "memory.peak" : "memory.max_usage_in_bytes";
    int fds[4], freeze = -1, memory = -1;
    size_t count = 0;

    (void)!cgroup_open(&server->host.cgroups, CGROUP_UNIFIED, sandbox->name, "cgroup.freeze", O_WRONLY, &freeze);
    (void)!cgroup_open(&server->host.cgroups, CGROUP_MEMORY, sandbox->name, peak, O_RDONLY, &memory);
    message_put_u32(&writer, server->config->rootless ? server->config->uid : sandbox_uid(&server->host, sandbox));
    message_put_i32(&writer, server->config->rootless && peer_can_look_below() ? sandbox->pid : 0);
    message_put_u32(&writer, freeze >= 0);
    message_put_u32(&writer, memory >= 0);
    message_put_string(&writer, sandbox->listener.address);
    fds[count++] = fcntl(sandbox->listener.fd, F_DUPFD_CLOEXEC, 3);
    fds[count++] = TAKE_FD(sandbox->output);
    if (freeze >= 0)
        fds[count++] = freeze;
    if (memory >= 0)
        fds[count++] = memory;
    send_to_daemon(server, writer.length, fds, count);
}

static int watch_memory(struct server *server, struct sandbox *sandbox, int tmp)
{
    uint64_t limit = (uint64_t)sandbox->limits.memory_mib * 1024 * 1024;
    int r = memory_watch_init(&sandbox->memory, &server->host.cgroups, &server->registrar, sandbox->name, limit, tmp);

    if (r < 0)
        return r == -ENOENT ? 0 : r;
    r = watch(server, sandbox->memory.pressure_fd, server->host.cgroups.on_unified[CGROUP_MEMORY] ? EPOLLPRI : EPOLLIN,
              &sandbox->memory_source);
    if (r == 0 && sandbox->memory.threshold_fd >= 0)
        r = watch(server, sandbox->memory.threshold_fd, EPOLLIN, &sandbox->memory_source);
    return r;
}

static void on_fitted(struct server *server, struct sandbox *sandbox, struct message_fds *fds)
{
    int r = watch_memory(server, sandbox, message_fds_take(fds, 0));

    if (r < 0) {
        fault_set(&sandbox->fault, -r, "cannot watch memory: %s", strerror(-r));
        end_sandbox(server, sandbox);
        return;
    }
    sandbox->state = SANDBOX_LIVE;
    sandbox->announced = true;
    announce(server, sandbox);
}

static void on_process_exit(struct server *server, struct sandbox *sandbox, uint32_t run, struct message_reader *reader)
{
    struct message_exit exit;

    if (message_decode_exit(reader, &exit) < 0)
        return;
    exit.exit.out_of_memory =
        exit.exit.signal == SIGKILL &&
        (sandbox->out_of_memory || memory_oom_kills(&server->host.cgroups, sandbox->name) > sandbox->oom_kills);
    send_to_daemon(server, message_encode_exit(sandbox->id, run, &exit, server->reply), NULL, 0);
}

static void on_reset_done(struct server *server, struct sandbox *sandbox)
{
    if (!sandbox->limits.cpu_unlimited)
        apply_cpu_limit(server, sandbox);
    send_simple(server, MESSAGE_RESET_DONE, sandbox->id);
}

/* One message from init, which runs beside the function's code and is believed only about itself. */
static void on_init_message(struct server *server, struct sandbox *sandbox, size_t length, struct message_fds *fds)
{
    struct message_header header;
    struct message_reader reader;

    if (message_open(server->message, length, &header, &reader) < 0)
        return;
    if (header.type == MESSAGE_FITTED && sandbox->state == SANDBOX_FITTING)
        on_fitted(server, sandbox, fds);
    else if (header.type == MESSAGE_FAILED && sandbox->state <= SANDBOX_FITTING)
        (void)!message_decode_failed(&reader, &sandbox->fault);
    else if (header.type == MESSAGE_EXIT && sandbox->announced)
        on_process_exit(server, sandbox, header.run, &reader);
    else if (header.type == MESSAGE_RESET_DONE && sandbox->announced)
        on_reset_done(server, sandbox);
}

static void on_init(struct server *server, struct sandbox *sandbox)
{
    for (;;) {
        CLEANUP(message_fds_deinit) struct message_fds fds = {0};
        size_t length;
        int r = message_receive(sandbox->socket, server->message, &length, &fds, MSG_DONTWAIT);

        if (r == -EAGAIN)
            return;
        if (r < 0) {
            unwatch(server, sandbox->socket); /* the pidfd follows */
            return;
        }
        on_init_message(server, sandbox, length, &fds);
    }
}

static void report_end(struct server *server, struct sandbox *sandbox)
{
    if (sandbox->id == 0)
        return;
    if (sandbox->announced) {
        send_simple(server, MESSAGE_GONE, sandbox->id);
        return;
    }
    if (!sandbox->fault.error)
        fault_set(&sandbox->fault, ECHILD, "the sandbox was killed before it was complete");
    send_failed(server, sandbox->id, &sandbox->fault);
}

/* The last step, once nothing is left of it in the kernel. */
static void try_remove(struct server *server, struct sandbox *sandbox)
{
    if (sandbox_remove(&server->host, sandbox) < 0)
        return;
    list_remove(&sandbox->link);
    if (sandbox->id && find(server, sandbox->id) == sandbox)
        table_remove(&server->by_id, id_key(&sandbox->id));
    report_end(server, sandbox);
    list_push_back(&server->dead, &sandbox->link);
}

/* pid 1 is reaped by the kernel only after everything else in its namespace. */
static void on_pidfd(struct server *server, struct sandbox *sandbox)
{
    siginfo_t info;

    if (waitid(P_PIDFD, (id_t)sandbox->pidfd, &info, WEXITED | WNOHANG) < 0)
        return;
    on_init(server, sandbox); /* what it still had to say */
    if (sandbox->state == SANDBOX_SHELL) {
        server->spare_count--;
        server->spare_target = 0; /* it died of itself: the next would too, and a create will say why */
    }
    retire(server, sandbox);
    try_remove(server, sandbox);
}

static void on_memory(struct server *server, struct sandbox *sandbox)
{
    struct message_writer writer;
    int r = memory_check(&sandbox->memory);

    if (r == MEMORY_RENEWED) {
        unwatch(server, sandbox->memory.retired_fd);
        cleanup_close(&sandbox->memory.retired_fd);
        r = watch(server, sandbox->memory.threshold_fd, EPOLLIN, &sandbox->memory_source);
    }
    if (r < 0) {
        end_sandbox(server, sandbox);
        return;
    }
    if (r != MEMORY_EXCEEDED)
        return;
    sandbox->out_of_memory = true;
    writer = message_begin(server->reply, sizeof(server->reply), MESSAGE_KILL_ALL, 0, 0);
    if (message_send(sandbox->socket, server->reply, writer.length, NULL, 0, MSG_DONTWAIT) < 0)
        end_sandbox(server, sandbox);
}

/* ---- the loop ---- */

static void on_signals(struct server *server)
{
    struct signalfd_siginfo info;

    while (read(server->signals, &info, sizeof(info)) > 0)
        ;
    begin_ending(server);
}

static void on_event(struct server *server, const struct source *source, uint32_t events)
{
    struct sandbox *sandbox = source->sandbox;

    switch (source->kind) {
    case SOURCE_DAEMON:
        if (events & EPOLLOUT)
            flush_outgoing(server);
        if (events & ~EPOLLOUT)
            on_daemon(server);
        break;
    case SOURCE_SIGNALS:
        on_signals(server);
        break;
    case SOURCE_INIT:
        if (sandbox->socket >= 0)
            on_init(server, sandbox);
        break;
    case SOURCE_PIDFD:
        if (sandbox->pidfd >= 0)
            on_pidfd(server, sandbox);
        break;
    case SOURCE_MEMORY:
        if (sandbox->state == SANDBOX_LIVE)
            on_memory(server, sandbox);
        break;
    }
}

static void poll_memory(struct server *server, int64_t now_ns)
{
    if (now_ns - server->memory_polled_ns < MEMORY_POLL_MS * NS_PER_MS)
        return;
    server->memory_polled_ns = now_ns;
    LIST_FOREACH (link, &server->fitted) {
        struct sandbox *sandbox = CONTAINER_OF(link, struct sandbox, link);
        if (memory_needs_polling(&sandbox->memory))
            on_memory(server, sandbox);
    }
}

static void end_turn(struct server *server)
{
    LIST_FOREACH (link, &server->removing)
        try_remove(server, CONTAINER_OF(link, struct sandbox, link));
    LIST_FOREACH (link, &server->dead) {
        list_remove(link);
        free(CONTAINER_OF(link, struct sandbox, link));
    }
}

static bool has_polled_memory(const struct server *server)
{
    if (!server->host.cgroups.on_unified[CGROUP_MEMORY])
        return false;
    LIST_FOREACH (link, &server->fitted)
        if (memory_needs_polling(&CONTAINER_OF(link, struct sandbox, link)->memory))
            return true;
    return false;
}

static int next_timeout(const struct server *server)
{
    if (wants_to_work_ahead(server))
        return IDLE_MS;
    if (!list_is_empty(&server->removing))
        return REMOVE_RETRY_MS;
    if (server->ending)
        return 100;
    return has_polled_memory(server) ? MEMORY_POLL_MS : -1;
}

static bool is_done(const struct server *server, int64_t deadline_ns)
{
    bool empty = list_is_empty(&server->spares) && list_is_empty(&server->fitted) && list_is_empty(&server->dying) &&
                 list_is_empty(&server->removing);

    return server->ending && (empty || clock_monotonic_ns() > deadline_ns);
}

static void serve(struct server *server)
{
    struct epoll_event events[EVENTS_MAX];
    int64_t deadline_ns = INT64_MAX;

    while (!is_done(server, deadline_ns)) {
        int count = epoll_wait(server->epoll, events, EVENTS_MAX, next_timeout(server));

        for (int i = 0; i < count; i++)
            on_event(server, events[i].data.ptr, events[i].events);
        poll_memory(server, clock_monotonic_ns());
        end_turn(server);
        if (count == 0)
            work_ahead(server);
        if (server->ending && deadline_ns == INT64_MAX)
            deadline_ns = clock_monotonic_ns() + SHUTDOWN_MS * NS_PER_MS;
    }
}

/* ---- start ---- */

/* Standard error stays for what nobody else could say; the daemon's other descriptors are none of ours. */
static int close_inherited(int socket)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0)
        return -errno;
    if (socket > 3 && close_range(3, (unsigned)socket - 1, 0) < 0)
        return -errno;
    return close_range((unsigned)socket + 1, ~0u, 0) < 0 ? -errno : 0;
}

/* Signals meant for the daemon (a terminal's, a service manager's) must not end sandboxes before it does. */
static int set_up_signals(struct server *server)
{
    sigset_t set;

    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL); /* refused for SIGKILL and SIGSTOP */
    for (size_t i = 0; i < INIT_SIGNALS_IGNORED; i++)
        signal(init_signals_ignored[i], SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, DEATH_SIGNAL);
    if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
        return -errno;
    server->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (server->signals < 0)
        return -errno;
    return watch(server, server->signals, EPOLLIN, &server->signals_source);
}

static int set_up_process(struct server *server, struct fault *fault)
{
    struct rlimit files;
    int r = close_inherited(server->config->socket);

    setsid();
    prctl(PR_SET_NAME, "kiln-launcher", 0, 0, 0);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    server->epoll = r < 0 ? -1 : epoll_create1(EPOLL_CLOEXEC);
    if (server->epoll < 0)
        return fault_set(fault, r < 0 ? -r : errno, "cannot start the launcher: %s", strerror(r < 0 ? -r : errno));
    r = set_up_signals(server);
    if (r == 0)
        r = watch(server, server->config->socket, EPOLLIN, &server->daemon_source);
    return r < 0 ? fault_set(fault, -r, "cannot start the launcher: %s", strerror(-r)) : 0;
}

static int set_up_cgroups(struct server *server, struct fault *fault)
{
    int r = 0;

    if (server->config->rootless)
        return 0;
    r = cgroup_host_probe(&server->host.cgroups);
    if (r < 0)
        return fault_set(fault, -r, "cannot look for cgroups: %s", strerror(-r));
    return cgroup_host_prepare(&server->host.cgroups, server->config->launcher.instance, fault);
}

static int start_registrar(struct server *server, struct fault *fault)
{
    const struct cgroup_host *cgroups = &server->host.cgroups;
    int r = 0;

    if (cgroup_host_has(cgroups, CGROUP_MEMORY) && !cgroups->on_unified[CGROUP_MEMORY])
        r = registrar_start(&server->registrar);
    return r < 0 ? fault_set(fault, -r, "cannot start a thread: %s", strerror(-r)) : 0;
}

static int set_up_network(struct server *server, struct fault *fault)
{
    const struct launcher_config *config = &server->config->launcher;
    const struct nat_config nat = {.api_address = config->api_address, .api_port = config->api_port};
    struct network *network = &server->host.network;
    int r;

    if (network->kind != SANDBOX_NETWORK_NAT)
        return 0;
    r = server->config->rootless ? fault_set(fault, EPERM, "this needs root") : nat_init(&network->nat, &nat, fault);
    if (r == 0)
        return 0;
    fault_prepend(fault, "network nat cannot be had");
    if (!config->or_host_network)
        return r;
    network->kind = SANDBOX_NETWORK_HOST;
    server->network_fault = *fault;
    return 0;
}

static int make_root(struct server *server, struct fault *fault)
{
    const struct nat *nat = &server->host.network.nat;
    const struct base_root_config config = {
        .rootless = server->config->rootless,
        .data_dir = server->config->launcher.data_dir,
        .more_hosts = nat->hosts[0] ? nat->hosts : NULL,
        .resolv_conf = nat->resolv_conf,
    };

    return base_root_init(&server->host.root, &config, fault);
}

static int set_up(struct server *server, struct fault *fault)
{
    int r = set_up_process(server, fault);

    if (r == 0)
        r = set_up_cgroups(server, fault);
    if (r == 0)
        r = set_up_network(server, fault);
    if (r == 0)
        r = make_root(server, fault);
    /* Set after the change of user namespace, which takes it back like a change of uid. */
    if (r == 0 && prctl(PR_SET_PDEATHSIG, DEATH_SIGNAL, 0, 0, 0) < 0)
        r = fault_set(fault, errno, "cannot set the parent-death signal: %s", strerror(errno));
    if (r == 0 && getppid() != server->config->daemon)
        r = fault_set(fault, ESRCH, "the daemon is gone");
    if (r == 0)
        r = seccomp_compile(&server->host.filter, fault);
    if (r == 0)
        r = start_registrar(server, fault);
    server->ahead = server->config->launcher.slots;
    server->spare_target = MIN(server->ahead, (unsigned)SPARES_MAX);
    return r;
}

static void add_network_warnings(const struct server *server, struct message_writer *writer)
{
    char text[sizeof(server->network_fault.text) + 64];

    if (server->network_fault.error) {
        snprintf(text, sizeof(text), "functions use the host's network and its loopback: %s",
                 server->network_fault.text);
        message_put_string(writer, text);
    }
    if (server->host.network.nat.no_resolver)
        message_put_string(writer, "functions resolve no names: the host's name servers have IPv6 addresses only");
    if (server->host.network.nat.switched_forward)
        message_put_string(writer, "net.ipv4.ip_forward was off and is on until this ends, for functions not to be cut "
                                   "off; other forwarding is dropped");
}

static void add_warnings(const struct server *server, struct message_writer *writer)
{
    bool rootless = server->config->rootless;
    const struct cgroup_host *cgroups = &server->host.cgroups;

    if (rootless)
        message_put_string(writer, "not started as root: all functions run under this user's own uid");
    if (rootless && server->host.network.kind == SANDBOX_NETWORK_HOST && !peer_can_look_below())
        message_put_string(writer,
                           "functions are not kept from each other's Runtime API: they share a uid and a network, "
                           "and this kernel does not list the children of a process");
    add_network_warnings(server, writer);
    if (!cgroup_host_has(cgroups, CGROUP_MEMORY))
        message_put_string(writer, "MemorySize is not enforced: no memory cgroup controller can be used");
    if (!cgroup_host_has(cgroups, CGROUP_CPU))
        message_put_string(writer,
                           "CPU is not shared in proportion to MemorySize: no cpu cgroup controller can be used");
    if (!cgroup_host_has(cgroups, CGROUP_PIDS))
        message_put_string(writer, rootless ? "the number of a function's processes is not limited: no pids cgroup "
                                              "controller can be used"
                                            : "the number of a function's processes is limited by uid only: no pids "
                                              "cgroup controller can be used");
    if (!cgroup_host_has(cgroups, CGROUP_UNIFIED))
        message_put_string(writer, "idle functions are not frozen and may use CPU: cgroup v2 cannot be used");
}

static void send_hello(struct server *server)
{
    struct message_writer writer = message_begin(server->reply, sizeof(server->reply), MESSAGE_HELLO, 0, 0);

    message_put_u32(&writer, server->host.network.kind);
    add_warnings(server, &writer);
    send_to_daemon(server, writer.length, NULL, 0);
}

static struct server *server_new(const struct server_config *config)
{
    struct server *server = calloc(1, sizeof(*server));

    if (!server)
        return NULL;
    server->config = config;
    server->registrar = REGISTRAR_INIT;
    sandbox_host_init(&server->host, &config->launcher, config->rootless);
    server->daemon_source.kind = SOURCE_DAEMON;
    server->signals_source.kind = SOURCE_SIGNALS;
    list_init(&server->spares);
    list_init(&server->fitted);
    list_init(&server->dying);
    list_init(&server->removing);
    list_init(&server->dead);
    list_init(&server->outgoing);
    return server;
}

int server_main(const struct server_config *config)
{
    struct server *server = server_new(config);
    struct fault fault;

    if (!server)
        return 1;
    if (set_up(server, &fault) < 0) {
        send_failed(server, 0, &fault);
        return 1;
    }
    send_hello(server);
    serve(server);
    if (!config->rootless)
        (void)!cgroup_host_clean(&server->host.cgroups, config->launcher.instance, 1000);
    nat_deinit(&server->host.network.nat);
    return 0;
}
