/*
 * One action under way: the role or policy that it is about, its one change of the catalog and its answer. Lives in the
 * operation's arena and ends with it. Shared by this folder's files only.
 *
 *   handler: iam_call_new -> parameters read and validated -> iam_respond, or iam_submit(build) -> durable -> answer
 *
 * A function that refuses fills call->error and returns its class (positive); its caller ends with iam_end. Texts are
 * those of the service where public reports quote them.
 */
#pragma once

#include "api/operation.h"
#include "aws/error.h"
#include "aws/query.h"
#include "aws/validate.h"
#include "catalog/catalog.h"

enum { IAM_TIME_BYTES = 32, IAM_ID_BYTES = 22 };

struct iam_call {
    struct operation *operation;
    struct catalog *catalog; /* referenced: the operation may outlast the daemon's other parts */
    struct aws_error error;
    struct validation validation;
    enum catalog_record_kind kind; /* CATALOG_ROLE or CATALOG_MANAGED_POLICY */
    struct span name;              /* of the role, or the policy's ARN: for messages */
    struct span key;               /* of its record; in the arena */
    struct catalog_mutation mutation;
    int (*build)(struct iam_call *call, struct catalog_change *change);
    int (*edit)(struct iam_call *call, json_t *entity);
    json_t *entity; /* the document made or changed, owned */
    json_t *result; /* of the answer, owned; NULL: the action has none */
};

/* In the operation's arena, with the operation's cleanup set. NULL: out of memory, which has been answered. */
struct iam_call *iam_call_new(struct operation *operation);
/* Answers with the refusal (positive) or a failure (negative). The call is gone after. */
void iam_end(struct iam_call *call, int r, const char *what);
/* Answers with the result (taken); NULL is one that memory ran out for. The call is gone after. */
void iam_respond(struct iam_call *call, json_t *result);

/* --- parameters --- */

/* SPAN_NONE when absent. */
struct span iam_string(const struct iam_call *call, const char *name);
/*
 * Each adds what is wrong with the parameter to the validation, under its name with the first letter in lower case, and
 * returns its value; an absent one is an error only where it is `required`.
 */
struct span iam_read_string(struct iam_call *call, const char *name, bool required, size_t minimum, size_t maximum);
/* `otherwise` when absent or wrong. */
int64_t iam_read_integer(struct iam_call *call, const char *name, int64_t minimum, int64_t maximum, int64_t otherwise);
/* "true" or "false". */
bool iam_read_boolean(const struct iam_call *call, const char *name);
/* RoleName into call->name and key. */
void iam_read_role(struct iam_call *call);
/* PolicyArn into call->name and key (empty for one that cannot be of this account). */
void iam_read_policy(struct iam_call *call);
/* Ends the validation: 0, a refusal, -ENOMEM. */
int iam_finish_validation(struct iam_call *call) MUST_USE;

/* Letters, digits and +=,.@_- alone, else the service's ValidationError that names the parameter. */
int iam_check_name(struct iam_call *call, struct span value, const char *name) MUST_USE;
int iam_check_path(struct iam_call *call, struct span value) MUST_USE;
/* JSON with statements, within `quota` characters that are not blank (a refusal that names the quota). */
int iam_check_document(struct iam_call *call, struct span document, size_t quota, const char *quota_name) MUST_USE;

/* --- entities --- */

/* How a role or a policy is made. */
struct iam_creation {
    const char *name_member; /* the parameters that hold its name and its document */
    const char *document_member;
    size_t quota; /* of the document */
    const char *quota_name;
    void (*read)(struct iam_call *call); /* reads the parameters: call->kind, name and key, and the validation */
    /* The entity, with the tags (borrowed). NULL: out of memory. */
    json_t *(*make)(struct iam_call *call, json_t *tags);
    json_t *(*wrap)(const json_t *entity); /* the answer's result; NULL likewise */
};

/* The operation that makes one. */
void iam_create(struct operation *operation, const struct iam_creation *creation);

/* The record's key for a name: lower case, in the arena; SPAN_NONE when out of memory. */
struct span iam_key(struct iam_call *call, struct span name);
/* The catalog's document of call->kind and key; NULL when there is none. */
const json_t *iam_find(const struct iam_call *call);
/* 404 NoSuchEntity for call->name. */
int iam_refuse_missing(struct iam_call *call);
int iam_refuse(struct iam_call *call, int status, const char *code, const char *format, ...) PRINTF_LIKE(4, 5);

/* Runs the change in the account's lane; answers with call->result when it is durable. */
void iam_submit(struct iam_call *call, int (*build)(struct iam_call *call, struct catalog_change *change));
/* The same for a change of what call->key names: `edit` gets a copy of its document, as deep as it goes. */
void iam_submit_edit(struct iam_call *call, int (*edit)(struct iam_call *call, json_t *entity));

/* "2026-01-02T03:04:05Z", now. */
const char *iam_time(char text[IAM_TIME_BYTES]);
/* Prefix and 17 random characters, as "AROA...". */
const char *iam_id(const char *prefix, char text[IAM_ID_BYTES]);
/* arn:aws:iam::ACCOUNT:KIND PATH NAME, in the arena; "" when out of memory. */
const char *iam_arn(struct iam_call *call, const char *kind, struct span path, struct span name);
/* The text as JSON, NULL for SPAN_NONE. */
json_t *iam_json(struct span text);
/* Appends the item, which is taken; the list becomes NULL when memory runs out, and stays so. */
void iam_append(json_t **list, json_t *item);
/* A policy document as answers show it: percent-encoded. NULL when out of memory. */
json_t *iam_encode_document(const json_t *document);
/* An object of strings as a list of {Key, Value}. NULL when out of memory. */
json_t *iam_render_tags(const json_t *tags);
/* Reads Tags.member.N into `tags`, an object, on top of what it holds: at most 50 then. 0, a refusal, -ENOMEM. */
int iam_read_tags(struct iam_call *call, json_t *tags) MUST_USE;

/* --- pages --- */

/*
 * Answers with a page of `all` (an array, taken; NULL: out of memory) as `member`, with IsTruncated and Marker, in the
 * order of the items' member `by` (NULL: the items are strings themselves). Reads Marker and MaxItems, and ends the
 * validation. The call is gone after.
 */
void iam_respond_page(struct iam_call *call, const char *member, json_t *all, const char *by);
/* Adds what is wrong with Marker and MaxItems to the validation, for who refuses before it makes a list. */
void iam_read_page(struct iam_call *call);
