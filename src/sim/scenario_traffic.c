/* Traffic, and changes on the way. */
#include "sim/scenario_read.h"

#include "sim/trace.h"

#include <math.h>

/* ---- traffic ---- */

static int compare_times(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

    return left < right ? -1 : left > right;
}

static void read_at(struct json_reader *reader, const struct json_value *list, struct scenario_traffic *traffic)
{
    bool listed = !json_is_number(list->json);
    size_t count = listed ? json_length(reader, list, 10000000) : 1;
    int64_t *times = scenario_array(reader, count, sizeof(*times));

    traffic->kind = TRAFFIC_TIMES;
    for (size_t i = 0; times && i < count; i++) {
        struct json_value value = listed ? json_element(list, i) : *list;
        times[i] = scenario_read_seconds(reader, &value, 0);
    }
    if (times)
        qsort(times, count, sizeof(*times), compare_times);
    traffic->times_ns = times;
    traffic->time_count = times ? count : 0;
}

/* Reads all of it once, so that what is wrong with it is known before the simulation starts. */
static void check_trace(struct json_reader *reader, const struct json_value *value, const struct scenario *scenario,
                        const struct scenario_traffic *traffic)
{
    struct fault fault = {0};
    struct trace_entry entry;
    struct trace trace;
    int r = trace_open(&trace, traffic->path, &fault);

    if (r < 0) {
        json_reader_fail(reader, value, "%s", fault.text);
        return;
    }
    while ((r = trace_next(&trace, &entry, &fault)) > 0) {
        int function = scenario_find_function(scenario, entry.function);
        struct scenario_qualifier qualifier;
        if (function < 0)
            r = fault_set(&fault, 0, "line %d: there is no function '%.*s'", trace.number, SPAN_ARG(entry.function));
        else if (!scenario_find_qualifier(scenario, function, traffic->requested, &qualifier))
            r = fault_set(&fault, 0, "line %d: function '%.*s' has no version or alias '%s'", trace.number,
                          SPAN_ARG(entry.function), traffic->requested);
        if (r < 0)
            break;
    }
    trace_close(&trace);
    if (r < 0)
        json_reader_fail(reader, value, "%s: %s", traffic->path, fault.text);
}

static void read_trace(struct json_reader *reader, const struct json_value *object, const struct json_value *path,
                       const char *directory, const struct scenario *scenario, struct scenario_traffic *traffic)
{
    struct json_value member = json_member(object, "qualifier");
    const char *name = json_text(reader, path);

    json_expect_object(reader, object, "trace qualifier");
    traffic->kind = TRAFFIC_TRACE;
    traffic->requested = json_name(reader, &member);
    if (!name)
        return;
    traffic->path = *name == '/' || !directory ? name : arena_printf(reader->arena, "%s/%s", directory, name);
    if (!traffic->path)
        json_reader_out_of_memory(reader);
    if (!reader->failed)
        check_trace(reader, path, scenario, traffic);
}

static void read_span(struct json_reader *reader, const struct json_value *object, const struct scenario *scenario,
                      struct scenario_traffic *traffic)
{
    struct json_value member = json_member(object, "from_s");

    traffic->from_ns = scenario_read_seconds(reader, &member, 0);
    member = json_member(object, "to_s");
    traffic->to_ns = scenario_read_seconds(reader, &member, scenario->duration_ns);
    if (!reader->failed && traffic->to_ns <= traffic->from_ns)
        json_reader_fail(reader, json_has(&member) ? &member : object, "must end after it begins");
}

static void read_rate(struct json_reader *reader, const struct json_value *object, const struct scenario *scenario,
                      struct scenario_traffic *traffic)
{
    static const char *const arrivals[] = {"constant", "poisson", NULL};
    struct json_value rps = json_member(object, "rps"), callers = json_member(object, "concurrency");
    struct json_value member = json_member(object, "arrivals");

    json_expect_object(reader, object, "function qualifier from_s to_s rps concurrency arrivals");
    read_span(reader, object, scenario, traffic);
    if (json_has(&rps) == json_has(&callers))
        json_reader_fail(reader, object, "needs one of rps, concurrency, at_s and trace");
    if (json_has(&callers)) {
        traffic->kind = TRAFFIC_CALLERS;
        traffic->callers = json_whole(reader, &callers, 1, 10000000, 1);
        if (json_has(&member))
            json_reader_fail(reader, &member, "goes with rps, not with concurrency");
        return;
    }
    traffic->kind = json_word(reader, &member, arrivals, 0) ? TRAFFIC_POISSON : TRAFFIC_CONSTANT;
    traffic->rps = json_number(reader, &rps, 0, 1e8, 1);
}

