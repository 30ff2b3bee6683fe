/* explain_evidence.c - who and what stands in a gang's way, and its past, from its explanation. */
#include "explain_page.h"

#define LINE_MAX_BYTES 4096

static bool is_set_time(struct opt_time time)
{
    return time.is_set && time.ms > 0;
}

static void print_in_the_way(struct page *page, const struct explanation *explanation)
{
    for (uint32_t i = 0; i < explanation->in_the_way.count; i++) {
        const struct explanation_blocker *blocker = &explanation->in_the_way.items[i];
        struct text text;
        text_init(&text, page->arena, LINE_MAX_BYTES);
        if (str_is_empty(blocker->name)) {
            text_addf(&text, "a gang of queue " STR_FMT, STR_ARG(blocker->queue));
        } else {
            text_add(&text, blocker->name);
        }
        text_addf(&text, ": " STR_FMT, STR_ARG(blocker->size));
        if (is_set_time(blocker->since)) {
            text_addf(&text, ", since " STR_FMT, STR_ARG(page_time(page, blocker->since.ms)));
        }
        if (is_set_time(blocker->until)) {
            text_addf(&text, ", ends by " STR_FMT, STR_ARG(page_time(page, blocker->until.ms)));
        }
        page_line(page, "in the way", text_str(&text));
    }
}

static void print_ahead(struct page *page, const struct admission *admission,
                        const struct explanation *explanation)
{
    const struct explanation_ahead *ahead = explanation->ahead;
    struct str queue = admission->spec.queue;
    if (ahead == NULL) {
        if (!str_is_empty(admission->status.pos)) {
            page_line(page, "ahead",
                      arena_format(page->arena, "many (place " STR_FMT " in queue " STR_FMT ")",
                                   STR_ARG(admission->status.pos), STR_ARG(queue)));
        }
        return;
    }
    if (ahead->gangs.value == 0) {
        page_line(page, "ahead",
                  arena_format(page->arena, "nobody (first in queue " STR_FMT ")", STR_ARG(queue)));
        return;
    }
    struct text text;
    text_init(&text, page->arena, LINE_MAX_BYTES);
    text_addf(&text, "%lld gang%s, ", (long long)ahead->gangs.value,
              ahead->gangs.value == 1 ? "" : "s");
    if (ahead->devices.value > 0) {
        text_addf(&text, "%lld device%s, ", (long long)ahead->devices.value,
                  ahead->devices.value == 1 ? "" : "s");
    }
    text_addf(&text, "%lld pod%s (place " STR_FMT " in queue " STR_FMT ")",
              (long long)ahead->pods.value, ahead->pods.value == 1 ? "" : "s",
              STR_ARG(admission->status.pos), STR_ARG(queue));
    page_line(page, "ahead", text_str(&text));
}

/* "cpu on default, asks 4: research 4/6, lab 4/8 (the limit)": one line per account, from the queue
 * up. */
static void print_quota(struct page *page, const struct explanation *explanation)
{
    const struct explanation_quota_list *list = &explanation->quota;
    uint32_t i = 0;
    while (i < list->count) {
        const struct explanation_quota *first = &list->items[i];
        struct text text;
        text_init(&text, page->arena, LINE_MAX_BYTES);
        text_addf(&text, STR_FMT " on " STR_FMT ", asks " STR_FMT ":", STR_ARG(first->resource),
                  STR_ARG(first->flavor), STR_ARG(first->asked));
        bool is_limit = false;
        for (bool is_first = true;
             i < list->count && (is_first || str_eq_c(list->items[i].kind, "Cohort"));
             i++, is_first = false) {
            const struct explanation_quota *quota = &list->items[i];
            is_limit = is_limit || quota->limiting.value;
            text_addf(&text, "%s " STR_FMT " " STR_FMT "/" STR_FMT "%s", is_first ? "" : ",",
                      STR_ARG(quota->name), STR_ARG(quota->used), STR_ARG(quota->limit),
                      quota->limiting.value ? " (the limit)" : "");
        }
        text_add(&text, is_limit ? STR("") : STR("; not the limit"));
        page_line(page, "quota", text_str(&text));
    }
}

static void print_exclusions(struct page *page, const char *label, int64_t total,
                             const struct explanation_exclusion_list *list, struct str tail)
{
    struct text text;
    text_init(&text, page->arena, LINE_MAX_BYTES);
    text_addf(&text, "%lld" STR_FMT, (long long)total, STR_ARG(tail));
    for (uint32_t i = 0; i < list->count; i++) {
        const struct explanation_exclusion *excluded = &list->items[i];
        text_addf(&text, "%s %lld " STR_FMT, i == 0 ? ":" : ",", (long long)excluded->count.value,
                  STR_ARG(str_is_empty(excluded->message) ? excluded->reason : excluded->message));
    }
    page_line(page, label, text_str(&text));
}

