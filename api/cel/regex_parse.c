/* Patterns to trees. Source: Go's regexp/syntax/parse.go with the flags that regexp.Compile sets.
 */
#include "regex.h"
#include "utf8.h"

#include "tallyman/base/limits.h"

struct flags {
    bool is_caseless;  /* i */
    bool is_multiline; /* m */
    bool dot_is_all;   /* s */
    bool is_swapped;   /* U */
};

struct parser {
    struct cel_regex_source source;
    struct flags flags;
    uint32_t depth;
};

static struct rc parse_either(struct parser *p, struct cel_regex_node **ret_node, struct err *err);

static struct rc fail(struct err *err, const char *what)
{
    return err_set(err, RC_INVALID, "the pattern isn't one: %s", what);
}

static bool is_at_end(const struct parser *p)
{
    return p->source.at >= p->source.pattern.len;
}

static char peek(const struct parser *p, size_t ahead)
{
    size_t at = p->source.at + ahead;
    return at < p->source.pattern.len ? p->source.pattern.ptr[at] : '\0';
}

static struct cel_regex_node *node_new(struct parser *p, enum cel_regex_node_kind kind)
{
    struct cel_regex_node *node = ARENA_NEW(p->source.arena, struct cel_regex_node);
    node->kind = kind;
    node->repeats = 1;
    return node;
}

static void add_child(struct parser *p, struct cel_regex_node *node, struct cel_regex_node *child)
{
    node->children = arena_grow(p->source.arena, (void *)node->children, node->count,
                                &node->capacity, sizeof(struct cel_regex_node *));
    node->children[node->count++] = child;
    node->repeats = child->repeats > node->repeats ? child->repeats : node->repeats;
}

static struct cel_regex_node *make_assert(struct parser *p, enum cel_regex_assert kind)
{
    struct cel_regex_node *node = node_new(p, CEL_RE_N_ASSERT);
    node->assert_kind = kind;
    return node;
}

static struct rc make_char(struct parser *p, uint32_t character, struct cel_regex_node **ret_node,
                           struct err *err)
{
    *ret_node = node_new(p, CEL_RE_N_SET);
    cel_regex_set_add(p->source.arena, &(*ret_node)->set, character, character);
    p->source.is_caseless = p->flags.is_caseless;
    return cel_regex_fold(&p->source, &(*ret_node)->set, err);
}

static bool set_flag(struct flags *flags, char letter, bool value)
{
    switch (letter) {
    case 'i':
        flags->is_caseless = value;
        return true;
    case 'm':
        flags->is_multiline = value;
        return true;
    case 's':
        flags->dot_is_all = value;
        return true;
    case 'U':
        flags->is_swapped = value;
        return true;
    default:
        return false;
    }
}

/* "i-s:" or "i)" behind "(?"; *ret_is_group: a group follows. */
static struct rc parse_flags(struct parser *p, bool *ret_is_group, struct err *err)
{
    struct flags flags = p->flags;
    bool value = true;
    bool saw_flag = false;
    for (;;) {
        char c = peek(p, 0);
        p->source.at++;
        if (c == ':' || c == ')') {
            if (!value && !saw_flag) {
                return fail(err, "'-' in flags is followed by none");
            }
            *ret_is_group = c == ':';
            p->flags = flags;
            return RC_SUCCESS;
        }
        if (c == '-' && value) {
            value = false;
            saw_flag = false;
        } else if (set_flag(&flags, c, value)) {
            saw_flag = true;
        } else {
            return fail(err, "unknown flags behind '(?'");
        }
    }
}

static struct rc parse_name(struct parser *p, struct err *err)
{
    struct str rest = str_skip(p->source.pattern, p->source.at);
    size_t end = str_find_char(rest, '>');
    struct str name = str_take(rest, end);
    bool sound = end > 0 && end < rest.len;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        sound = sound && ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                          (c >= 'A' && c <= 'Z') || c == '_');
    }
    if (!sound) {
        return fail(err, "a group's name has other characters than letters, digits and '_'");
    }
    p->source.at += end + 1;
    return RC_SUCCESS;
}

