/*
 * Messages between the daemon, the launcher and the inits: one datagram of a SOCK_SEQPACKET socket each, in the host's
 * byte order (both ends are one program), descriptors as SCM_RIGHTS. Encoding and decoding check every bound; what is
 * decoded points into the datagram. Pure but for message_send and message_receive.
 */
#pragma once

#include "sandbox/launcher.h"

#include <sys/types.h>

enum {
    MESSAGE_MAX = 64 * 1024,   /* bytes of one message, header included */
    MESSAGE_FDS_MAX = 8,       /* descriptors with one message */
    MESSAGE_STRINGS_MAX = 1024 /* arguments and environment variables together, of one process */
};

enum message_type {
    /* daemon to launcher; RUN (with or without a descriptor for its output), SIGNAL and RESET go on to the init
     * unchanged */
    MESSAGE_CREATE = 1,
    MESSAGE_RUN,
    MESSAGE_SIGNAL,
    MESSAGE_RESET,
    MESSAGE_LIMIT_CPU,
    MESSAGE_KILL,
    MESSAGE_SOCKET, /* answered by the same */
    /* launcher to init */
    MESSAGE_FIT,
    MESSAGE_KILL_ALL,
    /* init to launcher */
    MESSAGE_FITTED,
    /* init to launcher, launcher to daemon */
    MESSAGE_FAILED,
    MESSAGE_EXIT,
    MESSAGE_RESET_DONE,
    /* launcher to daemon */
    MESSAGE_HELLO,
    MESSAGE_CREATED,
    MESSAGE_GONE,
};

struct message_header {
    uint32_t type;
    uint32_t run; /* RUN, SIGNAL, EXIT; the tag of SOCKET */
    uint64_t id;
};

/* A message under construction; `length` counts from the start of the header. Overflow is sticky. */
struct message_writer {
    char *data;
    size_t length;
    size_t capacity;
    bool overflow;
};

/* A message being read; running past the end or a malformed string is sticky. */
struct message_reader {
    const char *data;
    size_t length;
    size_t offset;
    bool bad;
};

/* Starts a message in `data` with its header. `capacity` is at least a header. */
struct message_writer message_begin(void *data, size_t capacity, enum message_type type, uint64_t id, uint32_t run);
void message_put_u32(struct message_writer *writer, uint32_t value);
void message_put_i32(struct message_writer *writer, int32_t value);
/* NULL is kept apart from the empty string. */
void message_put_string(struct message_writer *writer, const char *text);
/* The finished length, or -E2BIG. */
int message_end(const struct message_writer *writer, size_t *ret_length) MUST_USE;

/* Takes the header off; -EBADMSG when it is not whole. */
int message_open(const void *data, size_t length, struct message_header *ret_header,
                 struct message_reader *ret_reader) MUST_USE;
uint32_t message_get_u32(struct message_reader *reader);
int32_t message_get_i32(struct message_reader *reader);
/* Borrowed from the datagram; NULL when NULL was put or the message is bad. */
const char *message_get_string(struct message_reader *reader);
/* 0 when everything was read and well formed, else -EBADMSG. */
int message_close(const struct message_reader *reader) MUST_USE;

/* -E2BIG past MESSAGE_MAX, -EINVAL for a relative path or memory of 0. */
int message_encode_create(const struct sandbox_spec *spec, char data[MESSAGE_MAX], size_t *ret_length) MUST_USE;
/* -EBADMSG for anything message_encode_create would not have written. */
int message_decode_create(uint64_t id, struct message_reader *reader, struct sandbox_spec *ret_spec) MUST_USE;

/* The strings of a process, pointing into the datagram; with room for one variable the receiver adds. */
struct message_process {
    const char *argv[MESSAGE_STRINGS_MAX + 1];
    const char *envp[MESSAGE_STRINGS_MAX + 2];
    size_t envc;
    const char *cwd;
};

/* -E2BIG past MESSAGE_MAX or MESSAGE_STRINGS_MAX, -EINVAL without argv[0] or cwd. */
int message_encode_run(uint64_t id, uint32_t run, const struct sandbox_process *process, char data[MESSAGE_MAX],
                       size_t *ret_length) MUST_USE;
int message_decode_run(struct message_reader *reader, struct message_process *ret_process) MUST_USE;

/* How a process ended, as MESSAGE_EXIT carries it. */
struct message_exit {
    int exec_errno;
    struct sandbox_exit exit;
};

size_t message_encode_exit(uint64_t id, uint32_t run, const struct message_exit *exit, char data[MESSAGE_MAX]);
int message_decode_exit(struct message_reader *reader, struct message_exit *ret_exit) MUST_USE;

/* MESSAGE_FAILED: fault->error is a positive errno. */
size_t message_encode_failed(uint64_t id, const struct fault *fault, char data[MESSAGE_MAX]);
int message_decode_failed(struct message_reader *reader, struct fault *ret_fault) MUST_USE;

/* Descriptors received with a message; whoever received them closes those it does not take (message_fds_deinit). */
struct message_fds {
    int fds[MESSAGE_FDS_MAX];
    size_t count;
    bool truncated; /* some were lost: this process is out of descriptors */
};

void message_fds_deinit(struct message_fds *fds);
/* The descriptor at `index` for the caller to own, -1 when there is none (any more). */
int message_fds_take(struct message_fds *fds, size_t index);

/* `flags` as for sendmsg (MSG_NOSIGNAL is added). Whole or not at all: 0 or -errno. */
int message_send(int socket, const void *data, size_t length, const int *fds, size_t fd_count, int flags) MUST_USE;
/*
 * One message into `data` (MESSAGE_MAX bytes). `flags` as for recvmsg. -ECONNRESET at the end of the connection,
 * -EAGAIN when none is waiting (MSG_DONTWAIT), -EBADMSG when it was longer than MESSAGE_MAX. Descriptors are
 * close-on-exec.
 */
int message_receive(int socket, void *data, size_t *ret_length, struct message_fds *ret_fds, int flags) MUST_USE;
