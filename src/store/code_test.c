#include "store/code.h"

#include "store/tree.h"
#include "store/zip_builder.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <uv.h>

#include <cmocka.h>

static const char ABSENT[] = "00000000000000000000000000000000000000000000000000000000000000aa";

struct fixture {
    char data_dir[64];
    int data_fd;
    uv_loop_t loop;
    struct code_store *store;
    uint64_t max_unpacked_bytes;
    bool mounted;
};

/* What on_unpacked said last, and how often it came. */
struct outcome {
    int result;
    struct code_package package;
    struct fault fault;
    int calls;
};

static void open_store(struct fixture *fixture)
{
    struct code_config config = {
        .data_dir = fixture->data_dir, .loop = &fixture->loop, .max_unpacked_bytes = fixture->max_unpacked_bytes};
    struct fault fault;

    assert_int_equal(code_store_open(&config, &fixture->store, &fault), 0);
}

static void run_loop(struct fixture *fixture)
{
    uv_run(&fixture->loop, UV_RUN_DEFAULT);
}

static void close_store(struct fixture *fixture)
{
    fixture->store = code_store_close(fixture->store);
    run_loop(fixture);
}

static void reopen_store(struct fixture *fixture)
{
    close_store(fixture);
    open_store(fixture);
}

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    strcpy(fixture->data_dir, "/tmp/kiln-code-XXXXXX");
    assert_non_null(mkdtemp(fixture->data_dir));
    assert_int_equal(tree_open(AT_FDCWD, fixture->data_dir, &fixture->data_fd), 0);
    assert_int_equal(uv_loop_init(&fixture->loop), 0);
    open_store(fixture);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    close_store(fixture);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
    close(fixture->data_fd);
    if (fixture->mounted)
        assert_int_equal(umount2(fixture->data_dir, 0), 0);
    assert_int_equal(tree_remove(AT_FDCWD, fixture->data_dir, NULL), 0);
    free(fixture);
    return 0;
}

static struct buffer zip_of(const char *name, const char *content)
{
    const struct zip_entry entry = {.name = span_from(name), .mode = 0100644, .content = span_from(content)};
    struct buffer zip = BUFFER_INIT;

    zip_build(&zip, &entry, 1);
    return zip;
}

static void on_unpacked(int result, const struct code_package *package, const struct fault *fault, void *context)
{
    struct outcome *outcome = context;

    outcome->calls++;
    outcome->result = result;
    assert_non_null(fault);
    outcome->fault = *fault;
    if (result == 0)
        outcome->package = *package;
    else
        assert_null(package);
}

static void submit(struct fixture *fixture, struct buffer zip, struct outcome *outcome)
{
    assert_int_equal(code_unpack(fixture->store, &zip, on_unpacked, outcome), 0);
    assert_null(zip.data);
    assert_int_equal(outcome->calls, 0);
}

static struct outcome unpack(struct fixture *fixture, struct buffer zip)
{
    struct outcome outcome = {0};

    submit(fixture, zip, &outcome);
    run_loop(fixture);
    assert_int_equal(outcome.calls, 1);
    return outcome;
}

static struct outcome unpack_well(struct fixture *fixture, struct buffer zip)
{
    struct outcome outcome = unpack(fixture, zip);

    if (outcome.result != 0)
        print_error("%s\n", outcome.fault.text);
    assert_int_equal(outcome.result, 0);
    return outcome;
}

/* Names in DIR/code. */
static int count_names(struct fixture *fixture)
{
    char path[80];
    DIR *stream;
    int count = 0;

    snprintf(path, sizeof(path), "%s/code", fixture->data_dir);
    stream = opendir(path);
    assert_non_null(stream);
    while (readdir(stream))
        count++;
    closedir(stream);
    return count - 2;
}