/* Behind "(". A flag setting without a group gives an empty node. */
static struct rc parse_group(struct parser *p, struct cel_regex_node **ret_node, struct err *err)
{
    struct flags outer = p->flags;
    bool is_group = true;
    if (peek(p, 0) == '?') {
        bool has_p = peek(p, 1) == 'P' && peek(p, 2) == '<';
        if (has_p || peek(p, 1) == '<') {
            p->source.at += has_p ? 3 : 2;
            TRY(parse_name(p, err));
        } else {
            p->source.at++;
            TRY(parse_flags(p, &is_group, err));
        }
    }
    if (!is_group) {
        *ret_node = NULL;
        return RC_SUCCESS;
    }
    TRY(parse_either(p, ret_node, err));
    if (peek(p, 0) != ')' || is_at_end(p)) {
        return fail(err, "'(' has no ')'");
    }
    p->source.at++;
    p->flags = outer;
    return RC_SUCCESS;
}

/* \Q…\E: literal text; gives it as a sequence. */
static struct rc parse_quoted(struct parser *p, struct cel_regex_node **ret_node, struct err *err)
{
    struct str rest = str_skip(p->source.pattern, p->source.at + 2);
    size_t end = str_find(rest, STR("\\E"));
    struct str body = str_take(rest, end);
    size_t bytes = 0;
    *ret_node = node_new(p, CEL_RE_N_CAT);
    for (size_t i = 0; i < body.len; i += bytes) {
        struct cel_regex_node *child = NULL;
        TRY(make_char(p, utf8_decode(str_skip(body, i), &bytes), &child, err));
        add_child(p, *ret_node, child);
    }
    p->source.at += 2 + end + (end < rest.len ? 2 : 0);
    return RC_SUCCESS;
}

static struct rc parse_escape(struct parser *p, struct cel_regex_node **ret_node, struct err *err)
{
    uint32_t character = 0;
    char c = peek(p, 1);
    static const struct {
        char letter;
        enum cel_regex_assert kind;
    } asserts[] = {{'A', CEL_RE_TEXT_START},
                   {'z', CEL_RE_TEXT_END},
                   {'b', CEL_RE_WORD_EDGE},
                   {'B', CEL_RE_NO_WORD_EDGE}};
    for (size_t i = 0; i < ARRAY_COUNT(asserts); i++) {
        if (asserts[i].letter == c) {
            p->source.at += 2;
            *ret_node = make_assert(p, asserts[i].kind);
            return RC_SUCCESS;
        }
    }
    *ret_node = node_new(p, CEL_RE_N_SET);
    if (c != '\0' && cel_regex_add_perl_class(p->source.arena, &(*ret_node)->set, c)) {
        p->source.at += 2;
        p->source.is_caseless = p->flags.is_caseless;
        return cel_regex_fold(&p->source, &(*ret_node)->set, err);
    }
    TRY(cel_regex_read_escape(&p->source, &character, err));
    return make_char(p, character, ret_node, err);
}

static struct rc parse_plain(struct parser *p, struct cel_regex_node **ret_node, struct err *err)
{
    size_t bytes = 0;
    uint32_t character = utf8_decode(str_skip(p->source.pattern, p->source.at), &bytes);
    p->source.at += bytes;
    switch (character) {
    case '^':
        *ret_node = make_assert(p, p->flags.is_multiline ? CEL_RE_LINE_START : CEL_RE_TEXT_START);
        return RC_SUCCESS;
    case '$':
        *ret_node = make_assert(p, p->flags.is_multiline ? CEL_RE_LINE_END : CEL_RE_TEXT_END);
        return RC_SUCCESS;
    case '.':
        *ret_node = node_new(p, CEL_RE_N_SET);
        (*ret_node)->set.is_negated = true;
        if (!p->flags.dot_is_all) {
            cel_regex_set_add(p->source.arena, &(*ret_node)->set, '\n', '\n');
        }
        return RC_SUCCESS;
    case '[':
        *ret_node = node_new(p, CEL_RE_N_SET);
        p->source.is_caseless = p->flags.is_caseless;
        return cel_regex_read_class(&p->source, &(*ret_node)->set, err);
    default:
        return make_char(p, character, ret_node, err);
    }
}

