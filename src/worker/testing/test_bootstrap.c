/*
 * A custom runtime for the worker's tests: a bare Runtime API client that does what the event says, well or badly. The
 * event is a JSON string, "COMMAND ARGUMENT"; INIT in the environment says how Init goes. Answers are plain text.
 *
 * Static and without libc comforts beyond stdio, so that it runs in an empty sandbox.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ROOT "/2018-06-01/runtime/"

extern char **environ;

static int connection = -1;
static bool closing;    /* the last answer said Connection: close */
static int last_status; /* of the last request that a command made besides its answer */
static unsigned calls;

struct event {
    char id[64];
    char text[256]; /* without the quotes */
    char headers[4096];
};

static void nap(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};

    while (nanosleep(&time, &time) < 0 && errno == EINTR)
        ;
}

static int dial(void)
{
    char host[64];
    const char *api = getenv("AWS_LAMBDA_RUNTIME_API");
    char *colon;
    struct sockaddr_in address = {.sin_family = AF_INET};
    int one = 1;
    int fd;

    if (!api)
        exit(90);
    snprintf(host, sizeof(host), "%s", api);
    colon = strchr(host, ':');
    if (!colon)
        exit(91);
    *colon = '\0';
    address.sin_port = htons((unsigned short)atoi(colon + 1));
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1)
        exit(92);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        exit(93);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return fd;
}

