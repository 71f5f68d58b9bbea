/*
 * Lanes and changes.
 *
 *   submit -> waiting -> build (edits named, batch filled) -> store_commit -> durable -> applied -> on_done
 *                          \ refused: on_done                    \ failed: on_done
 *
 * Everything that could fail happens before the commit: new entries and configurations are made, tables get room. What
 * is left for afterwards is to move pointers, so that memory and disk cannot disagree. Documents are written whatever
 * was there (STORE_ANY): the lane is the only writer of its scope.
 */
#include "aws/arn.h"
#include "base/random.h"
#include "catalog/document.h"
#include "store/code.h"
#include "store/store.h"

#include <assert.h>
#include <inttypes.h>

enum { RETRY_MS = 1000 };

/* A version's next state, ready to be swapped in. */
struct version_state {
    struct catalog_version *version;
    struct catalog_version_config *config; /* owned; NULL: as it is */
    enum catalog_state state;
    enum catalog_update update;
    bool renews; /* only the RevisionId is another: what runs goes on running */
};

struct catalog_change {
    struct catalog *catalog;
    bool abandoned; /* the catalog is gone: nothing but this is left in it */
    struct scope_entry *scope;
    struct catalog_mutation *mutation;
    struct store_batch *batch;
    struct function_entry *function; /* the one this change is about; owned while `creates` and not applied */
    bool creates;
    bool deletes;
    bool facts_changed;
    struct function_facts facts;
    struct version_state *states; /* $LATEST, or everything that settles */
    size_t state_count;
    struct version_entry *published; /* owned until applied */
    struct catalog_version *deleted_version;
    struct catalog_alias *alias;       /* the one to set */
    struct alias_entry *created_alias; /* owned until applied; then alias is its public half */
    char *alias_description;           /* owned until applied */
    char *alias_revision_id;           /* owned until applied */
    struct catalog_alias_settings alias_settings;
    struct catalog_alias *deleted_alias;
    struct catalog_target provisioned_target; /* version NULL: not this edit */
    struct catalog_provisioned provisioned;
    struct record_edits records;
};

static struct catalog_change *change_free(struct catalog_change *change)
{
    if (!change)
        return NULL;
    store_batch_free(change->batch);
    for (size_t i = 0; i < change->state_count; i++)
        catalog_version_config_unref(change->states[i].config);
    free(change->states);
    version_entry_free(change->published);
    alias_entry_free(change->created_alias);
    free(change->alias_description);
    free(change->alias_revision_id);
    json_decref(change->facts.tags);
    record_edits_deinit(&change->records);
    if (change->creates)
        function_entry_free(change->function);
    free(change);
    return NULL;
}

/* Configurations are forgotten rather than given back: the commit may still become durable, and needs its package. */
void change_abandon(struct catalog_change *change)
{
    struct catalog_mutation *mutation = change->mutation;

    for (size_t i = 0; i < change->state_count; i++)
        version_config_forget(change->states[i].config);
    free(change->states);
    if (change->published)
        version_forget_configs(&change->published->version);
    version_entry_free(change->published);
    alias_entry_free(change->created_alias);
    free(change->alias_description);
    free(change->alias_revision_id);
    json_decref(change->facts.tags);
    record_edits_forget(&change->records);
    if (change->creates)
        function_entry_free(change->function);
    *change = (struct catalog_change){.abandoned = true};
    mutation->on_done(mutation, -ECANCELED);
}

static struct catalog_change *change_new(struct scope_entry *scope, struct catalog_mutation *mutation)
{
    struct catalog_change *change = calloc(1, sizeof(*change));

    if (!change)
        return NULL;
    change->catalog = scope->catalog;
    change->scope = scope;
    change->mutation = mutation;
    change->batch = store_batch_new();
    return change->batch ? change : change_free(change);
}

struct catalog_scope *catalog_change_scope(const struct catalog_change *change)
{
    return &change->scope->scope;
}

