#include "sandbox/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <cmocka.h>

static const struct plan_op *find(const struct plan *plan, enum plan_action action, const char *target)
{
    for (size_t i = 0; i < plan->count; i++)
        if (plan->ops[i].action == action && (!target || strcmp(plan->ops[i].target, target) == 0))
            return &plan->ops[i];
    return NULL;
}

static size_t position(const struct plan *plan, enum plan_action action)
{
    const struct plan_op *op = find(plan, action, NULL);

    assert_non_null(op);
    return (size_t)(op - plan->ops);
}

static struct plan_host host_of(const struct plan_entry *entries, size_t count)
{
    struct plan_host host = {.entry_count = count};

    memcpy(host.entries, entries, count * sizeof(*entries));
    return host;
}

static const struct plan_entry debian[] = {
    {"/usr", PLAN_ENTRY_DIRECTORY, NULL},
    {"/bin", PLAN_ENTRY_SYMLINK, "usr/bin"},
    {"/lib64", PLAN_ENTRY_SYMLINK, "usr/lib64"},
    {"/etc/services", PLAN_ENTRY_FILE, NULL},
    {"/etc/resolv.conf", PLAN_ENTRY_SYMLINK, "../run/systemd/resolve/stub-resolv.conf"},
    {"/etc/localtime", PLAN_ENTRY_SYMLINK, "/usr/share/zoneinfo/Etc/UTC"},
    {"/etc/ssl/certs", PLAN_ENTRY_DIRECTORY, NULL},
};

