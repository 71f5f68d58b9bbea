#include "core/random_program.h"

#include "core/core.h"

#include <stdio.h>
#include <string.h>

enum {
    FUNCTIONS = 2,
    VERSIONS = 3, /* $LATEST, 1, 2 */
    REQUESTS = 96,
    ENVIRONMENTS = 512, /* alive at one time */
    INCARNATIONS = 64,  /* of functions and of PC configurations in one program */
    TAKES = 512,
    LOG = 2048,
};

#define TOKEN (10 * NS_PER_S)

static const char *const FUNCTION_NAMES[FUNCTIONS] = {"f", "g"};
static const char *const VERSION_NAMES[VERSIONS] = {"$LATEST", "1", "2"};

/* ---- the model: what happened, and nothing derived ---- */

/* A function from its creation to its removal; what runs of a removed one is still counted. */
struct model_function {
    struct core_function *core; /* NULL once removed */
    struct core_version *versions[VERSIONS];
    struct core_alias *alias;
    struct routing routing;
    bool has_reserved;
    int32_t reserved;
    int64_t takes[TAKES]; /* when tokens of the scaling rate were taken */
    int take_count;
};

/* PC of one qualifier from its first put to its deletion. */
struct model_config {
    int function;
    struct core_qualifier qualifier; /* NULLs once deleted */
    int32_t size;
};

struct model_request {
    struct core_request core; /* first: effects cast */
    bool in_flight;
    bool waiting;
    int function;
    int slice; /* the configuration whose unit it has, -1: on demand */
    uint64_t order;
};

/* A request that was admitted and counts for the rates. */
struct model_admission {
    int64_t when_ns;
    int function; /* counts in the window of this function, -1: of the account */
    int slice;    /* and in that of this configuration, -1: none */
};

struct program {
    const uint8_t *bytes;
    size_t length, at;
    int64_t now_ns;

    struct placement *placement;
    struct placement_worker *worker;
    struct core_account *account;
    struct core_limits limits;
    bool refuse_starts;

    struct model_function functions[INCARNATIONS];
    int function_count;
    int current[FUNCTIONS]; /* incarnation, -1: does not exist */
    struct model_config configs[INCARNATIONS];
    int config_count;
    struct model_request requests[REQUESTS];
    struct core_environment *environments[ENVIRONMENTS];
    uint64_t idle_order[ENVIRONMENTS];           /* when it last became idle */
    bool was_idle[ENVIRONMENTS];                 /* before the operation */
    struct core_request *was_tied[ENVIRONMENTS]; /* likewise */
    struct model_admission admissions[LOG];
    size_t admission_count;
    uint64_t order;
    int64_t throttles[COUNTING_KINDS], invocations;

    /* of the operation under way */
    int starts;
    bool starts_are_paid, may_refuse, may_fail;
};

static void differ(const struct program *p, const char *what, int line)
{
    fprintf(stderr, "random_program: %s (line %d, byte %zu of %zu)\n", what, line, p->at, p->length);
    abort();
}

