/*
 * The pool arithmetic rests on one convention: a unit within the size of its slice is the slice's; every other unit,
 * those above a slice that was made smaller included, is in its function's `on_demand` and, if the function has no RC,
 * also in the account's `unreserved_in_flight`. So a change of RC or PC only moves numbers, and releasing a unit needs
 * no knowledge of what was true when it was taken.
 *
 * The rate window is a ring of ten slots rather than a token bucket because the service saves no allowance up: a
 * bucket of 10 x C refilled at 10 x C per second would let nearly twice that pass in some seconds.
 */
#include "core/counting.h"

#include <assert.h>
#include <string.h>

#define SLOT_NS      (NS_PER_S / COUNTING_RATE_SLOTS)
#define TOKEN        (COUNTING_SCALING_SECONDS * NS_PER_S)
#define SCALING_SPAN (COUNTING_SCALING_SECONDS * NS_PER_S)

static const char *const REASON_NAMES[COUNTING_REASONS] = {
    [COUNTING_REASON_CONCURRENCY] = "ConcurrentInvocationLimitExceeded",
    [COUNTING_REASON_RESERVED_CONCURRENCY] = "ReservedFunctionConcurrentInvocationLimitExceeded",
    [COUNTING_REASON_RATE] = "FunctionInvocationRateLimitExceeded",
    [COUNTING_REASON_RESERVED_RATE] = "ReservedFunctionInvocationRateLimitExceeded",
};

static const char *const KIND_NAMES[COUNTING_KINDS] = {
    [COUNTING_KIND_RESERVED] = "reserved",
    [COUNTING_KIND_UNRESERVED] = "unreserved",
    [COUNTING_KIND_ACCOUNT] = "account",
    [COUNTING_KIND_RATE] = "rate",
    [COUNTING_KIND_RESERVED_RATE] = "reserved-rate",
    [COUNTING_KIND_SCALING_RATE] = "scaling-rate",
};

const char *counting_reason_name(enum counting_reason reason)
{
    return REASON_NAMES[reason];
}

const char *counting_kind_name(enum counting_kind kind)
{
    return KIND_NAMES[kind];
}

/* ---- the sliding second ---- */

static void window_advance(struct counting_window *window, int64_t now_ns)
{
    int64_t slot = now_ns / SLOT_NS;

    if (slot <= window->slot)
        return;
    if (slot - window->slot >= COUNTING_RATE_SLOTS) {
        memset(window->slots, 0, sizeof(window->slots));
        window->total = 0;
    } else {
        for (int64_t passed = window->slot + 1; passed <= slot; passed++) {
            int32_t *expired = &window->slots[passed % COUNTING_RATE_SLOTS];
            window->total -= *expired;
            *expired = 0;
        }
    }
    window->slot = slot;
}

static bool window_is_full(struct counting_window *window, int32_t quota, int64_t now_ns)
{
    window_advance(window, now_ns);
    return window->total >= (int64_t)quota * COUNTING_RATE_FACTOR;
}

static void window_count(struct counting_window *window, int64_t now_ns)
{
    window_advance(window, now_ns);
    window->slots[window->slot % COUNTING_RATE_SLOTS]++;
    window->total++;
}

/* ---- limits ---- */

static int32_t slice_excess(const struct counting_slice *slice)
{
    return MAX(0, slice->used - slice->size);
}

static void function_add_on_demand(struct counting_function *function, int32_t count)
{
    function->on_demand += count;
    if (!function->has_reserved)
        function->account->unreserved_in_flight += count;
}

/* After every change of limits: what is claimed beyond the limit from now on is the change's doing. */
static void account_settle(struct counting_account *account)
{
    account->claim_ceiling = MAX((int64_t)account->concurrency, counting_claimed(account));
}

void counting_account_init(struct counting_account *account, int32_t concurrency, int32_t unreserved_minimum,
                           int32_t scaling_rate)
{
    *account = (struct counting_account){0};
    counting_account_set(account, concurrency, unreserved_minimum, scaling_rate);
}

void counting_account_set(struct counting_account *account, int32_t concurrency, int32_t unreserved_minimum,
                          int32_t scaling_rate)
{
    account->concurrency = concurrency;
    account->unreserved_minimum = unreserved_minimum;
    account->scaling_rate = scaling_rate;
    account_settle(account);
}

void counting_function_init(struct counting_function *function, struct counting_account *account)
{
    *function = (struct counting_function){.account = account};
}

void counting_slice_init(struct counting_slice *slice, struct counting_function *function)
{
    *slice = (struct counting_slice){.function = function};
}

int64_t counting_unreserved(const struct counting_account *account)
{
    return (int64_t)account->concurrency - account->reserved_total - account->provisioned_total;
}

int64_t counting_claimed(const struct counting_account *account)
{
    return (int64_t)account->unreserved_in_flight + account->reserved_total + account->provisioned_total;
}

