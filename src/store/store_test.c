#include "store/store.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/random.h"
#include "store/database.h"
#include "store/store_test_vfs.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <uv.h>

#include <cmocka.h>

static const struct span things = {"things", 6};

/* One directory, one loop, at most one open store. */
struct fixture {
    char root[64];     /* made by mkdtemp */
    char data_dir[80]; /* root/data, not made */
    uv_loop_t loop;
    struct store *store;
    struct test_vfs vfs;
    bool mounted;
};

/* What on_done said, in order. */
struct outcomes {
    int results[512];
    size_t count;
    struct fixture *fixture;
};

static int remove_entry(const char *path, const struct stat *status, int flag, struct FTW *ftw)
{
    (void)status;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    strcpy(fixture->root, "/tmp/kiln-store-XXXXXX");
    assert_non_null(mkdtemp(fixture->root));
    snprintf(fixture->data_dir, sizeof(fixture->data_dir), "%s/data", fixture->root);
    assert_int_equal(uv_loop_init(&fixture->loop), 0);
    *state = fixture;
    return 0;
}

static void close_store(struct fixture *fixture)
{
    fixture->store = store_close(fixture->store);
    uv_run(&fixture->loop, UV_RUN_DEFAULT);
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    test_vfs_hold_syncs(&fixture->vfs, false);
    test_vfs_fail_after(&fixture->vfs, -1, 0);
    close_store(fixture);
    test_vfs_uninstall();
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
    if (fixture->mounted)
        assert_int_equal(umount2(fixture->data_dir, 0), 0);
    nftw(fixture->root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free(fixture);
    return 0;
}

static int setup_with_vfs(void **state)
{
    setup(state);
    test_vfs_install(&((struct fixture *)*state)->vfs);
    return 0;
}

static int try_open_limited(struct fixture *fixture, size_t max_waiting_bytes, struct fault *fault)
{
    struct store_config config = {
        .data_dir = fixture->data_dir, .loop = &fixture->loop, .max_waiting_bytes = max_waiting_bytes};

    return store_open(&config, &fixture->store, fault);
}

static void open_store(struct fixture *fixture)
{
    struct fault fault = {0};
    int r = try_open_limited(fixture, 0, &fault);

    if (r < 0)
        print_error("%s\n", fault.text);
    assert_int_equal(r, 0);
}

static void reopen_store(struct fixture *fixture)
{
    close_store(fixture);
    open_store(fixture);
}

static void refuse_open(struct fixture *fixture, int error, const char *part_of_sentence)
{
    struct fault fault = {0};

    assert_int_equal(try_open_limited(fixture, 0, &fault), -error);
    assert_null(fixture->store);
    assert_int_equal(fault.error, error);
    if (!strstr(fault.text, part_of_sentence))
        fail_msg("\"%s\" does not say \"%s\"", fault.text, part_of_sentence);
}

static void on_done(int result, void *context)
{
    struct outcomes *outcomes = context;

    assert_true(outcomes->count < ARRAY_SIZE(outcomes->results));
    outcomes->results[outcomes->count++] = result;
}

static struct store_batch *new_batch(void)
{
    struct store_batch *batch = store_batch_new();

    assert_non_null(batch);
    return batch;
}

static void put(struct store_batch *batch, const char *key, uint64_t expected, const char *bytes)
{
    assert_int_equal(store_batch_put(batch, things, span_from(key), expected, span_from(bytes)), 0);
}

static void delete (struct store_batch *batch, const char *key, uint64_t expected)
{
    assert_int_equal(store_batch_delete(batch, things, span_from(key), expected), 0);
}

/* Commits alone and waits. */
static int commit(struct fixture *fixture, struct store_batch *batch)
{
    struct outcomes outcomes = {0};

    store_commit(fixture->store, batch, on_done, &outcomes);
    assert_int_equal(outcomes.count, 0); /* never during the call */
    uv_run(&fixture->loop, UV_RUN_DEFAULT);
    assert_int_equal(outcomes.count, 1);
    return outcomes.results[0];
}

static int commit_put(struct fixture *fixture, const char *key, uint64_t expected, const char *bytes)
{
    struct store_batch *batch = new_batch();

    put(batch, key, expected, bytes);
    return commit(fixture, batch);
}

static int commit_delete(struct fixture *fixture, const char *key, uint64_t expected)
{
    struct store_batch *batch = new_batch();

    delete (batch, key, expected);
    return commit(fixture, batch);
}

static int append_document(const struct store_document *document, void *context)
{
    return buffer_printf(context, "%.*s@%llu=%.*s ", SPAN_ARG(document->key), (unsigned long long)document->version,
                         SPAN_ARG(document->bytes));
}

/* All of "things", as "key@version=bytes " in the order of store_load. */
static void assert_content(struct fixture *fixture, const char *expected)
{
    struct buffer content = BUFFER_INIT;

    assert_int_equal(store_load(fixture->store, things, append_document, &content), 0);
    assert_string_equal(buffer_terminate(&content), expected);
    buffer_deinit(&content);
}

/* --- opening --- */

static void test_directory_in_use_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct store *first;
    char pid[32];

    open_store(fixture);
    first = TAKE_PTR(fixture->store);
    snprintf(pid, sizeof(pid), "(process %d)", (int)getpid());
    refuse_open(fixture, EBUSY, "in use by another Kiln");
    refuse_open(fixture, EBUSY, pid);
    fixture->store = first;
}

