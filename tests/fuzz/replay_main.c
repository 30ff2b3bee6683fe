/* replay_main.c - gives every file of a corpus directory to a fuzz target, once and in order.
 *
 * Without libFuzzer a corpus is a regression test: what once crashed stays in it. A target without
 * any file fails, because it would test nothing. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define PATH_MAX_BYTES  4096
#define INPUT_MAX_BYTES (16u * 1024 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *input = malloc(INPUT_MAX_BYTES);

    if (file == NULL || input == NULL) {
        (void)fprintf(stderr, "%s: can't be read\n", path);
        free(input);
        return 1;
    }
    size_t size = fread(input, 1, INPUT_MAX_BYTES, file);

    (void)fclose(file);
    /* A copy of exactly its size, so that a sanitizer sees a read past the end. */
    uint8_t *exact = realloc(input, size == 0 ? 1 : size);

    (void)LLVMFuzzerTestOneInput(exact == NULL ? input : exact, size);
    free(exact == NULL ? input : exact);
    return 0;
}

static int replay_directory(const char *directory)
{
    struct dirent **entries = NULL;
    int count = scandir(directory, &entries, is_visible, alphasort);
    int failed = count <= 0;

    if (count <= 0) {
        (void)fprintf(stderr, "%s: no corpus; put at least one input file there\n", directory);
    }
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX_BYTES];

        (void)snprintf(path, sizeof(path), "%s/%s", directory, entries[i]->d_name);
        failed |= replay_file(path);
        free(entries[i]);
    }
    free(entries);
    (void)printf("%s: %d inputs replayed\n", directory, count < 0 ? 0 : count);
    return failed;
}

int main(int argc, char **argv)
{
    int failed = 0;

    if (argc < 2) {
        (void)fprintf(stderr, "usage: %s CORPUS_DIRECTORY...\n", argv[0]);
        return 2;
    }
    (void)LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++) {
        failed |= replay_directory(argv[i]);
    }
    return failed;
}