#define REQUIRE(p, condition)                \
    do {                                     \
        if (!(condition))                    \
            differ(p, #condition, __LINE__); \
    } while (0)

static unsigned next(struct program *p)
{
    return p->at < p->length ? p->bytes[p->at++] : 0;
}

static int function_of(const struct program *p, const struct core_function *function)
{
    for (int i = 0; i < p->function_count; i++) {
        if (p->functions[i].core == function)
            return i;
    }
    return -1;
}

static int environment_index(const struct program *p, const struct core_environment *environment)
{
    for (int i = 0; i < ENVIRONMENTS; i++) {
        if (p->environments[i] == environment)
            return i;
    }
    return -1;
}

/* ---- what the rules speak of, counted anew ---- */

static int64_t slice_used(const struct program *p, int config)
{
    int64_t used = 0;

    for (int i = 0; i < REQUESTS; i++)
        used += p->requests[i].in_flight && p->requests[i].slice == config;
    return used;
}

static int64_t in_flight_of(const struct program *p, int function)
{
    int64_t found = 0;

    for (int i = 0; i < REQUESTS; i++)
        found += p->requests[i].in_flight && (function < 0 || p->requests[i].function == function);
    return found;
}

static int64_t provisioned_of(const struct program *p, int function)
{
    int64_t sum = 0;

    for (int i = 0; i < p->config_count; i++)
        sum += p->configs[i].function == function ? p->configs[i].size : 0;
    return sum;
}

/* In flight beyond PC. */
static int64_t on_demand_of(const struct program *p, int function)
{
    int64_t found = in_flight_of(p, function);

    for (int i = 0; i < p->config_count; i++) {
        if (p->configs[i].function == function)
            found -= MIN(slice_used(p, i), p->configs[i].size);
    }
    return found;
}

static int64_t reserved_total(const struct program *p)
{
    int64_t sum = 0;

    for (int i = 0; i < p->function_count; i++)
        sum += p->functions[i].has_reserved ? p->functions[i].reserved : 0;
    return sum;
}

static int64_t provisioned_total(const struct program *p)
{
    int64_t sum = 0;

    for (int i = 0; i < p->function_count; i++)
        sum += p->functions[i].has_reserved ? 0 : provisioned_of(p, i);
    return sum;
}

static int64_t unreserved_in_flight(const struct program *p)
{
    int64_t sum = 0;

    for (int i = 0; i < p->function_count; i++)
        sum += p->functions[i].has_reserved ? 0 : on_demand_of(p, i);
    return sum;
}

static int64_t pool_size(const struct program *p)
{
    return p->limits.concurrency - reserved_total(p) - provisioned_total(p);
}

/* Admitted in the sliding second: this tenth and the nine before. */
static int64_t rate_of(const struct program *p, int function, int slice)
{
    int64_t found = 0;

    for (size_t i = 0; i < p->admission_count; i++) {
        const struct model_admission *admission = &p->admissions[i];
        if (p->now_ns / (100 * NS_PER_MS) - admission->when_ns / (100 * NS_PER_MS) < 10)
            found += slice >= 0 ? admission->slice == slice : admission->function == function;
    }
    return found;
}

static bool has_token(const struct program *p, int function)
{
    const struct model_function *f = &p->functions[function];
    int64_t capacity = p->limits.scaling_rate * TOKEN, level = capacity, since_ns = p->now_ns;

    for (int i = 0; i < f->take_count; i++) {
        int64_t elapsed_ns = i ? f->takes[i] - since_ns : 0;
        level = MIN(capacity, level + MIN(elapsed_ns, TOKEN) * p->limits.scaling_rate) - TOKEN;
        since_ns = f->takes[i];
    }
    level = MIN(capacity, level + MIN(p->now_ns - since_ns, TOKEN) * p->limits.scaling_rate);
    return level >= TOKEN;
}

static bool machine_is_full(const struct program *p)
{
    if (p->refuse_starts)
        return true;
    if (!p->worker->config.environments || p->worker->used_environments < p->worker->config.environments)
        return false;
    for (int i = 0; i < ENVIRONMENTS; i++) {
        const struct core_environment *environment = p->environments[i];
        if (environment && environment->state == CORE_ENVIRONMENT_IDLE && environment->origin == CORE_ON_DEMAND)
            return false;
    }
    return true;
}

/* ---- what an invoke must come to ---- */

struct expectation {
    int outcome;
    struct counting_throttle throttle;
    bool spilled, barred, starts;
    int slice;
    struct core_environment *environment; /* SERVED on demand: exactly this one */
    bool provisioned;                     /* SERVED: on a provisioned one */
};

static void expect_throttle(struct expectation *e, enum counting_kind kind, enum counting_reason reason, int64_t limit,
                            int64_t used)
{
    e->outcome = CORE_THROTTLED;
    e->throttle = (struct counting_throttle){kind, reason, limit, used};
}

/* Concurrency, then rate. False: throttled. */
static bool expect_admission(const struct program *p, int function, int config, bool asynchronous,
                             struct expectation *e)
{
    const struct model_function *f = &p->functions[function];
    int64_t set_aside = on_demand_of(p, function) + provisioned_of(p, function);
    int64_t rate = rate_of(p, f->has_reserved ? function : -1, -1);
    int64_t quota = f->has_reserved ? f->reserved : p->limits.concurrency;

    e->barred = config >= 0 && !asynchronous && rate_of(p, 0, config) >= 10 * p->configs[config].size;
    e->spilled = config >= 0 && (e->barred || slice_used(p, config) >= p->configs[config].size);
    e->slice = config >= 0 && !e->spilled ? config : -1;
    if (f->has_reserved && (in_flight_of(p, function) >= f->reserved || (e->slice < 0 && set_aside >= f->reserved)))
        expect_throttle(e, COUNTING_KIND_RESERVED, COUNTING_REASON_RESERVED_CONCURRENCY, f->reserved,
                        MAX(in_flight_of(p, function), set_aside));
    else if (!f->has_reserved && e->slice < 0 && unreserved_in_flight(p) >= pool_size(p))
        expect_throttle(e, COUNTING_KIND_UNRESERVED, COUNTING_REASON_CONCURRENCY, MAX(pool_size(p), 0),
                        unreserved_in_flight(p));
    else if (in_flight_of(p, -1) >= p->limits.concurrency)
        expect_throttle(e, COUNTING_KIND_ACCOUNT, COUNTING_REASON_CONCURRENCY, p->limits.concurrency,
                        in_flight_of(p, -1));
    else if (!asynchronous && rate >= 10 * quota)
        expect_throttle(e, f->has_reserved ? COUNTING_KIND_RESERVED_RATE : COUNTING_KIND_RATE,
                        f->has_reserved ? COUNTING_REASON_RESERVED_RATE : COUNTING_REASON_RATE, 10 * quota, rate);
    else
        return true;
    return false;
}

/* An idle environment of the version, the best one. */
static bool expect_idle(const struct program *p, const struct core_version *version, struct expectation *e)
{
    uint64_t latest = 0;
    bool found = false;

    for (int i = 0; i < ENVIRONMENTS; i++) {
        struct core_environment *environment = p->environments[i];
        if (!environment || environment->version != version || environment->state != CORE_ENVIRONMENT_IDLE)
            continue;
        if (environment->origin == CORE_PROVISIONED) {
            e->provisioned = e->provisioned || !e->barred;
        } else if (!found || p->idle_order[i] > latest) {
            found = true;
            latest = p->idle_order[i];
            e->environment = environment;
        }
    }
    return found || e->provisioned;
}

/* Something comes free soon, or comes for nobody. */
static bool expect_coming(const struct program *p, const struct core_version *version, const struct expectation *e)
{
    bool tied = e->barred || p->limits.mode == ASSIGNMENT_STRICT;
    int64_t coming = 0;

    for (int i = 0; i < ENVIRONMENTS; i++) {
        const struct core_environment *environment = p->environments[i];
        if (!environment || environment->version != version || environment->tied_to)
            continue;
        if (p->limits.finishing_grace_ns && environment->state == CORE_ENVIRONMENT_FINISHING && !environment->claimed &&
            !environment->closed && !environment->retiring && (environment->origin == CORE_ON_DEMAND || !e->barred))
            return true;
        coming += environment->claimed ||
                  (environment->state == CORE_ENVIRONMENT_STARTING && environment->origin == CORE_ON_DEMAND);
    }
    for (int i = 0; i < REQUESTS; i++) {
        const struct model_request *request = &p->requests[i];
        coming -= request->waiting && request->core.version == version && !request->core.tied;
    }
    return !tied && coming > 0;
}

static struct expectation expect_invoke(const struct program *p, int function, const struct core_version *version,
                                        int config, bool asynchronous)
{
    struct expectation e = {.outcome = CORE_WAITING};

    if (!expect_admission(p, function, config, asynchronous, &e))
        return e;
    if (expect_idle(p, version, &e)) {
        e.outcome = CORE_SERVED;
    } else if (!expect_coming(p, version, &e)) {
        if (!has_token(p, function))
            expect_throttle(&e, COUNTING_KIND_SCALING_RATE,
                            p->functions[function].has_reserved ? COUNTING_REASON_RESERVED_RATE : COUNTING_REASON_RATE,
                            p->limits.scaling_rate, p->limits.scaling_rate);
        else if (machine_is_full(p))
            e.outcome = CORE_MACHINE_FULL;
        else
            e.starts = true;
    }
    return e;
}

/* ---- effects ---- */

static int start_environment(struct core_environment *environment, void *context)
{
    struct program *p = context;
    int i = environment_index(p, NULL), function = function_of(p, core_version_function(environment->version));

    if (p->refuse_starts)
        return -ENOMEM;
    REQUIRE(p, i >= 0);
    REQUIRE(p, function >= 0); /* nothing starts for what was removed */
    p->environments[i] = environment;
    p->was_idle[i] = false;
    p->was_tied[i] = NULL;
    p->starts++;
    if (environment->origin == CORE_ON_DEMAND && p->starts_are_paid) {
        struct model_function *f = &p->functions[function];
        REQUIRE(p, has_token(p, function));
        if (f->take_count && p->now_ns - f->takes[f->take_count - 1] >= TOKEN)
            f->take_count = 0; /* the bucket is full again, whatever was before */
        REQUIRE(p, f->take_count < TAKES);
        f->takes[f->take_count++] = p->now_ns;
    }
    return 0;
}

static void stop_environment(struct core_environment *environment, void *context)
{
    struct program *p = context;

    REQUIRE(p, environment_index(p, environment) >= 0);
    REQUIRE(p, environment->state == CORE_ENVIRONMENT_STOPPING);
}

static void end_request(struct program *p, struct model_request *request)
{
    REQUIRE(p, request->in_flight && request->core.state == CORE_REQUEST_DONE);
    request->in_flight = request->waiting = false;
}

/* Only the request that has waited longest of those this environment may serve. */
static void serve(struct core_request *core, struct core_environment *environment, void *context)
{
    struct program *p = context;
    struct model_request *request = (struct model_request *)core;
    int i = environment_index(p, environment);
    bool takes_tied = p->limits.mode == ASSIGNMENT_SHARED && environment->origin == CORE_ON_DEMAND;

    REQUIRE(p, request->waiting && i >= 0);
    REQUIRE(p, !core->barred || environment->origin == CORE_ON_DEMAND);
    if (p->was_tied[i] != core) {
        REQUIRE(p, !core->tied || takes_tied);
        for (int k = 0; k < REQUESTS; k++) {
            const struct model_request *other = &p->requests[k];
            if (other->waiting && other->core.version == core->version && (!other->core.tied || takes_tied))
                REQUIRE(p, other->order >= request->order);
        }
    }
    request->waiting = false;
    p->invocations++;
}

static void refuse(struct core_request *core, const struct counting_throttle *throttle, void *context)
{
    struct program *p = context;
    struct model_request *request = (struct model_request *)core;

    REQUIRE(p, p->may_refuse && request->waiting);
    REQUIRE(p, throttle->kind == COUNTING_KIND_SCALING_RATE && !has_token(p, request->function));
    p->throttles[throttle->kind]++;
    end_request(p, request);
}

static void fail(struct core_request *core, enum core_failure why, void *context)
{
    struct program *p = context;
    struct model_request *request = (struct model_request *)core;

    REQUIRE(p, request->waiting);
    REQUIRE(p, p->may_fail || (why == CORE_FAILURE_MACHINE_FULL && machine_is_full(p)));
    end_request(p, request);
}

static const struct core_effects EFFECTS = {
    .start_environment = start_environment,
    .stop_environment = stop_environment,
    .serve = serve,
    .refuse = refuse,
    .fail = fail,
};

/* ---- operations ---- */

static struct core_version *add_version(struct program *p, struct core_function *function, const char *name)
{
    struct core_version *version;

    REQUIRE(p, core_version_add(function, span_from(name), 100, p, &version) == 0);
    return version;
}

static void add_function(struct program *p, int which)
{
    struct model_function *f;

    if (p->current[which] >= 0 || p->function_count == INCARNATIONS)
        return;
    f = &p->functions[p->function_count];
    *f = (struct model_function){0};
    REQUIRE(p, core_function_add(p->account, span_from(FUNCTION_NAMES[which]), p, &f->core) == 0);
    for (int i = 0; i < VERSIONS; i++)
        f->versions[i] = add_version(p, f->core, VERSION_NAMES[i]);
    f->routing = (struct routing){.version = f->versions[1]};
    REQUIRE(p, core_alias_add(f->core, SPAN("live"), &f->routing, p, &f->alias) == 0);
    p->current[which] = p->function_count++;
}

static int config_of(const struct program *p, struct core_qualifier qualifier)
{
    for (int i = 0; i < p->config_count; i++) {
        if ((qualifier.alias && p->configs[i].qualifier.alias == qualifier.alias) ||
            (qualifier.version && p->configs[i].qualifier.version == qualifier.version))
            return i;
    }
    return -1;
}

static void forget_config(struct program *p, int config)
{
    if (config < 0)
        return;
    p->configs[config].size = 0;
    p->configs[config].qualifier = (struct core_qualifier){0};
}

static void remove_function(struct program *p, int which)
{
    struct model_function *f;

    if (p->current[which] < 0)
        return;
    f = &p->functions[p->current[which]];
    p->may_fail = true;
    core_function_remove(f->core, p->now_ns);
    for (int i = 0; i < p->config_count; i++) {
        if (p->configs[i].function == p->current[which])
            forget_config(p, i);
    }
    f->core = NULL;
    f->has_reserved = false;
    p->current[which] = -1;
}

/* A function that exists, NULL when the chosen one does not. */
static struct model_function *choose_function(struct program *p, unsigned choice)
{
    int i = p->current[choice % FUNCTIONS];

    return i < 0 ? NULL : &p->functions[i];
}

static struct core_qualifier choose_qualifier(const struct model_function *f, unsigned choice)
{
    struct core_qualifier qualifier = {0};

    if (choice % 4 == 3)
        qualifier.alias = f->alias;
    else
        qualifier.version = f->versions[choice % 4];
    return qualifier;
}

static struct model_request *free_request(struct program *p)
{
    for (int i = 0; i < REQUESTS; i++) {
        if (!p->requests[i].in_flight)
            return &p->requests[i];
    }
    return NULL;
}

static void note_admission(struct program *p, struct model_request *request, const struct expectation *e)
{
    request->in_flight = true;
    request->waiting = e->outcome == CORE_WAITING;
    request->slice = e->slice;
    request->order = p->order++;
    p->invocations += e->outcome == CORE_SERVED;
    if (request->core.asynchronous)
        return;
    REQUIRE(p, p->admission_count < LOG);
    p->admissions[p->admission_count++] = (struct model_admission){
        p->now_ns, p->functions[request->function].has_reserved ? request->function : -1, e->slice};
}

static void check_outcome(struct program *p, const struct model_request *request, int outcome,
                          const struct counting_throttle *throttle, const struct expectation *e)
{
    REQUIRE(p, outcome == e->outcome);
    REQUIRE(p, p->starts == e->starts);
    if (outcome == CORE_THROTTLED) {
        REQUIRE(p, throttle->kind == e->throttle.kind && throttle->reason == e->throttle.reason);
        REQUIRE(p, throttle->limit == e->throttle.limit && throttle->used == e->throttle.used);
    }
    if (outcome == CORE_SERVED) {
        REQUIRE(p, e->provisioned ? request->core.environment->origin == CORE_PROVISIONED
                                  : request->core.environment == e->environment);
    }
    if (outcome == CORE_SERVED || outcome == CORE_WAITING)
        REQUIRE(p, request->core.spilled == e->spilled && request->core.barred == e->barred);
}

/* `choice` says what is named, `draw` decides a weighted alias. The request if it was served at once, else NULL. */
static struct model_request *invoke(struct program *p, unsigned choice, uint64_t draw)
{
    struct model_function *f = choose_function(p, choice);
    struct model_request *request = free_request(p);
    struct core_qualifier qualifier;
    struct core_version *version;
    struct counting_throttle throttle;
    struct expectation e;
    int config, outcome;

    if (!f || !request)
        return NULL;
    qualifier = choose_qualifier(f, choice >> 1);
    version = qualifier.version;
    config = config_of(p, qualifier);
    if (qualifier.alias) {
        bool second = f->routing.second && (double)draw / 256 < f->routing.second_weight;
        version = second ? f->routing.second : f->routing.version;
        if (config < 0)
            config = config_of(p, (struct core_qualifier){.version = version});
    }
    core_request_init(&request->core, p);
    request->core.asynchronous = choice & 0x80;
    request->function = (int)(f - p->functions);
    e = expect_invoke(p, request->function, version, config, request->core.asynchronous);
    p->starts_are_paid = true;
    outcome = core_invoke(p->account, &qualifier, &request->core, p->now_ns, draw << 56, &throttle);
    check_outcome(p, request, outcome, &throttle, &e);
    REQUIRE(p, request->core.version == version);
    if (outcome == CORE_THROTTLED)
        p->throttles[throttle.kind]++;
    if (outcome == CORE_SERVED || outcome == CORE_WAITING)
        note_admission(p, request, &e);
    return outcome == CORE_SERVED ? request : NULL;
}

static void do_invoke(struct program *p)
{
    unsigned choice = next(p);

    invoke(p, choice, next(p));
}

/* So many short requests at one moment that a small quota's rate is used up. */
static void do_burst(struct program *p)
{
    unsigned choice = next(p), draw = next(p);

    for (int i = 0; i < 12; i++) {
        struct model_request *request = invoke(p, choice, draw);
        struct core_environment *environment;
        if (!request)
            return;
        environment = request->core.environment;
        core_response_done(&request->core, p->now_ns);
        end_request(p, request);
        core_environment_free(environment, p->now_ns);
    }
}

/* Some environment in one of the states (bits 1 << state), NULL when there is none. */
static struct core_environment *choose_environment(struct program *p, unsigned states)
{
    unsigned start = next(p) * 2;

    for (unsigned i = 0; i < ENVIRONMENTS; i++) {
        struct core_environment *environment = p->environments[(start + i) % ENVIRONMENTS];
        if (environment && (states & (1u << environment->state)))
            return environment;
    }
    for (unsigned i = 0; i < ENVIRONMENTS; i++) {
        if (p->environments[i] && (states & (1u << p->environments[i]->state)))
            return p->environments[i];
    }
    return NULL;
}

static void do_ready(struct program *p)
{
    struct core_environment *environment =
        choose_environment(p, 1 << CORE_ENVIRONMENT_STARTING | 1 << CORE_ENVIRONMENT_STOPPING);
    bool ok = next(p) % 4;

    if (environment)
        core_environment_ready(environment, ok, p->now_ns);
}

static void do_respond(struct program *p)
{
    struct core_environment *environment = choose_environment(p, 1 << CORE_ENVIRONMENT_BUSY);
    struct model_request *request;

    if (!environment)
        return;
    request = (struct model_request *)environment->request;
    core_response_done(&request->core, p->now_ns);
    end_request(p, request);
}

static void do_free(struct program *p)
{
    struct core_environment *environment = choose_environment(p, 1 << CORE_ENVIRONMENT_FINISHING);
    bool retiring = environment && environment->retiring;

    if (!environment)
        return;
    core_environment_free(environment, p->now_ns);
    REQUIRE(p, retiring == (environment->state == CORE_ENVIRONMENT_STOPPING));
}

static void do_gone(struct program *p, unsigned states)
{
    struct core_environment *environment = choose_environment(p, states);
    struct model_request *request;
    bool failed = next(p) % 2;

    if (!environment)
        return;
    request = (struct model_request *)environment->request;
    failed = failed && environment->state == CORE_ENVIRONMENT_STARTING;
    p->environments[environment_index(p, environment)] = NULL;
    p->may_fail = failed;
    if (failed)
        core_environment_failed(environment, p->now_ns);
    else
        core_environment_gone(environment, p->now_ns);
    if (request)
        end_request(p, request);
}

static void do_time(struct program *p)
{
    static const int64_t steps_ns[] = {0,
                                       NS_PER_MS,
                                       5 * NS_PER_MS,
                                       10 * NS_PER_MS,
                                       NS_PER_S,
                                       90 * NS_PER_MS,
                                       10 * NS_PER_S,
                                       100 * NS_PER_MS,
                                       333 * NS_PER_MS};
    unsigned choice = next(p);
    int64_t deadline_ns = core_next_deadline(p->account);

    p->now_ns += steps_ns[choice % ARRAY_SIZE(steps_ns)];
    if (choice >= 200 && deadline_ns != INT64_MAX)
        p->now_ns = MAX(p->now_ns, deadline_ns);
    p->may_refuse = p->starts_are_paid = true;
    core_advance(p->account, p->now_ns);
    REQUIRE(p, core_next_deadline(p->account) > p->now_ns);
}

static void do_reserve(struct program *p)
{
    struct model_function *f = choose_function(p, next(p));
    int32_t count = (int32_t)(next(p) % 24), number = -1, expected_number = -1;
    enum counting_change expected = COUNTING_OK;
    int64_t provisioned, others;

    if (!f)
        return;
    provisioned = provisioned_of(p, (int)(f - p->functions));
    others = pool_size(p) + (f->has_reserved ? f->reserved : provisioned); /* the pool if it had nothing */
    if (count != 0 && count < provisioned) {
        expected = COUNTING_BELOW_PROVISIONED;
        expected_number = (int32_t)provisioned;
    } else if (count != 0 && !(f->has_reserved && count <= f->reserved) &&
               others - count < p->limits.unreserved_minimum) {
        expected = COUNTING_BELOW_MINIMUM;
        expected_number = p->limits.unreserved_minimum;
    }
    REQUIRE(p, core_function_check_reserved(f->core, count, &number) == expected);
    REQUIRE(p, core_function_set_reserved(f->core, count, &number) == expected && number == expected_number);
    if (expected == COUNTING_OK) {
        f->has_reserved = true;
        f->reserved = count;
    }
}

static void do_clear_reserved(struct program *p)
{
    struct model_function *f = choose_function(p, next(p));

    if (!f)
        return;
    core_function_clear_reserved(f->core);
    f->has_reserved = false;
}

static enum counting_change expect_put(const struct program *p, const struct model_function *f, int32_t present,
                                       int32_t count)
{
    int64_t others = provisioned_of(p, (int)(f - p->functions)) - present;

    if (count <= present)
        return COUNTING_OK;
    if (f->has_reserved)
        return others + count > f->reserved ? COUNTING_OVER_RESERVED : COUNTING_OK;
    if (count > pool_size(p) + present)
        return COUNTING_OVER_POOL;
    return pool_size(p) + present - count < p->limits.unreserved_minimum ? COUNTING_BELOW_MINIMUM : COUNTING_OK;
}

static void do_provision(struct program *p)
{
    unsigned choice = next(p);
    struct model_function *f = choose_function(p, choice);
    int32_t count = (int32_t)(1 + next(p) % 8), number;
    struct core_qualifier qualifier;
    enum counting_change expected;
    int config;

    if (!f || p->config_count == INCARNATIONS)
        return;
    qualifier = choose_qualifier(f, choice >> 1);
    config = config_of(p, qualifier);
    expected = expect_put(p, f, config < 0 ? 0 : p->configs[config].size, count);
    REQUIRE(p, core_provisioned_put(p->account, &qualifier, count, p->now_ns, &number) == (int)expected);
    if (expected != COUNTING_OK)
        return;
    if (config < 0)
        config = p->config_count++;
    p->configs[config] = (struct model_config){(int)(f - p->functions), qualifier, count};
}

static void do_unprovision(struct program *p)
{
    unsigned choice = next(p);
    struct model_function *f = choose_function(p, choice);
    struct core_qualifier qualifier;

    if (!f)
        return;
    qualifier = choose_qualifier(f, choice >> 1);
    core_provisioned_delete(p->account, &qualifier, p->now_ns);
    forget_config(p, config_of(p, qualifier));
}

static void do_route(struct program *p)
{
    unsigned choice = next(p);
    struct model_function *f = choose_function(p, choice);

    if (!f)
        return;
    f->routing = (struct routing){.version = f->versions[1 + (choice >> 1) % 2]};
    if (choice & 4) {
        f->routing.second = f->versions[2 - (choice >> 1) % 2];
        f->routing.second_weight = (double)(choice >> 3) / 31;
    }
    REQUIRE(p, core_alias_set_routing(f->alias, &f->routing, p->now_ns) == 0);
}

static void do_retire(struct program *p)
{
    unsigned choice = next(p);
    struct model_function *f = choose_function(p, choice);

    if (f)
        core_version_retire_environments(f->versions[(choice >> 1) % VERSIONS], p->now_ns);
}

static void do_limits(struct program *p)
{
    p->limits.concurrency = (int32_t)(next(p) % 32);
    p->limits.unreserved_minimum = (int32_t)(next(p) % 4);
    REQUIRE(p, core_account_set_limits(p->account, &p->limits) == 0);
}

static void do_operation(struct program *p)
{
    unsigned operation = next(p) % 32;

    switch (operation) {
    case 0 ... 9:
        do_invoke(p);
        break;
    case 10:
        do_burst(p);
        break;
    case 11 ... 14:
        do_ready(p);
        break;
    case 15 ... 17:
        do_respond(p);
        break;
    case 18 ... 20:
        do_free(p);
        break;
    case 21:
        do_gone(p, ~0u);
        break;
    case 22:
        do_gone(p, 1 << CORE_ENVIRONMENT_STOPPING);
        break;
    case 23 ... 24:
        do_time(p);
        break;
    case 25:
        do_reserve(p);
        break;
    case 26:
        do_clear_reserved(p);
        break;
    case 27:
        do_provision(p);
        break;
    case 28:
        do_unprovision(p);
        break;
    case 29:
        do_route(p);
        break;
    case 30:
        do_retire(p);
        break;
    default: {
        unsigned choice = next(p);
        if (choice < 32)
            remove_function(p, (int)(choice % FUNCTIONS));
        else if (choice < 96)
            add_function(p, (int)(choice % FUNCTIONS));
        else if (choice < 128)
            do_limits(p);
        else
            p->refuse_starts = choice >= 224;
    }
    }
}

/* ---- before and after each ---- */

static void look_before(struct program *p)
{
    p->starts = 0;
    p->starts_are_paid = p->may_refuse = p->may_fail = false;
    for (int i = 0; i < ENVIRONMENTS; i++) {
        const struct core_environment *environment = p->environments[i];
        if (!environment)
            continue;
        p->was_idle[i] = environment->state == CORE_ENVIRONMENT_IDLE;
        p->was_tied[i] = environment->tied_to;
    }
}

static void compare_figures(struct program *p)
{
    struct core_account_metrics metrics;
    int64_t environments = 0;

    core_account_read_metrics(p->account, false, &metrics);
    for (int i = 0; i < ENVIRONMENTS; i++)
        environments += p->environments[i] != NULL;
    REQUIRE(p, metrics.environments == environments);
    REQUIRE(p, metrics.concurrency == in_flight_of(p, -1));
    REQUIRE(p, metrics.unreserved == unreserved_in_flight(p));
    REQUIRE(p, metrics.claimed == unreserved_in_flight(p) + reserved_total(p) + provisioned_total(p));
    REQUIRE(p, metrics.claimed_max >= metrics.claimed && metrics.unreserved_max >= metrics.unreserved);
    REQUIRE(p, core_account_unreserved(p->account) == pool_size(p));
    REQUIRE(p, metrics.invocations == p->invocations);
    REQUIRE(p, memcmp(metrics.throttles, p->throttles, sizeof(p->throttles)) == 0);
    for (int i = 0; i < p->function_count; i++) {
        struct core_function_metrics figures;
        if (!p->functions[i].core)
            continue;
        core_function_read_metrics(p->functions[i].core, false, &figures);
        REQUIRE(p, figures.concurrency == in_flight_of(p, i));
    }
}

static void look_after(struct program *p)
{
    size_t kept = 0;

    core_validate(p->account);
    compare_figures(p);
    for (int i = 0; i < ENVIRONMENTS; i++) {
        if (p->environments[i] && p->environments[i]->state == CORE_ENVIRONMENT_IDLE && !p->was_idle[i])
            p->idle_order[i] = p->order++;
    }
    for (size_t i = 0; i < p->admission_count; i++) {
        if (p->now_ns - p->admissions[i].when_ns < 2 * NS_PER_S)
            p->admissions[kept++] = p->admissions[i];
    }
    p->admission_count = kept;
}

static void begin(struct program *p)
{
    struct placement_worker_config config = {.environments = next(p) % 2 ? 0 : 6};

    p->limits = core_limits_default();
    p->limits.concurrency = (int32_t)(1 + next(p) % 30);
    p->limits.unreserved_minimum = (int32_t)(next(p) % 4);
    p->limits.scaling_rate = (int32_t)(1 + next(p) % 24);
    p->limits.provisioning_retries = (int32_t)(next(p) % 3);
    p->limits.idle_timeout_ns = 5 * NS_PER_S;
    p->limits.finishing_grace_ns = next(p) % 8 ? 10 * NS_PER_MS : 0;
    p->limits.mode = next(p) % 4 ? ASSIGNMENT_SHARED : ASSIGNMENT_STRICT;
    p->now_ns = 1000 * NS_PER_S + next(p) * NS_PER_MS;
    REQUIRE(p, placement_new(&p->placement) == 0);
    REQUIRE(p, placement_add_worker(p->placement, &config, &p->worker) == 0);
    REQUIRE(p, core_account_new(&p->limits, p->placement, &EFFECTS, p, &p->account) == 0);
    for (int i = 0; i < FUNCTIONS; i++) {
        p->current[i] = -1;
        add_function(p, i);
    }
}

/* Lets everything end and looks whether anything is left. */
static void end(struct program *p)
{
    look_before(p);
    for (int i = 0; i < FUNCTIONS; i++)
        remove_function(p, i);
    look_after(p);
    for (int i = 0; i < ENVIRONMENTS; i++) {
        struct core_environment *environment = p->environments[i];
        struct model_request *request;
        if (!environment)
            continue;
        request = (struct model_request *)environment->request;
        p->environments[i] = NULL;
        core_environment_gone(environment, p->now_ns);
        if (request)
            end_request(p, request);
    }
    look_after(p);
    REQUIRE(p, in_flight_of(p, -1) == 0);
    REQUIRE(p, p->worker->used_environments == 0 && p->worker->used_memory_mib == 0);
    REQUIRE(p, core_next_deadline(p->account) == INT64_MAX);
}

size_t random_program_run(const uint8_t *bytes, size_t length)
{
    struct program *p = calloc(1, sizeof(*p));
    size_t operations = 0;

    if (!p)
        abort();
    p->bytes = bytes;
    p->length = length;
    begin(p);
    for (; p->at < p->length; operations++) {
        look_before(p);
        do_operation(p);
        look_after(p);
    }
    end(p);
    core_account_free(p->account);
    placement_free(p->placement);
    free(p);
    return operations;
}
