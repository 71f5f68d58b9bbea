/*
 * The machine that core's effects and the scenario's traffic make up. An environment is ready init after its start and
 * gone shutdown after it was stopped; a request holds its environment for its duration and frees it with its answer.
 *
 * Nothing is allocated for a request but a place in a slab that is used again, and every source of traffic has just its
 * next arrival in the queue; so memory follows what is in flight.
 */
#include "sim/engine.h"

#include "core/provisioning.h"

#include <math.h>
#include <stdio.h>

/* A caller that keeps up a concurrency tries again after this when it was throttled and has no (more) retries. */
#define CALLER_PAUSE_NS NS_PER_S

/* ---- small things ---- */

void engine_add(struct engine *engine, int64_t when_ns, enum event_phase phase, enum engine_event kind,
                const void *subject)
{
    int r = event_queue_add(&engine->queue, when_ns, phase, kind, (void *)subject);

    if (r < 0)
        engine->error = r;
}

void engine_note(struct engine *engine, const char *format, ...)
{
    struct report *report = engine->report;
    struct report_note *note;
    va_list args;

    if (report->note_count == REPORT_NOTES)
        return;
    note = &report->notes[report->note_count++];
    note->at_ns = engine->now_ns - engine->origin_ns;
    va_start(args, format);
    vsnprintf(note->text, sizeof(note->text), format, args);
    va_end(args);
}

struct core_qualifier engine_qualifier(const struct engine *engine, const struct scenario_qualifier *qualifier)
{
    const struct engine_function *function = &engine->functions[qualifier->function];

    if (qualifier->alias >= 0)
        return (struct core_qualifier){.alias = function->aliases[qualifier->alias]};
    return (struct core_qualifier){.version = function->versions[qualifier->version].core};
}

/* ---- the slab of requests ---- */

static struct engine_request *request_take(struct engine *engine)
{
    struct engine_request *request = engine->free_requests;

    if (!request) {
        struct engine_slab *slab = calloc(1, sizeof(*slab));
        if (!slab) {
            engine->error = -ENOMEM;
            return NULL;
        }
        slab->next = engine->slabs;
        engine->slabs = slab;
        for (size_t i = 0; i < ENGINE_SLAB_REQUESTS; i++) {
            slab->requests[i].next_free = engine->free_requests;
            engine->free_requests = &slab->requests[i];
        }
        request = engine->free_requests;
    }
    engine->free_requests = request->next_free;
    engine->live_requests++;
    return request;
}

static void request_give(struct engine *engine, struct engine_request *request)
{
    request->next_free = engine->free_requests;
    engine->free_requests = request;
    engine->live_requests--;
}

/* ---- records of single requests ---- */

static void record(struct engine *engine, const struct engine_request *request, enum report_verdict verdict,
                   const struct counting_throttle *throttle)
{
    const struct engine_version *version = core_version_owner(request->core.version);
    struct report *report = engine->report;
    struct report_request seen;

    if (!engine->options->on_request && report->too_many_requests)
        return;
    seen = (struct report_request){
        .number = request->number,
        .attempt = request->attempt,
        .function = request->function,
        .version = version->index,
        .arrived_ns = request->arrived_ns - engine->origin_ns,
        .started_ns = request->started_ns - engine->origin_ns,
        .ended_ns = engine->now_ns - engine->origin_ns,
        .verdict = verdict,
        .environment = verdict == REPORT_SERVED ? request->environment : -1,
        .cold = request->core.cold,
        .provisioned = request->on_provisioned,
        .spilled = request->core.spilled,
    };
    if (throttle)
        seen.throttle = *throttle;
    if (engine->options->on_request)
        engine->options->on_request(&seen, engine->options->context);
    if (report->request_count == REPORT_LANE_REQUESTS)
        report->too_many_requests = true;
    else
        report->requests_seen[report->request_count++] = seen;
}

/* ---- a request's way ---- */

