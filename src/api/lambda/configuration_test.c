/* What functions may be made of, above all at the limits and one past them. */
#include "api/lambda/testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* --- limits of CreateFunction --- */

static void accepts_integer(struct api_world *world, const char *member, int value)
{
    static int count;
    char name[32];

    snprintf(name, sizeof(name), "limit-%d", count++);
    json_decref(
        lambda_accepted(world, "POST", FUNCTIONS, lambda_creation_with(name, member, json_integer(value)), 201));
}

static void test_memory_and_timeout_are_held_to_their_limits(void **state)
{
    struct api_world *world = *state;

    accepts_integer(world, "MemorySize", 128);
    accepts_integer(world, "MemorySize", 10240);
    accepts_integer(world, "Timeout", 1);
    accepts_integer(world, "Timeout", 900);
    lambda_refused(
        world, "POST", FUNCTIONS, lambda_creation_with("f", "MemorySize", json_integer(127)), 400,
        "ValidationException",
        "1 validation error detected: Value '127' at 'memorySize' failed to satisfy constraint: Member must have "
        "value greater than or equal to 128");
    lambda_refused(
        world, "POST", FUNCTIONS, lambda_creation_with("f", "MemorySize", json_integer(10241)), 400,
        "ValidationException",
        "1 validation error detected: Value '10241' at 'memorySize' failed to satisfy constraint: Member must have "
        "value less than or equal to 10240");
    lambda_refused(
        world, "POST", FUNCTIONS, lambda_creation_with("f", "Timeout", json_integer(0)), 400, "ValidationException",
        "1 validation error detected: Value '0' at 'timeout' failed to satisfy constraint: Member must have value "
        "greater than or equal to 1");
    lambda_refused(
        world, "POST", FUNCTIONS, lambda_creation_with("f", "Timeout", json_integer(901)), 400, "ValidationException",
        "1 validation error detected: Value '901' at 'timeout' failed to satisfy constraint: Member must have value "
        "less than or equal to 900");
}

static void test_ephemeral_storage_is_held_to_its_limits(void **state)
{
    struct api_world *world = *state;

    for (int i = 0; i < 2; i++) {
        const int good[] = {512, 10240};
        char name[8] = {'s', (char)('0' + i), 0};
        json_t *body = lambda_accepted(
            world, "POST", FUNCTIONS,
            lambda_creation_with(name, "EphemeralStorage", json_pack("{s:i, s:i}", "Size", good[i], "X", 1)), 201);
        json_t *shown = json_object_get(body, "EphemeralStorage");
        assert_int_equal(json_object_size(shown), 1); /* members that nobody knows are not kept */
        assert_int_equal(json_integer_value(json_object_get(shown, "Size")), good[i]);
        json_decref(body);
    }
    lambda_refused(
        world, "POST", FUNCTIONS, lambda_creation_with("f", "EphemeralStorage", json_pack("{s:i}", "Size", 511)), 400,
        "ValidationException",
        "1 validation error detected: Value '511' at 'ephemeralStorage.size' failed to satisfy constraint: Member "
        "must have value greater than or equal to 512");
    lambda_refused(
        world, "POST", FUNCTIONS, lambda_creation_with("f", "EphemeralStorage", json_object()), 400,
        "ValidationException",
        "1 validation error detected: Value null at 'ephemeralStorage.size' failed to satisfy constraint: Member "
        "must not be null");
}

static json_t *repeat(char c, size_t count)
{
    char *text = malloc(count);
    json_t *value;

    memset(text, c, count);
    value = json_stringn(text, count);
    free(text);
    return value;
}

static void test_description_is_measured_in_characters(void **state)
{
    struct api_world *world = *state;
    struct buffer text = BUFFER_INIT;

    for (int i = 0; i < 256; i++)
        assert_int_equal(buffer_append(&text, "\xc3\xa9", 2), 0);
    json_decref(lambda_accepted(world, "POST", FUNCTIONS,
                                lambda_creation_with("f", "Description", json_stringn(text.data, text.length)), 201));
    buffer_deinit(&text);
    struct api_answer answer =
        api_exchange_json(world, "POST", FUNCTIONS, lambda_creation_with("g", "Description", repeat('x', 257)));
    assert_string_equal(answer.error_type, "ValidationException");
    assert_non_null(strstr(api_message(&answer), "at 'description' failed to satisfy constraint: Member must have "
                                                 "length less than or equal to 256"));
    api_answer_deinit(&answer);
}

