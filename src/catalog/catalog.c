/*
 * The structures: making, finding, ending. What changes them is in change.c, what fills them at start in load.c.
 *
 * Two levels of tables (scope, then function) rather than one with a composite key: a caller who resolves many names of
 * one account finds the scope once, and listings walk one scope only.
 */
#include "catalog/catalog.h"

#include "aws/arn.h"
#include "base/random.h"
#include "catalog/internal.h"

enum { SCOPE_KEY_BYTES = 128 };

/* "ACCOUNT/REGION" into `key`; empty when it does not fit, which no scope's key is. */
static struct span scope_key(struct span account, struct span region, char key[SCOPE_KEY_BYTES])
{
    size_t length = account.length + 1 + region.length;

    if (account.length == 0 || region.length == 0 || length >= SCOPE_KEY_BYTES)
        return SPAN_NONE;
    memcpy(key, account.data, account.length);
    key[account.length] = '/';
    memcpy(key + account.length + 1, region.data, region.length);
    return span_of(key, length);
}

struct catalog_scope *catalog_find_scope(const struct catalog *catalog, struct span account, struct span region)
{
    char key[SCOPE_KEY_BYTES];
    struct scope_entry *entry = table_get(&catalog->scopes, scope_key(account, region, key));

    return entry ? &entry->scope : NULL;
}

struct catalog_function *catalog_find_function(const struct catalog *catalog, struct span account, struct span region,
                                               struct span name)
{
    const struct catalog_scope *scope = catalog_find_scope(catalog, account, region);

    return scope ? table_get(&scope->functions, name) : NULL;
}

struct catalog_version *catalog_find_version(const struct catalog_function *function, struct span number)
{
    if (number.length == 0 || span_equal(number, SPAN("$LATEST")))
        return function->latest;
    return table_get(&function->versions, number);
}

struct catalog_alias *catalog_find_alias(const struct catalog_function *function, struct span name)
{
    return table_get(&function->aliases, name);
}

bool catalog_resolve(const struct catalog_function *function, struct span qualifier, struct catalog_target *ret_target)
{
    struct catalog_version *version = catalog_find_version(function, qualifier);
    struct catalog_alias *alias = NULL;

    if (!version) {
        alias = catalog_find_alias(function, qualifier);
        if (!alias)
            return false;
        version = alias->version;
    }
    *ret_target = (struct catalog_target){version, alias};
    return true;
}

const struct catalog_provisioned *catalog_target_provisioned(const struct catalog_target *target)
{
    return target->alias ? &target->alias->provisioned : &target->version->provisioned;
}

/* Equal but for the members that publishing and updating change by themselves. */
static bool is_same_publication(const json_t *latest, const json_t *published)
{
    const char *member;
    json_t *value;

    if (json_object_size(latest) != json_object_size(published))
        return false;
    json_object_foreach((json_t *)latest, member, value)
    {
        if (!strcmp(member, "LastModified") || !strcmp(member, "Description"))
            continue;
        if (!json_equal(value, json_object_get(published, member)))
            return false;
    }
    return true;
}

struct catalog_version *catalog_find_unchanged(const struct catalog_function *function)
{
    char number[CATALOG_VERSION_BYTES];
    struct catalog_version *newest;
    const struct catalog_version_config *latest = function->latest->config;
    const char *description = json_string_value(json_object_get(latest->document, "Description"));

    snprintf(number, sizeof(number), "%llu", (unsigned long long)(function->next_version - 1));
    newest = table_get(&function->versions, span_from(number));
    if (!newest || strcmp(newest->config->code_sha256, latest->code_sha256))
        return NULL;
    if (strcmp(version_entry_of(newest)->source_description, description ? description : ""))
        return NULL;
    return is_same_publication(latest->document, newest->config->document) ? newest : NULL;
}

bool version_is_settled(const struct catalog_version *version)
{
    return version->state == CATALOG_ACTIVE && version->update != CATALOG_UPDATE_IN_PROGRESS;
}

bool catalog_is_settling(const struct catalog_function *function)
{
    return !version_is_settled(function->latest);
}

size_t catalog_function_count(const struct catalog *catalog)
{
    return catalog->function_count;
}

