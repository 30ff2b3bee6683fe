/* A gang of identical pods starts if and only if some domain of its level holds it (required), in
 * the domain that the rule names; else its reason is the right one. Against counting by hand. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/property.h"
#include "support/scenario.h"
#include "support/scenario_internal.h"

#define NODES_MAX 9
#define LEVELS    3

enum { OP_NODE, OP_FOREIGN, OP_GANG, OP_RELABEL, OP_COUNT };
static const char *const op_names[] = {"node", "foreign pod", "gang", "relabel"};
static const char *const levels[LEVELS] = {"zone", "rack", "kubernetes.io/hostname"};

struct amounts {
    int cpu;
    int gpu;
};

struct host {
    char name[8];
    char values[LEVELS][8]; /* of the levels' labels; all empty but the last: it has none */
    struct amounts all;
    struct amounts free;
};

struct cluster {
    struct scenario *s;
    struct host hosts[NODES_MAX];
    int count;
    int pods;  /* made so far, for their names */
    int gangs; /* the same */
};

struct ask {
    char name[12];
    int pods;
    int min_count;
    struct amounts each;
    int level;
    bool is_required;
};

static int places(const struct amounts *there, const struct ask *ask)
{
    int by_cpu = there->cpu / ask->each.cpu;
    int by_gpu = ask->each.gpu == 0 ? by_cpu : there->gpu / ask->each.gpu;
    return by_cpu < by_gpu ? by_cpu : by_gpu;
}

static bool is_in(const struct host *host, const struct host *of, int level)
{
    for (int l = 0; l <= level; l++) {
        if (host->values[l][0] == '\0' || strcmp(host->values[l], of->values[l]) != 0) {
            return false;
        }
    }
    return true;
}

/* The domain that the host is in, by what it could take. */
struct domain {
    const struct host *host; /* NULL: none */
    int free;
    int empty;
};

static struct domain domain_of(const struct cluster *c, const struct host *host, int level,
                               const struct ask *ask)
{
    struct domain domain = {.host = host};
    for (int i = 0; i < c->count; i++) {
        if (is_in(&c->hosts[i], host, level)) {
            domain.free += places(&c->hosts[i].free, ask);
            domain.empty += places(&c->hosts[i].all, ask);
        }
    }
    return domain;
}

static int compare_path(const struct host *a, const struct host *b, int level)
{
    for (int l = 0; l <= level; l++) {
        int order = strcmp(a->values[l], b->values[l]);
        if (order != 0) {
            return order;
        }
    }
    return 0;
}

static bool is_better(const struct domain *a, const struct domain *b, int level,
                      const struct ask *ask)
{
    int a_missing = a->free < ask->pods ? ask->pods - a->free : 0;
    int b_missing = b->free < ask->pods ? ask->pods - b->free : 0;
    if (a_missing != b_missing) {
        return a_missing < b_missing;
    }
    if (a->empty != b->empty) {
        return a->empty < b->empty;
    }
    if (a->free != b->free) {
        return a->free < b->free;
    }
    return compare_path(a->host, b->host, level) < 0;
}

static struct domain best_of(const struct cluster *c, int level, const struct ask *ask, int least)
{
    struct domain best = {.host = NULL};
    for (int i = 0; i < c->count; i++) {
        if (c->hosts[i].values[0][0] == '\0') {
            continue;
        }
        struct domain domain = domain_of(c, &c->hosts[i], level, ask);
        if (domain.free >= least && (best.host == NULL || is_better(&domain, &best, level, ask))) {
            best = domain;
        }
    }
    return best;
}

static int places_in_all(const struct cluster *c, const struct ask *ask)
{
    int free = 0;
    for (int i = 0; i < c->count; i++) {
        free += places(&c->hosts[i].free, ask);
    }
    return free;
}

static bool could_ever(const struct cluster *c, const struct ask *ask)
{
    for (int i = 0; i < c->count; i++) {
        if (c->hosts[i].values[0][0] != '\0' &&
            domain_of(c, &c->hosts[i], ask->level, ask).empty >= ask->min_count) {
            return true;
        }
    }
    return false;
}

