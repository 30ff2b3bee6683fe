#include <string.h>

#include "support/check.h"
#include "tallyman/api/codec.h"
#include "tallyman/api/dra.h"
#include "tallyman/base/alloc.h"
#include "tallyman/base/text.h"

#define DEVICES 20

/* A claim for so many devices of one driver and pool, in the arena. */
static const struct resource_claim *read_claim(struct arena *arena)
{
    struct text text;
    text_init(&text, arena, 8192);
    text_addf(&text, "{\"metadata\":{\"name\":\"c\",\"namespace\":\"ml\",\"uid\":\"\"},\"status\":"
                     "{\"allocation\":{\"devices\":{\"results\":[");
    for (int i = 0; i < DEVICES; i++) {
        text_addf(&text,
                  "%s{\"request\":\"gpu\",\"driver\":\"gpu.example.com\",\"pool\":\"node-7\","
                  "\"device\":\"g%d\"}",
                  i == 0 ? "" : ",", i);
    }
    text_addf(&text, "]}}}}");
    void *value = NULL;
    struct err err;
    struct rc rc =
        decode_json(arena, kind_info(KIND_RESOURCE_CLAIM)->schema, text_str(&text), &value, &err);
    assert_false(rc_failed(rc));
    return value;
}

static void a_clone_says_the_same_and_is_its_own(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena);
    const struct schema *schema = kind_info(KIND_RESOURCE_CLAIM)->schema;
    const struct resource_claim *claim = read_claim(&arena);
    struct resource_claim *clone = object_clone(schema, claim);
    assert_true(object_equal(schema, claim, clone));
    arena_deinit(&arena);
    const struct allocation_result_list *results = &clone->status.allocation->devices.results;
    check_i64(results->count, DEVICES);
    check_str(clone->meta.name, "c");
    check_str(results->items[DEVICES - 1].device, "g19");
    check_str(results->items[DEVICES - 1].driver, "gpu.example.com");
    check_i64(results->items[0].pool.ptr[results->items[0].pool.len], '\0');
    mem_free(clone);
}

/* A claim of many devices doesn't hold its driver's name once for each. */
static void a_text_that_is_said_again_is_there_once(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena);
    const struct schema *schema = kind_info(KIND_RESOURCE_CLAIM)->schema;
    struct resource_claim *clone = object_clone(schema, read_claim(&arena));
    const struct allocation_result_list *results = &clone->status.allocation->devices.results;
    for (uint32_t i = 1; i < results->count; i++) {
        assert_ptr_equal(results->items[i].driver.ptr, results->items[0].driver.ptr);
        assert_ptr_equal(results->items[i].pool.ptr, results->items[0].pool.ptr);
        assert_ptr_not_equal(results->items[i].device.ptr, results->items[0].device.ptr);
    }
    mem_free(clone);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clone_says_the_same_and_is_its_own),
        cmocka_unit_test(a_text_that_is_said_again_is_there_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
