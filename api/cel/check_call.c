/* Overload resolution: every overload that fits is taken; where several do with different results,
 * the result is dyn and the choice is made when the values are there. */
#include "check.h"

#include <string.h>

#include "tallyman/base/limits.h"
#include "tallyman/base/text.h"

#define ARGUMENTS_MAX 4
#define LETTERS       2

struct signature {
    const char *at; /* static */
    const struct cel_type *params[LETTERS];
};

static const struct cel_type *plain_type(char letter)
{
    switch (letter) {
    case 'b':
        return &cel_type_bool;
    case 'i':
        return &cel_type_int;
    case 'u':
        return &cel_type_uint;
    case 'd':
        return &cel_type_double;
    case 's':
        return &cel_type_string;
    case 'y':
        return &cel_type_bytes;
    case 'T':
        return &cel_type_timestamp;
    case 'R':
        return &cel_type_duration;
    case 'Q':
        return &cel_type_quantity;
    case 'V':
        return &cel_type_semver;
    default:
        return &cel_type_dyn;
    }
}

static const struct cel_type *read_type(struct cel_check *c, struct signature *sig)
{
    char letter = *sig->at++;
    const struct cel_type *first = NULL;
    switch (letter) {
    case 'A':
    case 'B':
        if (sig->params[letter - 'A'] == NULL) {
            sig->params[letter - 'A'] = cel_solver_fresh(&c->solver);
        }
        return sig->params[letter - 'A'];
    case 'L':
        return cel_type_new(c->arena, CEL_T_LIST, read_type(c, sig), NULL);
    case 'O':
        return cel_type_new(c->arena, CEL_T_OPTIONAL, read_type(c, sig), NULL);
    case 'Y':
        return cel_type_new(c->arena, CEL_T_TYPE, read_type(c, sig), NULL);
    case 'M':
        first = read_type(c, sig);
        return cel_type_new(c->arena, CEL_T_MAP, first, read_type(c, sig));
    default:
        return plain_type(letter);
    }
}

static uint32_t count_arguments(const char *signature)
{
    uint32_t count = 0;
    for (const char *p = signature; *p != '>' && *p != '\0'; p++) {
        if (*p == 'L' || *p == 'O' || *p == 'Y') {
            continue;
        }
        if (*p == 'M') {
            /* Keys are plain letters. */
            p++;
            continue;
        }
        count++;
    }
    return count;
}

/* "_==_" is known to people as "==", "@in" as "in". */
static struct str shown_name(struct cel_check *c, struct str name)
{
    struct text text;
    if (name.len == 0 || strchr("_@!-", name.ptr[0]) == NULL) {
        return name;
    }
    text_init(&text, c->arena, name.len);
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] != '_' && name.ptr[i] != '@') {
            text_add(&text, str_take(str_skip(name, i), 1));
        }
    }
    return text_str(&text);
}

static struct rc no_overload(struct cel_check *c, struct cel_node *node, struct err *err)
{
    struct text text;
    text_init(&text, c->arena, ERR_TEXT_MAX_BYTES / 2);
    for (uint32_t i = 0; i < node->arg_count; i++) {
        const struct cel_type *type = cel_solver_resolve(&c->solver, node->args[i]->type, true);
        text_addf(&text, "%s%.*s", i > 0 ? ", " : "", STR_ARG(cel_type_text(c->arena, type)));
    }
    return cel_check_fail(c, node, err, "%.*s doesn't take (%.*s)",
                          STR_ARG(shown_name(c, node->name)), STR_ARG(text_str(&text)));
}

/* Tries one overload; *result is what the call gives, NULL before the first that fits. */
static bool try_overload(struct cel_check *c, struct cel_node *node, const char *text,
                         const struct cel_type **result)
{
    bool is_member = text[0] == '.';
    struct signature sig = {.at = is_member ? text + 1 : text};
    if (is_member != node->is_member || count_arguments(sig.at) != node->arg_count) {
        return false;
    }
    const struct cel_type *wanted[ARGUMENTS_MAX];
    const struct cel_type *given[ARGUMENTS_MAX];
    for (uint32_t i = 0; i < node->arg_count; i++) {
        wanted[i] = read_type(c, &sig);
        given[i] = node->args[i]->type;
    }
    sig.at++;
    const struct cel_type *type = read_type(c, &sig);
    if (!cel_solver_assignable_list(&c->solver, given, wanted, node->arg_count)) {
        return false;
    }
    type = cel_solver_resolve(&c->solver, type, false);
    if (*result == NULL) {
        *result = type;
    } else if ((*result)->kind != CEL_T_DYN && !cel_type_equal(type, *result, true)) {
        *result = &cel_type_dyn;
    }
    return true;
}

struct rc cel_check_overloads(struct cel_check *c, struct cel_node *node, struct err *err)
{
    uint32_t count = 0;
    const struct cel_overload *overloads = cel_overloads_find(node->name, &count);
    const struct cel_type *result = NULL;
    uint32_t matches = 0;
    if (overloads == NULL) {
        return cel_check_fail(c, node, err, "there is no function or method '%.*s'",
                              STR_ARG(node->name));
    }
    if (overloads[0].function == CEL_FN_UNSUPPORTED) {
        return cel_check_fail(c, node, err, "the function '%.*s' is not supported",
                              STR_ARG(node->name));
    }
    for (uint32_t i = 0; i < count && node->arg_count <= ARGUMENTS_MAX; i++) {
        if (try_overload(c, node, overloads[i].signature, &result)) {
            node->overload = (int32_t)i;
            matches++;
        }
    }
    if (matches == 0) {
        return no_overload(c, node, err);
    }
    node->overload = matches == 1 ? node->overload : -1;
    node->function = overloads[0].function;
    node->type = result;
    return RC_SUCCESS;
}