/* What the rule says: the level of the domain (-1: none in particular) and a host in it; false: it
 * waits. */
static bool is_to_start(const struct cluster *c, const struct ask *ask, int *ret_level,
                        struct domain *ret_domain)
{
    for (*ret_level = ask->level; *ret_level >= 0; --*ret_level) {
        *ret_domain = best_of(c, *ret_level, ask, ask->pods);
        if (ret_domain->host != NULL || ask->is_required) {
            break;
        }
    }
    if (ask->is_required && ret_domain->host == NULL) {
        *ret_domain = best_of(c, ask->level, ask, ask->min_count);
    }
    bool is_anywhere = *ret_level < 0 && places_in_all(c, ask) >= ask->min_count;
    return ret_domain->host != NULL || is_anywhere;
}

/* -- the cluster ------------------------------------------------------------------------------ */

static void tell_host(struct cluster *c, const struct host *host)
{
    char text[200];
    int len =
        snprintf(text, sizeof(text), "cpu=%d example.com/gpu=%d", host->all.cpu, host->all.gpu);
    for (int l = 0; l < LEVELS - 1 && host->values[0][0] != '\0'; l++) {
        len += snprintf(text + len, sizeof(text) - (size_t)len, " label=%s:%s", levels[l],
                        host->values[l]);
    }
    given_node(c->s, host->name, text);
}

static void set_labels(struct host *host, uint8_t a)
{
    memset(host->values, 0, sizeof(host->values));
    if (a % 8 != 7) {
        snprintf(host->values[0], sizeof(host->values[0]), "z%d", a % 2);
        snprintf(host->values[1], sizeof(host->values[1]), "r%d", a / 8 % 3);
        snprintf(host->values[2], sizeof(host->values[2]), "%.6s", host->name);
    }
}

static void add_node(struct cluster *c, const struct op *op)
{
    if (c->count == NODES_MAX) {
        return;
    }
    struct host *host = &c->hosts[c->count];
    *host = (struct host){.all = {op->b % 9, op->b / 9 % 6}};
    snprintf(host->name, sizeof(host->name), "n%d", c->count);
    set_labels(host, op->a);
    host->free = host->all;
    c->count++;
    tell_host(c, host);
}

static void relabel(struct cluster *c, const struct op *op)
{
    if (c->count > 0) {
        struct host *host = &c->hosts[op->a % c->count];
        set_labels(host, op->b);
        tell_host(c, host);
    }
}

static void add_foreign(struct cluster *c, const struct op *op)
{
    if (c->count == 0) {
        return;
    }
    struct host *host = &c->hosts[op->a % c->count];
    int cpu = 1 + op->b % 3;
    if (host->free.cpu < cpu) {
        return;
    }
    host->free.cpu -= cpu;
    char name[16];
    char options[16];
    snprintf(name, sizeof(name), "foreign%d", c->pods++);
    snprintf(options, sizeof(options), "cpu=%d", cpu);
    given_pod(c->s, name, host->name, options);
}

/* -- one gang --------------------------------------------------------------------------------- */

static struct ask ask_of(struct cluster *c, const struct op *op)
{
    struct ask ask = {.pods = 1 + op->a % 7,
                      .each = {1 + op->b % 2, op->b / 2 % 2},
                      .level = op->b / 4 % 3,
                      .is_required = op->b / 12 % 3 != 0};
    ask.min_count = op->b > 180 ? 1 + op->a / 7 % ask.pods : ask.pods;
    snprintf(ask.name, sizeof(ask.name), "g%d", c->gangs++);
    return ask;
}

static void tell_gang(struct cluster *c, const struct ask *ask)
{
    char text[200];
    int len = snprintf(text, sizeof(text), "pods=%d cpu=%d %s=%s", ask->pods, ask->each.cpu,
                       ask->is_required ? "required" : "preferred", levels[ask->level]);
    if (ask->each.gpu > 0) {
        len +=
            snprintf(text + len, sizeof(text) - (size_t)len, " example.com/gpu=%d", ask->each.gpu);
    }
    if (ask->min_count < ask->pods) {
        snprintf(text + len, sizeof(text) - (size_t)len, " partial=true min=%d", ask->min_count);
    }
    given_job(c->s, ask->name, "q", text);
}