void scope_count_function(struct catalog_scope *scope, const struct catalog_function *function, int sign)
{
    uint64_t reserved = function->has_reserved ? function->reserved : 0;
    uint64_t provisioned = function->has_reserved ? 0 : function->provisioned_total;

    scope->reserved_total += sign > 0 ? reserved : -reserved;
    scope->provisioned_total += sign > 0 ? provisioned : -provisioned;
}

/* --- entries --- */

struct version_entry *version_entry_new(struct catalog_function *function, struct span number)
{
    struct version_entry *entry;

    if (number.length >= CATALOG_VERSION_BYTES)
        return NULL;
    entry = calloc(1, sizeof(*entry));
    if (!entry)
        return NULL;
    memcpy(entry->number, number.data, number.length);
    entry->version.function = function;
    entry->version.number = entry->number;
    entry->version.is_latest = number.data[0] == '$';
    return entry;
}

struct version_entry *version_entry_free(struct version_entry *entry)
{
    if (!entry)
        return NULL;
    catalog_version_config_unref(entry->version.active);
    catalog_version_config_unref(entry->version.config);
    free(entry->source_description);
    free(entry);
    return NULL;
}

struct alias_entry *alias_entry_new(struct catalog_function *function, struct span name)
{
    struct alias_entry *entry = calloc(1, sizeof(*entry));

    if (!entry)
        return NULL;
    entry->alias.function = function;
    entry->alias.name = entry->name = span_dup(name);
    return entry->name ? entry : alias_entry_free(entry);
}

struct alias_entry *alias_entry_free(struct alias_entry *entry)
{
    if (!entry)
        return NULL;
    free(entry->name);
    free(entry->description);
    free(entry->revision_id);
    free(entry);
    return NULL;
}

struct function_entry *function_entry_new(struct scope_entry *scope, struct span name)
{
    CLEANUP(cleanup_function_entry) struct function_entry *entry = calloc(1, sizeof(*entry));
    struct arena arena = {0};
    struct version_entry *latest;

    if (!entry)
        return NULL;
    list_link_init(&entry->settle.link);
    entry->function.scope = &scope->scope;
    entry->function.next_version = 1;
    entry->function.name = span_dup(name);
    entry->function.tags = json_object();
    latest = version_entry_new(&entry->function, SPAN("$LATEST"));
    if (latest)
        entry->function.latest = &latest->version;
    entry->function.arn = span_dup(span_from(
        arn_build_function(&arena, span_from(scope->scope.region), span_from(scope->scope.account), name, SPAN_NONE)));
    arena_deinit(&arena);
    if (!entry->function.name || !entry->function.tags || !latest || !entry->function.arn ||
        entry->function.arn[0] == '\0')
        return NULL;
    return TAKE_PTR(entry);
}

struct function_entry *function_entry_free(struct function_entry *entry)
{
    if (!entry)
        return NULL;
    list_remove(&entry->settle.link);
    TABLE_FOREACH (item, &entry->function.aliases)
        alias_entry_free(CONTAINER_OF((struct catalog_alias *)item->value, struct alias_entry, alias));
    TABLE_FOREACH (item, &entry->function.versions)
        version_entry_free(version_entry_of(item->value));
    if (entry->function.latest)
        version_entry_free(version_entry_of(entry->function.latest));
    table_deinit(&entry->function.aliases);
    table_deinit(&entry->function.versions);
    json_decref((json_t *)entry->function.tags);
    free((char *)entry->function.arn);
    free((char *)entry->function.name);
    free(entry);
    return NULL;
}

void cleanup_function_entry(struct function_entry **entry)
{
    function_entry_free(*entry);
}

void cleanup_version_entry(struct version_entry **entry)
{
    version_entry_free(*entry);
}

void cleanup_alias_entry(struct alias_entry **entry)
{
    alias_entry_free(*entry);
}

/* --- scopes --- */

static struct scope_entry *scope_entry_free(struct scope_entry *entry)
{
    if (!entry)
        return NULL;
    TABLE_FOREACH (item, &entry->scope.functions)
        function_entry_free(function_entry_of(item->value));
    table_deinit(&entry->scope.functions);
    scope_free_records(&entry->scope);
    free((char *)entry->scope.account);
    free((char *)entry->scope.region);
    free(entry->key);
    free(entry);
    return NULL;
}

