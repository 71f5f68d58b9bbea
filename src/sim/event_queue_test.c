#include "base/test.h"

#include "sim/event_queue.h"

#include "base/random.h"

static void add(struct event_queue *queue, int64_t when_ns, enum event_phase phase, unsigned kind)
{
    assert_int_equal(event_queue_add(queue, when_ns, phase, kind, NULL), 0);
}

static void test_phases_order_what_happens_at_one_instant(void **state)
{
    struct event_queue queue = {0};
    struct event event;

    (void)state;
    add(&queue, 5, PHASE_ARRIVAL, 4);
    add(&queue, 5, PHASE_CHANGE, 3);
    add(&queue, 5, PHASE_MACHINE, 1);
    add(&queue, 5, PHASE_MACHINE, 2);
    add(&queue, 4, PHASE_ARRIVAL, 0);
    for (unsigned kind = 0; kind < 5; kind++) {
        assert_int_equal(event_queue_next(&queue), kind ? 5 : 4);
        event = event_queue_take(&queue);
        assert_int_equal(event_kind(&event), kind);
    }
    assert_int_equal(event_queue_next(&queue), INT64_MAX);
    event_queue_deinit(&queue);
}

static void test_any_order_of_adding_comes_out_sorted(void **state)
{
    enum { COUNT = 5000 };
    struct event_queue queue = {0};
    struct event last = {INT64_MIN, 0, NULL};
    struct prng prng;

    (void)state;
    prng_init(&prng, 7);
    for (int i = 0; i < COUNT; i++)
        add(&queue, (int64_t)prng_below(&prng, 100), (enum event_phase)prng_below(&prng, 4), 0);
    for (int i = 0; i < COUNT; i++) {
        struct event event = event_queue_take(&queue);
        assert_true(last.when_ns < event.when_ns || (last.when_ns == event.when_ns && last.order < event.order));
        last = event;
        if (i % 3 == 0) {
            add(&queue, event.when_ns + (int64_t)prng_below(&prng, 10), PHASE_ARRIVAL, 0);
            last = event_queue_take(&queue);
        }
    }
    assert_true(event_queue_is_empty(&queue));
    event_queue_deinit(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_phases_order_what_happens_at_one_instant),
        cmocka_unit_test(test_any_order_of_adding_comes_out_sorted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
