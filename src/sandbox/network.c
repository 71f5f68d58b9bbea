#include "sandbox/network.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { API_PORT = 9001, LOOPBACK_INDEX = 1, BACKLOG = 64 };

#define API_ADDRESS 0xa9fe6401u /* 169.254.100.1 */

/* A request and its answer are one small datagram each, answered before sendmsg returns. */
static int request(int netlink, struct nlmsghdr *header)
{
    struct {
        struct nlmsghdr header;
        struct nlmsgerr error;
        char rest[128];
    } answer;

    header->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
    if (send(netlink, header, header->nlmsg_len, 0) < 0)
        return -errno;
    if (recv(netlink, &answer, sizeof(answer), 0) < 0)
        return -errno;
    return answer.header.nlmsg_type == NLMSG_ERROR ? answer.error.error : -EPROTO;
}

static int add_address(int netlink, uint32_t address)
{
    struct {
        struct nlmsghdr header;
        struct ifaddrmsg message;
        struct rtattr attribute;
        uint32_t address;
    } add = {
        .header = {.nlmsg_len = sizeof(add), .nlmsg_type = RTM_NEWADDR, .nlmsg_flags = NLM_F_CREATE | NLM_F_EXCL},
        .message = {.ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_index = LOOPBACK_INDEX},
        .attribute = {.rta_len = RTA_LENGTH(sizeof(uint32_t)), .rta_type = IFA_LOCAL},
        .address = htonl(address),
    };

    return request(netlink, &add.header);
}

static int raise_loopback(int netlink)
{
    struct {
        struct nlmsghdr header;
        struct ifinfomsg message;
    } up = {
        .header = {.nlmsg_len = sizeof(up), .nlmsg_type = RTM_NEWLINK},
        .message = {.ifi_family = AF_UNSPEC, .ifi_index = LOOPBACK_INDEX, .ifi_flags = IFF_UP, .ifi_change = IFF_UP},
    };

    return request(netlink, &up.header);
}

/* The interface a new namespace is born with always has index 1. */
static int set_up_loopback(void)
{
    CLEANUP(cleanup_close) int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    int r;

    if (netlink < 0)
        return -errno;
    r = raise_loopback(netlink);
    return r < 0 ? r : add_address(netlink, API_ADDRESS);
}

int network_slot_init(struct network_slot *slot, enum sandbox_network network, int proc, struct fault *fault)
{
    CLEANUP(cleanup_close) int namespace = -1;
    int r;

    slot->namespace = -1;
    if (network == SANDBOX_NETWORK_HOST)
        return 0;
    if (unshare(CLONE_NEWNET) < 0)
        return fault_set(fault, errno, "cannot make a network namespace: %s", strerror(errno));
    namespace = openat(proc, "self/ns/net", O_RDONLY | O_CLOEXEC);
    r = namespace < 0 ? -errno : set_up_loopback();
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