static json_t *variables(const char *name, json_t *value)
{
    return json_pack("{s:{s:o}}", "Variables", name, value);
}

static void test_environment_may_be_exactly_four_kilobytes_of_json(void **state)
{
    struct api_world *world = *state;

    /* {"AB":"..."} has 9 bytes around the value */
    json_decref(lambda_accepted(world, "POST", FUNCTIONS,
                                lambda_creation_with("f", "Environment", variables("AB", repeat('x', 4087))), 201));
    struct api_answer answer = api_exchange_json(
        world, "POST", FUNCTIONS, lambda_creation_with("g", "Environment", variables("AB", repeat('x', 4088))));
    assert_string_equal(answer.error_type, "InvalidParameterValueException");
    assert_non_null(strstr(api_message(&answer), "exceeded the 4KB limit. String measured: {\"AB\":\"xxx"));
    api_answer_deinit(&answer);
}

static void test_reserved_variables_are_refused_by_name(void **state)
{
    json_t *environment =
        json_pack("{s:{s:s, s:s, s:s}}", "Variables", "OWN", "1", "AWS_REGION", "x", "LAMBDA_TASK_ROOT", "/");

    lambda_refused(
        *state, "POST", FUNCTIONS, lambda_creation_with("f", "Environment", environment), 400,
        "InvalidParameterValueException",
        "Lambda was unable to configure your environment variables because the environment variables you have "
        "provided contains reserved keys that are currently not supported for modification. Reserved keys used in "
        "this request: AWS_REGION, LAMBDA_TASK_ROOT");
}

static json_t *tags(int count)
{
    json_t *map = json_object();

    for (int i = 0; i < count; i++) {
        char key[16];
        snprintf(key, sizeof(key), "key%d", i);
        json_object_set_new(map, key, json_string("value"));
    }
    return map;
}

static void test_fifty_tags_are_kept_and_shown(void **state)
{
    struct api_world *world = *state;
    json_t *body;

    json_decref(lambda_accepted(world, "POST", FUNCTIONS, lambda_creation_with("f", "Tags", tags(50)), 201));
    testing_run(&world->catalog);
    body = lambda_accepted(world, "GET", FUNCTIONS "/f", NULL, 200);
    assert_int_equal(json_object_size(json_object_get(body, "Tags")), 50);
    json_decref(body);
    lambda_refused(world, "POST", FUNCTIONS, lambda_creation_with("g", "Tags", tags(51)), 400,
                   "InvalidParameterValueException", "Number of tags exceeds resource tag limit.");
}

static void test_name_has_at_most_64_characters(void **state)
{
    struct api_world *world = *state;
    char name[66];

    memset(name, 'n', 65);
    name[65] = '\0';
    struct api_answer answer = api_exchange_json(world, "POST", FUNCTIONS, lambda_creation(name));
    assert_string_equal(answer.error_type, "InvalidParameterValueException");
    api_answer_deinit(&answer);
    name[64] = '\0';
    json_decref(lambda_accepted(world, "POST", FUNCTIONS, lambda_creation(name), 201));
}

static void test_all_missing_members_are_named_at_once(void **state)
{
    lambda_refused(
        *state, "POST", FUNCTIONS, json_object(), 400, "ValidationException",
        "3 validation errors detected: Value null at 'role' failed to satisfy constraint: Member must not be null; "
        "Value null at 'code' failed to satisfy constraint: Member must not be null; Value null at 'functionName' "
        "failed to satisfy constraint: Member must not be null");
}

static void test_runtime_and_handler_are_needed(void **state)
{
    json_t *body = lambda_creation("f");

    json_object_del(body, "Handler");
    lambda_refused(*state, "POST", FUNCTIONS, body, 400, "InvalidParameterValueException",
                   "Runtime and Handler are mandatory parameters for functions created with deployment packages.");
}