/* The request has its environment. */
static void begin(struct engine *engine, struct engine_request *request)
{
    const struct engine_environment *environment = request->core.environment->owner;
    struct core_provisioned *provisioned = request->core.provisioned;

    request->started_ns = engine->now_ns;
    request->environment = environment->number;
    request->on_provisioned = request->core.environment->origin == CORE_PROVISIONED;
    if (request->duration_ns < 0)
        request->duration_ns = distribution_draw_ns(&environment->version->duration, &request->source->prng);
    request->point->cold_starts += request->core.cold;
    if (provisioned) {
        struct engine_provisioned *known = engine_provisioned_of(engine, request->function, provisioned);
        double utilisation = MIN(1, provisioned->metrics.executions / (double)provisioned->target);
        request->point->provisioned_invocations += request->on_provisioned;
        request->point->spillover_invocations += !request->on_provisioned;
        request->point->utilisation_sum += utilisation;
        if (known) {
            known->samples++;
            known->utilisation_sum += utilisation;
            known->utilisation_max = MAX(known->utilisation_max, utilisation);
        }
    }
    engine_add(engine, engine->now_ns + request->duration_ns, PHASE_MACHINE, ENGINE_RESPONSE, request);
}

static int64_t backoff_ns(struct engine *engine, int attempt)
{
    const struct scenario_retry *retry = &engine->scenario->retry;
    double wait = MIN((double)retry->cap_ns, ldexp((double)retry->base_ns, MIN(attempt, 1000)));

    return (int64_t)(retry->jitter ? wait * prng_uniform(&engine->prng) : wait);
}

/* A caller that keeps up a concurrency sends its next request at `when_ns`; anybody else is done. */
static void leave(struct engine *engine, struct engine_request *request, int64_t when_ns)
{
    const struct scenario_traffic *traffic = request->source->traffic;

    if (traffic->kind != TRAFFIC_CALLERS || !engine->running ||
        when_ns >= MIN(engine->end_ns, engine->origin_ns + traffic->to_ns)) {
        request_give(engine, request);
        return;
    }
    request->attempt = -1; /* a new request */
    engine_add(engine, when_ns, PHASE_ARRIVAL, ENGINE_AGAIN, request);
}

/* The attempt was refused or failed: again later, or not. */
static void retry(struct engine *engine, struct engine_request *request)
{
    const struct scenario_retry *policy = &engine->scenario->retry;
    struct report_function *report = engine->functions[request->function].report;
    int64_t when_ns;

    if (request->attempt + 1 < policy->attempts && engine->running) {
        when_ns = engine->now_ns + backoff_ns(engine, request->attempt);
        if (when_ns < engine->end_ns) {
            request->attempt++;
            report->retries++;
            engine_add(engine, when_ns, PHASE_ARRIVAL, ENGINE_AGAIN, request);
            return;
        }
    }
    report->gave_up++;
    leave(engine, request, engine->now_ns + CALLER_PAUSE_NS);
}

static void throttled(struct engine *engine, struct engine_request *request, const struct counting_throttle *throttle)
{
    request->point->throttles[throttle->reason]++;
    record(engine, request, REPORT_THROTTLED, throttle);
    retry(engine, request);
}

static void failed(struct engine *engine, struct engine_request *request)
{
    request->point->errors++;
    record(engine, request, REPORT_ERROR, NULL);
    retry(engine, request);
}

static void invoke(struct engine *engine, struct engine_request *request)
{
    struct counting_throttle throttle;
    int r;

    request->arrived_ns = request->started_ns = engine->now_ns;
    request->point = engine->functions[request->function].point;
    request->on_provisioned = false;
    core_request_init(&request->core, NULL);
    r = core_invoke(engine->account, &request->qualifier, &request->core, engine->now_ns,
                    request->qualifier.alias ? prng_next(&engine->prng) : 0, &throttle);
    switch (r) {
    case CORE_SERVED:
        request->point->invocations++;
        begin(engine, request);
        return;
    case CORE_WAITING:
        request->point->invocations++;
        return;
    case CORE_THROTTLED:
        throttled(engine, request, &throttle);
        return;
    case CORE_MACHINE_FULL:
        failed(engine, request);
        return;
    default:
        engine->error = r;
    }
}

