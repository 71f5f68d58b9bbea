/* The rules behind the operations, above all at the limits and one past them. What was recorded is in recorded_test. */
#include "api/lambda/lambda.h"
#include "api/lambda/testing.h"

#include "base/clock.h"
#include "base/encode.h"
#include "store/zip_builder.h"

#include <openssl/sha.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

static void settle(struct api_world *world)
{
    testing_run(&world->catalog);
}

/* Must succeed; the caller owns the body. What the change leads to (lambda_accepted would wait for it) is not done yet.
 */
static json_t *accepted(struct api_world *world, const char *method, const char *target, json_t *body, int status)
{
    struct api_answer answer =
        body ? api_exchange_json(world, method, target, body) : api_exchange(world, method, target, NULL);
    json_t *result = json_incref(answer.body);

    assert_string_equal(api_message(&answer), "");
    assert_int_equal(answer.status, status);
    api_answer_deinit(&answer);
    return result;
}

static void ignore(json_t *body)
{
    json_decref(body);
}

/* --- bodies --- */

static void malformed(struct api_world *world, const char *body, const char *message)
{
    struct api_answer answer = api_exchange(world, "POST", FUNCTIONS, body);

    assert_string_equal(answer.error_type, "SerializationException");
    assert_int_equal(answer.status, 400);
    if (message)
        assert_string_equal(api_message(&answer), message);
    else
        assert_true(strlen(api_message(&answer)) > 0);
    api_answer_deinit(&answer);
}

static void test_members_of_the_wrong_kind_are_refused(void **state)
{
    struct api_world *world = *state;

    malformed(world, "{\"Timeout\":\"3\"}", "STRING_VALUE can not be converted to an Integer");
    malformed(world, "{\"Timeout\":true}", "TRUE_VALUE can not be converted to an Integer");
    malformed(world, "{\"Timeout\":3000000000}", "NUMBER_VALUE can not be converted to an Integer");
    malformed(world, "{\"Description\":5}", "NUMBER_VALUE can not be converted to a String");
    malformed(world, "{\"Description\":{}}", "Start of structure or map found where not expected");
    malformed(world, "{\"Description\":[]}", "Start of list found where not expected");
    malformed(world, "{\"Publish\":\"yes\"}", "STRING_VALUE can not be converted to a Boolean");
    malformed(world, "{\"Layers\":{}}", "Expected list or null");
    malformed(world, "{\"Layers\":[5]}", "NUMBER_VALUE can not be converted to a String");
    malformed(world, "{\"TracingConfig\":5}", "Unexpected value type in payload");
    malformed(world, "{\"Environment\":{\"Variables\":{\"AB\":1}}}", "NUMBER_VALUE can not be converted to a String");
    malformed(world, "{\"Code\":{\"ZipFile\":1}}", "NUMBER_VALUE can not be converted to a String");
    malformed(world, "{\"Code\":{\"ZipFile\":\"%%\"}}", "The value of ZipFile is not valid Base64.");
    malformed(world, "{\"Code\":[]}", "Start of list found where not expected");
}

static void test_broken_json_is_refused(void **state)
{
    struct api_world *world = *state;

    malformed(world, "{\"FunctionName\":", NULL);
    malformed(world, "[]", NULL);
    malformed(world, "\"text\"", NULL);
    malformed(world, "{\"FunctionName\":\"\xff\xfe\"}", NULL);
    malformed(world, "{\"FunctionName\":\"\\u0000\"}",
              "A string must not hold the character U+0000\n at [line: 1, column: 24]");
    malformed(world, "{\"Timeout\":1e999}", "A number is out of range\n at [line: 1, column: 16]");
    malformed(world, "{\"FunctionName\":\"\\ud800\"}", "A string is not Unicode\n at [line: 1, column: 24]");
}

static void test_fraction_of_an_integer_is_cut_off(void **state)
{
    json_t *body = accepted(*state, "POST", FUNCTIONS, lambda_creation_with("f", "Timeout", json_real(7.9)), 201);

    assert_int_equal(json_integer_value(json_object_get(body, "Timeout")), 7);
    json_decref(body);
}

/* A zip of that many bytes at least, in base64. */
static json_t *large_zip(size_t bytes)
{
    char *content = malloc(bytes + 1);
    json_t *zip;

    memset(content, '#', bytes);
    content[bytes] = '\0';
    zip = api_zip("handler.py", content);
    free(content);
    return zip;
}

