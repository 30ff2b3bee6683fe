/* bulk_nodes.c - the nodes by what is free on them.
 *
 * A list for each number of free units, so that the fullest node with room is found without a walk
 * over all. Within a list the node that came last is taken first: that is as good as any, and the
 * same in every run. */
#include "bulk_internal.h"

#include <stdio.h>
#include <string.h>

#include "tallyman/api/codec.h"
#include "tallyman/base/alloc.h"

int64_t bulk_node_units(const struct bulk *bulk, const struct node *object)
{
    struct str resource = bulk->options.resource;
    for (uint32_t i = 0; i < object->status.allocatable.count; i++) {
        const struct resource_amount *amount = &object->status.allocatable.items[i];
        if (str_eq(amount->name, resource)) {
            int64_t units = quantity_units_down(amount->value);
            return units > 0 ? units : 0;
        }
    }
    return 0;
}

static int64_t node_free(const struct bulk_node *node)
{
    int64_t left = node->is_ready ? node->units - node->used : 0;
    return left > 0 ? left : 0;
}

static void node_link(struct bulk *bulk, uint32_t index)
{
    struct bulk_node *node = &bulk->nodes[index];
    uint32_t *first = &bulk->free_lists[node_free(node)];
    node->previous = BULK_NO_NODE;
    node->next = *first;
    if (*first != BULK_NO_NODE) {
        bulk->nodes[*first].previous = index;
    }
    *first = index;
}

static void node_unlink(struct bulk *bulk, uint32_t index)
{
    struct bulk_node *node = &bulk->nodes[index];
    if (node->previous == BULK_NO_NODE) {
        bulk->free_lists[node_free(node)] = node->next;
    } else {
        bulk->nodes[node->previous].next = node->next;
    }
    if (node->next != BULK_NO_NODE) {
        bulk->nodes[node->next].previous = node->previous;
    }
}

static void lists_make(struct bulk *bulk)
{
    int64_t most = 0;
    for (uint32_t i = 0; i < bulk->node_count; i++) {
        most = bulk->nodes[i].units > most ? bulk->nodes[i].units : most;
    }
    for (uint32_t i = 0; i < bulk->due_count; i++) {
        const struct bulk_due *due = &bulk->due[i];
        most = due->kind == DUE_NODE && due->units > most ? due->units : most;
    }
    bulk->free_list_count = most + 1;
    size_t bytes = mem_array_bytes((size_t)most + 1, sizeof(uint32_t));
    bulk->free_lists = mem_alloc(bytes);
    memset(bulk->free_lists, 0xff, bytes); /* BULK_NO_NODE */
}

void bulk_nodes_link(struct bulk *bulk)
{
    lists_make(bulk);
    for (uint32_t i = bulk->node_count; i > 0; i--) {
        node_link(bulk, i - 1);
    }
}

static bool node_takes(const struct bulk_node *node, const struct pod_spec *spec)
{
    const struct node *object = node->object;
    if (spec == NULL) {
        return taints_find_untolerated(&object->spec.taints, &(struct toleration_list){NULL, 0}) ==
               NULL;
    }
    return node_labels_contain(&spec->node_selector, &object->meta.labels) &&
           taints_find_untolerated(&object->spec.taints, &spec->tolerations) == NULL;
}

uint32_t bulk_nodes_find(const struct bulk *bulk, const struct pod_spec *spec, int64_t units)
{
    for (int64_t left = units; left < bulk->free_list_count; left++) {
        for (uint32_t at = bulk->free_lists[left]; at != BULK_NO_NODE; at = bulk->nodes[at].next) {
            if (bulk->nodes[at].is_ready && node_takes(&bulk->nodes[at], spec)) {
                return at;
            }
        }
    }
    return BULK_NO_NODE;
}

void bulk_node_use(struct bulk *bulk, uint32_t node, int64_t units)
{
    node_unlink(bulk, node);
    bulk->nodes[node].used += units;
    node_link(bulk, node);
    bulk->has_room_come = bulk->has_room_come || units < 0;
}

void bulk_node_show(struct bulk *bulk, uint32_t index)
{
    struct bulk_node *node = &bulk->nodes[index];
    struct node object = *node->object;
    struct condition ready = {.type = STR("Ready"),
                              .status = node->is_ready ? STR("True") : STR("False")};
    object.status.conditions = (struct condition_list){.items = &ready, .count = 1};
    char units[24];
    int units_length = snprintf(units, sizeof(units), "%lld", (long long)node->units);
    for (uint32_t i = 0; i < object.status.allocatable.count; i++) {
        struct resource_amount *amount = &object.status.allocatable.items[i];
        if (str_eq(amount->name, bulk->options.resource)) {
            amount->value.nano = (i128)node->units * 1000000000;
            amount->text = (struct str){units, (size_t)units_length};
        }
    }
    char version[24];
    int length = snprintf(version, sizeof(version), "%llu", (unsigned long long)++bulk->version);
    object.meta.resource_version = (struct str){version, (size_t)length};
    driver_take_in(bulk->driver, &(struct object){KIND_NODE, &object.meta}, false);
}

void bulk_node_change(struct bulk *bulk, const struct bulk_due *due)
{
    struct bulk_node *node = &bulk->nodes[due->index];
    node_unlink(bulk, due->index);
    if (due->change == BULK_NODE_UNITS) {
        node->units = due->units;
    } else {
        node->is_ready = due->change == BULK_NODE_UP;
    }
    node_link(bulk, due->index);
    bulk->has_room_come = true;
    bulk_node_show(bulk, due->index);
    bulk_tell_capacity(bulk);
    for (uint32_t i = 0; due->change == BULK_NODE_DOWN && i < bulk->next_gang; i++) {
        if (bulk->gangs[i].placed > 0) {
            bulk_gang_lose_node(bulk, i, due->index);
        }
    }
}
