#include "core/test_world.h"

#include <stdio.h>
#include <string.h>

enum event_kind { EVENT_RESPONSE, EVENT_FREE, EVENT_GONE, EVENT_READY, EVENT_INVOKE };

struct world_event {
    int64_t when_ns;
    uint64_t sequence;
    enum event_kind kind;
    struct core_environment *environment;
    struct core_version *version;
    struct core_alias *alias;
    struct world_request *request;
};

static void check(int r)
{
    if (r == 0)
        return;
    fprintf(stderr, "test_world: %s\n", strerror(-r));
    abort();
}

/* ---- the heap ---- */

static bool event_is_before(const struct world_event *a, const struct world_event *b)
{
    if (a->when_ns != b->when_ns)
        return a->when_ns < b->when_ns;
    if ((a->kind == EVENT_INVOKE) != (b->kind == EVENT_INVOKE))
        return b->kind == EVENT_INVOKE;
    return a->sequence < b->sequence;
}

static void event_swap(struct world_event *a, struct world_event *b)
{
    struct world_event kept = *a;

    *a = *b;
    *b = kept;
}

static void event_add(struct world *world, struct world_event event)
{
    size_t i = world->event_count;

    if (i == world->event_capacity) {
        world->event_capacity = MAX((size_t)64, world->event_capacity * 2);
        world->events = realloc(world->events, world->event_capacity * sizeof(event));
        check(world->events ? 0 : -ENOMEM);
    }
    event.sequence = world->event_sequence++;
    world->events[world->event_count++] = event;
    for (; i && event_is_before(&world->events[i], &world->events[(i - 1) / 2]); i = (i - 1) / 2)
        event_swap(&world->events[i], &world->events[(i - 1) / 2]);
}

static struct world_event event_take(struct world *world)
{
    struct world_event first = world->events[0];

    world->events[0] = world->events[--world->event_count];
    for (size_t i = 0;;) {
        size_t least = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < world->event_count; child++) {
            if (event_is_before(&world->events[child], &world->events[least]))
                least = child;
        }
        if (least == i)
            return first;
        event_swap(&world->events[i], &world->events[least]);
        i = least;
    }
}

/* ---- effects ---- */

static int start_environment(struct core_environment *environment, void *context)
{
    struct world *world = context;

    if (world->refuse_starts)
        return -ENOMEM;
    environment->owner = (void *)(intptr_t)world->starts;
    world->started[world->starts++ % WORLD_LOG] = environment;
    if (world->automatic)
        event_add(world, (struct world_event){.when_ns = world->now_ns + world->init_ns,
                                              .kind = EVENT_READY,
                                              .environment = environment});
    return 0;
}

static void stop_environment(struct core_environment *environment, void *context)
{
    struct world *world = context;

    world->stopped[world->stops++ % WORLD_LOG] = environment;
    if (world->automatic)
        event_add(world, (struct world_event){.when_ns = world->now_ns + world->stopping_ns,
                                              .kind = EVENT_GONE,
                                              .environment = environment});
}

static void note_served(struct world *world, struct world_request *request)
{
    request->outcome = CORE_SERVED;
    request->served_ns = world->now_ns;
    request->environment = (int)(intptr_t)request->core.environment->owner;
    if (world->automatic)
        event_add(world, (struct world_event){.when_ns = world->now_ns + request->duration_ns,
                                              .kind = EVENT_RESPONSE,
                                              .environment = request->core.environment,
                                              .request = request});
}

static void serve(struct core_request *request, struct core_environment *environment, void *context)
{
    struct world *world = context;

    check(request->environment == environment ? 0 : -EINVAL);
    world->served[world->serves++ % WORLD_LOG] = request;
    note_served(world, (struct world_request *)request);
}

static void refuse(struct core_request *request, const struct counting_throttle *throttle, void *context)
{
    struct world *world = context;

    world->refused[world->refusals++ % WORLD_LOG] = request;
    world->throttle = *throttle;
    ((struct world_request *)request)->outcome = CORE_THROTTLED;
    ((struct world_request *)request)->throttle = *throttle;
}

static void fail(struct core_request *request, enum core_failure why, void *context)
{
    struct world *world = context;

    world->failed[world->failures++ % WORLD_LOG] = request;
    world->failure = why;
    ((struct world_request *)request)->outcome = CORE_MACHINE_FULL;
}

static void provisioned_changed(struct core_provisioned *provisioned, void *context)
{
    struct world *world = context;

    (void)provisioned;
    world->changes++;
}

static const struct core_effects EFFECTS = {
    .start_environment = start_environment,
    .stop_environment = stop_environment,
    .serve = serve,
    .refuse = refuse,
    .fail = fail,
    .provisioned_changed = provisioned_changed,
};

/* ---- the world ---- */

void world_init(struct world *world, const struct core_limits *limits)
{
    struct core_limits defaults = core_limits_default();
    struct placement_worker_config config = {.zone = 0};

    *world = (struct world){.validate = true, .now_ns = 1000 * NS_PER_S};
    check(placement_new(&world->placement));
    check(placement_add_worker(world->placement, &config, &world->worker));
    check(core_account_new(limits ? limits : &defaults, world->placement, &EFFECTS, world, &world->account));
}

void world_deinit(struct world *world)
{
    core_account_free(world->account);
    placement_free(world->placement);
    free(world->events);
}

static void validate(struct world *world)
{
    if (world->validate)
        core_validate(world->account);
}

