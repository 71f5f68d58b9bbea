#include "sandbox/network.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { API_PORT = 9001, LOOPBACK_INDEX = 1, BACKLOG = 64 };

#define API_ADDRESS 0xa9fe6401u /* 169.254.100.1 */

/* Link-local addresses of IPv6 would only cost time: nothing is reached by them. The file may not be there. */
static void disable_ipv6(int proc)
{
    CLEANUP(cleanup_close) int fd = openat(proc, "sys/net/ipv6/conf/default/disable_ipv6", O_WRONLY | O_CLOEXEC);

    if (fd >= 0)
        (void)!write(fd, "1", 1);
}

/* The interface a new namespace is born with always has index 1. */
static int set_up_loopback(const struct netlink *netlink)
{
    int r = netlink_set_up(netlink, LOOPBACK_INDEX);

    return r < 0 ? r : netlink_add_address(netlink, LOOPBACK_INDEX, API_ADDRESS, 32);
}

static int set_up_interfaces(const struct network *network, unsigned index, int proc)
{
    CLEANUP(netlink_close) struct netlink netlink = {NULL};
    int r = netlink_open(&netlink);

    if (r == 0)
        r = set_up_loopback(&netlink);
    if (r < 0 || network->kind != SANDBOX_NETWORK_NAT)
        return r;
    disable_ipv6(proc);
    return nat_connect(&network->nat, &netlink, index);
}

int network_slot_init(struct network_slot *slot, const struct network *network, unsigned index, int proc,
                      struct fault *fault)
{
    CLEANUP(cleanup_close) int namespace = -1;
    int r;

    slot->namespace = -1;
    if (network->kind == SANDBOX_NETWORK_HOST)
        return 0;
    if (unshare(CLONE_NEWNET) < 0)
        return fault_set(fault, errno, "cannot make a network namespace: %s", strerror(errno));
    namespace = openat(proc, "self/ns/net", O_RDONLY | O_CLOEXEC);
    r = namespace < 0 ? -errno : set_up_interfaces(network, index, proc);
    if (r < 0)
        return fault_set(fault, -r, "cannot set up a network namespace: %s", strerror(-r));
    slot->namespace = TAKE_FD(namespace);
    return 0;
}

void network_slot_deinit(struct network_slot *slot)
{
    cleanup_close(&slot->namespace);
}

int network_slot_enter(const struct network_slot *slot)
{
    if (slot->namespace >= 0 && setns(slot->namespace, CLONE_NEWNET) < 0)
        return -errno;
    return 0;
}

int network_listen(const struct network_slot *slot, struct network_listener *ret_listener, struct fault *fault)
{
    bool own = slot->namespace >= 0;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(own ? API_PORT : 0),
                                  .sin_addr.s_addr = htonl(own ? API_ADDRESS : INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    CLEANUP(cleanup_close) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int one = 1;
    char text[INET_ADDRSTRLEN];

    /* SO_REUSEADDR: connections of the former user may still be closing. */
    if (fd < 0 || (own && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0) ||
        bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, BACKLOG) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) < 0)
        return fault_set(fault, errno, "cannot listen for the Runtime API: %s", strerror(errno));
    inet_ntop(AF_INET, &address.sin_addr, text, sizeof(text));
    snprintf(ret_listener->address, sizeof(ret_listener->address), "%s:%u", text, ntohs(address.sin_port));
    ret_listener->fd = TAKE_FD(fd);
    return 0;
}

int network_socket(int *ret_fd)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    return 0;
}

void network_listener_deinit(struct network_listener *listener)
{
    if (listener->fd >= 0)
        shutdown(listener->fd, SHUT_RDWR);
    cleanup_close(&listener->fd);
}