/* Names the function of this change, with its facts as they are now. */
static void change_take_function(struct catalog_change *change, struct catalog_function *function)
{
    if (change->function) {
        assert(change->function == function_entry_of(function));
        return;
    }
    change->function = function_entry_of(function);
    change->facts = (struct function_facts){
        .next_version = function->next_version,
        .has_reserved = function->has_reserved,
        .reserved = function->reserved,
        .tags = json_incref((json_t *)function->tags),
    };
}

/* --- documents of a change --- */

static void cleanup_buffer(struct buffer *buffer)
{
    buffer_deinit(buffer);
}

static int put_version(struct catalog_change *change, const struct catalog_version *version,
                       const struct version_state *state, const struct catalog_provisioned *provisioned)
{
    const struct catalog_version_config *config = state->config;
    struct document_version document = {
        .state = state->state,
        .update = state->update,
        .revision_id = config->revision_id,
        .code_sha256 = span_from(config->code_sha256),
        .code_bytes = config->code_bytes,
        .source_description = version_entry_of((struct catalog_version *)version)->source_description,
        .provisioned = *provisioned,
        .configuration = (json_t *)config->document,
    };
    CLEANUP(cleanup_buffer) struct buffer key = BUFFER_INIT;
    CLEANUP(cleanup_buffer) struct buffer bytes = BUFFER_INIT;
    int r = document_version_key(version->function, version->number, &key);

    if (r == 0)
        r = document_write_version(&document, &bytes);
    if (r < 0)
        return r;
    return store_batch_put(change->batch, DOCUMENT_VERSIONS, buffer_span(&key), STORE_ANY, buffer_span(&bytes));
}

static int put_function(struct catalog_change *change)
{
    CLEANUP(cleanup_buffer) struct buffer key = BUFFER_INIT;
    CLEANUP(cleanup_buffer) struct buffer bytes = BUFFER_INIT;
    int r = document_function_key(&change->function->function, &key);

    if (r == 0)
        r = document_write_function(&change->facts, &bytes);
    if (r < 0)
        return r;
    return store_batch_put(change->batch, DOCUMENT_FUNCTIONS, buffer_span(&key), STORE_ANY, buffer_span(&bytes));
}

static int put_alias(struct catalog_change *change, const struct catalog_alias *alias,
                     const struct document_alias *document)
{
    CLEANUP(cleanup_buffer) struct buffer key = BUFFER_INIT;
    CLEANUP(cleanup_buffer) struct buffer bytes = BUFFER_INIT;
    int r = document_alias_key(alias->function, alias->name, &key);

    if (r == 0)
        r = document_write_alias(document, &bytes);
    if (r < 0)
        return r;
    return store_batch_put(change->batch, DOCUMENT_ALIASES, buffer_span(&key), STORE_ANY, buffer_span(&bytes));
}

static int put_alias_settings(struct catalog_change *change)
{
    const struct catalog_alias_settings *settings = &change->alias_settings;
    const struct document_alias document = {
        .version = settings->version->number,
        .description = change->alias_description,
        .revision_id = change->alias_revision_id,
        .additional = settings->additional ? settings->additional->number : NULL,
        .weight = settings->additional_weight,
        .provisioned = change->alias->provisioned,
    };

    return put_alias(change, change->alias, &document);
}

static int put_alias_provisioned(struct catalog_change *change, const struct catalog_alias *alias)
{
    const struct document_alias document = {
        .version = alias->version->number,
        .description = alias->description,
        .revision_id = alias->revision_id,
        .additional = alias->additional ? alias->additional->number : NULL,
        .weight = alias->additional_weight,
        .provisioned = change->provisioned,
    };

    return put_alias(change, alias, &document);
}

static int put_version_provisioned(struct catalog_change *change, struct catalog_version *version)
{
    const struct version_state as_is = {
        .version = version, .config = version->config, .state = version->state, .update = version->update};

    return put_version(change, version, &as_is, &change->provisioned);
}