static bool exists(struct fixture *fixture, const char *format, const char *name)
{
    char path[256] = "code/";
    struct stat status;

    snprintf(path + 5, sizeof(path) - 5, format, name);
    return fstatat(fixture->data_fd, path, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

static void make_file(struct fixture *fixture, const char *path, const char *content)
{
    int fd = openat(fixture->data_fd, path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, strlen(content)), strlen(content));
    close(fd);
}

/* --- refusals --- */

static void test_refused_zip_leaves_nothing(void **state)
{
    struct outcome outcome = unpack(*state, zip_of("../x", "content"));

    assert_int_equal(outcome.result, CODE_BAD_ENTRY);
    assert_string_equal(outcome.fault.text, "entry \"../x\" leads out of the package");
    assert_int_equal(count_names(*state), 0);
    outcome = unpack(*state, BUFFER_INIT);
    assert_int_equal(outcome.result, CODE_EMPTY);
    assert_int_equal(count_names(*state), 0);
}

static void test_refused_zip_is_refused_again(void **state)
{
    assert_int_equal(unpack(*state, zip_of("/x", "content")).result, CODE_BAD_ENTRY);
    assert_int_equal(unpack(*state, zip_of("/x", "content")).result, CODE_BAD_ENTRY);
}

static void test_too_large_zip_leaves_nothing(void **state)
{
    struct fixture *fixture = *state;

    fixture->max_unpacked_bytes = 7;
    reopen_store(fixture);
    assert_int_equal(unpack(fixture, zip_of("x", "content")).result, CODE_TOO_LARGE_UNZIPPED);
    assert_int_equal(count_names(fixture), 0);
    unpack_well(fixture, zip_of("x", "conten"));
}

/* The documented limit itself: "Unzipped size must be smaller than 262144000 bytes" (recorded). */
static void test_default_limit_and_one_less(void **state)
{
    struct buffer zip = BUFFER_INIT;
    struct outcome outcome;

    zip_build_zeros(&zip, "large", CODE_UNPACKED_BYTES, false);
    assert_int_equal(unpack(*state, zip).result, CODE_TOO_LARGE_UNZIPPED);
    assert_int_equal(count_names(*state), 0);
    zip = BUFFER_INIT;
    zip_build_zeros(&zip, "large", CODE_UNPACKED_BYTES - 1, false);
    outcome = unpack_well(*state, zip);
    assert_int_equal(outcome.package.unpacked_bytes, CODE_UNPACKED_BYTES - 1);
}

static void test_retain_refuses_what_is_no_hash(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(code_retain(fixture->store, ""), -EINVAL);
    assert_int_equal(code_retain(fixture->store, "../../etc"), -EINVAL);
    assert_int_equal(code_retain(fixture->store, "0000"), -EINVAL);
    assert_int_equal(code_retain(fixture->store, "00000000000000000000000000000000000000000000000000000000000000AA"),
                     -EINVAL);
    assert_int_equal(code_retain(fixture->store, ABSENT), 0);
}

static void test_missing_zip_cannot_be_opened(void **state)
{
    struct fixture *fixture = *state;
    uint64_t bytes;
    int fd;

    assert_int_equal(code_open_zip(fixture->store, ABSENT, &fd, &bytes), -ENOENT);
    assert_int_equal(code_open_zip(fixture->store, "../lock", &fd, &bytes), -ENOENT);
}

static void test_missing_data_directory_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct code_config config = {.data_dir = "/nonexistent/kiln", .loop = &fixture->loop};
    struct code_store *store = NULL;
    struct fault fault;

    assert_int_equal(code_store_open(&config, &store, &fault), -ENOENT);
    assert_string_equal(fault.text, "cannot open /nonexistent/kiln/code: No such file or directory");
    assert_null(store);
}

/* --- unpacking --- */

