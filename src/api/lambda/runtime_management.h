/* What other operations need to know of runtime management. */
#pragma once

#include "api/lambda/call.h"

/* The ARN to which the version's runtime is pinned by hand, NULL unless it is. Borrowed from the catalog. */
const char *runtime_management_pinned_arn(const struct catalog_version *version);
/* Refuses that call->input gives $LATEST another Runtime while its runtime is pinned. 0 or a refusal. */
int runtime_management_check_update(struct call *call, const struct catalog_function *function) MUST_USE;