static void test_large_body_is_parsed_off_the_loop(void **state)
{
    struct api_world *world = *state;
    json_t *body = lambda_creation_with("f", "Code", json_pack("{s:o}", "ZipFile", large_zip(400 * 1024)));
    char *text = json_dumps(body, JSON_COMPACT);
    struct api_call call;

    api_start(world, "POST", FUNCTIONS, span_from(text), &call);
    api_wait(world, &call);
    assert_int_equal(call.answer.status, 201);
    assert_true(json_integer_value(json_object_get(call.answer.body, "CodeSize")) > 400 * 1024);
    api_answer_deinit(&call.answer);
    json_object_set_new(body, "FunctionName", json_string("not a name"));
    free(text);
    text = json_dumps(body, JSON_COMPACT);
    api_start(world, "POST", FUNCTIONS, span_from(text), &call);
    assert_false(call.answer.answered); /* even the refusal comes from a later turn */
    api_wait(world, &call);
    assert_string_equal(call.answer.error_type, "ValidationException");
    api_answer_deinit(&call.answer);
    json_decref(body);
    free(text);
}

static void test_change_is_made_though_the_caller_has_gone(void **state)
{
    struct api_world *world = *state;
    json_t *body = lambda_creation("f");
    char *text = json_dumps(body, 0);
    struct api_call call;

    api_start(world, "POST", FUNCTIONS, span_from(text), &call);
    operation_abandon(call.operation);
    settle(world);
    assert_false(call.answer.answered);
    ignore(accepted(world, "GET", FUNCTIONS "/f", NULL, 200));
    json_decref(body);
    free(text);
}

/* --- code --- */

static void bad_zip(struct api_world *world, json_t *zip, int status, const char *code, const char *message)
{
    lambda_refused(world, "POST", FUNCTIONS, lambda_creation_with("f", "Code", json_pack("{s:o}", "ZipFile", zip)),
                   status, code, message);
}

static void test_bad_zips_get_the_service_s_texts(void **state)
{
    struct api_world *world = *state;

    bad_zip(world, json_string(""), 400, "InvalidParameterValueException", "Uploaded file must be a non-empty zip");
    bad_zip(world, json_string("UEsFBgAAAAAAAAAAAAAAAAAAAAAAAA=="), 400, "InvalidParameterValueException",
            "Uploaded file must be a non-empty zip");
    bad_zip(world, json_string("bm8gemlw"), 400, "InvalidParameterValueException",
            "Could not unzip uploaded file. Please check your file, then try to upload again.");
    bad_zip(world, api_zip("../escape", "x"), 400, "InvalidParameterValueException",
            "Could not unzip uploaded file. Please check your file, then try to upload again.");
    assert_null(catalog_find_function(world->catalog.catalog, SPAN(API_ACCOUNT), SPAN(API_REGION), SPAN("f")));
}

static void test_zip_in_the_request_must_be_smaller_than_50_mebibytes(void **state)
{
    struct buffer zip = BUFFER_INIT;
    struct buffer text = BUFFER_INIT;

    assert_int_equal(buffer_reserve(&zip, 52428800), 0);
    memset(zip.data, 'z', 52428800);
    zip.length = 52428800;
    assert_int_equal(base64_encode(buffer_span(&zip), &text), 0);
    bad_zip(*state, json_stringn(text.data, text.length), 413, "RequestEntityTooLargeException",
            "Zipped size must be smaller than 52428800 bytes");
    /* One byte less passes that check; that it is no zip is found next. */
    text.length = 0;
    zip.length--;
    assert_int_equal(base64_encode(buffer_span(&zip), &text), 0);
    bad_zip(*state, json_stringn(text.data, text.length), 400, "InvalidParameterValueException",
            "Could not unzip uploaded file. Please check your file, then try to upload again.");
    buffer_deinit(&zip);
    buffer_deinit(&text);
}