static void check_selector(struct cluster *c, const struct ask *ask, int level,
                           const struct domain *domain)
{
    const struct string_map *selector =
        &scenario_job(c->s, ask->name)->spec.pod_template.spec.node_selector;
    for (int l = 0; l < LEVELS; l++) {
        struct str value = string_map_get(selector, levels[l]);
        if (l > level) {
            assert_false(str_is_set(value));
        } else {
            check_str(value, domain->host->values[l]);
        }
    }
}

/* Its pods go to the first nodes of the domain that have room. */
static void start(struct cluster *c, const struct ask *ask, int level, const struct domain *domain)
{
    int64_t left = scenario_job(c->s, ask->name)->spec.parallelism.value;
    int most = level >= 0 ? domain->free : places_in_all(c, ask);
    check_i64(left, most < ask->pods ? most : ask->pods);
    char nodes[300] = "";
    for (int i = 0; i < c->count; i++) {
        struct host *host = &c->hosts[i];
        while (left > 0 && (level < 0 || is_in(host, domain->host, level)) &&
               places(&host->free, ask) > 0) {
            host->free.cpu -= ask->each.cpu;
            host->free.gpu -= ask->each.gpu;
            strcat(strcat(nodes, host->name), " ");
            left--;
        }
    }
    check_i64(left, 0);
    gang_starts(c->s, ask->name, nodes);
}

static void check_reason(struct cluster *c, const struct ask *ask)
{
    const struct admission *admission = scenario_object(c->s, KIND_ADMISSION, ask->name);
    struct str reason = admission->status.reason;
    if (!ask->is_required) {
        return;
    }
    if (!could_ever(c, ask)) {
        check_str(reason, "NeverFits");
    } else if (places_in_all(c, ask) >= ask->min_count) {
        check_str(reason, "TopologyUnsatisfied");
    } else {
        assert_false(str_eq_c(reason, "TopologyUnsatisfied") || str_eq_c(reason, "NeverFits"));
    }
}

static void add_gang(struct cluster *c, const struct op *op)
{
    if (c->count == 0) {
        return;
    }
    struct ask ask = ask_of(c, op);
    struct domain domain = {.host = NULL};
    int level;
    bool starts = is_to_start(c, &ask, &level, &domain);
    tell_gang(c, &ask);
    bool is_admitted = !scenario_job(c->s, ask.name)->spec.suspend.value;
    assert_int_equal(is_admitted, starts);
    if (is_admitted) {
        check_selector(c, &ask, level, &domain);
        start(c, &ask, level, &domain);
    } else {
        check_reason(c, &ask);
        job_deleted_now(c->s, ask.name);
    }
}

static void starts_iff_a_domain_holds_it(const struct op *ops, uint32_t count, uint64_t seed)
{
    scenarios_are_plain(seed % 2 == 0);
    struct cluster c = {.s = scenario_new()};
    given_flavor(c.s, "default", "level=zone level=rack level=kubernetes.io/hostname");
    given_queue(c.s, "q", "cpu=999 example.com/gpu=999");
    scenario_start(c.s);
    for (uint32_t i = 0; i < count; i++) {
        switch (ops[i].kind) {
        case OP_NODE:
            add_node(&c, &ops[i]);
            break;
        case OP_FOREIGN:
            add_foreign(&c, &ops[i]);
            break;
        case OP_RELABEL:
            relabel(&c, &ops[i]);
            break;
        default:
            add_gang(&c, &ops[i]);
            break;
        }
    }
    scenario_free(c.s);
}

int main(void)
{
    const struct property topology = {.name = "a gang starts if and only if some domain holds it",
                                      .cases = 2000,
                                      .ops = 40,
                                      .kinds = OP_COUNT,
                                      .kind_names = op_names,
                                      .run = starts_iff_a_domain_holds_it};
    return property_check(&topology);
}
