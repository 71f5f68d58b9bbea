/*
 * A SQLite VFS for tests that passes everything on to the system's, until it is told to fail or to wait.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

struct test_vfs {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int writes_left;  /* writes and syncs that still succeed; negative: no limit */
    int write_result; /* SQLITE_FULL or SQLITE_IOERR_WRITE, what they give after that */
    bool hold_syncs;  /* syncs wait while it is set */
    int held;         /* syncs that wait now */
    int syncs;        /* syncs so far */
};

/* Makes it SQLite's default until test_vfs_uninstall; nothing fails or waits yet. */
void test_vfs_install(struct test_vfs *vfs);
void test_vfs_uninstall(void);
/* The next `count` writes and syncs succeed, those after give `result`; a negative count lifts it. */
void test_vfs_fail_after(struct test_vfs *vfs, int count, int result);
void test_vfs_hold_syncs(struct test_vfs *vfs, bool hold);
/* Returns once a sync is held. */
void test_vfs_wait_until_held(struct test_vfs *vfs);
