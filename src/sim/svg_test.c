#include "base/test.h"

#include "sim/simulation.h"
#include "sim/svg.h"

#include <string.h>

static char *drawn(const char *text)
{
    struct simulation_options options = {.seed = 1};
    struct scenario *scenario = NULL;
    struct report *report = NULL;
    struct fault fault = {0};
    size_t length;
    char *svg;
    FILE *file = open_memstream(&svg, &length);

    assert_non_null(file);
    if (scenario_parse(span_from(text), NULL, &scenario, &fault) < 0 ||
        simulation_run(scenario, &options, &report, &fault) < 0)
        fail_msg("%s", fault.text);
    assert_int_equal(svg_write(report, file), 0);
    fclose(file);
    report_free(report);
    scenario_free(scenario);
    return svg;
}

static int count(const char *text, const char *part)
{
    int found = 0;

    for (const char *at = text; (at = strstr(at, part)); at++)
        found++;
    return found;
}

static void test_short_runs_show_every_request_in_its_lane(void **state)
{
    char *svg = drawn("{\"duration_s\": 10, \"account\": {\"concurrency\": 2}, \"functions\": [{\"name\": \"f\", "
                      "\"duration_ms\": 3000, \"init_ms\": 500}], \"traffic\": [{\"function\": \"f\", "
                      "\"at_s\": [0, 1, 2, 5, 6]}]}");

    (void)state;
    assert_int_equal(count(svg, "class=\"demand request\""), 4);
    assert_int_equal(count(svg, "class=\"init\" x"), 3);          /* two environments and the legend */
    assert_int_equal(count(svg, "<path class=\"throttled\""), 2); /* the mark of the third, and the area */
    assert_int_equal(count(svg, "class=\"line limit\""), 2);
    free(svg);
}

static void test_limits_have_lines_and_legends_of_their_own(void **state)
{
    char *svg = drawn("{\"duration_s\": 10, \"functions\": [{\"name\": \"f\", \"reserved\": 20, \"versions\": "
                      "[{\"version\": 1}], \"provisioned\": [{\"qualifier\": 1, \"count\": 7}]}, {\"name\": \"g\"}],"
                      " \"traffic\": [{\"function\": \"f\", \"qualifier\": 1, \"rps\": 500}]}");

    (void)state;
    assert_int_equal(count(svg, "class=\"line rc\""), 2);
    assert_int_equal(count(svg, "class=\"line pc\""), 2);
    assert_int_equal(count(svg, ">PC ready<"), 1);
    assert_int_equal(count(svg, "class=\"lane\""), 0); /* too many requests for lanes */
    assert_int_equal(count(svg, "account (limit 1000, above the picture)"), 1);
    free(svg);
}

static void test_descriptions_are_escaped(void **state)
{
    char *svg = drawn("{\"duration_s\": 1, \"description\": \"<a href=\\\"x\\\"> & \\u0001\", "
                      "\"functions\": [{\"name\": \"f\"}]}");

    (void)state;
    assert_int_equal(count(svg, "&#60;a href=&#34;x&#34;&#62; &#38;  <"), 1);
    free(svg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short_runs_show_every_request_in_its_lane),
        cmocka_unit_test(test_limits_have_lines_and_legends_of_their_own),
        cmocka_unit_test(test_descriptions_are_escaped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
