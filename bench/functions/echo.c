/*
 * A function that returns its event: the least a custom runtime can be. One kept-alive connection to the Runtime API,
 * blocking reads, no library but libc. Linked statically. The next event is asked for right behind the answer, without
 * waiting for that one's acknowledgement (HTTP/1.1 pipelining, RFC 9112 section 9.3.2); with the handler "waits" it
 * does wait, as most clients do.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 20 };

static char buffer[BUFFER_BYTES];
static int api;
static size_t got;   /* bytes in `buffer` */
static size_t taken; /* those of them that answers before the current one had */
static char next[] = "GET /2018-06-01/runtime/invocation/next HTTP/1.1\r\nHost: runtime\r\n\r\n";

static void connect_to_api(void)
{
    const char *where = getenv("AWS_LAMBDA_RUNTIME_API");
    struct sockaddr_in address = {.sin_family = AF_INET};
    char host[64];
    char *colon;
    int one = 1;

    if (!where)
        exit(1);
    snprintf(host, sizeof(host), "%s", where);
    colon = strrchr(host, ':');
    *colon = '\0';
    inet_pton(AF_INET, host, &address.sin_addr);
    address.sin_port = htons((unsigned short)atoi(colon + 1));
    api = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(api, (struct sockaddr *)&address, sizeof(address)) < 0)
        exit(2);
    setsockopt(api, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

/* Reads one answer: returns its head, its body and that one's length. */
static char *receive(char **body, size_t *length)
{
    static const char field[] = "\r\nContent-Length: ";

    memmove(buffer, buffer + taken, got - taken);
    got -= taken;
    taken = 0;
    for (;;) {
        char *end = got ? memmem(buffer, got, "\r\n\r\n", 4) : NULL;
        ssize_t n;
        if (end) {
            char *found = memmem(buffer, (size_t)(end - buffer), field, sizeof(field) - 1);
            *length = found ? strtoul(found + sizeof(field) - 1, NULL, 10) : 0;
            *body = end + 4;
            taken = (size_t)(*body - buffer) + *length;
            if (got >= taken)
                return buffer;
        }
        n = read(api, buffer + got, BUFFER_BYTES - got);
        if (n <= 0)
            exit(3);
        got += (size_t)n;
    }
}

/* Posts the answer to the invocation with that id and, when `asks`, asks for the next event in the same segment. */
static void post(const char *id, char *body, size_t length, bool asks)
{
    char head[256];
    struct iovec parts[3] = {{head, 0}, {body, length}, {next, sizeof(next) - 1}};

    parts[0].iov_len = (size_t)snprintf(head, sizeof(head),
                                        "POST /2018-06-01/runtime/invocation/%.36s/response HTTP/1.1\r\n"
                                        "Host: runtime\r\nContent-Length: %zu\r\n\r\n",
                                        id, length);
    if (writev(api, parts, asks ? 3 : 2) < 0)
        exit(5);
}

static void ask(void)
{
    if (write(api, next, sizeof(next) - 1) < 0)
        exit(4);
}

int main(int argc, char **argv)
{
    static const char field[] = "\r\nLambda-Runtime-Aws-Request-Id: ";
    char *head, *body;
    size_t length;
    bool waits;

    (void)argv;
    if (argc > 1)
        return 0; /* for fork + exec + exit of this very binary */
    connect_to_api();
    waits = strcmp(getenv("_HANDLER"), "waits") == 0;
    ask();
    for (;;) {
        head = receive(&body, &length);
        post((char *)memmem(head, (size_t)(body - head), field, sizeof(field) - 1) + sizeof(field) - 1, body, length,
             !waits);
        receive(&body, &length);
        if (waits)
            ask();
    }
}
