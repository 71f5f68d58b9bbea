#include "worker/log_sweep.h"

#include "base/clock.h"
#include "worker/log_file.h"

#include <stdlib.h>
#include <string.h>

enum { SWEEP_MS = 3600 * 1000 };

struct log_sweep {
    uv_timer_t timer;
    uv_work_t work;
    char *directory;
    int64_t keep_ns;
    bool working;
    bool closed; /* the timer is */
};

static void free_when_done(struct log_sweep *sweep)
{
    if (sweep->working || !sweep->closed)
        return;
    free(sweep->directory);
    free(sweep);
}

static void on_work(uv_work_t *work)
{
    struct log_sweep *sweep = CONTAINER_OF(work, struct log_sweep, work);
    int r = log_files_sweep(sweep->directory, clock_wall_ns() - sweep->keep_ns);

    (void)r; /* there is no directory before the first line; a disk that fails is reported by the writer */
}

static void on_done(uv_work_t *work, int status)
{
    struct log_sweep *sweep = CONTAINER_OF(work, struct log_sweep, work);

    (void)status; /* never cancelled */
    sweep->working = false;
    free_when_done(sweep);
}

static void on_timer(uv_timer_t *timer)
{
    struct log_sweep *sweep = CONTAINER_OF(timer, struct log_sweep, timer);

    if (!sweep->working)
        sweep->working = uv_queue_work(timer->loop, &sweep->work, on_work, on_done) == 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct log_sweep *sweep = CONTAINER_OF((uv_timer_t *)handle, struct log_sweep, timer);

    sweep->closed = true;
    free_when_done(sweep);
}

int log_sweep_new(uv_loop_t *loop, const char *directory, unsigned days, struct log_sweep **ret_sweep)
{
    struct log_sweep *sweep = calloc(1, sizeof(*sweep));

    if (!sweep)
        return -ENOMEM;
    sweep->directory = strdup(directory);
    if (!sweep->directory) {
        free(sweep);
        return -ENOMEM;
    }
    sweep->keep_ns = days * INT64_C(86400) * NS_PER_S;
    uv_timer_init(loop, &sweep->timer);
    uv_unref((uv_handle_t *)&sweep->timer);
    uv_timer_start(&sweep->timer, on_timer, 0, SWEEP_MS);
    *ret_sweep = sweep;
    return 0;
}

struct log_sweep *log_sweep_free(struct log_sweep *sweep)
{
    if (sweep)
        uv_close((uv_handle_t *)&sweep->timer, on_closed);
    return NULL;
}
