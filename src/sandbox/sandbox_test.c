/*
 * Sandboxes as they are: real namespaces, cgroups and processes, tried from inside by sandbox_probe. Needs root; the
 * rootless cases run as nobody, or alone when started by a user. argv[1] is the probe, which all must be able to read.
 */
#include "base/clock.h"
#include "sandbox/launcher.h"
#include "sandbox/peer.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

enum { BOXES_MAX = 16, WAIT_MS = 20000 };

struct box {
    bool created, failed, exited, was_reset, gone;
    struct sandbox_created made;
    struct fault fault;
    int exec_errno;
    uint32_t run;
    struct sandbox_exit exit;
    bool has_socket;
    int socket;
    uint32_t socket_tag;
    char output[16384];
    size_t output_length;
};

struct fixture {
    struct launcher *launcher;
    struct launcher_config config;
    char directory[64]; /* with the test's task, layer and data directories */
    char task[96];
    char instance[32];           /* of this process: another run may be going on */
    struct box boxes[BOXES_MAX]; /* by id */
    bool lost;
};

static const char *probe_path;

/* ---- events ---- */

static void on_created(uint64_t id, struct sandbox_created *created, void *context)
{
    struct box *box = &((struct fixture *)context)->boxes[id];

    box->created = true;
    box->made = *created;
}

static void on_create_failed(uint64_t id, const struct fault *fault, void *context)
{
    struct box *box = &((struct fixture *)context)->boxes[id];

    box->failed = true;
    box->fault = *fault;
}

static void on_process_exit(uint64_t id, uint32_t run, int exec_errno, const struct sandbox_exit *exit, void *context)
{
    struct box *box = &((struct fixture *)context)->boxes[id];

    box->exited = true;
    box->run = run;
    box->exec_errno = exec_errno;
    box->exit = *exit;
}

static void on_reset(uint64_t id, void *context)
{
    ((struct fixture *)context)->boxes[id].was_reset = true;
}

static void on_gone(uint64_t id, void *context)
{
    ((struct fixture *)context)->boxes[id].gone = true;
}

static void on_lost(void *context)
{
    ((struct fixture *)context)->lost = true;
}

static void on_socket(uint64_t id, uint32_t tag, int fd, void *context)
{
    struct box *box = &((struct fixture *)context)->boxes[id];

    box->has_socket = true;
    box->socket_tag = tag;
    box->socket = fd;
}

static const struct launcher_events events = {
    .on_created = on_created,
    .on_create_failed = on_create_failed,
    .on_process_exit = on_process_exit,
    .on_reset = on_reset,
    .on_gone = on_gone,
    .on_socket = on_socket,
    .on_lost = on_lost,
};

/* One turn of the loop a daemon would have. */
static void turn(struct fixture *fixture, int timeout_ms)
{
    struct pollfd ready = {.fd = launcher_fd(fixture->launcher), .events = POLLIN};

    if (poll(&ready, 1, timeout_ms) == 1)
        launcher_dispatch(fixture->launcher);
}

static void wait_for(struct fixture *fixture, const bool *flag, const char *what)
{
    int64_t deadline_ns = clock_monotonic_ns() + WAIT_MS * NS_PER_MS;

    while (!*flag) {
        if (clock_monotonic_ns() > deadline_ns)
            fail_msg("waited in vain for: %s", what);
        turn(fixture, 100);
    }
}

/* ---- fixture ---- */

static void copy_probe(const char *directory, mode_t mode, const char *name)
{
    char path[160], chunk[65536];
    int from = open(probe_path, O_RDONLY), to;
    ssize_t n;

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    to = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
    assert_true(from >= 0 && to >= 0);
    while ((n = read(from, chunk, sizeof(chunk))) > 0)
        assert_int_equal(write(to, chunk, (size_t)n), n);
    fchmod(to, mode);
    close(from);
    close(to);
}

static void put_file(const char *directory, const char *name, const char *text, mode_t mode)
{
    char path[160];

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
    assert_true(fd >= 0);
    fchmod(fd, mode);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static const char *make_directory(const struct fixture *fixture, const char *name, char path[96])
{
    snprintf(path, 96, "%s/%s", fixture->directory, name);
    assert_int_equal(mkdir(path, 0755), 0);
    return path;
}

static struct fixture *fixture_new(enum sandbox_network network)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    assert_non_null(fixture);
    snprintf(fixture->directory, sizeof(fixture->directory), "/tmp/kiln-sandbox-test-XXXXXX");
    assert_non_null(mkdtemp(fixture->directory));
    chmod(fixture->directory, 0755);
    make_directory(fixture, "task", fixture->task);
    copy_probe(fixture->task, 0755, "probe");
    copy_probe(fixture->task, 0644, "not-executable");
    put_file(fixture->task, "no-format", "\1\2\3\4", 0755);
    put_file(fixture->task, "writable", "", 0666);
    put_file(fixture->directory, "secret", "secret", 0644);
    snprintf(fixture->instance, sizeof(fixture->instance), "sandbox-test-%d", (int)getpid());
    fixture->config = (struct launcher_config){
        .network = network, .instance = fixture->instance, .data_dir = fixture->directory, .slots = 2};
    return fixture;
}

static void start(struct fixture *fixture)
{
    struct fault fault = {0};

    if (launcher_start(&fixture->config, &fixture->launcher, &fault) < 0)
        fail_msg("%s", fault.text);
    launcher_set_events(fixture->launcher, &events, fixture);
}

static int set_up_with(void **state, enum sandbox_network network)
{
    struct fixture *fixture = fixture_new(network);

    *state = fixture;
    start(fixture);
    return 0;
}

static int set_up(void **state)
{
    return set_up_with(state, SANDBOX_NETWORK_NONE);
}

static int set_up_host(void **state)
{
    return set_up_with(state, SANDBOX_NETWORK_HOST);
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status, (void)kind, (void)walk;
    return remove(path);
}

