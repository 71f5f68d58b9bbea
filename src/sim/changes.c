/* What the scenario sets up and changes on the way: RC, PC, aliases, durations, scaling, rollouts, deaths of workers.
 */
#include "sim/engine.h"

#include <stdio.h>

/* ---- setting up ---- */

static int out_of_memory(struct fault *fault)
{
    return fault_set(fault, ENOMEM, "out of memory");
}

/* Why RC or PC was refused, as a sentence. */
static const char *describe(enum counting_change change, int32_t number, char *text, size_t size)
{
    switch (change) {
    case COUNTING_OK:
        break;
    case COUNTING_BELOW_PROVISIONED:
        snprintf(text, size, "it is below the function's provisioned concurrency of %d", number);
        return text;
    case COUNTING_BELOW_MINIMUM:
        snprintf(text, size, "it would leave less than the unreserved minimum of %d", number);
        return text;
    case COUNTING_OVER_RESERVED:
        snprintf(text, size, "it would exceed the function's reserved concurrency of %d", number);
        return text;
    case COUNTING_OVER_POOL:
        snprintf(text, size, "it exceeds the unreserved pool of %d", number);
        return text;
    }
    snprintf(text, size, "out of memory");
    return text;
}

static int add_versions(struct engine *engine, int index)
{
    const struct scenario_function *scenario = &engine->scenario->functions[index];
    struct engine_function *function = &engine->functions[index];

    function->versions = calloc(scenario->version_count, sizeof(*function->versions));
    if (!function->versions)
        return -ENOMEM;
    for (size_t i = 0; i < scenario->version_count; i++) {
        const struct scenario_version *from = &scenario->versions[i];
        struct engine_version *version = &function->versions[i];
        int r;
        *version = (struct engine_version){.duration = from->duration,
                                           .init = from->init,
                                           .shutdown = from->shutdown,
                                           .function = index,
                                           .index = (int)i};
        r = core_version_add(function->core, span_from(from->name), from->memory_mib, version, &version->core);
        if (r < 0)
            return r;
    }
    return 0;
}

static struct routing core_routing(const struct engine_function *function, const struct scenario_routing *routing)
{
    struct routing core = {.version = function->versions[routing->version].core};

    if (routing->second >= 0) {
        core.second = function->versions[routing->second].core;
        core.second_weight = routing->second_weight;
    }
    return core;
}

static int add_aliases(struct engine *engine, int index)
{
    const struct scenario_function *scenario = &engine->scenario->functions[index];
    struct engine_function *function = &engine->functions[index];
    size_t count = MAX(scenario->alias_count, (size_t)1);

    function->aliases = calloc(count, sizeof(struct core_alias *));
    function->routings = calloc(count, sizeof(*function->routings));
    if (!function->aliases || !function->routings)
        return -ENOMEM;
    for (size_t i = 0; i < scenario->alias_count; i++) {
        struct routing routing = core_routing(function, &scenario->aliases[i].routing);
        int r =
            core_alias_add(function->core, span_from(scenario->aliases[i].name), &routing, NULL, &function->aliases[i]);
        if (r < 0)
            return r;
        function->routings[i] = scenario->aliases[i].routing;
    }
    return 0;
}

/* The qualifiers of a function that have PC at some time. */
static struct engine_provisioned *add_provisioned(struct engine *engine, const struct scenario_qualifier *qualifier)
{
    struct engine_function *function = &engine->functions[qualifier->function];

    for (size_t i = 0; i < function->provisioned_count; i++) {
        struct engine_provisioned *known = &function->provisioned[i];
        if (known->qualifier.version == qualifier->version && known->qualifier.alias == qualifier->alias)
            return known;
    }
    function->provisioned[function->provisioned_count].qualifier = *qualifier;
    return &function->provisioned[function->provisioned_count++];
}

static int find_provisioned(struct engine *engine, int index)
{
    const struct scenario *scenario = engine->scenario;
    const struct scenario_function *from = &scenario->functions[index];
    struct engine_function *function = &engine->functions[index];

    function->provisioned = calloc(from->version_count + from->alias_count, sizeof(*function->provisioned));
    if (!function->provisioned)
        return -ENOMEM;
    for (size_t i = 0; i < from->provisioned_count; i++)
        add_provisioned(engine, &from->provisioned[i].qualifier);
    for (size_t i = 0; i < from->scaling_count; i++)
        add_provisioned(engine, &from->scaling[i].qualifier);
    for (size_t i = 0; i < scenario->event_count; i++) {
        if (scenario->events[i].what == EVENT_PROVISIONED && scenario->events[i].qualifier.function == index)
            add_provisioned(engine, &scenario->events[i].qualifier);
    }
    return 0;
}

