/* What the resource policies of functions permit: the policy is found here, aws/policy.h reads it. */
#include "aws/policy.h"
#include "catalog/catalog.h"

#include <stdio.h>

/* arn:...:function: with a name of 64 and a qualifier of 128 characters */
enum { ARN_BYTES = 512 };

bool catalog_permits(const struct catalog *catalog, const struct catalog_subject *subject, const char *action,
                     const struct policy_caller *caller)
{
    const struct catalog_function *function;
    const json_t *policy;
    char arn[ARN_BYTES];
    int length;

    if (span_equal(caller->account, subject->account))
        return true;
    function = catalog_find_function(catalog, subject->account, subject->region, subject->function_name);
    if (!function)
        return false;
    policy = catalog_find_attached(function, CATALOG_POLICY, subject->qualifier);
    length = snprintf(arn, sizeof(arn), "%s%s%.*s", function->arn, subject->qualifier.length ? ":" : "",
                      SPAN_ARG(subject->qualifier));
    return policy && length < ARN_BYTES &&
           policy_permits(json_object_get(policy, "statements"), span_from(action), span_of(arn, (size_t)length),
                          caller);
}
