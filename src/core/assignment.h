/*
 * The assignment service: which environment runs an admitted request? It keeps the environments of each version, those
 * that a request may have now in lists of their own, the requests that wait for one, and, per account, the order in
 * which idle on-demand environments were last used. It decides and moves; starting, stopping and answering are done by
 * core.c through its effects.
 *
 *     (made) -> STARTING ──> HELD        provisioned, and its allocation is not complete yet
 *                  │          │
 *                  │ ready    │ complete
 *                  v          v      a request
 *                  ├───────> IDLE ────────────> BUSY
 *                  │          ^                  │ answered (the unit is released)
 *                  │          │ free             v
 *                  │          └──────────── FINISHING
 *                  │                             │
 *                  └── ready, a request waits ──> BUSY <── free, a request waits
 *
 *     STARTING, HELD, IDLE -> STOPPING           told to stop
 *     BUSY, FINISHING: marked `retiring`, -> STOPPING when free
 *     any -> (gone)
 *
 * Order for a request: idle provisioned, idle on-demand (most recently used first), one that is FINISHING and not yet
 * claimed (for at most finishing_grace), one that is coming anyway and for which nobody waits any more, a new one.
 *
 * Requests that wait are covered, not paired: the version counts how many environments are coming (STARTING, or
 * FINISHING and claimed), at least as many as requests wait, and whatever comes free or ready first takes the request
 * that has waited longest. What is left over becomes idle. Two kinds of requests are paired with one environment
 * instead ("tied"): all of them in the strict mode, and those that are over the rate of their PC and so must not run
 * on a provisioned environment (of these an on-demand environment that comes free early still takes the oldest).
 */
#pragma once

#include "core/counting.h"
#include "core/placement.h"

#include "base/indexed_list.h"
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

/* Made by core before start_environment and freed when core_environment_gone or _failed (or a failed
 * start_environment) returns. Users read all and write `owner` only. */
struct core_environment {
    struct core_version *version;
    enum core_environment_state state;
    enum core_origin origin;
    bool retiring;                /* BUSY, FINISHING: stops as soon as it is free */
    bool served;                  /* has been given a request at least once */
    bool claimed;                 /* FINISHING: a request waits for it */
    bool closed;                  /* FINISHING: took longer than the grace; is not claimed again */
    uint32_t idle_place;          /* on demand: in the account's order of last use, while IDLE */
    struct core_request *request; /* BUSY: the one it runs */
    struct core_request *tied_to; /* STARTING or FINISHING: the one request that waits for just this one */
    struct list_link open_link;   /* IDLE or FINISHING and open to requests: in one of the version's lists */
    int64_t idle_since_ns;        /* IDLE */

    void *owner;                       /* the user's */
    struct core_provisioned *provided; /* provisioned: the configuration that holds it, NULL once it was let go */
    struct placement_lease lease;
    int64_t claimed_since_ns;    /* claimed */
    struct list_link grace_link; /* claimed: in the account's order of claims */
    struct list_link hold_link;  /* provided: in the list of its configuration */
    struct list_link link;       /* in the version's list of all */
};

enum assignment_mode {
    ASSIGNMENT_SHARED, /* the oldest waiting request takes whatever is ready first */
    ASSIGNMENT_STRICT, /* a request waits for the environment made for it */
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
    bool cold;                            /* RUNNING: the first on an on-demand environment */
    bool spilled;                         /* its qualifier has PC, but it took no unit of it */

    /* core's own */
    bool barred; /* over the rate of its PC: on-demand environments only */
    bool tied;   /* waits for `claim` and nothing else */
    bool on_provisioned;
    uint64_t sequence; /* order of arrival */
    struct counting_receipt receipt;
    struct core_provisioned *provisioned; /* PC of the named qualifier, NULL: none */
    struct core_environment *claim;       /* WAITING and tied: the environment that comes for it */
    struct list_link wait_link;           /* WAITING: in one of the version's queues */
};

/* Every wait of a request for an environment, and every environment, of one account. */
struct assignment_account {
    enum assignment_mode mode;
    int64_t finishing_grace_ns;
    uint64_t sequence;
    struct indexed_list idle; /* IDLE on-demand environments, longest unused first */
    struct list grace;        /* claimed environments, longest claimed first */
};

/* Environments that a request may be given or may wait for. */
enum assignment_list {
    ASSIGNMENT_LIST_IDLE_PROVISIONED,
    ASSIGNMENT_LIST_IDLE, /* on demand, most recently used first */
    ASSIGNMENT_LIST_FINISHING_PROVISIONED,
    ASSIGNMENT_LIST_FINISHING, /* on demand, oldest first; neither claimed nor closed nor retiring */
    ASSIGNMENT_LISTS,
    ASSIGNMENT_NO_LIST = ASSIGNMENT_LISTS
};

