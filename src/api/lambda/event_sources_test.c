/* Event source mappings when memory or the store fail; the rules are in tests/conformance/event_sources.test.mjs. */
#include "api/lambda/testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define MAPPINGS "/2015-03-31/event-source-mappings"
#define STREAM                                                                                        \
    "{\"FunctionName\":\"f\",\"EventSourceArn\":\"arn:aws:kinesis:us-east-1:111111111111:stream/s\"," \
    "\"StartingPosition\":\"LATEST\",\"FilterCriteria\":{\"Filters\":[{\"Pattern\":\"{\\\"a\\\":[1]}\"}]}}"

/* The only mapping's UUID, "" when there is none. */
static void find_mapping(struct api_world *world, char uuid[64])
{
    struct api_answer answer = api_exchange(world, "GET", MAPPINGS, NULL);
    const json_t *rows = json_object_get(answer.body, "EventSourceMappings");
    const char *value = json_string_value(json_object_get(json_array_get(rows, 0), "UUID"));

    assert_int_equal(answer.status, 200);
    assert_true(json_array_size(rows) <= 1);
    snprintf(uuid, 64, "%s", value ? value : "");
    api_answer_deinit(&answer);
}

static int exchange(struct api_world *world, const char *method, const char *uuid, const char *body)
{
    struct api_answer answer;
    char target[128];
    int status;

    snprintf(target, sizeof(target), "%s%s%s", MAPPINGS, uuid[0] ? "/" : "", uuid);
    answer = api_exchange(world, method, target, body);
    status = answer.status;
    api_answer_deinit(&answer);
    return status;
}

static json_int_t batch_size(struct api_world *world, const char *uuid)
{
    char target[128];
    struct api_answer answer;
    json_int_t size;

    snprintf(target, sizeof(target), "%s/%s", MAPPINGS, uuid);
    answer = api_exchange(world, "GET", target, NULL);
    size = json_integer_value(json_object_get(answer.body, "BatchSize"));
    api_answer_deinit(&answer);
    return size;
}

static int allocations_left;

static void *failing_malloc(size_t size)
{
    return allocations_left-- > 0 ? malloc(size) : NULL;
}

/*
 * The status of a call during which the JSON library has so many allocations. A body or a pattern that cannot be parsed
 * for want of memory may pass for a broken one: jansson does not always tell.
 */
static int exchange_with(int allowed, struct api_world *world, const char *method, const char *uuid, const char *body)
{
    int status;

    allocations_left = allowed;
    json_set_alloc_funcs(failing_malloc, free);
    status = exchange(world, method, uuid, body);
    json_set_alloc_funcs(malloc, free);
    return status;
}

static void test_creation_survives_exhaustion_at_any_point(void **state)
{
    struct api_world *world = *state;
    char uuid[64];
    int status = 0;

    for (int allowed = 0; status != 202; allowed++) {
        status = exchange_with(allowed, world, "POST", "", STREAM);
        assert_true(status == 500 || status == 400 || status == 202);
        assert_true(allowed < 2000);
        find_mapping(world, uuid); /* made and durable, though the answer could not be written */
        if (status != 202 && uuid[0])
            assert_int_equal(exchange(world, "DELETE", uuid, NULL), 202);
    }
    assert_true(uuid[0] != '\0');
}

static void test_update_survives_exhaustion_at_any_point(void **state)
{
    struct api_world *world = *state;
    char uuid[64];
    int status = 0;

    assert_int_equal(exchange(world, "POST", "", STREAM), 202);
    find_mapping(world, uuid);
    for (int allowed = 0; status != 202; allowed++) {
        status = exchange_with(allowed, world, "PUT", uuid, "{\"BatchSize\":7}");
        assert_true(status == 500 || status == 400 || status == 202);
        assert_true(allowed < 2000);
        assert_true(batch_size(world, uuid) == 7 || (status != 202 && batch_size(world, uuid) == 100));
    }
}

static void test_failed_commits_change_nothing(void **state)
{
    struct api_world *world = *state;
    char uuid[64];

    assert_int_equal(exchange(world, "POST", "", STREAM), 202);
    find_mapping(world, uuid);
    testing_shut(&world->catalog);
    testing_reopen(&world->catalog, 1); /* every commit fails */
    testing_load(&world->catalog);
    world->services.catalog = world->catalog.catalog;
    world->services.code = world->catalog.code;
    assert_int_equal(exchange(world, "PUT", uuid, "{\"BatchSize\":7}"), 500);
    assert_int_equal(exchange(world, "DELETE", uuid, NULL), 500);
    assert_int_equal(batch_size(world, uuid), 100);
    api_restart(world);
    assert_int_equal(batch_size(world, uuid), 100);
}

static void test_broken_markers_and_bodies_are_refused(void **state)
{
    static const char body[] = "{\"FunctionName\":\"f\",\"BatchSize\":1\0}";
    struct api_world *world = *state;
    struct api_answer answer = api_exchange(world, "GET", MAPPINGS "?Marker=a%2A%3D%3D", NULL);
    struct api_call call;

    assert_string_equal(api_message(&answer), "Invalid Marker: a*==");
    api_answer_deinit(&answer);
    api_start(world, "POST", MAPPINGS, span_of(body, sizeof(body) - 1), &call);
    api_wait(world, &call);
    assert_string_equal(call.answer.error_type, "SerializationException");
    api_answer_deinit(&call.answer);
}

static void test_tags_stay_through_updates(void **state)
{
    static const char tags[] = "/2017-03-31/tags/"
                               "arn%3Aaws%3Alambda%3Aus-east-1%3A111111111111%3Aevent-source-mapping%3A";
    struct api_world *world = *state;
    struct api_answer answer;
    char target[256];
    char uuid[64];

    assert_int_equal(exchange(world, "POST", "", STREAM), 202);
    find_mapping(world, uuid);
    snprintf(target, sizeof(target), "%s%s", tags, uuid);
    answer = api_exchange(world, "POST", target, "{\"Tags\":{\"k\":\"v\"}}");
    assert_int_equal(answer.status, 204);
    api_answer_deinit(&answer);
    assert_int_equal(exchange(world, "PUT", uuid, "{\"Enabled\":false}"), 202);
    answer = api_exchange(world, "GET", target, NULL);
    assert_string_equal(json_string_value(json_object_get(json_object_get(answer.body, "Tags"), "k")), "v");
    api_answer_deinit(&answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, lambda_test_setup_function, lambda_test_teardown)
        TEST(test_creation_survives_exhaustion_at_any_point),
        TEST(test_update_survives_exhaustion_at_any_point),
        TEST(test_failed_commits_change_nothing),
        TEST(test_broken_markers_and_bodies_are_refused),
        TEST(test_tags_stay_through_updates),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
