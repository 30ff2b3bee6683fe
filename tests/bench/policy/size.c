/* size.c - what the core remembers of each object, and how long it takes to learn all of them. */
#include "policy/sections.h"

#include <stddef.h>

#include "policy/cluster.h"

static size_t core_bytes(struct cluster *cluster, size_t before)
{
    size_t own = cluster_own_bytes(cluster);
    return heap_used_bytes() - own - before;
}

static size_t bytes_of_nodes(uint32_t nodes, uint32_t devices_per_node)
{
    struct cluster_options options = {.nodes = nodes, .devices_per_node = devices_per_node};
    size_t before = heap_used_bytes();
    struct cluster *cluster = cluster_new(&options);
    size_t bytes = core_bytes(cluster, before);
    cluster_free(cluster);
    return bytes;
}

/* All devices are in use: a pod has a claim of its own for `devices` of its node's. */
static size_t bytes_of_pods(uint32_t nodes, uint32_t pods_per_gang, uint32_t devices)
{
    struct cluster_options options = {
        .nodes = nodes, .devices_per_node = 8, .queues = 100, .quota = nodes * 8};
    size_t before = heap_used_bytes();
    struct cluster *cluster = cluster_new(&options);
    size_t empty = core_bytes(cluster, before);
    cluster_fill(cluster, pods_per_gang, devices);
    cluster_sync(cluster);
    size_t bytes = core_bytes(cluster, before) - empty;
    cluster_free(cluster);
    return bytes;
}

void measure_size(void)
{
    table_heading("memory, by object");
    const uint32_t nodes = 5000;
    size_t bare = bytes_of_nodes(nodes, 0);
    size_t full = bytes_of_nodes(nodes, 8);
    table_row("a node without devices", "", "%.0f B", (double)bare / nodes);
    table_row("a device, with its part of the slice and pool", "", "%.0f B",
              (double)(full - bare) / nodes / 8);
    size_t large = bytes_of_pods(nodes, 4, 8);
    size_t small = bytes_of_pods(nodes, 4, 1);
    uint32_t more = nodes * 8 - nodes;
    table_row("a pod that runs, its claim of one device, its part of a gang of 4", "", "%.0f B",
              (double)small / (nodes * 8));
    table_row("the same with a claim of 8 devices", "", "%.0f B", (double)large / nodes);
    table_row("of these, for each device in use", "", "%.0f B",
              ((double)large / nodes - (double)small / (nodes * 8)) * nodes / more);
}

void measure_rebuild(void)
{
    table_heading("all learned from a cold list: 10,000 nodes x 8 devices, 50,000 Jobs");
    struct cluster_options options = {
        .nodes = 10000, .devices_per_node = 8, .cohorts = 10, .queues = 1000, .quota = 40};
    struct cluster *cluster = cluster_new(&options);
    cluster_fill(cluster, 4, 8);
    for (uint32_t i = 0; i < 50000; i++) {
        cluster_add_job(cluster, 1 + i % 4, 1 + i % 8, 0);
    }
    double step_us = 0;
    for (int i = 0; i < TIMED_DECODE; i++) {
        step_us += (double)cluster_series(cluster, (enum timed)i)->total_ns / 1e3;
    }
    struct series *decoded = cluster_series(cluster, TIMED_DECODE);
    table_row("objects are decoded", "", "%.0f ms (%u)", (double)decoded->total_ns / 1e6,
              decoded->count);
    table_row("and taken into account", "", "%.0f ms", step_us / 1e3);
    cluster_clear_series(cluster);
    cluster_sync(cluster);
    table_row("the first pass", "", "%.0f ms",
              (double)cluster_series(cluster, TIMED_OTHER)->max_ns / 1e6);
    cluster_free(cluster);
}
