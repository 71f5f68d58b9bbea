#include "aws/canonical.h"
#include "aws/sigv4.h"
#include "base/clock.h"
#include "base/encode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { HEADERS = 12 };

static struct credential long_lived = {
    .profile = "dev", .access_key = "AKIDEXAMPLE", .secret_key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"};
static struct credential temporary = {
    .profile = "tmp", .access_key = "ASIAEXAMPLE", .secret_key = "another+secret", .session_token = "the/token=="};

/* One request with its signature, and what checks it. Tests change a member between make and check. */
struct fixture {
    struct arena arena;
    struct sigv4_policy policy;
    struct sigv4_signer signer;
    struct sigv4_header headers[HEADERS];
    struct sigv4_request request;
    struct sigv4_authorization authorization;
    const struct credential *who;
    struct aws_error error;
    int64_t signed_ns; /* when it was signed */
    int64_t now_ns;
    int lookups;
};

static const struct credential *find(void *context, struct span access_key)
{
    struct fixture *fixture = context;

    fixture->lookups++;
    if (span_equal(access_key, span_from(long_lived.access_key)))
        return &long_lived;
    return span_equal(access_key, span_from(temporary.access_key)) ? &temporary : NULL;
}

static void use(struct fixture *fixture, const struct credential *credential)
{
    fixture->signer.access_key = span_from(credential->access_key);
    fixture->signer.secret_key = span_from(credential->secret_key);
    fixture->signer.session_token = span_from(credential->session_token);
}

static void add_header(struct fixture *fixture, const char *name, struct span value)
{
    assert_true(fixture->request.header_count < HEADERS);
    fixture->headers[fixture->request.header_count++] = (struct sigv4_header){span_from(name), value};
}

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    if (!fixture || clock_parse_amz(SPAN("20260102T030405Z"), &fixture->signed_ns) < 0)
        return -1;
    fixture->now_ns = fixture->signed_ns;
    fixture->policy =
        (struct sigv4_policy){.find = find, .context = fixture, .service = SPAN("lambda"), .region = SPAN("us-east-1")};
    fixture->signer.region = SPAN("us-east-1");
    fixture->signer.service = SPAN("lambda");
    use(fixture, &long_lived);
    fixture->request = (struct sigv4_request){
        .method = SPAN("POST"),
        .path = SPAN("/2015-03-31/functions/arn%3Aaws%3Alambda%3Aus-east-1%3A111122223333%3Afunction%3Af/invocations"),
        .query = SPAN("Qualifier=prod"),
        .headers = fixture->headers,
        .body = SPAN("{}"),
    };
    add_header(fixture, "Host", SPAN("127.0.0.1:4566"));
    add_header(fixture, "X-Amz-Invocation-Type", SPAN("RequestResponse"));
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    arena_deinit(&fixture->arena);
    aws_error_deinit(&fixture->error);
    free(fixture);
    return 0;
}

static void sign(struct fixture *fixture)
{
    struct sigv4_header added[SIGV4_SIGNED_HEADERS];
    size_t count;

    assert_int_equal(
        sigv4_sign(&fixture->signer, &fixture->request, fixture->signed_ns, &fixture->arena, added, &count), 0);
    for (size_t i = 0; i < count; i++) {
        assert_true(fixture->request.header_count < HEADERS);
        fixture->headers[fixture->request.header_count++] = added[i];
    }
}

static struct sigv4_header *header(struct fixture *fixture, const char *name)
{
    for (size_t i = 0; i < fixture->request.header_count; i++)
        if (span_equal_nocase(fixture->headers[i].name, span_from(name)))
            return &fixture->headers[i];
    fail_msg("no header %s", name);
    return NULL;
}

static int verify(struct fixture *fixture)
{
    struct sigv4_verifier *verifier;
    int r;

    fixture->who = NULL;
    assert_int_equal(sigv4_verifier_new(&fixture->policy, 4, &verifier), 0);
    r = sigv4_verify(verifier, &fixture->request, fixture->now_ns, &fixture->arena, &fixture->authorization,
                     &fixture->who, &fixture->error);
    sigv4_verifier_free(verifier);
    return r;
}

static void assert_refused(struct fixture *fixture, enum sigv4_outcome outcome, enum aws_error_class error_class,
                           const char *text)
{
    int r = verify(fixture);

    if (r != (int)outcome)
        fail_msg("outcome %d, not %d: %.*s", r, outcome, SPAN_ARG(buffer_span(&fixture->error.message)));
    assert_int_equal(fixture->error.error_class, error_class);
    assert_int_equal(fixture->error.status, 403);
    assert_string_equal(buffer_terminate(&fixture->error.message), text);
    assert_null(fixture->who);
}

static void set_authorization(struct fixture *fixture, const char *value)
{
    header(fixture, "Authorization")->value = span_from(value);
}

