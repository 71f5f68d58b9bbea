/* The rules of layers: numbers, what goes and what stays, filters and pages, policies, and functions that use them. */
#include "api/lambda/testing.h"
#include "base/encode.h"
#include "store/zip_builder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#define LAYERS        "/2018-10-31/layers"
#define ARN           "arn:aws:lambda:us-east-1:111111111111:layer:"
#define CONFIGURATION FUNCTIONS "/f/configuration"
#define STRANGER      "222222222222"

static json_t *content(const char *text)
{
    return json_pack("{s:{s:o}}", "Content", "ZipFile", api_zip("file", text));
}

/* A version of the layer; returns its number. */
static int publish(struct api_world *world, const char *layer, json_t *body)
{
    char target[256];
    json_t *answer;
    int version;

    snprintf(target, sizeof(target), LAYERS "/%s/versions", layer);
    answer = lambda_accepted(world, "POST", target, body, 201);
    version = (int)json_integer_value(json_object_get(answer, "Version"));
    json_decref(answer);
    return version;
}

static json_t *list_of(const char *first, const char *second)
{
    return second ? json_pack("{s:[s, s]}", "Layers", first, second) : json_pack("{s:[s]}", "Layers", first);
}

static const struct catalog_version_config *config_of(struct api_world *world, const char *name)
{
    return catalog_find_function(world->catalog.catalog, SPAN(API_ACCOUNT), SPAN(API_REGION), span_from(name))
        ->latest->active;
}

/* The package of a version of layer "l", in hex. */
static void package_of(struct api_world *world, const char *record, char sha256[65])
{
    const struct catalog_scope *scope = catalog_find_scope(world->catalog.catalog, SPAN(API_ACCOUNT), SPAN(API_REGION));

    snprintf(sha256, 65, "%s",
             lambda_text(catalog_find_record(scope, CATALOG_LAYER_VERSION, span_from(record)), "Package"));
}

static uint64_t code_bytes(struct api_world *world)
{
    json_t *answer = lambda_accepted(world, "GET", "/2016-08-19/account-settings", NULL, 200);
    uint64_t bytes =
        (uint64_t)json_integer_value(json_object_get(json_object_get(answer, "AccountUsage"), "TotalCodeSize"));

    json_decref(answer);
    return bytes;
}

/* --- versions --- */

static void test_numbers_are_never_used_again(void **state)
{
    struct api_world *world = *state;

    assert_int_equal(publish(world, "l", content("1")), 1);
    assert_int_equal(publish(world, "l", content("1")), 2);
    lambda_done(world, "DELETE", LAYERS "/l/versions/2", NULL, 204);
    lambda_done(world, "DELETE", LAYERS "/l/versions/1", NULL, 204);
    assert_int_equal(publish(world, ARN "l", content("1")), 3);
    lambda_done(world, "DELETE", LAYERS "/l/versions/3", NULL, 204);
    api_restart(world);
    assert_int_equal(publish(world, "l", content("1")), 4);
}

static void test_versions_at_once_get_numbers_of_their_own(void **state)
{
    struct api_world *world = *state;
    struct api_call calls[2];
    json_t *body = content("1");
    char *text = json_dumps(body, JSON_COMPACT);
    int sum = 0;

    json_decref(body);
    for (int i = 0; i < 2; i++)
        api_start(world, "POST", LAYERS "/l/versions", span_from(text), &calls[i]);
    for (int i = 0; i < 2; i++) {
        api_wait(world, &calls[i]);
        assert_int_equal(calls[i].answer.status, 201);
        sum += (int)json_integer_value(json_object_get(calls[i].answer.body, "Version"));
        api_answer_deinit(&calls[i].answer);
    }
    free(text);
    assert_int_equal(sum, 3);
}

