/*
 * The published Signature Version 4 test suite, over the copy in tests/data/sigv4 (argument 1: its folder). For each
 * vector: the canonical request, the string to sign, the Authorization header, and the signed request accepted.
 *
 * Three need a word. "get-vanilla-with-session-token": its signed request (.sreq) carries a made-up signature, unlike
 * its .authz; it is a vector for signing only, and must be refused when checked. "post-sts-header-after" sends the
 * token without signing it, which services that insist on signed x-amz-* headers (ours by default) refuse. "get-space",
 * "get-utf8" and "get-vanilla-utf8-query" hold bytes in the request line that no HTTP server lets through.
 */
#include "aws/canonical.h"
#include "aws/sigv4.h"
#include "base/clock.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

static const char *folder; /* from the command line */

static const struct credential suite_key = {
    .profile = "suite",
    .access_key = "AKIDEXAMPLE",
    .secret_key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
};

static const char sts_token[] =
    "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwth"
    "Ax7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAk"
    "iY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";
static const char vanilla_token[] = "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267";

/* --- reading a vector -------------------------------------------------------------------------------------------- */

enum { HEADERS = 16 };

struct vector {
    struct arena arena;
    char name[128];
    char path[4096]; /* up to the extension */
    struct sigv4_header headers[HEADERS];
    struct sigv4_request request;
};

static struct span read_text(struct vector *vector, const char *extension)
{
    char path[sizeof(vector->path) + 8];
    char *text = arena_alloc(&vector->arena, 65536);
    size_t length;
    FILE *file;

    assert_non_null(text);
    snprintf(path, sizeof(path), "%s.%s", vector->path, extension);
    file = fopen(path, "rb");
    if (!file)
        fail_msg("cannot open %s", path);
    length = fread(text, 1, 65536, file);
    fclose(file);
    return span_of(text, length);
}

/* A line that begins with a blank continues the one before; HTTP servers join them with a space. */
static void unfold(struct vector *vector, struct span continuation)
{
    struct sigv4_header *header = &vector->headers[vector->request.header_count - 1];
    char *joined = arena_printf(&vector->arena, "%.*s %.*s", SPAN_ARG(header->value), SPAN_ARG(continuation));

    assert_non_null(joined);
    header->value = span_from(joined);
}

static void parse_request_line(struct sigv4_request *request, struct span line)
{
    struct span target = line;

    request->method = span_cut(&target, ' ');
    assert_true(span_ends_with(target, SPAN(" HTTP/1.1")));
    target.length -= 9;
    request->path = span_cut(&target, '?');
    request->query = target;
}

static void parse_request(struct vector *vector, struct span text)
{
    struct sigv4_request *request = &vector->request;

    *request = (struct sigv4_request){.headers = vector->headers};
    parse_request_line(request, span_cut(&text, '\n'));
    while (text.length) {
        struct span line = span_cut(&text, '\n');
        if (!line.length)
            break;
        if (line.data[0] == ' ') {
            unfold(vector, line);
            continue;
        }
        assert_true(request->header_count < HEADERS);
        vector->headers[request->header_count].name = span_cut(&line, ':');
        vector->headers[request->header_count].value = line;
        request->header_count++;
    }
    request->body = text;
}

static bool is(const struct vector *vector, const char *name)
{
    return strcmp(vector->name, name) == 0;
}

static void visit_vectors(const char *path, void (*visit)(struct vector *vector), int *count)
{
    DIR *directory = opendir(path);
    struct dirent *entry;

    if (!directory)
        fail_msg("cannot open %s", path);
    while ((entry = readdir(directory))) {
        struct vector vector = {0};
        struct stat status;
        char inner[3500];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(inner, sizeof(inner), "%s/%s", path, entry->d_name);
        if (stat(inner, &status) < 0 || !S_ISDIR(status.st_mode))
            continue;
        snprintf(vector.name, sizeof(vector.name), "%.120s", entry->d_name);
        snprintf(vector.path, sizeof(vector.path), "%s/%s", inner, vector.name);
        snprintf(inner + strlen(inner), sizeof(inner) - strlen(inner), "/%s.req", vector.name);
        if (stat(inner, &status) < 0) { /* normalize-path and post-sts-token hold vectors themselves */
            inner[strlen(inner) - strlen(vector.name) - 5] = '\0';
            visit_vectors(inner, visit, count);
            continue;
        }
        visit(&vector);
        (*count)++;
        arena_deinit(&vector.arena);
    }
    closedir(directory);
}

