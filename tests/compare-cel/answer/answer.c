/* What the C side says of each expression: reads devices from the file named first and expressions,
 * one a line, from standard input; writes a line for each: "E" where it doesn't compile, else one
 * letter per device (T true, F false, X error, L limit), then a tab and the first message. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tallyman/api/cel.h"
#include "tallyman/base/alloc.h"

#define DEVICES_MAX 32
#define ITEMS_MAX   32

struct entry {
    struct cel_device cel;
    struct device device;
};

static struct arena keep;
static struct entry entries[DEVICES_MAX];
static size_t entry_count;

static struct str copy(const char *text)
{
    return arena_copy_str(&keep, str_from_c(text));
}

static void add_attribute(struct device *device, const char *kind, const char *key,
                          const char *value)
{
    struct device_attribute a = {.key = copy(key)};
    if (strcmp(kind, "int") == 0) {
        a.int_value = (struct opt_int){true, strtoll(value, NULL, 10)};
    } else if (strcmp(kind, "bool") == 0) {
        a.bool_value = (struct opt_bool){true, strcmp(value, "true") == 0};
    } else if (strcmp(kind, "version") == 0) {
        a.version_value = copy(value);
    } else {
        a.string_value = copy(value);
    }
    device->attributes.items[device->attributes.count++] = a;
}

static void add_capacity(struct device *device, const char *key, const char *value)
{
    struct device_capacity c = {.key = copy(key)};
    c.value.is_set = true;
    c.value.text = copy(value);
    if (rc_failed(quantity_parse(c.value.text, &c.value.value, NULL))) {
        (void)fprintf(stderr, "no quantity: %s\n", value);
        exit(2);
    }
    device->capacity.items[device->capacity.count++] = c;
}

static void read_line(char *line)
{
    struct entry *entry = &entries[entry_count];
    char *key = strchr(line, ' ');
    if (line[0] == '#' || line[0] == '\0') {
        return;
    }
    if (key == NULL) {
        entry->cel.device = &entry->device;
        entry_count++;
        return;
    }
    *key++ = '\0';
    if (strcmp(line, "device") == 0) {
        entry->device.name = copy(key);
        entry->device.attributes.items = ARENA_ARRAY(&keep, struct device_attribute, ITEMS_MAX);
        entry->device.capacity.items = ARENA_ARRAY(&keep, struct device_capacity, ITEMS_MAX);
    } else if (strcmp(line, "driver") == 0) {
        entry->cel.driver = copy(key);
    } else if (strcmp(line, "allow") == 0) {
        entry->device.allow_multiple_allocations = (struct opt_bool){key[0] != '-', key[0] == 't'};
    } else {
        char *value = strchr(key, ' ');
        if (value != NULL) {
            *value++ = '\0';
        }
        if (strcmp(line, "capacity") == 0) {
            add_capacity(&entry->device, key, value == NULL ? "" : value);
        } else {
            add_attribute(&entry->device, line, key, value == NULL ? "" : value);
        }
    }
}

static void read_devices(const char *path)
{
    FILE *file = fopen(path, "r");
    char line[4096];
    if (file == NULL) {
        perror(path);
        exit(2);
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        read_line(line);
    }
    (void)fclose(file);
}

static void answer(struct str expression)
{
    struct cel_program *program = NULL;
    struct err err = {""};
    struct arena scratch;
    if (rc_failed(cel_compile(expression, &program, &err))) {
        (void)printf("E\t%s\n", err.text);
        return;
    }
    char letters[DEVICES_MAX + 1] = "";
    char first[ERR_TEXT_MAX_BYTES] = "";
    arena_init(&scratch);
    for (size_t i = 0; i < entry_count; i++) {
        bool matches = false;
        struct rc rc = cel_matches(program, &entries[i].cel, &scratch, &matches, &err);
        letters[i] = rc.code == RC_OK ? (matches ? 'T' : 'F') : rc.code == RC_LIMIT ? 'L' : 'X';
        if (rc.code != RC_OK && first[0] == '\0') {
            (void)snprintf(first, sizeof(first), "%s", err.text);
        }
        arena_reset(&scratch);
    }
    arena_deinit(&scratch);
    cel_program_free(program);
    (void)printf("%s\t%s\n", letters, first);
}

int main(int argc, char **argv)
{
    char *line = NULL;
    size_t capacity = 0;
    if (argc != 2) {
        (void)fprintf(stderr, "usage: %s DEVICES < EXPRESSIONS\n", argv[0]);
        return 2;
    }
    arena_init(&keep);
    read_devices(argv[1]);
    for (ssize_t n = getline(&line, &capacity, stdin); n >= 0;
         n = getline(&line, &capacity, stdin)) {
        size_t length = (size_t)n;
        length -= length > 0 && line[length - 1] == '\n' ? 1 : 0;
        answer((struct str){line, length});
    }
    free(line);
    arena_deinit(&keep);
    return 0;
}
