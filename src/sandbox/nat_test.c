/*
 * The network of functions between namespaces of the test's own: a "host" that this process lives in, an "outside" that
 * is connected to it by 192.0.2.0/24, and slots. Servers are sockets of this process, made in the namespace that they
 * serve; what a function would do is done by a child in the slot. Nothing of the machine's own network is touched.
 */
#include "sandbox/network.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <nftables/libnftables.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cmocka.h>

#define OUTSIDE     0xc0000202u /* 192.0.2.2 */
#define HOST_THERE  0xc0000201u /* the host's address in that network */
#define METADATA    0xa9fea9feu /* 169.254.169.254 */
#define FIRST_SLOT  0xc6120001u /* 198.18.0.1 */
#define SECOND_SLOT 0xc6120003u

enum { PORT = 8080, API_PORT = 4566, DNS_PORT = 53, WAIT_MS = 5000 };

struct fixture {
    int host, outside; /* namespaces */
    int proc;
    struct network network;
    struct network_slot slots[2];
    struct fault fault;
};

/* ---- namespaces and sockets ---- */

static int current_namespace(void)
{
    int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    return fd;
}

static void enter(int namespace)
{
    assert_int_equal(setns(namespace, CLONE_NEWNET), 0);
}

static int new_namespace(void)
{
    struct netlink netlink;

    assert_int_equal(unshare(CLONE_NEWNET), 0);
    assert_int_equal(netlink_open(&netlink), 0);
    assert_int_equal(netlink_set_up(&netlink, 1), 0);
    netlink_close(&netlink);
    return current_namespace();
}

static struct sockaddr_in address_of(uint32_t address, unsigned port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(address)};
}

/* A server in a namespace; the caller stays where it is. */
static int serve(struct fixture *fixture, int namespace, int type, uint32_t address, unsigned port)
{
    struct sockaddr_in own = address_of(address, port);
    int fd;

    enter(namespace);
    fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof(own)), 0);
    if (type == SOCK_STREAM)
        assert_int_equal(listen(fd, 8), 0);
    enter(fixture->host);
    return fd;
}

/* What a child in the slot meets: 0 when it got an answer, else an errno. It speaks first, and only over UDP. */
static _Noreturn void call(int namespace, int type, uint32_t address, unsigned port)
{
    struct sockaddr_in far = address_of(address, port);
    int fd, error = 0;
    socklen_t length = sizeof(error);
    struct pollfd ready;
    char byte;

    if (setns(namespace, CLONE_NEWNET) < 0 || (fd = socket(AF_INET, type | SOCK_NONBLOCK, 0)) < 0)
        _exit(255);
    if (connect(fd, (struct sockaddr *)&far, sizeof(far)) < 0 && errno != EINPROGRESS)
        _exit(errno);
    if (type == SOCK_DGRAM && send(fd, "?", 1, 0) < 0)
        _exit(errno);
    ready = (struct pollfd){.fd = fd, .events = POLLIN};
    if (poll(&ready, 1, WAIT_MS) != 1)
        _exit(ETIMEDOUT);
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
    _exit(error ? error : read(fd, &byte, 1) == 1 && byte == '!' ? 0 : ECONNRESET);
}

/* Answers one caller, if one comes before the child has ended; its address as seen here, 0 when none came. */
static uint32_t answer(int server, int type, int child)
{
    struct sockaddr_in from = {.sin_addr.s_addr = 0};
    socklen_t length = sizeof(from);
    struct pollfd ready[] = {{.fd = server, .events = POLLIN}, {.fd = child, .events = POLLIN}};
    char byte;

    if (server < 0 || poll(ready, 2, WAIT_MS) < 1 || !ready[0].revents)
        return 0;
    if (type == SOCK_DGRAM) {
        assert_int_equal(recvfrom(server, &byte, 1, 0, (struct sockaddr *)&from, &length), 1);
        assert_int_equal(sendto(server, "!", 1, 0, (struct sockaddr *)&from, length), 1);
    } else {
        int connection = accept(server, (struct sockaddr *)&from, &length);
        assert_int_equal(write(connection, "!", 1), 1);
        close(connection);
    }
    return ntohl(from.sin_addr.s_addr);
}

