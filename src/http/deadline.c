#include "http/deadline.h"

void deadlines_init(struct deadlines *deadlines)
{
    *deadlines = (struct deadlines){0};
    for (size_t i = 0; i < DEADLINE_KINDS; i++)
        list_init(&deadlines->lists[i]);
}

void deadline_init(struct deadline *deadline)
{
    *deadline = (struct deadline){.kind = DEADLINE_NONE};
    list_link_init(&deadline->link);
}

void deadline_set(struct deadlines *deadlines, struct deadline *deadline, enum deadline_kind kind, uint64_t now_ms)
{
    list_remove(&deadline->link);
    deadline->kind = kind;
    if (!deadlines->durations_ms[kind])
        return;
    deadline->due_ms = now_ms + deadlines->durations_ms[kind];
    list_push_back(&deadlines->lists[kind], &deadline->link);
}

void deadline_clear(struct deadline *deadline)
{
    list_remove(&deadline->link);
    deadline->kind = DEADLINE_NONE;
}

static struct deadline *earliest(const struct deadlines *deadlines)
{
    struct deadline *found = NULL;

    for (size_t i = 0; i < DEADLINE_KINDS; i++) {
        struct list_link *link = list_first(&deadlines->lists[i]);
        struct deadline *deadline = link ? CONTAINER_OF(link, struct deadline, link) : NULL;
        if (deadline && (!found || deadline->due_ms < found->due_ms))
            found = deadline;
    }
    return found;
}

struct deadline *deadlines_pop_due(struct deadlines *deadlines, uint64_t now_ms)
{
    struct deadline *deadline = earliest(deadlines);

    if (!deadline || deadline->due_ms > now_ms)
        return NULL;
    list_remove(&deadline->link);
    return deadline;
}

uint64_t deadlines_next_ms(const struct deadlines *deadlines)
{
    const struct deadline *deadline = earliest(deadlines);

    return deadline ? deadline->due_ms : UINT64_MAX;
}
