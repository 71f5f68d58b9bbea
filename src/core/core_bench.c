/*
 * How long a decision takes, with 1 and with 100,000 functions, of which some are busy, in a random order: admit and
 * assign a warm request ("decision"), and that together with its release and the return of its environment ("whole").
 * Gives nanoseconds of processor time per request (so that a busy machine counts little against it), the median of some
 * rounds. When all of 100,000 functions are equally busy, every request finds its function, version and environment out
 * of the caches, and what is measured is the memory: so the last figure is what one access to memory takes on this
 * machine at this moment. Not a test: run it by hand, or `core_bench json` from `make bench`.
 */
#include "core/core.h"

#include "base/random.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

struct bench {
    struct placement *placement;
    struct core_account *account;
    struct core_version **versions;
    size_t count;
    struct core_environment *started;
};

static int start_environment(struct core_environment *environment, void *context)
{
    struct bench *bench = context;

    bench->started = environment;
    return 0;
}

static void stop_environment(struct core_environment *environment, void *context)
{
    (void)environment;
    (void)context;
}

static void serve(struct core_request *request, struct core_environment *environment, void *context)
{
    (void)request;
    (void)environment;
    (void)context;
}

static void refuse(struct core_request *request, const struct counting_throttle *throttle, void *context)
{
    (void)request;
    (void)throttle;
    (void)context;
}

static void fail(struct core_request *request, enum core_failure why, void *context)
{
    (void)request;
    (void)why;
    (void)context;
}

static const struct core_effects EFFECTS = {start_environment, stop_environment, serve, refuse, fail, NULL, NULL};

static void check(bool ok)
{
    if (!ok) {
        fputs("core_bench: unexpected outcome\n", stderr);
        exit(1);
    }
}

enum { ROUNDS = 11, BATCHES = 1000, BATCH = 256 };

struct times {
    double decision_ns, whole_ns;
};

static int64_t processor_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * NS_PER_S + time.tv_nsec;
}

static void invoke(struct bench *bench, struct core_version *version, struct core_request *request, int64_t now_ns,
                   int expected)
{
    struct core_qualifier qualifier = {.version = version};
    struct counting_throttle throttle;

    core_request_init(request, NULL);
    check(core_invoke(bench->account, &qualifier, request, now_ns, 0, &throttle) == expected);
}

static void release(struct core_request *request, int64_t now_ns)
{
    struct core_environment *environment = request->environment;

    core_response_done(request, now_ns);
    core_environment_free(environment, now_ns);
}

/* Idle environments for so many requests at a time. */
static void warm_up(struct bench *bench, struct core_version *version, int environments, int64_t now_ns)
{
    struct core_request requests[BATCH];

    for (int i = 0; i < environments; i++) {
        invoke(bench, version, &requests[i], now_ns, CORE_WAITING);
        core_environment_ready(bench->started, true, now_ns);
    }
    for (int i = 0; i < environments; i++)
        release(&requests[i], now_ns);
}

/* A batch needs an environment for each of its requests: of one function, or of as many as there are in the batch. */
static void setup(struct bench *bench, size_t count, size_t busy)
{
    struct core_limits limits = core_limits_default();
    struct placement_worker_config config = {.zone = 0};
    struct placement_worker *worker;

    *bench = (struct bench){.count = count};
    limits.concurrency = COUNTING_MAXIMUM;
    bench->versions = calloc(count, sizeof(struct core_version *));
    check(bench->versions && placement_new(&bench->placement) == 0 &&
          placement_add_worker(bench->placement, &config, &worker) == 0 &&
          core_account_new(&limits, bench->placement, &EFFECTS, bench, &bench->account) == 0);
    for (size_t i = 0; i < count; i++) {
        struct core_function *function;
        char name[32];
        snprintf(name, sizeof(name), "function-%zu", i);
        check(core_function_add(bench->account, span_from(name), NULL, &function) == 0);
        check(core_version_add(function, SPAN("$LATEST"), 128, NULL, &bench->versions[i]) == 0);
        warm_up(bench, bench->versions[i], busy == 1 && i == 0 ? BATCH : 1, (int64_t)i);
    }
}

/* The busy ones, spread over all. */
static struct core_version **choose(const struct bench *bench, size_t busy)
{
    struct core_version **chosen = malloc(busy * sizeof(struct core_version *));

