/*
 *   GATHERING --enough, or late--> ASKING (for a socket) --> SENDING --delivered--> GATHERING
 *       ^                            ^                         |
 *       |  given up                  | timer                   | failed
 *       +---------------------- PAUSING <----------------------+
 *
 * PARKED is what GATHERING and PAUSING become when their timer fires while the sandbox is frozen.
 */
#include "worker/telemetry_subscriber.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "worker/platform_event.h"

#include <arpa/inet.h>
#include <stdio.h>

enum {
    ATTEMPTS = 5,
    PAUSE_MS = 50,     /* before the second attempt, doubled for each further one */
    ANSWER_MS = 10000, /* the longest wait for an answer */
    ANSWER_BYTES = 16 * 1024,
};

/* As seen on the service. */
#define DROPPED_REASON "Consumer seems to have fallen behind as it has not acknowledged receipt of logs."

enum state { GATHERING, ASKING, SENDING, PAUSING, PARKED };

/* A connection; its own allocation, because the handle outlives the subscriber's interest in it. */
struct channel {
    uv_tcp_t tcp;
    uv_connect_t connect;
    uv_write_t write;
    struct telemetry_subscriber *subscriber; /* NULL: of no interest any more */
    struct buffer head;                      /* of an HTTP request */
    struct buffer batch;                     /* what is being written, given back when that fails */
    bool connected;
    size_t got;
    char answer[ANSWER_BYTES];
};

struct telemetry_subscriber {
    uv_timer_t timer;
    struct telemetry_settings settings;
    struct telemetry_network network;
    enum state state;
    struct buffer gathered, batch; /* batch: being delivered, complete */
    size_t gathered_items, batch_items;
    uint64_t dropped_items, dropped_bytes;
    unsigned attempts;
    struct channel *channel;
};

static void deliver(struct telemetry_subscriber *subscriber);
static void fail(struct telemetry_subscriber *subscriber);
static void on_timer(uv_timer_t *timer);

/* --- gathering ---------------------------------------------------------------------------------------------------- */

static void start_timer(struct telemetry_subscriber *subscriber, unsigned ms)
{
    uv_timer_start(&subscriber->timer, on_timer, ms, 0);
}

static bool is_enough(const struct telemetry_subscriber *subscriber)
{
    return subscriber->gathered_items >= subscriber->settings.max_items ||
           subscriber->gathered.length >= subscriber->settings.max_bytes;
}

static bool is_full(const struct telemetry_subscriber *subscriber, size_t more)
{
    return subscriber->gathered_items >= 2 * (size_t)subscriber->settings.max_items ||
           (subscriber->gathered_items &&
            subscriber->gathered.length + more > 2 * (size_t)subscriber->settings.max_bytes);
}

static int append(struct telemetry_subscriber *subscriber, struct span event)
{
    struct buffer *gathered = &subscriber->gathered;
    bool tcp = subscriber->settings.protocol == TELEMETRY_TCP;
    int r = buffer_reserve(gathered, event.length + 2);

    if (r < 0)
        return r;
    if (!tcp) {
        gathered->data[gathered->length] = gathered->length ? ',' : '[';
        gathered->length++;
    }
    memcpy(gathered->data + gathered->length, event.data, event.length);
    gathered->length += event.length;
    if (tcp)
        gathered->data[gathered->length++] = '\n';
    subscriber->gathered_items++;
    return 0;
}

static void tell_dropped(struct telemetry_subscriber *subscriber)
{
    CLEANUP(buffer_deinit) struct buffer event = BUFFER_INIT;

    if (platform_event_logs_dropped(&event, clock_wall_ns(), subscriber->dropped_items, subscriber->dropped_bytes,
                                    DROPPED_REASON) == 0 &&
        append(subscriber, buffer_span(&event)) == 0)
        subscriber->dropped_bytes = subscriber->dropped_items = 0;
}

void telemetry_subscriber_add(struct telemetry_subscriber *subscriber, struct span event)
{
    if (!is_full(subscriber, event.length) && subscriber->dropped_items)
        tell_dropped(subscriber);
    if (is_full(subscriber, event.length) || append(subscriber, event) < 0) {
        subscriber->dropped_items++;
        subscriber->dropped_bytes += event.length;
        return;
    }
    if (subscriber->state != GATHERING)
        return;
    if (is_enough(subscriber))
        telemetry_subscriber_flush(subscriber);
    else if (!uv_is_active((uv_handle_t *)&subscriber->timer))
        start_timer(subscriber, subscriber->settings.timeout_ms);
}

