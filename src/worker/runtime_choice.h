/*
 * Which program is the runtime of a function. Custom runtimes (provided.*) bring theirs: /var/task/bootstrap, else
 * /opt/bootstrap. Managed ones (python3.x, nodejsN.x) run our bootstrap on an interpreter of the host: the version
 * asked for where it is installed, else the newest, with a warning for the function's log.
 *
 * The choice is pure; what the host has is found by a probe that reads folders and runs `node --version`, which takes
 * tens of milliseconds: for the thread pool, at first need.
 */
#pragma once

#include "base/span.h"
#include "sandbox/launcher.h"

enum { RUNTIME_INTERPRETERS_MAX = 16, RUNTIME_PATH_BYTES = 256, RUNTIME_MESSAGE_BYTES = 512 };

struct runtime_interpreter {
    unsigned major;
    unsigned minor;
    char path[RUNTIME_PATH_BYTES]; /* under /usr, which every sandbox shows */
};

/* Sorted, newest first, one for each version. */
struct runtime_interpreters {
    struct runtime_interpreter items[RUNTIME_INTERPRETERS_MAX];
    size_t count;
};

struct runtime_host {
    struct runtime_interpreters python;
    struct runtime_interpreters node;
};

enum runtime_family { RUNTIME_CUSTOM, RUNTIME_PYTHON, RUNTIME_NODE, RUNTIME_UNSUPPORTED };

enum runtime_family runtime_family_of(const char *runtime);
/* The folder under the daemon's runtimes directory that such a runtime sees as /var/runtime; NULL for none. */
const char *runtime_family_folder(enum runtime_family family);

struct runtime_choice {
    const char *argv[5];                 /* as seen in the sandbox, NULL-terminated; points into this or at literals */
    char path[RUNTIME_PATH_BYTES];       /* argv[0], but for a wrapper */
    const char *wrapper;                 /* argv[0] then, else NULL */
    char warning[RUNTIME_MESSAGE_BYTES]; /* for the function's log; "" for none */
    char error[RUNTIME_MESSAGE_BYTES];   /* with RUNTIME_CHOICE_NONE: why, as the caller of the function reads it */
};

enum { RUNTIME_CHOICE_NONE = 1 };

/* Where a custom runtime's bootstrap is, for runtime_choose. */
struct runtime_bootstraps {
    bool in_task;
    bool in_layers;
};

/* Looks for files named bootstrap in the host's folders (one or a few stat calls). `layer_dirs` as in sandbox_spec. */
struct runtime_bootstraps runtime_find_bootstraps(const char *task_dir,
                                                  const char *const layer_dirs[SANDBOX_LAYERS_MAX]);

/*
 * 0, or RUNTIME_CHOICE_NONE with `error` set. `host` may be NULL for custom runtimes. `wrapper` is the value of the
 * function's AWS_LAMBDA_EXEC_WRAPPER, NULL or "" for none; borrowed as long as the choice. A managed runtime's command
 * is then given to that program as its arguments (guide, "Modifying the runtime environment"); custom runtimes have
 * none.
 */
int runtime_choose(const char *runtime, const struct runtime_host *host, struct runtime_bootstraps bootstraps,
                   const char *wrapper, struct runtime_choice *ret_choice) MUST_USE;

/* Finds the interpreters under `prefix` ("" for the real host) in /usr/bin, /usr/local/bin and where Node's archives
 * are usually unpacked. Blocks. */
void runtime_probe_host(const char *prefix, struct runtime_host *ret_host);

/* Puts an interpreter in its place in the order; a version that is there already stays (first found wins). */
void runtime_interpreters_add(struct runtime_interpreters *interpreters, unsigned major, unsigned minor,
                              const char *path);
