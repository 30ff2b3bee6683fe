/* fit_roam.c - devices that no node owns: how many pods find theirs wherever kube-scheduler puts
 * them.
 *
 * Where all nodes see the same devices and have none of their own, one place is as good as another.
 * Elsewhere a pod may take a device that only another node's pods could have used. So what counts
 * is the fewest pods that there can be when no further one finds a place. Then some nodes F are
 * full, and each of the others, U, sees too few free devices for a pod; with c devices a pod,
 *     c * pods >= devices seen from U that are in use, and
 *     c * pods >= c * (places of F) + devices seen from U alone that are in use.
 * Of these at most c - 1 per node, and per kind of nodes with one view, are left free. The least
 * that both allow over all divisions into F and U is a count that holds whatever the scheduler
 * does. Nodes that run out of devices before they are full are always in U; of the others the
 * divisions are tried kind by kind, with both bounds weighed against each other so that each node
 * can be put where it costs least. */
#include "ask.h"
#include "internal.h"
#include "roam.h"

#include "tallyman/base/limits.h"

/* Devices that the same nodes see. */
struct group {
    const struct device_state *first;
    uint64_t *seen_from; /* bit per node in question */
    int64_t free;
};

/* A node in question. */
struct site {
    struct node_state *node;
    uint64_t view;   /* bit per group that it sees */
    int64_t slots;   /* pods by cpu, memory and the like */
    int64_t own;     /* free devices of its own */
    int64_t visible; /* free devices that it sees */
    uint32_t kind;   /* index in its cluster's kinds */
};

/* Everything about one demand. */
struct scene {
    struct core *core;
    const struct pod_demand *demand;
    struct site *sites;
    uint32_t site_count;
    struct group *groups;
    uint32_t group_count;
    bool has_own;   /* some node has such devices of its own, free or not */
    bool is_opaque; /* it can't be told who sees what, or what a device is good for */
};

/* -- who sees what ----------------------------------------------------------------------------- */

static void list_sites(struct scene *scene)
{
    struct core *core = scene->core;
    uint32_t capacity = 0;
    struct node_state *node;
    RB_FOREACH (node, node_tree, &core->node_order) {
        if (node_exclusion(core, scene->demand, node) != EXCLUDED_COUNT) {
            continue;
        }
        scene->sites = arena_grow(&core->scratch, scene->sites, scene->site_count, &capacity,
                                  sizeof(struct site));
        scene->sites[scene->site_count++] = (struct site){.node = node};
    }
}

static bool is_asked_for(const struct scene *scene, const struct device_state *device)
{
    const struct pod_set *set = scene->demand->set;
    for (uint32_t i = 0; i < set->device_count; i++) {
        if (profile_match(scene->core, set->devices[i].profile, device) == MATCH_YES) {
            return true;
        }
    }
    return false;
}

/* Devices of one slice are seen from the same nodes, unless each says for itself. */
static bool is_of_group(const struct group *group, const struct device_state *device)
{
    const struct opt_bool *each = &device->slice->spec.per_device_node_selection;
    return group->first->slice == device->slice && !opt_is_true(*each);
}

static bool sees_equally(const struct group *a, const struct group *b, size_t words)
{
    for (size_t i = 0; i < words; i++) {
        if (a->seen_from[i] != b->seen_from[i]) {
            return false;
        }
    }
    return true;
}

static struct group group_read(const struct scene *scene, const struct device_state *device)
{
    struct group group = {.first = device};
    group.seen_from =
        ARENA_ARRAY(&scene->core->scratch, uint64_t, scene->site_count / 64 + (size_t)1);
    for (uint32_t i = 0; i < scene->site_count; i++) {
        bool is_seen = device_is_visible(device, scene->sites[i].node);
        group.seen_from[i / 64] |= (uint64_t)is_seen << (i % 64);
    }
    return group;
}

/* The group that the device is of, or a new one; NULL: there are too many. */
static struct group *group_of(struct scene *scene, const struct device_state *device)
{
    for (uint32_t g = 0; g < scene->group_count; g++) {
        if (is_of_group(&scene->groups[g], device)) {
            return &scene->groups[g];
        }
    }
    struct group group = group_read(scene, device);
    for (uint32_t g = 0; g < scene->group_count; g++) {
        if (sees_equally(&scene->groups[g], &group, scene->site_count / 64 + (size_t)1)) {
            return &scene->groups[g];
        }
    }
    if (scene->group_count == ROAMING_GROUPS_MAX) {
        scene->is_opaque = true;
        return NULL;
    }
    scene->groups[scene->group_count] = group;
    return &scene->groups[scene->group_count++];
}

