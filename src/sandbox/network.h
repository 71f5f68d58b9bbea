/*
 * Network slots: where a sandbox's Runtime API listens. With SANDBOX_NETWORK_NONE a slot is a network namespace with
 * its loopback up and 169.254.100.1 added, with SANDBOX_NETWORK_NAT the same connected to the world (nat.h); with
 * SANDBOX_NETWORK_HOST it is nothing but a number. Namespaces outlive
 * their users and are used again; the listening socket is a new one for each user, so that no connection waiting in
 * the queue of an old one can reach the next.
 *
 * The launcher moves its own thread between namespaces and never needs to go back to the host's.
 */
#pragma once

#include "base/fault.h"
#include "sandbox/launcher.h"
#include "sandbox/nat.h"

struct network_slot {
    int namespace; /* descriptor, -1 with the host's network */
};

struct network_listener {
    int fd;           /* non-blocking, listening; -1 when closed */
    char address[32]; /* "169.254.100.1:9001" */
};

/* What the slots of a launcher have in common. */
struct network {
    enum sandbox_network kind;
    struct nat nat; /* of SANDBOX_NETWORK_NAT */
};

/*
 * Slot number `index` of its launcher. `proc` is a descriptor of the host's /proc. Leaves the caller inside the new
 * namespace.
 */
int network_slot_init(struct network_slot *slot, const struct network *network, unsigned index, int proc,
                      struct fault *fault) MUST_USE;
void network_slot_deinit(struct network_slot *slot);
/* Moves the calling process into the slot's namespace (nothing to do with the host's network). */
int network_slot_enter(const struct network_slot *slot) MUST_USE;
/* A new listening socket in the slot. The caller is inside it. */
int network_listen(const struct network_slot *slot, struct network_listener *ret_listener,
                   struct fault *fault) MUST_USE;
/* An unconnected, non-blocking TCP socket in the slot. The caller is inside it. 0 or -errno. */
int network_socket(int *ret_fd) MUST_USE;
/* Stops listening in every process that holds the socket, resets what waits to be accepted, closes it. */
void network_listener_deinit(struct network_listener *listener);
