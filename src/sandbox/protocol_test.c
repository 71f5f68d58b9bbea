#include "sandbox/protocol.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

struct opened {
    struct message_header header;
    struct message_reader reader;
};

static struct opened open_message(const char *data, size_t length)
{
    struct opened opened;

    assert_int_equal(message_open(data, length, &opened.header, &opened.reader), 0);
    return opened;
}

static const struct sandbox_spec full_spec = {
    .id = UINT64_C(0x123456789abcdef0),
    .task_dir = "/data/code/a",
    .layer_dirs = {"/l/1", "/l/2", "/l/3", "/l/4", "/l/5"},
    .runtime_dir = "/usr/share/kiln/python",
    .memory_mib = 1769,
    .tmp_mib = 10240,
    .cpu_boost = true,
};

static void test_create_comes_back_as_sent(void **state)
{
    char data[MESSAGE_MAX];
    size_t length;
    struct sandbox_spec spec;

    (void)state;
    assert_int_equal(message_encode_create(&full_spec, data, &length), 0);
    struct opened opened = open_message(data, length);
    assert_int_equal(opened.header.type, MESSAGE_CREATE);
    assert_int_equal(message_decode_create(opened.header.id, &opened.reader, &spec), 0);
    assert_int_equal(spec.id, full_spec.id);
    assert_string_equal(spec.task_dir, full_spec.task_dir);
    for (int i = 0; i < SANDBOX_LAYERS_MAX; i++)
        assert_string_equal(spec.layer_dirs[i], full_spec.layer_dirs[i]);
    assert_string_equal(spec.runtime_dir, full_spec.runtime_dir);
    assert_int_equal(spec.memory_mib, 1769);
    assert_int_equal(spec.tmp_mib, 10240);
    assert_true(spec.cpu_boost);
}

static void test_absent_runtime_and_layers_stay_absent(void **state)
{
    struct sandbox_spec spec = {.id = 1, .task_dir = "/t", .memory_mib = 128, .tmp_mib = 512}, back;
    char data[MESSAGE_MAX];
    size_t length;

    (void)state;
    assert_int_equal(message_encode_create(&spec, data, &length), 0);
    struct opened opened = open_message(data, length);
    assert_int_equal(message_decode_create(1, &opened.reader, &back), 0);
    assert_null(back.runtime_dir);
    assert_null(back.layer_dirs[0]);
}

static void test_bad_specs_are_refused(void **state)
{
    const struct sandbox_spec bad[] = {
        {.id = 0, .task_dir = "/t", .memory_mib = 128, .tmp_mib = 512},
        {.id = 1, .task_dir = "t", .memory_mib = 128, .tmp_mib = 512},
        {.id = 1, .task_dir = NULL, .memory_mib = 128, .tmp_mib = 512},
        {.id = 1, .task_dir = "/t", .memory_mib = 0, .tmp_mib = 512},
        {.id = 1, .task_dir = "/t", .memory_mib = 128, .tmp_mib = 0},
        {.id = 1, .task_dir = "/t", .runtime_dir = "r", .memory_mib = 128, .tmp_mib = 512},
        {.id = 1, .task_dir = "/t", .layer_dirs = {"/a", "b"}, .memory_mib = 128, .tmp_mib = 512},
    };
    char data[MESSAGE_MAX];
    size_t length;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_int_equal(message_encode_create(&bad[i], data, &length), -EINVAL);
}

static void test_create_past_message_size_is_too_big(void **state)
{
    char *path = malloc(MESSAGE_MAX), data[MESSAGE_MAX];
    struct sandbox_spec spec = full_spec;
    size_t length;

    (void)state;
    assert_non_null(path);
    memset(path, '/', MESSAGE_MAX - 1);
    path[MESSAGE_MAX - 1] = '\0';
    spec.task_dir = path;
    assert_int_equal(message_encode_create(&spec, data, &length), -E2BIG);
    free(path);
}

static void test_create_cut_anywhere_is_a_bad_message(void **state)
{
    char data[MESSAGE_MAX];
    struct sandbox_spec spec;
    size_t length;

    (void)state;
    assert_int_equal(message_encode_create(&full_spec, data, &length), 0);
    /* A cut between two layers leaves a shorter list, which is well formed; anywhere else it is not. */
    size_t first_layer = length;
    for (int i = 0; i < SANDBOX_LAYERS_MAX; i++)
        first_layer -= sizeof(uint32_t) + strlen(full_spec.layer_dirs[i]) + 1;
    for (size_t cut = sizeof(struct message_header); cut < first_layer; cut++) {
        char *copy = malloc(cut); /* exact size: the sanitizer sees a read past the end */
        assert_non_null(copy);
        memcpy(copy, data, cut);
        struct opened opened = open_message(copy, cut);
        assert_int_equal(message_decode_create(1, &opened.reader, &spec), -EBADMSG);
        free(copy);
    }
}

