/* tls.h - the server's certificate: read from files and read again when they change, or made here.
 * Private to the layer.
 *
 * A certificate made here is signed by nobody: it keeps readers out of the wire, and proves nothing
 * to the client. What guards the answers is the client's own token. */
#pragma once

#include <gnutls/abstract.h>

#include "tallyman/base/err.h"

struct http_tls;

/* Both files or neither (NULL: made here). RC_INVALID names the file and what is wrong with it.
 * `*ret_tls` is owned; there is one at a time, as MHD's callback knows no context. */
NODISCARD struct rc http_tls_open(const char *certificate_file, const char *key_file,
                                  struct http_tls **ret_tls, struct err *err);
void http_tls_close(struct http_tls *tls); /* NULL is fine */
/* For MHD_OPTION_HTTPS_CERT_CALLBACK. Looks at the files again, at most every HTTP_TLS_REREAD_S;
 * new ones that are no good are left aside, and the old certificate goes on. */
int http_tls_retrieve(gnutls_session_t session, const gnutls_datum_t *ca_names, int ca_count,
                      const gnutls_pk_algorithm_t *algorithms, int algorithm_count,
                      gnutls_pcert_st **ret_chain, unsigned *ret_count, gnutls_privkey_t *ret_key);
