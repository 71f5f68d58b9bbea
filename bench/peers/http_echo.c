/* An event-loop HTTP/1.1 echo server behind nginx: answers each POST with its body. Usage: http_echo PORT */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { BUFFER_BYTES = 65536 };

struct connection {
    int fd;
    size_t received;
    char buffer[BUFFER_BYTES];
};

static void answer(struct connection *connection)
{
    char *end, *field, head[128];
    size_t length, whole;
    struct iovec parts[2];

    connection->buffer[connection->received] = '\0';
    end = strstr(connection->buffer, "\r\n\r\n");
    if (!end)
        return;
    field = strcasestr(connection->buffer, "\r\ncontent-length:");
    length = field && field < end ? strtoul(field + 17, NULL, 10) : 0;
    whole = (size_t)(end + 4 - connection->buffer) + length;
    if (connection->received < whole)
        return;
    parts[0].iov_base = head;
    parts[0].iov_len = (size_t)snprintf(
        head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n", length);
    parts[1].iov_base = end + 4;
    parts[1].iov_len = length;
    if (writev(connection->fd, parts, 2) < 0)
        perror("writev");
    connection->received = 0;
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    int one = 1;
    struct epoll_event event = {.events = EPOLLIN};

    if (argc != 2)
        return 2;
    address.sin_port = htons((unsigned short)atoi(argv[1]));
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(listener, 1024) < 0)
        return 1;
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        struct epoll_event events[64];
        int ready = epoll_wait(epoll, events, 64, -1);
        for (int i = 0; i < ready; i++) {
            struct connection *connection = events[i].data.ptr;
            ssize_t got;
            if (!connection) {
                connection = calloc(1, sizeof(*connection));
                connection->fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
                setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
                event.data.ptr = connection;
                epoll_ctl(epoll, EPOLL_CTL_ADD, connection->fd, &event);
                continue;
            }
            got = read(connection->fd, connection->buffer + connection->received,
                       BUFFER_BYTES - 1 - connection->received);
            if (got <= 0) {
                close(connection->fd);
                free(connection);
                continue;
            }
            connection->received += (size_t)got;
            answer(connection);
        }
    }
}
