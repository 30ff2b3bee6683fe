/* plan_print.c - a plan as a table for people, and as JSON or YAML for programs.
 *
 * docs/reference/plan.md has the schema. */
#include "plan.h"

#include <string.h>

#include "terminal.h"

bool print_format_parse(const char *text, enum print_format *ret_format)
{
    static const struct {
        const char *name;
        enum print_format format;
    } formats[] = {
        {"table", PRINT_TABLE}, {"text", PRINT_TABLE}, {"json", PRINT_JSON}, {"yaml", PRINT_YAML}};
    for (size_t i = 0; i < ARRAY_COUNT(formats); i++) {
        if (strcmp(text, formats[i].name) == 0) {
            *ret_format = formats[i].format;
            return true;
        }
    }
    return false;
}

/* -- for programs ----------------------------------------------------------------------------- */

static void put(struct json_writer *writer, const char *key, struct str value)
{
    json_key(writer, key);
    json_string(writer, str_is_set(value) ? value : STR(""));
}

static void put_map(struct json_writer *writer, const struct string_map *map)
{
    json_object_start(writer);
    for (uint32_t i = 0; i < map->count; i++) {
        json_key_str(writer, map->items[i].key);
        json_string(writer, map->items[i].value);
    }
    json_object_end(writer);
}

static void put_pod_sets(struct json_writer *writer, const struct decided_gang *gang)
{
    json_key(writer, "podSets");
    json_array_start(writer);
    for (uint32_t i = 0; i < gang->pod_set_count; i++) {
        const struct decided_pod_set *set = &gang->pod_sets[i];
        json_object_start(writer);
        put(writer, "name", set->name);
        json_key(writer, "count");
        json_int(writer, set->count);
        json_key(writer, "flavors");
        put_map(writer, &set->flavors);
        if (set->node_selector.count > 0) {
            json_key(writer, "nodeSelector");
            put_map(writer, &set->node_selector);
        }
        if (set->domain.count > 0) {
            json_key(writer, "topology");
            put_map(writer, &set->domain);
        }
        if (set->avoided.count > 0) {
            json_key(writer, "avoids");
            json_array_start(writer);
            for (uint32_t h = 0; h < set->avoided.count; h++) {
                json_string(writer, set->avoided.items[h]);
            }
            json_array_end(writer);
        }
        json_object_end(writer);
    }
    json_array_end(writer);
}

static void put_gaps(struct json_writer *writer, const struct live *live)
{
    if (live->gap_count == 0) {
        return;
    }
    json_key(writer, "notRead");
    json_array_start(writer);
    for (uint32_t i = 0; i < live->gap_count; i++) {
        const struct live_gap *gap = &live->gaps[i];
        json_object_start(writer);
        put(writer, "kind", str_from_c(kind_info(gap->kind)->name));
        if (gap->extent == LIVE_NAMESPACE) {
            put(writer, "exceptInNamespace", live->namespace_name);
        }
        put(writer, "meaning", str_from_c(gap->meaning));
        put(writer, "message", gap->message);
        json_object_end(writer);
    }
    json_array_end(writer);
}

static void put_decision(struct json_writer *writer, const struct decided_gang *gang)
{
    json_object_start(writer);
    put(writer, "namespace", gang->namespace_name);
    put(writer, "name", gang->name);
    put(writer, "uid", gang->uid);
    put(writer, "queue", gang->queue);
    put(writer, "decision", str_from_c(decision_name(gang->decision)));
    put_pod_sets(writer, gang);
    json_key(writer, "victims");
    json_array_start(writer);
    for (uint32_t v = 0; v < gang->victims.count; v++) {
        json_string(writer, gang->victims.items[v]);
    }
    json_array_end(writer);
    put(writer, "reason", str_from_c(reason_info(gang->reason)->code));
    put(writer, "message", gang->message);
    json_key(writer, "position");
    json_int(writer, gang->position);
    json_object_end(writer);
}

static void print_data(const struct source *source, const struct decided_list *list,
                       enum print_format format)
{
    struct json_writer *writer = json_writer_new();
    json_object_start(writer);
    json_key(writer, "decisions");
    json_array_start(writer);
    for (uint32_t i = 0; i < list->count; i++) {
        put_decision(writer, &list->items[i]);
    }
    json_array_end(writer);
    put_gaps(writer, &source->live);
    json_object_end(writer);
    struct str text = json_writer_text(writer);
    if (format == PRINT_YAML) {
        terminal_print_yaml(stdout, text);
    } else {
        terminal_print_json(stdout, text, false);
        putchar('\n');
    }
    json_writer_free(writer);
}

