/* A Lease and reviews of access, by hand. */
#include "wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tallyman/kube/access.h"
#include "tallyman/kube/lease.h"

static struct kube_lease *lease;
static struct kube_access *access;

static void on_leading(void *ctx)
{
    (void)ctx;
    printf("leading\n");
}

static void on_following(void *ctx, struct str holder)
{
    (void)ctx;
    printf("following " STR_FMT "\n", STR_ARG(holder));
}

static void on_lost(void *ctx, struct str why)
{
    (void)ctx;
    printf("lost: " STR_FMT "\n", STR_ARG(why));
}

static void on_trouble(void *ctx, struct str why)
{
    (void)ctx;
    printf("lease trouble: " STR_FMT "\n", STR_ARG(why));
}

static void on_closed(void *ctx)
{
    (void)ctx;
    printf("lease closed\n");
}

void lease_open(const char *identity, const char *lease_ms)
{
    const struct kube_lease_options options = {
        .loop = &wire.loop,
        .client = wire.client,
        .namespace_name = STR("ns"),
        .name = STR("tallyman"),
        .identity = str_from_c(identity),
        .seed = 1,
        .handler = {on_leading, on_following, on_lost, on_trouble, NULL},
        .lease_ms = strtoll(lease_ms, NULL, 10),
    };
    lease = kube_lease_open(&options);
}

void lease_report(void)
{
    printf("held %d\n", kube_lease_is_held(lease));
}

void lease_close(void)
{
    kube_lease_close(lease, on_closed, NULL);
    lease = NULL;
}

static void on_verdict(void *ctx, enum kube_access_verdict verdict)
{
    static const char *const names[] = {[KUBE_ACCESS_ALLOWED] = "allowed",
                                        [KUBE_ACCESS_UNKNOWN_USER] = "unknown",
                                        [KUBE_ACCESS_FORBIDDEN] = "forbidden",
                                        [KUBE_ACCESS_UNAVAILABLE] = "unavailable"};
    (void)ctx;
    printf("verdict %s\n", names[verdict]);
}

void access_review(const char *token, const char *path)
{
    if (access == NULL) {
        access = kube_access_new(wire.client);
    }
    kube_access_review(access, str_from_c(token), str_from_c(path), on_verdict, NULL);
}

void access_close(void)
{
    kube_access_free(access);
    access = NULL;
}
