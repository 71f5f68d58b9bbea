/*
 * What the loop knows of each package, and the jobs on the pool that do the work.
 *
 *                    code_unpack of an unknown one          unpacked
 *     (unknown) ------------------------------> UNPACKING -----------> PRESENT
 *         ^ \___ code_retain at start ______________^_____________________^ |
 *         |                                    | failed                     | last reference given back
 *         |                                    v                            |
 *         +------- removed, nobody waits --- REMOVING <---------------------+
 *                                              |
 *                                              +-- removed, somebody waits for it: UNPACKING
 *
 * A package has one job at a time, so the same zip sent twice, or sent while it is being removed, never races with
 * itself; whoever comes while a job runs waits for its end. A package that a document names is PRESENT without a look;
 * when its zip is sent again the job does look (measured is false), and unpacks what has gone missing.
 *
 * On disk: ".tmp-RUN-N" (a directory) and ".tmp-RUN-N.zip" are drafts; RUN is a random number of this process, so that
 * code_sweep can tell its own from leftovers. The zip is renamed first and the directory last: where the directory is,
 * all is. Removal renames the directory back to a draft first, for the same reason.
 */
#include "store/code.h"

#include "base/encode.h"
#include "base/list.h"
#include "base/random.h"
#include "base/table.h"
#include "store/tree.h"
#include "store/unpack.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <sys/stat.h>
#include <uv.h>

enum { HASH_BYTES = 32, RUN_DIGITS = 16, DRAFT_BYTES = 64 };

#define DRAFT_PREFIX ".tmp-"

enum package_state { PACKAGE_PRESENT, PACKAGE_UNPACKING, PACKAGE_REMOVING };

struct package {
    struct code_store *store;
    enum package_state state;
    unsigned references;
    bool measured;            /* unpacked_bytes is known */
    bool seen;                /* by code_sweep */
    struct code_package info; /* its sha256 is the key in `packages` */
    struct list requests;     /* struct request, waiting for the job to end */

    /* of the job that runs */
    uv_work_t work;
    struct buffer zip; /* owned by the job that unpacks it */
    char draft[DRAFT_BYTES];
    int result;
    struct fault fault;
};

/* One code_unpack. */
struct request {
    struct list_link link; /* in package->requests */
    struct code_store *store;
    uv_work_t work; /* the hashing */
    struct buffer zip;
    struct code_package info;
    int result;
    code_on_unpacked *on_unpacked;
    void *context;
};

/* A leftover draft that is being removed. */
struct leftover {
    struct code_store *store;
    uv_work_t work;
    char name[NAME_MAX + 1];
};

struct code_store {
    uv_loop_t *loop;
    int directory_fd;     /* DIR/code */
    char *directory_path; /* absolute */
    uint64_t max_entries;
    uint64_t max_unpacked_bytes;
    locale_t locale; /* 0 where there is no UTF-8 locale */
    char run[RUN_DIGITS + 1];
    uint64_t drafts;       /* numbers given out */
    struct table packages; /* sha256 -> struct package */
    size_t jobs;           /* on the pool, or their callbacks */
    _Atomic bool closing;  /* the jobs look at it */
};

/* --- the store's own life --- */

static struct code_store *store_free(struct code_store *store)
{
    if (!store)
        return NULL;
    TABLE_FOREACH (entry, &store->packages)
        free(entry->value);
    table_deinit(&store->packages);
    cleanup_close(&store->directory_fd);
    free(store->directory_path);
    if (store->locale)
        freelocale(store->locale);
    free(store);
    return NULL;
}

static void cleanup_store(struct code_store **store)
{
    store_free(*store);
}

static void job_start(struct code_store *store, uv_work_t *work, uv_work_cb run, uv_after_work_cb on_done)
{
    int r = uv_queue_work(store->loop, work, run, on_done);

    assert(r == 0); /* fails for a missing callback only */
    (void)r;
    store->jobs++;
}

/* The last thing a job's callback does. */
static void job_end(struct code_store *store)
{
    if (--store->jobs == 0 && store->closing)
        store_free(store);
}