static void respond(struct engine *engine, struct engine_request *request)
{
    struct report_point *point = request->point;
    struct report_function *report = engine->functions[request->function].report;
    const struct engine_version *version;
    struct core_environment *environment = request->core.environment;

    if (request->dead) {
        request_give(engine, request);
        return;
    }
    version = core_version_owner(request->core.version);
    point->duration_ns += request->duration_ns;
    point->duration_max_ns = MAX(point->duration_max_ns, request->duration_ns);
    point->ended++;
    report->version_invocations[version->index]++;
    report->busy_ns += (double)MAX(0, MIN(engine->now_ns, engine->end_ns) - request->arrived_ns);
    histogram_add(&report->latency, engine->now_ns - request->first_ns);
    record(engine, request, REPORT_SERVED, NULL);
    core_response_done(&request->core, engine->now_ns);
    core_environment_free(environment, engine->now_ns);
    leave(engine, request, engine->now_ns);
}

static void again(struct engine *engine, struct engine_request *request)
{
    if (!engine->running) {
        engine->functions[request->function].report->gave_up += request->attempt >= 0;
        request_give(engine, request);
        return;
    }
    if (request->attempt < 0) {
        request->attempt = 0;
        request->number = engine->request_count++;
        request->first_ns = engine->now_ns;
        request->duration_ns = -1;
    }
    invoke(engine, request);
}

/* ---- effects ---- */

static int start_environment(struct core_environment *core, void *context)
{
    struct engine *engine = context;
    struct report *report = engine->report;
    struct engine_environment *environment = calloc(1, sizeof(*environment));

    if (!environment) {
        engine->error = -ENOMEM;
        return -ENOMEM;
    }
    environment->core = core;
    environment->version = core_version_owner(core->version);
    environment->number = engine->environment_count++;
    environment->starting = true;
    core->owner = environment;
    list_push_back(&engine->environments, &environment->link);
    engine->functions[environment->version->function].report->environments_made[core->origin]++;
    if (report->environment_count == REPORT_LANES) {
        report->too_many_environments = true;
    } else {
        environment->lane = &report->environments[report->environment_count++];
        *environment->lane = (struct report_environment){.number = environment->number,
                                                         .function = environment->version->function,
                                                         .version = environment->version->index,
                                                         .provisioned = core->origin == CORE_PROVISIONED,
                                                         .started_ns = engine->now_ns,
                                                         .ready_ns = INT64_MAX,
                                                         .stopped_ns = INT64_MAX,
                                                         .gone_ns = INT64_MAX};
    }
    engine_add(engine, engine->now_ns + distribution_draw_ns(&environment->version->init, &engine->prng), PHASE_MACHINE,
               ENGINE_READY, environment);
    return 0;
}

static void stop_environment(struct core_environment *core, void *context)
{
    struct engine *engine = context;
    struct engine_environment *environment = core->owner;

    if (environment->lane)
        environment->lane->stopped_ns = engine->now_ns;
    engine->functions[environment->version->function].report->environments_ended++;
    engine_add(engine, engine->now_ns + distribution_draw_ns(&environment->version->shutdown, &engine->prng),
               PHASE_MACHINE, ENGINE_GONE, environment);
}

static void serve(struct core_request *request, struct core_environment *environment, void *context)
{
    (void)environment;
    begin(context, (struct engine_request *)request);
}

/* It was counted as an invocation when it was admitted. */
static void refuse(struct core_request *core, const struct counting_throttle *throttle, void *context)
{
    struct engine_request *request = (struct engine_request *)core;

    request->point->invocations--;
    throttled(context, request, throttle);
}

static void fail(struct core_request *core, enum core_failure why, void *context)
{
    struct engine_request *request = (struct engine_request *)core;

    (void)why;
    request->point->invocations--;
    failed(context, request);
}

static void provisioned_changed(struct core_provisioned *core, void *context)
{
    struct engine *engine = context;
    struct core_provisioned_state state;

    core_provisioned_get(core, &state);
    if (engine->running)
        engine_note(engine, "provisioned concurrency of %.*s: %s, %d allocated",
                    SPAN_ARG(core_function_name(core->function)),
                    state.status == CORE_PROVISIONED_READY ? "READY" : "FAILED", state.allocated);
}

