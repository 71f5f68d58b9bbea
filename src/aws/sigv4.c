/*
 * Checking goes from cheap to dear: form, key, scope, time, what was signed, the body's hash, and last the signature
 * itself. The texts are the services' own; those for the query form and the scope are quoted from public reports.
 *
 * A signing key depends on secret, day, Region and service only. Making one costs four HMACs; the verifier keeps those
 * it has made, so that a check costs three hashes: the canonical request, and the two of one HMAC.
 */
#include "aws/sigv4.h"

#include "aws/canonical.h"
#include "aws/sha256.h"
#include "aws/uri.h"
#include "base/clock.h"
#include "base/encode.h"

#include <openssl/crypto.h>

static const struct span algorithm_name = {"AWS4-HMAC-SHA256", 16};
static const struct span terminator_name = {"aws4_request", 12};

/* --- reading ----------------------------------------------------------------------------------------------------- */

/* KEY/20260102/us-east-1/lambda/aws4_request: fills the parts only when there are exactly five. */
static void split_credential(struct span credential, struct sigv4_authorization *authorization)
{
    struct span parts[5];
    struct span rest = credential;

    authorization->credential = credential;
    for (size_t i = 0; i < 5; i++) {
        if (!rest.data)
            return;
        parts[i] = span_cut(&rest, '/');
    }
    if (rest.data)
        return;
    authorization->access_key = parts[0];
    authorization->date = parts[1];
    authorization->region = parts[2];
    authorization->service = parts[3];
    authorization->terminator = parts[4];
}

static void read_pair(struct span pair, struct sigv4_authorization *authorization)
{
    struct span value = pair;
    struct span key = span_cut(&value, '=');

    if (!value.data) {
        if (!authorization->odd_pair.data)
            authorization->odd_pair = pair;
    } else if (span_equal(key, SPAN("Credential"))) {
        split_credential(value, authorization);
    } else if (span_equal(key, SPAN("SignedHeaders"))) {
        authorization->signed_headers = value;
    } else if (span_equal(key, SPAN("Signature"))) {
        authorization->signature = value;
    }
}

/* ALGORITHM key=value, key=value ... with blanks, commas or both between the pairs. */
static void read_authorization_header(const struct sigv4_request *request, struct span header,
                                      struct sigv4_authorization *authorization)
{
    struct span rest = span_trim(header);

    authorization->header = header;
    authorization->algorithm = span_cut(&rest, ' ');
    while (rest.data) {
        struct span piece = span_cut(&rest, ',');
        while (piece.data) {
            struct span pair = span_cut(&piece, ' ');
            if (pair.length)
                read_pair(pair, authorization);
        }
    }
    canonical_header(request, SPAN("X-Amz-Date"), &authorization->timestamp);
    canonical_header(request, SPAN("X-Amz-Security-Token"), &authorization->session_token);
}

static void read_query(const struct uri_query *query, struct sigv4_authorization *authorization)
{
    struct span credential = SPAN_NONE;

    uri_query_get(query, SPAN("X-Amz-Algorithm"), &authorization->algorithm);
    uri_query_get(query, SPAN("X-Amz-Date"), &authorization->timestamp);
    uri_query_get(query, SPAN("X-Amz-Expires"), &authorization->expires);
    uri_query_get(query, SPAN("X-Amz-SignedHeaders"), &authorization->signed_headers);
    uri_query_get(query, SPAN("X-Amz-Signature"), &authorization->signature);
    uri_query_get(query, SPAN("X-Amz-Security-Token"), &authorization->session_token);
    if (uri_query_get(query, SPAN("X-Amz-Credential"), &credential))
        split_credential(credential, authorization);
}

static bool is_complete(const struct sigv4_authorization *authorization)
{
    if (authorization->odd_pair.data || !span_equal(authorization->algorithm, algorithm_name))
        return false;
    if (authorization->presigned && (!authorization->timestamp.length || !authorization->expires.length))
        return false;
    return authorization->access_key.length && authorization->signed_headers.length && authorization->signature.length;
}