/* Replaces the first occurrence of `from` in the Authorization header. */
static void edit_authorization(struct fixture *fixture, const char *from, const char *to)
{
    struct span value = header(fixture, "Authorization")->value;
    ptrdiff_t at = span_find_span(value, span_from(from));
    char *text;

    assert_true(at >= 0);
    text = arena_printf(&fixture->arena, "%.*s%s%.*s", (int)at, value.data, to,
                        SPAN_ARG(span_slice(value, (size_t)at + strlen(from), value.length)));
    set_authorization(fixture, text);
}

/* --- refusals ---------------------------------------------------------------------------------------------------- */

static void test_unsigned_request_is_missing_its_token(void **state)
{
    assert_refused(*state, SIGV4_MISSING, AWS_ERROR_MISSING_AUTHENTICATION_TOKEN, "Missing Authentication Token");
}

static void test_other_amz_parameters_are_no_signature(void **state)
{
    struct fixture *fixture = *state;

    fixture->request.query = SPAN("X-Amz-Foo=1");
    assert_refused(fixture, SIGV4_MISSING, AWS_ERROR_MISSING_AUTHENTICATION_TOKEN, "Missing Authentication Token");
}

static void test_foreign_authorization_names_all_it_lacks(void **state)
{
    struct fixture *fixture = *state;

    add_header(fixture, "Authorization", SPAN("eyJ0.eyJz.tok"));
    assert_refused(fixture, SIGV4_INCOMPLETE, AWS_ERROR_INCOMPLETE_SIGNATURE,
                   "Authorization header requires 'Credential' parameter. Authorization header requires 'Signature' "
                   "parameter. Authorization header requires 'SignedHeaders' parameter. Authorization header requires "
                   "existence of either a 'X-Amz-Date' or a 'Date' header. Authorization=eyJ0.eyJz.tok");
}

static void test_pair_without_equal_sign_is_quoted(void **state)
{
    struct fixture *fixture = *state;

    add_header(fixture, "Authorization", SPAN("Bearer abc"));
    assert_refused(fixture, SIGV4_INCOMPLETE, AWS_ERROR_INCOMPLETE_SIGNATURE,
                   "'abc' not a valid key=value pair (missing equal-sign) in Authorization header: 'Bearer abc'.");
}

static void test_each_missing_part_is_named(void **state)
{
    struct fixture *fixture = *state;

    add_header(fixture, "X-Amz-Date", SPAN("20260102T030405Z"));
    add_header(fixture, "Authorization", SPAN("AWS4-HMAC-SHA256 Credential=a/b/c/d/e, Signature=00"));
    assert_refused(fixture, SIGV4_INCOMPLETE, AWS_ERROR_INCOMPLETE_SIGNATURE,
                   "Authorization header requires 'SignedHeaders' parameter. Authorization=AWS4-HMAC-SHA256 "
                   "Credential=a/b/c/d/e, Signature=00");
    set_authorization(fixture, "AWS4-HMAC-SHA256 Credential=a/b/c/d/e, SignedHeaders=host");
    assert_refused(fixture, SIGV4_INCOMPLETE, AWS_ERROR_INCOMPLETE_SIGNATURE,
                   "Authorization header requires 'Signature' parameter. Authorization=AWS4-HMAC-SHA256 "
                   "Credential=a/b/c/d/e, SignedHeaders=host");
}

static void test_credential_must_have_five_parts(void **state)
{
    struct fixture *fixture = *state;

    sign(fixture);
    edit_authorization(fixture, "/aws4_request", "");
    assert_refused(fixture, SIGV4_INCOMPLETE, AWS_ERROR_INCOMPLETE_SIGNATURE,
                   "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, got "
                   "'AKIDEXAMPLE/20260102/us-east-1/lambda'");
    edit_authorization(fixture, "/lambda", "/lambda/aws4_request/more");
    assert_refused(fixture, SIGV4_INCOMPLETE, AWS_ERROR_INCOMPLETE_SIGNATURE,
                   "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, got "
                   "'AKIDEXAMPLE/20260102/us-east-1/lambda/aws4_request/more'");
}

static void test_other_algorithms_are_unsupported(void **state)
{
    struct fixture *fixture = *state;

    sign(fixture);
    edit_authorization(fixture, "AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256");
    assert_refused(fixture, SIGV4_UNSUPPORTED, AWS_ERROR_INCOMPLETE_SIGNATURE,
                   "Unsupported AWS 'algorithm': 'AWS4-ECDSA-P256-SHA256'.");
}

static void test_unknown_access_key_is_an_unrecognized_client(void **state)
{
    struct fixture *fixture = *state;

    fixture->signer.access_key = SPAN("AKIDNOBODY");
    sign(fixture);
    assert_refused(fixture, SIGV4_UNKNOWN_KEY, AWS_ERROR_UNRECOGNIZED_CLIENT,
                   "The security token included in the request is invalid.");
}

