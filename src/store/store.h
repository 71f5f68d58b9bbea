/*
 * Documents that outlive a restart: bytes under (collection, key), each with a version that grows by one at every
 * change. Changes are made in batches: all of a batch or nothing, and what on_done has acknowledged survives kill -9
 * and power loss. What the bytes mean is the caller's business.
 *
 * All functions are called on the loop's thread. SQLite runs on a thread of the store's own; batches that wait while
 * one commits go into the next transaction together (group commit), each still standing or falling alone. on_done is
 * called from the loop, never during a call other than store_close, in the order of submission. It may call any
 * function here but store_close.
 *
 * The lock on the data directory belongs to the process and what it forks: helpers that live on (the launcher) must
 * close it. Whoever has work to do on the directory's behalf before the store's thread exists takes the lock first
 * (store_lock) and hands it over.
 */
#pragma once

#include "base/fault.h"
#include "base/span.h"

struct store;
struct store_batch;
struct uv_loop_s;

/* How a batch ended, besides 0 (durable) and -errno. */
enum store_result {
    STORE_CONFLICT = 1, /* a document was not at the expected version: nothing of the batch was written */
};

/* Expected versions. A document's first version is 1. */
#define STORE_ABSENT UINT64_C(0) /* must not exist */
#define STORE_ANY    UINT64_MAX  /* whatever is there, or nothing */

enum {
    STORE_COLLECTION_BYTES_MAX = 64,
    STORE_KEY_BYTES_MAX = 1024,
    STORE_DOCUMENT_BYTES_MAX = 16 << 20,
    STORE_WAITING_BYTES = 128 << 20,
};

struct store_config {
    const char *data_dir;   /* created (mode 0700) when missing; its parent must exist. Borrowed for the call */
    struct uv_loop_s *loop; /* borrowed until a turn after store_close */
    int *lock;              /* from store_lock for the same directory; taken (-1 after) on success. NULL: locked here */
    size_t max_waiting_bytes; /* batches not yet written may hold this much; 0: STORE_WAITING_BYTES */
};

/* A document as store_load shows it; the spans are borrowed for the call. */
struct store_document {
    struct span key;
    uint64_t version;
    struct span bytes;
};

/*
 * Makes the directory when it is missing and takes its exclusive lock; the descriptor is the caller's, closing it gives
 * the lock up. -EBUSY when another Kiln uses the directory, or -errno, each with a sentence.
 */
int store_lock(const char *data_dir, int *ret_lock, struct fault *fault) MUST_USE;

/*
 * Opens or creates DIR/kiln.db, brings an older format up to date, and starts the thread. On failure nothing is left
 * open and `fault` has a sentence for the operator:
 *   -EBUSY    another Kiln uses the directory
 *   -EPROTO   the database is of a newer format than this program knows, or is not Kiln's, or is damaged
 *   -errno    the directory or the file cannot be made, opened or read
 */
int store_open(const struct store_config *config, struct store **ret_store, struct fault *fault) MUST_USE;

/*
 * Waits until every batch is durable or has failed and calls their on_done (which may submit more: they are waited for
 * too), ends the thread, closes the database and gives up the lock; all that when it returns. The memory goes on the
 * loop's next turn. Returns NULL; NULL is allowed.
 */
struct store *store_close(struct store *store);

/*
 * Calls on_document for each document of `collection` in the bytewise order of keys. Blocks, so it is for start-up; no
 * batch may be waiting. A non-zero answer of on_document ends the walk and is returned. on_document may not call the
 * store.
 */
int store_load(struct store *store, struct span collection,
               int (*on_document)(const struct store_document *document, void *context), void *context) MUST_USE;

/* An empty batch, NULL when out of memory. Give it to store_commit or store_batch_free. */
struct store_batch *store_batch_new(void) MUST_USE;
/* For a batch that is not committed after all. Returns NULL; NULL is allowed. */
struct store_batch *store_batch_free(struct store_batch *batch);

/*
 * Adds a change; everything is copied. A put leaves version expected + 1 (1 for STORE_ABSENT; with STORE_ANY one more
 * than there was). A delete expects a version that exists, or STORE_ANY, which also accepts that there is nothing. A
 * document may be changed several times in a batch, in order. A document that is deleted and made again starts at 1.
 * 0, -ENOMEM, -E2BIG past the limits above; the batch is as before then.
 */
int store_batch_put(struct store_batch *batch, struct span collection, struct span key, uint64_t expected,
                    struct span bytes) MUST_USE;
int store_batch_delete(struct store_batch *batch, struct span collection, struct span key, uint64_t expected) MUST_USE;

/*
 * Takes the batch. on_done gets 0 when it is durable, STORE_CONFLICT, or -errno: -ENOSPC (disk full), -EIO, -ENOMEM, or
 * -EAGAIN when too much was waiting already. Unless it is 0 nothing was written, and later batches may succeed. An
 * empty batch is a barrier. on_done may be NULL.
 */
void store_commit(struct store *store, struct store_batch *batch, void (*on_done)(int result, void *context),
                  void *context);
