/*
 * SANDBOX_NETWORK_NAT: the way from network slots to the world.
 *
 *     slot namespace           router namespace                    the host's namespace
 *     eth0 198.18.x.y ------- s<index> | masquerading | uplink --- kiln-<random> | masquerading | the host's interfaces
 *
 * Slots are connected to a router, a network namespace of the launcher's own, and never to the host, which sees one
 * interface and one address whatever the number of slots. There is no bridge (it would stop at 1,024 ports): each pair
 * is routed. What functions may reach is decided in the router: the world and the host, but not each other, and nothing
 * link-local (the metadata services of clouds).
 *
 * Nothing of it can be left over. The interface on the host goes with the router's namespace, the namespace with the
 * last process and descriptor in it, and the host's nftables table belongs to a netlink socket of the launcher: the
 * kernel removes it when that is closed, however the launcher ends. Only the host's ip_forward, where it had to be
 * switched on, stays on after a kill.
 *
 * Names and addresses on the host are drawn at random and looked up first, so that several instances, also of several
 * containers that share a network, do not meet.
 */
#pragma once

#include "base/fault.h"
#include "sandbox/netlink.h"

#include <stdint.h>

struct nft_ctx;

struct nat_config {
    uint32_t api_address; /* where functions are let to the daemon's API, in the host's byte order; 0: they are not */
    uint16_t api_port;
};

struct nat {
    int host_namespace; /* -1 when there is none of this */
    int router_namespace;
    struct netlink router;
    struct nft_ctx *table; /* holds the host's table */
    bool switched_forward; /* ip_forward was off before */
    char name[16];         /* of the interface and the table on the host */
    uint32_t host_address; /* what host.kiln.internal stands for */
    char hosts[64];        /* a line for /etc/hosts of functions; empty when there is none of this */
    char *resolv_conf;     /* a text for their /etc/resolv.conf */
    bool no_resolver;      /* no name server of the host can be used */
};

#define NAT_INIT ((struct nat){.host_namespace = -1, .router_namespace = -1})

/*
 * Makes the router and connects it to the namespace that the caller is in, to which it returns. Reads the host's
 * /etc/resolv.conf. A sentence that names the missing part where kernel or privileges do not suffice;
 * then nothing is left of it.
 */
int nat_init(struct nat *nat, const struct nat_config *config, struct fault *fault) MUST_USE;
/* Removes the table and switches ip_forward back off if nobody else needs it. Leaves the caller in the host's. */
void nat_deinit(struct nat *nat);

/*
 * Connects the namespace that the caller is in, of which `slot` is a routing socket, and gives it its default route.
 * `index` is that of the slot. -ENOSPC past NAT_SLOTS_MAX.
 */
int nat_connect(const struct nat *nat, const struct netlink *slot, unsigned index) MUST_USE;

enum { NAT_SLOTS_MAX = 32768 };
