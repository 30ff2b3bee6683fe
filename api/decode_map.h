/* decode_map.h - what lists and maps have in common, and a key that is given twice in a map. */
#pragma once

#include "codec_private.h"

/* Drops all but the last item of each key; the order of what stays is kept. The items begin with
 * their key. `arena` is scratch. */
void map_drop_duplicates(struct arena *arena, struct any_list *list, size_t item_bytes);
/* Of one item of such a field. */
size_t field_item_bytes(const struct field *field);
