/*
 * Many time limits behind one timer. A queue holds waits of one length, so that it is ordered by itself: adding is a
 * push at the back, removing an unlink, and neither touches a timer. Function timeouts are whole seconds and the other
 * waits are fixed, so there are few queues.
 *
 * Pure: `now_ns` comes from the caller, who also owns the timer: it fires at limit_set_next, calls
 * limit_set_expire and is set again. A limit added while the timer is armed for something earlier costs nothing.
 */
#pragma once

#include "base/list.h"

#include <stdint.h>

struct limit_queue;

/* Embedded in whatever waits. */
struct limit {
    struct list_link link;
    int64_t at_ns;
};

/* Zero-initialised is not valid: see limit_set_init. */
struct limit_set {
    struct list queues;
};

typedef void limit_handler(struct limit *limit);

#define LIMIT_NEVER INT64_MAX

void limit_set_init(struct limit_set *set);
/* Frees the queues; limits still in them are forgotten. */
void limit_set_deinit(struct limit_set *set);
/* The queue for waits of this length that end in `on_expire`; made at the first call, kept until deinit. NULL when out
 * of memory. */
struct limit_queue *limit_set_queue(struct limit_set *set, int64_t wait_ns, limit_handler *on_expire);
/* When the first limit of all is due, LIMIT_NEVER when there is none. */
int64_t limit_set_next(const struct limit_set *set);
/* Takes out every limit that is due and calls its handler, oldest first within a queue. Handlers may add and remove
 * any limit. */
void limit_set_expire(struct limit_set *set, int64_t now_ns);

void limit_init(struct limit *limit);
/* Starts (or starts again) a wait of the queue's length. `now_ns` may not go backwards from call to call. */
void limit_start(struct limit_queue *queue, struct limit *limit, int64_t now_ns);
/* Harmless when it is not running. */
void limit_stop(struct limit *limit);

static inline bool limit_is_running(const struct limit *limit)
{
    return list_is_linked(&limit->link);
}
