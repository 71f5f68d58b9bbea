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

static int render_layer(struct call *call, struct span name, const void *value, const void *context, json_t **ret_row)
{
    const struct catalog_scope *scope = context;
    uint64_t version = find_matching(call, scope, name, layer_next_version(scope, name) - 1);
    struct layer_name layer = {call->operation->account, call->operation->region, name, version};
    json_t *row;

    (void)value;
    if (!version)
        return 0;
    row = layer_render(call, &layer, layer_find_in(scope, name, version));
    layer.version = 0;
    *ret_row = row ? json_pack("{s:s%, s:s, s:o}", "LayerName", name.data, name.length, "LayerArn",
                               layer_arn(call, &layer), "LatestMatchingVersion", row)
                   : NULL;
    return *ret_row ? 0 : -ENOMEM;
}

void lambda_list_layers(struct operation *operation)
{
    struct call *call = call_new(operation);
    const struct catalog_scope *scope;
    struct page page;
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
    scope = own_scope(call);
    page_respond_list(
        call, &page, &(struct page_list){"Layers", scope ? &scope->records[CATALOG_LAYER] : NULL, render_layer, scope});
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
    page_respond(call, "LayerVersions", rows, last, r);
}
