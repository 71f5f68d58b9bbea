/*
 * Which name servers functions are given with SANDBOX_NETWORK_NAT. A resolver on the host's loopback (systemd-resolved,
 * dnsmasq, unbound) cannot be reached from another network namespace; functions ask the host's end of their network
 * instead, from where their questions are passed on to it. Pure.
 */
#pragma once

#include "base/buffer.h"
#include "base/span.h"

#include <stdint.h>

struct resolver {
    struct buffer text; /* of resolv.conf */
    uint32_t loopback; /* where the host's end passes questions on to, 127.x.x.x in the host's byte order; 0: nowhere */
    bool empty;        /* there is no name server that could be reached */
};

/*
 * `text` is the host's resolv.conf, `upstream` what systemd-resolved writes for those who cannot reach its stub (empty
 * where there is none), `host` the address of the host's end. Name servers keep their order; those with IPv6 addresses
 * are left out, because functions have IPv4 only. -ENOMEM.
 */
int resolver_choose(struct span text, struct span upstream, uint32_t host, struct resolver *ret_resolver) MUST_USE;
void resolver_deinit(struct resolver *resolver);
