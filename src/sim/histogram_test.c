#include "base/test.h"

#include "sim/distribution.h"
#include "sim/histogram.h"

#include "base/clock.h"

#include <math.h>
#include <stdlib.h>

static struct histogram *new_histogram(void)
{
    struct histogram *histogram = calloc(1, sizeof(*histogram));

    assert_non_null(histogram);
    return histogram;
}

static void test_repeated_values_are_exact(void **state)
{
    struct histogram *histogram = new_histogram();

    (void)state;
    for (int i = 0; i < 90; i++)
        histogram_add(histogram, 150 * NS_PER_MS);
    for (int i = 0; i < 10; i++)
        histogram_add(histogram, 750 * NS_PER_MS);
    assert_int_equal(histogram_percentile(histogram, 0.5), 150 * NS_PER_MS);
    assert_int_equal(histogram_percentile(histogram, 0.9), 150 * NS_PER_MS);
    assert_int_equal(histogram_percentile(histogram, 0.91), 750 * NS_PER_MS);
    assert_int_equal(histogram_percentile(histogram, 1), 750 * NS_PER_MS);
    assert_true(histogram_mean(histogram) == 210.0 * NS_PER_MS);
    free(histogram);
}

static void test_spread_values_are_within_a_percent(void **state)
{
    struct histogram *histogram = new_histogram();

    (void)state;
    for (int64_t i = 1; i <= 100000; i++)
        histogram_add(histogram, i * 10007);
    for (double fraction = 0.01; fraction < 1; fraction += 0.01) {
        double exact = fraction * 100000 * 10007;
        assert_true(fabs((double)histogram_percentile(histogram, fraction) - exact) <= exact * 0.01);
    }
    free(histogram);
}

static void test_extremes_have_their_buckets(void **state)
{
    struct histogram *histogram = new_histogram();

    (void)state;
    assert_int_equal(histogram_percentile(histogram, 0.5), 0);
    histogram_add(histogram, 0);
    histogram_add(histogram, 1);
    histogram_add(histogram, INT64_MAX);
    assert_int_equal(histogram_percentile(histogram, 0.1), 0);
    assert_int_equal(histogram_percentile(histogram, 0.5), 1);
    assert_true(histogram_percentile(histogram, 1) == INT64_MAX);
    free(histogram);
}

/* Mean and percentiles of many draws. */
static struct histogram *drawn(const struct distribution *distribution)
{
    struct histogram *histogram = new_histogram();
    struct prng prng;

    prng_init(&prng, 3);
    for (int i = 0; i < 200000; i++)
        histogram_add(histogram, distribution_draw_ns(distribution, &prng));
    return histogram;
}

static void assert_near(double value, double expected)
{
    if (fabs(value - expected) > expected * 0.02)
        fail_msg("%g is not near %g", value, expected);
}

static void test_distributions_have_the_figures_they_were_given(void **state)
{
    static const double values[] = {1, 2, 3, 10};
    struct distribution normal = {.kind = DISTRIBUTION_NORMAL, .a = 100, .b = 10};
    struct distribution empirical = {.kind = DISTRIBUTION_EMPIRICAL, .values_ms = values, .count = 4};
    struct distribution by_mean = distribution_lognormal(120, 60), by_p = distribution_lognormal_p(100, 400);
    struct histogram *histogram = drawn(&normal);

    (void)state;
    assert_near(histogram_mean(histogram) / NS_PER_MS, 100);
    assert_near((double)histogram_percentile(histogram, 0.99) / NS_PER_MS, 123.26);
    free(histogram);
    histogram = drawn(&by_mean);
    assert_near(histogram_mean(histogram) / NS_PER_MS, 120);
    assert_near(distribution_mean_ms(&by_mean), 120);
    free(histogram);
    histogram = drawn(&by_p);
    assert_near((double)histogram_percentile(histogram, 0.5) / NS_PER_MS, 100);
    assert_near((double)histogram_percentile(histogram, 0.99) / NS_PER_MS, 400);
    free(histogram);
    histogram = drawn(&empirical);
    assert_near(histogram_mean(histogram) / NS_PER_MS, 4);
    assert_true(distribution_mean_ms(&empirical) == 4);
    free(histogram);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repeated_values_are_exact),
        cmocka_unit_test(test_spread_values_are_within_a_percent),
        cmocka_unit_test(test_extremes_have_their_buckets),
        cmocka_unit_test(test_distributions_have_the_figures_they_were_given),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
