/* path.h - where in the API an object or a collection is, percent-encoded. */
#pragma once

#include "tallyman/api/kinds.h"
#include "tallyman/base/text.h"

/* Adds `piece` with everything encoded but A-Z a-z 0-9 - . _ ~ (RFC 3986, unreserved). */
void path_add_encoded(struct text *text, struct str piece);
/* "/apis/batch/v1/namespaces/ns/jobs"; an absent namespace means all of them, or a cluster-wide
 * kind. */
void path_add_collection(struct text *text, const struct kind_info *kind,
                         struct str namespace_name);
/* The same in that version of the API. */
void path_add_collection_as(struct text *text, const struct kind_info *kind, const char *version,
                            struct str namespace_name);
/* The same with "/name" and, unless it is NULL, "/subresource". */
void path_add_object(struct text *text, const struct kind_info *kind, struct str namespace_name,
                     struct str name, const char *subresource);
