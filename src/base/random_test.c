#include "base/random.h"

#include "base/test.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

static void test_bytes_fill_any_length_and_no_more(void **state)
{
    unsigned char bytes[300] = {0};
    bool seen[256] = {0};
    int distinct = 0;
    (void)state;

    random_bytes(bytes, 0);
    assert_int_equal(bytes[0], 0);
    random_bytes(bytes, 299);
    assert_int_equal(bytes[299], 0);
    for (size_t i = 0; i < 299; i++) {
        distinct += !seen[bytes[i]];
        seen[bytes[i]] = true;
    }
    assert_true(distinct > 100); /* about 176 expected; 100 would be a miracle */
}

static void test_uuid_has_the_form_of_version_four(void **state)
{
    char text[UUID_BYTES];
    char other[UUID_BYTES];
    (void)state;

    for (int round = 0; round < 200; round++) {
        random_uuid(text);
        assert_int_equal(strlen(text), 36);
        for (size_t i = 0; i < 36; i++) {
            if (i == 8 || i == 13 || i == 18 || i == 23)
                assert_int_equal(text[i], '-');
            else
                assert_true(isdigit((unsigned char)text[i]) || (text[i] >= 'a' && text[i] <= 'f'));
        }
        assert_int_equal(text[14], '4');
        assert_non_null(strchr("89ab", text[19]));
        assert_string_not_equal(text, random_uuid(other));
    }
}

static void test_pool_never_hands_out_the_same_identifier_twice(void **state)
{
    enum { COUNT = 300 }; /* several portions of the pool */
    static char texts[COUNT][UUID_BYTES];
    struct random_pool pool = {0};
    (void)state;

    for (size_t i = 0; i < COUNT; i++) {
        random_pool_uuid(&pool, texts[i]);
        assert_int_equal(strlen(texts[i]), 36);
        assert_int_equal(texts[i][14], '4');
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(texts[i], texts[k]);
    }
}

static void test_hex_has_exactly_the_length_asked_for(void **state)
{
    char text[202];
    (void)state;

    for (size_t length = 0; length <= 200; length++) {
        memset(text, '!', sizeof(text));
        random_hex(text, length);
        assert_int_equal(strlen(text), length);
        assert_int_equal(strspn(text, "0123456789abcdef"), length);
        assert_int_equal(text[length + 1], '!');
    }
}

/* The first numbers of xoshiro256** after splitmix64(0), from its authors' reference code. */
static void test_sequence_is_the_published_one(void **state)
{
    struct prng prng;
    (void)state;

    prng_init(&prng, 0);
    assert_true(prng.state[0] == UINT64_C(0xe220a8397b1dcdaf));
    assert_true(prng.state[1] == UINT64_C(0x6e789e6aa1b965f4));
    assert_true(prng_next(&prng) == UINT64_C(0x99ec5f36cb75f2b4));
    assert_true(prng_next(&prng) == UINT64_C(0xbf6e1f784956452a));
}

static void test_same_seed_gives_the_same_sequence(void **state)
{
    struct prng a;
    struct prng b;
    struct prng c;
    (void)state;

    prng_init(&a, 42);
    prng_init(&b, 42);
    prng_init(&c, 43);
    for (int i = 0; i < 1000; i++)
        assert_true(prng_next(&a) == prng_next(&b));
    assert_true(prng_next(&a) != prng_next(&c));
}

static void test_uniform_stays_below_one_and_centres_on_a_half(void **state)
{
    struct prng prng;
    double sum = 0;
    (void)state;

    prng_init(&prng, 1);
    for (int i = 0; i < 100000; i++) {
        double value = prng_uniform(&prng);
        assert_true(value >= 0 && value < 1);
        sum += value;
    }
    assert_true(sum > 49500 && sum < 50500);
}

static void test_below_reaches_every_value_evenly(void **state)
{
    int counts[7] = {0};
    struct prng prng;
    (void)state;

    prng_init(&prng, 1);
    for (int i = 0; i < 70000; i++)
        counts[prng_below(&prng, 7)]++;
    for (size_t i = 0; i < 7; i++)
        assert_in_range(counts[i], 9500, 10500);
    assert_int_equal(prng_below(&prng, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_fill_any_length_and_no_more),
        cmocka_unit_test(test_uuid_has_the_form_of_version_four),
        cmocka_unit_test(test_pool_never_hands_out_the_same_identifier_twice),
        cmocka_unit_test(test_hex_has_exactly_the_length_asked_for),
        cmocka_unit_test(test_sequence_is_the_published_one),
        cmocka_unit_test(test_same_seed_gives_the_same_sequence),
        cmocka_unit_test(test_uniform_stays_below_one_and_centres_on_a_half),
        cmocka_unit_test(test_below_reaches_every_value_evenly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
