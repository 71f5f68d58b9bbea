#include "worker/log_frame.h"

/* What each byte of the type may be. */
static bool fits(size_t at, unsigned char byte)
{
    static const unsigned char fixed[] = {0xa5, 0x5a, 0x00};

    return at < sizeof(fixed) ? byte == fixed[at] : at > sizeof(fixed) || ((byte & 2) && byte < 32);
}

static size_t read_length(const struct log_frame *frame)
{
    const unsigned char *bytes = (const unsigned char *)frame->header + 4;

    return (size_t)bytes[0] << 24 | (size_t)bytes[1] << 16 | (size_t)bytes[2] << 8 | bytes[3];
}

enum log_frame_outcome log_frame_take_header(struct log_frame *frame, struct span *bytes)
{
    while (bytes->length && frame->header_length < LOG_FRAME_HEADER_BYTES) {
        if (!fits(frame->header_length, (unsigned char)bytes->data[0]))
            return LOG_FRAME_NONE;
        frame->header[frame->header_length++] = bytes->data[0];
        *bytes = span_slice(*bytes, 1, bytes->length);
    }
    if (frame->header_length < LOG_FRAME_HEADER_BYTES)
        return LOG_FRAME_MORE;
    frame->left = read_length(frame);
    if (frame->left > LOG_FRAME_MESSAGE_MAX) {
        frame->left = 0;
        return LOG_FRAME_NONE;
    }
    return LOG_FRAME_MESSAGE;
}

enum log_line_level log_frame_level(const struct log_frame *frame, struct span message)
{
    unsigned level = (unsigned char)frame->header[3] >> 2;

    if (level >= 1 && level <= LOG_LINE_FATAL + 1)
        return (enum log_line_level)(level - 1);
    return log_level_of_line(message);
}
