/* address.h - "host:port" of a server, as an operator writes it. */
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include "tallyman/base/err.h"
#include "tallyman/base/str.h"

#define ADDRESS_TEXT_BYTES 64 /* room for any address and its NUL */

/* "127.0.0.1:8080", "[::1]:8080", "0.0.0.0:0". A name isn't looked up: what a name means can change
 * under a server. RC_INVALID with a sentence that shows the right form. */
NODISCARD struct rc address_parse(struct str text, struct sockaddr_storage *ret_address,
                                  struct err *err);
/* The same form back. Returns a view of `buffer`. */
struct str address_format(const struct sockaddr_storage *address, char buffer[ADDRESS_TEXT_BYTES]);
/* 127.0.0.0/8 or ::1: nobody but this host gets there. */
bool address_is_loopback(const struct sockaddr_storage *address);
/* Of one host, whatever their ports. */
bool address_is_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b);
socklen_t address_bytes(const struct sockaddr_storage *address);