static void test_code_needs_exactly_one_source(void **state)
{
    struct api_world *world = *state;

    lambda_refused(world, "POST", FUNCTIONS, lambda_creation_with("f", "Code", json_object()), 400,
                   "InvalidParameterValueException", "Please provide a source for function code.");
    lambda_refused(world, "POST", FUNCTIONS,
                   lambda_creation_with(
                       "f", "Code",
                       json_pack("{s:o, s:s, s:s}", "ZipFile", api_zip("a", "b"), "S3Bucket", "bucket", "S3Key", "k")),
                   400, "InvalidParameterValueException",
                   "Please do not provide other FunctionCode parameters when providing a ZipFile.");
}

static void test_bucket_does_not_exist_without_an_endpoint(void **state)
{
    lambda_refused(
        *state, "POST", FUNCTIONS,
        lambda_creation_with("f", "Code", json_pack("{s:s, s:s}", "S3Bucket", "bucket", "S3Key", "k")), 400,
        "InvalidParameterValueException",
        "Error occurred while GetObject. S3 Error Code: NoSuchBucket. S3 Error Message: The specified bucket does "
        "not exist");
}

static void test_code_storage_has_a_limit(void **state)
{
    struct api_world *world = *state;
    json_t *body;
    json_int_t size;

    lambda_create(world, "f");
    body = accepted(world, "GET", FUNCTIONS "/f", NULL, 200);
    size = json_integer_value(json_object_get(json_object_get(body, "Configuration"), "CodeSize"));
    json_decref(body);
    world->services.code_bytes_limit = (uint64_t)(2 * size);
    ignore(accepted(world, "POST", FUNCTIONS "/f/versions", json_object(), 201));
    lambda_refused(world, "POST", FUNCTIONS, lambda_creation("g"), 400, "CodeStorageExceededException",
                   "Code storage limit exceeded.");
    ignore(accepted(world, "PUT", FUNCTIONS "/f/code", json_pack("{s:o}", "ZipFile", api_zip("handler.py", "past")),
                    200)); /* takes $LATEST's place */
}

static struct api_answer download(struct api_world *world, const char *location)
{
    const char *target = strstr(location, "/_kiln/");

    assert_non_null(target);
    return api_exchange(world, "GET", target, NULL);
}

static void test_code_can_be_downloaded_from_its_location(void **state)
{
    struct api_world *world = *state;
    unsigned char digest[SHA256_DIGEST_LENGTH];
    struct buffer text = BUFFER_INIT;
    struct api_answer answer;
    char tampered[512];
    json_t *body;
    const char *location;

    lambda_create(world, "f");
    body = accepted(world, "GET", FUNCTIONS "/f", NULL, 200);
    location = lambda_text(json_object_get(body, "Code"), "Location");
    assert_ptr_equal(strstr(location, "http://localhost:4566/_kiln/code/"), location);
    answer = download(world, location);
    assert_int_equal(answer.status, 200);
    SHA256((const unsigned char *)answer.bytes.data, answer.bytes.length, digest);
    assert_int_equal(base64_encode(span_of((const char *)digest, sizeof(digest)), &text), 0);
    assert_true(
        span_equal(buffer_span(&text), span_from(lambda_text(json_object_get(body, "Configuration"), "CodeSha256"))));
    api_answer_deinit(&answer);

    snprintf(tampered, sizeof(tampered), "%s", location);
    strstr(tampered, "Expires=")[8] ^= 1;
    answer = download(world, tampered);
    assert_int_equal(answer.status, 403);
    api_answer_deinit(&answer);
    json_decref(body);
    buffer_deinit(&text);
}

static void test_dry_run_shows_the_new_code_and_keeps_the_old(void **state)
{
    struct api_world *world = *state;
    json_t *before;
    json_t *shown;
    json_t *after;

    lambda_create(world, "f");
    before = accepted(world, "GET", FUNCTIONS "/f/configuration", NULL, 200);
    shown = accepted(world, "PUT", FUNCTIONS "/f/code",
                     json_pack("{s:o, s:b}", "ZipFile", api_zip("handler.py", "other"), "DryRun", 1), 200);
    settle(world);
    after = accepted(world, "GET", FUNCTIONS "/f/configuration", NULL, 200);
    assert_true(json_equal(before, after));
    assert_string_not_equal(lambda_text(before, "CodeSha256"), lambda_text(shown, "CodeSha256"));
    json_decref(before);
    json_decref(shown);
    json_decref(after);
}

/* --- names --- */