static void test_missing_versions_have_their_own_texts(void **state)
{
    struct api_world *world = *state;

    publish(world, "l", content("1"));
    lambda_refused(world, "GET", LAYERS "/l/versions/2", NULL, 404, "ResourceNotFoundException",
                   "The resource you requested does not exist.");
    lambda_refused(world, "GET", LAYERS "/none/versions/1", NULL, 404, "ResourceNotFoundException",
                   "The resource you requested does not exist.");
    lambda_refused(world, "GET", LAYERS "/l/versions/0", NULL, 400, "InvalidParameterValueException",
                   "Layer Version Cannot be less than 1.");
    lambda_refused(world, "DELETE", LAYERS "/l/versions/-1", NULL, 400, "InvalidParameterValueException",
                   "Layer Version Cannot be less than 1.");
    lambda_refused(world, "GET", LAYERS "/l/versions/x", NULL, 400, "SerializationException",
                   "STRING_VALUE can not be converted to a Long");
    lambda_refused(world, "GET", LAYERS "?find=LayerVersion&Arn=" ARN "l:2", NULL, 404, "ResourceNotFoundException",
                   "The resource you requested does not exist.");
    lambda_done(world, "DELETE", LAYERS "/l/versions/2", NULL, 204);
    lambda_done(world, "DELETE", LAYERS "/none/versions/1", NULL, 204);
    lambda_done(world, "GET", LAYERS "/" ARN "l/versions/1", NULL, 200);
}

static void test_what_the_model_states_is_told_at_once(void **state)
{
    struct api_answer answer = api_exchange(
        *state, "POST", LAYERS "/bad%20name/versions",
        "{\"CompatibleRuntimes\": [\"x\", \"y\"], \"CompatibleArchitectures\": [\"z\"], \"LicenseInfo\": \"MIT\"}");
    const char *message = api_message(&answer);

    assert_int_equal(answer.status, 400);
    assert_non_null(strstr(message, "4 validation errors detected: Value null at 'content' failed to satisfy "
                                    "constraint: Member must not be null; "));
    assert_non_null(strstr(message, "Value '[x, y]' at 'compatibleRuntimes' failed to satisfy constraint: Member must "
                                    "satisfy enum value set: [nodejs20.x, "));
    assert_non_null(strstr(message, "Value '[z]' at 'compatibleArchitectures' failed to satisfy constraint: Member "
                                    "must satisfy constraint: [Member must satisfy enum value set: [x86_64, arm64], "
                                    "Member must not be null]"));
    assert_non_null(strstr(message, "Value 'bad name' at 'layerName' failed to satisfy constraint: "));
    api_answer_deinit(&answer);
}

static void test_packages_count_until_their_versions_go(void **state)
{
    struct api_world *world = *state;
    uint64_t one;

    publish(world, "l", content("1"));
    one = code_bytes(world);
    assert_true(one > 0);
    publish(world, "l", content("1"));
    assert_int_equal(code_bytes(world), 2 * one);
    api_restart(world);
    assert_int_equal(code_bytes(world), 2 * one);
    lambda_done(world, "DELETE", LAYERS "/l/versions/1", NULL, 204);
    assert_int_equal(code_bytes(world), one);
    world->services.code_bytes_limit = 2 * one - 1;
    lambda_refused(world, "POST", LAYERS "/l/versions", content("1"), 400, "CodeStorageExceededException",
                   "Code storage limit exceeded.");
    lambda_done(world, "DELETE", LAYERS "/l/versions/2", NULL, 204);
    assert_int_equal(code_bytes(world), 0);
}

static void test_content_can_be_downloaded(void **state)
{
    struct api_world *world = *state;
    json_t *answer = lambda_accepted(world, "POST", LAYERS "/l/versions", content("1"), 201);
    const char *location = lambda_text(json_object_get(answer, "Content"), "Location");
    struct api_answer download = api_exchange(world, "GET", strchr(location + strlen("http://"), '/'), NULL);

    assert_int_equal(download.status, 200);
    assert_int_equal(download.bytes.length,
                     json_integer_value(json_object_get(json_object_get(answer, "Content"), "CodeSize")));
    api_answer_deinit(&download);
    json_decref(answer);
}

/* --- lists --- */

/* Walks all pages of one row each; appends the member of each row to `seen`. */
static void walk(struct api_world *world, const char *target, const char *rows, const char *member, char *seen)
{
    char marker[256] = "";
    int pages = 0;

    *seen = '\0';
    do {
        char page[512];
        json_t *answer;
        const json_t *row;
        snprintf(page, sizeof(page), "%s%sMaxItems=1%s%s", target, strchr(target, '?') ? "&" : "?",
                 marker[0] ? "&Marker=" : "", marker);
        answer = lambda_accepted(world, "GET", page, NULL, 200);
        row = json_array_get(json_object_get(answer, rows), 0);
        if (row)
            sprintf(seen + strlen(seen), "%s ", lambda_text(row, member));
        snprintf(marker, sizeof(marker), "%s", lambda_text(answer, "NextMarker"));
        json_decref(answer);
        assert_true(++pages < 10);
    } while (strcmp(marker, "(absent)") != 0);
}

