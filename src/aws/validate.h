/*
 * Collects violated constraints into the text that services answer with:
 *
 *   2 validation errors detected: Value 'x' at 'qualifier' failed to satisfy constraint: Member must have length less
 *   than or equal to 128; Value ...
 *
 * in the order of the calls (the recorded order: the qualifier before the function's name). Each validate_* function
 * adds one entry for every constraint that the value violates (length before pattern, as recorded) and returns whether
 * it satisfied them all. Lengths count characters, not bytes.
 */
#pragma once

#include "aws/arn.h"
#include "aws/error.h"

struct validation {
    struct buffer text; /* the entries, joined by "; " */
    unsigned count;
    int error; /* -ENOMEM once something could not be added; validation_finish passes it on */
};

#define VALIDATION_INIT ((struct validation){BUFFER_INIT, 0, 0})

void validation_deinit(struct validation *validation);

/* What a string, or each string of a list, must satisfy. Members left 0 or NULL are not checked. */
struct validation_constraint {
    size_t minimum; /* characters */
    size_t maximum; /* characters, 0: none */
    const char *pattern;
    const char *const *values; /* an enum: NULL-terminated, in the order in which the service lists them */
};

/* "Member must have length less/greater than or equal to N", "... regular expression pattern: P", "... enum value set:
 * [a, b]". */
bool validate_string(struct validation *validation, struct span value, const char *member,
                     const struct validation_constraint *constraint);
bool validate_length(struct validation *validation, struct span value, const char *member, size_t minimum,
                     size_t maximum);
bool validate_pattern(struct validation *validation, struct span value, const char *member, const char *pattern);
/* `values` is NULL-terminated, in the order in which the service lists them. */
bool validate_enum(struct validation *validation, struct span value, const char *member, const char *const *values);
/* "Member must have value less/greater than or equal to N". */
bool validate_range(struct validation *validation, int64_t value, const char *member, int64_t minimum, int64_t maximum);
/* "Value null at 'member' failed to satisfy constraint: Member must not be null"; for members that are required. */
bool validate_present(struct validation *validation, bool present, const char *member);
/*
 * A list of strings; one without data is null, which no list may hold. Its length is one constraint ("Value '[a, b]' at
 * 'm' failed to satisfy constraint: Member must have length less than or equal to 1"); the constraint of its members
 * (may be NULL) is another, whose every part is quoted whatever part failed: "Member must satisfy constraint: [Member
 * must satisfy enum value set: [x, y], Member must not be null]". `maximum` 0: none.
 */
bool validate_list(struct validation *validation, const struct span *values, size_t count, const char *member,
                   size_t minimum, size_t maximum, const struct validation_constraint *constraint);
/*
 * A map of strings: each key and each value is checked (a value without data is null, which none may be), and the whole
 * map is quoted as {k=v, k2=v2} the way lists are (Map keys / Map value must satisfy constraint: [...]). Either
 * constraint may be NULL.
 */
bool validate_map(struct validation *validation, const struct span *keys, const struct span *values, size_t count,
                  const char *member, const struct validation_constraint *key_constraint,
                  const struct validation_constraint *value_constraint);
/*
 * A function's name in one of its forms, with the length and the pattern that the model gives the form ("functionName"
 * as member in every recording). True fills `ret_name`. A good name costs no pattern matching.
 */
bool validate_function_name(struct validation *validation, struct span text, enum function_name_form form,
                            const char *member, struct function_name *ret_name);
/* A qualifier given beside the name (?Qualifier=): NumericLatestPublishedOrAliasQualifier, 1 to 128. */
bool validate_qualifier(struct validation *validation, struct span text, const char *member);
/* A whole entry as formatted, for wordings that are not made above. */
void validation_add(struct validation *validation, const char *format, ...) PRINTF_LIKE(2, 3);

/*
 * 0 when nothing was violated; else fills `error` with "N validation error(s) detected: ..." under `error_class`
 * (AWS_ERROR_VALIDATION for what the model states, AWS_ERROR_INVALID_PARAMETER_VALUE for what is checked later, as
 * recorded) and returns it; -ENOMEM. Leaves the validation empty.
 */
int validation_finish(struct validation *validation, enum aws_error_class error_class,
                      struct aws_error *error) MUST_USE;
