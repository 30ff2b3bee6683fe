/* matches(), find(), findAll(). A constant pattern was compiled with the expression. */
#include "impl.h"
#include "regex.h"
#include "utf8.h"

static const struct cel_regex *get_regex(struct cel_eval *ev, const struct cel_node *node,
                                         struct str pattern, struct cel_value *ret_error)
{
    struct cel_regex *regex = NULL;
    struct err err;
    if (node->regex != NULL) {
        return node->regex;
    }
    size_t before = ev->scratch->used_bytes;
    struct rc rc = cel_regex_compile(ev->scratch, pattern, &regex, &err);
    ev->bytes += ev->scratch->used_bytes - before;
    if (!rc_failed(rc) && cel_work(ev, regex->count)) {
        return regex;
    }
    *ret_error = rc.code == RC_INVALID ? cel_fault(ev, "this is no regular expression:", pattern)
                                       : cel_stop(ev, RC_LIMIT, "a pattern is too large");
    return NULL;
}

struct search {
    struct cel_eval *ev;
    const struct cel_regex *regex;
    struct str text;
    void *memory;
    size_t start;
    size_t end;
};

/* False: *ret_error is set. */
static bool prepare(struct search *search, const struct cel_node *node,
                    const struct cel_value *args, struct cel_value *ret_error)
{
    struct cel_eval *ev = search->ev;
    if (args[0].kind != CEL_STRING || args[1].kind != CEL_STRING) {
        *ret_error = cel_no_overload(ev);
        return false;
    }
    search->text = args[0].text;
    search->regex = get_regex(ev, node, args[1].text, ret_error);
    if (search->regex == NULL) {
        return false;
    }
    search->memory = cel_alloc(ev, cel_regex_memory_bytes(search->regex), 1);
    if (search->memory == NULL) {
        *ret_error = cel_stop(ev, RC_LIMIT, NULL);
    }
    return search->memory != NULL;
}

static bool run(struct search *search, size_t from)
{
    uint64_t work = 0;
    bool is_found = cel_regex_search(search->regex, search->text, from, search->memory, &work,
                                     &search->start, &search->end);
    return cel_work(search->ev, work) && is_found;
}

struct cel_value cel_matches_regex(struct cel_eval *ev, const struct cel_node *node,
                                   const struct cel_value *args, UNUSED uint32_t count)
{
    struct search search = {.ev = ev};
    struct cel_value error;
    if (!prepare(&search, node, args, &error)) {
        return error;
    }
    return cel_bool(run(&search, 0));
}

struct cel_value cel_find(struct cel_eval *ev, const struct cel_node *node,
                          const struct cel_value *args, UNUSED uint32_t count)
{
    struct search search = {.ev = ev};
    struct cel_value error;
    if (!prepare(&search, node, args, &error)) {
        return error;
    }
    if (!run(&search, 0)) {
        return cel_string(STR(""));
    }
    return cel_string(str_take(str_skip(search.text, search.start), search.end - search.start));
}

/* Where the search goes on, and what was found last. */
struct walk {
    size_t at;
    size_t last_end;
    bool has_last;
};

/* Moves past the match; whether it counts: an empty one right behind the one before doesn't, as in
 * Go. */
static bool take_match(struct walk *walk, const struct search *found)
{
    bool counts = true;
    if (found->end == walk->at) {
        size_t one = utf8_length(str_skip(found->text, walk->at));
        counts = !walk->has_last || walk->last_end != found->start;
        walk->at += one == 0 ? 1 : one;
    } else {
        walk->at = found->end;
    }
    walk->has_last = true;
    walk->last_end = found->end;
    return counts;
}

struct cel_value cel_find_all(struct cel_eval *ev, const struct cel_node *node,
                              const struct cel_value *args, uint32_t count)
{
    struct search search = {.ev = ev};
    struct cel_value result;
    struct walk walk = {.at = 0};
    if (count == 3 && args[2].kind != CEL_INT) {
        return cel_no_overload(ev);
    }
    if (!prepare(&search, node, args, &result)) {
        return result;
    }
    int64_t left = count == 3 ? args[2].integer : -1;
    result = cel_list_value(ev, NULL, 0);
    while (walk.at <= search.text.len && left != 0 && !cel_is_error(result) &&
           run(&search, walk.at)) {
        if (take_match(&walk, &search)) {
            struct cel_value found = cel_string(
                str_take(str_skip(search.text, search.start), search.end - search.start));
            struct cel_list one = {.items = &found, .count = 1};
            result = cel_list_concat(ev, result.list, &one);
            left -= left > 0 ? 1 : 0;
        }
    }
    return ev->stop == RC_OK ? result : cel_stop(ev, RC_LIMIT, NULL);
}
