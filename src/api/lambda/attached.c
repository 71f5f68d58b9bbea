#include "api/lambda/attached.h"

#include <stdlib.h>

enum { LIST_ITEMS_MAX = 50 };

const json_t *attached_find(const struct call *call, enum catalog_record_kind kind)
{
    const struct catalog_function *function = call_find_function(call);

    return function ? catalog_find_attached(function, kind, call->qualifier) : NULL;
}

int attached_delete(struct call *call, struct catalog_change *change, enum catalog_record_kind kind,
                    int (*refuse)(struct call *call))
{
    const struct catalog_function *function = table_get(&catalog_change_scope(change)->functions, call->function_name);

    if (!function || !catalog_find_attached(function, kind, call->qualifier))
        return refuse(call);
    return catalog_change_delete_attached(change, function, kind, call->qualifier);
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

static void respond(struct call *call, const struct catalog_function *function, const struct attached_list *list,
                    const struct page *page)
{
    json_t *array = json_array();
    struct span last = SPAN_NONE;
    struct attached *rows;
    size_t count;
    int r = array ? collect(call, function, list->kind, page->after, &rows, &count) : -ENOMEM;

    for (size_t i = 0; r == 0 && i < MIN(count, page->maximum); i++)
        r = json_array_append_new(array, list->render(call, &rows[i])) < 0 ? -ENOMEM : 0;
    if (r == 0 && count > page->maximum)
        last = rows[page->maximum - 1].qualifier;
    page_respond(call, list->member, array, last, r);
}

void attached_list(struct operation *operation, const struct attached_list *list)
{
    struct call *call = call_new(operation);
    const struct catalog_function *function;
    struct page page;
    int r;

    if (!call)
        return;
    r = page_read_up_to(call, LIST_ITEMS_MAX, &page);
    if (r == 0)
        r = call_check_names(call, list->form, CALL_UNQUALIFIED);
    function = r == 0 ? call_find_function(call) : NULL;
    if (r == 0 && !function)
        r = list->refuse_function(call);
    if (r)
        call_end(call, r, "finding the function");
    else
        respond(call, function, list, &page);
}
