#include "base/fault.h"

#include "base/test.h"

#include <string.h>

static void test_set_returns_the_negative_error(void **state)
{
    struct fault fault = {0};
    (void)state;

    assert_int_equal(fault_set(&fault, ENOENT, "no %s", "file"), -ENOENT);
    assert_int_equal(fault.error, ENOENT);
    assert_string_equal(fault.text, "no file");
}

static void test_without_an_error_number_it_is_einval(void **state)
{
    struct fault fault = {0};
    (void)state;

    assert_int_equal(fault_set(&fault, 0, "bad"), -EINVAL);
    assert_int_equal(fault.error, 0);
}

static void test_nobody_has_to_listen(void **state)
{
    (void)state;
    assert_int_equal(fault_set(NULL, EIO, "x"), -EIO);
    fault_prepend(NULL, "y");
}

static void test_context_goes_in_front(void **state)
{
    struct fault fault = {0};
    (void)state;

    fault_set(&fault, EIO, "read failed");
    fault_prepend(&fault, "page %d", 3);
    fault_prepend(&fault, "opening %s", "kiln.db");
    assert_string_equal(fault.text, "opening kiln.db: page 3: read failed");
    assert_int_equal(fault.error, EIO);
}

static void test_text_too_long_is_cut_and_terminated(void **state)
{
    char filler[2000];
    struct fault fault = {0};
    (void)state;

    memset(filler, 'x', sizeof(filler) - 1);
    filler[sizeof(filler) - 1] = '\0';
    fault_set(&fault, EIO, "%s", filler);
    assert_int_equal(strlen(fault.text), sizeof(fault.text) - 1);
    fault_prepend(&fault, "context");
    assert_int_equal(strlen(fault.text), sizeof(fault.text) - 1);
    assert_memory_equal(fault.text, "context: xxx", 12);
    fault_prepend(&fault, "%s", filler);
    assert_int_equal(strlen(fault.text), sizeof(fault.text) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_returns_the_negative_error),
        cmocka_unit_test(test_without_an_error_number_it_is_einval),
        cmocka_unit_test(test_nobody_has_to_listen),
        cmocka_unit_test(test_context_goes_in_front),
        cmocka_unit_test(test_text_too_long_is_cut_and_terminated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