static void test_existing_function_is_not_created_again(void **state)
{
    struct api_world *world = *state;

    lambda_create(world, "f");
    lambda_refused(world, "POST", FUNCTIONS, lambda_creation("f"), 409, "ResourceConflictException",
                   "Function already exist: f");
}

static void test_two_creations_at_once_leave_one_function(void **state)
{
    struct api_world *world = *state;
    json_t *body = lambda_creation("f");
    char *text = json_dumps(body, 0);
    struct api_call first;
    struct api_call second;

    api_start(world, "POST", FUNCTIONS, span_from(text), &first);
    api_start(world, "POST", FUNCTIONS, span_from(text), &second);
    api_wait(world, &first);
    api_wait(world, &second);
    /* Whose package is unpacked first wins. */
    assert_int_equal(MIN(first.answer.status, second.answer.status), 201);
    assert_int_equal(MAX(first.answer.status, second.answer.status), 409);
    api_answer_deinit(&first.answer);
    api_answer_deinit(&second.answer);
    json_decref(body);
    free(text);
}

/* --- what Kiln lacks --- */

static void lacks(struct api_world *world, const char *member, json_t *value, const char *message)
{
    lambda_refused(world, "POST", FUNCTIONS, lambda_creation_with("f", member, value), 400,
                   "InvalidParameterValueException", message);
}

static void test_what_kiln_lacks_is_refused_and_not_pretended(void **state)
{
    struct api_world *world = *state;

    lacks(world, "PackageType", json_string("Image"),
          "Kiln does not run container images; use a deployment package of type Zip.");
    lacks(world, "FileSystemConfigs",
          json_pack("[{s:s, s:s}]", "Arn",
                    "arn:aws:elasticfilesystem:us-east-1:111111111111:access-point/fsap-0123456789abcdef0",
                    "LocalMountPath", "/mnt/files"),
          "Kiln does not mount file systems; FileSystemConfigs is not supported.");
    lacks(world, "ImageConfig", json_pack("{s:[s]}", "Command", "run"),
          "ImageConfig is not supported for functions created with deployment packages.");
    lacks(world, "TenancyConfig", json_pack("{s:s}", "TenantIsolationMode", "PER_TENANT"),
          "Kiln does not support TenancyConfig.");
    lacks(world, "DurableConfig", json_pack("{s:i}", "ExecutionTimeout", 60), "Kiln does not support DurableConfig.");
    lacks(world, "PublishTo", json_string("LATEST_PUBLISHED"), "Kiln does not support PublishTo.");
    lacks(world, "Layers", json_pack("[s]", "arn:aws:lambda:us-east-1:111111111111:layer:l:1"),
          "Layer version arn:aws:lambda:us-east-1:111111111111:layer:l:1 does not exist.");
}

static void test_what_has_no_effect_is_accepted(void **state)
{
    struct api_world *world = *state;
    json_t *body = lambda_creation("f");
    json_t *answer;

    json_object_set_new(body, "VpcConfig", json_object());
    json_object_set_new(body, "DeadLetterConfig", json_object());
    json_object_set_new(body, "Layers", json_array());
    json_object_set_new(body, "FileSystemConfigs", json_array());
    json_object_set_new(body, "KMSKeyArn", json_string(""));
    json_object_set_new(body, "SnapStart", json_pack("{s:s}", "ApplyOn", "PublishedVersions"));
    json_object_set_new(body, "LoggingConfig", json_pack("{s:s}", "LogGroup", "/own/group"));
    json_object_set_new(body, "NobodyKnowsThis", json_integer(1));
    json_object_set_new(body, "Description", json_null());
    answer = lambda_accepted(world, "POST", FUNCTIONS, body, 201);
    assert_string_equal(lambda_text(json_object_get(answer, "LoggingConfig"), "LogGroup"), "/own/group");
    assert_string_equal(lambda_text(json_object_get(answer, "SnapStart"), "OptimizationStatus"), "Off");
    assert_string_equal(lambda_text(answer, "Description"), "");
    assert_null(json_object_get(answer, "Layers"));
    assert_null(json_object_get(answer, "NobodyKnowsThis"));
    json_decref(answer);
}

