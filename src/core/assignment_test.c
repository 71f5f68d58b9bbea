/* Which environment a request gets, and what becomes of requests and environments when things go wrong; through
 * core.h, with core_validate after every step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/test_world.h"

static struct core_version *latest(struct world *world, const struct core_limits *limits)
{
    world_init(world, limits);
    return world_add_function(world, "f");
}

static struct core_limits with_scaling(int32_t rate)
{
    struct core_limits limits = core_limits_default();

    limits.scaling_rate = rate;
    return limits;
}

static struct core_limits strict(void)
{
    struct core_limits limits = core_limits_default();

    limits.mode = ASSIGNMENT_STRICT;
    return limits;
}

static int32_t in_flight(struct world *world)
{
    struct core_account_metrics metrics;

    core_account_read_metrics(world->account, false, &metrics);
    return metrics.concurrency;
}

static void reserve(struct core_version *version, int32_t count)
{
    int32_t number;

    assert_int_equal(core_function_set_reserved(core_version_function(version), count, &number), COUNTING_OK);
}

/* ---- refusals ---- */

static void test_throttled_request_touches_no_environment(void **state)
{
    struct core_limits limits = with_scaling(0);
    struct world_request request = {0};
    struct core_account_metrics metrics;
    struct world world;
    struct core_version *version = latest(&world, &limits);

    (void)state;
    assert_int_equal(world_invoke(&world, version, &request), CORE_THROTTLED);
    assert_int_equal(request.throttle.kind, COUNTING_KIND_SCALING_RATE);
    assert_int_equal(request.core.state, CORE_REQUEST_NEW);
    core_account_read_metrics(world.account, false, &metrics);
    assert_int_equal(metrics.throttles[COUNTING_KIND_SCALING_RATE], 1);
    assert_int_equal(metrics.invocations + metrics.concurrency + metrics.environments + world.starts, 0);
    world_deinit(&world);
}

static void test_reserved_zero_throttles_even_with_a_warm_environment(void **state)
{
    struct world_request request = {0};
    struct world world;
    struct core_version *version = latest(&world, NULL);

    (void)state;
    world_warm(&world, version, 1);
    reserve(version, 0);
    assert_int_equal(world_invoke(&world, version, &request), CORE_THROTTLED);
    assert_int_equal(request.throttle.reason, COUNTING_REASON_RESERVED_CONCURRENCY);
    world_deinit(&world);
}

static void test_full_machine_takes_no_unit_and_no_token(void **state)
{
    struct core_limits limits = with_scaling(1);
    struct world_request request = {0};
    struct world world;
    struct core_version *version = latest(&world, &limits);

    (void)state;
    world.refuse_starts = true;
    assert_int_equal(world_invoke(&world, version, &request), CORE_MACHINE_FULL);
    assert_int_equal(in_flight(&world), 0);
    assert_int_equal(world.worker->used_environments, 0);
    world.refuse_starts = false;
    assert_int_equal(world_invoke(&world, version, &request), CORE_WAITING);
    world_deinit(&world);
}

static void test_objects_that_exist_or_do_not_belong_are_refused(void **state)
{
    struct core_function *function;
    struct core_version *other, *twin;
    struct core_alias *alias;
    struct core_limits limits = core_limits_default();
    struct world world;
    struct core_version *version = latest(&world, NULL);
    struct routing routing = {.version = version};

    (void)state;
    assert_int_equal(core_function_add(world.account, SPAN("f"), NULL, &function), -EEXIST);
    function = core_version_function(version);
    assert_int_equal(core_version_add(function, SPAN("$LATEST"), 1, NULL, &twin), -EEXIST);
    other = world_add_function(&world, "g");
    assert_int_equal(core_alias_add(core_version_function(other), SPAN("a"), &routing, NULL, &alias), -EINVAL);
    assert_int_equal(core_alias_add(function, SPAN("a"), &routing, NULL, &alias), 0);
    assert_int_equal(core_alias_add(function, SPAN("a"), &routing, NULL, &alias), -EEXIST);
    alias = core_alias_find(function, SPAN("a"));
    routing.version = other;
    assert_int_equal(core_alias_set_routing(alias, &routing, world.now_ns), -EINVAL);
    assert_ptr_equal(core_alias_routing(alias)->version, version);
    assert_null(core_alias_find(function, SPAN("b")));
    assert_null(core_function_find(world.account, SPAN("h")));
    limits.concurrency = -1;
    assert_int_equal(core_account_set_limits(world.account, &limits), -EINVAL);
    limits.concurrency = COUNTING_MAXIMUM + 1;
    assert_int_equal(core_account_set_limits(world.account, &limits), -EINVAL);
    world_deinit(&world);
}

