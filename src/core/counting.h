/*
 * The counting service: may this request run, and which limit says no if not. It keeps the account limit, reserved
 * concurrency (RC), the slices of provisioned concurrency (PC), the request rate and the scaling rate of one account in
 * one Region. Everything is arithmetic on counters embedded in the objects of the account; nothing allocates, calls
 * back or reads a clock. Single-threaded, as all of core.
 *
 * What a request draws on
 *
 *     account limit ─┬─ RC of a function ─┬─ PC slices of that function
 *                    │                    └─ the rest of the RC
 *                    ├─ PC slices of functions without RC
 *                    └─ the unreserved pool = limit - sum of RC - sum of PC of functions without RC
 *
 * A request on a qualifier with PC takes a unit of that slice while one is free and the slice's own rate (10 x PC)
 * allows; else it spills into the rest of the RC or into the unreserved pool. All others draw on those at once.
 *
 * Order of the checks, for requests that break several limits at once (the service does not document it):
 *   1. concurrency: RC, unreserved pool, account. RC 0 must always answer with the reserved reason, and its rate
 *      would be 0 as well, so concurrency comes first;
 *   2. request rate, 10 x RC or 10 x the account limit in a sliding second. Every request of a function without RC
 *      counts in the account's window, every request of a function with RC in the function's own, those on slice
 *      units too: a unit of PC is a part of the RC or of the account limit. Throttled requests count nowhere;
 *   3. scaling rate, and only when no environment is there, so it is asked separately.
 *
 * Changes of RC, PC or the limit never touch requests in flight. Units above the new size of a slice count as spilled.
 * For as long as more is in flight than the new division allows, the account limit is a hard stop of its own (kind
 * "account"): in no case do more than `concurrency` requests run.
 */
#pragma once

#include "base/clock.h"
#include "base/macros.h"

#include <stdbool.h>
#include <stdint.h>

/* Reasons of TooManyRequestsException, with the names that go over the wire. */
enum counting_reason {
    COUNTING_REASON_CONCURRENCY,          /* ConcurrentInvocationLimitExceeded */
    COUNTING_REASON_RESERVED_CONCURRENCY, /* ReservedFunctionConcurrentInvocationLimitExceeded */
    COUNTING_REASON_RATE,                 /* FunctionInvocationRateLimitExceeded */
    COUNTING_REASON_RESERVED_RATE,        /* ReservedFunctionInvocationRateLimitExceeded */
    COUNTING_REASONS
};

/* Which limit exactly; finer than the reason, for X-Kiln-Throttle and the log. */
enum counting_kind {
    COUNTING_KIND_RESERVED,      /* "reserved": RC used up (0 included), PC inside it counted as used */
    COUNTING_KIND_UNRESERVED,    /* "unreserved": the pool of functions without RC used up */
    COUNTING_KIND_ACCOUNT,       /* "account": the account limit itself; only for a while after limits were changed */
    COUNTING_KIND_RATE,          /* "rate": 10 x the account limit per second */
    COUNTING_KIND_RESERVED_RATE, /* "reserved-rate": 10 x RC per second */
    COUNTING_KIND_SCALING_RATE,  /* "scaling-rate": new environments per 10 s of the function */
    COUNTING_KINDS
};

/* A refusal: `X-Kiln-Throttle: KIND; limit=LIMIT; used=USED`. */
struct counting_throttle {
    enum counting_kind kind;
    enum counting_reason reason;
    int64_t limit;
    int64_t used;
};

/* "ReservedFunctionConcurrentInvocationLimitExceeded" and so on. */
const char *counting_reason_name(enum counting_reason reason);
/* "reserved", "scaling-rate" and so on. */
const char *counting_kind_name(enum counting_kind kind);

enum {
    COUNTING_RATE_FACTOR = 10, /* requests per second for one unit of concurrency */
    COUNTING_RATE_SLOTS = 10,  /* the sliding second consists of this many slots */
    COUNTING_SCALING_SECONDS = 10,
    COUNTING_MAXIMUM = 100 * 1000 * 1000, /* no limit or count may be larger; keeps all products within int64 */
};

/* Requests admitted in the last second, in ten slots of 100 ms: this one and the nine before. Zero-initialised it is
 * empty. */
struct counting_window {
    int64_t slot; /* number of the current slot: now / 100 ms */
    int32_t total;
    int32_t slots[COUNTING_RATE_SLOTS];
};

/* The scaling rate of a function: `rate` tokens per 10 s refilled continuously, never more than `rate` saved up.
 * Counted in parts of a token so small that no refill is rounded. */
struct counting_bucket {
    int64_t level; /* tokens x 10^10 */
    int64_t refilled_ns;
    bool started; /* false: never used, hence full */
};

struct counting_account {
    int32_t concurrency;        /* the limit */
    int32_t unreserved_minimum; /* what RC and PC must leave unreserved */
    int32_t scaling_rate;       /* new environments per 10 s and function */

    int32_t reserved_total;       /* sum of RC */
    int32_t provisioned_total;    /* sum of PC of functions without RC */
    int32_t unreserved_in_flight; /* units on the unreserved pool, spilled ones included */
    int32_t in_flight;            /* all units out */
    int64_t claim_ceiling;        /* the most that may be claimed now; above `concurrency` only after limits changed */
    struct counting_window window;
};

