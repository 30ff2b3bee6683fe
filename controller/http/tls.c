#include "tls.h"

#include <assert.h>
#include <gnutls/crypto.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

#define SERIAL_BYTES 16
#define COMMON_NAME  "tallyman, self-signed"
#define YEARS_S(n)   ((time_t)(n)*365 * 24 * 3600)

/* One certificate with its key. */
struct identity {
    gnutls_pcert_st chain[HTTP_CHAIN_MAX];
    unsigned chain_count;
    gnutls_privkey_t key;
};

struct http_tls {
    char certificate_file[HTTP_PATH_BYTES]; /* empty: self-signed */
    char key_file[HTTP_PATH_BYTES];
    struct identity *now;    /* owned */
    struct identity *before; /* owned; handshakes that began with it may still go on */
    struct timespec modified[2];
    time_t looked_at;
};

static void identity_free(struct identity *identity)
{
    if (identity == NULL) {
        return;
    }
    for (unsigned i = 0; i < identity->chain_count; i++) {
        gnutls_pcert_deinit(&identity->chain[i]);
    }
    if (identity->key != NULL) {
        gnutls_privkey_deinit(identity->key);
    }
    mem_free(identity);
}

/* -- from files ---------------------------------------------------------------------------------
 */

static int read_chain(struct identity *identity, const char *file)
{
    gnutls_datum_t text = {0};
    int code = gnutls_load_file(file, &text);
    identity->chain_count = HTTP_CHAIN_MAX;
    if (code >= 0) {
        code = gnutls_pcert_list_import_x509_raw(identity->chain, &identity->chain_count, &text,
                                                 GNUTLS_X509_FMT_PEM, 0);
        gnutls_free(text.data);
    }
    if (code < 0) {
        identity->chain_count = 0;
    }
    return code;
}

static int read_key(struct identity *identity, const char *file)
{
    gnutls_datum_t text = {0};
    int code = gnutls_load_file(file, &text);
    if (code >= 0) {
        code = gnutls_privkey_init(&identity->key);
        if (code >= 0) {
            code =
                gnutls_privkey_import_x509_raw(identity->key, &text, GNUTLS_X509_FMT_PEM, NULL, 0);
        }
        gnutls_memset(text.data, 0, text.size);
        gnutls_free(text.data);
    }
    return code;
}

/* A key that isn't the certificate's would fail every handshake, each with nothing to say why. */
static bool is_pair(const struct identity *identity)
{
    unsigned char of_key[64];
    unsigned char of_certificate[64];
    size_t key_bytes = sizeof(of_key);
    size_t certificate_bytes = sizeof(of_certificate);
    gnutls_pubkey_t public_key = NULL;
    bool is_same =
        gnutls_pubkey_init(&public_key) >= 0 &&
        gnutls_pubkey_import_privkey(public_key, identity->key, 0, 0) >= 0 &&
        gnutls_pubkey_get_key_id(public_key, GNUTLS_KEYID_USE_SHA256, of_key, &key_bytes) >= 0 &&
        gnutls_pubkey_get_key_id(identity->chain[0].pubkey, GNUTLS_KEYID_USE_SHA256, of_certificate,
                                 &certificate_bytes) >= 0 &&
        key_bytes == certificate_bytes && memcmp(of_key, of_certificate, key_bytes) == 0;
    if (public_key != NULL) {
        gnutls_pubkey_deinit(public_key);
    }
    return is_same;
}

static struct rc read_identity(const struct http_tls *tls, struct identity **ret_identity,
                               struct err *err)
{
    struct identity *identity = MEM_NEW(struct identity);
    struct rc rc = RC_SUCCESS;
    int code = read_chain(identity, tls->certificate_file);
    if (code < 0) {
        rc = err_set(err, RC_INVALID,
                     "TLS certificate %s: %s; want a PEM file with the certificate and, behind "
                     "it, those up to its CA",
                     tls->certificate_file, gnutls_strerror(code));
    } else if ((code = read_key(identity, tls->key_file)) < 0) {
        rc = err_set(err, RC_INVALID,
                     "TLS key %s: %s; want a PEM file with the certificate's private key, without "
                     "a password",
                     tls->key_file, gnutls_strerror(code));
    } else if (!is_pair(identity)) {
        rc = err_set(err, RC_INVALID, "TLS key %s isn't the key of certificate %s", tls->key_file,
                     tls->certificate_file);
    }
    if (rc_failed(rc)) {
        identity_free(identity);
        return rc;
    }
    *ret_identity = identity;
    return RC_SUCCESS;
}

/* -- made here ----------------------------------------------------------------------------------
 */

/* For the life of the process, however long: a start gives another one. */
static int describe(gnutls_x509_crt_t certificate, gnutls_x509_privkey_t key)
{
    unsigned char serial[SERIAL_BYTES];
    time_t now = time(NULL);
    int code = gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof(serial));
    serial[0] = (unsigned char)((serial[0] & 0x3f) | 0x40); /* positive and of full length */
    if (code >= 0 && (code = gnutls_x509_crt_set_version(certificate, 3)) >= 0 &&
        (code = gnutls_x509_crt_set_serial(certificate, serial, sizeof(serial))) >= 0 &&
        (code = gnutls_x509_crt_set_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 0,
                                              COMMON_NAME, sizeof(COMMON_NAME) - 1)) >= 0 &&
        (code = gnutls_x509_crt_set_activation_time(certificate, now - 3600)) >= 0 &&
        (code = gnutls_x509_crt_set_expiration_time(certificate, now + YEARS_S(10))) >= 0 &&
        (code = gnutls_x509_crt_set_key_usage(certificate, GNUTLS_KEY_DIGITAL_SIGNATURE)) >= 0 &&
        (code = gnutls_x509_crt_set_key_purpose_oid(certificate, GNUTLS_KP_TLS_WWW_SERVER, 0)) >=
            0 &&
        (code = gnutls_x509_crt_set_key(certificate, key)) >= 0) {
        code = gnutls_x509_crt_sign2(certificate, certificate, key, GNUTLS_DIG_SHA256, 0);
    }
    return code;
}