static bool send_all(int fd, const char *data, size_t length)
{
    while (length) {
        ssize_t n = send(fd, data, length, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        data += n;
        length -= (size_t)n;
    }
    return true;
}

/* Reads one answer with Content-Length. Returns its status, 0 when the connection ended. */
static int read_answer(int fd, char *headers, size_t header_size, char *body, size_t body_size)
{
    static char buffer[65536];
    size_t length = 0;
    char *end = NULL;
    char *field;
    size_t body_length = 0;
    size_t have;

    while (!end && length < sizeof(buffer) - 1) {
        ssize_t n = recv(fd, buffer + length, sizeof(buffer) - 1 - length, 0);

        if (n <= 0)
            return 0;
        length += (size_t)n;
        buffer[length] = '\0';
        end = strstr(buffer, "\r\n\r\n");
    }
    if (!end)
        return 0;
    field = strcasestr(buffer, "\r\ncontent-length:");
    if (field)
        body_length = strtoul(field + strlen("\r\ncontent-length:"), NULL, 10);
    snprintf(headers, header_size, "%.*s", (int)(end - buffer), buffer);
    closing = strcasestr(headers, "connection: close") != NULL;
    have = length - (size_t)(end + 4 - buffer);
    snprintf(body, body_size, "%.*s", (int)have, end + 4);
    while (have < body_length) {
        ssize_t n = recv(fd, buffer, sizeof(buffer), 0);

        if (n <= 0)
            return 0;
        have += (size_t)n;
    }
    return atoi(headers + strlen("HTTP/1.1 "));
}

static int request_on(int fd, const char *method, const char *path, const char *extra, const char *body, size_t length)
{
    char head[4096];
    char headers[4096];
    char answer[1024];
    int head_length = snprintf(head, 1024, "%s %s HTTP/1.1\r\nHost: api\r\n%sContent-Length: %zu\r\n\r\n", method, path,
                               extra, length);

    if (length < 1024) { /* one packet, as good clients do */
        memcpy(head + head_length, body, length);
        head_length += (int)length;
        length = 0;
    }
    if (!send_all(fd, head, (size_t)head_length) || !send_all(fd, body, length))
        return 0;
    return read_answer(fd, headers, sizeof(headers), answer, sizeof(answer));
}

static int post_on(int fd, const struct event *event, const char *what, const char *extra, const char *body,
                   size_t length)
{
    char path[256];

    snprintf(path, sizeof(path), ROOT "invocation/%s/%s", event->id, what);
    return request_on(fd, "POST", path, extra, body, length);
}

static void respond(const struct event *event, const char *text)
{
    int status = post_on(connection, event, "response", "", text, strlen(text));

    if (status != 202)
        exit(94);
}

static void copy_header(const char *headers, const char *name, char *value, size_t size)
{
    const char *at = strcasestr(headers, name);
    const char *end;

    value[0] = '\0';
    if (!at)
        return;
    at += strlen(name);
    while (*at == ' ')
        at++;
    end = strstr(at, "\r\n");
    snprintf(value, size, "%.*s", (int)(end ? end - at : (long)strlen(at)), at);
}

static void ask_next(void)
{
    static const char request[] = "GET " ROOT "invocation/next HTTP/1.1\r\nHost: api\r\n\r\n";

    if (!send_all(connection, request, sizeof(request) - 1))
        exit(95);
}

static void next_event(struct event *event)
{
    char body[256];
    size_t length;
    int status = 403;

    /* 403 while the service has not yet noticed how the last answer ended. */
    for (int i = 0; i < 500 && status == 403; i++) {
        ask_next();
        status = read_answer(connection, event->headers, sizeof(event->headers), body, sizeof(body));
        if (status == 403)
            nap(10);
    }
    if (status != 200)
        exit(status / 100 + 80);
    copy_header(event->headers, "lambda-runtime-aws-request-id:", event->id, sizeof(event->id));
    snprintf(event->text, sizeof(event->text), "%s", body + (body[0] == '"'));
    length = strlen(event->text);
    if (length && event->text[length - 1] == '"')
        event->text[length - 1] = '\0';
}

/* --- what an event can ask for ------------------------------------------------------------------------------------ */

static void redial_if_over(void)
{
    if (last_status && !closing)
        return;
    close(connection);
    connection = dial();
}

static void respond_large(const struct event *event, size_t length)
{
    char *body = malloc(length);

    memset(body, 'x', length);
    last_status = post_on(connection, event, "response", "", body, length);
    free(body);
    redial_if_over();
}

static void respond_chunked(const struct event *event, size_t length)
{
    static char piece[16384];
    char head[512];
    char headers[4096];
    char answer[1024];
    size_t sent = 0;
    bool ok;

    memset(piece, 'c', sizeof(piece));
    snprintf(head, sizeof(head),
             "POST " ROOT "invocation/%s/response HTTP/1.1\r\nHost: api\r\nLambda-Runtime-Function-Response-Mode: "
             "streaming\r\nTransfer-Encoding: chunked\r\n\r\n",
             event->id);
    ok = send_all(connection, head, strlen(head));
    while (ok && sent < length) {
        size_t size = length - sent < sizeof(piece) ? length - sent : sizeof(piece);

        snprintf(head, sizeof(head), "%zx\r\n", size);
        ok = send_all(connection, head, strlen(head)) && send_all(connection, piece, size) &&
             send_all(connection, "\r\n", 2);
        sent += size;
    }
    ok = ok && send_all(connection, "0\r\n\r\n", 5);
    last_status = ok ? read_answer(connection, headers, sizeof(headers), answer, sizeof(answer)) : 0;
    redial_if_over();
}

/* Half a response, then our side of the connection ends. It stays half open: on the host's network a peer that is gone
 * entirely before it was accepted is nobody's. */
static void respond_torn(const struct event *event)
{
    char head[512];
    int fd = dial();

    snprintf(head, sizeof(head),
             "POST " ROOT "invocation/%s/response HTTP/1.1\r\nHost: api\r\nContent-Length: 100\r\n\r\nhalf", event->id);
    send_all(fd, head, strlen(head));
    shutdown(fd, SHUT_WR);
}

static void print_bytes(size_t bytes)
{
    static char lines[65536];

    for (size_t i = 0; i < sizeof(lines); i++)
        lines[i] = i % 64 == 63 ? '\n' : 'f';
    while (bytes) {
        size_t size = bytes < sizeof(lines) ? bytes : sizeof(lines);
        ssize_t n = write(STDOUT_FILENO, lines, size);

        if (n <= 0)
            return;
        bytes -= (size_t)n;
    }
}

static void leave_orphan(void)
{
    if (fork() != 0)
        return;
    setsid();
    for (;;) {
        print_bytes(64);
        nap(20);
    }
}

/* Statuses of calls that are wrong whatever the moment, "404 405 405 400 403". */
static void misuse(const struct event *event)
{
    char text[128];
    int fd = dial();
    struct event stranger = {.id = "00000000-0000-0000-0000-000000000000"};
    int junk = request_on(fd, "GET", "/nope", "", "", 0);
    int wrong_method = request_on(fd, "POST", ROOT "invocation/next", "", "", 0);
    int get_init = request_on(fd, "GET", ROOT "init/error", "", "", 0);
    int unknown = post_on(fd, &stranger, "response", "", "x", 1);
    int late_init = request_on(fd, "POST", ROOT "init/error", "", "{}", 2);
    int busy_next = request_on(fd, "GET", ROOT "invocation/next", "", "", 0);

    close(fd);
    snprintf(text, sizeof(text), "%d %d %d %d %d %d", junk, wrong_method, get_init, unknown, late_init, busy_next);
    respond(event, text);
}

static void respond_environment(const struct event *event)
{
    static char text[16384];
    size_t length = 0;

    for (char **variable = environ; *variable && length < sizeof(text); variable++)
        length += (size_t)snprintf(text + length, sizeof(text) - length, "%s\n", *variable);
    respond(event, text);
}

/* Through a volatile pointer: clang leaves out memory that nobody reads. */
static void use_memory(size_t mib)
{
    for (size_t i = 0; i < mib; i++) {
        volatile char *block = malloc(1 << 20);

        for (size_t k = 0; block && k < 1 << 20; k += 4096)
            block[k] = 1;
    }
}

static void keep_in_tmp(const struct event *event, const char *name, bool write_it)
{
    char path[300];
    int fd;

    snprintf(path, sizeof(path), "/tmp/%s", name);
    fd = open(path, write_it ? O_CREAT | O_WRONLY : O_RDONLY, 0600);
    if (fd >= 0)
        close(fd);
    respond(event, fd >= 0 ? "there" : "missing");
}

static void handle(const struct event *event)
{
    char command[32] = "";
    const char *argument = strchr(event->text, ' ');
    char text[8192];

    snprintf(command, sizeof(command), "%.*s", (int)strcspn(event->text, " "), event->text);
    argument = argument ? argument + 1 : "";
    calls++;
    if (!strcmp(command, "sleep")) {
        nap(atol(argument));
        respond(event, "slept");
    } else if (!strcmp(command, "exit")) {
        exit(atoi(argument));
    } else if (!strcmp(command, "signal")) {
        raise(atoi(argument));
    } else if (!strcmp(command, "count")) {
        snprintf(text, sizeof(text), "%u", calls);
        respond(event, text);
    } else if (!strcmp(command, "print")) {
        snprintf(text, sizeof(text), "%s\n", argument);
        if (write(STDOUT_FILENO, text, strlen(text)) < 0)
            exit(96);
        respond(event, "printed");
    } else if (!strcmp(command, "json")) {
        static const char line[] = "{\"level\":\"ERROR\"}\n";

        if (write(STDOUT_FILENO, line, sizeof(line) - 1) < 0)
            exit(96);
        respond(event, "printed");
    } else if (!strcmp(command, "flood")) {
        print_bytes(strtoul(argument, NULL, 10));
        respond(event, "flooded");
    } else if (!strcmp(command, "floodhang")) {
        for (;;)
            print_bytes(1 << 20);
    } else if (!strcmp(command, "orphan")) {
        leave_orphan();
        exit(1);
    } else if (!strcmp(command, "twice")) {
        respond(event, "first");
        last_status = post_on(connection, event, "response", "", "second", 6);
    } else if (!strcmp(command, "last")) {
        snprintf(text, sizeof(text), "%d", last_status);
        respond(event, text);
    } else if (!strcmp(command, "error")) {
        static const char body[] = "{\"errorMessage\":\"no\",\"errorType\":\"Mine\"}";

        last_status = post_on(connection, event, "error", "Lambda-Runtime-Function-Error-Type: Function.Mine\r\n", body,
                              sizeof(body) - 1);
    } else if (!strcmp(command, "large")) {
        respond_large(event, strtoul(argument, NULL, 10));
    } else if (!strcmp(command, "chunked")) {
        respond_chunked(event, strtoul(argument, NULL, 10));
    } else if (!strcmp(command, "torn")) {
        respond_torn(event);
    } else if (!strcmp(command, "tornexit")) {
        respond_torn(event);
        exit(7);
    } else if (!strcmp(command, "late")) {
        respond(event, "early");
        nap(atol(argument));
    } else if (!strcmp(command, "answerexit")) {
        respond(event, "bye");
        exit(3);
    } else if (!strcmp(command, "mode")) {
        last_status =
            post_on(connection, event, "response", "Lambda-Runtime-Function-Response-Mode: nonsense\r\n", "x", 1);
    } else if (!strcmp(command, "misuse")) {
        misuse(event);
    } else if (!strcmp(command, "headers")) {
        respond(event, event->headers);
    } else if (!strcmp(command, "environment")) {
        respond_environment(event);
    } else if (!strcmp(command, "reconnect")) {
        respond(event, "ok");
        close(connection);
        connection = dial();
    } else if (!strcmp(command, "register")) {
        snprintf(text, sizeof(text), "%d",
                 request_on(connection, "POST", "/2020-01-01/extension/register", "Lambda-Extension-Name: late\r\n",
                            "{}", 2));
        respond(event, text);
    } else if (!strcmp(command, "memory")) {
        use_memory(strtoul(argument, NULL, 10));
        respond(event, "used");
    } else if (!strcmp(command, "keep")) {
        keep_in_tmp(event, argument, true);
    } else if (!strcmp(command, "kept")) {
        keep_in_tmp(event, argument, false);
    } else {
        respond(event, event->text);
    }
}

/* --- an internal extension ---------------------------------------------------------------------------------------- */

static int internal = -1; /* its connection; its GET event/next is always under way there */
static char internal_id[128];
static char internal_event[1024];

/* The status; the answer's body in internal_event, its headers in `headers`. */
static int internal_request(const char *method, const char *path, const char *extra, const char *body,
                            char headers[4096])
{
    char head[1024];
    int length = snprintf(head, sizeof(head),
                          "%s /2020-01-01/extension/%s HTTP/1.1\r\nHost: api\r\n%s%sContent-Length: %zu\r\n\r\n%s",
                          method, path, internal_id, extra, strlen(body), body);

    if (!send_all(internal, head, (size_t)length))
        return 0;
    return headers ? read_answer(internal, headers, 4096, internal_event, sizeof(internal_event)) : 0;
}

static void on_terminated(int number)
{
    static const char text[] = "runtime: SIGTERM\n";

    (void)number;
    if (write(STDOUT_FILENO, text, sizeof(text) - 1) > 0)
        _exit(0);
    _exit(1);
}

static void start_internal(const char *events)
{
    char headers[4096];
    char id[64];
    char body[128];

    signal(SIGTERM, on_terminated);
    internal = dial();
    snprintf(body, sizeof(body), "{\"events\":[%s]}", events);
    if (internal_request("POST", "register", "Lambda-Extension-Name: inside\r\n", body, headers) != 200)
        exit(87);
    copy_header(headers, "lambda-extension-identifier:", id, sizeof(id));
    snprintf(internal_id, sizeof(internal_id), "Lambda-Extension-Identifier: %s\r\n", id);
    internal_request("GET", "event/next", "", "", NULL);
}

/* The event that came along with the runtime's; then it asks for the next. */
static void finish_internal(void)
{
    char headers[4096];

    if (read_answer(internal, headers, sizeof(headers), internal_event, sizeof(internal_event)) != 200)
        exit(86);
    internal_request("GET", "event/next", "", "", NULL);
}

/* What registration says to requests that are wrong, "STATUS TYPE" each. */
static void misuse_extensions(void)
{
    static const struct {
        const char *method, *path, *headers, *body;
    } requests[] = {
        {"POST", "register", "", "{}"},
        {"POST", "register", "Lambda-Extension-Name: a\r\n", "{"},
        {"POST", "register", "Lambda-Extension-Name: a\r\n", "[]"},
        {"POST", "register", "Lambda-Extension-Name: a\r\n", "{\"events\":\"INVOKE\"}"},
        {"POST", "register", "Lambda-Extension-Name: a\r\n", "{\"events\":[7]}"},
        {"POST", "register", "Lambda-Extension-Name: a\r\n", "{\"events\":[\"NOPE\"]}"},
        {"POST", "register", "Lambda-Extension-Name: a\r\n", "{\"events\":[\"SHUTDOWN\"]}"},
        {"POST", "register", "Lambda-Extension-Name: inside\r\n", "{\"events\":[]}"},
        {"GET", "register", "", ""},
        {"POST", "event/next", "", ""},
        {"GET", "event/other", "", ""},
        {"GET", "event/next", "", ""},
        {"GET", "event/next", "Lambda-Extension-Identifier: nonsense\r\n", ""},
        {"GET", "event/next", "Lambda-Extension-Identifier: 00000000-0000-4000-8000-000000000000\r\n", ""},
        {"POST", "init/error", "", ""},
    };
    char headers[4096];
    char text[512];

    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        int status;

        internal = dial();
        status = internal_request(requests[i].method, requests[i].path, requests[i].headers, requests[i].body, headers);
        snprintf(text, sizeof(text), "%zu: %d %.400s\n", i, status, internal_event);
        if (write(STDOUT_FILENO, text, strlen(text)) < 0)
            exit(85);
        close(internal);
    }
    internal = -1;
}

