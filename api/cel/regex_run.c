/* Trees to programs, and the machine that runs them: all threads at once, one character at a time.
 */
#include "regex.h"
#include "utf8.h"

#include "tallyman/base/limits.h"

static struct rc emit(struct arena *arena, struct cel_regex *regex, struct cel_regex_step step,
                      struct err *err)
{
    if (regex->count >= CEL_REGEX_PROGRAM_MAX) {
        return err_set(err, RC_LIMIT,
                       "the pattern is too large: more than %d steps with its "
                       "repeats written out",
                       CEL_REGEX_PROGRAM_MAX);
    }
    regex->steps =
        arena_grow(arena, regex->steps, regex->count, &regex->capacity, sizeof(*regex->steps));
    regex->steps[regex->count++] = step;
    return RC_SUCCESS;
}

static struct rc generate(struct arena *arena, struct cel_regex *regex,
                          const struct cel_regex_node *node, struct err *err);

/* Sets where a split goes when it leaves what it repeats. */
static void set_branches(struct cel_regex *regex, uint32_t split, uint32_t inside, uint32_t outside,
                         bool is_lazy)
{
    regex->steps[split].x = is_lazy ? outside : inside;
    regex->steps[split].y = is_lazy ? inside : outside;
}

static struct rc generate_endless(struct arena *arena, struct cel_regex *regex,
                                  const struct cel_regex_node *node, struct err *err)
{
    uint32_t split = regex->count;
    TRY(emit(arena, regex, (struct cel_regex_step){.op = CEL_RE_SPLIT}, err));
    TRY(generate(arena, regex, node->children[0], err));
    TRY(emit(arena, regex, (struct cel_regex_step){.op = CEL_RE_JUMP, .x = split}, err));
    set_branches(regex, split, split + 1, regex->count, node->is_lazy);
    return RC_SUCCESS;
}

static struct rc generate_repeat(struct arena *arena, struct cel_regex *regex,
                                 const struct cel_regex_node *node, struct err *err)
{
    for (uint32_t i = 0; i < node->min; i++) {
        TRY(generate(arena, regex, node->children[0], err));
    }
    if (node->max == UINT32_MAX) {
        return generate_endless(arena, regex, node, err);
    }
    uint32_t first = regex->count;
    uint32_t times = node->max - node->min;
    uint32_t *splits = ARENA_ARRAY(arena, uint32_t, times);
    for (uint32_t i = 0; i < times; i++) {
        splits[i] = regex->count;
        TRY(emit(arena, regex, (struct cel_regex_step){.op = CEL_RE_SPLIT}, err));
        TRY(generate(arena, regex, node->children[0], err));
    }
    for (uint32_t i = 0; i < times && first < regex->count; i++) {
        set_branches(regex, splits[i], splits[i] + 1, regex->count, node->is_lazy);
    }
    return RC_SUCCESS;
}

static struct rc generate_either(struct arena *arena, struct cel_regex *regex,
                                 const struct cel_regex_node *node, struct err *err)
{
    uint32_t *jumps = ARENA_ARRAY(arena, uint32_t, node->count);
    for (uint32_t i = 0; i < node->count; i++) {
        uint32_t split = regex->count;
        bool is_last = i + 1 == node->count;
        if (!is_last) {
            TRY(emit(arena, regex, (struct cel_regex_step){.op = CEL_RE_SPLIT, .x = split + 1},
                     err));
        }
        TRY(generate(arena, regex, node->children[i], err));
        if (!is_last) {
            jumps[i] = regex->count;
            TRY(emit(arena, regex, (struct cel_regex_step){.op = CEL_RE_JUMP}, err));
            regex->steps[split].y = regex->count;
        }
    }
    for (uint32_t i = 0; i + 1 < node->count; i++) {
        regex->steps[jumps[i]].x = regex->count;
    }
    return RC_SUCCESS;
}

/* No deeper than the groups, which the parser bounds. */
static struct rc generate(struct arena *arena, struct cel_regex *regex,
                          const struct cel_regex_node *node, struct err *err)
{
    switch (node->kind) {
    case CEL_RE_N_EMPTY:
        return RC_SUCCESS;
    case CEL_RE_N_SET:
        return emit(arena, regex, (struct cel_regex_step){.op = CEL_RE_SET, .set = &node->set},
                    err);
    case CEL_RE_N_ASSERT:
        return emit(arena, regex,
                    (struct cel_regex_step){.op = CEL_RE_ASSERT, .x = (uint32_t)node->assert_kind},
                    err);
    case CEL_RE_N_CAT:
        for (uint32_t i = 0; i < node->count; i++) {
            TRY(generate(arena, regex, node->children[i], err));
        }
        return RC_SUCCESS;
    case CEL_RE_N_EITHER:
        return generate_either(arena, regex, node, err);
    case CEL_RE_N_REPEAT:
        return generate_repeat(arena, regex, node, err);
    }
    return RC_SUCCESS;
}

