/*
 * Alias routing: an alias names one version, or two with a weight for the second. One random draw per request decides;
 * the draw comes from the caller, so that a run can be repeated. Plain values, no state.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct core_version;

/* Where an alias points. Both versions are borrowed and belong to the alias's function. */
struct routing {
    struct core_version *version;
    struct core_version *second; /* AdditionalVersionWeights; NULL: none */
    double second_weight;        /* 0 to 1: the part of the requests that goes to `second` */
};

/* True when the weights are usable: second set and different from version, or no second; 0 <= weight <= 1. */
bool routing_is_valid(const struct routing *routing);
/* The version that a request with this draw (any 64 random bits) runs on. */
struct core_version *routing_choose(const struct routing *routing, uint64_t random);
/*
 * PC of a weighted alias divided by weight: how much of `count` belongs to the second version. Rounded to the nearest;
 * but a version that gets any requests at all gets at least one environment when there are two or more to give.
 */
int32_t routing_second_share(const struct routing *routing, int32_t count);
