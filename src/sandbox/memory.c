#include "sandbox/memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/statfs.h>
#include <unistd.h>

enum {
    STEP_MIN = 256 * 1024, /* the kernel's own figures are this inexact: counters are batched per CPU */
    REGISTERED_MAX = 64,
    LADDER = 16,
};

uint64_t memory_counted(const struct memory_figures *figures)
{
    uint64_t shmem = MIN(figures->shmem, figures->file);
    uint64_t not_ours = figures->file - shmem + MIN(shmem, figures->tmp);

    return figures->usage - MIN(not_ours, figures->usage);
}

uint64_t memory_next_threshold(uint64_t usage, uint64_t counted, uint64_t limit)
{
    return usage + MAX(limit - MIN(counted, limit), (uint64_t)STEP_MIN);
}

static bool take_figure(struct span line, struct span name, uint64_t *figure)
{
    if (!span_starts_with(line, name) || line.length <= name.length || line.data[name.length] != ' ')
        return false;
    return span_to_u64(span_slice(line, name.length + 1, line.length), UINT64_MAX, figure) == 0;
}

void memory_parse_stat(struct span text, bool unified, struct memory_figures *figures)
{
    struct span file = unified ? SPAN("file") : SPAN("total_cache");
    struct span shmem = unified ? SPAN("shmem") : SPAN("total_shmem");

    while (text.data) {
        struct span line = span_cut(&text, '\n');
        if (!take_figure(line, file, &figures->file))
            take_figure(line, shmem, &figures->shmem);
    }
}

static int read_at_start(int fd, char *text, size_t size, struct span *ret_text)
{
    ssize_t n = pread(fd, text, size, 0);

    if (n < 0)
        return -errno;
    *ret_text = span_of(text, (size_t)n);
    return 0;
}

static int read_number(int fd, uint64_t *ret_number)
{
    char text[32];
    struct span span;
    int r = read_at_start(fd, text, sizeof(text), &span);

    if (r < 0)
        return r;
    return span_to_u64(span_cut(&span, '\n'), UINT64_MAX, ret_number);
}

static bool is_unified(const struct memory_watch *watch)
{
    return watch->threshold_fd < 0;
}

/* What usage consists of is looked up only when all of it would be too much. */
static int look(const struct memory_watch *watch, struct memory_figures *ret_figures)
{
    char text[8192];
    struct span stat;
    struct statfs tmp;
    int r = read_number(watch->usage_fd, &ret_figures->usage);

    if (r == 0 && ret_figures->usage <= watch->limit)
        return 0;
    if (r == 0)
        r = read_at_start(watch->stat_fd, text, sizeof(text), &stat);
    if (r < 0)
        return r;
    memory_parse_stat(stat, is_unified(watch), ret_figures);
    if (fstatfs(watch->tmp_fd, &tmp) < 0)
        return -errno;
    ret_figures->tmp = (uint64_t)(tmp.f_blocks - tmp.f_bfree) * (uint64_t)tmp.f_bsize;
    return 0;
}

/* v1: "eventfd file argument" for pressure; v2: the new memory.high. */
static int control(const struct memory_watch *watch, const char *format, ...) PRINTF_LIKE(2, 3);

static int control(const struct memory_watch *watch, const char *format, ...)
{
    char text[96];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return pwrite(watch->control_fd, text, strlen(text), 0) < 0 ? -errno : 0;
}

static int set_threshold(struct memory_watch *watch, uint64_t bytes)
{
    watch->armed = bytes;
    if (is_unified(watch))
        return control(watch, "%llu", (unsigned long long)bytes);
    watch->registered++;
    return registrar_submit(watch->registrar, watch->control_fd, watch->threshold_fd, watch->usage_fd, bytes);
}

static int init_unified(struct memory_watch *watch, const struct cgroup_host *host, const char *name)
{
    int r = cgroup_open(host, CGROUP_MEMORY, name, "memory.current", O_RDONLY, &watch->usage_fd);

    if (r == 0)
        r = cgroup_open(host, CGROUP_MEMORY, name, "memory.events", O_RDONLY, &watch->pressure_fd);
    if (r == 0)
        r = cgroup_open(host, CGROUP_MEMORY, name, "memory.high", O_WRONLY, &watch->control_fd);
    return r; /* cgroup_apply has set memory.high already */
}

static int init_pressure(struct memory_watch *watch, const struct cgroup_host *host, const char *name)
{
    CLEANUP(cleanup_close) int level = -1;
    int r = cgroup_open(host, CGROUP_MEMORY, name, "memory.pressure_level", O_RDONLY, &level);

    if (r < 0)
        return r;
    watch->pressure_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (watch->pressure_fd < 0)
        return -errno;
    return control(watch, "%d %d low", watch->pressure_fd, level);
}

