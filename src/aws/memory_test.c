/*
 * Makes the n-th allocation fail, for every n that is reached, and checks that the failure comes out as -ENOMEM; that
 * nothing leaks is for AddressSanitizer to see. Allocations inside OpenSSL are not reached: it is another library.
 */
#include "aws/credentials.h"
#include "aws/sigv4.h"
#include "aws/uri.h"
#include "aws/validate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* The linker sends every call of malloc and its kin here (--wrap). */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

static int left = -1; /* allocations that still succeed; negative: all */

static bool is_due(void)
{
    return left >= 0 && left-- == 0;
}

void *__wrap_malloc(size_t size)
{
    return is_due() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return is_due() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return is_due() ? NULL : __real_realloc(memory, size);
}

/* Runs the work with ever more memory until it succeeds; it must take at least `least` allocations. */
static void starve(int (*work)(void), int least)
{
    for (int n = 0; n < 200; n++) {
        int r;
        left = n;
        r = work();
        if (left >= 0) { /* the failure was not reached */
            left = -1;
            assert_int_equal(r, 0);
            assert_true(n >= least);
            return;
        }
        left = -1;
        assert_int_equal(r, -ENOMEM);
    }
    fail_msg("never succeeded");
}

static int read_credentials(void)
{
    struct credentials *credentials = NULL;
    int r = credentials_parse(SPAN("[a]\naws_access_key_id=A\naws_secret_access_key=s\n[b]\naws_access_key_id=B\n"
                                   "aws_secret_access_key=s\naws_session_token=t\naws_account_id=111122223333\n"),
                              "file", &credentials, NULL);

    credentials_free(credentials);
    return r;
}

static void test_credentials_survive_want_of_memory(void **state)
{
    (void)state;
    starve(read_credentials, 10);
}

static int validate(void)
{
    struct validation validation = VALIDATION_INIT;
    struct aws_error error = {0};
    const struct span list[] = {SPAN("x"), SPAN("y")};
    const struct validation_constraint constraint = {1, 2, "[a]+", NULL};
    int r;

    validate_string(&validation, SPAN("this is too long for two"), "member", &constraint);
    validate_list(&validation, list, 2, "list", 0, 1, &constraint);
    r = validation_finish(&validation, AWS_ERROR_VALIDATION, &error);
    /* The message may be lost for want of memory, the class is not. */
    if (r == AWS_ERROR_VALIDATION)
        r = error.message.length ? 0 : -ENOMEM;
    aws_error_deinit(&error);
    return r;
}

static void test_validation_survives_want_of_memory(void **state)
{
    (void)state;
    starve(validate, 2);
}

static int write_error(void)
{
    struct buffer CLEANUP(buffer_deinit) body = BUFFER_INIT;
    struct aws_error error = {.code = "C", .type = "User", .message_key = "message"};
    int r = aws_error_write_rest_json(&error, &body);

    if (r == 0)
        r = aws_error_write_json(&error, &body);
    if (r == 0)
        r = aws_error_write_query(&error, "urn:x", SPAN("id"), &body);
    return r;
}

static void test_envelopes_survive_want_of_memory(void **state)
{
    (void)state;
    starve(write_error, 3);
}

static const struct credential *find(void *context, struct span access_key)
{
    (void)access_key;
    return context;
}

static int sign_and_verify(void)
{
    struct credential key = {.profile = "p", .access_key = "A", .secret_key = "s"};
    struct sigv4_policy policy = {.find = find, .context = &key};
    struct sigv4_signer signer = {
        .access_key = SPAN("A"), .secret_key = SPAN("s"), .region = SPAN("r"), .service = SPAN("s")};
    struct sigv4_header headers[1 + SIGV4_SIGNED_HEADERS] = {{SPAN("Host"), SPAN("h")}};
    struct sigv4_request request = {
        .method = SPAN("GET"), .path = SPAN("/"), .query = SPAN("a=1"), .headers = headers, .header_count = 1};
    struct sigv4_verifier *verifier = NULL;
    struct sigv4_authorization authorization;
    struct aws_error error = {0};
    struct arena arena = {0};
    size_t count = 0;
    int r = sigv4_sign(&signer, &request, 0, &arena, headers + 1, &count);

    request.header_count += count;
    if (r == 0)
        r = sigv4_verifier_new(&policy, 1, &verifier);
    if (r == 0)
        r = sigv4_verify(verifier, &request, 0, &arena, &authorization, NULL, &error);
    if (r == 0)
        r = sigv4_presign(&signer, &request, 0, 60, &arena, &request.query);
    sigv4_verifier_free(verifier);
    aws_error_deinit(&error);
    arena_deinit(&arena);
    return r;
}

static void test_signatures_survive_want_of_memory(void **state)
{
    (void)state;
    starve(sign_and_verify, 3);
}

static int split(void)
{
    struct arena arena = {0};
    struct uri_query query;
    struct uri_path path;
    int r = uri_query_parse(&arena, SPAN("a=%41&b=c"), &query);

    if (r == 0)
        r = uri_path_split(&arena, SPAN("/a/%41"), &path);
    arena_deinit(&arena);
    return r;
}

static void test_uris_survive_want_of_memory(void **state)
{
    (void)state;
    starve(split, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_credentials_survive_want_of_memory),
        cmocka_unit_test(test_validation_survives_want_of_memory),
        cmocka_unit_test(test_envelopes_survive_want_of_memory),
        cmocka_unit_test(test_signatures_survive_want_of_memory),
        cmocka_unit_test(test_uris_survive_want_of_memory),
    };

    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