static const struct core_effects EFFECTS = {
    .start_environment = start_environment,
    .stop_environment = stop_environment,
    .serve = serve,
    .refuse = refuse,
    .fail = fail,
    .provisioned_changed = provisioned_changed,
};

/* ---- environments ---- */

static void forget(struct engine *engine, struct engine_environment *environment)
{
    if (environment->lane)
        environment->lane->gone_ns = engine->now_ns;
    environment->core = NULL;
    list_remove(&environment->link);
    if (!environment->starting)
        free(environment);
}

static void ready(struct engine *engine, struct engine_environment *environment)
{
    environment->starting = false;
    if (!environment->core) {
        free(environment);
        return;
    }
    if (environment->lane)
        environment->lane->ready_ns = engine->now_ns;
    core_environment_ready(environment->core, true, engine->now_ns);
}

static void gone(struct engine *engine, struct engine_environment *environment)
{
    struct core_environment *core = environment->core;

    forget(engine, environment);
    core_environment_gone(core, engine->now_ns);
}

/* The request that it runs fails; what it would have answered is still in the queue, so a retry goes on as a copy. */
static void die(struct engine *engine, struct engine_environment *environment)
{
    struct core_environment *core = environment->core;
    struct engine_request *request =
        core->state == CORE_ENVIRONMENT_BUSY ? (struct engine_request *)core->request : NULL;
    struct engine_request *copy = request ? request_take(engine) : NULL;

    engine->functions[environment->version->function].report->environments_killed++;
    if (copy) {
        struct engine_request *next = copy->next_free;
        *copy = *request;
        copy->next_free = next;
        request->dead = true;
    }
    forget(engine, environment);
    core_environment_gone(core, engine->now_ns);
    if (copy)
        failed(engine, copy);
}

void engine_kill_worker(struct engine *engine, int worker)
{
    placement_close_worker(engine->workers[worker]);
    LIST_FOREACH (link, &engine->environments) {
        struct engine_environment *environment = CONTAINER_OF(link, struct engine_environment, link);
        if (environment->core->lease.worker == engine->workers[worker] &&
            environment->core->state != CORE_ENVIRONMENT_STOPPING)
            die(engine, environment);
    }
}

/* ---- traffic ---- */

/* When the source's next request arrives, by the scenario's clock; INT64_MAX: never again. */
static int64_t next_arrival(struct engine *engine, struct engine_source *source)
{
    const struct scenario_traffic *traffic = source->traffic;
    int64_t at_ns = INT64_MAX;

    switch (traffic->kind) {
    case TRAFFIC_CONSTANT:
        if (traffic->rps > 0)
            at_ns = traffic->from_ns + (int64_t)((double)source->sent * (1e9 / traffic->rps) + 0.5);
        break;
    case TRAFFIC_POISSON:
        if (traffic->rps <= 0)
            break;
        source->next_s += -log1p(-prng_uniform(&source->prng)) / traffic->rps;
        at_ns = traffic->from_ns + (int64_t)(source->next_s * 1e9);
        break;
    case TRAFFIC_CALLERS:
        return source->sent < traffic->callers ? traffic->from_ns : INT64_MAX;
    case TRAFFIC_TIMES:
        return (size_t)source->sent < traffic->time_count ? traffic->times_ns[source->sent] : INT64_MAX;
    case TRAFFIC_TRACE: {
        int r = trace_next(&source->trace, &source->entry, engine->fault);
        if (r < 0)
            engine->error = r;
        return r > 0 ? source->entry.at_ns : INT64_MAX;
    }
    }
    return at_ns < traffic->to_ns ? at_ns : INT64_MAX;
}

static void schedule_arrival(struct engine *engine, struct engine_source *source)
{
    int64_t at_ns = next_arrival(engine, source);

    if (at_ns < engine->scenario->duration_ns)
        engine_add(engine, engine->origin_ns + at_ns, PHASE_ARRIVAL, ENGINE_ARRIVAL, source);
}

