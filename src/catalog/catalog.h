/*
 * The version store: functions, immutable versions, aliases with weights and reserved concurrency of every account and
 * Region, in memory for the invoke path and durable behind it.
 *
 * Reading is direct: structures below, found by name without allocation, read-only for everybody but this module.
 * Changing goes through the *lane* of an account in a Region: one mutation at a time; it checks against the state as it
 * then is, names its edits, they are committed as one batch, and only when that is durable is the new state swapped in,
 * are the observers told, and is the mutation's on_done called. A batch that fails changes nothing.
 *
 * $LATEST and fresh versions settle by a second change of the same kind: the first makes them Pending (a new function)
 * or InProgress (an update) and is what the caller is answered; the second, which this module starts by itself on a
 * later turn of the loop, makes them Active and Successful with a new RevisionId, and from then on invokes get the new
 * configuration. After a crash between the two, catalog_load starts the second.
 *
 * Everything happens on the loop's thread. Pointers to functions, versions and aliases stay valid until the observers
 * have been told of their deletion; configurations are counted and outlive their version for as long as somebody holds
 * them.
 */
#pragma once

#include "base/fault.h"
#include "base/list.h"
#include "base/log.h"
#include "base/table.h"

#include <jansson.h>
#include <uv.h>

struct store;
struct code_store;
struct policy_caller;
struct catalog;
struct catalog_scope;
struct catalog_function;

enum {
    CATALOG_FORMAT = 1,         /* of the documents; a newer one is refused at load */
    CATALOG_SHA256_HEX = 65,    /* with NUL */
    CATALOG_VERSION_BYTES = 21, /* "$LATEST" or decimal digits, with NUL */
    CATALOG_LAYERS_MAX = 5,     /* of a function */
    CATALOG_TIME_BYTES = 32     /* a time as the API shows it, with NUL */
};

struct catalog_variable {
    const char *name;
    const char *value;
};

/*
 * What an environment is made from: a snapshot that never changes, shared by counting. Environments and running invokes
 * hold the one they started with. All strings are owned by it, and it holds a reference to its package in the code
 * store for as long as it lives.
 */
struct catalog_version_config {
    unsigned references; /* catalog_version_config_ref and _unref only */
    const char *account; /* 12 digits */
    const char *region;
    const char *function_name;
    const char *function_arn; /* unqualified */
    const char *version;      /* "$LATEST" or digits */
    const char *runtime;
    const char *handler; /* "" when the runtime needs none */
    unsigned memory_mib;
    unsigned timeout_s;
    unsigned tmp_mib;
    const char *log_group;
    const char *log_format;            /* "Text" or "JSON" */
    const char *application_log_level; /* NULL: none is set */
    const char *system_log_level;
    const char *runtime_version_arn;            /* NULL: none */
    const char *code_dir;                       /* host path of the unpacked package */
    char code_sha256[CATALOG_SHA256_HEX];       /* lower-case hex */
    uint64_t code_bytes;                        /* size of the zip */
    const char *layer_dirs[CATALOG_LAYERS_MAX]; /* host paths of unpacked layers, later ones win; NULL ends the list */
    const struct catalog_variable *variables;
    size_t variable_count;
    const char *revision_id;
    const json_t *document; /* in the shape of the API's FunctionConfiguration, without ARN and State members */
};

enum catalog_state { CATALOG_PENDING, CATALOG_ACTIVE };
enum catalog_update { CATALOG_UPDATE_NONE, CATALOG_UPDATE_IN_PROGRESS, CATALOG_UPDATE_SUCCESSFUL };

/* Provisioned concurrency of a version or an alias, as it was asked for. */
struct catalog_provisioned {
    unsigned requested; /* 0: there is none */
    char last_modified[CATALOG_TIME_BYTES];
};

