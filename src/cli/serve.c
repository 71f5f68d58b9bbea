/*
 * Builds every part in the order in which they need each other, runs the loop, and takes them down in reverse.
 *
 *   options -> bind the port -> lock the data directory -> launcher (fork) -> store -> catalog, worker, frontend
 *           -> load -> "ready" -> loop -> orderly stop -> flush -> exit
 *
 * The port is bound first, so that a port in use leaves the data directory as it was; nothing is accepted before the
 * loop runs. The directory is locked before the launcher starts, because the launcher removes what an earlier run of
 * the same directory left in the cgroup trees. The launcher is forked before the store's thread exists and closes every
 * descriptor it inherits.
 *
 * SIGTERM or SIGINT: stop accepting, let requests under way end (bounded by STOP_SECONDS), end every environment with
 * its Shutdown phase, flush, exit 0. A second signal ends everything at once.
 */
#include "cli/serve.h"

#include "api/gateway.h"
#include "catalog/catalog.h"
#include "cli/options.h"
#include "frontend/frontend.h"
#include "http/client.h"
#include "store/code.h"
#include "store/store.h"
#include "worker/worker.h"

#include <arpa/inet.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { STOP_SECONDS = 30, SHUTDOWN_SECONDS = 5, NETWORK_SLOTS = 64 };

enum exit_status { EXIT_STATUS_OK, EXIT_STATUS_FAILED, EXIT_STATUS_USAGE };

struct serve {
    struct serve_options options;
    struct log log;
    char data_dir[PATH_MAX];
    char runtimes_dir[PATH_MAX];
    char instance[32];
    uv_loop_t loop;
    uv_signal_t signals[2];
    uv_timer_t stop_timer;
    int lock;
    struct launcher *launcher;
    struct http_server *api_server;
    struct http_server *runtime_server; /* the Runtime API sockets of the environments */
    struct http_listener *listener;
    struct store *store;
    struct code_store *code;
    struct catalog *catalog;
    struct http_client *client;
    struct worker *worker;
    struct frontend *frontend;
    struct credentials *credentials;
    struct credentials *function_credentials;
    char function_endpoint[128]; /* "": none */
    struct operation_services services;
    struct gateway *gateway;
    bool stopping;
    bool api_idle;
    bool ending; /* the loop has ended: parts are being taken down */
    enum exit_status status;
};

static int fail(const struct fault *fault, enum exit_status status)
{
    fprintf(stderr, "kiln: %s\n", fault->text);
    return (int)status;
}

/* --- preparing -----------------------------------------------------------------------------------------------------
 */

/* As many descriptors as the system allows: a thousand environments hold several each. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static bool is_directory(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* Beside the program as installed (../share/kiln/runtimes) or as built (../runtimes), unless an option says where. */
static int find_runtimes(struct serve *serve, struct fault *fault)
{
    static const char *const places[] = {"../share/kiln/runtimes", "../runtimes"};
    char program[PATH_MAX];
    char candidate[PATH_MAX + 64];
    ssize_t length;
    char *slash;

    if (serve->options.runtimes_dir) {
        if (!is_directory(serve->options.runtimes_dir) || !realpath(serve->options.runtimes_dir, serve->runtimes_dir))
            return fault_set(fault, ENOENT, "--runtimes-dir: '%s' is not a directory", serve->options.runtimes_dir);
        return 0;
    }
    length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (length < 0)
        return fault_set(fault, errno, "cannot find the program's own path: %s", strerror(errno));
    program[length] = '\0';
    slash = strrchr(program, '/');
    if (slash)
        *slash = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        snprintf(candidate, sizeof(candidate), "%s/%s", program, places[i]);
        if (is_directory(candidate) && realpath(candidate, serve->runtimes_dir))
            return 0;
    }
    return fault_set(fault, ENOENT, "the runtimes' bootstraps are not beside the program; use --runtimes-dir");
}

/* A short name for this data directory in the cgroup trees: the same at every start, another for every directory. */
static void name_instance(struct serve *serve)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (const char *p = serve->data_dir; *p; p++)
        hash = (hash ^ (unsigned char)*p) * 0x100000001b3u;
    snprintf(serve->instance, sizeof(serve->instance), "%016llx", (unsigned long long)hash);
}

static int load_credentials(struct serve *serve, struct fault *fault)
{
    int r = 0;

    if (serve->options.auth != SERVE_AUTH_OFF)
        r = credentials_load(serve->options.credentials, &serve->credentials, fault);
    if (r == 0 && serve->options.function_credentials)
        r = credentials_load(serve->options.function_credentials, &serve->function_credentials, fault);
    return r;
}

