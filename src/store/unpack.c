/*
 * libarchive reads the zip; the files are made here, from descriptor to descriptor. Its own archive_write_disk, with
 * all of its ARCHIVE_EXTRACT_SECURE flags, was rejected: it works by path names in the current directory, which a
 * process has only one of, plays with the umask, which a process has only one of, and sets modes afterwards by name.
 * What those flags promise holds here by construction:
 *
 * - A name is taken apart before use (unpack_check_name); absolute ones and ".." never get to the kernel.
 * - Each component is opened relative to the one before, without following links. Links are made after everything else,
 *   so while files are written there is none that could be written through; a link where a directory is needed, or the
 *   other way round, is a collision and refuses the zip.
 * - Files are made with O_EXCL: nothing is overwritten.
 * - A link's target may start with ".." as often as the link is deep and then go down only. The directory a link is in
 * is a real one, so the leading ".." stay inside; every further component is a directory or another link for which the
 *   same holds. A ".." behind a component could leave through a link (s -> ".", t -> "s/s/../.."), so it is refused.
 *
 * Only the reader that starts from the central directory is enabled: no other format, no filter around it, and no
 * guessing at a zip cut short. Limits count what is written, whatever the headers say.
 *
 * Names: zips mark UTF-8 names, and libarchive turns those into the charset of the locale, composed (NFC). With a UTF-8
 * locale nothing else happens to them. Names without the mark are bytes and stay so.
 */
#include "store/unpack.h"

#include "base/arena.h"
#include "base/table.h"
#include "store/zip_end.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

/* What is done after all files are there. */
struct later {
    char *path;
    char *target; /* of a link; NULL for a directory's mode */
    mode_t mode;
};

struct later_list {
    struct later *items;
    size_t count;
    size_t capacity;
};

struct unpack {
    const struct unpack_config *config;
    struct fault *fault;
    struct archive *archive;
    struct arena arena; /* paths and targets of `links` and `directories` */
    int root_fd;        /* borrowed */
    int parent_fd;      /* the directory that `parent` names: most entries are in that of the entry before; -1 */
    char parent[UNPACK_NAME_BYTES_MAX + 1];
    struct later_list links;
    struct later_list directories;
    uint64_t entries;
    uint64_t files; /* and links */
    uint64_t bytes;
};

/* --- names --- */

static bool is_dots(struct span component)
{
    return span_equal(component, SPAN(".."));
}

/* Whether a component would climb if \ were a separator, as it is for who made the zip if not for us. */
static bool hides_dots(struct span component)
{
    while (component.data) {
        if (is_dots(span_cut(&component, '\\')))
            return true;
    }
    return false;
}

const char *unpack_check_name(struct span name, char clean[UNPACK_NAME_BYTES_MAX + 1])
{
    struct span rest = name;
    size_t length = 0;
    unsigned depth = 0;

    if (name.length == 0)
        return "has no name";
    if (name.length > UNPACK_NAME_BYTES_MAX)
        return "has a name that is too long";
    if (name.data[0] == '/' || name.data[0] == '\\')
        return "is absolute";
    while (rest.data) {
        struct span component = span_cut(&rest, '/');
        if (component.length == 0 || span_equal(component, SPAN(".")))
            continue;
        if (hides_dots(component))
            return "leads out of the package";
        if (component.length > UNPACK_COMPONENT_BYTES_MAX)
            return "has a name that is too long";
        if (++depth > UNPACK_DEPTH_MAX)
            return "is too deep";
        if (length)
            clean[length++] = '/';
        memcpy(clean + length, component.data, component.length);
        length += component.length;
    }
    clean[length] = '\0';
    return NULL;
}

const char *unpack_check_link(struct span target, unsigned depth)
{
    struct span rest = target;
    bool down = false;

    if (target.length == 0)
        return "is a link to nothing";
    if (target.length > UNPACK_NAME_BYTES_MAX)
        return "is a link whose target is too long";
    if (target.data[0] == '/' || target.data[0] == '\\')
        return "is a link to an absolute path";
    while (rest.data) {
        struct span component = span_cut(&rest, '/');
        if (component.length == 0 || span_equal(component, SPAN(".")))
            continue;
        if (!is_dots(component)) {
            if (hides_dots(component))
                return "is a link that leads out of the package";
            down = true;
        } else if (down) {
            return "is a link with \"..\" behind another component";
        } else if (depth-- == 0) {
            return "is a link that leads out of the package";
        }
    }
    return NULL;
}