/* Makes DIR/code, durably if it is new. */
static int make_directory(struct code_store *store, const char *data_dir)
{
    CLEANUP(cleanup_free) char *root = realpath(data_dir, NULL);
    CLEANUP(cleanup_close) int root_fd = -1;
    int r;

    if (!root)
        return -errno;
    r = tree_open(AT_FDCWD, root, &root_fd);
    if (r < 0)
        return r;
    if (mkdirat(root_fd, "code", 0700) == 0)
        r = fsync(root_fd) < 0 ? -errno : 0;
    else if (errno != EEXIST)
        r = -errno;
    if (r == 0)
        r = tree_open(root_fd, "code", &store->directory_fd);
    if (r == 0 && asprintf(&store->directory_path, "%s/code", root) < 0) {
        store->directory_path = NULL;
        r = -ENOMEM;
    }
    return r;
}

int code_store_open(const struct code_config *config, struct code_store **ret_store, struct fault *fault)
{
    CLEANUP(cleanup_store) struct code_store *store = calloc(1, sizeof(*store));
    int r;

    if (!store)
        return fault_set(fault, ENOMEM, "cannot open the code store: out of memory");
    store->directory_fd = -1;
    store->loop = config->loop;
    store->max_entries = config->max_entries ? config->max_entries : CODE_ENTRIES;
    store->max_unpacked_bytes = config->max_unpacked_bytes ? config->max_unpacked_bytes : CODE_UNPACKED_BYTES;
    store->locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    random_hex(store->run, RUN_DIGITS);
    r = make_directory(store, config->data_dir);
    if (r < 0)
        return fault_set(fault, -r, "cannot open %s/code: %s", config->data_dir, strerror(-r));
    *ret_store = TAKE_PTR(store);
    return 0;
}

struct code_store *code_store_close(struct code_store *store)
{
    if (!store)
        return NULL;
    assert(!store->closing);
    store->closing = true;
    return store->jobs == 0 ? store_free(store) : NULL;
}

/* --- packages --- */

static struct package *package_find(const struct code_store *store, const char *sha256)
{
    return table_get(&store->packages, span_from(sha256));
}

/* Without references; the caller sets the state. NULL when out of memory. */
static struct package *package_add(struct code_store *store, const char *sha256)
{
    struct package *package = calloc(1, sizeof(*package));

    if (!package)
        return NULL;
    package->store = store;
    list_init(&package->requests);
    snprintf(package->info.sha256, sizeof(package->info.sha256), "%s", sha256);
    if (table_add(&store->packages, span_from(package->info.sha256), package) < 0) {
        free(package);
        return NULL;
    }
    return package;
}

static void package_forget(struct package *package)
{
    assert(package->references == 0 && list_is_empty(&package->requests));
    table_remove(&package->store->packages, span_from(package->info.sha256));
    free(package);
}

static void zip_name(const char *sha256, char name[CODE_SHA256_HEX_BYTES + 4])
{
    snprintf(name, CODE_SHA256_HEX_BYTES + 4, "%.64s.zip", sha256);
}

/* A draft's name for the package's next job. */
static void package_draft(struct package *package)
{
    snprintf(package->draft, sizeof(package->draft), DRAFT_PREFIX "%s-%llu", package->store->run,
             (unsigned long long)package->store->drafts++);
}

static void draft_zip_name(const struct package *package, char name[DRAFT_BYTES + 4])
{
    snprintf(name, DRAFT_BYTES + 4, "%s.zip", package->draft);
}

/* --- unpacking, on the pool --- */