static void test_all_forms_of_a_name_find_the_function(void **state)
{
    struct api_world *world = *state;
    static const char *const forms[] = {
        "f",
        "function:f",
        "111111111111:function:f",
        "us-east-1:111111111111:function:f",
        "arn:aws:lambda:us-east-1:111111111111:function:f",
        "arn%3Aaws%3Alambda%3Aus-east-1%3A111111111111%3Afunction%3Af",
    };

    lambda_create(world, "f");
    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        char target[160];
        json_t *body;
        snprintf(target, sizeof(target), FUNCTIONS "/%s/configuration", forms[i]);
        body = accepted(world, "GET", target, NULL, 200);
        assert_string_equal(lambda_text(body, "FunctionArn"), "arn:aws:lambda:us-east-1:111111111111:function:f");
        json_decref(body);
        snprintf(target, sizeof(target), FUNCTIONS "/%s:$LATEST/configuration", forms[i]);
        body = accepted(world, "GET", target, NULL, 200);
        assert_string_equal(lambda_text(body, "FunctionArn"),
                            "arn:aws:lambda:us-east-1:111111111111:function:f:$LATEST");
        json_decref(body);
    }
}

static void test_function_of_another_account_is_denied(void **state)
{
    lambda_refused(*state, "GET", FUNCTIONS "/arn:aws:lambda:us-east-1:222222222222:function:f", NULL, 403,
                   "AccessDeniedException",
                   "User: arn:aws:iam::111111111111:root is not authorized to perform: lambda:GetFunction on resource: "
                   "arn:aws:lambda:us-east-1:222222222222:function:f because no resource-based policy allows the "
                   "lambda:GetFunction action");
}

static void test_operations_on_the_function_refuse_qualified_names(void **state)
{
    struct api_world *world = *state;
    static const char message[] = "This operation is permitted on Lambda functions only. Aliases and versions do not "
                                  "support this operation. Please specify either a function name or an unqualified "
                                  "function ARN.";

    lambda_create(world, "f");
    lambda_refused(world, "PUT", FUNCTIONS "/f:1/configuration", json_object(), 400, "InvalidParameterValueException",
                   message);
    lambda_refused(world, "GET", "/2019-09-30/functions/f:live/concurrency", NULL, 400,
                   "InvalidParameterValueException", message);
}

/* --- updates --- */

static void test_states_move_as_the_waiters_expect(void **state)
{
    struct api_world *world = *state;
    json_t *body = accepted(world, "POST", FUNCTIONS, lambda_creation("f"), 201);

    assert_string_equal(lambda_text(body, "State"), "Pending");
    assert_string_equal(lambda_text(body, "LastUpdateStatus"), "(absent)");
    json_decref(body);
    body = accepted(world, "GET", FUNCTIONS "/f/configuration", NULL, 200);
    assert_string_equal(lambda_text(body, "State"), "Pending");
    json_decref(body);
    lambda_refused(world, "PUT", FUNCTIONS "/f/configuration", json_object(), 409, "ResourceConflictException",
                   "The operation cannot be performed at this time. The function is currently in the following state: "
                   "Pending");
    settle(world);
    body = accepted(world, "PUT", FUNCTIONS "/f/configuration", json_pack("{s:i}", "MemorySize", 256), 200);
    assert_string_equal(lambda_text(body, "State"), "Active");
    assert_string_equal(lambda_text(body, "LastUpdateStatus"), "InProgress");
    json_decref(body);
    lambda_refused(world, "POST", FUNCTIONS "/f/versions", json_object(), 409, "ResourceConflictException",
                   "The operation cannot be performed at this time. An update is in progress for resource: "
                   "arn:aws:lambda:us-east-1:111111111111:function:f");
    settle(world);
    body = accepted(world, "GET", FUNCTIONS "/f/configuration", NULL, 200);
    assert_string_equal(lambda_text(body, "LastUpdateStatus"), "Successful");
    assert_int_equal(json_integer_value(json_object_get(body, "MemorySize")), 256);
    json_decref(body);
}