/* Entry names go into a sentence for a person or a log: no control characters, no broken UTF-8, not endless. */
static const char *printable(const char *name, char text[128])
{
    size_t length = strnlen(name, 100);
    bool utf8 = span_is_utf8(span_of(name, length));

    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)name[i];
        text[i] = c < 0x20 || c == 0x7f || (c >= 0x80 && !utf8) ? '?' : (char)c;
    }
    snprintf(text + length, 128 - length, "%s", name[length] ? "..." : "");
    return text;
}

/* --- failures --- */

static int refuse(struct unpack *unpack, enum code_result result, const char *name, const char *what)
{
    char text[128];

    fault_set(unpack->fault, 0, "entry \"%s\" %s", printable(name, text), what);
    return (int)result;
}

static int fail(struct unpack *unpack, int error, const char *name)
{
    char text[128];

    return fault_set(unpack->fault, error, "cannot write \"%s\": %s", printable(name, text), strerror(error));
}

/* The zip cannot be read on. */
static int refuse_archive(struct unpack *unpack)
{
    const char *text = archive_error_string(unpack->archive);

    if (archive_errno(unpack->archive) == ENOMEM)
        return fault_set(unpack->fault, ENOMEM, "cannot unpack: out of memory");
    fault_set(unpack->fault, 0, "the file is not a zip archive or is damaged: %s", text ? text : "no reason given");
    return CODE_NOT_A_ZIP;
}

static bool is_stopped(const struct unpack *unpack)
{
    return unpack->config->stop && *unpack->config->stop;
}

/* --- directories --- */

/* Opens `name` below `fd`, makes it first when it is missing. */
static int enter(int fd, const char *name, int *ret_fd)
{
    bool made = mkdirat(fd, name, 0700) == 0;
    int below;

    if (!made && errno != EEXIST)
        return -errno;
    below = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (below < 0)
        return -errno;
    if (made && fchmod(below, 0755) < 0) { /* whatever the umask */
        close(below);
        return -errno;
    }
    *ret_fd = below;
    return 0;
}