static void note_device(struct scene *scene, const struct device_state *device)
{
    struct core *core = scene->core;
    if (!is_asked_for(scene, device)) {
        return;
    }
    scene->is_opaque =
        scene->is_opaque || device->counter_count > 0 || device->is_shareable; /* not so many */
    if (device->node != NULL) {
        scene->has_own =
            scene->has_own || node_exclusion(core, scene->demand, device->node) == EXCLUDED_COUNT;
        return;
    }
    struct group *group = group_of(scene, device);
    if (group != NULL) {
        group->free += device_is_free(core, device) ? 1 : 0;
    }
}

static struct scene scene_read(struct core *core, const struct pod_demand *demand)
{
    struct scene scene = {.core = core, .demand = demand};
    scene.groups = ARENA_ARRAY(&core->scratch, struct group, ROAMING_GROUPS_MAX);
    list_sites(&scene);
    for (uint32_t slot = 0; scene.site_count > 1 && slot < core->device_slots; slot++) {
        if (core->devices[slot] != NULL) {
            note_device(&scene, core->devices[slot]);
        }
    }
    return scene;
}

/* One place is as good as another. */
static bool is_even(const struct scene *scene)
{
    if (scene->site_count <= 1 || (scene->group_count == 0 && !scene->is_opaque)) {
        return true;
    }
    bool is_seen_by_all = scene->group_count == 1;
    for (uint32_t i = 0; is_seen_by_all && i < scene->site_count; i++) {
        is_seen_by_all = (scene->groups[0].seen_from[i / 64] >> (i % 64) & 1) != 0;
    }
    return (is_seen_by_all || scene->group_count == 0) && !scene->has_own;
}

static void read_site(const struct scene *scene, struct site *site, int64_t want)
{
    struct core *core = scene->core;
    site->slots = node_plain_slots(core, scene->demand, site->node, want);
    struct device_state *device = site->node->devices;
    for (; device != NULL; device = device->next_on_node) {
        site->own += is_asked_for(scene, device) && device_is_free(core, device) ? 1 : 0;
    }
    uint32_t index = (uint32_t)(site - scene->sites);
    site->visible = site->own;
    for (uint32_t g = 0; g < scene->group_count; g++) {
        if ((scene->groups[g].seen_from[index / 64] >> (index % 64) & 1) != 0) {
            site->view |= UINT64_C(1) << g;
            site->visible += scene->groups[g].free;
        }
    }
}

/* -- the fewest pods --------------------------------------------------------------------------- */

/* Where the tight nodes of a kind are; each where it costs least if both are allowed. */
enum place { IN_U = 0, IN_F, IN_BOTH, PLACE_COUNT };

/* Nodes with one view. */
struct kind {
    uint64_t view;
    bool has_starved;           /* some run out of devices before they are full */
    uint32_t tight;             /* the number of the others */
    int64_t costs[PLACE_COUNT]; /* of all its nodes, by the present weight */
};

/* The nodes that share devices, directly or through others. */
struct cluster {
    const struct scene *scene;
    uint64_t groups;
    struct kind kinds[ROAMING_GROUPS_MAX];
    uint32_t kind_count;
    int64_t per_pod;
};

#define WEIGHTS 4 /* in which the two bounds are weighed */

static bool is_tight(const struct cluster *cluster, const struct site *site)
{
    return site->slots < site->visible / cluster->per_pod;
}

static int64_t site_cost(const struct cluster *cluster, const struct site *site, int64_t weight,
                         enum place place)
{
    int64_t left = cluster->per_pod - 1;
    int64_t in_u = sat_mul(WEIGHTS, site->own > left ? site->own - left : 0);
    int64_t in_f = sat_mul(WEIGHTS - weight, sat_mul(cluster->per_pod, site->slots));
    if (!is_tight(cluster, site) || place == IN_U) {
        return in_u;
    }
    return place == IN_F || in_f < in_u ? in_f : in_u;
}