struct catalog_version {
    struct catalog_function *function;
    const char *number; /* "$LATEST" or digits */
    bool is_latest;
    enum catalog_state state;
    enum catalog_update update;
    /* What the API shows: the newest accepted. */
    struct catalog_version_config *config;
    /* What invokes run: NULL while Pending, the one before while an update of $LATEST is InProgress. */
    struct catalog_version_config *active;
    struct catalog_provisioned provisioned; /* its own; never of $LATEST */
    unsigned alias_references;              /* aliases that point here, as either part */
    void *attachment;                       /* the frontend's, NULL at first; not touched here */
};

struct catalog_alias {
    struct catalog_function *function;
    const char *name;
    const char *description;
    const char *revision_id;
    struct catalog_version *version;
    struct catalog_version *additional; /* NULL without RoutingConfig */
    double additional_weight;           /* 0.0 to 1.0: the share of `additional` */
    struct catalog_provisioned provisioned;
    void *attachment; /* the frontend's */
};

struct catalog_function {
    struct catalog_scope *scope;
    const char *name;
    const char *arn; /* unqualified */
    struct catalog_version *latest;
    struct table versions; /* published ones, by number, in ascending order: struct catalog_version */
    struct table aliases;  /* by name: struct catalog_alias */
    uint64_t next_version; /* the number the next publication gets; never goes down */
    bool has_reserved;
    unsigned reserved;          /* meaningless unless has_reserved */
    uint64_t provisioned_total; /* sum over its versions and aliases */
    const json_t *tags;         /* object of strings, never NULL */
    int64_t update_until_ns;    /* the API's (api/lambda/update.h); not kept */
    bool update_is_creation;    /* likewise */
    void *attachment;           /* the frontend's */
};

/* What a qualifier means. */
struct catalog_target {
    struct catalog_version *version; /* what the qualifier names, or the alias' first version */
    struct catalog_alias *alias;     /* NULL unless the qualifier is an alias */
};

/*
 * What else is kept durably: documents that operations read and write as a whole. The catalog does not look into them;
 * none needs an observer.
 */
enum catalog_record_kind {
    CATALOG_EVENT_SOURCE_MAPPING, /* by UUID; api/lambda/event_sources */
    CATALOG_ROLE,                 /* IAM's, by name, in the Region CATALOG_GLOBAL; api/iam */
    CATALOG_MANAGED_POLICY,       /* likewise */
    CATALOG_LAYER,                /* by name; api/lambda/layers */
    CATALOG_LAYER_VERSION,        /* NAME:NUMBER; keeps a package of the code store, see catalog_change_put_record */
    CATALOG_CODE_SIGNING_CONFIG,  /* by id; api/lambda/code_signing */
    /* These hang on a function and one of its qualifiers, and go with them; api/lambda. */
    CATALOG_POLICY,
    CATALOG_FUNCTION_URL,
    CATALOG_EVENT_INVOKE_CONFIG,
    CATALOG_RUNTIME_MANAGEMENT_CONFIG,
    CATALOG_RECURSION_CONFIG,
    CATALOG_FUNCTION_CODE_SIGNING,
    CATALOG_RECORD_KINDS
};

/* Where records lie that belong to an account and no Region. */
#define CATALOG_GLOBAL SPAN("global")

struct catalog_record {
    const char *name;
    const json_t *document; /* an object */
};

/* One account in one Region. */
struct catalog_scope {
    const char *account;
    const char *region;
    struct table functions;                     /* by name: struct catalog_function */
    struct table records[CATALOG_RECORD_KINDS]; /* by name: struct catalog_record */
    uint64_t reserved_total;                    /* sum over the functions */
    uint64_t provisioned_total;                 /* sum over the functions without reserved concurrency */
    uint64_t code_bytes;                        /* sum of the packages' sizes over all versions */
    void *attachment;                           /* the frontend's */
};