static json_t *declared(const char *runtime, const char *architecture)
{
    json_t *body = content("1");

    json_object_set_new(body, "CompatibleRuntimes", json_pack("[s]", runtime));
    json_object_set_new(body, "CompatibleArchitectures", json_pack("[s]", architecture));
    return body;
}

static void test_lists_are_filtered_and_paged(void **state)
{
    struct api_world *world = *state;
    char seen[512];

    publish(world, "b", declared("python3.12", "x86_64"));
    publish(world, "b", declared("nodejs22.x", "arm64"));
    publish(world, "b", declared("python3.12", "arm64"));
    publish(world, "a", content("1"));
    publish(world, "gone", content("1"));
    lambda_done(world, "DELETE", LAYERS "/gone/versions/1", NULL, 204);
    walk(world, LAYERS, "Layers", "LayerName", seen);
    assert_string_equal(seen, "a b ");
    walk(world, LAYERS "?CompatibleRuntime=nodejs22.x", "Layers", "LayerName", seen);
    assert_string_equal(seen, "b ");
    walk(world, LAYERS "/b/versions", "LayerVersions", "LayerVersionArn", seen);
    assert_string_equal(seen, ARN "b:3 " ARN "b:2 " ARN "b:1 ");
    walk(world, LAYERS "/b/versions?CompatibleRuntime=python3.12", "LayerVersions", "LayerVersionArn", seen);
    assert_string_equal(seen, ARN "b:3 " ARN "b:1 ");
    walk(world, LAYERS "/b/versions?CompatibleRuntime=python3.12&CompatibleArchitecture=x86_64", "LayerVersions",
         "LayerVersionArn", seen);
    assert_string_equal(seen, ARN "b:1 ");
    walk(world, LAYERS "/none/versions", "LayerVersions", "LayerVersionArn", seen);
    assert_string_equal(seen, "");
}

static void test_newest_matching_version_stands_for_the_layer(void **state)
{
    struct api_world *world = *state;
    json_t *answer;

    publish(world, "b", declared("python3.12", "x86_64"));
    publish(world, "b", declared("nodejs22.x", "arm64"));
    answer = lambda_accepted(world, "GET", LAYERS "?CompatibleArchitecture=x86_64", NULL, 200);
    assert_int_equal(
        json_integer_value(json_object_get(
            json_object_get(json_array_get(json_object_get(answer, "Layers"), 0), "LatestMatchingVersion"), "Version")),
        1);
    json_decref(answer);
}

static void test_bad_filters_and_pages_are_refused(void **state)
{
    struct api_world *world = *state;

    lambda_refused(world, "GET", LAYERS "?CompatibleArchitecture=x", NULL, 400, "ValidationException",
                   "1 validation error detected: Value 'x' at 'compatibleArchitecture' failed to satisfy constraint: "
                   "Member must satisfy enum value set: [x86_64, arm64]");
    lambda_refused(world, "GET", LAYERS "?MaxItems=51", NULL, 400, "ValidationException",
                   "1 validation error detected: Value '51' at 'maxItems' failed to satisfy constraint: Member must "
                   "have value less than or equal to 50");
    lambda_done(world, "GET", LAYERS "?MaxItems=50", NULL, 200);
}

/* --- policies --- */

static json_t *permission(const char *id, const char *principal)
{
    return json_pack("{s:s, s:s, s:s}", "StatementId", id, "Action", "lambda:GetLayerVersion", "Principal", principal);
}

