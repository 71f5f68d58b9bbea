/*
 * The errors that the service itself answers for a function: the JSON a caller gets when the runtime died, timed out or
 * never came up, and the JSON a runtime gets when it uses the Runtime API wrongly. Texts and types are the service's
 * own (recorded answers; the Lambda guide's Runtime API chapter; the Runtime Interface Emulator). Pure.
 */
#pragma once

#include "base/buffer.h"

/* Largest response a function may post: 6 MiB and 100 bytes. */
enum { INVOCATION_RESPONSE_MAX = 6291556 };

enum { INVOCATION_MESSAGE_BYTES = 512 };

/* {"errorType":TYPE,"errorMessage":MESSAGE}; 0 or -ENOMEM. */
int invocation_error_json(const char *type, const char *message, struct buffer *buffer) MUST_USE;
/* {"errorMessage":MESSAGE,"errorType":TYPE}, the order in which the Runtime API's own refusals come. 0 or -ENOMEM. */
int runtime_api_error_json(const char *type, const char *message, struct buffer *buffer) MUST_USE;

/* "Task timed out after 3.00 seconds". Returns `text`. */
const char *invocation_error_timeout(unsigned timeout_s, char text[INVOCATION_MESSAGE_BYTES]);
/* "Runtime exited with error: exit status 1", "... signal: killed", or "Runtime exited without providing a reason" for
 * status 0. Returns `text`. */
const char *invocation_error_exit(int status, int signal, char text[INVOCATION_MESSAGE_BYTES]);
/* Of an extension: "exit code 0", "exit status 1" or "signal: killed". Returns `text`. */
const char *invocation_error_extension_exit(int status, int signal, char text[INVOCATION_MESSAGE_BYTES]);
/* "fork/exec /var/task/bootstrap: permission denied". Returns `text`. */
const char *invocation_error_exec(const char *path, int exec_errno, char text[INVOCATION_MESSAGE_BYTES]);

/* What Lambda-Runtime-Function-Error-Type may say: "Runtime.Name" or "Function.Name". Anything else is not kept. */
bool invocation_error_type_is_valid(struct span type);
