/* uses.h - what each queue is charged, before and after something that mustn't change it. */
#pragma once

#include <stdint.h>

struct core;

#define USES_QUEUES_MAX 8

struct uses {
    int64_t devices[USES_QUEUES_MAX]; /* of a class, queues by name */
};

struct uses uses_read(const struct core *core, const char *class_name);
/* The same ones pay, and nobody else. */
void check_same_payers(struct uses before, struct uses after);
