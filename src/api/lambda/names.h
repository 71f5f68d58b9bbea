/*
 * The function that a request means, for the control plane and Invoke alike: the name in any of its forms and the
 * qualifier beside it, held against the account and the Region that the caller is signed for.
 *
 * Order, recorded: what the patterns and lengths say comes first (one ValidationException for all of it, made with
 * validate_function_name and validate_qualifier), then the Region, then the account, then whether both qualifiers
 * agree.
 */
#pragma once

#include "aws/arn.h"
#include "aws/error.h"

struct catalog;

/* Who asks, and for what. Spans and text are borrowed for the calls below. */
struct name_caller {
    const struct catalog *catalog;
    struct span account;
    struct span region;
    const char *action; /* "InvokeFunction"; NULL: what no policy can permit, denied without a word */
};

/*
 * 404 for a function of another Region; 403 for one of another account, unless the action is one of those that a
 * resource policy can permit, and the function's does.
 * `qualifier` is the one given beside the name, empty for none. 0 or the class in `error`.
 */
int names_check_place(const struct function_name *name, struct span qualifier, const struct name_caller *caller,
                      struct aws_error *error) MUST_USE;

/*
 * The qualifier that counts, of the one in the name and the one given beside it (either may be empty); 400 when both
 * are there and differ. 0 or the class in `error`.
 */
int names_join_qualifiers(struct span part, struct span parameter, struct span *ret_qualifier,
                          struct aws_error *error) MUST_USE;