int sigv4_parse(const struct sigv4_request *request, struct arena *arena, struct sigv4_authorization *ret_authorization)
{
    struct sigv4_authorization authorization = {0};
    struct uri_query query = {0};
    struct span header = SPAN_NONE;
    int r;

    *ret_authorization = authorization;
    if (canonical_header(request, SPAN("Authorization"), &header) && header.length) {
        read_authorization_header(request, header, &authorization);
    } else if (span_find_span(request->query, SPAN("X-Amz-")) >= 0) {
        r = uri_query_parse(arena, request->query, &query);
        if (r == -ENOMEM)
            return r;
        authorization.presigned = true;
        if (r == 0)
            read_query(&query, &authorization);
        if (r == 0 && !authorization.algorithm.data && !authorization.credential.data && !authorization.signature.data)
            return SIGV4_MISSING;
    } else {
        return SIGV4_MISSING;
    }
    *ret_authorization = authorization;
    return is_complete(&authorization) ? 0 : SIGV4_INCOMPLETE;
}

/* --- the verifier and its keys ----------------------------------------------------------------------------------- */

enum {
    KEYS_DEFAULT = 256,
    SCOPE_BYTES = 256, /* access key, date, Region and service together; longer ones are not kept */
    SECRET_BYTES = 128,
    SKEW_MINUTES_DEFAULT = 15,
    EXPIRES_MAXIMUM_S = 604800,
};

/* One signing key and what it was made of. */
struct signing_key {
    uint64_t hash; /* of the scope text */
    uint64_t used; /* tick of the last use; 0: free */
    unsigned char key[SHA256_BYTES];
    unsigned short scope_length, secret_length;
    char scope[SCOPE_BYTES];
    char secret[SECRET_BYTES]; /* a key whose secret was changed is another key */
};

struct sigv4_verifier {
    struct sigv4_policy policy;
    struct sha256 sha256;
    size_t capacity;
    uint64_t tick;
    struct signing_key keys[];
};

int sigv4_verifier_new(const struct sigv4_policy *policy, size_t keys, struct sigv4_verifier **ret_verifier)
{
    struct sigv4_verifier *verifier;
    size_t capacity = keys ? keys : KEYS_DEFAULT;
    int r;

    verifier = calloc(1, sizeof(*verifier) + capacity * sizeof(verifier->keys[0]));
    if (!verifier)
        return -ENOMEM;
    verifier->policy = *policy;
    verifier->capacity = capacity;
    if (!verifier->policy.skew_minutes)
        verifier->policy.skew_minutes = SKEW_MINUTES_DEFAULT;
    r = sha256_init(&verifier->sha256);
    if (r < 0) {
        free(verifier);
        return r;
    }
    *ret_verifier = verifier;
    return 0;
}

struct sigv4_verifier *sigv4_verifier_free(struct sigv4_verifier *verifier)
{
    if (!verifier)
        return NULL;
    sha256_deinit(&verifier->sha256);
    OPENSSL_cleanse(verifier->keys, verifier->capacity * sizeof(verifier->keys[0]));
    free(verifier);
    return NULL;
}

static uint64_t hash_text(struct span text)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (size_t i = 0; i < text.length; i++)
        hash = (hash ^ (unsigned char)text.data[i]) * 0x100000001b3u;
    return hash;
}

static bool key_is(const struct signing_key *key, uint64_t hash, struct span scope, struct span secret)
{
    return key->used && key->hash == hash && span_equal(span_of(key->scope, key->scope_length), scope) &&
           span_equal(span_of(key->secret, key->secret_length), secret);
}

/* The key of that scope, or the place for it: a free one, else the one unused for longest. */
static struct signing_key *find_key(struct sigv4_verifier *verifier, uint64_t hash, struct span scope,
                                    struct span secret, bool *ret_found)
{
    struct signing_key *oldest = &verifier->keys[0];

    for (size_t i = 0; i < verifier->capacity; i++) {
        struct signing_key *key = &verifier->keys[i];
        if (key_is(key, hash, scope, secret)) {
            *ret_found = true;
            return key;
        }
        if (key->used < oldest->used)
            oldest = key;
    }
    *ret_found = false;
    return oldest;
}

