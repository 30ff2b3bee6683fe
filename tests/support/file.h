/* file.h - a test's input files. */
#pragma once

#include "tallyman/base/arena.h"

/* The whole file; fails the test if it can't be read. Borrowed from the arena. */
struct str file_read(struct arena *arena, const char *path);
