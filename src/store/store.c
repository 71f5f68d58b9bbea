/*
 * The queue between the loop and the thread that owns the database.
 *
 *     loop thread                 store thread
 *     store_commit --> waiting -->  takes all that wait, one transaction
 *     on_done      <-- done    <--  results, in the same order; uv_async wakes the loop
 *
 * A batch is one allocation chain from store_batch_new to on_done and moves between the two lists; nothing is allocated
 * on the way, so submitting cannot fail. A batch past the limit of the queue gives up its content at once and travels
 * on as an empty one with its result, which keeps the order of completion.
 *
 * The async handle keeps the loop alive only while something is pending.
 */
#include "store/store.h"

#include "store/batch.h"
#include "store/database.h"

#include <assert.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <uv.h>

struct store {
    uv_async_t finished;
    size_t max_waiting_bytes;
    size_t pending;  /* submitted, on_done not called yet */
    bool delivering; /* on_done is running */
    int lock_fd;     /* DIR/lock, flocked */

    pthread_t thread;
    pthread_mutex_t database_mutex; /* whoever uses the database: the thread, or store_load */
    struct database *database;

    pthread_mutex_t mutex; /* all below */
    pthread_cond_t work;   /* something waits, or ending */
    pthread_cond_t done_some;
    struct list waiting;
    struct list done;
    size_t waiting_bytes;
    bool ending;
};

/* --- batches --- */

struct store_batch *store_batch_new(void)
{
    struct store_batch *batch = calloc(1, sizeof(*batch));

    if (!batch)
        return NULL;
    list_link_init(&batch->link);
    list_init(&batch->changes);
    batch->bytes = sizeof(*batch);
    return batch;
}

static void batch_drop_changes(struct store_batch *batch)
{
    LIST_FOREACH (link, &batch->changes)
        free(CONTAINER_OF(link, struct change, link));
    list_init(&batch->changes);
}

struct store_batch *store_batch_free(struct store_batch *batch)
{
    if (!batch)
        return NULL;
    batch_drop_changes(batch);
    free(batch);
    return NULL;
}

/* Copies `span` to `*at` and moves `*at` behind it. */
static struct span copy_span(char **at, struct span span)
{
    char *copy = *at;

    if (span.length)
        memcpy(copy, span.data, span.length);
    *at += span.length;
    return span_of(copy, span.length);
}

static int batch_add(struct store_batch *batch, struct change change)
{
    size_t size = sizeof(change) + change.collection.length + change.key.length + change.bytes.length;
    struct change *copy;
    char *at;

    if (change.collection.length > STORE_COLLECTION_BYTES_MAX || change.key.length > STORE_KEY_BYTES_MAX ||
        change.bytes.length > STORE_DOCUMENT_BYTES_MAX)
        return -E2BIG;
    copy = malloc(size);
    if (!copy)
        return -ENOMEM;
    *copy = change;
    at = (char *)(copy + 1);
    copy->collection = copy_span(&at, change.collection);
    copy->key = copy_span(&at, change.key);
    copy->bytes = copy_span(&at, change.bytes);
    list_link_init(&copy->link);
    list_push_back(&batch->changes, &copy->link);
    batch->bytes += size;
    return 0;
}

int store_batch_put(struct store_batch *batch, struct span collection, struct span key, uint64_t expected,
                    struct span bytes)
{
    struct change change = {
        .kind = CHANGE_PUT, .expected = expected, .collection = collection, .key = key, .bytes = bytes};

    return batch_add(batch, change);
}

int store_batch_delete(struct store_batch *batch, struct span collection, struct span key, uint64_t expected)
{
    struct change change = {.kind = CHANGE_DELETE, .expected = expected, .collection = collection, .key = key};

    assert(expected != STORE_ABSENT);
    return batch_add(batch, change);
}

/* --- the store thread --- */

/* Moves everything from `from` to the end of the empty list `to`. */
static void list_take_all(struct list *from, struct list *to)
{
    struct list_link *link;

    while ((link = list_first(from))) {
        list_remove(link);
        list_push_back(to, link);
    }
}

/* Waits for batches and takes all there are; false when the store ends. */
static bool take_waiting(struct store *store, struct list *group)
{
    bool more;

    pthread_mutex_lock(&store->mutex);
    while (list_is_empty(&store->waiting) && !store->ending)
        pthread_cond_wait(&store->work, &store->mutex);
    more = !list_is_empty(&store->waiting);
    list_take_all(&store->waiting, group);
    pthread_mutex_unlock(&store->mutex);
    return more;
}