/* ---- the usual way ---- */

static void test_first_request_waits_for_a_new_environment(void **state)
{
    struct world_request request = {0};
    struct world world;
    struct core_version *version = latest(&world, NULL);

    (void)state;
    assert_int_equal(world_invoke(&world, version, &request), CORE_WAITING);
    assert_int_equal(world.starts, 1);
    assert_int_equal(in_flight(&world), 1);
    world_ready(&world, world.started[0]);
    assert_ptr_equal(world.served[0], &request);
    assert_ptr_equal(request.core.environment, world.started[0]);
    assert_true(request.core.cold);
    world_deinit(&world);
}

static void test_idle_environment_is_used_again(void **state)
{
    struct world_request request = {0};
    struct core_function_metrics metrics;
    struct world world;
    struct core_version *version = latest(&world, NULL);

    (void)state;
    world_warm(&world, version, 1);
    assert_int_equal(world_invoke(&world, version, &request), CORE_SERVED);
    assert_false(request.core.cold);
    assert_int_equal(world.starts, 1);
    core_function_read_metrics(core_version_function(version), false, &metrics);
    assert_int_equal(metrics.invocations, 2);
    assert_int_equal(metrics.cold_starts, 1);
    world_deinit(&world);
}

static void test_most_recently_used_environment_is_taken_first(void **state)
{
    struct world_request a = {0}, b = {0}, c = {0};
    struct core_environment *last;
    struct world world;
    struct core_version *version = latest(&world, NULL);

    (void)state;
    world_warm(&world, version, 2);
    world_invoke(&world, version, &a);
    world_invoke(&world, version, &b);
    last = a.core.environment;
    world_finish(&world, &b);
    world_finish(&world, &a);
    world_invoke(&world, version, &c);
    assert_ptr_equal(c.core.environment, last);
    world_deinit(&world);
}

static void test_environments_belong_to_one_version(void **state)
{
    struct world_request request = {0};
    struct core_version *other;
    struct world world;
    struct core_version *version = latest(&world, NULL);

    (void)state;
    other = world_add_version(core_version_function(version), "1");
    world_warm(&world, version, 1);
    assert_int_equal(world_invoke(&world, other, &request), CORE_WAITING);
    assert_ptr_equal(world.started[1]->version, other);
    world_deinit(&world);
}

static void test_alias_says_which_version_ran(void **state)
{
    struct world_request low = {0}, high = {0};
    struct core_version *other;
    struct core_alias *alias;
    struct world world;
    struct core_version *version = latest(&world, NULL);
    struct routing routing = {.version = version, .second_weight = 0.5};

    (void)state;
    other = routing.second = world_add_version(core_version_function(version), "1");
    alias = world_add_alias(core_version_function(version), "a", version);
    assert_int_equal(core_alias_set_routing(alias, &routing, world.now_ns), 0);
    world.random = 0;
    world_invoke_alias(&world, alias, &low);
    assert_ptr_equal(low.core.version, other);
    world.random = UINT64_MAX;
    world_invoke_alias(&world, alias, &high);
    assert_ptr_equal(high.core.version, version);
    world_deinit(&world);
}

/* ---- waiting ---- */