static void test_base_binds_directories_read_only(void **state)
{
    struct plan_host host = host_of(debian, ARRAY_SIZE(debian));
    struct plan plan;

    (void)state;
    assert_int_equal(plan_base(&host, &plan), 0);
    const struct plan_op *usr = find(&plan, PLAN_BIND, "/usr");
    assert_non_null(usr);
    assert_string_equal(usr->source, "/usr");
    assert_int_equal(usr->value, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    assert_non_null(find(&plan, PLAN_BIND, "/etc/ssl/certs"));
    plan_deinit(&plan);
}

static void test_base_keeps_links_into_usr_and_copies_the_rest(void **state)
{
    struct plan_host host = host_of(debian, ARRAY_SIZE(debian));
    struct plan plan;

    (void)state;
    assert_int_equal(plan_base(&host, &plan), 0);
    assert_string_equal(find(&plan, PLAN_SYMLINK, "/bin")->source, "usr/bin");
    assert_string_equal(find(&plan, PLAN_SYMLINK, "/etc/localtime")->source, "/usr/share/zoneinfo/Etc/UTC");
    assert_null(find(&plan, PLAN_SYMLINK, "/etc/resolv.conf"));
    assert_true(find(&plan, PLAN_COPY, "/etc/resolv.conf")->optional);
    assert_non_null(find(&plan, PLAN_COPY, "/etc/services"));
    plan_deinit(&plan);
}

static void test_base_adds_the_sandboxs_names_to_the_hosts(void **state)
{
    struct plan_host host = host_of(debian, ARRAY_SIZE(debian));
    struct plan plan;

    (void)state;
    host.hosts = "127.0.0.1 localhost\n10.0.0.1 printer\n";
    assert_int_equal(plan_base(&host, &plan), 0);
    assert_string_equal(find(&plan, PLAN_FILE, "/etc/hosts")->source,
                        "127.0.0.1\tsandbox.localdomain sandbox\n127.0.0.1 localhost\n10.0.0.1 printer\n");
    plan_deinit(&plan);
    host.hosts = "";
    assert_int_equal(plan_base(&host, &plan), 0);
    assert_non_null(strstr(find(&plan, PLAN_FILE, "/etc/hosts")->source, "127.0.0.1\tlocalhost\n"));
    plan_deinit(&plan);
}

static void test_base_takes_the_names_and_resolvers_of_the_network(void **state)
{
    struct plan_host host = host_of(debian, ARRAY_SIZE(debian));
    struct plan plan;

    (void)state;
    host.hosts = "10.0.0.1 printer\n";
    host.more_hosts = "198.19.0.2\thost.kiln.internal\n";
    host.resolv_conf = "nameserver 198.19.0.2\n";
    assert_int_equal(plan_base(&host, &plan), 0);
    assert_string_equal(find(&plan, PLAN_FILE, "/etc/hosts")->source,
                        "127.0.0.1\tsandbox.localdomain sandbox\n198.19.0.2\thost.kiln.internal\n10.0.0.1 printer\n");
    assert_string_equal(find(&plan, PLAN_FILE, "/etc/resolv.conf")->source, host.resolv_conf);
    assert_null(find(&plan, PLAN_COPY, "/etc/resolv.conf"));
    plan_deinit(&plan);
}

static void test_base_ends_with_an_empty_bounding_set(void **state)
{
    struct plan_host host = host_of(debian, ARRAY_SIZE(debian));
    struct plan plan;

    (void)state;
    assert_int_equal(plan_base(&host, &plan), 0);
    assert_int_equal(position(&plan, PLAN_DROP_BOUNDING), plan.count - 1);
    plan_deinit(&plan);
}

static void test_base_binds_lib_of_hosts_without_merged_usr(void **state)
{
    static const struct plan_entry old[] = {{"/lib", PLAN_ENTRY_DIRECTORY, NULL},
                                            {"/lib64", PLAN_ENTRY_SYMLINK, "lib"}};
    struct plan_host host = host_of(old, ARRAY_SIZE(old));
    struct plan plan;

    (void)state;
    assert_int_equal(plan_base(&host, &plan), 0);
    assert_non_null(find(&plan, PLAN_BIND, "/lib"));
    assert_string_equal(find(&plan, PLAN_SYMLINK, "/lib64")->source, "lib");
    plan_deinit(&plan);
}

static void test_base_shows_nothing_else_of_the_host(void **state)
{
    static const char *const hidden[] = {"/root", "/home", "/srv", "/etc/shadow", "/var", "/sys", "/run", "/data"};
    struct plan_host host = host_of(debian, ARRAY_SIZE(debian));
    struct plan plan;

    (void)state;
    host.data_dir = "/data/kiln";
    assert_int_equal(plan_base(&host, &plan), 0);
    for (size_t i = 0; i < ARRAY_SIZE(hidden); i++) {
        assert_null(find(&plan, PLAN_BIND, hidden[i]));
        assert_null(find(&plan, PLAN_COPY, hidden[i]));
    }
    /* Accounts are made up, not copied. */
    assert_null(find(&plan, PLAN_COPY, "/etc/passwd"));
    assert_string_equal(find(&plan, PLAN_SYMLINK, "/etc/passwd")->source, "../run/passwd");
    plan_deinit(&plan);
}

static void test_base_hides_a_data_directory_below_what_is_shown(void **state)
{
    struct plan_host host = host_of(debian, ARRAY_SIZE(debian));
    struct plan plan;

    (void)state;
    host.data_dir = "/usr/local/kiln-data";
    assert_int_equal(plan_base(&host, &plan), 0);
    const struct plan_op *mask = find(&plan, PLAN_TMPFS, "/usr/local/kiln-data");
    assert_non_null(mask);
    assert_true(mask > find(&plan, PLAN_BIND, "/usr"));
    assert_true(mask->value & MOUNT_ATTR_RDONLY);
    plan_deinit(&plan);
    host.data_dir = "/usrlocal/kiln-data";
    assert_int_equal(plan_base(&host, &plan), 0);
    assert_null(find(&plan, PLAN_TMPFS, NULL));
    plan_deinit(&plan);
}

static void test_devices_are_made_as_root_and_bound_in_a_user_namespace(void **state)
{
    struct plan_host host = host_of(debian, ARRAY_SIZE(debian));
    struct plan plan;

    (void)state;
    assert_int_equal(plan_base(&host, &plan), 0);
    assert_non_null(find(&plan, PLAN_DEVICE, "/dev/null"));
    assert_null(find(&plan, PLAN_BIND_FILE, NULL));
    plan_deinit(&plan);
    host.rootless = true;
    assert_int_equal(plan_base(&host, &plan), 0);
    assert_null(find(&plan, PLAN_DEVICE, NULL));
    assert_string_equal(find(&plan, PLAN_BIND_FILE, "/dev/null")->source, "/dev/null");
    plan_deinit(&plan);
}

static void test_shell_masks_proc_after_mounting_it(void **state)
{
    static const char *const masked[] = {"/proc/kcore", "/proc/sysrq-trigger", "/proc/keys", "/proc/timer_list"};
    struct plan_identity identity = {.index = 300};
    struct plan plan;

    (void)state;
    assert_int_equal(plan_shell(&identity, &plan), 0);
    const struct plan_op *proc = find(&plan, PLAN_PROC, "/proc");
    assert_non_null(proc);
    for (size_t i = 0; i < ARRAY_SIZE(masked); i++)
        assert_true(find(&plan, PLAN_MASK, masked[i]) > proc);
    assert_true(find(&plan, PLAN_READ_ONLY, "/proc/sys") > proc);
    assert_string_equal(find(&plan, PLAN_HOSTNAME, NULL)->source, "169-254-1-47");
    plan_deinit(&plan);
}

static void test_shell_names_its_own_user(void **state)
{
    struct plan_identity identity = {.index = 1, .uid = 200001, .gid = 200002};
    struct plan plan;

    (void)state;
    assert_int_equal(plan_shell(&identity, &plan), 0);
    const struct plan_op *passwd = find(&plan, PLAN_FILE, "/run/passwd");
    assert_true(passwd > find(&plan, PLAN_TMPFS, "/run"));
    assert_non_null(strstr(passwd->source, "\nsbx_user1051:x:200001:200002:"));
    assert_true(find(&plan, PLAN_READ_ONLY, "/run") > passwd);
    plan_deinit(&plan);
}

static const struct plan_fit example = {
    .identity = {.index = 1, .uid = 200001, .gid = 200001},
    .memory_mib = 128,
    .tmp_mib = 512,
    .has_opt = true,
    .has_runtime = true,
};

static void test_fit_sizes_tmp_and_forbids_devices_on_it(void **state)
{
    struct plan plan;

    (void)state;
    assert_int_equal(plan_fit(&example, &plan), 0);
    const struct plan_op *tmp = find(&plan, PLAN_TMPFS, "/tmp");
    assert_string_equal(tmp->source, "size=512m,nr_inodes=32768,mode=1777");
    assert_int_equal(tmp->value, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    assert_string_equal(find(&plan, PLAN_TMPFS, "/dev/shm")->source, "size=128m,mode=1777");
    plan_deinit(&plan);
}

static void test_fit_attaches_what_there_is(void **state)
{
    struct plan_fit bare = example;
    struct plan plan;

    (void)state;
    assert_int_equal(plan_fit(&example, &plan), 0);
    assert_int_equal(find(&plan, PLAN_ATTACH, "/var/task")->value, PLAN_ATTACH_TASK);
    assert_int_equal(find(&plan, PLAN_ATTACH, "/opt")->value, PLAN_ATTACH_OPT);
    assert_int_equal(find(&plan, PLAN_ATTACH, "/var/runtime")->value, PLAN_ATTACH_RUNTIME);
    plan_deinit(&plan);
    bare.has_opt = bare.has_runtime = false;
    assert_int_equal(plan_fit(&bare, &plan), 0);
    assert_null(find(&plan, PLAN_ATTACH, "/opt"));
    assert_null(find(&plan, PLAN_ATTACH, "/var/runtime"));
    plan_deinit(&plan);
}

/* See the top of plan.c for why. */
static void test_privileges_go_in_the_only_order_that_works(void **state)
{
    static const enum plan_action order[] = {PLAN_NO_NEW_PRIVILEGES, PLAN_IDS,          PLAN_DROP_CAPABILITIES,
                                             PLAN_UNDUMPABLE,        PLAN_DEATH_SIGNAL, PLAN_SECCOMP};
    struct plan plan;

    (void)state;
    assert_int_equal(plan_fit(&example, &plan), 0);
    for (size_t i = 1; i < ARRAY_SIZE(order); i++)
        assert_true(position(&plan, order[i - 1]) < position(&plan, order[i]));
    assert_int_equal(position(&plan, PLAN_SECCOMP), plan.count - 1);
    for (size_t i = position(&plan, PLAN_NO_NEW_PRIVILEGES); i < plan.count; i++)
        assert_true(plan.ops[i].action != PLAN_TMPFS && plan.ops[i].action != PLAN_ATTACH);
    const struct plan_op *ids = find(&plan, PLAN_IDS, NULL);
    assert_int_equal(ids->value, 200001);
    assert_int_equal(ids->limit, 200001);
    plan_deinit(&plan);
}

static const struct plan_op *find_limit(const struct plan *plan, int resource)
{
    for (size_t i = 0; i < plan->count; i++)
        if (plan->ops[i].action == PLAN_RLIMIT && plan->ops[i].value == (uint64_t)resource)
            return &plan->ops[i];
    return NULL;
}

static void test_limits_are_lambdas(void **state)
{
    struct plan_fit by_uid = example;
    struct plan plan;

    (void)state;
    assert_int_equal(plan_fit(&example, &plan), 0);
    assert_int_equal(find_limit(&plan, RLIMIT_NOFILE)->limit, 1024);
    assert_int_equal(find_limit(&plan, RLIMIT_CORE)->limit, 0);
    assert_null(find_limit(&plan, RLIMIT_NPROC)); /* the pids controller does that */
    plan_deinit(&plan);
    by_uid.limit_by_uid = true;
    assert_int_equal(plan_fit(&by_uid, &plan), 0);
    assert_int_equal(find_limit(&plan, RLIMIT_NPROC)->limit, 1025);
    plan_deinit(&plan);
}

static void test_a_plan_that_grows_too_long_says_so(void **state)
{
    static struct plan_host host = {.entry_count = PLAN_ENTRIES_MAX, .data_dir = "/d/x"};
    struct plan plan;

    (void)state;
    for (size_t i = 0; i < PLAN_ENTRIES_MAX; i++)
        host.entries[i] = (struct plan_entry){"/d", PLAN_ENTRY_DIRECTORY, NULL};
    assert_int_equal(plan_base(&host, &plan), -E2BIG);
    plan_deinit(&plan);
}

static void test_probe_of_this_host_finds_usr(void **state)
{
    struct plan_host host;
    bool found = false;

    (void)state;
    assert_int_equal(plan_probe(false, "/nowhere", &host), 0);
    for (size_t i = 0; i < host.entry_count; i++)
        found = found || (strcmp(host.entries[i].path, "/usr") == 0 && host.entries[i].kind == PLAN_ENTRY_DIRECTORY);
    assert_true(found);
    plan_host_deinit(&host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_binds_directories_read_only),
        cmocka_unit_test(test_base_keeps_links_into_usr_and_copies_the_rest),
        cmocka_unit_test(test_base_adds_the_sandboxs_names_to_the_hosts),
        cmocka_unit_test(test_base_takes_the_names_and_resolvers_of_the_network),
        cmocka_unit_test(test_base_ends_with_an_empty_bounding_set),
        cmocka_unit_test(test_base_binds_lib_of_hosts_without_merged_usr),
        cmocka_unit_test(test_base_shows_nothing_else_of_the_host),
        cmocka_unit_test(test_base_hides_a_data_directory_below_what_is_shown),
        cmocka_unit_test(test_devices_are_made_as_root_and_bound_in_a_user_namespace),
        cmocka_unit_test(test_shell_names_its_own_user),
        cmocka_unit_test(test_shell_masks_proc_after_mounting_it),
        cmocka_unit_test(test_fit_sizes_tmp_and_forbids_devices_on_it),
        cmocka_unit_test(test_fit_attaches_what_there_is),
        cmocka_unit_test(test_privileges_go_in_the_only_order_that_works),
        cmocka_unit_test(test_limits_are_lambdas),
        cmocka_unit_test(test_a_plan_that_grows_too_long_says_so),
        cmocka_unit_test(test_probe_of_this_host_finds_usr),
    };

    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
