#include "sandbox/cgroup.h"
#include "sandbox/memory.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

/* A plain directory standing for a cgroup tree: the kernel's files are there when a test writes them. */
struct tree {
    char path[64];
    struct cgroup_mounts mounts;
    struct cgroup_host host;
};

static int set_up(void **state)
{
    struct tree *tree = calloc(1, sizeof(*tree));

    if (!tree)
        return -1;
    snprintf(tree->path, sizeof(tree->path), "/tmp/kiln-cgroup-test-XXXXXX");
    tree->host = (struct cgroup_host){.roots = {-1, -1, -1, -1}};
    *state = tree;
    return mkdtemp(tree->path) ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status, (void)kind, (void)walk;
    return remove(path);
}

static int tear_down(void **state)
{
    struct tree *tree = *state;

    cgroup_host_deinit(&tree->host);
    nftw(tree->path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    free(tree);
    return 0;
}

static void put(const struct tree *tree, const char *file, const char *text)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/%s", tree->path, file);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void assert_file(const struct tree *tree, const char *file, const char *expected)
{
    char path[512], text[256] = "";

    snprintf(path, sizeof(path), "%s/%s", tree->path, file);
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        fail_msg("%s is not there", file);
    assert_true(read(fd, text, sizeof(text) - 1) >= 0);
    close(fd);
    assert_string_equal(text, expected);
}

static bool exists(const struct tree *tree, const char *file)
{
    char path[512];

    snprintf(path, sizeof(path), "%.63s/%.200s", tree->path, file);
    return access(path, F_OK) == 0;
}

/* A unified tree with these controllers, and v1 trees beside it when asked for. */
static void build(struct tree *tree, const char *controllers, bool v1)
{
    static const char *const names[CGROUP_TREES] = {"unified", "memory", "cpu", "pids"};
    char path[512];

    for (int i = 0; i < (v1 ? CGROUP_TREES : 1); i++) {
        snprintf(path, sizeof(path), "%s/%s", tree->path, names[i]);
        assert_int_equal(mkdir(path, 0755), 0);
        snprintf(tree->mounts.paths[i], sizeof(tree->mounts.paths[i]), "%s/%s", tree->path, names[i]);
    }
    put(tree, "unified/cgroup.controllers", controllers);
    assert_int_equal(cgroup_host_open(&tree->mounts, &tree->host), 0);
    tree->host.create_flags = O_CREAT | O_TRUNC;
}

static const struct cgroup_limits small = {.memory_mib = 128, .tmp_mib = 512, .processes = 1024};

static void test_mounts_of_a_hybrid_host_are_told_apart(void **state)
{
    static const char text[] = "30 25 0:26 / /sys/fs/cgroup/unified rw,nosuid shared:5 - cgroup2 cgroup2 rw\n"
                               "31 25 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                               "32 25 0:28 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
                               "33 25 0:29 / /sys/fs/cgroup/memory rw master:3 - cgroup cgroup rw,memory\n"
                               "34 25 0:30 /docker/abc /elsewhere rw - cgroup cgroup rw,pids\n"
                               "35 25 0:31 / /proc rw - proc proc rw\n"
                               "broken line\n";
    struct cgroup_mounts mounts;

    (void)state;
    cgroup_parse_mounts(span_from(text), &mounts);
    assert_string_equal(mounts.paths[CGROUP_UNIFIED], "/sys/fs/cgroup/unified");
    assert_string_equal(mounts.paths[CGROUP_CPU], "/sys/fs/cgroup/cpu,cpuacct");
    assert_string_equal(mounts.paths[CGROUP_MEMORY], "/sys/fs/cgroup/memory");
    assert_string_equal(mounts.paths[CGROUP_PIDS], ""); /* only part of it is mounted there */
}

static void test_own_cgroup_is_that_of_the_unified_tree(void **state)
{
    static const struct {
        const char *text, *path;
    } cases[] = {
        {"0::/\n", ""},
        {"0::/system.slice/kiln.service\n", "system.slice/kiln.service"},
        {"12:memory:/m\n1:name=systemd:/n\n0::/user.slice\n", "user.slice"},
        {"12:memory:/m\n", ""},
        {"0::/system.slice/kiln.service/kiln-daemon\n", "system.slice/kiln.service"},
        {"0::/kiln-daemon\n", ""},
        {"0::/system.slice/not-kiln-daemon\n", "system.slice/not-kiln-daemon"},
        {"0::/../other\n", ""},
        {"0:\n", ""},
        {"", ""},
    };
    char path[256];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        cgroup_parse_own(span_from(cases[i].text), path);
        assert_string_equal(path, cases[i].path);
    }
}

