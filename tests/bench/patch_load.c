/* patch_load.c - sends merge PATCHes to an API server as fast as it takes them.
 *
 * The yardstick for admissions per second: the same server, the same kind of body, the same number
 * of requests in flight over one HTTP/2 connection, and nothing decided in between.
 *
 *   patch_load URL CA_FILE TOKEN_FILE IN_FLIGHT < requests
 *
 * Each line of standard input is PATH, a tab, and the body. Prints the requests, the seconds, and
 * how many were answered by a code other than 200. */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define IN_FLIGHT_MAX 256

struct slot {
    CURL *handle;
    char *url;
    char *body;
};

struct load {
    CURLM *multi;
    const char *server;
    struct slot slots[IN_FLIGHT_MAX];
    struct curl_slist *headers;
    char *line;
    size_t line_capacity;
    long sent;
    long failed;
    int in_flight;
};

static size_t swallow(char *bytes, size_t size, size_t count, void *ctx)
{
    (void)bytes;
    (void)ctx;
    return size * count;
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Reads the next request into the slot and starts it; 0: there are no more. */
static int start_next(struct load *load, struct slot *slot)
{
    ssize_t length = getline(&load->line, &load->line_capacity, stdin);
    char *tab = length > 0 ? strchr(load->line, '\t') : NULL;
    if (tab == NULL) {
        return 0;
    }
    load->line[length - 1] = '\0';
    *tab = '\0';
    free(slot->url);
    free(slot->body);
    slot->body = strdup(tab + 1);
    size_t size = strlen(load->server) + strlen(load->line) + 1;
    slot->url = malloc(size);
    if (slot->url == NULL || slot->body == NULL) {
        abort();
    }
    snprintf(slot->url, size, "%s%s", load->server, load->line);
    curl_easy_setopt(slot->handle, CURLOPT_URL, slot->url);
    curl_easy_setopt(slot->handle, CURLOPT_POSTFIELDS, slot->body);
    curl_multi_add_handle(load->multi, slot->handle);
    load->in_flight++;
    return 1;
}

static void take_answers(struct load *load)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(load->multi, &left)) != NULL) {
        struct slot *slot;
        long code = 0;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&slot);
        curl_easy_getinfo(message->easy_handle, CURLINFO_RESPONSE_CODE, &code);
        load->sent++;
        load->failed += message->data.result != CURLE_OK || code != 200;
        curl_multi_remove_handle(load->multi, slot->handle);
        load->in_flight--;
        start_next(load, slot);
    }
}

static void open_slot(struct load *load, struct slot *slot, const char *ca_file)
{
    slot->handle = curl_easy_init();
    if (slot->handle == NULL) {
        abort();
    }
    curl_easy_setopt(slot->handle, CURLOPT_CAINFO, ca_file);
    curl_easy_setopt(slot->handle, CURLOPT_CUSTOMREQUEST, "PATCH");
    curl_easy_setopt(slot->handle, CURLOPT_HTTPHEADER, load->headers);
    curl_easy_setopt(slot->handle, CURLOPT_WRITEFUNCTION, swallow);
    curl_easy_setopt(slot->handle, CURLOPT_PRIVATE, slot);
    curl_easy_setopt(slot->handle, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(slot->handle, CURLOPT_PIPEWAIT, 1L);
}

static int read_token(const char *path, char *header, size_t size)
{
    FILE *file = fopen(path, "r");
    int prefix = snprintf(header, size, "Authorization: Bearer ");
    if (file == NULL || fgets(header + prefix, (int)size - prefix, file) == NULL) {
        fprintf(stderr, "patch_load: %s can't be read\n", path);
        return 0;
    }
    fclose(file);
    header[strcspn(header, "\n")] = '\0';
    return 1;
}

int main(int argc, char **argv)
{
    char header[8192];
    int in_flight = argc == 5 ? atoi(argv[4]) : 0;
    if (in_flight < 1 || in_flight > IN_FLIGHT_MAX ||
        !read_token(argv[3], header, sizeof(header))) {
        fprintf(stderr, "usage: patch_load URL CA_FILE TOKEN_FILE IN_FLIGHT < requests\n");
        return 2;
    }
    static struct load load;
    load.server = argv[1];
    curl_global_init(CURL_GLOBAL_DEFAULT);
    load.multi = curl_multi_init();
    curl_multi_setopt(load.multi, CURLMOPT_MAX_HOST_CONNECTIONS, 1L);
    load.headers = curl_slist_append(load.headers, header);
    load.headers = curl_slist_append(load.headers, "Content-Type: application/merge-patch+json");
    double started_s = now_s();
    for (int i = 0; i < in_flight; i++) {
        open_slot(&load, &load.slots[i], argv[2]);
        start_next(&load, &load.slots[i]);
    }
    while (load.in_flight > 0) {
        int running;
        curl_multi_perform(load.multi, &running);
        take_answers(&load);
        if (load.in_flight > 0) {
            curl_multi_poll(load.multi, NULL, 0, 1000, NULL);
        }
    }
    printf("%ld %.3f %ld\n", load.sent, now_s() - started_s, load.failed);
    return load.failed == 0 ? 0 : 1;
}
