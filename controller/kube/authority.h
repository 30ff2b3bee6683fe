/* authority.h - the certificates that the API server's own is checked against, read again when
 * their file changes: a cluster's authority is exchanged while its controllers run. Private to
 * kube. */
#pragma once

#include <sys/stat.h>

#include "tallyman/kube/config.h"

struct kube_authority {
    struct arena arena; /* of the text */
    struct str pem;
    struct timespec changed;
    ino_t inode;
    bool is_read; /* from the file; before, the configuration's text counts */
};

void authority_init(struct kube_authority *authority);
void authority_deinit(struct kube_authority *authority);
/* Borrowed until the next call. Absent: the system's authorities. A file that can't be read just
 * now, or has no certificate in it, leaves the last text in use. */
struct str authority_pem(struct kube_authority *authority, const struct kube_config *config);
