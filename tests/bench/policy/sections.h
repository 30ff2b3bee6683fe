/* sections.h - the parts of the bench that have a file of their own. */
#pragma once

void measure_size(void);
void measure_rebuild(void);
