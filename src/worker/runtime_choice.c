#include "worker/runtime_choice.h"

#include "base/clock.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { VERSION_WAIT_MS = 5000, VERSION_TEXT_BYTES = 64 };

static const char *const bin_folders[] = {"/usr/local/bin", "/usr/bin"};
/* Each child folder may hold bin/node: where the archives of nodejs.org go by their own instructions, and `n`. */
static const char *const node_archive_folders[] = {"/usr/local/lib/nodejs", "/usr/local/n/versions/node"};

/* --- the choice --------------------------------------------------------------------------------------------------- */

enum runtime_family runtime_family_of(const char *runtime)
{
    struct span name = span_from(runtime);

    if (span_starts_with(name, SPAN("provided")))
        return RUNTIME_CUSTOM;
    if (span_starts_with(name, SPAN("python3.")))
        return RUNTIME_PYTHON;
    if (span_starts_with(name, SPAN("nodejs")))
        return RUNTIME_NODE;
    return RUNTIME_UNSUPPORTED;
}

const char *runtime_family_folder(enum runtime_family family)
{
    switch (family) {
    case RUNTIME_PYTHON:
        return "python";
    case RUNTIME_NODE:
        return "nodejs";
    default:
        return NULL;
    }
}

static bool has_bootstrap(const char *folder)
{
    char path[PATH_MAX];
    struct stat status;

    if (!folder || snprintf(path, sizeof(path), "%s/bootstrap", folder) >= (int)sizeof(path))
        return false;
    return stat(path, &status) == 0 && !S_ISDIR(status.st_mode);
}

struct runtime_bootstraps runtime_find_bootstraps(const char *task_dir,
                                                  const char *const layer_dirs[SANDBOX_LAYERS_MAX])
{
    struct runtime_bootstraps found = {.in_task = has_bootstrap(task_dir)};

    for (size_t i = 0; i < SANDBOX_LAYERS_MAX && layer_dirs[i] && !found.in_layers; i++)
        found.in_layers = has_bootstrap(layer_dirs[i]);
    return found;
}

static int choose_custom(struct runtime_bootstraps bootstraps, struct runtime_choice *choice)
{
    if (!bootstraps.in_task && !bootstraps.in_layers) {
        snprintf(choice->error, sizeof(choice->error),
                 "Couldn't find valid bootstrap(s): [/var/task/bootstrap /opt/bootstrap]");
        return RUNTIME_CHOICE_NONE;
    }
    snprintf(choice->path, sizeof(choice->path), "%s", bootstraps.in_task ? "/var/task/bootstrap" : "/opt/bootstrap");
    choice->argv[0] = choice->path;
    return 0;
}

/* The number at the front of a version text; 0 when there is none. */
static unsigned leading_number(const char *text)
{
    unsigned value = 0;

    while (*text >= '0' && *text <= '9' && value < 100000)
        value = value * 10 + (unsigned)(*text++ - '0');
    return value;
}

static const struct runtime_interpreter *find(const struct runtime_interpreters *all, enum runtime_family family,
                                              const char *runtime)
{
    for (size_t i = 0; i < all->count; i++) {
        const struct runtime_interpreter *item = &all->items[i];

        if (family == RUNTIME_PYTHON && item->major == 3 && item->minor == leading_number(runtime + strlen("python3.")))
            return item;
        if (family == RUNTIME_NODE && item->major == leading_number(runtime + strlen("nodejs")))
            return item;
    }
    return NULL;
}

static void list_versions(const struct runtime_interpreters *all, char *text, size_t size)
{
    size_t length = 0;

    text[0] = '\0';
    for (size_t i = 0; i < all->count && length < size; i++)
        length += (size_t)snprintf(text + length, size - length, "%s%u.%u", i ? ", " : "", all->items[i].major,
                                   all->items[i].minor);
}

static int choose_managed(const char *runtime, enum runtime_family family, const struct runtime_interpreters *all,
                          struct runtime_choice *choice)
{
    const struct runtime_interpreter *interpreter = find(all, family, runtime);
    char versions[256];

