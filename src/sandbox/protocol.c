#include "sandbox/protocol.h"

#include <string.h>
#include <sys/socket.h>

static void put(struct message_writer *writer, const void *data, size_t length)
{
    if (writer->overflow || length > writer->capacity - writer->length) {
        writer->overflow = true;
        return;
    }
    memcpy(writer->data + writer->length, data, length);
    writer->length += length;
}

struct message_writer message_begin(void *data, size_t capacity, enum message_type type, uint64_t id, uint32_t run)
{
    struct message_header header = {.type = type, .run = run, .id = id};
    struct message_writer writer = {.data = data, .capacity = capacity};

    put(&writer, &header, sizeof(header));
    return writer;
}

void message_put_u32(struct message_writer *writer, uint32_t value)
{
    put(writer, &value, sizeof(value));
}

void message_put_i32(struct message_writer *writer, int32_t value)
{
    put(writer, &value, sizeof(value));
}

/* Length with the NUL (0 for NULL), then the bytes. */
void message_put_string(struct message_writer *writer, const char *text)
{
    size_t size = text ? strlen(text) + 1 : 0;

    if (size > MESSAGE_MAX) {
        writer->overflow = true;
        return;
    }
    message_put_u32(writer, (uint32_t)size);
    put(writer, text ? text : "", size);
}

int message_end(const struct message_writer *writer, size_t *ret_length)
{
    if (writer->overflow)
        return -E2BIG;
    *ret_length = writer->length;
    return 0;
}

static const char *get(struct message_reader *reader, size_t length)
{
    const char *data = reader->data + reader->offset;

    if (reader->bad || length > reader->length - reader->offset) {
        reader->bad = true;
        return NULL;
    }
    reader->offset += length;
    return data;
}

int message_open(const void *data, size_t length, struct message_header *ret_header, struct message_reader *ret_reader)
{
    *ret_reader = (struct message_reader){.data = data, .length = length};
    const char *header = get(ret_reader, sizeof(*ret_header));

    if (!header)
        return -EBADMSG;
    memcpy(ret_header, header, sizeof(*ret_header));
    return 0;
}

uint32_t message_get_u32(struct message_reader *reader)
{
    const char *data = get(reader, sizeof(uint32_t));
    uint32_t value = 0;

    if (data)
        memcpy(&value, data, sizeof(value));
    return value;
}

int32_t message_get_i32(struct message_reader *reader)
{
    return (int32_t)message_get_u32(reader);
}

const char *message_get_string(struct message_reader *reader)
{
    uint32_t size = message_get_u32(reader);
    const char *text;

    if (reader->bad || size == 0)
        return NULL;
    text = get(reader, size);
    if (text && memchr(text, '\0', size) != text + size - 1) {
        reader->bad = true;
        return NULL;
    }
    return text;
}

int message_close(const struct message_reader *reader)
{
    return reader->bad || reader->offset != reader->length ? -EBADMSG : 0;
}

/* A path the launcher is ready to open: NULL where that is allowed, else absolute. */
static bool is_path(const char *path, bool optional)
{
    return path ? path[0] == '/' : optional;
}

static bool spec_is_valid(const struct sandbox_spec *spec)
{
    if (spec->id == 0 || spec->memory_mib == 0 || spec->tmp_mib == 0)
        return false;
    if (!is_path(spec->task_dir, false) || !is_path(spec->runtime_dir, true))
        return false;
    for (size_t i = 0; i < SANDBOX_LAYERS_MAX && spec->layer_dirs[i]; i++)
        if (!is_path(spec->layer_dirs[i], false))
            return false;
    return true;
}

int message_encode_create(const struct sandbox_spec *spec, char data[MESSAGE_MAX], size_t *ret_length)
{
    struct message_writer writer = message_begin(data, MESSAGE_MAX, MESSAGE_CREATE, spec->id, 0);

    if (!spec_is_valid(spec))
        return -EINVAL;
    message_put_u32(&writer, spec->memory_mib);
    message_put_u32(&writer, spec->tmp_mib);
    message_put_u32(&writer, spec->cpu_boost);
    message_put_string(&writer, spec->task_dir);
    message_put_string(&writer, spec->runtime_dir);
    for (size_t i = 0; i < SANDBOX_LAYERS_MAX && spec->layer_dirs[i]; i++)
        message_put_string(&writer, spec->layer_dirs[i]);
    return message_end(&writer, ret_length);
}

int message_decode_create(uint64_t id, struct message_reader *reader, struct sandbox_spec *ret_spec)
{
    struct sandbox_spec spec = {.id = id};
    size_t layers = 0;

    spec.memory_mib = message_get_u32(reader);
    spec.tmp_mib = message_get_u32(reader);
    spec.cpu_boost = message_get_u32(reader) != 0;
    spec.task_dir = message_get_string(reader);
    spec.runtime_dir = message_get_string(reader);
    while (!reader->bad && reader->offset < reader->length && layers < SANDBOX_LAYERS_MAX) {
        spec.layer_dirs[layers] = message_get_string(reader);
        if (!spec.layer_dirs[layers++])
            return -EBADMSG;
    }
    if (message_close(reader) < 0 || !spec_is_valid(&spec))
        return -EBADMSG;
    *ret_spec = spec;
    return 0;
}

static size_t count_strings(const char *const *strings)
{
    size_t count = 0;

    while (strings && strings[count] && count <= MESSAGE_STRINGS_MAX)
        count++;
    return count;
}

