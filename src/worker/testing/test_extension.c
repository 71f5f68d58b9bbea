/*
 * An external extension for the worker's tests: what it does is in its file name, words joined by '-':
 *
 *   crash        exits 3 instead of registering             silent     registers for no event
 *   leave        exits 0 after it has registered            invoke     registers for INVOKE alone
 *   initerror    posts init/error, exits 1                  hang       never registers
 *   slow         takes 300 ms for each INVOKE               stubborn   does not exit on SHUTDOWN
 *   dies         exits 5 on INVOKE                          variables  prints its environment in Init
 *   exiterror    posts exit/error on INVOKE, exits 6
 *
 * It prints what it hears: "NAME: BODY". Static, so that it runs in an empty sandbox.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static const char *name;
static char id_header[128];
static char answer[65536];

static bool is(const char *word)
{
    const char *at = strstr(name, word);

    return at && (at == name || at[-1] == '-') && (at[strlen(word)] == '\0' || at[strlen(word)] == '-');
}

static void nap(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};

    while (nanosleep(&time, &time) < 0 && errno == EINTR)
        ;
}

static int dial(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    const char *api = getenv("AWS_LAMBDA_RUNTIME_API");
    char host[64];
    char *colon;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    snprintf(host, sizeof(host), "%s", api ? api : "");
    colon = strchr(host, ':');
    if (!colon)
        exit(91);
    *colon = '\0';
    address.sin_port = htons((unsigned short)atoi(colon + 1));
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1 ||
        connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        exit(93);
    return fd;
}

/* One request on a connection of its own; its status. `answer` then holds the whole of it; returns where the body is.
 */
static char *ask(const char *method, const char *path, const char *headers, const char *body, int *status)
{
    char request[1024];
    int length = snprintf(request, sizeof(request),
                          "%s /2020-01-01/extension/%s HTTP/1.1\r\nHost: api\r\n%s%sConnection: close\r\n"
                          "Content-Length: %zu\r\n\r\n%s",
                          method, path, id_header, headers, strlen(body), body);
    int fd = dial();
    size_t got = 0;
    ssize_t n;
    char *end;

    if (write(fd, request, (size_t)length) != length)
        exit(95);
    while ((n = read(fd, answer + got, sizeof(answer) - 1 - got)) > 0)
        got += (size_t)n;
    answer[got] = '\0';
    close(fd);
    end = strstr(answer, "\r\n\r\n");
    if (!end)
        exit(96);
    *status = atoi(answer + strlen("HTTP/1.1 "));
    return end + 4;
}

static void say(const char *text)
{
    char line[2048];
    int length = snprintf(line, sizeof(line), "%s: %s\n", name, text);

    if (write(1, line, (size_t)length) < 0)
        exit(97);
}

static void enroll(const char *events)
{
    char headers[256];
    char body[128];
    char *field;
    int status;

    snprintf(headers, sizeof(headers), "Lambda-Extension-Name: %s\r\nLambda-Extension-Accept-Feature: accountId\r\n",
             name);
    snprintf(body, sizeof(body), "{\"events\":[%s]}", events);
    say(ask("POST", "register", headers, body, &status));
    field = strcasestr(answer, "\r\nlambda-extension-identifier: ");
    if (status != 200 || !field)
        exit(98);
    snprintf(id_header, sizeof(id_header), "Lambda-Extension-Identifier: %.36s\r\n", field + 31);
}

static void post_error(const char *path, int exit_status)
{
    int status;

    ask("POST", path, "Lambda-Extension-Function-Error-Type: Extension.Mine\r\n", "", &status);
    exit(status == 202 ? exit_status : 99);
}

static void on_event(const char *event)
{
    say(event);
    if (strstr(event, "\"SHUTDOWN\"")) {
        while (is("stubborn"))
            pause();
        exit(0);
    }
    if (is("slow"))
        nap(300);
    if (is("dies"))
        exit(5);
    if (is("exiterror"))
        post_error("exit/error", 6);
}

int main(int argc, char **argv)
{
    int status;

    (void)argc;
    name = strrchr(argv[0], '/');
    name = name ? name + 1 : argv[0];
    if (is("crash"))
        exit(3);
    while (is("hang"))
        pause();
    for (char **variable = environ; is("variables") && *variable; variable++)
        say(*variable);
    enroll(is("silent") ? "" : is("invoke") ? "\"INVOKE\"" : "\"INVOKE\",\"SHUTDOWN\"");
    if (is("leave"))
        exit(0);
    if (is("initerror"))
        post_error("init/error", 1);
    for (;;) {
        char *event = ask("GET", "event/next", "", "", &status);

        if (status != 200)
            exit(94);
        on_event(event);
    }
}
