/*
 * Closed-loop load: CONNECTIONS keep-alive connections to one address, one request under way on each, for REQUESTS in
 * all after WARMUP that do not count. Prints one line of JSON: latencies in microseconds and requests per second.
 *
 *   load HOST PORT PATH CONNECTIONS WARMUP REQUESTS BODY
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { RESPONSE_BYTES = 65536, CONNECTIONS_MAX = 4096 };

struct connection {
    int fd;
    int64_t sent_ns;
    size_t received;
    char response[RESPONSE_BYTES];
};

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void open_connection(struct connection *connection, const struct sockaddr_in *address)
{
    int one = 1;

    connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection->fd < 0 || connect(connection->fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
        die("connect");
    setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static void send_request(struct connection *connection, const char *request, size_t length)
{
    connection->received = 0;
    connection->sent_ns = now_ns();
    if (write(connection->fd, request, length) != (ssize_t)length)
        die("write");
}

/* True when a whole response is there; anything but 200 ends the program. */
static bool is_complete(struct connection *connection)
{
    char *end;
    char *length;

    connection->response[connection->received] = '\0';
    end = strstr(connection->response, "\r\n\r\n");
    if (!end)
        return false;
    if (strncmp(connection->response, "HTTP/1.1 200", 12)) {
        fprintf(stderr, "unexpected response: %.300s\n", connection->response);
        exit(1);
    }
    length = strcasestr(connection->response, "\r\ncontent-length:");
    if (length && length < end)
        return connection->received >= (size_t)(end + 4 - connection->response) + strtoul(length + 17, NULL, 10);
    return strstr(end, "\r\n0\r\n\r\n"); /* chunked */
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
    static struct connection *connections[CONNECTIONS_MAX];
    struct sockaddr_in address = {.sin_family = AF_INET};
    char request[16384];
    int length, epoll, count;
    long warmup, total, sent = 0, done = 0;
    int64_t *latencies, started = 0;
    double seconds;

    if (argc != 8) {
        fputs("usage: load HOST PORT PATH CONNECTIONS WARMUP REQUESTS BODY\n", stderr);
        return 2;
    }
    inet_pton(AF_INET, argv[1], &address.sin_addr);
    address.sin_port = htons((uint16_t)atoi(argv[2]));
    count = atoi(argv[4]);
    warmup = atol(argv[5]);
    total = warmup + atol(argv[6]);
    latencies = calloc((size_t)total, sizeof(*latencies));
    if (count < 1 || count > CONNECTIONS_MAX || total < 1 || !latencies)
        return 2;
    length =
        snprintf(request, sizeof(request),
                 "POST %s HTTP/1.1\r\nHost: %s:%s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                 argv[3], argv[1], argv[2], strlen(argv[7]), argv[7]);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < count && sent < total; i++, sent++) {
        struct epoll_event event = {.events = EPOLLIN};
        connections[i] = malloc(sizeof(*connections[i]));
        open_connection(connections[i], &address);
        event.data.ptr = connections[i];
        epoll_ctl(epoll, EPOLL_CTL_ADD, connections[i]->fd, &event);
        send_request(connections[i], request, (size_t)length);
    }
    while (done < total) {
        struct epoll_event events[256];
        int ready = epoll_wait(epoll, events, 256, 60000);
        if (ready <= 0)
            die("no answer within a minute");
        for (int i = 0; i < ready; i++) {
            struct connection *connection = events[i].data.ptr;
            ssize_t got = read(connection->fd, connection->response + connection->received,
                               RESPONSE_BYTES - 1 - connection->received);
            if (got <= 0)
                die("read");
            connection->received += (size_t)got;
            if (!is_complete(connection))
                continue;
            latencies[done++] = now_ns() - connection->sent_ns;
            if (done == warmup)
                started = now_ns();
            if (sent < total) {
                sent++;
                send_request(connection, request, (size_t)length);
            }
        }
    }
    seconds = (double)(now_ns() - started) / 1e9;
    total -= warmup;
    qsort(latencies + warmup, (size_t)total, sizeof(*latencies), compare);
    printf("{\"p50_us\":%.1f,\"p99_us\":%.1f,\"per_second\":%.0f}\n", (double)latencies[warmup + total / 2] / 1e3,
           (double)latencies[warmup + total * 99 / 100] / 1e3, (double)total / seconds);
    return 0;
}
