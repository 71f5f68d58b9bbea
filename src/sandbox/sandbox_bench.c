/*
 * What a sandbox costs, beside what the plainest process costs: p50 of create -> exit of a static program inside, and
 * of fork, exec and exit of the same program; then sandboxes a second with several at a time. Needs root.
 *
 *     sandbox_bench PROGRAM-DIRECTORY PROGRAM [ROUNDS] [none|host]
 */
#include "base/clock.h"
#include "sandbox/launcher.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct bench {
    struct launcher *launcher;
    const char *directory, *program;
    uint64_t next_id;
    unsigned exited, gone, failed;
};

static void on_created(uint64_t id, struct sandbox_created *created, void *context)
{
    (void)id, (void)context;
    cleanup_close(&created->api_fd);
    cleanup_close(&created->output_fd);
    cleanup_close(&created->freeze_fd);
    cleanup_close(&created->memory_peak_fd);
}

static void on_create_failed(uint64_t id, const struct fault *fault, void *context)
{
    struct bench *bench = context;

    fprintf(stderr, "sandbox %llu: %s\n", (unsigned long long)id, fault->text);
    bench->failed++;
    bench->gone++;
    bench->exited++;
}

static void on_process_exit(uint64_t id, uint32_t run, int exec_errno, const struct sandbox_exit *exit, void *context)
{
    struct bench *bench = context;

    (void)run;
    bench->exited++;
    if (exec_errno || exit->status || exit->signal) {
        bench->failed++;
        fprintf(stderr, "exec errno %d status %d signal %d\n", exec_errno, exit->status, exit->signal);
    }
    if (launcher_kill(bench->launcher, id) < 0)
        bench->failed++;
}

static void on_reset(uint64_t id, void *context)
{
    (void)id, (void)context;
}

static void on_gone(uint64_t id, void *context)
{
    struct bench *bench = context;

    (void)id;
    bench->gone++;
}

static void on_lost(void *context)
{
    (void)context;
    fprintf(stderr, "the launcher died\n");
    exit(1);
}

static void start_one(struct bench *bench)
{
    const char *argv[] = {bench->program, NULL}, *envp[] = {NULL};
    struct sandbox_spec spec = {
        .id = ++bench->next_id, .task_dir = bench->directory, .memory_mib = 128, .tmp_mib = 512, .cpu_boost = true};
    struct sandbox_process process = {.argv = argv, .envp = envp, .cwd = "/var/task"};

    if (launcher_create(bench->launcher, &spec) < 0 || launcher_run(bench->launcher, spec.id, 1, &process) < 0)
        bench->failed++;
}

static void turn(struct bench *bench)
{
    struct pollfd ready = {.fd = launcher_fd(bench->launcher), .events = POLLIN};

    if (poll(&ready, 1, 5000) != 1) {
        fprintf(stderr, "nothing happens\n");
        exit(1);
    }
    launcher_dispatch(bench->launcher);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static void print(const char *what, int64_t *times, unsigned count)
{
    qsort(times, count, sizeof(*times), compare);
    printf("%-40s p50 %7.0f us   p90 %7.0f us\n", what, (double)times[count / 2] / 1e3,
           (double)times[count * 9 / 10] / 1e3);
}

static void measure_sandboxes(struct bench *bench, int64_t *times, unsigned count, int pause_ms)
{
    for (unsigned i = 0; i < count; i++) {
        unsigned exited = bench->exited, gone = bench->gone;
        int64_t start_ns;

        poll(NULL, 0, pause_ms);
        start_ns = clock_monotonic_ns();
        start_one(bench);
        while (bench->exited == exited)
            turn(bench);
        times[i] = clock_monotonic_ns() - start_ns;
        while (bench->gone == gone)
            turn(bench);
    }
}

static void measure_processes(const struct bench *bench, int64_t *times, unsigned count, int pause_ms)
{
    char path[512];
    const char *argv[] = {path, NULL};

    snprintf(path, sizeof(path), "%s/%s", bench->directory, strrchr(bench->program, '/') + 1);
    for (unsigned i = 0; i < count; i++) {
        int64_t start_ns;
        pid_t pid;
        int status;

        poll(NULL, 0, pause_ms);
        start_ns = clock_monotonic_ns();
        pid = fork();
        if (pid == 0) {
            execv(path, (char *const *)argv);
            _exit(127);
        }
        waitpid(pid, &status, 0);
        times[i] = clock_monotonic_ns() - start_ns;
        if (status)
            fprintf(stderr, "%s: status %d\n", path, status);
    }
}

static void measure_rate(struct bench *bench, unsigned count, unsigned concurrent)
{
    unsigned started = 0, gone = bench->gone;
    int64_t start_ns = clock_monotonic_ns();

    while (bench->gone - gone < count) {
        while (started < count && started - (bench->gone - gone) < concurrent) {
            start_one(bench);
            started++;
        }
        turn(bench);
    }
    printf("%-40s %.0f/s\n", "sandboxes, 8 at a time", count / ((double)(clock_monotonic_ns() - start_ns) / 1e9));
}

int main(int argc, char **argv)
{
    const struct launcher_events events = {.on_created = on_created,
                                           .on_create_failed = on_create_failed,
                                           .on_process_exit = on_process_exit,
                                           .on_reset = on_reset,
                                           .on_gone = on_gone,
                                           .on_lost = on_lost};
    char instance[32];
    struct launcher_config config = {.instance = instance, .data_dir = "/nonexistent", .slots = 16};
    unsigned rounds = argc > 3 ? (unsigned)atoi(argv[3]) : 200;
    struct bench bench = {0};
    int64_t *times = calloc(rounds, sizeof(*times));
    struct fault fault;

    if (argc < 3 || !times || rounds == 0) {
        fprintf(stderr, "usage: %s DIRECTORY PROGRAM [ROUNDS] [none|host]\n", argv[0]);
        return 2;
    }
    snprintf(instance, sizeof(instance), "bench-%d", (int)getpid());
    config.network = argc > 4 && strcmp(argv[4], "host") == 0 ? SANDBOX_NETWORK_HOST : SANDBOX_NETWORK_NONE;
    if (launcher_start(&config, &bench.launcher, &fault) < 0) {
        fprintf(stderr, "%s\n", fault.text);
        return 1;
    }
    launcher_set_events(bench.launcher, &events, &bench);
    bench.directory = argv[1];
    char program[256];
    snprintf(program, sizeof(program), "/var/task/%s", argv[2]);
    bench.program = program;
    measure_processes(&bench, times, rounds, 10);
    print("fork, exec, exit", times, rounds);
    measure_sandboxes(&bench, times, rounds, 10);
    print("create -> exit, one every 10 ms", times, rounds);
    measure_sandboxes(&bench, times, rounds, 0);
    print("create -> exit -> gone, back to back", times, rounds);
    measure_rate(&bench, rounds * 4, 8);
    launcher_free(bench.launcher);
    free(times);
    return bench.failed > 0;
}