/* The loop may free a batch from the moment it is on the list. */
static void give_back(struct store *store, struct list *group)
{
    pthread_mutex_lock(&store->mutex);
    LIST_FOREACH (link, group)
        store->waiting_bytes -= CONTAINER_OF(link, struct store_batch, link)->bytes;
    list_take_all(group, &store->done);
    pthread_cond_signal(&store->done_some);
    pthread_mutex_unlock(&store->mutex);
    uv_async_send(&store->finished);
}

static void *store_run(void *context)
{
    struct store *store = context;
    struct list group;

    list_init(&group);
    while (take_waiting(store, &group)) {
        pthread_mutex_lock(&store->database_mutex);
        database_commit(store->database, &group);
        give_back(store, &group);
        database_tidy(store->database);
        pthread_mutex_unlock(&store->database_mutex);
    }
    return NULL;
}

/* Signals are for the loop's thread. */
static int start_thread(struct store *store)
{
    sigset_t all, before;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&store->thread, NULL, store_run, store);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -error;
}

/* --- the loop's side --- */

static void deliver(struct store *store)
{
    struct list done;
    struct list_link *link;

    list_init(&done);
    pthread_mutex_lock(&store->mutex);
    list_take_all(&store->done, &done);
    pthread_mutex_unlock(&store->mutex);
    store->delivering = true;
    while ((link = list_first(&done))) {
        struct store_batch *batch = CONTAINER_OF(link, struct store_batch, link);
        list_remove(link);
        if (--store->pending == 0)
            uv_unref((uv_handle_t *)&store->finished);
        if (batch->on_done)
            batch->on_done(batch->result, batch->context);
        store_batch_free(batch);
    }
    store->delivering = false;
}

static void on_finished(uv_async_t *finished)
{
    deliver(CONTAINER_OF(finished, struct store, finished));
}

void store_commit(struct store *store, struct store_batch *batch, void (*on_done)(int result, void *context),
                  void *context)
{
    batch->on_done = on_done;
    batch->context = context;
    if (store->pending++ == 0)
        uv_ref((uv_handle_t *)&store->finished);
    pthread_mutex_lock(&store->mutex);
    assert(!store->ending);
    if (store->waiting_bytes + batch->bytes > store->max_waiting_bytes) {
        batch_drop_changes(batch);
        batch->bytes = 0;
        batch->refused = true;
        batch->result = -EAGAIN;
    }
    store->waiting_bytes += batch->bytes;
    list_push_back(&store->waiting, &batch->link);
    pthread_cond_signal(&store->work);
    pthread_mutex_unlock(&store->mutex);
}

int store_load(struct store *store, struct span collection,
               int (*on_document)(const struct store_document *document, void *context), void *context)
{
    int r;

    assert(store->pending == 0);
    pthread_mutex_lock(&store->database_mutex);
    r = database_load(store->database, collection, on_document, context);
    pthread_mutex_unlock(&store->database_mutex);
    return r;
}

/* --- opening and closing --- */

static int lock_directory(const char *data_dir, int *ret_fd, struct fault *fault)
{
    CLEANUP(cleanup_close) int fd = -1;
    char path[PATH_MAX], owner[32] = "";
    ssize_t length;

    if (snprintf(path, sizeof(path), "%s/lock", data_dir) >= (int)sizeof(path))
        return fault_set(fault, ENAMETOOLONG, "data directory %s: %s", data_dir, strerror(ENAMETOOLONG));
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return fault_set(fault, errno, "cannot open %s: %s", path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK)
            return fault_set(fault, errno, "cannot lock %s: %s", path, strerror(errno));
        length = pread(fd, owner, sizeof(owner) - 1, 0);
        owner[length > 0 ? strcspn(owner, "\n") : 0] = '\0';
        return fault_set(fault, EBUSY, "data directory %s is in use by another Kiln (process %s)", data_dir,
                         *owner ? owner : "unknown");
    }
    /* The number only helps whoever reads the message above: failing to write it does no harm. */
    if (ftruncate(fd, 0) == 0)
        dprintf(fd, "%ld\n", (long)getpid());
    *ret_fd = TAKE_FD(fd);
    return 0;
}