/* Registers until it is refused, without ever asking for an event. */
static void register_many(void)
{
    char headers[4096];
    char name[64];
    char text[512];
    int status = 200;

    internal = dial();
    for (int i = 0; status == 200; i++) {
        snprintf(name, sizeof(name), "Lambda-Extension-Name: e%d\r\n", i);
        status = internal_request("POST", "register", name, "{}", headers);
        snprintf(text, sizeof(text), "%d: %d %.400s\n", i, status, internal_event);
        if (write(STDOUT_FILENO, text, strlen(text)) < 0)
            exit(85);
    }
    exit(84);
}

/* Whether the file is not there yet; makes it. */
static bool is_first(const char *path)
{
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* INIT: "sleep MS", "exit N", "signal N", "hang", "error", "once PATH" (exits 9 unless PATH is there, and makes it),
 * "idleexit PATH" (the same, but dies while it waits for an event), "lost PATH" (the same, but after it has given up
 * its connection), "internal EVENTS" (registers an internal extension), "misuse" (registers it badly, then well),
 * "many". */
static void initialise(const char *init)
{
    const char *argument = strchr(init, ' ');

    argument = argument ? argument + 1 : "";
    if (!strncmp(init, "sleep", 5))
        nap(atol(argument));
    if (!strncmp(init, "exit", 4))
        exit(atoi(argument));
    if (!strncmp(init, "signal", 6))
        raise(atoi(argument));
    while (!strncmp(init, "hang", 4))
        pause();
    if (!strncmp(init, "error", 5)) {
        static const char body[] = "{\"errorMessage\":\"init no\",\"errorType\":\"Mine\",\"requestId\":\"\"}";

        if (request_on(connection, "POST", ROOT "init/error",
                       "Lambda-Runtime-Function-Error-Type: Runtime.ImportModuleError\r\n", body,
                       sizeof(body) - 1) != 202)
            exit(97);
        exit(1);
    }
    if (!strncmp(init, "many", 4))
        register_many();
    if (!strncmp(init, "internal", 8))
        start_internal(argument);
    if (!strncmp(init, "misuse", 6)) {
        start_internal("");
        close(internal);
        internal_id[0] = '\0';
        misuse_extensions();
    }
    if (!strncmp(init, "once", 4) && is_first(argument))
        exit(9);
    if (!strncmp(init, "lost", 4) && is_first(argument)) {
        ask_next();
        close(connection);
        nap(200);
        exit(9);
    }
    if (!strncmp(init, "idleexit", 8) && is_first(argument) && fork() == 0) {
        nap(150);
        kill(getppid(), SIGKILL);
        _exit(0);
    }
}

int main(void)
{
    const char *init = getenv("INIT");
    static struct event event;

    signal(SIGPIPE, SIG_IGN);
    connection = dial();
    initialise(init ? init : "");
    for (;;) {
        next_event(&event);
        handle(&event);
        if (internal >= 0)
            finish_internal();
    }
}
