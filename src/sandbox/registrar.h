/*
 * Registers v1 memory thresholds beside the launcher's loop: the kernel waits for a grace period in each, some 10 ms,
 * and a sandbox on its way must not. Several threads, because grace periods are shared by those who wait for them.
 *
 * The threads make system calls only: init is cloned from a launcher that has them, so that none may ever hold a lock
 * of the C library.
 */
#pragma once

#include "base/macros.h"

#include <stdbool.h>
#include <stdint.h>

/* What the eventfd's counter says of a registration. */
#define REGISTRAR_DONE   1ull
#define REGISTRAR_FAILED (1ull << 32)

struct registrar {
    int requests; /* write end; -1 while there are no threads */
};

#define REGISTRAR_INIT ((struct registrar){-1})

/* Starts the threads. -errno. They end with the process, or when the registrar is closed. */
int registrar_start(struct registrar *registrar) MUST_USE;
void registrar_close(struct registrar *registrar);
/*
 * Has `event_fd` told when the usage behind `usage_fd` crosses `bytes`, through the cgroup's `control_fd`
 * (cgroup.event_control). The three may be closed at once. When it is done, or has failed, one of the values above is
 * added to the eventfd, which is to be followed by a look at the usage: it may have crossed meanwhile. -errno when it
 * could not be asked for.
 */
int registrar_submit(const struct registrar *registrar, int control_fd, int event_fd, int usage_fd,
                     uint64_t bytes) MUST_USE;
