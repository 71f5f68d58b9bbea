#include "sandbox/netlink.h"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sys/socket.h>

enum { BUFFER_BYTES = 8192 };

int netlink_open(struct netlink *netlink)
{
    netlink->socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
    if (netlink->socket && mnl_socket_bind(netlink->socket, 0, MNL_SOCKET_AUTOPID) == 0)
        return 0;
    int error = -errno;
    netlink_close(netlink);
    return error;
}

void netlink_close(struct netlink *netlink)
{
    if (netlink->socket)
        mnl_socket_close(TAKE_PTR(netlink->socket));
}

/* The common header of a request in `buffer`; the family's own and attributes follow. */
static struct nlmsghdr *begin(char buffer[BUFFER_BYTES], uint16_t type, uint16_t flags)
{
    struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);

    message->nlmsg_type = type;
    message->nlmsg_flags = NLM_F_REQUEST | flags;
    message->nlmsg_seq = 1; /* one request at a time */
    return message;
}

/* Sends it and reads what comes until its end; `on_part` sees the parts of a dump. */
static int request(const struct netlink *netlink, const struct nlmsghdr *message, mnl_cb_t on_part, void *context)
{
    unsigned port = mnl_socket_get_portid(netlink->socket);
    char buffer[BUFFER_BYTES];
    int r = 1;

    if (mnl_socket_sendto(netlink->socket, message, message->nlmsg_len) < 0)
        return -errno;
    while (r > 0) {
        ssize_t length = mnl_socket_recvfrom(netlink->socket, buffer, sizeof(buffer));
        if (length < 0)
            return -errno;
        r = mnl_cb_run(buffer, (size_t)length, 1, port, on_part, context);
    }
    return r < 0 ? -errno : 0;
}

static int command(const struct netlink *netlink, struct nlmsghdr *message)
{
    message->nlmsg_flags |= NLM_F_ACK;
    return request(netlink, message, NULL, NULL);
}

static void put_link(struct nlmsghdr *message, const char *name, int index)
{
    struct ifinfomsg *link = mnl_nlmsg_put_extra_header(message, sizeof(*link));

    link->ifi_family = AF_UNSPEC;
    link->ifi_index = index;
    if (name)
        mnl_attr_put_strz(message, IFLA_IFNAME, name);
}

int netlink_add_veth(const struct netlink *netlink, const struct netlink_veth *veth)
{
    char buffer[BUFFER_BYTES];
    struct nlmsghdr *message = begin(buffer, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
    struct nlattr *info, *data, *peer;

    put_link(message, veth->name, veth->index);
    info = mnl_attr_nest_start(message, IFLA_LINKINFO);
    mnl_attr_put_strz(message, IFLA_INFO_KIND, "veth");
    data = mnl_attr_nest_start(message, IFLA_INFO_DATA);
    peer = mnl_attr_nest_start(message, VETH_INFO_PEER);
    put_link(message, veth->peer_name, veth->peer_index);
    mnl_attr_put_u32(message, IFLA_NET_NS_FD, (uint32_t)veth->peer_namespace);
    mnl_attr_nest_end(message, peer);
    mnl_attr_nest_end(message, data);
    mnl_attr_nest_end(message, info);
    return command(netlink, message);
}

int netlink_remove_link(const struct netlink *netlink, const char *name)
{
    char buffer[BUFFER_BYTES];
    struct nlmsghdr *message = begin(buffer, RTM_DELLINK, 0);

    put_link(message, name, 0);
    return command(netlink, message);
}

int netlink_set_up(const struct netlink *netlink, int index)
{
    char buffer[BUFFER_BYTES];
    struct nlmsghdr *message = begin(buffer, RTM_NEWLINK, 0);
    struct ifinfomsg *link = mnl_nlmsg_put_extra_header(message, sizeof(*link));

    link->ifi_family = AF_UNSPEC;
    link->ifi_index = index;
    link->ifi_flags = link->ifi_change = IFF_UP;
    return command(netlink, message);
}

int netlink_add_address(const struct netlink *netlink, int index, uint32_t address, unsigned prefix)
{
    char buffer[BUFFER_BYTES];
    struct nlmsghdr *message = begin(buffer, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL);
    struct ifaddrmsg *header = mnl_nlmsg_put_extra_header(message, sizeof(*header));

    header->ifa_family = AF_INET;
    header->ifa_prefixlen = (uint8_t)prefix;
    header->ifa_index = (uint32_t)index;
    mnl_attr_put_u32(message, IFA_LOCAL, htonl(address));
    mnl_attr_put_u32(message, IFA_ADDRESS, htonl(address));
    return command(netlink, message);
}

int netlink_add_default_route(const struct netlink *netlink, uint32_t gateway)
{
    char buffer[BUFFER_BYTES];
    struct nlmsghdr *message = begin(buffer, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL);
    struct rtmsg *route = mnl_nlmsg_put_extra_header(message, sizeof(*route));

    route->rtm_family = AF_INET;
    route->rtm_table = RT_TABLE_MAIN;
    route->rtm_protocol = RTPROT_STATIC;
    route->rtm_scope = RT_SCOPE_UNIVERSE;
    route->rtm_type = RTN_UNICAST;
    mnl_attr_put_u32(message, RTA_GATEWAY, htonl(gateway));
    return command(netlink, message);
}

struct address_search {
    uint32_t network, mask;
    bool found;
};

static int on_address(const struct nlmsghdr *message, void *context)
{
    struct address_search *search = context;
    struct nlattr *attribute;

    mnl_attr_for_each(attribute, message, sizeof(struct ifaddrmsg))
    {
        if (mnl_attr_get_type(attribute) == IFA_LOCAL && mnl_attr_get_payload_len(attribute) == sizeof(uint32_t) &&
            (ntohl(mnl_attr_get_u32(attribute)) & search->mask) == search->network)
            search->found = true;
    }
    return MNL_CB_OK;
}

int netlink_has_address(const struct netlink *netlink, uint32_t address, unsigned prefix, bool *ret_has)
{
    char buffer[BUFFER_BYTES];
    struct nlmsghdr *message = begin(buffer, RTM_GETADDR, NLM_F_DUMP);
    struct ifaddrmsg *header = mnl_nlmsg_put_extra_header(message, sizeof(*header));
    uint32_t mask = ~0u << (32 - prefix);
    struct address_search search = {.network = address & mask, .mask = mask};
    int r;

    header->ifa_family = AF_INET;
    r = request(netlink, message, on_address, &search);
    *ret_has = search.found;
    return r;
}