    if (!interpreter && all->count == 0) {
        snprintf(choice->error, sizeof(choice->error),
                 "Couldn't find an interpreter for runtime %s: no %s under /usr on this host", runtime,
                 family == RUNTIME_PYTHON ? "python3" : "node");
        return RUNTIME_CHOICE_NONE;
    }
    if (!interpreter) {
        interpreter = &all->items[0];
        list_versions(all, versions, sizeof(versions));
        snprintf(choice->warning, sizeof(choice->warning),
                 "Kiln: runtime %s is not installed on this host; running with %s (installed: %s)\n", runtime,
                 interpreter->path, versions);
    }
    snprintf(choice->path, sizeof(choice->path), "%s", interpreter->path);
    choice->argv[0] = choice->path;
    if (family == RUNTIME_PYTHON) {
        choice->argv[1] = "-S"; /* the bootstrap does of `site` what functions see, in a fraction of its time */
        choice->argv[2] = "/var/runtime/bootstrap.py";
    } else {
        choice->argv[1] = "/var/runtime/bootstrap.mjs";
    }
    return 0;
}

/* In a wrapper's hands Python starts the whole way: tracing tools hook in with a sitecustomize. */
static void wrap(struct runtime_choice *choice, const char *wrapper)
{
    const char *const *from = choice->argv;
    const char *wrapped[ARRAY_SIZE(choice->argv)] = {wrapper};
    size_t count = 1;

    for (; *from; from++)
        if (strcmp(*from, "-S") != 0)
            wrapped[count++] = *from;
    choice->wrapper = wrapper;
    memcpy(choice->argv, wrapped, sizeof(wrapped));
}

static int choose_wrapped(const char *runtime, enum runtime_family family, const struct runtime_interpreters *all,
                          const char *wrapper, struct runtime_choice *choice)
{
    int r = choose_managed(runtime, family, all, choice);

    if (r == 0 && wrapper && *wrapper)
        wrap(choice, wrapper);
    return r;
}

int runtime_choose(const char *runtime, const struct runtime_host *host, struct runtime_bootstraps bootstraps,
                   const char *wrapper, struct runtime_choice *ret_choice)
{
    static const struct runtime_host nothing;
    enum runtime_family family = runtime_family_of(runtime);

    host = host ? host : &nothing;
    *ret_choice = (struct runtime_choice){0};
    switch (family) {
    case RUNTIME_CUSTOM:
        return choose_custom(bootstraps, ret_choice);
    case RUNTIME_PYTHON:
        return choose_wrapped(runtime, family, &host->python, wrapper, ret_choice);
    case RUNTIME_NODE:
        return choose_wrapped(runtime, family, &host->node, wrapper, ret_choice);
    case RUNTIME_UNSUPPORTED:
        break;
    }
    snprintf(ret_choice->error, sizeof(ret_choice->error),
             "Couldn't find a runtime for %s: Kiln runs provided, python and nodejs functions", runtime);
    return RUNTIME_CHOICE_NONE;
}

void runtime_interpreters_add(struct runtime_interpreters *interpreters, unsigned major, unsigned minor,
                              const char *path)
{
    struct runtime_interpreter *items = interpreters->items;
    size_t at = 0;

    while (at < interpreters->count &&
           (items[at].major > major || (items[at].major == major && items[at].minor > minor)))
        at++;
    if (at < interpreters->count && items[at].major == major && items[at].minor == minor)
        return;
    if (at == RUNTIME_INTERPRETERS_MAX || strlen(path) >= RUNTIME_PATH_BYTES)
        return;
    if (interpreters->count == RUNTIME_INTERPRETERS_MAX)
        interpreters->count--; /* the oldest */
    memmove(items + at + 1, items + at, (interpreters->count - at) * sizeof(*items));
    interpreters->count++;
    items[at].major = major;
    items[at].minor = minor;
    snprintf(items[at].path, sizeof(items[at].path), "%s", path);
}

/* --- the probe ---------------------------------------------------------------------------------------------------- */

/* Calls `on_file` with the real path of every executable in the folder; links that lead out of /usr are passed over,
 * since a sandbox would not show their target. */
