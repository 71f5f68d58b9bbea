/*
 * Shared by this module's files only: the private halves of the public structures, and the steps of a change.
 */
#pragma once

#include "catalog/catalog.h"

/* What of a function lies in its own document: everything but versions and aliases. */
struct function_facts {
    uint64_t next_version;
    bool has_reserved;
    unsigned reserved;
    json_t *tags; /* owned, never NULL once filled */
};

struct scope_entry {
    struct catalog_scope scope;
    struct catalog *catalog;
    char *key;                      /* "ACCOUNT/REGION"; also what scope.account and scope.region are copied from */
    struct list waiting;            /* mutations, oldest first */
    bool draining;                  /* lane_run is on the stack */
    struct catalog_change *running; /* handed to the store */
};

struct function_entry {
    struct catalog_function function;
    struct catalog_mutation settle;
    bool settle_waiting; /* in the lane or running */
};

struct version_entry {
    struct catalog_version version;
    char number[CATALOG_VERSION_BYTES];
    char *source_description; /* $LATEST's Description when it was published; NULL for $LATEST itself */
};

struct alias_entry {
    struct catalog_alias alias;
    char *name;
    char *description;
    char *revision_id;
};

struct catalog {
    struct catalog_config config;
    unsigned references; /* the owner's until catalog_free, and those of catalog_ref */
    bool closed;
    unsigned char run_key[CATALOG_RUN_KEY_BYTES];
    struct table scopes; /* "ACCOUNT/REGION": struct scope_entry */
    struct list observers;
    uv_timer_t *retry; /* armed after the store refused to settle something */
    size_t function_count;
};

/* Calls every observer's member, where it is there. */
#define CATALOG_NOTIFY(catalog, member, ...)                                                       \
    do {                                                                                           \
        LIST_FOREACH (link, &(catalog)->observers) {                                               \
            struct catalog_observer *observer = CONTAINER_OF(link, struct catalog_observer, link); \
            if (observer->member)                                                                  \
                observer->member(__VA_ARGS__, observer->context);                                  \
        }                                                                                          \
    } while (0)

/* --- catalog.c --- */
/* Finds or makes. -ENOMEM, -ENAMETOOLONG. */
int catalog_get_scope(struct catalog *catalog, struct span account, struct span region,
                      struct scope_entry **ret_scope) MUST_USE;
/* A function with nothing in it but its name and an empty $LATEST; not in any table. NULL when out of memory. */
struct function_entry *function_entry_new(struct scope_entry *scope, struct span name);
/* With all versions and aliases. NULL is allowed. */
struct function_entry *function_entry_free(struct function_entry *entry);
struct version_entry *version_entry_new(struct catalog_function *function, struct span number);
struct version_entry *version_entry_free(struct version_entry *entry);
struct alias_entry *alias_entry_new(struct catalog_function *function, struct span name);
struct alias_entry *alias_entry_free(struct alias_entry *entry);
/* The program ends, the version's packages stay. */
void version_forget_configs(struct catalog_version *version);
void cleanup_function_entry(struct function_entry **entry);
void cleanup_version_entry(struct version_entry **entry);
void cleanup_alias_entry(struct alias_entry **entry);
/* Adds what the function has set aside to its scope's totals (sign 1), or takes it out (-1). */
void scope_count_function(struct catalog_scope *scope, const struct catalog_function *function, int sign);

static inline struct version_entry *version_entry_of(struct catalog_version *version)
{
    return CONTAINER_OF(version, struct version_entry, version);
}

static inline struct function_entry *function_entry_of(struct catalog_function *function)
{
    return CONTAINER_OF(function, struct function_entry, function);
}

static inline struct scope_entry *scope_entry_of(const struct catalog_scope *scope)
{
    return CONTAINER_OF(scope, struct scope_entry, scope);
}

/* --- config.c --- */
struct config_source {
    const struct catalog_function *function;
    const char *version;
    const char *revision_id;
    struct span code_sha256;
    uint64_t code_bytes;
    json_t *document; /* referenced */
};

/* A snapshot with one reference, holding its package. -ENOMEM, -EINVAL: a member is missing or of the wrong kind. */
int version_config_new(struct code_store *code, const struct config_source *source,
                       struct catalog_version_config **ret_config) MUST_USE;
/* Gives back without releasing the package: for the end of the program. */
void version_config_forget(struct catalog_version_config *config);

/* --- record.c --- */
struct store_batch;

struct record_edit {
    enum catalog_record_kind kind;
    struct catalog_record *record;  /* there already, or `created` */
    struct catalog_record *created; /* owned until applied */
    struct code_store *code;        /* the one that the created record's package is held in; NULL: none is */
    json_t *document;               /* owned until applied; NULL: the record goes */
};

/* What a change does to records. Zero-initialised it is empty. */
struct record_edits {
    struct record_edit *items;
    size_t count;
};

void record_edits_deinit(struct record_edits *edits);
/* The same, but packages are not given back: the batch may still become durable. */
void record_edits_forget(struct record_edits *edits);
/* Add an edit, and its document to the batch. */
int record_edits_put(struct record_edits *edits, struct catalog_scope *scope, struct store_batch *batch,
                     enum catalog_record_kind kind, struct span name, json_t *document) MUST_USE;
int record_edits_delete(struct record_edits *edits, struct catalog_scope *scope, struct store_batch *batch,
                        enum catalog_record_kind kind, struct span name) MUST_USE;
/* The same by function and qualifier; nothing to delete is success. */
int record_edits_put_attached(struct record_edits *edits, const struct catalog_function *function,
                              struct store_batch *batch, enum catalog_record_kind kind, struct span qualifier,
                              json_t *document) MUST_USE;
int record_edits_delete_attached(struct record_edits *edits, const struct catalog_function *function,
                                 struct store_batch *batch, enum catalog_record_kind kind,
                                 struct span qualifier) MUST_USE;
/* What goes with a version or an alias, and what goes with a function. */
int record_edits_delete_qualifier(struct record_edits *edits, const struct catalog_function *function,
                                  struct store_batch *batch, struct span qualifier) MUST_USE;
int record_edits_delete_function(struct record_edits *edits, const struct catalog_function *function,
                                 struct store_batch *batch) MUST_USE;
/* When the batch is durable; cannot fail. */
void record_edits_apply(struct record_edits *edits, struct catalog_scope *scope);
/* The program ends, packages stay. */
void scope_free_records(struct catalog_scope *scope);
/* All kinds. 0 or -errno with a sentence for what is not understood. */
int records_load(struct catalog *catalog, struct fault *fault) MUST_USE;

/* --- change.c --- */
/* Runs what waits in the lane until something is at the store. */
void lane_run(struct scope_entry *scope);
/* The program ends while the change is at the store: its mutation is told, and the store's answer will find nothing. */
void change_abandon(struct catalog_change *change);
/* Starts settling when something is unsettled. */
void function_settle(struct function_entry *entry);
bool version_is_settled(const struct catalog_version *version);
