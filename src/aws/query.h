/*
 * The query protocol (STS, IAM): parameters come as a form, in the query string of a GET or in the body of a POST;
 * answers go out as XML in an envelope of the action's name. Its error envelope is aws_error_write_query.
 */
#pragma once

#include "aws/uri.h"

#include <jansson.h>

/*
 * Parses a form: the body's parameters, or the query string's when the body is empty. Spans point into them or the
 * arena. 0, -EINVAL for bad percent encoding, -ENOMEM.
 */
int query_parse(struct arena *arena, struct span query, struct span body, struct uri_query *ret_form) MUST_USE;
/* A parameter's value, SPAN_NONE when it is absent; one that is there is never SPAN_NONE. */
struct span query_string(const struct uri_query *form, const char *name);
/*
 * An item of a list, from 1: "TagKeys.member.1" (`member` NULL) or "Tags.member.1.Key". SPAN_NONE when absent. Names
 * past 255 bytes are absent.
 */
struct span query_item(const struct uri_query *form, const char *list, size_t number, const char *member);
/* Whether the list has an item of that number, in either form. */
bool query_has_item(const struct uri_query *form, const char *list, size_t number);

/*
 * Appends the answer to an action: the members of `result` (NULL: the action has none) and the request id, as XML in
 * the namespace, or as JSON for who accepts that instead. 0 or -ENOMEM.
 */
int query_write_xml(const char *action, const char *xmlns, const json_t *result, struct span request_id,
                    struct buffer *body) MUST_USE;
int query_write_json(const char *action, const json_t *result, struct span request_id, struct buffer *body) MUST_USE;
