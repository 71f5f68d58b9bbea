#include "worker/invocation_error.h"

#include "base/encode.h"

#include <signal.h>
#include <stdio.h>

/* As Go's os/signal names them: the service's messages come from there. */
static const char *const signal_names[] = {
    [SIGHUP] = "hangup",
    [SIGINT] = "interrupt",
    [SIGQUIT] = "quit",
    [SIGILL] = "illegal instruction",
    [SIGTRAP] = "trace/breakpoint trap",
    [SIGABRT] = "aborted",
    [SIGBUS] = "bus error",
    [SIGFPE] = "floating point exception",
    [SIGKILL] = "killed",
    [SIGUSR1] = "user defined signal 1",
    [SIGSEGV] = "segmentation fault",
    [SIGUSR2] = "user defined signal 2",
    [SIGPIPE] = "broken pipe",
    [SIGALRM] = "alarm clock",
    [SIGTERM] = "terminated",
    [SIGSYS] = "bad system call",
};

static int append_pair(struct buffer *buffer, struct span before, const char *value)
{
    int r = buffer_append_span(buffer, before);

    return r < 0 ? r : json_encode_string(span_from(value), buffer);
}

int invocation_error_json(const char *type, const char *message, struct buffer *buffer)
{
    size_t start = buffer->length;

    if (append_pair(buffer, SPAN("{\"errorType\":"), type) < 0 ||
        append_pair(buffer, SPAN(",\"errorMessage\":"), message) < 0 || buffer_append_char(buffer, '}') < 0) {
        buffer->length = start;
        return -ENOMEM;
    }
    return 0;
}

int runtime_api_error_json(const char *type, const char *message, struct buffer *buffer)
{
    size_t start = buffer->length;

    if (append_pair(buffer, SPAN("{\"errorMessage\":"), message) < 0 ||
        append_pair(buffer, SPAN(",\"errorType\":"), type) < 0 || buffer_append_char(buffer, '}') < 0) {
        buffer->length = start;
        return -ENOMEM;
    }
    return 0;
}

const char *invocation_error_timeout(unsigned timeout_s, char text[INVOCATION_MESSAGE_BYTES])
{
    snprintf(text, INVOCATION_MESSAGE_BYTES, "Task timed out after %u.00 seconds", timeout_s);
    return text;
}

const char *invocation_error_extension_exit(int status, int signal, char text[INVOCATION_MESSAGE_BYTES])
{
    if (signal > 0 && (size_t)signal < ARRAY_SIZE(signal_names) && signal_names[signal])
        snprintf(text, INVOCATION_MESSAGE_BYTES, "signal: %s", signal_names[signal]);
    else if (signal > 0)
        snprintf(text, INVOCATION_MESSAGE_BYTES, "signal: signal %d", signal);
    else
        snprintf(text, INVOCATION_MESSAGE_BYTES, status ? "exit status %d" : "exit code %d", status);
    return text;
}

const char *invocation_error_exit(int status, int signal, char text[INVOCATION_MESSAGE_BYTES])
{
    if (signal > 0 && (size_t)signal < ARRAY_SIZE(signal_names) && signal_names[signal])
        snprintf(text, INVOCATION_MESSAGE_BYTES, "Runtime exited with error: signal: %s", signal_names[signal]);
    else if (signal > 0)
        snprintf(text, INVOCATION_MESSAGE_BYTES, "Runtime exited with error: signal: signal %d", signal);
    else if (status != 0)
        snprintf(text, INVOCATION_MESSAGE_BYTES, "Runtime exited with error: exit status %d", status);
    else
        snprintf(text, INVOCATION_MESSAGE_BYTES, "Runtime exited without providing a reason");
    return text;
}

const char *invocation_error_exec(const char *path, int exec_errno, char text[INVOCATION_MESSAGE_BYTES])
{
    char reason[128];

    snprintf(reason, sizeof(reason), "%s", strerror(exec_errno));
    if (reason[0] >= 'A' && reason[0] <= 'Z')
        reason[0] = (char)(reason[0] - 'A' + 'a'); /* Go's spelling of the same texts */
    snprintf(text, INVOCATION_MESSAGE_BYTES, "fork/exec %s: %s", path, reason);
    return text;
}

bool invocation_error_type_is_valid(struct span type)
{
    struct span name;

    if (span_starts_with(type, SPAN("Runtime.")))
        name = span_slice(type, sizeof("Runtime.") - 1, type.length);
    else if (span_starts_with(type, SPAN("Function.")))
        name = span_slice(type, sizeof("Function.") - 1, type.length);
    else
        return false;
    if (name.length == 0 || name.length > 128)
        return false;
    for (size_t i = 0; i < name.length; i++) {
        char c = name.data[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')))
            return false;
    }
    return true;
}
