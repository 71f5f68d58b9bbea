/*
 * Streams with something to write stand in `dirty`. A flush takes the gathered bytes of all of them (the buffers move,
 * nothing is copied) into one job for the pool. While that job runs, new bytes gather for the next one, so that writes
 * of one file never overtake each other. Files are opened for each flush: a descriptor a stream would be one in six of
 * all that an environment costs, and at four flushes a second the open is not felt.
 *
 * Shutdown must not lose what the running job holds. libuv cannot wait for work, so the job posts a semaphore when it
 * has written; function_log_free waits for that and then writes the rest itself.
 */
#include "worker/function_log.h"

#include "base/clock.h"
#include "base/list.h"
#include "worker/log_frame.h"
#include "worker/log_record.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

enum {
    FLUSH_MS = 250,
    STREAM_FLUSH_BYTES = 256 * 1024, /* gathered in one stream: flush now */
    STREAM_FULL_BYTES = 1024 * 1024, /* gathered in one stream: take no more output */
    STREAM_BURST_BYTES = 2 * STREAM_FULL_BYTES,
};

struct function_log_stream {
    struct list_link link; /* in function_log.dirty */
    struct function_log *log;
    char *path; /* GROUP/STREAM.log under the directory */
    struct buffer gathered;
    struct buffer unfinished;  /* output after the last newline */
    int64_t unfinished_ms;     /* when its first byte came */
    enum log_line_level level; /* output below it is not kept */
    bool framed;
    struct log_frame frame;
    struct buffer *tail;
    void (*on_room)(void *context);
    void (*on_line)(struct span line, void *context); /* NULL: nobody */
    void *context;
    bool waits_for_room;
    bool closed; /* freed once flushed */
};

struct part {
    struct function_log_stream *stream; /* for on_room; not touched on the pool */
    char *path;                         /* the stream's, or owned by the part when the stream is closed */
    struct buffer bytes;
    bool last; /* the stream is closed: free it afterwards */
};

struct job {
    uv_work_t work;
    struct function_log *log; /* NULL: the writer is gone */
    uv_sem_t written;
    char *directory;
    struct part *parts;
    size_t count;
    uint64_t lost_bytes;
    int error; /* first errno */
};

struct function_log {
    uv_loop_t *loop;
    uv_timer_t *timer; /* own allocation: outlives this until its close callback */
    const struct log *log;
    char *directory;
    struct list dirty;
    struct job *running;
    uint64_t lost_bytes;
    bool flush_again; /* a flush was asked for while one was running */
    bool complained;
};

/* --- the pool's side ---------------------------------------------------------------------------------------------- */

static int make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        int r;

        *slash = '\0';
        r = mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
        *slash = '/';
        if (r < 0)
            return r;
    }
    return 0;
}