static int delete_document(struct catalog_change *change, struct span collection,
                           int (*write_key)(const struct catalog_function *function, const char *name,
                                            struct buffer *key),
                           const struct catalog_function *function, const char *name)
{
    CLEANUP(cleanup_buffer) struct buffer key = BUFFER_INIT;
    int r = write_key(function, name, &key);

    return r < 0 ? r : store_batch_delete(change->batch, collection, buffer_span(&key), STORE_ANY);
}

static int write_function_key(const struct catalog_function *function, const char *name, struct buffer *key)
{
    (void)name;
    return document_function_key(function, key);
}

/* --- edits --- */

/* A configuration with a fresh RevisionId. */
static int make_config(struct catalog_change *change, const struct catalog_version *version,
                       const struct catalog_configuration *from, struct catalog_version_config **ret_config)
{
    char revision[UUID_BYTES];
    struct config_source source = {
        .function = version->function,
        .version = version->number,
        .revision_id = random_uuid(revision),
        .code_sha256 = from->code_sha256,
        .code_bytes = from->code_bytes,
        .document = from->document,
    };

    return version_config_new(change->catalog->config.code, &source, ret_config);
}

/* Adds a state and its document; takes the config whatever happens. */
static int add_state(struct catalog_change *change, const struct version_state *state)
{
    struct version_state *states = realloc(change->states, (change->state_count + 1) * sizeof(*states));

    if (!states) {
        catalog_version_config_unref(state->config);
        return -ENOMEM;
    }
    change->states = states;
    change->states[change->state_count++] = *state;
    return put_version(change, state->version, state, &state->version->provisioned);
}

/* A state whose version keeps its configuration, under a new RevisionId. */
static int add_remade_state(struct catalog_change *change, struct version_state *state)
{
    const struct catalog_version_config *config = state->version->config;
    struct catalog_configuration configuration = {
        .document = (json_t *)config->document,
        .code_sha256 = span_from(config->code_sha256),
        .code_bytes = config->code_bytes,
    };
    int r = make_config(change, state->version, &configuration, &state->config);

    return r < 0 ? r : add_state(change, state);
}

static struct version_state *find_state(const struct catalog_change *change, const struct catalog_version *version)
{
    for (size_t i = 0; i < change->state_count; i++)
        if (change->states[i].version == version)
            return &change->states[i];
    return NULL;
}

int catalog_change_create_function(struct catalog_change *change, struct span name,
                                   const struct catalog_configuration *configuration, json_t *tags,
                                   struct catalog_version **ret_latest)
{
    struct version_state state = {.state = CATALOG_PENDING, .update = CATALOG_UPDATE_NONE};
    struct function_entry *entry = function_entry_new(change->scope, name);
    int r;

    assert(!change->function);
    if (!entry)
        return -ENOMEM;
    change_take_function(change, &entry->function);
    change->creates = true;
    change->facts_changed = true;
    if (tags) {
        json_decref(change->facts.tags);
        change->facts.tags = json_incref(tags);
    }
    state.version = entry->function.latest;
    r = table_reserve(&change->scope->scope.functions, 1);
    if (r == 0)
        r = make_config(change, state.version, configuration, &state.config);
    if (r == 0)
        r = add_state(change, &state);
    if (r == 0)
        *ret_latest = state.version;
    return r;
}

int catalog_change_update_latest(struct catalog_change *change, struct catalog_function *function,
                                 const struct catalog_configuration *configuration)
{
    struct version_state state = {
        .version = function->latest, .state = CATALOG_ACTIVE, .update = CATALOG_UPDATE_IN_PROGRESS};
    int r;

    change_take_function(change, function);
    r = make_config(change, state.version, configuration, &state.config);
    return r < 0 ? r : add_state(change, &state);
}

