/*
 * A runtime that does not keep to the Runtime API. The event says how, and the answer to the invocation is a list of
 * the status codes and bodies that it got for it:
 *
 *   {"do":"twice"}      answers, then answers again        {"do":"other"}   answers for another request id first
 *   {"do":"early"}      asks for the next event first      {"do":"mode"}    names a response mode that there is none of
 *   {"do":"error"}      answers, then posts an error       {"do":"init"}    posts an Init error in the middle
 *   {"do":"last"}       tells what the last invocation got after its answer
 *   {"do":"silent"}     never asks for anything again      {"do":"short"}   breaks its answer off and ends
 */
#define _GNU_SOURCE
#include "client.h"

#include <stdbool.h>

static char seen[8192];

static void see(const char *what, const char *method, const char *path, const char *headers, const char *body)
{
    static char request[16384], response[16384];
    struct sockaddr_in address;
    socklen_t size = sizeof(address);
    int other = socket(AF_INET, SOCK_STREAM, 0);
    size_t length = 0;
    ssize_t n;
    char *text;

    getpeername(client_socket, (struct sockaddr *)&address, &size);
    if (connect(other, (struct sockaddr *)&address, sizeof(address)) < 0)
        exit(107);
    snprintf(request, sizeof(request),
             "%s /2018-06-01/runtime/%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%sContent-Length: %zu\r\n\r\n%s",
             method, path, headers, strlen(body), body);
    if (write(other, request, strlen(request)) < 0)
        exit(108);
    while ((n = read(other, response + length, sizeof(response) - 1 - length)) > 0)
        length += (size_t)n;
    response[length] = '\0';
    close(other);
    text = strstr(response, "\r\n\r\n");
    snprintf(seen + strlen(seen), sizeof(seen) - strlen(seen), "%s[\"%s\",%.3s,%s]", seen[0] ? "," : "", what,
             response + strlen("HTTP/1.1 "), text && text[4] ? text + 4 : "null");
}

static void path_of(char *path, size_t size, const char *id, const char *end)
{
    snprintf(path, size, "invocation/%s/%s", id, end);
}

static void answer_seen(void)
{
    char text[8300];

    snprintf(text, sizeof(text), "[%s]", seen);
    client_answer(text);
    seen[0] = '\0';
}

int main(void)
{
    char path[128];

    client_connect();
    for (;;) {
        const char *event = client_next();
        bool twice = strstr(event, "twice"), error = strstr(event, "\"error\"");
        char id[64];

        snprintf(id, sizeof(id), "%s", client_request_id);
        if (strstr(event, "silent"))
            for (;;)
                pause();
        if (strstr(event, "short")) {
            dprintf(
                client_socket,
                "POST /2018-06-01/runtime/invocation/%s/response HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{",
                id);
            exit(0);
        }
        if (strstr(event, "other")) {
            path_of(path, sizeof(path), "11111111-2222-3333-4444-555555555555", "response");
            see("other", "POST", path, "", "1");
        }
        if (strstr(event, "early"))
            see("early", "GET", "invocation/next", "", "");
        if (strstr(event, "init"))
            see("init", "POST", "init/error", "", "{}");
        if (strstr(event, "mode")) {
            path_of(path, sizeof(path), id, "response");
            see("mode", "POST", path, "Lambda-Runtime-Function-Response-Mode: slow\r\n", "1");
            continue;
        }
        answer_seen();
        path_of(path, sizeof(path), id, twice ? "response" : "error");
        if (twice || error)
            see(twice ? "twice" : "error", "POST", path, "", "{}");
    }
}