static void test_session_token_must_be_the_keys_own(void **state)
{
    struct fixture *fixture = *state;
    static const char text[] = "The security token included in the request is invalid.";

    use(fixture, &temporary);
    sign(fixture);
    assert_int_equal(verify(fixture), 0);
    assert_ptr_equal(fixture->who, &temporary);
    header(fixture, "X-Amz-Security-Token")->value = SPAN("the/token=x");
    assert_refused(fixture, SIGV4_BAD_TOKEN, AWS_ERROR_UNRECOGNIZED_CLIENT, text);
    header(fixture, "X-Amz-Security-Token")->value = SPAN("the/token=");
    assert_refused(fixture, SIGV4_BAD_TOKEN, AWS_ERROR_UNRECOGNIZED_CLIENT, text);
    header(fixture, "X-Amz-Security-Token")->value = SPAN_NONE;
    assert_refused(fixture, SIGV4_BAD_TOKEN, AWS_ERROR_UNRECOGNIZED_CLIENT, text);
}

static void test_long_lived_key_takes_no_token(void **state)
{
    struct fixture *fixture = *state;

    fixture->signer.session_token = SPAN("some");
    sign(fixture);
    assert_refused(fixture, SIGV4_BAD_TOKEN, AWS_ERROR_UNRECOGNIZED_CLIENT,
                   "The security token included in the request is invalid.");
}

static void test_date_must_be_there_and_basic(void **state)
{
    struct fixture *fixture = *state;

    sign(fixture);
    header(fixture, "X-Amz-Date")->value = SPAN("2026-01-02T03:04:05Z");
    assert_refused(fixture, SIGV4_INCOMPLETE, AWS_ERROR_INCOMPLETE_SIGNATURE,
                   "Date must be in ISO-8601 'basic format'. Got '2026-01-02T03:04:05Z'. See "
                   "http://en.wikipedia.org/wiki/ISO_8601");
    header(fixture, "X-Amz-Date")->name = SPAN("X-Other");
    set_authorization(fixture, "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260102/us-east-1/lambda/aws4_request, "
                               "SignedHeaders=host, Signature=00");
    assert_refused(fixture, SIGV4_INCOMPLETE, AWS_ERROR_INCOMPLETE_SIGNATURE,
                   "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. "
                   "Authorization=AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260102/us-east-1/lambda/aws4_request, "
                   "SignedHeaders=host, Signature=00");
}

static void test_scope_must_fit(void **state)
{
    struct fixture *fixture = *state;

    sign(fixture);
    edit_authorization(fixture, "us-east-1", "eu-west-1");
    assert_refused(fixture, SIGV4_BAD_SCOPE, AWS_ERROR_INVALID_SIGNATURE,
                   "Credential should be scoped to a valid region, not 'eu-west-1'. ");
    edit_authorization(fixture, "eu-west-1/lambda", "us-east-1/s3");
    assert_refused(fixture, SIGV4_BAD_SCOPE, AWS_ERROR_INVALID_SIGNATURE,
                   "Credential should be scoped to correct service: 'lambda'. ");
    edit_authorization(fixture, "s3/aws4_request", "lambda/aws5_request");
    assert_refused(fixture, SIGV4_BAD_SCOPE, AWS_ERROR_INVALID_SIGNATURE,
                   "Credential should be scoped with a valid terminator: 'aws4_request', not 'aws5_request'.");
    edit_authorization(fixture, "aws5_request", "aws4_request");
    edit_authorization(fixture, "20260102/", "20260103/");
    assert_refused(fixture, SIGV4_BAD_SCOPE, AWS_ERROR_INVALID_SIGNATURE,
                   "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: "
                   "'20260103' != '20260102', from '20260102T030405Z'.");
}

static void test_any_region_and_service_pass_when_none_is_asked_for(void **state)
{
    struct fixture *fixture = *state;

    fixture->policy.region = fixture->policy.service = SPAN_NONE;
    fixture->signer.region = SPAN("eu-central-1");
    fixture->signer.service = SPAN("monitoring");
    sign(fixture);
    assert_int_equal(verify(fixture), 0);
    assert_true(span_equal(fixture->authorization.region, SPAN("eu-central-1")));
    assert_true(span_equal(fixture->authorization.service, SPAN("monitoring")));
}

static void test_old_signature_is_expired(void **state)
{
    struct fixture *fixture = *state;

    sign(fixture);
    fixture->now_ns = fixture->signed_ns + 15 * 60 * NS_PER_S;
    assert_int_equal(verify(fixture), 0);
    fixture->now_ns += NS_PER_S;
    assert_refused(fixture, SIGV4_EXPIRED, AWS_ERROR_INVALID_SIGNATURE,
                   "Signature expired: 20260102T030405Z is now earlier than 20260102T030406Z (20260102T031906Z - 15 "
                   "min.)");
}