static int init_v1(struct memory_watch *watch, const struct cgroup_host *host, const char *name)
{
    int r = cgroup_open(host, CGROUP_MEMORY, name, "memory.usage_in_bytes", O_RDONLY, &watch->usage_fd);

    if (r == 0)
        r = cgroup_open(host, CGROUP_MEMORY, name, "cgroup.event_control", O_WRONLY, &watch->control_fd);
    if (r < 0)
        return r;
    watch->threshold_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (watch->threshold_fd < 0)
        return -errno;
    r = init_pressure(watch, host, name); /* first: a write to control_fd waits for one that is under way */
    return r < 0 ? r : set_threshold(watch, watch->limit);
}

int memory_watch_init(struct memory_watch *watch, const struct cgroup_host *host, const struct registrar *registrar,
                      const char *name, uint64_t limit, int tmp_fd)
{
    int r;

    *watch = MEMORY_WATCH_INIT;
    watch->registrar = registrar;
    watch->limit = limit;
    watch->tmp_fd = tmp_fd;
    r = cgroup_open(host, CGROUP_MEMORY, name, "memory.stat", O_RDONLY, &watch->stat_fd);
    if (r == 0)
        r = host->on_unified[CGROUP_MEMORY] ? init_unified(watch, host, name) : init_v1(watch, host, name);
    if (r < 0)
        memory_watch_deinit(watch);
    return r;
}

void memory_watch_deinit(struct memory_watch *watch)
{
    cleanup_close(&watch->tmp_fd);
    cleanup_close(&watch->usage_fd);
    cleanup_close(&watch->stat_fd);
    cleanup_close(&watch->threshold_fd);
    cleanup_close(&watch->pressure_fd);
    cleanup_close(&watch->control_fd);
    cleanup_close(&watch->retired_fd);
}

/* Empties the eventfds; memory.events is acknowledged by reading it from the start. 0, or that a threshold failed. */
static int acknowledge(const struct memory_watch *watch)
{
    char text[256];
    uint64_t events = 0;

    if (is_unified(watch)) {
        (void)!pread(watch->pressure_fd, text, sizeof(text), 0);
        return 0;
    }
    (void)!read(watch->pressure_fd, &events, sizeof(events));
    if (read(watch->threshold_fd, &events, sizeof(events)) < 0)
        return 0;
    return events >= REGISTRAR_FAILED ? -EIO : 0;
}

/*
 * v1 thresholds fire in both directions and stay until the eventfd is closed, so earlier ones below the armed one
 * report a fall of usage (after files in /tmp were removed). A new eventfd gets a ladder of them for the same purpose.
 */
static int renew(struct memory_watch *watch, uint64_t threshold)
{
    uint64_t step = (threshold - watch->limit) / LADDER;
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int r = 0;

    if (fd < 0)
        return -errno;
    cleanup_close(&watch->retired_fd);
    watch->retired_fd = watch->threshold_fd;
    watch->threshold_fd = fd;
    watch->registered = 0;
    for (int i = 0; r == 0 && i < LADDER; i++)
        r = set_threshold(watch, watch->limit + (uint64_t)i * step);
    if (r == 0)
        r = set_threshold(watch, threshold);
    return r < 0 ? r : MEMORY_RENEWED;
}

/* An armed threshold between here and the next one serves as well. */
static int arm(struct memory_watch *watch, uint64_t usage, uint64_t next)
{
    if (watch->armed > usage && watch->armed <= next)
        return MEMORY_FINE;
    if (!is_unified(watch) && watch->registered >= REGISTERED_MAX && next > watch->limit)
        return renew(watch, next);
    return set_threshold(watch, next);
}

int memory_check(struct memory_watch *watch)
{
    struct memory_figures figures = {0};
    uint64_t counted;
    int r = acknowledge(watch);

    if (r == 0)
        r = look(watch, &figures);
    if (r < 0)
        return r;
    counted = memory_counted(&figures);
    if (counted > watch->limit)
        return MEMORY_EXCEEDED;
    return arm(watch, figures.usage, MAX(memory_next_threshold(figures.usage, counted, watch->limit), watch->limit));
}

bool memory_needs_polling(const struct memory_watch *watch)
{
    return watch->pressure_fd >= 0 && is_unified(watch) && watch->armed > watch->limit;
}

uint64_t memory_oom_kills(const struct cgroup_host *host, const char *name)
{
    CLEANUP(cleanup_close) int fd = -1;
    const char *file = host->on_unified[CGROUP_MEMORY] ? "memory.events" : "memory.oom_control";
    char text[512];
    struct span rest;
    uint64_t kills = 0;

    if (cgroup_open(host, CGROUP_MEMORY, name, file, O_RDONLY, &fd) < 0 ||
        read_at_start(fd, text, sizeof(text), &rest) < 0)
        return 0;
    while (rest.data && !take_figure(span_cut(&rest, '\n'), SPAN("oom_kill"), &kills))
        ;
    return kills;
}