/* ---- admission ---- */

static enum counting_verdict throttled(struct counting_throttle *ret_throttle, enum counting_kind kind,
                                       enum counting_reason reason, int64_t limit, int64_t used)
{
    *ret_throttle = (struct counting_throttle){kind, reason, limit, used};
    return COUNTING_THROTTLED;
}

/* Is a unit of the slice to be had? If not, the request spills. */
static void slice_offer(struct counting_slice *slice, bool limits_rate, int64_t now_ns, struct counting_grant *grant)
{
    grant->spilled_by_rate = limits_rate && window_is_full(&slice->window, slice->size, now_ns);
    grant->spilled = grant->spilled_by_rate || slice->used >= slice->size;
    if (!grant->spilled)
        grant->slice = slice;
}

static enum counting_verdict check_concurrency(const struct counting_function *function,
                                               const struct counting_slice *granted,
                                               struct counting_throttle *ret_throttle)
{
    const struct counting_account *account = function->account;

    if (function->has_reserved) {
        int32_t set_aside = function->on_demand + function->provisioned_total;
        if (function->in_flight >= function->reserved || (!granted && set_aside >= function->reserved))
            return throttled(ret_throttle, COUNTING_KIND_RESERVED, COUNTING_REASON_RESERVED_CONCURRENCY,
                             function->reserved, MAX(function->in_flight, set_aside));
    } else if (!granted && account->unreserved_in_flight >= counting_unreserved(account)) {
        return throttled(ret_throttle, COUNTING_KIND_UNRESERVED, COUNTING_REASON_CONCURRENCY,
                         MAX(counting_unreserved(account), 0), account->unreserved_in_flight);
    }
    if (account->in_flight >= account->concurrency)
        return throttled(ret_throttle, COUNTING_KIND_ACCOUNT, COUNTING_REASON_CONCURRENCY, account->concurrency,
                         account->in_flight);
    return COUNTING_ADMITTED;
}

static enum counting_verdict check_rate(struct counting_function *function, int64_t now_ns,
                                        struct counting_throttle *ret_throttle)
{
    struct counting_account *account = function->account;

    if (function->has_reserved) {
        if (window_is_full(&function->window, function->reserved, now_ns))
            return throttled(ret_throttle, COUNTING_KIND_RESERVED_RATE, COUNTING_REASON_RESERVED_RATE,
                             (int64_t)function->reserved * COUNTING_RATE_FACTOR, function->window.total);
    } else if (window_is_full(&account->window, account->concurrency, now_ns)) {
        return throttled(ret_throttle, COUNTING_KIND_RATE, COUNTING_REASON_RATE,
                         (int64_t)account->concurrency * COUNTING_RATE_FACTOR, account->window.total);
    }
    return COUNTING_ADMITTED;
}

enum counting_verdict counting_check(struct counting_function *function, struct counting_slice *slice, bool limits_rate,
                                     int64_t now_ns, struct counting_grant *ret_grant,
                                     struct counting_throttle *ret_throttle)
{
    struct counting_grant grant = {.function = function, .counts_rate = limits_rate};

    assert(!slice || slice->function == function);
    if (slice)
        slice_offer(slice, limits_rate, now_ns, &grant);
    if (check_concurrency(function, grant.slice, ret_throttle) == COUNTING_THROTTLED)
        return COUNTING_THROTTLED;
    if (limits_rate && check_rate(function, now_ns, ret_throttle) == COUNTING_THROTTLED)
        return COUNTING_THROTTLED;
    *ret_grant = grant;
    return COUNTING_ADMITTED;
}

void counting_take(struct counting_receipt *receipt, const struct counting_grant *grant, int64_t now_ns)
{
    struct counting_function *function = grant->function;

    assert(!receipt->function);
    if (grant->slice) {
        assert(grant->slice->used < grant->slice->size);
        grant->slice->used++;
    } else {
        function_add_on_demand(function, 1);
    }
    if (grant->counts_rate) {
        window_count(function->has_reserved ? &function->window : &function->account->window, now_ns);
        if (grant->slice)
            window_count(&grant->slice->window, now_ns);
    }
    function->in_flight++;
    function->account->in_flight++;
    *receipt = (struct counting_receipt){function, grant->slice};
}

void counting_release(struct counting_receipt *receipt)
{
    struct counting_function *function = receipt->function;
    struct counting_slice *slice = receipt->slice;

    assert(function && function->in_flight > 0 && function->account->in_flight > 0);
    if (!slice || slice->used > slice->size) {
        assert(function->on_demand > 0);
        function_add_on_demand(function, -1);
    }
    if (slice) {
        assert(slice->used > 0);
        slice->used--;
    }
    function->in_flight--;
    function->account->in_flight--;
    *receipt = (struct counting_receipt){0};
}