static void test_unified_controllers_are_handed_down(void **state)
{
    struct tree *tree = *state;
    struct fault fault;

    build(tree, "cpuset cpu io memory pids\n", false);
    assert_int_equal(cgroup_host_prepare(&tree->host, "me", &fault), 0);
    assert_true(cgroup_host_has(&tree->host, CGROUP_MEMORY));
    /* The last one written stays in a plain file. */
    assert_file(tree, "unified/cgroup.subtree_control", "+pids");
    assert_file(tree, "unified/kiln/cgroup.subtree_control", "+pids");
    assert_file(tree, "unified/kiln/me/cgroup.subtree_control", "+pids");
}

/* sysfs lets nobody make directories, as a cgroup tree does not that a container has mounted read-only. */
static void test_a_tree_that_cannot_be_written_counts_as_absent(void **state)
{
    struct cgroup_mounts mounts = {.paths = {"/sys", "/sys", "/sys", "/sys"}};
    struct cgroup_host host;
    struct fault fault;

    (void)state;
    assert_int_equal(cgroup_host_open(&mounts, &host), 0);
    assert_int_equal(cgroup_host_prepare(&host, "me", &fault), 0);
    for (int i = 0; i < CGROUP_TREES; i++)
        assert_false(cgroup_host_has(&host, (enum cgroup_tree)i));
    cgroup_host_deinit(&host);
}

static void test_unified_limits_are_written(void **state)
{
    struct tree *tree = *state;
    struct fault fault;

    build(tree, "cpu memory pids\n", false);
    assert_int_equal(cgroup_host_prepare(&tree->host, "me", &fault), 0);
    assert_int_equal(cgroup_make(&tree->host, "s0"), 0);
    assert_int_equal(cgroup_apply(&tree->host, "s0", &small, &fault), 0);
    assert_file(tree, "unified/kiln/me/s0/memory.max", "671088640");
    assert_file(tree, "unified/kiln/me/s0/memory.high", "134217728");
    assert_file(tree, "unified/kiln/me/s0/memory.swap.max", "0");
    assert_file(tree, "unified/kiln/me/s0/pids.max", "1025");
    assert_file(tree, "unified/kiln/me/s0/cpu.max", "1447 20000");
    assert_file(tree, "unified/kiln/me/s0/cpu.weight", "7");
}

static void test_v1_trees_take_what_the_unified_one_lacks(void **state)
{
    struct tree *tree = *state;
    struct fault fault;

    build(tree, "pids\n", true);
    assert_int_equal(cgroup_host_prepare(&tree->host, "me", &fault), 0);
    assert_int_equal(cgroup_make(&tree->host, "s0"), 0);
    assert_int_equal(cgroup_apply(&tree->host, "s0", &small, &fault), 0);
    assert_file(tree, "unified/kiln/me/s0/pids.max", "1025");
    assert_false(exists(tree, "pids/kiln"));
    assert_file(tree, "memory/kiln/me/s0/memory.limit_in_bytes", "671088640");
    assert_file(tree, "memory/kiln/me/s0/memory.memsw.limit_in_bytes", "671088640");
    assert_file(tree, "cpu/kiln/me/s0/cpu.cfs_quota_us", "1447");
    assert_file(tree, "cpu/kiln/me/s0/cpu.cfs_period_us", "20000");
    assert_file(tree, "cpu/kiln/me/s0/cpu.shares", "74");
}

