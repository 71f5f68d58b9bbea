/*
 * Who is at the other end of a loopback TCP connection. With the host's network every sandbox could connect to every
 * Runtime API port, so the daemon asks the kernel for the uid that owns the connecting socket.
 */
#pragma once

#include "base/macros.h"

#include <sys/types.h>

/*
 * The uid owning the far end of the connected (accepted) IPv4 TCP socket `fd`, looked up by its exact 4-tuple in the
 * caller's network namespace. A short system call pair where the kernel has tcp_diag, else a scan of /proc/net/tcp;
 * does not wait. -ENOENT when the far end is not a socket of this namespace or is closed already, -EAFNOSUPPORT for
 * another family.
 */
int peer_uid_of_tcp(int fd, uid_t *ret_uid) MUST_USE;