static void test_package_is_described_and_found(void **state)
{
    struct fixture *fixture = *state;
    struct buffer zip = zip_of("index.js", "exports.handler"), path = BUFFER_INIT;
    size_t zip_bytes = zip.length;
    struct outcome outcome = unpack_well(fixture, zip);
    char content[32] = "";
    uint64_t bytes;
    int fd;

    /* sha256sum of the same zip, and its base64 form. */
    assert_string_equal(outcome.package.sha256, "f96636b808ac5e03925b61de322e3a2c8d5476ac555998edf31d524e11846454");
    assert_string_equal(outcome.package.sha256_base64, "+WY2uAisXgOSW2HeMi46LI1UdqxVWZjt8x1SThGEZFQ=");
    assert_int_equal(outcome.package.zip_bytes, zip_bytes);
    assert_int_equal(outcome.package.unpacked_bytes, strlen("exports.handler"));
    assert_int_equal(code_directory(fixture->store, outcome.package.sha256, &path), 0);
    assert_int_equal(path.data[0], '/');
    assert_int_equal(buffer_append_span(&path, SPAN("/index.js")), 0);
    fd = open(buffer_terminate(&path), O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(fd, content, sizeof(content)), strlen("exports.handler"));
    close(fd);
    assert_int_equal(code_open_zip(fixture->store, outcome.package.sha256, &fd, &bytes), 0);
    assert_int_equal(bytes, zip_bytes);
    assert_int_equal(read(fd, content, 4), 4);
    assert_memory_equal(content, "PK\3\4", 4);
    close(fd);
    buffer_deinit(&path);
    assert_int_equal(count_names(fixture), 2);
}