static int listen_on_port(struct serve *serve, struct fault *fault)
{
    const struct http_server_config config = {.loop = &serve->loop};
    const struct gateway_config gateway = {
        .services = &serve->services,
        .log = &serve->log,
        .credentials = serve->credentials,
        .default_account = serve->options.account_id,
        .default_region = serve->options.region,
    };
    int r = http_server_new(&config, &serve->api_server);

    if (r == 0)
        r = http_server_new(&config, &serve->runtime_server);
    if (r == 0)
        r = gateway_new(&gateway, &serve->gateway);
    if (r < 0)
        return fault_set(fault, -r, "cannot make the HTTP server: %s", strerror(-r));
    return http_server_listen(serve->api_server, serve->options.host, serve->options.port, gateway_http_handler(),
                              serve->gateway, &serve->listener, fault);
}

static int prepare_directory(struct serve *serve, struct fault *fault)
{
    int r = store_lock(serve->options.data_dir, &serve->lock, fault);

    if (r < 0)
        return r;
    if (!realpath(serve->options.data_dir, serve->data_dir))
        return fault_set(fault, errno, "%s: %s", serve->options.data_dir, strerror(errno));
    name_instance(serve);
    return 0;
}

static bool serves_functions(const struct serve *serve)
{
    return serve->options.function_endpoint && !strcmp(serve->options.function_endpoint, "self");
}

/* Where functions behind NAT are let through to: what listens on loopback alone is out of their reach else. */
static int find_exposed(const struct serve *serve, struct launcher_config *config, struct fault *fault)
{
    struct sockaddr_storage bound;
    struct sockaddr_in address;
    int r;

    if (config->network != SANDBOX_NETWORK_NAT || !serves_functions(serve) ||
        !serve_host_is_loopback(serve->options.host))
        return 0;
    r = http_listener_address(serve->listener, &bound);
    if (r < 0)
        return fault_set(fault, -r, "cannot find the API's address: %s", strerror(-r));
    if (bound.ss_family != AF_INET)
        return fault_set(fault, EINVAL,
                         "--function-endpoint self with --network nat needs an IPv4 address in --listen");
    memcpy(&address, &bound, sizeof(address));
    config->api_address = ntohl(address.sin_addr.s_addr);
    config->api_port = ntohs(address.sin_port);
    return 0;
}

static int start_launcher(struct serve *serve, struct fault *fault)
{
    bool given = serve->options.network_given;
    struct launcher_config config = {
        .network = given            ? serve->options.network
                   : geteuid() == 0 ? SANDBOX_NETWORK_NAT
                                    : SANDBOX_NETWORK_HOST,
        .or_host_network = !given,
        .instance = serve->instance,
        .data_dir = serve->data_dir,
        .slots = NETWORK_SLOTS,
    };
    int r = find_exposed(serve, &config, fault);

    if (r == 0)
        r = launcher_start(&config, &serve->launcher, fault);
    if (r < 0)
        return r;
    for (const char *const *warning = launcher_warnings(serve->launcher); *warning; warning++)
        log_event(&serve->log, LOG_WARNING, "%s", *warning);
    return 0;
}

/* --- stopping ------------------------------------------------------------------------------------------------------
 */

static void finish(struct serve *serve)
{
    uv_stop(&serve->loop);
}

static void on_stop_expired(uv_timer_t *timer)
{
    struct serve *serve = timer->data;

    log_event(&serve->log, LOG_WARNING, "not everything ended in time; %zu requests are given up",
              frontend_in_flight(serve->frontend));
    finish(serve);
}

static void on_frontend_stopped(void *context)
{
    finish(context);
}

static void on_api_idle(void *context)
{
    struct serve *serve = context;

    serve->api_idle = true;
    frontend_stop(serve->frontend, on_frontend_stopped, serve);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct serve *serve = handle->data;

    if (serve->ending)
        return;
    if (serve->stopping) {
        finish(serve);
        return;
    }
    serve->stopping = true;
    log_event(&serve->log, LOG_INFO, "stopping on signal %d", number);
    uv_timer_start(&serve->stop_timer, on_stop_expired, (uint64_t)(STOP_SECONDS + SHUTDOWN_SECONDS) * 1000, 0);
    http_server_shutdown(serve->api_server, on_api_idle, serve);
}

static void on_launcher_lost(void *context)
{
    struct serve *serve = context;

    log_event(&serve->log, LOG_ERROR, "the launcher died; every sandbox is gone with it, and the daemon ends too");
    serve->status = EXIT_STATUS_FAILED;
    finish(serve);
}

