#include "worker/runtime_choice.h"

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

static const struct runtime_bootstraps no_bootstraps;

static struct runtime_host host_with(const unsigned pythons[], const unsigned nodes[])
{
    struct runtime_host host = {0};
    char path[64];

    for (; *pythons; pythons++) {
        snprintf(path, sizeof(path), "/usr/bin/python3.%u", *pythons);
        runtime_interpreters_add(&host.python, 3, *pythons, path);
    }
    for (; *nodes; nodes++) {
        snprintf(path, sizeof(path), "/usr/bin/node%u", *nodes);
        runtime_interpreters_add(&host.node, *nodes, 1, path);
    }
    return host;
}

static void test_custom_runtime_prefers_the_package_over_layers(void **state)
{
    struct runtime_choice choice;

    (void)state;
    assert_int_equal(runtime_choose("provided.al2023", NULL, (struct runtime_bootstraps){true, true}, NULL, &choice),
                     0);
    assert_string_equal(choice.argv[0], "/var/task/bootstrap");
    assert_null(choice.argv[1]);
    assert_int_equal(runtime_choose("provided.al2", NULL, (struct runtime_bootstraps){false, true}, NULL, &choice), 0);
    assert_string_equal(choice.argv[0], "/opt/bootstrap");
}

static void test_custom_runtime_without_bootstrap_has_the_services_text(void **state)
{
    struct runtime_choice choice;

    (void)state;
    assert_int_equal(runtime_choose("provided.al2023", NULL, no_bootstraps, NULL, &choice), RUNTIME_CHOICE_NONE);
    assert_string_equal(choice.error, "Couldn't find valid bootstrap(s): [/var/task/bootstrap /opt/bootstrap]");
}

static void test_exact_version_is_taken_without_a_warning(void **state)
{
    const struct runtime_host host = host_with((unsigned[]){11, 13, 12, 0}, (unsigned[]){18, 22, 20, 0});
    struct runtime_choice choice;

    (void)state;
    assert_int_equal(runtime_choose("python3.12", &host, no_bootstraps, NULL, &choice), 0);
    assert_string_equal(choice.argv[0], "/usr/bin/python3.12");
    assert_string_equal(choice.argv[1], "-S");
    assert_string_equal(choice.argv[2], "/var/runtime/bootstrap.py");
    assert_null(choice.argv[3]);
    assert_string_equal(choice.warning, "");
    assert_int_equal(runtime_choose("nodejs20.x", &host, no_bootstraps, NULL, &choice), 0);
    assert_string_equal(choice.argv[0], "/usr/bin/node20");
    assert_string_equal(choice.argv[1], "/var/runtime/bootstrap.mjs");
    assert_string_equal(choice.warning, "");
}

static void test_a_wrapper_gets_the_command_as_its_arguments(void **state)
{
    const struct runtime_host host = host_with((unsigned[]){12, 0}, (unsigned[]){20, 0});
    struct runtime_choice choice;

    (void)state;
    assert_int_equal(runtime_choose("python3.12", &host, no_bootstraps, "/opt/wrap", &choice), 0);
    assert_string_equal(choice.argv[0], "/opt/wrap");
    assert_string_equal(choice.argv[1], "/usr/bin/python3.12");
    assert_string_equal(choice.argv[2], "/var/runtime/bootstrap.py");
    assert_null(choice.argv[3]);
    assert_string_equal(choice.wrapper, "/opt/wrap");
    assert_int_equal(runtime_choose("nodejs20.x", &host, no_bootstraps, "", &choice), 0);
    assert_string_equal(choice.argv[0], "/usr/bin/node20");
    assert_null(choice.wrapper);
    assert_int_equal(
        runtime_choose("provided.al2", NULL, (struct runtime_bootstraps){true, true}, "/opt/wrap", &choice), 0);
    assert_string_equal(choice.argv[0], "/var/task/bootstrap");
    assert_null(choice.wrapper);
}

static void test_missing_version_runs_on_the_newest_and_warns(void **state)
{
    const struct runtime_host host = host_with((unsigned[]){9, 11, 0}, (unsigned[]){18, 0});
    struct runtime_choice choice;

    (void)state;
    assert_int_equal(runtime_choose("python3.12", &host, no_bootstraps, NULL, &choice), 0);
    assert_string_equal(choice.argv[0], "/usr/bin/python3.11");
    assert_string_equal(choice.warning, "Kiln: runtime python3.12 is not installed on this host; running with "
                                        "/usr/bin/python3.11 (installed: 3.11, 3.9)\n");
    assert_int_equal(runtime_choose("nodejs22.x", &host, no_bootstraps, NULL, &choice), 0);
    assert_string_equal(choice.argv[0], "/usr/bin/node18");
    assert_non_null(strstr(choice.warning, "(installed: 18.1)"));
}

