/*
 * The statements of a resource policy, a function's or a layer version's: an array of them in the form in which the
 * service shows them.
 */
#pragma once

#include "api/lambda/call.h"

/* Index of the statement, -1 when there is none. `statements` may be NULL. */
int statements_find(const json_t *statements, struct span id);
/* 409 when the id is taken. 0 or the refusal. */
int statements_check_id(struct call *call, const json_t *statements, struct span id) MUST_USE;
/* 400 when the policy's text would be longer than 20 KB. 0, the refusal, -ENOMEM. */
int statements_check_size(struct call *call, json_t *statements) MUST_USE;
/* The policy's text: {"Version":...,"Id":"default","Statement":[...]}. The caller frees it; NULL: out of memory. */
char *statements_write(json_t *statements) MUST_USE;