static int watch_signals(struct serve *serve)
{
    static const int numbers[] = {SIGTERM, SIGINT};
    int r = uv_timer_init(&serve->loop, &serve->stop_timer);

    serve->stop_timer.data = serve;
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(numbers); i++) {
        serve->signals[i].data = serve;
        r = uv_signal_init(&serve->loop, &serve->signals[i]);
        if (r == 0)
            r = uv_signal_start(&serve->signals[i], on_signal, numbers[i]);
    }
    return r;
}

/* --- building ------------------------------------------------------------------------------------------------------
 */

static int open_storage(struct serve *serve, struct fault *fault)
{
    const struct store_config store = {.data_dir = serve->data_dir, .loop = &serve->loop, .lock = &serve->lock};
    const struct code_config code = {.data_dir = serve->data_dir, .loop = &serve->loop};
    int r = store_open(&store, &serve->store, fault);

    if (r == 0)
        r = code_store_open(&code, &serve->code, fault);
    return r;
}

static int build_catalog(struct serve *serve, struct fault *fault)
{
    const struct catalog_config catalog = {
        .loop = &serve->loop,
        .store = serve->store,
        .code = serve->code,
        .log = &serve->log,
    };
    int r = catalog_new(&catalog, &serve->catalog);

    if (r == 0)
        r = http_client_new(&serve->loop, &serve->client);
    return r < 0 ? fault_set(fault, -r, "cannot start: %s", strerror(-r)) : 0;
}

static int build_worker(struct serve *serve, struct fault *fault)
{
    const struct worker_config worker = {
        .loop = &serve->loop,
        .launcher = serve->launcher,
        .server = serve->runtime_server,
        .log = &serve->log,
        .data_dir = serve->data_dir,
        .runtimes_dir = serve->runtimes_dir,
        .stream_bytes = serve->options.response_stream_bytes,
        .log_stream_bytes = serve->options.log_stream_bytes,
        .log_retention_days = serve->options.log_retention_days,
        .on_lost = on_launcher_lost,
        .context = serve,
    };

    return worker_new(&worker, &serve->worker, fault);
}

/* "http://HOST:PORT" of the API. 0 or -errno. */
static int describe_address(const struct serve *serve, char *text, size_t size)
{
    struct sockaddr_storage address;
    char host[INET6_ADDRSTRLEN] = "";
    int r = http_listener_address(serve->listener, &address);

    if (r < 0)
        return r;
    if (address.ss_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&address;
        inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
        snprintf(text, size, "http://[%s]:%u", host, ntohs(v6->sin6_port));
    } else {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address;
        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host));
        snprintf(text, size, "http://%s:%u", host, ntohs(v4->sin_port));
    }
    return 0;
}

/* What functions get as AWS_ENDPOINT_URL; NULL for nothing. */
static const char *function_endpoint(struct serve *serve)
{
    bool nat = launcher_network(serve->launcher) == SANDBOX_NETWORK_NAT;
    const char *host = serve->options.host;
    bool anywhere = !strcmp(host, "0.0.0.0") || !strcmp(host, "::");
    char address[128];

    if (!serves_functions(serve))
        return serve->options.function_endpoint;
    if (describe_address(serve, address, sizeof(address)) < 0)
        return NULL;
    if (anywhere || (nat && serve_host_is_loopback(host)))
        snprintf(serve->function_endpoint, sizeof(serve->function_endpoint), "http://%s%s",
                 nat ? SANDBOX_HOST_NAME : "127.0.0.1", strrchr(address, ':')); /* the port */
    else
        snprintf(serve->function_endpoint, sizeof(serve->function_endpoint), "%s", address);
    return serve->function_endpoint;
}

static int build_frontend(struct serve *serve, struct fault *fault)
{
    const struct frontend_config config = {
        .loop = &serve->loop,
        .log = &serve->log,
        .catalog = serve->catalog,
        .worker = serve->worker,
        .concurrency = serve->options.concurrency,
        .unreserved_minimum = serve->options.unreserved_minimum,
        .scaling_rate = serve->options.scaling_rate,
        .provisioning_rate = serve->options.provisioning_rate,
        .idle_timeout_s = serve->options.idle_timeout_s,
        .default_account = serve->options.account_id,
        .function_credentials = serve->function_credentials,
        .function_endpoint = function_endpoint(serve),
    };
    int r = frontend_new(&config, &serve->frontend);

    return r < 0 ? fault_set(fault, -r, "cannot start: %s", strerror(-r)) : 0;
}