/*
 * Whoever must follow every change (the frontend). Called when a change is visible, in the order it was made; at load
 * once for everything there is: function created, $LATEST, versions, aliases, reserved and provisioned concurrency.
 * Deleting a function first tells of its aliases and versions, and deleting one of these first of its provisioned
 * concurrency. The pointers given to the deletions die when the call returns. Members may be NULL. Observers must not
 * submit mutations from inside a call.
 */
struct catalog_observer {
    void (*on_function_created)(struct catalog_function *function, void *context);
    void (*on_function_deleted)(struct catalog_function *function, void *context);
    /* `active` of $LATEST is another one now; environments of the old one (NULL: there was none) are to be retired. */
    void (*on_latest_changed)(struct catalog_version *latest, struct catalog_version_config *old, void *context);
    /* A numbered version can be invoked (it is Active). */
    void (*on_version_published)(struct catalog_version *version, void *context);
    /* Also for a version that never became Active. */
    void (*on_version_deleted)(struct catalog_version *version, void *context);
    /* Created or changed; the same pointer for the alias' life. */
    void (*on_alias_set)(struct catalog_alias *alias, void *context);
    void (*on_alias_deleted)(struct catalog_alias *alias, void *context);
    /* has_reserved and reserved hold the new value. */
    void (*on_reserved_set)(struct catalog_function *function, void *context);
    /* The version or alias has it, or another count of it; also when the version is not Active yet. */
    void (*on_provisioned_set)(const struct catalog_target *target, void *context);
    void (*on_provisioned_deleted)(const struct catalog_target *target, void *context);
    void *context;
    struct list_link link;
};

struct catalog_config {
    uv_loop_t *loop;
    struct store *store;     /* borrowed */
    struct code_store *code; /* borrowed */
    const struct log *log;   /* borrowed, may be NULL */
};

int catalog_new(const struct catalog_config *config, struct catalog **ret_catalog) MUST_USE;

/* The observer is borrowed until catalog_free. Register before catalog_load. */
void catalog_add_observer(struct catalog *catalog, struct catalog_observer *observer);

/*
 * Reads everything from the store, holds the packages of all versions, tells the observers and starts the settling of
 * whatever was left unsettled. To be called once, before the loop runs. 0, or -errno with a sentence (-EPROTO:
 * documents this version does not understand).
 */
int catalog_load(struct catalog *catalog, struct fault *fault) MUST_USE;

/*
 * The end, when everybody has given back the configurations they hold. Mutations waiting or at the store get -ECANCELED
 * (those at the store may become durable nevertheless: call store_close first to see them through). Nothing can be
 * found or submitted any more, packages stay on disk, observers are not told. The loop must run once more for the
 * handles to end. The pointer stays good for those who hold a reference. NULL is allowed.
 */
struct catalog *catalog_free(struct catalog *catalog);

/* For who may come back after catalog_free: an operation that waits for a file or a bucket. */
struct catalog *catalog_ref(struct catalog *catalog);
void catalog_unref(struct catalog *catalog);

enum { CATALOG_RUN_KEY_BYTES = 32 };

/* Random bytes that are the same for this catalog's life: for tokens that need not be good in the next run. */
const unsigned char *catalog_run_key(const struct catalog *catalog);

/* --- looking up: no allocation -------------------------------------------------------------------------------- */

/* NULL when the account has never had a function in the Region. */
struct catalog_scope *catalog_find_scope(const struct catalog *catalog, struct span account, struct span region);
struct catalog_function *catalog_find_function(const struct catalog *catalog, struct span account, struct span region,
                                               struct span name);
/* "$LATEST" or digits; an empty one is $LATEST. NULL when there is none. */
struct catalog_version *catalog_find_version(const struct catalog_function *function, struct span number);
struct catalog_alias *catalog_find_alias(const struct catalog_function *function, struct span name);

/* Qualifier to version or alias: empty, "$LATEST", digits, or an alias' name. False when there is none. */
bool catalog_resolve(const struct catalog_function *function, struct span qualifier, struct catalog_target *ret_target);

