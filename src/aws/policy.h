/*
 * What a resource policy permits: statements as Lambda's AddPermission makes them, all of effect Allow. Pure.
 *
 * Kiln knows accounts, and neither users nor organizations: a principal that is a user, a role or a session stands for
 * its account, and a condition on an organization is never met.
 */
#pragma once

#include "base/span.h"

#include <jansson.h>

/* Who calls, and what the conditions may ask about. Empty: there is no such thing about this call. */
struct policy_caller {
    struct span account;        /* whose credentials signed the call */
    struct span service;        /* the service that calls by itself: "s3.amazonaws.com" */
    struct span source_arn;     /* the resource on whose behalf the service calls */
    struct span source_account; /* that resource's account */
    struct span event_source_token;
    struct span url_auth_type; /* "NONE" or "AWS_IAM" of the function URL by which the call comes */
};

/*
 * Whether one of the statements (an array; NULL: there are none) permits the action ("lambda:InvokeFunction") on the
 * resource, an ARN as it was named: a statement is about exactly its own. Conditions as in the IAM user guide: ArnLike
 * compares the six parts of an ARN one by one, with '*' and '?' in the pattern; a key that the call does not have is
 * not met.
 */
bool policy_permits(const json_t *statements, struct span action, struct span resource,
                    const struct policy_caller *caller);
