/* Numbers are looked for in the folder when a file is rotated, which is rare: nothing has to be remembered for it. */
#include "worker/log_file.h"

#include "base/clock.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

enum { FILE_BYTES = 64 * 1024 * 1024 };

static int make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        int r;

        *slash = '\0';
        r = mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
        *slash = '/';
        if (r < 0)
            return r;
    }
    return 0;
}

static int open_file(char *path)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);

    if (fd < 0 && errno == ENOENT) {
        int r = make_folders(path);

        if (r < 0)
            return r;
        fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    }
    return fd < 0 ? -errno : fd;
}

static int write_all(int fd, struct span bytes, size_t *ret_written)
{
    *ret_written = 0;
    while (*ret_written < bytes.length) {
        ssize_t n = write(fd, bytes.data + *ret_written, bytes.length - *ret_written);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        *ret_written += (size_t)n;
    }
    return 0;
}

/* --- rotation ----------------------------------------------------------------------------------------------------- */

/* The older files of one stream. */
struct older {
    char folder[PATH_MAX];
    char name[NAME_MAX + 1]; /* STREAM, without ".log" */
    unsigned first, last;    /* numbers in use; 0: none */
    uint64_t bytes;
};

/* N of "STREAM.N.log"; 0 when it is another file. */
static unsigned number_of(const struct older *older, const char *file)
{
    size_t length = strlen(older->name);
    unsigned number;
    int end = 0;

    if (strncmp(file, older->name, length) != 0)
        return 0;
    return sscanf(file + length, ".%u.log%n", &number, &end) == 1 && end && !file[length + (size_t)end] ? number : 0;
}

static void describe(const char *path, struct older *older)
{
    const char *slash = strrchr(path, '/');

    snprintf(older->folder, sizeof(older->folder), "%.*s", (int)(slash - path), path);
    snprintf(older->name, sizeof(older->name), "%.*s", (int)(strlen(slash + 1) - strlen(".log")), slash + 1);
}

static int find_older(const char *path, struct older *older)
{
    DIR *directory;
    struct dirent *entry;

    *older = (struct older){0};
    describe(path, older);
    directory = opendir(older->folder);
    if (!directory)
        return -errno;
    while ((entry = readdir(directory))) {
        unsigned number = number_of(older, entry->d_name);
        struct stat status;

        if (!number || fstatat(dirfd(directory), entry->d_name, &status, 0) < 0)
            continue;
        older->bytes += (uint64_t)status.st_size;
        older->last = MAX(older->last, number);
        older->first = older->first ? MIN(older->first, number) : number;
    }
    closedir(directory);
    return 0;
}

static void name_older(const struct older *older, unsigned number, char path[PATH_MAX * 2])
{
    snprintf(path, (size_t)PATH_MAX * 2, "%s/%s.%u.log", older->folder, older->name, number);
}

/* Removes the oldest until there is room for `bytes` more. */
static uint64_t make_room(struct older *older, uint64_t bytes, uint64_t limit)
{
    uint64_t removed = 0;
    char path[PATH_MAX * 2];

    for (; limit && older->first && older->first <= older->last && older->bytes + bytes > limit; older->first++) {
        struct stat status;

        name_older(older, older->first, path);
        if (stat(path, &status) < 0 || unlink(path) < 0)
            continue;
        removed += (uint64_t)status.st_size;
        older->bytes -= (uint64_t)status.st_size;
    }
    return removed;
}

static int rotate(const char *path, uint64_t file_bytes, uint64_t stream_bytes, uint64_t *ret_removed)
{
    struct older older;
    char other[PATH_MAX * 2];
    int r = find_older(path, &older);

    if (r < 0)
        return r;
    name_older(&older, older.last + 1, other);
    if (rename(path, other) < 0)
        return -errno;
    r = find_older(path, &older);
    if (r == 0)
        *ret_removed = make_room(&older, file_bytes, stream_bytes);
    return r;
}

int log_file_append(const char *directory, const char *path, struct span bytes, const struct log_file_limits *limits,
                    uint64_t *ret_removed)
{
    uint64_t file_bytes = limits->file_bytes ? limits->file_bytes : FILE_BYTES;
    CLEANUP(cleanup_close) int fd = -1;
    char whole[PATH_MAX];
    size_t written;
    off_t end;
    int r;

    *ret_removed = 0;
    if (snprintf(whole, sizeof(whole), "%s/%s", directory, path) >= (int)sizeof(whole))
        return -ENAMETOOLONG;
    fd = open_file(whole);
    if (fd < 0)
        return TAKE_FD(fd);
    end = lseek(fd, 0, SEEK_END);
    if (end > 0 && (uint64_t)end + bytes.length > file_bytes) {
        r = rotate(whole, file_bytes, limits->stream_bytes, ret_removed);
        if (r < 0)
            return r;
        cleanup_close(&fd);
        fd = open_file(whole);
        if (fd < 0)
            return TAKE_FD(fd);
        end = 0;
    }
    r = write_all(fd, bytes, &written);
    if (r < 0 && written && end >= 0 && ftruncate(fd, end) < 0)
        r = -errno;
    return r;
}

/* --- the sweep ---------------------------------------------------------------------------------------------------- */

static int sweep_folder(int at, const char *name, int64_t before_s, unsigned depth)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    int count = 0;

    if (!directory) {
        int error = errno;

        cleanup_close(&fd);
        return -error;
    }
    while ((entry = readdir(directory))) {
        struct stat status;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (S_ISDIR(status.st_mode) && depth) {
            int below = sweep_folder(fd, entry->d_name, before_s, depth - 1);

            count += MAX(below, 0);
            unlinkat(fd, entry->d_name, AT_REMOVEDIR); /* when empty: made again for the next line */
        } else if (S_ISREG(status.st_mode) && status.st_mtime < before_s && unlinkat(fd, entry->d_name, 0) == 0) {
            count++;
        }
    }
    closedir(directory);
    return count;
}

int log_files_sweep(const char *directory, int64_t before_wall_ns)
{
    enum { DEEPEST_GROUP = 16 }; /* a name of 512 bytes, escaped, in pieces of 200 */

    return sweep_folder(AT_FDCWD, directory, before_wall_ns / NS_PER_S, DEEPEST_GROUP);
}
