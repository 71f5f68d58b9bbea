#include "worker/deadline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

struct waiter {
    struct deadline deadline;
    struct deadline_queue *again; /* started again by the handler */
    struct waiter *victim;        /* stopped by the handler */
    int fired;
};

static void on_expire(struct deadline *deadline)
{
    struct waiter *waiter = CONTAINER_OF(deadline, struct waiter, deadline);

    waiter->fired++;
    if (waiter->again)
        deadline_start(waiter->again, deadline, deadline->at_ns);
    if (waiter->victim)
        deadline_stop(&waiter->victim->deadline);
}

static void waiter_init(struct waiter *waiter)
{
    *waiter = (struct waiter){0};
    deadline_init(&waiter->deadline);
}

static void test_nothing_waiting_is_never(void **state)
{
    struct deadline_set set;

    (void)state;
    deadline_set_init(&set);
    assert_non_null(deadline_set_queue(&set, 10, on_expire));
    assert_int_equal(deadline_set_next(&set), DEADLINE_NEVER);
    deadline_set_deinit(&set);
}

static void test_same_wait_and_handler_share_a_queue(void **state)
{
    struct deadline_set set;

    (void)state;
    deadline_set_init(&set);
    assert_ptr_equal(deadline_set_queue(&set, 10, on_expire), deadline_set_queue(&set, 10, on_expire));
    assert_ptr_not_equal(deadline_set_queue(&set, 10, on_expire), deadline_set_queue(&set, 20, on_expire));
    deadline_set_deinit(&set);
}

static void test_next_is_the_earliest_of_all_queues(void **state)
{
    struct deadline_set set;
    struct waiter slow, quick;

    (void)state;
    waiter_init(&slow);
    waiter_init(&quick);
    deadline_set_init(&set);
    deadline_start(deadline_set_queue(&set, 100, on_expire), &slow.deadline, 0);
    assert_int_equal(deadline_set_next(&set), 100);
    deadline_start(deadline_set_queue(&set, 10, on_expire), &quick.deadline, 50);
    assert_int_equal(deadline_set_next(&set), 60);
    deadline_set_expire(&set, 59);
    assert_int_equal(quick.fired, 0);
    deadline_set_expire(&set, 60);
    assert_int_equal(quick.fired, 1);
    assert_int_equal(slow.fired, 0);
    assert_false(deadline_is_running(&quick.deadline));
    deadline_set_deinit(&set);
}

static void test_stopped_deadline_does_not_fire(void **state)
{
    struct deadline_set set;
    struct waiter waiter;

    (void)state;
    waiter_init(&waiter);
    deadline_set_init(&set);
    deadline_start(deadline_set_queue(&set, 10, on_expire), &waiter.deadline, 0);
    deadline_stop(&waiter.deadline);
    deadline_stop(&waiter.deadline);
    deadline_set_expire(&set, 1000);
    assert_int_equal(waiter.fired, 0);
    deadline_set_deinit(&set);
}

static void test_start_again_moves_it_to_the_back(void **state)
{
    struct deadline_set set;
    struct deadline_queue *queue;
    struct waiter a, b;

    (void)state;
    waiter_init(&a);
    waiter_init(&b);
    deadline_set_init(&set);
    queue = deadline_set_queue(&set, 10, on_expire);
    deadline_start(queue, &a.deadline, 0);
    deadline_start(queue, &b.deadline, 1);
    deadline_start(queue, &a.deadline, 5);
    assert_int_equal(deadline_set_next(&set), 11);
    deadline_set_expire(&set, 14);
    assert_int_equal(a.fired, 0);
    assert_int_equal(b.fired, 1);
    deadline_set_deinit(&set);
}

static void test_handler_may_stop_the_next_one_due(void **state)
{
    struct deadline_set set;
    struct deadline_queue *queue;
    struct waiter a, b;

    (void)state;
    waiter_init(&a);
    waiter_init(&b);
    a.victim = &b;
    deadline_set_init(&set);
    queue = deadline_set_queue(&set, 10, on_expire);
    deadline_start(queue, &a.deadline, 0);
    deadline_start(queue, &b.deadline, 0);
    deadline_set_expire(&set, 100);
    assert_int_equal(a.fired, 1);
    assert_int_equal(b.fired, 0);
    deadline_set_deinit(&set);
}

static void test_handler_may_start_it_again(void **state)
{
    struct deadline_set set;
    struct waiter waiter;

    (void)state;
    waiter_init(&waiter);
    deadline_set_init(&set);
    waiter.again = deadline_set_queue(&set, 10, on_expire);
    deadline_start(waiter.again, &waiter.deadline, 0);
    deadline_set_expire(&set, 25);
    assert_int_equal(waiter.fired, 2);
    assert_int_equal(deadline_set_next(&set), 30);
    deadline_set_deinit(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_waiting_is_never),
        cmocka_unit_test(test_same_wait_and_handler_share_a_queue),
        cmocka_unit_test(test_next_is_the_earliest_of_all_queues),
        cmocka_unit_test(test_stopped_deadline_does_not_fire),
        cmocka_unit_test(test_start_again_moves_it_to_the_back),
        cmocka_unit_test(test_handler_may_stop_the_next_one_due),
        cmocka_unit_test(test_handler_may_start_it_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
