#include "base/fault.h"

#include <stdio.h>
#include <string.h>

int fault_set(struct fault *fault, int error, const char *format, ...)
{
    if (fault) {
        va_list args;
        fault->error = error;
        va_start(args, format);
        vsnprintf(fault->text, sizeof(fault->text), format, args);
        va_end(args);
    }
    return error > 0 ? -error : -EINVAL;
}

void fault_prepend(struct fault *fault, const char *format, ...)
{
    char context[sizeof(fault->text)];
    char joined[2 * sizeof(fault->text) + 3];
    va_list args;

    if (!fault)
        return;
    va_start(args, format);
    vsnprintf(context, sizeof(context), format, args);
    va_end(args);
    snprintf(joined, sizeof(joined), "%s: %s", context, fault->text);
    memcpy(fault->text, joined, sizeof(fault->text) - 1);
    fault->text[sizeof(fault->text) - 1] = '\0';
}