static int make_identity(struct identity *identity)
{
    gnutls_x509_privkey_t key = NULL;
    gnutls_x509_crt_t certificate = NULL;
    int code = gnutls_x509_privkey_init(&key);
    if (code >= 0 && (code = gnutls_x509_crt_init(&certificate)) >= 0 &&
        (code = gnutls_x509_privkey_generate(
             key, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0)) >= 0 &&
        (code = describe(certificate, key)) >= 0 &&
        (code = gnutls_privkey_init(&identity->key)) >= 0 &&
        (code = gnutls_privkey_import_x509(identity->key, key, GNUTLS_PRIVKEY_IMPORT_COPY)) >= 0 &&
        (code = gnutls_pcert_import_x509(&identity->chain[0], certificate, 0)) >= 0) {
        identity->chain_count = 1;
    }
    if (certificate != NULL) {
        gnutls_x509_crt_deinit(certificate);
    }
    if (key != NULL) {
        gnutls_x509_privkey_deinit(key);
    }
    return code;
}

static struct rc own_identity(struct identity **ret_identity, struct err *err)
{
    struct identity *identity = MEM_NEW(struct identity);
    int code = make_identity(identity);
    if (code < 0) {
        identity_free(identity);
        return err_set(err, RC_IO, "a TLS certificate can't be made: %s", gnutls_strerror(code));
    }
    *ret_identity = identity;
    return RC_SUCCESS;
}

/* -- in use -------------------------------------------------------------------------------------
 */

static struct http_tls *in_use; /* MHD's callback has no context */

/* Whether either file is another one than the last time. */
static bool files_changed(struct http_tls *tls)
{
    const char *const files[] = {tls->certificate_file, tls->key_file};
    bool has_changed = false;
    for (size_t i = 0; i < 2; i++) {
        struct stat info;
        if (stat(files[i], &info) == 0 && (info.st_mtim.tv_sec != tls->modified[i].tv_sec ||
                                           info.st_mtim.tv_nsec != tls->modified[i].tv_nsec)) {
            tls->modified[i] = info.st_mtim;
            has_changed = true;
        }
    }
    return has_changed;
}

static void look_again(struct http_tls *tls)
{
    struct timespec now;
    struct identity *identity = NULL;
    struct err err;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (tls->certificate_file[0] == '\0' || now.tv_sec - tls->looked_at < HTTP_TLS_REREAD_S) {
        return;
    }
    tls->looked_at = now.tv_sec;
    /* The two are replaced one after the other: a pair that doesn't match is half of a new one. */
    if (files_changed(tls)) {
        if (rc_failed(read_identity(tls, &identity, &err))) {
            tls->modified[0] = tls->modified[1] = (struct timespec){0};
            return;
        }
        identity_free(tls->before); /* its handshakes ended by HTTP_REQUEST_S */
        tls->before = tls->now;
        tls->now = identity;
    }
}

int http_tls_retrieve(gnutls_session_t session, const gnutls_datum_t *ca_names, int ca_count,
                      const gnutls_pk_algorithm_t *algorithms, int algorithm_count,
                      gnutls_pcert_st **ret_chain, unsigned *ret_count, gnutls_privkey_t *ret_key)
{
    (void)session;
    (void)ca_names;
    (void)ca_count;
    (void)algorithms;
    (void)algorithm_count;
    look_again(in_use);
    *ret_chain = in_use->now->chain;
    *ret_count = in_use->now->chain_count;
    *ret_key = in_use->now->key;
    return 0;
}

static void remember_path(char to[HTTP_PATH_BYTES], const char *path)
{
    (void)snprintf(to, HTTP_PATH_BYTES, "%s", path);
}

struct rc http_tls_open(const char *certificate_file, const char *key_file,
                        struct http_tls **ret_tls, struct err *err)
{
    assert(in_use == NULL && (certificate_file == NULL) == (key_file == NULL));
    struct http_tls *tls = MEM_NEW(struct http_tls);
    struct rc rc;
    if (certificate_file == NULL) {
        rc = own_identity(&tls->now, err);
    } else if (strlen(certificate_file) >= HTTP_PATH_BYTES || strlen(key_file) >= HTTP_PATH_BYTES) {
        rc = err_set(err, RC_INVALID, "TLS certificate and key: want paths below %d characters",
                     HTTP_PATH_BYTES);
    } else {
        remember_path(tls->certificate_file, certificate_file);
        remember_path(tls->key_file, key_file);
        (void)files_changed(tls);
        rc = read_identity(tls, &tls->now, err);
    }
    if (rc_failed(rc)) {
        mem_free(tls);
        return rc;
    }
    in_use = tls;
    *ret_tls = tls;
    return RC_SUCCESS;
}

void http_tls_close(struct http_tls *tls)
{
    if (tls == NULL) {
        return;
    }
    assert(in_use == tls);
    in_use = NULL;
    identity_free(tls->now);
    identity_free(tls->before);
    mem_free(tls);
}
