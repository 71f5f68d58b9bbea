/* What exists: functions, versions and aliases, kept in step with the catalog by the caller. */
#include "core/state.h"

#include "core/provisioning.h"

#include <assert.h>
#include <string.h>

void *core_object_new(size_t size)
{
    size_t lines = (size + CORE_LINE_BYTES - 1) / CORE_LINE_BYTES * CORE_LINE_BYTES;
    void *object = aligned_alloc(CORE_LINE_BYTES, lines);

    return object ? memset(object, 0, lines) : NULL;
}

/* An object of `size` bytes with a copy of the name behind it. */
static void *named_object_new(size_t size, struct span name, struct span *ret_name)
{
    char *object = core_object_new(size + name.length + 1);

    if (!object)
        return NULL;
    if (name.length)
        memcpy(object + size, name.data, name.length);
    *ret_name = span_of(object + size, name.length);
    return object;
}

/* ---- functions ---- */

int core_function_add(struct core_account *account, struct span name, void *owner, struct core_function **ret_function)
{
    struct span copy;
    struct core_function *function = named_object_new(sizeof(*function), name, &copy);
    int r;

    if (!function)
        return -ENOMEM;
    r = table_add(&account->functions_by_name, copy, function);
    if (r < 0) {
        free(function);
        return r;
    }
    counting_function_init(&function->counting, &account->counting);
    function->account = account;
    function->owner = owner;
    function->name = copy;
    list_init(&function->versions);
    list_init(&function->provisioned);
    list_push_back(&account->functions, &function->link);
    *ret_function = function;
    return 0;
}

static void function_free(struct core_function *function)
{
    list_remove(&function->link);
    table_deinit(&function->versions_by_name);
    table_deinit(&function->aliases_by_name);
    free(function);
}

void core_function_put(struct core_function *function)
{
    if (function->removed && list_is_empty(&function->versions) && list_is_empty(&function->provisioned))
        function_free(function);
}

void core_function_remove(struct core_function *function, int64_t now_ns)
{
    TABLE_FOREACH (entry, &function->aliases_by_name)
        core_alias_remove(entry->value, now_ns);
    TABLE_FOREACH (entry, &function->versions_by_name)
        core_version_remove(entry->value, now_ns);
    core_function_clear_reserved(function);
    table_remove(&function->account->functions_by_name, function->name);
    function->owner = NULL;
    function->removed = true;
    core_function_put(function);
}

struct core_function *core_function_find(const struct core_account *account, struct span name)
{
    return table_get(&account->functions_by_name, name);
}

/* ---- versions ---- */

int core_version_add(struct core_function *function, struct span name, int64_t memory_mib, void *owner,
                     struct core_version **ret_version)
{
    struct span copy;
    struct core_version *version = named_object_new(sizeof(*version), name, &copy);
    int r;

    if (!version)
        return -ENOMEM;
    r = table_add(&function->versions_by_name, copy, version);
    if (r < 0) {
        free(version);
        return r;
    }
    assignment_version_init(&version->assignment, &function->account->assignment);
    version->function = function;
    version->memory_mib = memory_mib;
    version->owner = owner;
    version->name = copy;
    list_push_back(&function->versions, &version->link);
    *ret_version = version;
    return 0;
}

void core_version_put(struct core_version *version)
{
    struct core_function *function = version->function;

    if (!version->removed || version->assignment.environment_count > 0)
        return;
    list_remove(&version->link);
    free(version);
    core_function_put(function);
}

void core_version_remove(struct core_version *version, int64_t now_ns)
{
    if (version->provisioned)
        provisioning_delete(version->provisioned, now_ns);
    core_fail_waiting(version, CORE_FAILURE_REMOVED);
    core_version_retire_environments(version, now_ns);
    table_remove(&version->function->versions_by_name, version->name);
    version->owner = NULL;
    version->removed = true;
    core_version_put(version);
}

struct core_version *core_version_find(const struct core_function *function, struct span name)
{
    return table_get(&function->versions_by_name, name);
}

void core_version_set_memory(struct core_version *version, int64_t memory_mib)
{
    version->memory_mib = memory_mib;
}

/* ---- aliases ---- */

static bool routing_is_within(const struct routing *routing, const struct core_function *function)
{
    return routing_is_valid(routing) && routing->version->function == function &&
           (!routing->second || routing->second->function == function);
}

int core_alias_add(struct core_function *function, struct span name, const struct routing *routing, void *owner,
                   struct core_alias **ret_alias)
{
    struct span copy;
    struct core_alias *alias;
    int r;

    if (!routing_is_within(routing, function))
        return -EINVAL;
    alias = named_object_new(sizeof(*alias), name, &copy);
    if (!alias)
        return -ENOMEM;
    r = table_add(&function->aliases_by_name, copy, alias);
    if (r < 0) {
        free(alias);
        return r;
    }
    alias->function = function;
    alias->routing = *routing;
    alias->owner = owner;
    alias->name = copy;
    *ret_alias = alias;
    return 0;
}

int core_alias_set_routing(struct core_alias *alias, const struct routing *routing, int64_t now_ns)
{
    if (!routing_is_within(routing, alias->function))
        return -EINVAL;
    alias->routing = *routing;
    if (alias->provisioned)
        provisioning_on_routing(alias->provisioned, now_ns);
    return 0;
}

void core_alias_remove(struct core_alias *alias, int64_t now_ns)
{
    if (alias->provisioned)
        provisioning_delete(alias->provisioned, now_ns);
    table_remove(&alias->function->aliases_by_name, alias->name);
    free(alias);
}

struct core_alias *core_alias_find(const struct core_function *function, struct span name)
{
    return table_get(&function->aliases_by_name, name);
}

/* ---- reading ---- */

const struct routing *core_alias_routing(const struct core_alias *alias)
{
    return &alias->routing;
}

void *core_function_owner(const struct core_function *function)
{
    return function->owner;
}

void *core_version_owner(const struct core_version *version)
{
    return version->owner;
}

void *core_alias_owner(const struct core_alias *alias)
{
    return alias->owner;
}

struct core_account *core_function_account(const struct core_function *function)
{
    return function->account;
}

struct core_function *core_version_function(const struct core_version *version)
{
    return version->function;
}

struct core_function *core_alias_function(const struct core_alias *alias)
{
    return alias->function;
}

struct span core_function_name(const struct core_function *function)
{
    return function->name;
}

struct span core_version_name(const struct core_version *version)
{
    return version->name;
}

struct span core_alias_name(const struct core_alias *alias)
{
    return alias->name;
}

/* ---- the end of the account ---- */

static void version_free_all(struct core_version *version)
{
    LIST_FOREACH (link, &version->assignment.environments) {
        struct core_environment *environment = core_environment_of(link);
        placement_release(&version->spread, &environment->lease);
        free(environment);
    }
    free(version);
}

static void function_free_all(struct core_function *function)
{
    TABLE_FOREACH (entry, &function->aliases_by_name)
        free(entry->value);
    LIST_FOREACH (link, &function->provisioned)
        free(CONTAINER_OF(link, struct core_provisioned, link));
    LIST_FOREACH (link, &function->versions)
        version_free_all(CONTAINER_OF(link, struct core_version, link));
    function_free(function);
}

void core_objects_deinit(struct core_account *account)
{
    LIST_FOREACH (link, &account->functions)
        function_free_all(CONTAINER_OF(link, struct core_function, link));
    table_deinit(&account->functions_by_name);
}
