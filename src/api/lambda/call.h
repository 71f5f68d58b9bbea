/*
 * One Lambda operation under way: the request's parts as they become known, its one change of the catalog, and its
 * answer. Lives in the operation's arena and ends with it. The usual life:
 *
 *   handler: call_new -> names and members validated -> (body parsed, code unpacked) -> call_submit(build, answer)
 *   lane:    build (checks, edits) -> durable -> answer
 *
 * A function that refuses fills call->error and returns its class (positive), as aws_error_set does; its caller ends
 * with `call_refuse`. Shared by this folder's files only.
 */
#pragma once

#include "api/operation.h"
#include "aws/arn.h"
#include "aws/error.h"
#include "aws/validate.h"
#include "catalog/catalog.h"
#include "store/code.h"

struct call {
    struct operation *operation;
    struct catalog *catalog; /* referenced: the operation may outlast the daemon's other parts */
    struct aws_error error;
    struct validation validation;
    struct span bad_marker; /* refused when nothing is wrong with the rest; data NULL: none */
    /* The body: an object, with nulls removed; never NULL once parsed. The zip member is in `zip` instead. */
    json_t *input;
    struct buffer zip;
    bool has_zip;
    /* The function that the path names: the caller's, or another account's whose policy permits the operation. */
    struct span account; /* whose it is; the caller's until a name says otherwise */
    struct span function_name;
    struct span qualifier; /* as part of the name, or the parameter of that name; empty when neither was given */
    /* The code package; held from when it was unpacked until the end. */
    struct code_package package;
    bool holds_package;
    json_t *document; /* the configuration being made, owned */
    /* The change, and what came of it. */
    struct catalog_mutation mutation;
    int (*build)(struct call *call, struct catalog_change *change);
    void (*answer)(struct call *call);
    void (*next)(struct call *call);          /* input.c, s3.c: what comes after */
    void (*after_package)(struct call *call); /* package.c: likewise */
    struct catalog_version *version;
    struct catalog_alias *alias;
    json_t *layers; /* those that the input names, with their packages held (function_layers.h); NULL: none named */
    void *detail;   /* the operation's own, in its arena */
};

/* In the operation's arena, with the operation's cleanup set. NULL: out of memory, which has been answered. */
struct call *call_new(struct operation *operation);

/* Answers with call->error. The call is gone after. */
void call_refuse(struct call *call);
/* Answers with call->error when `r` is positive, with a failure when it is negative. The call is gone after. */
void call_end(struct call *call, int r, const char *what);

/* Answers with the document (taken); NULL is an answer that memory ran out for. The call is gone after. */
void call_respond(struct call *call, int status, json_t *document);
/* 204 without a body, also as call_submit's `answer`. */
void call_respond_empty(struct call *call);

/* The catalog's function, NULL when there is none. */
struct catalog_function *call_find_function(const struct call *call);
/* "arn:...:function:NAME" and ":QUALIFIER" unless it is empty; in the arena. Never NULL ("" when out of memory). */
const char *call_function_arn(struct call *call, struct span qualifier);
/* 404 "Function not found: ARN", with the qualifier unless it is empty. */
int call_not_found(struct call *call, struct span qualifier);

/*
 * What call->qualifier means (empty: $LATEST), into call->version and call->alias; a function of NULL has nothing. 404
 * "Cannot find alias arn: ARN" for what may be an alias' name, else "Function not found: ARN" (recorded for permissions
 * and provisioned concurrency).
 */
int call_find_target(struct call *call, const struct catalog_function *function) MUST_USE;

/*
 * Runs the change in the lane of the function's account and Region. `build` may refuse (positive, call->error filled)
 * or edit; `answer` runs when the change is durable and must answer; all other ends are answered here.
 */
void call_submit(struct call *call, int (*build)(struct call *call, struct catalog_change *change),
                 void (*answer)(struct call *call));

/* --- names (names.c) --- */

enum call_qualifier {
    CALL_UNQUALIFIED,    /* a qualified name is refused */
    CALL_QUALIFIER_PART, /* of the name only */
    CALL_QUALIFIER,      /* the query parameter Qualifier too */
};

/*
 * The names in the path and the query: validates them (Qualifier first, then the function's name, as recorded) together
 * with what the call's validation holds already, then what names.h says. Fills function_name and qualifier. 0, a
 * refusal, -ENOMEM.
 */
int call_check_names(struct call *call, enum function_name_form form, enum call_qualifier qualifier) MUST_USE;
/* The same for a name that came in the body and has been validated. 0 or a refusal. */
int call_take_body_name(struct call *call, struct span name) MUST_USE;
/* Ends the validation: 0, a refusal (call->error), -ENOMEM. */
int call_finish_validation(struct call *call) MUST_USE;

/* --- pages (pages.c) --- */

struct page {
    size_t maximum;
    struct span after; /* decoded Marker, empty for the first page */
};

/* Reads and validates Marker and MaxItems. 0 or a refusal. */
int page_read(struct call *call, struct page *ret_page) MUST_USE;
/* The same where the model allows another MaxItems than 10,000. */
int page_read_up_to(struct call *call, size_t maximum, struct page *ret_page) MUST_USE;
/* The same for a list whose pages hold more than 50 items. */
int page_read_of(struct call *call, size_t items, struct page *ret_page) MUST_USE;
/* Names of a table in bytewise order, in the arena. -ENOMEM. */
int page_sort_keys(struct call *call, const struct table *table, struct span **ret_keys) MUST_USE;
/*
 * Answers with the rows (taken) as `member`, and with NextMarker when there are more behind `last` (empty: there are
 * not). With a failure instead when `r` says so. The call is gone after.
 */
void page_respond(struct call *call, const char *member, json_t *rows, struct span last, int r);

/* A list of what a table holds, by key. */
struct page_list {
    const char *member;        /* of the answer */
    const struct table *table; /* NULL: empty */
    /* The row for an item; NULL through ret_row for one that is not wanted. 0, -ENOMEM. */
    int (*render)(struct call *call, struct span key, const void *value, const void *context, json_t **ret_row);
    const void *context;
};

/* Answers with the page. The call is gone after. */
void page_respond_list(struct call *call, const struct page *page, const struct page_list *list);
