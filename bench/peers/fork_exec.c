/*
 * fork + exec + exit of a program, COUNT times, one after another. Prints the median in microseconds as JSON.
 * Usage: fork_exec COUNT PROGRAM [ARGUMENT]
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

int main(int argc, char **argv)
{
    int count = argc > 2 ? atoi(argv[1]) : 0;
    double *times = count > 0 ? calloc((size_t)count, sizeof(*times)) : NULL;

    if (!times)
        return 2;
    for (int i = 0; i < count; i++) {
        double started = now_us();
        int status;
        pid_t child = fork();
        if (child == 0) {
            execv(argv[2], argv + 2);
            _exit(127);
        }
        if (child < 0 || waitpid(child, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
            return 1;
        times[i] = now_us() - started;
    }
    qsort(times, (size_t)count, sizeof(*times), compare);
    printf("{\"p50_us\":%.1f}\n", times[count / 2]);
    return 0;
}
