/*
 * Parts of a configuration that are merged with what the function has, each in a file of its own. They are kept and
 * shown as on the service; README.md says what has no effect here. Shared by configuration.c and these files.
 */
#pragma once

#include "api/lambda/input.h"

/* The document of the call's function as it is now; NULL when there is no such function (it is being made). */
const json_t *configuration_current(const struct call *call);

/* Refuses log levels without the JSON format (the text is of public reports). 0 or a refusal. */
int logging_config_check(struct call *call) MUST_USE;
/*
 * The LoggingConfig that comes of the input and the `current` one (NULL: none): members that are not given stay, and
 * the JSON format has levels, INFO unless given (recorded). NULL when out of memory; the caller owns it.
 */
json_t *logging_config_make(const struct call *call, const json_t *current);

/* Refuses subnets without security groups and the reverse (the text is of public reports). 0 or a refusal. */
int vpc_config_check(struct call *call) MUST_USE;
/*
 * The VpcConfig of an answer for the input's one and the `current` one (NULL: none); members that are not given stay.
 * All subnets are taken to lie in one VPC of the account and Region. NULL when out of memory; the caller owns it.
 */
json_t *vpc_config_make(const struct call *call, const json_t *current);