static void close_box(struct box *box)
{
    if (!box->created)
        return;
    cleanup_close(&box->made.api_fd);
    cleanup_close(&box->made.output_fd);
    cleanup_close(&box->made.freeze_fd);
    cleanup_close(&box->made.memory_peak_fd);
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    launcher_free(fixture->launcher);
    for (size_t i = 0; i < BOXES_MAX; i++)
        close_box(&fixture->boxes[i]);
    nftw(fixture->directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    free(fixture);
    return 0;
}

/* ---- doing things ---- */

static struct sandbox_spec spec_of(const struct fixture *fixture, uint64_t id)
{
    return (struct sandbox_spec){
        .id = id, .task_dir = fixture->task, .memory_mib = 128, .tmp_mib = 64, .cpu_boost = true};
}

static struct box *create_spec(struct fixture *fixture, const struct sandbox_spec *spec)
{
    struct box *box = &fixture->boxes[spec->id];

    *box = (struct box){0};
    assert_int_equal(launcher_create(fixture->launcher, spec), 0);
    return box;
}

static struct box *create(struct fixture *fixture, uint64_t id)
{
    struct sandbox_spec spec = spec_of(fixture, id);
    struct box *box = create_spec(fixture, &spec);
    int64_t deadline_ns = clock_monotonic_ns() + WAIT_MS * NS_PER_MS;

    while (!box->created && !box->failed && clock_monotonic_ns() < deadline_ns)
        turn(fixture, 100);
    if (!box->created)
        fail_msg("not created: %s", box->fault.text);
    return box;
}

static uint64_t id_of(const struct fixture *fixture, const struct box *box)
{
    return (uint64_t)(box - fixture->boxes);
}

static void run_program(struct fixture *fixture, struct box *box, const char *program, const char *const *arguments)
{
    const char *argv[8] = {program}, *envp[] = {"GREETING=hello", NULL};
    struct sandbox_process process = {.argv = argv, .envp = envp, .cwd = "/var/task"};

    for (size_t i = 0; arguments && arguments[i]; i++)
        argv[i + 1] = arguments[i];
    box->exited = false;
    box->output_length = 0;
    assert_int_equal(launcher_run(fixture->launcher, id_of(fixture, box), ++box->run, &process), 0);
}

#define RUN(fixture, box, ...) run_program(fixture, box, "/var/task/probe", (const char *const[]){__VA_ARGS__, NULL})

static void read_output(struct box *box)
{
    ssize_t n;

    while (box->output_length < sizeof(box->output) - 1 &&
           (n = read(box->made.output_fd, box->output + box->output_length,
                     sizeof(box->output) - 1 - box->output_length)) > 0)
        box->output_length += (size_t)n;
    box->output[box->output_length] = '\0';
}

/* Runs to the end; the exit status. */
static int finish(struct fixture *fixture, struct box *box)
{
    wait_for(fixture, &box->exited, "exit");
    read_output(box);
    assert_int_equal(box->exec_errno, 0);
    return box->exit.signal ? 1000 + box->exit.signal : box->exit.status;
}

#define TRY(fixture, box, ...) (RUN(fixture, box, __VA_ARGS__), finish(fixture, box))

static void kill_box(struct fixture *fixture, struct box *box)
{
    assert_int_equal(launcher_kill(fixture->launcher, id_of(fixture, box)), 0);
    wait_for(fixture, &box->gone, "gone");
    close_box(box);
    *box = (struct box){0};
}

static void reset_box(struct fixture *fixture, struct box *box)
{
    box->was_reset = false;
    assert_int_equal(launcher_reset(fixture->launcher, id_of(fixture, box)), 0);
    wait_for(fixture, &box->was_reset, "reset");
}

static void wait_output(struct fixture *fixture, struct box *box, size_t length)
{
    int64_t deadline_ns = clock_monotonic_ns() + WAIT_MS * NS_PER_MS;

    while (box->output_length < length) {
        struct pollfd ready = {.fd = box->made.output_fd, .events = POLLIN};
        if (clock_monotonic_ns() > deadline_ns)
            fail_msg("waited in vain for output");
        turn(fixture, 0);
        poll(&ready, 1, 50);
        read_output(box);
    }
}

/* ---- what a function sees ---- */

static void test_a_program_runs_with_its_environment(void **state)
{
    struct fixture *fixture = *state;
    struct box *box = create(fixture, 1);

    assert_int_equal(TRY(fixture, box, "env", "GREETING"), 0);
    assert_string_equal(box->output, "hello");
    assert_int_equal(TRY(fixture, box, "env", "AWS_LAMBDA_RUNTIME_API"), 0);
    assert_string_equal(box->output, "169.254.100.1:9001");
    assert_string_equal(box->made.api_address, "169.254.100.1:9001");
    assert_int_equal(TRY(fixture, box, "exit", "7"), 7);
    assert_int_equal(TRY(fixture, box, "hostname"), 0);
    assert_int_equal(strncmp(box->output, "169-254-", 8), 0);
}

static void test_run_may_follow_create_at_once(void **state)
{
    struct fixture *fixture = *state;
    struct sandbox_spec spec = spec_of(fixture, 1);
    struct box *box = create_spec(fixture, &spec);

    RUN(fixture, box, "exit", "3");
    wait_for(fixture, &box->exited, "exit");
    assert_true(box->created);
    assert_int_equal(box->exit.status, 3);
}

static void test_only_own_processes_are_seen(void **state)
{
    struct fixture *fixture = *state;
    struct box *box = create(fixture, 1);
    char path[32];
    int seen = 0;

    snprintf(path, sizeof(path), "/proc/%d", (int)getpid());
    for (int pid = 1; pid < 50; pid++) {
        snprintf(path, sizeof(path), "/proc/%d", pid);
        seen += TRY(fixture, box, "exists", path) == 0;
    }
    /* init, and the probe when its own number came up */
    assert_in_range(seen, 1, 2);
    snprintf(path, sizeof(path), "/proc/%d", (int)launcher_pid(fixture->launcher));
    assert_int_equal(TRY(fixture, box, "exists", path), ENOENT);
}

static void test_nothing_can_be_written_but_tmp(void **state)
{
    static const struct {
        const char *path;
        int error;
    } places[] = {
        {"/x", EROFS},
        {"/usr/x", EROFS},
        {"/etc/x", EROFS},
        {"/var/task/x", EROFS},
        {"/opt/x", EROFS},
        {"/var/x", EROFS},
        {"/var/runtime/x", EROFS},
        {"/dev/x", EROFS},
        {"/proc/x", ENOENT},
        {"/mnt/x", EROFS},
        {"/home/x", ENOENT},
        {"/root/x", ENOENT},
        {"/usr/bin/x", EROFS},
        {"/run/x", EROFS},
        {"/tmp/x", 0},
        {"/dev/shm/x", 0},
        {"/var/lib/x", EROFS},
        {"/sys/x", EROFS},
        {"/etc/ssl/certs/x", EROFS},
    };
    struct fixture *fixture = *state;
    struct box *box = create(fixture, 1);

    for (size_t i = 0; i < ARRAY_SIZE(places); i++)
        if (TRY(fixture, box, "create", places[i].path) != places[i].error)
            fail_msg("%s: errno %d, not %d", places[i].path, box->exit.status, places[i].error);
    assert_int_equal(TRY(fixture, box, "open-write", "/var/task/writable"), EROFS);
    assert_int_equal(TRY(fixture, box, "open-write", "/etc/passwd"), EACCES);
    assert_int_equal(TRY(fixture, box, "open-write", "/proc/sys/kernel/core_pattern"), EACCES);
    assert_int_equal(TRY(fixture, box, "open-write", "/dev/null"), 0);
}

static void test_the_host_is_not_seen(void **state)
{
    static const char *const absent[] = {"/root",           "/home",    "/srv",          "/boot",       "/etc/shadow",
                                         "/etc/machine-id", "/var/log", "/var/lib/dpkg", "/sys/kernel", "/run/lock"};
    struct fixture *fixture = *state;
    struct box *box = create(fixture, 1);
    char path[128];

    for (size_t i = 0; i < ARRAY_SIZE(absent); i++)
        if (TRY(fixture, box, "exists", absent[i]) != ENOENT)
            fail_msg("%s: errno %d", absent[i], box->exit.status);
    snprintf(path, sizeof(path), "%s/secret", fixture->directory);
    assert_int_equal(TRY(fixture, box, "cat", path), ENOENT);
    assert_int_equal(TRY(fixture, box, "cat", "/proc/1/root/etc/shadow"), EACCES);
    assert_int_equal(TRY(fixture, box, "cat", "/proc/1/environ"), EACCES);
    assert_int_equal(TRY(fixture, box, "cat", "/etc/passwd"), 0);
    assert_non_null(strstr(box->output, "sbx_user1051:x:"));
    assert_null(strstr(box->output, "/bin/")); /* no account that anybody logs in to */
}

static void test_files_of_proc_about_the_host_are_empty(void **state)
{
    static const char *const masked[] = {"/proc/kcore",    "/proc/keys",       "/proc/timer_list",
                                         "/proc/kallsyms", "/proc/interrupts", "/proc/sysrq-trigger"};
    struct fixture *fixture = *state;
    struct box *box = create(fixture, 1);
    int tried = 0;

    for (size_t i = 0; i < ARRAY_SIZE(masked); i++) {
        if (access(masked[i], F_OK) < 0)
            continue;
        tried++;
        assert_int_equal(TRY(fixture, box, "cat", masked[i]), 0);
        assert_int_equal(box->output_length, 0);
    }
    assert_true(tried > 0);
    assert_int_equal(TRY(fixture, box, "cat", "/proc/self/mounts"), 0);
    assert_non_null(strstr(box->output, " /proc/sys proc ro"));
}

static void test_mounts_do_not_name_the_host(void **state)
{
    struct fixture *fixture = *state;
    struct box *box = create(fixture, 1);

    assert_int_equal(TRY(fixture, box, "cat", "/proc/self/cgroup"), 0);
    assert_null(strstr(box->output, "kiln"));
    assert_int_equal(TRY(fixture, box, "cat", "/proc/self/mounts"), 0);
    assert_non_null(strstr(box->output, " /tmp tmpfs rw,nosuid,nodev"));
    assert_non_null(strstr(box->output, " /var/task "));
}

static const char *status_line(const struct box *box, const char *name, char value[64])
{
    const char *line = strstr(box->output, name);

    assert_non_null(line);
    assert_int_equal(sscanf(line + strlen(name), " %63[^\n]", value) <= 1, 1);
    return value;
}

static void test_no_privilege_is_left(void **state)
{
    static const char *const sets[] = {"CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"};
    struct fixture *fixture = *state;
    struct box *box = create(fixture, 1);
    char value[64], expected[64];
    unsigned uid = box->made.uid;

    assert_int_equal(TRY(fixture, box, "cat", "/proc/self/status"), 0);
    for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
        assert_string_equal(status_line(box, sets[i], value), "0000000000000000");
    assert_string_equal(status_line(box, "NoNewPrivs:", value), "1");
    assert_string_equal(status_line(box, "Seccomp:", value), "2");
    snprintf(expected, sizeof(expected), "%u\t%u\t%u\t%u", uid, uid, uid, uid);
    assert_string_equal(status_line(box, "Uid:", value), expected);
    assert_string_equal(status_line(box, "Gid:", value), expected);
    assert_non_null(strstr(box->output, "Groups:\t \n"));
    assert_true(uid >= 200000);
}

static void test_init_keeps_no_privilege_either(void **state)
{
    struct fixture *fixture = *state;
    struct box *box = create(fixture, 1);
    char value[64];

    assert_int_equal(TRY(fixture, box, "cat", "/proc/1/status"), 0);
    assert_string_equal(status_line(box, "CapEff:", value), "0000000000000000");
    assert_string_equal(status_line(box, "CapBnd:", value), "0000000000000000");
    assert_string_equal(status_line(box, "Seccomp:", value), "2");
}

static void test_forbidden_calls_fail(void **state)
{
    static const struct {
        const char *call;
        int error;
    } calls[] = {{"mount", EPERM},      {"umount", EPERM},    {"unshare-user", EPERM}, {"unshare-fs", EPERM},
                 {"clone-user", EPERM}, {"clone-net", EPERM}, {"clone3", ENOSYS},      {"chroot", EPERM},
                 {"bpf", EPERM},        {"keyctl", EPERM},    {"io_uring", ENOSYS},    {"ptrace-init", EPERM},
                 {"kill-init", 0},      {"setuid", EPERM},    {"mknod", EPERM},        {"chmod-root", EROFS},
                 {"sethostname", EPERM}};
    struct fixture *fixture = *state;
    struct box *box = create(fixture, 1);

    for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
        if (TRY(fixture, box, "call", calls[i].call) != calls[i].error)
            fail_msg("%s: errno %d, not %d", calls[i].call, box->exit.status, calls[i].error);
    /* kill-init "succeeded": a pid 1 does not get signals from inside. */
    assert_int_equal(TRY(fixture, box, "exit", "0"), 0);
    assert_false(box->gone);
}

static void test_stdout_can_be_opened_by_name(void **state)
{
    struct fixture *fixture = *state;
    struct box *box = create(fixture, 1);

    assert_int_equal(TRY(fixture, box, "reopen-stdout", "again"), 0);
    assert_string_equal(box->output, "again");
}

static void test_dynamic_programs_and_scripts_of_the_host_run(void **state)
{
    struct fixture *fixture = *state;
    struct box *box = create(fixture, 1);

    run_program(fixture, box, "/bin/sh", (const char *const[]){"-c", "echo $GREETING; ls /var/task | wc -l", NULL});
    assert_int_equal(finish(fixture, box), 0);
    assert_string_equal(box->output, "hello\n4\n");
}

static void test_layers_are_merged_and_later_ones_win(void **state)
{
    struct fixture *fixture = *state;
    struct sandbox_spec spec = spec_of(fixture, 1);
    char first[96], second[96], runtime[96];
    struct box *box;

    put_file(make_directory(fixture, "layer:1", first), "both", "first", 0644);
    put_file(first, "one", "1", 0644);
    put_file(make_directory(fixture, "layer2", second), "both", "second", 0644);
    put_file(make_directory(fixture, "runtime", runtime), "bootstrap", "rt", 0644);
    spec.layer_dirs[0] = first;
    spec.layer_dirs[1] = second;
    spec.runtime_dir = runtime;
    box = create_spec(fixture, &spec);
    wait_for(fixture, &box->created, "created");
    assert_int_equal(TRY(fixture, box, "cat", "/opt/both"), 0);
    assert_string_equal(box->output, "second");
    assert_int_equal(TRY(fixture, box, "cat", "/opt/one"), 0);
    assert_string_equal(box->output, "1");
    assert_int_equal(TRY(fixture, box, "create", "/opt/x"), EROFS);
    assert_int_equal(TRY(fixture, box, "cat", "/var/runtime/bootstrap"), 0);
    assert_string_equal(box->output, "rt");
}

static void test_one_layer_is_shown_as_it_is(void **state)
{
    struct fixture *fixture = *state;
    struct sandbox_spec spec = spec_of(fixture, 1);
    char layer[96];
    struct box *box;

    put_file(make_directory(fixture, "layer", layer), "file", "text", 0644);
    spec.layer_dirs[0] = layer;
    box = create_spec(fixture, &spec);
    wait_for(fixture, &box->created, "created");
    assert_int_equal(TRY(fixture, box, "cat", "/opt/file"), 0);
    assert_string_equal(box->output, "text");
    assert_int_equal(TRY(fixture, box, "create", "/opt/x"), EROFS);
}

/* ---- failures ---- */

static void test_a_missing_task_directory_fails_the_create(void **state)
{
    struct fixture *fixture = *state;
    struct sandbox_spec spec = spec_of(fixture, 1);
    struct box *box;

    spec.task_dir = "/nonexistent/code";
    box = create_spec(fixture, &spec);
    wait_for(fixture, &box->failed, "failure");
    assert_int_equal(box->fault.error, ENOENT);
    assert_non_null(strstr(box->fault.text, "/nonexistent/code"));
    /* The id is free again. */
    create(fixture, 1);
}

static void test_an_id_in_use_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct box *box = create(fixture, 1);
    struct sandbox_spec spec = spec_of(fixture, 1);

    assert_int_equal(launcher_create(fixture->launcher, &spec), 0);
    wait_for(fixture, &box->failed, "failure");
    assert_int_equal(box->fault.error, EEXIST);
    assert_int_equal(TRY(fixture, box, "exit", "0"), 0);
}

