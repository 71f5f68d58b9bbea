/*
 * docs/api-coverage.md is what the routing table says, and stays so:
 *
 *   coverage-test FILE           fails when the file says something else
 *   coverage-test --write FILE   writes it (`ninja -C build api-coverage`)
 */
#include "api/lambda/lambda.h"
#include "base/buffer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const char preface[] =
    "# API coverage\n"
    "\n"
    "Written from the routing table (`ninja -C build api-coverage`); a test keeps it true. An operation that is not\n"
    "supported answers 501 `NotImplementedException`, with its name. What supported operations refuse, and why, is in\n"
    "[src/api/lambda/README.md](../src/api/lambda/README.md).\n";

static const struct note {
    const char *operation;
    const char *text;
} notes[] = {
    {"Invoke", "`RequestResponse` and `DryRun`; `Event` answers 501"},
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

enum { ROUTES_MAX = 200 };

static void print_document(struct buffer *text)
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
    struct buffer expected = BUFFER_INIT;
    struct buffer actual = BUFFER_INIT;

    print_document(&expected);
    read_file(*state, &actual);
    if (!span_equal(buffer_span(&expected), buffer_span(&actual)))
        fail_msg("%s is stale: run `ninja -C build api-coverage`", (const char *)*state);
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

static int write_document(const char *path)
{
    struct buffer text = BUFFER_INIT;
    FILE *file = fopen(path, "w");
    bool written;

    if (!file) {
        perror(path);
        return 1;
    }
    print_document(&text);
    written = fwrite(text.data, 1, text.length, file) == text.length;
    written &= fclose(file) == 0;
    buffer_deinit(&text);
    return written ? 0 : 1;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_document_says_what_the_routing_table_says, argc > 1 ? argv[1] : NULL),
        cmocka_unit_test(test_every_note_is_about_a_supported_operation),
    };

    if (argc == 3 && !strcmp(argv[1], "--write"))
        return write_document(argv[2]);
    if (argc != 2) {
        fprintf(stderr, "usage: coverage-test [--write] FILE\n");
        return 2;
    }
    return cmocka_run_group_tests_name("coverage", tests, NULL, NULL);
}
