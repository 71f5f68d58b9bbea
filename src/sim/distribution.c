#include "sim/distribution.h"

#include "base/clock.h"
#include "base/macros.h"

#include <math.h>

/* The 99th percentile of the standard normal distribution. */
#define NORMAL_P99 2.3263478740408408

/* Longer durations are cut to this, some hundred days; keeps every time within int64. */
#define LONGEST_MS 1e10

struct distribution distribution_constant(double ms)
{
    return (struct distribution){.kind = DISTRIBUTION_CONSTANT, .a = ms};
}

struct distribution distribution_lognormal(double mean_ms, double deviation_ms)
{
    double ratio = deviation_ms / mean_ms, variance = log1p(ratio * ratio);

    return (struct distribution){.kind = DISTRIBUTION_LOGNORMAL, .a = log(mean_ms) - variance / 2, .b = sqrt(variance)};
}

struct distribution distribution_lognormal_p(double p50_ms, double p99_ms)
{
    return (struct distribution){
        .kind = DISTRIBUTION_LOGNORMAL, .a = log(p50_ms), .b = (log(p99_ms) - log(p50_ms)) / NORMAL_P99};
}

/* Box and Muller's, one of the pair: no state between draws. */
static double draw_normal(struct prng *prng)
{
    double radius = sqrt(-2 * log1p(-prng_uniform(prng)));

    return radius * cos(2 * M_PI * prng_uniform(prng));
}

static double draw_ms(const struct distribution *distribution, struct prng *prng)
{
    switch (distribution->kind) {
    case DISTRIBUTION_CONSTANT:
        return distribution->a;
    case DISTRIBUTION_NORMAL:
        return distribution->a + distribution->b * draw_normal(prng);
    case DISTRIBUTION_LOGNORMAL:
        return exp(distribution->a + distribution->b * draw_normal(prng));
    case DISTRIBUTION_EMPIRICAL:
        return distribution->values_ms[prng_below(prng, distribution->count)];
    }
    return 0;
}

int64_t distribution_draw_ns(const struct distribution *distribution, struct prng *prng)
{
    double ms = draw_ms(distribution, prng);

    return (int64_t)(MIN(MAX(ms, 0), LONGEST_MS) * (double)NS_PER_MS + 0.5);
}

double distribution_mean_ms(const struct distribution *distribution)
{
    double sum = 0;

    switch (distribution->kind) {
    case DISTRIBUTION_CONSTANT:
    case DISTRIBUTION_NORMAL:
        return distribution->a;
    case DISTRIBUTION_LOGNORMAL:
        return exp(distribution->a + distribution->b * distribution->b / 2);
    case DISTRIBUTION_EMPIRICAL:
        for (size_t i = 0; i < distribution->count; i++)
            sum += distribution->values_ms[i];
        return sum / (double)distribution->count;
    }
    return 0;
}