static void test_package_directory_is_open_to_the_sandbox(void **state)
{
    struct fixture *fixture = *state;
    mode_t before = umask(077);
    struct outcome outcome = unpack_well(fixture, zip_of("x", "y"));
    struct buffer path = BUFFER_INIT;
    struct stat status;

    umask(before);
    assert_int_equal(code_directory(fixture->store, outcome.package.sha256, &path), 0);
    assert_int_equal(stat(path.data, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0755);
    buffer_deinit(&path);
}

static void test_same_zip_at_the_same_time_is_unpacked_once(void **state)
{
    struct fixture *fixture = *state;
    struct outcome outcomes[16] = {0};

    for (size_t i = 0; i < ARRAY_SIZE(outcomes); i++)
        submit(fixture, zip_of("x", "same"), &outcomes[i]);
    run_loop(fixture);
    for (size_t i = 0; i < ARRAY_SIZE(outcomes); i++) {
        assert_int_equal(outcomes[i].calls, 1);
        assert_int_equal(outcomes[i].result, 0);
        assert_int_equal(outcomes[i].package.unpacked_bytes, 4);
        assert_string_equal(outcomes[i].package.sha256, outcomes[0].package.sha256);
        assert_string_equal(outcomes[i].package.sha256_base64, outcomes[0].package.sha256_base64);
    }
    assert_int_equal(count_names(fixture), 2);
    for (size_t i = 0; i < ARRAY_SIZE(outcomes); i++) {
        assert_int_equal(count_names(fixture), 2); /* until the last reference is back */
        code_release(fixture->store, outcomes[0].package.sha256);
        run_loop(fixture);
    }
    assert_int_equal(count_names(fixture), 0);
}

static void test_different_zips_at_the_same_time_do_not_mix(void **state)
{
    struct fixture *fixture = *state;
    struct outcome outcomes[24] = {0};
    char content[16];

    for (size_t i = 0; i < ARRAY_SIZE(outcomes); i++) {
        snprintf(content, sizeof(content), "%0*zu", (int)(i % 12) + 1, i % 12);
        submit(fixture, i % 12 == 11 ? zip_of("../bad", content) : zip_of("x", content), &outcomes[i]);
    }
    run_loop(fixture);
    for (size_t i = 0; i < ARRAY_SIZE(outcomes); i++) {
        assert_int_equal(outcomes[i].calls, 1);
        assert_int_equal(outcomes[i].result, i % 12 == 11 ? CODE_BAD_ENTRY : 0);
        if (outcomes[i].result == 0)
            assert_int_equal(outcomes[i].package.unpacked_bytes, MAX(i % 12 + 1, i % 12 > 9 ? 2u : 1u));
    }
    assert_int_equal(count_names(fixture), 2 * 11);
}

static void test_zip_sent_while_it_is_removed_comes_back(void **state)
{
    struct fixture *fixture = *state;
    struct outcome first = unpack_well(fixture, zip_of("x", "y")), again[2] = {0};

    code_release(fixture->store, first.package.sha256);
    submit(fixture, zip_of("x", "y"), &again[0]);
    submit(fixture, zip_of("x", "y"), &again[1]);
    run_loop(fixture);
    assert_int_equal(again[0].result, 0);
    assert_int_equal(again[1].result, 0);
    assert_int_equal(count_names(fixture), 2);
    code_release(fixture->store, first.package.sha256);
    code_release(fixture->store, first.package.sha256);
    run_loop(fixture);
    assert_int_equal(count_names(fixture), 0);
}

static void test_known_package_is_kept_while_retained(void **state)
{
    struct fixture *fixture = *state;
    struct outcome outcome = unpack_well(fixture, zip_of("x", "y"));

    assert_int_equal(code_retain(fixture->store, outcome.package.sha256), 0);
    code_release(fixture->store, outcome.package.sha256);
    run_loop(fixture);
    assert_int_equal(count_names(fixture), 2);
    code_release(fixture->store, outcome.package.sha256);
    run_loop(fixture);
    assert_int_equal(count_names(fixture), 0);
}

static void release_at_once(int result, const struct code_package *package, const struct fault *fault, void *context)
{
    struct fixture *fixture = context;

    (void)fault;
    assert_int_equal(result, 0);
    code_release(fixture->store, package->sha256);
}

static void test_reference_may_be_given_back_in_the_callback(void **state)
{
    struct fixture *fixture = *state;

    for (int i = 0; i < 5; i++) {
        struct buffer zip = zip_of("x", "y");
        assert_int_equal(code_unpack(fixture->store, &zip, release_at_once, fixture), 0);
    }
    run_loop(fixture);
    assert_int_equal(count_names(fixture), 0);
}

static void test_read_only_directories_are_removed_too(void **state)
{
    struct fixture *fixture = *state;
    const struct zip_entry entries[] = {
        {.name = SPAN("ro/"), .mode = 040555},
        {.name = SPAN("ro/f"), .mode = 0100444, .content = SPAN("x")},
    };
    struct buffer zip = BUFFER_INIT;
    struct outcome outcome;

    zip_build(&zip, entries, 2);
    outcome = unpack_well(fixture, zip);
    code_release(fixture->store, outcome.package.sha256);
    run_loop(fixture);
    assert_int_equal(count_names(fixture), 0);
}

static void test_thousands_of_entries_unpack(void **state)
{
    enum { COUNT = 3000 };
    struct fixture *fixture = *state;
    struct zip_entry *entries = calloc(COUNT, sizeof(*entries));
    char(*names)[32] = calloc(COUNT, sizeof(*names));
    struct buffer zip = BUFFER_INIT;
    struct outcome outcome;

    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof(names[i]), "d%d/e%d/f%d", i % 7, i % 50, i);
        entries[i] = (struct zip_entry){.name = span_from(names[i]), .mode = 0100644, .content = SPAN("1234567890")};
    }
    zip_build(&zip, entries, COUNT);
    outcome = unpack_well(fixture, zip);
    assert_int_equal(outcome.package.unpacked_bytes, 10 * COUNT);
    free(entries);
    free(names);
}

/* --- after a restart --- */

static void test_package_is_found_again_after_restart(void **state)
{
    struct fixture *fixture = *state;
    struct outcome before = unpack_well(fixture, zip_of("x", "content")), after;

    reopen_store(fixture);
    assert_int_equal(code_retain(fixture->store, before.package.sha256), 0);
    assert_int_equal(code_sweep(fixture->store, NULL, NULL), 0);
    after = unpack_well(fixture, zip_of("x", "content"));
    assert_string_equal(after.package.sha256, before.package.sha256);
    assert_string_equal(after.package.sha256_base64, before.package.sha256_base64);
    assert_int_equal(after.package.zip_bytes, before.package.zip_bytes);
    assert_int_equal(after.package.unpacked_bytes, before.package.unpacked_bytes);
    code_release(fixture->store, before.package.sha256);
    run_loop(fixture);
    assert_int_equal(count_names(fixture), 2);
}

