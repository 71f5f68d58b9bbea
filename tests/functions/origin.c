/*
 * A function that tells how its environment was made. Its Init does what INIT_SLEEP_MS and INIT_EXIT in its environment
 * variables say: sleeps, and exits with that status.
 *
 *   {"sleep_ms": N}   answers after N ms        {"exit": N}    exits with status N instead of answering
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
        char answer[256];

        usleep((useconds_t)number(event, "sleep_ms", 0) * 1000);
        if (status >= 0)
            exit((int)status);
        snprintf(answer, sizeof(answer), "{\"type\":\"%s\",\"version\":\"%s\",\"process\":\"%llx\",\"count\":%d}",
                 getenv("AWS_LAMBDA_INITIALIZATION_TYPE"), getenv("AWS_LAMBDA_FUNCTION_VERSION"), process, count);
        client_answer(answer);
    }
}
