/* Any text as a kubeconfig: it gives a config with a server, or an error that names the file. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tallyman/kube/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static char path[] = "/tmp/tallyman-fuzz-XXXXXX";

static void remove_file(void)
{
    unlink(path);
}

static void write_file(const uint8_t *bytes, size_t size)
{
    static int fd = -1;
    if (fd < 0) {
        fd = mkstemp(path);
        assert(fd >= 0);
        atexit(remove_file);
    }
    assert(ftruncate(fd, 0) == 0);
    assert(pwrite(fd, bytes, size, 0) == (ssize_t)size);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct kube_config *config = NULL;
    struct err err = {0};
    write_file(bytes, size);
    struct kube_config_options options = {.kubeconfig = str_from_c(path)};
    struct rc rc = kube_config_load(&options, &config, &err);
    if (rc_failed(rc)) {
        assert(config == NULL);
        assert(str_starts_with(err_text(&err), str_from_c(path)));
    } else {
        assert(str_find(config->server, STR("://")) < config->server.len);
        assert(str_is_set(config->client_certificate_pem) == str_is_set(config->client_key_pem));
        assert(!(config->is_insecure && str_is_set(config->ca_pem)));
    }
    kube_config_free(config);
    return 0;
}
