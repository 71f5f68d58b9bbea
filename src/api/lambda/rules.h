/*
 * What the service model says of the members of a body, as tables: each adds what is wrong to the call's validation, in
 * the order of the table. A member is named by its parent ("A.B"; NULL: the body itself), and spelled as the service
 * does in violations by `path`.
 */
#pragma once

#include "api/lambda/input.h"

struct string_rule {
    const char *parent;
    const char *member;
    const char *path;
    struct validation_constraint constraint;
    bool required;
};

struct number_rule {
    const char *parent;
    const char *member;
    const char *path;
    int64_t minimum;
    int64_t maximum;
};

/* Of strings. */
struct list_rule {
    const char *parent;
    const char *member;
    const char *path;
    size_t minimum;
    size_t maximum;                          /* 0: none */
    struct validation_constraint constraint; /* of each */
};

void rules_validate_strings(struct call *call, const struct string_rule *rules, size_t count);
void rules_validate_numbers(struct call *call, const struct number_rule *rules, size_t count);
void rules_validate_lists(struct call *call, const struct list_rule *rules, size_t count);
