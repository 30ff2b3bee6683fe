/* authorize.c - whose request is it, and does it come from where it may? */
#include "http_internal.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "tallyman/base/alloc.h"

/* Outlives its client where that goes first, and is freed by the answer. */
struct http_review {
    struct http_client *client; /* borrowed; NULL: it has gone */
    bool is_inside_call;        /* the authorizer hasn't returned yet: nothing is suspended */
};

/* -- reviews ------------------------------------------------------------------------------------
 */

void http_review_answer(struct http_review *review, enum http_verdict verdict)
{
    struct http_client *client = review->client;
    if (client != NULL) {
        client->review = NULL;
        client->verdict = verdict;
        if (!review->is_inside_call) {
            MHD_resume_connection(client->connection);
            http_run(client->server);
        }
    }
    mem_free(review);
}

void http_client_drop_review(struct http_client *client)
{
    if (client->review != NULL) {
        client->review->client = NULL;
        client->review = NULL;
    }
}

/* "Bearer " in any case, as RFC 9110 has it; absent: there is none. */
static struct str token_of(struct MHD_Connection *connection)
{
    static const char scheme[] = "Bearer ";
    const char *value =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
    if (value == NULL || strncasecmp(value, scheme, sizeof(scheme) - 1) != 0) {
        return STR_NONE;
    }
    struct str token = str_from_c(value + sizeof(scheme) - 1);
    while (token.len > 0 && token.ptr[0] == ' ') {
        token = str_skip(token, 1);
    }
    return token;
}

bool http_ask(struct http_server *server, struct http_client *client, struct str path)
{
    struct str token = token_of(client->connection);
    if (client->verdict != HTTP_NOT_ASKED) {
        return true;
    }
    if (str_is_empty(token)) {
        client->verdict = HTTP_UNKNOWN_USER;
        return true;
    }
    struct http_review *review = MEM_NEW(struct http_review);
    *review = (struct http_review){.client = client, .is_inside_call = true};
    client->review = review;
    if (server->options.authorize != NULL) {
        server->options.authorize(server->options.ctx, token, path, review);
    } else {
        http_review_answer(review, HTTP_FORBIDDEN);
    }
    if (client->review == NULL) {
        return true; /* it was known, and the review is gone */
    }
    review->is_inside_call = false;
    MHD_suspend_connection(client->connection);
    return false;
}

/* -- where a request comes from -----------------------------------------------------------------
 */

/* With a port or without. */
static bool is_loopback_authority(struct str authority)
{
    char with_port[ADDRESS_TEXT_BYTES];
    struct sockaddr_storage address;
    struct err err;
    struct str name = str_take(authority, str_find_char(authority, ':'));

    (void)snprintf(with_port, sizeof(with_port), STR_FMT ":1",
                   STR_ARG(str_take(authority, sizeof(with_port))));
    return (name.len == 9 && strncasecmp(name.ptr, "localhost", 9) == 0) ||
           ((!rc_failed(address_parse(authority, &address, &err)) ||
             !rc_failed(address_parse(str_from_c(with_port), &address, &err))) &&
            address_is_loopback(&address));
}

bool http_is_foreign(const struct http_server *server, struct MHD_Connection *connection)
{
    struct str host =
        str_from_c(MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST));
    struct str origin = str_from_c(
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ORIGIN));
    struct str site =
        str_from_c(MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Sec-Fetch-Site"));
    /* A page of another site can have its own name point at 127.0.0.1, and would then be of the
     * same origin for the browser: but it asks for that name. */
    if (server->tls == NULL && str_is_set(host) && !is_loopback_authority(host)) {
        return true;
    }
    /* What an image or a script of a page asks for has no Origin; browsers say so in this. */
    if (str_is_set(site) && !str_eq_c(site, "same-origin") && !str_eq_c(site, "none")) {
        return true;
    }
    if (!str_is_set(origin)) {
        return false;
    }
    struct str scheme = server->tls != NULL ? STR("https://") : STR("http://");
    return !str_starts_with(origin, scheme) || !str_eq(str_skip(origin, scheme.len), host);
}