static void walk(const char *prefix, const char *folder, void (*on_file)(const char *name, const char *path, void *),
                 void *context)
{
    char where[PATH_MAX];
    DIR *directory;
    struct dirent *entry;

    snprintf(where, sizeof(where), "%s%s", prefix, folder);
    directory = opendir(where);
    if (!directory)
        return;
    while ((entry = readdir(directory))) {
        char path[PATH_MAX + NAME_MAX + 2];
        char real[PATH_MAX];

        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", where, entry->d_name);
        if (access(path, X_OK) == 0 && realpath(path, real) && (prefix[0] || strncmp(real, "/usr/", 5) == 0))
            on_file(entry->d_name, real, context);
    }
    closedir(directory);
}

/* "python3.11" and nothing after it. */
static void on_python_file(const char *name, const char *path, void *context)
{
    unsigned minor;
    int used = 0;

    if (sscanf(name, "python3.%3u%n", &minor, &used) == 1 && name[used] == '\0')
        runtime_interpreters_add(context, 3, minor, path);
}

/* Reads until the end, VERSION_WAIT_MS or a full buffer. */
static void read_text(int fd, char text[VERSION_TEXT_BYTES])
{
    int64_t until_ns = clock_monotonic_ns() + VERSION_WAIT_MS * NS_PER_MS;
    size_t length = 0;

    while (length < VERSION_TEXT_BYTES - 1) {
        int64_t left_ns = until_ns - clock_monotonic_ns();
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        ssize_t n;

        if (left_ns <= 0 || poll(&ready, 1, (int)(left_ns / NS_PER_MS) + 1) <= 0)
            break;
        n = read(fd, text + length, VERSION_TEXT_BYTES - 1 - length);
        if (n <= 0)
            break;
        length += (size_t)n;
    }
    text[length] = '\0';
}

static int spawn_version(const char *path, int output_fd, pid_t *ret_pid)
{
    char *const argv[] = {(char *)path, (char *)"--version", NULL};
    char *const envp[] = {NULL};
    posix_spawn_file_actions_t actions;
    int r;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output_fd, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    r = posix_spawn(ret_pid, path, &actions, NULL, argv, envp);
    posix_spawn_file_actions_destroy(&actions);
    return -r;
}

static void read_version(const char *path, char text[VERSION_TEXT_BYTES])
{
    int ends[2];
    pid_t pid;

    text[0] = '\0';
    if (pipe2(ends, O_CLOEXEC) < 0)
        return;
    if (spawn_version(path, ends[1], &pid) == 0) {
        close(ends[1]);
        read_text(ends[0], text);
        kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
    } else {
        close(ends[1]);
    }
    close(ends[0]);
}

static void add_node(const char *path, struct runtime_interpreters *nodes)
{
    char text[VERSION_TEXT_BYTES];
    unsigned major, minor;

    for (size_t i = 0; i < nodes->count; i++)
        if (strcmp(nodes->items[i].path, path) == 0)
            return; /* node and nodejs are often one file */
    read_version(path, text);
    if (sscanf(text, "v%5u.%5u.", &major, &minor) == 2)
        runtime_interpreters_add(nodes, major, minor, path);
}

/* "node", "nodejs", "node20", "node-20", "nodejs-20" */
static void on_node_file(const char *name, const char *path, void *context)
{
    if (strncmp(name, "node", 4) != 0)
        return;
    name += strncmp(name, "nodejs", 6) == 0 ? 6 : 4;
    name += *name == '-';
    if (name[strspn(name, "0123456789")] == '\0')
        add_node(path, context);
}

static void on_node_archive(const char *name, const char *path, void *context)
{
    char program[PATH_MAX];

    (void)name;
    if (snprintf(program, sizeof(program), "%s/bin/node", path) < (int)sizeof(program) && access(program, X_OK) == 0)
        add_node(program, context);
}

void runtime_probe_host(const char *prefix, struct runtime_host *ret_host)
{
    *ret_host = (struct runtime_host){0};
    for (size_t i = 0; i < ARRAY_SIZE(bin_folders); i++) {
        walk(prefix, bin_folders[i], on_python_file, &ret_host->python);
        walk(prefix, bin_folders[i], on_node_file, &ret_host->node);
    }
    for (size_t i = 0; i < ARRAY_SIZE(node_archive_folders); i++)
        walk(prefix, node_archive_folders[i], on_node_archive, &ret_host->node);
}