/* "for 2 pods each on 3 nodes, for 1 pod on 1 node, for none on 4 nodes" */
static void print_places(struct page *page, const struct explanation_places_list *list)
{
    struct text text;
    text_init(&text, page->arena, LINE_MAX_BYTES);
    for (uint32_t i = 0; i < list->count; i++) {
        long long pods = (long long)list->items[i].pods.value;
        long long nodes = (long long)list->items[i].nodes.value;
        text_add(&text, i == 0 ? STR("for ") : STR(", for "));
        if (pods == 0) {
            text_add(&text, STR("none"));
        } else {
            text_addf(&text, "%lld pod%s%s", pods, pods == 1 ? "" : "s", nodes > 1 ? " each" : "");
        }
        text_addf(&text, " on %lld node%s", nodes, nodes == 1 ? "" : "s");
    }
    if (list->count > 0) {
        page_line(page, "room", text_str(&text));
    }
}

static void print_nodes(struct page *page, const struct explanation *explanation)
{
    if (explanation->nodes != NULL) {
        print_exclusions(page, "nodes", explanation->nodes->total.value,
                         &explanation->nodes->excluded, STR(""));
        print_places(page, &explanation->nodes->places);
    }
    if (explanation->topology != NULL) {
        print_exclusions(
            page, "domains", explanation->topology->total.value, &explanation->topology->excluded,
            arena_format(page->arena, " of " STR_FMT, STR_ARG(explanation->topology->level)));
    }
}

/* The one flavor's sentence is the Job's own already. */
static void print_flavors(struct page *page, const struct admission *admission,
                          const struct explanation *explanation)
{
    const struct explanation_flavor_list *list = &explanation->flavors;
    bool is_told = list->count == 1 && str_eq(list->items[0].reason, admission->status.reason);
    for (uint32_t i = 0; i < list->count && !is_told; i++) {
        page_line(page, "flavors",
                  arena_format(page->arena, STR_FMT ": " STR_FMT ": " STR_FMT,
                               STR_ARG(list->items[i].name), STR_ARG(list->items[i].reason),
                               STR_ARG(list->items[i].message)));
    }
}

static void print_other_reasons(struct page *page, const struct explanation *explanation)
{
    for (uint32_t i = 0; i < explanation->other_reasons.count; i++) {
        const struct explanation_reason *other = &explanation->other_reasons.items[i];
        page_line(page, "then",
                  arena_format(page->arena, STR_FMT ": " STR_FMT, STR_ARG(other->reason),
                               STR_ARG(other->message)));
    }
}

void page_evidence(struct page *page, const struct admission *admission,
                   const struct explanation *explanation)
{
    print_in_the_way(page, explanation);
    print_ahead(page, admission, explanation);
    print_quota(page, explanation);
    print_nodes(page, explanation);
    print_flavors(page, admission, explanation);
    print_other_reasons(page, explanation);
    if (is_set_time(explanation->as_of)) {
        page_line(page, "numbers",
                  arena_format(page->arena, "as of " STR_FMT,
                               STR_ARG(page_time(page, explanation->as_of.ms))));
    }
}

static void print_eviction(struct page *page, const struct explanation *explanation)
{
    const struct explanation_eviction *eviction = explanation->eviction;
    if (eviction == NULL) {
        return;
    }
    struct text text;
    text_init(&text, page->arena, LINE_MAX_BYTES);
    text_addf(&text, STR_FMT " " STR_FMT, STR_ARG(page_time(page, eviction->at.ms)),
              STR_ARG(eviction->rule));
    if (!str_is_empty(eviction->by)) {
        text_addf(&text, " for " STR_FMT, STR_ARG(eviction->by));
    } else if (!str_is_empty(eviction->queue)) {
        text_add(&text, STR(" for a gang"));
    }
    if (!str_is_empty(eviction->queue)) {
        text_addf(&text, " of queue " STR_FMT, STR_ARG(eviction->queue));
    }
    if (!str_is_empty(eviction->lost)) {
        text_addf(&text, "; lost " STR_FMT, STR_ARG(eviction->lost));
    }
    page_line(page, "stopped", text_str(&text));
}

void page_past(struct page *page, const struct admission *admission,
               const struct explanation *explanation)
{
    print_eviction(page, explanation);
    struct text text;
    text_init(&text, page->arena, LINE_MAX_BYTES);
    for (uint32_t i = 0; i < explanation->history.count; i++) {
        const struct explanation_past *past = &explanation->history.items[i];
        text_addf(&text, "%s" STR_FMT " " STR_FMT, i == 0 ? "" : ", ",
                  STR_ARG(page_time(page, past->since.ms)), STR_ARG(past->reason));
        if (is_set_time(past->until)) {
            text_addf(&text, " " STR_FMT,
                      STR_ARG(page_span(page, past->until.ms - past->since.ms)));
        }
    }
    const struct admission_status *status = &admission->status;
    if (is_set_time(status->since)) {
        text_addf(&text, "%s" STR_FMT " " STR_FMT " " STR_FMT, text.len == 0 ? "" : ", ",
                  STR_ARG(page_time(page, status->since.ms)),
                  STR_ARG(str_is_empty(status->reason) ? status->state : status->reason),
                  STR_ARG(page_span(page, page->now_ms - status->since.ms)));
    }
    if (text.len > 0) {
        page_line(page, "so far", text_str(&text));
    }
}
