#include "sim/event_queue.h"

#include "base/span.h"

#include <assert.h>

enum { CHILDREN = 4, PHASE_SHIFT = 62, KIND_BITS = 8 };

/* Time and order as one number, which two machine instructions compare: what comes next is as good as random, and a
 * branch on it would be mispredicted half of the time. */
static inline unsigned __int128 key_of(const struct event *event)
{
    return (unsigned __int128)(uint64_t)event->when_ns << 64 | event->order;
}

static inline bool is_before(const struct event *a, const struct event *b)
{
    return key_of(a) < key_of(b);
}

/* ---- one heap ---- */

static int grow(struct event_heap *heap)
{
    size_t capacity = heap->capacity ? heap->capacity * 2 : 256;
    struct event *events = realloc(heap->events, capacity * sizeof(*events));

    if (!events)
        return -ENOMEM;
    heap->events = events;
    heap->capacity = capacity;
    return 0;
}

static int heap_add(struct event_heap *heap, const struct event *event)
{
    size_t at = heap->count;

    if (at == heap->capacity) {
        int r = grow(heap);
        if (r < 0)
            return r;
    }
    heap->count++;
    while (at) {
        size_t parent = (at - 1) / CHILDREN;
        if (!is_before(event, &heap->events[parent]))
            break;
        heap->events[at] = heap->events[parent];
        at = parent;
    }
    heap->events[at] = *event;
    return 0;
}

/* The one of two neighbours that is earlier. */
static inline size_t earlier(const struct event *events, size_t a)
{
    return a + is_before(&events[a + 1], &events[a]);
}

/* The earliest of the children of `at`; heap->count when it has none. */
static inline size_t least_child(const struct event_heap *heap, size_t at)
{
    size_t first = at * CHILDREN + 1, end = MIN(first + CHILDREN, heap->count), least = first;
    const struct event *events = heap->events;

    if (first + CHILDREN <= heap->count) {
        size_t left = earlier(events, first), right = earlier(events, first + 2);
        return is_before(&events[right], &events[left]) ? right : left;
    }
    if (first >= heap->count)
        return heap->count;
    for (size_t child = first + 1; child < end; child++) {
        if (is_before(&events[child], &events[least]))
            least = child;
    }
    return least;
}

static struct event heap_take(struct event_heap *heap)
{
    struct event first = heap->events[0], last = heap->events[--heap->count];
    size_t at = 0, child;

    while ((child = least_child(heap, at)) < heap->count && is_before(&heap->events[child], &last)) {
        heap->events[at] = heap->events[child];
        at = child;
    }
    if (heap->count)
        heap->events[at] = last;
    return first;
}

/* ---- both ---- */

void event_queue_deinit(struct event_queue *queue)
{
    free(queue->arrivals.events);
    free(queue->others.events);
    *queue = (struct event_queue){0};
}

int event_queue_add(struct event_queue *queue, int64_t when_ns, enum event_phase phase, unsigned kind, void *subject)
{
    struct event event = {when_ns, (uint64_t)phase << PHASE_SHIFT | queue->sequence << KIND_BITS | kind, subject};
    int r = heap_add(phase == PHASE_ARRIVAL ? &queue->arrivals : &queue->others, &event);

    assert(when_ns >= 0);
    if (r == 0)
        queue->sequence++;
    return r;
}

struct event event_queue_take(struct event_queue *queue)
{
    assert(!event_queue_is_empty(queue));
    if (!queue->others.count)
        return heap_take(&queue->arrivals);
    if (queue->arrivals.count && is_before(&queue->arrivals.events[0], &queue->others.events[0]))
        return heap_take(&queue->arrivals);
    return heap_take(&queue->others);
}
