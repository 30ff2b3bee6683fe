/* leader.c - of several replicas one decides; the others have everything listed and stand by.
 *
 * The core of a replica that stands by takes in every object and decides nothing, as before the
 * first listing is complete: leading is a restart without the listing. */
#include "daemon.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define LEASE_NAMESPACE "tallyman-system"
#define LEASE_NAME      "tallyman"

static void on_leading(void *ctx)
{
    struct daemon *daemon = ctx;
    daemon->is_leading = true;
    log_line(&daemon->log, LOG_INFO, "leading", NULL);
    kube_port_lead(daemon);
}

static void on_following(void *ctx, struct str holder)
{
    struct daemon *daemon = ctx;
    struct log_field fields[] = {LOG_STR("leader", holder), {.key = NULL}};
    log_line(&daemon->log, LOG_INFO, "another replica leads", fields);
}

static void on_lost(void *ctx, struct str why)
{
    struct daemon *daemon = ctx;
    struct log_field fields[] = {LOG_STR("error", why), {.key = NULL}};
    log_line(&daemon->log, LOG_ERROR, "not leading any more", fields);
    daemon_stop(daemon, 1);
}

static void on_trouble(void *ctx, struct str why)
{
    struct daemon *daemon = ctx;
    struct str space = str_is_set(daemon->options.lease_namespace) ? daemon->options.lease_namespace
                                                                   : STR(LEASE_NAMESPACE);
    struct log_field fields[] = {LOG_STR("error", why),
                                 LOG_STR("namespace", space),
                                 LOG_STR("lease", STR(LEASE_NAME)),
                                 {.key = NULL}};
    log_line(&daemon->log, LOG_WARN, "the lease can't be read or written; trying again", fields);
}

void leader_open(struct daemon *daemon)
{
    if (daemon->options.is_alone) {
        on_leading(daemon);
        return;
    }
    uint64_t random = 0;
    (void)uv_random(NULL, NULL, &random, sizeof(random), 0, NULL);
    char identity[192];
    if (str_is_set(daemon->options.identity)) {
        snprintf(identity, sizeof(identity), STR_FMT, STR_ARG(daemon->options.identity));
    } else {
        char host[128] = "tallyman";
        (void)gethostname(host, sizeof(host) - 1);
        snprintf(identity, sizeof(identity), "%s_%016" PRIx64, host, random);
    }
    struct kube_lease_options options = {.loop = &daemon->loop,
                                         .client = daemon->client,
                                         .namespace_name = STR(LEASE_NAMESPACE),
                                         .name = STR(LEASE_NAME),
                                         .identity = str_from_c(identity),
                                         .seed = random,
                                         .handler = {.on_leading = on_leading,
                                                     .on_following = on_following,
                                                     .on_lost = on_lost,
                                                     .on_trouble = on_trouble,
                                                     .ctx = daemon}};
    if (str_is_set(daemon->options.lease_namespace)) {
        options.namespace_name = daemon->options.lease_namespace;
    }
    daemon->lease = kube_lease_open(&options);
}

bool leader_may_write(struct daemon *daemon)
{
    if (daemon->is_stopping) {
        return false;
    }
    if (daemon->lease == NULL || kube_lease_is_held(daemon->lease)) {
        return true;
    }
    on_lost(daemon, STR("the process slept past its lease"));
    return false;
}

void leader_close(struct daemon *daemon, void (*on_closed)(void *ctx))
{
    struct kube_lease *lease = daemon->lease;
    daemon->lease = NULL;
    if (lease == NULL) {
        on_closed(daemon);
    } else {
        kube_lease_close(lease, on_closed, daemon);
    }
}
