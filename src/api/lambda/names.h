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

/* Who asks. Spans and text are borrowed for the calls below. */
struct name_caller {
    struct span account;
    struct span region;
    const char *action; /* "InvokeFunction": what a denial says was not allowed; NULL: it says nothing */
};

/*
 * 404 for a function of another Region, 403 for one of another account: no resource policy can let anybody in yet.
 * 0 or the class in `error`.
 */
int names_check_place(const struct function_name *name, const struct name_caller *caller,
                      struct aws_error *error) MUST_USE;

/*
 * The qualifier that counts, of the one in the name and the one given beside it (either may be empty); 400 when both
 * are there and differ. 0 or the class in `error`.
 */
int names_join_qualifiers(struct span part, struct span parameter, struct span *ret_qualifier,
                          struct aws_error *error) MUST_USE;
