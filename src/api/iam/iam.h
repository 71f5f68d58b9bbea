/* IAM (2010-05-08), as far as tools need it on their way to a function: see README.md. */
#pragma once

#include "api/operation.h"

/* Its actions, ARRAY of *ret_count rows. */
const struct operation_route *iam_routes(size_t *ret_count);
