/*
 * A function that meets its limits. The event says what to do; numbers are found by name in the JSON text:
 *
 *   {"alloc_mib": N}   takes N MiB of memory and uses it      {"fill_mib": N}   takes N MiB of /tmp
 *   {"spin": 1}        from then on, keeps a CPU busy        {"hang": 1}       never answers
 *
 * The answer is {"count": how many events this process has had, "error": errno by name or "none"}.
 */
#define _GNU_SOURCE
#include "../functions/client.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

enum { MIB = 1024 * 1024 };

/* The number after "name": in the event, 0 when it is not there. */
static long number(const char *event, const char *name)
{
    char key[32];
    const char *at;

    snprintf(key, sizeof(key), "\"%s\":", name);
    at = strstr(event, key);
    return at ? strtol(at + strlen(key), NULL, 10) : 0;
}

/* In huge pages where there are any: small ones take a translating QEMU a hundred times as long. */
static int take_memory(long mib)
{
    size_t size = (size_t)mib * MIB;
    char *area = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (area == MAP_FAILED)
        return errno;
    madvise(area, size, MADV_HUGEPAGE);
    for (size_t i = 0; i < size; i += 4096)
        ((volatile char *)area)[i] = 1;
    return 0;
}

/* Appends; what was written before an error stays. */
static int fill_tmp(long mib)
{
    int fd = open("/tmp/fill", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    off_t end = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    int error = end < 0 ? errno : 0;

    for (; mib > 0 && !error; mib--, end += MIB)
        error = posix_fallocate(fd, end, MIB);
    close(fd);
    return error;
}

static int obey(const char *event)
{
    int error = 0;

    if (number(event, "alloc_mib"))
        error = take_memory(number(event, "alloc_mib"));
    if (number(event, "fill_mib"))
        error = fill_tmp(number(event, "fill_mib"));
    if (number(event, "spin") && fork() == 0)
        for (;;)
            ;
    while (number(event, "hang"))
        pause();
    return error;
}

int main(void)
{
    client_connect();
    for (int count = 1;; count++) {
        char answer[128];
        int error = obey(client_next());

        snprintf(answer, sizeof(answer), "{\"count\":%d,\"error\":\"%s\"}", count,
                 error ? strerrorname_np(error) : "none");
        client_answer(answer);
    }
}
