/*
 * Many deadlines behind one timer. A queue holds waits of one length, so that it is ordered by itself: adding is a push
 * at the back, removing an unlink, and neither touches a timer. Function timeouts are whole seconds and the other waits
 * are fixed, so there are few queues.
 *
 * Pure: `now_ns` comes from the caller, who also owns the timer: it fires at deadline_set_next, calls
 * deadline_set_expire and is set again. A deadline added while the timer is armed for something earlier costs nothing.
 */
#pragma once

#include "base/list.h"

#include <stdint.h>

struct deadline_queue;

/* Embedded in whatever waits. */
struct deadline {
    struct list_link link;
    int64_t at_ns;
};

/* Zero-initialised is not valid: see deadline_set_init. */
struct deadline_set {
    struct list queues;
};

typedef void deadline_handler(struct deadline *deadline);

#define DEADLINE_NEVER INT64_MAX

void deadline_set_init(struct deadline_set *set);
/* Frees the queues; deadlines still in them are forgotten. */
void deadline_set_deinit(struct deadline_set *set);
/* The queue for waits of this length that end in `on_expire`; made at the first call, kept until deinit. NULL when out
 * of memory. */
struct deadline_queue *deadline_set_queue(struct deadline_set *set, int64_t wait_ns, deadline_handler *on_expire);
/* When the first deadline of all is due, DEADLINE_NEVER when there is none. */
int64_t deadline_set_next(const struct deadline_set *set);
/* Takes out every deadline that is due and calls its handler, oldest first within a queue. Handlers may add and remove
 * any deadline. */
void deadline_set_expire(struct deadline_set *set, int64_t now_ns);

void deadline_init(struct deadline *deadline);
/* Starts (or starts again) a wait of the queue's length. `now_ns` may not go backwards from call to call. */
void deadline_start(struct deadline_queue *queue, struct deadline *deadline, int64_t now_ns);
/* Harmless when it is not running. */
void deadline_stop(struct deadline *deadline);

static inline bool deadline_is_running(const struct deadline *deadline)
{
    return list_is_linked(&deadline->link);
}
