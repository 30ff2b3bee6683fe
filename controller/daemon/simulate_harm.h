/* simulate_harm.h - what the cluster itself takes away from gangs that were admitted: a Node that
 * falls ill or goes, devices that do, a pod of somebody else's that takes the room.
 *
 * No admission can foresee it, so a gang that stands half for that reason shows no broken promise.
 * Known only with the delay of a watch, so what happened shortly before the admission counts too.
 */
#pragma once
#include "simulate.h"

#define HARM_TEXT_BYTES 256

struct harm_node;

struct harm {
    struct harm_node *nodes; /* owned; those that pods can go to */
    uint64_t supply_version;
    int64_t devices;
    uint32_t rules;    /* DeviceTaintRules */
    int64_t struck_ms; /* the last time; -1: never */
    uint64_t strikes;
    char what[HARM_TEXT_BYTES]; /* the last of them: "Node n1 fell ill or went" */
};

void harm_init(struct harm *harm);
void harm_deinit(struct harm *harm);
/* A pod that is no gang's has got a node. */
void harm_note(struct harm *harm, const struct sim *sim, const struct sim_note *note);
/* What has gone since the last call. */
void harm_look(struct harm *harm, const struct sim *sim);
