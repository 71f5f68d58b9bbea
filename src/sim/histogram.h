/*
 * Percentiles of any number of durations in fixed memory. Buckets are log-linear, 128 to every power of two, and each
 * keeps the sum of what fell into it, so a percentile is the mean of its bucket: exact where durations repeat (constant
 * ones), within 0.8% otherwise.
 */
#pragma once

#include <stdint.h>

enum { HISTOGRAM_SUB_BITS = 7, HISTOGRAM_BUCKETS = (64 - HISTOGRAM_SUB_BITS) << HISTOGRAM_SUB_BITS };

/* Zero-initialised is empty. */
struct histogram {
    int64_t count;
    int64_t max_ns;
    double sum_ns;
    struct {
        int64_t count;
        double sum_ns;
    } buckets[HISTOGRAM_BUCKETS];
};

/* value_ns >= 0. */
void histogram_add(struct histogram *histogram, int64_t value_ns);
/* The least value that `fraction` (0 to 1) of all values do not exceed; 0 when empty. */
int64_t histogram_percentile(const struct histogram *histogram, double fraction);
/* 0 when empty. */
double histogram_mean(const struct histogram *histogram);
void histogram_merge(struct histogram *into, const struct histogram *from);