static bool read_count(const struct parser *p, size_t *ahead, uint32_t *ret_count)
{
    uint32_t value = 0;
    size_t start = *ahead;
    while (peek(p, *ahead) >= '0' && peek(p, *ahead) <= '9') {
        value =
            value > CEL_REGEX_REPEAT_MAX ? value : value * 10 + (uint32_t)(peek(p, *ahead) - '0');
        (*ahead)++;
    }
    *ret_count = value;
    bool has_zero_in_front = peek(p, start) == '0' && *ahead > start + 1;
    return *ahead > start && !has_zero_in_front;
}

/* "{2}", "{2,}" or "{2,5}"; false: the brace is a plain character. */
static bool read_braces(const struct parser *p, struct cel_regex_node *repeat, size_t *ret_bytes)
{
    size_t ahead = 1;
    if (!read_count(p, &ahead, &repeat->min)) {
        return false;
    }
    repeat->max = repeat->min;
    if (peek(p, ahead) == ',') {
        ahead++;
        if (peek(p, ahead) == '}') {
            repeat->max = UINT32_MAX;
        } else if (!read_count(p, &ahead, &repeat->max)) {
            return false;
        }
    }
    *ret_bytes = ahead + 1;
    return peek(p, ahead) == '}';
}

/* Go takes counts up to 1000, the end not below the start. */
static bool is_count_sound(const struct cel_regex_node *repeat)
{
    if (repeat->min > CEL_REGEX_REPEAT_MAX) {
        return false;
    }
    return repeat->max == UINT32_MAX ||
           (repeat->max <= CEL_REGEX_REPEAT_MAX && repeat->max >= repeat->min);
}

/* The repetition at the parser's place; *ret_bytes is 0 if there is none. */
static struct rc read_repeat(struct parser *p, struct cel_regex_node *repeat, size_t *ret_bytes,
                             struct err *err)
{
    char c = is_at_end(p) ? '\0' : peek(p, 0);
    *ret_bytes = 0;
    if (c == '*' || c == '+' || c == '?') {
        repeat->min = c == '+' ? 1 : 0;
        repeat->max = c == '?' ? 1 : UINT32_MAX;
        *ret_bytes = 1;
        return RC_SUCCESS;
    }
    size_t bytes = 0;
    if (c != '{' || !read_braces(p, repeat, &bytes)) {
        return RC_SUCCESS;
    }
    if (!is_count_sound(repeat)) {
        return fail(err, "a repeat count is above 1000, or its end below its start");
    }
    *ret_bytes = bytes;
    return RC_SUCCESS;
}

/* Wraps *node if a repetition follows; two in a row are refused, as in Go. */
static struct rc parse_repeat(struct parser *p, struct cel_regex_node **node, struct err *err)
{
    struct cel_regex_node *repeat = node_new(p, CEL_RE_N_REPEAT);
    size_t bytes = 0;
    TRY(read_repeat(p, repeat, &bytes, err));
    if (bytes == 0) {
        return RC_SUCCESS;
    }
    bool is_counted = peek(p, 0) == '{';
    p->source.at += bytes;
    if (peek(p, 0) == '?' && !is_at_end(p)) {
        repeat->is_lazy = true;
        p->source.at++;
    }
    repeat->is_lazy = repeat->is_lazy != p->flags.is_swapped;
    add_child(p, repeat, *node);
    if (is_counted) {
        uint32_t times = repeat->max == UINT32_MAX ? repeat->min : repeat->max;
        repeat->repeats *= times > 1 ? times : 1;
        if (repeat->repeats > CEL_REGEX_REPEAT_MAX) {
            return fail(err, "repeats inside each other come to more than 1000");
        }
    }
    struct cel_regex_node next = {.kind = CEL_RE_N_EMPTY};
    TRY(read_repeat(p, &next, &bytes, err));
    if (bytes != 0) {
        return fail(err, "two repetitions in a row");
    }
    *node = repeat;
    return RC_SUCCESS;
}