enum { VECTORS = 34 };

static void visit_all(void (*visit)(struct vector *vector))
{
    int count = 0;

    visit_vectors(folder, visit, &count);
    assert_int_equal(count, VECTORS);
}

static void assert_text(const struct vector *vector, const char *what, struct span actual, struct span expected)
{
    if (!span_equal(actual, span_trim(expected)))
        fail_msg("%s: %s\n--- got\n%.*s\n--- expected\n%.*s", vector->name, what, SPAN_ARG(actual), SPAN_ARG(expected));
}

/* --- signing ----------------------------------------------------------------------------------------------------- */

static void check_signing(struct vector *vector)
{
    struct sigv4_signer signer = {
        .access_key = span_from(suite_key.access_key),
        .secret_key = span_from(suite_key.secret_key),
        .region = SPAN("us-east-1"),
        .service = SPAN("service"),
    };
    struct sigv4_header added[SIGV4_SIGNED_HEADERS];
    size_t count;

    parse_request(vector, read_text(vector, "req"));
    if (is(vector, "get-vanilla-with-session-token"))
        signer.session_token = span_from(vanilla_token);
    if (is(vector, "post-sts-header-after")) {
        signer.session_token = span_from(sts_token);
        signer.token_after_signing = true;
    }
    assert_int_equal(sigv4_sign(&signer, &vector->request, 0, &vector->arena, added, &count), 0);
    assert_text(vector, "authorization", added[count - 1].value, read_text(vector, "authz"));
}

static void test_signing_gives_the_published_signatures(void **state)
{
    (void)state;
    visit_all(check_signing);
}

/* --- canonical forms --------------------------------------------------------------------------------------------- */

static void check_canonical(struct vector *vector)
{
    struct sha256 sha256 = {0};
    char hex[SHA256_HEX_BYTES];
    struct span names, text;

    parse_request(vector, read_text(vector, "req"));
    if (is(vector, "get-vanilla-with-session-token")) {
        vector->headers[vector->request.header_count].name = SPAN("X-Amz-Security-Token");
        vector->headers[vector->request.header_count].value = span_from(vanilla_token);
        vector->request.header_count++;
    }
    assert_int_equal(sha256_init(&sha256), 0);
    assert_int_equal(sha256_hex(&sha256, &vector->request.body, 1, hex), 0);
    assert_int_equal(canonical_signed_headers(&vector->request, &vector->arena, &names), 0);
    assert_int_equal(
        canonical_request(&vector->request, names, span_of(hex, 64), SIGV4_STANDARD, &vector->arena, &text), 0);
    assert_text(vector, "canonical request", text, read_text(vector, "creq"));
    assert_int_equal(sha256_hex(&sha256, &text, 1, hex), 0);
    assert_int_equal(canonical_string_to_sign(SPAN("20150830T123600Z"), SPAN("20150830"), SPAN("us-east-1"),
                                              SPAN("service"), hex, &vector->arena, &text),
                     0);
    assert_text(vector, "string to sign", text, read_text(vector, "sts"));
    sha256_deinit(&sha256);
}

static void test_canonical_forms_are_the_published_ones(void **state)
{
    (void)state;
    visit_all(check_canonical);
}

/* --- checking ---------------------------------------------------------------------------------------------------- */

static const struct credential *find_in_suite(void *context, struct span access_key)
{
    const struct credential *credential = context;

    return span_equal(access_key, span_from(credential->access_key)) ? credential : NULL;
}