static int signing_key(struct sigv4_verifier *verifier, const struct sigv4_authorization *authorization,
                       struct span secret, struct arena *arena, unsigned char ret_key[SHA256_BYTES])
{
    /* The scope's parts lie side by side in the credential. */
    struct span scope = span_slice(authorization->credential, 0,
                                   authorization->credential.length - authorization->terminator.length - 1);
    bool cacheable = scope.length <= SCOPE_BYTES && secret.length <= SECRET_BYTES;
    uint64_t hash = hash_text(scope);
    struct signing_key *key;
    bool found;
    int r;

    key = cacheable ? find_key(verifier, hash, scope, secret, &found) : NULL;
    if (key && found) {
        key->used = ++verifier->tick;
        memcpy(ret_key, key->key, SHA256_BYTES);
        return 0;
    }
    r = canonical_signing_key(&verifier->sha256, secret, authorization->date, authorization->region,
                              authorization->service, arena, ret_key);
    if (r < 0 || !key)
        return r;
    key->hash = hash;
    key->used = ++verifier->tick;
    key->scope_length = (unsigned short)scope.length;
    key->secret_length = (unsigned short)secret.length;
    memcpy(key->scope, scope.data, scope.length);
    memcpy(key->secret, secret.data, secret.length);
    memcpy(key->key, ret_key, SHA256_BYTES);
    return 0;
}

/* --- checking ---------------------------------------------------------------------------------------------------- */

/* One check under way. */
struct check {
    struct sigv4_verifier *verifier;
    const struct sigv4_request *request;
    const struct sigv4_authorization *authorization;
    const struct credential *credential;
    struct arena *arena;
    struct aws_error *error;
    int64_t now_wall_ns;
    int64_t signed_wall_ns;
    char timestamp[CLOCK_ISO_BYTES]; /* of the signature, in the basic form */
};

/* Sets the error and gives the outcome back. */
static int PRINTF_LIKE(4, 5)
    refuse(struct check *check, enum sigv4_outcome outcome, enum aws_error_class error_class, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    aws_error_vset(check->error, error_class, format, args);
    va_end(args);
    return outcome;
}

/* What is not there, each as a sentence of its own. */
static int refuse_incomplete_query(struct check *check)
{
    const struct sigv4_authorization *authorization = check->authorization;
    static const char sentence[] = "AWS query-string parameters must include '%s'. ";
    struct buffer CLEANUP(buffer_deinit) text = BUFFER_INIT;
    int r = 0;

    if (!authorization->algorithm.length)
        r = buffer_printf(&text, sentence, "X-Amz-Algorithm");
    if (r == 0 && !authorization->credential.length)
        r = buffer_printf(&text, sentence, "X-Amz-Credential");
    if (r == 0 && !authorization->signature.length)
        r = buffer_printf(&text, sentence, "X-Amz-Signature");
    if (r == 0 && !authorization->signed_headers.length)
        r = buffer_printf(&text, sentence, "X-Amz-SignedHeaders");
    if (r == 0 && !authorization->timestamp.length)
        r = buffer_printf(&text, sentence, "X-Amz-Date");
    if (r == 0 && !authorization->expires.length)
        r = buffer_printf(&text, sentence, "X-Amz-Expires");
    if (r < 0)
        return r;
    return refuse(check, SIGV4_INCOMPLETE, AWS_ERROR_INCOMPLETE_SIGNATURE,
                  "%.*sRe-examine the query-string parameters.", SPAN_ARG(buffer_span(&text)));
}

