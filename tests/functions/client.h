/*
 * The least Runtime API client that a test function needs: raw blocking requests on one connection. Static functions in
 * a header, because each test function is compiled by itself, statically, with nothing beside it.
 */
#pragma once

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLIENT_BYTES = 65536 };

static char client_buffer[CLIENT_BYTES];
static char client_request_id[64];
static int client_socket;

static void client_connect(void)
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
    client_socket = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(client_socket, (struct sockaddr *)&address, sizeof(address)) < 0)
        exit(102);
}

/* Sends a request and reads the whole response; returns where its body begins. */
static char *client_exchange(const char *request)
{
    size_t got = 0;

    if (write(client_socket, request, strlen(request)) < 0)
        exit(103);
    for (;;) {
        ssize_t count = read(client_socket, client_buffer + got, CLIENT_BYTES - 1 - got);
        char *end, *field;
        if (count <= 0)
            exit(104);
        got += (size_t)count;
        client_buffer[got] = '\0';
        end = strstr(client_buffer, "\r\n\r\n");
        if (!end)
            continue;
        field = strcasestr(client_buffer, "\r\ncontent-length:");
        if (got >= (size_t)(end + 4 - client_buffer) + (field ? strtoul(field + 17, NULL, 10) : 0))
            return end + 4;
    }
}

/* Waits for the next event; it stays valid until the next exchange. */
static char *client_next(void)
{
    char *event = client_exchange("GET /2018-06-01/runtime/invocation/next HTTP/1.1\r\nHost: api\r\n\r\n");

    sscanf(strcasestr(client_buffer, "\r\nlambda-runtime-aws-request-id:") + 32, " %63[0-9a-f-]", client_request_id);
    return event;
}

static void client_answer(const char *answer)
{
    static char request[CLIENT_BYTES];

    snprintf(request, sizeof(request),
             "POST /2018-06-01/runtime/invocation/%s/response HTTP/1.1\r\nHost: api\r\nContent-Length: %zu\r\n\r\n%s",
             client_request_id, strlen(answer), answer);
    client_exchange(request);
}