static int verify(struct vector *vector, const char *token, bool unsigned_allowed, int64_t now_wall_ns)
{
    struct credential credential = suite_key;
    struct sigv4_policy policy = {
        .find = find_in_suite,
        .context = &credential,
        .service = SPAN("service"),
        .region = SPAN("us-east-1"),
        .unsigned_headers_allowed = unsigned_allowed,
    };
    struct sigv4_authorization authorization;
    const struct credential *who = NULL;
    struct sigv4_verifier *verifier;
    struct aws_error error = {0};
    int r;

    credential.session_token = token;
    assert_int_equal(sigv4_verifier_new(&policy, 0, &verifier), 0);
    r = sigv4_verify(verifier, &vector->request, now_wall_ns, &vector->arena, &authorization, &who, &error);
    if (r == 0)
        assert_ptr_equal(who, &credential);
    aws_error_deinit(&error);
    sigv4_verifier_free(verifier);
    return r;
}

static void check_verifying(struct vector *vector)
{
    int64_t now_wall_ns;
    const char *token = NULL;
    bool after = is(vector, "post-sts-header-after");
    int expected = 0;

    assert_int_equal(clock_parse_amz(SPAN("20150830T123600Z"), &now_wall_ns), 0);
    parse_request(vector, read_text(vector, "sreq"));
    if (is(vector, "get-vanilla-with-session-token")) {
        token = vanilla_token;
        expected = SIGV4_MISMATCH;
    } else if (after || is(vector, "post-sts-header-before")) {
        token = sts_token;
    }
    if (verify(vector, token, after, now_wall_ns) != expected)
        fail_msg("%s: outcome %d", vector->name, verify(vector, token, after, now_wall_ns));
    if (after)
        assert_int_equal(verify(vector, token, false, now_wall_ns), SIGV4_UNSIGNED);
}

static void test_signed_requests_are_accepted(void **state)
{
    (void)state;
    visit_all(check_verifying);
}

static void check_tampering(struct vector *vector)
{
    int64_t now_wall_ns;

    assert_int_equal(clock_parse_amz(SPAN("20150830T123600Z"), &now_wall_ns), 0);
    parse_request(vector, read_text(vector, "sreq"));
    if (is(vector, "get-vanilla-with-session-token") || span_starts_with(span_from(vector->name), SPAN("post-sts")))
        return;
    vector->request.method = SPAN("PUT");
    assert_int_equal(verify(vector, NULL, false, now_wall_ns), SIGV4_MISMATCH);
    parse_request(vector, read_text(vector, "sreq"));
    vector->request.path = SPAN("/elsewhere");
    assert_int_equal(verify(vector, NULL, false, now_wall_ns), SIGV4_MISMATCH);
    parse_request(vector, read_text(vector, "sreq"));
    vector->request.query = SPAN("more=1");
    assert_int_equal(verify(vector, NULL, false, now_wall_ns), SIGV4_MISMATCH);
    parse_request(vector, read_text(vector, "sreq"));
    vector->request.body = SPAN("other");
    assert_int_equal(verify(vector, NULL, false, now_wall_ns), SIGV4_MISMATCH);
    parse_request(vector, read_text(vector, "sreq"));
    vector->headers[0].value = SPAN("elsewhere.amazonaws.com");
    assert_int_equal(verify(vector, NULL, false, now_wall_ns), SIGV4_MISMATCH);
}

static void test_changed_requests_are_refused(void **state)
{
    (void)state;
    visit_all(check_tampering);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signing_gives_the_published_signatures),
        cmocka_unit_test(test_canonical_forms_are_the_published_ones),
        cmocka_unit_test(test_signed_requests_are_accepted),
        cmocka_unit_test(test_changed_requests_are_refused),
    };

    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    folder = argv[1];
    return cmocka_run_group_tests_name("sigv4 vectors", tests, NULL, NULL);
}