int catalog_change_renew_latest(struct catalog_change *change, struct catalog_function *function)
{
    struct version_state state = {
        .version = function->latest,
        .state = function->latest->state,
        .update = function->latest->update,
        .renews = true,
    };

    change_take_function(change, function);
    return add_remade_state(change, &state);
}

/* $LATEST's document as the new version's own, with its description. */
static json_t *make_published_document(const json_t *latest, const char *description)
{
    json_t *document = json_copy((json_t *)latest);

    if (document && description && json_object_set_new(document, "Description", json_string(description)) < 0) {
        json_decref(document);
        return NULL;
    }
    return document;
}

static int fill_published(struct catalog_change *change, struct version_entry *entry,
                          const struct version_state *latest, const char *description)
{
    const char *source = json_string_value(json_object_get(latest->config->document, "Description"));
    struct catalog_configuration configuration = {
        .document = make_published_document(latest->config->document, description),
        .code_sha256 = span_from(latest->config->code_sha256),
        .code_bytes = latest->config->code_bytes,
    };
    struct catalog_version *version = &entry->version;
    struct version_state state = {.version = version};
    int r;

    entry->source_description = span_dup(span_from(source ? source : ""));
    if (!configuration.document || !entry->source_description) {
        json_decref(configuration.document);
        return -ENOMEM;
    }
    r = make_config(change, version, &configuration, &version->config);
    json_decref(configuration.document);
    if (r < 0)
        return r;
    if (latest->state == CATALOG_ACTIVE && latest->update != CATALOG_UPDATE_IN_PROGRESS) {
        version->state = CATALOG_ACTIVE;
        version->update = CATALOG_UPDATE_SUCCESSFUL;
        version->active = catalog_version_config_ref(version->config);
    }
    state.config = version->config;
    state.state = version->state;
    state.update = version->update;
    return put_version(change, version, &state, &version->provisioned);
}

int catalog_change_publish(struct catalog_change *change, struct catalog_function *function, const char *description,
                           struct catalog_version **ret_version)
{
    const struct catalog_version *latest = function->latest;
    const struct version_state *edited = find_state(change, latest);
    struct version_state as_is = {
        .version = function->latest, .config = latest->config, .state = latest->state, .update = latest->update};
    CLEANUP(cleanup_version_entry) struct version_entry *entry = NULL;
    char number[CATALOG_VERSION_BYTES];
    int r;

    assert(!change->published);
    change_take_function(change, function);
    snprintf(number, sizeof(number), "%" PRIu64, change->facts.next_version);
    entry = version_entry_new(function, span_from(number));
    if (!entry)
        return -ENOMEM;
    r = table_reserve(&function->versions, 1);
    if (r == 0)
        r = fill_published(change, entry, edited ? edited : &as_is, description);
    if (r < 0)
        return r;
    change->facts.next_version++;
    change->facts_changed = true;
    change->published = TAKE_PTR(entry);
    *ret_version = &change->published->version;
    return 0;
}

int catalog_change_delete_version(struct catalog_change *change, struct catalog_version *version)
{
    int r;

    assert(!version->is_latest && version->alias_references == 0 && !change->deleted_version);
    change_take_function(change, version->function);
    change->deleted_version = version;
    r = delete_document(change, DOCUMENT_VERSIONS, document_version_key, version->function, version->number);
    return r ? r
             : record_edits_delete_qualifier(&change->records, version->function, change->batch,
                                             span_from(version->number));
}

int catalog_change_delete_function(struct catalog_change *change, struct catalog_function *function)
{
    int r;

    assert(!change->function);
    change_take_function(change, function);
    change->deletes = true;
    r = delete_document(change, DOCUMENT_FUNCTIONS, write_function_key, function, NULL);
    if (r == 0)
        r = delete_document(change, DOCUMENT_VERSIONS, document_version_key, function, "$LATEST");
    TABLE_FOREACH (item, &function->versions)
        if (r == 0)
            r = delete_document(change, DOCUMENT_VERSIONS, document_version_key, function,
                                ((struct catalog_version *)item->value)->number);
    TABLE_FOREACH (item, &function->aliases)
        if (r == 0)
            r = delete_document(change, DOCUMENT_ALIASES, document_alias_key, function,
                                ((struct catalog_alias *)item->value)->name);
    return r ? r : record_edits_delete_function(&change->records, function, change->batch);
}