static void test_oldest_waiting_request_takes_what_comes_free_first(void **state)
{
    struct world_request running = {0}, first = {0}, second = {0};
    struct core_environment *environment;
    struct world world;
    struct core_version *version = latest(&world, NULL);

    (void)state;
    world_warm(&world, version, 1);
    world_invoke(&world, version, &running);
    assert_int_equal(world_invoke(&world, version, &first), CORE_WAITING);
    assert_int_equal(world_invoke(&world, version, &second), CORE_WAITING);
    environment = running.core.environment;
    world_finish(&world, &running);
    assert_ptr_equal(first.core.environment, environment);
    assert_false(first.core.cold);
    world_ready(&world, world.started[1]);
    assert_ptr_equal(second.core.environment, world.started[1]);
    world_ready(&world, world.started[2]);
    assert_int_equal(world.started[2]->state, CORE_ENVIRONMENT_IDLE);
    world_deinit(&world);
}

static void test_environment_coming_for_nobody_covers_the_next_request(void **state)
{
    struct world_request running = {0}, first = {0}, second = {0};
    struct world world;
    struct core_version *version = latest(&world, NULL);

    (void)state;
    world_warm(&world, version, 1);
    world_invoke(&world, version, &running);
    world_invoke(&world, version, &first);
    world_finish(&world, &running); /* first runs there, its own environment is still starting */
    assert_int_equal(world.starts, 2);
    assert_int_equal(world_invoke(&world, version, &second), CORE_WAITING);
    assert_int_equal(world.starts, 2);
    world_ready(&world, world.started[1]);
    assert_ptr_equal(second.core.environment, world.started[1]);
    world_deinit(&world);
}

static void test_strict_request_waits_for_the_environment_made_for_it(void **state)
{
    struct core_limits limits = strict();
    struct world_request running = {0}, waiting = {0};
    struct core_environment *environment;
    struct world world;
    struct core_version *version = latest(&world, &limits);

    (void)state;
    world_warm(&world, version, 1);
    world_invoke(&world, version, &running);
    world_invoke(&world, version, &waiting);
    environment = running.core.environment;
    world_finish(&world, &running);
    assert_int_equal(environment->state, CORE_ENVIRONMENT_IDLE);
    assert_int_equal(waiting.core.state, CORE_REQUEST_WAITING);
    world_ready(&world, world.started[1]);
    assert_ptr_equal(waiting.core.environment, world.started[1]);
    world_deinit(&world);
}

static void test_strict_environments_serve_their_own_in_any_order(void **state)
{
    struct core_limits limits = strict();
    struct world_request a = {0}, b = {0};
    struct world world;
    struct core_version *version = latest(&world, &limits);

    (void)state;
    world_invoke(&world, version, &a);
    world_invoke(&world, version, &b);
    world_ready(&world, world.started[1]);
    assert_ptr_equal(b.core.environment, world.started[1]);
    assert_int_equal(a.core.state, CORE_REQUEST_WAITING);
    world_deinit(&world);
}

/* ---- finishing ---- */

static void test_unit_is_released_with_the_response(void **state)
{
    struct world_request request = {0};
    struct world world;
    struct core_version *version = latest(&world, NULL);

    (void)state;
    world_invoke(&world, version, &request);
    world_ready(&world, world.started[0]);
    world_respond(&world, &request);
    assert_int_equal(in_flight(&world), 0);
    assert_int_equal(request.core.state, CORE_REQUEST_DONE);
    assert_int_equal(world.started[0]->state, CORE_ENVIRONMENT_FINISHING);
    world_deinit(&world);
}

static void test_sequential_client_with_reserved_one_needs_one_environment(void **state)
{
    struct world_request requests[5] = {0};
    struct world world;
    struct core_version *version = latest(&world, NULL);

    (void)state;
    reserve(version, 1);
    world_invoke(&world, version, &requests[0]);
    world_ready(&world, world.started[0]);
    for (int i = 1; i < 5; i++) {
        world_respond(&world, &requests[i - 1]);
        assert_int_equal(world_invoke(&world, version, &requests[i]), CORE_WAITING);
        world.now_ns += 9 * NS_PER_MS;
        core_advance(world.account, world.now_ns);
        world_free(&world, world.started[0]);
        assert_int_equal(requests[i].outcome, CORE_SERVED);
    }
    assert_int_equal(world.starts, 1);
    world_deinit(&world);
}

