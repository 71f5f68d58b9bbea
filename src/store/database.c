/*
 * One table of documents in one SQLite file in WAL mode with synchronous=FULL: a commit is one write and one fdatasync
 * of the log. An ordinary rowid table with an index, not WITHOUT ROWID: documents may be large, and a b-tree that keeps
 * them in its inner nodes is slow to walk.
 *
 * Optimistic versions need no read: each change is one statement whose WHERE clause holds the expected version, and
 * "no row changed" is the conflict.
 *
 * A new database is made under another name without syncing every step, then synced and renamed: making it costs two
 * syncs instead of seven, and kiln.db is either absent or complete. An existing file is therefore never "ours but still
 * empty", and anything without our application id is refused.
 *
 * Errors: SQLite reports a full disk as SQLITE_FULL or, when the failing call was fsync or the growing of the -shm
 * file, as an I/O error with ENOSPC behind it; both become -ENOSPC. When fsync itself fails with EIO nobody can say
 * what is on disk: the batch is reported as -EIO and rolled back in the running process, but its frames may be found
 * in the log after a crash.
 */
#include "store/database.h"

#include "store/batch.h"

#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>

enum {
    APPLICATION_ID = 0x4b494c4e, /* "KILN" */
    CHECKPOINT_FRAMES = 1000,    /* 4 MB of log */
    BUSY_TIMEOUT_MS = 5000,      /* somebody looks at the file with the sqlite3 tool */
};

/* migrations[n] leads from format n to n + 1. */
static const char *const migrations[] = {
    "CREATE TABLE documents ("
    " id INTEGER PRIMARY KEY,"
    " collection TEXT NOT NULL,"
    " key BLOB NOT NULL,"
    " version INTEGER NOT NULL,"
    " bytes BLOB NOT NULL,"
    " UNIQUE (collection, key))",
};
_Static_assert(ARRAY_SIZE(migrations) == DATABASE_FORMAT, "one migration for each step of the format");

enum statement {
    STATEMENT_BEGIN,
    STATEMENT_COMMIT,
    STATEMENT_ROLLBACK,
    STATEMENT_SAVE,
    STATEMENT_RELEASE,
    STATEMENT_UNDO,
    STATEMENT_INSERT,
    STATEMENT_UPDATE,
    STATEMENT_UPSERT,
    STATEMENT_DELETE,
    STATEMENT_DELETE_ANY,
    STATEMENT_COUNT,
};

/* ?1 collection, ?2 key, ?3 expected version, ?4 bytes. */
static const char *const statement_texts[STATEMENT_COUNT] = {
    [STATEMENT_BEGIN] = "BEGIN IMMEDIATE",
    [STATEMENT_COMMIT] = "COMMIT",
    [STATEMENT_ROLLBACK] = "ROLLBACK",
    [STATEMENT_SAVE] = "SAVEPOINT batch",
    [STATEMENT_RELEASE] = "RELEASE batch",
    [STATEMENT_UNDO] = "ROLLBACK TO batch",
    [STATEMENT_INSERT] = "INSERT INTO documents (collection, key, version, bytes) VALUES (?1, ?2, 1, ?4)"
                         " ON CONFLICT DO NOTHING",
    [STATEMENT_UPDATE] = "UPDATE documents SET version = version + 1, bytes = ?4"
                         " WHERE collection = ?1 AND key = ?2 AND version = ?3",
    [STATEMENT_UPSERT] = "INSERT INTO documents (collection, key, version, bytes) VALUES (?1, ?2, 1, ?4)"
                         " ON CONFLICT (collection, key)"
                         " DO UPDATE SET version = version + 1, bytes = excluded.bytes",
    [STATEMENT_DELETE] = "DELETE FROM documents WHERE collection = ?1 AND key = ?2 AND version = ?3",
    [STATEMENT_DELETE_ANY] = "DELETE FROM documents WHERE collection = ?1 AND key = ?2",
};

struct database {
    sqlite3 *sqlite;
    sqlite3_stmt *statements[STATEMENT_COUNT];
    int log_frames; /* length of the write-ahead log after the last commit */
};

static void cleanup_statement(sqlite3_stmt **statement)
{
    sqlite3_finalize(*statement);
}

/* The -errno for a failure that SQLite just reported. */
static int error_of(sqlite3 *sqlite, int code)
{
    int system = sqlite ? sqlite3_system_errno(sqlite) : 0;

    switch (code & 0xff) {
    case SQLITE_FULL:
        return -ENOSPC;
    case SQLITE_NOMEM:
        return -ENOMEM;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return -EBUSY;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return -EPROTO;
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return -EROFS;
    case SQLITE_CANTOPEN:
        return system > 0 ? -system : -EIO;
    default:
        return system == ENOSPC || system == EDQUOT ? -ENOSPC : -EIO;
    }
}