struct counting_function {
    struct counting_account *account;
    bool has_reserved;
    int32_t reserved;          /* RC, valid if has_reserved */
    int32_t provisioned_total; /* sum of the sizes of its slices */
    int32_t on_demand;         /* units on the rest of the RC or on the unreserved pool */
    int32_t in_flight;         /* on_demand + units within slices */
    struct counting_bucket bucket;
    struct counting_window window; /* used while has_reserved */
};

/* PC of one qualifier. `used` may exceed `size` after PC was lowered; the excess is in the function's on_demand. */
struct counting_slice {
    struct counting_function *function;
    int32_t size;
    int32_t used;
    struct counting_window window;
};

/* One unit of concurrency, embedded in the request. Zero-initialised it is empty. It must be released exactly once. */
struct counting_receipt {
    struct counting_function *function; /* NULL: no unit taken */
    struct counting_slice *slice;       /* the unit is this slice's; NULL: on demand */
};

/* What counting_check found, to be given to counting_take in the same turn. */
struct counting_grant {
    struct counting_function *function;
    struct counting_slice *slice; /* a unit of this slice will be taken; NULL: on demand */
    bool spilled;                 /* a slice was named, but it had no unit free or its rate was used up */
    bool spilled_by_rate;         /* its rate was used up: the request must not run on its environments */
    bool counts_rate;             /* takes a place in the windows */
};

void counting_account_init(struct counting_account *account, int32_t concurrency, int32_t unreserved_minimum,
                           int32_t scaling_rate);
/* Changes the limits at once. What is in flight stays; what is reserved stays even if it is now too much. */
void counting_account_set(struct counting_account *account, int32_t concurrency, int32_t unreserved_minimum,
                          int32_t scaling_rate);
void counting_function_init(struct counting_function *function, struct counting_account *account);
void counting_slice_init(struct counting_slice *slice, struct counting_function *function);

enum counting_verdict { COUNTING_ADMITTED, COUNTING_THROTTLED };

/*
 * Steps 1 and 2: may a request on `slice` (NULL: a qualifier without PC) of `function` run now? Changes nothing but
 * expired slots. `limits_rate` false exempts it from the 10 x rules (the asynchronous path). ret_grant is set when
 * ADMITTED, ret_throttle when THROTTLED.
 */
enum counting_verdict counting_check(struct counting_function *function, struct counting_slice *slice, bool limits_rate,
                                     int64_t now_ns, struct counting_grant *ret_grant,
                                     struct counting_throttle *ret_throttle) MUST_USE;

/* Step 3: does the scaling rate allow one more environment? Changes nothing but the refill. */
enum counting_verdict counting_check_scaling(struct counting_function *function, int64_t now_ns,
                                             struct counting_throttle *ret_throttle) MUST_USE;
/* Takes one token; counting_check_scaling must just have said ADMITTED. */
void counting_take_scaling(struct counting_function *function, int64_t now_ns);

/* Takes the unit that counting_check granted in this turn. The receipt must be empty. */
void counting_take(struct counting_receipt *receipt, const struct counting_grant *grant, int64_t now_ns);
/* Gives the unit back and empties the receipt, which must hold one. */
void counting_release(struct counting_receipt *receipt);
static inline bool counting_holds(const struct counting_receipt *receipt)
{
    return receipt->function;
}

/* What a change of RC or PC came to; anything but OK leaves everything as it was. The texts are api's. */
enum counting_change {
    COUNTING_OK,
    COUNTING_BELOW_PROVISIONED, /* RC below the function's total PC; number: that total */
    COUNTING_BELOW_MINIMUM,     /* less than the unreserved minimum would be left; number: that minimum */
    COUNTING_OVER_RESERVED,     /* total PC would exceed the function's RC; number: the RC */
    COUNTING_OVER_POOL, /* PC exceeds the unreserved pool; number: that pool, PC of this qualifier not counted */
};

/* Would RC `count` be accepted? 0 and anything not above the present RC always are, unless below the total PC; 0 even
 * then. */
enum counting_change counting_check_reserved(const struct counting_function *function, int32_t count,
                                             int32_t *ret_number) MUST_USE;
/* The same and, when OK, sets it. Units in flight move from the unreserved pool to the RC. */
enum counting_change counting_set_reserved(struct counting_function *function, int32_t count,
                                           int32_t *ret_number) MUST_USE;
/* Removes RC, if there is one; what is in flight counts as unreserved from then on. */
void counting_clear_reserved(struct counting_function *function);

/* Would PC `count` for this slice be accepted? Lowering always is. `slice` NULL: a new one. */
enum counting_change counting_check_provisioned(const struct counting_function *function,
                                                const struct counting_slice *slice, int32_t count,
                                                int32_t *ret_number) MUST_USE;
/* Sets the size of a slice without asking; the units are set aside from now on. 0 gives all back. */
void counting_resize_slice(struct counting_slice *slice, int32_t size);

/* limit - sum of RC - sum of PC of functions without RC: UnreservedConcurrentExecutions of GetAccountSettings, and the
 * size of the unreserved pool. May be negative for a while after the limit was lowered. */
int64_t counting_unreserved(const struct counting_account *account);
/* ClaimedAccountConcurrency: unreserved in flight + sum of RC + sum of PC of functions without RC. */
int64_t counting_claimed(const struct counting_account *account);