static int64_t free_of(const struct scene *scene, uint64_t groups)
{
    int64_t free = 0;
    for (uint32_t g = 0; g < scene->group_count; g++) {
        free = sat_add(free, (groups >> g & 1) != 0 ? scene->groups[g].free : 0);
    }
    return free;
}

static int64_t beyond(int64_t devices, int64_t left_free)
{
    return devices > left_free ? devices - left_free : 0;
}

/* WEIGHTS times the devices that are in use at least, with the kinds' tight nodes so placed. */
static int64_t weigh(const struct cluster *cluster, const enum place *places, int64_t weight)
{
    const struct scene *scene = cluster->scene;
    int64_t cost = 0;
    uint64_t from_u = 0;
    uint64_t from_f = 0;
    int64_t left = 0;
    for (uint32_t k = 0; k < cluster->kind_count; k++) {
        const struct kind *kind = &cluster->kinds[k];
        bool is_in_u = kind->has_starved || places[k] != IN_F;
        from_u |= is_in_u ? kind->view : 0;
        from_f |= kind->tight > 0 && places[k] != IN_U ? kind->view : 0;
        left = sat_add(left, is_in_u ? cluster->per_pod - 1 : 0);
        cost = sat_add(cost, kind->costs[places[k]]);
    }
    int64_t seen = beyond(free_of(scene, from_u), left);
    int64_t seen_alone = beyond(free_of(scene, from_u & ~from_f), left);
    return sat_add(cost, sat_add(sat_mul(weight, seen), sat_mul(WEIGHTS - weight, seen_alone)));
}

/* The next way to place the tight nodes of all kinds; false: there are no more. */
static bool next_places(const struct cluster *cluster, enum place *places)
{
    for (uint32_t k = 0; k < cluster->kind_count; k++) {
        if (cluster->kinds[k].tight > 0) {
            if (places[k] != IN_BOTH) {
                places[k]++;
                return true;
            }
            places[k] = IN_U;
        }
    }
    return false;
}

static bool is_of_cluster(const struct cluster *cluster, const struct site *site)
{
    return (site->view & cluster->groups) != 0 && site->slots > 0;
}

static void read_costs(struct cluster *cluster, int64_t weight)
{
    for (uint32_t k = 0; k < cluster->kind_count; k++) {
        cluster->kinds[k].costs[IN_U] = cluster->kinds[k].costs[IN_F] = 0;
        cluster->kinds[k].costs[IN_BOTH] = 0;
    }
    for (uint32_t i = 0; i < cluster->scene->site_count; i++) {
        const struct site *site = &cluster->scene->sites[i];
        for (int p = 0; p < PLACE_COUNT && is_of_cluster(cluster, site); p++) {
            int64_t *cost = &cluster->kinds[site->kind].costs[p];
            *cost = sat_add(*cost, site_cost(cluster, site, weight, (enum place)p));
        }
    }
}

static int64_t least_weighed(struct cluster *cluster, int64_t weight)
{
    read_costs(cluster, weight);
    enum place places[ROAMING_GROUPS_MAX] = {IN_U};
    int64_t least = INT64_MAX;
    do {
        int64_t cost = weigh(cluster, places, weight);
        least = cost < least ? cost : least;
    } while (next_places(cluster, places));
    return least;
}

static bool add_kind(struct cluster *cluster, struct site *site)
{
    uint32_t k = 0;
    while (k < cluster->kind_count && cluster->kinds[k].view != site->view) {
        k++;
    }
    if (k == ROAMING_GROUPS_MAX) {
        return false;
    }
    if (k == cluster->kind_count) {
        cluster->kinds[cluster->kind_count++] = (struct kind){.view = site->view};
    }
    site->kind = k;
    bool tight = is_tight(cluster, site);
    cluster->kinds[k].tight += tight ? 1 : 0;
    cluster->kinds[k].has_starved = cluster->kinds[k].has_starved || !tight;
    return true;
}

/* Pods for which its own devices are enough. */
static int64_t own_slots(const struct cluster *cluster, const struct site *site)
{
    int64_t pods = site->own / cluster->per_pod;
    return pods < site->slots ? pods : site->slots;
}

