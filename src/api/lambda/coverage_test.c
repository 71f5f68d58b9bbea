/*
 * docs/api-coverage.md is what the routing table and the exceptions to the recorded answers say, and stays so:
 *
 *   coverage-test FILE EXCEPTIONS           fails when the file says something else
 *   coverage-test --write FILE EXCEPTIONS   writes it (`ninja -C build api-coverage`)
 */
#include "api/lambda/lambda.h"
#include "api/service.h"
#include "base/buffer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <jansson.h>

static const char preface[] =
    "# API coverage\n"
    "\n"
    "Written from the routing tables (`ninja -C build api-coverage`); a test keeps it true. An operation that is not\n"
    "supported answers 501 `NotImplementedException`, with its name. What supported operations refuse, and why, is in\n"
    "[src/api/lambda/README.md](../src/api/lambda/README.md).\n";

static const char services_preface[] =
    "\n"
    "## Other services\n"
    "\n"
    "What tools ask for on their way to a function. Any other action, and any other service, answers 501\n"
    "`NotImplementedException` with its name. None of it is access control: [src/api/sts](../src/api/sts/README.md),\n"
    "[src/api/iam](../src/api/iam/README.md).\n"
    "\n"
    "| service | actions |\n"
    "|---|---|\n";

static const char exceptions_preface[] =
    "\n"
    "## Exceptions\n"
    "\n"
    "Recorded answers of the service (tests/data/recorded) that Kiln does not give, each with the reason. They stand "
    "in\n"
    "tests/conformance/recorded_exceptions.json; the test that replays the recordings fails when one is not needed.\n"
    "\n"
    "| recorded sequences | steps | reason |\n"
    "|---|---|---|\n";

static const struct note {
    const char *operation;
    const char *text;
} notes[] = {
    {"CreateEventSourceMapping",
     "a mapping is kept with its settings and states; its source is not polled yet, nor asked "
     "whether it exists"},
    {"CreateFunctionUrlConfig", "the URL is kept and shown; it is not served yet"},
    {"Invoke", "`RequestResponse` and `DryRun`; `Event` answers 501"},
    {"PutFunctionEventInvokeConfig", "kept and shown; asynchronous invocation is not there yet"},
    {"PutFunctionRecursionConfig", "kept and shown; loops are not detected yet"},
    {"PutFunctionScalingConfig", "refused as on the service for functions without a capacity provider"},
    {"GetFunctionScalingConfig", "refused as on the service for functions without a capacity provider"},
    {"PutRuntimeManagementConfig", "kept and shown; the interpreter is the host's"},
    {"CreateFunction", "zip packages, in the request or from S3; no images"},
    {"UpdateFunctionCode", "zip packages, in the request or from S3; no images"},
};

static const char *note_of(const char *operation)
{
    for (size_t i = 0; i < ARRAY_SIZE(notes); i++)
        if (!strcmp(notes[i].operation, operation))
            return notes[i].text;
    return "";
}

static bool is_supported(const struct operation_route *route)
{
    return !route->unsupported;
}

static int compare_names(const void *a, const void *b)
{
    const struct operation_route *const *one = a;
    const struct operation_route *const *other = b;

    return strcmp((*one)->name, (*other)->name);
}

/* Those of the service, by name; Kiln's own pages are no operations. */
static size_t sort_routes(const struct operation_route *sorted[], size_t maximum)
{
    size_t count;
    size_t kept = 0;
    const struct operation_route *routes = lambda_routes(&count);

    assert_true(count <= maximum);
    for (size_t i = 0; i < count; i++)
        if (!routes[i].anonymous)
            sorted[kept++] = &routes[i];
    qsort(sorted, kept, sizeof(*sorted), compare_names);
    return kept;
}

static void print_table(struct buffer *text, const struct operation_route *const *routes, size_t count, bool supported)
{
    assert_int_equal(buffer_printf(text, supported ? "\n| operation | request | notes |\n|---|---|---|\n"
                                                   : "\n| operation | request |\n|---|---|\n"),
                     0);
    for (size_t i = 0; i < count; i++) {
        const struct operation_route *route = routes[i];
        if (is_supported(route) != supported)
            continue;
        assert_int_equal(buffer_printf(text, "| %s | `%s %s%s%s` |", route->name, route->method, route->pattern,
                                       route->query ? "?" : "", route->query ? route->query : ""),
                         0);
        assert_int_equal(supported ? buffer_printf(text, " %s |\n", note_of(route->name)) : buffer_printf(text, "\n"),
                         0);
    }
}

/* The names of a list with commas between them, or `otherwise` when there is no list. */
static void print_names(struct buffer *text, const json_t *names, const char *otherwise)
{
    size_t i;
    json_t *name;

    if (!names)
        assert_int_equal(buffer_append_span(text, span_from(otherwise)), 0);
    json_array_foreach(names, i, name)
        assert_int_equal(buffer_printf(text, "%s%s", i > 0 ? ", " : "", json_string_value(name)), 0);
}

