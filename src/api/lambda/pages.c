/*
 * Pages of lists. A Marker is the base64 form of the last key shown: it stays good whatever is created or deleted
 * between two pages, because the next page starts behind that key whether or not it is still there.
 */
#include "api/lambda/call.h"
#include "base/encode.h"

#include <stdlib.h>

enum { PAGE_ITEMS = 50, PAGE_ITEMS_MAX = 10000 };

/* `page` comes with the most that it may hold. */
static int read_maximum(struct call *call, size_t maximum, struct page *page)
{
    struct span text;
    uint64_t value;

    if (!operation_query(call->operation, SPAN("MaxItems"), &text) || text.length == 0)
        return 0;
    if (span_to_u64(text, INT32_MAX, &value) < 0) {
        if (text.data[0] != '-' || span_to_u64(span_slice(text, 1, text.length), INT32_MAX, &value) < 0)
            return aws_error_set(&call->error, AWS_ERROR_SERIALIZATION,
                                 "STRING_VALUE can not be converted to an Integer");
        validate_range(&call->validation, -(int64_t)value, "maxItems", 1, (int64_t)maximum);
        return 0;
    }
    validate_range(&call->validation, (int64_t)value, "maxItems", 1, (int64_t)maximum);
    page->maximum = MIN((size_t)value, page->maximum);
    return 0;
}

static int read_marker(struct call *call, struct page *page)
{
    struct buffer decoded = BUFFER_INIT;
    struct span text;
    char *copy;
    int r;

    if (!operation_query(call->operation, SPAN("Marker"), &text) || text.length == 0)
        return 0;
    r = base64_decode(text, &decoded);
    if (r == -EINVAL) {
        call->bad_marker = text;
        buffer_deinit(&decoded);
        return 0;
    }
    if (r < 0)
        return r;
    copy = arena_dup(&call->operation->arena, buffer_span(&decoded));
    page->after = span_of(copy, decoded.length);
    buffer_deinit(&decoded);
    return copy ? 0 : -ENOMEM;
}

int page_read(struct call *call, struct page *ret_page)
{
    return page_read_up_to(call, PAGE_ITEMS_MAX, ret_page);
}

static int read_page(struct call *call, size_t maximum, size_t items, struct page *ret_page)
{
    struct page page = {.maximum = items};
    int r = read_maximum(call, maximum, &page);

    if (r == 0)
        r = read_marker(call, &page);
    if (r == 0)
        *ret_page = page;
    return r;
}

int page_read_up_to(struct call *call, size_t maximum, struct page *ret_page)
{
    return read_page(call, maximum, PAGE_ITEMS, ret_page);
}

int page_read_of(struct call *call, size_t items, struct page *ret_page)
{
    return read_page(call, PAGE_ITEMS_MAX, items, ret_page);
}

static int compare_keys(const void *a, const void *b)
{
    return span_compare(*(const struct span *)a, *(const struct span *)b);
}

int page_sort_keys(struct call *call, const struct table *table, struct span **ret_keys)
{
    struct span *keys = arena_alloc(&call->operation->arena, table->count * sizeof(*keys));
    size_t count = 0;

    if (!keys)
        return -ENOMEM;
    TABLE_FOREACH (item, table)
        keys[count++] = item->key;
    qsort(keys, count, sizeof(*keys), compare_keys);
    *ret_keys = keys;
    return 0;
}

static int set_next(json_t *answer, struct span last)
{
    struct buffer marker = BUFFER_INIT;
    int r = base64_encode(last, &marker);

    if (r == 0 && json_object_set_new(answer, "NextMarker", json_stringn(marker.data, marker.length)) < 0)
        r = -ENOMEM;
    buffer_deinit(&marker);
    return r;
}

void page_respond(struct call *call, const char *member, json_t *rows, struct span last, int r)
{
    json_t *answer = NULL;

    if (r == 0) {
        answer = json_pack("{s:O}", member, rows);
        r = answer && last.length ? set_next(answer, last) : 0;
    }
    json_decref(rows);
    if (r == 0) {
        call_respond(call, 200, answer);
        return;
    }
    json_decref(answer);
    call_end(call, r, "listing");
}

/* `last` is set when the page is full and there is more. */
static int fill(struct call *call, const struct page *page, const struct page_list *list, json_t *rows,
                struct span *last)
{
    struct span shown = SPAN_NONE;
    struct span *keys;
    int r = page_sort_keys(call, list->table, &keys);

    for (size_t i = 0; r == 0 && i < list->table->count; i++) {
        json_t *row = NULL;
        if (span_compare(keys[i], page->after) <= 0)
            continue;
        r = list->render(call, keys[i], table_get(list->table, keys[i]), list->context, &row);
        if (!row)
            continue;
        if (json_array_size(rows) == page->maximum) {
            json_decref(row);
            *last = shown;
            return 0;
        }
        r = json_array_append_new(rows, row) < 0 ? -ENOMEM : 0;
        shown = keys[i];
    }
    return r;
}

void page_respond_list(struct call *call, const struct page *page, const struct page_list *list)
{
    json_t *rows = json_array();
    struct span last = SPAN_NONE;
    int r = rows ? 0 : -ENOMEM;

    if (r == 0 && list->table)
        r = fill(call, page, list, rows, &last);
    page_respond(call, list->member, rows, last, r);
}