/* A create that arrives without its descriptors is reported, undone, and does not disturb the next. */
static void test_a_daemon_out_of_descriptors_hears_of_it(void **state)
{
    struct fixture *fixture = *state;
    struct sandbox_spec spec = spec_of(fixture, 1);
    struct rlimit old, tight;
    struct box *box;
    int next = dup(0);

    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    tight = old;
    tight.rlim_cur = (rlim_t)next + 2;
    box = create_spec(fixture, &spec);
    setrlimit(RLIMIT_NOFILE, &tight);
    wait_for(fixture, &box->failed, "failure");
    setrlimit(RLIMIT_NOFILE, &old);
    assert_int_equal(box->fault.error, EMFILE);
    for (int i = 0; i < 50; i++)
        turn(fixture, 10);
    assert_false(box->gone); /* the failure was its last event */
    assert_int_equal(dup(0), next);
    close(next);
    box = create(fixture, 1);
    assert_int_equal(TRY(fixture, box, "exit", "0"), 0);
}

static void test_exec_errors_are_reported(void **state)
{
    static const struct {
        const char *program;
        int error;
    } programs[] = {{"/var/task/nowhere", ENOENT},
                    {"/var/task/not-executable", EACCES},
                    {"/var/task/no-format", ENOEXEC},
                    {"/var/task", EACCES},
                    {"/var/task/probe/x", ENOTDIR}};
    struct fixture *fixture = *state;
    struct box *box = create(fixture, 1);

    for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
        run_program(fixture, box, programs[i].program, NULL);
        wait_for(fixture, &box->exited, "exec error");
        assert_int_equal(box->exec_errno, programs[i].error);
    }
    assert_int_equal(TRY(fixture, box, "exit", "0"), 0);
}

