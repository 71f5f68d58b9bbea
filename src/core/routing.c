#include "core/routing.h"

#include "base/macros.h"

bool routing_is_valid(const struct routing *routing)
{
    if (!routing->version)
        return false;
    if (!routing->second)
        return true;
    return routing->second != routing->version && routing->second_weight >= 0 && routing->second_weight <= 1;
}

struct core_version *routing_choose(const struct routing *routing, uint64_t random)
{
    /* The upper 53 bits as a number in [0, 1): weight 0 never and weight 1 always chooses the second. */
    if (routing->second && (double)(random >> 11) * 0x1.0p-53 < routing->second_weight)
        return routing->second;
    return routing->version;
}

int32_t routing_second_share(const struct routing *routing, int32_t count)
{
    double weight = routing->second ? routing->second_weight : 0;
    int32_t share = (int32_t)(count * weight + 0.5);

    if (weight <= 0 || weight >= 1 || count < 2)
        return share;
    return MIN(MAX(share, 1), count - 1);
}
