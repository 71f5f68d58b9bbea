/*
 * Says when a sandbox uses more memory than its function has, which is not what the kernel's limit says: /tmp is a
 * tmpfs here and its pages are charged to the cgroup, but on Lambda /tmp is a disk. The hard limit is therefore memory
 * + /tmp and merely a backstop; what counts is
 *
 *     usage - page cache of files - min(shared memory, what /tmp holds)
 *
 * The kernel wakes the launcher when usage crosses a threshold (v1: an eventfd on usage, v2: memory.high, which also
 * slows the function down until it has been looked at). If only cache or /tmp grew, the threshold moves up by what is
 * left. Once cache is being reclaimed at the hard limit usage no longer moves, so reclaim itself is watched too (v1:
 * memory.pressure_level; v2: memory.events).
 */
#pragma once

#include "sandbox/cgroup.h"
#include "sandbox/registrar.h"

struct memory_watch {
    uint64_t limit; /* bytes */
    int tmp_fd;     /* directory of the sandbox's /tmp; owned */
    int usage_fd, stat_fd;
    int threshold_fd;                  /* v1: eventfd; -1 on v2. Readable when the threshold was crossed. */
    int pressure_fd;                   /* v1: eventfd; v2: memory.events, POLLPRI */
    int control_fd;                    /* v1: cgroup.event_control; v2: memory.high */
    uint64_t armed;                    /* the highest threshold set */
    int retired_fd;                    /* see MEMORY_RENEWED; else -1 */
    unsigned registered;               /* v1: thresholds on the eventfd; they cannot be taken back one by one */
    const struct registrar *registrar; /* v1 */
};

#define MEMORY_WATCH_INIT ((struct memory_watch){0, -1, -1, -1, -1, -1, -1, 0, -1, 0, NULL})

/* From memory_check. */
enum memory_verdict {
    MEMORY_FINE = 0,
    MEMORY_EXCEEDED = 1,
    /* Fine, and threshold_fd is a new file: to be polled anew. retired_fd is the old one: to be closed by the caller.
     */
    MEMORY_RENEWED = 2,
};

/* Figures of one moment, bytes. */
struct memory_figures {
    uint64_t usage;
    uint64_t file;  /* page cache, shared memory included */
    uint64_t shmem; /* tmpfs and shared anonymous memory */
    uint64_t tmp;   /* held by /tmp */
};

/* What of it counts as the function's. */
uint64_t memory_counted(const struct memory_figures *figures);
/* Where the threshold goes next while `counted` is within the limit. */
uint64_t memory_next_threshold(uint64_t usage, uint64_t counted, uint64_t limit);
/* Reads "file 123\nshmem 456\n..." (v2) or "total_cache 1\ntotal_shmem 2\n..." (v1). */
void memory_parse_stat(struct span text, bool unified, struct memory_figures *figures);

/* Takes `tmp_fd` over, also on failure. -ENOENT where memory is not controlled. `registrar`: for v1, outlives the
 * watch. */
int memory_watch_init(struct memory_watch *watch, const struct cgroup_host *host, const struct registrar *registrar,
                      const char *name, uint64_t limit, int tmp_fd) MUST_USE;
void memory_watch_deinit(struct memory_watch *watch);
/* After one of the descriptors fired: a verdict (when fine, the watch is armed anew), or -errno. */
int memory_check(struct memory_watch *watch) MUST_USE;
/* True when memory_check has to be called now and then, as a fall of usage below the threshold is not reported (v2). */
bool memory_needs_polling(const struct memory_watch *watch);
/* How often the kernel's own killer has struck in the cgroup; 0 where unknown. */
uint64_t memory_oom_kills(const struct cgroup_host *host, const char *name);
