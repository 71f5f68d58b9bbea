/*
 * Intrusive doubly linked list. The head is a `struct list`; members embed a `struct list_link`. A link is in one list
 * at most; a link that is in none points at itself (list_link_init), which makes list_remove idempotent.
 * The owner of a member must remove it before freeing it.
 */
#pragma once

#include "base/macros.h"

#include <stdbool.h>

struct list_link {
    struct list_link *next;
    struct list_link *previous;
};

struct list {
    struct list_link head;
};

static inline void list_link_init(struct list_link *link)
{
    link->next = link->previous = link;
}

static inline void list_init(struct list *list)
{
    list_link_init(&list->head);
}

static inline bool list_is_linked(const struct list_link *link)
{
    return link->next != link;
}

static inline bool list_is_empty(const struct list *list)
{
    return list->head.next == &list->head;
}

static inline void list_insert_after(struct list_link *at, struct list_link *link)
{
    link->previous = at;
    link->next = at->next;
    at->next->previous = link;
    at->next = link;
}

static inline void list_push_front(struct list *list, struct list_link *link)
{
    list_insert_after(&list->head, link);
}

static inline void list_push_back(struct list *list, struct list_link *link)
{
    list_insert_after(list->head.previous, link);
}

static inline void list_remove(struct list_link *link)
{
    link->previous->next = link->next;
    link->next->previous = link->previous;
    list_link_init(link);
}

/* The first or last link, NULL when the list is empty. */
static inline struct list_link *list_first(const struct list *list)
{
    return list_is_empty(list) ? NULL : list->head.next;
}

static inline struct list_link *list_last(const struct list *list)
{
    return list_is_empty(list) ? NULL : list->head.previous;
}

/* `link` is a struct list_link *; the body may remove (and free) the current one. */
#define LIST_FOREACH(link, list)                                                                        \
    for (struct list_link *link = (list)->head.next, *link##_next_ = link->next; link != &(list)->head; \
         link = link##_next_, link##_next_ = link->next)