static int add_function(struct engine *engine, int index)
{
    const struct scenario_function *scenario = &engine->scenario->functions[index];
    struct engine_function *function = &engine->functions[index];
    int r = core_function_add(engine->account, span_from(scenario->name), function, &function->core);

    if (r == 0)
        r = add_versions(engine, index);
    if (r == 0)
        r = add_aliases(engine, index);
    if (r == 0)
        r = find_provisioned(engine, index);
    function->report = &engine->report->functions[index];
    function->point = function->report->points;
    function->reserved = -1;
    return r;
}

static int reserve_all(struct engine *engine, struct fault *fault)
{
    for (size_t i = 0; i < engine->scenario->function_count; i++) {
        const struct scenario_function *scenario = &engine->scenario->functions[i];
        enum counting_change change;
        char why[96];
        int32_t number;
        if (scenario->reserved < 0)
            continue;
        change = core_function_set_reserved(engine->functions[i].core, scenario->reserved, &number);
        if (change != COUNTING_OK)
            return fault_set(fault, 0, "functions[%zu].reserved: %d is refused: %s", i, scenario->reserved,
                             describe(change, number, why, sizeof(why)));
        engine->functions[i].reserved = scenario->reserved;
    }
    return 0;
}

static int build_scalings(struct engine *engine)
{
    const struct scenario *scenario = engine->scenario;
    size_t scalings = 0, actions = 0;

    for (size_t i = 0; i < scenario->function_count; i++) {
        scalings += scenario->functions[i].scaling_count;
        for (size_t k = 0; k < scenario->functions[i].scaling_count; k++)
            actions += scenario->functions[i].scaling[k].action_count;
    }
    engine->scalings = calloc(MAX(scalings, (size_t)1), sizeof(*engine->scalings));
    engine->actions = calloc(MAX(actions, (size_t)1), sizeof(*engine->actions));
    if (!engine->scalings || !engine->actions)
        return -ENOMEM;
    for (size_t i = 0; i < scenario->function_count; i++) {
        for (size_t k = 0; k < scenario->functions[i].scaling_count; k++) {
            const struct scenario_scaling *from = &scenario->functions[i].scaling[k];
            struct engine_scaling *scaling = &engine->scalings[engine->scaling_count++];
            scaling->scenario = from;
            scaling->provisioned = add_provisioned(engine, &from->qualifier);
            scaling->bounds = from->bounds;
            scaling_tracking_init(&scaling->tracking, &from->policy);
            for (size_t a = 0; a < from->action_count; a++)
                engine->actions[engine->action_count++] = (struct engine_action){&from->actions[a], scaling};
        }
    }
    return 0;
}

static int build_rollouts(struct engine *engine)
{
    const struct scenario *scenario = engine->scenario;

    engine->rollouts = calloc(MAX(scenario->event_count, (size_t)1), sizeof(*engine->rollouts));
    if (!engine->rollouts)
        return -ENOMEM;
    for (size_t i = 0; i < scenario->event_count; i++) {
        if (scenario->events[i].what == EVENT_ROLLOUT)
            engine->rollouts[engine->rollout_count++].event = &scenario->events[i];
    }
    return 0;
}

int engine_build_functions(struct engine *engine, struct fault *fault)
{
    size_t count = engine->scenario->function_count;
    int r = 0;

    engine->functions = calloc(count, sizeof(*engine->functions));
    engine->account_point = engine->report->account_points;
    if (!engine->functions)
        return out_of_memory(fault);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = add_function(engine, (int)i);
    if (r == 0)
        r = build_scalings(engine);
    if (r == 0)
        r = build_rollouts(engine);
    if (r < 0)
        return fault_set(fault, -r, "%s", strerror(-r));
    return reserve_all(engine, fault);
}

void engine_free_functions(struct engine *engine)
{
    for (size_t i = 0; engine->functions && i < engine->scenario->function_count; i++) {
        free(engine->functions[i].versions);
        free(engine->functions[i].aliases);
        free(engine->functions[i].routings);
        free(engine->functions[i].provisioned);
    }
    free(engine->functions);
    free(engine->scalings);
    free(engine->actions);
    free(engine->rollouts);
}

/* ---- provisioned concurrency ---- */

struct engine_provisioned *engine_provisioned_of(struct engine *engine, int function,
                                                 const struct core_provisioned *core)
{
    struct engine_function *known = &engine->functions[function];

    for (size_t i = 0; i < known->provisioned_count; i++) {
        if (known->provisioned[i].core == core)
            return &known->provisioned[i];
    }
    return NULL;
}

