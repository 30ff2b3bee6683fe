#include "authority.h"

#include "file.h"
#include "tallyman/base/limits.h"

void authority_init(struct kube_authority *authority)
{
    *authority = (struct kube_authority){.pem = STR_NONE};
    arena_init(&authority->arena);
}

void authority_deinit(struct kube_authority *authority)
{
    arena_deinit(&authority->arena);
}

static bool is_known(const struct kube_authority *authority, const struct stat *now)
{
    return authority->is_read && authority->inode == now->st_ino &&
           authority->changed.tv_sec == now->st_mtim.tv_sec &&
           authority->changed.tv_nsec == now->st_mtim.tv_nsec;
}

static void authority_read(struct kube_authority *authority, struct str file)
{
    struct arena arena;
    struct str pem = STR_NONE;
    arena_init(&arena);
    struct rc rc = kube_file_read(&arena, file, KUBE_CONFIG_FILE_MAX_BYTES, &pem, NULL);
    if (rc_failed(rc) || str_find(pem, STR("-----END ")) == pem.len) {
        arena_deinit(&arena);
        return;
    }
    arena_deinit(&authority->arena);
    authority->arena = arena;
    authority->pem = pem;
}

struct str authority_pem(struct kube_authority *authority, const struct kube_config *config)
{
    struct stat now;
    if (str_is_set(config->ca_file) && stat(config->ca_file.ptr, &now) == 0 &&
        !is_known(authority, &now)) {
        authority_read(authority, config->ca_file);
        authority->inode = now.st_ino;
        authority->changed = now.st_mtim;
        authority->is_read = true;
    }
    return str_is_set(authority->pem) ? authority->pem : config->ca_pem;
}