static void test_of_two_racing_updates_one_is_refused(void **state)
{
    struct api_world *world = *state;
    struct api_call first;
    struct api_call second;

    lambda_create(world, "f");
    api_start(world, "PUT", FUNCTIONS "/f/configuration", SPAN("{\"Timeout\":5}"), &first);
    api_start(world, "PUT", FUNCTIONS "/f/configuration", SPAN("{\"Timeout\":6}"), &second);
    api_wait(world, &first);
    api_wait(world, &second);
    assert_int_equal(first.answer.status, 200);
    assert_int_equal(second.answer.status, 409);
    api_answer_deinit(&first.answer);
    api_answer_deinit(&second.answer);
    settle(world);
    json_t *body = accepted(world, "GET", FUNCTIONS "/f/configuration", NULL, 200);
    assert_int_equal(json_integer_value(json_object_get(body, "Timeout")), 5);
    json_decref(body);
}

/* The world is turned between the requests, so that the update itself is long over. */
static void test_update_lasts_until_its_end_was_shown(void **state)
{
    static const char in_progress[] = "The operation cannot be performed at this time. An update is in progress for "
                                      "resource: arn:aws:lambda:us-east-1:111111111111:function:f";
    struct api_world *world = *state;

    lambda_create(world, "f");
    settle(world);
    world->services.unseen_update_ns = 3600 * NS_PER_S;
    json_decref(accepted(world, "PUT", FUNCTIONS "/f/configuration", json_pack("{s:i}", "Timeout", 7), 200));
    testing_run(&world->catalog);
    lambda_refused(world, "PUT", FUNCTIONS "/f/configuration", json_pack("{s:i}", "Timeout", 8), 409,
                   "ResourceConflictException", in_progress);
    lambda_refused(world, "POST", FUNCTIONS "/f/versions", json_object(), 409, "ResourceConflictException",
                   in_progress);
    json_decref(accepted(world, "GET", FUNCTIONS "/f", NULL, 200));
    json_decref(accepted(world, "PUT", FUNCTIONS "/f/configuration", json_pack("{s:i}", "Timeout", 8), 200));
}

static void test_creation_lasts_until_its_end_was_shown(void **state)
{
    struct api_world *world = *state;

    world->services.unseen_update_ns = 3600 * NS_PER_S;
    json_decref(accepted(world, "POST", FUNCTIONS, lambda_creation("f"), 201));
    testing_run(&world->catalog);
    lambda_refused(
        world, "PUT", FUNCTIONS "/f/configuration", json_pack("{s:i}", "Timeout", 8), 409, "ResourceConflictException",
        "The operation cannot be performed at this time. The function is currently in the following state: Pending");
    world->services.unseen_update_ns = 0;
    json_decref(accepted(world, "GET", FUNCTIONS "/f/configuration", NULL, 200));
    json_decref(accepted(world, "PUT", FUNCTIONS "/f/configuration", json_pack("{s:i}", "Timeout", 8), 200));
}

static void test_update_keeps_what_it_does_not_name(void **state)
{
    struct api_world *world = *state;
    json_t *body;

    ignore(accepted(world, "POST", FUNCTIONS,
                    lambda_creation_with("f", "Environment", json_pack("{s:{s:s}}", "Variables", "AB", "1")), 201));
    settle(world);
    ignore(accepted(world, "PUT", FUNCTIONS "/f/configuration", json_pack("{s:s}", "Description", "new"), 200));
    settle(world);
    body = accepted(world, "GET", FUNCTIONS "/f/configuration", NULL, 200);
    assert_string_equal(lambda_text(body, "Description"), "new");
    assert_string_equal(lambda_text(json_object_get(json_object_get(body, "Environment"), "Variables"), "AB"), "1");
    json_decref(body);
    ignore(
        accepted(world, "PUT", FUNCTIONS "/f/configuration", json_pack("{s:{s:{}}}", "Environment", "Variables"), 200));
    settle(world);
    body = accepted(world, "GET", FUNCTIONS "/f/configuration", NULL, 200);
    assert_int_equal(json_object_size(json_object_get(json_object_get(body, "Environment"), "Variables")), 0);
    json_decref(body);
}

static void test_update_of_nothing_is_not_found(void **state)
{
    lambda_refused(*state, "PUT", FUNCTIONS "/f/configuration", json_object(), 404, "ResourceNotFoundException",
                   "Function not found: arn:aws:lambda:us-east-1:111111111111:function:f");
    lambda_refused(*state, "PUT", FUNCTIONS "/f/code", json_pack("{s:o}", "ZipFile", api_zip("a", "b")), 404,
                   "ResourceNotFoundException", "Function not found: arn:aws:lambda:us-east-1:111111111111:function:f");
}