/* Calls from a slot; `server` (-1: none) answers. The errno that the caller saw, and who it seemed to be. */
static int reach(struct fixture *fixture, int type, uint32_t address, unsigned port, int server, uint32_t *ret_from)
{
    int ended[2], status;
    uint32_t from;
    pid_t pid;

    assert_int_equal(pipe2(ended, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        call(fixture->slots[0].namespace, type, address, port);
    }
    close(ended[1]);
    from = answer(server, type, ended[0]);
    if (ret_from)
        *ret_from = from;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(ended[0]);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* ---- fixture ---- */

static void connect_outside(struct fixture *fixture)
{
    struct netlink_veth veth = {.name = "eth0", .index = 9, .peer_name = "out", .peer_index = 9};
    struct netlink netlink;

    veth.peer_namespace = fixture->host;
    enter(fixture->outside);
    assert_int_equal(netlink_open(&netlink), 0);
    assert_int_equal(netlink_add_veth(&netlink, &veth), 0);
    assert_int_equal(netlink_add_address(&netlink, 9, OUTSIDE, 24), 0);
    assert_int_equal(netlink_add_address(&netlink, 9, METADATA, 32), 0);
    assert_int_equal(netlink_set_up(&netlink, 9), 0);
    netlink_close(&netlink);
    enter(fixture->host);
    assert_int_equal(netlink_open(&netlink), 0);
    assert_int_equal(netlink_add_address(&netlink, 9, HOST_THERE, 24), 0);
    assert_int_equal(netlink_set_up(&netlink, 9), 0);
    netlink_close(&netlink);
}

/* Files of this process alone. */
static void write_over(const char *path, const char *text)
{
    char name[] = "/tmp/kiln-nat-test-XXXXXX";
    int fd = mkstemp(name);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    assert_int_equal(mount(name, path, NULL, MS_BIND, NULL), 0);
    assert_int_equal(unlink(name), 0);
}

/* New namespaces begin with what the machine has. */
static void switch_forwarding_off(void)
{
    int fd = open("/proc/sys/net/ipv4/ip_forward", O_WRONLY | O_CLOEXEC);

    assert_int_equal(write(fd, "0", 1), 1);
    close(fd);
}

static int set_up_world(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    assert_non_null(fixture);
    fixture->proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fixture->outside = new_namespace();
    fixture->host = new_namespace();
    switch_forwarding_off();
    connect_outside(fixture);
    fixture->network = (struct network){.kind = SANDBOX_NETWORK_NAT, .nat = NAT_INIT};
    fixture->slots[0].namespace = fixture->slots[1].namespace = -1;
    *state = fixture;
    return 0;
}

static void start(struct fixture *fixture, const struct nat_config *config)
{
    if (nat_init(&fixture->network.nat, config, &fixture->fault) < 0)
        fail_msg("%s", fixture->fault.text);
    for (unsigned i = 0; i < 2; i++) {
        if (network_slot_init(&fixture->slots[i], &fixture->network, i, fixture->proc, &fixture->fault) < 0)
            fail_msg("%s", fixture->fault.text);
        enter(fixture->host);
    }
}

static int set_up(void **state)
{
    set_up_world(state);
    start(*state, &(struct nat_config){0});
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    network_slot_deinit(&fixture->slots[0]);
    network_slot_deinit(&fixture->slots[1]);
    nat_deinit(&fixture->network.nat);
    close(fixture->host);
    close(fixture->outside);
    close(fixture->proc);
    free(fixture);
    return 0;
}

/* ---- what is reached ---- */

static void test_the_world_is_reached_and_sees_the_host(void **state)
{
    struct fixture *fixture = *state;
    static const int types[] = {SOCK_STREAM, SOCK_DGRAM};
    uint32_t from;

    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        int server = serve(fixture, fixture->outside, types[i], OUTSIDE, PORT);
        assert_int_equal(reach(fixture, types[i], OUTSIDE, PORT, server, &from), 0);
        assert_int_equal(from, HOST_THERE);
        close(server);
    }
}

static void test_the_host_is_reached_but_not_its_loopback(void **state)
{
    struct fixture *fixture = *state;
    uint32_t host = fixture->network.nat.host_address;
    int open = serve(fixture, fixture->host, SOCK_STREAM, INADDR_ANY, PORT);
    int shut = serve(fixture, fixture->host, SOCK_STREAM, INADDR_LOOPBACK, PORT + 1);

    assert_int_equal(reach(fixture, SOCK_STREAM, host, PORT, open, NULL), 0);
    assert_int_equal(reach(fixture, SOCK_STREAM, host, PORT + 1, -1, NULL), ECONNREFUSED);
    assert_int_equal(reach(fixture, SOCK_STREAM, INADDR_LOOPBACK, PORT + 1, -1, NULL), ECONNREFUSED);
    close(open);
    close(shut);
}

static void test_other_slots_and_the_router_are_not_reached(void **state)
{
    struct fixture *fixture = *state;
    int other = serve(fixture, fixture->slots[1].namespace, SOCK_STREAM, INADDR_ANY, PORT);
    int router = serve(fixture, fixture->network.nat.router_namespace, SOCK_STREAM, INADDR_ANY, PORT);

    assert_int_equal(reach(fixture, SOCK_STREAM, SECOND_SLOT, PORT, -1, NULL), ECONNREFUSED);
    assert_int_equal(reach(fixture, SOCK_STREAM, SECOND_SLOT - 1, PORT, -1, NULL), ECONNREFUSED);
    assert_int_equal(reach(fixture, SOCK_STREAM, fixture->network.nat.host_address + 1, PORT, -1, NULL), ECONNREFUSED);
    close(other);
    close(router);
}

static void test_link_local_addresses_are_not_reached(void **state)
{
    struct fixture *fixture = *state;
    int server = serve(fixture, fixture->outside, SOCK_STREAM, METADATA, 80);

    assert_int_equal(reach(fixture, SOCK_STREAM, METADATA, 80, -1, NULL), ECONNREFUSED);
    close(server);
}

/* For everything but the network of the outside. */
static void route_to_router(const struct nat *nat)
{
    struct netlink host;

    assert_int_equal(netlink_open(&host), 0);
    assert_int_equal(netlink_add_default_route(&host, nat->host_address + 1), 0);
    netlink_close(&host);
}

/* Nor by somebody on the host who knows the way, which leads to the router and no further. */
static void test_slots_are_not_reached_from_the_host(void **state)
{
    struct fixture *fixture = *state;
    int server = serve(fixture, fixture->slots[0].namespace, SOCK_STREAM, FIRST_SLOT, PORT);
    struct network_slot slot = fixture->slots[0];

    route_to_router(&fixture->network.nat);
    fixture->slots[0].namespace = fixture->host;
    assert_int_not_equal(reach(fixture, SOCK_STREAM, FIRST_SLOT, PORT, server, NULL), 0);
    fixture->slots[0] = slot;
    close(server);
}

/* ---- what is let to the host's loopback ---- */

static void test_a_resolver_on_loopback_answers(void **state)
{
    struct fixture *fixture = *state;
    static const int types[] = {SOCK_STREAM, SOCK_DGRAM};
    uint32_t from;

    write_over("/etc/resolv.conf", "search example\nnameserver 127.0.0.1\n");
    start(fixture, &(struct nat_config){0});
    umount2("/etc/resolv.conf", MNT_DETACH);
    assert_non_null(strstr(fixture->network.nat.resolv_conf, "search example\nnameserver 198.19."));
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        int server = serve(fixture, fixture->host, types[i], INADDR_LOOPBACK, DNS_PORT);
        assert_int_equal(reach(fixture, types[i], fixture->network.nat.host_address, DNS_PORT, server, &from), 0);
        assert_int_equal(from, INADDR_LOOPBACK);
        close(server);
    }
    int shut = serve(fixture, fixture->host, SOCK_STREAM, INADDR_LOOPBACK, PORT);
    assert_int_equal(reach(fixture, SOCK_STREAM, fixture->network.nat.host_address, PORT, -1, NULL), ECONNREFUSED);
    close(shut);
}

