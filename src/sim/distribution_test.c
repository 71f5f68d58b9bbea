#include "base/test.h"

#include "base/clock.h"
#include "base/macros.h"
#include "sim/distribution.h"

#include <math.h>
#include <stdlib.h>

enum { DRAWS = 200 * 1000 };

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Mean, standard deviation, and percentiles of many draws, in milliseconds. */
struct figures {
    double mean, deviation, p50, p99, least;
};

static struct figures draw(struct distribution distribution)
{
    double *values = malloc(DRAWS * sizeof(*values)), sum = 0, squares = 0;
    struct figures figures;
    struct prng prng;

    assert_non_null(values);
    prng_init(&prng, 42);
    for (int i = 0; i < DRAWS; i++) {
        values[i] = (double)distribution_draw_ns(&distribution, &prng) / (double)NS_PER_MS;
        sum += values[i];
        squares += values[i] * values[i];
    }
    qsort(values, DRAWS, sizeof(*values), compare);
    figures.mean = sum / DRAWS;
    figures.deviation = sqrt(squares / DRAWS - figures.mean * figures.mean);
    figures.p50 = values[DRAWS / 2];
    figures.p99 = values[DRAWS / 100 * 99];
    figures.least = values[0];
    free(values);
    return figures;
}

static void assert_near(double value, double expected, double part)
{
    if (fabs(value - expected) > fabs(expected) * part)
        fail_msg("%g is not within %g%% of %g", value, part * 100, expected);
}

static void test_constant_is_always_the_same(void **state)
{
    struct figures figures = draw(distribution_constant(1.5));

    (void)state;
    assert_true(figures.least == 1.5 && figures.p50 == 1.5 && figures.p99 == 1.5);
}

static void test_normal_has_its_mean_and_deviation(void **state)
{
    struct figures figures = draw((struct distribution){.kind = DISTRIBUTION_NORMAL, .a = 150, .b = 20});

    (void)state;
    assert_near(figures.mean, 150, 0.01);
    assert_near(figures.deviation, 20, 0.02);
    assert_near(figures.p99, 150 + 2.326 * 20, 0.01);
}

static void test_no_duration_is_negative(void **state)
{
    struct figures figures = draw((struct distribution){.kind = DISTRIBUTION_NORMAL, .a = 1, .b = 20});

    (void)state;
    assert_true(figures.least == 0);
    assert_true(figures.mean > 1);
}

static void test_lognormal_by_mean_and_deviation(void **state)
{
    struct distribution distribution = distribution_lognormal(150, 80);
    struct figures figures = draw(distribution);

    (void)state;
    assert_near(figures.mean, 150, 0.01);
    assert_near(figures.deviation, 80, 0.03);
    assert_near(distribution_mean_ms(&distribution), 150, 1e-9);
}

static void test_lognormal_by_percentiles(void **state)
{
    struct figures figures = draw(distribution_lognormal_p(120, 600));

    (void)state;
    assert_near(figures.p50, 120, 0.02);
    assert_near(figures.p99, 600, 0.03);
}

static void test_empirical_values_are_equally_likely(void **state)
{
    static const double values[] = {80, 95, 340};
    struct distribution distribution = {.kind = DISTRIBUTION_EMPIRICAL, .values_ms = values, .count = 3};
    int counts[3] = {0};
    struct prng prng;

    (void)state;
    prng_init(&prng, 1);
    for (int i = 0; i < DRAWS; i++) {
        int64_t ns = distribution_draw_ns(&distribution, &prng);
        int found = 0;
        for (int k = 0; k < 3; k++) {
            found += ns == (int64_t)values[k] * NS_PER_MS;
            counts[k] += ns == (int64_t)values[k] * NS_PER_MS;
        }
        assert_int_equal(found, 1);
    }
    for (int k = 0; k < 3; k++)
        assert_near(counts[k], DRAWS / 3.0, 0.02);
    assert_near(distribution_mean_ms(&distribution), 515 / 3.0, 1e-9);
}

static void test_no_duration_is_longer_than_a_time_can_hold(void **state)
{
    struct distribution distribution = distribution_constant(1e300);
    struct prng prng;

    (void)state;
    prng_init(&prng, 1);
    assert_int_equal(distribution_draw_ns(&distribution, &prng), INT64_C(10000000000) * NS_PER_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constant_is_always_the_same),
        cmocka_unit_test(test_normal_has_its_mean_and_deviation),
        cmocka_unit_test(test_no_duration_is_negative),
        cmocka_unit_test(test_lognormal_by_mean_and_deviation),
        cmocka_unit_test(test_lognormal_by_percentiles),
        cmocka_unit_test(test_empirical_values_are_equally_likely),
        cmocka_unit_test(test_no_duration_is_longer_than_a_time_can_hold),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
