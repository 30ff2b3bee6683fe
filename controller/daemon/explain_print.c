/* explain_print.c - an explanation for people, line by line in a fixed order: the sentence; what
 * can be done; who is in the way and ahead; quota; nodes; flavors; the other reasons; its pods; how
 * it was stopped; since when, and the reasons before. */
#include "explain.h"

#include <string.h>
#include <time.h>

#include "explain_page.h"
#include "tallyman/base/time_text.h"

#define LABEL_COLUMNS 14

/* -- one line --------------------------------------------------------------------------------- */

void page_line(struct page *page, const char *label, struct str text)
{
    struct str safe = terminal_safe(page->arena, text);
    bool is_more = strcmp(label, page->label) == 0;
    printf("  %s%-10s%s  ", page->dim, is_more ? "" : label, page->plain);
    (void)terminal_wrap(stdout, safe, LABEL_COLUMNS, LABEL_COLUMNS, page->columns);
    printf("\n");
    page->label = label;
}

/* Never wrapped: it is to be copied. */
static void page_command(struct page *page, struct str command)
{
    printf("%*s%s" STR_FMT "%s\n", LABEL_COLUMNS + 2, "", page->bold,
           STR_ARG(terminal_safe(page->arena, command)), page->plain);
}

struct str page_time(struct page *page, int64_t ms)
{
    struct tm then;
    struct tm now;
    time_t then_s = (time_t)(ms / 1000);
    time_t now_s = (time_t)(page->now_ms / 1000);
    char text[32] = "?";
    if (localtime_r(&then_s, &then) != NULL && localtime_r(&now_s, &now) != NULL) {
        bool is_today = then.tm_year == now.tm_year && then.tm_yday == now.tm_yday;
        (void)strftime(text, sizeof(text), is_today ? "%H:%M" : "%Y-%m-%d %H:%M", &then);
    }
    return arena_copy_str(page->arena, str_from_c(text));
}

struct str page_span(struct page *page, int64_t ms)
{
    char buffer[TIME_TEXT_BYTES];
    return arena_copy_str(page->arena, duration_format_short(ms, buffer));
}

/* -- the sentence ----------------------------------------------------------------------------- */

static const char *verb_of(const struct explained *explained)
{
    struct str state = explained->admission->status.state;
    if (explained->decision == DECISION_ADMIT) {
        return "would start now";
    }
    if (explained->decision == DECISION_EVICT) {
        return "would be stopped";
    }
    static const struct {
        const char *state;
        const char *verb;
    } verbs[] = {
        {"Pending", "waits"},        {"Held", "is held"}, {"Reserved", "waits for its room"},
        {"Admitted", "is starting"}, {"Running", "runs"}, {"Suspending", "is being stopped"},
        {"Finished", "has finished"}};
    for (size_t i = 0; i < ARRAY_COUNT(verbs); i++) {
        if (str_eq_c(state, verbs[i].state)) {
            return verbs[i].verb;
        }
    }
    return "is not looked at yet";
}

static void print_sentence(struct page *page, const struct explained *explained)
{
    const struct admission *admission = explained->admission;
    const struct admission_status *status = &admission->status;
    struct text text;
    text_init(&text, page->arena, 4096);
    text_addf(&text, "%s", verb_of(explained));
    bool is_waiting = !str_is_empty(status->reason) && explained->decision != DECISION_ADMIT;
    if (is_waiting) {
        text_addf(&text, ": " STR_FMT ".  [" STR_FMT "]", STR_ARG(status->message),
                  STR_ARG(status->reason));
    } else if (!str_is_empty(status->flavor)) {
        struct str pods = status->pods;
        if (explained->decision == DECISION_ADMIT) {
            pods = str_skip(pods, str_find_char(pods, '/') + 1); /* none of them is there yet */
        }
        text_addf(&text, ": " STR_FMT " pods%s on flavor " STR_FMT, STR_ARG(pods),
                  explained->decision == DECISION_ADMIT ? "" : " ready,", STR_ARG(status->flavor));
        if (!str_is_empty(status->devices)) {
            text_addf(&text, ", " STR_FMT, STR_ARG(status->devices));
        }
    }
    struct str name =
        terminal_safe(page->arena, arena_format(page->arena, STR_FMT "/" STR_FMT,
                                                STR_ARG(admission->meta.namespace_name),
                                                STR_ARG(admission->meta.name)));
    printf("%s" STR_FMT "%s ", page->bold, STR_ARG(name), page->plain);
    (void)terminal_wrap(stdout, terminal_safe(page->arena, text_str(&text)),
                        terminal_width(name) + 1, 2, page->columns);
    printf("\n");
}

/* -- what can be done ------------------------------------------------------------------------- */

