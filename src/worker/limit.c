/*
 * Rejected: a uv_timer for each environment (two heap operations an invoke on the warm path), and a timer wheel (its
 * ticks wake an idle daemon). Expiry walks all queues, one for each distinct wait, which happens a few times a second
 * at most.
 */
#include "worker/limit.h"
#include "base/macros.h"

struct limit_queue {
    struct list_link link;
    struct list waiting;
    int64_t wait_ns;
    limit_handler *on_expire;
};

static struct limit_queue *queue_of(struct list_link *link)
{
    return CONTAINER_OF(link, struct limit_queue, link);
}

static struct limit *first_of(const struct limit_queue *queue)
{
    struct list_link *link = list_first(&queue->waiting);

    return link ? CONTAINER_OF(link, struct limit, link) : NULL;
}

void limit_set_init(struct limit_set *set)
{
    list_init(&set->queues);
}

void limit_set_deinit(struct limit_set *set)
{
    LIST_FOREACH (link, &set->queues) {
        struct limit_queue *queue = queue_of(link);

        LIST_FOREACH (waiting, &queue->waiting)
            list_remove(waiting);
        list_remove(link);
        free(queue);
    }
}

struct limit_queue *limit_set_queue(struct limit_set *set, int64_t wait_ns, limit_handler *on_expire)
{
    struct limit_queue *queue;

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

int64_t limit_set_next(const struct limit_set *set)
{
    int64_t next = LIMIT_NEVER;

    LIST_FOREACH (link, &set->queues) {
        struct limit *first = first_of(queue_of(link));

        if (first)
            next = MIN(next, first->at_ns);
    }
    return next;
}

void limit_set_expire(struct limit_set *set, int64_t now_ns)
{
    LIST_FOREACH (link, &set->queues) {
        struct limit_queue *queue = queue_of(link);
        struct limit *first;

        while ((first = first_of(queue)) && first->at_ns <= now_ns) {
            list_remove(&first->link);
            queue->on_expire(first);
        }
    }
}

void limit_init(struct limit *limit)
{
    list_link_init(&limit->link);
    limit->at_ns = LIMIT_NEVER;
}

void limit_start(struct limit_queue *queue, struct limit *limit, int64_t now_ns)
{
    list_remove(&limit->link);
    limit->at_ns = now_ns + queue->wait_ns;
    list_push_back(&queue->waiting, &limit->link);
}

void limit_stop(struct limit *limit)
{
    list_remove(&limit->link);
}
