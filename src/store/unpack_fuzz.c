/*
 * Any bytes as a zip: whatever comes out stays in its directory, below the limit, and can be removed again.
 */
#include "store/tree.h"
#include "store/unpack.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#define REQUIRE(condition) \
    do {                   \
        if (!(condition))  \
            abort();       \
    } while (0)

enum { MAX_BYTES = 256 * 1024, MAX_ENTRIES = 64 };

/* A link leads nowhere or to something in the box. */
static void check_link(int fd, const char *name, const char *box)
{
    char path[PATH_MAX], resolved[PATH_MAX];
    size_t length = strlen(box);

    snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", fd, name);
    if (!realpath(path, resolved)) {
        REQUIRE(errno == ENOENT || errno == ELOOP || errno == ENOTDIR || errno == EACCES || errno == ENAMETOOLONG);
        return;
    }
    REQUIRE(strncmp(resolved, box, length) == 0 && (resolved[length] == '/' || resolved[length] == '\0'));
}

/* Only what may be there, with the modes it may have. */
static void check_tree(int fd, const char *box)
{
    DIR *stream = fdopendir(dup(fd));
    struct dirent *entry;

    REQUIRE(stream);
    while ((entry = readdir(stream))) {
        struct stat status;
        int below = -1;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        REQUIRE(fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0);
        REQUIRE(S_ISREG(status.st_mode) || S_ISDIR(status.st_mode) || S_ISLNK(status.st_mode));
        REQUIRE((status.st_mode & 07000) == 0);
        if (S_ISLNK(status.st_mode))
            check_link(fd, entry->d_name, box);
        if (S_ISDIR(status.st_mode) && tree_open(fd, entry->d_name, &below) == 0) {
            check_tree(below, box);
            close(below);
        }
    }
    closedir(stream);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The root has the box and a canary; after unpacking it has these two, and the canary is an empty directory. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static locale_t locale;
    struct unpack_config config = {.max_bytes = MAX_BYTES, .max_entries = MAX_ENTRIES};
    char root[] = "/dev/shm/kiln-fuzz-XXXXXX";
    char box[sizeof(root) + 4];
    struct fault fault = {0};
    uint64_t bytes = 0, measured;
    int root_fd = -1, box_fd = -1;
    int r;

    if (!locale)
        locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    config.locale = locale;
    REQUIRE(mkdtemp(root));
    snprintf(box, sizeof(box), "%s/box", root);
    REQUIRE(tree_open(AT_FDCWD, root, &root_fd) == 0);
    REQUIRE(mkdirat(root_fd, "canary", 0700) == 0 && mkdirat(root_fd, "box", 0700) == 0);
    REQUIRE(tree_open(root_fd, "box", &box_fd) == 0);

    r = unpack_zip(span_of((const char *)data, size), box_fd, &config, &bytes, &fault);
    REQUIRE(r == 0 || fault.text[0]);
    REQUIRE(r >= 0 || r == -ENOMEM);
    check_tree(box_fd, box);
    REQUIRE(tree_measure(root_fd, "box", &measured) == 0 && measured < MAX_BYTES);
    REQUIRE(r != 0 || measured == bytes);

    REQUIRE(tree_remove(root_fd, "box", NULL) == 0);
    REQUIRE(unlinkat(root_fd, "canary", AT_REMOVEDIR) == 0);
    close(box_fd);
    close(root_fd);
    REQUIRE(rmdir(root) == 0);
    return 0;
}