static int refuse_incomplete_header(struct check *check)
{
    const struct sigv4_authorization *authorization = check->authorization;
    static const char sentence[] = "Authorization header requires '%s' parameter. ";
    struct buffer CLEANUP(buffer_deinit) text = BUFFER_INIT;
    bool dated = authorization->timestamp.length || canonical_header(check->request, SPAN("Date"), NULL);
    int r = 0;

    if (!authorization->credential.length)
        r = buffer_printf(&text, sentence, "Credential");
    if (r == 0 && !authorization->signature.length)
        r = buffer_printf(&text, sentence, "Signature");
    if (r == 0 && !authorization->signed_headers.length)
        r = buffer_printf(&text, sentence, "SignedHeaders");
    if (r == 0 && !dated)
        r = buffer_append_span(&text, SPAN("Authorization header requires existence of either a 'X-Amz-Date' or a "
                                           "'Date' header. "));
    if (r < 0)
        return r;
    return refuse(check, SIGV4_INCOMPLETE, AWS_ERROR_INCOMPLETE_SIGNATURE, "%.*sAuthorization=%.*s",
                  SPAN_ARG(buffer_span(&text)), SPAN_ARG(authorization->header));
}

static bool lacks_parameter(const struct sigv4_authorization *authorization)
{
    return !authorization->algorithm.length || !authorization->credential.length || !authorization->signature.length ||
           !authorization->signed_headers.length || !authorization->timestamp.length || !authorization->expires.length;
}

/* All parts are there and of the right form, but for the time. */
static int check_form(struct check *check)
{
    const struct sigv4_authorization *authorization = check->authorization;

    if (authorization->odd_pair.data) {
        return refuse(check, SIGV4_INCOMPLETE, AWS_ERROR_INCOMPLETE_SIGNATURE,
                      "'%.*s' not a valid key=value pair (missing equal-sign) in Authorization header: '%.*s'.",
                      SPAN_ARG(authorization->odd_pair), SPAN_ARG(authorization->header));
    }
    if (authorization->presigned && lacks_parameter(authorization))
        return refuse_incomplete_query(check);
    if (!authorization->credential.length || !authorization->signature.length || !authorization->signed_headers.length)
        return refuse_incomplete_header(check);
    if (!span_equal(authorization->algorithm, algorithm_name))
        return refuse(check, SIGV4_UNSUPPORTED, AWS_ERROR_INCOMPLETE_SIGNATURE, "Unsupported AWS 'algorithm': '%.*s'.",
                      SPAN_ARG(authorization->algorithm));
    if (!authorization->access_key.length) {
        return refuse(check, SIGV4_INCOMPLETE, AWS_ERROR_INCOMPLETE_SIGNATURE,
                      "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, "
                      "got '%.*s'",
                      SPAN_ARG(authorization->credential));
    }
    return 0;
}

static int check_key(struct check *check)
{
    const struct sigv4_policy *policy = &check->verifier->policy;
    const struct credential *credential = policy->find(policy->context, check->authorization->access_key);
    struct span token = check->authorization->session_token;
    static const char text[] = "The security token included in the request is invalid.";

    if (!credential) {
        return refuse(check, SIGV4_UNKNOWN_KEY, AWS_ERROR_UNRECOGNIZED_CLIENT, text);
    }
    if (token.length != span_from(credential->session_token).length ||
        (token.length && CRYPTO_memcmp(token.data, credential->session_token, token.length) != 0)) {
        return refuse(check, SIGV4_BAD_TOKEN, AWS_ERROR_UNRECOGNIZED_CLIENT, text);
    }
    check->credential = credential;
    return 0;
}

/* "Fri, 02 Jan 2026 03:04:05 GMT" (RFC 9110, IMF-fixdate) as "20260102T030405Z". */
static bool basic_form_of_http_date(struct span date, char text[CLOCK_ISO_BYTES])
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    const char *d = date.data;
    ptrdiff_t month;

    if (date.length != 29 || d[3] != ',' || !span_ends_with(date, SPAN(" GMT")))
        return false;
    month = span_find_span(span_from(months), span_slice(date, 8, 11));
    if (month < 0 || month % 3)
        return false;
    month = month / 3 + 1;
    memcpy(text, d + 12, 4);
    text[4] = (char)('0' + month / 10);
    text[5] = (char)('0' + month % 10);
    memcpy(text + 6, d + 5, 2);
    text[8] = 'T';
    memcpy(text + 9, d + 17, 2);
    memcpy(text + 11, d + 20, 2);
    memcpy(text + 13, d + 23, 2);
    memcpy(text + 15, "Z", 2);
    return true;
}

