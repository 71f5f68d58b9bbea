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

/*
 * Answers with a page: {member: [render, ...], "NextMarker"?}, by qualifier, the function itself first. `render` may
 * return NULL when memory runs out. The call is gone after.
 */
void attached_respond_list(struct call *call, const struct catalog_function *function, enum catalog_record_kind kind,
                           const struct page *page, const char *member,
                           json_t *(*render)(struct call *call, const struct attached *attached));
