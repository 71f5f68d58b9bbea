/*
 * Records: documents that the catalog keeps for operations without looking into them. A record lives in its scope's
 * table and in a document ACCOUNT/REGION/NAME of its kind's collection; both change together, by a change's edits.
 */
#include "catalog/document.h"
#include "store/code.h"
#include "store/store.h"

#include <assert.h>
#include <stdio.h>

static const char *const collections[CATALOG_RECORD_KINDS] = {
    [CATALOG_EVENT_SOURCE_MAPPING] = "event-source-mappings",
    [CATALOG_ROLE] = "roles",
    [CATALOG_MANAGED_POLICY] = "managed-policies",
    [CATALOG_LAYER] = "layers",
    [CATALOG_LAYER_VERSION] = "layer-versions",
    [CATALOG_CODE_SIGNING_CONFIG] = "code-signing-configs",
    [CATALOG_POLICY] = "policies",
    [CATALOG_FUNCTION_URL] = "function-urls",
    [CATALOG_EVENT_INVOKE_CONFIG] = "event-invoke-configs",
    [CATALOG_RUNTIME_MANAGEMENT_CONFIG] = "runtime-management-configs",
    [CATALOG_RECURSION_CONFIG] = "recursion-configs",
    [CATALOG_FUNCTION_CODE_SIGNING] = "function-code-signing",
};

#define FIRST_ATTACHED CATALOG_POLICY

enum { ATTACHED_NAME_BYTES = 512 };

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

/* --- packages --- */

/* The package in the code store that a record of the kind keeps, NULL for none. */
static const char *package_of(enum catalog_record_kind kind, const json_t *document)
{
    return kind == CATALOG_LAYER_VERSION ? json_string_value(json_object_get(document, "Package")) : NULL;
}

static struct code_store *code_of(const struct catalog_scope *scope)
{
    return scope_entry_of(scope)->catalog->config.code;
}

static void count_package(struct catalog_scope *scope, const json_t *document, int sign)
{
    uint64_t bytes = (uint64_t)json_integer_value(json_object_get(document, "CodeSize"));

    scope->code_bytes += sign > 0 ? bytes : -bytes;
}

const json_t *catalog_find_record(const struct catalog_scope *scope, enum catalog_record_kind kind, struct span name)
{
    const struct catalog_record *record = scope ? table_get(&scope->records[kind], name) : NULL;

    return record ? record->document : NULL;
}

/* "FUNCTION:QUALIFIER" into `name`; empty when it does not fit, which no record's name is. */
static struct span attached_name(const struct catalog_function *function, struct span qualifier,
                                 char name[ATTACHED_NAME_BYTES])
{
    struct span shown = qualifier.length ? qualifier : SPAN("$LATEST");
    int length = snprintf(name, ATTACHED_NAME_BYTES, "%s:%.*s", function->name, SPAN_ARG(shown));

    return length < ATTACHED_NAME_BYTES ? span_of(name, (size_t)length) : SPAN_NONE;
}

const json_t *catalog_find_attached(const struct catalog_function *function, enum catalog_record_kind kind,
                                    struct span qualifier)
{
    char name[ATTACHED_NAME_BYTES];

    return catalog_find_record(function->scope, kind, attached_name(function, qualifier, name));
}

bool catalog_record_is_attached(const struct catalog_record *record, const struct catalog_function *function,
                                struct span *ret_qualifier)
{
    *ret_qualifier = span_from(record->name);
    return span_equal(span_cut(ret_qualifier, ':'), span_from(function->name));
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
        struct record_edit *edit = &edits->items[i];
        if (edit->created && edit->code)
            code_release(edit->code, package_of(edit->kind, edit->document));
        record_free(edits->items[i].created);
        json_decref(edits->items[i].document);
    }
    free(edits->items);
    *edits = (struct record_edits){0};
}