/* Finds out when it was signed: X-Amz-Date, else Date in either form. */
static int check_timestamp(struct check *check)
{
    struct span sent = check->authorization->timestamp;
    struct span basic;

    if (!sent.length && !canonical_header(check->request, SPAN("Date"), &sent))
        return refuse_incomplete_header(check);
    sent = span_trim(sent);
    basic = sent;
    if (basic_form_of_http_date(sent, check->timestamp))
        basic = span_of(check->timestamp, 16);
    if (clock_parse_amz(basic, &check->signed_wall_ns) < 0) {
        return refuse(check, SIGV4_INCOMPLETE, AWS_ERROR_INCOMPLETE_SIGNATURE,
                      "Date must be in ISO-8601 'basic format'. Got '%.*s'. See http://en.wikipedia.org/wiki/ISO_8601",
                      SPAN_ARG(sent));
    }
    memmove(check->timestamp, basic.data, 16);
    check->timestamp[16] = '\0';
    return 0;
}

static int check_scope(struct check *check)
{
    const struct sigv4_authorization *authorization = check->authorization;
    const struct sigv4_policy *policy = &check->verifier->policy;

    if (!span_equal(authorization->terminator, terminator_name))
        return refuse(check, SIGV4_BAD_SCOPE, AWS_ERROR_INVALID_SIGNATURE,
                      "Credential should be scoped with a valid terminator: 'aws4_request', not '%.*s'.",
                      SPAN_ARG(authorization->terminator));
    if (policy->region.length && !span_equal(authorization->region, policy->region))
        return refuse(check, SIGV4_BAD_SCOPE, AWS_ERROR_INVALID_SIGNATURE,
                      "Credential should be scoped to a valid region, not '%.*s'. ", SPAN_ARG(authorization->region));
    if (policy->service.length && !span_equal(authorization->service, policy->service))
        return refuse(check, SIGV4_BAD_SCOPE, AWS_ERROR_INVALID_SIGNATURE,
                      "Credential should be scoped to correct service: '%.*s'. ", SPAN_ARG(policy->service));
    if (!span_equal(authorization->date, span_of(check->timestamp, 8)))
        return refuse(check, SIGV4_BAD_SCOPE, AWS_ERROR_INVALID_SIGNATURE,
                      "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: "
                      "'%.*s' != '%.8s', from '%s'.",
                      SPAN_ARG(authorization->date), check->timestamp, check->timestamp);
    return 0;
}

static int refuse_expired(struct check *check, int64_t allowed_s)
{
    char now[CLOCK_ISO_BYTES], limit[CLOCK_ISO_BYTES];
    bool minutes = allowed_s % 60 == 0;

    return refuse(check, SIGV4_EXPIRED, AWS_ERROR_INVALID_SIGNATURE,
                  "Signature expired: %s is now earlier than %s (%s - %lld %s.)", check->timestamp,
                  clock_format_amz(check->now_wall_ns - allowed_s * NS_PER_S, limit),
                  clock_format_amz(check->now_wall_ns, now), (long long)(minutes ? allowed_s / 60 : allowed_s),
                  minutes ? "min" : "sec");
}

static int check_expires(struct check *check, uint64_t *ret_seconds)
{
    struct span expires = check->authorization->expires;

    if (span_to_u64(expires, UINT64_MAX, ret_seconds) == -EINVAL)
        return refuse(check, SIGV4_INCOMPLETE, AWS_ERROR_INCOMPLETE_SIGNATURE, "X-Amz-Expires should be a number");
    if (*ret_seconds == 0 || *ret_seconds > EXPIRES_MAXIMUM_S)
        return refuse(check, SIGV4_INCOMPLETE, AWS_ERROR_INCOMPLETE_SIGNATURE,
                      "X-Amz-Expires must be greater than 0 and less than a week (in seconds); that is, the given "
                      "X-Amz-Expires must be at most %d seconds",
                      EXPIRES_MAXIMUM_S);
    return 0;
}