/* A version is provisioned by itself or through aliases, not both; as PutProvisionedConcurrencyConfig has it. */
static bool conflicts(const struct engine_function *function, const struct scenario_qualifier *wanted)
{
    for (size_t i = 0; i < function->provisioned_count; i++) {
        const struct scenario_qualifier *other = &function->provisioned[i].qualifier;
        int alias = MAX(wanted->alias, other->alias), version = MAX(wanted->version, other->version);
        if (!function->provisioned[i].core || (wanted->alias < 0) == (other->alias < 0))
            continue;
        if (function->routings[alias].version == version || function->routings[alias].second == version)
            return true;
    }
    return false;
}

/* 0 takes it away. NULL: done; else why it is refused, in `why`. */
static const char *put_provisioned(struct engine *engine, struct engine_provisioned *provisioned, int32_t count,
                                   char *why, size_t size)
{
    struct core_qualifier qualifier = engine_qualifier(engine, &provisioned->qualifier);
    int32_t number = 0;
    int r = COUNTING_OK;

    if (count && conflicts(&engine->functions[provisioned->qualifier.function], &provisioned->qualifier)) {
        snprintf(why, size, "%s has provisioned concurrency already",
                 provisioned->qualifier.alias < 0 ? "an alias that points to the version" : "a version of the alias");
        return why;
    }
    if (count)
        r = core_provisioned_put(engine->account, &qualifier, count, engine->now_ns, &number);
    else
        core_provisioned_delete(engine->account, &qualifier, engine->now_ns);
    provisioned->core = core_provisioned_find(&qualifier);
    if (r < 0)
        engine->error = r;
    return r == COUNTING_OK ? NULL : describe((enum counting_change)r, number, why, size);
}

int engine_provision(struct engine *engine, bool cold, struct fault *fault)
{
    for (size_t i = 0; i < engine->scenario->function_count; i++) {
        const struct scenario_function *scenario = &engine->scenario->functions[i];
        for (size_t k = 0; k < scenario->provisioned_count; k++) {
            const struct scenario_provisioned *from = &scenario->provisioned[k];
            char text[96];
            const char *why;
            if (from->cold != cold)
                continue;
            why = put_provisioned(engine, add_provisioned(engine, &from->qualifier), from->count, text, sizeof(text));
            if (engine->error)
                return out_of_memory(fault);
            if (why)
                return fault_set(fault, 0, "functions[%zu].provisioned[%zu].count: %d is refused: %s", i, k,
                                 from->count, why);
        }
    }
    return 0;
}

bool engine_is_provisioned(const struct engine *engine)
{
    for (size_t i = 0; i < engine->scenario->function_count; i++) {
        for (size_t k = 0; k < engine->functions[i].provisioned_count; k++) {
            const struct engine_provisioned *provisioned = &engine->functions[i].provisioned[k];
            struct core_provisioned_state state;
            if (!provisioned->core)
                continue;
            core_provisioned_get(provisioned->core, &state);
            if (state.status == CORE_PROVISIONED_IN_PROGRESS)
                return false;
        }
    }
    return true;
}

static void change_provisioned(struct engine *engine, struct engine_provisioned *provisioned, int32_t count,
                               const char *why)
{
    const struct scenario *scenario = engine->scenario;
    const char *function = scenario->functions[provisioned->qualifier.function].name;
    const char *name = scenario_qualifier_name(scenario, &provisioned->qualifier);
    char text[96];
    const char *refusal = put_provisioned(engine, provisioned, count, text, sizeof(text));

    if (refusal)
        engine_note(engine, "provisioned concurrency %d of %s:%s (%s) is refused: %s", count, function, name, why,
                    refusal);
    else
        engine_note(engine, "provisioned concurrency of %s:%s set to %d (%s)", function, name, count, why);
}

/* ---- scaling ---- */

static int32_t capacity_of(const struct engine_provisioned *provisioned)
{
    struct core_provisioned_state state = {0};

    if (provisioned->core)
        core_provisioned_get(provisioned->core, &state);
    return state.requested;
}