static const char *kind_word(struct str kind)
{
    static const char *const words[][2] = {
        {"Wait", "wait"}, {"ChangeJob", "change"}, {"AskAdmin", "ask"}, {"Bug", "report"}};
    for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
        if (str_eq_c(kind, words[i][0])) {
            return words[i][1];
        }
    }
    return "";
}

static void print_actions(struct page *page, const struct explanation *explanation)
{
    bool has_change = false;
    for (uint32_t i = 0; i < explanation->actions.count; i++) {
        const struct explanation_action *action = &explanation->actions.items[i];
        has_change = has_change || str_eq_c(action->kind, "ChangeJob");
        page_line(page, "you can",
                  arena_format(page->arena, "%-6s  " STR_FMT, kind_word(action->kind),
                               STR_ARG(action->message)));
        if (!str_is_empty(action->command)) {
            page_command(page, action->command);
        }
    }
    if (!has_change && explanation->changes_tried.is_set) {
        bool is_tried = explanation->changes_tried.value;
        page_line(page, "you can",
                  is_tried ? STR("change  no smaller change that was tried would start it now")
                           : STR("change  -- (changes weren't tried)"));
    }
}

static void print_start(struct page *page, const struct explained *explained,
                        const struct explanation *explanation)
{
    bool is_waiting = str_eq_c(explained->admission->status.state, "Pending");
    if (!is_waiting) {
        return;
    }
    page_line(page, "start",
              explanation->likely_start.is_set
                  ? arena_format(page->arena, "likely by " STR_FMT,
                                 STR_ARG(page_time(page, explanation->likely_start.ms)))
              : explanation->likely_start_unknown.value
                  ? STR("likely ?  (gangs in its way state no run-time bound)")
                  : STR("likely --"));
}

/* -- after the start -------------------------------------------------------------------------- */

#define WHYS_MAX 8

struct why {
    struct str reason;
    uint32_t count;
    struct str first; /* one pod of them */
};

static uint32_t group_pods(const struct pod_progress_list *pods, struct why *whys,
                           uint32_t *ret_bound)
{
    uint32_t count = 0;
    *ret_bound = 0;
    for (uint32_t i = 0; i < pods->count; i++) {
        const struct pod_progress *pod = &pods->items[i];
        *ret_bound += str_is_empty(pod->spec.node_name) ? 0 : 1;
        struct str reason = pod_progress_why(pod);
        uint32_t w = 0;
        while (w < count && !str_eq(whys[w].reason, reason)) {
            w++;
        }
        if (str_is_empty(reason) || w == WHYS_MAX) {
            continue;
        }
        if (w == count) {
            whys[count++] = (struct why){.reason = reason, .first = pod->meta.name};
        }
        whys[w].count++;
    }
    return count;
}

static void print_pods(struct page *page, const struct explained *explained)
{
    if (!str_is_empty(explained->pods_unread)) {
        page_line(page, "pods", STR("? (you may not list the pods of this namespace)"));
    }
    if (explained->pods == NULL) {
        return;
    }
    struct why whys[WHYS_MAX];
    uint32_t bound;
    uint32_t count = group_pods(explained->pods, whys, &bound);
    page_line(page, "pods",
              arena_format(page->arena, "%u of %s%u bound to a node", bound,
                           explained->pods->count < PODS_SHOWN_MAX ? "" : "the first ",
                           explained->pods->count));
    for (uint32_t i = 0; i < count; i++) {
        page_line(page, "pods",
                  arena_format(page->arena, "%u wait%s: " STR_FMT " (" STR_FMT "%s)", whys[i].count,
                               whys[i].count == 1 ? "s" : "", STR_ARG(whys[i].reason),
                               STR_ARG(whys[i].first), whys[i].count == 1 ? "" : ", ..."));
    }
}

static void print_victims(struct page *page, const struct explained *explained)
{
    for (uint32_t i = 0; i < explained->victims.count; i++) {
        page_line(page, "stops", explained->victims.items[i]);
    }
}

void explain_print_text(struct arena *arena, const struct explained *explained)
{
    bool has_color = terminal_has_color(stdout);
    struct page page = {.arena = arena,
                        .columns = terminal_columns(stdout),
                        .now_ms = explained->now_ms,
                        .bold = has_color ? "\x1b[1m" : "",
                        .dim = has_color ? "\x1b[2m" : "",
                        .plain = has_color ? "\x1b[0m" : "",
                        .label = ""};
    static const struct explanation nothing;
    const struct explanation *explanation = explained->admission->status.explanation;
    explanation = explanation == NULL ? &nothing : explanation;
    print_sentence(&page, explained);
    bool is_waiting =
        !str_is_empty(explained->admission->status.reason) && explained->decision != DECISION_ADMIT;
    print_victims(&page, explained);
    if (is_waiting) {
        print_actions(&page, explanation);
        print_start(&page, explained, explanation);
        page_evidence(&page, explained->admission, explanation);
    }
    print_pods(&page, explained);
    page_past(&page, explained->admission, explanation);
}
