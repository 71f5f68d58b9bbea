/* ListLayers (each with its newest version that matches the filters) and ListLayerVersions (newest first). */
#include "api/lambda/handlers.h"
#include "api/lambda/layers.h"

enum { LAYERS_PAGE_MAX = 50 };

/* Filters and page, and with them whatever the call's validation holds. */
static int check_list(struct call *call, struct page *page)
{
    int r = page_read_up_to(call, LAYERS_PAGE_MAX, page);

    if (r == 0)
        layer_validate_filters(call);
    return r;
}

static const struct catalog_scope *own_scope(const struct call *call)
{
    const struct operation *operation = call->operation;

    return catalog_find_scope(call->catalog, operation->account, operation->region);
}

/* The answer when all rows are there; takes them. `last` is empty when there are no more. */
static void respond(struct call *call, const char *member, json_t *rows, struct span last, int r)
{
    json_t *answer;

    if (r < 0) {
        json_decref(rows);
        call_end(call, r, "listing layers");
        return;
    }
    answer = json_pack("{s:o}", member, rows);
    if (answer && last.length && page_set_next(answer, last) < 0) {
        json_decref(answer);
        answer = NULL;
    }
    call_respond(call, 200, answer);
}

/* --- ListLayers --- */

/* The newest version that matches, at `from` or below; 0 when there is none. */
static uint64_t find_matching(struct call *call, const struct catalog_scope *scope, struct span name, uint64_t from)
{
    for (uint64_t version = from; version > 0; version--) {
        const json_t *document = layer_find_in(scope, name, version);
        if (document && layer_matches_filters(call, document))
            return version;
    }
    return 0;
}

static json_t *render_layer(struct call *call, const struct catalog_scope *scope, struct span name, uint64_t version)
{
    struct layer_name layer = {call->operation->account, call->operation->region, name, version};
    json_t *row = layer_render(call, &layer, layer_find_in(scope, name, version));

    layer.version = 0;
    return row ? json_pack("{s:s%, s:s, s:o}", "LayerName", name.data, name.length, "LayerArn", layer_arn(call, &layer),
                           "LatestMatchingVersion", row)
               : NULL;
}

static int list_layers(struct call *call, const struct page *page, json_t *rows, struct span *ret_last)
{
    const struct catalog_scope *scope = own_scope(call);
    struct span *names;
    struct span last = SPAN_NONE;
    int r = scope ? page_sort_keys(call, &scope->records[CATALOG_LAYER], &names) : 0;

    for (size_t i = 0; r == 0 && scope && i < scope->records[CATALOG_LAYER].count; i++) {
        uint64_t version;
        if (page->after.length && span_compare(names[i], page->after) <= 0)
            continue;
        version = find_matching(call, scope, names[i], layer_next_version(scope, names[i]) - 1);
        if (!version)
            continue;
        if (json_array_size(rows) == page->maximum) {
            *ret_last = last;
            return 0;
        }
        if (json_array_append_new(rows, render_layer(call, scope, names[i], version)) < 0)
            r = -ENOMEM;
        last = names[i];
    }
    return r;
}

void lambda_list_layers(struct operation *operation)
{
    struct call *call = call_new(operation);
    struct span last = SPAN_NONE;
    struct page page;
    json_t *rows;
    int r;

    if (!call)
        return;
    r = check_list(call, &page);
    if (r == 0)
        r = call_finish_validation(call);
    if (r) {
        call_end(call, r, "checking the page");
        return;
    }
    rows = json_array();
    r = rows ? list_layers(call, &page, rows, &last) : -ENOMEM;
    respond(call, "Layers", rows, last, r);
}

/* --- ListLayerVersions --- */

static int list_versions(struct call *call, struct layer_name *layer, const struct page *page, json_t *rows,
                         struct span *ret_last)
{
    const struct catalog_scope *scope = catalog_find_scope(call->catalog, layer->account, layer->region);
    uint64_t from = layer_next_version(scope, layer->name) - 1;
    uint64_t after;

    if (page->after.length && span_to_u64(page->after, UINT64_MAX, &after) == 0)
        from = after ? MIN(from, after - 1) : 0;
    for (;;) {
        uint64_t version = find_matching(call, scope, layer->name, from);
        const char *last;
        if (!version)
            return 0;
        if (json_array_size(rows) == page->maximum) {
            last = arena_printf(&call->operation->arena, "%llu", (unsigned long long)layer->version);
            *ret_last = span_from(last);
            return last ? 0 : -ENOMEM;
        }
        layer->version = version;
        if (json_array_append_new(rows, layer_render(call, layer, layer_find_in(scope, layer->name, version))) < 0)
            return -ENOMEM;
        from = version - 1;
    }
}

void lambda_list_layer_versions(struct operation *operation)
{
    struct call *call = call_new(operation);
    struct span last = SPAN_NONE;
    struct layer_name layer;
    struct page page;
    json_t *rows;
    int r;

    if (!call)
        return;
    r = check_list(call, &page);
    if (r == 0)
        r = layer_take_name(call, false, &layer);
    if (r == 0)
        r = layer_check_owner(call, &layer);
    if (r) {
        call_end(call, r, "finding the layer");
        return;
    }
    rows = json_array();
    r = rows ? list_versions(call, &layer, &page, rows, &last) : -ENOMEM;
    respond(call, "LayerVersions", rows, last, r);
}