/* When an action is due next, at or after `from_s`; by core's clock. */
static void schedule_action(struct engine *engine, struct engine_action *action, int64_t from_s)
{
    const struct scenario_action *scenario = action->scenario;
    int64_t start_s = scenario->start_s < 0 ? engine->scenario->start_s : scenario->start_s;
    int64_t next_s = schedule_next(&scenario->schedule, &scenario->zone, start_s, MAX(from_s, scenario->start_s) - 1);

    if (next_s > scenario->end_s || next_s >= engine->scenario->start_s + engine->scenario->duration_ns / NS_PER_S + 1)
        return;
    engine_add(engine, engine->origin_ns + (next_s - engine->scenario->start_s) * NS_PER_S, PHASE_CHANGE, ENGINE_ACTION,
               action);
}

void engine_act(struct engine *engine, struct engine_action *action)
{
    struct engine_scaling *scaling = action->scaling;
    const struct scenario_action *scenario = action->scenario;
    int64_t now_s = engine->scenario->start_s + (engine->now_ns - engine->origin_ns) / NS_PER_S;
    int32_t capacity = capacity_of(scaling->provisioned), wanted;

    if (!engine->running)
        return;
    if (scenario->minimum >= 0)
        scaling->bounds.minimum = scenario->minimum;
    if (scenario->maximum >= 0)
        scaling->bounds.maximum = scenario->maximum;
    scaling->bounds.maximum = MAX(scaling->bounds.maximum, scaling->bounds.minimum);
    wanted = scaling_clamp(&scaling->bounds, capacity);
    if (wanted != capacity)
        change_provisioned(engine, scaling->provisioned, wanted, "scheduled action");
    schedule_action(engine, action, now_s + 1);
}

void engine_track(struct engine *engine)
{
    for (size_t i = 0; i < engine->scaling_count; i++) {
        struct engine_scaling *scaling = &engine->scalings[i];
        struct engine_provisioned *provisioned = scaling->provisioned;
        int32_t capacity = capacity_of(provisioned), wanted;
        double utilisation = provisioned->utilisation_max;
        if (!scaling->scenario->by_maximum && provisioned->samples)
            utilisation = provisioned->utilisation_sum / (double)provisioned->samples;
        wanted = capacity;
        if (scaling->scenario->tracks && capacity)
            wanted = scaling_track(&scaling->tracking, &scaling->bounds, provisioned->samples > 0, utilisation,
                                   capacity, engine->now_ns);
        provisioned->samples = 0;
        provisioned->utilisation_sum = provisioned->utilisation_max = 0;
        if (wanted != capacity)
            change_provisioned(engine, provisioned, wanted, "target tracking");
    }
}

/* ---- aliases and rollouts ---- */

static void change_routing(struct engine *engine, const struct scenario_qualifier *qualifier,
                           const struct scenario_routing *routing)
{
    const struct scenario_function *scenario = &engine->scenario->functions[qualifier->function];
    struct engine_function *function = &engine->functions[qualifier->function];
    struct routing core = core_routing(function, routing);
    const char *alias = scenario->aliases[qualifier->alias].name;
    const char *version = scenario->versions[routing->version].name;

    if (core_alias_set_routing(function->aliases[qualifier->alias], &core, engine->now_ns) < 0) {
        engine_note(engine, "alias %s:%s cannot be moved", scenario->name, alias);
        return;
    }
    function->routings[qualifier->alias] = *routing;
    if (routing->second < 0)
        engine_note(engine, "alias %s:%s is version %s", scenario->name, alias, version);
    else
        engine_note(engine, "alias %s:%s is version %s, %g%% version %s", scenario->name, alias, version,
                    routing->second_weight * 100, scenario->versions[routing->second].name);
}

/* The alias at the rollout's present weight. */
static void shift(struct engine *engine, struct engine_rollout *rollout)
{
    struct scenario_routing routing = {rollout->old_version, -1, 0};

    if (rollout->rollout.weight >= 1) {
        routing.version = rollout->event->routing.version;
    } else if (rollout->rollout.weight > 0) {
        routing.second = rollout->event->routing.version;
        routing.second_weight = rollout->rollout.weight;
    }
    change_routing(engine, &rollout->event->qualifier, &routing);
}

static void schedule_shift(struct engine *engine, struct engine_rollout *rollout)
{
    int64_t next_ns = rollout_next_deadline(&rollout->rollout);

    if (next_ns < engine->end_ns)
        engine_add(engine, next_ns, PHASE_CHANGE, ENGINE_ROLLOUT, rollout);
}

void engine_roll(struct engine *engine, struct engine_rollout *rollout)
{
    if (!engine->running)
        return;
    if (rollout_advance(&rollout->rollout, engine->now_ns))
        shift(engine, rollout);
    schedule_shift(engine, rollout);
}

