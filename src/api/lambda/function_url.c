#include "api/lambda/function_url.h"

#include "base/random.h"

enum { ADDRESS_CHARACTERS_MAX = 100 }; /* the service model's FunctionUrl */

void function_url_make_id(char id[FUNCTION_URL_ID_BYTES])
{
    static const char characters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    unsigned char bytes[FUNCTION_URL_ID_BYTES - 1];

    random_bytes(bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++)
        id[i] = characters[bytes[i] % (sizeof(characters) - 1)]; /* the slight bias leaves more than 160 bits */
    id[sizeof(bytes)] = '\0';
}

/* Letters, digits, '-' and '.', with a dot and with a letter in the last label: no address, no single name. */
static bool is_domain(struct span name)
{
    bool has_dot = false;

    for (size_t i = 0; i < name.length; i++) {
        char c = name.data[i];
        bool is_alphanumeric = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        has_dot = has_dot || c == '.';
        if (!is_alphanumeric && c != '-' && c != '.')
            return false;
    }
    return has_dot && name.data[0] != '.' && (name.data[name.length - 1] < '0' || name.data[name.length - 1] > '9');
}

static struct span port_of(struct span host)
{
    struct span rest = host;
    uint64_t port;

    if (host.length && host.data[0] == '[')
        span_cut(&rest, ']');
    span_cut(&rest, ':');
    return rest.length && span_to_u64(rest, UINT16_MAX, &port) == 0 ? rest : SPAN_NONE;
}

const char *function_url_address(struct operation *operation, const char *id)
{
    struct span host = operation_header(operation, SPAN("Host"));
    struct span port = port_of(host);
    struct span name = span_cut(&host, ':');
    const char *address = NULL;

    if (name.length && is_domain(name))
        address = arena_printf(&operation->arena, "http://%s.lambda-url.%.*s.%.*s%s%.*s/", id,
                               SPAN_ARG(operation->region), SPAN_ARG(name), port.length ? ":" : "", SPAN_ARG(port));
    if (address && strlen(address) <= ADDRESS_CHARACTERS_MAX)
        return address;
    return arena_printf(&operation->arena, "http://%s.lambda-url.%.*s.localhost%s%.*s/", id,
                        SPAN_ARG(operation->region), port.length ? ":" : "", SPAN_ARG(port));
}
