/* base64 (RFC 4648, with padding), hex, and strings for JSON. */
#pragma once

#include "base/buffer.h"

/* Appends the base64 form of `bytes`. 0 or -ENOMEM. */
int base64_encode(struct span bytes, struct buffer *buffer) MUST_USE;
/* Appends what `text` stands for. -EINVAL for bad characters, length or padding (the buffer is then unchanged),
 * -ENOMEM. */
int base64_decode(struct span text, struct buffer *buffer) MUST_USE;
/* Lower-case hex of `bytes` and a NUL into `text` (2 * length + 1 bytes). Returns `text`. */
const char *hex_encode(const void *bytes, size_t length, char *text);
/*
 * Appends `text` as a JSON string, quotes included. Bytes that are not UTF-8 become U+FFFD, one each. 0 or -ENOMEM; the
 * buffer is then unchanged.
 */
int json_encode_string(struct span text, struct buffer *buffer) MUST_USE;