/* The fewest pods that there can be on these nodes when no further one finds a place. */
static int64_t cluster_pods(struct cluster *cluster)
{
    int64_t own = 0;
    uint32_t choices = 0;
    bool is_told = true;
    for (uint32_t i = 0; i < cluster->scene->site_count; i++) {
        struct site *site = &cluster->scene->sites[i];
        if (is_of_cluster(cluster, site)) {
            own = sat_add(own, own_slots(cluster, site));
            is_told = is_told && add_kind(cluster, site);
        }
    }
    for (uint32_t k = 0; k < cluster->kind_count; k++) {
        choices += cluster->kinds[k].tight > 0 ? 1 : 0;
    }
    if (!is_told || choices > ROAMING_CHOICES_MAX) {
        return own;
    }
    int64_t most = 0;
    for (int64_t weight = 0; weight <= WEIGHTS; weight++) {
        int64_t used = least_weighed(cluster, weight);
        most = used > most ? used : most;
    }
    int64_t pods = (int64_t)(((i128)most + WEIGHTS * cluster->per_pod - 1) /
                             (WEIGHTS * (i128)cluster->per_pod));
    return pods > own ? pods : own;
}

/* The groups that share nodes with that one, directly or through others. */
static uint64_t groups_with(const struct scene *scene, uint32_t group)
{
    uint64_t groups = UINT64_C(1) << group;
    uint64_t before = 0;
    while (groups != before) {
        before = groups;
        for (uint32_t i = 0; i < scene->site_count; i++) {
            const struct site *site = &scene->sites[i];
            groups |= site->slots > 0 && (site->view & groups) != 0 ? site->view : 0;
        }
    }
    return groups;
}

static int64_t count_safe(struct scene *scene, int64_t want)
{
    int64_t per_pod = scene->demand->set->devices[0].count;
    int64_t pods = 0;
    uint64_t done = 0;
    struct cluster apart = {.scene = scene, .per_pod = per_pod};
    for (uint32_t i = 0; i < scene->site_count; i++) {
        struct site *site = &scene->sites[i];
        read_site(scene, site, want);
        pods = sat_add(pods, site->view == 0 ? own_slots(&apart, site) : 0);
    }
    for (uint32_t g = 0; g < scene->group_count; g++) {
        if ((done >> g & 1) == 0) {
            struct cluster cluster = {.scene = scene, .per_pod = per_pod};
            cluster.groups = groups_with(scene, g);
            done |= cluster.groups;
            pods = sat_add(pods, cluster_pods(&cluster));
        }
    }
    return pods < want ? pods : want;
}

/* -- what it means for a plan ------------------------------------------------------------------ */

static bool is_countable(const struct scene *scene)
{
    const struct pod_set *set = scene->demand->set;
    return !scene->is_opaque && set->device_count == 1 && !ask_is_special(set->ask) &&
           !set->has_extended && set->variants == NULL && set->devices[0].count > 0 &&
           !demand_has_new_claims(scene->demand);
}

bool demand_roams_unevenly(struct core *core, const struct pod_demand *demand)
{
    if (core->roaming_devices == 0 || demand->set->device_count == 0) {
        return false;
    }
    struct scene scene = scene_read(core, demand);
    return !is_even(&scene);
}

static void judge_uneven(struct scene *scene, int64_t want, struct roaming *roaming)
{
    const struct core *core = scene->core;
    bool is_first =
        core->device_plan_epoch != core->plan_epoch && !demand_has_new_claims(scene->demand);
    roaming->is_lone = want == 1 && is_first;
    roaming->is_counted = !roaming->is_lone && is_countable(scene);
    if (roaming->is_counted) {
        roaming->pods = count_safe(scene, want);
    }
    /* Whatever the others do then, the first pod finds its devices if there are any. */
    roaming->may_be_one = is_first && (roaming->is_counted ? roaming->pods == 0 : want > 1);
}

struct roaming roaming_judge(struct core *core, const struct pod_demand *demand, int64_t want,
                             bool has_limits)
{
    struct roaming roaming = {.is_even = true, .pods = want};
    if (core->roaming_devices == 0) {
        return roaming;
    }
    if (demand->set->device_count == 0) {
        roaming.sees_one_node = demand_sees_one_node(core, demand);
        return roaming;
    }
    struct scene scene = scene_read(core, demand);
    roaming.sees_one_node = scene.site_count <= 1;
    roaming.is_even = is_even(&scene);
    if (!roaming.is_even && !has_limits && !core->plan_is_contested) {
        judge_uneven(&scene, want, &roaming);
    }
    return roaming;
}
