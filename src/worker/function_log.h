/*
 * The functions' logs: one stream an environment, written behind into DATA/logs/ in the form of log_record.h. Output of
 * the function comes in as bytes and is cut into lines (events); the service's own lines come in whole. Nothing here
 * writes on the loop: what has gathered is handed to one write at a time on libuv's pool, a quarter of a second after
 * the first byte or when a stream has gathered much.
 *
 * Memory is bounded: function_log_is_full says that a stream should get no more output until on_room is called, which
 * is how a flood from one function is held back in that function's own pipe. Lines of the service are few and always
 * taken. When the disk refuses (full, gone), the bytes are counted and dropped; the daemon's log says so once until a
 * write succeeds again, and the stream says, in front of what is written next, how much it has lost. Nothing is synced:
 * these are logs.
 *
 * All on the loop's thread; on_room is called from the loop.
 */
#pragma once

#include "base/buffer.h"
#include "base/log.h"
#include "worker/log_file.h"
#include "worker/log_level.h"

#include <uv.h>

struct function_log;
struct function_log_stream;

/* The tail that X-Amz-Log-Result carries. */
enum { FUNCTION_LOG_TAIL_BYTES = 4096 };

/* Makes the writer for files under `directory` (copied; made when first needed). `log` is borrowed. 0 or -errno. */
int function_log_new(uv_loop_t *loop, const char *directory, const struct log *log,
                     struct function_log **ret_log) MUST_USE;
/* Writes out all that has gathered, waiting for it. Every stream must have been closed. The handles end on later turns
 * of the loop. NULL is allowed. */
struct function_log *function_log_free(struct function_log *log);
/* How large files may get (log_file.h). Before the first stream is opened. */
void function_log_set_limits(struct function_log *log, const struct log_file_limits *limits);
/* Bytes lost because the disk refused them. */
uint64_t function_log_lost_bytes(const struct function_log *log);

/* Opens a stream. Names are copied. `on_room` is called with `context` once after function_log_is_full was true; it may
 * not close streams. */
int function_log_stream_open(struct function_log *log, const char *group, const char *stream,
                             void (*on_room)(void *context), void *context,
                             struct function_log_stream **ret_stream) MUST_USE;
/* From now on each event of the function's output is shown to `on_line` too, with the context of on_room; it may not
 * write to the stream. */
void function_log_observe(struct function_log_stream *stream, void (*on_line)(struct span line, void *context));
/* What has gathered is still written. NULL is allowed. */
struct function_log_stream *function_log_stream_close(struct function_log_stream *stream);

/* One line of the service, with its newline. Output that has not ended its line is ended before it. */
void function_log_line(struct function_log_stream *stream, struct span line, int64_t wall_ns);
/* One line of output of another source: what the function has not ended yet goes on after it. */
void function_log_event(struct function_log_stream *stream, struct span line, int64_t wall_ns);
/* Output of the function, in whatever pieces. */
void function_log_output(struct function_log_stream *stream, struct span bytes, int64_t wall_ns);
/* Whoever wrote is dead: what it left unfinished is an event, and what comes begins anew. */
void function_log_end_output(struct function_log_stream *stream);
/* True when no more output should be read for now; on_room follows. */
bool function_log_is_full(struct function_log_stream *stream);
/* True when not even what belongs to an invocation that ends now should be read. */
bool function_log_is_bursting(const struct function_log_stream *stream);

/* From now on the function's output may have frames in it (log_frame.h). */
void function_log_set_framed(struct function_log_stream *stream);
/* The stream is in JSON: output of a lower level (log_level.h) is not kept from now on. */
void function_log_set_json(struct function_log_stream *stream, enum log_line_level level);

/* From now on the stream's lines also go to `tail`, of which the last 4 KB are kept; NULL ends that. Borrowed. */
void function_log_set_tail(struct function_log_stream *stream, struct buffer *tail);