static void test_finishing_environment_is_claimed_by_one_request_only(void **state)
{
    struct world_request running = {0}, first = {0}, second = {0};
    struct world world;
    struct core_version *version = latest(&world, NULL);

    (void)state;
    world_warm(&world, version, 1);
    world_invoke(&world, version, &running);
    world_respond(&world, &running);
    world_invoke(&world, version, &first);
    assert_int_equal(world.starts, 1);
    world_invoke(&world, version, &second);
    assert_int_equal(world.starts, 2);
    world_free(&world, world.started[0]);
    assert_ptr_equal(first.core.environment, world.started[0]);
    world_deinit(&world);
}

static void test_slow_finisher_is_waited_for_no_longer_than_the_grace(void **state)
{
    struct world_request running = {0}, waiting = {0}, another = {0};
    struct world world;
    struct core_version *version = latest(&world, NULL);

    (void)state;
    world_warm(&world, version, 1);
    world_invoke(&world, version, &running);
    world_respond(&world, &running);
    world_invoke(&world, version, &waiting);
    assert_int_equal(core_next_deadline(world.account), world.now_ns + 10 * NS_PER_MS);
    world_pass(&world, 10 * NS_PER_MS - 1);
    assert_int_equal(world.starts, 1);
    world_pass(&world, 1);
    assert_int_equal(world.starts, 2);
    world_invoke(&world, version, &another); /* it is known to be slow by now */
    assert_int_equal(world.starts, 3);
    world_free(&world, world.started[0]);
    assert_ptr_equal(waiting.core.environment, world.started[0]);
    world_deinit(&world);
}

static void test_grace_without_scaling_rate_ends_in_a_refusal(void **state)
{
    struct core_limits limits = with_scaling(1);
    struct world_request running = {0}, waiting = {0};
    struct world world;
    struct core_version *version = latest(&world, &limits);

    (void)state;
    world_warm(&world, version, 1);
    world_invoke(&world, version, &running);
    world_respond(&world, &running);
    assert_int_equal(world_invoke(&world, version, &waiting), CORE_WAITING);
    world_pass(&world, 10 * NS_PER_MS);
    assert_ptr_equal(world.refused[0], &waiting);
    assert_int_equal(world.throttle.kind, COUNTING_KIND_SCALING_RATE);
    assert_int_equal(waiting.core.state, CORE_REQUEST_DONE);
    assert_int_equal(in_flight(&world), 0);
    world_deinit(&world);
}

static void test_no_grace_starts_at_once(void **state)
{
    struct core_limits limits = core_limits_default();
    struct world_request running = {0}, waiting = {0};
    struct world world;
    struct core_version *version;

    (void)state;
    limits.finishing_grace_ns = 0;
    version = latest(&world, &limits);
    world_warm(&world, version, 1);
    world_invoke(&world, version, &running);
    world_respond(&world, &running);
    world_invoke(&world, version, &waiting);
    assert_int_equal(world.starts, 2);
    world_deinit(&world);
}

static void test_strict_request_may_wait_for_a_finisher(void **state)
{
    struct core_limits limits = strict();
    struct world_request running = {0}, waiting = {0};
    struct world world;
    struct core_version *version = latest(&world, &limits);

    (void)state;
    world_warm(&world, version, 1);
    world_invoke(&world, version, &running);
    world_respond(&world, &running);
    world_invoke(&world, version, &waiting);
    assert_int_equal(world.starts, 1);
    world_pass(&world, 10 * NS_PER_MS);
    assert_int_equal(world.starts, 2); /* tied to the new one from now on */
    world_free(&world, world.started[0]);
    assert_int_equal(waiting.core.state, CORE_REQUEST_WAITING);
    world_ready(&world, world.started[1]);
    assert_ptr_equal(waiting.core.environment, world.started[1]);
    world_deinit(&world);
}

/* ---- deaths ---- */

