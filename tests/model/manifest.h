/* manifest.h - a state as Kubernetes objects, one by one. */
#pragma once

#include "model/state.h"
#include "tallyman/base/arena.h"

#define MODEL_NOW_MS INT64_C(1795953600000) /* 2026-11-29T12:00:00Z */

/* One object as JSON: what follows its name in the metadata, and the members behind that. */
struct document {
    enum object_kind kind;
    struct str name;
    struct str metadata;
    struct str members;
};

struct sink {
    struct arena *arena; /* borrowed; where the texts are */
    void (*take)(struct sink *sink, const struct document *document);
    void *ctx;
};

void state_objects(const struct model_state *state, struct sink *sink);
/* Borrowed from the arena. */
struct str document_json(struct arena *arena, const struct document *document);