static void test_no_interpreter_and_unsupported_runtimes_are_refused(void **state)
{
    const struct runtime_host host = {0};
    struct runtime_choice choice;

    (void)state;
    assert_int_equal(runtime_choose("python3.12", &host, no_bootstraps, NULL, &choice), RUNTIME_CHOICE_NONE);
    assert_non_null(strstr(choice.error, "no python3 under /usr"));
    assert_int_equal(runtime_choose("nodejs20.x", NULL, no_bootstraps, NULL, &choice), RUNTIME_CHOICE_NONE);
    assert_non_null(strstr(choice.error, "no node under /usr"));
    assert_int_equal(runtime_choose("java21", &host, (struct runtime_bootstraps){true, true}, NULL, &choice),
                     RUNTIME_CHOICE_NONE);
    assert_non_null(strstr(choice.error, "java21"));
}

static void test_first_found_of_a_version_wins_and_the_oldest_makes_room(void **state)
{
    struct runtime_interpreters all = {0};

    (void)state;
    runtime_interpreters_add(&all, 3, 11, "/usr/local/bin/python3.11");
    runtime_interpreters_add(&all, 3, 11, "/usr/bin/python3.11");
    assert_int_equal(all.count, 1);
    assert_string_equal(all.items[0].path, "/usr/local/bin/python3.11");
    for (unsigned minor = 12; minor < 40; minor++)
        runtime_interpreters_add(&all, 3, minor, "/usr/bin/x");
    assert_int_equal(all.count, RUNTIME_INTERPRETERS_MAX);
    assert_int_equal(all.items[0].minor, 39);
    runtime_interpreters_add(&all, 3, 2, "/usr/bin/old");
    assert_int_equal(all.items[all.count - 1].minor, 24);
}

static void make_file(const char *root, const char *path, mode_t mode, const char *content)
{
    char whole[PATH_MAX];
    CLEANUP(cleanup_close) int fd = -1;

    snprintf(whole, sizeof(whole), "%s%s", root, path);
    for (char *slash = strchr(whole + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(whole, 0755);
        *slash = '/';
    }
    fd = open(whole, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, strlen(content)), (ssize_t)strlen(content));
}

static void remove_tree(const char *root)
{
    char command[PATH_MAX + 16];

    snprintf(command, sizeof(command), "rm -rf '%s'", root);
    assert_int_equal(system(command), 0);
}

static void test_probe_finds_what_is_installed(void **state)
{
    char root[] = "/tmp/kiln-probe-XXXXXX";
    struct runtime_host host;

    (void)state;
    assert_non_null(mkdtemp(root));
    make_file(root, "/usr/bin/python3.11", 0755, "");
    make_file(root, "/usr/bin/python3.11-config", 0755, "");
    make_file(root, "/usr/bin/python3.10", 0644, ""); /* not executable */
    make_file(root, "/usr/local/bin/python3.13", 0755, "");
    make_file(root, "/usr/bin/node", 0755, "#!/bin/sh\necho v20.9.0\n");
    make_file(root, "/usr/bin/nodemon", 0755, "#!/bin/sh\necho v99.0.0\n");
    make_file(root, "/usr/local/lib/nodejs/node-v22.1.0/bin/node", 0755, "#!/bin/sh\necho v22.1.0\n");
    make_file(root, "/usr/local/bin/node-18", 0755, "#!/bin/sh\nexit 1\n"); /* broken */
    runtime_probe_host(root, &host);
    remove_tree(root);
    assert_int_equal(host.python.count, 2);
    assert_int_equal(host.python.items[0].minor, 13);
    assert_int_equal(host.python.items[1].minor, 11);
    assert_int_equal(host.node.count, 2);
    assert_int_equal(host.node.items[0].major, 22);
    assert_int_equal(host.node.items[1].major, 20);
    assert_int_equal(host.node.items[1].minor, 9);
}

static void test_bootstraps_are_files_not_folders(void **state)
{
    char root[] = "/tmp/kiln-probe-XXXXXX";
    char task[PATH_MAX], layer[PATH_MAX];
    const char *layers[SANDBOX_LAYERS_MAX] = {0};
    struct runtime_bootstraps found;

    (void)state;
    assert_non_null(mkdtemp(root));
    make_file(root, "/task/bootstrap/file", 0755, "");
    make_file(root, "/layer/bootstrap", 0755, "");
    snprintf(task, sizeof(task), "%s/task", root);
    snprintf(layer, sizeof(layer), "%s/layer", root);
    layers[0] = task;
    layers[1] = layer;
    found = runtime_find_bootstraps(task, layers);
    assert_false(found.in_task);
    assert_true(found.in_layers);
    layers[1] = NULL;
    found = runtime_find_bootstraps(layer, layers);
    assert_true(found.in_task);
    assert_false(found.in_layers);
    remove_tree(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_custom_runtime_prefers_the_package_over_layers),
        cmocka_unit_test(test_custom_runtime_without_bootstrap_has_the_services_text),
        cmocka_unit_test(test_exact_version_is_taken_without_a_warning),
        cmocka_unit_test(test_a_wrapper_gets_the_command_as_its_arguments),
        cmocka_unit_test(test_missing_version_runs_on_the_newest_and_warns),
        cmocka_unit_test(test_no_interpreter_and_unsupported_runtimes_are_refused),
        cmocka_unit_test(test_first_found_of_a_version_wins_and_the_oldest_makes_room),
        cmocka_unit_test(test_probe_finds_what_is_installed),
        cmocka_unit_test(test_bootstraps_are_files_not_folders),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
