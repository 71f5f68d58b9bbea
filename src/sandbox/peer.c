/*
 * SOCK_DIAG finds one connection at once, but where the kernel keeps it in a module (tcp_diag) that cannot be loaded,
 * as on hosts without modprobe or with modules_disabled, it says "no such connection" of every one. /proc/net/tcp is
 * always there and lists them all, so it has the last word when nothing was found; an owner that has closed its end
 * costs a scan.
 *
 * Rootless, all sandboxes have one uid. Then the process is looked for that has the socket: the processes of a sandbox
 * are exactly those below its init, because the kernel gives orphans to the init of their pid namespace.
 */
#include "sandbox/peer.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

struct query {
    struct nlmsghdr header;
    struct inet_diag_req_v2 request;
};

/* The far end sees our addresses swapped. */
static struct query query_of(const struct sockaddr_in *local, const struct sockaddr_in *remote)
{
    struct query query = {
        .header = {.nlmsg_len = sizeof(query), .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST},
        .request = {.sdiag_family = AF_INET, .sdiag_protocol = IPPROTO_TCP, .idiag_states = ~0u},
    };

    query.request.id.idiag_sport = remote->sin_port;
    query.request.id.idiag_dport = local->sin_port;
    query.request.id.idiag_src[0] = remote->sin_addr.s_addr;
    query.request.id.idiag_dst[0] = local->sin_addr.s_addr;
    query.request.id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
    query.request.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    return query;
}

static int read_answer(int netlink, const struct query *query, struct peer *ret_peer)
{
    union {
        struct nlmsghdr header;
        char data[4096];
    } answer;
    const struct inet_diag_msg *found = NLMSG_DATA(&answer.header);
    ssize_t n = recv(netlink, &answer, sizeof(answer), 0);

    if (n < 0)
        return -errno;
    if (n < (ssize_t)NLMSG_LENGTH(sizeof(struct nlmsgerr)))
        return -EPROTO;
    if (answer.header.nlmsg_type == NLMSG_ERROR)
        return ((const struct nlmsgerr *)NLMSG_DATA(&answer.header))->error;
    if (answer.header.nlmsg_type != SOCK_DIAG_BY_FAMILY || n < (ssize_t)NLMSG_LENGTH(sizeof(*found)))
        return -EPROTO;
    /*
     * The lookup falls back to a listening socket on the far port when no connection matches; and a socket whose owner
     * has closed it (TIME_WAIT and the like have inode 0) proves nothing: the kernel reports uid 0 for it.
     */
    if (found->id.idiag_dport != query->request.id.idiag_dport || found->idiag_inode == 0)
        return -ENOENT;
    *ret_peer = (struct peer){.uid = found->idiag_uid, .inode = found->idiag_inode};
    return 0;
}

static int ask_diag(const struct sockaddr_in *local, const struct sockaddr_in *remote, struct peer *ret_peer)
{
    CLEANUP(cleanup_close) int netlink = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    struct query query = query_of(local, remote);

    if (netlink < 0)
        return -errno;
    if (send(netlink, &query, sizeof(query), 0) < 0)
        return -errno;
    return read_answer(netlink, &query, ret_peer);
}

static void close_file(FILE **file)
{
    if (*file)
        fclose(*file);
}

/* "0: 0100007F:9C40 0100007F:0CEA 01 00000000:00000000 00:00000000 00000000 1000 0 17706 ..." */
static int read_table(const struct sockaddr_in *local, const struct sockaddr_in *remote, struct peer *ret_peer)
{
    CLEANUP(close_file) FILE *table = fopen("/proc/net/tcp", "re");
    char line[512], wanted[32];

    if (!table)
        return -errno;
    snprintf(wanted, sizeof(wanted), "%08X:%04X %08X:%04X", remote->sin_addr.s_addr, ntohs(remote->sin_port),
             local->sin_addr.s_addr, ntohs(local->sin_port));
    while (fgets(line, sizeof(line), table)) {
        const char *found = strstr(line, wanted);
        unsigned uid;
        unsigned long inode;
        if (!found || sscanf(found + strlen(wanted), " %*x %*x:%*x %*x:%*x %*x %u %*d %lu", &uid, &inode) != 2)
            continue;
        if (inode == 0) /* closed by its owner, as above */
            return -ENOENT;
        *ret_peer = (struct peer){.uid = uid, .inode = inode};
        return 0;
    }
    return -ENOENT;
}