int catalog_change_set_alias(struct catalog_change *change, struct catalog_function *function,
                             const struct catalog_alias_settings *settings)
{
    char revision[UUID_BYTES];
    int r;

    assert(!change->alias);
    change_take_function(change, function);
    change->alias = catalog_find_alias(function, span_from(settings->name));
    if (!change->alias) {
        change->created_alias = alias_entry_new(function, span_from(settings->name));
        if (!change->created_alias)
            return -ENOMEM;
        change->alias = &change->created_alias->alias;
        r = table_reserve(&function->aliases, 1);
        if (r < 0)
            return r;
    }
    change->alias_description = span_dup(span_from(settings->description));
    change->alias_revision_id = span_dup(span_from(random_uuid(revision)));
    if (!change->alias_description || !change->alias_revision_id)
        return -ENOMEM;
    change->alias_settings = *settings;
    change->alias_settings.name = NULL;
    change->alias_settings.description = NULL;
    return put_alias_settings(change);
}

int catalog_change_delete_alias(struct catalog_change *change, struct catalog_alias *alias)
{
    int r;

    assert(!change->deleted_alias);
    change_take_function(change, alias->function);
    change->deleted_alias = alias;
    r = delete_document(change, DOCUMENT_ALIASES, document_alias_key, alias->function, alias->name);
    return r ? r
             : record_edits_delete_qualifier(&change->records, alias->function, change->batch, span_from(alias->name));
}

int catalog_change_set_reserved(struct catalog_change *change, struct catalog_function *function, bool has_reserved,
                                unsigned reserved)
{
    change_take_function(change, function);
    change->facts.has_reserved = has_reserved;
    change->facts.reserved = has_reserved ? reserved : 0;
    change->facts_changed = true;
    return 0;
}

int catalog_change_set_provisioned(struct catalog_change *change, const struct catalog_target *target,
                                   const struct catalog_provisioned *provisioned)
{
    assert(!change->function && !(target->version->is_latest && !target->alias));
    change_take_function(change, target->version->function);
    change->provisioned_target = *target;
    change->provisioned = *provisioned;
    if (target->alias)
        return put_alias_provisioned(change, target->alias);
    return put_version_provisioned(change, target->version);
}

int catalog_change_set_tags(struct catalog_change *change, struct catalog_function *function, json_t *tags)
{
    change_take_function(change, function);
    json_decref(change->facts.tags);
    change->facts.tags = json_incref(tags);
    change->facts_changed = true;
    return 0;
}

int catalog_change_put_record(struct catalog_change *change, enum catalog_record_kind kind, struct span name,
                              json_t *document)
{
    return record_edits_put(&change->records, &change->scope->scope, change->batch, kind, name, document);
}

int catalog_change_delete_record(struct catalog_change *change, enum catalog_record_kind kind, struct span name)
{
    return record_edits_delete(&change->records, &change->scope->scope, change->batch, kind, name);
}

int catalog_change_put_attached(struct catalog_change *change, const struct catalog_function *function,
                                enum catalog_record_kind kind, struct span qualifier, json_t *document)
{
    return record_edits_put_attached(&change->records, function, change->batch, kind, qualifier, document);
}

int catalog_change_delete_attached(struct catalog_change *change, const struct catalog_function *function,
                                   enum catalog_record_kind kind, struct span qualifier)
{
    return record_edits_delete_attached(&change->records, function, change->batch, kind, qualifier);
}

/* --- applying: nothing here can fail --- */

