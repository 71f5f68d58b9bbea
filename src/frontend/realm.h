/*
 * One account in one Region as the invoke path sees it: core's account and the catalog's functions, tied together. As
 * an observer of the catalog it adds to core what appears and removes what goes; `attachment` of a catalog function,
 * version or alias is core's handle for it, `owner` of core's handle is the catalog's object. Private to this folder.
 */
#pragma once

#include "base/random.h"
#include "catalog/catalog.h"
#include "core/core.h"
#include "frontend/frontend.h"

struct realm {
    struct frontend *frontend;
    struct core_account *core;
    const struct catalog_scope *scope;
    struct list_link link; /* in the frontend's realms */
};

struct frontend {
    struct frontend_config config;
    struct catalog_observer observer;
    struct placement *placement;
    struct list realms;
    struct list requests; /* in flight: struct frontend_request */
    size_t in_flight;
    struct list environment_list; /* struct frontend_environment */
    size_t environments;
    uv_timer_t deadline; /* the earliest of the realms' core_next_deadline */
    int64_t armed_ns;    /* what it is armed for, INT64_MAX: not */
    uv_timer_t stop;     /* fires at once when everything has stopped */
    bool stopping;
    bool retired; /* stopping: all environments have been told to end */
    void (*on_stopped)(void *context);
    void *stop_context;
    unsigned open_handles;
    struct prng prng; /* for weighted aliases */
    uint64_t throttles_unlogged;
    int64_t throttle_logged_ns;
};

/* Fills frontend->observer. */
void realm_observe(struct frontend *frontend);
struct realm *realm_free(struct realm *realm);

/* Makes sure that the frontend's timer fires no later than core wants to be called. To be called after every call into
 * core that may have started a wait. */
void realm_arm(struct realm *realm);

/* Core's handles for what a qualifier means; both NULL when core has none. */
struct core_qualifier realm_qualifier(const struct catalog_target *target);
/* Lifts the account's limits, so that nothing is refused that was accepted under others. Returns what they were, for
 * realm_restore_limits. */
struct core_limits realm_lift_limits(struct core_account *account);
void realm_restore_limits(struct core_account *account, const struct core_limits *limits);

/* Gives core the catalog's provisioned concurrency of the target, or takes it away (provisioned.c). */
void provisioned_follow(struct frontend *frontend, const struct catalog_target *target);
void provisioned_forget(const struct catalog_target *target);

/* Core's effects (environments.c, invoke.c, provisioned.c). */
void provisioned_changed(struct core_provisioned *provisioned, void *context);
int environments_start(struct core_environment *environment, void *context);
void environments_stop(struct core_environment *environment, void *context);
void invoke_serve(struct core_request *request, struct core_environment *environment, void *context);
void invoke_refuse(struct core_request *request, const struct counting_throttle *throttle, void *context);
void invoke_fail(struct core_request *request, enum core_failure why, void *context);

struct invocation;

/* Hands an event to an environment that core has leased (environments.c). */
void environments_invoke(struct core_environment *environment, struct invocation *invocation);

/* True when the environment will report that it is gone, and must not be given anything meanwhile. */
/* The caller can take more of an answer in pieces. */
void environments_resume_stream(struct core_environment *core);
bool environments_is_ending(const struct core_environment *environment);

/* A request or an environment has ended: goes on with stopping when that has been asked for. */
void frontend_check_stopped(struct frontend *frontend);
/* Drops every request in flight without an answer, and what is kept for every environment. */
void invoke_drop_all(struct frontend *frontend);
void environments_drop_all(struct frontend *frontend);