static void describe_services(struct serve *serve)
{
    struct operation_services *services = &serve->services;

    operation_services_init(services);
    services->loop = &serve->loop;
    services->log = &serve->log;
    services->catalog = serve->catalog;
    services->code = serve->code;
    services->client = serve->client;
    services->s3_endpoint = serve->options.s3_endpoint;
    services->s3_access_key = getenv("AWS_ACCESS_KEY_ID");
    services->s3_secret_key = getenv("AWS_SECRET_ACCESS_KEY");
    services->concurrency = serve->options.concurrency;
    services->unreserved_minimum = serve->options.unreserved_minimum;
    services->code_bytes_limit = serve->options.code_storage_bytes;
    services->unseen_update_ns = serve->options.update_time_ms * NS_PER_MS;
    services->strict_aws = serve->options.strict_aws;
    services->read_provisioned = frontend_read_provisioned;
    services->provisioned_context = serve->frontend;
    gateway_set_frontend(serve->gateway, serve->frontend);
}

static int build(struct serve *serve, struct fault *fault)
{
    int r = find_runtimes(serve, fault);

    if (r == 0)
        r = load_credentials(serve, fault);
    if (r == 0)
        r = listen_on_port(serve, fault);
    if (r == 0)
        r = prepare_directory(serve, fault);
    if (r == 0)
        r = start_launcher(serve, fault);
    if (r == 0)
        r = open_storage(serve, fault);
    if (r == 0)
        r = build_catalog(serve, fault);
    if (r == 0)
        r = build_worker(serve, fault);
    if (r == 0)
        r = build_frontend(serve, fault);
    if (r == 0)
        r = catalog_load(serve->catalog, fault);
    if (r < 0)
        return r;
    describe_services(serve);
    r = watch_signals(serve);
    return r < 0 ? fault_set(fault, -r, "cannot watch signals: %s", strerror(-r)) : 0;
}

static void close_if_open(uv_handle_t *handle)
{
    if (handle->loop && !uv_is_closing(handle))
        uv_close(handle, NULL);
}

/*
 * The handles of the signals go last: once they are closed, a signal kills the process, and until everything is written
 * that must not be. From then on there is nothing to interrupt.
 */
static void unwatch_signals(struct serve *serve)
{
    for (size_t i = 0; i < ARRAY_SIZE(serve->signals); i++)
        close_if_open((uv_handle_t *)&serve->signals[i]);
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    uv_run(&serve->loop, UV_RUN_DEFAULT);
}

/* Each part after those that use it. The last turns of the loop let handles end and store's answers arrive. */
static void tear_down(struct serve *serve)
{
    serve->ending = serve->services.ending = true;
    if (serve->gateway)
        gateway_abandon(serve->gateway);
    serve->api_server = http_server_free(serve->api_server);
    serve->worker = worker_free(serve->worker);
    serve->frontend = frontend_free(serve->frontend);
    serve->catalog = catalog_free(serve->catalog);
    serve->client = http_client_free(serve->client);
    serve->code = code_store_close(serve->code);
    serve->store = store_close(serve->store);
    serve->runtime_server = http_server_free(serve->runtime_server);
    close_if_open((uv_handle_t *)&serve->stop_timer);
    for (size_t i = 0; i < ARRAY_SIZE(serve->signals); i++)
        if (serve->signals[i].loop)
            uv_unref((uv_handle_t *)&serve->signals[i]);
    uv_run(&serve->loop, UV_RUN_DEFAULT);
    unwatch_signals(serve);
    serve->launcher = launcher_free(serve->launcher);
    serve->gateway = gateway_free(serve->gateway);
    serve->credentials = credentials_free(serve->credentials);
    serve->function_credentials = credentials_free(serve->function_credentials);
    uv_loop_close(&serve->loop);
    cleanup_close(&serve->lock);
}

static void announce(const struct serve *serve)
{
    char address[128];

    if (describe_address(serve, address, sizeof(address)) < 0)
        return;
    printf("kiln: ready on %s\n", address);
    fflush(stdout);
}

int serve_main(int argc, char **argv)
{
    struct serve serve = {.lock = -1, .log = {.fd = STDERR_FILENO, .minimum = LOG_INFO}};
    struct fault fault = {0};
    int r = serve_options_parse(argc, argv, getenv, &serve.options, &fault);

    if (r == SERVE_OPTIONS_HELP) {
        serve_options_help(stdout);
        return EXIT_STATUS_OK;
    }
    if (r < 0)
        return fail(&fault, EXIT_STATUS_USAGE);
    serve.log.format = serve.options.log_format;
    signal(SIGPIPE, SIG_IGN);
    raise_descriptor_limit();
    r = uv_loop_init(&serve.loop);
    if (r < 0)
        return fail(&(struct fault){.text = "cannot make an event loop"}, EXIT_STATUS_FAILED);
    r = build(&serve, &fault);
    if (r < 0) {
        tear_down(&serve);
        return fail(&fault, EXIT_STATUS_USAGE);
    }
    announce(&serve);
    uv_run(&serve.loop, UV_RUN_DEFAULT);
    tear_down(&serve);
    return (int)serve.status;
}