int peer_of_tcp(int fd, struct peer *ret_peer)
{
    struct sockaddr_in local, remote;
    socklen_t local_size = sizeof(local), remote_size = sizeof(remote);
    int r;

    if (getsockname(fd, (struct sockaddr *)&local, &local_size) < 0 ||
        getpeername(fd, (struct sockaddr *)&remote, &remote_size) < 0)
        return -errno;
    if (local.sin_family != AF_INET || remote.sin_family != AF_INET)
        return -EAFNOSUPPORT;
    r = ask_diag(&local, &remote, ret_peer);
    return r == -ENOENT ? read_table(&local, &remote, ret_peer) : r;
}

/* ---- the process ---- */

/* A function may have a thousand processes with as many descriptors; looking at them all would hold up everybody else.
 */
enum { STEPS_MAX = 20000, PIDS_MAX = 1200 };

struct search {
    char wanted[32]; /* what a descriptor's link says: "socket:[17706]" */
    unsigned steps;
    pid_t pids[PIDS_MAX]; /* the tree so far; those before `at` have been looked at */
    size_t count, at;
};

static void close_directory(DIR **directory)
{
    if (*directory)
        closedir(*directory);
}

/* The next numeric name, 0 at the end. */
static long next_number(DIR *directory)
{
    struct dirent *entry;

    while ((entry = readdir(directory)))
        if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9')
            return strtol(entry->d_name, NULL, 10) + 1;
    return 0;
}

static bool holds(struct search *search, pid_t pid)
{
    CLEANUP(close_directory) DIR *directory = NULL;
    char path[64], target[64];
    long number;

    snprintf(path, sizeof(path), "/proc/%d/fd", pid);
    directory = opendir(path);
    while (directory && search->steps++ < STEPS_MAX && (number = next_number(directory))) {
        ssize_t length;
        snprintf(path, sizeof(path), "%ld", number - 1);
        length = readlinkat(dirfd(directory), path, target, sizeof(target) - 1);
        target[MAX(length, 0)] = '\0';
        if (strcmp(target, search->wanted) == 0)
            return true;
    }
    return false;
}

static void add_children(struct search *search, const char *path)
{
    CLEANUP(close_file) FILE *children = fopen(path, "re");
    pid_t pid;

    while (children && search->count < PIDS_MAX && fscanf(children, "%d", &pid) == 1)
        search->pids[search->count++] = pid;
}

/* The kernel lists children by the thread that made them. */
static void add_children_of(struct search *search, pid_t pid)
{
    CLEANUP(close_directory) DIR *threads = NULL;
    char path[64];
    long thread;

    snprintf(path, sizeof(path), "/proc/%d/task", pid);
    threads = opendir(path);
    while (threads && search->steps++ < STEPS_MAX && (thread = next_number(threads))) {
        snprintf(path, sizeof(path), "/proc/%d/task/%ld/children", pid, thread - 1);
        add_children(search, path);
    }
}

bool peer_is_below(const struct peer *peer, pid_t init)
{
    struct search search = {.pids = {init}, .count = 1};

    snprintf(search.wanted, sizeof(search.wanted), "socket:[%lu]", peer->inode);
    while (search.at < search.count) {
        pid_t pid = search.pids[search.at++];
        if (holds(&search, pid))
            return true;
        add_children_of(&search, pid);
    }
    return false;
}

bool peer_can_look_below(void)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
    return access(path, R_OK) == 0;
}
