/* schema.h - how a schema table is written, and the tables that several files share.
 *
 * Each macro checks at compile time that the member has the type that its kind of field is decoded
 * into: a table that doesn't fit its struct doesn't compile. */
#pragma once

#include <stddef.h>

#include "tallyman/api/codec.h"
#include "tallyman/api/quantity.h"

/* The member's offset, if its type is `type`. */
#define FIELD_AT(tag, member, type)                                                                \
    _Generic(((struct tag *)NULL)->member, type : offsetof(struct tag, member))
/* The same for a list struct {T *items; uint32_t count}. */
#define FIELD_LIST_AT(tag, member, item_type)                                                      \
    _Generic(((struct tag *)NULL)->member.items, item_type * : offsetof(struct tag, member))

#define F_STRING(tag, member, json)                                                                \
    {                                                                                              \
        json, FIELD_STRING, FIELD_AT(tag, member, struct str), NULL                                \
    }
#define F_BOOL(tag, member, json)                                                                  \
    {                                                                                              \
        json, FIELD_BOOL, FIELD_AT(tag, member, struct opt_bool), NULL                             \
    }
#define F_INT(tag, member, json)                                                                   \
    {                                                                                              \
        json, FIELD_INT, FIELD_AT(tag, member, struct opt_int), NULL                               \
    }
#define F_QUANTITY(tag, member, json)                                                              \
    {                                                                                              \
        json, FIELD_QUANTITY, FIELD_AT(tag, member, struct opt_quantity), NULL                     \
    }
#define F_TIME(tag, member, json)                                                                  \
    {                                                                                              \
        json, FIELD_TIME, FIELD_AT(tag, member, struct opt_time), NULL                             \
    }
#define F_DURATION(tag, member, json)                                                              \
    {                                                                                              \
        json, FIELD_DURATION, FIELD_AT(tag, member, struct opt_duration), NULL                     \
    }
#define F_STRING_LIST(tag, member, json)                                                           \
    {                                                                                              \
        json, FIELD_STRING_LIST, FIELD_AT(tag, member, struct str_list), NULL                      \
    }
#define F_STRING_MAP(tag, member, json)                                                            \
    {                                                                                              \
        json, FIELD_STRING_MAP, FIELD_AT(tag, member, struct string_map), NULL                     \
    }
#define F_RESOURCE_LIST(tag, member, json)                                                         \
    {                                                                                              \
        json, FIELD_RESOURCE_LIST, FIELD_AT(tag, member, struct resource_list), NULL               \
    }
/* `of` is the tag of the nested struct; its table is of##_schema. */
#define F_OBJECT(tag, member, json, of)                                                            \
    {                                                                                              \
        json, FIELD_OBJECT, FIELD_AT(tag, member, struct of), &of##_schema                         \
    }
#define F_OBJECT_PTR(tag, member, json, of)                                                        \
    {                                                                                              \
        json, FIELD_OBJECT_PTR, FIELD_AT(tag, member, struct of *), &of##_schema                   \
    }
#define F_OBJECT_LIST(tag, member, json, of)                                                       \
    {                                                                                              \
        json, FIELD_OBJECT_LIST, FIELD_LIST_AT(tag, member, struct of), &of##_schema               \
    }
/* The nested struct begins with `struct str key`. */
#define F_OBJECT_MAP(tag, member, json, of)                                                        \
    {                                                                                              \
        json, FIELD_OBJECT_MAP,                                                                    \
            FIELD_LIST_AT(tag, member, struct of) + _Generic(((struct of *)NULL)->key, struct str  \
                                                             : offsetof(struct of, key)),          \
            &of##_schema                                                                           \
    }

/* How older API versions wrote what is a struct of its own, or no longer is, now: fields that only
 * the decoder knows. */
struct older_shape {
    const struct schema *schema; /* of the struct that is written otherwise */
    /* The object of this name holds the struct's own fields; NULL: none does. */
    const char *flattened;
    /* The fields of this schema stand beside the struct's own; NULL: none do. The pointer to the
     * struct that they belong into is at that offset. */
    const struct schema *inlined;
    size_t offset;
};

/* Static; NULL: it was never otherwise. */
const struct older_shape *older_shape_of(const struct schema *schema);

/* Defines tag##_schema over the array tag##_fields. A struct whose only field has the name "" is
 * that list or map in JSON, without an object around it: so maps of maps are written. */
#define SCHEMA(tag)                                                                                \
    const struct schema tag##_schema = {#tag, sizeof(struct tag), tag##_fields,                    \
                                        ARRAY_COUNT(tag##_fields)}

/* schema_meta.c */
extern const struct schema object_meta_schema;
extern const struct schema condition_schema;
extern const struct schema match_expression_schema;
extern const struct schema label_selector_schema;
extern const struct schema node_selector_schema;
extern const struct schema taint_schema;
extern const struct schema toleration_schema;
extern const struct schema list_meta_schema;

/* schema_pod.c, schema_job.c */
extern const struct schema pod_schema;
extern const struct schema pod_template_schema;
extern const struct schema job_schema;

/* schema_node.c */
extern const struct schema node_schema;
extern const struct schema namespace_object_schema;
extern const struct schema limit_range_schema;
extern const struct schema runtime_class_schema;
extern const struct schema priority_class_schema;

/* schema_dra.c */
extern const struct schema device_class_schema;
extern const struct schema resource_slice_schema;
extern const struct schema resource_claim_schema;
extern const struct schema resource_claim_template_schema;
extern const struct schema device_taint_rule_schema;

/* schema_queue.c, schema_admission.c */
extern const struct schema queue_schema;
extern const struct schema cohort_schema;
extern const struct schema resource_flavor_schema;
extern const struct schema admission_schema;
extern const struct schema record_pod_set_schema;

/* schema_provisioning.c */
extern const struct schema provisioning_request_schema;