    check(chosen);
    for (size_t i = 0; i < busy; i++)
        chosen[i] = bench->versions[i * (bench->count / busy)];
    return chosen;
}

static void shuffle(struct core_version **versions, size_t count, struct prng *prng)
{
    for (size_t i = count - 1; i > 0; i--) {
        size_t other = prng_below(prng, i + 1);
        struct core_version *kept = versions[i];
        versions[i] = versions[other];
        versions[other] = kept;
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double values[ROUNDS])
{
    qsort(values, ROUNDS, sizeof(*values), compare);
    return values[ROUNDS / 2];
}

static struct times run(size_t count, size_t busy)
{
    struct bench bench;
    struct core_version **order;
    struct core_request requests[BATCH];
    double decision_ns[ROUNDS] = {0}, whole_ns[ROUNDS] = {0};
    int64_t now_ns = NS_PER_S;
    struct prng prng;
    size_t at = 0;

    setup(&bench, count, busy);
    prng_init(&prng, 1);
    order = choose(&bench, busy);
    for (int round = 0; round < ROUNDS; round++) {
        for (int batch = 0; batch < BATCHES; batch++) {
            int64_t started_ns, decided_ns;
            if (at + BATCH > busy || !at) { /* always another order: in the last one, the next is the longest unused */
                shuffle(order, busy, &prng);
                at = 0;
            }
            started_ns = processor_ns();
            for (int i = 0; i < BATCH; i++, now_ns += 1000)
                invoke(&bench, order[busy == 1 ? 0 : at + (size_t)i], &requests[i], now_ns, CORE_SERVED);
            at += BATCH;
            decided_ns = processor_ns();
            for (int i = 0; i < BATCH; i++)
                release(&requests[i], now_ns);
            decision_ns[round] += (double)(decided_ns - started_ns) / BATCHES / BATCH;
            whole_ns[round] += (double)(processor_ns() - started_ns) / BATCHES / BATCH;
        }
    }
    core_account_free(bench.account);
    placement_free(bench.placement);
    free(bench.versions);
    free(order);
    return (struct times){median(decision_ns), median(whole_ns)};
}

/* Walks a cycle through 64 MB in a random order, one line at a time, each address read from the line before:
 * nanoseconds a step. */
static double run_memory(void)
{
    enum { LINE = 64, LINES = 1 << 20, STEPS = 300 * 1000 };
    char *memory = aligned_alloc(LINE, (size_t)LINE * LINES);
    uint32_t *order = malloc(LINES * sizeof(*order));
    struct prng prng;
    uint32_t at = 0;
    int64_t started_ns;

    check(memory && order);
    prng_init(&prng, 1);
    for (uint32_t i = 0; i < LINES; i++)
        order[i] = i;
    for (uint32_t i = LINES - 1; i > 0; i--) {
        uint32_t other = (uint32_t)prng_below(&prng, i), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    for (size_t i = 0; i < LINES; i++)
        *(uint32_t *)(void *)(memory + (size_t)order[i] * LINE) = order[(i + 1) % LINES];
    started_ns = processor_ns();
    for (int i = 0; i < STEPS; i++)
        at = *(volatile uint32_t *)(void *)(memory + (size_t)at * LINE);
    started_ns = processor_ns() - started_ns;
    free(memory);
    free(order);
    return (double)started_ns / STEPS;
}

int main(int argc, char **argv)
{
    static const struct {
        size_t functions, busy;
    } runs[] = {{1, 1}, {100 * 1000, 1}, {100 * 1000, 1000}, {100 * 1000, 100 * 1000}};
    bool json = argc > 1 && !strcmp(argv[1], "json");

    fputs(json ? "{" : "", stdout);
    for (size_t i = 0; i < ARRAY_SIZE(runs); i++) {
        struct times times = run(runs[i].functions, runs[i].busy);
        printf(json ? "\"%zu/%zu\": {\"decision\": %.1f, \"whole\": %.1f}, "
                    : "%7zu functions, %6zu busy: %6.1f ns to admit and assign, %6.1f ns with release\n",
               runs[i].functions, runs[i].busy, times.decision_ns, times.whole_ns);
    }
    printf(json ? "\"memory\": %.1f}\n" : "one access to memory: %6.1f ns\n", run_memory());
    return 0;
}
