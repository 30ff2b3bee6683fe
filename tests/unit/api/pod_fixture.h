/* pod_fixture.h - pods written as JSON, and amounts as text, for the tests of pod requests. */
#pragma once

#include <inttypes.h>
#include <stdlib.h>

#include "support/check.h"
#include "tallyman/api/codec.h"
#include "tallyman/api/pod_request.h"
#include "tallyman/base/text.h"

#define CONTAINER(name, resources) "{'name':'" name "','resources':{" resources "}}"
#define SIDECAR(name, resources)                                                                   \
    "{'name':'" name "','restartPolicy':'Always','resources':{" resources "}}"

/* JSON is written with ' in place of ". */
struct fixture {
    struct arena arena;
    const struct limit_range *limit_ranges[4];
    struct request_context context;
};

UNUSED static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    arena_init(&f->arena);
    f->context.limit_ranges = f->limit_ranges;
    *state = f;
    return 0;
}

UNUSED static int teardown(void **state)
{
    struct fixture *f = *state;
    arena_deinit(&f->arena);
    free(f);
    return 0;
}

UNUSED static void *decoded(struct fixture *f, enum object_kind kind, const char *json)
{
    struct str text = arena_copy_str(&f->arena, str_from_c(json));
    char *bytes = arena_alloc(&f->arena, text.len);
    void *value = NULL;
    struct err err;
    for (size_t i = 0; i < text.len; i++) {
        bytes[i] = text.ptr[i] == '\'' ? '"' : text.ptr[i];
    }
    struct str quoted = {bytes, text.len};
    if (rc_failed(decode_json(&f->arena, kind_info(kind)->schema, quoted, &value, &err))) {
        fail_msg("%s: %s", json, err.text);
    }
    return value;
}

UNUSED static struct pod *pod_of(struct fixture *f, const char *json)
{
    return decoded(f, KIND_POD, json);
}

UNUSED static struct str amounts_text(struct fixture *f, const struct amount_list *amounts)
{
    struct text text;
    text_init(&text, &f->arena, 4096);
    for (uint32_t i = 0; i < amounts->count; i++) {
        text_addf(&text, "%s" STR_FMT "=%" PRId64, i == 0 ? "" : " ",
                  STR_ARG(amounts->items[i].resource), amounts->items[i].value);
    }
    return text_str(&text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
