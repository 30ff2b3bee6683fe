#include "support/check.h"
#include "tallyman/kube/base64.h"

static void check_decoded(const char *text, const char *expected)
{
    struct arena arena;
    struct str bytes = STR_NONE;
    arena_init(&arena);
    assert_true(base64_decode(&arena, str_from_c(text), &bytes));
    check_str(bytes, expected);
    check_i64(bytes.ptr[bytes.len], 0);
    arena_deinit(&arena);
}

static void check_refused(const char *text)
{
    struct arena arena;
    struct str bytes = STR("untouched");
    arena_init(&arena);
    if (base64_decode(&arena, str_from_c(text), &bytes)) {
        fail_msg("\"%s\" was taken", text);
    }
    check_str(bytes, "untouched");
    arena_deinit(&arena);
}

/* RFC 4648, section 10. */
static void the_standards_own_examples(void **state)
{
    (void)state;
    check_decoded("", "");
    check_decoded("Zg==", "f");
    check_decoded("Zm8=", "fo");
    check_decoded("Zm9v", "foo");
    check_decoded("Zm9vYg==", "foob");
    check_decoded("Zm9vYmE=", "fooba");
    check_decoded("Zm9vYmFy", "foobar");
    check_decoded("++//", "\xfb\xef\xff");
}

static void line_breaks_are_passed_over(void **state)
{
    (void)state;
    check_decoded("Zm9v\nYm\r\nFy\n", "foobar");
    check_decoded(" Zg =\t= ", "f");
}

static void what_is_not_base64(void **state)
{
    (void)state;
    check_refused("Z");
    check_refused("Zg");
    check_refused("Zg=");
    check_refused("Zg===");
    check_refused("====");
    check_refused("=Zg=");
    check_refused("Z===");
    check_refused("Zg==Zg==");
    check_refused("Zm9v====");
    check_refused("Zm9-");
    check_refused("Zm9_");
    check_refused("Zh=="); /* bits behind the end */
    check_refused("Zm9=");
    check_refused("\xc3\xa9\xc3\xa9");
}

static void encoding_is_undone_by_decoding(void **state)
{
    char bytes[64];
    (void)state;
    for (size_t len = 0; len < sizeof(bytes); len++) {
        struct arena arena;
        struct str back = STR_NONE;
        arena_init(&arena);
        for (size_t i = 0; i < len; i++) {
            bytes[i] = (char)(unsigned char)(i * 37 + len * 11);
        }
        struct str text = base64_encode(&arena, (struct str){bytes, len});
        check_i64(text.len, (len + 2) / 3 * 4);
        assert_true(base64_decode(&arena, text, &back));
        assert_true(str_eq(back, (struct str){bytes, len}));
        arena_deinit(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_standards_own_examples),
        cmocka_unit_test(line_breaks_are_passed_over),
        cmocka_unit_test(what_is_not_base64),
        cmocka_unit_test(encoding_is_undone_by_decoding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
