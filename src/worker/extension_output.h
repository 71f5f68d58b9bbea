/*
 * What the external extensions of one environment print: one pipe for all of them, apart from the function's, whose
 * lines go whole into the function's log. Read like the function's output (environment_io.h): a piece a turn, and
 * nothing while the log is full.
 */
#pragma once

#include "worker/function_log.h"

struct extension_output;

/* A line with its newline; `context` as given. */
typedef void extension_output_line(struct span line, void *context);

/* Makes the pipe. `log` and `scratch` (of `scratch_bytes`) are borrowed; `on_line` is called for each line besides its
 * way into the log. 0 or -errno. */
int extension_output_new(uv_loop_t *loop, struct function_log_stream *log, char *scratch, size_t scratch_bytes,
                         extension_output_line *on_line, void *context, struct extension_output **ret_output) MUST_USE;
/* Reads what is left first, within a bound. The handle ends on a later turn. NULL is allowed. */
struct extension_output *extension_output_free(struct extension_output *output);
/* The end to write to; the output's own. */
int extension_output_fd(const struct extension_output *output);
/* Reads what has been written until now, within a bound. NULL is allowed. */
void extension_output_drain(struct extension_output *output);
/* The log has room again. NULL is allowed. */
void extension_output_on_room(struct extension_output *output);
