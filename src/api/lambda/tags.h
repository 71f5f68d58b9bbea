/*
 * Tags of what has an ARN: their rules, for the operations that make something with tags and for those on tags alone.
 */
#pragma once

#include "api/lambda/input.h"

/* What the service model says about call->input's member Tags, if it is there (ValidationException). */
void tags_validate(struct call *call);
/*
 * What is checked behind the model: at most 50 in all (recorded), and no key of the service's own ("aws:" in any case;
 * the refusal of such keys is not recorded, its text is that of other tags that cannot be stored). `tags` may be NULL.
 * 0 or a refusal.
 */
int tags_check(struct call *call, const json_t *tags) MUST_USE;