static void test_start_that_fails_fails_the_oldest_and_returns_its_unit(void **state)
{
    struct world_request first = {0}, second = {0};
    struct core_account_metrics metrics;
    struct world world;
    struct core_version *version = latest(&world, NULL);

    (void)state;
    world_invoke(&world, version, &first);
    world_invoke(&world, version, &second);
    core_environment_failed(world.started[1], world.now_ns);
    core_validate(world.account);
    assert_int_equal(world.failures, 1);
    assert_ptr_equal(world.failed[0], &first);
    assert_int_equal(world.failure, CORE_FAILURE_MACHINE_FULL);
    assert_int_equal(in_flight(&world), 1);
    core_account_read_metrics(world.account, false, &metrics);
    assert_int_equal(metrics.machine_full, 1);
    world_ready(&world, world.started[0]);
    assert_ptr_equal(second.core.environment, world.started[0]);
    world_deinit(&world);
}

static void test_strict_start_that_fails_fails_its_own_request(void **state)
{
    struct core_limits limits = strict();
    struct world_request first = {0}, second = {0};
    struct world world;
    struct core_version *version = latest(&world, &limits);

    (void)state;
    world_invoke(&world, version, &first);
    world_invoke(&world, version, &second);
    core_environment_failed(world.started[1], world.now_ns);
    core_validate(world.account);
    assert_ptr_equal(world.failed[0], &second);
    world_deinit(&world);
}

static void test_death_while_starting_is_replaced_without_asking_again(void **state)
{
    struct core_limits limits = with_scaling(1);
    struct world_request request = {0};
    struct world world;
    struct core_version *version = latest(&world, &limits);

    (void)state;
    world_invoke(&world, version, &request);
    world_gone(&world, world.started[0]);
    assert_int_equal(world.starts, 2);
    assert_int_equal(in_flight(&world), 1);
    world_ready(&world, world.started[1]);
    assert_int_equal(request.outcome, CORE_SERVED);
    world_deinit(&world);
}

static void test_death_of_a_surplus_start_is_not_replaced(void **state)
{
    struct world_request running = {0}, waiting = {0};
    struct world world;
    struct core_version *version = latest(&world, NULL);

    (void)state;
    world_warm(&world, version, 1);
    world_invoke(&world, version, &running);
    world_invoke(&world, version, &waiting);
    world_finish(&world, &running);
    world_gone(&world, world.started[1]);
    assert_int_equal(world.starts, 2);
    world_deinit(&world);
}

static void test_replacement_that_cannot_be_made_fails_the_request(void **state)
{
    struct world_request request = {0};
    struct world world;
    struct core_version *version = latest(&world, NULL);

    (void)state;
    world_invoke(&world, version, &request);
    world.refuse_starts = true;
    world_gone(&world, world.started[0]);
    assert_ptr_equal(world.failed[0], &request);
    assert_int_equal(in_flight(&world), 0);
    world_deinit(&world);
}

static void test_death_while_busy_releases_the_unit(void **state)
{
    struct world_request request = {0};
    struct world world;
    struct core_version *version = latest(&world, NULL);

    (void)state;
    world_invoke(&world, version, &request);
    world_ready(&world, world.started[0]);
    world_gone(&world, world.started[0]);
    assert_int_equal(in_flight(&world), 0);
    assert_int_equal(request.core.state, CORE_REQUEST_DONE);
    assert_int_equal(world.starts, 1);
    assert_int_equal(world.worker->used_environments, 0);
    world_deinit(&world);
}

static void test_death_of_a_claimed_finisher_is_replaced(void **state)
{
    struct world_request running = {0}, waiting = {0};
    struct world world;
    struct core_version *version = latest(&world, NULL);

    (void)state;
    world_warm(&world, version, 1);
    world_invoke(&world, version, &running);
    world_respond(&world, &running);
    world_invoke(&world, version, &waiting);
    world_gone(&world, world.started[0]);
    assert_int_equal(world.starts, 2);
    assert_int_equal(core_next_deadline(world.account), INT64_MAX);
    world_ready(&world, world.started[1]);
    assert_int_equal(waiting.outcome, CORE_SERVED);
    world_deinit(&world);
}

/* ---- reclaiming ---- */

