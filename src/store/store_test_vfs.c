#include "store/store_test_vfs.h"

#include <assert.h>
#include <sqlite3.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct test_file {
    sqlite3_file base;
    struct test_vfs *vfs;
    sqlite3_file real[]; /* of the real VFS's szOsFile bytes */
};

static sqlite3_file *real_of(sqlite3_file *file)
{
    return ((struct test_file *)file)->real;
}

/* SQLITE_OK, or how this write or sync is to fail. */
static int account_write(struct test_vfs *vfs)
{
    int result = SQLITE_OK;

    pthread_mutex_lock(&vfs->mutex);
    if (vfs->writes_left == 0)
        result = vfs->write_result;
    else if (vfs->writes_left > 0)
        vfs->writes_left--;
    pthread_mutex_unlock(&vfs->mutex);
    return result;
}

static int test_close(sqlite3_file *file)
{
    return real_of(file)->pMethods->xClose(real_of(file));
}

static int test_read(sqlite3_file *file, void *data, int length, sqlite3_int64 offset)
{
    return real_of(file)->pMethods->xRead(real_of(file), data, length, offset);
}

static int test_write(sqlite3_file *file, const void *data, int length, sqlite3_int64 offset)
{
    int result = account_write(((struct test_file *)file)->vfs);

    return result ? result : real_of(file)->pMethods->xWrite(real_of(file), data, length, offset);
}

static int test_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    return real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int test_sync(sqlite3_file *file, int flags)
{
    struct test_vfs *vfs = ((struct test_file *)file)->vfs;
    int result = account_write(vfs);

    pthread_mutex_lock(&vfs->mutex);
    vfs->syncs++;
    vfs->held++;
    pthread_cond_broadcast(&vfs->changed);
    while (vfs->hold_syncs)
        pthread_cond_wait(&vfs->changed, &vfs->mutex);
    vfs->held--;
    pthread_mutex_unlock(&vfs->mutex);
    if (result)
        return result == SQLITE_FULL ? SQLITE_FULL : SQLITE_IOERR_FSYNC;
    return real_of(file)->pMethods->xSync(real_of(file), flags);
}

static int test_file_size(sqlite3_file *file, sqlite3_int64 *size)
{
    return real_of(file)->pMethods->xFileSize(real_of(file), size);
}

static int test_lock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xLock(real_of(file), level);
}

static int test_unlock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xUnlock(real_of(file), level);
}

static int test_check_reserved_lock(sqlite3_file *file, int *out)
{
    return real_of(file)->pMethods->xCheckReservedLock(real_of(file), out);
}

static int test_file_control(sqlite3_file *file, int operation, void *argument)
{
    return real_of(file)->pMethods->xFileControl(real_of(file), operation, argument);
}

static int test_sector_size(sqlite3_file *file)
{
    return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int test_device_characteristics(sqlite3_file *file)
{
    return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static int test_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **memory)
{
    return real_of(file)->pMethods->xShmMap(real_of(file), page, size, extend, memory);
}

static int test_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
    return real_of(file)->pMethods->xShmLock(real_of(file), offset, count, flags);
}

static void test_shm_barrier(sqlite3_file *file)
{
    real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int test_shm_unmap(sqlite3_file *file, int delete_it)
{
    return real_of(file)->pMethods->xShmUnmap(real_of(file), delete_it);
}

static const sqlite3_io_methods test_methods = {
    .iVersion = 2,
    .xClose = test_close,
    .xRead = test_read,
    .xWrite = test_write,
    .xTruncate = test_truncate,
    .xSync = test_sync,
    .xFileSize = test_file_size,
    .xLock = test_lock,
    .xUnlock = test_unlock,
    .xCheckReservedLock = test_check_reserved_lock,
    .xFileControl = test_file_control,
    .xSectorSize = test_sector_size,
    .xDeviceCharacteristics = test_device_characteristics,
    .xShmMap = test_shm_map,
    .xShmLock = test_shm_lock,
    .xShmBarrier = test_shm_barrier,
    .xShmUnmap = test_shm_unmap,
};

static int test_open(sqlite3_vfs *sqlite_vfs, const char *name, sqlite3_file *file, int flags, int *out_flags)
{
    struct test_file *test = (struct test_file *)file;
    sqlite3_vfs *real_vfs = sqlite3_vfs_find("unix");
    int code = real_vfs->xOpen(real_vfs, name, test->real, flags, out_flags);

    test->vfs = sqlite_vfs->pAppData;
    test->base.pMethods = code == SQLITE_OK ? &test_methods : NULL;
    return code;
}

void test_vfs_install(struct test_vfs *vfs)
{
    sqlite3_vfs *copy = malloc(sizeof(*copy));
    int code;

    assert(copy);
    memset(vfs, 0, sizeof(*vfs));
    pthread_mutex_init(&vfs->mutex, NULL);
    pthread_cond_init(&vfs->changed, NULL);
    vfs->writes_left = -1;
    code = sqlite3_initialize();
    assert(code == SQLITE_OK);
    *copy = *sqlite3_vfs_find("unix"); /* its other functions need no file of ours */
    copy->zName = "kiln-test";
    copy->pNext = NULL;
    copy->szOsFile += (int)sizeof(struct test_file);
    copy->pAppData = vfs;
    copy->xOpen = test_open;
    code = sqlite3_vfs_register(copy, 1);
    assert(code == SQLITE_OK);
    (void)code;
}

void test_vfs_uninstall(void)
{
    sqlite3_vfs *copy = sqlite3_vfs_find("kiln-test");

    if (!copy)
        return;
    sqlite3_vfs_unregister(copy);
    free(copy);
}

void test_vfs_fail_after(struct test_vfs *vfs, int count, int result)
{
    pthread_mutex_lock(&vfs->mutex);
    vfs->writes_left = count;
    vfs->write_result = result;
    pthread_mutex_unlock(&vfs->mutex);
}

void test_vfs_hold_syncs(struct test_vfs *vfs, bool hold)
{
    pthread_mutex_lock(&vfs->mutex);
    vfs->hold_syncs = hold;
    pthread_cond_broadcast(&vfs->changed);
    pthread_mutex_unlock(&vfs->mutex);
}

void test_vfs_wait_until_held(struct test_vfs *vfs)
{
    pthread_mutex_lock(&vfs->mutex);
    while (!vfs->held)
        pthread_cond_wait(&vfs->changed, &vfs->mutex);
    pthread_mutex_unlock(&vfs->mutex);
}