static void test_sweep_removes_what_nobody_needs(void **state)
{
    struct fixture *fixture = *state;
    struct outcome kept = unpack_well(fixture, zip_of("x", "kept")), left = unpack_well(fixture, zip_of("x", "left"));

    reopen_store(fixture);
    assert_int_equal(mkdirat(fixture->data_fd, "code/.tmp-0123456789abcdef-0", 0700), 0);
    make_file(fixture, "code/.tmp-0123456789abcdef-0/f", "x");
    make_file(fixture, "code/.tmp-0123456789abcdef-0.zip", "x");
    make_file(fixture, "code/.tmp-", "x");
    make_file(fixture, "code/00000000000000000000000000000000000000000000000000000000000000aa.zip", "x");
    make_file(fixture, "code/README", "the operator's own");
    assert_int_equal(code_retain(fixture->store, kept.package.sha256), 0);
    assert_int_equal(code_sweep(fixture->store, NULL, NULL), 0);
    run_loop(fixture);
    assert_true(exists(fixture, "%s", kept.package.sha256));
    assert_true(exists(fixture, "%s.zip", kept.package.sha256));
    assert_false(exists(fixture, "%s", left.package.sha256));
    assert_true(exists(fixture, "%s", "README"));
    assert_int_equal(count_names(fixture), 3);
}

