#include "aws/credentials.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

static void assert_refused(struct span text, const char *message)
{
    struct credentials *credentials = NULL;
    struct fault fault = {0};

    if (credentials_parse(text, "creds", &credentials, &fault) != -EINVAL || strcmp(fault.text, message) != 0)
        fail_msg("%s, not %s", fault.text, message);
    assert_null(credentials);
}

static struct credentials *parse(const char *text)
{
    struct credentials *credentials = NULL;
    struct fault fault = {0};

    if (credentials_parse(span_from(text), "creds", &credentials, &fault) != 0)
        fail_msg("%s", fault.text);
    return credentials;
}

static void test_faults_name_their_line(void **state)
{
    (void)state;
    assert_refused(SPAN("aws_access_key_id = A\n"), "creds:1: a setting before the first [profile]");
    assert_refused(SPAN("# c\n\n[dev\n"), "creds:3: a section must end with ']'");
    assert_refused(SPAN("[dev] x\n"), "creds:1: nothing may follow a section's ']'");
    assert_refused(SPAN("[ ]\n"), "creds:1: a section must have a name");
}

static void test_settings_must_be_key_and_value(void **state)
{
    (void)state;
    assert_refused(SPAN("[dev]\naws_access_key_id\n"), "creds:2: expected 'key = value'");
    assert_refused(SPAN("[dev]\r\n= A\r\n"), "creds:2: no key before '='");
    assert_refused(SPAN("[dev]\naws_access_key_id = A\0B\n"), "creds:2: a NUL byte");
    assert_refused(SPAN("[dev]\naws_account_id = 1111\n"), "creds:2: aws_account_id must be 12 digits, not '1111'");
}

static void test_half_a_profile_is_refused(void **state)
{
    (void)state;
    assert_refused(SPAN("\n[dev]\naws_access_key_id = A\n"), "creds:2: profile 'dev' lacks aws_secret_access_key");
    assert_refused(SPAN("[dev]\naws_secret_access_key = S\naws_access_key_id =\n"),
                   "creds:1: profile 'dev' lacks aws_access_key_id");
}

static void test_an_access_key_belongs_to_one_profile(void **state)
{
    (void)state;
    assert_refused(SPAN("[a]\naws_access_key_id=K\naws_secret_access_key=1\n[b]\naws_access_key_id=K\n"
                        "aws_secret_access_key=2\n"),
                   "creds:4: profile 'b' has the access key of another profile");
}

static void test_a_file_without_keys_is_refused(void **state)
{
    (void)state;
    assert_refused(SPAN_NONE, "creds: no profile has an access key");
    assert_refused(SPAN("[role]\nrole_arn = arn:aws:iam::111122223333:role/r\n"),
                   "creds: no profile has an access key");
}

static void test_a_missing_or_too_large_file_is_refused(void **state)
{
    struct credentials *credentials = NULL;
    struct fault fault = {0};
    char path[] = "/tmp/kiln-credentials-XXXXXX";
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 1024 * 1024 + 1), 0);
    close(fd);
    assert_int_equal(credentials_load(path, &credentials, &fault), -EFBIG);
    unlink(path);
    assert_int_equal(credentials_load(path, &credentials, &fault), -ENOENT);
    assert_non_null(strstr(fault.text, "No such file"));
}

static void test_everything_the_format_allows_is_read(void **state)
{
    struct credentials *credentials = parse("\xef\xbb\xbf# comment\r\n"
                                            "; another\r\n"
                                            "\r\n"
                                            "  [ default ]  ; trailing\r\n"
                                            "  \t\r\n"
                                            "aws_access_key_id=AKID/+=x\r\n"
                                            "AWS_Secret_Access_Key =  s3cr=t+/ \r\n"
                                            "region = us-east-1\r\n"
                                            "s3 =\r\n"
                                            "    max_concurrent_requests = 20\r\n"
                                            "    not a setting\r\n"
                                            "[profile other]\r\n"
                                            "aws_access_key_id = ASIA\r\n"
                                            "aws_secret_access_key = x\r\n"
                                            "aws_session_token = t/o=k==\r\n"
                                            "aws_account_id = 444455556666");
    const struct credential *credential = credentials_find(credentials, SPAN("AKID/+=x"));

    (void)state;
    assert_int_equal(credentials_count(credentials), 2);
    assert_non_null(credential);
    assert_string_equal(credential->profile, "default");
    assert_string_equal(credential->secret_key, "s3cr=t+/");
    assert_null(credential->session_token);
    assert_null(credential->account);
    credential = credentials_at(credentials, 1);
    assert_string_equal(credential->profile, "other");
    assert_string_equal(credential->session_token, "t/o=k==");
    assert_string_equal(credential->account, "444455556666");
    assert_null(credentials_find(credentials, SPAN("AKID")));
    assert_null(credentials_find(credentials, SPAN("")));
    credentials_free(credentials);
}