/* The alias' own provisioned concurrency when the target is one, else the version's. */
const struct catalog_provisioned *catalog_target_provisioned(const struct catalog_target *target);

/*
 * The function's newest version, if publishing now would only repeat it: code and configuration of $LATEST are what
 * they were when it was published. NULL otherwise, also when that version has been deleted.
 */
struct catalog_version *catalog_find_unchanged(const struct catalog_function *function);
/* An update is InProgress or the function is Pending: the service refuses other updates meanwhile. */
bool catalog_is_settling(const struct catalog_function *function);

/* The record's document, NULL when there is none; a scope of NULL has none. */
const json_t *catalog_find_record(const struct catalog_scope *scope, enum catalog_record_kind kind, struct span name);

/*
 * The same for the kinds that hang on a function. The qualifier is a version's number or an alias' name; empty or
 * $LATEST is the function itself. Such a record is named FUNCTION:QUALIFIER.
 */
const json_t *catalog_find_attached(const struct catalog_function *function, enum catalog_record_kind kind,
                                    struct span qualifier);
/* True for a record that hangs on the function; its qualifier ("$LATEST" for the function itself) through
 * ret_qualifier, borrowed from the record. */
bool catalog_record_is_attached(const struct catalog_record *record, const struct catalog_function *function,
                                struct span *ret_qualifier);

/* A function under the name and the qualifier (empty: none) by which it was asked for; it need not be there. */
struct catalog_subject {
    struct span account;
    struct span region;
    struct span function_name;
    struct span qualifier;
};

/*
 * Whether the caller may do the action ("lambda:InvokeFunction"): callers of the function's own account always may, as
 * Kiln has no identity-based policies; all others when the resource policy of exactly this qualifier says so. $LATEST
 * by its name has no policy.
 */
bool catalog_permits(const struct catalog *catalog, const struct catalog_subject *subject, const char *action,
                     const struct policy_caller *caller);

/* Sum over all scopes, for GetAccountSettings-like limits and health. */
size_t catalog_function_count(const struct catalog *catalog);

struct catalog_version_config *catalog_version_config_ref(struct catalog_version_config *config);
/* Returns NULL. NULL is allowed. */
struct catalog_version_config *catalog_version_config_unref(struct catalog_version_config *config);

/* --- changing ------------------------------------------------------------------------------------------------- */

struct catalog_change;

/*
 * One mutation: embedded in the submitter's own structure, which must live until on_done. `build` runs when the lane is
 * free: it checks, names its edits through the functions below, and returns 0; any other result refuses, and nothing
 * happens. on_done is called exactly once: 0 (durable and visible), what `build` returned, -ECANCELED (catalog_free),
 * or another -errno (the store refused; nothing has changed). Both may run inside catalog_submit.
 */
struct catalog_mutation {
    int (*build)(struct catalog_mutation *mutation, struct catalog_change *change);
    void (*on_done)(struct catalog_mutation *mutation, int status);
    struct list_link link; /* this module's */
};

/* -ENOMEM, -ECANCELED (after catalog_free): on_done is not called. The scope is made when it is new. */
int catalog_submit(struct catalog *catalog, struct span account, struct span region,
                   struct catalog_mutation *mutation) MUST_USE;

/* The account and Region the change is for. */
struct catalog_scope *catalog_change_scope(const struct catalog_change *change);

/*
 * The edits. Each is 0 or -ENOMEM. What is made or changed becomes visible after the commit; several edits of one
 * change may build on each other where the function says so. JSON arguments are borrowed (referenced where they are
 * kept; the caller must not alter them after).
 *
 * A configuration document has the members of the API's FunctionConfiguration that are facts of the version: Runtime,
 * Role, Handler, CodeSize, Description, Timeout, MemorySize, LastModified, CodeSha256 (base64), Environment, ... It has
 * no FunctionName, FunctionArn, Version, RevisionId, State or LastUpdateStatus: those are this module's. The items of
 * its Layers have one member more, Package: the layer's package in the code store, in hex, retained like the version's
 * own.
 */
