/* Functions with their versions, aliases, concurrency settings and scaling; and durations. */
#include "sim/scenario_read.h"

#include "base/zone.h"

#include <stdio.h>

#define LONGEST_MS (31 * 86400e3)

/* ---- durations ---- */

static struct distribution read_empirical(struct json_reader *reader, const struct json_value *values)
{
    struct distribution distribution = {.kind = DISTRIBUTION_EMPIRICAL};
    size_t count = json_length(reader, values, 10000000);
    double *list = scenario_array(reader, count, sizeof(*list));

    for (size_t i = 0; list && i < count; i++) {
        struct json_value value = json_element(values, i);
        list[i] = json_number(reader, &value, 0, LONGEST_MS, 0);
    }
    if (!count)
        json_reader_fail(reader, values, json_has(values) ? "must not be empty" : "is missing");
    distribution.values_ms = list;
    distribution.count = count;
    return distribution;
}

static double required_ms(struct json_reader *reader, const struct json_value *object, const char *name, double least)
{
    struct json_value value = json_member(object, name);

    json_require(reader, &value);
    return json_number(reader, &value, least, LONGEST_MS, 1);
}

static struct distribution read_lognormal(struct json_reader *reader, const struct json_value *object)
{
    struct json_value p50_value = json_member(object, "p50");
    double first, second;

    if (json_has(&p50_value)) {
        first = required_ms(reader, object, "p50", 1e-6);
        second = required_ms(reader, object, "p99", first);
        return distribution_lognormal_p(first, second);
    }
    first = required_ms(reader, object, "mean", 1e-6);
    second = required_ms(reader, object, "sd", 0);
    return distribution_lognormal(first, second);
}

struct distribution scenario_read_duration(struct json_reader *reader, const struct json_value *value,
                                           double otherwise_ms)
{
    static const char *const kinds[] = {"constant", "normal", "lognormal", "empirical", NULL};
    static const char *const members[] = {"distribution value", "distribution mean sd", "distribution mean sd p50 p99",
                                          "distribution values"};
    struct json_value kind_value = json_member(value, "distribution"), values = json_member(value, "values");
    int kind;

    if (json_is_array(value->json))
        return read_empirical(reader, value);
    if (!json_is_object(value->json)) {
        if (json_has(value) && !json_is_number(value->json))
            json_reader_fail(reader, value, "must be a number of milliseconds, a list of them, or a distribution");
        return distribution_constant(json_number(reader, value, 0, LONGEST_MS, otherwise_ms));
    }
    json_require(reader, &kind_value);
    kind = json_word(reader, &kind_value, kinds, 0);
    json_expect_object(reader, value, members[kind]);
    if (kind == DISTRIBUTION_LOGNORMAL)
        return read_lognormal(reader, value);
    if (kind == DISTRIBUTION_EMPIRICAL)
        return read_empirical(reader, &values);
    if (kind == DISTRIBUTION_CONSTANT)
        return distribution_constant(required_ms(reader, value, "value", 0));
    return (struct distribution){.kind = DISTRIBUTION_NORMAL,
                                 .a = required_ms(reader, value, "mean", 0),
                                 .b = required_ms(reader, value, "sd", 0)};
}

/* ---- names ---- */

static bool is_digits(const char *text)
{
    return *text && strspn(text, "0123456789") == strlen(text);
}

static bool is_version(const char *name)
{
    return !strcmp(name, "$LATEST") || (is_digits(name) && name[0] != '0' && strlen(name) <= 18);
}

static bool is_word(const char *name, size_t longest)
{
    size_t length = strlen(name);

    return length && length <= longest &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") == length;
}

int scenario_read_function(struct json_reader *reader, const struct scenario *scenario, const struct json_value *value)
{
    struct json_value member = json_member(value, "function");
    const char *name;
    int function;

    json_require(reader, &member);
    name = json_text(reader, &member);
    function = name ? scenario_find_function(scenario, span_from(name)) : 0;
    if (function < 0)
        json_reader_fail(reader, &member, "there is no function '%s'", name);
    return MAX(function, 0);
}

static int read_version_name(struct json_reader *reader, const struct scenario_function *function,
                             const struct json_value *value, int otherwise)
{
    const char *name = json_name(reader, value);
    int version = name ? scenario_find_version(function, name) : otherwise;

    if (name && version < 0)
        json_reader_fail(reader, value, "function '%s' has no version '%s'", function->name, name);
    return version;
}

