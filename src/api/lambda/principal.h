/*
 * The principals that AddPermission takes: "*", an account's id, the ARN of an account, a user, a role or a session,
 * and the domain-style name of a service (developer guide "Working with resource-based policies"). Pure.
 */
#pragma once

#include "base/span.h"

#include <jansson.h>

bool principal_is_valid(struct span text);
/*
 * A valid principal as a statement's Principal: "*", {"AWS": ARN} or {"Service": NAME}; an account's id becomes the ARN
 * of its root in the Region's partition. NULL when out of memory.
 */
json_t *principal_make(struct span text, struct span region) MUST_USE;
