#include "worker/environment_extensions.h"

#include "base/clock.h"
#include "worker/environment.h"
#include "worker/extension_output.h"
#include "worker/extensions_api.h"
#include "worker/process_variables.h"
#include "worker/telemetry.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

enum { SCRATCH_BYTES = 16 * 1024 };

#define FOLDER "/opt/extensions/"

/* --- the object --------------------------------------------------------------------------------------------------- */

int extensions_ensure(struct environment *environment)
{
    struct environment_extensions *extensions;

    if (environment->extensions)
        return 0;
    extensions = calloc(1, sizeof(*extensions));
    if (!extensions)
        return -ENOMEM;
    extensions->environment = environment;
    limit_init(&extensions->closing_limit);
    limit_init(&extensions->runtime_limit);
    environment->extensions = extensions;
    return 0;
}

void extensions_stop_closing(struct environment *environment)
{
    struct environment_extensions *extensions = environment->extensions;

    if (!extensions)
        return;
    extensions->closing = CLOSING_NONE;
    limit_stop(&extensions->closing_limit);
    limit_stop(&extensions->runtime_limit);
}

void extensions_destroy(struct environment *environment)
{
    struct environment_extensions *extensions = environment->extensions;

    if (!extensions)
        return;
    extensions_stop_closing(environment);
    extension_set_clear(&extensions->set);
    extension_output_free(extensions->output);
    environment->extensions = NULL;
    free(extensions);
}

void extensions_forget(struct environment *environment)
{
    if (!environment->extensions)
        return;
    extension_output_drain(environment->extensions->output);
    telemetry_forget(environment);
    extension_set_clear(&environment->extensions->set);
}

/* --- the start ---------------------------------------------------------------------------------------------------- */

struct names {
    char *list[256];
    size_t count;
    bool failed;
};

static void names_deinit(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->list[i]);
}

static bool has_name(const struct names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->list[i], name) == 0)
            return true;
    return false;
}

static void add_name(struct names *names, const char *name)
{
    if (names->count == ARRAY_SIZE(names->list) || has_name(names, name))
        return;
    names->list[names->count] = strdup(name);
    if (names->list[names->count])
        names->count++;
    else
        names->failed = true;
}