static void test_future_signature_is_not_yet_current(void **state)
{
    struct fixture *fixture = *state;

    sign(fixture);
    fixture->now_ns = fixture->signed_ns - 15 * 60 * NS_PER_S;
    assert_int_equal(verify(fixture), 0);
    fixture->now_ns -= NS_PER_S;
    assert_refused(fixture, SIGV4_NOT_YET, AWS_ERROR_INVALID_SIGNATURE,
                   "Signature not yet current: 20260102T030405Z is still later than 20260102T030404Z (20260102T024904Z "
                   "+ 15 min.)");
}

static void test_allowed_skew_can_be_set(void **state)
{
    struct fixture *fixture = *state;

    fixture->policy.skew_minutes = 5;
    sign(fixture);
    fixture->now_ns = fixture->signed_ns + 5 * 60 * NS_PER_S + NS_PER_S;
    assert_refused(fixture, SIGV4_EXPIRED, AWS_ERROR_INVALID_SIGNATURE,
                   "Signature expired: 20260102T030405Z is now earlier than 20260102T030406Z (20260102T030906Z - 5 "
                   "min.)");
}

static void test_host_must_be_signed(void **state)
{
    struct fixture *fixture = *state;

    sign(fixture);
    edit_authorization(fixture, "SignedHeaders=host;", "SignedHeaders=");
    assert_refused(fixture, SIGV4_UNSIGNED, AWS_ERROR_INVALID_SIGNATURE,
                   "'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization.");
}

static void test_amz_header_added_on_the_way_is_refused(void **state)
{
    struct fixture *fixture = *state;

    sign(fixture);
    add_header(fixture, "X-Amz-Log-Type", SPAN("Tail"));
    assert_refused(fixture, SIGV4_UNSIGNED, AWS_ERROR_INVALID_SIGNATURE,
                   "'X-Amz-Log-Type' must be a 'SignedHeader' in the AWS Authorization.");
}

static void test_trace_header_added_on_the_way_is_allowed(void **state)
{
    struct fixture *fixture = *state;

    sign(fixture);
    add_header(fixture, "X-Amzn-Trace-Id", SPAN("Root=1-2-3"));
    add_header(fixture, "X-Forwarded-For", SPAN("203.0.113.7"));
    assert_int_equal(verify(fixture), 0);
}

static void test_declared_body_hash_must_be_true(void **state)
{
    struct fixture *fixture = *state;

    fixture->signer.content_sha256_header = true;
    sign(fixture);
    assert_int_equal(verify(fixture), 0);
    fixture->request.body = SPAN("{ }");
    assert_refused(fixture, SIGV4_BAD_BODY_HASH, AWS_ERROR_INVALID_SIGNATURE,
                   "The provided 'x-amz-content-sha256' header does not match what was computed.");
    header(fixture, "x-amz-content-sha256")->value = SPAN("UNSIGNED");
    assert_refused(fixture, SIGV4_BAD_BODY_HASH, AWS_ERROR_INVALID_SIGNATURE,
                   "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, or a valid sha256 value.");
}