static void test_header_must_be_whole(void **state)
{
    struct message_header header;
    struct message_reader reader;
    char data[sizeof(header)] = {0};

    (void)state;
    for (size_t length = 0; length < sizeof(header); length++)
        assert_int_equal(message_open(data, length, &header, &reader), -EBADMSG);
}

static void test_string_needs_exactly_one_nul_at_its_end(void **state)
{
    static const char bad[][2] = {{'a', 'b'}, {'\0', '\0'}};
    char data[64];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct message_writer writer = message_begin(data, sizeof(data), MESSAGE_RUN, 1, 1);
        message_put_u32(&writer, 2);
        memcpy(data + writer.length, bad[i], 2);
        struct opened opened = open_message(data, writer.length + 2);
        assert_null(message_get_string(&opened.reader));
        assert_int_equal(message_close(&opened.reader), -EBADMSG);
    }
}

static void test_string_length_past_the_end_is_refused(void **state)
{
    char data[64];
    struct message_writer writer = message_begin(data, sizeof(data), MESSAGE_RUN, 1, 1);

    (void)state;
    message_put_u32(&writer, UINT32_MAX);
    struct opened opened = open_message(data, writer.length);
    assert_null(message_get_string(&opened.reader));
    assert_int_equal(message_close(&opened.reader), -EBADMSG);
}

static void test_run_comes_back_as_sent(void **state)
{
    const char *argv[] = {"/var/runtime/bootstrap", "app.handler", "", NULL};
    const char *envp[] = {"A=1", "B=", NULL};
    struct sandbox_process process = {argv, envp, "/var/task"};
    static struct message_process back;
    char data[MESSAGE_MAX];
    size_t length;

    (void)state;
    assert_int_equal(message_encode_run(7, 3, &process, data, &length), 0);
    struct opened opened = open_message(data, length);
    assert_int_equal(opened.header.run, 3);
    assert_int_equal(message_decode_run(&opened.reader, &back), 0);
    assert_string_equal(back.cwd, "/var/task");
    for (int i = 0; i < 3; i++)
        assert_string_equal(back.argv[i], argv[i]);
    assert_null(back.argv[3]);
    assert_int_equal(back.envc, 2);
    assert_string_equal(back.envp[1], "B=");
    assert_null(back.envp[2]);
}

static void test_run_with_lambdas_largest_environment_fits(void **state)
{
    static char variable[4096 + 1];
    const char *argv[] = {"/bootstrap", NULL};
    const char *envp[] = {variable, NULL};
    struct sandbox_process process = {argv, envp, "/"};
    char data[MESSAGE_MAX];
    size_t length;

    (void)state;
    memset(variable, 'v', sizeof(variable) - 1);
    assert_int_equal(message_encode_run(1, 1, &process, data, &length), 0);
}

static void test_run_with_too_many_strings_is_too_big(void **state)
{
    const char **envp = calloc(MESSAGE_STRINGS_MAX + 2, sizeof(*envp));
    const char *argv[] = {"/bootstrap", NULL};
    struct sandbox_process process = {argv, envp, "/"};
    char data[MESSAGE_MAX];
    size_t length;

    (void)state;
    assert_non_null(envp);
    for (size_t i = 0; i < MESSAGE_STRINGS_MAX; i++)
        envp[i] = "A=1";
    assert_int_equal(message_encode_run(1, 1, &process, data, &length), -E2BIG);
    envp[MESSAGE_STRINGS_MAX - 1] = NULL;
    assert_int_equal(message_encode_run(1, 1, &process, data, &length), 0);
    free(envp);
}

static void test_run_counts_past_the_limit_are_refused(void **state)
{
    static const uint32_t counts[][2] = {
        {0, 0}, {MESSAGE_STRINGS_MAX + 1, 0}, {1, MESSAGE_STRINGS_MAX}, {UINT32_MAX, 1}, {1, UINT32_MAX}};
    static struct message_process process;
    char data[256];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
        struct message_writer writer = message_begin(data, sizeof(data), MESSAGE_RUN, 1, 1);
        message_put_string(&writer, "/");
        message_put_u32(&writer, counts[i][0]);
        message_put_u32(&writer, counts[i][1]);
        struct opened opened = open_message(data, writer.length);
        assert_int_equal(message_decode_run(&opened.reader, &process), -EBADMSG);
    }
}

