#include "worker/log_file.h"

#include "base/clock.h"

#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
/* cmocka.h needs setjmp.h, stdarg.h, stddef.h and stdint.h */
#include <cmocka.h>

struct fixture {
    char root[64];
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    strcpy(fixture->root, "/tmp/kiln-files-XXXXXX");
    assert_non_null(mkdtemp(fixture->root));
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    char command[PATH_MAX];

    snprintf(command, sizeof(command), "rm -rf '%s'", fixture->root);
    assert_int_equal(system(command), 0);
    free(fixture);
    return 0;
}

static void append(struct fixture *fixture, const char *bytes, struct log_file_limits limits, uint64_t removed)
{
    uint64_t got;

    assert_int_equal(log_file_append(fixture->root, "group/s.log", span_from(bytes), &limits, &got), 0);
    assert_int_equal(got, removed);
}

static void assert_content(struct fixture *fixture, const char *name, const char *expected)
{
    CLEANUP(cleanup_close) int fd = -1;
    char path[PATH_MAX], content[256] = "";

    snprintf(path, sizeof(path), "%s/group/%s", fixture->root, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(fd >= 0, expected != NULL);
    if (fd >= 0)
        assert_true(read(fd, content, sizeof(content) - 1) >= 0);
    assert_string_equal(content, expected ? expected : "");
}

static void test_a_full_file_is_rotated_and_keeps_its_order(void **state)
{
    const struct log_file_limits limits = {.file_bytes = 10};

    append(*state, "first ", limits, 0);
    append(*state, "4444", limits, 0);
    append(*state, "second", limits, 0);
    append(*state, "larger than a file", limits, 0);
    append(*state, "last", limits, 0);
    assert_content(*state, "s.1.log", "first 4444");
    assert_content(*state, "s.2.log", "second");
    assert_content(*state, "s.3.log", "larger than a file");
    assert_content(*state, "s.log", "last");
}

static void test_the_oldest_go_when_the_stream_is_too_large(void **state)
{
    const struct log_file_limits limits = {.file_bytes = 10, .stream_bytes = 30};

    append(*state, "aaaaaaaa", limits, 0);
    append(*state, "bbbbbbbb", limits, 0);
    append(*state, "cccccccc", limits, 0);
    append(*state, "dddddddd", limits, 8);
    append(*state, "eeeeeeee", limits, 8);
    assert_content(*state, "s.1.log", NULL);
    assert_content(*state, "s.2.log", NULL);
    assert_content(*state, "s.3.log", "cccccccc");
    assert_content(*state, "s.log", "eeeeeeee");
}

static void test_files_of_other_streams_are_left_alone(void **state)
{
    struct fixture *fixture = *state;
    const struct log_file_limits limits = {.file_bytes = 10, .stream_bytes = 10};
    static const char *const others[] = {"group/s.7.log.old", "group/s.x.log", "group/ss.1.log", "group/s.1.1.log"};
    uint64_t removed;

    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        assert_int_equal(log_file_append(fixture->root, others[i], SPAN("other"), &limits, &removed), 0);
    append(fixture, "aaaaaaaa", limits, 0);
    append(fixture, "bbbbbbbb", limits, 8);
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        assert_content(fixture, strrchr(others[i], '/') + 1, "other");
}

static void test_the_sweep_takes_old_files_and_empty_folders(void **state)
{
    struct fixture *fixture = *state;
    const struct log_file_limits limits = {0};
    const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    char path[PATH_MAX];
    struct stat status;
    uint64_t removed;

    append(fixture, "new", limits, 0);
    assert_int_equal(log_file_append(fixture->root, "group/old.log", SPAN("x"), &limits, &removed), 0);
    assert_int_equal(log_file_append(fixture->root, "part+/rest/old.log", SPAN("x"), &limits, &removed), 0);
    snprintf(path, sizeof(path), "%s/group/old.log", fixture->root);
    assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
    snprintf(path, sizeof(path), "%s/part+/rest/old.log", fixture->root);
    assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
    assert_int_equal(log_files_sweep(fixture->root, 2000 * NS_PER_S), 2);
    assert_content(fixture, "s.log", "new");
    assert_content(fixture, "old.log", NULL);
    snprintf(path, sizeof(path), "%s/part+", fixture->root);
    assert_int_equal(stat(path, &status), -1);
    assert_int_equal(log_files_sweep("/nonexistent", 2000 * NS_PER_S), -ENOENT);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_a_full_file_is_rotated_and_keeps_its_order),
        CASE(test_the_oldest_go_when_the_stream_is_too_large),
        CASE(test_files_of_other_streams_are_left_alone),
        CASE(test_the_sweep_takes_old_files_and_empty_folders),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
