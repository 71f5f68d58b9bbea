/*
 * Rejected: a uv_timer for each environment (two heap operations an invoke on the warm path), and a timer wheel (its
 * ticks wake an idle daemon). Expiry walks all queues, one for each distinct wait, which happens a few times a second
 * at most.
 */
#include "worker/deadline.h"
#include "base/macros.h"

struct deadline_queue {
    struct list_link link;
    struct list waiting;
    int64_t wait_ns;
    deadline_handler *on_expire;
};

static struct deadline_queue *queue_of(struct list_link *link)
{
    return CONTAINER_OF(link, struct deadline_queue, link);
}

static struct deadline *first_of(const struct deadline_queue *queue)
{
    struct list_link *link = list_first(&queue->waiting);

    return link ? CONTAINER_OF(link, struct deadline, link) : NULL;
}

void deadline_set_init(struct deadline_set *set)
{
    list_init(&set->queues);
}

void deadline_set_deinit(struct deadline_set *set)
{
    LIST_FOREACH (link, &set->queues) {
        struct deadline_queue *queue = queue_of(link);

        LIST_FOREACH (waiting, &queue->waiting)
            list_remove(waiting);
        list_remove(link);
        free(queue);
    }
}

struct deadline_queue *deadline_set_queue(struct deadline_set *set, int64_t wait_ns, deadline_handler *on_expire)
{
    struct deadline_queue *queue;

    LIST_FOREACH (link, &set->queues) {
        queue = queue_of(link);
        if (queue->wait_ns == wait_ns && queue->on_expire == on_expire)
            return queue;
    }
    queue = malloc(sizeof(*queue));
    if (!queue)
        return NULL;
    list_init(&queue->waiting);
    queue->wait_ns = wait_ns;
    queue->on_expire = on_expire;
    list_push_back(&set->queues, &queue->link);
    return queue;
}

int64_t deadline_set_next(const struct deadline_set *set)
{
    int64_t next = DEADLINE_NEVER;

    LIST_FOREACH (link, &set->queues) {
        struct deadline *first = first_of(queue_of(link));

        if (first)
            next = MIN(next, first->at_ns);
    }
    return next;
}

void deadline_set_expire(struct deadline_set *set, int64_t now_ns)
{
    LIST_FOREACH (link, &set->queues) {
        struct deadline_queue *queue = queue_of(link);
        struct deadline *first;

        while ((first = first_of(queue)) && first->at_ns <= now_ns) {
            list_remove(&first->link);
            queue->on_expire(first);
        }
    }
}

void deadline_init(struct deadline *deadline)
{
    list_link_init(&deadline->link);
    deadline->at_ns = DEADLINE_NEVER;
}

void deadline_start(struct deadline_queue *queue, struct deadline *deadline, int64_t now_ns)
{
    list_remove(&deadline->link);
    deadline->at_ns = now_ns + queue->wait_ns;
    list_push_back(&queue->waiting, &deadline->link);
}

void deadline_stop(struct deadline *deadline)
{
    list_remove(&deadline->link);
}
