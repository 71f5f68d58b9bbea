/*
 * Code signing configurations, and what they mean for who deploys code. A configuration is a record of the catalog by
 * its id, {"AllowedPublishers", "CodeSigningPolicies", "Description", "LastModified", "Tags"?}; which one a function
 * has is a record that hangs on the function, {"Arn"}. Kiln cannot verify signatures: nothing counts as signed by an
 * allowed publisher.
 */
#pragma once

#include "api/lambda/input.h"

/* The configuration of this ARN, NULL when there is none in the call's account and Region. */
const json_t *code_signing_find(const struct call *call, struct span arn);
/* Validates an ARN under the name "codeSigningConfigArn". */
void code_signing_validate_arn(struct call *call, struct span arn);

/* 404 for a configuration that a path names and that is not there; without a Type (recorded). */
int code_signing_refuse_missing(struct call *call, struct span arn);

/* The ARN that hangs on the function, NULL when none does. */
const char *code_signing_arn_of(const struct catalog_function *function);
/* 404 CodeSigningConfigNotFoundException unless the configuration is there. 0 or a refusal. */
int code_signing_check_exists(struct call *call, struct span arn) MUST_USE;
/*
 * Refuses to deploy code or layers to call->function_name when the configuration of this ARN (NULL: none) enforces
 * signatures. 0 or a refusal.
 */
int code_signing_check_deployment(struct call *call, const char *arn) MUST_USE;
/* Hangs the configuration on the function. -ENOMEM. */
int code_signing_attach(struct catalog_change *change, const struct catalog_function *function,
                        struct span arn) MUST_USE;