static void test_processes_live_beside_each_other(void **state)
{
    struct fixture *fixture = *state;
    struct box *box = create(fixture, 1);

    RUN(fixture, box, "sleep");
    RUN(fixture, box, "sleep");
    wait_output(fixture, box, 2 * strlen("ready"));
    RUN(fixture, box, "exit", "3");
    wait_for(fixture, &box->exited, "exit of the third");
    assert_int_equal(box->run, 3);
    assert_int_equal(box->exit.status, 3);
    box->exited = false;
    assert_int_equal(launcher_signal(fixture->launcher, 1, 1, SIGTERM), 0);
    wait_for(fixture, &box->exited, "exit of the first");
    assert_int_equal(box->run, 1);
    assert_int_equal(box->exit.signal, SIGTERM);
    box->exited = false;
    reset_box(fixture, box);
    assert_true(box->exited);
    assert_int_equal(box->run, 2);
    assert_int_equal(box->exit.signal, SIGKILL);
}

static void test_too_many_processes_are_refused(void **state)
{
    struct fixture *fixture = *state;
    struct box *box = create(fixture, 1);

    for (int i = 0; i < SANDBOX_PROCESSES_MAX; i++)
        RUN(fixture, box, "sleep");
    wait_output(fixture, box, SANDBOX_PROCESSES_MAX * strlen("ready"));
    RUN(fixture, box, "exit", "0");
    wait_for(fixture, &box->exited, "refusal");
    assert_int_equal(box->exec_errno, EBUSY);
    assert_int_equal(box->run, SANDBOX_PROCESSES_MAX + 1);
    box->exited = false;
    assert_int_equal(launcher_signal(fixture->launcher, 1, 5, SIGKILL), 0);
    wait_for(fixture, &box->exited, "exit");
    box->run = SANDBOX_PROCESSES_MAX + 1;
    assert_int_equal(TRY(fixture, box, "exit", "4"), 4); /* its place is free again */
}

static void test_a_process_may_write_into_a_pipe_of_its_own(void **state)
{
    const char *const argv[] = {"/var/task/probe", "reopen-stdout", "apart", NULL}, *const envp[] = {NULL};
    struct fixture *fixture = *state;
    struct box *box = create(fixture, 1);
    char text[16] = "";
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    const struct sandbox_process process = {.argv = argv, .envp = envp, .cwd = "/", .output_fd = ends[1]};
    assert_int_equal(launcher_run(fixture->launcher, 1, ++box->run, &process), 0);
    close(ends[1]);
    assert_int_equal(finish(fixture, box), 0);
    assert_int_equal(box->output_length, 0);
    assert_int_equal(read(ends[0], text, sizeof(text) - 1), strlen("apart"));
    assert_string_equal(text, "apart");
    assert_int_equal(read(ends[0], text, sizeof(text)), 0); /* nobody holds it any more */
    close(ends[0]);
}

/* Asks for a socket and connects it to the loopback inside; the errno that comes of it. */
static int connect_inside(struct fixture *fixture, struct box *box, uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct pollfd ready = {.events = POLLOUT};
    int error = 0;
    socklen_t length = sizeof(error);

    assert_int_equal(launcher_socket(fixture->launcher, id_of(fixture, box), 77), 0);
    wait_for(fixture, &box->has_socket, "socket");
    assert_int_equal(box->socket_tag, 77);
    ready.fd = box->socket;
    if (connect(box->socket, (struct sockaddr *)&address, sizeof(address)) < 0)
        assert_int_equal(errno, EINPROGRESS);
    assert_int_equal(poll(&ready, 1, WAIT_MS), 1);
    assert_int_equal(getsockopt(box->socket, SOL_SOCKET, SO_ERROR, &error, &length), 0);
    return error;
}

static void test_a_socket_reaches_what_listens_inside(void **state)
{
    struct fixture *fixture = *state;
    struct box *other = create(fixture, 1), *box = create(fixture, 2);
    struct pollfd ready = {.events = POLLIN};
    char text[8] = "";

    RUN(fixture, box, "listen", "18181");
    wait_output(fixture, box, strlen("ready"));
    assert_int_equal(connect_inside(fixture, other, 18181), ECONNREFUSED);
    assert_int_equal(connect_inside(fixture, box, 18181), 0);
    assert_int_equal(write(box->socket, "ping", 4), 4);
    ready.fd = box->socket;
    assert_int_equal(poll(&ready, 1, WAIT_MS), 1);
    assert_int_equal(read(box->socket, text, sizeof(text) - 1), 4);
    assert_string_equal(text, "ping");
    close(other->socket);
    close(box->socket);
    assert_int_equal(finish(fixture, box), 0);
}

static void test_signals_reach_the_process(void **state)
{
    struct fixture *fixture = *state;
    struct box *box = create(fixture, 1);

    RUN(fixture, box, "sleep");
    wait_output(fixture, box, strlen("ready"));
    assert_int_equal(launcher_signal(fixture->launcher, 1, 1, SIGTERM), 0);
    wait_for(fixture, &box->exited, "exit");
    assert_int_equal(box->exit.signal, SIGTERM);
    assert_false(box->exit.out_of_memory);
}

/* ---- limits ---- */

static void test_processes_are_limited(void **state)
{
    struct fixture *fixture = *state;
    struct box *box = create(fixture, 1);

    assert_int_equal(TRY(fixture, box, "forks"), EAGAIN);
    assert_int_equal(atoi(box->output), 1024);
    kill_box(fixture, box);
}

static void test_files_are_limited(void **state)
{
    struct fixture *fixture = *state;
    struct box *box = create(fixture, 1);

    assert_int_equal(TRY(fixture, box, "files"), EMFILE);
    assert_int_equal(atoi(box->output), 1024);
}

static void test_memory_within_the_limit_is_granted(void **state)
{
    struct fixture *fixture = *state;
    struct box *box = create(fixture, 1);

    assert_int_equal(TRY(fixture, box, "alloc", "110"), 0);
    assert_string_equal(box->output, "allocated");
}

static void test_memory_past_the_limit_kills(void **state)
{
    struct fixture *fixture = *state;
    struct box *box = create(fixture, 1);

    /* Within memory + /tmp, so that it is not the kernel's limit that strikes; and past it. */
    for (int i = 0; i < 2; i++) {
        RUN(fixture, box, "alloc", i == 0 ? "150" : "1000", "5");
        assert_int_equal(finish(fixture, box), 1000 + SIGKILL);
        assert_true(box->exit.out_of_memory);
        reset_box(fixture, box);
        assert_int_equal(TRY(fixture, box, "alloc", "100"), 0);
        assert_false(box->exit.out_of_memory);
    }
}

