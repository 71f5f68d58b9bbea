/*
 * Records: documents that the catalog keeps for operations without looking into them. A record lives in its scope's
 * table and in a document ACCOUNT/REGION/NAME of its kind's collection; both change together, by a change's edits.
 */
#include "catalog/document.h"
#include "store/store.h"

#include <assert.h>

static const char *const collections[CATALOG_RECORD_KINDS] = {
    [CATALOG_EVENT_SOURCE_MAPPING] = "event-source-mappings",
    [CATALOG_ROLE] = "roles",
};

static struct catalog_record *record_free(struct catalog_record *record)
{
    if (!record)
        return NULL;
    json_decref((json_t *)record->document);
    free((char *)record->name);
    free(record);
    return NULL;
}

static struct catalog_record *record_new(struct span name, json_t *document)
{
    struct catalog_record *record = calloc(1, sizeof(*record));

    if (!record)
        return NULL;
    record->document = json_incref(document);
    record->name = span_dup(name);
    return record->name ? record : record_free(record);
}

const json_t *catalog_find_record(const struct catalog_scope *scope, enum catalog_record_kind kind, struct span name)
{
    const struct catalog_record *record = scope ? table_get(&scope->records[kind], name) : NULL;

    return record ? record->document : NULL;
}

void scope_free_records(struct catalog_scope *scope)
{
    for (size_t kind = 0; kind < CATALOG_RECORD_KINDS; kind++) {
        TABLE_FOREACH (item, &scope->records[kind])
            record_free(item->value);
        table_deinit(&scope->records[kind]);
    }
}

/* --- edits --- */

void record_edits_deinit(struct record_edits *edits)
{
    for (size_t i = 0; i < edits->count; i++) {
        record_free(edits->items[i].created);
        json_decref(edits->items[i].document);
    }
    free(edits->items);
    *edits = (struct record_edits){0};
}

static struct record_edit *add_edit(struct record_edits *edits)
{
    struct record_edit *items = realloc(edits->items, (edits->count + 1) * sizeof(*items));

    if (!items)
        return NULL;
    edits->items = items;
    items[edits->count] = (struct record_edit){0};
    return &items[edits->count++];
}

static int write_key(const struct catalog_scope *scope, struct span name, struct buffer *key)
{
    return buffer_printf(key, "%s/%s/%.*s", scope->account, scope->region, SPAN_ARG(name));
}

int record_edits_put(struct record_edits *edits, struct catalog_scope *scope, struct store_batch *batch,
                     enum catalog_record_kind kind, struct span name, json_t *document)
{
    CLEANUP(buffer_deinit) struct buffer key = BUFFER_INIT;
    CLEANUP(buffer_deinit) struct buffer bytes = BUFFER_INIT;
    struct record_edit *edit = add_edit(edits);
    int r;

    if (!edit)
        return -ENOMEM;
    edit->kind = kind;
    edit->record = table_get(&scope->records[kind], name);
    edit->document = json_incref(document);
    if (!edit->record) {
        edit->record = edit->created = record_new(name, document);
        r = edit->record ? table_reserve(&scope->records[kind], edits->count) : -ENOMEM;
        if (r < 0)
            return r;
    }
    r = write_key(scope, name, &key);
    if (r == 0)
        r = document_write_record(document, &bytes);
    if (r < 0)
        return r;
    return store_batch_put(batch, span_from(collections[kind]), buffer_span(&key), STORE_ANY, buffer_span(&bytes));
}

int record_edits_delete(struct record_edits *edits, struct catalog_scope *scope, struct store_batch *batch,
                        enum catalog_record_kind kind, struct span name)
{
    CLEANUP(buffer_deinit) struct buffer key = BUFFER_INIT;
    struct record_edit *edit = add_edit(edits);
    int r;

    if (!edit)
        return -ENOMEM;
    edit->kind = kind;
    edit->record = table_get(&scope->records[kind], name);
    assert(edit->record);
    r = write_key(scope, name, &key);
    return r < 0 ? r : store_batch_delete(batch, span_from(collections[kind]), buffer_span(&key), STORE_ANY);
}

static void apply_edit(struct record_edit *edit, struct table *table)
{
    struct catalog_record *record = edit->record;

    if (!edit->document) {
        table_remove(table, span_from(record->name));
        record_free(record);
        return;
    }
    if (edit->created) {
        int r = table_add(table, span_from(record->name), TAKE_PTR(edit->created));
        assert(r == 0); /* reserved, and the lane saw that the name is new */
        (void)r;
    }
    json_decref((json_t *)record->document);
    record->document = TAKE_PTR(edit->document);
}

void record_edits_apply(struct record_edits *edits, struct catalog_scope *scope)
{
    for (size_t i = 0; i < edits->count; i++)
        apply_edit(&edits->items[i], &scope->records[edits->items[i].kind]);
}

/* --- loading --- */

struct loading {
    struct catalog *catalog;
    enum catalog_record_kind kind;
    struct fault *fault;
};

static int on_record(const struct store_document *stored, void *context)
{
    struct loading *loading = context;
    struct catalog_record *record = NULL;
    struct scope_entry *scope;
    struct document_key key;
    json_t *document = NULL;
    int r = document_parse_key(stored->key, false, &key);

    if (r == 0)
        r = document_read_record(stored->bytes, &document);
    if (r == 0)
        r = catalog_get_scope(loading->catalog, key.account, key.region, &scope);
    if (r == -EPROTO)
        fault_set(loading->fault, EPROTO, "document \"%.*s\" of %s is none that this version understands",
                  SPAN_ARG(stored->key), collections[loading->kind]);
    if (r == 0) {
        record = record_new(key.function, document);
        r = record ? table_add(&scope->scope.records[loading->kind], span_from(record->name), record) : -ENOMEM;
    }
    json_decref(document);
    if (r < 0)
        record_free(record);
    return r;
}

int records_load(struct catalog *catalog, struct fault *fault)
{
    int r = 0;

    for (int kind = 0; r == 0 && kind < CATALOG_RECORD_KINDS; kind++) {
        struct loading loading = {catalog, (enum catalog_record_kind)kind, fault};
        r = store_load(catalog->config.store, span_from(collections[kind]), on_record, &loading);
    }
    return r;
}
