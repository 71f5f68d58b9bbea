/*
 * Who is at the other end of a loopback TCP connection. With the host's network every sandbox could connect to every
 * Runtime API port, so the daemon asks the kernel for the uid that owns the connecting socket and, where all sandboxes
 * have the same, looks whether a process of the sandbox has that socket.
 */
#pragma once

#include "base/macros.h"

#include <stdbool.h>
#include <sys/types.h>

struct peer {
    uid_t uid;           /* of the process that made the socket */
    unsigned long inode; /* of the socket */
};

/*
 * What owns the far end of the connected (accepted) IPv4 TCP socket `fd`, looked up by its exact 4-tuple in the
 * caller's network namespace. A short system call pair where the kernel has tcp_diag, else a scan of /proc/net/tcp;
 * does not wait. -ENOENT when the far end is not a socket of this namespace or is closed already, -EAFNOSUPPORT for
 * another family.
 */
int peer_of_tcp(int fd, struct peer *ret_peer) MUST_USE;

/*
 * Whether `init` (pid 1 of a sandbox, by the caller's pid namespace) or a process below it has that socket open. Takes
 * some reads of /proc for each process; past some 20,000 it gives up and says no. The caller owns the sandbox's user
 * namespace.
 */
bool peer_is_below(const struct peer *peer, pid_t init);
/* Whether this kernel lists children, which that needs. */
bool peer_can_look_below(void);
