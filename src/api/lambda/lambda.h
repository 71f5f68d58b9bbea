/*
 * Lambda's control plane: the routing table of the 2015-03-31 API and its handlers (operation.h says how they are run).
 * Invoke, InvokeAsync and InvokeWithResponseStream are rows without a handler: they are the frontend's. The page behind
 * GetFunction's Code.Location (GET /_kiln/code/...) is an `anonymous` row that lambda_route finds too.
 */
#pragma once

#include "api/operation.h"

/* All operations, ARRAY of *ret_count rows; also what docs/api-coverage.md is generated from. */
const struct operation_route *lambda_routes(size_t *ret_count);

/* The row for a request, see operation_match_route. */
enum operation_match lambda_route(struct span method, struct span path, struct span query, struct arena *arena,
                                  const struct operation_route **ret_route,
                                  struct operation_parameter ret_parameters[OPERATION_PARAMETERS_MAX],
                                  size_t *ret_parameter_count);
