#include "sim/event_queue.h"

#include "base/span.h"

#include <assert.h>

enum { CHILDREN = 4, PHASE_SHIFT = 62, KIND_BITS = 8 };

static inline bool is_before(const struct event *a, const struct event *b)
{
    return a->when_ns < b->when_ns || (a->when_ns == b->when_ns && a->order < b->order);
}

void event_queue_deinit(struct event_queue *queue)
{
    free(queue->events);
    *queue = (struct event_queue){0};
}

static int grow(struct event_queue *queue)
{
    size_t capacity = queue->capacity ? queue->capacity * 2 : 256;
    struct event *events = realloc(queue->events, capacity * sizeof(*events));

    if (!events)
        return -ENOMEM;
    queue->events = events;
    queue->capacity = capacity;
    return 0;
}

int event_queue_add(struct event_queue *queue, int64_t when_ns, enum event_phase phase, unsigned kind, void *subject)
{
    struct event event = {when_ns, (uint64_t)phase << PHASE_SHIFT | queue->sequence << KIND_BITS | kind, subject};
    size_t at = queue->count;

    if (at == queue->capacity) {
        int r = grow(queue);
        if (r < 0)
            return r;
    }
    queue->sequence++;
    queue->count++;
    while (at) {
        size_t parent = (at - 1) / CHILDREN;
        if (!is_before(&event, &queue->events[parent]))
            break;
        queue->events[at] = queue->events[parent];
        at = parent;
    }
    queue->events[at] = event;
    return 0;
}

/* The earliest of the children of `at`; queue->count when it has none. */
static inline size_t least_child(const struct event_queue *queue, size_t at)
{
    size_t first = at * CHILDREN + 1, end = MIN(first + CHILDREN, queue->count), least = first;

    if (first >= queue->count)
        return queue->count;
    for (size_t child = first + 1; child < end; child++) {
        if (is_before(&queue->events[child], &queue->events[least]))
            least = child;
    }
    return least;
}

struct event event_queue_take(struct event_queue *queue)
{
    struct event first, last;
    size_t at = 0, child;

    assert(queue->count);
    first = queue->events[0];
    last = queue->events[--queue->count];
    while ((child = least_child(queue, at)) < queue->count && is_before(&queue->events[child], &last)) {
        queue->events[at] = queue->events[child];
        at = child;
    }
    if (queue->count)
        queue->events[at] = last;
    return first;
}