static void read_one_traffic(struct json_reader *reader, const struct json_value *value, const char *directory,
                             const struct scenario *scenario, struct scenario_traffic *traffic)
{
    struct json_value at = json_member(value, "at_s"), trace = json_member(value, "trace");
    struct json_value qualifier = json_member(value, "qualifier");
    int function;

    if (json_has(&trace)) {
        read_trace(reader, value, &trace, directory, scenario, traffic);
        return;
    }
    if (!json_is_object(value->json)) {
        json_reader_fail(reader, value, "must be an object");
        return;
    }
    function = scenario_read_function(reader, scenario, value);
    if (reader->failed)
        return;
    traffic->qualifier = scenario_read_qualifier(reader, scenario, function, &qualifier);
    if (json_has(&at)) {
        json_expect_object(reader, value, "function qualifier at_s");
        read_at(reader, &at, traffic);
    } else {
        read_rate(reader, value, scenario, traffic);
    }
}

void scenario_read_traffic(struct json_reader *reader, const struct json_value *root, const char *directory,
                           struct scenario *scenario)
{
    struct json_value list = json_member(root, "traffic");
    size_t count = json_length(reader, &list, SCENARIO_MOST);

    scenario->traffic = scenario_array(reader, count, sizeof(*scenario->traffic));
    for (size_t i = 0; scenario->traffic && i < count && !reader->failed; i++) {
        struct json_value element = json_element(&list, i);
        read_one_traffic(reader, &element, directory, scenario, &scenario->traffic[i]);
        scenario->traffic_count++;
    }
}

/* ---- changes ---- */

static int read_alias(struct json_reader *reader, const struct scenario_function *function,
                      const struct json_value *object)
{
    struct json_value member = json_member(object, "alias");
    const char *name;
    int alias;

    json_require(reader, &member);
    name = json_text(reader, &member);
    alias = name ? scenario_find_alias(function, name) : 0;
    if (alias < 0)
        json_reader_fail(reader, &member, "function '%s' has no alias '%s'", function->name, name);
    return MAX(alias, 0);
}

static void read_reserved(struct json_reader *reader, const struct json_value *object, struct scenario_event *event)
{
    struct json_value member = json_member(object, "reserved");

    json_expect_object(reader, object, "at_s function reserved");
    event->count = (int32_t)json_whole(reader, &member, 0, COUNTING_MAXIMUM, -1);
}

/* {"qualifier", "provisioned": 5} or {"provisioned": {"qualifier", "count": 5}}; 0 or null: none. */
static void read_provisioned(struct json_reader *reader, const struct json_value *object,
                             const struct scenario *scenario, struct scenario_event *event)
{
    struct json_value member = json_member(object, "provisioned"), nested = member;
    struct json_value qualifier = json_member(object, "qualifier");

    json_expect_object(reader, object, "at_s function qualifier provisioned");
    if (json_is_object(nested.json)) {
        json_expect_object(reader, &nested, "qualifier count");
        qualifier = json_member(&nested, "qualifier");
        member = json_member(&nested, "count");
    }
    json_require(reader, &qualifier);
    event->qualifier = scenario_read_qualifier(reader, scenario, event->qualifier.function, &qualifier);
    event->count = (int32_t)json_whole(reader, &member, 0, COUNTING_MAXIMUM, 0);
    if (!reader->failed && !strcmp(scenario_qualifier_name(scenario, &event->qualifier), "$LATEST"))
        json_reader_fail(reader, &qualifier, "$LATEST cannot have provisioned concurrency");
}

static void read_routing(struct json_reader *reader, const struct json_value *object,
                         const struct scenario_function *function, struct scenario_event *event)
{
    json_expect_object(reader, object, "at_s function alias version weights");
    event->qualifier.version = -1;
    event->qualifier.alias = read_alias(reader, function, object);
    /* Without "version" the alias stays on what it points at then. */
    event->routing = scenario_read_routing(reader, function, object, -1);
}

static void read_duration_change(struct json_reader *reader, const struct json_value *object,
                                 const struct scenario *scenario, struct scenario_event *event)
{
    struct json_value duration = json_member(object, "duration_ms"), init = json_member(object, "init_ms");
    struct json_value version = json_member(object, "version");

    json_expect_object(reader, object, "at_s function version duration_ms init_ms");
    event->qualifier = scenario_read_qualifier(reader, scenario, event->qualifier.function, &version);
    if (!reader->failed && event->qualifier.version < 0)
        json_reader_fail(reader, &version, "must be a version, not an alias");
    event->has_duration = json_has(&duration);
    event->duration = scenario_read_duration(reader, &duration, 0);
    event->has_init = json_has(&init);
    event->init = scenario_read_duration(reader, &init, 0);
}

static void read_rollout(struct json_reader *reader, const struct json_value *object,
                         const struct scenario_function *function, struct scenario_event *event)
{
    static const char *const types[] = {"all-at-once", "canary", "linear", NULL};
    struct json_value rollout = json_member(object, "rollout"), member = json_member(&rollout, "version");

    json_expect_object(reader, object, "at_s function alias rollout");
    json_expect_object(reader, &rollout, "version type percentage interval_s");
    event->qualifier.version = -1;
    event->qualifier.alias = read_alias(reader, function, object);
    json_require(reader, &member);
    event->routing = scenario_read_routing(reader, function, &rollout, 0);
    member = json_member(&rollout, "type");
    json_require(reader, &member);
    event->plan.kind = (enum rollout_kind)json_word(reader, &member, types, 0);
    member = json_member(&rollout, "percentage");
    event->plan.fraction = json_number(reader, &member, 1, 99, 10) / 100;
    member = json_member(&rollout, "interval_s");
    event->plan.interval_ns = scenario_read_seconds(reader, &member, 600 * NS_PER_S);
    if (!reader->failed && !rollout_plan_is_valid(&event->plan))
        json_reader_fail(reader, &member, "must be above 0");
}