/* What matters outside the function alone is kept and shown as it was given. */
static void test_surroundings_are_kept_and_shown(void **state)
{
    struct api_world *world = *state;
    json_t *body = lambda_creation("f");
    json_t *vpc = json_pack("{s:[s], s:[s]}", "SubnetIds", "subnet-1", "SecurityGroupIds", "sg-1");
    json_t *answer;
    const char *vpc_id;

    json_object_set_new(body, "VpcConfig", vpc);
    json_object_set_new(body, "DeadLetterConfig", json_pack("{s:s}", "TargetArn", "arn:aws:sqs:us-east-1:1:q"));
    json_object_set_new(body, "TracingConfig", json_pack("{s:s}", "Mode", "Active"));
    json_object_set_new(body, "KMSKeyArn", json_string("arn:aws:kms:us-east-1:111111111111:key/k"));
    answer = lambda_accepted(world, "POST", FUNCTIONS, body, 201);
    assert_string_equal(lambda_text(json_object_get(answer, "DeadLetterConfig"), "TargetArn"),
                        "arn:aws:sqs:us-east-1:1:q");
    assert_string_equal(lambda_text(json_object_get(answer, "TracingConfig"), "Mode"), "Active");
    assert_string_equal(lambda_text(answer, "KMSKeyArn"), "arn:aws:kms:us-east-1:111111111111:key/k");
    vpc = json_object_get(answer, "VpcConfig");
    vpc_id = lambda_text(vpc, "VpcId");
    assert_int_equal(strlen(vpc_id), strlen("vpc-") + 17);
    assert_int_equal(json_array_size(json_object_get(vpc, "SubnetIds")), 1);
    assert_true(json_is_false(json_object_get(vpc, "Ipv6AllowedForDualStack")));
    json_decref(answer);
}

/* An empty text takes away, a member that is absent stays. */
static void test_surroundings_are_taken_away_with_empty_values(void **state)
{
    struct api_world *world = *state;
    json_t *body = lambda_creation("f");
    json_t *answer;

    json_object_set_new(body, "DeadLetterConfig", json_pack("{s:s}", "TargetArn", "arn:aws:sqs:us-east-1:1:q"));
    json_object_set_new(body, "KMSKeyArn", json_string("arn:aws:kms:us-east-1:111111111111:key/k"));
    json_decref(lambda_accepted(world, "POST", FUNCTIONS, body, 201));
    testing_run(&world->catalog);
    answer = lambda_accepted(world, "PUT", FUNCTIONS "/f/configuration", json_pack("{s:{}}", "DeadLetterConfig"), 200);
    assert_non_null(json_object_get(answer, "DeadLetterConfig"));
    assert_non_null(json_object_get(answer, "KMSKeyArn"));
    json_decref(answer);
    testing_run(&world->catalog);
    answer = lambda_accepted(world, "PUT", FUNCTIONS "/f/configuration",
                             json_pack("{s:{s:s}, s:s}", "DeadLetterConfig", "TargetArn", "", "KMSKeyArn", ""), 200);
    assert_null(json_object_get(answer, "DeadLetterConfig"));
    assert_null(json_object_get(answer, "KMSKeyArn"));
    json_decref(answer);
}

static void test_subnets_and_security_groups_come_together(void **state)
{
    lacks(*state, "VpcConfig", json_pack("{s:[s]}", "SubnetIds", "subnet-1"),
          "SubnetIds and SecurityIds must coexist or be both empty list.");
    lacks(*state, "VpcConfig", json_pack("{s:[s], s:[]}", "SecurityGroupIds", "sg-1", "SubnetIds"),
          "SubnetIds and SecurityIds must coexist or be both empty list.");
}

static void test_snap_start_needs_a_runtime_with_snapshots(void **state)
{
    static const char *const runtimes[] = {"nodejs22.x", "python3.11", "provided.al2023", "java8.al2", "ruby3.4"};
    struct api_world *world = *state;
    char message[128];

    for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++) {
        json_t *body = lambda_creation_with("f", "SnapStart", json_pack("{s:s}", "ApplyOn", "PublishedVersions"));
        json_object_set_new(body, "Runtime", json_string(runtimes[i]));
        snprintf(message, sizeof(message), "%s is not supported for SnapStart enabled functions.", runtimes[i]);
        lambda_refused(world, "POST", FUNCTIONS, body, 400, "InvalidParameterValueException", message);
    }
}

