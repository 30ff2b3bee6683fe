/* explain_data.c - an explanation for programs: the Admission's own words, and the pods. */
#include "explain.h"

#include "terminal.h"

static void put(struct json_writer *writer, const char *key, struct str value)
{
    json_key(writer, key);
    json_string(writer, str_is_set(value) ? value : STR(""));
}

static void put_pods(struct json_writer *writer, const struct pod_progress_list *pods)
{
    json_key(writer, "pods");
    json_array_start(writer);
    for (uint32_t i = 0; i < pods->count; i++) {
        const struct pod_progress *pod = &pods->items[i];
        json_object_start(writer);
        put(writer, "name", pod->meta.name);
        put(writer, "phase", pod->status.phase);
        put(writer, "node", pod->spec.node_name);
        put(writer, "waitsFor", pod_progress_why(pod));
        json_object_end(writer);
    }
    json_array_end(writer);
}

void explain_print_data(const struct explained *explained, enum print_format format)
{
    const struct admission *admission = explained->admission;
    struct admission told = {
        .meta = {.name = admission->meta.name, .namespace_name = admission->meta.namespace_name},
        .spec = admission->spec,
        .status = admission->status};
    struct json_writer *writer = json_writer_new();
    json_object_start(writer);
    if (explained->decision != 0) {
        put(writer, "decision", str_from_c(decision_name(explained->decision)));
    }
    encode_fields(writer, kind_info(KIND_ADMISSION)->schema, &told);
    if (explained->pods != NULL) {
        put_pods(writer, explained->pods);
    }
    json_object_end(writer);
    if (format == PRINT_YAML) {
        terminal_print_yaml(stdout, json_writer_text(writer));
    } else {
        terminal_print_json(stdout, json_writer_text(writer), false);
        putchar('\n');
    }
    json_writer_free(writer);
}