static void test_tmp_full_is_enospc_and_not_memory(void **state)
{
    struct fixture *fixture = *state;
    struct sandbox_spec spec = spec_of(fixture, 1);
    struct box *box;

    spec.tmp_mib = 512;
    box = create_spec(fixture, &spec);
    wait_for(fixture, &box->created, "created");
    assert_int_equal(TRY(fixture, box, "fill", "/tmp/fill", "1000"), ENOSPC);
    assert_in_range(atoi(box->output), 511, 512);
    /* And memory is still all there, and still limited. */
    assert_int_equal(TRY(fixture, box, "alloc", "110"), 0);
    RUN(fixture, box, "alloc", "150", "5");
    assert_int_equal(finish(fixture, box), 1000 + SIGKILL);
    assert_true(box->exit.out_of_memory);
}

static void test_tmp_given_back_is_not_memory_gained(void **state)
{
    struct fixture *fixture = *state;
    struct sandbox_spec spec = spec_of(fixture, 1);
    struct box *box;

    spec.tmp_mib = 512;
    box = create_spec(fixture, &spec);
    wait_for(fixture, &box->created, "created");
    RUN(fixture, box, "fill-then-alloc", "400", "200", "5");
    assert_int_equal(finish(fixture, box), 1000 + SIGKILL);
    assert_true(box->exit.out_of_memory);
}

static void test_page_cache_is_not_memory_but_hides_none(void **state)
{
    struct fixture *fixture = *state;
    struct box *box;
    char big[160];

    snprintf(big, sizeof(big), "%s/big", fixture->task);
    int fd = open(big, O_WRONLY | O_CREAT, 0644);
    static char chunk[1 << 20];
    for (int i = 0; i < 300; i++)
        assert_int_equal(write(fd, chunk, sizeof(chunk)), sizeof(chunk));
    /* Out of the cache, so that the sandbox is charged for it. */
    fsync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
    box = create(fixture, 1);
    assert_int_equal(TRY(fixture, box, "cache-then-alloc", "/var/task/big", "100"), 0);
    RUN(fixture, box, "cache-then-alloc", "/var/task/big", "160", "5");
    assert_int_equal(finish(fixture, box), 1000 + SIGKILL);
    assert_true(box->exit.out_of_memory);
}

static void test_dev_shm_counts_as_memory(void **state)
{
    struct fixture *fixture = *state;
    struct sandbox_spec spec = spec_of(fixture, 1);
    struct box *box;

    spec.memory_mib = 256;
    spec.tmp_mib = 512;
    box = create_spec(fixture, &spec);
    wait_for(fixture, &box->created, "created");
    assert_int_equal(TRY(fixture, box, "fill", "/dev/shm/x", "200"), 0);
    RUN(fixture, box, "alloc", "100", "5");
    assert_int_equal(finish(fixture, box), 1000 + SIGKILL);
    assert_true(box->exit.out_of_memory);
}

static void test_memory_peak_is_told(void **state)
{
    struct fixture *fixture = *state;
    struct box *box = create(fixture, 1);
    char text[32] = "";

    if (box->made.memory_peak_fd < 0)
        skip();
    assert_int_equal(TRY(fixture, box, "alloc", "60"), 0);
    assert_true(pread(box->made.memory_peak_fd, text, sizeof(text) - 1, 0) > 0);
    assert_in_range(strtoull(text, NULL, 10), 60u << 20, 128u << 20);
}

/* A figure of the first slot's cpu.stat, in whichever tree has it. */
static int64_t cpu_figure(const struct fixture *fixture, const char *name)
{
    static const char *const trees[] = {"cpu/", "cpu,cpuacct/", "", "unified/"};
    char path[96], text[1024], *line = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(trees) && !line; i++) {
        snprintf(path, sizeof(path), "/sys/fs/cgroup/%skiln/%s/s0/cpu.stat", trees[i], fixture->instance);
        FILE *file = fopen(path, "r");
        if (!file)
            continue;
        text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
        fclose(file);
        line = strstr(text, name);
    }
    assert_non_null(line);
    return atoll(line + strlen(name));
}

/* Says what holds on a loaded machine too: whether the quota was ever hit, and that it is not exceeded. */
static void test_cpu_follows_memory(void **state)
{
    struct fixture *fixture = *state;
    struct box *box = create(fixture, 1);
    int64_t start_ns, used_us;

    RUN(fixture, box, "spin");
    poll(NULL, 0, 300);
    assert_int_equal(cpu_figure(fixture, "nr_throttled "), 0); /* boosted */
    assert_int_equal(launcher_limit_cpu(fixture->launcher, 1), 0);
    poll(NULL, 0, 200);
    start_ns = clock_monotonic_ns();
    used_us = cpu_figure(fixture, "usage_usec ");
    poll(NULL, 0, 1000);
    used_us = cpu_figure(fixture, "usage_usec ") - used_us;
    assert_true(cpu_figure(fixture, "nr_throttled ") > 0);
    /* 128 MB of 1,769: 72 ms of a second, and some slack for the last period. */
    assert_in_range(used_us, 1, (clock_monotonic_ns() - start_ns) / NS_PER_US * 128 / 1769 + 10000);
}

/* ---- freezing ---- */

static void freeze(const struct box *box, const char *value)
{
    assert_int_equal(write(box->made.freeze_fd, value, 1), 1);
}

static void test_frozen_means_no_cpu(void **state)
{
    struct fixture *fixture = *state;
    struct box *box = create(fixture, 1);
    size_t length;

    if (box->made.freeze_fd < 0)
        skip();
    RUN(fixture, box, "tick");
    wait_output(fixture, box, 5);
    freeze(box, "1");
    poll(NULL, 0, 50); /* freezing is asynchronous */
    read_output(box);
    int64_t before_us = cpu_figure(fixture, "usage_usec ");
    length = box->output_length;
    poll(NULL, 0, 300);
    assert_int_equal(cpu_figure(fixture, "usage_usec "), before_us);
    read_output(box);
    assert_int_equal(box->output_length, length);
    freeze(box, "0");
    wait_output(fixture, box, length + 5);
}

static void test_frozen_sandboxes_can_be_killed_and_reset(void **state)
{
    struct fixture *fixture = *state;
    struct box *box = create(fixture, 1);

    RUN(fixture, box, "tick");
    wait_output(fixture, box, 1);
    freeze(box, "1");
    reset_box(fixture, box);
    assert_true(box->exited);
    assert_int_equal(box->exit.signal, SIGKILL);
    assert_int_equal(TRY(fixture, box, "exit", "4"), 4);
    RUN(fixture, box, "tick");
    wait_output(fixture, box, 1);
    freeze(box, "1");
    kill_box(fixture, box);
}

/* ---- ends ---- */

static void test_reset_keeps_tmp_and_nothing_else(void **state)
{
    struct fixture *fixture = *state;
    struct box *box = create(fixture, 1);

    assert_int_equal(TRY(fixture, box, "fill", "/tmp/kept", "3"), 0);
    assert_int_equal(TRY(fixture, box, "leave-shared"), 0);
    assert_int_equal(TRY(fixture, box, "find-shared"), 1);
    RUN(fixture, box, "sleep");
    wait_output(fixture, box, strlen("ready"));
    reset_box(fixture, box);
    assert_true(box->exited); /* told before the reset is */
    assert_int_equal(box->exit.signal, SIGKILL);
    assert_false(box->exit.out_of_memory);
    assert_int_equal(TRY(fixture, box, "size", "/tmp/kept"), 0);
    assert_string_equal(box->output, "3145728");
    assert_int_equal(TRY(fixture, box, "find-shared"), 0);
}

