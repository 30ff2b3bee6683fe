/* ailment.h - devices that were out for their health, and their quarantine. Private to the core. */
#pragma once

#include "internal.h"

/* A device that is ailing, or that is in quarantine since. */
struct device_ailment {
    struct str key; /* owned; "driver/pool/device" */
    UT_hash_handle hh;
    int64_t since_ms;  /* ailing since */
    int64_t well_ms;   /* it is well again since then; 0: it isn't */
    int64_t gone_ms;   /* no slice lists it since then; 0: one does */
    uint32_t reports;  /* pods that report it Unhealthy now */
    bool is_reported;  /* some did, since it is ailing */
    struct str flavor; /* owned; in whose status it is kept, absent: in nobody's */
};

/* All has been listed: what the flavors' statuses say of before. */
void ailments_start(struct core *core);
void ailments_free(struct core *core);
/* The device has come, or its taints have changed. */
void ailment_judge_device(struct core *core, struct device_state *device);
void ailment_device_gone(struct core *core, const struct device_state *device);
/* A pod reports that device, or doesn't any more. */
void ailment_report(struct core *core, struct str key, bool is_unhealthy);
/* Flavors have other rules, or there are other flavors. */
void ailments_rules_changed(struct core *core);
void ailments_tick(struct core *core);
/* When its quarantine ends; 0: it isn't in one. */
int64_t ailment_end_ms(const struct core *core, const struct device_state *device);
/* Those that the status of that flavor keeps, in the arena. */
struct flavor_device_list ailments_of_flavor(const struct core *core, struct str flavor,
                                             struct arena *arena);
