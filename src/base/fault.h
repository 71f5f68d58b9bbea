/*
 * A failure that a person will read: an errno and a sentence. Passed as the last parameter of functions whose failure
 * ends up on a terminal or in the log (options, opening the store, the launcher). Callers prepend their own context.
 * Plain value; nothing to free.
 */
#pragma once

#include "base/macros.h"

#include <stdarg.h>

struct fault {
    int error;      /* positive errno, 0 when none applies */
    char text[512]; /* one line without a final newline, cut when longer */
};

/* Fills `fault` (may be NULL) and returns -error, or -EINVAL when error is 0, so that callers can `return
 * fault_set(...)`. */
int fault_set(struct fault *fault, int error, const char *format, ...) PRINTF_LIKE(3, 4);

/* Puts "context: " in front of the text already there. NULL is allowed. */
void fault_prepend(struct fault *fault, const char *format, ...) PRINTF_LIKE(2, 3);