/* Whichever of the two the update names, the other is what the function has. */
static void test_snap_start_and_runtime_are_checked_together(void **state)
{
    struct api_world *world = *state;

    json_decref(lambda_accepted(
        world, "POST", FUNCTIONS,
        lambda_creation_with("f", "SnapStart", json_pack("{s:s}", "ApplyOn", "PublishedVersions")), 201));
    testing_run(&world->catalog);
    lambda_refused(world, "PUT", FUNCTIONS "/f/configuration", json_pack("{s:s}", "Runtime", "nodejs22.x"), 400,
                   "InvalidParameterValueException", "nodejs22.x is not supported for SnapStart enabled functions.");
    json_decref(lambda_accepted(world, "PUT", FUNCTIONS "/f/configuration",
                                json_pack("{s:s, s:{s:s}}", "Runtime", "nodejs22.x", "SnapStart", "ApplyOn", "None"),
                                200));
    testing_run(&world->catalog);
    lambda_refused(world, "PUT", FUNCTIONS "/f/configuration",
                   json_pack("{s:{s:s}}", "SnapStart", "ApplyOn", "PublishedVersions"), 400,
                   "InvalidParameterValueException", "nodejs22.x is not supported for SnapStart enabled functions.");
}

static const char *level_of(const json_t *answer, const char *level)
{
    return json_string_value(json_object_get(json_object_get(answer, "LoggingConfig"), level));
}

static void test_log_levels_belong_to_the_json_format(void **state)
{
    static const char refusal[] =
        "LogLevel is not supported when LogFormat is set to \"Text\". Remove LogLevel from your "
        "request or change the LogFormat to \"Json\" and try again.";
    struct api_world *world = *state;
    json_t *answer;

    lacks(world, "LoggingConfig", json_pack("{s:s}", "SystemLogLevel", "WARN"), refusal);
    json_decref(lambda_accepted(world, "POST", FUNCTIONS, lambda_creation("f"), 201));
    testing_run(&world->catalog);
    lambda_refused(world, "PUT", FUNCTIONS "/f/configuration",
                   json_pack("{s:{s:s}}", "LoggingConfig", "SystemLogLevel", "WARN"), 400,
                   "InvalidParameterValueException", refusal);
    answer =
        lambda_accepted(world, "PUT", FUNCTIONS "/f/configuration",
                        json_pack("{s:{s:s, s:s}}", "LoggingConfig", "LogFormat", "JSON", "LogGroup", "/own"), 200);
    assert_string_equal(level_of(answer, "ApplicationLogLevel"), "INFO");
    json_decref(answer);
    testing_run(&world->catalog);
    answer = lambda_accepted(world, "PUT", FUNCTIONS "/f/configuration",
                             json_pack("{s:{s:s}}", "LoggingConfig", "SystemLogLevel", "WARN"), 200);
    assert_string_equal(level_of(answer, "SystemLogLevel"), "WARN");
    assert_string_equal(level_of(answer, "ApplicationLogLevel"), "INFO");
    assert_string_equal(level_of(answer, "LogGroup"), "/own");
    json_decref(answer);
}

static int allocations_left;

static void *failing_malloc(size_t size)
{
    return allocations_left-- > 0 ? malloc(size) : NULL;
}

#define SURROUNDINGS                                                                                                   \
    "{\"Timeout\":9,\"VpcConfig\":{\"SubnetIds\":[\"subnet-1\"],\"SecurityGroupIds\":[\"sg-1\"]},"                     \
    "\"LoggingConfig\":{\"LogFormat\":\"JSON\"},\"TracingConfig\":{\"Mode\":\"Active\"},\"KMSKeyArn\":\"arn:aws:kms:"  \
    "x\","                                                                                                             \
    "\"DeadLetterConfig\":{\"TargetArn\":\"arn:aws:sqs:us-east-1:1:q\"},\"Environment\":{\"Variables\":{\"AB\":\"1\"}" \
    "}}"