struct catalog_configuration {
    json_t *document;
    struct span code_sha256; /* hex; names the package in the code store, which is retained */
    uint64_t code_bytes;
};

/* A function that does not exist yet, with a Pending $LATEST. `tags` may be NULL. */
int catalog_change_create_function(struct catalog_change *change, struct span name,
                                   const struct catalog_configuration *configuration, json_t *tags,
                                   struct catalog_version **ret_latest) MUST_USE;
/* $LATEST gets another configuration: InProgress now, in force when settled. */
int catalog_change_update_latest(struct catalog_change *change, struct catalog_function *function,
                                 const struct catalog_configuration *configuration) MUST_USE;
/* $LATEST as it is gets a new RevisionId, as after a change of the function's tags; its environments stay. */
int catalog_change_renew_latest(struct catalog_change *change, struct catalog_function *function) MUST_USE;
/*
 * Publishes what $LATEST is (as edited by this same change, if it was) as the function's next number, with another
 * description when one is given (NULL: $LATEST's). Active at once when $LATEST is settled, else Pending.
 */
int catalog_change_publish(struct catalog_change *change, struct catalog_function *function, const char *description,
                           struct catalog_version **ret_version) MUST_USE;
/* No alias may point to it. What hangs on it goes too. */
int catalog_change_delete_version(struct catalog_change *change, struct catalog_version *version) MUST_USE;
/* With its versions and aliases, and all that hangs on them. Alone in its change. */
int catalog_change_delete_function(struct catalog_change *change, struct catalog_function *function) MUST_USE;

struct catalog_alias_settings {
    const char *name;
    const char *description;
    struct catalog_version *version;
    struct catalog_version *additional; /* NULL: none */
    double additional_weight;
};

/* Creates the alias or replaces all of its settings; a new RevisionId in either case. */
int catalog_change_set_alias(struct catalog_change *change, struct catalog_function *function,
                             const struct catalog_alias_settings *settings) MUST_USE;
/* What hangs on it goes too, but for its URL, which outlives it as on the service (recorded). */
int catalog_change_delete_alias(struct catalog_change *change, struct catalog_alias *alias) MUST_USE;
int catalog_change_set_reserved(struct catalog_change *change, struct catalog_function *function, bool has_reserved,
                                unsigned reserved) MUST_USE;
/*
 * Provisioned concurrency of a version (not $LATEST) or of an alias, on which it stays through other settings. Alone in
 * its change. 0 requested removes it.
 */
int catalog_change_set_provisioned(struct catalog_change *change, const struct catalog_target *target,
                                   const struct catalog_provisioned *provisioned) MUST_USE;
/* Replaces all tags. */
int catalog_change_set_tags(struct catalog_change *change, struct catalog_function *function, json_t *tags) MUST_USE;
/*
 * Makes the record or replaces its document, an object. Names have no '/' and at most 512 bytes. Any number of records
 * may change together, each once, also with a function. A layer version's document has Package (hex: its package in the
 * code store, retained for as long as the record is there) and CodeSize (counted with the packages of versions);
 * neither may change.
 */
int catalog_change_put_record(struct catalog_change *change, enum catalog_record_kind kind, struct span name,
                              json_t *document) MUST_USE;
/* The record must be there. */
int catalog_change_delete_record(struct catalog_change *change, enum catalog_record_kind kind,
                                 struct span name) MUST_USE;
/* The same for a record that hangs on a function, see catalog_find_attached. */
int catalog_change_put_attached(struct catalog_change *change, const struct catalog_function *function,
                                enum catalog_record_kind kind, struct span qualifier, json_t *document) MUST_USE;
/* 0 also when there is none. */
int catalog_change_delete_attached(struct catalog_change *change, const struct catalog_function *function,
                                   enum catalog_record_kind kind, struct span qualifier) MUST_USE;
