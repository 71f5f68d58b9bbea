/*
 * The SQLite file: the only place that knows SQL. No threads and no queue of its own: one caller at a time. Internal to
 * store.
 */
#pragma once

#include "base/fault.h"
#include "base/list.h"
#include "store/store.h"

struct database;

/* The format this program writes. Every step of the format is an entry of `migrations` in database.c. */
enum { DATABASE_FORMAT = 1 };

/* Opens `path`, or makes it whole (it appears by rename). Errors as in store_open. */
int database_open(const char *path, struct database **ret_database, struct fault *fault) MUST_USE;
/* Returns NULL; NULL is allowed. */
struct database *database_close(struct database *database);

/* As store_load. */
int database_load(struct database *database, struct span collection,
                  int (*on_document)(const struct store_document *document, void *context), void *context) MUST_USE;

/*
 * Applies the struct store_batch in `batches`, in order, in one transaction, and sets the result of each that is not
 * `refused`. Returns when what is 0 is on disk. When the transaction as a whole fails, each batch is tried alone, so
 * that a large one for which there is no room does not take small ones with it.
 */
void database_commit(struct database *database, const struct list *batches);

/* Moves the write-ahead log into the database when that is due. Kept out of database_commit: nobody waits for it. */
void database_tidy(struct database *database);
