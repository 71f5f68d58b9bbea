/*
 * The assignment service: which environment runs an admitted request? It keeps the environments of each version in one
 * list per state, the requests that wait for one, and, per account, the order in which idle on-demand environments
 * were last used. It decides and moves; starting, stopping and answering are done by core.c through its effects.
 *
 *                            (init ok, allocation not complete)
 *     STARTING ──────────────────────────> HELD     provisioned only
 *        │                                   │ the whole allocation is complete
 *        │ ready                             v
 *        ├───────────────────────────────> IDLE <──────────────┐
 *        │ ready, a request waits            │ a request        │ free
 *        v                                   v                  │
 *       BUSY <───────────────────────────────┘                  │
 *        │ response given (unit released)                       │
 *        v                                                      │
 *     FINISHING ────────────────────────────────────────────────┤
 *        └── free, a request waits: BUSY                        │
 *                                                               v
 *     STOPPING <── any but BUSY and FINISHING; those are marked `retiring` and stop when they come free
 *
 * An environment that is gone leaves from whichever state it is in.
 *
 * Order for a request: idle provisioned, idle on-demand (most recently used first), the environment that finishes and
 * has no request queued on it yet (for at most finishing_grace_ns), a new one. While requests wait, whatever comes
 * free or ready first takes the one that has waited longest (shared), or only the request it was made or kept for
 * (strict). Starts are counted, not tied to requests, in the shared mode: every waiting request is covered by a
 * starting environment or by a finishing one that is claimed for it.
 */
#pragma once

#include "core/counting.h"
#include "core/placement.h"

#include "base/list.h"

struct core_request;
struct core_version;
struct core_provisioned;

enum core_environment_state {
    CORE_ENVIRONMENT_STARTING,  /* being made, Init running */
    CORE_ENVIRONMENT_HELD,      /* provisioned and initialised; serves when its whole allocation is complete */
    CORE_ENVIRONMENT_IDLE,      /* may be given a request */
    CORE_ENVIRONMENT_BUSY,      /* runs a request */
    CORE_ENVIRONMENT_FINISHING, /* has answered, has not yet asked for its next event */
    CORE_ENVIRONMENT_STOPPING,  /* told to stop, not yet gone */
    CORE_ENVIRONMENT_STATES
};

/* How it was made; fixed for life. AWS_LAMBDA_INITIALIZATION_TYPE. */
enum core_origin { CORE_ON_DEMAND, CORE_PROVISIONED };

/* Made by core before start_environment and freed when core_environment_gone (or a failed start) returns. Users read
 * all and write `owner` only. */
struct core_environment {
    void *owner; /* the user's */
    struct core_version *version;
    enum core_origin origin;
    enum core_environment_state state;
    bool retiring;                     /* stops as soon as it is free */
    bool served;                       /* has been given a request at least once */
    struct core_request *request;      /* BUSY: the one it runs */
    struct core_request *claimed_by;   /* FINISHING or, in strict mode, STARTING: the request that waits for it */
    struct core_provisioned *provided; /* provisioned: the configuration that holds it, NULL once it was let go */
    struct placement_lease lease;
    int64_t idle_since_ns;
    struct list_link state_link; /* in the version's list of its state */
    struct list_link idle_link;  /* idle on-demand: in the account's order of last use */
    struct list_link hold_link;  /* provisioned: in the list of its configuration */
};

enum core_request_state {
    CORE_REQUEST_NEW,     /* not given to core_invoke, or refused by it */
    CORE_REQUEST_WAITING, /* admitted, no environment yet */
    CORE_REQUEST_RUNNING, /* has its environment */
    CORE_REQUEST_DONE,    /* answered or failed; its unit is back */
};

/*
 * One invoke, embedded by the caller in whatever stands for it; initialise it with core_request_init. Users read all
 * and write `owner` and `asynchronous` (before core_invoke). It must stay where it is while WAITING or RUNNING. It may
 * be initialised again once DONE, or when core_invoke refused it.
 */
struct core_request {
    void *owner;       /* the user's */
    bool asynchronous; /* exempt from the request rate (10 x), as events from the queue are */
    enum core_request_state state;
    struct core_version *version;         /* ExecutedVersion, set by core_invoke whatever it returns */
    struct core_environment *environment; /* RUNNING: where */
    bool cold;                            /* its environment had served nothing before it */
    bool spilled;                         /* its qualifier has PC, but it runs beyond it */

    struct counting_receipt receipt;
    struct core_provisioned *provisioned; /* PC of the named qualifier, NULL: none */
    bool bars_provisioned;                /* over the rate of its PC: on-demand environments only */
    bool on_provisioned;                  /* counted as running on PC */
    struct core_environment *claim;       /* WAITING: the environment it waits for, when there is a certain one */
    int64_t since_ns;                     /* of the claim of a finishing environment */
    struct list_link wait_link;           /* WAITING: in the version's queue */
    struct list_link grace_link;          /* claims a finishing environment: in the account's queue */
};

/* ---- for core.c and its tests ---- */

enum assignment_mode { ASSIGNMENT_SHARED, ASSIGNMENT_STRICT };

/* Per account. */
struct assignment_account {
    enum assignment_mode mode;
    struct list idle;  /* idle on-demand environments, longest unused first */
    struct list grace; /* requests that wait for a finishing environment, oldest first */
};

/* Per version. */
struct assignment_version {
    struct assignment_account *account;
    struct list environments[CORE_ENVIRONMENT_STATES]; /* IDLE: on-demand ones, most recently used first */
    struct list idle_provisioned;
    struct list waiting; /* requests, oldest first */
    int32_t waiting_count;
    int32_t starting_count; /* STARTING, on demand, not retiring: these will take a waiting request each */
    int32_t claimed_count;  /* FINISHING with claimed_by */
    int32_t environment_count;
};

void assignment_account_init(struct assignment_account *account, enum assignment_mode mode);
void assignment_version_init(struct assignment_version *version, struct assignment_account *account);

/* STARTING, IDLE and so on, for logs. */
const char *core_environment_state_name(enum core_environment_state state);
