/*
 * The options of `kiln serve`: from the command line, else from KILN_NAME in the environment, else the default. Pure:
 * reads argv and a getenv-like function, opens nothing. Names, defaults and meanings are the contract in the README.
 */
#pragma once

#include "base/fault.h"
#include "base/log.h"
#include "sandbox/launcher.h"

#include <stdint.h>
#include <stdio.h>

enum serve_auth { SERVE_AUTH_OFF, SERVE_AUTH_SIGV4 };

struct serve_options {
    char host[64]; /* an IPv4 or IPv6 address, without brackets */
    uint16_t port; /* 0: any free port */
    const char *data_dir;
    const char *account_id; /* 12 digits */
    const char *region;
    unsigned concurrency;
    unsigned unreserved_minimum;
    unsigned scaling_rate;      /* new environments per 10 s and function */
    unsigned provisioning_rate; /* provisioned environments per minute and function */
    unsigned idle_timeout_s;
    uint64_t response_stream_bytes; /* of one streamed response */
    unsigned update_time_ms;        /* how long an update lasts for those who have not seen its end */
    uint64_t code_storage_bytes;    /* all packages of an account in a Region */
    uint64_t log_stream_bytes;      /* of the log files of one stream; 0: no limit */
    unsigned log_retention_days;    /* 0: for ever */
    bool strict_aws;                /* refuse what the service's API refuses though its model allows it */
    enum serve_auth auth;
    const char *credentials;          /* file, NULL when not given */
    const char *function_credentials; /* the same, for what functions see */
    const char *function_endpoint;    /* a URL, "self", or NULL when not given */
    bool network_given;               /* else it is nat as root, where that can be had, and host otherwise */
    enum sandbox_network network;     /* if given */
    enum log_format log_format;
    const char *s3_endpoint;  /* NULL when not given */
    const char *runtimes_dir; /* NULL: found beside the program */
};

enum serve_options_outcome {
    SERVE_OPTIONS_HELP = 1, /* --help was asked for */
};

/*
 * Parses argv (argv[0] is the word "serve"). `get_env` is getenv or a test's own. Strings in the result are borrowed
 * from argv and the environment. 0, SERVE_OPTIONS_HELP, or -EINVAL with a sentence that names the option.
 */
int serve_options_parse(int argc, char **argv, char *(*get_env)(const char *name), struct serve_options *ret_options,
                        struct fault *fault) MUST_USE;

/* Prints the text of `kiln serve --help`. */
void serve_options_help(FILE *out);

/* True for addresses of the loopback interface: 127.0.0.0/8 and ::1. */
bool serve_host_is_loopback(const char *host);