static void test_sweep_leaves_work_under_way_alone(void **state)
{
    struct fixture *fixture = *state;
    struct outcome outcome = {0};

    submit(fixture, zip_of("x", "y"), &outcome);
    while (outcome.calls == 0) {
        assert_int_equal(code_sweep(fixture->store, NULL, NULL), 0);
        uv_run(&fixture->loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(outcome.result, 0);
    run_loop(fixture);
    assert_int_equal(count_names(fixture), 2);
}

static void note_missing(const char *sha256, void *context)
{
    snprintf(context, 2 * CODE_SHA256_HEX_BYTES, "%s", sha256);
}

static void test_sweep_names_missing_packages(void **state)
{
    struct fixture *fixture = *state;
    struct outcome present = unpack_well(fixture, zip_of("x", "y"));
    char missing[2 * CODE_SHA256_HEX_BYTES] = "";

    reopen_store(fixture);
    assert_int_equal(code_retain(fixture->store, present.package.sha256), 0);
    assert_int_equal(code_retain(fixture->store, ABSENT), 0);
    assert_int_equal(code_sweep(fixture->store, note_missing, missing), 0);
    assert_string_equal(missing, ABSENT);
}

static void test_missing_package_is_mended_by_sending_it_again(void **state)
{
    struct fixture *fixture = *state;
    struct outcome outcome = unpack_well(fixture, zip_of("x", "y"));
    struct buffer path = BUFFER_INIT;

    assert_int_equal(code_directory(fixture->store, outcome.package.sha256, &path), 0);
    reopen_store(fixture);
    assert_int_equal(tree_remove(AT_FDCWD, path.data, NULL), 0);
    assert_int_equal(code_retain(fixture->store, outcome.package.sha256), 0);
    unpack_well(fixture, zip_of("x", "y"));
    assert_true(exists(fixture, "%s", outcome.package.sha256));
    assert_int_equal(count_names(fixture), 2);
    buffer_deinit(&path);
}

/* --- closing and full disks --- */

static void test_close_gives_up_what_is_under_way(void **state)
{
    struct fixture *fixture = *state;
    struct outcome outcomes[8] = {0};

    for (size_t i = 0; i < ARRAY_SIZE(outcomes); i++) {
        struct buffer zip = BUFFER_INIT;
        zip_build_zeros(&zip, "large", (1 << 20) + i, false);
        submit(fixture, zip, &outcomes[i]);
    }
    close_store(fixture);
    for (size_t i = 0; i < ARRAY_SIZE(outcomes); i++) {
        assert_int_equal(outcomes[i].calls, 1);
        assert_int_equal(outcomes[i].result, -ECANCELED); /* none was past its hash: the loop had not turned */
    }
    assert_int_equal(count_names(fixture), 0);
}

static void test_close_while_unpacking_leaves_all_or_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct outcome outcome = {0};
    struct buffer zip = BUFFER_INIT;

    zip_build_zeros(&zip, "large", 200 << 20, false);
    submit(fixture, zip, &outcome);
    uv_run(&fixture->loop, UV_RUN_ONCE); /* hashed; unpacking is on its way */
    close_store(fixture);
    assert_int_equal(outcome.calls, 1);
    assert_true(outcome.result == 0 || outcome.result == -ECANCELED);
    assert_int_equal(count_names(fixture), outcome.result == 0 ? 2 : 0);
}

static void test_full_disk_leaves_nothing_and_is_survived(void **state)
{
    struct fixture *fixture = *state;
    struct buffer zip = BUFFER_INIT;
    struct outcome outcome;

    if (geteuid() != 0) {
        print_message("# SKIPPED: mounting a small tmpfs needs root\n");
        skip();
    }
    close_store(fixture);
    close(fixture->data_fd);
    assert_int_equal(mount("kiln-test", fixture->data_dir, "tmpfs", 0, "size=1m"), 0);
    fixture->mounted = true;
    assert_int_equal(tree_open(AT_FDCWD, fixture->data_dir, &fixture->data_fd), 0);
    open_store(fixture);
    zip_build_zeros(&zip, "large", 4 << 20, false);
    outcome = unpack(fixture, zip);
    assert_int_equal(outcome.result, -ENOSPC);
    assert_string_equal(outcome.fault.text, "cannot write \"large\": No space left on device");
    assert_int_equal(count_names(fixture), 0);
    unpack_well(fixture, zip_of("x", "small"));
    /* The zip itself does not fit. */
    zip = zip_of("x", "y");
    assert_int_equal(buffer_reserve(&zip, 2 << 20), 0);
    memset(zip.data + zip.length, 0, 2 << 20);
    zip.length += 2 << 20;
    outcome = unpack(fixture, zip);
    assert_int_equal(outcome.result, -ENOSPC);
    assert_int_equal(count_names(fixture), 2);
    close_store(fixture);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_refused_zip_leaves_nothing),
        T(test_refused_zip_is_refused_again),
        T(test_too_large_zip_leaves_nothing),
        T(test_default_limit_and_one_less),
        T(test_retain_refuses_what_is_no_hash),
        T(test_missing_zip_cannot_be_opened),
        T(test_missing_data_directory_is_refused),
        T(test_package_is_described_and_found),
        T(test_package_directory_is_open_to_the_sandbox),
        T(test_same_zip_at_the_same_time_is_unpacked_once),
        T(test_different_zips_at_the_same_time_do_not_mix),
        T(test_zip_sent_while_it_is_removed_comes_back),
        T(test_known_package_is_kept_while_retained),
        T(test_reference_may_be_given_back_in_the_callback),
        T(test_read_only_directories_are_removed_too),
        T(test_thousands_of_entries_unpack),
        T(test_package_is_found_again_after_restart),
        T(test_sweep_removes_what_nobody_needs),
        T(test_sweep_leaves_work_under_way_alone),
        T(test_sweep_names_missing_packages),
        T(test_missing_package_is_mended_by_sending_it_again),
        T(test_close_gives_up_what_is_under_way),
        T(test_close_while_unpacking_leaves_all_or_nothing),
        T(test_full_disk_leaves_nothing_and_is_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
