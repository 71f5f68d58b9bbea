/*
 * The system call filter of everything inside a sandbox: what a function cannot need and what has been the way out of
 * containers is refused with EPERM (ENOSYS where libraries then fall back). It is a list of refusals, as processes have
 * no capability and no_new_privs anyway: interpreters, JVMs and Go programs must not find a call missing.
 */
#pragma once

#include "base/fault.h"

#include <linux/filter.h>

struct seccomp_filter {
    struct sock_filter *instructions; /* owned */
    unsigned short count;
};

/* Compiles the filter for this machine's architecture. */
int seccomp_compile(struct seccomp_filter *ret_filter, struct fault *fault) MUST_USE;
void seccomp_deinit(struct seccomp_filter *filter);
/* For the calling process and all it starts; no_new_privs is set already. */
int seccomp_install(const struct seccomp_filter *filter) MUST_USE;