void telemetry_subscriber_flush(struct telemetry_subscriber *subscriber)
{
    if (subscriber->state != GATHERING || !subscriber->gathered_items)
        return;
    if (subscriber->settings.protocol == TELEMETRY_HTTP && buffer_append_char(&subscriber->gathered, ']') < 0)
        return; /* no memory: later */
    subscriber->batch = buffer_take(&subscriber->gathered);
    subscriber->batch_items = subscriber->gathered_items;
    subscriber->gathered_items = 0;
    subscriber->attempts = 0;
    deliver(subscriber);
}

static void on_timer(uv_timer_t *timer)
{
    struct telemetry_subscriber *subscriber = timer->data;

    bool frozen = subscriber->network.is_frozen(subscriber->network.context);

    if (subscriber->state == SENDING && frozen)
        start_timer(subscriber, ANSWER_MS);
    else if (subscriber->state == SENDING)
        fail(subscriber);
    else if (frozen)
        subscriber->state = PARKED;
    else if (subscriber->state == GATHERING)
        telemetry_subscriber_flush(subscriber);
    else if (subscriber->state == PAUSING)
        deliver(subscriber);
}

void telemetry_subscriber_on_thaw(struct telemetry_subscriber *subscriber)
{
    if (subscriber->state != PARKED)
        return;
    subscriber->state = GATHERING;
    if (subscriber->batch.length)
        deliver(subscriber);
    else
        telemetry_subscriber_flush(subscriber);
}

/* --- the end of an attempt ---------------------------------------------------------------------------------------- */

static void on_channel_closed(uv_handle_t *handle)
{
    struct channel *channel = handle->data;

    buffer_deinit(&channel->head);
    buffer_deinit(&channel->batch);
    free(channel);
}

/* A batch that is being written stays with the channel until the write has ended. */
static void close_channel(struct telemetry_subscriber *subscriber)
{
    struct channel *channel = TAKE_PTR(subscriber->channel);

    if (!channel)
        return;
    channel->subscriber = NULL;
    uv_close((uv_handle_t *)&channel->tcp, on_channel_closed);
}

static void go_on(struct telemetry_subscriber *subscriber)
{
    buffer_deinit(&subscriber->batch);
    subscriber->batch_items = 0;
    subscriber->state = GATHERING;
    uv_timer_stop(&subscriber->timer);
    telemetry_subscriber_flush(subscriber); /* what has come meanwhile has waited long enough */
}

static void give_up(struct telemetry_subscriber *subscriber, size_t bytes)
{
    subscriber->dropped_items += subscriber->batch_items;
    subscriber->dropped_bytes += bytes;
    go_on(subscriber);
}

static void fail(struct telemetry_subscriber *subscriber)
{
    size_t written = subscriber->channel ? subscriber->channel->batch.length : 0;

    close_channel(subscriber);
    if (written) {
        give_up(subscriber, written); /* cut off in the middle of it */
        return;
    }
    if (subscriber->network.is_frozen(subscriber->network.context)) {
        subscriber->state = PARKED; /* nobody's fault */
        return;
    }
    if (++subscriber->attempts == ATTEMPTS) {
        give_up(subscriber, subscriber->batch.length);
        return;
    }
    subscriber->state = PAUSING;
    start_timer(subscriber, (unsigned)PAUSE_MS << (subscriber->attempts - 1));
}

/* --- delivery ----------------------------------------------------------------------------------------------------- */

static void on_answer(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
    struct channel *channel = stream->data;
    struct telemetry_subscriber *subscriber = channel->subscriber;
    char *end;

    (void)buffer;
    if (!subscriber || n == 0)
        return;
    if (n > 0)
        channel->got += (size_t)n;
    channel->answer[channel->got] = '\0';
    end = strstr(channel->answer, "\r\n\r\n");
    if (n > 0 && !end && channel->got < ANSWER_BYTES - 1)
        return;
    if (end && strncmp(channel->answer, "HTTP/1.", 7) == 0 && channel->answer[9] == '2') {
        close_channel(subscriber);
        go_on(subscriber);
    } else {
        fail(subscriber);
    }
}

static void on_room(uv_handle_t *handle, size_t size, uv_buf_t *buffer)
{
    struct channel *channel = handle->data;

    (void)size;
    *buffer = uv_buf_init(channel->answer + channel->got, (unsigned)(ANSWER_BYTES - 1 - channel->got));
}

/* By TCP the connection stays; anything that is said on it is of no interest, its end is. */
static void on_word(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
    struct channel *channel = stream->data;
    struct telemetry_subscriber *subscriber = channel->subscriber;

    (void)buffer;
    channel->got = 0;
    if (n >= 0 || !subscriber)
        return;
    uv_read_stop(stream);
    if (subscriber->state != SENDING) /* else the write tells */
        close_channel(subscriber);
}

