/*
 * The event stream encoding (application/vnd.amazon.eventstream) of streamed answers: a prelude of two lengths and a
 * CRC, headers, a payload, and a CRC over all of it. Output only.
 */
#pragma once

#include "base/buffer.h"

enum {
    /* What is given to one message, so that its reader needs no more memory than this at a time. */
    EVENT_STREAM_PAYLOAD_MAX = 64 * 1024,
};

/*
 * Appends one message of kind "event" (:message-type) with the headers :event-type and :content-type, each at most 255
 * bytes. The payload may be empty and at most EVENT_STREAM_PAYLOAD_MAX long unless the reader is known to take more.
 * 0, or -ENOMEM with `out` as it was.
 */
int event_stream_append(struct buffer *out, struct span event_type, struct span content_type,
                        struct span payload) MUST_USE;