static void test_closed_directory_can_be_opened_before_the_loop_turns(void **state)
{
    struct fixture *fixture = *state;

    open_store(fixture);
    fixture->store = store_close(fixture->store);
    open_store(fixture);
    assert_content(fixture, "");
}

static void exec_sql(struct fixture *fixture, const char *sql)
{
    sqlite3 *sqlite = NULL;
    char path[128];

    snprintf(path, sizeof(path), "%s/kiln.db", fixture->data_dir);
    mkdir(fixture->data_dir, 0700);
    assert_int_equal(sqlite3_open(path, &sqlite), SQLITE_OK);
    assert_int_equal(sqlite3_exec(sqlite, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(sqlite);
}

static void write_file(struct fixture *fixture, const char *name, const char *content)
{
    char path[128];
    FILE *file;

    mkdir(fixture->data_dir, 0700);
    snprintf(path, sizeof(path), "%s/%s", fixture->data_dir, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(content, file);
    fclose(file);
}

static void test_newer_format_is_refused_and_kept(void **state)
{
    struct fixture *fixture = *state;
    char sql[64];

    open_store(fixture);
    assert_int_equal(commit_put(fixture, "a", STORE_ABSENT, "x"), 0);
    close_store(fixture);
    snprintf(sql, sizeof(sql), "PRAGMA user_version = %d", DATABASE_FORMAT + 1);
    exec_sql(fixture, sql);
    refuse_open(fixture, EPROTO, "has format 2, this version of Kiln knows formats up to 1");
    snprintf(sql, sizeof(sql), "PRAGMA user_version = %d", DATABASE_FORMAT);
    exec_sql(fixture, sql);
    open_store(fixture);
    assert_content(fixture, "a@1=x ");
}

static void test_database_of_another_program_is_refused(void **state)
{
    exec_sql(*state, "CREATE TABLE documents (mine)");
    refuse_open(*state, EPROTO, "is not a Kiln database");
}

static void test_file_that_is_no_database_is_refused(void **state)
{
    char text[2048];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    write_file(*state, "kiln.db", text);
    refuse_open(*state, EPROTO, "damaged or not a Kiln database");
}

static void test_empty_file_is_refused(void **state)
{
    write_file(*state, "kiln.db", "");
    refuse_open(*state, EPROTO, "is not a Kiln database");
}

static void test_file_as_data_directory_is_refused(void **state)
{
    struct fixture *fixture = *state;
    int fd = open(fixture->data_dir, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    close(fd);
    refuse_open(fixture, ENOTDIR, "is not a directory");
}

static void test_missing_parent_is_refused(void **state)
{
    struct fixture *fixture = *state;

    snprintf(fixture->data_dir, sizeof(fixture->data_dir), "%s/no/data", fixture->root);
    refuse_open(fixture, ENOENT, "cannot create data directory");
}

static void test_directory_is_made_for_the_owner_alone(void **state)
{
    struct fixture *fixture = *state;
    struct stat status;

    open_store(fixture);
    assert_int_equal(stat(fixture->data_dir, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0700);
}

static void test_interrupted_creation_is_repeated(void **state)
{
    write_file(*state, "kiln.db.new", "half a database");
    write_file(*state, "kiln.db.new-journal", "half a journal");
    open_store(*state);
    assert_content(*state, "");
}

/* Someone removes kiln.db alone to start afresh; the log of the old one must not come to life in the new one. */
static void test_log_of_a_removed_database_is_not_replayed(void **state)
{
    struct fixture *fixture = *state;
    char command[512];
    pid_t child;
    int status;

    open_store(fixture);
    close_store(fixture);
    child = fork();
    if (child == 0) {
        open_store(fixture);
        _exit(commit_put(fixture, "ghost", STORE_ABSENT, "boo")); /* without closing: the log stays */
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    snprintf(command, sizeof(command), "test -s %s/kiln.db-wal && rm %s/kiln.db", fixture->data_dir, fixture->data_dir);
    assert_int_equal(system(command), 0);
    open_store(fixture);
    assert_content(fixture, "");
}

/* --- versions --- */

static void test_wrong_version_conflicts_and_writes_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct store_batch *batch = new_batch();

    open_store(fixture);
    assert_int_equal(commit_put(fixture, "a", STORE_ABSENT, "one"), 0);
    put(batch, "b", STORE_ABSENT, "new");
    put(batch, "a", 2, "two");
    put(batch, "c", STORE_ABSENT, "new");
    assert_int_equal(commit(fixture, batch), STORE_CONFLICT);
    assert_content(fixture, "a@1=one ");
}

static void test_put_absent_of_existing_conflicts(void **state)
{
    open_store(*state);
    assert_int_equal(commit_put(*state, "a", STORE_ABSENT, "one"), 0);
    assert_int_equal(commit_put(*state, "a", STORE_ABSENT, "two"), STORE_CONFLICT);
    assert_content(*state, "a@1=one ");
}

static void test_put_version_of_missing_conflicts(void **state)
{
    open_store(*state);
    assert_int_equal(commit_put(*state, "a", 1, "one"), STORE_CONFLICT);
    assert_content(*state, "");
}

static void test_delete_of_wrong_or_missing_version_conflicts(void **state)
{
    open_store(*state);
    assert_int_equal(commit_delete(*state, "a", 1), STORE_CONFLICT);
    assert_int_equal(commit_put(*state, "a", STORE_ABSENT, "one"), 0);
    assert_int_equal(commit_delete(*state, "a", 2), STORE_CONFLICT);
    assert_content(*state, "a@1=one ");
    assert_int_equal(commit_delete(*state, "a", 1), 0);
    assert_content(*state, "");
}

static void test_same_key_in_another_collection_is_another_document(void **state)
{
    struct fixture *fixture = *state;
    struct store_batch *batch = new_batch();

    open_store(fixture);
    assert_int_equal(store_batch_put(batch, SPAN("others"), SPAN("a"), STORE_ABSENT, SPAN("theirs")), 0);
    put(batch, "a", STORE_ABSENT, "ours");
    assert_int_equal(commit(fixture, batch), 0);
    assert_content(fixture, "a@1=ours ");
}

static void test_versions_grow_by_one(void **state)
{
    open_store(*state);
    assert_int_equal(commit_put(*state, "a", STORE_ABSENT, "one"), 0);
    assert_int_equal(commit_put(*state, "a", 1, "two"), 0);
    assert_int_equal(commit_put(*state, "a", STORE_ANY, "three"), 0);
    assert_int_equal(commit_put(*state, "b", STORE_ANY, "one"), 0);
    assert_content(*state, "a@3=three b@1=one ");
    reopen_store(*state);
    assert_content(*state, "a@3=three b@1=one ");
}

static void test_delete_any_accepts_nothing_there(void **state)
{
    open_store(*state);
    assert_int_equal(commit_delete(*state, "a", STORE_ANY), 0);
    assert_int_equal(commit_put(*state, "a", STORE_ABSENT, "one"), 0);
    assert_int_equal(commit_delete(*state, "a", STORE_ANY), 0);
    assert_content(*state, "");
}

static void test_changes_of_a_batch_apply_in_order(void **state)
{
    struct store_batch *batch = new_batch();

    open_store(*state);
    put(batch, "a", STORE_ABSENT, "one");
    put(batch, "a", 1, "two");
    put(batch, "b", STORE_ABSENT, "one");
    delete (batch, "b", 1);
    put(batch, "b", STORE_ABSENT, "again");
    assert_int_equal(commit(*state, batch), 0);
    assert_content(*state, "a@2=two b@1=again ");
}

static void test_batch_without_changes_succeeds(void **state)
{
    open_store(*state);
    assert_int_equal(commit(*state, new_batch()), 0);
}

static void test_commit_without_callback_is_written(void **state)
{
    struct fixture *fixture = *state;
    struct store_batch *batch = new_batch();

    open_store(fixture);
    put(batch, "a", STORE_ABSENT, "one");
    store_commit(fixture->store, batch, NULL, NULL);
    reopen_store(fixture);
    assert_content(fixture, "a@1=one ");
}

static void test_oversized_parts_are_refused(void **state)
{
    struct store_batch *batch = new_batch();
    char *large = calloc(1, STORE_DOCUMENT_BYTES_MAX + 1);
    struct span at_limit = span_of(large, STORE_DOCUMENT_BYTES_MAX);
    struct span key = span_of(large, STORE_KEY_BYTES_MAX);
    struct span collection = span_of(large, STORE_COLLECTION_BYTES_MAX);

    memset(large, 'x', STORE_DOCUMENT_BYTES_MAX + 1);
    open_store(*state);
    at_limit.length++;
    assert_int_equal(store_batch_put(batch, collection, key, STORE_ABSENT, at_limit), -E2BIG);
    at_limit.length--;
    key.length++;
    assert_int_equal(store_batch_put(batch, collection, key, STORE_ABSENT, at_limit), -E2BIG);
    assert_int_equal(store_batch_delete(batch, collection, key, STORE_ANY), -E2BIG);
    key.length--;
    collection.length++;
    assert_int_equal(store_batch_put(batch, collection, key, STORE_ABSENT, at_limit), -E2BIG);
    collection.length--;
    assert_int_equal(store_batch_put(batch, collection, key, STORE_ABSENT, at_limit), 0);
    assert_int_equal(commit(*state, batch), 0);
    free(large);
}

/* --- loading --- */

static void test_load_is_in_bytewise_order(void **state)
{
    struct store_batch *batch = new_batch();
    static const char *const keys[] = {"b", "\xff", "a", "\xc3\xa9", "", "ab", "B", "a\x01"};

    open_store(*state);
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        put(batch, keys[i], STORE_ABSENT, "");
    assert_int_equal(commit(*state, batch), 0);
    assert_content(*state, "@1= B@1= a@1= a\x01@1= ab@1= b@1= \xc3\xa9@1= \xff@1= ");
}

static void test_keys_and_documents_may_hold_zero_bytes(void **state)
{
    struct fixture *fixture = *state;
    struct store_batch *batch = new_batch();
    struct buffer content = BUFFER_INIT;

    open_store(fixture);
    assert_int_equal(store_batch_put(batch, things, SPAN("k\0y"), STORE_ABSENT, SPAN("b\0tes")), 0);
    assert_int_equal(store_batch_put(batch, things, SPAN("k\0"), STORE_ABSENT, SPAN_NONE), 0);
    assert_int_equal(commit(fixture, batch), 0);
    batch = new_batch();
    assert_int_equal(store_batch_delete(batch, things, SPAN("k\0"), 1), 0);
    assert_int_equal(commit(fixture, batch), 0);
    content.length = 0;
    assert_int_equal(store_load(fixture->store, things, append_document, &content), 0);
    assert_int_equal(content.length, strlen("k@1=b ")); /* printf stops at the zero bytes: one document is left */
    buffer_deinit(&content);
}

static int stop_at_second(const struct store_document *document, void *context)
{
    (void)document;
    return ++*(int *)context == 2 ? 77 : 0;
}

static void test_load_ends_when_the_callback_says_so(void **state)
{
    struct fixture *fixture = *state;
    struct store_batch *batch = new_batch();
    int seen = 0;

    open_store(fixture);
    put(batch, "a", STORE_ABSENT, "");
    put(batch, "b", STORE_ABSENT, "");
    put(batch, "c", STORE_ABSENT, "");
    assert_int_equal(commit(fixture, batch), 0);
    assert_int_equal(store_load(fixture->store, things, stop_at_second, &seen), 77);
    assert_int_equal(seen, 2);
}

static int count_document(const struct store_document *document, void *context)
{
    (void)document;
    ++*(size_t *)context;
    return 0;
}

/* design: with 1,000 functions the whole daemon is ready within 500 ms; opening and loading take a small part of it. */
static void test_thousand_documents_load_in_well_under_100_ms(void **state)
{
    struct fixture *fixture = *state;
    struct store_batch *batch = new_batch();
    char bytes[2048], key[16];
    size_t count = 0;
    int64_t before, best = INT64_MAX;

    open_store(fixture);
    memset(bytes, 'x', sizeof(bytes));
    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof(key), "key-%d", i);
        assert_int_equal(store_batch_put(batch, things, span_from(key), STORE_ABSENT, span_of(bytes, sizeof(bytes))),
                         0);
    }
    assert_int_equal(commit(fixture, batch), 0);
    for (int attempt = 0; attempt < 5; attempt++) { /* the best of five: other tests share the machine */
        close_store(fixture);
        before = clock_monotonic_ns();
        open_store(fixture);
        count = 0;
        assert_int_equal(store_load(fixture->store, things, count_document, &count), 0);
        best = MIN(best, clock_monotonic_ns() - before);
    }
    print_message("# opened and loaded in %.2f ms\n", (double)best / NS_PER_MS);
#if defined(__SANITIZE_ADDRESS__)
    best /= 4; /* about what the sanitizer costs here */
#endif
    assert_true(best < 100 * NS_PER_MS);
    assert_int_equal(count, 1000);
}

/* --- group commit; the first sync is held so that what follows has to wait --- */

static void submit_put(struct outcomes *outcomes, const char *key, uint64_t expected, const char *bytes)
{
    struct store_batch *batch = new_batch();

    put(batch, key, expected, bytes);
    store_commit(outcomes->fixture->store, batch, on_done, outcomes);
}

static void hold_first_commit(struct outcomes *outcomes)
{
    /* The very first commit also syncs the log's header; after this one a commit is one sync. */
    assert_int_equal(commit_put(outcomes->fixture, "first", STORE_ABSENT, ""), 0);
    assert_int_equal(commit_delete(outcomes->fixture, "first", STORE_ANY), 0);
    test_vfs_hold_syncs(&outcomes->fixture->vfs, true);
    submit_put(outcomes, "first", STORE_ABSENT, "");
    test_vfs_wait_until_held(&outcomes->fixture->vfs);
}

static void test_nothing_is_acknowledged_before_it_is_synced(void **state)
{
    struct fixture *fixture = *state;
    struct outcomes outcomes = {.fixture = fixture};

    open_store(fixture);
    hold_first_commit(&outcomes);
    uv_run(&fixture->loop, UV_RUN_NOWAIT);
    assert_int_equal(outcomes.count, 0);
    test_vfs_hold_syncs(&fixture->vfs, false);
    uv_run(&fixture->loop, UV_RUN_DEFAULT);
    assert_int_equal(outcomes.count, 1);
    assert_int_equal(outcomes.results[0], 0);
}

static void test_conflict_in_a_group_hurts_nobody_else(void **state)
{
    struct fixture *fixture = *state;
    struct outcomes outcomes = {.fixture = fixture};

    open_store(fixture);
    hold_first_commit(&outcomes);
    submit_put(&outcomes, "a", STORE_ABSENT, "one");
    submit_put(&outcomes, "a", STORE_ABSENT, "bad");
    submit_put(&outcomes, "a", 1, "two");
    submit_put(&outcomes, "b", 7, "bad");
    submit_put(&outcomes, "b", STORE_ABSENT, "one");
    test_vfs_hold_syncs(&fixture->vfs, false);
    uv_run(&fixture->loop, UV_RUN_DEFAULT);
    assert_int_equal(outcomes.count, 6);
    assert_memory_equal(outcomes.results, ((int[]){0, 0, STORE_CONFLICT, 0, STORE_CONFLICT, 0}), 6 * sizeof(int));
    assert_content(fixture, "a@2=two b@1=one first@1= ");
}

static void test_waiting_batches_share_one_sync(void **state)
{
    struct fixture *fixture = *state;
    struct outcomes outcomes = {.fixture = fixture};
    char key[16];
    int before;

    open_store(fixture);
    hold_first_commit(&outcomes);
    before = fixture->vfs.syncs;
    for (int i = 0; i < 200; i++) {
        snprintf(key, sizeof(key), "%d", i);
        submit_put(&outcomes, key, STORE_ABSENT, "x");
    }
    test_vfs_hold_syncs(&fixture->vfs, false);
    uv_run(&fixture->loop, UV_RUN_DEFAULT);
    assert_int_equal(outcomes.count, 201);
    assert_int_equal(fixture->vfs.syncs - before, 1);
}

static void test_full_queue_refuses_in_order_and_recovers(void **state)
{
    struct fixture *fixture = *state;
    struct outcomes outcomes = {.fixture = fixture};
    struct fault fault;
    char large[3000];

    memset(large, 'x', sizeof(large) - 1);
    large[sizeof(large) - 1] = '\0';
    assert_int_equal(try_open_limited(fixture, 8000, &fault), 0);
    hold_first_commit(&outcomes);
    submit_put(&outcomes, "a", STORE_ABSENT, large);
    submit_put(&outcomes, "b", STORE_ABSENT, large);
    submit_put(&outcomes, "c", STORE_ABSENT, large); /* one too many */
    submit_put(&outcomes, "d", STORE_ABSENT, "small");
    uv_run(&fixture->loop, UV_RUN_NOWAIT);
    assert_int_equal(outcomes.count, 0);
    test_vfs_hold_syncs(&fixture->vfs, false);
    uv_run(&fixture->loop, UV_RUN_DEFAULT);
    assert_int_equal(outcomes.count, 5);
    assert_memory_equal(outcomes.results, ((int[]){0, 0, 0, -EAGAIN, 0}), 5 * sizeof(int));
    assert_int_equal(commit_put(fixture, "c", STORE_ABSENT, large), 0);
}

static void chain_next(int result, void *context)
{
    struct outcomes *outcomes = context;
    char key[16];

    on_done(result, context);
    if (outcomes->count < 5) {
        struct store_batch *batch = new_batch();
        snprintf(key, sizeof(key), "%zu", outcomes->count);
        put(batch, key, STORE_ABSENT, "");
        store_commit(outcomes->fixture->store, batch, chain_next, outcomes);
    }
}

static void test_close_waits_for_what_callbacks_submit(void **state)
{
    struct fixture *fixture = *state;
    struct outcomes outcomes = {.fixture = fixture};
    struct store_batch *batch = new_batch();

    open_store(fixture);
    put(batch, "0", STORE_ABSENT, "");
    store_commit(fixture->store, batch, chain_next, &outcomes);
    store_close(fixture->store); /* fixture->store stays for the callbacks */
    assert_int_equal(outcomes.count, 5);
    open_store(fixture);
    assert_content(fixture, "0@1= 1@1= 2@1= 3@1= 4@1= ");
}

/* --- failing disks --- */

/* Lets the n-th write fail for every n until none fails; a failed batch leaves nothing, and the next one succeeds. */
static void fail_every_write(struct fixture *fixture, int sqlite_result, int error)
{
    struct store_batch *batch;
    char content[16384], key[48];
    int result = 1;
    int failures = 0;
    uint64_t version = 1;

    memset(content, 'x', sizeof(content) - 1);
    content[sizeof(content) - 1] = '\0';
    open_store(fixture);
    assert_int_equal(commit_put(fixture, "a", STORE_ABSENT, "before"), 0);
    for (int n = 0; result != 0; n++) {
        batch = new_batch();
        put(batch, "a", version, "changed");
        put(batch, "b", STORE_ABSENT, content);
        test_vfs_fail_after(&fixture->vfs, n, sqlite_result);
        result = commit(fixture, batch);
        test_vfs_fail_after(&fixture->vfs, -1, 0);
        if (result == 0)
            break;
        failures++;
        assert_int_equal(result, error);
        snprintf(key, sizeof(key), "a@%llu=before ", (unsigned long long)version);
        assert_content(fixture, key);
        assert_int_equal(commit_put(fixture, "a", version++, "before"), 0);
    }
    assert_true(failures >= 3); /* pages and the sync */
    reopen_store(fixture);
    batch = new_batch();
    delete (batch, "b", 1);
    assert_int_equal(commit(fixture, batch), 0);
    snprintf(key, sizeof(key), "a@%llu=changed ", (unsigned long long)version + 1);
    assert_content(fixture, key);
}

static void test_full_disk_at_every_write_leaves_nothing_half_written(void **state)
{
    fail_every_write(*state, SQLITE_FULL, -ENOSPC);
}

static void test_broken_disk_at_every_write_leaves_nothing_half_written(void **state)
{
    fail_every_write(*state, SQLITE_IOERR_WRITE, -EIO);
}

static void test_failing_group_fails_each_batch(void **state)
{
    struct fixture *fixture = *state;
    struct outcomes outcomes = {.fixture = fixture};

    open_store(fixture);
    hold_first_commit(&outcomes);
    submit_put(&outcomes, "a", STORE_ABSENT, "");
    submit_put(&outcomes, "first", STORE_ABSENT, ""); /* a conflict on a full disk may be either */
    submit_put(&outcomes, "b", STORE_ABSENT, "");
    test_vfs_fail_after(&fixture->vfs, 0, SQLITE_FULL);
    test_vfs_hold_syncs(&fixture->vfs, false);
    uv_run(&fixture->loop, UV_RUN_DEFAULT);
    test_vfs_fail_after(&fixture->vfs, -1, 0);
    assert_memory_equal(outcomes.results, ((int[]){0, -ENOSPC, STORE_CONFLICT, -ENOSPC}), 4 * sizeof(int));
    assert_content(fixture, "first@1= ");
}

static void test_failed_creation_leaves_a_directory_that_opens_later(void **state)
{
    struct fixture *fixture = *state;
    struct fault fault;
    int failures = 0;
    int r = -1;

    for (int n = 0; r < 0; n++) {
        test_vfs_fail_after(&fixture->vfs, n, SQLITE_FULL);
        r = try_open_limited(fixture, 0, &fault);
        test_vfs_fail_after(&fixture->vfs, -1, 0);
        if (r < 0) {
            failures++;
            assert_int_equal(r, -ENOSPC);
        }
    }
    assert_true(failures >= 2);
    assert_int_equal(commit_put(fixture, "a", STORE_ABSENT, "x"), 0);
}

static void fill_disk(struct fixture *fixture, bool fill)
{
    char path[128];
    static char block[4096];
    int fd;

    snprintf(path, sizeof(path), "%s/ballast", fixture->data_dir);
    if (!fill) {
        assert_int_equal(unlink(path), 0);
        return;
    }
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    while (write(fd, block, sizeof(block)) > 0)
        ;
    assert_int_equal(errno, ENOSPC);
    close(fd);
}

static void test_really_full_disk_is_reported_and_survived(void **state)
{
    struct fixture *fixture = *state;
    char large[64 * 1024];

    if (geteuid() != 0) {
        print_message("# SKIPPED: mounting a small tmpfs needs root\n");
        skip();
    }
    mkdir(fixture->data_dir, 0700);
    assert_int_equal(mount("kiln-test", fixture->data_dir, "tmpfs", 0, "size=1m"), 0);
    fixture->mounted = true;
    memset(large, 'x', sizeof(large) - 1);
    large[sizeof(large) - 1] = '\0';
    open_store(fixture);
    assert_int_equal(commit_put(fixture, "a", STORE_ABSENT, "small"), 0);
    fill_disk(fixture, true);
    assert_int_equal(commit_put(fixture, "b", STORE_ABSENT, large), -ENOSPC);
    assert_int_equal(commit_put(fixture, "b", STORE_ABSENT, large), -ENOSPC);
    assert_content(fixture, "a@1=small ");
    fill_disk(fixture, false);
    assert_int_equal(commit_put(fixture, "b", STORE_ABSENT, "there"), 0);
    reopen_store(fixture);
    assert_content(fixture, "a@1=small b@1=there ");
    close_store(fixture);
}

static void test_small_batch_succeeds_beside_one_too_large_for_the_disk(void **state)
{
    struct fixture *fixture = *state;
    struct outcomes outcomes = {.fixture = fixture};
    static char large[2 << 20];

    if (geteuid() != 0) {
        print_message("# SKIPPED: mounting a small tmpfs needs root\n");
        skip();
    }
    mkdir(fixture->data_dir, 0700);
    assert_int_equal(mount("kiln-test", fixture->data_dir, "tmpfs", 0, "size=1m"), 0);
    fixture->mounted = true;
    memset(large, 'x', sizeof(large) - 1);
    open_store(fixture);
    hold_first_commit(&outcomes);
    submit_put(&outcomes, "a", STORE_ABSENT, "small");
    submit_put(&outcomes, "b", STORE_ABSENT, large);
    submit_put(&outcomes, "c", STORE_ABSENT, "small");
    test_vfs_hold_syncs(&fixture->vfs, false);
    uv_run(&fixture->loop, UV_RUN_DEFAULT);
    assert_memory_equal(outcomes.results, ((int[]){0, 0, -ENOSPC, 0}), 4 * sizeof(int));
    assert_content(fixture, "a@1=small c@1=small first@1= ");
    close_store(fixture);
}

static void test_log_does_not_grow_without_bound(void **state)
{
    struct fixture *fixture = *state;
    static char large[256 * 1024];
    struct stat status;
    char path[128];

    open_store(fixture);
    for (int i = 0; i < 200; i++) { /* 50 MB in all; SQLite does not write pages again that have not changed */
        memset(large, 'a' + i % 26, sizeof(large) - 1);
        assert_int_equal(commit_put(fixture, "a", STORE_ANY, large), 0);
    }
    snprintf(path, sizeof(path), "%s/kiln.db-wal", fixture->data_dir);
    assert_int_equal(stat(path, &status), 0);
    assert_true(status.st_size < 16 << 20);
}

/* --- kill -9 --- */

struct writer {
    struct fixture fixture;
    int report_fd;
    int next;
    struct prng prng;
};

static void on_pair_durable(int result, void *context);

/* Two documents a batch, so that half a batch would show. */
static void submit_pair(struct writer *writer)
{
    struct store_batch *batch = new_batch();
    static char filler[8192];
    char key[32];
    struct span bytes = span_of(filler, prng_below(&writer->prng, sizeof(filler)));

    snprintf(key, sizeof(key), "a/%08d", writer->next);
    assert_int_equal(store_batch_put(batch, things, span_from(key), STORE_ABSENT, bytes), 0);
    key[0] = 'b';
    assert_int_equal(store_batch_put(batch, things, span_from(key), STORE_ABSENT, bytes), 0);
    writer->next++;
    store_commit(writer->fixture.store, batch, on_pair_durable, writer);
}

static void on_pair_durable(int result, void *context)
{
    struct writer *writer = context;

    if (result != 0 || write(writer->report_fd, "x", 1) != 1)
        _exit(1);
    submit_pair(writer);
}

static void write_until_killed(struct fixture *fixture, int report_fd, int first)
{
    struct writer writer = {.fixture = *fixture, .report_fd = report_fd, .next = first};

    prng_init(&writer.prng, (uint64_t)first);
    if (uv_loop_init(&writer.fixture.loop) != 0)
        _exit(1);
    open_store(&writer.fixture);
    for (int i = 0; i < 8; i++)
        submit_pair(&writer);
    uv_run(&writer.fixture.loop, UV_RUN_DEFAULT);
    _exit(1);
}

/* How many were acknowledged: acknowledgements come in order, so a count says which. */
static int run_writer(struct fixture *fixture, int first, int kill_after)
{
    char bytes[256];
    int acknowledged = 0;
    int ends[2];
    ssize_t length;
    pid_t child;
    int status;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    child = fork();
    if (child == 0)
        write_until_killed(fixture, ends[1], first);
    close(ends[1]);
    while (acknowledged < kill_after && (length = read(ends[0], bytes, sizeof(bytes))) > 0)
        acknowledged += (int)length;
    kill(child, SIGKILL);
    while ((length = read(ends[0], bytes, sizeof(bytes))) > 0)
        acknowledged += (int)length;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    return acknowledged;
}

struct seen {
    int a, b;
};

static int see_pair(const struct store_document *document, void *context)
{
    struct seen *seen = context;
    int number = atoi(document->key.data + 2);
    int *expected = document->key.data[0] == 'a' ? &seen->a : &seen->b;

    return number == (*expected)++ ? 0 : -EINVAL; /* no gaps */
}

static void test_acknowledged_batches_survive_kill_9(void **state)
{
    struct fixture *fixture = *state;
    struct prng prng;
    int present = 0;

    prng_init(&prng, 9);
    for (int round = 0; round < 12; round++) {
        struct seen seen = {0};
        int acknowledged = run_writer(fixture, present, 1 + (int)prng_below(&prng, 150));

        open_store(fixture);
        assert_int_equal(store_load(fixture->store, things, see_pair, &seen), 0);
        assert_int_equal(seen.a, seen.b);
        assert_true(seen.a >= present + acknowledged);
        present = seen.a;
        close_store(fixture);
    }
    print_message("# %d batches in 12 lives\n", present);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup_with_vfs, teardown)
    const struct CMUnitTest tests[] = {
        T(test_directory_in_use_is_refused),
        T(test_closed_directory_can_be_opened_before_the_loop_turns),
        T(test_newer_format_is_refused_and_kept),
        T(test_database_of_another_program_is_refused),
        T(test_file_that_is_no_database_is_refused),
        T(test_empty_file_is_refused),
        T(test_file_as_data_directory_is_refused),
        T(test_missing_parent_is_refused),
        T(test_directory_is_made_for_the_owner_alone),
        T(test_interrupted_creation_is_repeated),
        T(test_log_of_a_removed_database_is_not_replayed),
        T(test_wrong_version_conflicts_and_writes_nothing),
        T(test_put_absent_of_existing_conflicts),
        T(test_put_version_of_missing_conflicts),
        T(test_delete_of_wrong_or_missing_version_conflicts),
        T(test_same_key_in_another_collection_is_another_document),
        T(test_versions_grow_by_one),
        T(test_delete_any_accepts_nothing_there),
        T(test_changes_of_a_batch_apply_in_order),
        T(test_batch_without_changes_succeeds),
        T(test_commit_without_callback_is_written),
        T(test_oversized_parts_are_refused),
        T(test_load_is_in_bytewise_order),
        T(test_keys_and_documents_may_hold_zero_bytes),
        T(test_load_ends_when_the_callback_says_so),
        T(test_thousand_documents_load_in_well_under_100_ms),
        T(test_nothing_is_acknowledged_before_it_is_synced),
        T(test_conflict_in_a_group_hurts_nobody_else),
        T(test_waiting_batches_share_one_sync),
        T(test_full_queue_refuses_in_order_and_recovers),
        T(test_close_waits_for_what_callbacks_submit),
        T(test_full_disk_at_every_write_leaves_nothing_half_written),
        T(test_broken_disk_at_every_write_leaves_nothing_half_written),
        T(test_failing_group_fails_each_batch),
        T(test_failed_creation_leaves_a_directory_that_opens_later),
        T(test_really_full_disk_is_reported_and_survived),
        T(test_small_batch_succeeds_beside_one_too_large_for_the_disk),
        T(test_log_does_not_grow_without_bound),
        T(test_acknowledged_batches_survive_kill_9),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
