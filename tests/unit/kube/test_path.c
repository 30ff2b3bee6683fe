#include "support/check.h"
#include "tallyman/kube/path.h"

static void check_object(enum object_kind kind, struct str namespace_name, const char *name,
                         const char *subresource, const char *expected)
{
    struct arena arena;
    struct text text;
    arena_init(&arena);
    text_init(&text, &arena, 4096);
    path_add_object(&text, kind_info(kind), namespace_name, str_from_c(name), subresource);
    check_str(text_str(&text), expected);
    arena_deinit(&arena);
}

static void objects_of_all_sorts(void **state)
{
    (void)state;
    check_object(KIND_JOB, STR("ml-team"), "train", NULL,
                 "/apis/batch/v1/namespaces/ml-team/jobs/train");
    check_object(KIND_JOB, STR("ml-team"), "train", "status",
                 "/apis/batch/v1/namespaces/ml-team/jobs/train/status");
    check_object(KIND_POD, STR("a"), "b", NULL, "/api/v1/namespaces/a/pods/b");
    check_object(KIND_NODE, STR_NONE, "worker-1", NULL, "/api/v1/nodes/worker-1");
    check_object(KIND_QUEUE, STR("ignored"), "q", NULL, "/apis/tallyman.dev/v1beta1/queues/q");
    check_object(KIND_RESOURCE_CLAIM, STR("a"), "c", NULL,
                 "/apis/resource.k8s.io/v1/namespaces/a/resourceclaims/c");
}

static void collections(void **state)
{
    struct arena arena;
    struct text text;
    (void)state;
    arena_init(&arena);
    text_init(&text, &arena, 4096);
    path_add_collection(&text, kind_info(KIND_POD), STR_NONE);
    text_add(&text, STR(" "));
    path_add_collection(&text, kind_info(KIND_JOB), STR("a"));
    check_str(text_str(&text), "/api/v1/pods /apis/batch/v1/namespaces/a/jobs");
    arena_deinit(&arena);
}

/* A name can't lead anywhere else. */
static void names_are_encoded(void **state)
{
    (void)state;
    check_object(KIND_NODE, STR_NONE, "../pods?x=1#y", NULL, "/api/v1/nodes/..%2Fpods%3Fx%3D1%23y");
    check_object(KIND_NODE, STR_NONE, "a b%\r\n\x7f\xc3\xa9", NULL,
                 "/api/v1/nodes/a%20b%25%0D%0A%7F%C3%A9");
    check_object(KIND_NODE, STR_NONE, "az-AZ.09_~", NULL, "/api/v1/nodes/az-AZ.09_~");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_of_all_sorts),
        cmocka_unit_test(collections),
        cmocka_unit_test(names_are_encoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