static int fault_sqlite(struct database *database, struct fault *fault, int code, const char *path, const char *doing)
{
    int error = -error_of(database->sqlite, code);

    if (error == EPROTO)
        return fault_set(fault, error, "%s is damaged or not a Kiln database (%s)", path,
                         sqlite3_errmsg(database->sqlite));
    return fault_set(fault, error, "cannot %s %s: %s (%s)", doing, path, strerror(error),
                     database->sqlite ? sqlite3_errmsg(database->sqlite) : sqlite3_errstr(code));
}

static int exec(struct database *database, const char *sql)
{
    return sqlite3_exec(database->sqlite, sql, NULL, NULL, NULL);
}

/* The integer that a one-row query gives. */
static int query_int(struct database *database, const char *sql, int64_t *ret_value)
{
    CLEANUP(cleanup_statement) sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(database->sqlite, sql, -1, &statement, NULL);

    if (code != SQLITE_OK)
        return code;
    code = sqlite3_step(statement);
    if (code != SQLITE_ROW)
        return code == SQLITE_DONE ? SQLITE_CORRUPT : code;
    *ret_value = sqlite3_column_int64(statement, 0);
    return SQLITE_OK;
}

static int exec_migrations(struct database *database, int64_t format)
{
    char stamp[96];
    int code = exec(database, "BEGIN IMMEDIATE");

    for (; code == SQLITE_OK && format < DATABASE_FORMAT; format++)
        code = exec(database, migrations[format]);
    snprintf(stamp, sizeof(stamp), "PRAGMA application_id = %d; PRAGMA user_version = %d", APPLICATION_ID,
             DATABASE_FORMAT);
    if (code == SQLITE_OK)
        code = exec(database, stamp);
    if (code == SQLITE_OK)
        code = exec(database, "COMMIT");
    if (code != SQLITE_OK && !sqlite3_get_autocommit(database->sqlite))
        exec(database, "ROLLBACK");
    return code;
}

/* Refuses what is not ours or too new; brings what is older up to date. */
static int database_check_format(struct database *database, const char *path, struct fault *fault)
{
    int64_t application = 0, format = 0;
    int code = query_int(database, "PRAGMA application_id", &application);

    if (code == SQLITE_OK)
        code = query_int(database, "PRAGMA user_version", &format);
    if (code != SQLITE_OK)
        return fault_sqlite(database, fault, code, path, "read");
    if (application != APPLICATION_ID || format < 1)
        return fault_set(fault, EPROTO, "%s is not a Kiln database", path);
    if (format > DATABASE_FORMAT)
        return fault_set(fault, EPROTO,
                         "%s has format %lld, this version of Kiln knows formats up to %d: use a newer Kiln", path,
                         (long long)format, DATABASE_FORMAT);
    if (format == DATABASE_FORMAT)
        return 0;
    code = exec_migrations(database, format);
    if (code != SQLITE_OK)
        return fault_sqlite(database, fault, code, path, "bring up to date");
    return 0;
}

static int on_log_written(void *context, sqlite3 *sqlite, const char *name, int frames)
{
    struct database *database = context;

    (void)sqlite;
    (void)name;
    database->log_frames = frames;
    return SQLITE_OK;
}

static int database_prepare(struct database *database)
{
    for (int i = 0; i < STATEMENT_COUNT; i++) {
        int code = sqlite3_prepare_v3(database->sqlite, statement_texts[i], -1, SQLITE_PREPARE_PERSISTENT,
                                      &database->statements[i], NULL);
        if (code != SQLITE_OK)
            return code;
    }
    sqlite3_wal_hook(database->sqlite, on_log_written, database); /* instead of checkpoints inside COMMIT */
    return SQLITE_OK;
}

static void cleanup_database(struct database **database)
{
    database_close(*database);
}

static int database_new(const char *path, int flags, struct database **ret_database, struct fault *fault)
{
    CLEANUP(cleanup_database) struct database *database = calloc(1, sizeof(*database));
    int code;

    if (!database)
        return fault_set(fault, ENOMEM, "cannot open %s: out of memory", path);
    code = sqlite3_open_v2(path, &database->sqlite, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW, NULL);
    if (code != SQLITE_OK)
        return fault_sqlite(database, fault, code, path, "open");
    sqlite3_extended_result_codes(database->sqlite, 1);
    sqlite3_busy_timeout(database->sqlite, BUSY_TIMEOUT_MS);
    *ret_database = TAKE_PTR(database);
    return 0;
}

