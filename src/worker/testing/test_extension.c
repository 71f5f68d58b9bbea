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
 *   telemetry    subscribes to platform and function events by HTTP and prints "got: BATCH"
 *   logs         the same with the Logs API                  tcp        to all by TCP, prints "got: LINE" each
 *   dead         subscribes where nobody listens            busy       the listener answers 500 at first, twice
 *   deaf         the same, until a batch is given up        old        subscribes with schema 2022-07-01
 *   bad          subscribes badly and prints the refusals
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
    int length =
        snprintf(request, sizeof(request),
                 "%s %s%s HTTP/1.1\r\nHost: api\r\n%s%sConnection: close\r\n"
                 "Content-Length: %zu\r\n\r\n%s",
                 method, path[0] == '/' ? "" : "/2020-01-01/extension/", path, id_header, headers, strlen(body), body);
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

/* --- telemetry ---------------------------------------------------------------------------------------------------- */

static char heard[1 << 20];

static void tell(const char *text, size_t length)
{
    static char line[sizeof(heard) + 16];
    int n = snprintf(line, sizeof(line), "got: %.*s\n", (int)length, text);

    if (write(1, line, (size_t)n) < 0)
        exit(97);
}

static void hear_http(int fd, bool refuse)
{
    static const char yes[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", no[] = "HTTP/1.1 500 No\r\n\r\n";
    size_t got = 0, length = 0;
    char *body = NULL;
    ssize_t n;

    while (!body || got < (size_t)(body - heard) + length) {
        n = read(fd, heard + got, sizeof(heard) - 1 - got);
        if (n <= 0)
            return;
        got += (size_t)n;
        heard[got] = '\0';
        body = strstr(heard, "\r\n\r\n");
        if (!body)
            continue;
        length = strtoul(strcasestr(heard, "content-length:") + 15, NULL, 10);
        body += 4;
    }
    if (!refuse)
        tell(body, length);
    if (write(fd, refuse ? no : yes, strlen(refuse ? no : yes)) < 0)
        return;
}

/* What tells of our own telling is not told again. */
static void hear_tcp(int fd)
{
    size_t got = 0;
    ssize_t n;

    while ((n = read(fd, heard + got, sizeof(heard) - 1 - got)) > 0) {
        char *newline;

        got += (size_t)n;
        while ((newline = memchr(heard, '\n', got))) {
            size_t length = (size_t)(newline - heard);

            if (!memmem(heard, length, "got: ", 5))
                tell(heard, length);
            got -= length + 1;
            memmove(heard, newline + 1, got);
        }
    }
}

static void listen_for_ever(int server, bool tcp)
{
    for (int i = 0;; i++) {
        int fd = accept(server, NULL, NULL);

        if (tcp)
            hear_tcp(fd);
        else
            hear_http(fd, i < (is("deaf") ? 5 : is("busy") ? 2 : 0));
        close(fd);
    }
}

static unsigned listen_somewhere(bool tcp)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int server = socket(AF_INET, SOCK_STREAM, 0);

    if (bind(server, (struct sockaddr *)&address, sizeof(address)) < 0 || (!is("dead") && listen(server, 8) < 0) ||
        getsockname(server, (struct sockaddr *)&address, &length) < 0)
        exit(88);
    if (!is("dead") && fork() == 0)
        listen_for_ever(server, tcp);
    return ntohs(address.sin_port);
}

static void subscribe(void)
{
    bool tcp = is("tcp"), logs = is("logs");
    unsigned port = listen_somewhere(tcp);
    char body[512];
    int status;

    snprintf(body, sizeof(body),
             "{\"schemaVersion\":\"%s\",\"types\":[\"platform\",\"function\"%s],\"buffering\":{\"timeoutMs\":25},"
             "\"destination\":{\"protocol\":\"%s\",\"%s\":%s%u%s}}",
             logs        ? "2020-08-15"
             : is("old") ? "2022-07-01"
                         : "2022-12-13",
             tcp ? ",\"extension\"" : "", tcp ? "TCP" : "HTTP", tcp ? "port" : "URI",
             tcp ? "" : "\"http://sandbox.localdomain:", port, tcp ? "" : "/events\"");
    say(ask("PUT", logs ? "/2020-08-15/logs" : "/2022-07-01/telemetry", "", body, &status));
    if (status != 200)
        exit(89);
}

static void subscribe_badly(void)
{
    int status;

    say(ask("PUT", "/2022-07-01/telemetry", "", "{}", &status));
    say(ask("POST", "/2022-07-01/telemetry", "", "{}", &status));
    id_header[0] = '\0';
    say(ask("PUT", "/2020-08-15/logs", "", "{}", &status));
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
        if (is("telemetry") || is("logs") || is("tcp"))
            nap(200); /* for the last batch */
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
    if (is("telemetry") || is("logs") || is("tcp"))
        subscribe();
    if (is("bad")) {
        char id[sizeof(id_header)];

        memcpy(id, id_header, sizeof(id));
        subscribe_badly();
        memcpy(id_header, id, sizeof(id));
    }
    if (is("initerror"))
        post_error("init/error", 1);
    for (;;) {
        char *event = ask("GET", "event/next", "", "", &status);

        if (status != 200)
            exit(94);
        on_event(event);
    }
}