static uint64_t config_bytes(const struct catalog_version_config *config)
{
    return config ? config->code_bytes : 0;
}

static void add_infallibly(struct table *table, const char *key, void *value)
{
    int r = table_add(table, span_from(key), value);

    assert(r == 0); /* reserved, and the lane saw that the key is new */
    (void)r;
}

static void apply_creation(struct catalog_change *change)
{
    struct function_entry *entry = change->function;

    change->creates = false;
    add_infallibly(&change->scope->scope.functions, entry->function.name, &entry->function);
    change->catalog->function_count++;
}

static void apply_facts(struct catalog_change *change)
{
    struct catalog_function *function = &change->function->function;
    struct catalog_scope *scope = &change->scope->scope;
    bool reserved_changed =
        function->has_reserved != change->facts.has_reserved || function->reserved != change->facts.reserved;

    scope_count_function(scope, function, -1);
    function->next_version = change->facts.next_version;
    function->has_reserved = change->facts.has_reserved;
    function->reserved = change->facts.reserved;
    scope_count_function(scope, function, 1);
    json_decref((json_t *)function->tags);
    function->tags = TAKE_PTR(change->facts.tags);
    if (reserved_changed)
        CATALOG_NOTIFY(change->catalog, on_reserved_set, function);
}

/* A settled state comes into force; the version's former configuration is given back after the observers know. */
static void put_in_force(struct catalog *catalog, struct catalog_version *version)
{
    struct catalog_version_config *old = version->active;

    version->active = catalog_version_config_ref(version->config);
    if (version->is_latest)
        CATALOG_NOTIFY(catalog, on_latest_changed, version, old);
    else
        CATALOG_NOTIFY(catalog, on_version_published, version);
    catalog_version_config_unref(old);
}

static void apply_state(struct catalog_change *change, struct version_state *state)
{
    struct catalog_version *version = state->version;
    struct catalog_version_config *old = version->config;

    version->config = TAKE_PTR(state->config);
    version->state = state->state;
    version->update = state->update;
    change->scope->scope.code_bytes += config_bytes(version->config);
    change->scope->scope.code_bytes -= config_bytes(old);
    if (version_is_settled(version) && !state->renews)
        put_in_force(change->catalog, version);
    catalog_version_config_unref(old);
}

static void apply_publication(struct catalog_change *change)
{
    struct version_entry *entry = TAKE_PTR(change->published);

    add_infallibly(&change->function->function.versions, entry->number, &entry->version);
    change->scope->scope.code_bytes += config_bytes(entry->version.config);
    if (entry->version.active)
        CATALOG_NOTIFY(change->catalog, on_version_published, &entry->version);
}

static void alias_count_references(struct catalog_alias *alias, int by)
{
    if (alias->version)
        alias->version->alias_references += (unsigned)by;
    if (alias->additional)
        alias->additional->alias_references += (unsigned)by;
}

static void apply_alias(struct catalog_change *change)
{
    struct catalog_alias *alias = change->alias;
    struct alias_entry *entry = CONTAINER_OF(alias, struct alias_entry, alias);

    alias_count_references(alias, -1);
    free(entry->description);
    free(entry->revision_id);
    alias->description = entry->description = TAKE_PTR(change->alias_description);
    alias->revision_id = entry->revision_id = TAKE_PTR(change->alias_revision_id);
    alias->version = change->alias_settings.version;
    alias->additional = change->alias_settings.additional;
    alias->additional_weight = alias->additional ? change->alias_settings.additional_weight : 0.0;
    alias_count_references(alias, 1);
    if (change->created_alias) {
        change->created_alias = NULL;
        add_infallibly(&change->function->function.aliases, alias->name, alias);
    }
    CATALOG_NOTIFY(change->catalog, on_alias_set, alias);
}

