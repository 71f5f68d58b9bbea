/*
 * The environment variables of a runtime process, as recorded in real environments: the service's reserved ones, the
 * defaults of the runtime, and the function's own, which may replace defaults but never reserved ones. Pure.
 *
 * AWS_LAMBDA_RUNTIME_API is not among them: the launcher adds it, because it knows the address.
 */
#pragma once

#include "base/arena.h"
#include "worker/worker.h"

/*
 * A NULL-terminated array of "NAME=value" in `arena`. `log_stream` is the name of the environment's stream. Names that
 * are empty or contain '=' are left out. 0 or -ENOMEM.
 */
int process_variables_build(const struct environment_spec *spec, const char *log_stream, struct arena *arena,
                            const char *const **ret_variables) MUST_USE;

/*
 * Those of `variables` (as process_variables_build made them) that external extensions see: the guide leaves out what
 * concerns the runtime alone. A NULL-terminated array in `arena` that shares the strings. 0 or -ENOMEM.
 */
int process_variables_for_extensions(const char *const *variables, struct arena *arena,
                                     const char *const **ret_variables) MUST_USE;

/* True for names that a function may not set itself. */
bool process_variables_is_reserved(struct span name);