static int check_time(struct check *check)
{
    unsigned skew_minutes = check->verifier->policy.skew_minutes;
    uint64_t allowed_s = skew_minutes * UINT64_C(60);
    int64_t skew_ns = (int64_t)allowed_s * NS_PER_S;
    char now[CLOCK_ISO_BYTES], limit[CLOCK_ISO_BYTES];
    int r;

    if (check->authorization->presigned) {
        r = check_expires(check, &allowed_s);
        if (r)
            return r;
    }
    if (check->signed_wall_ns < check->now_wall_ns - (int64_t)allowed_s * NS_PER_S)
        return refuse_expired(check, (int64_t)allowed_s);
    if (check->signed_wall_ns > check->now_wall_ns + skew_ns)
        return refuse(check, SIGV4_NOT_YET, AWS_ERROR_INVALID_SIGNATURE,
                      "Signature not yet current: %s is still later than %s (%s + %u min.)", check->timestamp,
                      clock_format_amz(check->now_wall_ns + skew_ns, limit), clock_format_amz(check->now_wall_ns, now),
                      skew_minutes);
    return 0;
}

static bool is_signed(const struct check *check, struct span name)
{
    struct span names = check->authorization->signed_headers;

    while (names.data)
        if (span_equal_nocase(span_cut(&names, ';'), name))
            return true;
    return false;
}

static bool must_be_signed(struct span name)
{
    return name.length > 6 && span_equal_nocase(span_slice(name, 0, 6), SPAN("x-amz-"));
}

static int check_signed_headers(struct check *check)
{
    const struct sigv4_request *request = check->request;

    if (!is_signed(check, SPAN("host")))
        return refuse(check, SIGV4_UNSIGNED, AWS_ERROR_INVALID_SIGNATURE,
                      "'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization.");
    for (size_t i = 0; i < request->header_count && !check->verifier->policy.unsigned_headers_allowed; i++) {
        struct span name = request->headers[i].name;
        if (must_be_signed(name) && !is_signed(check, name))
            return refuse(check, SIGV4_UNSIGNED, AWS_ERROR_INVALID_SIGNATURE,
                          "'%.*s' must be a 'SignedHeader' in the AWS Authorization.", SPAN_ARG(name));
    }
    return 0;
}

static bool is_hash(struct span text)
{
    for (size_t i = 0; i < text.length; i++)
        if (!((text.data[i] >= '0' && text.data[i] <= '9') || (text.data[i] >= 'a' && text.data[i] <= 'f')))
            return false;
    return text.length == 2 * SHA256_BYTES;
}

static int body_hash(struct check *check, struct span *ret_hash)
{
    char *hex;
    int r;

    if (check->request->body_sha256.length) {
        *ret_hash = check->request->body_sha256;
        return 0;
    }
    hex = arena_alloc(check->arena, SHA256_HEX_BYTES);
    if (!hex)
        return -ENOMEM;
    r = sha256_hex(&check->verifier->sha256, &check->request->body, 1, hex);
    *ret_hash = span_of(hex, SHA256_HEX_BYTES - 1);
    return r;
}

/* What stands for the body in the canonical request: the declared hash if it is true, else the computed one. */
static int check_body(struct check *check, struct span *ret_hash)
{
    struct span declared = SPAN_NONE;
    int r;

    canonical_header(check->request, SPAN("x-amz-content-sha256"), &declared);
    declared = span_trim(declared);
    if (!declared.length && check->authorization->presigned && check->verifier->policy.flavour == SIGV4_S3)
        declared = SPAN("UNSIGNED-PAYLOAD");
    if (span_equal(declared, SPAN("UNSIGNED-PAYLOAD"))) {
        *ret_hash = declared;
        return 0;
    }
    if (span_starts_with(declared, SPAN("STREAMING-")))
        return refuse(check, SIGV4_UNSUPPORTED, AWS_ERROR_INVALID_SIGNATURE,
                      "x-amz-content-sha256 '%.*s' is not supported: send the SHA-256 of the body or "
                      "UNSIGNED-PAYLOAD.",
                      SPAN_ARG(declared));
    if (declared.length && !is_hash(declared))
        return refuse(check, SIGV4_BAD_BODY_HASH, AWS_ERROR_INVALID_SIGNATURE,
                      "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, or a valid sha256 value.");
    r = body_hash(check, ret_hash);
    if (r == 0 && declared.length && !span_equal(declared, *ret_hash))
        return refuse(check, SIGV4_BAD_BODY_HASH, AWS_ERROR_INVALID_SIGNATURE,
                      "The provided 'x-amz-content-sha256' header does not match what was computed.");
    return r;
}