/* How many of the members that SURROUNDINGS sets the function has. */
static size_t count_set(struct api_world *world)
{
    static const char *const members[] = {"VpcConfig", "KMSKeyArn", "DeadLetterConfig", "Environment"};
    json_t *answer = lambda_accepted(world, "GET", FUNCTIONS "/f/configuration", NULL, 200);
    size_t count = 0;

    for (size_t i = 0; i < ARRAY_SIZE(members); i++)
        count += json_object_get(answer, members[i]) != NULL;
    count += json_integer_value(json_object_get(answer, "Timeout")) == 9;
    count += !strcmp(level_of(answer, "LogFormat"), "JSON") && level_of(answer, "SystemLogLevel");
    count += !strcmp(lambda_text(json_object_get(answer, "TracingConfig"), "Mode"), "Active");
    json_decref(answer);
    return count;
}

static int update_with(int allowed, struct api_world *world)
{
    struct api_answer answer;
    int status;

    allocations_left = allowed;
    json_set_alloc_funcs(failing_malloc, free);
    answer = api_exchange(world, "PUT", FUNCTIONS "/f/configuration", SURROUNDINGS);
    json_set_alloc_funcs(malloc, free);
    status = answer.status;
    api_answer_deinit(&answer);
    return status;
}

/*
 * The JSON library has one allocation more each time. An update may be made though its answer could not be written; a
 * body that cannot be parsed for want of memory may pass for a broken one.
 */
static void test_update_without_memory_is_done_whole_or_not_at_all(void **state)
{
    struct api_world *world = *state;
    int status = 0;

    lambda_create(world, "f");
    for (int allowed = 0; status != 200; allowed++) {
        size_t set;
        status = update_with(allowed, world);
        set = count_set(world);
        assert_true(status == 200 || status == 500 || status == 400);
        assert_true(set == 7 || (set == 0 && status != 200));
        assert_true(allowed < 2000);
        if (set == 7 && status != 200) { /* once more */
            lambda_done(world, "DELETE", FUNCTIONS "/f", NULL, 204);
            lambda_create(world, "f");
        }
    }
}

static void test_unsupported_operation_is_named(void **state)
{
    lambda_refused(*state, "GET", "/2025-11-30/capacity-providers", NULL, 501, "NotImplementedException",
                   "Kiln does not support the operation ListCapacityProviders yet.");
}

static void test_unknown_path_is_an_unknown_operation(void **state)
{
    struct api_answer answer = api_exchange(*state, "GET", "/2015-03-31/nothing", NULL);

    assert_int_equal(answer.status, 404);
    assert_string_equal(answer.error_type, "UnknownOperationException");
    assert_string_equal(answer.request_id, "11111111-2222-3333-4444-555555555555");
    api_answer_deinit(&answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, lambda_test_setup, lambda_test_teardown)
        TEST(test_memory_and_timeout_are_held_to_their_limits),
        TEST(test_ephemeral_storage_is_held_to_its_limits),
        TEST(test_description_is_measured_in_characters),
        TEST(test_environment_may_be_exactly_four_kilobytes_of_json),
        TEST(test_reserved_variables_are_refused_by_name),
        TEST(test_fifty_tags_are_kept_and_shown),
        TEST(test_name_has_at_most_64_characters),
        TEST(test_all_missing_members_are_named_at_once),
        TEST(test_runtime_and_handler_are_needed),
        TEST(test_existing_function_is_not_created_again),
        TEST(test_two_creations_at_once_leave_one_function),
        TEST(test_what_kiln_lacks_is_refused_and_not_pretended),
        TEST(test_what_has_no_effect_is_accepted),
        TEST(test_surroundings_are_kept_and_shown),
        TEST(test_surroundings_are_taken_away_with_empty_values),
        TEST(test_subnets_and_security_groups_come_together),
        TEST(test_snap_start_needs_a_runtime_with_snapshots),
        TEST(test_snap_start_and_runtime_are_checked_together),
        TEST(test_log_levels_belong_to_the_json_format),
        TEST(test_update_without_memory_is_done_whole_or_not_at_all),
        TEST(test_unsupported_operation_is_named),
        TEST(test_unknown_path_is_an_unknown_operation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
