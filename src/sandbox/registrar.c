#include "sandbox/registrar.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 4 };

/* Fits into PIPE_BUF, so that threads read whole ones. */
struct request {
    int control_fd, event_fd, usage_fd;
    uint64_t bytes;
};

struct start {
    int requests;
    sem_t own_file_system;
    bool failed;
};

static void request_close(struct request *request)
{
    cleanup_close(&request->control_fd);
    cleanup_close(&request->event_fd);
    cleanup_close(&request->usage_fd);
}

static void carry_out(const struct request *request)
{
    uint64_t outcome = REGISTRAR_DONE;
    char text[96];

    snprintf(text, sizeof(text), "%d %d %llu", request->event_fd, request->usage_fd,
             (unsigned long long)request->bytes);
    if (pwrite(request->control_fd, text, strlen(text), 0) < 0)
        outcome = REGISTRAR_FAILED;
    (void)!write(request->event_fd, &outcome, sizeof(outcome));
}

/* setns to another mount namespace is refused to a thread that shares its root directory with others. */
static void *run(void *argument)
{
    struct start *start = argument;
    int requests = start->requests;
    struct request request;

    start->failed = unshare(CLONE_FS) < 0;
    sem_post(&start->own_file_system);
    while (read(requests, &request, sizeof(request)) == (ssize_t)sizeof(request)) {
        carry_out(&request);
        request_close(&request);
    }
    return NULL;
}

static int start_thread(struct start *start)
{
    pthread_attr_t attributes;
    pthread_t thread;
    int r = pthread_attr_init(&attributes);

    if (r)
        return -r;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, 64 * 1024);
    r = pthread_create(&thread, &attributes, run, start);
    pthread_attr_destroy(&attributes);
    if (r)
        return -r;
    while (sem_wait(&start->own_file_system) < 0)
        ;
    return start->failed ? -EPERM : 0;
}

int registrar_start(struct registrar *registrar)
{
    struct start start = {.requests = -1};
    int ends[2];
    int r = 0;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    registrar->requests = ends[1];
    start.requests = ends[0];
    sem_init(&start.own_file_system, 0, 0);
    for (int i = 0; r == 0 && i < THREADS; i++)
        r = start_thread(&start);
    sem_destroy(&start.own_file_system);
    /* The reading end stays with the threads. */
    if (r < 0)
        registrar_close(registrar);
    return r;
}

void registrar_close(struct registrar *registrar)
{
    cleanup_close(&registrar->requests);
}

static int duplicate(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

int registrar_submit(const struct registrar *registrar, int control_fd, int event_fd, int usage_fd, uint64_t bytes)
{
    struct request request = {duplicate(control_fd), duplicate(event_fd), duplicate(usage_fd), bytes};

    if (request.control_fd < 0 || request.event_fd < 0 || request.usage_fd < 0 ||
        write(registrar->requests, &request, sizeof(request)) != (ssize_t)sizeof(request)) {
        int error = errno;
        request_close(&request);
        return -error;
    }
    return 0;
}