static void start_rollout(struct engine *engine, const struct scenario_event *event)
{
    const struct engine_function *function = &engine->functions[event->qualifier.function];

    for (size_t i = 0; i < engine->rollout_count; i++) {
        struct engine_rollout *rollout = &engine->rollouts[i];
        if (rollout->event != event)
            continue;
        rollout->old_version = function->routings[event->qualifier.alias].version;
        if (rollout->old_version == event->routing.version) {
            engine_note(engine, "a rollout to the version that the alias has already does nothing");
            return;
        }
        rollout->started = true;
        rollout_start(&rollout->rollout, &event->plan, engine->now_ns);
        shift(engine, rollout);
        schedule_shift(engine, rollout);
        return;
    }
}

static void roll_back(struct engine *engine, const struct scenario_event *event)
{
    for (size_t i = 0; i < engine->rollout_count; i++) {
        struct engine_rollout *rollout = &engine->rollouts[i];
        if (rollout->started && rollout->event->qualifier.function == event->qualifier.function &&
            rollout->event->qualifier.alias == event->qualifier.alias && rollout_roll_back(&rollout->rollout)) {
            shift(engine, rollout);
            return;
        }
    }
    engine_note(engine, "there is no rollout to roll back");
}

/* ---- events ---- */

static void change_reserved(struct engine *engine, const struct scenario_event *event)
{
    struct engine_function *function = &engine->functions[event->qualifier.function];
    const char *name = engine->scenario->functions[event->qualifier.function].name;
    enum counting_change change;
    char why[96];
    int32_t number;

    if (event->count < 0) {
        core_function_clear_reserved(function->core);
        function->reserved = -1;
        engine_note(engine, "reserved concurrency of %s removed", name);
        return;
    }
    change = core_function_set_reserved(function->core, event->count, &number);
    if (change != COUNTING_OK) {
        engine_note(engine, "reserved concurrency %d of %s is refused: %s", event->count, name,
                    describe(change, number, why, sizeof(why)));
        return;
    }
    function->reserved = event->count;
    engine_note(engine, "reserved concurrency of %s set to %d", name, event->count);
}

static void move_alias(struct engine *engine, const struct scenario_event *event)
{
    struct scenario_routing routing = event->routing;

    if (routing.version < 0)
        routing.version = engine->functions[event->qualifier.function].routings[event->qualifier.alias].version;
    change_routing(engine, &event->qualifier, &routing);
}

static void change_duration(struct engine *engine, const struct scenario_event *event)
{
    const struct scenario_function *scenario = &engine->scenario->functions[event->qualifier.function];
    struct engine_version *version = &engine->functions[event->qualifier.function].versions[event->qualifier.version];

    if (event->has_duration)
        version->duration = event->duration;
    if (event->has_init)
        version->init = event->init;
    engine_note(engine, "%s:%s takes another time now", scenario->name, scenario->versions[version->index].name);
}

static void change_account(struct engine *engine, const struct scenario_event *event)
{
    struct core_limits limits = *core_account_limits(engine->account);

    limits.concurrency = event->count;
    if (core_account_set_limits(engine->account, &limits) == 0)
        engine_note(engine, "account limit set to %d", event->count);
}

void engine_change(struct engine *engine, const struct scenario_event *event)
{
    if (!engine->running)
        return;
    switch (event->what) {
    case EVENT_RESERVED:
        change_reserved(engine, event);
        break;
    case EVENT_PROVISIONED:
        change_provisioned(engine, add_provisioned(engine, &event->qualifier), event->count, "event");
        break;
    case EVENT_ROUTING:
        move_alias(engine, event);
        break;
    case EVENT_DURATION:
        change_duration(engine, event);
        break;
    case EVENT_ROLLOUT:
        start_rollout(engine, event);
        break;
    case EVENT_ROLL_BACK:
        roll_back(engine, event);
        break;
    case EVENT_KILL_WORKER:
        engine_note(engine, "worker %d dies", event->worker);
        engine_kill_worker(engine, event->worker);
        break;
    case EVENT_ACCOUNT:
        change_account(engine, event);
        break;
    }
}

void engine_schedule_changes(struct engine *engine)
{
    const struct scenario *scenario = engine->scenario;

    for (size_t i = 0; i < scenario->event_count; i++) {
        if (scenario->events[i].at_ns < scenario->duration_ns)
            engine_add(engine, engine->origin_ns + scenario->events[i].at_ns, PHASE_CHANGE, ENGINE_CHANGE,
                       &scenario->events[i]);
    }
    for (size_t i = 0; i < engine->action_count; i++)
        schedule_action(engine, &engine->actions[i], scenario->start_s);
}