static void test_policy_is_kept_and_goes_with_its_last_statement(void **state)
{
    struct api_world *world = *state;
    json_t *answer;

    publish(world, "l", content("1"));
    lambda_refused(world, "GET", LAYERS "/l/versions/1/policy", NULL, 404, "ResourceNotFoundException",
                   "No policy is associated with the given resource.");
    lambda_refused(world, "POST", LAYERS "/l/versions/2/policy", permission("s", "*"), 404, "ResourceNotFoundException",
                   "Layer version " ARN "l:2 does not exist.");
    lambda_done(world, "POST", LAYERS "/l/versions/1/policy", permission("s", STRANGER), 201);
    lambda_refused(world, "POST", LAYERS "/l/versions/1/policy", permission("s", "*"), 409, "ResourceConflictException",
                   "The statement id (s) provided already exists. Please provide a new statement id, or remove the "
                   "existing statement.");
    lambda_refused(world, "POST", LAYERS "/l/versions/1/policy?RevisionId=x", permission("t", "*"), 412,
                   "PreconditionFailedException",
                   "The Revision Id provided does not match the latest Revision Id. Call the GetLayerPolicy API to "
                   "retrieve the latest Revision Id");
    api_restart(world);
    answer = lambda_accepted(world, "GET", LAYERS "/l/versions/1/policy", NULL, 200);
    assert_string_equal(lambda_text(answer, "Policy"),
                        "{\"Version\":\"2012-10-17\",\"Id\":\"default\",\"Statement\":[{\"Sid\":\"s\",\"Effect\":"
                        "\"Allow\",\"Principal\":{\"AWS\":\"arn:aws:iam::222222222222:root\"},\"Action\":"
                        "\"lambda:GetLayerVersion\",\"Resource\":\"" ARN "l:1\"}]}");
    json_decref(answer);
    lambda_refused(world, "DELETE", LAYERS "/l/versions/1/policy/other", NULL, 404, "ResourceNotFoundException",
                   "Statement other is not found in resource policy.");
    lambda_refused(world, "DELETE", LAYERS "/l/versions/1/policy/s?RevisionId=x", NULL, 412,
                   "PreconditionFailedException",
                   "The Revision Id provided does not match the latest Revision Id. Call the GetLayerPolicy API to "
                   "retrieve the latest Revision Id");
    lambda_done(world, "DELETE", LAYERS "/l/versions/1/policy/s", NULL, 204);
    lambda_refused(world, "GET", LAYERS "/l/versions/1/policy", NULL, 404, "ResourceNotFoundException",
                   "No policy is associated with the given resource.");
}

static void test_other_accounts_need_a_policy(void **state)
{
    static const char denied[] = "User: arn:aws:iam::222222222222:root is not authorized to perform: "
                                 "lambda:GetLayerVersion on resource: " ARN "l:1 because no resource-based policy "
                                 "allows the lambda:GetLayerVersion action";
    struct api_world *world = *state;
    json_t *organization = permission("o", "*");

    publish(world, "l", content("1"));
    json_object_set_new(organization, "OrganizationId", json_string("o-0123456789"));
    lambda_done(world, "POST", LAYERS "/l/versions/1/policy", organization, 201);
    world->caller = SPAN(STRANGER);
    lambda_refused(world, "GET", LAYERS "?find=LayerVersion&Arn=" ARN "l:1", NULL, 403, "AccessDeniedException",
                   denied);
    lambda_refused(world, "POST", FUNCTIONS, lambda_creation_with("f", "Layers", json_pack("[s]", ARN "l:1")), 403,
                   "AccessDeniedException", denied);
    lambda_refused(world, "DELETE", LAYERS "/" ARN "l/versions/1", NULL, 403, "AccessDeniedException",
                   "User: arn:aws:iam::222222222222:root is not authorized to perform: lambda:DeleteLayerVersion on "
                   "resource: " ARN "l:1 because no resource-based policy allows the lambda:DeleteLayerVersion action");
    world->caller = SPAN(API_ACCOUNT);
    lambda_done(world, "POST", LAYERS "/l/versions/1/policy", permission("s", STRANGER), 201);
    world->caller = SPAN(STRANGER);
    lambda_done(world, "GET", LAYERS "?find=LayerVersion&Arn=" ARN "l:1", NULL, 200);
    lambda_done(world, "GET", LAYERS "/" ARN "l/versions/1", NULL, 200);
    lambda_done(world, "POST", FUNCTIONS, lambda_creation_with("f", "Layers", json_pack("[s]", ARN "l:1")), 201);
    world->caller = SPAN(API_ACCOUNT);
}

/* --- functions --- */

