/*
 * Event source mappings: which function gets the records of which queue, stream or topic, and how. What the kinds of
 * sources have in common and where they differ is a table here; the operations are in event_sources.c.
 *
 * A mapping is a record of the catalog, by its UUID:
 *
 *   {"configuration", "enabled", "modified_ms", "Tags"?}
 *
 * whose configuration has the members of the API's EventSourceMappingConfiguration that are facts of the mapping,
 * FunctionArn among them, and none that say how it is doing (UUID, State, LastModified, ...).
 *
 * Texts are recorded where test data has them; the others are quoted from public reports or, where neither is known,
 * ours.
 */
#pragma once

#include "api/lambda/input.h"

/* The bodies of Create and of Update, which share a shape but for what cannot be changed. */
extern const struct input_member event_source_create_members[];
extern const struct input_member event_source_update_members[];

/* What the service model says about the members of call->input, whichever are there (ValidationException). */
void event_source_validate(struct call *call);

struct event_source;

/*
 * The kind of a mapping's source, by the members EventSourceArn and SelfManagedEventSource of a body or a
 * configuration. NULL when it is none.
 */
const struct event_source *event_source_of(const json_t *configuration);
/* What StateTransitionReason says of it. */
const char *event_source_reason(const struct event_source *source);
/* LastProcessingResult of a mapping that has processed nothing; NULL: such mappings do not show it. */
const char *event_source_result(const struct event_source *source);

/*
 * The configuration that call->input asks for: a new one (`current` NULL) with the defaults of its kind, or a changed
 * copy. FunctionArn is the caller's to set. Checks all that does not depend on other resources. 0 with a reference for
 * the caller, a refusal, -ENOMEM.
 */
int event_source_configure(struct call *call, const json_t *current, const char *uuid,
                           json_t **ret_configuration) MUST_USE;

/* 409 when another mapping of the scope than `uuid` already connects the function with the source. 0 or a refusal. */
int event_source_check_unique(struct call *call, const struct catalog_scope *scope, struct span uuid,
                              const json_t *configuration) MUST_USE;
