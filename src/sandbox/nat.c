#include "sandbox/nat.h"

#include "base/buffer.h"
#include "sandbox/launcher.h"
#include "sandbox/resolver.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <nftables/libnftables.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>

/* 198.18.0.0/15 is set aside for benchmarks of networks (RFC 2544) and so neither in the world nor in anybody's own. */
#define SLOT_ADDRESSES 0xc6120000u /* 198.18.0.0/16: two for each slot, within the router alone */
#define LINK_ADDRESSES 0xc6130000u /* 198.19.0.0/16: two for the host's end and the router's, drawn at random */

enum {
    PAIR_PREFIX = 31,
    PAIRS = 32768,
    UPLINK_INDEX = 2,
    SLOT_INDEX = 2,    /* of eth0 in its slot: the loopback is 1 */
    FIRST_INDEX = 100, /* of the router's ends */
    DRAWS = 16,
    DNS_PORT = 53,
};

/* ---- files ---- */

static int read_text(const char *path, struct buffer *text)
{
    CLEANUP(cleanup_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    do {
        int r = buffer_reserve(text, 4096);
        if (r < 0)
            return r;
        n = read(fd, text->data + text->length, 4096);
        text->length += (size_t)MAX(n, 0);
    } while (n > 0);
    return n < 0 ? -errno : 0;
}

static int write_setting(const char *path, const char *value)
{
    CLEANUP(cleanup_close) int fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd < 0 || write(fd, value, strlen(value)) < 0 ? -errno : 0;
}

static int is_off(const char *path, bool *ret_off)
{
    CLEANUP(cleanup_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    char value = 0;

    if (fd < 0 || read(fd, &value, 1) < 0)
        return -errno;
    *ret_off = value == '0';
    return 0;
}

/* The C string of a buffer, which is empty after. */
static char *take_text(struct buffer *text)
{
    return buffer_append_char(text, '\0') < 0 ? NULL : TAKE_PTR(text->data);
}

static int write_resolv_conf(struct nat *nat, uint32_t *ret_loopback)
{
    CLEANUP(buffer_deinit) struct buffer text = BUFFER_INIT, upstream = BUFFER_INIT;
    CLEANUP(resolver_deinit) struct resolver resolver = {.text = BUFFER_INIT};
    int r = read_text("/etc/resolv.conf", &text);

    if (r == 0)
        r = read_text("/run/systemd/resolve/resolv.conf", &upstream);
    if (r == 0)
        r = resolver_choose(buffer_span(&text), buffer_span(&upstream), nat->host_address, &resolver);
    if (r < 0)
        return r;
    *ret_loopback = resolver.loopback;
    nat->no_resolver = resolver.empty;
    nat->resolv_conf = take_text(&resolver.text);
    return nat->resolv_conf ? 0 : -ENOMEM;
}

static const char *print_address(uint32_t address, char text[INET_ADDRSTRLEN])
{
    struct in_addr in = {.s_addr = htonl(address)};

    return inet_ntop(AF_INET, &in, text, INET_ADDRSTRLEN);
}

/* ---- rules ---- */

/* What must not be reached is refused, not dropped, so that nobody waits for it. */
static const char router_rules[] = "table inet kiln {\n"
                                   "  chain input {\n"
                                   "    type filter hook input priority filter; policy drop\n"
                                   "    reject\n"
                                   "  }\n"
                                   "  chain forward {\n"
                                   "    type filter hook forward priority filter; policy drop\n"
                                   "    ct state established,related accept\n"
                                   "    iifname \"s*\" oifname \"uplink\" ip saddr 198.18.0.0/16 "
                                   "ip daddr != 169.254.0.0/16 accept\n"
                                   "    reject\n"
                                   "  }\n"
                                   "  chain outgoing {\n"
                                   "    type nat hook postrouting priority srcnat\n"
                                   "    oifname \"uplink\" masquerade\n"
                                   "  }\n"
                                   "}\n";

/*
 * What goes to the host's loopback: the two destinations that are let through, and from where they seem to come,
 * because resolvers answer the loopback network only. route_localnet opens all of it to this interface, so the rest is
 * shut before.
 */
static int print_loopback_rules(struct buffer *rules, const struct nat *nat, const struct nat_config *config,
                                uint32_t resolver)
{
    char host[INET_ADDRSTRLEN], to[INET_ADDRSTRLEN];
    int r = buffer_printf(rules,
                          "  chain guard {\n"
                          "    type filter hook prerouting priority raw\n"
                          "    iifname \"%s\" ip daddr 127.0.0.0/8 drop\n"
                          "  }\n"
                          "  chain to_loopback {\n"
                          "    type nat hook prerouting priority dstnat\n",
                          nat->name);

    print_address(nat->host_address, host);
    if (r == 0 && resolver)
        r = buffer_printf(rules, "    iifname \"%s\" ip daddr %s meta l4proto { tcp, udp } th dport %d dnat to %s\n",
                          nat->name, host, DNS_PORT, print_address(resolver, to));
    if (r == 0 && config->api_address)
        r = buffer_printf(rules, "    iifname \"%s\" ip daddr %s tcp dport %u dnat to %s\n", nat->name, host,
                          config->api_port, print_address(config->api_address, to));
    if (r == 0)
        r = buffer_printf(rules,
                          "  }\n"
                          "  chain from_loopback {\n"
                          "    type nat hook input priority 100\n"
                          "    iifname \"%s\" ip daddr 127.0.0.0/8 snat to 127.0.0.1\n"
                          "  }\n",
                          nat->name);
    return r;
}

/* A host that did not forward before does so for nobody else now. */
static int print_forward_rules(struct buffer *rules)
{
    return buffer_printf(rules, "  chain forward {\n"
                                "    type filter hook forward priority filter; policy drop\n"
                                "    iifname \"kiln-*\" accept\n"
                                "    oifname \"kiln-*\" ct state established,related accept\n"
                                "  }\n");
}

static int print_rules(struct buffer *rules, const struct nat *nat, const struct nat_config *config, uint32_t resolver)
{
    char router[INET_ADDRSTRLEN];
    int r = buffer_printf(rules,
                          "table ip %s {\n"
                          "  flags owner\n"
                          "  chain outgoing {\n"
                          "    type nat hook postrouting priority srcnat\n"
                          "    ip saddr %s oifname != \"%s\" masquerade\n"
                          "  }\n",
                          nat->name, print_address(nat->host_address + 1, router), nat->name);

    if (r == 0 && (resolver || config->api_address))
        r = print_loopback_rules(rules, nat, config, resolver);
    if (r == 0 && nat->switched_forward)
        r = print_forward_rules(rules);
    if (r == 0)
        r = buffer_printf(rules, "}\n");
    return r < 0 ? r : buffer_append_char(rules, '\0');
}

/* In the namespace that the caller is in; `ret_context` holds a table with `flags owner` for as long as it lives. */
static int add_table(const char *rules, struct nft_ctx **ret_context, struct fault *fault)
{
    struct nft_ctx *context = nft_ctx_new(NFT_CTX_DEFAULT);
    int r;

    if (!context)
        return fault_set(fault, ENOMEM, "out of memory");
    nft_ctx_buffer_output(context);
    nft_ctx_buffer_error(context);
    r = nft_run_cmd_from_buffer(context, rules);
    if (r != 0) {
        const char *error = nft_ctx_get_error_buffer(context);
        r = fault_set(fault, EOPNOTSUPP, "this kernel refuses the nftables rules (%.*s)", (int)strcspn(error, "\n"),
                      error);
        nft_ctx_free(context);
        return r;
    }
    *ret_context = context;
    return 0;
}

/* ---- the router ---- */

static int open_namespace(int *ret_fd)
{
    *ret_fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    return *ret_fd < 0 ? -errno : 0;
}

static int choose_address(struct nat *nat, const struct netlink *host)
{
    for (int draw = 0; draw < DRAWS; draw++) {
        uint32_t number;
        bool taken;
        int r;
        if (getrandom(&number, sizeof(number), 0) != sizeof(number))
            return -errno;
        nat->host_address = LINK_ADDRESSES + 2 * (number % PAIRS);
        snprintf(nat->name, sizeof(nat->name), "kiln-%08x", number);
        r = netlink_has_address(host, nat->host_address, PAIR_PREFIX, &taken);
        if (r < 0 || !taken)
            return r;
    }
    return -EADDRNOTAVAIL;
}

static int make_router(struct nat *nat, struct fault *fault)
{
    struct netlink_veth veth = {
        .name = "uplink", .index = UPLINK_INDEX, .peer_name = nat->name, .peer_namespace = nat->host_namespace};
    struct nft_ctx *context = NULL;
    int r = unshare(CLONE_NEWNET) < 0 ? -errno : open_namespace(&nat->router_namespace);

    if (r == 0)
        r = netlink_open(&nat->router);
    if (r < 0)
        return fault_set(fault, -r, "cannot make a network namespace: %s", strerror(-r));
    (void)!write_setting("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1"); /* may not be there */
    r = write_setting("/proc/sys/net/ipv4/ip_forward", "1");
    if (r < 0)
        return fault_set(fault, -r, "cannot set net.ipv4.ip_forward: %s", strerror(-r));
    r = netlink_add_veth(&nat->router, &veth);
    if (r < 0)
        return fault_set(fault, -r, "cannot make a pair of network interfaces (veth): %s", strerror(-r));
    r = netlink_add_address(&nat->router, UPLINK_INDEX, nat->host_address + 1, PAIR_PREFIX);
    if (r == 0)
        r = netlink_set_up(&nat->router, UPLINK_INDEX);
    if (r == 0)
        r = netlink_add_default_route(&nat->router, nat->host_address);
    if (r < 0)
        return fault_set(fault, -r, "cannot set up a network interface: %s", strerror(-r));
    r = add_table(router_rules, &context, fault);
    if (r == 0)
        nft_ctx_free(context); /* the table stays, in a namespace of our own */
    return r;
}

/* ---- the host ---- */

static int set_up_interface(const struct nat *nat, const struct netlink *host)
{
    int index = (int)if_nametoindex(nat->name);
    int r = index ? netlink_add_address(host, index, nat->host_address, PAIR_PREFIX) : -errno;

    return r < 0 ? r : netlink_set_up(host, index);
}

/*
 * One instance must not switch forwarding off because it is the last, while another, which is about to be there, sees
 * it on and leaves it at that. Held until the descriptor is closed; without the lock, which is only lost where the file
 * cannot be opened, either goes on.
 */
static int lock_forward(void)
{
    int fd = open("/proc/sys/net/ipv4/ip_forward", O_RDONLY | O_CLOEXEC);

    if (fd >= 0)
        (void)!flock(fd, LOCK_EX);
    return fd;
}

static int switch_forward(const struct nat *nat)
{
    return nat->switched_forward ? write_setting("/proc/sys/net/ipv4/ip_forward", "1") : 0;
}

static int open_loopback(const struct nat *nat)
{
    char path[96];

    snprintf(path, sizeof(path), "/proc/sys/net/ipv4/conf/%s/route_localnet", nat->name);
    return write_setting(path, "1");
}

static void name_host(struct nat *nat)
{
    char address[INET_ADDRSTRLEN];

    snprintf(nat->hosts, sizeof(nat->hosts), "%s\t" SANDBOX_HOST_NAME "\n", print_address(nat->host_address, address));
}

/* The rules come before what they guard is opened. */
static int connect_host(struct nat *nat, const struct nat_config *config, const struct netlink *host,
                        struct fault *fault)
{
    CLEANUP(buffer_deinit) struct buffer rules = BUFFER_INIT;
    CLEANUP(cleanup_close) int lock = -1;
    uint32_t resolver = 0;
    int r = set_up_interface(nat, host);

    if (r < 0)
        return fault_set(fault, -r, "cannot set up the interface %s: %s", nat->name, strerror(-r));
    name_host(nat);
    r = write_resolv_conf(nat, &resolver);
    if (r < 0)
        return fault_set(fault, -r, "cannot read /etc/resolv.conf: %s", strerror(-r));
    lock = lock_forward();
    r = is_off("/proc/sys/net/ipv4/ip_forward", &nat->switched_forward);
    if (r == 0)
        r = print_rules(&rules, nat, config, resolver);
    if (r < 0)
        return fault_set(fault, -r, "cannot prepare the nftables rules: %s", strerror(-r));
    r = add_table(rules.data, &nat->table, fault);
    if (r < 0)
        return r;
    r = switch_forward(nat);
    if (r < 0)
        return fault_set(fault, -r, "cannot set net.ipv4.ip_forward: %s", strerror(-r));
    r = resolver || config->api_address ? open_loopback(nat) : 0;
    return r < 0 ? fault_set(fault, -r, "cannot set net.ipv4.conf.%s.route_localnet: %s", nat->name, strerror(-r)) : 0;
}

static int make(struct nat *nat, const struct nat_config *config, struct netlink *host, struct fault *fault)
{
    int r = open_namespace(&nat->host_namespace);

    if (r == 0)
        r = netlink_open(host);
    if (r == 0)
        r = choose_address(nat, host);
    if (r < 0)
        return fault_set(fault, -r, "cannot look at the network: %s", strerror(-r));
    r = make_router(nat, fault);
    if (setns(nat->host_namespace, CLONE_NEWNET) < 0 && r == 0)
        r = fault_set(fault, errno, "cannot return to the host's network: %s", strerror(errno));
    return r < 0 ? r : connect_host(nat, config, host, fault);
}

int nat_init(struct nat *nat, const struct nat_config *config, struct fault *fault)
{
    struct netlink host = {NULL};
    int r;

    *nat = NAT_INIT;
    r = make(nat, config, &host, fault);
    netlink_close(&host);
    if (r < 0)
        nat_deinit(nat);
    return r;
}

/* ---- the end ---- */

/* Another instance may rely on what this one switched on. The caller is in the host's namespace. */
static bool is_last(void)
{
    struct if_nameindex *interfaces = if_nameindex();
    bool last = interfaces != NULL;

    for (size_t i = 0; interfaces && interfaces[i].if_name; i++)
        if (strncmp(interfaces[i].if_name, "kiln-", 5) == 0)
            last = false;
    if (interfaces)
        if_freenameindex(interfaces);
    return last;
}

/* It would go by itself, but later. */
static void remove_interface(const struct nat *nat)
{
    CLEANUP(netlink_close) struct netlink host = {NULL};

    if (nat->name[0] && netlink_open(&host) == 0)
        (void)!netlink_remove_link(&host, nat->name);
}

static void leave_host(const struct nat *nat)
{
    CLEANUP(cleanup_close) int lock = -1;

    lock = lock_forward();
    remove_interface(nat);
    if (nat->switched_forward && is_last())
        (void)!write_setting("/proc/sys/net/ipv4/ip_forward", "0");
}

void nat_deinit(struct nat *nat)
{
    if (nat->host_namespace >= 0 && setns(nat->host_namespace, CLONE_NEWNET) == 0)
        leave_host(nat);
    if (nat->table)
        nft_ctx_free(TAKE_PTR(nat->table));
    netlink_close(&nat->router);
    cleanup_close(&nat->router_namespace);
    cleanup_close(&nat->host_namespace);
    free(TAKE_PTR(nat->resolv_conf));
    *nat = NAT_INIT;
}

/* ---- slots ---- */

int nat_connect(const struct nat *nat, const struct netlink *slot, unsigned index)
{
    uint32_t router_address = SLOT_ADDRESSES + 2 * index;
    char name[IF_NAMESIZE];
    struct netlink_veth veth = {.name = "eth0",
                                .index = SLOT_INDEX,
                                .peer_name = name,
                                .peer_index = FIRST_INDEX + (int)index,
                                .peer_namespace = nat->router_namespace};
    int r;

    if (index >= NAT_SLOTS_MAX)
        return -ENOSPC;
    snprintf(name, sizeof(name), "s%u", index);
    r = netlink_add_veth(slot, &veth);
    if (r == 0)
        r = netlink_add_address(&nat->router, veth.peer_index, router_address, PAIR_PREFIX);
    if (r == 0)
        r = netlink_set_up(&nat->router, veth.peer_index);
    if (r == 0)
        r = netlink_add_address(slot, SLOT_INDEX, router_address + 1, PAIR_PREFIX);
    if (r == 0)
        r = netlink_set_up(slot, SLOT_INDEX);
    return r < 0 ? r : netlink_add_default_route(slot, router_address);
}