static void test_cpu_follows_memory(void **state)
{
    static const struct {
        unsigned memory_mib;
        const char *quota;
    } cases[] = {{1769, "20000 20000"}, {3538, "40000 20000"}, {10240, "115771 20000"}, {1, "1000 20000"}};
    struct tree *tree = *state;
    struct cgroup_limits limits = small;
    struct fault fault;

    build(tree, "cpu\n", false);
    assert_int_equal(cgroup_host_prepare(&tree->host, "me", &fault), 0);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char name[8];
        limits.memory_mib = cases[i].memory_mib;
        snprintf(name, sizeof(name), "s%zu", i);
        assert_int_equal(cgroup_make(&tree->host, name), 0);
        assert_int_equal(cgroup_apply(&tree->host, name, &limits, &fault), 0);
        char file[64];
        snprintf(file, sizeof(file), "unified/kiln/me/%s/cpu.max", name);
        assert_file(tree, file, cases[i].quota);
    }
}

static const char *value_of(const struct cgroup_host *host, const struct cgroup_limits *limits, const char *file,
                            char value[48])
{
    struct cgroup_setting settings[CGROUP_SETTINGS_MAX];
    size_t count = cgroup_settings(host, limits, settings);

    for (size_t i = 0; i < count; i++)
        if (strcmp(settings[i].file, file) == 0)
            return strcpy(value, settings[i].value);
    return NULL;
}

static void test_boost_lifts_the_cpu_limit_only(void **state)
{
    struct cgroup_host unified = {.roots = {3, -1, -1, -1}, .on_unified = {false, true, true, true}};
    struct cgroup_host v1 = {.roots = {3, 4, 5, 6}};
    struct cgroup_limits boosted = small;
    char value[48];

    (void)state;
    boosted.cpu_unlimited = true;
    assert_string_equal(value_of(&unified, &boosted, "cpu.max", value), "max 20000");
    assert_string_equal(value_of(&unified, &boosted, "cpu.weight", value), "7");
    assert_string_equal(value_of(&v1, &boosted, "cpu.cfs_quota_us", value), "-1");
    assert_string_equal(value_of(&v1, &small, "cpu.cfs_quota_us", value), "1447");
    assert_string_equal(value_of(&v1, &boosted, "memory.limit_in_bytes", value), "671088640");
}

static void test_without_controllers_nothing_is_written(void **state)
{
    struct cgroup_host none = {.roots = {-1, -1, -1, -1}};
    struct cgroup_setting settings[CGROUP_SETTINGS_MAX];

    (void)state;
    assert_int_equal(cgroup_settings(&none, &small, settings), 0);
    assert_false(cgroup_host_has(&none, CGROUP_MEMORY));
    assert_int_equal(cgroup_make(&none, "s0"), 0);
    assert_int_equal(cgroup_remove(&none, "s0"), 0);
}

static void test_a_missing_file_is_named(void **state)
{
    struct tree *tree = *state;
    struct fault fault;

    build(tree, "memory\n", false);
    assert_int_equal(cgroup_host_prepare(&tree->host, "me", &fault), 0);
    assert_int_equal(cgroup_apply(&tree->host, "never-made", &small, &fault), -ENOENT);
    assert_non_null(strstr(fault.text, "memory.max"));
}

static void test_removal_waits_for_the_last_process(void **state)
{
    struct tree *tree = *state;
    struct fault fault;

    build(tree, "\n", true);
    assert_int_equal(cgroup_host_prepare(&tree->host, "me", &fault), 0);
    assert_int_equal(cgroup_make(&tree->host, "s0"), 0);
    assert_true(exists(tree, "memory/kiln/me/s0") && exists(tree, "unified/kiln/me/s0"));
    assert_int_equal(cgroup_remove(&tree->host, "s0"), 0);
    assert_false(exists(tree, "memory/kiln/me/s0") || exists(tree, "unified/kiln/me/s0"));
    assert_int_equal(cgroup_make(&tree->host, "s1"), 0);
    /* A directory that is not empty stands for one in use. */
    put(tree, "pids/kiln/me/s1/tasks", "1");
    assert_int_equal(cgroup_remove(&tree->host, "s1"), -ENOTEMPTY);
}

