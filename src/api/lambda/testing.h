/*
 * For tests of operations (cmocka): exchanges that must come out in a stated way, and bodies that create functions.
 */
#pragma once

#include "api/testing.h"

#define FUNCTIONS "/2015-03-31/functions"
#define ROLE      "arn:aws:iam::111111111111:role/r"

/* For cmocka_unit_test_setup_teardown: a struct api_world as the state. */
int lambda_test_setup(void **state);
/* The same with a function "f". */
int lambda_test_setup_function(void **state);
int lambda_test_teardown(void **state);

/* Must succeed; whatever is due then is done. Takes the body (may be NULL); the caller owns the answer's. */
json_t *lambda_accepted(struct api_world *world, const char *method, const char *target, json_t *body, int status);
/* The same for an answer that nobody looks at. */
void lambda_done(struct api_world *world, const char *method, const char *target, json_t *body, int status);
/* Must be refused so. Takes the body (may be NULL). */
void lambda_refused(struct api_world *world, const char *method, const char *target, json_t *body, int status,
                    const char *code, const char *message);

/*
 * The same for a body as text (may be NULL): the answer, which must have this status; the caller owns it. What is due
 * then is not done yet.
 */
struct api_answer lambda_expect(struct api_world *world, int status, const char *method, const char *target,
                                const char *body);
void lambda_expect_status(struct api_world *world, int status, const char *method, const char *target,
                          const char *body);
/* The answer, which is taken, must be this error. */
void lambda_assert_error(struct api_answer answer, int status, const char *code, const char *message);
/* The value must be what this text says. */
void lambda_assert_json(const json_t *value, const char *expected);

/* Everything that CreateFunction needs. */
json_t *lambda_creation(const char *name);
/* With one member more, which is taken. */
json_t *lambda_creation_with(const char *name, const char *member, json_t *value);
/* Creates it and lets it settle. */
void lambda_create(struct api_world *world, const char *name);
/* Publishes the function "f"; the caller owns the answer's body. */
json_t *lambda_publish(struct api_world *world, const char *description);
/* Gives the function "f" other code and lets it settle. */
void lambda_change_code(struct api_world *world, const char *content);
/* A member of an object, "(absent)" when it is not there or no text. */
const char *lambda_text(const json_t *object, const char *member);