static void test_run_needs_a_program_and_a_directory(void **state)
{
    const char *none[] = {NULL}, *argv[] = {"/x", NULL};
    char data[MESSAGE_MAX];
    size_t length;

    (void)state;
    assert_int_equal(message_encode_run(1, 1, &(struct sandbox_process){none, none, "/"}, data, &length), -EINVAL);
    assert_int_equal(message_encode_run(1, 1, &(struct sandbox_process){argv, none, NULL}, data, &length), -EINVAL);
}

static void test_exit_and_fault_come_back_as_sent(void **state)
{
    struct message_exit exit = {.exec_errno = ENOEXEC, .exit = {3, 9, true}}, exit_back;
    struct fault fault = {0}, fault_back;
    char data[MESSAGE_MAX];

    (void)state;
    fault_set(&fault, EPERM, "no: %d", 1);
    struct opened opened = open_message(data, message_encode_exit(5, 8, &exit, data));
    assert_int_equal(message_decode_exit(&opened.reader, &exit_back), 0);
    assert_int_equal(exit_back.exec_errno, exit.exec_errno);
    assert_int_equal(exit_back.exit.status, exit.exit.status);
    assert_int_equal(exit_back.exit.signal, exit.exit.signal);
    assert_int_equal(exit_back.exit.out_of_memory, exit.exit.out_of_memory);
    opened = open_message(data, message_encode_failed(5, &fault, data));
    assert_int_equal(message_decode_failed(&opened.reader, &fault_back), 0);
    assert_int_equal(fault_back.error, EPERM);
    assert_string_equal(fault_back.text, "no: 1");
}

static void test_descriptors_travel_and_are_close_on_exec(void **state)
{
    int sockets[2], pipes[2];
    struct message_fds fds;
    char data[MESSAGE_MAX];
    size_t length;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(message_send(sockets[0], "hello", 5, pipes, 2, 0), 0);
    assert_int_equal(message_receive(sockets[1], data, &length, &fds, MSG_DONTWAIT), 0);
    assert_int_equal(length, 5);
    assert_int_equal(fds.count, 2);
    int end = message_fds_take(&fds, 1);
    assert_int_equal(write(end, "x", 1), 1);
    assert_int_equal(read(pipes[0], data, 1), 1);
    assert_int_equal(fcntl(end, F_GETFD), FD_CLOEXEC);
    assert_int_equal(message_fds_take(&fds, 1), -1);
    assert_int_equal(message_fds_take(&fds, 2), -1);
    message_fds_deinit(&fds);
    close(end);
    close(pipes[0]);
    close(pipes[1]);
    close(sockets[0]);
    assert_int_equal(message_receive(sockets[1], data, &length, &fds, MSG_DONTWAIT), -ECONNRESET);
    close(sockets[1]);
}

static void test_waiting_for_none_is_eagain(void **state)
{
    int sockets[2];
    struct message_fds fds;
    char data[MESSAGE_MAX];
    size_t length;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
    assert_int_equal(message_receive(sockets[1], data, &length, &fds, MSG_DONTWAIT), -EAGAIN);
    close(sockets[0]);
    close(sockets[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create_comes_back_as_sent),
        cmocka_unit_test(test_absent_runtime_and_layers_stay_absent),
        cmocka_unit_test(test_bad_specs_are_refused),
        cmocka_unit_test(test_create_past_message_size_is_too_big),
        cmocka_unit_test(test_create_cut_anywhere_is_a_bad_message),
        cmocka_unit_test(test_header_must_be_whole),
        cmocka_unit_test(test_string_needs_exactly_one_nul_at_its_end),
        cmocka_unit_test(test_string_length_past_the_end_is_refused),
        cmocka_unit_test(test_run_comes_back_as_sent),
        cmocka_unit_test(test_run_with_lambdas_largest_environment_fits),
        cmocka_unit_test(test_run_with_too_many_strings_is_too_big),
        cmocka_unit_test(test_run_counts_past_the_limit_are_refused),
        cmocka_unit_test(test_run_needs_a_program_and_a_directory),
        cmocka_unit_test(test_exit_and_fault_come_back_as_sent),
        cmocka_unit_test(test_descriptors_travel_and_are_close_on_exec),
        cmocka_unit_test(test_waiting_for_none_is_eagain),
    };

    return cmocka_run_group_tests_name("protocol", tests, NULL, NULL);
}