int message_encode_run(uint64_t id, uint32_t run, const struct sandbox_process *process, char data[MESSAGE_MAX],
                       size_t *ret_length)
{
    struct message_writer writer = message_begin(data, MESSAGE_MAX, MESSAGE_RUN, id, run);
    size_t argc = count_strings(process->argv), envc = count_strings(process->envp);

    if (argc == 0 || !process->cwd)
        return -EINVAL;
    if (argc + envc > MESSAGE_STRINGS_MAX)
        return -E2BIG;
    message_put_string(&writer, process->cwd);
    message_put_u32(&writer, (uint32_t)argc);
    message_put_u32(&writer, (uint32_t)envc);
    for (size_t i = 0; i < argc; i++)
        message_put_string(&writer, process->argv[i]);
    for (size_t i = 0; i < envc; i++)
        message_put_string(&writer, process->envp[i]);
    return message_end(&writer, ret_length);
}

static int get_strings(struct message_reader *reader, size_t count, const char **strings)
{
    for (size_t i = 0; i < count; i++) {
        strings[i] = message_get_string(reader);
        if (!strings[i])
            return -EBADMSG;
    }
    strings[count] = NULL;
    return 0;
}

int message_decode_run(struct message_reader *reader, struct message_process *ret_process)
{
    size_t argc, envc;

    ret_process->cwd = message_get_string(reader);
    argc = message_get_u32(reader);
    envc = message_get_u32(reader);
    if (!ret_process->cwd || argc == 0 || argc > MESSAGE_STRINGS_MAX || envc > MESSAGE_STRINGS_MAX - argc)
        return -EBADMSG;
    if (get_strings(reader, argc, ret_process->argv) < 0 || get_strings(reader, envc, ret_process->envp) < 0)
        return -EBADMSG;
    ret_process->envc = envc;
    return message_close(reader);
}

size_t message_encode_exit(uint64_t id, uint32_t run, const struct message_exit *exit, char data[MESSAGE_MAX])
{
    struct message_writer writer = message_begin(data, MESSAGE_MAX, MESSAGE_EXIT, id, run);

    message_put_i32(&writer, exit->exec_errno);
    message_put_i32(&writer, exit->exit.status);
    message_put_i32(&writer, exit->exit.signal);
    message_put_u32(&writer, exit->exit.out_of_memory);
    return writer.length;
}

int message_decode_exit(struct message_reader *reader, struct message_exit *ret_exit)
{
    ret_exit->exec_errno = message_get_i32(reader);
    ret_exit->exit.status = message_get_i32(reader);
    ret_exit->exit.signal = message_get_i32(reader);
    ret_exit->exit.out_of_memory = message_get_u32(reader) != 0;
    return message_close(reader);
}

size_t message_encode_failed(uint64_t id, const struct fault *fault, char data[MESSAGE_MAX])
{
    struct message_writer writer = message_begin(data, MESSAGE_MAX, MESSAGE_FAILED, id, 0);

    message_put_i32(&writer, fault->error);
    message_put_string(&writer, fault->text);
    return writer.length;
}

int message_decode_failed(struct message_reader *reader, struct fault *ret_fault)
{
    int error = message_get_i32(reader);
    const char *text = message_get_string(reader);

    if (message_close(reader) < 0 || !text || error <= 0)
        return -EBADMSG;
    fault_set(ret_fault, error, "%s", text);
    return 0;
}

void message_fds_deinit(struct message_fds *fds)
{
    for (size_t i = 0; i < fds->count; i++)
        cleanup_close(&fds->fds[i]);
    fds->count = 0;
}

int message_fds_take(struct message_fds *fds, size_t index)
{
    return index < fds->count ? TAKE_FD(fds->fds[index]) : -1;
}

/* Room for a control message of MESSAGE_FDS_MAX descriptors, aligned as cmsghdr wants it. */
union control {
    struct cmsghdr header;
    char data[CMSG_SPACE(sizeof(int) * MESSAGE_FDS_MAX)];
};

int message_send(int socket, const void *data, size_t length, const int *fds, size_t fd_count, int flags)
{
    union control control = {0};
    struct iovec iov = {.iov_base = (void *)data, .iov_len = length};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t r;

    if (fd_count > 0) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
        memcpy(CMSG_DATA(&control.header), fds, sizeof(int) * fd_count);
    }
    do
        r = sendmsg(socket, &message, flags | MSG_NOSIGNAL);
    while (r < 0 && errno == EINTR);
    return r < 0 ? -errno : 0;
}

static void collect_fds(struct msghdr *message, struct message_fds *fds)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(fds->fds, CMSG_DATA(c), MIN(count, (size_t)MESSAGE_FDS_MAX) * sizeof(int));
        fds->count = MIN(count, (size_t)MESSAGE_FDS_MAX);
    }
    fds->truncated = (message->msg_flags & MSG_CTRUNC) != 0;
}

int message_receive(int socket, void *data, size_t *ret_length, struct message_fds *ret_fds, int flags)
{
    union control control;
    struct iovec iov = {.iov_base = data, .iov_len = MESSAGE_MAX};
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
    ssize_t r;

    *ret_fds = (struct message_fds){0};
    do
        r = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
    while (r < 0 && errno == EINTR);
    if (r < 0)
        return -errno;
    collect_fds(&message, ret_fds);
    if (r == 0)
        return -ECONNRESET;
    if (message.msg_flags & MSG_TRUNC) {
        message_fds_deinit(ret_fds);
        return -EBADMSG;
    }
    *ret_length = (size_t)r;
    return 0;
}
