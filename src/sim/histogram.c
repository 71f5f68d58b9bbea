#include "sim/histogram.h"

#include "base/macros.h"

#include <assert.h>
#include <math.h>

static inline unsigned bucket_of(int64_t value_ns)
{
    uint64_t value = (uint64_t)value_ns;
    unsigned shift;

    if (value < (1u << (HISTOGRAM_SUB_BITS + 1)))
        return (unsigned)value;
    shift = 63u - (unsigned)__builtin_clzll(value) - HISTOGRAM_SUB_BITS;
    return (shift << HISTOGRAM_SUB_BITS) + (unsigned)(value >> shift);
}

void histogram_add(struct histogram *histogram, int64_t value_ns)
{
    unsigned bucket = bucket_of(value_ns);

    assert(value_ns >= 0);
    histogram->count++;
    histogram->sum_ns += (double)value_ns;
    histogram->max_ns = MAX(histogram->max_ns, value_ns);
    histogram->buckets[bucket].count++;
    histogram->buckets[bucket].sum_ns += (double)value_ns;
}

int64_t histogram_percentile(const struct histogram *histogram, double fraction)
{
    int64_t rank = MAX((int64_t)1, (int64_t)ceil(fraction * (double)histogram->count));
    int64_t seen = 0;

    if (rank >= histogram->count)
        return histogram->max_ns;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += histogram->buckets[i].count;
        if (seen >= rank)
            return (int64_t)llround(histogram->buckets[i].sum_ns / (double)histogram->buckets[i].count);
    }
    return histogram->max_ns;
}

double histogram_mean(const struct histogram *histogram)
{
    return histogram->count ? histogram->sum_ns / (double)histogram->count : 0;
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
    into->count += from->count;
    into->sum_ns += from->sum_ns;
    into->max_ns = MAX(into->max_ns, from->max_ns);
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        into->buckets[i].count += from->buckets[i].count;
        into->buckets[i].sum_ns += from->buckets[i].sum_ns;
    }
}