/* The write end is closed when the last process inside is gone; init's goes with the sandbox. */
static void assert_silent(struct box *box)
{
    size_t before;

    read_output(box);
    before = box->output_length;
    poll(NULL, 0, 100);
    read_output(box);
    assert_int_equal(box->output_length, before);
}

static void test_nothing_outlives_a_reset(void **state)
{
    static const char *const ways[] = {"daemon", "runner"};
    struct fixture *fixture = *state;
    struct box *box = create(fixture, 1);

    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        assert_int_equal(TRY(fixture, box, ways[i]), 0);
        reset_box(fixture, box);
        assert_silent(box);
        char path[32];
        for (int pid = 2; pid < 5; pid++) {
            snprintf(path, sizeof(path), "/proc/%d", pid);
            assert_int_equal(TRY(fixture, box, "exists", path), ENOENT);
        }
    }
}

static void test_nothing_outlives_a_kill(void **state)
{
    static const char *const ways[] = {"daemon", "runner", "forks", "sleep"};
    struct fixture *fixture = *state;

    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        struct box *box = create(fixture, 1);
        char c;
        RUN(fixture, box, ways[i]);
        poll(NULL, 0, 50);
        assert_int_equal(launcher_kill(fixture->launcher, 1), 0);
        wait_for(fixture, &box->gone, "gone");
        read_output(box);
        assert_int_equal(read(box->made.output_fd, &c, 1), 0); /* end of file: nobody is left to write */
        close_box(box);
        *box = (struct box){0};
    }
}

/* A tree that any host with cgroups has. */
static const char *cgroup_root(void)
{
    return access("/sys/fs/cgroup/pids", F_OK) == 0 ? "/sys/fs/cgroup/pids" : "/sys/fs/cgroup";
}

static bool cgroups_exist(const struct fixture *fixture)
{
    static const char *const trees[] = {"", "unified/", "memory/", "cpu/", "pids/"};
    char path[96];

    for (size_t i = 0; i < ARRAY_SIZE(trees); i++) {
        snprintf(path, sizeof(path), "/sys/fs/cgroup/%skiln/%s", trees[i], fixture->instance);
        if (access(path, F_OK) == 0)
            return true;
    }
    return false;
}

static void test_a_killed_launcher_takes_everything_along(void **state)
{
    struct fixture *fixture = *state;
    struct box *box = create(fixture, 1);
    char c;

    assert_int_equal(TRY(fixture, box, "daemon"), 0);
    assert_true(cgroups_exist(fixture));
    kill(launcher_pid(fixture->launcher), SIGKILL);
    wait_for(fixture, &fixture->lost, "loss");
    assert_false(cgroups_exist(fixture));
    read_output(box);
    assert_int_equal(read(box->made.output_fd, &c, 1), 0);
    assert_int_equal(launcher_kill(fixture->launcher, 1), -ECONNRESET);
}

