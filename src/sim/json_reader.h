/*
 * Reads a JSON document member by member and says exactly what is wrong with it: line, column, the member's path, and
 * what was expected. jansson parses; positions are found afterwards in the text, so only a document with an error pays
 * for them.
 *
 * Errors stick: the first one is kept, and from then on every function returns its default at once. So the code that
 * reads a document is a straight list of what it wants, and looks at json_reader_failed when it must not go on and at
 * the end. Everything returned is borrowed from the reader, copies in its arena excepted.
 */
#pragma once

#include "base/arena.h"
#include "base/fault.h"

#include <jansson.h>

struct json_reader {
    struct span text;
    struct arena *arena; /* for copies; borrowed */
    struct fault *fault;
    json_t *root;
    bool failed;
};

/* A value and the way to it. */
struct json_value {
    json_t *json; /* NULL: the member is absent (or null) */
    const struct json_value *parent;
    const char *key; /* NULL: an element of an array */
    size_t index;
};

/* `text` and `arena` are borrowed until json_reader_deinit. -EINVAL (syntax), -ENOMEM; the fault says LINE:COLUMN. */
int json_reader_init(struct json_reader *reader, struct span text, struct arena *arena, struct fault *fault) MUST_USE;
void json_reader_deinit(struct json_reader *reader);
struct json_value json_reader_root(const struct json_reader *reader);

/* Keeps "LINE:COLUMN: PATH: TEXT" unless there is an error already. */
void json_reader_fail(struct json_reader *reader, const struct json_value *value, const char *format, ...)
    PRINTF_LIKE(3, 4);
void json_reader_out_of_memory(struct json_reader *reader);

/* `value` must be an object whose members are all among `known` (names separated by blanks). */
void json_expect_object(struct json_reader *reader, const struct json_value *value, const char *known);
/* Absent members, and members of anything but an object, are absent values. */
struct json_value json_member(const struct json_value *object, const char *key);
static inline bool json_has(const struct json_value *value)
{
    return value->json;
}
/* Absent: 0. Not an array, or longer than `maximum`: an error. */
size_t json_length(struct json_reader *reader, const struct json_value *array, size_t maximum);
struct json_value json_element(const struct json_value *array, size_t index);

/* Absent: `otherwise`. Outside the bounds or of another type: an error. */
double json_number(struct json_reader *reader, const struct json_value *value, double minimum, double maximum,
                   double otherwise);
int64_t json_whole(struct json_reader *reader, const struct json_value *value, int64_t minimum, int64_t maximum,
                   int64_t otherwise);
bool json_bool(struct json_reader *reader, const struct json_value *value, bool otherwise);
/* A copy in the arena; absent: NULL. Not a string: an error. */
const char *json_text(struct json_reader *reader, const struct json_value *value);
/* As json_text, but a whole number is taken for its digits: versions are written both ways. */
const char *json_name(struct json_reader *reader, const struct json_value *value);
/* The index in a NULL-terminated list of words; absent: `otherwise`. */
int json_word(struct json_reader *reader, const struct json_value *value, const char *const *words, int otherwise);
/* An absent value is an error. */
void json_require(struct json_reader *reader, const struct json_value *value);