static void test_function_shows_and_mounts_its_layers_in_order(void **state)
{
    struct api_world *world = *state;
    const struct catalog_version_config *config;
    char a[65], b[65];
    json_t *answer;

    publish(world, "l", content("1"));
    publish(world, "m", content("2"));
    package_of(world, "l:1", a);
    package_of(world, "m:1", b);
    lambda_create(world, "f");
    answer = lambda_accepted(world, "PUT", CONFIGURATION, list_of(ARN "m:1", ARN "l:1"), 200);
    assert_int_equal(json_array_size(json_object_get(answer, "Layers")), 2);
    assert_int_equal(json_object_size(json_array_get(json_object_get(answer, "Layers"), 0)), 2);
    assert_string_equal(lambda_text(json_array_get(json_object_get(answer, "Layers"), 0), "Arn"), ARN "m:1");
    assert_null(json_object_get(answer, "UnpackedSize"));
    json_decref(answer);
    api_restart(world);
    config = config_of(world, "f");
    assert_non_null(strstr(config->layer_dirs[0], b));
    assert_non_null(strstr(config->layer_dirs[1], a));
    assert_null(config->layer_dirs[2]);
    lambda_done(world, "PUT", CONFIGURATION, json_pack("{s:i}", "Timeout", 9), 200);
    assert_non_null(config_of(world, "f")->layer_dirs[1]);
    answer = lambda_accepted(world, "PUT", CONFIGURATION, json_pack("{s:[]}", "Layers"), 200);
    assert_null(json_object_get(answer, "Layers"));
    json_decref(answer);
    assert_null(config_of(world, "f")->layer_dirs[0]);
}

static void test_same_content_twice_is_mounted_once(void **state)
{
    struct api_world *world = *state;

    publish(world, "l", content("1"));
    publish(world, "m", content("1"));
    lambda_create(world, "f");
    lambda_done(world, "PUT", CONFIGURATION, list_of(ARN "l:1", ARN "m:1"), 200);
    assert_non_null(config_of(world, "f")->layer_dirs[0]);
    assert_null(config_of(world, "f")->layer_dirs[1]);
}

static void test_deleted_version_stays_with_who_has_it(void **state)
{
    struct api_world *world = *state;
    char package[65];

    publish(world, "l", content("1"));
    package_of(world, "l:1", package);
    lambda_create(world, "f");
    lambda_done(world, "PUT", CONFIGURATION, list_of(ARN "l:1", NULL), 200);
    lambda_done(world, "POST", FUNCTIONS "/f/versions", json_object(), 201);
    lambda_done(world, "DELETE", LAYERS "/l/versions/1", NULL, 204);
    assert_true(testing_has_package(&world->catalog, package));
    lambda_refused(world, "POST", FUNCTIONS, lambda_creation_with("g", "Layers", json_pack("[s]", ARN "l:1")), 400,
                   "InvalidParameterValueException", "Layer version " ARN "l:1 does not exist.");
    api_restart(world);
    assert_true(testing_has_package(&world->catalog, package));
    assert_non_null(strstr(config_of(world, "f")->layer_dirs[0], package));
    lambda_done(world, "PUT", CONFIGURATION, json_pack("{s:[]}", "Layers"), 200);
    assert_true(testing_has_package(&world->catalog, package)); /* version 1 has it */
    lambda_done(world, "DELETE", FUNCTIONS "/f?Qualifier=1", NULL, 204);
    testing_run(&world->catalog);
    assert_false(testing_has_package(&world->catalog, package));
}

static void test_package_goes_with_the_last_version_of_the_layer(void **state)
{
    struct api_world *world = *state;
    char package[65];

    publish(world, "l", content("1"));
    publish(world, "l", content("1"));
    package_of(world, "l:1", package);
    lambda_done(world, "DELETE", LAYERS "/l/versions/1", NULL, 204);
    assert_true(testing_has_package(&world->catalog, package));
    lambda_done(world, "DELETE", LAYERS "/l/versions/2", NULL, 204);
    testing_run(&world->catalog);
    assert_false(testing_has_package(&world->catalog, package));
}

