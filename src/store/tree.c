#include "store/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum {
    SYNC_EACH_MAX = 64, /* files and directories synced one by one; past that, the whole file system at once */
};

static void cleanup_closedir(DIR **directory)
{
    if (*directory)
        closedir(*directory);
}

int tree_open(int parent_fd, const char *name, int *ret_fd)
{
    int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    return 0;
}

/* A stream of its own over the directory `fd`, from the first entry. */
static int open_stream(int fd, DIR **ret_stream)
{
    CLEANUP(cleanup_close) int own = -1;
    int r = tree_open(fd, ".", &own);

    if (r < 0)
        return r;
    *ret_stream = fdopendir(own);
    if (!*ret_stream)
        return -errno;
    (void)TAKE_FD(own);
    return 0;
}

/* The next name but "." and ".."; NULL at the end or, with *ret_error set, after a failure. */
static const char *next_name(DIR *stream, int *ret_error)
{
    struct dirent *entry;

    do {
        errno = 0;
        entry = readdir(stream);
        if (!entry) {
            *ret_error = -errno;
            return NULL;
        }
    } while (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0);
    return entry->d_name;
}

static int remove_content(int fd, const _Atomic bool *stop)
{
    CLEANUP(cleanup_closedir) DIR *stream = NULL;
    const char *name;
    int r = open_stream(fd, &stream);

    while (r == 0 && (name = next_name(stream, &r)))
        r = tree_remove(fd, name, stop);
    return r;
}

/* Its owner may have been left without the right to look into it or to change it. */
static int open_for_removal(int parent_fd, const char *name, int *ret_fd)
{
    int r = tree_open(parent_fd, name, ret_fd);

    if (r == -EACCES && fchmodat(parent_fd, name, 0700, 0) == 0)
        r = tree_open(parent_fd, name, ret_fd);
    if (r == 0 && fchmod(*ret_fd, 0700) < 0) {
        r = -errno;
        cleanup_close(ret_fd);
    }
    return r;
}

/* Recursion is as deep as the tree, which unpacking limits to 128 levels. */
int tree_remove(int parent_fd, const char *name, const _Atomic bool *stop)
{
    CLEANUP(cleanup_close) int fd = -1;
    struct stat status;
    int r;

    if (stop && *stop)
        return -ECANCELED;
    if (fstatat(parent_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISDIR(status.st_mode))
        return unlinkat(parent_fd, name, 0) < 0 ? -errno : 0;
    r = open_for_removal(parent_fd, name, &fd);
    if (r == 0)
        r = remove_content(fd, stop);
    if (r < 0)
        return r;
    return unlinkat(parent_fd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

static int add_sizes(int fd, uint64_t *bytes)
{
    CLEANUP(cleanup_closedir) DIR *stream = NULL;
    const char *name;
    int r = open_stream(fd, &stream);

    while (r == 0 && (name = next_name(stream, &r))) {
        struct stat status;
        if (fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
            return -errno;
        if (S_ISREG(status.st_mode))
            *bytes += (uint64_t)status.st_size;
        if (S_ISDIR(status.st_mode)) {
            CLEANUP(cleanup_close) int below = -1;
            r = tree_open(fd, name, &below);
            if (r == 0)
                r = add_sizes(below, bytes);
            if (r == -EACCES)
                r = 0;
        }
    }
    return r;
}

int tree_measure(int parent_fd, const char *name, uint64_t *ret_bytes)
{
    CLEANUP(cleanup_close) int fd = -1;
    uint64_t bytes = 0;
    int r = tree_open(parent_fd, name, &fd);

    if (r == 0)
        r = add_sizes(fd, &bytes);
    if (r == 0)
        *ret_bytes = bytes;
    return r;
}

/* -E2BIG when there are more than `*left`, -EACCES when something may not be opened. */
static int sync_each(int fd, int *left)
{
    CLEANUP(cleanup_closedir) DIR *stream = NULL;
    const char *name;
    int r = open_stream(fd, &stream);

    while (r == 0 && (name = next_name(stream, &r))) {
        CLEANUP(cleanup_close) int below = -1;
        struct stat status;
        if (fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
            return -errno;
        if (S_ISLNK(status.st_mode)) /* lies in its directory */
            continue;
        if ((*left)-- == 0)
            return -E2BIG;
        below = openat(fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (below < 0)
            return -errno;
        if (S_ISDIR(status.st_mode))
            r = sync_each(below, left);
        else if (fsync(below) < 0)
            r = -errno;
    }
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    return r;
}

/*
 * One syncfs is much cheaper than a thousand fsyncs, but it also waits for everything that others have written to the
 * file system, which may be gigabytes: small trees are better off without it.
 */
int tree_sync(int fd)
{
    int left = SYNC_EACH_MAX;
    int r = sync_each(fd, &left);

    if (r == -E2BIG || r == -EACCES)
        r = syncfs(fd) < 0 ? -errno : 0;
    return r;
}
