/* text.h - the files of crds/, as bytes in the program (cmake/embed.cmake). */
#pragma once

#include "tallyman/base/str.h"

extern const struct str crd_texts[]; /* static */
extern const uint32_t crd_text_count;
