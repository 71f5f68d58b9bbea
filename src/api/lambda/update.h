/*
 * What UpdateFunctionCode, UpdateFunctionConfiguration and PublishVersion share: the conditions on the function as it
 * is when their turn comes. All return 0 or a refusal in call->error.
 */
#pragma once

#include "api/lambda/call.h"

/* The package's share of the account's code storage: `count` versions more of it, `freed` bytes given up. */
int update_check_storage(struct call *call, const struct catalog_scope *scope, uint64_t count, uint64_t freed) MUST_USE;
/*
 * 409 while the function is Pending or an update is InProgress. On the service that takes seconds, here a moment that a
 * client may miss or not. So that two updates in a row have the service's answer (recorded) however quick the client
 * is, an update lasts for services->unseen_update_ns unless somebody has been shown that it is over. Nothing else
 * waits.
 */
int update_check_settled(struct call *call, const struct catalog_function *function) MUST_USE;
/* The call's version was made or changed. */
void update_begin(const struct call *call);
/* The call's version is shown: if that says that no update is under way, none is. */
void update_show(const struct call *call);
/* 412 when `revision_id` was given (data not NULL) and is not `current`. */
int update_check_revision(struct call *call, struct span revision_id, const char *current) MUST_USE;
/* The catalog's form of call->document and call->package. */
struct catalog_configuration update_configuration(const struct call *call);
