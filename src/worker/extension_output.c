#include "worker/extension_output.h"

#include "base/clock.h"
#include "worker/log_record.h"

#include <fcntl.h>

enum { DRAIN_READS = 2 };

struct extension_output {
    uv_poll_t poll;
    int read_fd, write_fd;
    bool paused;
    struct function_log_stream *log;
    char *scratch;
    size_t scratch_bytes;
    extension_output_line *on_line;
    void *context;
    struct buffer line; /* after the last newline */
};

static void end_line(struct extension_output *output)
{
    if (!output->line.length)
        return;
    function_log_event(output->log, buffer_span(&output->line), clock_wall_ns());
    output->on_line(buffer_span(&output->line), output->context);
    output->line.length = 0;
}

static void take(struct extension_output *output, struct span bytes)
{
    while (bytes.length) {
        const char *newline = memchr(bytes.data, '\n', bytes.length);
        size_t length = newline ? (size_t)(newline - bytes.data) + 1 : bytes.length;

        length = MIN(length, LOG_RECORD_MESSAGE_MAX - output->line.length);
        if (buffer_append(&output->line, bytes.data, length) < 0)
            return; /* no memory for it */
        bytes = span_slice(bytes, length, bytes.length);
        if (output->line.data[output->line.length - 1] == '\n' || output->line.length == LOG_RECORD_MESSAGE_MAX)
            end_line(output);
    }
}

/* One piece. False when there is no more now. */
static bool read_piece(struct extension_output *output)
{
    ssize_t n = read(output->read_fd, output->scratch, output->scratch_bytes);

    if (n > 0)
        take(output, span_of(output->scratch, (size_t)n));
    return n == (ssize_t)output->scratch_bytes;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct extension_output *output = poll->data;

    (void)status; /* an error shows in the read */
    (void)events;
    read_piece(output);
    if (function_log_is_full(output->log)) {
        uv_poll_stop(poll);
        output->paused = true;
    }
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

int extension_output_new(uv_loop_t *loop, struct function_log_stream *log, char *scratch, size_t scratch_bytes,
                         extension_output_line *on_line, void *context, struct extension_output **ret_output)
{
    struct extension_output *output = calloc(1, sizeof(*output));
    int ends[2];
    int r;

    if (!output)
        return -ENOMEM;
    if (pipe2(ends, O_CLOEXEC) < 0) {
        r = -errno;
        free(output);
        return r;
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    r = uv_poll_init(loop, &output->poll, ends[0]);
    if (r < 0) {
        close(ends[0]);
        close(ends[1]);
        free(output);
        return r;
    }
    output->poll.data = output;
    output->read_fd = ends[0];
    output->write_fd = ends[1];
    output->log = log;
    output->scratch = scratch;
    output->scratch_bytes = scratch_bytes;
    output->on_line = on_line;
    output->context = context;
    uv_poll_start(&output->poll, UV_READABLE, on_readable);
    *ret_output = output;
    return 0;
}

struct extension_output *extension_output_free(struct extension_output *output)
{
    if (!output)
        return NULL;
    extension_output_drain(output);
    end_line(output);
    buffer_deinit(&output->line);
    uv_close((uv_handle_t *)&output->poll, on_closed);
    close(output->read_fd);
    close(output->write_fd);
    return NULL;
}

int extension_output_fd(const struct extension_output *output)
{
    return output->write_fd;
}

void extension_output_drain(struct extension_output *output)
{
    for (int i = 0; output && !output->paused && i < DRAIN_READS; i++)
        if (!read_piece(output))
            return;
}

void extension_output_on_room(struct extension_output *output)
{
    if (output && output->paused)
        uv_poll_start(&output->poll, UV_READABLE, on_readable);
    if (output)
        output->paused = false;
}
