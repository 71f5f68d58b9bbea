/*
 * Retention of function logs: files that nothing has been written to for so many days are removed, at the start and
 * every hour, on the thread pool. On the loop's thread.
 */
#pragma once

#include "base/macros.h"

#include <uv.h>

struct log_sweep;

/* For the files under `directory` (copied). Does not keep the loop going. 0 or -ENOMEM. */
int log_sweep_new(uv_loop_t *loop, const char *directory, unsigned days, struct log_sweep **ret_sweep) MUST_USE;
/* A sweep under way goes on; its handles end on later turns of the loop. NULL is allowed. */
struct log_sweep *log_sweep_free(struct log_sweep *sweep);
