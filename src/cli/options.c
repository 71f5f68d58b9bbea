/*
 * One table describes every option: its name, how its text becomes a value, and its line of help. The environment
 * variable is KILN_ and the name in capitals, dashes as underscores. A switch takes no value on the command line but
 * may be given one (--strict-aws=off), as it must be in the environment.
 */
#include "cli/options.h"

#include "base/span.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <limits.h>
#include <string.h>

enum { UNRESERVED_MINIMUM = 100 };

#define NOT_GIVEN UINT_MAX

typedef int parse_function(const char *text, void *value, struct fault *fault);

struct option {
    const char *name;
    const char *argument; /* NULL: a switch */
    parse_function *parse;
    size_t offset; /* of the value in struct serve_options */
    const char *help;
};

static int parse_text(const char *text, void *value, struct fault *fault)
{
    if (!*text)
        return fault_set(fault, 0, "must not be empty");
    *(const char **)value = text;
    return 0;
}

static int parse_number(const char *text, uint64_t minimum, uint64_t maximum, unsigned *value, struct fault *fault)
{
    uint64_t number;
    int r = span_to_u64(span_from(text), maximum, &number);

    if (r < 0 || number < minimum)
        return fault_set(fault, 0, "'%s' is not a whole number from %llu to %llu", text, (unsigned long long)minimum,
                         (unsigned long long)maximum);
    *value = (unsigned)number;
    return 0;
}

/* Up to 2^53, which JSON numbers hold exactly. */
static int parse_bytes(const char *text, void *value, struct fault *fault)
{
    uint64_t number;
    int r = span_to_u64(span_from(text), UINT64_C(1) << 53, &number);

    if (r < 0 || number == 0)
        return fault_set(fault, 0, "'%s' is not a number of bytes", text);
    *(uint64_t *)value = number;
    return 0;
}

static int parse_count(const char *text, void *value, struct fault *fault)
{
    return parse_number(text, 1, 1000000, value, fault);
}

static int parse_count_or_zero(const char *text, void *value, struct fault *fault)
{
    return parse_number(text, 0, 1000000, value, fault);
}

static int parse_switch(const char *text, void *value, struct fault *fault)
{
    if (!strcmp(text, "on") || !strcmp(text, "1"))
        *(bool *)value = true;
    else if (!strcmp(text, "off") || !strcmp(text, "0"))
        *(bool *)value = false;
    else
        return fault_set(fault, 0, "'%s' is not on or off", text);
    return 0;
}

static int parse_account(const char *text, void *value, struct fault *fault)
{
    uint64_t number;

    if (strlen(text) != 12 || span_to_u64(span_from(text), UINT64_MAX, &number) < 0)
        return fault_set(fault, 0, "'%s' is not an account ID of 12 digits", text);
    *(const char **)value = text;
    return 0;
}

