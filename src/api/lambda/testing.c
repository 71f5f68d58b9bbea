#include "api/lambda/testing.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

int lambda_test_setup(void **state)
{
    struct api_world *world = calloc(1, sizeof(*world));

    api_open(world);
    *state = world;
    return 0;
}

int lambda_test_setup_function(void **state)
{
    lambda_test_setup(state);
    api_create_function(*state, "f");
    return 0;
}

int lambda_test_teardown(void **state)
{
    api_close(*state);
    free(*state);
    return 0;
}

static struct api_answer exchange(struct api_world *world, const char *method, const char *target, json_t *body)
{
    return body ? api_exchange_json(world, method, target, body) : api_exchange(world, method, target, NULL);
}

json_t *lambda_accepted(struct api_world *world, const char *method, const char *target, json_t *body, int status)
{
    struct api_answer answer = exchange(world, method, target, body);
    json_t *result = json_incref(answer.body);

    assert_string_equal(api_message(&answer), "");
    assert_int_equal(answer.status, status);
    api_answer_deinit(&answer);
    testing_run(&world->catalog);
    return result;
}

void lambda_done(struct api_world *world, const char *method, const char *target, json_t *body, int status)
{
    json_decref(lambda_accepted(world, method, target, body, status));
}

void lambda_refused(struct api_world *world, const char *method, const char *target, json_t *body, int status,
                    const char *code, const char *message)
{
    lambda_assert_error(exchange(world, method, target, body), status, code, message);
}

struct api_answer lambda_expect(struct api_world *world, int status, const char *method, const char *target,
                                const char *body)
{
    struct api_answer answer = api_exchange(world, method, target, body);

    if (answer.status != status)
        fail_msg("%s %s: %d %s", method, target, answer.status, api_message(&answer));
    return answer;
}

void lambda_expect_status(struct api_world *world, int status, const char *method, const char *target, const char *body)
{
    struct api_answer answer = lambda_expect(world, status, method, target, body);

    api_answer_deinit(&answer);
}

void lambda_assert_error(struct api_answer answer, int status, const char *code, const char *message)
{
    assert_string_equal(api_message(&answer), message);
    assert_string_equal(answer.error_type, code);
    assert_int_equal(answer.status, status);
    api_answer_deinit(&answer);
}

void lambda_assert_json(const json_t *value, const char *expected)
{
    json_t *wanted = json_loads(expected, 0, NULL);

    if (!json_equal(value, wanted))
        fail_msg("got %s", json_dumps(value, 0));
    json_decref(wanted);
}

json_t *lambda_creation(const char *name)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:{s:o}}", "FunctionName", name, "Runtime", "python3.12", "Role", ROLE,
                     "Handler", "handler.handler", "Code", "ZipFile", api_zip("handler.py", "pass"));
}

json_t *lambda_creation_with(const char *name, const char *member, json_t *value)
{
    json_t *body = lambda_creation(name);

    json_object_set_new(body, member, value);
    return body;
}

void lambda_create(struct api_world *world, const char *name)
{
    lambda_done(world, "POST", FUNCTIONS, lambda_creation(name), 201);
}

json_t *lambda_publish(struct api_world *world, const char *description)
{
    return lambda_accepted(world, "POST", FUNCTIONS "/f/versions", json_pack("{s:s}", "Description", description), 201);
}

void lambda_change_code(struct api_world *world, const char *content)
{
    lambda_done(world, "PUT", FUNCTIONS "/f/code", json_pack("{s:o}", "ZipFile", api_zip("handler.py", content)), 200);
}

const char *lambda_text(const json_t *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));

    return text ? text : "(absent)";
}
