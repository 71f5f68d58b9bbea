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
#include "worker/log_file.h"
#include "worker/log_frame.h"
#include "worker/log_record.h"
#include "worker/platform_event.h"

#include <stdio.h>

/* What a stream has lost, until it has been said in the stream itself. */
struct loss {
    uint64_t records;
    uint64_t bytes;
    char reason[96];
};

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
    uint64_t gathered_records;
    struct loss loss;
    bool json;
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
    uint64_t records; /* in `bytes`, but for the notice of a loss */
    size_t notice;    /* bytes of that notice, in front */
    bool last;        /* the stream is closed: free it afterwards */
    int error;        /* errno: nothing was written */
    uint64_t removed_bytes;
};

struct job {
    uv_work_t work;
    struct function_log *log; /* NULL: the writer is gone */
    uv_sem_t written;
    char *directory;
    struct log_file_limits limits;
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
    struct log_file_limits limits;
    struct list dirty;
    struct job *running;
    uint64_t lost_bytes;
    bool flush_again; /* a flush was asked for while one was running */
    bool complained;
};

/* --- the pool's side ---------------------------------------------------------------------------------------------- */

static void write_part(struct job *job, struct part *part)
{
    int r = log_file_append(job->directory, part->path, buffer_span(&part->bytes), &job->limits, &part->removed_bytes);

    if (r >= 0)
        return;
    part->error = -r;
    job->lost_bytes += part->bytes.length;
    if (!job->error)
        job->error = -r;
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

static int append_notice(struct buffer *buffer, const struct function_log_stream *stream)
{
    CLEANUP(buffer_deinit) struct buffer text = BUFFER_INIT;
    const struct loss *loss = &stream->loss;
    int64_t wall_ns = clock_wall_ns();
    int r;

    if (stream->json)
        r = platform_event_logs_dropped(&text, wall_ns, loss->records, loss->bytes, loss->reason);
    else
        r = buffer_printf(&text, "Kiln: %llu lines (%llu bytes) of this log were lost: %s",
                          (unsigned long long)loss->records, (unsigned long long)loss->bytes, loss->reason);
    if (r == 0)
        r = buffer_append_char(&text, '\n');
    return r < 0 ? r : log_record_append(buffer, wall_ns / NS_PER_MS, buffer_span(&text));
}

/* Puts what has been lost before in front. When there is no memory for it, it waits. */
static void add_notice(struct part *part)
{
    CLEANUP(buffer_deinit) struct buffer whole = BUFFER_INIT;
    size_t length;

    if (!part->stream->loss.bytes || append_notice(&whole, part->stream) < 0)
        return;
    length = whole.length;
    if (buffer_append_span(&whole, buffer_span(&part->bytes)) < 0)
        return;
    buffer_deinit(&part->bytes);
    part->bytes = buffer_take(&whole);
    part->notice = length;
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
    job->limits = log->limits;
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
        part->records = stream->gathered_records;
        stream->gathered_records = 0;
        part->last = stream->closed;
        add_notice(part);
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

static void add_loss(struct loss *loss, uint64_t records, uint64_t bytes, const char *reason)
{
    loss->records += records;
    loss->bytes += bytes;
    snprintf(loss->reason, sizeof(loss->reason), "%s", reason);
}

/* What the part has to say about losses: the old ones are said once it is written, a new one waits for its turn. */
static void settle_loss(const struct part *part)
{
    struct loss *loss = &part->stream->loss;

    if (part->error) {
        add_loss(loss, part->records, part->bytes.length - part->notice, strerror(part->error));
        return;
    }
    if (part->notice)
        *loss = (struct loss){0}; /* none has come in between: one job at a time */
    if (part->removed_bytes)
        add_loss(loss, 0, part->removed_bytes, "the oldest records had to go (--log-stream-bytes)");
}

static void settle_stream(const struct part *part)
{
    struct function_log_stream *stream = part->stream;

    if (part->last) {
        stream_free(stream);
        return;
    }
    settle_loss(part);
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

void function_log_set_limits(struct function_log *log, const struct log_file_limits *limits)
{
    log->limits = *limits;
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
        add_loss(&stream->loss, 1, message.length, strerror(ENOMEM));
        return;
    }
    stream->gathered_records++;
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

void function_log_set_json(struct function_log_stream *stream, enum log_line_level level)
{
    stream->json = true;
    stream->level = level;
}

void function_log_set_tail(struct function_log_stream *stream, struct buffer *tail)
{
    if (tail)
        end_unfinished(stream); /* of whoever wrote before */
    stream->tail = tail;
}
