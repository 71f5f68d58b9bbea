/*
 * How long something takes: always the same, normally or log-normally distributed, or drawn from a list of measured
 * values. The random numbers come from the caller's generator.
 */
#pragma once

#include "base/random.h"

#include <stdint.h>

enum distribution_kind {
    DISTRIBUTION_CONSTANT,  /* a ms */
    DISTRIBUTION_NORMAL,    /* mean a ms, standard deviation b ms; below 0 counts as 0 */
    DISTRIBUTION_LOGNORMAL, /* exp of a normal one with mean a and standard deviation b */
    DISTRIBUTION_EMPIRICAL, /* one of values, each as likely */
};

/* Zero-initialised: 0 ms. */
struct distribution {
    enum distribution_kind kind;
    double a, b;
    const double *values_ms; /* borrowed */
    size_t count;
};

struct distribution distribution_constant(double ms);
/* With this mean and standard deviation of the durations themselves; mean > 0. */
struct distribution distribution_lognormal(double mean_ms, double deviation_ms);
/* With this median and 99th percentile; 0 < p50 <= p99. */
struct distribution distribution_lognormal_p(double p50_ms, double p99_ms);
int64_t distribution_draw_ns(const struct distribution *distribution, struct prng *prng);
double distribution_mean_ms(const struct distribution *distribution);
