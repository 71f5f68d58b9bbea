/*
 * Messages in frames within a function's output: how the bootstraps of managed runtimes write what is one event of the
 * log though it has several lines (a traceback, an object that console.log was given). A frame stands where a line
 * could begin; numbers are big-endian:
 *
 *     type, 4 bytes       0xa55a0002 for JSON, 0xa55a0003 for text; bits 2 to 4 are the level, 1 (TRACE) to 6 (FATAL)
 *     length, 4 bytes
 *     time, 8 bytes       in microseconds since 1970; not used here: events are in the order in which they came
 *     message
 *
 * The form is that of the service's own runtimes, which write it to a descriptor of its own (_LAMBDA_TELEMETRY_LOG_FD);
 * here that is standard output. No text in UTF-8 begins with 0xa5. What begins like a frame and is none is output like
 * any other. Pieces of a frame may come apart; when something else writes between them, bytes are taken for the wrong
 * message, and none is lost. Pure.
 */
#pragma once

#include "base/span.h"
#include "worker/log_level.h"

enum { LOG_FRAME_HEADER_BYTES = 16, LOG_FRAME_MESSAGE_MAX = 16 * 1024 * 1024 };

struct log_frame {
    char header[LOG_FRAME_HEADER_BYTES];
    size_t header_length; /* so much of it has come */
    size_t left;          /* bytes of the message that have not come */
};

enum log_frame_outcome {
    LOG_FRAME_MORE,    /* *bytes is used up within a header */
    LOG_FRAME_MESSAGE, /* the header is whole: `left` bytes of message follow */
    LOG_FRAME_NONE,    /* no frame: header[0..header_length) is output, as is what is left of *bytes */
};

/* Takes bytes of a header off `*bytes`, at the place where a line could begin or in the middle of a header. After
 * LOG_FRAME_NONE the caller sets header_length to 0. */
enum log_frame_outcome log_frame_take_header(struct log_frame *frame, struct span *bytes);
/* Of the frame whose header is whole. `message` is what the level is taken from where the header has none. */
enum log_line_level log_frame_level(const struct log_frame *frame, struct span message);