/* "Invoke (Event)", "sqs", or "all". */
static void print_steps(struct buffer *text, const json_t *exception)
{
    const char *operation = json_string_value(json_object_get(exception, "operation"));
    const char *service = json_string_value(json_object_get(exception, "service"));
    const char *type = json_string_value(json_object_get(exception, "type"));

    assert_int_equal(buffer_printf(text, "%s", operation ? operation : service ? service : "all"), 0);
    if (type)
        assert_int_equal(buffer_printf(text, " (%s)", type), 0);
}

static void print_exceptions(struct buffer *text, const char *path)
{
    json_error_t error;
    json_t *exceptions = json_load_file(path, 0, &error);
    json_t *exception;
    size_t i;

    if (!exceptions)
        fail_msg("%s: %s", path, error.text);
    assert_int_equal(buffer_append_span(text, span_from(exceptions_preface)), 0);
    json_array_foreach(exceptions, i, exception)
    {
        assert_int_equal(buffer_append_span(text, SPAN("| ")), 0);
        print_names(text, json_object_get(exception, "sequences"), "all");
        assert_int_equal(buffer_append_span(text, SPAN(" | ")), 0);
        print_steps(text, exception);
        assert_int_equal(buffer_printf(text, " | %s |\n", json_string_value(json_object_get(exception, "reason"))), 0);
    }
    json_decref(exceptions);
}

static void print_service(struct buffer *text, const struct service *service)
{
    size_t count;
    const struct operation_route *routes = service->routes(&count);

    assert_int_equal(buffer_printf(text, "| %s (%s) | ", service->title, service->version), 0);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(buffer_printf(text, "%s%s", i > 0 ? ", " : "", routes[i].name), 0);
    assert_int_equal(buffer_printf(text, " |\n"), 0);
}

/* Those beside Lambda. */
static void print_services(struct buffer *text)
{
    assert_int_equal(buffer_append_span(text, span_from(services_preface)), 0);
    for (size_t i = 1; i < SERVICE_COUNT; i++)
        print_service(text, service_at(i));
}

enum { ROUTES_MAX = 200 };

static void print_document(const char *exceptions, struct buffer *text)
{
    const struct operation_route *routes[ROUTES_MAX];
    size_t count = sort_routes(routes, ROUTES_MAX);
    size_t supported = 0;

    for (size_t i = 0; i < count; i++)
        supported += is_supported(routes[i]);
    assert_int_equal(
        buffer_printf(text, "%s\n## AWS Lambda (2015-03-31): %zu of %zu operations\n", preface, supported, count), 0);
    print_table(text, routes, count, true);
    assert_int_equal(buffer_printf(text, "\nNot yet:\n"), 0);
    print_table(text, routes, count, false);
    print_services(text);
    print_exceptions(text, exceptions);
}

static void read_file(const char *path, struct buffer *content)
{
    char piece[4096];
    size_t count;
    FILE *file = fopen(path, "r");

    if (!file)
        fail_msg("cannot read %s", path);
    while ((count = fread(piece, 1, sizeof(piece), file)))
        assert_int_equal(buffer_append(content, piece, count), 0);
    fclose(file);
}

static void test_document_says_what_the_routing_table_says(void **state)
{
    char **paths = *state;
    struct buffer expected = BUFFER_INIT;
    struct buffer actual = BUFFER_INIT;

    print_document(paths[1], &expected);
    read_file(paths[0], &actual);
    if (!span_equal(buffer_span(&expected), buffer_span(&actual)))
        fail_msg("%s is stale: run `ninja -C build api-coverage`", paths[0]);
    buffer_deinit(&expected);
    buffer_deinit(&actual);
}

static void test_every_note_is_about_a_supported_operation(void **state)
{
    size_t count;
    const struct operation_route *routes = lambda_routes(&count);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(notes); i++) {
        bool found = false;
        for (size_t j = 0; j < count; j++)
            found |= !strcmp(routes[j].name, notes[i].operation) && is_supported(&routes[j]);
        assert_true(found);
    }
}

static int write_document(const char *path, const char *exceptions)
{
    struct buffer text = BUFFER_INIT;
    FILE *file = fopen(path, "w");
    bool written;

    if (!file) {
        perror(path);
        return 1;
    }
    print_document(exceptions, &text);
    written = fwrite(text.data, 1, text.length, file) == text.length;
    written &= fclose(file) == 0;
    buffer_deinit(&text);
    return written ? 0 : 1;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_document_says_what_the_routing_table_says, argv + 1),
        cmocka_unit_test(test_every_note_is_about_a_supported_operation),
    };

    if (argc == 4 && !strcmp(argv[1], "--write"))
        return write_document(argv[2], argv[3]);
    if (argc != 3) {
        fprintf(stderr, "usage: coverage-test [--write] FILE EXCEPTIONS\n");
        return 2;
    }
    return cmocka_run_group_tests_name("coverage", tests, NULL, NULL);
}