/* What is in a layer hides what lower ones have under that name, whatever it is. */
static void scan_layer(const char *layer, struct names *files, struct names *seen)
{
    CLEANUP(cleanup_close) int root = open(layer, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = root < 0 ? -1 : openat(root, "extensions", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    struct stat status;

    if (!directory) {
        cleanup_close(&fd);
        return;
    }
    while ((entry = readdir(directory))) {
        if (entry->d_name[0] == '.' && (!entry->d_name[1] || strcmp(entry->d_name, "..") == 0))
            continue;
        if (has_name(seen, entry->d_name) || fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        add_name(seen, entry->d_name);
        if (!S_ISDIR(status.st_mode))
            add_name(files, entry->d_name);
    }
    closedir(directory);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void find_external(const struct environment_spec *spec, struct names *files)
{
    CLEANUP(names_deinit) struct names seen = {.count = 0};

    for (int i = SANDBOX_LAYERS_MAX - 1; i >= 0; i--)
        if (spec->layer_dirs[i])
            scan_layer(spec->layer_dirs[i], files, &seen);
    files->failed = files->failed || seen.failed;
    qsort(files->list, files->count, sizeof(files->list[0]), compare_names);
}

static void on_line(struct span line, void *context)
{
    telemetry_line(context, TELEMETRY_EXTENSION, line);
}

static int prepare(struct environment *environment, const struct names *names)
{
    struct environment_extensions *extensions;
    int r = names->failed ? -ENOMEM : extensions_ensure(environment);

    if (r < 0)
        return r;
    extensions = environment->extensions;
    if (!extensions->output)
        r = extension_output_new(environment->worker->config.loop, environment->log, environment->worker->scratch,
                                 SCRATCH_BYTES, on_line, environment, &extensions->output);
    if (r == 0 && !extensions->variables)
        r = process_variables_for_extensions(environment->process_variables, &environment->arena,
                                             &extensions->variables);
    for (size_t i = 0; r == 0 && i < names->count && i <= EXTENSIONS_MAX; i++)
        r = extension_set_add_external(&extensions->set, names->list[i], ++environment->last_run);
    return r;
}

bool extensions_launch(struct environment *environment)
{
    CLEANUP(names_deinit) struct names names = {.count = 0};

    if (!environment->spec.layer_dirs[0])
        return false;
    find_external(&environment->spec, &names);
    if (!names.count && !names.failed)
        return false;
    if (prepare(environment, &names) < 0)
        environment_fail(environment, FAILURE_SETTLES, "Sandbox.Failure", "Out of memory");
    else
        environment_ask(environment, REQUEST_RUN_EXTENSIONS);
    return true;
}

static void fail_launch(struct environment *environment, struct extension *extension, const char *error_type,
                        const char *message, enum failure_verdict verdict)
{
    extension->state = EXTENSION_LAUNCH_ERROR;
    extension->alive = false;
    snprintf(extension->error_type, sizeof(extension->error_type), "%s", error_type);
    environment_fail(environment, verdict, "Extension.LaunchError", message);
}

static int send_run(struct environment *environment, struct extension *extension)
{
    struct environment_extensions *extensions = environment->extensions;
    char path[sizeof(FOLDER) + 256];
    const char *const argv[] = {path, NULL};
    const struct sandbox_process process = {
        .argv = argv, .envp = extensions->variables, .cwd = "/", .output_fd = extension_output_fd(extensions->output)};

    snprintf(path, sizeof(path), FOLDER "%s", extension->name);
    return launcher_run(environment->worker->config.launcher, environment->id, extension->run, &process);
}

int extensions_send_runs(struct environment *environment)
{
    struct extension_set *set = &environment->extensions->set;

    for (size_t i = 0; i < set->count; i++) {
        struct extension *extension = &set->list[i];
        int r;

        if (!extension->external || extension->sent)
            continue;
        r = i < EXTENSIONS_MAX ? send_run(environment, extension) : 0;
        if (r == -EAGAIN)
            return r;
        extension->sent = true;
        if (i == EXTENSIONS_MAX)
            fail_launch(environment, extension, "TooManyExtensions", "ErrTooManyExtensions", FAILURE_SETTLES);
        else if (r < 0)
            fail_launch(environment, extension, "UnknownError", strerror(-r), FAILURE_SETTLES);
    }
    return 0;
}

/* --- Init and invocation ------------------------------------------------------------------------------------------ */

void extensions_on_registered(struct environment *environment)
{
    if (environment->state == ENVIRONMENT_INIT && !environment->runtime_alive && !environment->failure.set &&
        extension_set_all_registered(&environment->extensions->set))
        environment_run_runtime(environment);
}

bool extensions_end_registration(struct environment *environment)
{
    if (!environment->extensions)
        return true;
    environment->extensions->set.closed = true;
    return extension_set_all_ready(&environment->extensions->set);
}

bool extensions_are_running(const struct environment *environment)
{
    return environment->extensions && extension_set_is_running(&environment->extensions->set);
}

void extensions_send_invoke(struct environment *environment, struct span trace_id)
{
    struct extension_set *set = environment->extensions ? &environment->extensions->set : NULL;

    for (size_t i = 0; set && i < set->count; i++) {
        struct extension *extension = &set->list[i];

        if (!(extension->events & EXTENSION_INVOKE))
            continue;
        extension->state = EXTENSION_RUNNING;
        extension->owed = extensions_api_send_invoke(environment, extension, trace_id) < 0;
    }
}

void extensions_log(struct environment *environment)
{
    struct extension_set *set = environment->extensions ? &environment->extensions->set : NULL;

    for (size_t i = 0; set && i < set->count; i++) {
        environment_log_extension(environment, set->list[i].name, extension_state_name(set->list[i].state),
                                  set->list[i].events, set->list[i].error_type);
        telemetry_extension(environment, &set->list[i]);
    }
}

/* What it has posted tells more than how it ended. */
static const char *failure_type(const struct extension *extension)
{
    return extension->state == EXTENSION_INIT_ERROR   ? "Extension.InitError"
           : extension->state == EXTENSION_EXIT_ERROR ? "Extension.ExitError"
                                                      : "Extension.Crash";
}

static void fail_exited(struct environment *environment, struct extension *extension, int exec_errno,
                        const struct sandbox_exit *exit)
{
    char path[sizeof(FOLDER) + 256];
    char text[INVOCATION_MESSAGE_BYTES];

    if (exec_errno) {
        snprintf(path, sizeof(path), FOLDER "%s", extension->name);
        fail_launch(environment, extension, exec_errno == EACCES ? "PermissionDenied" : "UnknownError",
                    invocation_error_exec(path, exec_errno, text), FAILURE_STANDS);
        return;
    }
    environment_fail(environment, extension->error_type[0] ? FAILURE_STANDS : FAILURE_SETTLES, failure_type(extension),
                     invocation_error_extension_exit(exit->status, exit->signal, text));
}

bool extensions_take_error(struct environment *environment, struct extension *extension, enum extension_state state,
                           struct span error_type)
{
    bool init = state == EXTENSION_INIT_ERROR;

    if (extension->state == state)
        return true; /* the first counts */
    if (extension->state != EXTENSION_REGISTERED &&
        (init || (extension->state != EXTENSION_READY && extension->state != EXTENSION_RUNNING)))
        return false;
    extension->state = state;
    snprintf(extension->error_type, sizeof(extension->error_type), "%.*s", SPAN_ARG(error_type));
    /* It exits by itself, which then says how; if it does not, it is not waited for. */
    if (environment->state == ENVIRONMENT_INIT || environment->state == ENVIRONMENT_BUSY)
        environment_fail(environment, extension->external && extension->alive ? FAILURE_LINGERS : FAILURE_SETTLES,
                         failure_type(extension), init ? "Extension failed to initialize" : "Extension failed");
    return true;
}

/* --- the Shutdown phase ------------------------------------------------------------------------------------------- */

bool extensions_are_closing(const struct environment *environment)
{
    return environment->extensions && environment->extensions->closing != CLOSING_NONE;
}

static void finish_closing(struct environment *environment)
{
    extensions_stop_closing(environment);
    environment_on_closed(environment);
}

static bool wants_shutdown(const struct extension *extension)
{
    return extension->alive && (extension->events & EXTENSION_SHUTDOWN);
}

static void send_shutdown(struct environment_extensions *extensions, struct extension *extension)
{
    if (extension->next &&
        extensions_api_send_shutdown(extension, extensions->closing_reason, extensions->closing_deadline_wall_ms) == 0)
        extension->state = EXTENSION_RUNNING;
}

/* False when there is nobody to wait for. */
static bool close_extensions(struct environment_extensions *extensions)
{
    extensions->closing = CLOSING_EXTENSIONS;
    telemetry_flush(extensions->environment);
    limit_stop(&extensions->runtime_limit);
    for (size_t i = 0; i < extensions->set.count; i++)
        if (wants_shutdown(&extensions->set.list[i]))
            send_shutdown(extensions, &extensions->set.list[i]);
    return extension_set_awaits_shutdown(&extensions->set);
}

static bool begin_closing(struct environment_extensions *extensions)
{
    struct environment *environment = extensions->environment;
    struct worker *worker = environment->worker;
    bool external = extension_set_has_external(&extensions->set);
    int64_t now_ns = clock_monotonic_ns();

    worker_start_limit(worker, external ? worker->shutdowns : worker->internal_shutdowns, &extensions->closing_limit,
                       now_ns);
    extensions->closing_deadline_wall_ms = (clock_wall_ns() + extensions->closing_limit.at_ns - now_ns) / NS_PER_MS;
    if (!environment->runtime_alive)
        return external && close_extensions(extensions);
    extensions->closing = CLOSING_RUNTIME;
    if (external)
        worker_start_limit(worker, worker->runtime_shutdowns, &extensions->runtime_limit, now_ns);
    environment_ask(environment, REQUEST_TERMINATE_RUNTIME);
    return true;
}

bool extensions_close(struct environment *environment, const char *reason)
{
    struct environment_extensions *extensions = environment->extensions;

    if (!extensions || !extension_set_registered(&extensions->set))
        return false;
    environment_io_thaw(environment);
    extensions->closing_reason = reason;
    for (size_t i = 0; i < extensions->set.count; i++)
        extensions->set.list[i].owed = false;
    if (begin_closing(extensions))
        return true;
    extensions_stop_closing(environment);
    return false;
}

static void end_runtime_share(struct environment_extensions *extensions)
{
    if (!close_extensions(extensions))
        finish_closing(extensions->environment);
}

void extensions_on_runtime_exit(struct environment *environment)
{
    if (extensions_are_closing(environment) && environment->extensions->closing == CLOSING_RUNTIME)
        end_runtime_share(environment->extensions);
}

void extensions_on_runtime_limit(struct limit *limit)
{
    struct environment_extensions *extensions = CONTAINER_OF(limit, struct environment_extensions, runtime_limit);

    environment_ask(extensions->environment, REQUEST_KILL_RUNTIME);
    end_runtime_share(extensions);
}

void extensions_on_closing_limit(struct limit *limit)
{
    finish_closing(CONTAINER_OF(limit, struct environment_extensions, closing_limit)->environment);
}

/* --- what happens to them ----------------------------------------------------------------------------------------- */

bool extensions_on_exit(struct environment *environment, uint32_t run, int exec_errno, const struct sandbox_exit *exit)
{
    struct environment_extensions *extensions = environment->extensions;
    struct extension *extension = extensions ? extension_set_find_run(&extensions->set, run) : NULL;

    if (!extension)
        return false;
    if (!extension->alive)
        return true;
    extension->alive = false;
    if (extensions->closing == CLOSING_EXTENSIONS && !extension_set_awaits_shutdown(&extensions->set))
        finish_closing(environment);
    else if (environment->state == ENVIRONMENT_INIT || environment->state == ENVIRONMENT_BUSY)
        fail_exited(environment, extension, exec_errno, exit);
    else if (environment->state == ENVIRONMENT_IDLE)
        environment_on_idle_death(environment);
    return true;
}

/* It is done with an event, or with its own Init. */
static void become_ready(struct environment *environment, struct extension *extension, struct http_request *request)
{
    extension->state = EXTENSION_READY;
    extension->next = request;
    if (environment->state == ENVIRONMENT_INIT || environment->state == ENVIRONMENT_BUSY)
        environment_on_extension_ready(environment);
}

static struct span trace_id_of(const struct environment *environment)
{
    return environment->invocation->trace_id.length ? environment->invocation->trace_id
                                                    : span_from(environment->trace_id);
}

bool extensions_take_next(struct environment *environment, struct extension *extension, struct http_request *request)
{
    struct environment_extensions *extensions = environment->extensions;

    if (extension->next || (extension->state != EXTENSION_REGISTERED && extension->state != EXTENSION_READY &&
                            extension->state != EXTENSION_RUNNING))
        return false;
    if (extension->owed) {
        extension->next = request;
        extension->owed = extensions_api_send_invoke(environment, extension, trace_id_of(environment)) < 0;
        return true;
    }
    become_ready(environment, extension, request);
    if (extensions->closing == CLOSING_EXTENSIONS && wants_shutdown(extension))
        send_shutdown(extensions, extension);
    return true;
}

bool extensions_on_next_lost(struct environment *environment, const struct http_request *request)
{
    struct extension_set *set = environment->extensions ? &environment->extensions->set : NULL;

    for (size_t i = 0; set && i < set->count; i++) {
        if (set->list[i].next != request)
            continue;
        set->list[i].next = NULL;
        return true;
    }
    return false;
}
