#include "tallyman/base/mutant.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define NOTES_BYTES 65536

int mutant_now;
static unsigned char *notes; /* one byte for each; shared, so that a child's and a crash's count */

bool mutant_note(int number)
{
    if (notes != NULL && number < NOTES_BYTES) {
        notes[number] = 1;
    }
    return false;
}

__attribute__((constructor)) static void read_environment(void)
{
    const char *number = getenv("TALLYMAN_MUTANT");
    const char *path = getenv("TALLYMAN_MUTANT_FILE");

    mutant_now = number == NULL ? 0 : atoi(number);
    if (mutant_now >= 0 || path == NULL) {
        return;
    }
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0 || ftruncate(fd, NOTES_BYTES) != 0) {
        abort();
    }
    notes = mmap(NULL, NOTES_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (notes == MAP_FAILED) {
        abort();
    }
    (void)close(fd);
}
