#include "api/lambda/attached.h"

#include <stdlib.h>

const json_t *attached_find(const struct call *call, enum catalog_record_kind kind)
{
    const struct catalog_function *function = call_find_function(call);

    return function ? catalog_find_attached(function, kind, call->qualifier) : NULL;
}

static int compare(const void *a, const void *b)
{
    return span_compare(((const struct attached *)a)->qualifier, ((const struct attached *)b)->qualifier);
}

/* The function's records behind `after`, in the arena; "$LATEST" sorts before all versions and aliases. */
static int collect(struct call *call, const struct catalog_function *function, enum catalog_record_kind kind,
                   struct span after, struct attached **ret_rows, size_t *ret_count)
{
    const struct table *records = &function->scope->records[kind];
    struct attached *rows = arena_alloc(&call->operation->arena, records->count * sizeof(*rows));
    size_t count = 0;

    if (!rows)
        return -ENOMEM;
    TABLE_FOREACH (item, records) {
        const struct catalog_record *record = item->value;
        struct span qualifier;
        if (catalog_record_is_attached(record, function, &qualifier) && span_compare(qualifier, after) > 0)
            rows[count++] = (struct attached){qualifier, record->document};
    }
    qsort(rows, count, sizeof(*rows), compare);
    *ret_rows = rows;
    *ret_count = count;
    return 0;
}

void attached_respond_list(struct call *call, const struct catalog_function *function, enum catalog_record_kind kind,
                           const struct page *page, const char *member,
                           json_t *(*render)(struct call *call, const struct attached *attached))
{
    json_t *answer = json_pack("{s:[]}", member);
    json_t *array = json_object_get(answer, member);
    struct attached *rows;
    size_t count;
    int r = answer ? collect(call, function, kind, page->after, &rows, &count) : -ENOMEM;

    for (size_t i = 0; r == 0 && i < MIN(count, page->maximum); i++)
        r = json_array_append_new(array, render(call, &rows[i])) < 0 ? -ENOMEM : 0;
    if (r == 0 && count > page->maximum)
        r = page_set_next(answer, rows[page->maximum - 1].qualifier);
    if (r == 0) {
        call_respond(call, 200, answer);
        return;
    }
    json_decref(answer);
    call_end(call, r, "listing");
}