static void test_leftovers_of_this_instance_go_and_others_stay(void **state)
{
    struct tree *tree = *state;
    char path[512];
    struct fault fault;

    build(tree, "\n", true);
    assert_int_equal(cgroup_host_prepare(&tree->host, "other", &fault), 0);
    assert_int_equal(cgroup_make(&tree->host, "s0"), 0);
    assert_int_equal(cgroup_host_prepare(&tree->host, "me", &fault), 0);
    assert_int_equal(cgroup_make(&tree->host, "s7"), 0);
    assert_int_equal(cgroup_host_prepare(&tree->host, "me", &fault), 0);
    assert_false(exists(tree, "memory/kiln/me/s7"));
    assert_true(exists(tree, "memory/kiln/other/s0"));
    assert_int_equal(cgroup_host_clean(&tree->host, "me", 0), 0);
    assert_int_equal(cgroup_host_clean(&tree->host, "other", 0), 0);
    snprintf(path, sizeof(path), "memory/kiln");
    assert_false(exists(tree, path));
}

static void test_leftover_processes_are_killed(void **state)
{
    struct tree *tree = *state;
    struct fault fault;

    build(tree, "\n", false);
    assert_int_equal(cgroup_host_prepare(&tree->host, "me", &fault), 0);
    put(tree, "unified/kiln/me/cgroup.kill", "");
    assert_int_equal(cgroup_host_clean(&tree->host, "me", 0), -ENOTEMPTY); /* because of that very file */
    assert_file(tree, "unified/kiln/me/cgroup.kill", "1");
}

/* ---- memory.h ---- */

enum { MIB = 1024 * 1024 };

static void test_tmp_and_file_cache_do_not_count_as_memory(void **state)
{
    struct memory_figures figures = {.usage = 400 * MIB, .file = 350 * MIB, .shmem = 250 * MIB, .tmp = 200 * MIB};

    (void)state;
    /* 50 anonymous, 100 file cache, 200 in /tmp and 50 of other shared memory, which does count. */
    assert_int_equal(memory_counted(&figures), 100 * MIB);
}

static void test_figures_of_different_moments_do_not_wrap(void **state)
{
    struct memory_figures figures = {.usage = 10 * MIB, .file = 20 * MIB, .shmem = 30 * MIB, .tmp = 40 * MIB};

    (void)state;
    assert_int_equal(memory_counted(&figures), 0);
}

static void test_threshold_moves_by_what_is_left(void **state)
{
    (void)state;
    assert_int_equal(memory_next_threshold(500 * MIB, 28 * MIB, 128 * MIB), 600 * MIB);
    assert_int_equal(memory_next_threshold(500 * MIB, 128 * MIB, 128 * MIB), 500 * MIB + 256 * 1024);
}

static void test_stat_of_both_versions(void **state)
{
    struct memory_figures figures = {0};

    (void)state;
    memory_parse_stat(SPAN("anon 1\nfile 4096\nfile_mapped 7\nshmem 8192\nshmem_thp 9\n"), true, &figures);
    assert_int_equal(figures.file, 4096);
    assert_int_equal(figures.shmem, 8192);
    memory_parse_stat(SPAN("cache 1\nshmem 2\ntotal_cache 12288\ntotal_rss 3\ntotal_shmem 16384\n"), false, &figures);
    assert_int_equal(figures.file, 12288);
    assert_int_equal(figures.shmem, 16384);
}

