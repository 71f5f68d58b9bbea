/*
 * Request bodies: JSON of a stated shape. Broken JSON and members of the wrong kind are refused as the service's
 * deserialiser does, before any validation: 400 SerializationException. Unknown members are ignored, nulls count as
 * absent.
 */
#pragma once

#include "api/lambda/call.h"

enum input_kind {
    INPUT_STRING,
    INPUT_INTEGER, /* 32 bits; fractions are cut off */
    INPUT_DOUBLE,
    INPUT_BOOLEAN,
    INPUT_STRUCTURE, /* `members` says of what */
    INPUT_LIST,      /* of `element` */
    INPUT_MAP,       /* of `element` */
};

struct input_member {
    const char *name; /* NULL ends a list of members */
    enum input_kind kind;
    enum input_kind element;
    const struct input_member *members; /* of a structure, or of the structures in a list */
};

/*
 * Checks the document (an object) and normalises it: nulls and unknown members go, fractions of integers are cut off. 0
 * or a refusal in `error`, -ENOMEM.
 */
int input_check(json_t *document, const struct input_member *members, struct aws_error *error) MUST_USE;

/*
 * Parses the operation's body into call->input and checks it, then calls `next`. A zip that travels in the body is
 * decoded from base64 into call->zip and removed from the document: `zip_parent` is the structure that has the member
 * ZipFile ("" for the body itself, NULL for none). Large bodies are parsed on libuv's pool, and `next` comes on a later
 * turn; small ones at once. A refusal is answered here. An empty body is an empty object.
 */
void input_read_body(struct call *call, const struct input_member *members, const char *zip_parent,
                     void (*next)(struct call *call));

/* The structure at a path ("A.B") in a body, NULL when it is absent; the body itself for NULL. Parts up to 63 bytes. */
const json_t *input_find(const json_t *body, const char *path);

/* Members of an object; NULL, SPAN_NONE, false or the default when absent. Spans are borrowed from the document. */
struct span input_string(const json_t *object, const char *member);
bool input_has(const json_t *object, const char *member);
bool input_boolean(const json_t *object, const char *member);
int64_t input_integer(const json_t *object, const char *member, int64_t absent);
/* The strings of a list in the arena for validate_list, a null without data; NULL when out of memory, which the
 * validation is told. */
struct span *input_strings(struct call *call, const json_t *list) MUST_USE;

/*
 * Validates a map of strings from the input into call->validation (validate.h tells the wording). Either constraint may
 * be NULL.
 */
void input_validate_map(struct call *call, json_t *map, const char *path, const struct validation_constraint *keys,
                        const struct validation_constraint *values);
