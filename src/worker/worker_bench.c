/*
 * What an invocation costs below the frontend: N environments on plain child processes, each given its next invocation
 * from inside on_end. Prints invocations a second and the daemon's own CPU time an invocation.
 *
 *   TEST_BOOTSTRAP=.../test_bootstrap worker_bench [environments] [seconds]
 */
#include "worker/testing/launcher_fake.h"
#include "worker/worker.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { ENVIRONMENTS_MAX = 256 };

struct lane {
    struct environment *environment;
    struct invocation invocation;
};

static struct {
    uv_loop_t loop;
    struct lane lanes[ENVIRONMENTS_MAX];
    uint64_t count;
    bool stopping;
} bench;

static void on_response(struct invocation *invocation, struct invocation_result *result)
{
    (void)invocation;
    buffer_deinit(&result->payload);
    bench.count++;
}

static void on_end(struct invocation *invocation)
{
    struct lane *lane = invocation->context;

    if (!bench.stopping)
        environment_invoke(lane->environment, invocation);
}

static const struct invocation_events invocation_events = {.on_response = on_response, .on_end = on_end};

static void on_ready(struct environment *environment, bool ok, void *context)
{
    struct lane *lane = context;

    (void)ok;
    lane->invocation = (struct invocation){.events = &invocation_events,
                                           .context = lane,
                                           .request_id = "11111111-2222-3333-4444-555555555555",
                                           .event = SPAN("\"hello\""),
                                           .trace_id = SPAN("Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Sampled=0"),
                                           .invoked_arn = "arn:aws:lambda:us-east-1:000000000000:function:shop"};
    environment_invoke(environment, &lane->invocation);
}

static void on_gone(struct environment *environment, const struct fault *fault, void *context)
{
    (void)environment;
    (void)context;
    fprintf(stderr, "an environment is gone: %s\n", fault ? fault->text : "");
    exit(1);
}

static const struct environment_events environment_events = {.on_ready = on_ready, .on_gone = on_gone};

static void on_over(uv_timer_t *timer)
{
    bench.stopping = true;
    uv_stop(timer->loop);
}

static void cpu_seconds(double *ret_user, double *ret_system)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    *ret_user = (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6;
    *ret_system = (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec / 1e6;
}

static void start_lane(struct worker *worker, struct lane *lane, const char *task_dir)
{
    const struct environment_spec spec = {.account = "000000000000",
                                          .region = "us-east-1",
                                          .function_name = "shop",
                                          .version = "$LATEST",
                                          .runtime = "provided.al2023",
                                          .handler = "x",
                                          .memory_mib = 128,
                                          .timeout_s = 3,
                                          .tmp_mib = 512,
                                          .task_dir = task_dir,
                                          .log_group = "/aws/lambda/shop"};

    if (worker_start_environment(worker, &spec, &environment_events, lane, &lane->environment) < 0)
        exit(1);
}

int main(int argc, char **argv)
{
    int environments = argc > 1 ? MIN(atoi(argv[1]), ENVIRONMENTS_MAX) : 1;
    unsigned seconds = argc > 2 ? (unsigned)atoi(argv[2]) : 3;
    char root[] = "/tmp/kiln-bench-XXXXXX";
    char command[4096];
    struct http_server_config http = {.loop = &bench.loop};
    struct worker_config config = {.loop = &bench.loop, .data_dir = root, .runtimes_dir = root};
    struct worker *worker;
    uv_timer_t timer;
    double user[2], system_time[2];

    if (!getenv("TEST_BOOTSTRAP") || !mkdtemp(root))
        return 2;
    snprintf(command, sizeof(command), "cp '%s' '%s/bootstrap'", getenv("TEST_BOOTSTRAP"), root);
    if (system(command) != 0)
        return 2;
    config.launcher = launcher_fake_new();
    uv_loop_init(&bench.loop);
    if (http_server_new(&http, &config.server) < 0 || worker_new(&config, &worker, NULL) < 0)
        return 2;
    for (int i = 0; i < environments; i++)
        start_lane(worker, &bench.lanes[i], root);
    uv_update_time(&bench.loop); /* the starts have taken their time */
    uv_timer_init(&bench.loop, &timer);
    uv_timer_start(&timer, on_over, seconds * 1000, 0);
    cpu_seconds(&user[0], &system_time[0]);
    uv_run(&bench.loop, UV_RUN_DEFAULT);
    cpu_seconds(&user[1], &system_time[1]);
    printf("%d environments: %.0f invocations/s; CPU each in the daemon: %.1f us user, %.1f us system\n", environments,
           (double)bench.count / seconds, (user[1] - user[0]) * 1e6 / (double)bench.count,
           (system_time[1] - system_time[0]) * 1e6 / (double)bench.count);
    worker_free(worker);
    http_server_free(config.server);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&bench.loop, UV_RUN_DEFAULT);
    launcher_free(config.launcher);
    snprintf(command, sizeof(command), "rm -rf '%s'", root);
    return system(command) == 0 ? 0 : 2;
}