static int sync_path(const char *path, int flags)
{
    CLEANUP(cleanup_close) int fd = open(path, O_RDONLY | O_CLOEXEC | flags);

    return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

static void unlink_with(const char *path, const char *suffix)
{
    char other[PATH_MAX];

    if (snprintf(other, sizeof(other), "%s%s", path, suffix) < (int)sizeof(other))
        unlink(other);
}

/* Writes a complete empty database to `path`, not synced. */
static int write_empty(const char *path, struct fault *fault)
{
    CLEANUP(cleanup_database) struct database *database = NULL;
    int code;
    int r = database_new(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &database, fault);

    if (r < 0)
        return r;
    code = exec(database, "PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY");
    if (code == SQLITE_OK)
        code = exec_migrations(database, 0);
    if (code == SQLITE_OK)
        code = exec(database, "PRAGMA journal_mode = WAL");
    return code == SQLITE_OK ? 0 : fault_sqlite(database, fault, code, path, "create");
}

/* What an earlier database of that name left behind must go first: SQLite would replay its log into the new one. */
static int database_create(const char *path, struct fault *fault)
{
    char draft[PATH_MAX], directory[PATH_MAX];
    int r;

    if (snprintf(draft, sizeof(draft), "%s.new", path) >= (int)sizeof(draft))
        return fault_set(fault, ENAMETOOLONG, "cannot create %s: %s", path, strerror(ENAMETOOLONG));
    snprintf(directory, sizeof(directory), "%s", path);
    unlink_with(draft, "");
    unlink_with(draft, "-journal");
    unlink_with(draft, "-wal");
    unlink_with(draft, "-shm");
    r = write_empty(draft, fault);
    if (r < 0)
        return r;
    unlink_with(path, "-journal");
    unlink_with(path, "-wal");
    unlink_with(path, "-shm");
    r = sync_path(draft, 0);
    if (r == 0 && rename(draft, path) < 0)
        r = -errno;
    if (r == 0)
        r = sync_path(dirname(directory), O_DIRECTORY);
    return r == 0 ? 0 : fault_set(fault, -r, "cannot create %s: %s", path, strerror(-r));
}

int database_open(const char *path, struct database **ret_database, struct fault *fault)
{
    CLEANUP(cleanup_database) struct database *database = NULL;
    struct stat status;
    int code;
    int r = 0;

    if (lstat(path, &status) < 0 && errno == ENOENT)
        r = database_create(path, fault);
    if (r == 0)
        r = database_new(path, SQLITE_OPEN_READWRITE, &database, fault);
    if (r == 0)
        r = database_check_format(database, path, fault);
    if (r < 0)
        return r;
    code = exec(database, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 16777216");
    if (code == SQLITE_OK)
        code = database_prepare(database);
    if (code != SQLITE_OK)
        return fault_sqlite(database, fault, code, path, "open");
    *ret_database = TAKE_PTR(database);
    return 0;
}

struct database *database_close(struct database *database)
{
    if (!database)
        return NULL;
    for (int i = 0; i < STATEMENT_COUNT; i++)
        sqlite3_finalize(database->statements[i]);
    sqlite3_close(database->sqlite);
    free(database);
    return NULL;
}

/* SQLite takes a NULL pointer for NULL, not for an empty value. */
static int bind_blob(sqlite3_stmt *statement, int index, struct span span)
{
    return sqlite3_bind_blob64(statement, index, span.length ? span.data : "", span.length, SQLITE_STATIC);
}

static struct span column_span(sqlite3_stmt *statement, int index)
{
    const char *data = sqlite3_column_blob(statement, index);

    return span_of(data, (size_t)sqlite3_column_bytes(statement, index));
}

int database_load(struct database *database, struct span collection,
                  int (*on_document)(const struct store_document *document, void *context), void *context)
{
    CLEANUP(cleanup_statement) sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(database->sqlite,
                                  "SELECT key, version, bytes FROM documents WHERE collection = ?1 ORDER BY key", -1,
                                  &statement, NULL);

    if (code == SQLITE_OK)
        code = sqlite3_bind_text64(statement, 1, collection.length ? collection.data : "", collection.length,
                                   SQLITE_STATIC, SQLITE_UTF8);
    if (code != SQLITE_OK)
        return error_of(database->sqlite, code);
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        struct store_document document = {
            .key = column_span(statement, 0),
            .version = (uint64_t)sqlite3_column_int64(statement, 1),
            .bytes = column_span(statement, 2),
        };
        int r = on_document(&document, context);
        if (r != 0)
            return r;
    }
    return code == SQLITE_DONE ? 0 : error_of(database->sqlite, code);
}

/* Runs a statement that gives no rows. */
static int run(struct database *database, enum statement which)
{
    sqlite3_stmt *statement = database->statements[which];
    int code = sqlite3_step(statement);
    int error = code == SQLITE_DONE ? 0 : error_of(database->sqlite, code);

    sqlite3_reset(statement);
    return error;
}

static enum statement change_statement(const struct change *change)
{
    if (change->kind == CHANGE_DELETE)
        return change->expected == STORE_ANY ? STATEMENT_DELETE_ANY : STATEMENT_DELETE;
    if (change->expected == STORE_ANY)
        return STATEMENT_UPSERT;
    return change->expected == STORE_ABSENT ? STATEMENT_INSERT : STATEMENT_UPDATE;
}

/* 0, STORE_CONFLICT or -errno. */
static int apply_change(struct database *database, const struct change *change)
{
    enum statement which = change_statement(change);
    sqlite3_stmt *statement = database->statements[which];
    int code = sqlite3_bind_text64(statement, 1, change->collection.data, change->collection.length, SQLITE_STATIC,
                                   SQLITE_UTF8);
    int r;

    if (code == SQLITE_OK)
        code = bind_blob(statement, 2, change->key);
    if (code == SQLITE_OK && (which == STATEMENT_UPDATE || which == STATEMENT_DELETE))
        code = sqlite3_bind_int64(statement, 3, (int64_t)change->expected);
    if (code == SQLITE_OK && change->kind == CHANGE_PUT)
        code = bind_blob(statement, 4, change->bytes);
    r = code == SQLITE_OK ? run(database, which) : error_of(database->sqlite, code);
    sqlite3_clear_bindings(statement);
    if (r == 0 && which != STATEMENT_DELETE_ANY && sqlite3_changes(database->sqlite) == 0)
        return STORE_CONFLICT;
    return r;
}

/* Within a transaction: all of the batch or, after a conflict, nothing. -errno: the transaction is to be given up. */
static int apply_batch(struct database *database, const struct store_batch *batch)
{
    int undone;
    int r = run(database, STATEMENT_SAVE);

    if (r < 0)
        return r;
    LIST_FOREACH (link, &batch->changes) {
        r = apply_change(database, CONTAINER_OF(link, struct change, link));
        if (r != 0)
            break;
    }
    if (r < 0)
        return r;
    undone = r == STORE_CONFLICT ? run(database, STATEMENT_UNDO) : 0;
    if (undone == 0)
        undone = run(database, STATEMENT_RELEASE);
    return undone < 0 ? undone : r;
}

/* After a failure SQLite has rolled back by itself (a full disk) or not (most others). */
static int give_up(struct database *database, int error)
{
    if (!sqlite3_get_autocommit(database->sqlite))
        (void)run(database, STATEMENT_ROLLBACK); /* cannot fail: it needs neither memory nor disk */
    return error;
}

/* Batches from `first` up to and without `end` in one transaction. -errno: none of them is written. */
static int commit_range(struct database *database, struct list_link *first, const struct list_link *end)
{
    int r = run(database, STATEMENT_BEGIN);

    if (r < 0)
        return r;
    for (struct list_link *link = first; link != end; link = link->next) {
        struct store_batch *batch = CONTAINER_OF(link, struct store_batch, link);
        if (batch->refused)
            continue;
        batch->result = apply_batch(database, batch);
        if (batch->result < 0)
            return give_up(database, batch->result);
    }
    r = run(database, STATEMENT_COMMIT);
    return r < 0 ? give_up(database, r) : 0;
}

void database_commit(struct database *database, const struct list *batches)
{
    struct list_link *first = list_first(batches);

    if (!first || commit_range(database, first, &batches->head) == 0)
        return;
    LIST_FOREACH (link, batches) {
        struct store_batch *batch = CONTAINER_OF(link, struct store_batch, link);
        int r = batch->refused ? 0 : commit_range(database, link, link->next);
        if (r < 0)
            batch->result = r;
    }
}

void database_tidy(struct database *database)
{
    if (database->log_frames < CHECKPOINT_FRAMES)
        return;
    /* Failure is harmless: the log stays, is read from, and is tried again after the next commit. */
    if (sqlite3_wal_checkpoint_v2(database->sqlite, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL) == SQLITE_OK)
        database->log_frames = 0;
}
