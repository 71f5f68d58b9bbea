#include "cli/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static char *no_env(const char *name)
{
    (void)name;
    return NULL;
}

static char *some_env(const char *name)
{
    if (!strcmp(name, "KILN_CONCURRENCY"))
        return "50";
    if (!strcmp(name, "KILN_UNRESERVED_MINIMUM"))
        return "10";
    return !strcmp(name, "KILN_DATA_DIR") ? "/srv/kiln" : NULL;
}

static char *strict_env(const char *name)
{
    return !strcmp(name, "KILN_STRICT_AWS") ? "1" : NULL;
}

static char *bad_env(const char *name)
{
    return !strcmp(name, "KILN_IDLE_TIMEOUT") ? "soon" : NULL;
}

#define PARSE(env, ...)                       \
    char *argv_[] = {"serve", ##__VA_ARGS__}; \
    struct serve_options options = {0};       \
    struct fault fault = {0};                 \
    int r = serve_options_parse((int)ARRAY_SIZE(argv_), argv_, env, &options, &fault)

static void test_defaults_are_the_contract(void **state)
{
    (void)state;
    PARSE(no_env);
    assert_int_equal(r, 0);
    assert_string_equal(options.host, "127.0.0.1");
    assert_int_equal(options.port, 4566);
    assert_string_equal(options.data_dir, "./kiln-data");
    assert_string_equal(options.account_id, "000000000000");
    assert_string_equal(options.region, "us-east-1");
    assert_int_equal(options.concurrency, 1000);
    assert_int_equal(options.unreserved_minimum, 100);
    assert_int_equal(options.scaling_rate, 1000);
    assert_int_equal(options.provisioning_rate, 6000);
    assert_false(options.strict_aws);
    assert_int_equal(options.code_storage_bytes, UINT64_C(80530636800));
    assert_int_equal(options.update_time_ms, 300);
    assert_int_equal(options.idle_timeout_s, 600);
    assert_int_equal(options.auth, SERVE_AUTH_OFF);
    assert_false(options.network_given);
}

static void test_environment_is_read_and_command_line_wins(void **state)
{
    (void)state;
    PARSE(some_env, "--concurrency", "70");
    assert_int_equal(r, 0);
    assert_int_equal(options.concurrency, 70);
    assert_int_equal(options.unreserved_minimum, 10);
    assert_string_equal(options.data_dir, "/srv/kiln");
}

static void test_code_storage_may_be_more_than_four_gigabytes(void **state)
{
    (void)state;
    PARSE(no_env, "--code-storage", "300000000000");
    assert_int_equal(r, 0);
    assert_int_equal(options.code_storage_bytes, UINT64_C(300000000000));
}

static void test_what_functions_see_can_be_given(void **state)
{
    (void)state;
    PARSE(no_env, "--function-endpoint", "self", "--function-credentials", "keys");
    assert_int_equal(r, 0);
    assert_string_equal(options.function_endpoint, "self");
    assert_string_equal(options.function_credentials, "keys");
}

static void test_a_small_concurrency_is_all_unreserved_minimum(void **state)
{
    (void)state;
    PARSE(no_env, "--concurrency", "5");
    assert_int_equal(r, 0);
    assert_int_equal(options.unreserved_minimum, 5);
}

static void test_nat_can_be_asked_for(void **state)
{
    (void)state;
    PARSE(no_env, "--network", "nat");
    assert_int_equal(r, 0);
    assert_true(options.network_given);
    assert_int_equal(options.network, SANDBOX_NETWORK_NAT);
}

static void test_equals_form_and_ipv6(void **state)
{
    (void)state;
    PARSE(no_env, "--listen=[::1]:0", "--network=none");
    assert_int_equal(r, 0);
    assert_string_equal(options.host, "::1");
    assert_int_equal(options.port, 0);
    assert_true(options.network_given);
    assert_int_equal(options.network, SANDBOX_NETWORK_NONE);
}

static void test_switch_takes_no_value_unless_it_is_attached(void **state)
{
    (void)state;
    {
        PARSE(no_env, "--strict-aws", "--provisioning-rate", "60");
        assert_int_equal(r, 0);
        assert_true(options.strict_aws);
        assert_int_equal(options.provisioning_rate, 60);
    }
    {
        PARSE(strict_env);
        assert_int_equal(r, 0);
        assert_true(options.strict_aws);
    }
    {
        PARSE(strict_env, "--strict-aws=off");
        assert_int_equal(r, 0);
        assert_false(options.strict_aws);
    }
}

static void test_help_is_found_anywhere(void **state)
{
    (void)state;
    PARSE(no_env, "--listen", "nonsense", "--help");
    assert_int_equal(r, SERVE_OPTIONS_HELP);
}

static void refuse(const char *expected, int count, char **words)
{
    char *argv_[8] = {"serve"};
    struct serve_options options = {.port = 1};
    struct fault fault = {0};

    memcpy(argv_ + 1, words, (size_t)count * sizeof(*words));
    assert_int_equal(serve_options_parse(count + 1, argv_, no_env, &options, &fault), -EINVAL);
    assert_string_equal(fault.text, expected);
    assert_int_equal(options.port, 1); /* untouched */
}

#define REFUSE(expected, ...) \
    refuse(expected, (int)(sizeof((char *[]){__VA_ARGS__}) / sizeof(char *)), (char *[]){__VA_ARGS__})

static void test_refusals_name_the_option(void **state)
{
    (void)state;
    REFUSE("unknown option '--frobnicate'", "--frobnicate");
    REFUSE("unexpected argument 'x'", "x");
    REFUSE("--region needs a value", "--region");
    REFUSE("--region: '' is not the name of a Region", "--region=");
    REFUSE("--listen: '4566' is not HOST:PORT", "--listen", "4566");
    REFUSE("--listen: '127.0.0.1:65536' is not HOST:PORT", "--listen", "127.0.0.1:65536");
    REFUSE("--listen: 'example' is not an IP address", "--listen", "example:1");
    REFUSE("--account-id: '12345678901' is not an account ID of 12 digits", "--account-id", "12345678901");
    REFUSE("--account-id: '12345678901x' is not an account ID of 12 digits", "--account-id", "12345678901x");
    REFUSE("--concurrency: '0' is not a whole number from 1 to 1000000", "--concurrency", "0");
    REFUSE("--concurrency: '1e3' is not a whole number from 1 to 1000000", "--concurrency", "1e3");
    REFUSE("--code-storage: '0' is not a number of bytes", "--code-storage", "0");
    REFUSE("--code-storage: '75GB' is not a number of bytes", "--code-storage", "75GB");
    REFUSE("--concurrency: '-1' is not a whole number from 1 to 1000000", "--concurrency", "-1");
    REFUSE("--unreserved-minimum 11 is more than --concurrency 10", "--concurrency", "10", "--unreserved-minimum",
           "11");
    REFUSE("--network: 'bridge' is not nat or host or none", "--network", "bridge");
    REFUSE("--provisioning-rate: '0' is not a whole number from 1 to 1000000", "--provisioning-rate", "0");
    REFUSE("--strict-aws: 'maybe' is not on or off", "--strict-aws=maybe");
    REFUSE("unexpected argument 'off'", "--strict-aws", "off");
    REFUSE("--auth: 'on' is not off or sigv4", "--auth", "on");
    REFUSE("--function-endpoint: 'nowhere' is not self or an http:// or https:// URL", "--function-endpoint",
           "nowhere");
    REFUSE("--function-endpoint self cannot be reached with --network none", "--function-endpoint", "self", "--network",
           "none");
    REFUSE("--auth off is refused on 0.0.0.0, which is not a loopback address; use --auth sigv4", "--listen",
           "0.0.0.0:1");
    REFUSE("--auth sigv4 needs --credentials FILE", "--auth", "sigv4");
    REFUSE("--credentials has no effect without --auth sigv4", "--credentials", "f");
    REFUSE("--s3-endpoint: 'localhost:9000' is not an http:// or https:// URL", "--s3-endpoint", "localhost:9000");
}

static void test_bad_environment_names_the_variable(void **state)
{
    (void)state;
    PARSE(bad_env);
    assert_int_equal(r, -EINVAL);
    assert_string_equal(fault.text, "KILN_IDLE_TIMEOUT: 'soon' is not a whole number from 1 to 1000000");
}

static void test_loopback_addresses(void **state)
{
    (void)state;
    assert_true(serve_host_is_loopback("127.0.0.1"));
    assert_true(serve_host_is_loopback("127.9.8.7"));
    assert_true(serve_host_is_loopback("::1"));
    assert_false(serve_host_is_loopback("0.0.0.0"));
    assert_false(serve_host_is_loopback("::"));
    assert_false(serve_host_is_loopback("128.0.0.1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults_are_the_contract),
        cmocka_unit_test(test_environment_is_read_and_command_line_wins),
        cmocka_unit_test(test_code_storage_may_be_more_than_four_gigabytes),
        cmocka_unit_test(test_what_functions_see_can_be_given),
        cmocka_unit_test(test_a_small_concurrency_is_all_unreserved_minimum),
        cmocka_unit_test(test_nat_can_be_asked_for),
        cmocka_unit_test(test_equals_form_and_ipv6),
        cmocka_unit_test(test_switch_takes_no_value_unless_it_is_attached),
        cmocka_unit_test(test_help_is_found_anywhere),
        cmocka_unit_test(test_refusals_name_the_option),
        cmocka_unit_test(test_bad_environment_names_the_variable),
        cmocka_unit_test(test_loopback_addresses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
