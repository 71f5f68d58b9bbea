/* Random programs against the reference (random_program.h). KILN_TEST_SEED=N runs that seed alone, KILN_TEST_PROGRAMS=N
 * more programs than the usual number. */
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

enum { PROGRAM_BYTES = 3000, PROGRAMS = 200 };

static void run_seed(uint64_t seed)
{
    uint8_t bytes[PROGRAM_BYTES];
    struct prng prng;

    snprintf(running, sizeof(running), "run again with KILN_TEST_SEED=%llu\n", (unsigned long long)seed);
    prng_init(&prng, seed);
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(prng_next(&prng) >> 56);
    random_program_run(bytes, sizeof(bytes));
}

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void test_random_programs_agree_with_the_rules(void **state)
{
    uint64_t only = number_from("KILN_TEST_SEED", 0), programs = number_from("KILN_TEST_PROGRAMS", PROGRAMS);

    (void)state;
    signal(SIGABRT, on_abort);
    for (uint64_t seed = only ? only : 1; seed <= (only ? only : programs); seed++)
        run_seed(seed);
    print_message("# seeds 1 to %llu\n", (unsigned long long)programs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_programs_agree_with_the_rules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
