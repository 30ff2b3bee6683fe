/* Texts, times and log lines of any bytes: what is taken survives the round trip, and what is
 * written is bounded and harmless. The first byte bounds the cut. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "tallyman/base/limits.h"
#include "tallyman/base/log.h"
#include "tallyman/base/text.h"
#include "tallyman/base/time_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_times(struct str s)
{
    char buffer[TIME_TEXT_BYTES];
    int64_t ms = -1;
    int64_t again = -1;

    if (time_parse_rfc3339(s, &ms)) {
        assert(time_parse_rfc3339(time_format_micro(ms, buffer), &again) && again == ms);
    } else {
        assert(ms == -1);
    }
    ms = -1;
    if (duration_parse(s, &ms)) {
        assert(ms >= 0 && ms <= DURATION_MAX_MS);
        assert(duration_format_short(ms, buffer).len > 0);
    } else {
        assert(ms == -1);
    }
}

static bool is_utf8(struct str s)
{
    struct str rest = s;
    uint32_t c = 0;

    while (str_take_utf8(&rest, &c)) {
        assert(c <= 0x10ffff);
    }
    return rest.len == 0;
}

static void check_cut(struct str s, size_t max_bytes)
{
    struct str cut = str_cut_utf8(s, max_bytes);
    size_t whole = s.len < max_bytes ? s.len : max_bytes;

    assert(cut.len <= whole && cut.len + 3 >= whole && str_starts_with(s, cut));
    assert(is_utf8(cut) || !is_utf8(s));
}

static void check_text(struct str s, size_t max_bytes)
{
    struct arena arena;
    struct text text;

    arena_init(&arena);
    text_init(&text, &arena, max_bytes);
    text_add(&text, s);
    text_addf(&text, STR_FMT, STR_ARG(s));
    assert(text_str(&text).len <= max_bytes);
    assert(text.is_cut || str_starts_with(text_str(&text), s));
    arena_deinit(&arena);
}

static void on_line(void *ctx, enum log_level level, struct str line)
{
    struct str rest = line;

    (void)ctx;
    (void)level;
    assert(line.len <= LOG_LINE_MAX_BYTES && str_ends_with(line, STR("}")));
    while (rest.len > 0) {
        uint32_t c = 0;

        assert(str_take_utf8(&rest, &c) && c >= 0x20 && c != 0x7f);
    }
}

static int64_t fixed_now(void *ctx)
{
    (void)ctx;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const struct log_sink sink = {.write_line = on_line, .now_ms = fixed_now};
    size_t max_bytes = size == 0 ? 0 : bytes[0];
    struct str s = size == 0 ? STR("") : (struct str){(const char *)bytes + 1, size - 1};
    const struct log_field fields[] = {LOG_STR("a", s), LOG_STR("b", s), {.key = NULL}};
    int64_t number = 0;

    (void)str_to_i64(s, &number);
    check_times(s);
    check_cut(s, max_bytes);
    check_text(s, max_bytes);
    log_line(&sink, LOG_INFO, "m", fields);
    return 0;
}