static void cleanup_scope_entry(struct scope_entry **entry)
{
    scope_entry_free(*entry);
}

int catalog_get_scope(struct catalog *catalog, struct span account, struct span region, struct scope_entry **ret_scope)
{
    char text[SCOPE_KEY_BYTES];
    struct span key = scope_key(account, region, text);
    CLEANUP(cleanup_scope_entry) struct scope_entry *entry = NULL;
    int r;

    if (key.length == 0)
        return -ENAMETOOLONG;
    *ret_scope = table_get(&catalog->scopes, key);
    if (*ret_scope)
        return 0;
    entry = calloc(1, sizeof(*entry));
    if (!entry)
        return -ENOMEM;
    entry->catalog = catalog;
    list_init(&entry->waiting);
    entry->key = span_dup(key);
    entry->scope.account = span_dup(account);
    entry->scope.region = span_dup(region);
    if (!entry->key || !entry->scope.account || !entry->scope.region)
        return -ENOMEM;
    r = table_add(&catalog->scopes, span_from(entry->key), entry);
    if (r < 0)
        return r;
    *ret_scope = TAKE_PTR(entry);
    return 0;
}

/* --- the whole --- */

static void on_retry(uv_timer_t *timer)
{
    struct catalog *catalog = timer->data;

    TABLE_FOREACH (scope, &catalog->scopes) {
        struct scope_entry *entry = scope->value;
        TABLE_FOREACH (function, &entry->scope.functions)
            function_settle(function_entry_of(function->value));
    }
}

int catalog_new(const struct catalog_config *config, struct catalog **ret_catalog)
{
    struct catalog *catalog = calloc(1, sizeof(*catalog));
    uv_timer_t *timer = calloc(1, sizeof(*timer));

    if (!catalog || !timer) {
        free(catalog);
        free(timer);
        return -ENOMEM;
    }
    catalog->config = *config;
    catalog->references = 1;
    random_bytes(catalog->run_key, sizeof(catalog->run_key));
    list_init(&catalog->observers);
    uv_timer_init(config->loop, timer);
    uv_unref((uv_handle_t *)timer);
    timer->data = catalog;
    timer->timer_cb = on_retry;
    catalog->retry = timer;
    *ret_catalog = catalog;
    return 0;
}

void catalog_add_observer(struct catalog *catalog, struct catalog_observer *observer)
{
    list_push_back(&catalog->observers, &observer->link);
}

static void on_timer_closed(uv_handle_t *handle)
{
    free(handle);
}

static void cancel_waiting(struct scope_entry *scope)
{
    scope->draining = true;
    LIST_FOREACH (link, &scope->waiting) {
        struct catalog_mutation *mutation = CONTAINER_OF(link, struct catalog_mutation, link);
        list_remove(link);
        mutation->on_done(mutation, -ECANCELED);
    }
}

void version_forget_configs(struct catalog_version *version)
{
    version_config_forget(version->active);
    version_config_forget(version->config);
    version->active = version->config = NULL;
}

static void scope_close(struct scope_entry *scope)
{
    cancel_waiting(scope);
    if (scope->running)
        change_abandon(TAKE_PTR(scope->running));
    TABLE_FOREACH (function_item, &scope->scope.functions) {
        struct catalog_function *function = function_item->value;
        version_forget_configs(function->latest);
        TABLE_FOREACH (version_item, &function->versions)
            version_forget_configs(version_item->value);
    }
    scope_entry_free(scope);
}

struct catalog *catalog_ref(struct catalog *catalog)
{
    catalog->references++;
    return catalog;
}

void catalog_unref(struct catalog *catalog)
{
    if (catalog && --catalog->references == 0)
        free(catalog);
}

const unsigned char *catalog_run_key(const struct catalog *catalog)
{
    return catalog->run_key;
}

struct catalog *catalog_free(struct catalog *catalog)
{
    if (!catalog)
        return NULL;
    catalog->closed = true;
    uv_close((uv_handle_t *)catalog->retry, on_timer_closed);
    TABLE_FOREACH (item, &catalog->scopes)
        scope_close(item->value);
    table_deinit(&catalog->scopes);
    catalog_unref(catalog);
    return NULL;
}