/* Opens the directory `path` (a clean name of `length` bytes, "" is the root), making what is missing. */
static int open_directory(struct unpack *unpack, const char *path, size_t length, int *ret_fd)
{
    CLEANUP(cleanup_close) int fd = openat(unpack->root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct span rest = length ? span_of(path, length) : SPAN_NONE;

    if (fd < 0)
        return -errno;
    while (rest.data) {
        struct span component = span_cut(&rest, '/');
        char name[UNPACK_COMPONENT_BYTES_MAX + 1];
        int below = -1;
        int r;

        memcpy(name, component.data, component.length);
        name[component.length] = '\0';
        r = enter(fd, name, &below);
        if (r < 0)
            return r;
        close(fd);
        fd = below;
    }
    *ret_fd = TAKE_FD(fd);
    return 0;
}

static size_t parent_length(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? (size_t)(slash - path) : 0;
}

/* Makes parent_fd the directory that `path` is in. `*ret_name` is its last component. 0, CODE_BAD_ENTRY, -errno. */
static int enter_parent(struct unpack *unpack, const char *path, const char **ret_name)
{
    size_t length = parent_length(path);
    int r;

    *ret_name = length ? path + length + 1 : path;
    if (unpack->parent_fd >= 0 && strlen(unpack->parent) == length && memcmp(unpack->parent, path, length) == 0)
        return 0;
    cleanup_close(&unpack->parent_fd);
    r = open_directory(unpack, path, length, &unpack->parent_fd);
    if (r == -ENOTDIR || r == -ELOOP)
        return refuse(unpack, CODE_BAD_ENTRY, path, "is below something that is not a directory");
    if (r < 0)
        return fail(unpack, -r, path);
    memcpy(unpack->parent, path, length);
    unpack->parent[length] = '\0';
    return 0;
}

static int later_add(struct unpack *unpack, struct later_list *list, const char *path, const char *target, mode_t mode)
{
    struct later item = {.mode = mode};

    if (list->count == list->capacity) {
        size_t capacity = MAX(2 * list->capacity, (size_t)64);
        struct later *items = reallocarray(list->items, capacity, sizeof(*items));
        if (!items)
            return fail(unpack, ENOMEM, path);
        list->items = items;
        list->capacity = capacity;
    }
    item.path = arena_dup(&unpack->arena, span_from(path));
    item.target = target ? arena_dup(&unpack->arena, span_from(target)) : NULL;
    if (!item.path || (target && !item.target))
        return fail(unpack, ENOMEM, path);
    list->items[list->count++] = item;
    return 0;
}

/* Made at once, with a mode in which we can work; its own mode comes last. */
static int unpack_directory(struct unpack *unpack, const char *path, mode_t mode)
{
    CLEANUP(cleanup_close) int fd = -1;
    int r = open_directory(unpack, path, strlen(path), &fd);

    if (r == -ENOTDIR || r == -ELOOP)
        return refuse(unpack, CODE_BAD_ENTRY, path, "is a directory where something else is already");
    if (r < 0)
        return fail(unpack, -r, path);
    return *path && mode != 0755 ? later_add(unpack, &unpack->directories, path, NULL, mode) : 0;
}

/* --- files and links --- */

static int write_all(int fd, const char *data, size_t length)
{
    while (length) {
        ssize_t written = write(fd, data, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -errno;
        data += written;
        length -= (size_t)written;
    }
    return 0;
}

static int write_content(struct unpack *unpack, int fd, const char *path)
{
    const void *data;
    size_t length;
    int64_t offset;
    int status, r;

    while ((status = archive_read_data_block(unpack->archive, &data, &length, &offset)) == ARCHIVE_OK) {
        if (is_stopped(unpack))
            return fault_set(unpack->fault, ECANCELED, "unpacking was given up");
        unpack->bytes += length;
        if (unpack->bytes >= unpack->config->max_bytes) {
            fault_set(unpack->fault, 0, "the unzipped files take %llu bytes or more",
                      (unsigned long long)unpack->config->max_bytes);
            return CODE_TOO_LARGE_UNZIPPED;
        }
        r = write_all(fd, data, length);
        if (r < 0)
            return fail(unpack, -r, path);
    }
    return status == ARCHIVE_EOF ? 0 : refuse_archive(unpack); /* warnings too: a wrong size or checksum */
}

static int unpack_file(struct unpack *unpack, const char *path, mode_t mode)
{
    CLEANUP(cleanup_close) int fd = -1;
    const char *name;
    int r = enter_parent(unpack, path, &name);

    if (r != 0)
        return r;
    fd = openat(unpack->parent_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST)
        return refuse(unpack, CODE_BAD_ENTRY, path, "is there twice");
    if (fd < 0)
        return fail(unpack, errno, path);
    r = write_content(unpack, fd, path);
    if (r == 0 && fchmod(fd, mode) < 0)
        r = fail(unpack, errno, path);
    unpack->files++;
    return r;
}

static unsigned path_depth(const char *path)
{
    unsigned depth = 0;

    for (; *path; path++)
        depth += *path == '/';
    return depth;
}

static int unpack_link(struct unpack *unpack, struct archive_entry *entry, const char *path)
{
    const char *target = archive_entry_symlink(entry);
    const char *problem = unpack_check_link(span_from(target), path_depth(path));

    if (problem)
        return refuse(unpack, CODE_BAD_ENTRY, path, problem);
    unpack->files++;
    return later_add(unpack, &unpack->links, path, target, 0);
}

/* --- entries --- */

/* setuid, setgid and sticky are dropped; a directory of mode 0111 is what libarchive makes of one without a mode. */
static mode_t entry_mode(struct archive_entry *entry, bool directory)
{
    mode_t mode = archive_entry_perm(entry) & 0777;

    if (directory)
        return mode == 0 || mode == 0111 ? 0755 : mode;
    return mode == 0 ? 0644 : mode;
}

static int unpack_entry(struct unpack *unpack, struct archive_entry *entry)
{
    const char *name = archive_entry_pathname(entry);
    char path[UNPACK_NAME_BYTES_MAX + 1];
    const char *problem;

    if (!name)
        return refuse(unpack, CODE_BAD_ENTRY, "?", "has a name that is not valid text");
    if (unpack->entries++ >= unpack->config->max_entries)
        return refuse(unpack, CODE_TOO_MANY_ENTRIES, name, "is one too many");
    if (archive_entry_is_encrypted(entry))
        return refuse(unpack, CODE_ENCRYPTED, name, "is encrypted");
    problem = unpack_check_name(span_from(name), path);
    if (problem)
        return refuse(unpack, CODE_BAD_ENTRY, name, problem);
    if (archive_entry_filetype(entry) == AE_IFDIR)
        return unpack_directory(unpack, path, entry_mode(entry, true));
    if (!*path)
        return refuse(unpack, CODE_BAD_ENTRY, name, "has no name");
    if (archive_entry_filetype(entry) == AE_IFREG)
        return unpack_file(unpack, path, entry_mode(entry, false));
    if (archive_entry_filetype(entry) == AE_IFLNK)
        return unpack_link(unpack, entry, path);
    return refuse(unpack, CODE_BAD_ENTRY, name, "is neither a file nor a directory nor a link");
}

static int unpack_entries(struct unpack *unpack)
{
    struct archive_entry *entry;
    int status;

    while ((status = archive_read_next_header(unpack->archive, &entry)) != ARCHIVE_EOF) {
        int r;
        if (is_stopped(unpack))
            return fault_set(unpack->fault, ECANCELED, "unpacking was given up");
        if (status == ARCHIVE_WARN && !archive_entry_pathname(entry))
            return refuse(unpack, CODE_BAD_ENTRY, "?", "has a name that is not valid text");
        if (status != ARCHIVE_OK)
            return refuse_archive(unpack);
        r = unpack_entry(unpack, entry);
        if (r != 0)
            return r;
    }
    return 0;
}

static int make_links(struct unpack *unpack)
{
    for (size_t i = 0; i < unpack->links.count; i++) {
        struct later *link = &unpack->links.items[i];
        const char *name;
        int r = enter_parent(unpack, link->path, &name);
        if (r != 0)
            return r;
        if (symlinkat(link->target, unpack->parent_fd, name) == 0)
            continue;
        if (errno == EEXIST)
            return refuse(unpack, CODE_BAD_ENTRY, link->path, "is a link where something else is already");
        return fail(unpack, errno, link->path);
    }
    return 0;
}

/* Children before parents: without root's rights nobody gets through a directory that is closed already. */
static int compare_descending(const void *a, const void *b)
{
    return strcmp(((const struct later *)b)->path, ((const struct later *)a)->path);
}

static int set_directory_modes(struct unpack *unpack)
{
    struct later_list *list = &unpack->directories;

    if (list->count)
        qsort(list->items, list->count, sizeof(*list->items), compare_descending);
    for (size_t i = 0; i < list->count; i++) {
        CLEANUP(cleanup_close) int fd = -1;
        const char *path = list->items[i].path;
        int r;
        if (i > 0 && strcmp(path, list->items[i - 1].path) == 0)
            continue; /* given twice, and perhaps closed to us by now */
        r = open_directory(unpack, path, strlen(path), &fd);
        if (r == 0 && fchmod(fd, list->items[i].mode) < 0)
            r = -errno;
        if (r < 0)
            return fail(unpack, -r, path);
    }
    return 0;
}

static int refuse_empty(struct unpack *unpack)
{
    fault_set(unpack->fault, 0, "the zip archive holds no file");
    return CODE_EMPTY;
}

/* Before anything is written, and before libarchive reads the whole list; the entries are counted again as they come.
 */
static int refuse_too_many(struct unpack *unpack, uint64_t count)
{
    fault_set(unpack->fault, 0, "the zip archive has %" PRIu64 " entries; at most %" PRIu64 " are unpacked", count,
              unpack->config->max_entries);
    return CODE_TOO_MANY_ENTRIES;
}

static int unpack_all(struct unpack *unpack, struct span zip)
{
    uint64_t count = zip_count_entries(zip);
    int r;

    /* A zip without entries begins with the record that ends others; libarchive takes it for no zip at all. */
    if (zip.length == 0 || span_starts_with(zip, SPAN("PK\5\6")))
        return refuse_empty(unpack);
    if (count > unpack->config->max_entries)
        return refuse_too_many(unpack, count);
    zip = zip_without_comment(zip);
    if (archive_read_support_format_zip_seekable(unpack->archive) != ARCHIVE_OK ||
        archive_read_open_memory(unpack->archive, zip.data, zip.length) != ARCHIVE_OK)
        return refuse_archive(unpack);
    r = unpack_entries(unpack);
    if (r == 0)
        r = make_links(unpack);
    if (r == 0)
        r = set_directory_modes(unpack);
    return r == 0 && unpack->files == 0 ? refuse_empty(unpack) : r;
}

int unpack_zip(struct span zip, int directory_fd, const struct unpack_config *config, uint64_t *ret_bytes,
               struct fault *fault)
{
    struct unpack unpack = {.config = config, .fault = fault, .root_fd = directory_fd, .parent_fd = -1};
    locale_t before = uselocale(config->locale); /* of this thread; 0 changes nothing */
    int r;

    unpack.archive = archive_read_new();
    if (unpack.archive)
        r = unpack_all(&unpack, zip);
    else
        r = fault_set(fault, ENOMEM, "cannot unpack: out of memory");
    if (r == 0)
        *ret_bytes = unpack.bytes;
    archive_read_free(unpack.archive);
    cleanup_close(&unpack.parent_fd);
    free(unpack.links.items);
    free(unpack.directories.items);
    arena_deinit(&unpack.arena);
    uselocale(before);
    return r;
}