void record_edits_forget(struct record_edits *edits)
{
    for (size_t i = 0; i < edits->count; i++)
        edits->items[i].code = NULL;
    record_edits_deinit(edits);
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

static int hold_package(struct record_edit *edit, const struct catalog_scope *scope)
{
    const char *package = package_of(edit->kind, edit->document);
    int r = package ? code_retain(code_of(scope), package) : 0;

    if (package && r == 0)
        edit->code = code_of(scope);
    return r;
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
        if (r == 0)
            r = hold_package(edit, scope);
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

int record_edits_put_attached(struct record_edits *edits, const struct catalog_function *function,
                              struct store_batch *batch, enum catalog_record_kind kind, struct span qualifier,
                              json_t *document)
{
    char text[ATTACHED_NAME_BYTES];
    struct span name = attached_name(function, qualifier, text);

    assert(kind >= FIRST_ATTACHED);
    return name.length ? record_edits_put(edits, function->scope, batch, kind, name, document) : -ENAMETOOLONG;
}

int record_edits_delete_attached(struct record_edits *edits, const struct catalog_function *function,
                                 struct store_batch *batch, enum catalog_record_kind kind, struct span qualifier)
{
    char text[ATTACHED_NAME_BYTES];
    struct span name = attached_name(function, qualifier, text);

    assert(kind >= FIRST_ATTACHED);
    if (!catalog_find_record(function->scope, kind, name))
        return 0;
    return record_edits_delete(edits, function->scope, batch, kind, name);
}

int record_edits_delete_qualifier(struct record_edits *edits, const struct catalog_function *function,
                                  struct store_batch *batch, struct span qualifier)
{
    int r = 0;

    for (int kind = FIRST_ATTACHED; r == 0 && kind < CATALOG_RECORD_KINDS; kind++)
        if (kind != CATALOG_FUNCTION_URL)
            r = record_edits_delete_attached(edits, function, batch, (enum catalog_record_kind)kind, qualifier);
    return r;
}

/* Found by walking all records of the scope: a URL may hang on an alias that is not there any more. */
int record_edits_delete_function(struct record_edits *edits, const struct catalog_function *function,
                                 struct store_batch *batch)
{
    struct span qualifier;
    int r = 0;

    for (int kind = FIRST_ATTACHED; kind < CATALOG_RECORD_KINDS; kind++) {
        TABLE_FOREACH (item, &function->scope->records[kind])
            if (r == 0 && catalog_record_is_attached(item->value, function, &qualifier))
                r = record_edits_delete(edits, function->scope, batch, (enum catalog_record_kind)kind, item->key);
    }
    return r;
}

static void apply_deletion(const struct record_edit *edit, struct catalog_scope *scope)
{
    struct catalog_record *record = edit->record;
    const char *package = package_of(edit->kind, record->document);

    table_remove(&scope->records[edit->kind], span_from(record->name));
    if (package) {
        count_package(scope, record->document, -1);
        code_release(code_of(scope), package);
    }
    record_free(record);
}

static void apply_edit(struct record_edit *edit, struct catalog_scope *scope)
{
    struct catalog_record *record = edit->record;
    struct table *table = &scope->records[edit->kind];

    if (!edit->document) {
        apply_deletion(edit, scope);
        return;
    }
    if (edit->created) {
        int r = table_add(table, span_from(record->name), TAKE_PTR(edit->created));
        assert(r == 0); /* reserved, and the lane saw that the name is new */
        (void)r;
        if (edit->code)
            count_package(scope, edit->document, 1);
    }
    json_decref((json_t *)record->document);
    record->document = TAKE_PTR(edit->document);
}

void record_edits_apply(struct record_edits *edits, struct catalog_scope *scope)
{
    for (size_t i = 0; i < edits->count; i++)
        apply_edit(&edits->items[i], scope);
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
    if (r == 0 && package_of(loading->kind, document)) {
        count_package(&scope->scope, document, 1);
        r = code_retain(code_of(&scope->scope), package_of(loading->kind, document));
        record = NULL; /* the table's */
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