static void test_known_body_hash_is_not_computed_again(void **state)
{
    struct fixture *fixture = *state;

    sign(fixture);
    fixture->request.body_sha256 = SPAN("44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
    fixture->request.body = SPAN_NONE;
    assert_int_equal(verify(fixture), 0);
    fixture->request.body_sha256 = SPAN("54136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
    assert_int_equal(verify(fixture), SIGV4_MISMATCH);
}

static void test_unsigned_payload_takes_any_body(void **state)
{
    struct fixture *fixture = *state;

    fixture->signer.content_sha256_header = fixture->signer.unsigned_payload = true;
    sign(fixture);
    assert_int_equal(verify(fixture), 0);
    fixture->request.body = SPAN("anything");
    assert_int_equal(verify(fixture), 0);
}

static void test_streamed_body_is_refused_with_a_reason(void **state)
{
    struct fixture *fixture = *state;

    fixture->signer.content_sha256_header = true;
    sign(fixture);
    header(fixture, "x-amz-content-sha256")->value = SPAN("STREAMING-AWS4-HMAC-SHA256-PAYLOAD");
    assert_refused(fixture, SIGV4_UNSUPPORTED, AWS_ERROR_INVALID_SIGNATURE,
                   "x-amz-content-sha256 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD' is not supported: send the SHA-256 of "
                   "the body or UNSIGNED-PAYLOAD.");
}

static void test_wrong_secret_does_not_match(void **state)
{
    struct fixture *fixture = *state;
    static const char text[] = "The request signature we calculated does not match the signature you provided. Check "
                               "your AWS Secret Access Key and signing method. Consult the service documentation for "
                               "details.";

    fixture->signer.secret_key = SPAN("guess");
    sign(fixture);
    assert_refused(fixture, SIGV4_MISMATCH, AWS_ERROR_INVALID_SIGNATURE, text);
}

static void test_short_or_long_signature_does_not_match(void **state)
{
    struct fixture *fixture = *state;
    struct span *value;

    sign(fixture);
    value = &header(fixture, "Authorization")->value;
    value->length--;
    assert_int_equal(verify(fixture), SIGV4_MISMATCH);
    value->length++;
    assert_int_equal(verify(fixture), 0);
    edit_authorization(fixture, "Signature=", "Signature=0");
    assert_int_equal(verify(fixture), SIGV4_MISMATCH);
}

static void test_signed_headers_must_be_sorted_and_distinct(void **state)
{
    struct fixture *fixture = *state;

    sign(fixture);
    edit_authorization(fixture, "host;x-amz-date", "host;host;x-amz-date");
    assert_refused(fixture, SIGV4_INCOMPLETE, AWS_ERROR_INCOMPLETE_SIGNATURE,
                   "SignedHeaders must be sorted, each named once, and at most 200: "
                   "'host;host;x-amz-date;x-amz-invocation-type'.");
}

/* --- accepting --------------------------------------------------------------------------------------------------- */

static void test_signed_request_tells_who_and_where(void **state)
{
    struct fixture *fixture = *state;

    sign(fixture);
    assert_int_equal(verify(fixture), 0);
    assert_ptr_equal(fixture->who, &long_lived);
    assert_false(fixture->authorization.presigned);
    assert_true(span_equal(fixture->authorization.access_key, SPAN("AKIDEXAMPLE")));
    assert_true(span_equal(fixture->authorization.date, SPAN("20260102")));
    assert_true(span_equal(fixture->authorization.service, SPAN("lambda")));
    assert_int_equal(fixture->lookups, 1);
}

static void test_separators_may_be_commas_alone(void **state)
{
    struct fixture *fixture = *state;

    sign(fixture);
    edit_authorization(fixture, ", SignedHeaders", ",SignedHeaders");
    edit_authorization(fixture, ", Signature", "  Signature");
    assert_int_equal(verify(fixture), 0);
}

/* As old clients sign: Date and no X-Amz-Date. The string to sign holds the basic form in any case. */
static void sign_with_date_alone(struct fixture *fixture)
{
    struct sha256 sha256 = {0};
    unsigned char signing_key[SHA256_BYTES], signature[SHA256_BYTES];
    char hex[SHA256_HEX_BYTES];
    struct span names, text;
    char *value;

    assert_int_equal(sha256_init(&sha256), 0);
    assert_int_equal(sha256_hex(&sha256, &fixture->request.body, 1, hex), 0);
    assert_int_equal(canonical_signed_headers(&fixture->request, &fixture->arena, &names), 0);
    assert_int_equal(
        canonical_request(&fixture->request, names, span_of(hex, 64), SIGV4_STANDARD, &fixture->arena, &text), 0);
    assert_int_equal(sha256_hex(&sha256, &text, 1, hex), 0);
    assert_int_equal(canonical_string_to_sign(SPAN("20260102T030405Z"), SPAN("20260102"), SPAN("us-east-1"),
                                              SPAN("lambda"), hex, &fixture->arena, &text),
                     0);
    assert_int_equal(canonical_signing_key(&sha256, fixture->signer.secret_key, SPAN("20260102"), SPAN("us-east-1"),
                                           SPAN("lambda"), &fixture->arena, signing_key),
                     0);
    assert_int_equal(sha256_hmac(&sha256, span_of((char *)signing_key, SHA256_BYTES), text, signature), 0);
    value = arena_printf(&fixture->arena,
                         "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260102/us-east-1/lambda/aws4_request, "
                         "SignedHeaders=%.*s, Signature=%s",
                         SPAN_ARG(names), hex_encode(signature, SHA256_BYTES, hex));
    add_header(fixture, "Authorization", span_from(value));
    sha256_deinit(&sha256);
}

static void test_date_header_serves_in_both_forms(void **state)
{
    struct fixture *fixture = *state;
    size_t headers;

    add_header(fixture, "Date", SPAN("20260102T030405Z"));
    headers = fixture->request.header_count;
    sign_with_date_alone(fixture);
    assert_int_equal(verify(fixture), 0);
    fixture->request.header_count = headers;
    header(fixture, "Date")->value = SPAN("Fri, 02 Jan 2026 03:04:05 GMT");
    sign_with_date_alone(fixture);
    assert_int_equal(verify(fixture), 0);
    assert_true(span_equal(fixture->authorization.timestamp, SPAN_NONE));
    header(fixture, "Date")->value = SPAN("Fri, 02 Jan 2026 03:59:05 GMT");
    assert_refused(fixture, SIGV4_NOT_YET, AWS_ERROR_INVALID_SIGNATURE,
                   "Signature not yet current: 20260102T035905Z is still later than 20260102T031905Z (20260102T030405Z "
                   "+ 15 min.)");
    header(fixture, "Date")->value = SPAN("Fri, 02 Foo 2026 03:04:05 GMT");
    assert_int_equal(verify(fixture), SIGV4_INCOMPLETE);
    header(fixture, "Date")->value = SPAN("Fri, 02 anF 2026 03:04:05 GMT");
    assert_int_equal(verify(fixture), SIGV4_INCOMPLETE);
}

static void test_plus_in_the_query_is_a_space(void **state)
{
    struct fixture *fixture = *state;

    fixture->request.query = SPAN("a=x%20y&List=ALL");
    sign(fixture);
    fixture->request.query = SPAN("a=x+y&List=ALL");
    assert_int_equal(verify(fixture), 0);
    fixture->request.query = SPAN("a=x%2By&List=ALL");
    assert_int_equal(verify(fixture), SIGV4_MISMATCH);
}

static void test_s3_paths_are_signed_as_they_travel(void **state)
{
    struct fixture *fixture = *state;

    fixture->request.path = SPAN("/bucket//a%20b/./c");
    fixture->signer.flavour = SIGV4_S3;
    fixture->signer.service = fixture->policy.service = SPAN("s3");
    sign(fixture);
    assert_int_equal(verify(fixture), SIGV4_MISMATCH);
    fixture->policy.flavour = SIGV4_S3;
    assert_int_equal(verify(fixture), 0);
}

/* The worked example of the Amazon S3 API Reference, "Signature Calculations for the Authorization Header". */
static void test_s3_example_of_the_documentation(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(clock_parse_amz(SPAN("20130524T000000Z"), &fixture->signed_ns), 0);
    fixture->signer = (struct sigv4_signer){
        .access_key = SPAN("AKIAIOSFODNN7EXAMPLE"),
        .secret_key = SPAN("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
        .region = SPAN("us-east-1"),
        .service = SPAN("s3"),
        .flavour = SIGV4_S3,
        .content_sha256_header = true,
    };
    fixture->request.method = SPAN("GET");
    fixture->request.path = SPAN("/test.txt");
    fixture->request.query = fixture->request.body = SPAN_NONE;
    fixture->headers[0].value = SPAN("examplebucket.s3.amazonaws.com");
    fixture->headers[1] = (struct sigv4_header){SPAN("Range"), SPAN("bytes=0-9")};
    sign(fixture);
    assert_true(span_ends_with(header(fixture, "Authorization")->value,
                               SPAN("SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, "
                                    "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41")));
}

/* --- presigned --------------------------------------------------------------------------------------------------- */

static void presign(struct fixture *fixture, unsigned expires_s)
{
    fixture->request.method = SPAN("GET");
    fixture->request.body = SPAN_NONE;
    fixture->request.header_count = 1;
    assert_int_equal(sigv4_presign(&fixture->signer, &fixture->request, fixture->signed_ns, expires_s, &fixture->arena,
                                   &fixture->request.query),
                     0);
}

/* The worked example of the Amazon S3 API Reference, "Authenticating Requests: Using Query Parameters". */
static void test_presigned_example_of_the_documentation(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(clock_parse_amz(SPAN("20130524T000000Z"), &fixture->signed_ns), 0);
    fixture->signer = (struct sigv4_signer){
        .access_key = SPAN("AKIAIOSFODNN7EXAMPLE"),
        .secret_key = SPAN("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
        .region = SPAN("us-east-1"),
        .service = SPAN("s3"),
        .flavour = SIGV4_S3,
        .unsigned_payload = true,
    };
    fixture->request.path = SPAN("/test.txt");
    fixture->request.query = SPAN_NONE;
    fixture->headers[0].value = SPAN("examplebucket.s3.amazonaws.com");
    presign(fixture, 86400);
    assert_true(
        span_ends_with(fixture->request.query,
                       SPAN("&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404")));
}

static void test_presigned_request_lives_as_long_as_it_says(void **state)
{
    struct fixture *fixture = *state;

    use(fixture, &temporary);
    presign(fixture, 604800);
    assert_int_equal(verify(fixture), 0);
    assert_true(fixture->authorization.presigned);
    assert_true(span_equal(fixture->authorization.session_token, SPAN("the/token==")));
    fixture->now_ns = fixture->signed_ns + 604800 * NS_PER_S;
    assert_int_equal(verify(fixture), 0);
    fixture->now_ns += NS_PER_S;
    assert_refused(fixture, SIGV4_EXPIRED, AWS_ERROR_INVALID_SIGNATURE,
                   "Signature expired: 20260102T030405Z is now earlier than 20260102T030406Z (20260109T030406Z - 10080 "
                   "min.)");
}

static void test_expiry_in_seconds_is_told_in_seconds(void **state)
{
    struct fixture *fixture = *state;

    presign(fixture, 1);
    assert_int_equal(verify(fixture), 0);
    fixture->now_ns += 2 * NS_PER_S;
    assert_refused(fixture, SIGV4_EXPIRED, AWS_ERROR_INVALID_SIGNATURE,
                   "Signature expired: 20260102T030405Z is now earlier than 20260102T030406Z (20260102T030407Z - 1 "
                   "sec.)");
}

static void test_expiry_limits_hold(void **state)
{
    struct fixture *fixture = *state;
    struct span query;

    fixture->request.header_count = 1;
    assert_int_equal(sigv4_presign(&fixture->signer, &fixture->request, 0, 0, &fixture->arena, &query), -EINVAL);
    assert_int_equal(sigv4_presign(&fixture->signer, &fixture->request, 0, 604801, &fixture->arena, &query), -EINVAL);
    fixture->request.query = SPAN("X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIDEXAMPLE%2F20260102%2Fus-east-"
                                  "1%2Flambda%2Faws4_request&X-Amz-Date=20260102T030405Z&X-Amz-SignedHeaders=host&X-"
                                  "Amz-Signature=00&X-Amz-Expires=604801");
    assert_refused(fixture, SIGV4_INCOMPLETE, AWS_ERROR_INCOMPLETE_SIGNATURE,
                   "X-Amz-Expires must be greater than 0 and less than a week (in seconds); that is, the given "
                   "X-Amz-Expires must be at most 604800 seconds");
    fixture->request.query.length -= 6;
    assert_refused(fixture, SIGV4_INCOMPLETE, AWS_ERROR_INCOMPLETE_SIGNATURE,
                   "AWS query-string parameters must include 'X-Amz-Expires'. Re-examine the query-string parameters.");
}

static void test_expiry_must_be_a_number(void **state)
{
    struct fixture *fixture = *state;

    fixture->request.query = SPAN("X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIDEXAMPLE%2F20260102%2Fus-east-"
                                  "1%2Flambda%2Faws4_request&X-Amz-Date=20260102T030405Z&X-Amz-SignedHeaders=host&X-"
                                  "Amz-Signature=00&X-Amz-Expires=-1");
    assert_refused(fixture, SIGV4_INCOMPLETE, AWS_ERROR_INCOMPLETE_SIGNATURE, "X-Amz-Expires should be a number");
}

static void test_missing_query_parameters_are_named(void **state)
{
    struct fixture *fixture = *state;

    fixture->request.query = SPAN("X-Amz-Signature=00");
    assert_refused(fixture, SIGV4_INCOMPLETE, AWS_ERROR_INCOMPLETE_SIGNATURE,
                   "AWS query-string parameters must include 'X-Amz-Algorithm'. AWS query-string parameters must "
                   "include 'X-Amz-Credential'. AWS query-string parameters must include 'X-Amz-SignedHeaders'. AWS "
                   "query-string parameters must include 'X-Amz-Date'. AWS query-string parameters must include "
                   "'X-Amz-Expires'. Re-examine the query-string parameters.");
}

static void test_changed_presigned_query_does_not_match(void **state)
{
    struct fixture *fixture = *state;
    char *query;

    presign(fixture, 60);
    query = arena_printf(&fixture->arena, "%.*s&Qualifier=other", SPAN_ARG(fixture->request.query));
    fixture->request.query = span_from(query);
    assert_int_equal(verify(fixture), SIGV4_MISMATCH);
}

/* --- reading without checking ------------------------------------------------------------------------------------ */

static void test_reading_takes_what_there_is(void **state)
{
    struct fixture *fixture = *state;
    struct sigv4_authorization authorization;

    assert_int_equal(sigv4_parse(&fixture->request, &fixture->arena, &authorization), SIGV4_MISSING);
    assert_true(span_equal(authorization.region, SPAN_NONE));
    add_header(fixture, "authorization",
               SPAN("AWS4-HMAC-SHA256 Credential=111122223333/20260102/eu-west-1/lambda/aws4_request"));
    assert_int_equal(sigv4_parse(&fixture->request, &fixture->arena, &authorization), SIGV4_INCOMPLETE);
    assert_true(span_equal(authorization.access_key, SPAN("111122223333")));
    assert_true(span_equal(authorization.region, SPAN("eu-west-1")));
    assert_true(span_equal(authorization.service, SPAN("lambda")));
    set_authorization(fixture, "Basic =");
    assert_int_equal(sigv4_parse(&fixture->request, &fixture->arena, &authorization), SIGV4_INCOMPLETE);
    assert_true(span_equal(authorization.region, SPAN_NONE));
}

static void test_reading_survives_a_bad_query(void **state)
{
    struct fixture *fixture = *state;
    struct sigv4_authorization authorization;

    fixture->request.query = SPAN("X-Amz-Credential=%zz");
    assert_int_equal(sigv4_parse(&fixture->request, &fixture->arena, &authorization), SIGV4_INCOMPLETE);
    assert_true(authorization.presigned);
    assert_true(span_equal(authorization.access_key, SPAN_NONE));
}

/* --- kept keys --------------------------------------------------------------------------------------------------- */

static void test_kept_keys_do_not_mix(void **state)
{
    struct fixture *fixture = *state;
    static const char *const regions[] = {"us-east-1", "us-east-2", "us-west-1", "us-west-2", "eu-west-1", "us-east-1"};
    struct sigv4_verifier *verifier;
    size_t headers = fixture->request.header_count;
    char *secret = strdup("first");
    const char *before = long_lived.secret_key;

    fixture->policy.region = SPAN_NONE;
    long_lived.secret_key = secret;
    use(fixture, &long_lived);
    assert_int_equal(sigv4_verifier_new(&fixture->policy, 2, &verifier), 0); /* fewer than the Regions */
    for (size_t i = 0; i < 2 * ARRAY_SIZE(regions); i++) {
        fixture->request.header_count = headers;
        fixture->signer.region = span_from(regions[i % ARRAY_SIZE(regions)]);
        sign(fixture);
        assert_int_equal(sigv4_verify(verifier, &fixture->request, fixture->now_ns, &fixture->arena,
                                      &fixture->authorization, NULL, &fixture->error),
                         0);
    }
    /* The same scope, another secret: the kept key must not serve. */
    memcpy(secret, "other", 5);
    assert_int_equal(sigv4_verify(verifier, &fixture->request, fixture->now_ns, &fixture->arena,
                                  &fixture->authorization, NULL, &fixture->error),
                     SIGV4_MISMATCH);
    long_lived.secret_key = before;
    free(secret);
    sigv4_verifier_free(verifier);
}

static void test_signing_needs_a_host(void **state)
{
    struct fixture *fixture = *state;
    struct sigv4_header added[SIGV4_SIGNED_HEADERS];
    size_t count;

    fixture->headers[0].name = SPAN("Hoist");
    assert_int_equal(sigv4_sign(&fixture->signer, &fixture->request, 0, &fixture->arena, added, &count), -EINVAL);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_unsigned_request_is_missing_its_token),
        CASE(test_other_amz_parameters_are_no_signature),
        CASE(test_foreign_authorization_names_all_it_lacks),
        CASE(test_pair_without_equal_sign_is_quoted),
        CASE(test_each_missing_part_is_named),
        CASE(test_credential_must_have_five_parts),
        CASE(test_other_algorithms_are_unsupported),
        CASE(test_unknown_access_key_is_an_unrecognized_client),
        CASE(test_session_token_must_be_the_keys_own),
        CASE(test_long_lived_key_takes_no_token),
        CASE(test_date_must_be_there_and_basic),
        CASE(test_scope_must_fit),
        CASE(test_any_region_and_service_pass_when_none_is_asked_for),
        CASE(test_old_signature_is_expired),
        CASE(test_future_signature_is_not_yet_current),
        CASE(test_allowed_skew_can_be_set),
        CASE(test_host_must_be_signed),
        CASE(test_amz_header_added_on_the_way_is_refused),
        CASE(test_trace_header_added_on_the_way_is_allowed),
        CASE(test_declared_body_hash_must_be_true),
        CASE(test_known_body_hash_is_not_computed_again),
        CASE(test_unsigned_payload_takes_any_body),
        CASE(test_streamed_body_is_refused_with_a_reason),
        CASE(test_wrong_secret_does_not_match),
        CASE(test_short_or_long_signature_does_not_match),
        CASE(test_signed_headers_must_be_sorted_and_distinct),
        CASE(test_signed_request_tells_who_and_where),
        CASE(test_separators_may_be_commas_alone),
        CASE(test_date_header_serves_in_both_forms),
        CASE(test_plus_in_the_query_is_a_space),
        CASE(test_s3_paths_are_signed_as_they_travel),
        CASE(test_s3_example_of_the_documentation),
        CASE(test_presigned_example_of_the_documentation),
        CASE(test_presigned_request_lives_as_long_as_it_says),
        CASE(test_expiry_in_seconds_is_told_in_seconds),
        CASE(test_expiry_limits_hold),
        CASE(test_expiry_must_be_a_number),
        CASE(test_missing_query_parameters_are_named),
        CASE(test_changed_presigned_query_does_not_match),
        CASE(test_reading_takes_what_there_is),
        CASE(test_reading_survives_a_bad_query),
        CASE(test_kept_keys_do_not_mix),
        CASE(test_signing_needs_a_host),
    };

    return cmocka_run_group_tests_name("sigv4", tests, NULL, NULL);
}
