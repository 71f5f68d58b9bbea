/* Random programs against the reference (random_program.h). KILN_TEST_SEED=N runs that seed alone, KILN_TEST_PROGRAMS=N
 * more programs than the usual number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/random_program.h"

#include "base/random.h"

#include <stdio.h>
#include <stdlib.h>

enum { PROGRAM_BYTES = 3000, PROGRAMS = 300 };

static void run_seed(uint64_t seed)
{
    uint8_t bytes[PROGRAM_BYTES];
    struct prng prng;

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
    if (only) {
        run_seed(only);
        return;
    }
    for (uint64_t seed = 1; seed <= programs; seed++) {
        fprintf(stderr, "\rseed %llu", (unsigned long long)seed); /* the last one shown is the one that broke */
        run_seed(seed);
    }
    fputc('\n', stderr);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_programs_agree_with_the_rules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
