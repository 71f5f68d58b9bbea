/*
 * One subscription to telemetry: gathers events until there are enough or some time has gone by, and delivers them to
 * what listens inside the sandbox, as a JSON array by HTTP or as one JSON a line by TCP. Sockets come from the
 * launcher, made in the sandbox's network.
 *
 * Memory is bounded: while a batch is on its way, about two more are gathered; what comes then is dropped and counted,
 * and the next event taken is preceded by a platform.logsDropped. A batch that cannot be delivered is tried again with
 * growing pauses, then dropped and counted likewise. While the sandbox is frozen nobody can listen: what is due then
 * waits for the thaw.
 *
 * On the loop's thread. Handles end on later turns.
 */
#pragma once

#include "worker/telemetry_settings.h"

#include <uv.h>

struct telemetry_subscriber;

struct telemetry_network {
    uv_loop_t *loop;
    /* Asks for a socket; telemetry_subscriber_on_socket follows. -errno: it will not. */
    int (*request_socket)(struct telemetry_subscriber *subscriber, void *context);
    bool (*is_frozen)(void *context);
    void *context;
};

/* Copies settings and network. NULL when out of memory. */
struct telemetry_subscriber *telemetry_subscriber_new(const struct telemetry_settings *settings,
                                                      const struct telemetry_network *network);
/* What has not been delivered is lost. NULL is allowed. */
struct telemetry_subscriber *telemetry_subscriber_free(struct telemetry_subscriber *subscriber);

const struct telemetry_settings *telemetry_subscriber_settings(const struct telemetry_subscriber *subscriber);
/* One event, a whole JSON object. Never fails: what cannot be kept counts as dropped. */
void telemetry_subscriber_add(struct telemetry_subscriber *subscriber, struct span event);
/* Sends what has gathered as soon as possible. */
void telemetry_subscriber_flush(struct telemetry_subscriber *subscriber);
/* Takes the socket; -1: there was none to be had. */
void telemetry_subscriber_on_socket(struct telemetry_subscriber *subscriber, int fd);
/* Goes on with what was due while it was frozen. */
void telemetry_subscriber_on_thaw(struct telemetry_subscriber *subscriber);