static void watch_fake(struct tree *tree, struct memory_watch *watch)
{
    struct fault fault;

    build(tree, "memory\n", false);
    assert_int_equal(cgroup_host_prepare(&tree->host, "me", &fault), 0);
    assert_int_equal(cgroup_make(&tree->host, "s0"), 0);
    assert_int_equal(cgroup_apply(&tree->host, "s0", &small, &fault), 0);
    put(tree, "unified/kiln/me/s0/memory.events", "low 0\nhigh 1\nmax 0\noom 0\noom_kill 2\n");
    put(tree, "unified/kiln/me/s0/memory.current", "209715200\n");
    put(tree, "unified/kiln/me/s0/memory.stat", "anon 9\nfile 0\nshmem 0\n");
    assert_int_equal(memory_watch_init(watch, &tree->host, NULL, "s0", 128ull * MIB, open("/", O_RDONLY)), 0);
}

static void test_v2_anonymous_memory_past_the_limit_is_exceeded(void **state)
{
    struct tree *tree = *state;
    struct memory_watch watch;

    watch_fake(tree, &watch);
    assert_int_equal(memory_check(&watch), MEMORY_EXCEEDED);
    assert_int_equal(memory_oom_kills(&tree->host, "s0"), 2);
    memory_watch_deinit(&watch);
}

static void test_v2_file_cache_past_the_limit_moves_memory_high(void **state)
{
    struct tree *tree = *state;
    struct memory_watch watch;

    watch_fake(tree, &watch);
    put(tree, "unified/kiln/me/s0/memory.stat", "anon 9\nfile 104857600\nshmem 0\n");
    assert_int_equal(memory_check(&watch), MEMORY_FINE);
    /* 200 in use, 100 of them counted: 28 are left. */
    assert_file(tree, "unified/kiln/me/s0/memory.high", "239075328");
    assert_true(memory_needs_polling(&watch));
    memory_watch_deinit(&watch);
}

static void test_memory_without_a_controller_is_not_watched(void **state)
{
    struct tree *tree = *state;
    struct memory_watch watch;
    struct fault fault;

    build(tree, "\n", false);
    assert_int_equal(cgroup_host_prepare(&tree->host, "me", &fault), 0);
    assert_int_equal(memory_watch_init(&watch, &tree->host, NULL, "s0", 1, open("/", O_RDONLY)), -ENOENT);
    assert_int_equal(watch.tmp_fd, -1);
}

#define WITH_TREE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mounts_of_a_hybrid_host_are_told_apart),
        cmocka_unit_test(test_own_cgroup_is_that_of_the_unified_tree),
        WITH_TREE(test_unified_controllers_are_handed_down),
        cmocka_unit_test(test_a_tree_that_cannot_be_written_counts_as_absent),
        WITH_TREE(test_unified_limits_are_written),
        WITH_TREE(test_v1_trees_take_what_the_unified_one_lacks),
        WITH_TREE(test_cpu_follows_memory),
        cmocka_unit_test(test_boost_lifts_the_cpu_limit_only),
        cmocka_unit_test(test_without_controllers_nothing_is_written),
        WITH_TREE(test_a_missing_file_is_named),
        WITH_TREE(test_removal_waits_for_the_last_process),
        WITH_TREE(test_leftover_processes_are_killed),
        WITH_TREE(test_leftovers_of_this_instance_go_and_others_stay),
        cmocka_unit_test(test_tmp_and_file_cache_do_not_count_as_memory),
        cmocka_unit_test(test_figures_of_different_moments_do_not_wrap),
        cmocka_unit_test(test_threshold_moves_by_what_is_left),
        cmocka_unit_test(test_stat_of_both_versions),
        WITH_TREE(test_v2_anonymous_memory_past_the_limit_is_exceeded),
        WITH_TREE(test_v2_file_cache_past_the_limit_moves_memory_high),
        WITH_TREE(test_memory_without_a_controller_is_not_watched),
    };

    return cmocka_run_group_tests_name("cgroup", tests, NULL, NULL);
}
