/*
 * A small function for tests that need many or quick environments: a static Runtime API client over a raw socket. The
 * event says what to do; numbers are found by name in the JSON text:
 *
 *   {"sleep_ms": N}   answers after N ms        {"exit": N}    exits with status N instead of answering
 *   {"signal": N}     kills itself              {"hang": 1}    never answers
 *
 * The answer is {"pid": process id, "count": how many events this process has had}, with the event's "id" when it has
 * one.
 */
#define _GNU_SOURCE
#include "client.h"

#include <signal.h>

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
    client_connect();
    for (int count = 1;; count++) {
        char *event = client_next();
        long id = number(event, "id");
        char answer[128];

        obey(event);
        if (id)
            snprintf(answer, sizeof(answer), "{\"pid\":%d,\"count\":%d,\"id\":%ld}", (int)getpid(), count, id);
        else
            snprintf(answer, sizeof(answer), "{\"pid\":%d,\"count\":%d}", (int)getpid(), count);
        client_answer(answer);
    }
}
