/*
 * The form of the log files, for the writer here and for whoever reads them (the CloudWatch Logs operations).
 *
 * DATA/logs/GROUP/STREAM.log, one file a log stream, appended to only (older parts of a long stream: log_file.h). A
 * file is a run of records, one an event:
 *
 *     1767225600123 46 START RequestId: ... Version: $LATEST
 *     ^ time, ms    ^ bytes of the message, which follows the blank
 *       since 1970
 *
 * The message is taken as it came, usually with its final newline; where it has none, one newline that does not count
 * follows, so that the file reads well with ordinary tools. A byte offset in the file is a stable position to go on
 * from. A crash can leave a torn record at the very end; readers stop there (LOG_RECORD_INCOMPLETE) and the next
 * environment writes another file.
 *
 * Names: '/' becomes '~'; letters, digits and "_-.#$[]" stay; any other byte becomes %XX, and so does a '.' in front.
 * A group name longer than 200 bytes in that form is cut in pieces of 200, each but the last a folder whose name ends
 * with '+'. So no name leads out of the folder, two names never meet, and the mapping can be undone. Pure.
 */
#pragma once

#include "base/buffer.h"

enum {
    LOG_RECORD_HEADER_MAX = 48,          /* two numbers and two blanks */
    LOG_RECORD_MESSAGE_MAX = 256 * 1024, /* the service's limit on an event; longer lines are cut there */
};

/* Appends one record. 0 or -ENOMEM. */
int log_record_append(struct buffer *buffer, int64_t time_ms, struct span message) MUST_USE;

struct log_record {
    int64_t time_ms;
    struct span message;
};

enum { LOG_RECORD_INCOMPLETE = 1 };

/*
 * Takes the first record off `*rest`. 0; LOG_RECORD_INCOMPLETE when `*rest` (maybe empty) is no whole record but might
 * become one with more bytes; -EINVAL when it is no record at all. `*rest` is left alone but on success. The message
 * points into it.
 */
int log_record_parse(struct span *rest, struct log_record *ret_record) MUST_USE;

/* Appends the name as one file name without '/' (a stream), or a relative path of several (a long group). 0, -ENOMEM.
 */
int log_name_encode(struct span name, struct buffer *path) MUST_USE;
/* The reverse: -EINVAL when it is not such a path. */
int log_name_decode(struct span path, struct buffer *name) MUST_USE;
