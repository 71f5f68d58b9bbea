#include "worker/limit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

struct waiter {
    struct limit limit;
    struct limit_queue *again; /* started again by the handler */
    struct waiter *victim;     /* stopped by the handler */
    int fired;
};

static void on_expire(struct limit *limit)
{
    struct waiter *waiter = CONTAINER_OF(limit, struct waiter, limit);

    waiter->fired++;
    if (waiter->again)
        limit_start(waiter->again, limit, limit->at_ns);
    if (waiter->victim)
        limit_stop(&waiter->victim->limit);
}

static void waiter_init(struct waiter *waiter)
{
    *waiter = (struct waiter){0};
    limit_init(&waiter->limit);
}

static void test_nothing_waiting_is_never(void **state)
{
    struct limit_set set;

    (void)state;
    limit_set_init(&set);
    assert_non_null(limit_set_queue(&set, 10, on_expire));
    assert_int_equal(limit_set_next(&set), LIMIT_NEVER);
    limit_set_deinit(&set);
}

static void test_same_wait_and_handler_share_a_queue(void **state)
{
    struct limit_set set;

    (void)state;
    limit_set_init(&set);
    assert_ptr_equal(limit_set_queue(&set, 10, on_expire), limit_set_queue(&set, 10, on_expire));
    assert_ptr_not_equal(limit_set_queue(&set, 10, on_expire), limit_set_queue(&set, 20, on_expire));
    limit_set_deinit(&set);
}

static void test_next_is_the_earliest_of_all_queues(void **state)
{
    struct limit_set set;
    struct waiter slow, quick;

    (void)state;
    waiter_init(&slow);
    waiter_init(&quick);
    limit_set_init(&set);
    limit_start(limit_set_queue(&set, 100, on_expire), &slow.limit, 0);
    assert_int_equal(limit_set_next(&set), 100);
    limit_start(limit_set_queue(&set, 10, on_expire), &quick.limit, 50);
    assert_int_equal(limit_set_next(&set), 60);
    limit_set_expire(&set, 59);
    assert_int_equal(quick.fired, 0);
    limit_set_expire(&set, 60);
    assert_int_equal(quick.fired, 1);
    assert_int_equal(slow.fired, 0);
    assert_false(limit_is_running(&quick.limit));
    limit_set_deinit(&set);
}

static void test_stopped_limit_does_not_fire(void **state)
{
    struct limit_set set;
    struct waiter waiter;

    (void)state;
    waiter_init(&waiter);
    limit_set_init(&set);
    limit_start(limit_set_queue(&set, 10, on_expire), &waiter.limit, 0);
    limit_stop(&waiter.limit);
    limit_stop(&waiter.limit);
    limit_set_expire(&set, 1000);
    assert_int_equal(waiter.fired, 0);
    limit_set_deinit(&set);
}

static void test_start_again_moves_it_to_the_back(void **state)
{
    struct limit_set set;
    struct limit_queue *queue;
    struct waiter a, b;

    (void)state;
    waiter_init(&a);
    waiter_init(&b);
    limit_set_init(&set);
    queue = limit_set_queue(&set, 10, on_expire);
    limit_start(queue, &a.limit, 0);
    limit_start(queue, &b.limit, 1);
    limit_start(queue, &a.limit, 5);
    assert_int_equal(limit_set_next(&set), 11);
    limit_set_expire(&set, 14);
    assert_int_equal(a.fired, 0);
    assert_int_equal(b.fired, 1);
    limit_set_deinit(&set);
}

static void test_handler_may_stop_the_next_one_due(void **state)
{
    struct limit_set set;
    struct limit_queue *queue;
    struct waiter a, b;

    (void)state;
    waiter_init(&a);
    waiter_init(&b);
    a.victim = &b;
    limit_set_init(&set);
    queue = limit_set_queue(&set, 10, on_expire);
    limit_start(queue, &a.limit, 0);
    limit_start(queue, &b.limit, 0);
    limit_set_expire(&set, 100);
    assert_int_equal(a.fired, 1);
    assert_int_equal(b.fired, 0);
    limit_set_deinit(&set);
}

static void test_handler_may_start_it_again(void **state)
{
    struct limit_set set;
    struct waiter waiter;

    (void)state;
    waiter_init(&waiter);
    limit_set_init(&set);
    waiter.again = limit_set_queue(&set, 10, on_expire);
    limit_start(waiter.again, &waiter.limit, 0);
    limit_set_expire(&set, 25);
    assert_int_equal(waiter.fired, 2);
    assert_int_equal(limit_set_next(&set), 30);
    limit_set_deinit(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_waiting_is_never),
        cmocka_unit_test(test_same_wait_and_handler_share_a_queue),
        cmocka_unit_test(test_next_is_the_earliest_of_all_queues),
        cmocka_unit_test(test_stopped_limit_does_not_fire),
        cmocka_unit_test(test_start_again_moves_it_to_the_back),
        cmocka_unit_test(test_handler_may_stop_the_next_one_due),
        cmocka_unit_test(test_handler_may_start_it_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