/* The signature that the request should have, as hex. */
static int expected_signature(struct check *check, struct span payload_hash, char hex[SHA256_HEX_BYTES])
{
    const struct sigv4_authorization *authorization = check->authorization;
    struct sha256 *sha256 = &check->verifier->sha256;
    unsigned char key[SHA256_BYTES], signature[SHA256_BYTES];
    struct span text;
    int r;

    r = canonical_request(check->request, authorization->signed_headers, payload_hash, check->verifier->policy.flavour,
                          check->arena, &text);
    if (r == 0)
        r = sha256_hex(sha256, &text, 1, hex);
    if (r == 0)
        r = canonical_string_to_sign(span_of(check->timestamp, 16), authorization->date, authorization->region,
                                     authorization->service, hex, check->arena, &text);
    if (r == 0)
        r = signing_key(check->verifier, authorization, span_from(check->credential->secret_key), check->arena, key);
    if (r == 0)
        r = sha256_hmac(sha256, span_of((char *)key, sizeof(key)), text, signature);
    OPENSSL_cleanse(key, sizeof(key));
    if (r == 0)
        hex_encode(signature, sizeof(signature), hex);
    return r;
}

static int check_signature(struct check *check, struct span payload_hash)
{
    struct span given = check->authorization->signature;
    char expected[SHA256_HEX_BYTES];
    int r = expected_signature(check, payload_hash, expected);

    if (r == -EINVAL)
        return refuse(check, SIGV4_INCOMPLETE, AWS_ERROR_INCOMPLETE_SIGNATURE,
                      "SignedHeaders must be sorted, each named once, and at most %d: '%.*s'.",
                      CANONICAL_SIGNED_HEADERS, SPAN_ARG(check->authorization->signed_headers));
    if (r < 0)
        return r;
    if (given.length == sizeof(expected) - 1 && CRYPTO_memcmp(given.data, expected, given.length) == 0)
        return 0;
    return refuse(check, SIGV4_MISMATCH, AWS_ERROR_INVALID_SIGNATURE,
                  "The request signature we calculated does not match the signature you provided. Check your AWS "
                  "Secret Access Key and signing method. Consult the service documentation for details.");
}

int sigv4_verify(struct sigv4_verifier *verifier, const struct sigv4_request *request, int64_t now_wall_ns,
                 struct arena *arena, struct sigv4_authorization *ret_authorization,
                 const struct credential **ret_credential, struct aws_error *error)
{
    struct check check = {
        .verifier = verifier,
        .request = request,
        .authorization = ret_authorization,
        .arena = arena,
        .error = error,
        .now_wall_ns = now_wall_ns,
    };
    static int (*const steps[])(struct check *) = {check_form,  check_key,  check_timestamp,
                                                   check_scope, check_time, check_signed_headers};
    struct span payload_hash = SPAN_NONE;
    int r = sigv4_parse(request, arena, ret_authorization);

    if (r < 0)
        return r;
    if (r == SIGV4_MISSING)
        return refuse(&check, SIGV4_MISSING, AWS_ERROR_MISSING_AUTHENTICATION_TOKEN, "Missing Authentication Token");
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        r = steps[i](&check);
        if (r)
            return r;
    }
    r = check_body(&check, &payload_hash);
    if (r == 0)
        r = check_signature(&check, payload_hash);
    if (r == 0 && ret_credential)
        *ret_credential = check.credential;
    return r;
}