static struct rc parse_atom(struct parser *p, struct cel_regex_node **ret_node, struct err *err)
{
    struct cel_regex_node probe = {.kind = CEL_RE_N_EMPTY};
    size_t bytes = 0;
    TRY(read_repeat(p, &probe, &bytes, err));
    if (bytes != 0) {
        return fail(err, "a repetition of nothing");
    }
    if (peek(p, 0) == '(') {
        p->source.at++;
        return parse_group(p, ret_node, err);
    }
    if (peek(p, 0) == '\\' && peek(p, 1) == 'Q') {
        return parse_quoted(p, ret_node, err);
    }
    return peek(p, 0) == '\\' ? parse_escape(p, ret_node, err) : parse_plain(p, ret_node, err);
}

/* A repetition right behind "(?i)" belongs to what stands before that. */
static struct rc repeat_before_flags(struct parser *p, struct cel_regex_node *sequence,
                                     struct err *err)
{
    if (sequence->count == 0) {
        return RC_SUCCESS;
    }
    return parse_repeat(p, &sequence->children[sequence->count - 1], err);
}

static struct rc parse_sequence(struct parser *p, struct cel_regex_node **ret_node, struct err *err)
{
    *ret_node = node_new(p, CEL_RE_N_CAT);
    while (!is_at_end(p) && peek(p, 0) != '|' && peek(p, 0) != ')') {
        struct cel_regex_node *atom = NULL;
        bool is_quoted = peek(p, 0) == '\\' && peek(p, 1) == 'Q';
        TRY(parse_atom(p, &atom, err));
        if (atom == NULL) {
            TRY(repeat_before_flags(p, *ret_node, err));
            continue;
        }
        if (is_quoted && atom->count > 1) {
            /* A repetition behind \E belongs to the last character. */
            for (uint32_t i = 0; i + 1 < atom->count; i++) {
                add_child(p, *ret_node, atom->children[i]);
            }
            atom = atom->children[atom->count - 1];
        }
        TRY(parse_repeat(p, &atom, err));
        add_child(p, *ret_node, atom);
    }
    return RC_SUCCESS;
}

static struct rc parse_either(struct parser *p, struct cel_regex_node **ret_node, struct err *err)
{
    if (++p->depth > CEL_REGEX_DEPTH_MAX) {
        return err_set(err, RC_LIMIT, "the pattern has groups more than %d levels deep",
                       CEL_REGEX_DEPTH_MAX);
    }
    struct cel_regex_node *either = node_new(p, CEL_RE_N_EITHER);
    for (;;) {
        struct cel_regex_node *sequence = NULL;
        TRY(parse_sequence(p, &sequence, err));
        add_child(p, either, sequence);
        if (is_at_end(p) || peek(p, 0) != '|') {
            break;
        }
        p->source.at++;
    }
    p->depth--;
    *ret_node = either;
    return RC_SUCCESS;
}

struct rc cel_regex_parse(struct arena *arena, struct str pattern, struct cel_regex_node **ret_node,
                          struct err *err)
{
    struct parser parser = {.source = {.arena = arena, .pattern = pattern}};
    if (!utf8_is_sound(pattern)) {
        return fail(err, "it is no UTF-8");
    }
    TRY(parse_either(&parser, ret_node, err));
    return is_at_end(&parser) ? RC_SUCCESS : fail(err, "')' has no '('");
}