static void test_the_api_is_reached_when_wanted(void **state)
{
    struct fixture *fixture = *state;
    int server = serve(fixture, fixture->host, SOCK_STREAM, INADDR_LOOPBACK, API_PORT);

    start(fixture, &(struct nat_config){.api_address = INADDR_LOOPBACK, .api_port = API_PORT});
    assert_int_equal(reach(fixture, SOCK_STREAM, fixture->network.nat.host_address, API_PORT, server, NULL), 0);
    close(server);
}

static void test_the_host_has_a_name(void **state)
{
    struct fixture *fixture = *state;
    struct in_addr address = {.s_addr = htonl(fixture->network.nat.host_address)};
    char line[64];

    snprintf(line, sizeof(line), "%s\thost.kiln.internal\n", inet_ntoa(address));
    assert_string_equal(fixture->network.nat.hosts, line);
}

/* ---- what is left ---- */

static bool has_interface(void)
{
    struct if_nameindex *interfaces = if_nameindex();
    bool has = false;

    for (size_t i = 0; interfaces[i].if_name; i++)
        has = has || strncmp(interfaces[i].if_name, "kiln-", 5) == 0;
    if_freenameindex(interfaces);
    return has;
}

static bool has_table(void)
{
    struct nft_ctx *context = nft_ctx_new(NFT_CTX_DEFAULT);
    bool has;

    nft_ctx_buffer_output(context);
    assert_int_equal(nft_run_cmd_from_buffer(context, "list tables"), 0);
    has = strstr(nft_ctx_get_output_buffer(context), "kiln-") != NULL;
    nft_ctx_free(context);
    return has;
}

static bool forwards(void)
{
    char value = 0;
    int fd = open("/proc/sys/net/ipv4/ip_forward", O_RDONLY | O_CLOEXEC);

    assert_int_equal(read(fd, &value, 1), 1);
    close(fd);
    return value == '1';
}

