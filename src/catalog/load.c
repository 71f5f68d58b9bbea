/* What the store holds becomes structures: functions first, then their versions, then aliases, in the order of keys;
 * records last. */
#include "catalog/document.h"
#include "store/code.h"
#include "store/store.h"

struct loading {
    struct catalog *catalog;
    struct fault *fault;
};

static int refuse(struct loading *loading, const struct store_document *document, const char *what)
{
    fault_set(loading->fault, EPROTO, "document \"%.*s\": %s", SPAN_ARG(document->key), what);
    return -EPROTO;
}

static void cleanup_json(json_t **document)
{
    json_decref(*document);
}

/* The parts of its key and what it holds; -EPROTO for what this version does not understand, -ENOMEM. */
static int open_document(const struct store_document *stored, bool has_last, struct document_key *ret_key,
                         json_t **ret_document)
{
    int r = document_parse_key(stored->key, has_last, ret_key);

    return r ? r : document_parse(stored->bytes, ret_document);
}

static int fill_function(struct function_entry *entry, json_t *document)
{
    struct function_facts facts;
    int r = document_read_function(document, &facts);

    if (r < 0)
        return r;
    json_decref((json_t *)entry->function.tags);
    entry->function.tags = facts.tags;
    entry->function.next_version = facts.next_version;
    entry->function.has_reserved = facts.has_reserved;
    entry->function.reserved = facts.reserved;
    return 0;
}

static int on_function(const struct store_document *stored, void *context)
{
    struct loading *loading = context;
    CLEANUP(cleanup_json) json_t *document = NULL;
    CLEANUP(cleanup_function_entry) struct function_entry *entry = NULL;
    struct scope_entry *scope;
    struct document_key key;
    int r = open_document(stored, false, &key, &document);

    if (r == 0)
        r = catalog_get_scope(loading->catalog, key.account, key.region, &scope);
    if (r < 0)
        return r == -ENOMEM ? r : refuse(loading, stored, "not a function this version understands");
    entry = function_entry_new(scope, key.function);
    if (!entry)
        return -ENOMEM;
    if (fill_function(entry, document) < 0)
        return refuse(loading, stored, "members of a function are missing");
    r = table_add(&scope->scope.functions, span_from(entry->function.name), &entry->function);
    if (r < 0)
        return r;
    scope_count_function(&scope->scope, &entry->function, 1);
    loading->catalog->function_count++;
    entry = NULL;
    return 0;
}

/* Counts what a version or an alias of the function brings. */
static void count_provisioned(struct catalog_function *function, const struct catalog_provisioned *provisioned)
{
    scope_count_function(function->scope, function, -1);
    function->provisioned_total += provisioned->requested;
    scope_count_function(function->scope, function, 1);
}

/* A configuration for the version as stored; the version takes the reference. */
static int fill_version(struct catalog *catalog, struct version_entry *entry, const struct document_version *facts)
{
    struct config_source source = {
        .function = entry->version.function,
        .version = entry->number,
        .revision_id = facts->revision_id,
        .code_sha256 = facts->code_sha256,
        .code_bytes = facts->code_bytes,
        .document = facts->configuration,
    };
    int r = version_config_new(catalog->config.code, &source, &entry->version.config);

    if (r < 0)
        return r;
    entry->version.state = facts->state;
    entry->version.update = facts->update;
    entry->version.provisioned = facts->provisioned;
    /* What $LATEST was before an unfinished update is not known any more: the new one is in force at once. */
    if (facts->state == CATALOG_ACTIVE)
        entry->version.active = catalog_version_config_ref(entry->version.config);
    if (!entry->version.is_latest) {
        const char *description = facts->source_description ? facts->source_description : "";
        entry->source_description = span_dup(span_from(description));
        if (!entry->source_description)
            return -ENOMEM;
    }
    scope_entry_of(entry->version.function->scope)->scope.code_bytes += facts->code_bytes;
    return 0;
}

static int on_version(const struct store_document *stored, void *context)
{
    struct loading *loading = context;
    CLEANUP(cleanup_json) json_t *document = NULL;
    CLEANUP(cleanup_version_entry) struct version_entry *made = NULL;
    struct version_entry *entry;
    struct document_version facts;
    struct catalog_function *function;
    struct document_key key;
    int r = open_document(stored, true, &key, &document);

    if (r == 0)
        r = document_read_version(document, &facts);
    if (r < 0)
        return r == -ENOMEM ? r : refuse(loading, stored, "not a version this version of the program understands");
    function = catalog_find_function(loading->catalog, key.account, key.region, key.function);
    if (!function)
        return refuse(loading, stored, "a version without its function");
    if (span_equal(key.last, SPAN("$LATEST"))) {
        entry = version_entry_of(function->latest);
    } else {
        entry = made = version_entry_new(function, key.last);
        if (!made)
            return -ENOMEM;
    }
    r = fill_version(loading->catalog, entry, &facts);
    if (r < 0)
        return r == -ENOMEM ? r : refuse(loading, stored, "members of the configuration are missing");
    if (made) {
        r = table_add(&function->versions, span_from(made->number), &made->version);
        if (r < 0)
            return r;
        made = NULL;
    }
    count_provisioned(function, &entry->version.provisioned);
    return 0;
}

