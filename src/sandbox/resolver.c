/*
 * systemd-resolved answers at 127.0.0.53 only what comes in on the loopback interface itself, so questions cannot be
 * passed on to it; it names the servers that it asks in a file of their own. Every other resolver takes what is passed
 * on, as long as it seems to come from the loopback network.
 */
#include "sandbox/resolver.h"

#include <arpa/inet.h>
#include <stdio.h>

#define LOOPBACK      0x7f000000u
#define LOOPBACK_MASK 0xff000000u
#define STUB          0x7f000035u /* 127.0.0.53 */
#define STUB_PLAIN    0x7f000036u /* 127.0.0.54: the same without caching */

static struct span next_word(struct span *line)
{
    struct span word;

    do
        word = span_cut(line, ' ');
    while (word.length == 0 && line->data);
    return word;
}

/* The address of a line that names an IPv4 name server; `ret_server` says whether it names one at all. */
static uint32_t parse_server(struct span line, bool *ret_server)
{
    char text[64], word[INET_ADDRSTRLEN], *tab;
    struct span rest, server;
    struct in_addr address;

    snprintf(text, sizeof(text), "%.*s", SPAN_ARG(line));
    while ((tab = strchr(text, '\t')))
        *tab = ' ';
    rest = span_from(text);
    *ret_server = span_equal(next_word(&rest), SPAN("nameserver"));
    if (!*ret_server)
        return 0;
    server = next_word(&rest);
    snprintf(word, sizeof(word), "%.*s", SPAN_ARG(server));
    return inet_pton(AF_INET, word, &address) == 1 ? ntohl(address.s_addr) : 0;
}

static bool is_loopback(uint32_t address)
{
    return (address & LOOPBACK_MASK) == LOOPBACK;
}

/* The first name server, 127.0.0.1 when none is named (as the C library has it). */
static uint32_t first_server(struct span text)
{
    while (text.data) {
        bool server;
        uint32_t address = parse_server(span_cut(&text, '\n'), &server);
        if (server)
            return address;
    }
    return INADDR_LOOPBACK;
}

static int print_server(struct resolver *resolver, uint32_t address)
{
    struct in_addr in = {.s_addr = htonl(address)};
    char text[INET_ADDRSTRLEN];

    inet_ntop(AF_INET, &in, text, sizeof(text));
    resolver->empty = false;
    return buffer_printf(&resolver->text, "nameserver %s\n", text);
}

static int add_server(struct resolver *resolver, uint32_t address, uint32_t host)
{
    if (address == 0 || (is_loopback(address) && resolver->loopback))
        return 0;
    if (!is_loopback(address))
        return print_server(resolver, address);
    resolver->loopback = address;
    return print_server(resolver, host);
}

static int add_line(struct resolver *resolver, struct span line, uint32_t host)
{
    bool server;
    uint32_t address = parse_server(line, &server);

    if (server)
        return add_server(resolver, address, host);
    if (line.length == 0 || *line.data == '#' || *line.data == ';')
        return 0;
    return buffer_printf(&resolver->text, "%.*s\n", SPAN_ARG(line));
}

/* Whether the text names a server at all, or one that functions reach as it is. */
static bool names_a_server(struct span text, bool beyond_loopback)
{
    while (text.data) {
        bool server;
        uint32_t address = parse_server(span_cut(&text, '\n'), &server);
        if (server && (!beyond_loopback || (address && !is_loopback(address))))
            return true;
    }
    return false;
}

int resolver_choose(struct span text, struct span upstream, uint32_t host, struct resolver *ret_resolver)
{
    struct resolver resolver = {.text = BUFFER_INIT, .empty = true};
    uint32_t first = first_server(text);
    int r = 0;

    if ((first == STUB || first == STUB_PLAIN) && names_a_server(upstream, true))
        text = upstream;
    if (!names_a_server(text, false))
        r = add_server(&resolver, first, host);
    while (r == 0 && text.data)
        r = add_line(&resolver, span_cut(&text, '\n'), host);
    if (r < 0)
        resolver_deinit(&resolver);
    else
        *ret_resolver = resolver;
    return r;
}

void resolver_deinit(struct resolver *resolver)
{
    buffer_deinit(&resolver->text);
}
