#include "tallyman/kube/path.h"

static bool path_is_unreserved(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

void path_add_encoded(struct text *text, struct str piece)
{
    static const char hex[] = "0123456789ABCDEF";
    for (size_t i = 0; i < piece.len; i++) {
        if (path_is_unreserved(piece.ptr[i])) {
            text_add(text, (struct str){&piece.ptr[i], 1});
        } else {
            unsigned char c = (unsigned char)piece.ptr[i];
            char encoded[3] = {'%', hex[c >> 4], hex[c & 15]};
            text_add(text, (struct str){encoded, sizeof(encoded)});
        }
    }
}

void path_add_collection(struct text *text, const struct kind_info *kind, struct str namespace_name)
{
    path_add_collection_as(text, kind, kind->version, namespace_name);
}

void path_add_collection_as(struct text *text, const struct kind_info *kind, const char *version,
                            struct str namespace_name)
{
    if (kind->group[0] == '\0') {
        text_addf(text, "/api/%s", version);
    } else {
        text_addf(text, "/apis/%s/%s", kind->group, version);
    }
    if (kind->is_namespaced && !str_is_empty(namespace_name)) {
        text_add(text, STR("/namespaces/"));
        path_add_encoded(text, namespace_name);
    }
    text_addf(text, "/%s", kind->plural);
}

void path_add_object(struct text *text, const struct kind_info *kind, struct str namespace_name,
                     struct str name, const char *subresource)
{
    path_add_collection(text, kind, namespace_name);
    text_add(text, STR("/"));
    path_add_encoded(text, name);
    if (subresource != NULL) {
        text_addf(text, "/%s", subresource);
    }
}
