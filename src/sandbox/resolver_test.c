/* What functions get to read as resolv.conf, for the ways in which hosts resolve names. */
#include "sandbox/resolver.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define HOST      0xc6130002u
#define HOST_TEXT "198.19.0.2"

static void assert_chosen(const char *text, const char *upstream, const char *expected, uint32_t loopback)
{
    struct resolver resolver;

    assert_int_equal(resolver_choose(span_from(text), span_from(upstream), HOST, &resolver), 0);
    assert_int_equal(buffer_append_char(&resolver.text, '\0'), 0);
    assert_string_equal(resolver.text.data, expected);
    assert_int_equal(resolver.loopback, loopback);
    assert_int_equal(resolver.empty, !strstr(expected, "nameserver"));
    resolver_deinit(&resolver);
}

static void test_servers_beyond_the_host_are_kept_with_all_else(void **state)
{
    (void)state;
    assert_chosen(
        "# made by hand\nsearch corp.example example\nnameserver 192.0.2.1\nnameserver\t192.0.2.2 # second\n"
        "options ndots:2 timeout:1\n",
        "", "search corp.example example\nnameserver 192.0.2.1\nnameserver 192.0.2.2\noptions ndots:2 timeout:1\n", 0);
    assert_chosen("nameserver 192.0.2.1", "", "nameserver 192.0.2.1\n", 0); /* no newline at the end */
}

static void test_a_resolver_on_loopback_is_asked_through_the_host(void **state)
{
    (void)state;
    assert_chosen("search a\nnameserver 127.0.0.1\n", "", "search a\nnameserver " HOST_TEXT "\n", 0x7f000001);
    assert_chosen("nameserver 127.0.0.53\n", "", "nameserver " HOST_TEXT "\n", 0x7f000035);
    assert_chosen("nameserver 192.0.2.1\nnameserver 127.8.8.8\nnameserver 127.0.0.1\n", "",
                  "nameserver 192.0.2.1\nnameserver " HOST_TEXT "\n", 0x7f080808);
}

static void test_the_servers_of_systemd_are_asked_in_its_place(void **state)
{
    static const char upstream[] = "nameserver 192.0.2.7\nsearch home\n";

    (void)state;
    assert_chosen("nameserver 127.0.0.53\noptions edns0\n", upstream, "nameserver 192.0.2.7\nsearch home\n", 0);
    assert_chosen("nameserver 127.0.0.1\n", upstream, "nameserver " HOST_TEXT "\n", 0x7f000001);
    assert_chosen("nameserver 127.0.0.53\n", "nameserver fe80::1%2\n", "nameserver " HOST_TEXT "\n", 0x7f000035);
}

static void test_no_server_named_means_the_one_on_loopback(void **state)
{
    (void)state;
    assert_chosen("", "", "nameserver " HOST_TEXT "\n", 0x7f000001);
    assert_chosen("search a\n", "", "nameserver " HOST_TEXT "\nsearch a\n", 0x7f000001);
}

static void test_servers_with_other_addresses_are_left_out(void **state)
{
    (void)state;
    assert_chosen("nameserver 2001:db8::1\nnameserver 192.0.2.1\n", "", "nameserver 192.0.2.1\n", 0);
    assert_chosen("nameserver 2001:db8::1\nnameserver ::1\nnameserver nonsense\nnameserver\n", "", "", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_servers_beyond_the_host_are_kept_with_all_else),
        cmocka_unit_test(test_a_resolver_on_loopback_is_asked_through_the_host),
        cmocka_unit_test(test_the_servers_of_systemd_are_asked_in_its_place),
        cmocka_unit_test(test_no_server_named_means_the_one_on_loopback),
        cmocka_unit_test(test_servers_with_other_addresses_are_left_out),
    };

    return cmocka_run_group_tests_name("resolver", tests, NULL, NULL);
}