static void on_written(uv_write_t *write, int status)
{
    struct channel *channel = write->data;
    struct telemetry_subscriber *subscriber = channel->subscriber;

    if (!subscriber)
        return;
    subscriber->batch = buffer_take(&channel->batch);
    if (status < 0)
        fail(subscriber);
    else if (subscriber->settings.protocol == TELEMETRY_TCP)
        go_on(subscriber);
    else
        uv_read_start((uv_stream_t *)&channel->tcp, on_room, on_answer);
}

static int make_head(const struct telemetry_subscriber *subscriber, struct buffer *head)
{
    const struct telemetry_settings *settings = &subscriber->settings;

    head->length = 0;
    if (settings->protocol == TELEMETRY_TCP)
        return 0;
    return buffer_printf(head,
                         "%s %s HTTP/1.1\r\nHost: %s:%u\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
                         "Connection: close\r\n\r\n",
                         settings->put ? "PUT" : "POST", settings->path, settings->host, settings->port,
                         subscriber->batch.length);
}

static void write_batch(struct telemetry_subscriber *subscriber)
{
    struct channel *channel = subscriber->channel;
    uv_buf_t buffers[2];

    if (make_head(subscriber, &channel->head) < 0) {
        fail(subscriber);
        return;
    }
    subscriber->state = SENDING;
    start_timer(subscriber, ANSWER_MS);
    channel->batch = buffer_take(&subscriber->batch);
    channel->write.data = channel;
    buffers[0] = uv_buf_init(channel->head.data, (unsigned)channel->head.length);
    buffers[1] = uv_buf_init(channel->batch.data, (unsigned)channel->batch.length);
    if (uv_write(&channel->write, (uv_stream_t *)&channel->tcp, buffers, 2, on_written) < 0) {
        subscriber->batch = buffer_take(&channel->batch);
        fail(subscriber);
    }
}

static void on_connected(uv_connect_t *connect, int status)
{
    struct channel *channel = connect->data;
    struct telemetry_subscriber *subscriber = channel->subscriber;

    if (!subscriber)
        return;
    if (status < 0) {
        fail(subscriber);
        return;
    }
    channel->connected = true;
    if (subscriber->settings.protocol == TELEMETRY_TCP)
        uv_read_start((uv_stream_t *)&channel->tcp, on_room, on_word);
    write_batch(subscriber);
}

static int open_channel(struct telemetry_subscriber *subscriber, int fd)
{
    struct channel *channel = calloc(1, sizeof(*channel));

    if (!channel || uv_tcp_init(subscriber->network.loop, &channel->tcp) < 0) {
        free(channel);
        return -ENOMEM;
    }
    channel->tcp.data = channel->connect.data = channel;
    channel->subscriber = subscriber;
    subscriber->channel = channel;
    return uv_tcp_open(&channel->tcp, fd);
}

void telemetry_subscriber_on_socket(struct telemetry_subscriber *subscriber, int fd)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(subscriber->settings.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int r = fd < 0 ? -EMFILE : open_channel(subscriber, fd);

    if (r < 0) {
        cleanup_close(&fd);
        fail(subscriber);
        return;
    }
    r = uv_tcp_connect(&subscriber->channel->connect, &subscriber->channel->tcp, (const struct sockaddr *)&address,
                       on_connected);
    if (r < 0)
        fail(subscriber);
}

static void deliver(struct telemetry_subscriber *subscriber)
{
    uv_timer_stop(&subscriber->timer);
    if (subscriber->channel) {
        write_batch(subscriber); /* TCP, connected before */
        return;
    }
    subscriber->state = ASKING;
    if (subscriber->network.request_socket(subscriber, subscriber->network.context) < 0)
        fail(subscriber);
}

/* --- the object --------------------------------------------------------------------------------------------------- */

struct telemetry_subscriber *telemetry_subscriber_new(const struct telemetry_settings *settings,
                                                      const struct telemetry_network *network)
{
    struct telemetry_subscriber *subscriber = calloc(1, sizeof(*subscriber));

    if (!subscriber)
        return NULL;
    subscriber->settings = *settings;
    subscriber->network = *network;
    uv_timer_init(network->loop, &subscriber->timer);
    subscriber->timer.data = subscriber;
    return subscriber;
}

static void on_timer_closed(uv_handle_t *handle)
{
    free(handle->data);
}

struct telemetry_subscriber *telemetry_subscriber_free(struct telemetry_subscriber *subscriber)
{
    if (!subscriber)
        return NULL;
    close_channel(subscriber);
    buffer_deinit(&subscriber->gathered);
    buffer_deinit(&subscriber->batch);
    uv_close((uv_handle_t *)&subscriber->timer, on_timer_closed);
    return NULL;
}

const struct telemetry_settings *telemetry_subscriber_settings(const struct telemetry_subscriber *subscriber)
{
    return &subscriber->settings;
}
