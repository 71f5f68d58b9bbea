/*
 * What network slots ask of the kernel's routing socket (rtnetlink), by libmnl: links, addresses, routes. A socket
 * belongs to the network namespace that it was opened in, and works there wherever its user has moved since. Every
 * request is answered before the call returns; 0 or -errno, the kernel's.
 */
#pragma once

#include "base/macros.h"

#include <stdbool.h>
#include <stdint.h>

struct mnl_socket;

struct netlink {
    struct mnl_socket *socket; /* NULL when closed */
};

/* A pair of connected interfaces. An index of 0 lets the kernel choose. */
struct netlink_veth {
    const char *name;
    int index;
    const char *peer_name;
    int peer_index;
    int peer_namespace; /* descriptor of the network namespace that the peer is made in */
};

/* Opens a socket in the namespace that the thread is in. */
int netlink_open(struct netlink *netlink) MUST_USE;
void netlink_close(struct netlink *netlink);

int netlink_add_veth(const struct netlink *netlink, const struct netlink_veth *veth) MUST_USE;
/* With the other end of its pair. */
int netlink_remove_link(const struct netlink *netlink, const char *name) MUST_USE;
int netlink_set_up(const struct netlink *netlink, int index) MUST_USE;
/* Addresses are in the host's byte order. */
int netlink_add_address(const struct netlink *netlink, int index, uint32_t address, unsigned prefix) MUST_USE;
int netlink_add_default_route(const struct netlink *netlink, uint32_t gateway) MUST_USE;
/* Whether some interface has this address or one in the same network of `prefix` bits. */
int netlink_has_address(const struct netlink *netlink, uint32_t address, unsigned prefix, bool *ret_has) MUST_USE;