/* What a line of a trace asks for. */
static void aim(struct engine *engine, struct engine_source *source, struct engine_request *request)
{
    struct scenario_qualifier qualifier = source->traffic->qualifier;

    request->duration_ns = -1;
    request->qualifier = source->qualifier;
    if (source->traffic->kind == TRAFFIC_TRACE) {
        int function = scenario_find_function(engine->scenario, source->entry.function);
        scenario_find_qualifier(engine->scenario, MAX(function, 0), source->traffic->requested, &qualifier);
        request->qualifier = engine_qualifier(engine, &qualifier);
        request->duration_ns = source->entry.duration_ns;
    }
    request->function = qualifier.function;
}

static void arrive(struct engine *engine, struct engine_source *source)
{
    struct engine_request *request;

    if (!engine->running)
        return;
    request = request_take(engine);
    if (!request)
        return;
    request->source = source;
    request->dead = false;
    request->attempt = 0;
    request->number = engine->request_count++;
    request->first_ns = engine->now_ns;
    aim(engine, source, request);
    source->sent++;
    schedule_arrival(engine, source);
    invoke(engine, request);
}

static int open_sources(struct engine *engine, struct fault *fault)
{
    const struct scenario *scenario = engine->scenario;

    engine->sources = calloc(MAX(scenario->traffic_count, (size_t)1), sizeof(*engine->sources));
    if (!engine->sources)
        return -ENOMEM;
    for (size_t i = 0; i < scenario->traffic_count; i++) {
        struct engine_source *source = &engine->sources[i];
        int r;
        source->traffic = &scenario->traffic[i];
        /* Each source draws its own numbers: a change to one leaves the others as they were. */
        prng_init(&source->prng, engine->options->seed ^ (i + 1) * UINT64_C(0x9e3779b97f4a7c15));
        if (source->traffic->kind != TRAFFIC_TRACE) {
            source->qualifier = engine_qualifier(engine, &source->traffic->qualifier);
            continue;
        }
        r = trace_open(&source->trace, source->traffic->path, fault);
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- running ---- */

static void happen(struct engine *engine, const struct event *event)
{
    switch ((enum engine_event)event_kind(event)) {
    case ENGINE_RESPONSE:
        respond(engine, event->subject);
        break;
    case ENGINE_READY:
        ready(engine, event->subject);
        break;
    case ENGINE_GONE:
        gone(engine, event->subject);
        break;
    case ENGINE_STEP:
        engine_step(engine);
        break;
    case ENGINE_CHANGE:
        engine_change(engine, event->subject);
        break;
    case ENGINE_ACTION:
        engine_act(engine, event->subject);
        break;
    case ENGINE_ROLLOUT:
        engine_roll(engine, event->subject);
        break;
    case ENGINE_ARRIVAL:
        arrive(engine, event->subject);
        break;
    case ENGINE_AGAIN:
        again(engine, event->subject);
        break;
    }
}

/* One event or one call of core's. False: nothing is to come. */
static bool turn(struct engine *engine)
{
    int64_t event_ns = event_queue_next(&engine->queue), deadline_ns = core_next_deadline(engine->account);
    struct event event;

    if (deadline_ns == INT64_MAX && event_ns == INT64_MAX)
        return false;
    if (deadline_ns <= event_ns) {
        engine->now_ns = MAX(engine->now_ns, deadline_ns);
        core_advance(engine->account, engine->now_ns);
        return true;
    }
    event = event_queue_take(&engine->queue);
    engine->now_ns = event.when_ns;
    happen(engine, &event);
    return true;
}

/* PC that is to be READY at 0 s, before it. The origin is a whole second, so that the slots of the request rate begin
 * where the scenario's seconds do. */
static int prepare(struct engine *engine, struct fault *fault)
{
    int r = engine_provision(engine, false, fault);

    if (r < 0)
        return r;
    while (!engine->error && !engine_is_provisioned(engine) && turn(engine))
        continue;
    engine->origin_ns = (engine->now_ns / NS_PER_S + 1) * NS_PER_S;
    engine->end_ns = engine->origin_ns + engine->scenario->duration_ns;
    engine->now_ns = engine->origin_ns;
    return engine->error;
}

static void run(struct engine *engine)
{
    engine->running = true;
    engine_schedule_changes(engine);
    for (size_t i = 0; i < engine->scenario->traffic_count; i++)
        schedule_arrival(engine, &engine->sources[i]);
    engine_add(engine, MIN(engine->origin_ns + engine->report->step_ns, engine->end_ns), PHASE_FIGURES, ENGINE_STEP,
               NULL);
    while (!engine->error && (engine->running || engine->live_requests) && turn(engine))
        continue;
    engine->report->requests = engine->request_count;
}

/* ---- making and ending ---- */

static int build_workers(struct engine *engine)
{
    const struct scenario *scenario = engine->scenario;
    int r = placement_new(&engine->placement);

    engine->workers = calloc(scenario->worker_count, sizeof(struct placement_worker *));
    if (r < 0 || !engine->workers)
        return -ENOMEM;
    for (size_t i = 0; r == 0 && i < scenario->worker_count; i++) {
        const struct scenario_worker *worker = &scenario->workers[i];
        struct placement_worker_config config = {.zone = worker->zone,
                                                 .memory_mib = worker->memory_mib,
                                                 .environments = worker->environments,
                                                 .name = worker->name};
        r = placement_add_worker(engine->placement, &config, &engine->workers[i]);
    }
    return r;
}

static int build(struct engine *engine, struct fault *fault)
{
    int r = build_workers(engine);

    if (r == 0)
        r = core_account_new(&engine->scenario->limits, engine->placement, &EFFECTS, engine, &engine->account);
    if (r < 0)
        return r;
    r = engine_build_functions(engine, fault);
    if (r == 0)
        r = open_sources(engine, fault);
    if (r == 0)
        r = prepare(engine, fault);
    if (r == 0)
        r = engine_provision(engine, true, fault);
    return r;
}

static void tear_down(struct engine *engine)
{
    /* What core still holds of environments is forgotten; what is starting or stopping is in no list of ours only when
     * it is gone already and its READY was still to come. */
    while (!event_queue_is_empty(&engine->queue)) {
        struct event event = event_queue_take(&engine->queue);
        struct engine_environment *environment = event.subject;
        if (event_kind(&event) == ENGINE_READY && !environment->core)
            free(environment);
    }
    LIST_FOREACH (link, &engine->environments) {
        struct engine_environment *environment = CONTAINER_OF(link, struct engine_environment, link);
        list_remove(link);
        free(environment);
    }
    core_account_free(engine->account);
    placement_free(engine->placement);
    free(engine->workers);
    for (size_t i = 0; engine->sources && i < engine->scenario->traffic_count; i++)
        trace_close(&engine->sources[i].trace);
    free(engine->sources);
    engine_free_functions(engine);
    while (engine->slabs) {
        struct engine_slab *slab = engine->slabs;
        engine->slabs = slab->next;
        free(slab);
    }
    event_queue_deinit(&engine->queue);
}

/* Environments were noted by core's clock. */
static void shift_lanes(struct engine *engine)
{
    struct report *report = engine->report;

    for (size_t i = 0; i < report->environment_count; i++) {
        struct report_environment *lane = &report->environments[i];
        int64_t *times[] = {&lane->started_ns, &lane->ready_ns, &lane->stopped_ns, &lane->gone_ns};
        for (size_t k = 0; k < ARRAY_SIZE(times); k++) {
            if (*times[k] != INT64_MAX)
                *times[k] -= engine->origin_ns;
        }
    }
}

int simulation_run(const struct scenario *scenario, const struct simulation_options *options,
                   struct report **ret_report, struct fault *fault)
{
    struct report *report CLEANUP(report_cleanup) = report_new(scenario);
    struct engine engine = {.scenario = scenario, .options = options, .report = report, .fault = fault};
    int r;

    if (!report)
        return fault_set(fault, ENOMEM, "out of memory");
    report->seed = options->seed;
    list_init(&engine.environments);
    prng_init(&engine.prng, options->seed);
    r = build(&engine, fault);
    if (r == 0) {
        run(&engine);
        r = engine.error;
    }
    if (r == 0) {
        shift_lanes(&engine);
        engine_total(&engine);
    }
    tear_down(&engine);
    if (r == -ENOMEM)
        return fault_set(fault, ENOMEM, "out of memory");
    if (r < 0)
        return r;
    *ret_report = TAKE_PTR(report);
    return 0;
}
