/* What jansson's errors do not say plainly. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/*
 * True when a document could not be loaded for want of memory: then some paths of jansson 2.14 leave the error as it
 * was initialised instead of naming the cause.
 */
static inline bool json_error_is_memory(const json_error_t *error)
{
    return json_error_code(error) == json_error_out_of_memory || error->text[0] == '\0';
}
