#include "worker/process_variables.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

static const struct environment_spec base_spec = {
    .account = "000000000000",
    .region = "eu-west-1",
    .function_name = "shop",
    .version = "7",
    .runtime = "provided.al2023",
    .handler = "index.handler",
    .memory_mib = 256,
    .log_group = "/aws/lambda/shop",
};

static int count_of(const char *const *variables, const char *name, const char **ret_value)
{
    size_t length = strlen(name);
    int count = 0;

    *ret_value = NULL;
    for (; *variables; variables++) {
        if (strncmp(*variables, name, length) == 0 && (*variables)[length] == '=') {
            *ret_value = *variables + length + 1;
            count++;
        }
    }
    return count;
}

static void assert_variable(const char *const *variables, const char *name, const char *expected)
{
    const char *value;

    assert_int_equal(count_of(variables, name, &value), expected ? 1 : 0);
    if (expected)
        assert_string_equal(value, expected);
}

static const char *const *build(const struct environment_spec *spec, struct arena *arena)
{
    const char *const *variables;

    assert_int_equal(process_variables_build(spec, "2026/01/02[7]0a", arena, &variables), 0);
    return variables;
}

static void test_reserved_and_defaults_are_as_recorded(void **state)
{
    CLEANUP(arena_deinit) struct arena arena = {0};
    const char *const *variables = build(&base_spec, &arena);

    (void)state;
    assert_variable(variables, "_HANDLER", "index.handler");
    assert_variable(variables, "AWS_REGION", "eu-west-1");
    assert_variable(variables, "AWS_DEFAULT_REGION", "eu-west-1");
    assert_variable(variables, "AWS_LAMBDA_FUNCTION_NAME", "shop");
    assert_variable(variables, "AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256");
    assert_variable(variables, "AWS_LAMBDA_FUNCTION_VERSION", "7");
    assert_variable(variables, "AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand");
    assert_variable(variables, "AWS_LAMBDA_LOG_GROUP_NAME", "/aws/lambda/shop");
    assert_variable(variables, "AWS_LAMBDA_LOG_STREAM_NAME", "2026/01/02[7]0a");
    assert_variable(variables, "LAMBDA_TASK_ROOT", "/var/task");
    assert_variable(variables, "LAMBDA_RUNTIME_DIR", "/var/runtime");
    assert_variable(variables, "AWS_ACCESS_KEY_ID", "test");
    assert_variable(variables, "LANG", "en_US.UTF-8");
    assert_variable(variables, "TZ", ":UTC");
    assert_variable(variables, "PATH", "/var/lang/bin:/usr/local/bin:/usr/bin/:/bin:/opt/bin");
    assert_variable(variables, "LD_LIBRARY_PATH",
                    "/var/lang/lib:/lib64:/usr/lib64:/var/runtime:/var/runtime/lib:/var/task:/var/task/lib:/opt/lib");
    assert_variable(variables, "AWS_LAMBDA_LOG_FORMAT", NULL);
    assert_variable(variables, "AWS_LAMBDA_LOG_LEVEL", NULL);
    assert_variable(variables, "AWS_ENDPOINT_URL", NULL);
}

static void test_al2_has_no_folder_of_languages(void **state)
{
    CLEANUP(arena_deinit) struct arena arena = {0};
    struct environment_spec spec = base_spec;
    const char *const *variables;

    (void)state;
    spec.runtime = "provided.al2";
    variables = build(&spec, &arena);
    assert_variable(variables, "PATH", "/usr/local/bin:/usr/bin/:/bin:/opt/bin");
    assert_variable(variables, "LD_LIBRARY_PATH",
                    "/lib64:/usr/lib64:/var/runtime:/var/runtime/lib:/var/task:/var/task/lib:/opt/lib");
}

static void test_credentials_and_endpoint_are_as_given(void **state)
{
    static const struct environment_variable own[] = {{"AWS_ENDPOINT_URL", "http://mine"}};
    CLEANUP(arena_deinit) struct arena arena = {0};
    struct environment_spec spec = base_spec;
    const char *const *variables = build(&spec, &arena);

    (void)state;
    assert_variable(variables, "AWS_SECRET_ACCESS_KEY", "test");
    assert_variable(variables, "AWS_SESSION_TOKEN", "test");
    spec.access_key = "AKIDEXAMPLE";
    spec.secret_key = "hush";
    spec.endpoint_url = "http://127.0.0.1:4566";
    variables = build(&spec, &arena);
    assert_variable(variables, "AWS_ACCESS_KEY_ID", "AKIDEXAMPLE");
    assert_variable(variables, "AWS_SECRET_ACCESS_KEY", "hush");
    assert_variable(variables, "AWS_SESSION_TOKEN", NULL);
    assert_variable(variables, "AWS_ENDPOINT_URL", "http://127.0.0.1:4566");
    spec.variables = own;
    spec.variable_count = ARRAY_SIZE(own);
    assert_variable(build(&spec, &arena), "AWS_ENDPOINT_URL", "http://mine");
}

static void test_json_logging_is_told_above_the_functions_own(void **state)
{
    static const struct environment_variable own[] = {{"AWS_LAMBDA_LOG_LEVEL", "FATAL"}};
    CLEANUP(arena_deinit) struct arena arena = {0};
    struct environment_spec spec = base_spec;
    const char *const *variables;

    (void)state;
    spec.variables = own;
    spec.variable_count = ARRAY_SIZE(own);
    variables = build(&spec, &arena);
    assert_variable(variables, "AWS_LAMBDA_LOG_LEVEL", "FATAL");
    spec.log_format = "JSON";
    variables = build(&spec, &arena);
    assert_variable(variables, "AWS_LAMBDA_LOG_FORMAT", "JSON");
    assert_variable(variables, "AWS_LAMBDA_LOG_LEVEL", "INFO");
    spec.application_log_level = "DEBUG";
    assert_variable(build(&spec, &arena), "AWS_LAMBDA_LOG_LEVEL", "DEBUG");
}