static void set_provisioned(const struct catalog_target *target, const struct catalog_provisioned *provisioned)
{
    struct catalog_function *function = target->version->function;
    struct catalog_provisioned *place = target->alias ? &target->alias->provisioned : &target->version->provisioned;

    scope_count_function(function->scope, function, -1);
    function->provisioned_total += provisioned->requested;
    function->provisioned_total -= place->requested;
    *place = *provisioned;
    scope_count_function(function->scope, function, 1);
}

static void remove_provisioned(struct catalog *catalog, const struct catalog_target *target)
{
    if (!catalog_target_provisioned(target)->requested)
        return;
    set_provisioned(target, &(struct catalog_provisioned){0});
    CATALOG_NOTIFY(catalog, on_provisioned_deleted, target);
}

static void apply_provisioned(struct catalog_change *change)
{
    const struct catalog_target *target = &change->provisioned_target;

    if (!change->provisioned.requested) {
        remove_provisioned(change->catalog, target);
        return;
    }
    set_provisioned(target, &change->provisioned);
    CATALOG_NOTIFY(change->catalog, on_provisioned_set, target);
}

static void remove_alias(struct catalog *catalog, struct catalog_alias *alias)
{
    remove_provisioned(catalog, &(struct catalog_target){alias->version, alias});
    table_remove(&alias->function->aliases, span_from(alias->name));
    alias_count_references(alias, -1);
    CATALOG_NOTIFY(catalog, on_alias_deleted, alias);
    alias_entry_free(CONTAINER_OF(alias, struct alias_entry, alias));
}

static void remove_version(struct catalog_change *change, struct catalog_version *version)
{
    remove_provisioned(change->catalog, &(struct catalog_target){.version = version});
    table_remove(&version->function->versions, span_from(version->number));
    change->scope->scope.code_bytes -= config_bytes(version->config);
    CATALOG_NOTIFY(change->catalog, on_version_deleted, version);
    version_entry_free(version_entry_of(version));
}

static void apply_deletion(struct catalog_change *change)
{
    struct function_entry *entry = TAKE_PTR(change->function);
    struct catalog_function *function = &entry->function;
    struct catalog_scope *scope = &change->scope->scope;

    table_remove(&scope->functions, span_from(function->name));
    change->catalog->function_count--;
    TABLE_FOREACH (item, &function->aliases)
        remove_alias(change->catalog, item->value);
    TABLE_FOREACH (item, &function->versions)
        remove_version(change, item->value);
    scope->code_bytes -= config_bytes(function->latest->config);
    scope_count_function(scope, function, -1);
    CATALOG_NOTIFY(change->catalog, on_function_deleted, function);
    function_entry_free(entry);
}

static void change_apply(struct catalog_change *change)
{
    bool creates = change->creates;

    record_edits_apply(&change->records, &change->scope->scope);
    if (change->deletes) {
        apply_deletion(change);
        return;
    }
    if (creates)
        apply_creation(change);
    if (change->facts_changed)
        apply_facts(change);
    for (size_t i = 0; i < change->state_count; i++)
        apply_state(change, &change->states[i]);
    if (creates)
        CATALOG_NOTIFY(change->catalog, on_function_created, &change->function->function);
    if (change->published)
        apply_publication(change);
    if (change->alias)
        apply_alias(change);
    if (change->deleted_alias)
        remove_alias(change->catalog, change->deleted_alias);
    if (change->deleted_version)
        remove_version(change, change->deleted_version);
    if (change->provisioned_target.version)
        apply_provisioned(change);
}

/* --- settling --- */

static int add_settled(struct catalog_change *change, struct catalog_version *version)
{
    struct version_state state = {.version = version, .state = CATALOG_ACTIVE, .update = CATALOG_UPDATE_SUCCESSFUL};

    return version_is_settled(version) ? 0 : add_remade_state(change, &state);
}

static int build_settling(struct catalog_mutation *mutation, struct catalog_change *change)
{
    struct function_entry *entry = CONTAINER_OF(mutation, struct function_entry, settle);
    int r;

    change_take_function(change, &entry->function);
    r = add_settled(change, entry->function.latest);
    TABLE_FOREACH (item, &entry->function.versions)
        if (r == 0)
            r = add_settled(change, item->value);
    return r;
}

