/*
 * The principals that AddPermission takes: "*", an account's id, the ARN of an account, a user, a role or a session,
 * and the domain-style name of a service (developer guide "Working with resource-based policies"). Pure.
 */
#pragma once

#include "aws/error.h"

#include <jansson.h>

/*
 * Refuses a text that is none, in one of the service's two wordings: what cannot even be a name is an invalid input
 * (seen in reports of its callers), all else an invalid principal (recorded). 0 or the class in `error`.
 */
int principal_check(struct span text, struct aws_error *error) MUST_USE;
/*
 * A valid principal as a statement's Principal: "*", {"AWS": ARN} or {"Service": NAME}; an account's id becomes the ARN
 * of its root in the Region's partition. NULL when out of memory.
 */
json_t *principal_make(struct span text, struct span region) MUST_USE;
