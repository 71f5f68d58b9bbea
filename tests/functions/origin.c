/*
 * A function that tells how its environment was made. Its Init does what INIT_SLEEP_MS and INIT_EXIT in its environment
 * variables say: sleeps, and exits with that status.
 *
 *   {"sleep_ms": N}   answers after N ms        {"exit": N}    exits with status N instead of answering
 *   {"gate": PORT, "id": N}   connects to 127.0.0.1:PORT, says N and its answer there, and answers when that
 *                             connection ends (--network host)
 *
 * The answer is {"type": AWS_LAMBDA_INITIALIZATION_TYPE, "version": AWS_LAMBDA_FUNCTION_VERSION, "process": a random
 * name of this process, "count": how many events it has had}.
 */
#define _GNU_SOURCE
#include "client.h"

#include <sys/random.h>

/* The number after "name": in the event, `absent` when it is not there. */
static long number(const char *event, const char *name, long absent)
{
    char key[32];
    const char *at;

    snprintf(key, sizeof(key), "\"%s\":", name);
    at = strstr(event, key);
    return at ? strtol(at + strlen(key), NULL, 10) : absent;
}

static void initialise(void)
{
    const char *sleep_ms = getenv("INIT_SLEEP_MS");
    const char *status = getenv("INIT_EXIT");

    if (sleep_ms)
        usleep((useconds_t)atol(sleep_ms) * 1000);
    if (status)
        exit(atoi(status));
}

static void wait_at_gate(long port, long id, const char *answer)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((unsigned short)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int gate = socket(AF_INET, SOCK_STREAM, 0);
    char word;

    if (connect(gate, (struct sockaddr *)&address, sizeof(address)) < 0)
        exit(106);
    dprintf(gate, "{\"id\":%ld,\"answer\":%s}\n", id, answer);
    while (read(gate, &word, 1) > 0)
        continue;
    close(gate);
}

int main(void)
{
    unsigned long long process = 0;

    if (getrandom(&process, sizeof(process), 0) != sizeof(process))
        return 105;
    initialise();
    client_connect();
    for (int count = 1;; count++) {
        const char *event = client_next();
        long status = number(event, "exit", -1);
        long gate = number(event, "gate", 0), id = number(event, "id", 0);
        char answer[256];

        usleep((useconds_t)number(event, "sleep_ms", 0) * 1000);
        if (status >= 0)
            exit((int)status);
        snprintf(answer, sizeof(answer), "{\"type\":\"%s\",\"version\":\"%s\",\"process\":\"%llx\",\"count\":%d}",
                 getenv("AWS_LAMBDA_INITIALIZATION_TYPE"), getenv("AWS_LAMBDA_FUNCTION_VERSION"), process, count);
        if (gate)
            wait_at_gate(gate, id, answer);
        client_answer(answer);
    }
}
