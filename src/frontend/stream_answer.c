#include "frontend/stream_answer.h"

#include "aws/event_stream.h"
#include "base/encode.h"

int stream_answer_piece(struct http_request *http, struct span piece, size_t *ret_waiting)
{
    CLEANUP(buffer_deinit) struct buffer messages = BUFFER_INIT;

    while (piece.length) {
        struct span part = span_slice(piece, 0, MIN(piece.length, (size_t)EVENT_STREAM_PAYLOAD_MAX));
        int r = event_stream_append(&messages, SPAN("PayloadChunk"), SPAN("application/octet-stream"), part);

        if (r < 0)
            return r;
        piece = span_slice(piece, part.length, piece.length);
    }
    *ret_waiting = http_response_write(http, &messages);
    return 0;
}

static int append_member(struct buffer *json, const char *name, struct span value)
{
    int r;

    if (!value.length)
        return 0;
    r = buffer_printf(json, "%s\"%s\":", json->length > 1 ? "," : "", name);
    return r < 0 ? r : json_encode_string(value, json);
}

static int write_end(const struct stream_answer_end *end, struct buffer *message)
{
    CLEANUP(buffer_deinit) struct buffer json = BUFFER_INIT;
    int r = buffer_append_span(&json, SPAN("{"));

    if (r == 0)
        r = append_member(&json, "ErrorCode", end->error_code);
    if (r == 0)
        r = append_member(&json, "ErrorDetails", end->error_details);
    if (r == 0)
        r = append_member(&json, "LogResult", end->log_result);
    if (r == 0)
        r = buffer_append_span(&json, SPAN("}"));
    return r < 0 ? r
                 : event_stream_append(message, SPAN("InvokeComplete"), SPAN("application/json"), buffer_span(&json));
}

void stream_answer_end(struct http_request *http, const struct stream_answer_end *end)
{
    CLEANUP(buffer_deinit) struct buffer message = BUFFER_INIT;

    if (write_end(end, &message) < 0) {
        http_response_abort(http);
        return;
    }
    http_response_write(http, &message);
    http_response_end(http, NULL, 0);
}
