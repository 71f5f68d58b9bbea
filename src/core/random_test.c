/*
 * Random programs against the reference (random_program.h): those of the seeds from 1 on. KILN_TEST_PROGRAMS=N runs
 * another number of them than the usual, KILN_TEST_SEED=N those from that seed on (that one alone, unless a number is
 * given too). A difference prints its seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/random_program.h"

#include "base/random.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* For the handler of SIGABRT, which can be told in no other way. */
static char running[64];

static void on_abort(int number)
{
    (void)number;
    (void)!write(STDERR_FILENO, running, sizeof(running));
}

enum { PROGRAM_BYTES = 3000, PROGRAMS = 500 };

static size_t run_seed(uint64_t seed)
{
    uint8_t bytes[PROGRAM_BYTES];
    struct prng prng;

    snprintf(running, sizeof(running), "run again with KILN_TEST_SEED=%llu\n", (unsigned long long)seed);
    prng_init(&prng, seed);
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(prng_next(&prng) >> 56);
    return random_program_run(bytes, sizeof(bytes));
}

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void test_random_programs_agree_with_the_rules(void **state)
{
    uint64_t seed = number_from("KILN_TEST_SEED", 0);
    uint64_t programs = number_from("KILN_TEST_PROGRAMS", seed ? 1 : PROGRAMS), operations = 0;

    (void)state;
    signal(SIGABRT, on_abort);
    seed = seed ? seed : 1;
    for (uint64_t i = 0; i < programs; i++)
        operations += run_seed(seed + i);
    print_message("# seeds %llu to %llu: %llu operations\n", (unsigned long long)seed,
                  (unsigned long long)(seed + programs - 1), (unsigned long long)operations);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_programs_agree_with_the_rules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