/* The layer goes while the function that names it is being made: one of the two is first, and nothing breaks. */
static void test_layer_may_go_while_a_function_takes_it(void **state)
{
    struct api_world *world = *state;
    struct api_call creation, deletion;
    json_t *body = lambda_creation_with("f", "Layers", json_pack("[s]", ARN "l:1"));
    char *text = json_dumps(body, JSON_COMPACT);

    json_decref(body);
    publish(world, "l", content("1"));
    api_start(world, "POST", FUNCTIONS, span_from(text), &creation);
    api_start(world, "DELETE", LAYERS "/l/versions/1", SPAN_NONE, &deletion);
    api_wait(world, &creation);
    api_wait(world, &deletion);
    assert_int_equal(creation.answer.status, 201);
    assert_int_equal(deletion.answer.status, 204);
    api_answer_deinit(&creation.answer);
    api_answer_deinit(&deletion.answer);
    free(text);
    testing_run(&world->catalog);
    assert_int_equal(access(config_of(world, "f")->layer_dirs[0], F_OK), 0);
}

static void test_refused_function_gives_its_layers_back(void **state)
{
    struct api_world *world = *state;
    char package[65];

    publish(world, "l", content("1"));
    package_of(world, "l:1", package);
    lambda_refused(world, "POST", FUNCTIONS,
                   lambda_creation_with("f", "Layers", json_pack("[s, s]", ARN "l:1", ARN "none:1")), 400,
                   "InvalidParameterValueException", "Layer version " ARN "none:1 does not exist.");
    lambda_done(world, "DELETE", LAYERS "/l/versions/1", NULL, 204);
    testing_run(&world->catalog);
    assert_false(testing_has_package(&world->catalog, package));
}

/* A zip of one file of so many zeros, in base64. */
static json_t *zeros(uint64_t bytes)
{
    struct buffer zip = BUFFER_INIT;
    struct buffer text = BUFFER_INIT;
    json_t *value;

    zip_build_zeros(&zip, "zeros", bytes, false);
    assert_int_equal(base64_encode(buffer_span(&zip), &text), 0);
    value = json_stringn(text.data, text.length);
    buffer_deinit(&zip);
    buffer_deinit(&text);
    return json_pack("{s:{s:o}}", "Content", "ZipFile", value);
}

/* The function's own package has the four bytes of "pass". */
static void test_code_and_layers_have_a_limit_together(void **state)
{
    static const char too_large[] = "Function code combined with layers exceeds the maximum allowed size of 262144000 "
                                    "bytes. The actual size is 262144001 bytes.";
    struct api_world *world = *state;

    publish(world, "l", zeros(262144000 - 5));
    publish(world, "m", content("1"));
    publish(world, "n", content("22"));
    lambda_create(world, "f");
    lambda_refused(world, "PUT", CONFIGURATION, list_of(ARN "l:1", ARN "n:1"), 400, "InvalidParameterValueException",
                   too_large);
    lambda_done(world, "PUT", CONFIGURATION, list_of(ARN "l:1", ARN "m:1"), 200);
    lambda_refused(world, "PUT", FUNCTIONS "/f/code", json_pack("{s:o}", "ZipFile", api_zip("handler.py", "pass ")),
                   400, "InvalidParameterValueException", too_large);
    lambda_refused(world, "POST", FUNCTIONS,
                   lambda_creation_with("g", "Layers", json_pack("[s, s]", ARN "l:1", ARN "n:1")), 400,
                   "InvalidParameterValueException", too_large);
    lambda_done(world, "PUT", FUNCTIONS "/f/code", json_pack("{s:o}", "ZipFile", api_zip("handler.py", "code")), 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, lambda_test_setup, lambda_test_teardown)
        TEST(test_numbers_are_never_used_again),
        TEST(test_versions_at_once_get_numbers_of_their_own),
        TEST(test_missing_versions_have_their_own_texts),
        TEST(test_what_the_model_states_is_told_at_once),
        TEST(test_packages_count_until_their_versions_go),
        TEST(test_content_can_be_downloaded),
        TEST(test_lists_are_filtered_and_paged),
        TEST(test_newest_matching_version_stands_for_the_layer),
        TEST(test_bad_filters_and_pages_are_refused),
        TEST(test_policy_is_kept_and_goes_with_its_last_statement),
        TEST(test_other_accounts_need_a_policy),
        TEST(test_function_shows_and_mounts_its_layers_in_order),
        TEST(test_same_content_twice_is_mounted_once),
        TEST(test_deleted_version_stays_with_who_has_it),
        TEST(test_package_goes_with_the_last_version_of_the_layer),
        TEST(test_layer_may_go_while_a_function_takes_it),
        TEST(test_refused_function_gives_its_layers_back),
        TEST(test_code_and_layers_have_a_limit_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