/* A daemon of its own in a child; it tells its launcher's pid and is killed. */
static void test_a_killed_daemon_leaves_nothing(void **state)
{
    struct fixture *fixture = *state;
    int pipes[2], output;
    pid_t daemon, launcher = 0;
    char c;

    launcher_free(TAKE_PTR(fixture->launcher));
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    daemon = fork();
    if (daemon == 0) {
        start(fixture);
        struct box *box = create(fixture, 1);
        assert_int_equal(TRY(fixture, box, "daemon"), 0);
        launcher = launcher_pid(fixture->launcher);
        if (write(pipes[1], &launcher, sizeof(launcher)) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(pipes[0], &launcher, sizeof(launcher)), sizeof(launcher));
    assert_true(cgroups_exist(fixture));
    kill(daemon, SIGKILL);
    waitpid(daemon, NULL, 0);
    output = 0;
    for (int i = 0; i < 500 && (kill(launcher, 0) == 0 || cgroups_exist(fixture)); i++)
        poll(NULL, 0, 10);
    (void)output, (void)c;
    assert_int_equal(kill(launcher, 0), -1);
    assert_false(cgroups_exist(fixture));
    close(pipes[0]);
    close(pipes[1]);
}

/* Both killed at once: the next start finds what is left and removes it. */
static void test_a_start_removes_leftovers(void **state)
{
    struct fixture *fixture = *state;
    char path[96];

    launcher_free(TAKE_PTR(fixture->launcher));
    assert_false(cgroups_exist(fixture));
    snprintf(path, sizeof(path), "%s/kiln", cgroup_root());
    mkdir(path, 0755);
    snprintf(path, sizeof(path), "%s/kiln/%s", cgroup_root(), fixture->instance);
    mkdir(path, 0755);
    strcat(path, "/s5");
    if (mkdir(path, 0755) < 0)
        skip();
    start(fixture);
    assert_int_equal(access(path, F_OK), -1);
    create(fixture, 1);
}

static void test_signals_for_the_daemon_do_not_end_the_launcher(void **state)
{
    struct fixture *fixture = *state;
    struct box *box = create(fixture, 1);

    kill(launcher_pid(fixture->launcher), SIGTERM);
    kill(launcher_pid(fixture->launcher), SIGINT);
    kill(launcher_pid(fixture->launcher), SIGHUP);
    assert_int_equal(TRY(fixture, box, "exit", "0"), 0);
}

/* ---- network ---- */

static void test_slots_are_recycled_with_a_new_socket(void **state)
{
    struct fixture *fixture = *state;
    uid_t uids[6];
    int old_api = -1;

    for (int i = 0; i < 6; i++) {
        struct box *box = create(fixture, 1);
        uids[i] = box->made.uid;
        assert_int_equal(TRY(fixture, box, "connect", "169.254.100.1", "9001"), 0);
        /* The connection of the probe is waiting in this socket's queue, and nowhere else. */
        int connection = accept(box->made.api_fd, NULL, NULL);
        assert_true(connection >= 0);
        close(connection);
        assert_int_equal(TRY(fixture, box, "connect", "169.254.100.1", "9001"), 0);
        if (old_api >= 0) {
            assert_int_equal(accept(old_api, NULL, NULL), -1);
            close(old_api);
        }
        old_api = TAKE_FD(box->made.api_fd);
        kill_box(fixture, box);
    }
    close(old_api);
    /* Two slots were made ahead and six sandboxes were made. */
    int distinct = 0;
    for (int i = 0; i < 6; i++) {
        bool seen = false;
        for (int j = 0; j < i; j++)
            seen = seen || uids[i] == uids[j];
        distinct += !seen;
    }
    assert_in_range(distinct, 1, 4);
}

static void test_no_sandbox_reaches_anothers_api_or_the_host(void **state)
{
    struct fixture *fixture = *state;
    struct box *a = create(fixture, 1), *b = create(fixture, 2);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int host = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char port[8];

    assert_int_equal(bind(host, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(host, 4), 0);
    assert_int_equal(getsockname(host, (struct sockaddr *)&address, &length), 0);
    snprintf(port, sizeof(port), "%d", ntohs(address.sin_port));
    /* The same address in each, but what connects in A arrives at A's socket alone. */
    assert_int_equal(TRY(fixture, a, "connect", "169.254.100.1", "9001"), 0);
    assert_int_equal(accept(b->made.api_fd, NULL, NULL), -1);
    assert_int_equal(errno, EAGAIN);
    int connection = accept(a->made.api_fd, NULL, NULL);
    assert_true(connection >= 0);
    close(connection);
    assert_int_equal(TRY(fixture, a, "connect", "127.0.0.1", port), ECONNREFUSED);
    assert_int_equal(TRY(fixture, a, "connect", "192.0.2.1", "80"), ENETUNREACH);
    close(host);
}

static int accept_within(int listener, int timeout_ms)
{
    struct pollfd ready = {.fd = listener, .events = POLLIN};

    return poll(&ready, 1, timeout_ms) == 1 ? accept(listener, NULL, NULL) : -1;
}

static void test_host_network_tells_peers_apart(void **state)
{
    struct fixture *fixture = *state;
    struct box *boxes[] = {create(fixture, 1), create(fixture, 2)};
    const char *port = strchr(boxes[0]->made.api_address, ':') + 1;
    struct peer peer;

    assert_int_equal(strncmp(boxes[0]->made.api_address, "127.0.0.1:", 10), 0);
    assert_true(boxes[0]->made.uid != boxes[1]->made.uid);
    for (int i = 0; i < 2; i++) {
        RUN(fixture, boxes[i], "connect", "127.0.0.1", port, "wait");
        int connection = accept_within(boxes[0]->made.api_fd, 5000);
        assert_true(connection >= 0);
        assert_int_equal(peer_of_tcp(connection, &peer), 0);
        assert_int_equal(peer.uid, boxes[i]->made.uid);
        assert_int_equal(boxes[i]->made.init_pid, 0); /* the uid is enough */
        close(connection);
        finish(fixture, boxes[i]);
    }
}

static void test_a_peer_that_is_gone_has_no_uid(void **state)
{
    struct fixture *fixture = *state;
    struct box *box = create(fixture, 1);
    const char *port = strchr(box->made.api_address, ':') + 1;
    struct peer peer;

    assert_int_equal(TRY(fixture, box, "connect", "127.0.0.1", port), 0);
    int connection = accept_within(box->made.api_fd, 5000);
    assert_true(connection >= 0);
    assert_int_equal(peer_of_tcp(connection, &peer), -ENOENT);
    close(connection);
}

/* ---- many ---- */

static int count_entries(const char *path)
{
    DIR *directory = opendir(path);
    int count = 0;

    if (!directory)
        return -1;
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

/* Lines with `word` in them: others may mount things meanwhile. */
static int count_lines(const char *path, const char *word)
{
    FILE *file = fopen(path, "r");
    char line[4096];
    int lines = 0;

    assert_non_null(file);
    while (fgets(line, sizeof(line), file))
        lines += strstr(line, word) != NULL;
    fclose(file);
    return lines;
}

static int count_children(pid_t pid)
{
    char path[64], text[4096];
    int children = 0;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    ssize_t n = read(fd, text, sizeof(text));
    close(fd);
    for (ssize_t i = 0; i < n; i++)
        children += text[i] == ' ';
    return children;
}

struct census {
    int own_fds, launcher_fds, mounts, children, cgroups;
};

static struct census take_census(struct fixture *fixture)
{
    pid_t launcher = launcher_pid(fixture->launcher);
    char fds[64], mounts[64], cgroups[96];

    /* Spares are made while there is nothing else to do. */
    for (int i = 0; i < 100 && count_children(launcher) < 2; i++)
        poll(NULL, 0, 10);
    poll(NULL, 0, 50);
    snprintf(fds, sizeof(fds), "/proc/%d/fd", (int)launcher);
    snprintf(cgroups, sizeof(cgroups), "%s/kiln/%s", cgroup_root(), fixture->instance);
    snprintf(mounts, sizeof(mounts), "/proc/%d/mountinfo", (int)launcher);
    return (struct census){
        .own_fds = count_entries("/proc/self/fd"),
        .launcher_fds = count_entries(fds),
        .mounts = count_lines("/proc/self/mountinfo", "kiln") + count_lines(mounts, "kiln"),
        .children = count_children(launcher),
        .cgroups = count_entries(cgroups),
    };
}

static void test_two_hundred_lives_leave_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct census before, after;

    for (int i = 0; i < 4; i++) /* as many as will ever be alive at once, so that slots exist */
        create(fixture, (uint64_t)i + 1);
    for (int i = 0; i < 4; i++)
        kill_box(fixture, &fixture->boxes[i + 1]);
    before = take_census(fixture);
    for (int i = 0; i < 200; i++) {
        struct box *box = create(fixture, 1);
        if (i % 3 == 0)
            assert_int_equal(TRY(fixture, box, "daemon"), 0);
        kill_box(fixture, box);
    }
    after = take_census(fixture);
    assert_int_equal(after.own_fds, before.own_fds);
    assert_int_equal(after.launcher_fds, before.launcher_fds);

    assert_int_equal(after.mounts, before.mounts);
    assert_int_equal(after.children, before.children);
    assert_int_equal(after.cgroups, before.cgroups);
}

static void test_fifteen_live_side_by_side(void **state)
{
    struct fixture *fixture = *state;

    for (uint64_t id = 1; id < BOXES_MAX; id++) {
        struct sandbox_spec spec = spec_of(fixture, id);
        RUN(fixture, create_spec(fixture, &spec), "sleep");
    }
    for (uint64_t id = 1; id < BOXES_MAX; id++) {
        wait_for(fixture, &fixture->boxes[id].created, "created");
        for (uint64_t other = 1; other < id; other++)
            assert_true(fixture->boxes[id].made.uid != fixture->boxes[other].made.uid);
    }
    for (uint64_t id = 1; id < BOXES_MAX; id++)
        assert_int_equal(launcher_kill(fixture->launcher, id), 0);
    for (uint64_t id = 1; id < BOXES_MAX; id++)
        wait_for(fixture, &fixture->boxes[id].gone, "gone");
}

/* ---- rootless ---- */

static bool warns_of(const struct fixture *fixture, const char *word)
{
    for (const char *const *warning = launcher_warnings(fixture->launcher); *warning; warning++)
        if (strstr(*warning, word))
            return true;
    return false;
}

static void check_rootless(struct fixture *fixture)
{
    struct box *box = create(fixture, 1);
    char value[64];

    assert_true(warns_of(fixture, "MemorySize"));
    assert_true(warns_of(fixture, "uid"));
    assert_true(warns_of(fixture, "processes"));
    assert_true(warns_of(fixture, "frozen"));
    assert_true(launcher_is_rootless(fixture->launcher));
    assert_int_equal(box->made.uid, geteuid());
    assert_int_equal(box->made.freeze_fd, -1);
    assert_int_equal(box->made.memory_peak_fd, -1);
    assert_int_equal(TRY(fixture, box, "env", "AWS_LAMBDA_RUNTIME_API"), 0);
    assert_string_equal(box->output, box->made.api_address);
    assert_int_equal(TRY(fixture, box, "create", "/x"), EROFS);
    assert_int_equal(TRY(fixture, box, "create", "/var/task/x"), EROFS);
    assert_int_equal(TRY(fixture, box, "fill", "/tmp/fill", "100"), ENOSPC);
    assert_int_equal(TRY(fixture, box, "open-write", "/dev/null"), 0);
    assert_int_equal(TRY(fixture, box, "exists", "/home"), ENOENT);
    assert_int_equal(TRY(fixture, box, "call", "mount"), EPERM);
    assert_int_equal(TRY(fixture, box, "call", "unshare-user"), EPERM);
    assert_int_equal(TRY(fixture, box, "cat", "/proc/self/status"), 0);
    assert_string_equal(status_line(box, "CapEff:", value), "0000000000000000");
    assert_string_equal(status_line(box, "CapBnd:", value), "0000000000000000");
    assert_int_equal(TRY(fixture, box, "daemon"), 0);
    reset_box(fixture, box);
    assert_silent(box);
    assert_int_equal(TRY(fixture, box, "exit", "0"), 0);
    kill_box(fixture, box);
}

static void test_rootless_with_its_own_network(void **state)
{
    check_rootless(*state);
}

static void test_rootless_with_the_hosts_network(void **state)
{
    check_rootless(*state);
}

static void test_rootless_with_the_hosts_network_tells_peers_apart(void **state)
{
    struct fixture *fixture = *state;
    struct box *boxes[] = {create(fixture, 1), create(fixture, 2)};
    const char *port = strchr(boxes[0]->made.api_address, ':') + 1;
    struct peer peer;

    assert_int_equal(boxes[0]->made.uid, boxes[1]->made.uid);
    for (int i = 0; i < 2; i++) {
        RUN(fixture, boxes[i], "connect", "127.0.0.1", port, "wait");
        int connection = accept_within(boxes[0]->made.api_fd, 5000);
        assert_true(connection >= 0);
        assert_int_equal(peer_of_tcp(connection, &peer), 0);
        assert_int_equal(peer.uid, boxes[0]->made.uid);
        assert_int_equal(peer_is_below(&peer, boxes[0]->made.init_pid), i == 0);
        assert_int_equal(peer_is_below(&peer, boxes[1]->made.init_pid), i == 1);
        close(connection);
        finish(fixture, boxes[i]);
    }
}

/* This program again, as nobody: it then runs the rootless cases. Its output is not part of ours. */
static _Noreturn void become_nobody(void)
{
    char *argv[] = {(char *)"as-nobody", (char *)probe_path, NULL};
    int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

    dup2(2, 1);
    if (self < 0 || setgroups(0, NULL) < 0 || setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
        _exit(1);
    fexecve(self, argv, environ);
    _exit(1);
}

static void test_rootless_cases_pass_as_nobody(void **state)
{
    pid_t pid;
    int status;

    (void)state;
    fflush(NULL);
    pid = fork();
    if (pid == 0)
        become_nobody();
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(status, 0);
}

static void test_as_root_with_cgroups_there_is_nothing_to_warn_of(void **state)
{
    struct fixture *fixture = *state;

    if (access("/sys/fs/cgroup/memory", F_OK) < 0 && access("/sys/fs/cgroup/memory.stat", F_OK) < 0)
        skip();
    assert_null(launcher_warnings(fixture->launcher)[0]);
}

static void test_bad_configurations_are_refused(void **state)
{
    struct launcher_config bad[] = {{.instance = NULL, .data_dir = "/x"},       {.instance = "", .data_dir = "/x"},
                                    {.instance = "../x", .data_dir = "/x"},     {.instance = "UPPER", .data_dir = "/x"},
                                    {.instance = "ok", .data_dir = "relative"}, {.instance = "ok", .data_dir = NULL}};
    struct launcher *launcher;
    struct fault fault;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_int_equal(launcher_start(&bad[i], &launcher, &fault), -EINVAL);
}

#define SANDBOX(test)      cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define SANDBOX_HOST(test) cmocka_unit_test_setup_teardown(test, set_up_host, tear_down)

/* Where user namespaces are forbidden: 77 for become_nobody, the TAP way of saying it for others. */
static int run_rootless(bool as_nobody)
{
    const struct CMUnitTest tests[] = {
        SANDBOX(test_rootless_with_its_own_network),
        SANDBOX_HOST(test_rootless_with_the_hosts_network),
        SANDBOX_HOST(test_rootless_with_the_hosts_network_tells_peers_apart),
    };
    struct launcher_config config = {.instance = "sandbox-test-rootless", .data_dir = "/nonexistent"};
    struct launcher *launcher = NULL;
    struct fault fault = {0};

    fprintf(stderr, "# not root: the rootless cases only\n");
    if (launcher_start(&config, &launcher, &fault) == -EPERM) {
        printf("1..0 # SKIP %s\n", fault.text);
        return as_nobody ? 77 : 0;
    }
    launcher_free(launcher);
    return cmocka_run_group_tests_name("rootless", tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        SANDBOX(test_a_program_runs_with_its_environment),
        SANDBOX(test_run_may_follow_create_at_once),
        SANDBOX(test_only_own_processes_are_seen),
        SANDBOX(test_nothing_can_be_written_but_tmp),
        SANDBOX(test_the_host_is_not_seen),
        SANDBOX(test_files_of_proc_about_the_host_are_empty),
        SANDBOX(test_mounts_do_not_name_the_host),
        SANDBOX(test_no_privilege_is_left),
        SANDBOX(test_init_keeps_no_privilege_either),
        SANDBOX(test_forbidden_calls_fail),
        SANDBOX(test_stdout_can_be_opened_by_name),
        SANDBOX(test_dynamic_programs_and_scripts_of_the_host_run),
        SANDBOX(test_layers_are_merged_and_later_ones_win),
        SANDBOX(test_one_layer_is_shown_as_it_is),
        SANDBOX(test_a_missing_task_directory_fails_the_create),
        SANDBOX(test_an_id_in_use_is_refused),
        SANDBOX(test_a_daemon_out_of_descriptors_hears_of_it),
        SANDBOX(test_exec_errors_are_reported),
        SANDBOX(test_processes_live_beside_each_other),
        SANDBOX(test_too_many_processes_are_refused),
        SANDBOX(test_a_process_may_write_into_a_pipe_of_its_own),
        SANDBOX(test_a_socket_reaches_what_listens_inside),
        SANDBOX(test_signals_reach_the_process),
        SANDBOX(test_processes_are_limited),
        SANDBOX(test_files_are_limited),
        SANDBOX(test_memory_within_the_limit_is_granted),
        SANDBOX(test_memory_past_the_limit_kills),
        SANDBOX(test_tmp_full_is_enospc_and_not_memory),
        SANDBOX(test_tmp_given_back_is_not_memory_gained),
        SANDBOX(test_page_cache_is_not_memory_but_hides_none),
        SANDBOX(test_dev_shm_counts_as_memory),
        SANDBOX(test_memory_peak_is_told),
        SANDBOX(test_cpu_follows_memory),
        SANDBOX(test_frozen_means_no_cpu),
        SANDBOX(test_frozen_sandboxes_can_be_killed_and_reset),
        SANDBOX(test_reset_keeps_tmp_and_nothing_else),
        SANDBOX(test_nothing_outlives_a_reset),
        SANDBOX(test_nothing_outlives_a_kill),
        SANDBOX(test_a_killed_launcher_takes_everything_along),
        SANDBOX(test_a_killed_daemon_leaves_nothing),
        SANDBOX(test_a_start_removes_leftovers),
        SANDBOX(test_signals_for_the_daemon_do_not_end_the_launcher),
        SANDBOX(test_slots_are_recycled_with_a_new_socket),
        SANDBOX(test_no_sandbox_reaches_anothers_api_or_the_host),
        SANDBOX_HOST(test_host_network_tells_peers_apart),
        SANDBOX_HOST(test_a_peer_that_is_gone_has_no_uid),
        SANDBOX(test_two_hundred_lives_leave_nothing),
        SANDBOX(test_fifteen_live_side_by_side),
        cmocka_unit_test(test_rootless_cases_pass_as_nobody),
        SANDBOX(test_as_root_with_cgroups_there_is_nothing_to_warn_of),
        cmocka_unit_test(test_bad_configurations_are_refused),
    };

    if (argc < 2) {
        fprintf(stderr, "usage: %s PROBE [PATTERN]\n", argv[0]);
        return 2;
    }
    probe_path = argv[1];
    if (geteuid() != 0)
        return run_rootless(strcmp(argv[0], "as-nobody") == 0);
    if (argc > 2)
        cmocka_set_test_filter(argv[2]);
    return cmocka_run_group_tests_name("sandbox", tests, NULL, NULL);
}
