/*
 * A small function for tests that need many or quick environments: a static Runtime API client over a raw socket. The
 * event says what to do; numbers are found by name in the JSON text:
 *
 *   {"sleep_ms": N}   answers after N ms        {"exit": N}    exits with status N instead of answering
 *   {"signal": N}     kills itself              {"hang": 1}    never answers
 *
 * The answer is {"pid": process id, "count": how many events this process has had}.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER_BYTES = 65536 };

static char buffer[BUFFER_BYTES];
static int api;

static void connect_to_api(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    const char *where = getenv("AWS_LAMBDA_RUNTIME_API");
    char host[64];
    char *colon;

    if (!where)
        exit(101);
    snprintf(host, sizeof(host), "%s", where);
    colon = strrchr(host, ':');
    *colon = '\0';
    inet_pton(AF_INET, host, &address.sin_addr);
    address.sin_port = htons((unsigned short)atoi(colon + 1));
    api = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(api, (struct sockaddr *)&address, sizeof(address)) < 0)
        exit(102);
}

/* Sends a request and reads the whole response; returns where its body begins. */
static char *exchange(const char *request)
{
    size_t got = 0;

    if (write(api, request, strlen(request)) < 0)
        exit(103);
    for (;;) {
        ssize_t count = read(api, buffer + got, BUFFER_BYTES - 1 - got);
        char *end, *field;
        if (count <= 0)
            exit(104);
        got += (size_t)count;
        buffer[got] = '\0';
        end = strstr(buffer, "\r\n\r\n");
        if (!end)
            continue;
        field = strcasestr(buffer, "\r\ncontent-length:");
        if (got >= (size_t)(end + 4 - buffer) + (field ? strtoul(field + 17, NULL, 10) : 0))
            return end + 4;
    }
}

/* The number after "name": in the event, 0 when it is not there. */
static long number(const char *event, const char *name)
{
    char key[32];
    const char *at;

    snprintf(key, sizeof(key), "\"%s\":", name);
    at = strstr(event, key);
    return at ? strtol(at + strlen(key), NULL, 10) : 0;
}

static void obey(const char *event)
{
    usleep((useconds_t)number(event, "sleep_ms") * 1000);
    if (strstr(event, "\"exit\":"))
        exit((int)number(event, "exit"));
    if (number(event, "signal"))
        kill(getpid(), (int)number(event, "signal"));
    while (number(event, "hang"))
        pause();
}

int main(void)
{
    connect_to_api();
    for (int count = 1;; count++) {
        char id[64] = "", answer[128], request[512];
        char *event = exchange("GET /2018-06-01/runtime/invocation/next HTTP/1.1\r\nHost: api\r\n\r\n");
        sscanf(strcasestr(buffer, "\r\nlambda-runtime-aws-request-id:") + 32, " %63[0-9a-f-]", id);
        obey(event);
        snprintf(answer, sizeof(answer), "{\"pid\":%d,\"count\":%d}", (int)getpid(), count);
        snprintf(
            request, sizeof(request),
            "POST /2018-06-01/runtime/invocation/%s/response HTTP/1.1\r\nHost: api\r\nContent-Length: %zu\r\n\r\n%s",
            id, strlen(answer), answer);
        exchange(request);
    }
}