static void on_settled(struct catalog_mutation *mutation, int status)
{
    struct function_entry *entry = CONTAINER_OF(mutation, struct function_entry, settle);
    const struct catalog *catalog = scope_entry_of(entry->function.scope)->catalog;

    entry->settle_waiting = false;
    if (status == 0 || status == -ECANCELED)
        return;
    log_event(catalog->config.log, LOG_ERROR, "function %s stays %s for now, storing its state failed: %s",
              entry->function.arn, entry->function.latest->state == CATALOG_PENDING ? "Pending" : "InProgress",
              strerror(-status));
    uv_timer_start(catalog->retry, catalog->retry->timer_cb, RETRY_MS, 0);
}

static bool function_is_settled(const struct catalog_function *function)
{
    if (!version_is_settled(function->latest))
        return false;
    TABLE_FOREACH (item, &function->versions)
        if (!version_is_settled(item->value))
            return false;
    return true;
}

void function_settle(struct function_entry *entry)
{
    struct scope_entry *scope = scope_entry_of(entry->function.scope);

    if (entry->settle_waiting || function_is_settled(&entry->function))
        return;
    entry->settle_waiting = true;
    entry->settle.build = build_settling;
    entry->settle.on_done = on_settled;
    list_push_back(&scope->waiting, &entry->settle.link);
    lane_run(scope);
}

/* --- lanes --- */

static void on_committed(int result, void *context)
{
    struct catalog_change *change = context;
    struct scope_entry *scope = change->scope;
    struct catalog_mutation *mutation = change->mutation;
    struct function_entry *unsettled = NULL;

    if (change->abandoned) {
        free(change);
        return;
    }
    scope->running = NULL;
    scope->draining = true;
    if (result == 0) {
        change_apply(change);
        unsettled = change->function;
    }
    /* A conflict would mean a second writer: the lane's promise is broken, and nothing was written. */
    change_free(change);
    mutation->on_done(mutation, result == STORE_CONFLICT ? -EIO : result);
    scope->draining = false;
    if (unsettled)
        function_settle(unsettled);
    lane_run(scope);
}

/* 0: handed to the store; else what on_done is to be told. */
static int lane_start(struct scope_entry *scope, struct catalog_mutation *mutation, bool *ret_committing)
{
    struct catalog_change *change = change_new(scope, mutation);
    int r;

    *ret_committing = false;
    if (!change)
        return -ENOMEM;
    r = mutation->build(mutation, change);
    if (r == 0 && change->facts_changed && !change->deletes)
        r = put_function(change);
    if (r != 0 || (!change->function && !change->records.count)) {
        change_free(change);
        return r;
    }
    *ret_committing = true;
    scope->running = change;
    store_commit(scope->catalog->config.store, TAKE_PTR(change->batch), on_committed, change);
    return 0;
}

void lane_run(struct scope_entry *scope)
{
    struct list_link *link;

    if (scope->draining)
        return;
    scope->draining = true;
    while (!scope->running && (link = list_first(&scope->waiting))) {
        struct catalog_mutation *mutation = CONTAINER_OF(link, struct catalog_mutation, link);
        bool committing;
        int r;

        list_remove(link);
        r = lane_start(scope, mutation, &committing);
        if (!committing)
            mutation->on_done(mutation, r);
    }
    scope->draining = false;
}

int catalog_submit(struct catalog *catalog, struct span account, struct span region, struct catalog_mutation *mutation)
{
    struct scope_entry *scope;
    int r = catalog->closed ? -ECANCELED : catalog_get_scope(catalog, account, region, &scope);

    if (r < 0)
        return r;
    list_push_back(&scope->waiting, &mutation->link);
    lane_run(scope);
    return 0;
}
