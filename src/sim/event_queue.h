/*
 * What is still to happen in a simulation, earliest first. At one instant the phases say what comes first: the machine
 * finishes things, then figures are read, then the configuration changes, then requests arrive; within a phase, what
 * was added first. So a run depends on nothing but its inputs.
 *
 * Two heaps with four children a node in arrays that only grow: their size follows what is in flight, not how much has
 * happened. Arrivals have one of their own, which is small: every source of traffic has one event there, nearly always
 * the next of all. The subject of an event is the caller's.
 */
#pragma once

#include "base/macros.h"

#include <stdbool.h>
#include <stdint.h>

enum event_phase { PHASE_MACHINE, PHASE_FIGURES, PHASE_CHANGE, PHASE_ARRIVAL };

struct event {
    int64_t when_ns;
    uint64_t order; /* phase, then sequence, then kind in the low byte */
    void *subject;
};

struct event_heap {
    struct event *events;
    size_t count, capacity;
};

struct event_queue {
    struct event_heap arrivals, others;
    uint64_t sequence;
};

/* Zero-initialised is empty. */
void event_queue_deinit(struct event_queue *queue);
/* `kind` (0 to 255) is the caller's; when_ns is not negative. -ENOMEM: nothing changed. */
int event_queue_add(struct event_queue *queue, int64_t when_ns, enum event_phase phase, unsigned kind,
                    void *subject) MUST_USE;
/* The earliest, which must exist; taken out. */
struct event event_queue_take(struct event_queue *queue);

static inline unsigned event_kind(const struct event *event)
{
    return event->order & 0xff;
}

static inline bool event_queue_is_empty(const struct event_queue *queue)
{
    return !queue->arrivals.count && !queue->others.count;
}

/* INT64_MAX when empty. */
static inline int64_t event_queue_next(const struct event_queue *queue)
{
    int64_t arrival_ns = queue->arrivals.count ? queue->arrivals.events[0].when_ns : INT64_MAX;
    int64_t other_ns = queue->others.count ? queue->others.events[0].when_ns : INT64_MAX;

    return MIN(arrival_ns, other_ns);
}