static int fill_alias(struct alias_entry *entry, const struct document_alias *facts)
{
    const struct catalog_function *function = entry->alias.function;

    entry->alias.description = entry->description = span_dup(span_from(facts->description));
    entry->alias.revision_id = entry->revision_id = span_dup(span_from(facts->revision_id));
    if (!entry->description || !entry->revision_id)
        return -ENOMEM;
    entry->alias.version = catalog_find_version(function, span_from(facts->version));
    if (facts->additional)
        entry->alias.additional = catalog_find_version(function, span_from(facts->additional));
    entry->alias.additional_weight = facts->weight;
    entry->alias.provisioned = facts->provisioned;
    if (!entry->alias.version || (facts->additional && !entry->alias.additional))
        return -EPROTO;
    return 0;
}

static int on_alias(const struct store_document *stored, void *context)
{
    struct loading *loading = context;
    CLEANUP(cleanup_json) json_t *document = NULL;
    CLEANUP(cleanup_alias_entry) struct alias_entry *entry = NULL;
    struct document_alias facts;
    struct catalog_function *function;
    struct document_key key;
    int r = open_document(stored, true, &key, &document);

    if (r == 0)
        r = document_read_alias(document, &facts);
    if (r < 0)
        return r == -ENOMEM ? r : refuse(loading, stored, "not an alias this version understands");
    function = catalog_find_function(loading->catalog, key.account, key.region, key.function);
    if (!function)
        return refuse(loading, stored, "an alias without its function");
    entry = alias_entry_new(function, key.last);
    r = entry ? fill_alias(entry, &facts) : -ENOMEM;
    if (r == -EPROTO)
        return refuse(loading, stored, "an alias for a version that is not there");
    if (r == 0)
        r = table_add(&function->aliases, span_from(entry->name), &entry->alias);
    if (r < 0)
        return r;
    entry->alias.version->alias_references++;
    if (entry->alias.additional)
        entry->alias.additional->alias_references++;
    count_provisioned(function, &entry->alias.provisioned);
    entry = NULL;
    return 0;
}

static void announce_provisioned(struct catalog *catalog, const struct catalog_target *target)
{
    if (catalog_target_provisioned(target)->requested)
        CATALOG_NOTIFY(catalog, on_provisioned_set, target);
}

static void announce_function(struct catalog *catalog, struct catalog_function *function)
{
    CATALOG_NOTIFY(catalog, on_function_created, function);
    if (function->latest->active)
        CATALOG_NOTIFY(catalog, on_latest_changed, function->latest, NULL);
    TABLE_FOREACH (item, &function->versions) {
        struct catalog_version *version = item->value;
        if (version->active)
            CATALOG_NOTIFY(catalog, on_version_published, version);
    }
    TABLE_FOREACH (item, &function->aliases)
        CATALOG_NOTIFY(catalog, on_alias_set, item->value);
    if (function->has_reserved)
        CATALOG_NOTIFY(catalog, on_reserved_set, function);
    TABLE_FOREACH (item, &function->versions)
        announce_provisioned(catalog, &(struct catalog_target){.version = item->value});
    TABLE_FOREACH (item, &function->aliases) {
        struct catalog_alias *alias = item->value;
        announce_provisioned(catalog, &(struct catalog_target){alias->version, alias});
    }
}

static int announce(struct catalog *catalog, struct fault *fault)
{
    TABLE_FOREACH (scope_item, &catalog->scopes) {
        struct scope_entry *scope = scope_item->value;
        TABLE_FOREACH (item, &scope->scope.functions) {
            struct catalog_function *function = item->value;
            if (!function->latest->config)
                return fault_set(fault, EPROTO, "function %s has no $LATEST", function->arn);
            announce_function(catalog, function);
        }
    }
    return 0;
}

static void settle_all(struct catalog *catalog)
{
    TABLE_FOREACH (scope_item, &catalog->scopes) {
        struct scope_entry *scope = scope_item->value;
        TABLE_FOREACH (item, &scope->scope.functions)
            function_settle(function_entry_of(item->value));
    }
}

static void on_missing(const char *sha256, void *context)
{
    const struct catalog *catalog = context;

    log_event(catalog->config.log, LOG_ERROR,
              "the code package %s is missing from the data directory: functions that use it cannot start", sha256);
}

int catalog_load(struct catalog *catalog, struct fault *fault)
{
    struct loading loading = {catalog, fault};
    struct store *store = catalog->config.store;
    int r;

    if (fault)
        *fault = (struct fault){0};
    r = store_load(store, DOCUMENT_FUNCTIONS, on_function, &loading);
    if (r == 0)
        r = store_load(store, DOCUMENT_VERSIONS, on_version, &loading);
    if (r == 0)
        r = store_load(store, DOCUMENT_ALIASES, on_alias, &loading);
    if (r == 0)
        r = records_load(catalog, fault);
    if (r == 0)
        r = announce(catalog, fault);
    if (r < 0) {
        if (fault && !fault->error)
            fault_set(fault, -r, "%s", strerror(-r));
        fault_prepend(fault, "reading the functions");
        return r;
    }
    r = code_sweep(catalog->config.code, on_missing, catalog);
    if (r < 0)
        return fault_set(fault, -r, "reading the code directory: %s", strerror(-r));
    settle_all(catalog);
    return 0;
}
