/*
 * Core's environments and the worker's, tied together: core decides that one is to be made or ended, the worker does it
 * and reports, core hears of it. One `struct frontend_environment` each, from start to gone.
 */
#include "aws/credentials.h"
#include "base/clock.h"
#include "frontend/realm.h"
#include "worker/worker.h"

struct frontend_environment {
    struct realm *realm;
    struct core_environment *core;
    struct environment *worker;
    struct catalog_version_config *config; /* what it was made from; keeps the package on disk */
    bool ready;
    struct list_link link; /* in the frontend's environment_list */
};

static void environment_free(struct frontend_environment *environment)
{
    list_remove(&environment->link);
    catalog_version_config_unref(environment->config);
    free(environment);
}

static void on_ready(struct environment *worker, bool ok, void *context)
{
    struct frontend_environment *environment = context;

    (void)worker;
    environment->ready = true;
    core_environment_ready(environment->core, ok, clock_monotonic_ns());
    realm_arm(environment->realm);
}

static void on_gone(struct environment *worker, const struct fault *fault, void *context)
{
    struct frontend_environment *environment = context;
    struct realm *realm = environment->realm;
    struct frontend *frontend = realm->frontend;
    int64_t now = clock_monotonic_ns();

    (void)worker;
    if (fault)
        log_event(frontend->config.log, LOG_ERROR, "environment of function %s: %s", environment->config->function_name,
                  fault->text);
    if (fault && !environment->ready)
        core_environment_failed(environment->core, now);
    else
        core_environment_gone(environment->core, now);
    environment_free(environment);
    frontend->environments--;
    realm_arm(realm);
    frontend_check_stopped(frontend);
}

/* On-demand environments begin their next invoke with Init, as on AWS; provisioned ones are there so that no invoke
 * does. */
static void on_idle_exit(struct environment *worker, void *context)
{
    struct frontend_environment *environment = context;

    (void)worker;
    if (environment->core->origin != CORE_PROVISIONED)
        return;
    core_environment_retire(environment->core, clock_monotonic_ns());
    realm_arm(environment->realm);
}

static const struct environment_events environment_events = {
    .on_ready = on_ready,
    .on_gone = on_gone,
    .on_idle_exit = on_idle_exit,
};

/* What is configured for the account; else made up, with an access key that names the account where that is needed. */
static struct credential function_credential(const struct frontend_config *config, const char *account)
{
    bool is_default = strcmp(account, config->default_account) == 0;
    const struct credential *found = NULL;

    if (config->function_credentials)
        found = credentials_of_account(config->function_credentials, span_from(account),
                                       span_from(config->default_account));
    return found ? *found
                 : (struct credential){
                       .access_key = is_default ? "test" : account, .secret_key = "test", .session_token = "test"};
}

static int start_worker(struct frontend_environment *environment)
{
    const struct catalog_version_config *config = environment->config;
    const struct frontend_config *frontend = &environment->realm->frontend->config;
    const struct credential credential = function_credential(frontend, config->account);
    struct environment_variable variables[config->variable_count + 1];
    struct environment_spec spec = {
        .account = config->account,
        .region = config->region,
        .function_name = config->function_name,
        .version = config->version,
        .runtime = config->runtime,
        .handler = config->handler,
        .memory_mib = config->memory_mib,
        .timeout_s = config->timeout_s,
        .tmp_mib = config->tmp_mib,
        .task_dir = config->code_dir,
        .variables = variables,
        .variable_count = config->variable_count,
        .log_group = config->log_group,
        .log_format = config->log_format,
        .application_log_level = config->application_log_level,
        .system_log_level = config->system_log_level,
        .runtime_version_arn = config->runtime_version_arn,
        .access_key = credential.access_key,
        .secret_key = credential.secret_key,
        .session_token = credential.session_token,
        .endpoint_url = frontend->function_endpoint,
        .origin = environment->core->origin == CORE_PROVISIONED ? ENVIRONMENT_PROVISIONED : ENVIRONMENT_ON_DEMAND,
    };

    for (size_t i = 0; i < CATALOG_LAYERS_MAX; i++)
        spec.layer_dirs[i] = config->layer_dirs[i];
    for (size_t i = 0; i < config->variable_count; i++)
        variables[i] = (struct environment_variable){config->variables[i].name, config->variables[i].value};
    return worker_start_environment(frontend->worker, &spec, &environment_events, environment, &environment->worker);
}

int environments_start(struct core_environment *core, void *context)
{
    struct realm *realm = context;
    struct frontend *frontend = realm->frontend;
    struct catalog_version *version = core_version_owner(core->version);
    struct frontend_environment *environment;
    int r;

    if (frontend->stopping && core->origin == CORE_PROVISIONED)
        return -ECANCELED;
    if (!version || !version->active)
        return -ENOENT;
    environment = calloc(1, sizeof(*environment));
    if (!environment)
        return -ENOMEM;
    environment->realm = realm;
    environment->core = core;
    list_link_init(&environment->link);
    environment->config = catalog_version_config_ref(version->active);
    r = start_worker(environment);
    if (r < 0) {
        log_event(frontend->config.log, LOG_ERROR, "an environment of function %s could not be started: %s",
                  version->function->name, strerror(-r));
        environment_free(environment);
        return r;
    }
    core->owner = environment;
    list_push_back(&frontend->environment_list, &environment->link);
    frontend->environments++;
    return 0;
}

void environments_stop(struct core_environment *core, void *context)
{
    struct frontend_environment *environment = core->owner;

    (void)context;
    environment_retire(environment->worker);
}

void environments_invoke(struct core_environment *core, struct invocation *invocation)
{
    struct frontend_environment *environment = core->owner;

    environment_invoke(environment->worker, invocation);
}

void environments_resume_stream(struct core_environment *core)
{
    struct frontend_environment *environment = core->owner;

    environment_resume_stream(environment->worker);
}

bool environments_is_ending(const struct core_environment *core)
{
    const struct frontend_environment *environment = core->owner;

    return environment_is_ending(environment->worker);
}

void environments_drop_all(struct frontend *frontend)
{
    LIST_FOREACH (link, &frontend->environment_list)
        environment_free(CONTAINER_OF(link, struct frontend_environment, link));
}