/* A new directory is synced into its parent: what is acknowledged later must not hang on a name that can be lost. */
static int make_directory(const char *data_dir, struct fault *fault)
{
    CLEANUP(cleanup_free) char *copy = strdup(data_dir);
    CLEANUP(cleanup_close) int parent = -1;
    struct stat status;

    if (!copy)
        return fault_set(fault, ENOMEM, "cannot create data directory %s: out of memory", data_dir);
    if (mkdir(data_dir, 0700) == 0) {
        parent = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (parent < 0 || fsync(parent) < 0)
            return fault_set(fault, errno, "cannot create data directory %s: %s", data_dir, strerror(errno));
        return 0;
    }
    if (errno != EEXIST)
        return fault_set(fault, errno, "cannot create data directory %s: %s", data_dir, strerror(errno));
    if (stat(data_dir, &status) == 0 && !S_ISDIR(status.st_mode))
        return fault_set(fault, ENOTDIR, "data directory %s is not a directory", data_dir);
    return 0;
}

int store_lock(const char *data_dir, int *ret_lock, struct fault *fault)
{
    int r = make_directory(data_dir, fault);

    return r < 0 ? r : lock_directory(data_dir, ret_lock, fault);
}

static int open_directory(struct store *store, const struct store_config *config, struct fault *fault)
{
    const char *data_dir = config->data_dir;
    char path[PATH_MAX];
    int r = config->lock ? 0 : store_lock(data_dir, &store->lock_fd, fault);

    if (r < 0)
        return r;
    if (snprintf(path, sizeof(path), "%s/kiln.db", data_dir) >= (int)sizeof(path))
        return fault_set(fault, ENAMETOOLONG, "data directory %s: %s", data_dir, strerror(ENAMETOOLONG));
    return database_open(path, &store->database, fault);
}

/* Everything but the async handle, which belongs to the loop until it is closed. */
static struct store *store_free(struct store *store)
{
    if (!store)
        return NULL;
    database_close(store->database);
    cleanup_close(&store->lock_fd);
    pthread_cond_destroy(&store->done_some);
    pthread_cond_destroy(&store->work);
    pthread_mutex_destroy(&store->mutex);
    pthread_mutex_destroy(&store->database_mutex);
    free(store);
    return NULL;
}

static void cleanup_store(struct store **store)
{
    store_free(*store);
}

static struct store *store_new(const struct store_config *config)
{
    struct store *store = calloc(1, sizeof(*store));

    if (!store)
        return NULL;
    store->max_waiting_bytes = config->max_waiting_bytes ? config->max_waiting_bytes : STORE_WAITING_BYTES;
    store->lock_fd = -1;
    pthread_mutex_init(&store->database_mutex, NULL);
    pthread_mutex_init(&store->mutex, NULL);
    pthread_cond_init(&store->work, NULL);
    pthread_cond_init(&store->done_some, NULL);
    list_init(&store->waiting);
    list_init(&store->done);
    return store;
}

static void on_handle_closed(uv_handle_t *handle)
{
    store_free(CONTAINER_OF((uv_async_t *)handle, struct store, finished));
}

int store_open(const struct store_config *config, struct store **ret_store, struct fault *fault)
{
    CLEANUP(cleanup_store) struct store *store = store_new(config);
    int r;

    if (!store)
        return fault_set(fault, ENOMEM, "cannot open the store: out of memory");
    r = open_directory(store, config, fault);
    if (r < 0)
        return r;
    r = uv_async_init(config->loop, &store->finished, on_finished);
    if (r < 0)
        return fault_set(fault, -r, "cannot open the store: %s", strerror(-r));
    uv_unref((uv_handle_t *)&store->finished);
    r = start_thread(store);
    if (r < 0) {
        struct store *closing = TAKE_PTR(store);
        closing->database = database_close(closing->database);
        cleanup_close(&closing->lock_fd);
        uv_close((uv_handle_t *)&closing->finished, on_handle_closed);
        return fault_set(fault, -r, "cannot start the store's thread: %s", strerror(-r));
    }
    if (config->lock)
        store->lock_fd = TAKE_FD(*config->lock);
    *ret_store = TAKE_PTR(store);
    return 0;
}

struct store *store_close(struct store *store)
{
    if (!store)
        return NULL;
    assert(!store->delivering);
    while (store->pending) {
        pthread_mutex_lock(&store->mutex);
        while (list_is_empty(&store->done))
            pthread_cond_wait(&store->done_some, &store->mutex);
        pthread_mutex_unlock(&store->mutex);
        deliver(store);
    }
    pthread_mutex_lock(&store->mutex);
    store->ending = true;
    pthread_cond_signal(&store->work);
    pthread_mutex_unlock(&store->mutex);
    pthread_join(store->thread, NULL);
    store->database = database_close(store->database);
    cleanup_close(&store->lock_fd);
    uv_close((uv_handle_t *)&store->finished, on_handle_closed);
    return NULL;
}