/* -- for people ------------------------------------------------------------------------------- */

struct widths {
    int space;
    int name;
    int queue;
    int columns;
};

static int max_width(int width, struct str text)
{
    int own = terminal_width(text);
    return own > width ? own : width;
}

static void print_cell(struct str text, int width)
{
    printf(STR_FMT "%*s  ", STR_ARG(text), width - terminal_width(text), "");
}

/* The sentence stands beside the columns where there is room to read it, else below them. */
static void print_sentence(const struct decided_gang *gang, struct arena *arena, int used,
                           int columns)
{
    struct text text;
    text_init(&text, arena, 8192);
    text_addf(&text, "%s", reason_info(gang->reason)->code);
    if (!str_is_empty(gang->message)) {
        text_addf(&text, ": " STR_FMT, STR_ARG(gang->message));
    }
    for (uint32_t i = 0; i < gang->victims.count; i++) {
        text_addf(&text, "%s" STR_FMT, i == 0 ? "; stops " : ", ", STR_ARG(gang->victims.items[i]));
    }
    struct str sentence = text_str(&text);
    bool is_narrow =
        columns > 0 && columns - used < 40 && terminal_width(sentence) > columns - used;
    printf(is_narrow ? "\n    " : "  ");
    (void)terminal_wrap(stdout, sentence, is_narrow ? 4 : used, is_narrow ? 4 : used, columns);
    printf("\n");
}

static void print_row(const struct decided_gang *gang, struct arena *arena,
                      const struct widths *widths)
{
    char position[24] = "";
    if (gang->position > 0) {
        snprintf(position, sizeof(position), "%lld", (long long)gang->position);
    }
    long long pods = 0;
    for (uint32_t i = 0; i < gang->pod_set_count; i++) {
        pods += gang->pod_sets[i].count;
    }
    print_cell(gang->namespace_name, widths->space);
    print_cell(gang->name, widths->name);
    print_cell(gang->queue, widths->queue);
    int used = widths->space + widths->name + widths->queue + 6 + 8 + 2 + 3 + 2 + 4;
    if (gang->reason == REASON_NONE) {
        printf("%-8s  %3s  %4lld\n", decision_name(gang->decision), position, pods);
        return;
    }
    used += 2 + (pods > 9999 ? snprintf(NULL, 0, "%lld", pods) - 4 : 0);
    printf("%-8s  %3s  %4lld", decision_name(gang->decision), position, pods);
    print_sentence(gang, arena, used, widths->columns);
}

static void print_table(const struct decided_list *list, struct arena *arena)
{
    struct widths widths = {.space = 9, .name = 4, .queue = 5, .columns = terminal_columns(stdout)};
    for (uint32_t i = 0; i < list->count; i++) {
        struct decided_gang *gang = &list->items[i];
        gang->namespace_name = terminal_safe(arena, gang->namespace_name);
        gang->name = terminal_safe(arena, gang->name);
        gang->queue = terminal_safe(arena, gang->queue);
        gang->message = terminal_safe(arena, gang->message);
        for (uint32_t v = 0; v < gang->victims.count; v++) {
            gang->victims.items[v] = terminal_safe(arena, gang->victims.items[v]);
        }
        widths.space = max_width(widths.space, gang->namespace_name);
        widths.name = max_width(widths.name, gang->name);
        widths.queue = max_width(widths.queue, gang->queue);
    }
    print_cell(STR("NAMESPACE"), widths.space);
    print_cell(STR("NAME"), widths.name);
    print_cell(STR("QUEUE"), widths.queue);
    printf("%-8s  %3s  %4s  %s\n", "DECISION", "POS", "PODS", "REASON");
    for (uint32_t i = 0; i < list->count; i++) {
        print_row(&list->items[i], arena, &widths);
    }
}

void plan_print(const struct source *source, struct arena *arena, struct decided_list *list,
                enum print_format format)
{
    if (format != PRINT_TABLE) {
        print_data(source, list, format);
    } else if (list->count > 0) {
        print_table(list, arena);
    } else {
        printf("No Job names a queue (label tallyman.dev/queue).\n");
    }
}