static void test_idle_environments_are_reclaimed_longest_unused_first(void **state)
{
    struct world_request a = {0}, b = {0};
    struct world world;
    struct core_version *version = latest(&world, NULL);

    (void)state;
    world_invoke(&world, version, &a);
    world_invoke(&world, version, &b);
    world_ready(&world, world.started[0]);
    world_ready(&world, world.started[1]);
    world_finish(&world, &b);
    world.now_ns += NS_PER_S;
    world_finish(&world, &a);
    assert_int_equal(core_next_deadline(world.account), world.now_ns + 599 * NS_PER_S);
    world_pass(&world, 599 * NS_PER_S - 1);
    assert_int_equal(world.stops, 0);
    world_pass(&world, 1);
    assert_int_equal(world.stops, 1);
    assert_ptr_equal(world.stopped[0], world.started[1]);
    world_pass(&world, NS_PER_S);
    assert_int_equal(world.stops, 2);
    world_gone(&world, world.stopped[0]);
    world_gone(&world, world.stopped[1]);
    assert_int_equal(core_next_deadline(world.account), INT64_MAX);
    world_deinit(&world);
}

static void test_use_puts_reclaiming_off(void **state)
{
    struct world_request request = {0};
    struct world world;
    struct core_version *version = latest(&world, NULL);

    (void)state;
    world_warm(&world, version, 1);
    world_pass(&world, 599 * NS_PER_S);
    world_invoke(&world, version, &request);
    world_pass(&world, 700 * NS_PER_S);
    assert_int_equal(world.stops, 0);
    world_finish(&world, &request);
    assert_int_equal(core_next_deadline(world.account), world.now_ns + 600 * NS_PER_S);
    world_deinit(&world);
}

static void test_stopping_environment_serves_nobody(void **state)
{
    struct world_request request = {0};
    struct world world;
    struct core_version *version = latest(&world, NULL);

    (void)state;
    world_warm(&world, version, 1);
    world_pass(&world, 600 * NS_PER_S);
    assert_int_equal(world_invoke(&world, version, &request), CORE_WAITING);
    assert_int_equal(world.starts, 2);
    world_gone(&world, world.stopped[0]);
    assert_int_equal(request.outcome, CORE_WAITING);
    world_deinit(&world);
}

static void test_idle_environment_gives_way_when_the_worker_is_full(void **state)
{
    struct world_request request = {0};
    struct core_version *other;
    struct world world;
    struct core_version *version = latest(&world, NULL);

    (void)state;
    world.worker->config.memory_mib = 256;
    other = world_add_function(&world, "g");
    world_warm(&world, version, 2);
    assert_int_equal(world_invoke(&world, other, &request), CORE_WAITING);
    assert_int_equal(world.stops, 1);
    assert_ptr_equal(world.stopped[0], world.started[0]);
    assert_int_equal(world.worker->used_environments, 2);
    world_gone(&world, world.stopped[0]);
    assert_int_equal(world.worker->used_environments, 2);
    world_deinit(&world);
}

static void test_busy_environments_give_no_way(void **state)
{
    struct world_request running = {0}, request = {0};
    struct world world;
    struct core_version *version = latest(&world, NULL);

    (void)state;
    world.worker->config.memory_mib = 128;
    world_warm(&world, version, 1);
    world_invoke(&world, version, &running);
    assert_int_equal(world_invoke(&world, version, &request), CORE_MACHINE_FULL);
    assert_int_equal(in_flight(&world), 1);
    world_deinit(&world);
}

/* ---- retiring and removing ---- */

static void test_retired_environments_stop_when_they_can(void **state)
{
    struct world_request busy = {0}, finishing = {0}, after = {0};
    struct world world;
    struct core_version *version = latest(&world, NULL);

    (void)state;
    world_warm(&world, version, 3);
    world_invoke(&world, version, &busy);
    world_invoke(&world, version, &finishing);
    world_respond(&world, &finishing);
    core_version_retire_environments(version, world.now_ns);
    core_validate(world.account);
    assert_int_equal(world.stops, 1); /* the idle one */
    assert_int_equal(world_invoke(&world, version, &after), CORE_WAITING);
    assert_int_equal(world.starts, 4); /* neither of the old ones serves it */
    world_finish(&world, &busy);
    assert_int_equal(world.stops, 2);
    assert_int_equal(after.outcome, CORE_WAITING);
    world_ready(&world, world.started[3]);
    assert_int_equal(after.outcome, CORE_SERVED);
    world_deinit(&world);
}

