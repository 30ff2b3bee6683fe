/* build_id.c - which build this is: the note that the linker leaves in the program. */
#define _GNU_SOURCE
#include "commands.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define BUILD_ID_MAX_BYTES 20

static char build_text[2 * BUILD_ID_MAX_BYTES + 1];

static size_t padded(size_t bytes)
{
    return (bytes + 3) & ~(size_t)3;
}

static void take_id(const unsigned char *id, size_t count)
{
    for (size_t i = 0; i < count && i < BUILD_ID_MAX_BYTES; i++) {
        (void)snprintf(build_text + 2 * i, 3, "%02x", (unsigned)id[i]);
    }
}

static void read_notes(const unsigned char *notes, size_t count)
{
    ElfW(Nhdr) head;
    while (count >= sizeof(head)) {
        memcpy(&head, notes, sizeof(head));
        size_t name_bytes = padded(head.n_namesz);
        size_t note_bytes = sizeof(head) + name_bytes + padded(head.n_descsz);
        if (note_bytes > count) {
            return;
        }
        const unsigned char *name = notes + sizeof(head);
        if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == sizeof("GNU") &&
            memcmp(name, "GNU", sizeof("GNU")) == 0) {
            take_id(name + name_bytes, head.n_descsz);
            return;
        }
        notes += note_bytes;
        count -= note_bytes;
    }
}

/* The program itself is the first that is told. */
static int on_object(struct dl_phdr_info *info, size_t bytes, void *ctx)
{
    (void)bytes;
    (void)ctx;
    for (int i = 0; i < info->dlpi_phnum && build_text[0] == '\0'; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_NOTE) {
            /* An address that the loader made of two numbers. */
            uintptr_t at = (uintptr_t)info->dlpi_addr + (uintptr_t)part->p_vaddr;
            read_notes((const unsigned char *)at, part->p_memsz);
        }
    }
    return 1;
}

const char *tallyman_build(void)
{
    if (build_text[0] == '\0') {
        (void)dl_iterate_phdr(on_object, NULL);
    }
    return build_text[0] == '\0' ? "unknown" : build_text;
}