/* --- reserved concurrency --- */

static json_t *reservation(int count)
{
    return json_pack("{s:i}", "ReservedConcurrentExecutions", count);
}

#define CONCURRENCY(name) "/2017-10-31/functions/" name "/concurrency"

static json_int_t unreserved(struct api_world *world)
{
    json_t *body = accepted(world, "GET", "/2016-08-19/account-settings/", NULL, 200);
    json_int_t value =
        json_integer_value(json_object_get(json_object_get(body, "AccountLimit"), "UnreservedConcurrentExecutions"));

    json_decref(body);
    return value;
}

static void test_reservations_leave_the_unreserved_minimum(void **state)
{
    struct api_world *world = *state;
    static const char message[] = "Specified ReservedConcurrentExecutions for function decreases account's "
                                  "UnreservedConcurrentExecution below its minimum value of [100].";

    lambda_create(world, "f");
    lambda_create(world, "g");
    lambda_refused(world, "PUT", CONCURRENCY("f"), reservation(901), 400, "InvalidParameterValueException", message);
    ignore(accepted(world, "PUT", CONCURRENCY("f"), reservation(900), 200));
    assert_int_equal(unreserved(world), 100);
    lambda_refused(world, "PUT", CONCURRENCY("g"), reservation(1), 400, "InvalidParameterValueException", message);
    ignore(accepted(world, "PUT", CONCURRENCY("g"), reservation(0), 200)); /* always */
    ignore(accepted(world, "PUT", CONCURRENCY("f"), reservation(400), 200));
    ignore(accepted(world, "PUT", CONCURRENCY("g"), reservation(500), 200));
    ignore(accepted(world, "DELETE", CONCURRENCY("g"), NULL, 204));
    ignore(accepted(world, "DELETE", CONCURRENCY("g"), NULL, 204)); /* again */
    assert_int_equal(unreserved(world), 600);
    lambda_refused(
        world, "PUT", CONCURRENCY("f"), reservation(-1), 400, "ValidationException",
        "1 validation error detected: Value '-1' at 'reservedConcurrentExecutions' failed to satisfy constraint: "
        "Member must have value greater than or equal to 0");
    lambda_refused(
        world, "PUT", CONCURRENCY("f"), json_object(), 400, "ValidationException",
        "1 validation error detected: Value null at 'reservedConcurrentExecutions' failed to satisfy constraint: "
        "Member must not be null");
}

static void test_two_reservations_at_once_cannot_overdraw(void **state)
{
    struct api_world *world = *state;
    struct api_call first;
    struct api_call second;

    lambda_create(world, "f");
    lambda_create(world, "g");
    api_start(world, "PUT", CONCURRENCY("f"), SPAN("{\"ReservedConcurrentExecutions\":500}"), &first);
    api_start(world, "PUT", CONCURRENCY("g"), SPAN("{\"ReservedConcurrentExecutions\":500}"), &second);
    api_wait(world, &first);
    api_wait(world, &second);
    assert_int_equal(first.answer.status, 200);
    assert_int_equal(second.answer.status, 400);
    assert_int_equal(unreserved(world), 500);
    api_answer_deinit(&first.answer);
    api_answer_deinit(&second.answer);
}

/* --- lists --- */

/* Walks all pages; counts rows and appends one member of each. */
static size_t walk(struct api_world *world, const char *target, const char *rows, const char *member,
                   struct buffer *names, size_t *ret_pages)
{
    char marker[256] = "";
    size_t count = 0;
    size_t pages = 0;

    do {
        char page[512];
        json_t *body;
        json_t *row;
        size_t i;
        snprintf(page, sizeof(page), "%s%s%s", target, marker[0] ? "&Marker=" : "", marker);
        body = accepted(world, "GET", page, NULL, 200);
        json_array_foreach(json_object_get(body, rows), i, row)
        {
            assert_int_equal(buffer_printf(names, "%s ", lambda_text(row, member)), 0);
            count++;
        }
        marker[0] = '\0';
        if (json_object_get(body, "NextMarker"))
            snprintf(marker, sizeof(marker), "%s", lambda_text(body, "NextMarker"));
        json_decref(body);
        pages++;
    } while (marker[0]);
    *ret_pages = pages;
    assert_non_null(buffer_terminate(names));
    return count;
}

