#include "support/check.h"
#include "tallyman/base/limits.h"
#include "tallyman/base/text.h"

static void pieces_make_a_text(void **state)
{
    struct arena arena;
    struct text text;

    (void)state;
    arena_init(&arena);
    text_init(&text, &arena, 100);
    check_str(text_str(&text), "");
    text_add(&text, STR("needs "));
    text_add(&text, STR_NONE);
    text_add(&text, STR(""));
    text_addf(&text, "%d gpu, %d free", 4, 2);
    check_str(text_str(&text), "needs 4 gpu, 2 free");
    check_i64(text_str(&text).ptr[text_str(&text).len], '\0');
    assert_false(text.is_cut);
    arena_deinit(&arena);
}

static void exactly_the_bound_is_not_cut(void **state)
{
    struct arena arena;
    struct text text;

    (void)state;
    arena_init(&arena);
    text_init(&text, &arena, 6);
    text_add(&text, STR("abc"));
    text_addf(&text, "%s", "def");
    check_str(text_str(&text), "abcdef");
    assert_false(text.is_cut);
    text_add(&text, STR("g"));
    check_str(text_str(&text), "abc…");
    assert_true(text.is_cut);
    text_add(&text, STR("h"));
    text_addf(&text, "%d", 1);
    check_str(text_str(&text), "abc…");
    arena_deinit(&arena);
}

/* "€€€" is nine bytes; with room for eight, the ellipsis leaves five, which hold one "€". */
static void cut_falls_between_characters(void **state)
{
    struct arena arena;
    struct text text;

    (void)state;
    arena_init(&arena);
    for (int formatted = 0; formatted <= 1; formatted++) {
        text_init(&text, &arena, 8);
        text_add(&text, STR("€"));
        if (formatted) {
            text_addf(&text, "%s", "€€");
        } else {
            text_add(&text, STR("€€"));
        }
        check_str(text_str(&text), "€…");
        check_i64(text_str(&text).ptr[text_str(&text).len], '\0');
    }
    arena_deinit(&arena);
}

static void too_small_for_an_ellipsis(void **state)
{
    struct arena arena;
    struct text text;

    (void)state;
    arena_init(&arena);
    text_init(&text, &arena, 2);
    text_add(&text, STR("abc"));
    check_str(text_str(&text), "ab");
    text_init(&text, &arena, 0);
    text_addf(&text, "%s", "abc");
    check_str(text_str(&text), "");
    text_init(&text, &arena, 2);
    text_add(&text, STR("€"));
    check_str(text_str(&text), "");
    arena_deinit(&arena);
}

static void text_grows_to_a_large_bound(void **state)
{
    struct arena arena;
    struct text text;

    (void)state;
    arena_init(&arena);
    text_init(&text, &arena, TEXT_LIMIT_BYTES);
    for (int i = 0; i < 20000; i++) {
        text_addf(&text, "%04d,", i % 10000);
    }
    text_addf(&text, "%0300000d", 1);
    check_i64(text_str(&text).len, 400000);
    text.len -= 300000;
    assert_true(str_ends_with(text_str(&text), STR("9998,9999,")));
    assert_true(str_starts_with(text_str(&text), STR("0000,0001,")));
    arena_deinit(&arena);
}

/* What a terminal or the API server's YAML reader might act on becomes '?'; the rest stays. */
static void quoted_text_commands_nobody(void **state)
{
    struct arena arena;

    (void)state;
    arena_init(&arena);
    check_str(text_quote(&arena, STR("4 h\u00e4user"), 100), "4 h\u00e4user");
    check_str(text_quote(&arena, STR("a\x1b[2J\nb\x7f"), 100), "a?[2J?b?");
    check_str(text_quote(&arena,
                         STR("\xc2\x9b"
                             "31m"),
                         100),
              "?31m");
    check_str(text_quote(&arena, STR("\u202etxt\u2066\u200f\ufeff"), 100), "?txt???");
    check_str(text_quote(&arena,
                         STR("a\xff\xc0"
                             "b"),
                         100),
              "a??b");
    check_str(text_quote(&arena, STR("abc\u20acd"), 5), "abc");
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_make_a_text),
        cmocka_unit_test(exactly_the_bound_is_not_cut),
        cmocka_unit_test(cut_falls_between_characters),
        cmocka_unit_test(too_small_for_an_ellipsis),
        cmocka_unit_test(text_grows_to_a_large_bound),
        cmocka_unit_test(quoted_text_commands_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