static int open_stream(const char *directory, const char *path)
{
    CLEANUP(cleanup_free) char *whole = NULL;
    int fd;
    int r;

    if (asprintf(&whole, "%s/%s", directory, path) < 0) {
        whole = NULL;
        return -ENOMEM;
    }
    fd = open(whole, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 && errno == ENOENT) {
        r = make_folders(whole);
        if (r < 0)
            return r;
        fd = open(whole, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    }
    return fd < 0 ? -errno : fd;
}

static int write_all(int fd, struct span bytes, size_t *ret_written)
{
    *ret_written = 0;
    while (*ret_written < bytes.length) {
        ssize_t n = write(fd, bytes.data + *ret_written, bytes.length - *ret_written);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        *ret_written += (size_t)n;
    }
    return 0;
}

/* All or nothing, so that a full disk does not leave half a record in the middle of a file. */
static void write_part(struct job *job, const struct part *part)
{
    CLEANUP(cleanup_close) int fd = open_stream(job->directory, part->path);
    size_t written = 0;
    off_t end;
    int r = fd;

    if (fd >= 0) {
        end = lseek(fd, 0, SEEK_END);
        r = write_all(fd, buffer_span(&part->bytes), &written);
        if (r < 0 && written && end >= 0 && ftruncate(fd, end) < 0)
            r = -errno;
    }
    if (r < 0) {
        job->lost_bytes += part->bytes.length;
        if (!job->error)
            job->error = -r;
    }
}

static void write_job(struct job *job)
{
    for (size_t i = 0; i < job->count; i++)
        write_part(job, &job->parts[i]);
}

static void on_work(uv_work_t *work)
{
    struct job *job = CONTAINER_OF(work, struct job, work);

    write_job(job);
    uv_sem_post(&job->written);
}

/* --- the loop's side ---------------------------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer);

static void stream_free(struct function_log_stream *stream)
{
    list_remove(&stream->link);
    buffer_deinit(&stream->gathered);
    buffer_deinit(&stream->unfinished);
    free(stream->path);
    free(stream);
}

static void job_free(struct job *job)
{
    if (!job)
        return;
    for (size_t i = 0; i < job->count; i++)
        buffer_deinit(&job->parts[i].bytes);
    uv_sem_destroy(&job->written);
    free(job->parts);
    free(job->directory);
    free(job);
}

/* Takes the gathered bytes of all dirty streams. NULL when out of memory: they stay and are tried again. */
static struct job *job_new(struct function_log *log)
{
    struct job *job = calloc(1, sizeof(*job));
    size_t count = 0;

    if (!job)
        return NULL;
    LIST_FOREACH (link, &log->dirty)
        count++;
    job->log = log;
    job->parts = calloc(count, sizeof(*job->parts));
    job->directory = strdup(log->directory);
    if (!job->parts || !job->directory || uv_sem_init(&job->written, 0) < 0) {
        free(job->parts);
        free(job->directory);
        free(job);
        return NULL;
    }
    LIST_FOREACH (link, &log->dirty) {
        struct function_log_stream *stream = CONTAINER_OF(link, struct function_log_stream, link);
        struct part *part = &job->parts[job->count++];

        list_remove(link);
        part->stream = stream;
        part->path = stream->path;
        part->bytes = buffer_take(&stream->gathered);
        part->last = stream->closed;
    }
    return job;
}

static void complain(struct function_log *log, const struct job *job)
{
    log->lost_bytes += job->lost_bytes;
    if (!job->error) {
        log->complained = false;
        return;
    }
    if (!log->complained)
        log_event(log->log, LOG_ERROR, "function logs cannot be written to %s: %s; lines are being dropped",
                  log->directory, strerror(job->error));
    log->complained = true;
}

static void settle_stream(const struct part *part)
{
    struct function_log_stream *stream = part->stream;

    if (part->last) {
        stream_free(stream);
        return;
    }
    if (stream->waits_for_room && stream->gathered.length < STREAM_FULL_BYTES && !stream->closed) {
        stream->waits_for_room = false;
        stream->on_room(stream->context);
    }
}

static void flush(struct function_log *log);

static void on_written(uv_work_t *work, int status)
{
    struct job *job = CONTAINER_OF(work, struct job, work);
    struct function_log *log = job->log;

    (void)status; /* never cancelled */
    if (log) {
        log->running = NULL;
        complain(log, job);
        for (size_t i = 0; i < job->count; i++)
            settle_stream(&job->parts[i]);
        if (log->flush_again)
            flush(log);
    }
    job_free(job);
}

static void flush(struct function_log *log)
{
    log->flush_again = log->running != NULL;
    if (log->running || list_is_empty(&log->dirty))
        return;
    uv_timer_stop(log->timer);
    log->running = job_new(log);
    if (!log->running) {
        uv_timer_start(log->timer, on_timer, FLUSH_MS, 0); /* out of memory: later */
        return;
    }
    if (uv_queue_work(log->loop, &log->running->work, on_work, on_written) < 0) {
        write_job(log->running); /* happens for a NULL callback only; better slow than lost */
        on_written(&log->running->work, 0);
    }
}

static void on_timer(uv_timer_t *timer)
{
    flush(timer->data);
}

static void mark_dirty(struct function_log_stream *stream)
{
    struct function_log *log = stream->log;

    if (!list_is_linked(&stream->link)) {
        if (list_is_empty(&log->dirty) && !uv_is_active((uv_handle_t *)log->timer))
            uv_timer_start(log->timer, on_timer, FLUSH_MS, 0);
        list_push_back(&log->dirty, &stream->link);
    }
    if (stream->gathered.length >= STREAM_FLUSH_BYTES)
        flush(log);
}

int function_log_new(uv_loop_t *loop, const char *directory, const struct log *log, struct function_log **ret_log)
{
    struct function_log *made = calloc(1, sizeof(*made));
    uv_timer_t *timer = malloc(sizeof(*timer));
    char *copy = strdup(directory);

    if (!made || !timer || !copy) {
        free(made);
        free(timer);
        free(copy);
        return -ENOMEM;
    }
    uv_timer_init(loop, timer);
    uv_unref((uv_handle_t *)timer); /* a due flush does not keep the loop going: function_log_free does the rest */
    timer->data = made;
    made->loop = loop;
    made->timer = timer;
    made->log = log;
    made->directory = copy;
    list_init(&made->dirty);
    *ret_log = made;
    return 0;
}

static void on_timer_closed(uv_handle_t *handle)
{
    free(handle);
}

/* Waits for the job on the pool; its after-work callback comes on a later turn and then finds no writer. */
static void finish_running(struct function_log *log)
{
    struct job *job = TAKE_PTR(log->running);

    if (!job)
        return;
    uv_sem_wait(&job->written);
    complain(log, job);
    for (size_t i = 0; i < job->count; i++)
        if (job->parts[i].last)
            stream_free(job->parts[i].stream);
    job->log = NULL;
}

struct function_log *function_log_free(struct function_log *log)
{
    struct job *rest;

    if (!log)
        return NULL;
    finish_running(log);
    rest = list_is_empty(&log->dirty) ? NULL : job_new(log);
    if (rest) {
        write_job(rest);
        complain(log, rest);
        for (size_t i = 0; i < rest->count; i++)
            if (rest->parts[i].last)
                stream_free(rest->parts[i].stream);
        job_free(rest);
    }
    uv_close((uv_handle_t *)log->timer, on_timer_closed);
    free(log->directory);
    free(log);
    return NULL;
}

uint64_t function_log_lost_bytes(const struct function_log *log)
{
    return log->lost_bytes;
}

/* --- streams ------------------------------------------------------------------------------------------------------ */

static char *stream_path(const char *group, const char *stream)
{
    CLEANUP(buffer_deinit) struct buffer path = BUFFER_INIT;

    if (log_name_encode(span_from(group), &path) < 0 || buffer_append_char(&path, '/') < 0 ||
        log_name_encode(span_from(stream), &path) < 0 || buffer_append_span(&path, SPAN(".log")) < 0)
        return NULL;
    return span_dup(buffer_span(&path));
}

int function_log_stream_open(struct function_log *log, const char *group, const char *stream,
                             void (*on_room)(void *context), void *context, struct function_log_stream **ret_stream)
{
    struct function_log_stream *made = calloc(1, sizeof(*made));
    char *path = stream_path(group, stream);

    if (!made || !path) {
        free(made);
        free(path);
        return -ENOMEM;
    }
    list_link_init(&made->link);
    made->log = log;
    made->path = path;
    made->on_room = on_room;
    made->context = context;
    *ret_stream = made;
    return 0;
}

static void add_event(struct function_log_stream *stream, struct span message, int64_t time_ms)
{
    if (log_record_append(&stream->gathered, time_ms, message) < 0) {
        stream->log->lost_bytes += message.length;
        return;
    }
    mark_dirty(stream);
}

static void add_to_tail(struct function_log_stream *stream, struct span bytes)
{
    struct buffer *tail = stream->tail;

    if (!tail)
        return;
    if (bytes.length > FUNCTION_LOG_TAIL_BYTES)
        bytes = span_slice(bytes, bytes.length - FUNCTION_LOG_TAIL_BYTES, bytes.length);
    if (buffer_append_span(tail, bytes) < 0)
        return; /* a shorter tail */
    if (tail->length > FUNCTION_LOG_TAIL_BYTES)
        buffer_consume(tail, tail->length - FUNCTION_LOG_TAIL_BYTES);
}

/* Ends the line that the tail ends in. */
static void end_tail_line(struct function_log_stream *stream)
{
    if (stream->tail && stream->tail->length && stream->tail->data[stream->tail->length - 1] != '\n')
        add_to_tail(stream, SPAN("\n"));
}

/* Output reaches the tail byte by byte, unless some of it does not belong there. */
static bool has_tail_of_events(const struct function_log_stream *stream)
{
    return stream->framed || stream->level > LOG_LINE_TRACE;
}

/* A message of the function's own, whole or cut at its full length. */
static void add_output_event(struct function_log_stream *stream, struct span message, enum log_line_level level,
                             int64_t time_ms)
{
    if (stream->on_line)
        stream->on_line(message, stream->context);
    if (level < stream->level)
        return;
    if (has_tail_of_events(stream)) {
        end_tail_line(stream);
        add_to_tail(stream, message);
    }
    add_event(stream, message, time_ms);
}

void function_log_observe(struct function_log_stream *stream, void (*on_line)(struct span line, void *context))
{
    stream->on_line = on_line;
}

static bool is_in_frame(const struct function_log_stream *stream)
{
    return stream->frame.header_length == LOG_FRAME_HEADER_BYTES;
}

static enum log_line_level level_of(const struct function_log_stream *stream, struct span message)
{
    if (is_in_frame(stream))
        return log_frame_level(&stream->frame, message);
    return stream->level > LOG_LINE_TRACE ? log_level_of_line(message) : LOG_LINE_INFO;
}

static void end_unfinished(struct function_log_stream *stream)
{
    if (!stream->unfinished.length)
        return;
    add_output_event(stream, buffer_span(&stream->unfinished), level_of(stream, buffer_span(&stream->unfinished)),
                     stream->unfinished_ms);
    buffer_deinit(&stream->unfinished);
}

struct function_log_stream *function_log_stream_close(struct function_log_stream *stream)
{
    struct function_log *log;

    if (!stream)
        return NULL;
    log = stream->log;
    stream->on_line = NULL;
    end_unfinished(stream);
    stream->tail = NULL;
    stream->closed = true;
    if (list_is_linked(&stream->link))
        return NULL; /* freed after the flush that is due */
    for (size_t i = 0; log->running && i < log->running->count; i++) {
        if (log->running->parts[i].stream == stream) {
            log->running->parts[i].last = true;
            return NULL;
        }
    }
    stream_free(stream);
    return NULL;
}

void function_log_line(struct function_log_stream *stream, struct span line, int64_t wall_ns)
{
    end_unfinished(stream);
    /* Not a question of what was unfinished: an event cut at its full length is finished and has no newline. */
    end_tail_line(stream);
    add_event(stream, line, wall_ns / NS_PER_MS);
    add_to_tail(stream, line);
}

void function_log_event(struct function_log_stream *stream, struct span line, int64_t wall_ns)
{
    add_event(stream, line, wall_ns / NS_PER_MS);
    add_to_tail(stream, line);
}

/* Bytes without a newline at their end: kept until one comes, or cut when an event is full. */
static void keep_unfinished(struct function_log_stream *stream, struct span bytes, int64_t time_ms)
{
    while (bytes.length) {
        size_t room = LOG_RECORD_MESSAGE_MAX - stream->unfinished.length;
        struct span fits = span_slice(bytes, 0, MIN(bytes.length, room));

        if (!stream->unfinished.length)
            stream->unfinished_ms = time_ms;
        if (buffer_append_span(&stream->unfinished, fits) < 0)
            stream->log->lost_bytes += fits.length;
        if (stream->unfinished.length == LOG_RECORD_MESSAGE_MAX)
            end_unfinished(stream);
        bytes = span_slice(bytes, fits.length, bytes.length);
    }
}

/* The next line, or what there is of it. */
static void take_line(struct function_log_stream *stream, struct span *bytes, int64_t time_ms)
{
    const char *newline = memchr(bytes->data, '\n', bytes->length);
    size_t length = newline ? (size_t)(newline - bytes->data) + 1 : bytes->length;
    struct span line = span_slice(*bytes, 0, length);

    *bytes = span_slice(*bytes, length, bytes->length);
    if (newline && !stream->unfinished.length && length <= LOG_RECORD_MESSAGE_MAX) {
        add_output_event(stream, line, level_of(stream, line), time_ms);
        return;
    }
    keep_unfinished(stream, line, time_ms);
    if (newline)
        end_unfinished(stream);
}

static void take_frame_message(struct function_log_stream *stream, struct span *bytes, int64_t time_ms)
{
    struct span message = span_slice(*bytes, 0, MIN(stream->frame.left, bytes->length));

    *bytes = span_slice(*bytes, message.length, bytes->length);
    stream->frame.left -= message.length;
    keep_unfinished(stream, message, time_ms);
    if (stream->frame.left)
        return;
    end_unfinished(stream);
    stream->frame.header_length = 0;
}

/* True when it has taken something: a frame, or a part of one. */
static bool take_frame(struct function_log_stream *stream, struct span *bytes, int64_t time_ms)
{
    struct log_frame *frame = &stream->frame;
    size_t length;

    if (is_in_frame(stream)) {
        take_frame_message(stream, bytes, time_ms);
        return true;
    }
    if (stream->unfinished.length)
        return false; /* in the middle of a line */
    switch (log_frame_take_header(frame, bytes)) {
    case LOG_FRAME_MORE:
        return true;
    case LOG_FRAME_MESSAGE:
        take_frame_message(stream, bytes, time_ms);
        return true;
    case LOG_FRAME_NONE:
        break;
    }
    length = frame->header_length;
    frame->header_length = 0;
    keep_unfinished(stream, span_of(frame->header, length), time_ms);
    return false;
}

void function_log_output(struct function_log_stream *stream, struct span bytes, int64_t wall_ns)
{
    int64_t time_ms = wall_ns / NS_PER_MS;

    if (!has_tail_of_events(stream))
        add_to_tail(stream, bytes);
    while (bytes.length)
        if (!stream->framed || !take_frame(stream, &bytes, time_ms))
            take_line(stream, &bytes, time_ms);
}

void function_log_end_output(struct function_log_stream *stream)
{
    end_unfinished(stream);
    stream->frame = (struct log_frame){0};
}

bool function_log_is_full(struct function_log_stream *stream)
{
    stream->waits_for_room = stream->gathered.length >= STREAM_FULL_BYTES;
    return stream->waits_for_room;
}

bool function_log_is_bursting(const struct function_log_stream *stream)
{
    return stream->gathered.length >= STREAM_BURST_BYTES;
}

void function_log_set_framed(struct function_log_stream *stream)
{
    stream->framed = true;
}

void function_log_set_level(struct function_log_stream *stream, enum log_line_level level)
{
    stream->level = level;
}

void function_log_set_tail(struct function_log_stream *stream, struct buffer *tail)
{
    if (tail)
        end_unfinished(stream); /* of whoever wrote before */
    stream->tail = tail;
}