/* The environments and waiting requests of one version. What an invoke on an idle environment touches comes first. */
struct assignment_version {
    struct assignment_account *account;
    int32_t waiting_count;  /* of `waiting` */
    int32_t tied_count;     /* of `tied` */
    int32_t starting_count; /* STARTING, on demand, not tied */
    int32_t claimed_count;  /* claimed, not tied */
    struct list open[ASSIGNMENT_LISTS];
    struct list waiting;      /* requests, oldest first; covered by numbers */
    struct list tied;         /* requests, oldest first; each covered by its `claim` */
    struct list environments; /* all */
    int32_t orphan_count;     /* tied requests without claim; 0 at rest */
    int32_t environment_count;
};

void assignment_account_init(struct assignment_account *account);
void assignment_account_deinit(struct assignment_account *account);
void assignment_version_init(struct assignment_version *version, struct assignment_account *account);

/* Before anything is done with a new environment, and after everything: room in the account's order. -ENOMEM. */
int assignment_reserve(struct assignment_account *account, struct core_environment *environment) MUST_USE;
void assignment_release(struct assignment_account *account, struct core_environment *environment);
/* The idle on-demand environment that is unused longest, NULL: none. */
struct core_environment *assignment_longest_idle(const struct assignment_account *account);
/* Puts a new environment (STARTING, tied_to set or NULL) into its version's lists. */
void assignment_add(struct assignment_version *version, struct core_environment *environment);
/* Takes it out whatever its state; a request tied to it becomes an orphan. */
void assignment_remove(struct assignment_version *version, struct core_environment *environment);

enum assignment_choice {
    ASSIGNMENT_IDLE,      /* lease it */
    ASSIGNMENT_FINISHING, /* claim it and wait */
    ASSIGNMENT_COMING,    /* wait: more are coming than requests wait */
    ASSIGNMENT_NEW,       /* start one and wait */
};

/* What the request (its `barred` set) should do; changes nothing. */
enum assignment_choice assignment_choose(struct assignment_version *version, const struct core_request *request,
                                         struct core_environment **ret_environment);

/* IDLE, FINISHING (free) or STARTING (ready) -> BUSY with this request, which must not be queued. */
void assignment_lease(struct assignment_version *version, struct core_environment *environment,
                      struct core_request *request);
/* BUSY -> FINISHING. */
void assignment_finish(struct assignment_version *version, struct core_environment *environment);
/* STARTING, HELD or FINISHING -> IDLE. */
void assignment_idle(struct assignment_version *version, struct core_environment *environment, int64_t now_ns);
/* STARTING -> HELD. */
void assignment_hold(struct assignment_version *version, struct core_environment *environment);
/*
 * BUSY and FINISHING: marked retiring, false. Others but STOPPING: -> STOPPING, true: the caller tells it to stop. What
 * was waiting for it is uncovered or an orphan then. A retiring one that has come FINISHING -> free is retired by
 * assignment_stop.
 */
bool assignment_retire(struct assignment_version *version, struct core_environment *environment);
/* Free and retiring: FINISHING -> STOPPING. */
void assignment_stop(struct assignment_version *version, struct core_environment *environment);

/* Queues an admitted request. `claim` is the FINISHING environment chosen for it, or NULL. A tied request for which one
 * was started is joined to it with assignment_tie. */
void assignment_enqueue(struct assignment_version *version, struct core_request *request,
                        struct core_environment *claim, int64_t now_ns);
void assignment_dequeue(struct assignment_version *version, struct core_request *request);
/* Joins an orphan to a STARTING environment that is not tied. */
void assignment_tie(struct assignment_version *version, struct core_request *request,
                    struct core_environment *environment);
/* The request that an environment which is free or ready should run, taken out of its queue; NULL: none. */
struct core_request *assignment_take_waiting(struct assignment_version *version, struct core_environment *environment);
/* Ends a claim that lasted too long and closes the environment; what was waiting is uncovered or an orphan then. */
void assignment_expire_claim(struct assignment_version *version, struct core_environment *environment);

/* How many of `waiting` nothing is coming for; 0 at rest. */
int32_t assignment_uncovered(const struct assignment_version *version);
/* The first orphan, NULL when there is none. */
struct core_request *assignment_orphan(const struct assignment_version *version);

/* STARTING, IDLE and so on, for logs. */
const char *core_environment_state_name(enum core_environment_state state);
