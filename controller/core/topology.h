/* topology.h - domains: the nodes that have the same values of some labels, zone, rack, host.
 *
 * A ResourceFlavor names the labels from the widest level to the narrowest. A domain of a level is
 * known by its whole path, the values of that level and of all above it: rack r1 of zone a is
 * another than rack r1 of zone b. A node that lacks one of the labels of a path is in no domain of
 * that level nor of those below.
 *
 * What is kept: for each list of levels which nodes are in which domain (until a label of one of
 * these keys changes, or there are other nodes), and for each kind of pods how many of them find
 * room on each node and, summed up, in each domain. What has changed on a node since is taken in
 * when it is asked for next, as reach.h does it. Private to the core. */
#pragma once

#include "internal.h"

#define TOPOLOGY_TREES_MAX   8
#define TOPOLOGY_ROOMS_MAX   32
#define TOPOLOGY_DOMAINS_MAX 1024 /* names that nobody uses are let go beyond so many */
#define TOPOLOGY_NONE        UINT32_MAX

struct topology_tree;

/* A path. There is one of each, so that pointers tell whether two are the same. */
struct topology_domain {
    struct str key; /* owned */
    UT_hash_handle hh;
    struct string_map path; /* owned; label and value, the widest level first */
    uint32_t users;         /* gangs */
    bool is_booked;         /* scratch of topology_tidy() */
    uint64_t found_in;      /* serial of the tree that it was last found in */
    struct topology_tree *tree;
    uint32_t index; /* in its level there, TOPOLOGY_NONE: no node is in it */
};

/* Found or made; borrowed until topology_tidy(), longer with a use. */
struct topology_domain *topology_domain_of(struct core *core, const struct string_map *path);
/* Gives back what `*holder` uses, and takes a use of `domain` (NULL: of none). */
void topology_use(struct topology_domain **holder, struct topology_domain *domain);
/* Between steps: paths that nobody uses are forgotten, if they are many. */
void topology_tidy(struct core *core);
void topology_forget(struct core *core); /* other nodes: their domains have to be found anew */
void topology_free(struct core *core);
/* No node can be in both, whatever labels it has. */
bool topology_are_apart(const struct topology_domain *a, const struct topology_domain *b);

/* A level of a tree, with its domains in the order of their paths. */
struct topology_level {
    uint32_t *first; /* owned; of each domain its first place in the tree's order of nodes */
    uint32_t *end;   /* owned; and the place behind its last */
    uint32_t *of;    /* owned; by the node's index: its domain, or TOPOLOGY_NONE */
    uint32_t count;
};

struct topology_tree {
    struct str key; /* owned */
    UT_hash_handle hh;
    uint64_t serial; /* no two trees have the same */
    uint64_t used_at;
    uint32_t holders; /* while there are some, it isn't let go for another's sake */
    struct str *keys; /* owned texts in an owned array; the labels */
    struct topology_level *levels;
    uint32_t level_count;
    uint32_t *order; /* owned; node indexes, by path and then by name */
    uint32_t node_count;
};

/* Up to date; borrowed until nodes change or other domains are asked for, TOPOLOGY_TREES_MAX trees.
 */
struct topology_tree *topology_tree_of(struct core *core, const struct str_list *levels);
/* The same, and it and its rooms stay while other domains are asked for, until it is given back. */
struct topology_tree *topology_hold(struct core *core, const struct str_list *levels);
void topology_give_back(struct topology_tree *tree);
/* The labels and values of one domain; in the scratch arena. */
struct string_map topology_path(struct core *core, const struct topology_tree *tree, uint32_t level,
                                uint32_t index);

/* Whether it is a domain of one of the tree's levels. */
bool topology_is_of(const struct topology_tree *tree, const struct topology_domain *domain);

struct node_indexes {
    const uint32_t *items; /* in core.node_index */
    uint32_t count;
};

/* The nodes of the domain; borrowed until nodes change or other domains are asked for. */
struct node_indexes topology_nodes(struct core *core, const struct topology_domain *domain);

/* topology_verdict.c: the sentence. */
struct verdict topology_verdict(struct core *core, const struct topology_shortage *shortage);

/* -- topology_room.c ---------------------------------------------------------------------------
 */

/* How many such pods there is room for, by node and by domain; beside what is planned. Never less
 * than would find a place, and of pods alike that ask for one kind of device exactly so many. */
struct topology_room {
    struct str key; /* owned */
    UT_hash_handle hh;
    uint64_t used_at;
    uint64_t synced_at; /* all changes up to this one are in */
    uint64_t tree_serial;
    uint32_t level_count;
    bool is_kept;   /* in core.topology_rooms; else in the scratch arena */
    bool *is_out;   /* by node: such pods may not go there */
    int64_t *free;  /* by node; places now */
    int64_t *empty; /* by node; places if nothing were there */
    struct {
        int64_t *free; /* by domain */
        int64_t *empty;
    } * sums; /* by level */
};

/* Up to date; borrowed until nodes change or TOPOLOGY_ROOMS_MAX other rooms are asked for. */
struct topology_room *topology_room_of(struct core *core, const struct topology_tree *tree,
                                       const struct pod_demand *demand);
void topology_rooms_forget(struct core *core);
void topology_rooms_forget_of(struct core *core, const struct topology_tree *tree);