/* The kernel ends namespaces at leisure. */
static void assert_nothing_is_left(void)
{
    for (int i = 0; i < WAIT_MS && has_interface(); i++)
        poll(NULL, 0, 1);
    assert_false(has_interface());
    assert_false(has_table());
}

static void test_nothing_is_left_at_the_end(void **state)
{
    struct fixture *fixture = *state;

    assert_false(forwards());
    start(fixture, &(struct nat_config){0});
    assert_true(has_interface());
    assert_true(has_table());
    assert_true(forwards());
    network_slot_deinit(&fixture->slots[0]);
    network_slot_deinit(&fixture->slots[1]);
    nat_deinit(&fixture->network.nat);
    assert_false(has_interface()); /* at once */
    assert_nothing_is_left();
    assert_false(forwards());
}

static void test_nothing_is_left_of_one_that_is_killed(void **state)
{
    struct fixture *fixture = *state;
    int ready[2], status;
    char byte;
    pid_t pid;

    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        const struct nat_config config = {.api_address = INADDR_LOOPBACK, .api_port = API_PORT};
        if (nat_init(&fixture->network.nat, &config, NULL) < 0 || write(ready[1], "!", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    assert_true(has_interface() && has_table());
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_nothing_is_left();
    start(fixture, &(struct nat_config){0}); /* nothing is in the way of the next */
}

static void test_several_work_side_by_side(void **state)
{
    struct fixture *fixture = *state;
    struct nat other;
    int server = serve(fixture, fixture->outside, SOCK_STREAM, OUTSIDE, PORT);

    assert_int_equal(nat_init(&other, &(struct nat_config){0}, &fixture->fault), 0);
    start(fixture, &(struct nat_config){0});
    assert_int_not_equal(other.host_address, fixture->network.nat.host_address);
    assert_int_equal(reach(fixture, SOCK_STREAM, OUTSIDE, PORT, server, NULL), 0);
    /* The first switched forwarding on; that stays as long as the second needs it. */
    nat_deinit(&other);
    assert_int_equal(reach(fixture, SOCK_STREAM, OUTSIDE, PORT, server, NULL), 0);
    close(server);
}

/* As in a container without privileges: its settings are read-only. */
static void test_where_it_cannot_be_had_it_says_so_and_leaves_nothing(void **state)
{
    struct fixture *fixture = *state;
    int r;

    assert_int_equal(mount("/proc/sys", "/proc/sys", NULL, MS_BIND, NULL), 0);
    assert_int_equal(mount(NULL, "/proc/sys", NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL), 0);
    r = nat_init(&fixture->network.nat, &(struct nat_config){0}, &fixture->fault);
    umount2("/proc/sys", MNT_DETACH);
    assert_int_equal(r, -EROFS);
    assert_string_equal(fixture->fault.text, "cannot set net.ipv4.ip_forward: Read-only file system");
    assert_nothing_is_left();
}

static void test_there_are_only_so_many_slots(void **state)
{
    struct fixture *fixture = *state;
    struct network_slot slot;

    assert_int_equal(network_slot_init(&slot, &fixture->network, NAT_SLOTS_MAX, fixture->proc, &fixture->fault),
                     -ENOSPC);
    enter(fixture->host);
    assert_int_equal(network_slot_init(&slot, &fixture->network, NAT_SLOTS_MAX - 1, fixture->proc, &fixture->fault), 0);
    network_slot_deinit(&slot);
    enter(fixture->host);
}

#define CONNECTED(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define ALONE(test)     cmocka_unit_test_setup_teardown(test, set_up_world, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONNECTED(test_the_world_is_reached_and_sees_the_host),
        CONNECTED(test_the_host_is_reached_but_not_its_loopback),
        CONNECTED(test_other_slots_and_the_router_are_not_reached),
        CONNECTED(test_link_local_addresses_are_not_reached),
        CONNECTED(test_slots_are_not_reached_from_the_host),
        ALONE(test_a_resolver_on_loopback_answers),
        ALONE(test_the_api_is_reached_when_wanted),
        CONNECTED(test_the_host_has_a_name),
        ALONE(test_nothing_is_left_at_the_end),
        ALONE(test_nothing_is_left_of_one_that_is_killed),
        ALONE(test_several_work_side_by_side),
        ALONE(test_where_it_cannot_be_had_it_says_so_and_leaves_nothing),
        CONNECTED(test_there_are_only_so_many_slots),
    };

    if (geteuid() != 0) {
        printf("1..0 # SKIP network namespaces need root\n");
        return 0;
    }
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
        perror("nat_test: unshare");
        return 1;
    }
    return cmocka_run_group_tests_name("nat", tests, NULL, NULL);
}