static int parse_region(const char *text, void *value, struct fault *fault)
{
    size_t length = strlen(text);

    if (!length || length > 32 || strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") != length)
        return fault_set(fault, 0, "'%s' is not the name of a Region", text);
    *(const char **)value = text;
    return 0;
}

/* One word out of a NULL-terminated list, as its index. */
static int parse_word(const char *text, const char *const *words, int *ret_index, struct fault *fault)
{
    char list[128] = "";

    for (int i = 0; words[i]; i++) {
        if (!strcmp(text, words[i])) {
            *ret_index = i;
            return 0;
        }
        snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", i ? " or " : "", words[i]);
    }
    return fault_set(fault, 0, "'%s' is not %s", text, list);
}

static int parse_auth(const char *text, void *value, struct fault *fault)
{
    int index;
    int r = parse_word(text, (const char *const[]){"off", "sigv4", NULL}, &index, fault);

    if (r == 0)
        *(enum serve_auth *)value = index ? SERVE_AUTH_SIGV4 : SERVE_AUTH_OFF;
    return r;
}

static int parse_network(const char *text, void *value, struct fault *fault)
{
    static const char *const words[] = {"nat", "host", "none", NULL};
    static const enum sandbox_network networks[] = {SANDBOX_NETWORK_NAT, SANDBOX_NETWORK_HOST, SANDBOX_NETWORK_NONE};
    struct serve_options *options = value;
    int index;
    int r = parse_word(text, words, &index, fault);

    if (r < 0)
        return r;
    options->network_given = true;
    options->network = networks[index];
    return 0;
}

static int parse_log_format(const char *text, void *value, struct fault *fault)
{
    int index;
    int r = parse_word(text, (const char *const[]){"text", "json", NULL}, &index, fault);

    if (r == 0)
        *(enum log_format *)value = index ? LOG_FORMAT_JSON : LOG_FORMAT_TEXT;
    return r;
}

static int parse_url(const char *text, void *value, struct fault *fault)
{
    if (!span_starts_with(span_from(text), SPAN("http://")) && !span_starts_with(span_from(text), SPAN("https://")))
        return fault_set(fault, 0, "'%s' is not an http:// or https:// URL", text);
    *(const char **)value = text;
    return 0;
}

static int parse_function_endpoint(const char *text, void *value, struct fault *fault)
{
    if (strcmp(text, "self") != 0 && parse_url(text, value, fault) < 0)
        return fault_set(fault, 0, "'%s' is not self or an http:// or https:// URL", text);
    *(const char **)value = text;
    return 0;
}

/* HOST:PORT, [IPV6]:PORT or localhost:PORT. */
static int parse_listen(const char *text, void *value, struct fault *fault)
{
    struct serve_options *options = value;
    const char *colon = strrchr(text, ':');
    struct span host;
    uint64_t port;
    unsigned char address[16];

    if (!colon || span_to_u64(span_from(colon + 1), 65535, &port) < 0)
        return fault_set(fault, 0, "'%s' is not HOST:PORT", text);
    host = span_of(text, (size_t)(colon - text));
    if (span_equal(host, SPAN("localhost")))
        host = SPAN("127.0.0.1");
    if (host.length >= 2 && host.data[0] == '[' && host.data[host.length - 1] == ']')
        host = span_slice(host, 1, host.length - 1);
    if (host.length >= sizeof(options->host))
        return fault_set(fault, 0, "'%s' is not HOST:PORT", text);
    snprintf(options->host, sizeof(options->host), "%.*s", SPAN_ARG(host));
    if (inet_pton(AF_INET, options->host, address) != 1 && inet_pton(AF_INET6, options->host, address) != 1)
        return fault_set(fault, 0, "'%s' is not an IP address", options->host);
    options->port = (uint16_t)port;
    return 0;
}

#define AT(member) offsetof(struct serve_options, member)

static const struct option options_table[] = {
    {"listen", "HOST:PORT", parse_listen, 0, "address of the API (default 127.0.0.1:4566)"},
    {"data-dir", "DIR", parse_text, AT(data_dir), "where everything is kept (default ./kiln-data)"},
    {"account-id", "ID", parse_account, AT(account_id), "account of unsigned callers (default 000000000000)"},
    {"region", "NAME", parse_region, AT(region), "Region of unsigned callers (default us-east-1)"},
    {"concurrency", "N", parse_count, AT(concurrency), "concurrent executions per account and Region (default 1000)"},
    {"unreserved-minimum", "N", parse_count_or_zero, AT(unreserved_minimum),
     "concurrency that reservations must leave (default 100, or all of less)"},
    {"scaling-rate", "N", parse_count, AT(scaling_rate), "new environments per 10 s and function (default 1000)"},
    {"provisioning-rate", "N", parse_count, AT(provisioning_rate),
     "provisioned environments per minute and function (default 6000)"},
    {"idle-timeout", "SECONDS", parse_count, AT(idle_timeout_s),
     "idle environments are ended after this (default 600)"},
    {"code-storage", "BYTES", parse_bytes, AT(code_storage_bytes),
     "code packages of an account in a Region (default 80530636800, 75 GB)"},
    {"response-stream", "BYTES", parse_bytes, AT(response_stream_bytes),
     "largest response in pieces (default 209715200, 200 MiB)"},
    {"update-time", "MS", parse_count_or_zero, AT(update_time_ms),
     "a second update is refused for this long, or until the end of the first was seen (default 300)"},
    {"strict-aws", NULL, parse_switch, AT(strict_aws),
     "refuse what AWS's API refuses today though its model allows it"},
    {"auth", "off|sigv4", parse_auth, AT(auth), "check signatures (default off, on loopback addresses only)"},
    {"credentials", "FILE", parse_text, AT(credentials), "access keys for --auth sigv4, in the AWS ini format"},
    {"function-credentials", "FILE", parse_text, AT(function_credentials),
     "access keys that functions see, in the same format (default: test ones)"},
    {"function-endpoint", "URL|self", parse_function_endpoint, AT(function_endpoint),
     "AWS_ENDPOINT_URL of functions; self is this daemon (default: none)"},
    {"network", "nat|host|none", parse_network, 0, "network of functions (default nat as root, else host)"},
    {"log-format", "text|json", parse_log_format, AT(log_format), "form of the daemon's own log (default text)"},
    {"log-retention", "DAYS", parse_count_or_zero, AT(log_retention_days),
     "function logs not written to for so long are removed (default 0: never)"},
    {"log-stream-bytes", "BYTES", parse_bytes, AT(log_stream_bytes),
     "what the log of one environment may take; the oldest goes (default: no limit)"},
    {"s3-endpoint", "URL", parse_url, AT(s3_endpoint), "S3-compatible store for code given by S3 location"},
    {"runtimes-dir", "DIR", parse_text, AT(runtimes_dir), "where the runtimes' bootstraps are installed"},
};

void serve_options_help(FILE *out)
{
    fputs("Usage: kiln serve [OPTION...]\n\n"
          "Runs the daemon: the AWS Lambda API on one port, functions in sandboxes on this machine.\n\n",
          out);
    for (size_t i = 0; i < ARRAY_SIZE(options_table); i++) {
        char left[48];
        const char *argument = options_table[i].argument;
        snprintf(left, sizeof(left), "--%s %s", options_table[i].name, argument ? argument : "");
        fprintf(out, "  %-30s %s\n", left, options_table[i].help);
    }
    fputs("  --help                         this text\n\n"
          "Every option can also be given as KILN_NAME in the environment, as in KILN_DATA_DIR.\n",
          out);
}

bool serve_host_is_loopback(const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;

    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

static int apply(const struct option *option, const char *text, struct serve_options *options, struct fault *fault)
{
    return option->parse(text, (char *)options + option->offset, fault);
}

static int apply_environment(char *(*get_env)(const char *), struct serve_options *options, struct fault *fault)
{
    for (size_t i = 0; i < ARRAY_SIZE(options_table); i++) {
        char name[64];
        const char *text;
        int length = snprintf(name, sizeof(name), "KILN_%s", options_table[i].name);
        for (int k = 0; k < length; k++)
            name[k] = name[k] == '-' ? '_' : (char)toupper((unsigned char)name[k]);
        text = get_env(name);
        if (text && apply(&options_table[i], text, options, fault) < 0) {
            fault_prepend(fault, "%s", name);
            return -EINVAL;
        }
    }
    return 0;
}

static const struct option *find_option(struct span name)
{
    for (size_t i = 0; i < ARRAY_SIZE(options_table); i++)
        if (span_equal(name, span_from(options_table[i].name)))
            return &options_table[i];
    return NULL;
}

/* One "--name value" or "--name=value" at argv[*index]; moves *index to its last word. */
static int apply_argument(int argc, char **argv, int *index, struct serve_options *options, struct fault *fault)
{
    const char *word = argv[*index];
    struct span rest = span_from(word);
    const struct option *option;
    struct span name;
    const char *text;

    if (!span_starts_with(rest, SPAN("--")))
        return fault_set(fault, 0, "unexpected argument '%s'", word);
    rest = span_slice(rest, 2, rest.length);
    name = span_cut(&rest, '=');
    option = find_option(name);
    if (!option)
        return fault_set(fault, 0, "unknown option '%s'", word);
    if (rest.data)
        text = rest.data; /* the tail of a NUL-terminated word */
    else if (!option->argument)
        text = "on";
    else if (*index + 1 < argc)
        text = argv[++*index];
    else
        return fault_set(fault, 0, "--%s needs a value", option->name);
    if (apply(option, text, options, fault) < 0) {
        fault_prepend(fault, "--%s", option->name);
        return -EINVAL;
    }
    return 0;
}

/* The service's minimum, but all of a limit that is smaller: then nothing can be reserved. */
static void settle_defaults(struct serve_options *options)
{
    if (options->unreserved_minimum == NOT_GIVEN)
        options->unreserved_minimum = MIN(UNRESERVED_MINIMUM, options->concurrency);
}

/* Rules between options. */
static int check(const struct serve_options *options, struct fault *fault)
{
    if (options->unreserved_minimum > options->concurrency)
        return fault_set(fault, 0, "--unreserved-minimum %u is more than --concurrency %u", options->unreserved_minimum,
                         options->concurrency);
    if (options->auth == SERVE_AUTH_OFF && !serve_host_is_loopback(options->host))
        return fault_set(fault, 0, "--auth off is refused on %s, which is not a loopback address; use --auth sigv4",
                         options->host);
    if (options->auth == SERVE_AUTH_SIGV4 && !options->credentials)
        return fault_set(fault, 0, "--auth sigv4 needs --credentials FILE");
    if (options->auth == SERVE_AUTH_OFF && options->credentials)
        return fault_set(fault, 0, "--credentials has no effect without --auth sigv4");
    if (options->function_endpoint && !strcmp(options->function_endpoint, "self") && options->network_given &&
        options->network == SANDBOX_NETWORK_NONE)
        return fault_set(fault, 0, "--function-endpoint self cannot be reached with --network none");
    return 0;
}

int serve_options_parse(int argc, char **argv, char *(*get_env)(const char *name), struct serve_options *ret_options,
                        struct fault *fault)
{
    struct serve_options options = {
        .host = "127.0.0.1",
        .port = 4566,
        .data_dir = "./kiln-data",
        .account_id = "000000000000",
        .region = "us-east-1",
        .concurrency = 1000,
        .unreserved_minimum = NOT_GIVEN,
        .scaling_rate = 1000,
        .provisioning_rate = 6000,
        .idle_timeout_s = 600,
        .update_time_ms = 300,
        .code_storage_bytes = UINT64_C(80530636800),
        .response_stream_bytes = UINT64_C(209715200),
    };
    int r;

    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return SERVE_OPTIONS_HELP;
    r = apply_environment(get_env, &options, fault);
    for (int i = 1; r == 0 && i < argc; i++)
        r = apply_argument(argc, argv, &i, &options, fault);
    if (r == 0) {
        settle_defaults(&options);
        r = check(&options, fault);
    }
    if (r == 0)
        *ret_options = options;
    return r;
}