struct rc cel_regex_compile(struct arena *arena, struct str pattern, struct cel_regex **ret_regex,
                            struct err *err)
{
    struct cel_regex_node *node = NULL;
    struct cel_regex *regex = ARENA_NEW(arena, struct cel_regex);
    TRY(cel_regex_parse(arena, pattern, &node, err));
    TRY(generate(arena, regex, node, err));
    TRY(emit(arena, regex, (struct cel_regex_step){.op = CEL_RE_MATCH}, err));
    *ret_regex = regex;
    return RC_SUCCESS;
}

static bool set_has(const struct cel_regex_set *set, uint32_t character)
{
    for (uint32_t i = 0; i < set->count; i++) {
        if (character >= set->ranges[i].first && character <= set->ranges[i].last) {
            return !set->is_negated;
        }
    }
    return set->is_negated;
}

static bool is_word_at(struct str text, size_t at)
{
    if (at >= text.len) {
        return false;
    }
    char c = text.ptr[at];
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool holds(enum cel_regex_assert kind, struct str text, size_t at)
{
    bool is_edge = (at > 0 && is_word_at(text, at - 1)) != is_word_at(text, at);
    switch (kind) {
    case CEL_RE_TEXT_START:
        return at == 0;
    case CEL_RE_TEXT_END:
        return at == text.len;
    case CEL_RE_LINE_START:
        return at == 0 || text.ptr[at - 1] == '\n';
    case CEL_RE_LINE_END:
        return at == text.len || text.ptr[at] == '\n';
    case CEL_RE_WORD_EDGE:
        return is_edge;
    case CEL_RE_NO_WORD_EDGE:
        return !is_edge;
    }
    return false;
}

struct machine {
    const struct cel_regex *regex;
    struct str text;
    uint32_t *seen;
    uint32_t *stack;
    uint32_t round;
    uint64_t *work;
};

/* Follows everything that needs no character from `step` on, in order of preference. */
static void add_thread(struct machine *m, struct cel_regex_thread *list, uint32_t *count,
                       struct cel_regex_thread thread, size_t at)
{
    uint32_t depth = 0;
    m->stack[depth++] = thread.step;
    while (depth > 0) {
        uint32_t number = m->stack[--depth];
        if (m->seen[number] == m->round) {
            continue;
        }
        m->seen[number] = m->round;
        (*m->work)++;
        const struct cel_regex_step *step = &m->regex->steps[number];
        switch (step->op) {
        case CEL_RE_SPLIT:
            m->stack[depth++] = step->y;
            m->stack[depth++] = step->x;
            break;
        case CEL_RE_JUMP:
            m->stack[depth++] = step->x;
            break;
        case CEL_RE_ASSERT:
            if (holds((enum cel_regex_assert)step->x, m->text, at)) {
                m->stack[depth++] = number + 1;
            }
            break;
        case CEL_RE_SET:
        case CEL_RE_MATCH:
            list[(*count)++] = (struct cel_regex_thread){number, thread.start};
            break;
        }
    }
}

size_t cel_regex_memory_bytes(const struct cel_regex *regex)
{
    size_t count = regex->count + 1;
    return 2 * count * sizeof(struct cel_regex_thread) + 3 * count * sizeof(uint32_t) +
           count * sizeof(uint32_t);
}

bool cel_regex_search(const struct cel_regex *regex, struct str text, size_t from, void *memory,
                      uint64_t *work, size_t *ret_start, size_t *ret_end)
{
    size_t size = regex->count + 1;
    struct cel_regex_thread *lists[2] = {memory, (struct cel_regex_thread *)memory + size};
    struct machine m = {.regex = regex, .text = text, .work = work};
    m.seen = (uint32_t *)(lists[1] + size);
    m.stack = m.seen + size;
    uint32_t counts[2] = {0, 0};
    bool is_found = false;
    for (size_t i = 0; i < size; i++) {
        m.seen[i] = 0;
    }
    m.round = 1;
    size_t bytes = 0;
    for (size_t at = from; at <= text.len; at += bytes) {
        struct cel_regex_thread *now = lists[0];
        uint32_t character = at < text.len ? utf8_decode(str_skip(text, at), &bytes) : UINT32_MAX;
        bytes = at < text.len ? bytes : 1;
        if (!is_found) {
            add_thread(&m, now, &counts[0], (struct cel_regex_thread){0, at}, at);
        }
        if (counts[0] == 0 && is_found) {
            break;
        }
        m.round++;
        counts[1] = 0;
        for (uint32_t i = 0; i < counts[0]; i++) {
            const struct cel_regex_step *step = &regex->steps[now[i].step];
            if (step->op == CEL_RE_MATCH) {
                *ret_start = now[i].start;
                *ret_end = at;
                is_found = true;
                break;
            }
            if (character != UINT32_MAX && set_has(step->set, character)) {
                add_thread(&m, lists[1], &counts[1],
                           (struct cel_regex_thread){now[i].step + 1, now[i].start}, at + bytes);
            }
        }
        lists[0] = lists[1];
        lists[1] = now;
        counts[0] = counts[1];
    }
    return is_found;
}
