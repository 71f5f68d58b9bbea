/* What functions print: its place in the log and in the tail, and much of it. */
#include "worker/testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
/* cmocka.h needs setjmp.h, stdarg.h, stddef.h and stdint.h */
#include <cmocka.h>

static void test_log_and_tail_have_the_recorded_lines(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    struct call call;
    CLEANUP(buffer_deinit) struct buffer log = BUFFER_INIT;
    char line[128];
    const char *at;

    start_ready(fixture, &subject, (struct options){0});
    call_init(&call, "print one two");
    call.invocation.wants_log_tail = true;
    call_begin(&call, &subject);
    RUN_UNTIL(fixture, call.responses);
    assert_non_null(buffer_terminate(&call.invocation.log_tail));
    at = call.invocation.log_tail.data;
    snprintf(line, sizeof(line), "START RequestId: %s Version: $LATEST\none two\nEND RequestId: ", call.request_id);
    assert_memory_equal(at, line, strlen(line));
    assert_follows(&at, "\nREPORT RequestId: ");
    assert_follows(&at, "\tMemory Size: 128 MB\tMax Memory Used: ");
    assert_follows(&at, "\tInit Duration: ");
    RUN_UNTIL(fixture, call.ends);
    call_deinit(&call);
    run_call(fixture, &subject, &call, "print three");
    call_deinit(&call);
    retire(fixture, &subject);
    log = read_log(fixture);
    at = log.data;
    assert_memory_equal(at, "INIT_START Runtime Version: provided:al2023.v1\n", 47);
    assert_follows(&at, "\none two\nEND RequestId: ");
    assert_follows(&at, "\nREPORT RequestId: ");
    assert_follows(&at, "Init Duration: ");
    assert_follows(&at, "\nthree\nEND RequestId: ");
    assert_follows(&at, "\nREPORT RequestId: ");
    assert_null(strstr(at, "Init Duration"));
}

static void test_flood_does_not_starve_others_nor_grow(void **state)
{
    struct fixture *fixture = *state;
    struct subject noisy = {0}, quiet = {0};
    struct call flood;
    int64_t begin_ns;

    start_ready(fixture, &noisy, (struct options){.timeout_s = 2});
    start_ready(fixture, &quiet, (struct options){0});
    call_init(&flood, "floodhang");
    call_begin(&flood, &noisy);
    run_for(fixture, 200);
    begin_ns = clock_monotonic_ns();
    for (int i = 0; i < 20; i++)
        expect_echo(fixture, &quiet, "hello", "hello");
    assert_in_range(clock_monotonic_ns() - begin_ns, 0, 20 * NS_PER_S);
    RUN_UNTIL(fixture, flood.ends);
    assert_error(&flood, "Sandbox.Timedout", "Task timed out after 2.00 seconds");
    call_deinit(&flood);
    /* what was left in the pipe does not show in the next invocation's tail */
    call_init(&flood, "print after");
    flood.invocation.wants_log_tail = true;
    call_begin(&flood, &noisy);
    RUN_UNTIL(fixture, flood.ends);
    assert_non_null(buffer_terminate(&flood.invocation.log_tail));
    assert_null(strstr(flood.invocation.log_tail.data, "ffff"));
    assert_non_null(strstr(flood.invocation.log_tail.data, "\nafter\nEND "));
    call_deinit(&flood);
    retire(fixture, &noisy);
    retire(fixture, &quiet);
}

static void test_much_output_is_all_in_the_log(void **state)
{
    struct fixture *fixture = *state;
    struct subject subject = {0};
    CLEANUP(buffer_deinit) struct buffer log = BUFFER_INIT;
    char expected[63];
    size_t count = 0;

    memset(expected, 'f', sizeof(expected));
    start_ready(fixture, &subject, (struct options){0});
    expect_echo(fixture, &subject, "flood 3276800", "flooded");
    retire(fixture, &subject);
    log = read_log(fixture);
    for (struct span rest = buffer_span(&log); rest.data;) {
        struct span line = span_cut(&rest, '\n');

        count += span_equal(line, span_of(expected, sizeof(expected)));
    }
    assert_int_equal(count, 3276800 / 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_log_and_tail_have_the_recorded_lines),
        CASE(test_flood_does_not_starve_others_nor_grow),
        CASE(test_much_output_is_all_in_the_log),
    };

    return RUN_CASES(tests);
}