struct scenario_qualifier scenario_read_qualifier(struct json_reader *reader, const struct scenario *scenario,
                                                  int function, const struct json_value *value)
{
    const char *name = json_name(reader, value);
    struct scenario_qualifier qualifier = {function, 0, -1};

    if (!reader->failed && !scenario_find_qualifier(scenario, function, name, &qualifier)) {
        json_reader_fail(reader, value, "function '%s' has no version or alias '%s'",
                         scenario->functions[function].name, name);
        return (struct scenario_qualifier){function, 0, -1};
    }
    return qualifier;
}

/* ---- versions and aliases ---- */

static void read_version(struct json_reader *reader, const struct json_value *value, const struct json_value *function,
                         struct scenario_version *version)
{
    struct json_value member = json_member(value, "version"), shared;

    json_expect_object(reader, value, "version duration_ms init_ms shutdown_ms memory_mib");
    json_require(reader, &member);
    version->name = json_name(reader, &member);
    if (version->name && !is_version(version->name))
        json_reader_fail(reader, &member, "must be a number from 1, or $LATEST");
    member = json_member(value, "duration_ms");
    shared = json_member(function, "duration_ms");
    version->duration = scenario_read_duration(reader, json_has(&member) ? &member : &shared, 100);
    member = json_member(value, "init_ms");
    shared = json_member(function, "init_ms");
    version->init = scenario_read_duration(reader, json_has(&member) ? &member : &shared, 0);
    member = json_member(value, "shutdown_ms");
    version->shutdown = scenario_read_duration(reader, &member, 0);
    member = json_member(value, "memory_mib");
    version->memory_mib = json_whole(reader, &member, 0, 1 << 20, 128);
}

/* $LATEST is always there: like the version that was published last, unless the document describes it. */
static void add_latest(struct json_reader *reader, const struct json_value *value, struct scenario_function *function)
{
    struct scenario_version *latest = &function->versions[function->version_count];
    struct json_value member;

    if (scenario_find_version(function, "$LATEST") >= 0)
        return;
    if (function->version_count) {
        *latest = latest[-1];
    } else {
        member = json_member(value, "duration_ms");
        latest->duration = scenario_read_duration(reader, &member, 100);
        member = json_member(value, "init_ms");
        latest->init = scenario_read_duration(reader, &member, 0);
        latest->memory_mib = 128;
    }
    latest->name = "$LATEST";
    function->version_count++;
}

static void read_versions(struct json_reader *reader, const struct json_value *value,
                          struct scenario_function *function)
{
    struct json_value list = json_member(value, "versions");
    size_t count = json_length(reader, &list, SCENARIO_MOST);

    function->versions = scenario_array(reader, count + 1, sizeof(*function->versions));
    for (size_t i = 0; function->versions && i < count && !reader->failed; i++) {
        struct json_value element = json_element(&list, i), name;
        struct scenario_version version = {0};
        read_version(reader, &element, value, &version);
        name = json_member(&element, "version");
        if (version.name && scenario_find_version(function, version.name) >= 0)
            json_reader_fail(reader, &name, "version '%s' is there twice", version.name);
        function->versions[function->version_count++] = version;
    }
    if (!reader->failed)
        add_latest(reader, value, function);
}

struct scenario_routing scenario_read_routing(struct json_reader *reader, const struct scenario_function *function,
                                              const struct json_value *object, int present)
{
    struct scenario_routing routing = {.version = present, .second = -1};
    struct json_value member = json_member(object, "version"), weights = json_member(object, "weights");
    const char *key;
    json_t *weight;

    routing.version = read_version_name(reader, function, &member, present);
    if (reader->failed || !json_has(&weights))
        return routing;
    if (!json_is_object(weights.json) || json_object_size(weights.json) > 1) {
        json_reader_fail(reader, &weights, "must be an object with at most one version, as in {\"8\": 0.1}");
        return routing;
    }
    json_object_foreach(weights.json, key, weight)
    {
        struct json_value value = {weight, &weights, key, 0};
        routing.second = scenario_find_version(function, key);
        if (routing.second < 0)
            json_reader_fail(reader, &value, "function '%s' has no version '%s'", function->name, key);
        else if (routing.second == routing.version)
            json_reader_fail(reader, &value, "is the alias's first version as well");
        routing.second_weight = json_number(reader, &value, 0, 1, 0);
    }
    return routing;
}

static void read_aliases(struct json_reader *reader, const struct json_value *value, struct scenario_function *function)
{
    struct json_value list = json_member(value, "aliases");
    size_t count = json_length(reader, &list, SCENARIO_MOST);

    function->aliases = scenario_array(reader, count, sizeof(*function->aliases));
    for (size_t i = 0; function->aliases && i < count && !reader->failed; i++) {
        struct scenario_alias alias = {0};
        struct json_value element = json_element(&list, i), member = json_member(&element, "name"), version;
        json_expect_object(reader, &element, "name version weights");
        json_require(reader, &member);
        alias.name = json_text(reader, &member);
        if (alias.name && (!is_word(alias.name, 128) || is_digits(alias.name)))
            json_reader_fail(reader, &member, "must be letters, digits, - and _, and not digits alone");
        if (alias.name && scenario_find_alias(function, alias.name) >= 0)
            json_reader_fail(reader, &member, "alias '%s' is there twice", alias.name);
        version = json_member(&element, "version");
        json_require(reader, &version);
        alias.routing = scenario_read_routing(reader, function, &element, 0);
        function->aliases[function->alias_count++] = alias;
    }
}