static void test_pages_show_every_function_once(void **state)
{
    struct api_world *world = *state;
    struct buffer names = BUFFER_INIT;
    size_t pages;

    for (int i = 0; i < 53; i++) {
        char name[8];
        snprintf(name, sizeof(name), "f%02d", i);
        ignore(accepted(world, "POST", FUNCTIONS, lambda_creation(name), 201));
    }
    settle(world);
    assert_int_equal(walk(world, FUNCTIONS "?MaxItems=7", "Functions", "FunctionName", &names, &pages), 53);
    assert_int_equal(pages, 8);
    names.length = 0;
    assert_int_equal(walk(world, FUNCTIONS "/?x", "Functions", "FunctionName", &names, &pages), 53);
    assert_int_equal(pages, 2); /* fifty at most, whatever is asked for */
    names.length = 0;
    assert_int_equal(walk(world, FUNCTIONS "?MaxItems=10000", "Functions", "FunctionName", &names, &pages), 53);
    assert_int_equal(pages, 2);
    assert_non_null(strstr(names.data, "f00 f01 "));
    buffer_deinit(&names);
    lambda_refused(
        world, "GET", FUNCTIONS "?MaxItems=0", NULL, 400, "ValidationException",
        "1 validation error detected: Value '0' at 'maxItems' failed to satisfy constraint: Member must have value "
        "greater than or equal to 1");
    lambda_refused(
        world, "GET", FUNCTIONS "?MaxItems=10001", NULL, 400, "ValidationException",
        "1 validation error detected: Value '10001' at 'maxItems' failed to satisfy constraint: Member must have "
        "value less than or equal to 10000");
}

static void test_all_versions_are_listed_across_pages(void **state)
{
    struct api_world *world = *state;
    struct buffer names = BUFFER_INIT;
    size_t pages;

    lambda_create(world, "e");
    lambda_create(world, "f");
    for (int i = 0; i < 11; i++) {
        char content[8];
        snprintf(content, sizeof(content), "%d", i);
        lambda_change_code(world, content);
        json_decref(lambda_publish(world, ""));
    }
    for (int maximum = 1; maximum < 14; maximum++) {
        char target[64];
        names.length = 0;
        snprintf(target, sizeof(target), FUNCTIONS "?FunctionVersion=ALL&MaxItems=%d", maximum);
        assert_int_equal(walk(world, target, "Functions", "Version", &names, &pages), 13);
        assert_string_equal(names.data, "$LATEST $LATEST 1 2 3 4 5 6 7 8 9 10 11 ");
        names.length = 0;
        snprintf(target, sizeof(target), FUNCTIONS "/f/versions?MaxItems=%d", maximum);
        assert_int_equal(walk(world, target, "Versions", "Version", &names, &pages), 12);
        assert_string_equal(names.data, "$LATEST 1 2 3 4 5 6 7 8 9 10 11 ");
    }
    buffer_deinit(&names);
}

static void test_aliases_are_listed_by_name_and_by_version(void **state)
{
    struct api_world *world = *state;
    struct buffer names = BUFFER_INIT;
    size_t pages;

    lambda_create(world, "f");
    json_decref(lambda_publish(world, ""));
    for (int i = 4; i >= 0; i--) {
        char name[] = {'a', (char)('0' + i), 0};
        ignore(accepted(world, "POST", FUNCTIONS "/f/aliases",
                        json_pack("{s:s, s:s}", "Name", name, "FunctionVersion", i % 2 ? "1" : "$LATEST"), 201));
    }
    assert_int_equal(walk(world, FUNCTIONS "/f/aliases?MaxItems=2", "Aliases", "Name", &names, &pages), 5);
    assert_string_equal(names.data, "a0 a1 a2 a3 a4 ");
    assert_int_equal(pages, 3);
    names.length = 0;
    assert_int_equal(walk(world, FUNCTIONS "/f/aliases?FunctionVersion=1", "Aliases", "Name", &names, &pages), 2);
    assert_string_equal(names.data, "a1 a3 ");
    buffer_deinit(&names);
}

/* --- the routing table --- */