struct core_version *world_add_function(struct world *world, const char *name)
{
    struct core_function *function;

    check(core_function_add(world->account, span_from(name), NULL, &function));
    return world_add_version(function, "$LATEST");
}

struct core_version *world_add_version(struct core_function *function, const char *name)
{
    struct core_version *version;

    check(core_version_add(function, span_from(name), 128, (void *)name, &version));
    return version;
}

struct core_alias *world_add_alias(struct core_function *function, const char *name, struct core_version *version)
{
    struct routing routing = {.version = version};
    struct core_alias *alias;

    check(core_alias_add(function, span_from(name), &routing, NULL, &alias));
    return alias;
}

static int invoke(struct world *world, const struct core_qualifier *qualifier, struct world_request *request)
{
    bool asynchronous = request->core.asynchronous;

    core_request_init(&request->core, world);
    request->core.asynchronous = asynchronous;
    request->environment = -1;
    request->arrived_ns = world->now_ns;
    request->outcome =
        core_invoke(world->account, qualifier, &request->core, world->now_ns, world->random, &request->throttle);
    if (request->outcome == CORE_SERVED)
        note_served(world, request);
    validate(world);
    return request->outcome;
}

int world_invoke(struct world *world, struct core_version *version, struct world_request *request)
{
    struct core_qualifier qualifier = {.version = version};

    return invoke(world, &qualifier, request);
}

int world_invoke_alias(struct world *world, struct core_alias *alias, struct world_request *request)
{
    struct core_qualifier qualifier = {.alias = alias};

    return invoke(world, &qualifier, request);
}

struct core_environment *world_last_started(const struct world *world)
{
    return world->starts ? world->started[(world->starts - 1) % WORLD_LOG] : NULL;
}

struct core_environment *world_last_stopped(const struct world *world)
{
    return world->stops ? world->stopped[(world->stops - 1) % WORLD_LOG] : NULL;
}

void world_ready(struct world *world, struct core_environment *environment)
{
    core_environment_ready(environment, true, world->now_ns);
    validate(world);
}

void world_respond(struct world *world, struct world_request *request)
{
    core_response_done(&request->core, world->now_ns);
    validate(world);
}

void world_free(struct world *world, struct core_environment *environment)
{
    core_environment_free(environment, world->now_ns);
    validate(world);
}

void world_gone(struct world *world, struct core_environment *environment)
{
    core_environment_gone(environment, world->now_ns);
    validate(world);
}

void world_finish(struct world *world, struct world_request *request)
{
    struct core_environment *environment = request->core.environment;

    world_respond(world, request);
    world_free(world, environment);
}

void world_pass(struct world *world, int64_t duration_ns)
{
    world->now_ns += duration_ns;
    core_advance(world->account, world->now_ns);
    validate(world);
}

void world_warm(struct world *world, struct core_version *version, int count)
{
    struct world_request requests[WORLD_LOG] = {0};

    check(count <= WORLD_LOG ? 0 : -EINVAL);
    for (int i = 0; i < count; i++) {
        if (world_invoke(world, version, &requests[i]) == CORE_WAITING)
            world_ready(world, world_last_started(world));
    }
    for (int i = 0; i < count; i++)
        world_finish(world, &requests[i]);
}

/* ---- the machine ---- */

/* What was still to come of an environment that is gone. */
static void forget_environment(struct world *world, const struct core_environment *environment)
{
    for (size_t i = 0; i < world->event_count; i++) {
        if (world->events[i].environment == environment)
            world->events[i].environment = NULL;
    }
}

static void happen(struct world *world, const struct world_event *event)
{
    switch (event->kind) {
    case EVENT_RESPONSE:
        core_response_done(&event->request->core, world->now_ns);
        if (world->finishing_ns)
            event_add(world, (struct world_event){.when_ns = world->now_ns + world->finishing_ns,
                                                  .kind = EVENT_FREE,
                                                  .environment = event->environment});
        else
            core_environment_free(event->environment, world->now_ns);
        break;
    case EVENT_FREE:
        core_environment_free(event->environment, world->now_ns);
        break;
    case EVENT_GONE:
        forget_environment(world, event->environment);
        core_environment_gone(event->environment, world->now_ns);
        break;
    case EVENT_READY:
        if (event->environment)
            core_environment_ready(event->environment, true, world->now_ns);
        break;
    case EVENT_INVOKE:
        invoke(world, &(struct core_qualifier){event->version, event->alias}, event->request);
        break;
    }
    validate(world);
}

void world_run_until(struct world *world, int64_t now_ns)
{
    for (;;) {
        int64_t event_ns = world->event_count ? world->events[0].when_ns : INT64_MAX;
        int64_t deadline_ns = core_next_deadline(world->account);

        if (MIN(event_ns, deadline_ns) > now_ns)
            break;
        if (deadline_ns <= event_ns) {
            world->now_ns = MAX(world->now_ns, deadline_ns);
            core_advance(world->account, world->now_ns);
            validate(world);
        } else {
            struct world_event event = event_take(world);
            world->now_ns = event_ns;
            happen(world, &event);
        }
    }
    world->now_ns = now_ns;
}

void world_at(struct world *world, int64_t when_ns, struct core_version *version, struct core_alias *alias,
              struct world_request *request)
{
    event_add(world,
              (struct world_event){
                  .when_ns = when_ns, .kind = EVENT_INVOKE, .version = version, .alias = alias, .request = request});
}
