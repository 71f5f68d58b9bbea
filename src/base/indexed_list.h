/*
 * A doubly linked list whose links lie together in one array, eight bytes a member, so that taking a member out does
 * not touch its neighbours' own memory: with very many members those are seldom in a cache. A member has a place in the
 * array for as long as it may be in the list; getting one is the only thing that can fail.
 */
#pragma once

#include "base/macros.h"

#include <stdbool.h>
#include <stdint.h>

struct indexed_link {
    uint32_t next, previous; /* itself: not in the list */
};

/* Zero-initialised it is empty. */
struct indexed_list {
    struct indexed_link *links; /* the first is the head */
    void **members;             /* by place; of a free one: NULL */
    uint32_t capacity;
    uint32_t free; /* the first free place, the others by `next`; 0: none */
};

void indexed_list_deinit(struct indexed_list *list);
/* A place for the member, which is not in the list yet. -ENOMEM. */
int indexed_list_reserve(struct indexed_list *list, void *member, uint32_t *ret_place) MUST_USE;
/* Takes the member out if it is in, and its place away. */
void indexed_list_release(struct indexed_list *list, uint32_t place);

/* Of the first member, 0 when the list is empty. */
static inline uint32_t indexed_list_first(const struct indexed_list *list)
{
    return list->links ? list->links[0].next : 0;
}

/* Of the one behind, 0 behind the last. */
static inline uint32_t indexed_list_next(const struct indexed_list *list, uint32_t place)
{
    return list->links[place].next;
}

static inline bool indexed_list_has(const struct indexed_list *list, uint32_t place)
{
    return list->links[place].next != place;
}

/* It must not be in the list. */
static inline void indexed_list_push_back(struct indexed_list *list, uint32_t place)
{
    struct indexed_link *links = list->links;
    uint32_t last = links[0].previous;

    links[place] = (struct indexed_link){.next = 0, .previous = last};
    links[last].next = place;
    links[0].previous = place;
}

static inline void indexed_list_remove(struct indexed_list *list, uint32_t place)
{
    struct indexed_link *links = list->links, link = links[place];

    links[link.previous].next = link.next;
    links[link.next].previous = link.previous;
    links[place] = (struct indexed_link){.next = place, .previous = place};
}
