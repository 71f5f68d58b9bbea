/*
 * The two mount namespaces of the launcher. "host" is a private copy of the host's, in which code directories are
 * opened and layers merged; mounts made on the host later still show in it. "template" holds nothing but the read-only
 * root that all sandboxes share: an init is cloned from there, so that its own namespace is a copy of a dozen mounts
 * and the host's files are not hidden but absent.
 */
#pragma once

#include "base/fault.h"
#include "base/span.h"

/* uid and gid inside a rootless sandbox (those of Lambda's sandbox user). */
enum { BASE_ROOT_UID = 993, BASE_ROOT_GID = 990 };

struct base_root {
    int host; /* namespace descriptors */
    int template;
    int proc; /* the host's /proc */
};

struct base_root_config {
    bool rootless;
    const char *data_dir;    /* must not be visible below the root */
    const char *more_hosts;  /* lines for /etc/hosts; NULL: none */
    const char *resolv_conf; /* text in the place of the host's; NULL: its own */
};

/*
 * Makes both and leaves the process in the host's. Rootless: enters a user namespace first, -EPERM with a sentence
 * where they are forbidden.
 */
int base_root_init(struct base_root *root, const struct base_root_config *config, struct fault *fault) MUST_USE;
void base_root_deinit(struct base_root *root);
int base_root_enter_host(const struct base_root *root) MUST_USE;
int base_root_enter_template(const struct base_root *root) MUST_USE;
