/* STS (2011-06-15), as far as it says who is calling: see README.md. */
#pragma once

#include "api/operation.h"

/* Its actions, ARRAY of *ret_count rows. */
const struct operation_route *sts_routes(size_t *ret_count);
