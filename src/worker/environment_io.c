/*
 * The environment's descriptors: output into the log, freezing, memory use.
 *
 * Output is read in one piece of at most READ_BYTES a turn of the loop, so that a flood from one function costs the
 * others no more than that each turn; when its log is full it is not read at all, and the function waits in write().
 */
#include "worker/environment.h"

#include "base/clock.h"
#include "worker/environment_extensions.h"
#include "worker/extension_output.h"
#include "worker/telemetry.h"

#include <stdio.h>

enum { READ_BYTES = 64 * 1024, DRAIN_READS = 2 };

#define MEMORY_READ_NS (100 * NS_PER_MS)

static void on_poll_closed(uv_handle_t *handle)
{
    free(handle);
}

static void stop_output(struct environment *environment)
{
    if (environment->output_poll)
        uv_close((uv_handle_t *)TAKE_PTR(environment->output_poll), on_poll_closed);
    cleanup_close(&environment->output_fd);
}

/* Reads one piece. Returns false when there is no more now, or ever. */
static bool read_output(struct environment *environment)
{
    char *scratch = environment->worker->scratch;
    ssize_t n = read(environment->output_fd, scratch, READ_BYTES);

    if (n > 0) {
        function_log_output(environment->log, span_of(scratch, (size_t)n), clock_wall_ns());
        return n == READ_BYTES;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    stop_output(environment);
    return false;
}

static void on_output(uv_poll_t *poll, int status, int events)
{
    struct environment *environment = poll->data;

    (void)events;
    if (status < 0) {
        stop_output(environment);
        return;
    }
    read_output(environment);
    if (environment->output_poll && function_log_is_full(environment->log)) {
        uv_poll_stop(environment->output_poll);
        environment->output_paused = true;
    }
}

void environment_io_on_room(void *context)
{
    struct environment *environment = context;

    if (environment->output_paused && environment->output_poll)
        uv_poll_start(environment->output_poll, UV_READABLE, on_output);
    environment->output_paused = false;
    if (environment->extensions)
        extension_output_on_room(environment->extensions->output);
}

void environment_io_on_line(struct span line, void *context)
{
    telemetry_line(context, TELEMETRY_FUNCTION, line);
}

void environment_io_drain(struct environment *environment)
{
    if (environment->extensions)
        extension_output_drain(environment->extensions->output);
    for (int i = 0; i < DRAIN_READS && environment->output_fd >= 0; i++)
        if (function_log_is_bursting(environment->log) || !read_output(environment))
            return;
}

void environment_io_drain_dead(struct environment *environment)
{
    while (environment->output_fd >= 0 && read_output(environment))
        ;
}

int environment_io_start(struct environment *environment, struct sandbox_created *created)
{
    uv_poll_t *poll;
    int r;

    environment->output_fd = TAKE_FD(created->output_fd);
    environment->freeze_fd = TAKE_FD(created->freeze_fd);
    environment->memory_fd = TAKE_FD(created->memory_peak_fd);
    poll = malloc(sizeof(*poll));
    if (!poll)
        return -ENOMEM;
    r = uv_poll_init(environment->worker->config.loop, poll, environment->output_fd);
    if (r < 0) {
        free(poll);
        return r;
    }
    poll->data = environment;
    environment->output_poll = poll;
    return uv_poll_start(poll, UV_READABLE, on_output);
}

void environment_io_stop(struct environment *environment)
{
    for (int i = 0; i < DRAIN_READS && environment->output_fd >= 0 && read_output(environment); i++)
        ; /* would be lost otherwise; bounded because not every process need be dead */
    stop_output(environment);
    cleanup_close(&environment->freeze_fd);
    cleanup_close(&environment->memory_fd);
}

static void write_freeze(struct environment *environment, const char *value)
{
    if (pwrite(environment->freeze_fd, value, 1, 0) == 1)
        return;
    log_event(environment->worker->config.log, LOG_WARNING, "environment %llu cannot be frozen: %s",
              (unsigned long long)environment->id, strerror(errno));
    cleanup_close(&environment->freeze_fd);
}

void environment_io_freeze(struct environment *environment)
{
    if (environment->frozen || environment->freeze_fd < 0)
        return;
    write_freeze(environment, "1");
    environment->frozen = environment->freeze_fd >= 0;
}

void environment_io_thaw(struct environment *environment)
{
    if (!environment->frozen)
        return;
    if (environment->freeze_fd >= 0)
        write_freeze(environment, "0");
    environment->frozen = false;
    telemetry_on_thaw(environment);
}

unsigned environment_io_memory_used(struct environment *environment, int64_t now_ns)
{
    char text[32];
    ssize_t n;

    if (environment->memory_fd < 0 || now_ns - environment->memory_read_ns < MEMORY_READ_NS)
        return environment->memory_used_mib;
    environment->memory_read_ns = now_ns;
    n = pread(environment->memory_fd, text, sizeof(text) - 1, 0);
    if (n > 0) {
        text[n] = '\0';
        environment->memory_used_mib = (unsigned)((strtoull(text, NULL, 10) + (1 << 20) - 1) >> 20);
        /* The kernel's figure has /tmp and the page cache in it, which do not count against MemorySize. */
        environment->memory_used_mib = MIN(environment->memory_used_mib, environment->spec.memory_mib);
    }
    return environment->memory_used_mib;
}
