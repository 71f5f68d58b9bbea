#include "base/indexed_list.h"

#include <errno.h>
#include <stdlib.h>

enum { FIRST_CAPACITY = 64 };

void indexed_list_deinit(struct indexed_list *list)
{
    free(list->links);
    free(list->members);
    *list = (struct indexed_list){0};
}

/* Twice as many places; the head is the first of them. */
static int grow(struct indexed_list *list)
{
    uint32_t capacity = list->capacity ? 2 * list->capacity : FIRST_CAPACITY;
    struct indexed_link *links;
    void **members;

    if (list->capacity > UINT32_MAX / 2)
        return -ENOMEM;
    links = realloc(list->links, capacity * sizeof(*links));
    if (!links)
        return -ENOMEM;
    if (!list->links)
        links[0] = (struct indexed_link){0};
    list->links = links;
    members = realloc(list->members, capacity * sizeof(*members));
    if (!members)
        return -ENOMEM; /* the links are longer than needed then, which does no harm */
    list->members = members;
    for (uint32_t place = capacity - 1; place >= MAX(list->capacity, (uint32_t)1); place--) {
        links[place] = (struct indexed_link){.next = list->free, .previous = place};
        members[place] = NULL;
        list->free = place;
    }
    list->capacity = capacity;
    return 0;
}

int indexed_list_reserve(struct indexed_list *list, void *member, uint32_t *ret_place)
{
    uint32_t place;

    if (!list->free) {
        int r = grow(list);
        if (r < 0)
            return r;
    }
    place = list->free;
    list->free = list->links[place].next;
    list->links[place] = (struct indexed_link){.next = place, .previous = place};
    list->members[place] = member;
    *ret_place = place;
    return 0;
}

void indexed_list_release(struct indexed_list *list, uint32_t place)
{
    if (indexed_list_has(list, place))
        indexed_list_remove(list, place);
    list->members[place] = NULL;
    list->links[place].next = list->free;
    list->free = place;
}
