#include "worker/extension.h"

#include <assert.h>

#define EXTENSION_FOREACH(extension, set) \
    for (const struct extension *extension = (set)->list; extension < (set)->list + (set)->count; extension++)

void extension_set_clear(struct extension_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        free(set->list[i].name);
    *set = (struct extension_set){0};
}

static struct extension *add(struct extension_set *set, struct span name)
{
    struct extension *extension = &set->list[set->count];
    char *copy = span_dup(name);

    if (!copy)
        return NULL;
    *extension = (struct extension){.name = copy};
    set->count++;
    return extension;
}

int extension_set_add_external(struct extension_set *set, const char *name, uint32_t run)
{
    struct extension *extension;

    if (set->count > EXTENSIONS_MAX)
        return -E2BIG;
    extension = add(set, span_from(name));
    if (!extension)
        return -ENOMEM;
    extension->external = true;
    extension->alive = true;
    extension->run = run;
    return 0;
}

static struct extension *find_name(struct extension_set *set, struct span name, bool external)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->list[i].external == external && span_equal(name, span_from(set->list[i].name)))
            return &set->list[i];
    return NULL;
}

struct extension *extension_set_find_external(struct extension_set *set, struct span name)
{
    return find_name(set, name, true);
}

struct extension *extension_set_find(struct extension_set *set, struct span id)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->list[i].id[0] && span_equal_nocase(id, span_from(set->list[i].id)))
            return &set->list[i];
    return NULL;
}

struct extension *extension_set_find_run(struct extension_set *set, uint32_t run)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->list[i].external && set->list[i].run == run)
            return &set->list[i];
    return NULL;
}

static int find_or_add(struct extension_set *set, struct span name, struct extension **ret_extension)
{
    *ret_extension = find_name(set, name, true);
    if (*ret_extension)
        return (*ret_extension)->state == EXTENSION_STARTED ? 0 : EXTENSION_REFUSED_STATE;
    if (set->closed)
        return EXTENSION_REFUSED_CLOSED;
    if (set->count >= EXTENSIONS_MAX)
        return EXTENSION_REFUSED_TOO_MANY;
    if (find_name(set, name, false))
        return EXTENSION_REFUSED_NAME;
    *ret_extension = add(set, name);
    return *ret_extension ? 0 : -ENOMEM;
}

int extension_set_register(struct extension_set *set, struct span name, unsigned events,
                           struct extension **ret_extension)
{
    int r = find_or_add(set, name, ret_extension);

    if (r != 0)
        return r;
    assert((*ret_extension)->external || !(events & EXTENSION_SHUTDOWN));
    random_uuid((*ret_extension)->id);
    (*ret_extension)->events = events;
    (*ret_extension)->state = EXTENSION_REGISTERED;
    return 0;
}

bool extension_set_all_registered(const struct extension_set *set)
{
    EXTENSION_FOREACH (extension, set)
        if (extension->state == EXTENSION_STARTED || extension->state == EXTENSION_LAUNCH_ERROR)
            return false;
    return true;
}

bool extension_set_all_ready(const struct extension_set *set)
{
    EXTENSION_FOREACH (extension, set)
        if (extension->state != EXTENSION_READY)
            return false;
    return true;
}

bool extension_set_is_running(const struct extension_set *set)
{
    EXTENSION_FOREACH (extension, set)
        if (extension->state == EXTENSION_RUNNING || extension->state == EXTENSION_EXIT_ERROR)
            return true;
    return false;
}

bool extension_set_awaits_shutdown(const struct extension_set *set)
{
    EXTENSION_FOREACH (extension, set)
        if (extension->alive && (extension->events & EXTENSION_SHUTDOWN))
            return true;
    return false;
}

bool extension_set_has_external(const struct extension_set *set)
{
    EXTENSION_FOREACH (extension, set)
        if (extension->external)
            return true;
    return false;
}

size_t extension_set_registered(const struct extension_set *set)
{
    size_t count = 0;

    EXTENSION_FOREACH (extension, set)
        count += extension->id[0] != '\0';
    return count;
}

const char *extension_state_name(enum extension_state state)
{
    static const char *const names[] = {
        [EXTENSION_STARTED] = "Started",
        [EXTENSION_REGISTERED] = "Registered",
        [EXTENSION_READY] = "Ready",
        [EXTENSION_RUNNING] = "Running",
        [EXTENSION_INIT_ERROR] = "InitError",
        [EXTENSION_EXIT_ERROR] = "ExitError",
        [EXTENSION_LAUNCH_ERROR] = "LaunchError",
    };

    return names[state];
}
