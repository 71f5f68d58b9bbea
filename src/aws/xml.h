/* The little XML that the query protocol's answers need: output only. */
#pragma once

#include "base/buffer.h"

#include <jansson.h>

/*
 * Appends text with <, > and & escaped. XML 1.0 has no way to write most control characters, and knows no bytes that
 * are not UTF-8: each of these becomes a question mark. 0 or -ENOMEM.
 */
int xml_append_text(struct span text, struct buffer *buffer) MUST_USE;
/*
 * Appends a JSON value as an element, as the query protocol maps them: objects hold an element a member, lists a
 * <member> an item, scalars their text. Nulls are left out. 0 or -ENOMEM.
 */
int xml_append_element(const char *name, const json_t *value, struct buffer *buffer) MUST_USE;
