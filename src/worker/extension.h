/*
 * The extensions of one environment since its last start: external ones (programs of /opt/extensions, started before
 * the runtime) and internal ones (parts of the runtime process, known once they register), and the rules of who may do
 * what when. Extensions API 2020-01-01: the Lambda guide's chapter of that name; refusals and states as the Runtime
 * Interface Emulator has them. Pure: no I/O, no clock.
 *
 *   STARTED --register--> REGISTERED --next--> READY <--next-- event--> RUNNING
 *      |                      |  \                \_________________________/
 *      | cannot be executed   |   \ exit/error        exit/error
 *      v                      v    \_________________________\
 *   LAUNCH_ERROR          INIT_ERROR                      EXIT_ERROR
 */
#pragma once

#include "base/random.h"
#include "base/span.h"

struct http_request;

enum { EXTENSIONS_MAX = 10 }; /* a quota of the service, external and internal together */

enum extension_state {
    EXTENSION_STARTED,
    EXTENSION_REGISTERED,
    EXTENSION_READY,
    EXTENSION_RUNNING,
    EXTENSION_INIT_ERROR,
    EXTENSION_EXIT_ERROR,
    EXTENSION_LAUNCH_ERROR,
};

/* What an extension may subscribe to, as bits. */
enum extension_event { EXTENSION_INVOKE = 1, EXTENSION_SHUTDOWN = 2 };

struct extension {
    char *name;
    char id[UUID_BYTES]; /* empty until it has registered */
    char error_type[128];
    enum extension_state state;
    unsigned events; /* enum extension_event */
    bool external;
    uint32_t run;              /* of the process of an external one */
    bool sent;                 /* the launcher has been asked to run it */
    bool alive;                /* not known to have ended; of an external one only */
    struct http_request *next; /* GET event/next that waits; the caller's business */
    bool owed;                 /* an INVOKE event waits for the next GET event/next */
};

struct extension_set {
    struct extension list[EXTENSIONS_MAX + 1]; /* one past the quota, to be refused by name */
    size_t count;
    bool closed; /* the runtime is ready: nobody can register any more */
};

/* What registration may come to, besides 0 and -ENOMEM. */
enum extension_refusal {
    EXTENSION_REFUSED_CLOSED = 1,
    EXTENSION_REFUSED_NAME, /* an internal one of this name is there */
    EXTENSION_REFUSED_TOO_MANY,
    EXTENSION_REFUSED_STATE, /* the external one of this name is not in STARTED; see ret_extension */
};

/* Everything goes but the set itself. */
void extension_set_clear(struct extension_set *set);
/* Adds an external one in STARTED, at most one past the quota. -ENOMEM, -E2BIG. */
int extension_set_add_external(struct extension_set *set, const char *name, uint32_t run) MUST_USE;
/* The external one of this name; NULL: a registration under it makes an internal one. */
struct extension *extension_set_find_external(struct extension_set *set, struct span name);
/* By the identifier it was given; NULL. */
struct extension *extension_set_find(struct extension_set *set, struct span id);
struct extension *extension_set_find_run(struct extension_set *set, uint32_t run);

/* Registers, giving an identifier. The events must be ones that the extension may have. */
int extension_set_register(struct extension_set *set, struct span name, unsigned events,
                           struct extension **ret_extension) MUST_USE;

/* Whether each external one has registered, so that the runtime can be started. */
bool extension_set_all_registered(const struct extension_set *set);
/* Whether each has asked for its next event since it registered, and none has failed. */
bool extension_set_all_ready(const struct extension_set *set);
/* Whether one still works on an event. */
bool extension_set_is_running(const struct extension_set *set);
/* Whether SHUTDOWN is due to one whose process lives. */
bool extension_set_awaits_shutdown(const struct extension_set *set);
bool extension_set_has_external(const struct extension_set *set);
/* Registered ones, of both kinds. */
size_t extension_set_registered(const struct extension_set *set);

/* "Started", "Registered", ... */
const char *extension_state_name(enum extension_state state);
