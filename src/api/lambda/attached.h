/*
 * What hangs on a function and one of its qualifiers as a record of the catalog (event-invoke configurations, URLs):
 * what their operations share.
 */
#pragma once

#include "api/lambda/call.h"

struct attached {
    struct span qualifier; /* "$LATEST" for the function itself */
    const json_t *document;
};

/* The function's record for call->qualifier (empty: the function itself); NULL when there is none. */
const json_t *attached_find(const struct call *call, enum catalog_record_kind kind);
/* In the lane: deletes it. `refuse` when there is none; its result, 0, -ENOMEM. */
int attached_delete(struct call *call, struct catalog_change *change, enum catalog_record_kind kind,
                    int (*refuse)(struct call *call)) MUST_USE;

struct attached_list {
    enum catalog_record_kind kind;
    enum function_name_form form;
    const char *member;                                                    /* of the answer */
    int (*refuse_function)(struct call *call);                             /* there is no such function */
    json_t *(*render)(struct call *call, const struct attached *attached); /* NULL when memory runs out */
};

/*
 * The operation that lists those of a function, up to 50 on a page: {member: [render, ...], "NextMarker"?}, by
 * qualifier, the function itself first.
 */
void attached_list(struct operation *operation, const struct attached_list *list);