/* ---- provisioned concurrency ---- */

/* A published version or an alias. */
static struct scenario_qualifier read_provisioned_qualifier(struct json_reader *reader, struct scenario *scenario,
                                                            const struct json_value *object)
{
    struct json_value member = json_member(object, "qualifier");
    struct scenario_qualifier qualifier;

    json_require(reader, &member);
    qualifier = scenario_read_qualifier(reader, scenario, (int)scenario->function_count, &member);
    if (!reader->failed && !strcmp(scenario_qualifier_name(scenario, &qualifier), "$LATEST"))
        json_reader_fail(reader, &member, "$LATEST cannot have provisioned concurrency");
    return qualifier;
}

static void read_provisioned(struct json_reader *reader, const struct json_value *value, struct scenario *scenario)
{
    struct scenario_function *function = &scenario->functions[scenario->function_count];
    struct json_value list = json_member(value, "provisioned");
    size_t count = json_length(reader, &list, SCENARIO_MOST);

    function->provisioned = scenario_array(reader, count, sizeof(*function->provisioned));
    for (size_t i = 0; function->provisioned && i < count && !reader->failed; i++) {
        struct scenario_provisioned *provisioned = &function->provisioned[i];
        struct json_value element = json_element(&list, i), member = json_member(&element, "count");
        json_expect_object(reader, &element, "qualifier count ready");
        provisioned->qualifier = read_provisioned_qualifier(reader, scenario, &element);
        json_require(reader, &member);
        provisioned->count = (int32_t)json_whole(reader, &member, 1, COUNTING_MAXIMUM, 1);
        member = json_member(&element, "ready");
        provisioned->cold = !json_bool(reader, &member, true);
        function->provisioned_count++;
    }
}

/* ---- scaling ---- */

static int64_t read_instant(struct json_reader *reader, const struct json_value *value, int64_t otherwise)
{
    const char *text = json_text(reader, value);
    int64_t s = otherwise;

    if (text && schedule_parse_time(span_from(text), &s) < 0)
        json_reader_fail(reader, value, "must be a time in UTC as in 2026-11-27T00:00:00Z");
    return s;
}

static struct schedule_zone read_zone(struct json_reader *reader, const struct json_value *value)
{
    const char *name = json_text(reader, value);
    struct fault fault = {0};
    struct zone *zone;

    if (!name)
        return SCHEDULE_UTC;
    zone = arena_zalloc(reader->arena, sizeof(*zone));
    if (!zone)
        json_reader_out_of_memory(reader);
    else if (zone_load(span_from(name), zone, &fault) < 0)
        json_reader_fail(reader, value, "%s", fault.text);
    return (struct schedule_zone){zone_offset, zone};
}

static void read_action(struct json_reader *reader, const struct json_value *value, struct scenario_action *action)
{
    struct json_value member = json_member(value, "schedule");
    struct fault fault = {0};
    const char *text;

    json_expect_object(reader, value, "name schedule timezone min max start end");
    json_require(reader, &member);
    text = json_text(reader, &member);
    if (text && schedule_parse(span_from(text), &action->schedule, &fault) < 0)
        json_reader_fail(reader, &member, "%s", fault.text);
    member = json_member(value, "name");
    json_text(reader, &member);
    member = json_member(value, "timezone");
    action->zone = read_zone(reader, &member);
    member = json_member(value, "min");
    action->minimum = (int32_t)json_whole(reader, &member, 0, COUNTING_MAXIMUM, -1);
    member = json_member(value, "max");
    action->maximum = (int32_t)json_whole(reader, &member, 0, COUNTING_MAXIMUM, -1);
    if (!reader->failed && action->minimum < 0 && action->maximum < 0)
        json_reader_fail(reader, value, "needs min or max");
    if (action->minimum >= 0 && action->maximum >= 0 && action->minimum > action->maximum)
        json_reader_fail(reader, value, "min is above max");
    member = json_member(value, "start");
    action->start_s = read_instant(reader, &member, -1);
    member = json_member(value, "end");
    action->end_s = read_instant(reader, &member, INT64_MAX);
}