/* ---- the scaling rate ---- */

static int64_t bucket_capacity(const struct counting_account *account)
{
    return account->scaling_rate * TOKEN;
}

static void bucket_refill(struct counting_function *function, int64_t now_ns)
{
    struct counting_bucket *bucket = &function->bucket;
    int64_t capacity = bucket_capacity(function->account);
    int64_t elapsed_ns = now_ns - bucket->refilled_ns;

    if (!bucket->started || elapsed_ns >= SCALING_SPAN)
        bucket->level = capacity;
    else if (elapsed_ns > 0)
        bucket->level += elapsed_ns * function->account->scaling_rate;
    bucket->level = MIN(capacity, bucket->level);
    bucket->started = true;
    bucket->refilled_ns = now_ns;
}

enum counting_verdict counting_check_scaling(struct counting_function *function, int64_t now_ns,
                                             struct counting_throttle *ret_throttle)
{
    int64_t rate = function->account->scaling_rate;

    bucket_refill(function, now_ns);
    if (function->bucket.level >= TOKEN)
        return COUNTING_ADMITTED;
    return throttled(ret_throttle, COUNTING_KIND_SCALING_RATE,
                     function->has_reserved ? COUNTING_REASON_RESERVED_RATE : COUNTING_REASON_RATE, rate, rate);
}

void counting_take_scaling(struct counting_function *function, int64_t now_ns)
{
    bucket_refill(function, now_ns);
    assert(function->bucket.level >= TOKEN);
    function->bucket.level -= TOKEN;
}

/* ---- changes of RC and PC ---- */

/* The unreserved pool if this function had neither RC nor PC. */
static int64_t unreserved_without(const struct counting_function *function)
{
    return counting_unreserved(function->account) +
           (function->has_reserved ? function->reserved : function->provisioned_total);
}

enum counting_change counting_check_reserved(const struct counting_function *function, int32_t count,
                                             int32_t *ret_number)
{
    const struct counting_account *account = function->account;

    if (count == 0)
        return COUNTING_OK;
    if (count < function->provisioned_total) {
        *ret_number = function->provisioned_total;
        return COUNTING_BELOW_PROVISIONED;
    }
    if (function->has_reserved && count <= function->reserved)
        return COUNTING_OK;
    if (unreserved_without(function) - count < account->unreserved_minimum) {
        *ret_number = account->unreserved_minimum;
        return COUNTING_BELOW_MINIMUM;
    }
    return COUNTING_OK;
}

enum counting_change counting_set_reserved(struct counting_function *function, int32_t count, int32_t *ret_number)
{
    struct counting_account *account = function->account;
    enum counting_change change = counting_check_reserved(function, count, ret_number);

    if (change != COUNTING_OK)
        return change;
    if (!function->has_reserved) {
        account->unreserved_in_flight -= function->on_demand;
        account->provisioned_total -= function->provisioned_total;
        function->reserved = 0;
        function->has_reserved = true;
    }
    account->reserved_total += count - function->reserved;
    function->reserved = count;
    account_settle(account);
    return COUNTING_OK;
}

void counting_clear_reserved(struct counting_function *function)
{
    struct counting_account *account = function->account;

    if (!function->has_reserved)
        return;
    account->reserved_total -= function->reserved;
    account->unreserved_in_flight += function->on_demand;
    account->provisioned_total += function->provisioned_total;
    function->has_reserved = false;
    function->reserved = 0;
    account_settle(account);
}

enum counting_change counting_check_provisioned(const struct counting_function *function,
                                                const struct counting_slice *slice, int32_t count, int32_t *ret_number)
{
    const struct counting_account *account = function->account;
    int32_t present = slice ? slice->size : 0;
    int64_t pool = counting_unreserved(account) + present;

    if (count <= present)
        return COUNTING_OK;
    if (function->has_reserved) {
        *ret_number = function->reserved;
        return function->provisioned_total - present + (int64_t)count > function->reserved ? COUNTING_OVER_RESERVED
                                                                                           : COUNTING_OK;
    }
    if (count > pool) {
        *ret_number = (int32_t)MAX(pool, 0);
        return COUNTING_OVER_POOL;
    }
    if (pool - count < account->unreserved_minimum) {
        *ret_number = account->unreserved_minimum;
        return COUNTING_BELOW_MINIMUM;
    }
    return COUNTING_OK;
}

void counting_resize_slice(struct counting_slice *slice, int32_t size)
{
    struct counting_function *function = slice->function;
    int32_t excess_before = slice_excess(slice);

    function->provisioned_total += size - slice->size;
    if (!function->has_reserved)
        function->account->provisioned_total += size - slice->size;
    slice->size = size;
    function_add_on_demand(function, slice_excess(slice) - excess_before);
    account_settle(function->account);
}