static void test_every_operation_is_found_by_its_own_path(void **state)
{
    size_t count;
    const struct operation_route *routes = lambda_routes(&count);

    (void)state;
    assert_true(count >= 85);
    for (size_t i = 0; i < count; i++) {
        struct operation_parameter parameters[OPERATION_PARAMETERS_MAX];
        const struct operation_route *found = NULL;
        struct arena arena = {0};
        size_t parameter_count;
        assert_int_equal(lambda_route(span_from(routes[i].method), span_from(routes[i].pattern),
                                      span_from(routes[i].query), &arena, &found, parameters, &parameter_count),
                         OPERATION_MATCHED);
        assert_string_equal(found->name, routes[i].name);
        arena_deinit(&arena);
    }
}

static void test_path_parameters_are_decoded(void **state)
{
    struct operation_parameter parameters[OPERATION_PARAMETERS_MAX];
    const struct operation_route *route;
    struct arena arena = {0};
    size_t count;

    (void)state;
    assert_int_equal(lambda_route(SPAN("GET"), SPAN(FUNCTIONS "/a%3Ab%2Fc/aliases/x/"), SPAN_NONE, &arena, &route,
                                  parameters, &count),
                     OPERATION_MATCHED);
    assert_string_equal(route->name, "GetAlias");
    assert_int_equal(count, 2);
    assert_true(span_equal(parameters[0].name, SPAN("FunctionName")));
    assert_true(span_equal(parameters[0].value, SPAN("a:b/c")));
    assert_true(span_equal(parameters[1].value, SPAN("x")));
    assert_int_equal(lambda_route(SPAN("PATCH"), SPAN(FUNCTIONS), SPAN_NONE, &arena, &route, parameters, &count),
                     OPERATION_NO_METHOD);
    assert_int_equal(
        lambda_route(SPAN("GET"), SPAN(FUNCTIONS "//configuration"), SPAN_NONE, &arena, &route, parameters, &count),
        OPERATION_NO_PATH);
    arena_deinit(&arena);
}

static void test_everything_is_there_after_a_restart(void **state)
{
    struct api_world *world = *state;
    json_t *before;
    json_t *after;

    lambda_create(world, "f");
    ignore(accepted(world, "PUT", CONCURRENCY("f"), reservation(3), 200));
    before = accepted(world, "GET", FUNCTIONS "/f", NULL, 200);
    api_restart(world);
    after = accepted(world, "GET", FUNCTIONS "/f", NULL, 200);
    json_object_del(before, "Code");
    json_object_del(after, "Code"); /* the URL is another one each time */
    assert_true(json_equal(before, after));
    json_decref(before);
    json_decref(after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, lambda_test_setup, lambda_test_teardown)
        TEST(test_members_of_the_wrong_kind_are_refused),
        TEST(test_broken_json_is_refused),
        TEST(test_fraction_of_an_integer_is_cut_off),
        TEST(test_large_body_is_parsed_off_the_loop),
        TEST(test_change_is_made_though_the_caller_has_gone),
        TEST(test_bad_zips_get_the_service_s_texts),
        TEST(test_zip_in_the_request_must_be_smaller_than_50_mebibytes),
        TEST(test_code_needs_exactly_one_source),
        TEST(test_bucket_does_not_exist_without_an_endpoint),
        TEST(test_code_storage_has_a_limit),
        TEST(test_code_can_be_downloaded_from_its_location),
        TEST(test_dry_run_shows_the_new_code_and_keeps_the_old),
        TEST(test_all_forms_of_a_name_find_the_function),
        TEST(test_function_of_another_account_is_denied),
        TEST(test_operations_on_the_function_refuse_qualified_names),
        TEST(test_states_move_as_the_waiters_expect),
        TEST(test_of_two_racing_updates_one_is_refused),
        TEST(test_update_lasts_until_its_end_was_shown),
        TEST(test_creation_lasts_until_its_end_was_shown),
        TEST(test_update_keeps_what_it_does_not_name),
        TEST(test_update_of_nothing_is_not_found),
        TEST(test_reservations_leave_the_unreserved_minimum),
        TEST(test_two_reservations_at_once_cannot_overdraw),
        TEST(test_pages_show_every_function_once),
        TEST(test_all_versions_are_listed_across_pages),
        TEST(test_aliases_are_listed_by_name_and_by_version),
        TEST(test_every_operation_is_found_by_its_own_path),
        TEST(test_path_parameters_are_decoded),
        TEST(test_everything_is_there_after_a_restart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