static void read_policy(struct json_reader *reader, const struct json_value *value, struct scenario_scaling *scaling)
{
    static const char *const statistics[] = {"average", "maximum", NULL};
    struct json_value member = json_member(value, "target");

    scaling->tracks = json_has(&member);
    scaling->policy = scaling_policy_default(json_number(reader, &member, 0.1, 0.9, 0.7));
    member = json_member(value, "statistic");
    scaling->by_maximum = json_word(reader, &member, statistics, 0);
    member = json_member(value, "scale_out_cooldown_s");
    scaling->policy.out_cooldown_ns = scenario_read_seconds(reader, &member, 0);
    member = json_member(value, "scale_in_cooldown_s");
    scaling->policy.in_cooldown_ns = scenario_read_seconds(reader, &member, 0);
    member = json_member(value, "disable_scale_in");
    scaling->policy.out_only = json_bool(reader, &member, false);
    member = json_member(value, "low_points");
    scaling->policy.low_points = (int)json_whole(reader, &member, 1, SCALING_POINTS, scaling->policy.low_points);
}

static void read_one_scaling(struct json_reader *reader, const struct json_value *value, struct scenario *scenario,
                             struct scenario_scaling *scaling)
{
    struct json_value member, actions = json_member(value, "schedules");
    size_t count = json_length(reader, &actions, 200);

    json_expect_object(reader, value,
                       "qualifier min max target statistic scale_out_cooldown_s scale_in_cooldown_s disable_scale_in "
                       "low_points schedules");
    scaling->qualifier = read_provisioned_qualifier(reader, scenario, value);
    member = json_member(value, "min");
    scaling->bounds.minimum = (int32_t)json_whole(reader, &member, 0, COUNTING_MAXIMUM, 0);
    member = json_member(value, "max");
    scaling->bounds.maximum =
        (int32_t)json_whole(reader, &member, scaling->bounds.minimum, COUNTING_MAXIMUM, COUNTING_MAXIMUM);
    read_policy(reader, value, scaling);
    scaling->actions = scenario_array(reader, count, sizeof(*scaling->actions));
    for (size_t i = 0; scaling->actions && i < count; i++) {
        struct json_value element = json_element(&actions, i);
        read_action(reader, &element, &scaling->actions[scaling->action_count++]);
    }
}

/* One object, or a list of them for several qualifiers. */
static void read_scaling(struct json_reader *reader, const struct json_value *value, struct scenario *scenario)
{
    struct scenario_function *function = &scenario->functions[scenario->function_count];
    struct json_value scaling = json_member(value, "scaling");
    bool listed = json_is_array(scaling.json);
    size_t count = !json_has(&scaling) ? 0 : listed ? json_length(reader, &scaling, SCENARIO_MOST) : 1;

    function->scaling = scenario_array(reader, count, sizeof(*function->scaling));
    for (size_t i = 0; function->scaling && i < count && !reader->failed; i++) {
        struct json_value element = listed ? json_element(&scaling, i) : scaling;
        read_one_scaling(reader, &element, scenario, &function->scaling[function->scaling_count++]);
    }
}

/* ---- functions ---- */

static void read_function(struct json_reader *reader, const struct json_value *value, struct scenario *scenario)
{
    struct scenario_function *function = &scenario->functions[scenario->function_count];
    struct json_value member = json_member(value, "name");
    const char *name;

    json_expect_object(reader, value, "name reserved versions aliases provisioned scaling duration_ms init_ms");
    json_require(reader, &member);
    name = json_text(reader, &member);
    if (name && !is_word(name, 64))
        json_reader_fail(reader, &member, "must be 1 to 64 letters, digits, - and _");
    if (name && scenario_find_function(scenario, span_from(name)) >= 0)
        json_reader_fail(reader, &member, "function '%s' is there twice", name);
    function->name = name;
    member = json_member(value, "reserved");
    function->reserved = (int32_t)json_whole(reader, &member, 0, COUNTING_MAXIMUM, -1);
    read_versions(reader, value, function);
    read_aliases(reader, value, function);
    read_provisioned(reader, value, scenario);
    read_scaling(reader, value, scenario);
}

void scenario_read_functions(struct json_reader *reader, const struct json_value *root, struct scenario *scenario)
{
    struct json_value list = json_member(root, "functions");
    size_t count = json_length(reader, &list, SCENARIO_MOST);

    json_require(reader, &list);
    if (!count)
        json_reader_fail(reader, &list, "must not be empty");
    scenario->functions = scenario_array(reader, count, sizeof(*scenario->functions));
    for (size_t i = 0; scenario->functions && i < count && !reader->failed; i++) {
        struct json_value element = json_element(&list, i);
        read_function(reader, &element, scenario);
        scenario->function_count++;
    }
}