static void test_a_section_that_comes_again_adds_to_the_first(void **state)
{
    struct credentials *credentials = parse("[a]\naws_access_key_id = OLD\naws_session_token = t\n"
                                            "[b]\naws_access_key_id = B\naws_secret_access_key = b\n"
                                            "[a]\naws_access_key_id = NEW\naws_secret_access_key = s\n");

    (void)state;
    assert_int_equal(credentials_count(credentials), 2);
    assert_null(credentials_find(credentials, SPAN("OLD")));
    assert_string_equal(credentials_find(credentials, SPAN("NEW"))->session_token, "t");
    assert_string_equal(credentials_at(credentials, 0)->profile, "a");
    credentials_free(credentials);
}

static void test_profiles_without_keys_are_skipped(void **state)
{
    struct credentials *credentials = parse("[sso]\nsso_session = x\n[a]\naws_access_key_id = A\n"
                                            "aws_secret_access_key = s\n");

    (void)state;
    assert_int_equal(credentials_count(credentials), 1);
    credentials_free(credentials);
}

static void test_a_key_of_twelve_digits_names_the_account(void **state)
{
    struct credentials *credentials = parse("[a]\naws_access_key_id = 111122223333\naws_secret_access_key = s\n"
                                            "[b]\naws_access_key_id = 11112222333\naws_secret_access_key = s\n"
                                            "[c]\naws_access_key_id = 222233334444\naws_secret_access_key = s\n"
                                            "aws_account_id = 555566667777\n");

    (void)state;
    assert_string_equal(credentials_find(credentials, SPAN("111122223333"))->account, "111122223333");
    assert_null(credentials_find(credentials, SPAN("11112222333"))->account);
    assert_string_equal(credentials_find(credentials, SPAN("222233334444"))->account, "555566667777");
    assert_true(span_equal(credentials_account_of_key(SPAN("111122223333")), SPAN("111122223333")));
    assert_int_equal(credentials_account_of_key(SPAN("AKIDEXAMPLE")).length, 0);
    credentials_free(credentials);
}

static void test_the_first_key_of_an_account_is_found(void **state)
{
    struct credentials *credentials =
        parse("[a]\naws_access_key_id = A\naws_secret_access_key = s\n"
              "[b]\naws_access_key_id = B\naws_secret_access_key = s\naws_account_id = 111122223333\n"
              "[c]\naws_access_key_id = C\naws_secret_access_key = s\naws_account_id = 111122223333\n");
    const struct span account = SPAN("000000000000");

    (void)state;
    assert_string_equal(credentials_of_account(credentials, account, account)->access_key, "A");
    assert_string_equal(credentials_of_account(credentials, SPAN("111122223333"), account)->access_key, "B");
    assert_null(credentials_of_account(credentials, SPAN("999999999999"), account));
    credentials_free(credentials);
}

static void test_a_file_is_read_whole(void **state)
{
    char path[] = "/tmp/kiln-credentials-XXXXXX";
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");
    struct credentials *credentials = NULL;

    (void)state;
    assert_non_null(file);
    for (int i = 0; i < 500; i++)
        fprintf(file, "[p%d]\naws_access_key_id = K%d\naws_secret_access_key = s%d\n", i, i, i);
    fclose(file);
    assert_int_equal(credentials_load(path, &credentials, NULL), 0);
    unlink(path);
    assert_int_equal(credentials_count(credentials), 500);
    assert_string_equal(credentials_find(credentials, SPAN("K499"))->secret_key, "s499");
    credentials_free(credentials);
    assert_null(credentials_free(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults_name_their_line),
        cmocka_unit_test(test_settings_must_be_key_and_value),
        cmocka_unit_test(test_half_a_profile_is_refused),
        cmocka_unit_test(test_an_access_key_belongs_to_one_profile),
        cmocka_unit_test(test_a_file_without_keys_is_refused),
        cmocka_unit_test(test_a_missing_or_too_large_file_is_refused),
        cmocka_unit_test(test_everything_the_format_allows_is_read),
        cmocka_unit_test(test_a_section_that_comes_again_adds_to_the_first),
        cmocka_unit_test(test_profiles_without_keys_are_skipped),
        cmocka_unit_test(test_a_key_of_twelve_digits_names_the_account),
        cmocka_unit_test(test_the_first_key_of_an_account_is_found),
        cmocka_unit_test(test_a_file_is_read_whole),
    };

    return cmocka_run_group_tests_name("credentials", tests, NULL, NULL);
}
