/*
 * The launcher process: one loop over the daemon's socket and, for each sandbox, its init's socket, its pidfd and its
 * memory watch. Internal to this folder; the daemon's side is launcher.h.
 */
#pragma once

#include "sandbox/launcher.h"

#include <sys/types.h>

struct server_config {
    struct launcher_config launcher;
    int socket;   /* to the daemon */
    pid_t daemon; /* its pid: the launcher ends when that is no longer its parent */
    bool rootless;
    uid_t uid; /* of the daemon, as the host sees it */
};

/*
 * Runs the launcher in a process forked for it: closes what it inherited, builds the base root, reports to the daemon
 * (MESSAGE_HELLO, or MESSAGE_FAILED with a sentence) and serves until the daemon is gone. Returns the exit status.
 */
int server_main(const struct server_config *config);