static void test_requests_that_wait_get_fresh_environments_on_retirement(void **state)
{
    struct core_limits limits = with_scaling(2);
    struct world_request first = {0}, second = {0};
    struct world world;
    struct core_version *version = latest(&world, &limits);

    (void)state;
    world_invoke(&world, version, &first);
    world_invoke(&world, version, &second);
    core_version_retire_environments(version, world.now_ns);
    core_validate(world.account);
    assert_int_equal(world.stops, 2);
    assert_int_equal(world.starts, 4);
    world_ready(&world, world.started[0]); /* was already on its way; it is stopping */
    assert_int_equal(world.serves, 0);
    world_ready(&world, world.started[2]);
    assert_ptr_equal(first.core.environment, world.started[2]);
    world_deinit(&world);
}

static void test_claim_on_a_retired_finisher_is_replaced(void **state)
{
    struct world_request running = {0}, waiting = {0};
    struct world world;
    struct core_version *version = latest(&world, NULL);

    (void)state;
    world_warm(&world, version, 1);
    world_invoke(&world, version, &running);
    world_respond(&world, &running);
    world_invoke(&world, version, &waiting);
    core_version_retire_environments(version, world.now_ns);
    core_validate(world.account);
    assert_int_equal(world.starts, 2);
    world_free(&world, world.started[0]);
    assert_ptr_equal(world_last_stopped(&world), world.started[0]);
    assert_int_equal(waiting.outcome, CORE_WAITING);
    world_deinit(&world);
}

static void test_removed_function_lets_running_requests_finish(void **state)
{
    struct world_request running = {0}, first = {0};
    struct core_environment *environment;
    struct core_function *function;
    struct world world;
    struct core_version *version = latest(&world, NULL);

    (void)state;
    reserve(version, 100);
    world_warm(&world, version, 2);
    world_invoke(&world, version, &running);
    environment = running.core.environment;
    core_function_remove(core_version_function(version), world.now_ns);
    core_validate(world.account);
    assert_null(core_function_find(world.account, SPAN("f")));
    assert_null(core_version_owner(version));
    assert_int_equal(core_account_unreserved(world.account), 1000);
    assert_int_equal(in_flight(&world), 1);
    assert_int_equal(core_function_add(world.account, SPAN("f"), NULL, &function), 0);
    assert_int_equal(world_invoke(&world, world_add_version(function, "$LATEST"), &first), CORE_WAITING);
    world_gone(&world, world.stopped[0]);
    world_finish(&world, &running);
    assert_ptr_equal(world.stopped[1], environment);
    world_gone(&world, environment);
    assert_int_equal(in_flight(&world), 1);
    world_deinit(&world);
}

static void test_removed_version_fails_requests_that_wait(void **state)
{
    struct world_request first = {0}, second = {0};
    struct world world;
    struct core_version *version = latest(&world, NULL);

    (void)state;
    world_invoke(&world, version, &first);
    world_invoke(&world, version, &second);
    core_version_remove(version, world.now_ns);
    core_validate(world.account);
    assert_int_equal(world.failures, 2);
    assert_ptr_equal(world.failed[0], &first);
    assert_int_equal(world.failure, CORE_FAILURE_REMOVED);
    assert_int_equal(world.starts, 2);
    assert_int_equal(in_flight(&world), 0);
    world_gone(&world, world.started[0]);
    world_gone(&world, world.started[1]);
    world_deinit(&world);
}

/* ---- figures ---- */

static void test_maxima_restart_at_the_present_value(void **state)
{
    struct world_request requests[3] = {0};
    struct core_account_metrics metrics;
    struct world world;
    struct core_version *version = latest(&world, NULL);

    (void)state;
    for (int i = 0; i < 3; i++)
        world_invoke(&world, version, &requests[i]);
    for (int i = 0; i < 3; i++)
        world_ready(&world, world.started[i]);
    world_finish(&world, &requests[0]);
    core_account_read_metrics(world.account, true, &metrics);
    assert_int_equal(metrics.concurrency, 2);
    assert_int_equal(metrics.concurrency_max, 3);
    assert_int_equal(metrics.unreserved_max, 3);
    core_account_read_metrics(world.account, false, &metrics);
    assert_int_equal(metrics.concurrency_max, 2);
    assert_int_equal(metrics.claimed_max, 2);
    world_deinit(&world);
}