/* Whether directory and zip are there; then how large they are. */
static bool find_installed(struct package *package)
{
    char zip[CODE_SHA256_HEX_BYTES + 4];
    struct stat status;

    zip_name(package->info.sha256, zip);
    if (fstatat(package->store->directory_fd, zip, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    if (tree_measure(package->store->directory_fd, package->info.sha256, &package->info.unpacked_bytes) < 0)
        return false;
    package->info.zip_bytes = (uint64_t)status.st_size;
    return true;
}

static int write_zip(struct package *package)
{
    CLEANUP(cleanup_close) int fd = -1;
    struct span rest = buffer_span(&package->zip);
    char name[DRAFT_BYTES + 4];

    draft_zip_name(package, name);
    fd = openat(package->store->directory_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    while (rest.length) {
        ssize_t written = write(fd, rest.data, rest.length);
        if (written < 0 && errno != EINTR)
            return -errno;
        if (written > 0)
            rest = span_slice(rest, (size_t)written, rest.length);
    }
    return fdatasync(fd) < 0 ? -errno : 0;
}

/* The content, complete and on disk, in the draft's directory. */
static int write_directory(struct package *package)
{
    struct code_store *store = package->store;
    struct unpack_config config = {
        .max_bytes = store->max_unpacked_bytes,
        .max_entries = store->max_entries,
        .locale = store->locale,
        .stop = &store->closing,
    };
    CLEANUP(cleanup_close) int fd = -1;
    int r;

    if (mkdirat(store->directory_fd, package->draft, 0700) < 0)
        return -errno;
    r = tree_open(store->directory_fd, package->draft, &fd);
    if (r == 0 && fchmod(fd, 0755) < 0) /* shown as /var/task to another user */
        r = -errno;
    if (r == 0)
        r = unpack_zip(buffer_span(&package->zip), fd, &config, &package->info.unpacked_bytes, &package->fault);
    return r == 0 ? tree_sync(fd) : r;
}

static int publish(struct package *package)
{
    int directory_fd = package->store->directory_fd;
    const char *sha256 = package->info.sha256;
    char draft_zip[DRAFT_BYTES + 4], zip[CODE_SHA256_HEX_BYTES + 4];

    draft_zip_name(package, draft_zip);
    zip_name(sha256, zip);
    if (renameat(directory_fd, draft_zip, directory_fd, zip) < 0)
        return -errno;
    /* A directory of that name can only be the same content whose zip was missing: it stays. */
    if (renameat(directory_fd, package->draft, directory_fd, sha256) < 0 && errno != ENOTEMPTY && errno != EEXIST)
        return -errno;
    return fsync(directory_fd) < 0 ? -errno : 0;
}

static void remove_drafts(struct package *package)
{
    char draft_zip[DRAFT_BYTES + 4];

    draft_zip_name(package, draft_zip);
    unlinkat(package->store->directory_fd, draft_zip, 0);
    (void)!tree_remove(package->store->directory_fd, package->draft, NULL); /* what stays is swept at the next start */
}

static int install(struct package *package)
{
    int r = write_zip(package);

    if (r == 0)
        r = write_directory(package);
    if (r == 0)
        r = publish(package);
    remove_drafts(package);
    return r;
}

static void run_unpack(uv_work_t *work)
{
    struct package *package = CONTAINER_OF(work, struct package, work);

    package->fault = (struct fault){0};
    package->result = 0;
    if (package->store->closing) {
        package->result = -ECANCELED;
    } else if (!find_installed(package)) {
        package->info.zip_bytes = package->zip.length;
        package->result = install(package);
    }
    buffer_deinit(&package->zip);
    if (package->result < 0 && !package->fault.text[0])
        fault_set(&package->fault, -package->result, "cannot keep the code package: %s", strerror(-package->result));
}

/* --- unpacking, on the loop --- */

static void package_remove(struct package *package);

/* Ends a request: one reference is already counted when the result is 0. */
static void request_finish(struct request *request, int result, const struct fault *fault)
{
    request->on_unpacked(result, result == 0 ? &request->info : NULL, fault, request->context);
    buffer_deinit(&request->zip);
    free(request);
}

/* All are counted before the first callback, which may give its reference back at once. */
static void finish_requests(struct package *package, struct list *requests, int result)
{
    struct code_package info = package->info;
    struct fault fault = package->fault;
    struct list_link *link;

    while ((link = list_first(requests))) {
        struct request *request = CONTAINER_OF(link, struct request, link);
        list_remove(link);
        request->info.zip_bytes = info.zip_bytes;
        request->info.unpacked_bytes = info.unpacked_bytes;
        request_finish(request, result, &fault);
    }
}

static void on_unpack_done(uv_work_t *work, int status)
{
    struct package *package = CONTAINER_OF(work, struct package, work);
    struct code_store *store = package->store;
    struct list requests;
    struct list_link *link;
    int result = package->result;

    (void)status; /* never cancelled through libuv */
    list_init(&requests);
    while ((link = list_first(&package->requests))) {
        list_remove(link);
        list_push_back(&requests, link);
        package->references += result == 0;
    }
    package->state = PACKAGE_PRESENT;
    package->measured = result == 0;
    if (package->references == 0)
        package_remove(package); /* failed: there may be half of it from an earlier life */
    finish_requests(package, &requests, result);
    job_end(store);
}

/* `zip` is taken. */
static void package_unpack(struct package *package, struct buffer *zip)
{
    package->state = PACKAGE_UNPACKING;
    package->zip = buffer_take(zip);
    package_draft(package);
    job_start(package->store, &package->work, run_unpack, on_unpack_done);
}

/* --- removing --- */

static void run_remove(uv_work_t *work)
{
    struct package *package = CONTAINER_OF(work, struct package, work);
    struct code_store *store = package->store;
    char zip[CODE_SHA256_HEX_BYTES + 4];
    int r;

    if (store->closing)
        return; /* swept at the next start */
    zip_name(package->info.sha256, zip);
    r = renameat(store->directory_fd, package->info.sha256, store->directory_fd, package->draft) < 0 ? -errno : 0;
    if (r == 0 || r == -ENOENT)
        unlinkat(store->directory_fd, zip, 0);
    if (r == 0)
        (void)!tree_remove(store->directory_fd, package->draft, &store->closing);
}

static void on_remove_done(uv_work_t *work, int status)
{
    struct package *package = CONTAINER_OF(work, struct package, work);
    struct code_store *store = package->store;

    (void)status;
    if (list_is_empty(&package->requests)) {
        package_forget(package);
    } else {
        struct request *first = CONTAINER_OF(list_first(&package->requests), struct request, link);
        package_unpack(package, &first->zip);
    }
    job_end(store);
}

static void package_remove(struct package *package)
{
    assert(package->references == 0 && package->state == PACKAGE_PRESENT);
    package->state = PACKAGE_REMOVING;
    package_draft(package);
    job_start(package->store, &package->work, run_remove, on_remove_done);
}

/* --- requests --- */

static void run_hash(uv_work_t *work)
{
    struct request *request = CONTAINER_OF(work, struct request, work);
    unsigned char hash[HASH_BYTES];
    struct buffer base64 = BUFFER_INIT;

    request->result = -ENOMEM;
    if (EVP_Digest(request->zip.data ? request->zip.data : "", request->zip.length, hash, NULL, EVP_sha256(), NULL) !=
        1)
        return;
    if (base64_encode(span_of((char *)hash, sizeof(hash)), &base64) < 0)
        return;
    hex_encode(hash, sizeof(hash), request->info.sha256);
    memcpy(request->info.sha256_base64, base64.data, CODE_SHA256_BASE64_BYTES - 1);
    buffer_deinit(&base64);
    request->result = 0;
}

static void request_fail(struct request *request, int error)
{
    struct fault fault;
    int r = fault_set(&fault, error, "cannot unpack: %s", strerror(error));

    request_finish(request, r, &fault);
}

/* The hash is known: unpack, wait for a job that runs already, or be done. */
static void request_proceed(struct request *request)
{
    struct code_store *store = request->store;
    struct package *package = package_find(store, request->info.sha256);
    bool known = package != NULL;

    if (!package)
        package = package_add(store, request->info.sha256);
    if (!package) {
        request_fail(request, ENOMEM);
    } else if (known && package->state == PACKAGE_PRESENT && package->measured) {
        package->references++;
        request->info.zip_bytes = package->info.zip_bytes;
        request->info.unpacked_bytes = package->info.unpacked_bytes;
        request_finish(request, 0, &(struct fault){0});
    } else {
        list_push_back(&package->requests, &request->link);
        if (!known || package->state == PACKAGE_PRESENT)
            package_unpack(package, &request->zip);
        else if (package->state == PACKAGE_UNPACKING)
            buffer_deinit(&request->zip); /* the job has the same bytes */
    }
}

static void on_hash_done(uv_work_t *work, int status)
{
    struct request *request = CONTAINER_OF(work, struct request, work);
    struct code_store *store = request->store;

    (void)status;
    if (store->closing)
        request_fail(request, ECANCELED);
    else if (request->result < 0)
        request_fail(request, -request->result);
    else
        request_proceed(request);
    job_end(store);
}

int code_unpack(struct code_store *store, struct buffer *zip, code_on_unpacked *on_unpacked, void *context)
{
    struct request *request = calloc(1, sizeof(*request));

    assert(!store->closing);
    if (!request) {
        buffer_deinit(zip);
        return -ENOMEM;
    }
    list_link_init(&request->link);
    request->store = store;
    request->zip = buffer_take(zip);
    request->on_unpacked = on_unpacked;
    request->context = context;
    job_start(store, &request->work, run_hash, on_hash_done);
    return 0;
}

/* --- references --- */

static bool is_sha256(struct span text)
{
    if (text.length != CODE_SHA256_HEX_BYTES - 1)
        return false;
    for (size_t i = 0; i < text.length; i++) {
        char c = text.data[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return false;
    }
    return true;
}

int code_retain(struct code_store *store, const char *sha256)
{
    struct package *package;

    if (!is_sha256(span_from(sha256)))
        return -EINVAL;
    package = package_find(store, sha256);
    if (!package)
        package = package_add(store, sha256); /* PRESENT, not measured */
    if (!package)
        return -ENOMEM;
    assert(package->state != PACKAGE_REMOVING);
    package->references++;
    return 0;
}

void code_release(struct code_store *store, const char *sha256)
{
    struct package *package = package_find(store, sha256);

    assert(package && package->references > 0);
    if (--package->references == 0 && package->state == PACKAGE_PRESENT && !store->closing)
        package_remove(package);
}

/* --- sweeping --- */

static void run_sweep(uv_work_t *work)
{
    struct leftover *leftover = CONTAINER_OF(work, struct leftover, work);

    (void)!tree_remove(leftover->store->directory_fd, leftover->name, &leftover->store->closing);
}

static void on_sweep_done(uv_work_t *work, int status)
{
    struct leftover *leftover = CONTAINER_OF(work, struct leftover, work);
    struct code_store *store = leftover->store;

    (void)status;
    free(leftover);
    job_end(store);
}

static int sweep_draft(struct code_store *store, const char *name)
{
    struct leftover *leftover;

    if (strncmp(name + strlen(DRAFT_PREFIX), store->run, RUN_DIGITS) == 0)
        return 0;
    leftover = calloc(1, sizeof(*leftover));
    if (!leftover)
        return -ENOMEM;
    leftover->store = store;
    snprintf(leftover->name, sizeof(leftover->name), "%s", name);
    job_start(store, &leftover->work, run_sweep, on_sweep_done);
    return 0;
}

/* `name` is "<sha256>" or "<sha256>.zip". Only the directory makes a package present. */
static int sweep_package(struct code_store *store, struct span name)
{
    bool zip = span_ends_with(name, SPAN(".zip"));
    struct span sha256 = zip ? span_slice(name, 0, name.length - 4) : name;
    struct package *package = table_get(&store->packages, sha256);
    char text[CODE_SHA256_HEX_BYTES];

    if (package) {
        package->seen = package->seen || !zip;
        return 0;
    }
    snprintf(text, sizeof(text), "%.*s", SPAN_ARG(sha256));
    package = package_add(store, text);
    if (!package)
        return -ENOMEM;
    package_remove(package);
    return 0;
}

/* Names that we never make are not ours to remove. */
static int sweep_name(struct code_store *store, const char *text)
{
    struct span name = span_from(text);

    if (span_starts_with(name, SPAN(DRAFT_PREFIX)))
        return sweep_draft(store, text);
    if (is_sha256(name))
        return sweep_package(store, name);
    if (span_ends_with(name, SPAN(".zip")) && is_sha256(span_slice(name, 0, name.length - 4)))
        return sweep_package(store, name);
    return 0;
}

int code_sweep(struct code_store *store, void (*on_missing)(const char *sha256, void *context), void *context)
{
    DIR *stream = opendir(store->directory_path);
    struct dirent *entry = NULL;
    int r = 0;

    if (!stream)
        return -errno;
    while (r == 0 && (errno = 0, entry = readdir(stream)))
        r = sweep_name(store, entry->d_name);
    if (!entry && errno != 0)
        r = -errno;
    closedir(stream);
    TABLE_FOREACH (item, &store->packages) {
        struct package *package = item->value;
        if (r == 0 && on_missing && package->references > 0 && !package->seen)
            on_missing(package->info.sha256, context);
    }
    return r;
}

/* --- paths --- */

int code_directory(const struct code_store *store, const char *sha256, struct buffer *path)
{
    int r = buffer_printf(path, "%s/%s", store->directory_path, sha256);

    if (r < 0)
        return r;
    return buffer_terminate(path) ? 0 : -ENOMEM;
}

int code_open_zip(const struct code_store *store, const char *sha256, int *ret_fd, uint64_t *ret_bytes)
{
    CLEANUP(cleanup_close) int fd = -1;
    char name[CODE_SHA256_HEX_BYTES + 4];
    struct stat status;

    if (!is_sha256(span_from(sha256)))
        return -ENOENT;
    zip_name(sha256, name);
    fd = openat(store->directory_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) < 0)
        return -errno;
    *ret_bytes = (uint64_t)status.st_size;
    *ret_fd = TAKE_FD(fd);
    return 0;
}
