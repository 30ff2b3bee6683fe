#include "tallyman/http/address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static struct rc isnt_address(struct str text, struct err *err)
{
    return err_set(err, RC_INVALID,
                   "listen address \"" STR_FMT "\": want an IP address and a port from 0 to 65535, "
                   "such as 127.0.0.1:8080, [::1]:8080 or 0.0.0.0:8080 for all addresses",
                   STR_ARG(str_take(text, 100)));
}

/* Offset of the last colon, or the length. */
static size_t find_port(struct str text)
{
    for (size_t at = text.len; at > 0; at--) {
        if (text.ptr[at - 1] == ':') {
            return at - 1;
        }
    }
    return text.len;
}

static bool parse_port(struct str text, in_port_t *ret_port)
{
    int64_t port = 0;

    /* str_to_i64() takes a sign too. */
    if (text.len > 5 || text.len == 0 || text.ptr[0] < '0' || !str_to_i64(text, &port) ||
        port > UINT16_MAX) {
        return false;
    }
    *ret_port = htons((uint16_t)port);
    return true;
}

struct rc address_parse(struct str text, struct sockaddr_storage *ret_address, struct err *err)
{
    size_t colon = find_port(text);
    struct str host = str_take(text, colon);
    struct str port_text = str_skip(text, colon + 1);
    char host_text[INET6_ADDRSTRLEN + 2];
    struct sockaddr_storage address = {0};
    struct sockaddr_in *ip4 = (struct sockaddr_in *)&address;
    struct sockaddr_in6 *ip6 = (struct sockaddr_in6 *)&address;
    in_port_t port = 0;

    if (colon == text.len || host.len >= sizeof(host_text) || !parse_port(port_text, &port)) {
        return isnt_address(text, err);
    }
    bool is_bracketed = host.len > 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']';

    if (is_bracketed) {
        host = str_take(str_skip(host, 1), host.len - 2);
    }
    (void)snprintf(host_text, sizeof(host_text), STR_FMT, STR_ARG(host));
    if (is_bracketed && inet_pton(AF_INET6, host_text, &ip6->sin6_addr) == 1) {
        ip6->sin6_family = AF_INET6;
        ip6->sin6_port = port;
    } else if (!is_bracketed && inet_pton(AF_INET, host_text, &ip4->sin_addr) == 1) {
        ip4->sin_family = AF_INET;
        ip4->sin_port = port;
    } else {
        return isnt_address(text, err);
    }
    *ret_address = address;
    return RC_SUCCESS;
}

bool address_is_loopback(const struct sockaddr_storage *address)
{
    const struct sockaddr_in *ip4 = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *ip6 = (const struct sockaddr_in6 *)address;

    return address->ss_family == AF_INET6 ? IN6_IS_ADDR_LOOPBACK(&ip6->sin6_addr)
                                          : ntohl(ip4->sin_addr.s_addr) >> 24 == 127;
}

bool address_is_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    if (a->ss_family != b->ss_family) {
        return false;
    }
    return a->ss_family == AF_INET6
               ? IN6_ARE_ADDR_EQUAL(&((const struct sockaddr_in6 *)a)->sin6_addr,
                                    &((const struct sockaddr_in6 *)b)->sin6_addr)
               : ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
                     ((const struct sockaddr_in *)b)->sin_addr.s_addr;
}

socklen_t address_bytes(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                          : sizeof(struct sockaddr_in);
}

struct str address_format(const struct sockaddr_storage *address, char buffer[ADDRESS_TEXT_BYTES])
{
    const struct sockaddr_in *ip4 = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *ip6 = (const struct sockaddr_in6 *)address;
    char host[INET6_ADDRSTRLEN] = "";

    if (address->ss_family == AF_INET6) {
        (void)inet_ntop(AF_INET6, &ip6->sin6_addr, host, sizeof(host));
        (void)snprintf(buffer, ADDRESS_TEXT_BYTES, "[%s]:%u", host, ntohs(ip6->sin6_port));
    } else {
        (void)inet_ntop(AF_INET, &ip4->sin_addr, host, sizeof(host));
        (void)snprintf(buffer, ADDRESS_TEXT_BYTES, "%s:%u", host, ntohs(ip4->sin_port));
    }
    return str_from_c(buffer);
}