static void test_counts_say_where_everything_is(void **state)
{
    struct world_request a = {0}, b = {0};
    struct core_version_counts counts;
    struct world world;
    struct core_version *version = latest(&world, NULL);

    (void)state;
    world_warm(&world, version, 1);
    world_invoke(&world, version, &a);
    world_invoke(&world, version, &b);
    core_version_count(version, &counts);
    assert_int_equal(counts.environments[CORE_ENVIRONMENT_BUSY], 1);
    assert_int_equal(counts.environments[CORE_ENVIRONMENT_STARTING], 1);
    assert_int_equal(counts.environments[CORE_ENVIRONMENT_IDLE], 0);
    assert_int_equal(counts.waiting, 1);
    world_deinit(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_throttled_request_touches_no_environment),
        cmocka_unit_test(test_reserved_zero_throttles_even_with_a_warm_environment),
        cmocka_unit_test(test_full_machine_takes_no_unit_and_no_token),
        cmocka_unit_test(test_objects_that_exist_or_do_not_belong_are_refused),
        cmocka_unit_test(test_first_request_waits_for_a_new_environment),
        cmocka_unit_test(test_idle_environment_is_used_again),
        cmocka_unit_test(test_most_recently_used_environment_is_taken_first),
        cmocka_unit_test(test_environments_belong_to_one_version),
        cmocka_unit_test(test_alias_says_which_version_ran),
        cmocka_unit_test(test_oldest_waiting_request_takes_what_comes_free_first),
        cmocka_unit_test(test_environment_coming_for_nobody_covers_the_next_request),
        cmocka_unit_test(test_strict_request_waits_for_the_environment_made_for_it),
        cmocka_unit_test(test_strict_environments_serve_their_own_in_any_order),
        cmocka_unit_test(test_unit_is_released_with_the_response),
        cmocka_unit_test(test_sequential_client_with_reserved_one_needs_one_environment),
        cmocka_unit_test(test_finishing_environment_is_claimed_by_one_request_only),
        cmocka_unit_test(test_slow_finisher_is_waited_for_no_longer_than_the_grace),
        cmocka_unit_test(test_grace_without_scaling_rate_ends_in_a_refusal),
        cmocka_unit_test(test_no_grace_starts_at_once),
        cmocka_unit_test(test_strict_request_may_wait_for_a_finisher),
        cmocka_unit_test(test_start_that_fails_fails_the_oldest_and_returns_its_unit),
        cmocka_unit_test(test_strict_start_that_fails_fails_its_own_request),
        cmocka_unit_test(test_death_while_starting_is_replaced_without_asking_again),
        cmocka_unit_test(test_death_of_a_surplus_start_is_not_replaced),
        cmocka_unit_test(test_replacement_that_cannot_be_made_fails_the_request),
        cmocka_unit_test(test_death_while_busy_releases_the_unit),
        cmocka_unit_test(test_death_of_a_claimed_finisher_is_replaced),
        cmocka_unit_test(test_idle_environments_are_reclaimed_longest_unused_first),
        cmocka_unit_test(test_use_puts_reclaiming_off),
        cmocka_unit_test(test_stopping_environment_serves_nobody),
        cmocka_unit_test(test_idle_environment_gives_way_when_the_worker_is_full),
        cmocka_unit_test(test_busy_environments_give_no_way),
        cmocka_unit_test(test_retired_environments_stop_when_they_can),
        cmocka_unit_test(test_requests_that_wait_get_fresh_environments_on_retirement),
        cmocka_unit_test(test_claim_on_a_retired_finisher_is_replaced),
        cmocka_unit_test(test_removed_function_lets_running_requests_finish),
        cmocka_unit_test(test_removed_version_fails_requests_that_wait),
        cmocka_unit_test(test_maxima_restart_at_the_present_value),
        cmocka_unit_test(test_counts_say_where_everything_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
