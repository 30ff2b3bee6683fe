/* wire_client - the kube layer, driven by hand: one line per callback on standard output.
 *
 *     wire_client [--kubeconfig FILE] [--context NAME] [--account DIR HOST PORT] [--NUMBER VALUE]…
 *                 [--watch KIND]…
 *
 * Then one command per line on standard input:
 *
 *     watch KIND [SELECTOR]     unwatch KIND         metrics          version      group KIND
 *     get KIND NAMESPACE NAME   patch KIND NAMESPACE NAME BODY        apply KIND NAMESPACE NAME
 * BODY delete KIND NAMESPACE NAME UID    event NAMESPACE NAME JOB UID
 *     flood COUNT KIND NAMESPACE NAME   cancel (the last request)      quit
 *     lease IDENTITY MILLISECONDS       held      unlease (before quit)      review TOKEN PATH
 *
 * NAMESPACE is - for a cluster-wide kind. It ends by itself when told to quit or when its input
 * ends; its exit status is 0 then. Numbers: idle-ms, initial-ms, watch-ms, retry-base-ms,
 * retry-max-ms, absent-retry-ms, absent-grace-ms, page-items, connect-ms, request-ms, exec-ms,
 * reread-ms, quiet (1: objects are counted, not printed). */
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tallyman/base/alloc.h"

struct wire wire;

static void on_alloc(uv_handle_t *handle, size_t wanted, uv_buf_t *ret_buf)
{
    (void)handle;
    (void)wanted;
    *ret_buf =
        uv_buf_init(wire.text + wire.text_bytes, (unsigned)(INPUT_MAX_BYTES - wire.text_bytes));
}

static void on_input(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    (void)stream;
    (void)buf;
    if (count < 0) {
        quit();
        return;
    }
    wire.text_bytes += (size_t)count;
    char *end = NULL;
    while ((end = memchr(wire.text, '\n', wire.text_bytes)) != NULL) {
        size_t line_bytes = (size_t)(end - wire.text) + 1;
        *end = '\0';
        run_line(wire.text);
        wire.text_bytes -= line_bytes;
        memmove(wire.text, end + 1, wire.text_bytes);
    }
}

/* -- the program ------------------------------------------------------------------------------- */

static bool set_number(const char *name, int64_t value)
{
    struct {
        const char *name;
        int64_t *place;
    } const places[] = {
        {"idle-ms", &wire.numbers.idle_timeout_ms},
        {"initial-ms", &wire.numbers.initial_timeout_ms},
        {"watch-ms", &wire.numbers.watch_ms},
        {"retry-base-ms", &wire.numbers.retry_base_ms},
        {"retry-max-ms", &wire.numbers.retry_max_ms},
        {"absent-retry-ms", &wire.numbers.absent_retry_ms},
        {"absent-grace-ms", &wire.numbers.absent_grace_ms},
        {"connect-ms", &wire.client_options.connect_timeout_ms},
        {"request-ms", &wire.client_options.request_timeout_ms},
        {"exec-ms", &wire.client_options.credential_timeout_ms},
        {"reread-ms", &wire.client_options.credential_reread_ms},
    };
    for (size_t i = 0; i < ARRAY_COUNT(places); i++) {
        if (strcmp(places[i].name, name) == 0) {
            *places[i].place = value;
            return true;
        }
    }
    return false;
}

static bool take_option(const char *name, char **values)
{
    if (strcmp(name, "kubeconfig") == 0) {
        wire.config_options.kubeconfig = str_from_c(values[0]);
    } else if (strcmp(name, "context") == 0) {
        wire.config_options.context = str_from_c(values[0]);
    } else if (strcmp(name, "watch") == 0) {
        wire.first_kinds[wire.first_kind_count++] = values[0];
    } else if (strcmp(name, "page-items") == 0) {
        wire.numbers.page_items = (uint32_t)strtoul(values[0], NULL, 10);
    } else if (strcmp(name, "quiet") == 0) {
        wire.is_quiet = strtoul(values[0], NULL, 10) != 0;
    } else {
        return set_number(name, strtoll(values[0], NULL, 10));
    }
    return true;
}

static void read_options(int argc, char **argv)
{
    kube_config_options_from_env(&wire.config_options);
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        if (strcmp(name, "--account") == 0 && i + 3 < argc) {
            wire.config_options.kubeconfig_env = STR_NONE;
            wire.config_options.account_directory = str_from_c(argv[i + 1]);
            wire.config_options.service_host = str_from_c(argv[i + 2]);
            wire.config_options.service_port = str_from_c(argv[i + 3]);
            i += 3;
        } else if (strncmp(name, "--", 2) == 0 && i + 1 < argc &&
                   take_option(name + 2, argv + i + 1)) {
            i++;
        } else {
            fprintf(stderr, "wire_client: bad option %s\n", name);
            exit(2);
        }
    }
}

static int start(void)
{
    struct err err;
    struct rc rc = kube_config_load(&wire.config_options, &wire.config, &err);
    if (!rc_failed(rc)) {
        wire.client_options.loop = &wire.loop;
        wire.client_options.config = wire.config;
        wire.client_options.version = TALLYMAN_VERSION;
        uv_random(NULL, NULL, &wire.client_options.seed, sizeof(uint64_t), 0, NULL);
        rc = kube_client_open(&wire.client_options, &wire.client, &err);
    }
    if (rc_failed(rc)) {
        printf("error %s: %s\n", rc_name(rc), err.text);
        return 1;
    }
    for (uint32_t i = 0; i < wire.first_kind_count; i++) {
        watch_kind(wire.first_kinds[i], NULL);
    }
    uv_pipe_init(&wire.loop, &wire.input, 0);
    if (uv_pipe_open(&wire.input, 0) != 0) {
        uv_pipe_open(&wire.input, 0); /* the one call that fails was ours */
    }
    uv_read_start((uv_stream_t *)&wire.input, on_alloc, on_input);
    uv_run(&wire.loop, UV_RUN_DEFAULT);
    return 0;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    read_options(argc, argv);
    wire.text = mem_alloc(INPUT_MAX_BYTES);
    uv_loop_init(&wire.loop);
    if (wire_begin != NULL) {
        wire_begin();
    }
    int status = start();
    int left = uv_loop_close(&wire.loop);
    if (left != 0) {
        fprintf(stderr, "wire_client: handles are left open: %s\n", uv_strerror(left));
        status = 3;
    }
    kube_config_free(wire.config);
    mem_free(wire.text);
    return status;
}