static void test_custom_runtime_has_no_execution_env(void **state)
{
    CLEANUP(arena_deinit) struct arena arena = {0};
    const char *const *variables = build(&base_spec, &arena);

    (void)state;
    assert_variable(variables, "AWS_EXECUTION_ENV", NULL);
    assert_variable(variables, "_X_AMZN_TRACE_ID", NULL);
    assert_variable(variables, "PYTHONPATH", NULL);
}

static void test_managed_runtimes_have_their_own(void **state)
{
    CLEANUP(arena_deinit) struct arena arena = {0};
    struct environment_spec spec = base_spec;
    const char *const *variables;

    (void)state;
    spec.runtime = "python3.12";
    variables = build(&spec, &arena);
    assert_variable(variables, "AWS_EXECUTION_ENV", "AWS_Lambda_python3.12");
    assert_variable(variables, "PYTHONPATH", "/var/runtime");
    assert_variable(variables, "PWD", "/var/task");
    assert_variable(variables, "LC_CTYPE", "C.UTF-8");
    spec.runtime = "python3.11";
    assert_variable(build(&spec, &arena), "LC_CTYPE", NULL);
    spec.runtime = "nodejs20.x";
    variables = build(&spec, &arena);
    assert_variable(variables, "AWS_EXECUTION_ENV", "AWS_Lambda_nodejs20.x");
    assert_variable(variables, "NODE_PATH",
                    "/opt/nodejs/node20/node_modules:/opt/nodejs/node_modules:/var/runtime/node_modules:/var/runtime:"
                    "/var/task");
}

static void test_provisioned_says_so(void **state)
{
    CLEANUP(arena_deinit) struct arena arena = {0};
    struct environment_spec spec = base_spec;

    (void)state;
    spec.origin = ENVIRONMENT_PROVISIONED;
    assert_variable(build(&spec, &arena), "AWS_LAMBDA_INITIALIZATION_TYPE", "provisioned-concurrency");
}

static void test_own_variables_replace_defaults_but_not_reserved_ones(void **state)
{
    static const struct environment_variable own[] = {
        {"TZ", "Europe/Vienna"},
        {"TABLE", "orders"},
        {"AWS_REGION", "mars-1"},
        {"AWS_LAMBDA_RUNTIME_API", "me"},
        {"_X_AMZN_TRACE_ID", "me"},
        {"AWS_EXECUTION_ENV", "me"},
        {"", "nameless"},
        {"A=B", "c"},
        {"EMPTY", ""},
    };
    CLEANUP(arena_deinit) struct arena arena = {0};
    struct environment_spec spec = base_spec;
    const char *const *variables;

    (void)state;
    spec.variables = own;
    spec.variable_count = ARRAY_SIZE(own);
    variables = build(&spec, &arena);
    assert_variable(variables, "TZ", "Europe/Vienna");
    assert_variable(variables, "TABLE", "orders");
    assert_variable(variables, "EMPTY", "");
    assert_variable(variables, "AWS_REGION", "eu-west-1");
    assert_variable(variables, "AWS_LAMBDA_RUNTIME_API", NULL);
    assert_variable(variables, "_X_AMZN_TRACE_ID", NULL);
    assert_variable(variables, "AWS_EXECUTION_ENV", NULL);
    assert_variable(variables, "A", NULL);
    assert_variable(variables, "", NULL);
}

static void test_extensions_do_not_see_what_concerns_the_runtime(void **state)
{
    CLEANUP(arena_deinit) struct arena arena = {0};
    static const struct environment_variable own[] = {{"TABLE", "orders"}};
    struct environment_spec spec = base_spec;
    const char *const *variables;

    (void)state;
    spec.runtime = "python3.12";
    spec.variables = own;
    spec.variable_count = ARRAY_SIZE(own);
    assert_int_equal(process_variables_for_extensions(build(&spec, &arena), &arena, &variables), 0);
    assert_variable(variables, "TABLE", "orders");
    assert_variable(variables, "AWS_REGION", "eu-west-1");
    assert_variable(variables, "AWS_LAMBDA_FUNCTION_NAME", "shop");
    assert_variable(variables, "_HANDLER", NULL);
    assert_variable(variables, "LAMBDA_TASK_ROOT", NULL);
    assert_variable(variables, "AWS_EXECUTION_ENV", NULL);
    assert_variable(variables, "AWS_LAMBDA_LOG_STREAM_NAME", NULL);
    assert_variable(variables, "_AWS_XRAY_DAEMON_PORT", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reserved_and_defaults_are_as_recorded),
        cmocka_unit_test(test_al2_has_no_folder_of_languages),
        cmocka_unit_test(test_credentials_and_endpoint_are_as_given),
        cmocka_unit_test(test_json_logging_is_told_above_the_functions_own),
        cmocka_unit_test(test_custom_runtime_has_no_execution_env),
        cmocka_unit_test(test_managed_runtimes_have_their_own),
        cmocka_unit_test(test_provisioned_says_so),
        cmocka_unit_test(test_own_variables_replace_defaults_but_not_reserved_ones),
        cmocka_unit_test(test_extensions_do_not_see_what_concerns_the_runtime),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
