/*
 * A whole server on a real loop, fed through a local socket. The input is a script: each record is one byte of what
 * to do and, for sending, a length and the bytes.
 *
 *   0..199: send the next (that many) bytes, then turn the loop     200..: see `act`
 */
#include "http/server.h"

#include <sys/socket.h>
#include <sys/un.h>

enum { PARKED_MAX = 8 };

struct world {
    uv_loop_t loop;
    struct http_server *server;
    struct http_listener *listener;
    struct sockaddr_un address;
    socklen_t address_length;
    struct http_request *parked[PARKED_MAX];
    size_t parked_count;
    bool streaming[PARKED_MAX];
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct buffer some_bytes(size_t length)
{
    struct buffer bytes = BUFFER_INIT;

    if (buffer_reserve(&bytes, length + 1) < 0)
        abort();
    memset(bytes.data, 'x', length);
    bytes.length = length;
    return bytes;
}

static void on_piece(struct http_request *request, struct span piece, void *context)
{
    (void)request, (void)context;
    if (!piece.length)
        abort();
}

static void on_headers(struct http_request *request, void *context)
{
    struct span path = http_request_path(request);

    (void)context;
    if (span_starts_with(path, SPAN("/e")))
        http_respond(request, 403, NULL, 0, NULL);
    else if (span_starts_with(path, SPAN("/l")))
        http_request_set_body_limit(request, 8);
    else if (span_starts_with(path, SPAN("/p")))
        http_request_stream_body(request, on_piece);
}

static void on_request(struct http_request *request, void *context)
{
    struct world *world = context;
    struct buffer body = http_request_take_body(request);

    for (size_t i = 0; i < http_request_header_count(request); i++)
        if (!http_request_header(request, http_request_header_at(request, i).name).data)
            abort();
    if (span_starts_with(http_request_path(request), SPAN("/p")) && world->parked_count < PARKED_MAX) {
        world->streaming[world->parked_count] = false;
        world->parked[world->parked_count++] = request;
        buffer_deinit(&body);
        return;
    }
    http_respond(request, 200, NULL, 0, &body);
}

static void on_gone(struct http_request *request, void *context)
{
    struct world *world = context;

    for (size_t i = 0; i < world->parked_count; i++)
        if (world->parked[i] == request)
            world->parked[i] = NULL;
}

static const struct http_handler handler = {.on_headers = on_headers, .on_request = on_request, .on_gone = on_gone};

static void start(struct world *world)
{
    const struct http_server_config config = {.loop = &world->loop, .header_bytes = 2048, .body_bytes = 256 * 1024};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    *world = (struct world){.address.sun_family = AF_UNIX, .address_length = sizeof(world->address)};
    if (uv_loop_init(&world->loop) < 0 || http_server_new(&config, &world->server) < 0 || fd < 0 ||
        bind(fd, (struct sockaddr *)&world->address, sizeof(sa_family_t)) < 0 || listen(fd, 8) < 0 ||
        getsockname(fd, (struct sockaddr *)&world->address, &world->address_length) < 0 ||
        http_server_adopt(world->server, fd, false, &handler, world, &world->listener) < 0)
        abort();
}

static int connect_to(struct world *world)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&world->address, world->address_length) < 0)
        abort();
    return fd;
}

static void turn(struct world *world)
{
    for (size_t i = 0; i < 3; i++)
        uv_run(&world->loop, UV_RUN_NOWAIT);
}

static void act_on_parked(struct world *world, uint8_t what)
{
    struct http_request *request = world->parked_count ? world->parked[--world->parked_count] : NULL;
    bool streaming = request && world->streaming[world->parked_count];
    struct buffer bytes = BUFFER_INIT;

    if (!request)
        return;
    switch (what % 4) {
    case 0:
        if (streaming) {
            http_response_end(request, NULL, 0);
        } else {
            bytes = some_bytes((size_t)what * 8192);
            http_respond(request, 200, NULL, 0, &bytes);
        }
        return;
    case 1:
        if (!streaming)
            http_response_start(request, 200, NULL, 0, NULL);
        world->streaming[world->parked_count++] = true;
        return;
    case 2:
        if (streaming) {
            bytes = some_bytes((size_t)what * 997);
            http_response_write(request, &bytes);
        }
        world->parked_count++;
        return;
    default:
        http_response_abort(request);
    }
}

static void drain(int fd)
{
    char bytes[64 * 1024];

    while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
        continue;
}

/* Returns the descriptor to go on with. */
static int act(struct world *world, uint8_t what, int fd)
{
    if (what < 230) {
        act_on_parked(world, what);
    } else if (what < 240) {
        drain(fd);
    } else if (what < 244) {
        shutdown(fd, SHUT_WR);
    } else if (what < 248) {
        close(fd);
        fd = connect_to(world);
    } else if (what < 250) {
        http_server_shutdown(world->server, NULL, NULL);
        close(fd);
        fd = -1;
    } else {
        http_listener_close(world->listener, what % 2);
        world->listener = NULL;
        close(fd);
        fd = -1;
    }
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world world;
    int fd;

    start(&world);
    fd = connect_to(&world);
    while (size && fd >= 0 && world.listener) {
        uint8_t what = *data;
        data++;
        size--;
        if (what < 200) {
            size_t length = MIN((size_t)what, size);
            (void)!send(fd, data, length, MSG_NOSIGNAL);
            data += length;
            size -= length;
        } else {
            fd = act(&world, what, fd);
        }
        turn(&world);
    }
    if (fd >= 0)
        close(fd);
    turn(&world);
    http_server_free(world.server);
    uv_run(&world.loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&world.loop) < 0)
        abort();
    return 0;
}
