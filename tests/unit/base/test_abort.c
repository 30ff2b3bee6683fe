/* What ends the program: each case runs in a child, whose death and last words are checked. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"
#include "tallyman/base/alloc.h"
#include "tallyman/base/arena.h"

#define WORDS_MAX_BYTES 4096

/* Runs `act` in a child with standard error in `words`; gives the signal that ended it, or 0. */
static int signal_of(void (*act)(void), char words[WORDS_MAX_BYTES])
{
    int ends[2];
    int status = 0;
    size_t len = 0;

    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();

    if (child == 0) {
        (void)signal(SIGABRT, SIG_DFL); /* cmocka catches it */
        (void)dup2(ends[1], STDERR_FILENO);
        act();
        _exit(0);
    }
    (void)close(ends[1]);
    for (ssize_t got = 1; got > 0 && len < WORDS_MAX_BYTES - 1; len += (size_t)got) {
        got = read(ends[0], words + len, WORDS_MAX_BYTES - 1 - len);
        assert_true(got >= 0);
    }
    words[len] = '\0';
    (void)close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void overflow_an_array(void)
{
    (void)mem_array_bytes(SIZE_MAX / 2, 3);
}

static void grow_past_32_bits(void)
{
    uint32_t capacity = UINT32_MAX;

    mem_free(mem_grow(NULL, UINT32_MAX, &capacity, 1));
}

static void overflow_an_arena_array(void)
{
    struct arena arena;

    arena_init(&arena);
    (void)*ARENA_ARRAY(&arena, int64_t, SIZE_MAX / 4);
}

static void die_with_a_reason(void)
{
    mem_die("the table is full");
}

static void do_nothing(void)
{
}

static void overflow_ends_the_program_with_a_message(void **state)
{
    static void (*const acts[])(void) = {overflow_an_array, grow_past_32_bits,
                                         overflow_an_arena_array};
    char words[WORDS_MAX_BYTES];

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(acts); i++) {
        check_i64(signal_of(acts[i], words), SIGABRT);
        assert_non_null(strstr(words, "tallyman: out of memory"));
    }
}

static void a_reason_is_said(void **state)
{
    char words[WORDS_MAX_BYTES];

    (void)state;
    check_i64(signal_of(die_with_a_reason, words), SIGABRT);
    assert_non_null(strstr(words, "tallyman: the table is full\n"));
    check_i64(signal_of(do_nothing, words), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overflow_ends_the_program_with_a_message),
        cmocka_unit_test(a_reason_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