static void read_roll_back(struct json_reader *reader, const struct json_value *object,
                           const struct scenario_function *function, struct scenario_event *event)
{
    json_expect_object(reader, object, "at_s function alias rollback");
    event->qualifier.version = -1;
    event->qualifier.alias = read_alias(reader, function, object);
}

static void read_kill(struct json_reader *reader, const struct json_value *object, const struct scenario *scenario,
                      struct scenario_event *event)
{
    struct json_value member = json_member(object, "kill_worker");
    const char *name;

    json_expect_object(reader, object, "at_s kill_worker");
    if (!json_is_string(member.json)) {
        event->worker = (int)json_whole(reader, &member, 0, (int64_t)scenario->worker_count - 1, 0);
        return;
    }
    name = json_text(reader, &member);
    for (size_t i = 0; name && i < scenario->worker_count; i++) {
        if (scenario->workers[i].name && !strcmp(scenario->workers[i].name, name)) {
            event->worker = (int)i;
            return;
        }
    }
    json_reader_fail(reader, &member, "there is no worker '%s'", name);
}

static void read_account_change(struct json_reader *reader, const struct json_value *object,
                                struct scenario_event *event)
{
    struct json_value member = json_member(object, "concurrency");

    json_expect_object(reader, object, "at_s concurrency");
    event->count = (int32_t)json_whole(reader, &member, 1, COUNTING_MAXIMUM, 1);
}

/* The member that says what changes, in the order in which they are looked for: an alias has both of the last. */
static const struct {
    const char *member;
    enum scenario_event_kind what;
} CHANGES[] = {
    {"reserved", EVENT_RESERVED},    {"provisioned", EVENT_PROVISIONED}, {"rollout", EVENT_ROLLOUT},
    {"rollback", EVENT_ROLL_BACK},   {"kill_worker", EVENT_KILL_WORKER}, {"concurrency", EVENT_ACCOUNT},
    {"duration_ms", EVENT_DURATION}, {"init_ms", EVENT_DURATION},        {"weights", EVENT_ROUTING},
    {"alias", EVENT_ROUTING},
};

static bool find_change(const struct json_value *object, enum scenario_event_kind *ret_what)
{
    for (size_t i = 0; i < ARRAY_SIZE(CHANGES); i++) {
        if (json_object_get(object->json, CHANGES[i].member)) {
            *ret_what = CHANGES[i].what;
            return true;
        }
    }
    return false;
}

static void read_event(struct json_reader *reader, const struct json_value *value, struct scenario *scenario,
                       struct scenario_event *event)
{
    struct json_value member = json_member(value, "at_s");
    const struct scenario_function *function;

    json_require(reader, &member);
    event->at_ns = scenario_read_seconds(reader, &member, 0);
    if (!reader->failed && !find_change(value, &event->what))
        json_reader_fail(reader, value,
                         "changes nothing; it needs one of reserved, provisioned, weights, duration_ms, init_ms, "
                         "rollout, rollback, kill_worker and concurrency");
    if (reader->failed)
        return;
    if (event->what != EVENT_KILL_WORKER && event->what != EVENT_ACCOUNT)
        event->qualifier.function = scenario_read_function(reader, scenario, value);
    function = &scenario->functions[event->qualifier.function];
    switch (event->what) {
    case EVENT_RESERVED:
        read_reserved(reader, value, event);
        break;
    case EVENT_PROVISIONED:
        read_provisioned(reader, value, scenario, event);
        break;
    case EVENT_ROUTING:
        read_routing(reader, value, function, event);
        break;
    case EVENT_DURATION:
        read_duration_change(reader, value, scenario, event);
        break;
    case EVENT_ROLLOUT:
        read_rollout(reader, value, function, event);
        break;
    case EVENT_ROLL_BACK:
        read_roll_back(reader, value, function, event);
        break;
    case EVENT_KILL_WORKER:
        read_kill(reader, value, scenario, event);
        break;
    case EVENT_ACCOUNT:
        read_account_change(reader, value, event);
        break;
    }
}

void scenario_read_events(struct json_reader *reader, const struct json_value *root, struct scenario *scenario)
{
    struct json_value list = json_member(root, "events");
    size_t count = json_length(reader, &list, SCENARIO_MOST);

    scenario->events = scenario_array(reader, count, sizeof(*scenario->events));
    for (size_t i = 0; scenario->events && i < count && !reader->failed; i++) {
        struct json_value element = json_element(&list, i);
        read_event(reader, &element, scenario, &scenario->events[i]);
        scenario->event_count++;
    }
}
